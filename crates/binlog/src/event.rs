//! The header that all events have, and their checksum.

use std::fmt;

use crate::read::{Malformed, Reader, Result};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 19;
/// Bytes of the checksum after a sealed event.
pub const CHECKSUM_BYTES: usize = 4;
/// What a log file starts with, before its first event.
pub const MAGIC: [u8; 4] = [0xfe, b'b', b'i', b'n'];

/// Flags of a header.
pub mod flags {
    /// The log file is open, or its server ended without closing it (format description).
    pub const IN_USE: u16 = 1;
    /// The statement uses temporary tables of its thread.
    pub const THREAD_SPECIFIC: u16 = 4;
    /// The statement names its schema itself: no `USE` is needed.
    pub const SUPPRESS_USE: u16 = 8;
    /// Made for a consumer, in no log file.
    pub const ARTIFICIAL: u16 = 0x20;
    /// A reader that does not know the kind skips the event.
    pub const IGNORABLE: u16 = 0x80;
}

/// The kind of an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKind(pub u8);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl EventKind {
            $($(#[$doc])* pub const $name: EventKind = EventKind($number);)*

            /// Its name in lists of events.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($number => stringify!($name),)*
                    _ => "UNKNOWN",
                }
            }
        }
    };
}

kinds! {
    /// A statement.
    QUERY = 2;
    /// The server ended.
    STOP = 3;
    /// Where the log goes on.
    ROTATE = 4;
    /// `LAST_INSERT_ID` or the next number of a statement.
    INTVAR = 5;
    /// Part of a file of LOAD DATA.
    APPEND_BLOCK = 9;
    /// The file of LOAD DATA is not needed.
    DELETE_FILE = 11;
    /// The state of RAND().
    RAND = 13;
    /// A user variable of a statement.
    USER_VAR = 14;
    /// The first event of a file.
    FORMAT_DESCRIPTION = 15;
    /// Commit.
    XID = 16;
    /// The first part of a file of LOAD DATA.
    BEGIN_LOAD_QUERY = 17;
    /// LOAD DATA.
    EXECUTE_LOAD_QUERY = 18;
    /// What the following rows belong to.
    TABLE_MAP = 19;
    /// Inserted rows, version 1.
    WRITE_ROWS_V1 = 23;
    /// Updated rows, version 1.
    UPDATE_ROWS_V1 = 24;
    /// Deleted rows, version 1.
    DELETE_ROWS_V1 = 25;
    /// Something may be missing from the log.
    INCIDENT = 26;
    /// The connection lives.
    HEARTBEAT = 27;
    /// To be skipped.
    IGNORABLE = 28;
    /// The text of the statement that changed the following rows.
    ROWS_QUERY = 29;
    /// Inserted rows.
    WRITE_ROWS = 30;
    /// Updated rows.
    UPDATE_ROWS = 31;
    /// Deleted rows.
    DELETE_ROWS = 32;
    /// Start of a transaction with an identifier.
    GTID = 33;
    /// Start of a transaction without one.
    ANONYMOUS_GTID = 34;
    /// Transactions of all earlier files.
    PREVIOUS_GTIDS = 35;
    /// Of group replication.
    TRANSACTION_CONTEXT = 36;
    /// Of group replication.
    VIEW_CHANGE = 37;
    /// XA PREPARE.
    XA_PREPARE = 38;
    /// Updated rows with changes of JSON documents.
    PARTIAL_UPDATE_ROWS = 39;
    /// A compressed transaction.
    TRANSACTION_PAYLOAD = 40;
    /// The connection lives; for files beyond 4 GiB.
    HEARTBEAT_V2 = 41;
    /// Start of a transaction whose identifier has a tag.
    GTID_TAGGED = 42;
    /// MariaDB: the text of the statement that changed the following rows.
    ANNOTATE_ROWS = 160;
    /// MariaDB: from which file on its recovery reads.
    BINLOG_CHECKPOINT = 161;
    /// MariaDB: start of a transaction.
    MARIADB_GTID = 162;
    /// MariaDB: where the log is in each domain.
    GTID_LIST = 163;
    /// MariaDB: the rest of the file is encrypted.
    START_ENCRYPTION = 164;
    /// MariaDB: a statement, compressed.
    QUERY_COMPRESSED = 165;
    /// MariaDB: inserted rows, version 1, compressed.
    WRITE_ROWS_COMPRESSED_V1 = 166;
    /// MariaDB: updated rows, version 1, compressed.
    UPDATE_ROWS_COMPRESSED_V1 = 167;
    /// MariaDB: deleted rows, version 1, compressed.
    DELETE_ROWS_COMPRESSED_V1 = 168;
    /// MariaDB: inserted rows, compressed.
    WRITE_ROWS_COMPRESSED = 169;
    /// MariaDB: updated rows, compressed.
    UPDATE_ROWS_COMPRESSED = 170;
    /// MariaDB: deleted rows, compressed.
    DELETE_ROWS_COMPRESSED = 171;
}

impl fmt::Debug for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

/// The header of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Seconds since 1970 when the statement started.
    pub timestamp: u32,
    /// What it is.
    pub kind: EventKind,
    /// The server that the change was made on.
    pub server_id: u32,
    /// Bytes of the event with header and checksum.
    pub size: u32,
    /// Position after the event in its file; 0 when it is in none.
    pub position: u32,
    /// See [`flags`].
    pub flags: u16,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// Fewer bytes than a header has, or a size below that of a header.
    pub fn read(bytes: &[u8]) -> Result<Header> {
        let mut reader = Reader::new(bytes);
        let header = Header {
            timestamp: reader.u32()?,
            kind: EventKind(reader.u8()?),
            server_id: reader.u32()?,
            size: reader.u32()?,
            position: reader.u32()?,
            flags: reader.u16()?,
        };
        if (header.size as usize) < HEADER_BYTES {
            return Err(Malformed("size"));
        }
        Ok(header)
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.to_le_bytes());
        out.push(self.kind.0);
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&self.size.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&self.flags.to_le_bytes());
    }
}

/// Appends an event that is not sealed: without checksum, at position 0. Its size is that of the bytes appended.
pub fn write_event(
    out: &mut Vec<u8>,
    kind: EventKind,
    timestamp: u32,
    server_id: u32,
    flags: u16,
    body: impl FnOnce(&mut Vec<u8>),
) {
    let start = begin_event(out, kind, timestamp, server_id, flags);
    body(out);
    end_event(out, start);
}

/// Appends a header without a size; returns where it starts.
pub(crate) fn begin_event(
    out: &mut Vec<u8>,
    kind: EventKind,
    timestamp: u32,
    server_id: u32,
    flags: u16,
) -> usize {
    let start = out.len();
    Header { timestamp, kind, server_id, size: 0, position: 0, flags }.write(out);
    start
}

/// Sets the size of the event that starts at `start` and ends with the buffer.
pub(crate) fn end_event(out: &mut [u8], start: usize) {
    let size = out.len().saturating_sub(start) as u32;
    if let Some(field) = out.get_mut(start + 9..start + 13) {
        field.copy_from_slice(&size.to_le_bytes());
    }
}

/// Appends a copy of an event that is not sealed with its position and checksum. Copies nothing when it is shorter than a header.
pub fn seal(event: &[u8], end_position: u32, out: &mut Vec<u8>) {
    if event.len() < HEADER_BYTES {
        return;
    }
    let start = out.len();
    out.extend_from_slice(event);
    let size = (event.len() + CHECKSUM_BYTES) as u32;
    out[start + 9..start + 13].copy_from_slice(&size.to_le_bytes());
    out[start + 13..start + 17].copy_from_slice(&end_position.to_le_bytes());
    let sum = checksum(&out[start..]);
    out.extend_from_slice(&sum.to_le_bytes());
}

/// The CRC32 of an event.
pub fn checksum(event: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32IsoHdlc, event) as u32
}

/// Splits a sealed event into header and body, after a comparison of its checksum.
///
/// # Errors
/// The size is not that of the bytes, or the checksum is wrong.
pub fn open(event: &[u8]) -> Result<(Header, &[u8])> {
    let header = Header::read(event)?;
    let end = event.len().checked_sub(CHECKSUM_BYTES).ok_or(Malformed("size"))?;
    if header.size as usize != event.len() || end < HEADER_BYTES {
        return Err(Malformed("size"));
    }
    let (content, sum) = event.split_at(end);
    if checksum(content).to_le_bytes() != sum {
        return Err(Malformed("checksum"));
    }
    Ok((header, &content[HEADER_BYTES..]))
}

/// Events one after another, each with its header, in a buffer. It stops before bytes that are no event.
#[derive(Clone, Copy, Debug)]
pub struct Events<'a> {
    rest: &'a [u8],
}

impl<'a> Events<'a> {
    /// The events in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Events<'a> {
        Events { rest: bytes }
    }

    /// Bytes that no event was made of yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = (Header, &'a [u8]);

    /// The header, and the whole event with it.
    fn next(&mut self) -> Option<(Header, &'a [u8])> {
        let header = Header::read(self.rest).ok()?;
        let (event, rest) = self.rest.split_at_checked(header.size as usize)?;
        self.rest = rest;
        Some((header, event))
    }
}
