//! The log's files as files: their list, what each begins with, reading events from them.

use std::io;
use std::sync::Arc;

use binlog::event::{CHECKSUM_BYTES, HEADER_BYTES, MAGIC, open};
use binlog::{Event, EventKind, Header, decode};
use errors::{Result, err};
use sys::disk::{Disk, File, OpenMode};

use crate::core::{LogFile, file_name, io_error};

const INDEX_NAME: &str = "binlog.index";
const NEW_INDEX_NAME: &str = "binlog.index-new";
/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;

/// Writes the list of files anew.
pub(crate) fn write_index(disk: &dyn Disk, files: &[LogFile]) -> Result<()> {
    let write = || {
        let text: String =
            files.iter().map(|file| format!("./{}\n", file_name(file.number))).collect();
        let file = disk.open(NEW_INDEX_NAME, OpenMode::OrCreate)?;
        file.set_size(0)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync()?;
        disk.rename(NEW_INDEX_NAME, INDEX_NAME)?;
        disk.sync_dir()
    };
    write().map_err(|error: io::Error| io_error(&error))
}

/// What is known of a file that exists.
pub(crate) fn describe(disk: &dyn Disk, number: u64) -> Result<LogFile> {
    let mut events = FileEvents::open(disk, number, MAGIC.len() as u64)?;
    let size = events.file.size_bytes().map_err(|error| io_error(&error))?;
    let mut described = LogFile { number, size, ..LogFile::default() };
    let has_checksums = events.has_checksums()?;
    while let Some((header, event)) = events.next(size)? {
        let Some(event) = plain(header, event, has_checksums) else { break };
        described.last_micros = i64::from(header.timestamp) * 1_000_000;
        let body = &event[HEADER_BYTES..];
        if let Ok(Event::PreviousGtids(set)) = decode(header.kind, body) {
            described.before = Arc::new(set);
            break;
        }
    }
    Ok(described)
}

/// Reads events of a file, one after the other.
pub(crate) struct FileEvents {
    file: Arc<dyn File>,
    number: u64,
    /// Where the next event begins.
    pub position: u64,
    bytes: Vec<u8>,
    /// Place in the file of the first of `bytes`.
    start: u64,
}

impl FileEvents {
    /// From a place on.
    ///
    /// # Errors
    /// I/O; there is no such file.
    pub fn open(disk: &dyn Disk, number: u64, position: u64) -> Result<FileEvents> {
        let file = disk.open(&file_name(number), OpenMode::Existing);
        let file = file.map_err(|error| io_error(&error))?;
        Ok(FileEvents { file, number, position, bytes: Vec::new(), start: position })
    }

    /// The number of the file.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether events of the file have checksums, as its first event says.
    ///
    /// # Errors
    /// I/O; the file does not begin with its format.
    pub fn has_checksums(&mut self) -> Result<bool> {
        let position = self.position;
        let end = self.file.size_bytes().map_err(|error| io_error(&error))?;
        self.seek(MAGIC.len() as u64);
        let first = self.next(end)?;
        let format = first.and_then(|(_, event)| open(event).ok());
        let format = format.map(|(header, body)| decode(header.kind, body));
        let Some(Ok(Event::FormatDescription(format))) = format else { return Err(wrong_place()) };
        let known = format.has_checksums;
        self.seek(position);
        Ok(known)
    }

    /// Goes on at a place.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
        self.start = position;
        self.bytes.clear();
    }

    /// The next whole event before `end`.
    ///
    /// # Errors
    /// I/O; the place is not the start of an event.
    pub fn next(&mut self, end: u64) -> Result<Option<(Header, &[u8])>> {
        let left = end.saturating_sub(self.position);
        if left == 0 {
            return Ok(None);
        }
        self.fill(HEADER_BYTES, end)?;
        let at = (self.position - self.start) as usize;
        let header = Header::read(&self.bytes[at..]).map_err(|_| wrong_place())?;
        let size = header.size as usize;
        if u64::from(header.size) > left {
            return Err(wrong_place());
        }
        self.fill(size, end)?;
        let at = (self.position - self.start) as usize;
        self.position += size as u64;
        let event = self.bytes.get(at..at + size).ok_or_else(wrong_place)?;
        Ok(Some((header, event)))
    }

    /// Has at least `count` bytes from the place on in memory, if the file has them.
    fn fill(&mut self, count: usize, end: u64) -> Result<()> {
        let at = (self.position - self.start) as usize;
        if self.bytes.len() >= at + count {
            return Ok(());
        }
        self.bytes.drain(..at);
        self.start = self.position;
        let wanted = count.max(READ_BYTES).min((end - self.position) as usize);
        let have = self.bytes.len();
        if have < wanted {
            self.bytes.resize(wanted, 0);
            let read = self.file.read_at(&mut self.bytes[have..], self.start + have as u64);
            let read = read.map_err(|error| io_error(&error))?;
            self.bytes.truncate(have + read);
        }
        Ok(())
    }
}

/// An event of a file without its checksum; `None` when that is wrong.
pub(crate) fn plain(header: Header, event: &[u8], has_checksums: bool) -> Option<&[u8]> {
    // A file's first event always has one.
    if has_checksums || header.kind == EventKind::FORMAT_DESCRIPTION {
        open(event).ok()?;
        return event.get(..event.len() - CHECKSUM_BYTES);
    }
    Some(event)
}

/// The error of a place that is not the start of an event.
pub(crate) fn wrong_place() -> errors::Error {
    err!(ERROR_WHEN_EXECUTING_COMMAND, "SHOW BINLOG EVENTS", "Wrong offset or I/O error")
}
