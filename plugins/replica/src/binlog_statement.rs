//! BINLOG: the changes of rows that events in base64 describe, made in the transaction of the session. `mysqlbinlog` writes such statements.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use binlog::event::{self, Events, HEADER_BYTES};
use binlog::rows::flags;
use binlog::{Event, EventKind, Header, RowsEvent, TableMap, decode};
use errors::{Error, ErrorCode, Result};
use plugin_api::ReplicationSession;
use types::Value;

use crate::apply::broken;
use crate::local::{Present, Run};
use crate::target::{Change, Target};

/// Either privilege allows the statement.
const PRIVILEGES: [&str; 2] = ["REPLICATION_APPLIER", "BINLOG_ADMIN"];
/// The text is no base64.
const UNREADABLE: ErrorCode = ErrorCode(1575);
/// Rows came before the description of their format.
const NO_FORMAT: ErrorCode = ErrorCode(1609);
/// An event that is not about rows.
const WRONG_KIND: ErrorCode = ErrorCode(1730);
/// What rows are read with. They mean the same whatever the settings of the session are.
const SETTINGS: [(&str, &str); 6] = [
    ("system_versioning_stored_rows", "1"),
    ("sql_mode", "'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'"),
    ("time_zone", "'+00:00'"),
    ("character_set_client", "utf8mb4"),
    ("collation_connection", "utf8mb4_0900_ai_ci"),
    ("foreign_key_checks", "0"),
];

/// Runs the statement.
///
/// # Errors
/// 1227, 1575, 1609, 1730; those of the changes.
pub(crate) fn run(text: &str, session: &mut dyn ReplicationSession) -> Result<()> {
    if session.require_privilege(PRIVILEGES[0]).is_err() {
        session.require_privilege(PRIVILEGES[1])?;
    }
    let unreadable = || Error::new(UNREADABLE, "Decoding of base64 string failed");
    let bytes = decoded(text).filter(|bytes| !bytes.is_empty()).ok_or_else(unreadable)?;
    let mut events = Events::new(&bytes);
    let all: Vec<_> = events.by_ref().collect();
    if !events.rest().is_empty() {
        return Err(broken("it is cut off"));
    }
    if all.iter().all(|(header, _)| header.kind == EventKind::FORMAT_DESCRIPTION) {
        return all.iter().try_for_each(|(header, event)| note_format(header, event, session));
    }
    let mut here = Present(session);
    let kept = set_up(&mut here)?;
    let result = repeat_or_not(&all, &mut here);
    let sets: Vec<_> =
        SETTINGS.iter().zip(&kept).map(|((name, _), _)| format!("{name} = ?")).collect();
    here.execute(&format!("SET SESSION {}", sets.join(", ")), &kept)?;
    result
}

/// The bytes of texts in base64 that follow one another, each with its own padding.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let text: String = text.split_ascii_whitespace().collect();
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let padding = rest.find('=').unwrap_or(rest.len());
        let after = rest[padding..].find(|sign| sign != '=').map_or(rest.len(), |at| padding + at);
        let (part, others) = rest.split_at(after);
        bytes.extend(STANDARD.decode(part).ok()?);
        rest = others;
    }
    Some(bytes)
}

fn note_format(header: &Header, event: &[u8], session: &mut dyn ReplicationSession) -> Result<()> {
    // With a checksum or room for one.
    let end = event.len().checked_sub(event::CHECKSUM_BYTES).filter(|end| *end >= HEADER_BYTES);
    let body = event.get(HEADER_BYTES..end.unwrap_or(0)).unwrap_or_default();
    let Event::FormatDescription(format) = decode(header.kind, body).map_err(broken)? else {
        return Err(broken("format"));
    };
    session.note_event_format(format.has_checksums);
    Ok(())
}

/// Sets the session up; what it was before.
fn set_up(here: &mut dyn Run) -> Result<Vec<Value>> {
    let names: Vec<_> = SETTINGS.iter().map(|(name, _)| format!("@@SESSION.{name}")).collect();
    let answer = here.execute(&format!("SELECT {}", names.join(", ")), &[])?;
    let kept = answer.rows.into_iter().next().unwrap_or_default();
    let sets: Vec<_> = SETTINGS.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    here.execute(&format!("SET SESSION {}", sets.join(", ")), &[])?;
    Ok(kept)
}

/// Makes all changes or, after an error, none.
fn repeat_or_not(events: &[(Header, &[u8])], here: &mut Present<'_>) -> Result<()> {
    let (begin, end, undo) = match here.0.is_in_transaction() {
        true => (
            "SAVEPOINT `BINLOG statement`",
            "RELEASE SAVEPOINT `BINLOG statement`",
            "ROLLBACK TO SAVEPOINT `BINLOG statement`",
        ),
        false => ("BEGIN", "COMMIT", "ROLLBACK"),
    };
    here.execute(begin, &[])?;
    match repeat(events, here) {
        Ok(()) => here.execute(end, &[])?.durable(),
        Err(error) => {
            // The first error says more than one of the cleanup.
            let _ = here.execute(undo, &[]);
            Err(error)
        }
    }
}

fn repeat(events: &[(Header, &[u8])], here: &mut Present<'_>) -> Result<()> {
    let mut tables: HashMap<u64, TableMap> = HashMap::new();
    for (header, event) in events {
        if header.kind == EventKind::FORMAT_DESCRIPTION {
            note_format(header, event, here.0)?;
            continue;
        }
        let body = match here.0.events_have_checksums() {
            Some(true) => event::open(event).map_err(broken)?.1,
            Some(false) => event.get(HEADER_BYTES..).unwrap_or_default(),
            None => return Err(Error::with(NO_FORMAT, &[&header.kind.name()])),
        };
        let decoded = decode(header.kind, body).map_err(broken)?;
        if let Event::TableMap(map) = decoded {
            tables.insert(map.table_id, *map);
        } else if let Event::Rows(rows) = decoded {
            let map = tables.get_mut(&rows.table_id);
            change(
                map.ok_or_else(|| broken("rows of a table that was not described"))?,
                &rows,
                here,
            )?;
        } else if header.kind != EventKind::ROWS_QUERY {
            return Err(Error::with(WRONG_KIND, &[&header.kind.name()]));
        }
    }
    Ok(())
}

fn change(map: &mut TableMap, rows: &RowsEvent<'_>, here: &mut Present<'_>) -> Result<()> {
    // Since 9.6 the rows that cascades changed are in the log themselves.
    let off = flags::SQL_FOREIGN_KEYS | flags::NO_FOREIGN_KEY_CHECKS;
    let checks = u8::from(rows.flags & off == 0);
    here.execute(&format!("SET SESSION foreign_key_checks = {checks}"), &[])?;
    let target = Target::load(here, &map.schema, &map.table)?;
    if !map.is_complete() {
        map.complete(&target.known());
    }
    let map = &*map;
    let mut change: Option<Change> = None;
    for row in rows.rows(map) {
        let mut row = row.map_err(broken)?;
        target.complete(here, &mut row)?;
        let change = match &change {
            Some(change) => change,
            None => change.insert(target.change(rows.kind, &row.before, &row.after)?),
        };
        if !change.is_empty() {
            change.run(here, &row.before, &row.after).map_err(|error| {
                let text = format!("Table {}.{}: {}", map.schema, map.table, error.message());
                Error::new(error.code(), text)
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_in_base64_follow_one_another() {
        assert_eq!(decoded("YQ==\nYmM=\n").as_deref(), Some(&b"abc"[..]));
        assert_eq!(decoded("YWJj\n ZGVm").as_deref(), Some(&b"abcdef"[..]));
        assert_eq!(decoded(""), Some(Vec::new()));
        for wrong in ["Y", "=", "YQ=", "Y-=="] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
