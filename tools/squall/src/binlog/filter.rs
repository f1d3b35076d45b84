//! Chosen transactions as a new log file.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use binlog::envelope::{XaPrepare, write_previous_gtids};
use binlog::event::{CHECKSUM_BYTES, MAGIC, flags, seal, write_event};
use binlog::gtid::GtidEvent;
use binlog::query::QueryEvent;
use binlog::rows::{self, FLAGS_OFFSET};
use binlog::{EventKind, GtidSet, Header, RowsEvent, TableMap};

use super::read::Place;
use super::walk::{Chosen, Sink, Transaction};
use super::{Source, walk};

/// Writes the file.
///
/// # Errors
/// The file exists or cannot be written; the log cannot be read.
pub(super) fn run(source: &Source, chosen: &Chosen, output: &Path) -> Result<String, String> {
    let shown = output.display();
    let file = OpenOptions::new().write(true).create_new(true).open(output);
    let file = BufWriter::new(file.map_err(|error| format!("{shown}: {error}"))?);
    let mut filter = Filter {
        file,
        position: 0,
        event: Vec::new(),
        maps: HashMap::new(),
        transaction: None,
        buffer: Vec::new(),
        open: None,
        written: 0,
    };
    walk(source, chosen, &mut filter)?;
    let written = filter.written;
    let file = filter.file.into_inner().map_err(|error| format!("{shown}: {error}"))?;
    file.sync_all().map_err(|error| format!("{shown}: {error}"))?;
    Ok(format!("{shown}: {written} transactions\n"))
}

struct Filter {
    file: BufWriter<File>,
    position: u64,
    /// The present event, not sealed.
    event: Vec<u8>,
    /// Descriptions of tables by number, not sealed.
    maps: HashMap<u64, Vec<u8>>,
    transaction: Option<Transaction>,
    /// Events of the transaction after the first, not sealed.
    buffer: Vec<Vec<u8>>,
    /// The table of the last rows, while their statement goes on.
    open: Option<u64>,
    written: u64,
}

impl Filter {
    fn put(&mut self, event: &[u8]) -> Result<(), String> {
        let mut sealed = Vec::with_capacity(event.len() + CHECKSUM_BYTES);
        self.position += (event.len() + CHECKSUM_BYTES) as u64;
        // Beyond 4 GiB the field has the low bits, as in MySQL's logs.
        seal(event, self.position as u32, &mut sealed);
        self.file.write_all(&sealed).map_err(|error| error.to_string())
    }

    /// The start of the file: the format of the first log, with checksums; nothing is known of what came before.
    fn start(&mut self, header: &Header, body: &[u8]) -> Result<(), String> {
        self.file.write_all(&MAGIC).map_err(|error| error.to_string())?;
        self.position = MAGIC.len() as u64;
        let mut format = Vec::new();
        let plain = header.flags & !flags::IN_USE;
        let kind = EventKind::FORMAT_DESCRIPTION;
        write_event(&mut format, kind, header.timestamp, header.server_id, plain, |out| {
            out.extend_from_slice(body);
            if let Some(algorithm) = out.last_mut() {
                *algorithm = 1;
            }
        });
        self.put(&format)?;
        let mut before = Vec::new();
        let kind = EventKind::PREVIOUS_GTIDS;
        write_event(
            &mut before,
            kind,
            header.timestamp,
            header.server_id,
            flags::IGNORABLE,
            |out| {
                write_previous_gtids(&GtidSet::default(), out);
            },
        );
        self.put(&before)
    }

    /// The statement of the last rows ends with them.
    fn end_statement(&mut self) {
        if self.open.take().is_some()
            && let Some(byte) = self.buffer.last_mut().and_then(|rows| rows.get_mut(FLAGS_OFFSET))
        {
            *byte |= rows::flags::STATEMENT_ENDS as u8;
        }
    }
}

/// The first event of a transaction whose other events take so many bytes.
fn gtid_event(transaction: &Transaction, rest: u64) -> Vec<u8> {
    let mut event: GtidEvent = transaction.event.clone();
    let is_tagged = event.gtid.as_ref().is_some_and(|gtid| !gtid.tag.is_empty());
    let kind = match &event.gtid {
        None => EventKind::ANONYMOUS_GTID,
        Some(_) if is_tagged => EventKind::GTID_TAGGED,
        Some(_) => EventKind::GTID,
    };
    let mut out = Vec::new();
    // The length counts the field that has it, which may grow once.
    for _ in 0..3 {
        out.clear();
        write_event(&mut out, kind, transaction.timestamp, transaction.server_id, 0, |out| {
            if is_tagged { event.write_tagged(out) } else { event.write(out) }
        });
        let length = rest + (out.len() + CHECKSUM_BYTES) as u64;
        if length == event.transaction_length {
            break;
        }
        event.transaction_length = length;
    }
    out
}

impl Sink for Filter {
    fn event(&mut self, _: &Place, header: &Header, body: &[u8]) -> Result<(), String> {
        if header.kind == EventKind::FORMAT_DESCRIPTION && self.position == 0 {
            self.start(header, body)?;
        }
        self.event.clear();
        let Header { timestamp, kind, server_id, flags, .. } = *header;
        write_event(&mut self.event, kind, timestamp, server_id, flags, |out| {
            out.extend_from_slice(body);
        });
        if kind == EventKind::TABLE_MAP
            && let Some(number) = body.get(..6)
        {
            let number = number.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            self.maps.insert(number, self.event.clone());
        }
        Ok(())
    }

    fn begin(&mut self, transaction: &Transaction, _: bool) -> Result<(), String> {
        self.transaction = Some(transaction.clone());
        self.buffer.clear();
        self.open = None;
        Ok(())
    }

    fn open(&mut self) -> Result<(), String> {
        self.buffer.push(self.event.clone());
        Ok(())
    }

    fn statement(&mut self, _: &Header, _: &QueryEvent<'_>) -> Result<(), String> {
        self.end_statement();
        self.buffer.push(self.event.clone());
        Ok(())
    }

    fn rows(&mut self, map: &Arc<TableMap>, rows: &RowsEvent<'_>) -> Result<(), String> {
        if self.open != Some(map.table_id) {
            self.end_statement();
            let known = self.maps.get(&map.table_id);
            self.buffer.push(known.ok_or("rows of a table that was not described")?.clone());
        }
        self.buffer.push(self.event.clone());
        self.open = Some(map.table_id).filter(|_| !rows.ends_statement());
        Ok(())
    }

    fn prepare(&mut self, _: &XaPrepare<'_>) -> Result<(), String> {
        self.end_statement();
        self.buffer.push(self.event.clone());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), String> {
        self.end_statement();
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        // A statement that is a transaction is in the buffer already, as is XA PREPARE.
        let kind = Header::read(&self.event).map_err(|error| error.to_string())?.kind;
        let is_commit = kind == EventKind::XID || self.event.ends_with(b"\0COMMIT");
        if is_commit {
            self.buffer.push(self.event.clone());
        }
        let buffer = std::mem::take(&mut self.buffer);
        let rest = buffer.iter().map(|event| (event.len() + CHECKSUM_BYTES) as u64).sum();
        self.put(&gtid_event(&transaction, rest))?;
        buffer.iter().try_for_each(|event| self.put(event))?;
        self.written += 1;
        Ok(())
    }
}
