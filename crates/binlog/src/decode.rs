//! Any event as a value.

use types::GtidSet;

use crate::envelope::{self, FormatDescription, Heartbeat, Rotate, TransactionPayload, XaPrepare};
use crate::event::EventKind;
use crate::gtid::{self, GtidEvent};
use crate::query::QueryEvent;
use crate::read::{Malformed, Reader};
use crate::rows::RowsEvent;
use crate::table_map::TableMap;

/// An event.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// The first event of a file.
    FormatDescription(FormatDescription<'a>),
    /// Where the log goes on.
    Rotate(Rotate<'a>),
    /// Transactions of all earlier files.
    PreviousGtids(GtidSet),
    /// Start of a transaction, with an identifier or anonymous.
    Gtid(GtidEvent),
    /// A statement.
    Query(QueryEvent<'a>),
    /// Commit.
    Xid(u64),
    /// XA PREPARE.
    XaPrepare(XaPrepare<'a>),
    /// The text of the statement that changed the following rows.
    RowsQuery(&'a [u8]),
    /// What rows belong to.
    TableMap(Box<TableMap>),
    /// Rows.
    Rows(RowsEvent<'a>),
    /// A compressed transaction.
    TransactionPayload(TransactionPayload<'a>),
    /// The connection lives.
    Heartbeat(Heartbeat<'a>),
    /// The server ended.
    Stop,
    /// Changes may be missing: number and message.
    Incident(u16, &'a [u8]),
    /// Another kind: statement-based logging, group replication, newer servers.
    Other(EventKind),
}

/// Reads the body of an event, without header and checksum.
///
/// # Errors
/// The body is malformed.
pub fn decode(kind: EventKind, body: &[u8]) -> Result<Event<'_>, Malformed> {
    let mut reader = Reader::new(body);
    Ok(match kind {
        EventKind::FORMAT_DESCRIPTION => {
            Event::FormatDescription(envelope::read_format_description(body)?)
        }
        EventKind::ROTATE => Event::Rotate(envelope::read_rotate(body)?),
        EventKind::PREVIOUS_GTIDS => Event::PreviousGtids(gtid::read_set(body)?),
        EventKind::GTID => Event::Gtid(GtidEvent::read(body, false)?),
        EventKind::ANONYMOUS_GTID => Event::Gtid(GtidEvent::read(body, true)?),
        EventKind::GTID_TAGGED => Event::Gtid(GtidEvent::read_tagged(body)?),
        EventKind::QUERY => Event::Query(QueryEvent::read(body)?),
        EventKind::XID => Event::Xid(reader.u64()?),
        EventKind::XA_PREPARE => Event::XaPrepare(XaPrepare::read(body)?),
        EventKind::ROWS_QUERY => {
            reader.u8()?;
            Event::RowsQuery(reader.rest())
        }
        EventKind::TABLE_MAP => Event::TableMap(Box::new(TableMap::read(body)?)),
        EventKind::TRANSACTION_PAYLOAD => {
            Event::TransactionPayload(TransactionPayload::read(body)?)
        }
        EventKind::HEARTBEAT => Event::Heartbeat(Heartbeat { name: body, position: 0 }),
        EventKind::HEARTBEAT_V2 => Event::Heartbeat(envelope::read_heartbeat_v2(body)?),
        EventKind::STOP => Event::Stop,
        EventKind::INCIDENT => Event::Incident(reader.u16()?, reader.short_bytes()?),
        other => match RowsEvent::read(other, body)? {
            Some(rows) => Event::Rows(rows),
            None => Event::Other(other),
        },
    })
}
