//! Attachments of commits: a transaction's own, on their way into the log, and the reader that follows the log.
//!
//! The file `attachments` names the first segment of the log that the reader still needs, so that a recovery keeps it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{AttachedCommit, AttachmentReader, EngineResult};
use errors::Error;
use sys::disk::{Disk, OpenMode};
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::sync::{Condvar, Mutex};
use txn::TxnState;
use wal::LogPin;

use crate::config::EngineConfig;
use crate::error::io_error;
use crate::shared::Shared;
use crate::transaction::Txn;

const FILE_NAME: &str = "attachments";
const NEW_FILE_NAME: &str = "attachments-new";
const MAGIC: [u8; 4] = *b"SQAT";
/// Attached bytes that a transaction keeps before it writes them to the log.
const PIECE_BYTES: usize = 256 << 10;

/// The reader's place in the log, and its bed.
#[derive(Default)]
pub(crate) struct Attachments {
    /// Keeps the log for the reader.
    pin: Mutex<Option<LogPin>>,
    /// The segment from which the reader goes on; none if there is none yet.
    segment: Mutex<Option<u64>>,
    has_reader: AtomicBool,
    bed: Arc<Bed>,
}

/// Where the reader waits.
#[derive(Default)]
struct Bed {
    is_asleep: AtomicBool,
    lock: Mutex<()>,
    wake: Condvar,
}

impl Bed {
    fn wake(&self) {
        let _lock = self.lock.lock();
        self.is_asleep.store(false, Ordering::Release);
        self.wake.notify_all();
    }
}

impl Attachments {
    /// For a log that is pinned from `segment` on.
    pub fn new(pin: Option<LogPin>, segment: Option<u64>) -> Attachments {
        Attachments { pin: Mutex::new(pin), segment: Mutex::new(segment), ..Attachments::default() }
    }
}

/// The first segment that the reader needs, as the file says it. Without a reader from now on, the file goes.
pub(crate) fn kept_segment(disk: &dyn Disk, config: &EngineConfig) -> io::Result<Option<u64>> {
    if config.keeps_attachments {
        return read(disk);
    }
    match disk.remove(FILE_NAME) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.and_then(|()| disk.sync_dir()).map(|()| None),
    }
}

fn read(disk: &dyn Disk) -> io::Result<Option<u64>> {
    let file = match disk.open(FILE_NAME, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = [0; 16];
    let count = file.read_at(&mut bytes, 0)?;
    let [m0, m1, m2, m3, c0, c1, c2, c3, number @ ..] = bytes;
    let is_whole = count == bytes.len()
        && [m0, m1, m2, m3] == MAGIC
        && u32::from_le_bytes([c0, c1, c2, c3]) == page::crc(&number);
    match is_whole {
        true => Ok(Some(u64::from_le_bytes(number))),
        false => {
            let text =
                format!("the file {FILE_NAME} is damaged: remove it to give up what it keeps");
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
    }
}

fn write(disk: &dyn Disk, segment: u64) -> io::Result<()> {
    let number = segment.to_le_bytes();
    let crc = page::crc(&number).to_le_bytes();
    let file = disk.open(NEW_FILE_NAME, OpenMode::OrCreate)?;
    file.set_size(0)?;
    file.write_at(&[&MAGIC[..], &crc, &number].concat(), 0)?;
    file.sync()?;
    disk.rename(NEW_FILE_NAME, FILE_NAME)?;
    disk.sync_dir()
}

impl Txn {
    /// See `Transaction::attach`.
    pub(crate) fn attach_bytes(&mut self, bytes: &[u8]) -> EngineResult<()> {
        let piece_max = PIECE_BYTES.min(self.shared.config.log.segment_bytes as usize / 4);
        for part in bytes.chunks(piece_max) {
            self.attached.extend_from_slice(part);
            if self.attached.len() >= piece_max {
                let core = self.core();
                self.log_attached(&core)?;
                self.shared.brake();
            }
        }
        Ok(())
    }

    /// Writes what is attached so far to the log.
    pub(crate) fn log_attached(&mut self, core: &TxnState) -> EngineResult<()> {
        let piece_max = PIECE_BYTES.min(self.shared.config.log.segment_bytes as usize / 4);
        for part in self.attached.chunks(piece_max) {
            self.shared.system.attach(core, part).map_err(io_error)?;
            self.attached_logged += part.len() as u64;
        }
        self.attached.clear();
        Ok(())
    }

    /// See `Transaction::attached`.
    pub(crate) fn attached_bytes(&self) -> u64 {
        self.attached_logged + self.attached.len() as u64
    }

    /// See `Transaction::detach_to`.
    pub(crate) fn detach_bytes_to(&mut self, length: u64) {
        match length.checked_sub(self.attached_logged) {
            Some(kept) => self.attached.truncate(kept as usize),
            None => {
                let core = self.core();
                self.shared.system.detach(&core, length);
                self.attached_logged = length;
                self.attached.clear();
            }
        }
    }
}

impl Shared {
    /// A commit with an attachment has the ticket `ticket`.
    pub(crate) fn wake_attachment_reader(&self, ticket: u64) {
        let bed = &self.attachments.bed;
        if bed.is_asleep.load(Ordering::Acquire) && bed.is_asleep.swap(false, Ordering::AcqRel) {
            let bed = bed.clone();
            self.system.log.notify(ticket, Box::new(move || bed.wake()));
        }
    }
}

/// See `engine_api::AttachmentReader`.
struct Reader {
    shared: Arc<Shared>,
    reader: txn::AttachmentReader,
    /// The commit that was returned last.
    commit: Option<txn::AttachedCommit>,
    confirmed: u64,
    has_gap: bool,
}

/// See `Engine::attachments`.
pub(crate) fn reader(
    shared: &Arc<Shared>,
    after: Option<u64>,
) -> EngineResult<Box<dyn AttachmentReader>> {
    let own = &shared.attachments;
    if !shared.config.keeps_attachments || own.has_reader.swap(true, Ordering::AcqRel) {
        return Err(Error::internal("the log is not kept for this reader of attachments").into());
    }
    let log = &shared.system.log;
    let open = |start: (u64, u64)| {
        let (log, disk) = (log.clone(), shared.disk.clone());
        txn::AttachmentReader::new(log, disk, shared.config.log.block_bytes, start)
    };
    let kept = own.segment.lock().zip(after).map(open);
    let (reader, has_gap) = match kept {
        Some(Ok(reader)) => (reader, false),
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(io_error(error)),
        _ => {
            let next = log.next_ticket();
            log.flush_to(next - 1).map_err(io_error)?;
            (open((log.durable_end().segment, next - 1)).map_err(io_error)?, after.is_some())
        }
    };
    let (shared, commit) = (shared.clone(), None);
    let mut reader = Reader { shared, reader, commit, confirmed: 0, has_gap };
    reader.confirm()?;
    Ok(Box::new(reader))
}

impl AttachmentReader for Reader {
    fn next(&mut self) -> EngineResult<Option<AttachedCommit>> {
        self.commit = self.reader.next().map_err(io_error)?;
        let commit = self.commit.as_ref();
        Ok(commit.map(|commit| AttachedCommit {
            position: commit.ticket,
            micros: commit.micros,
            length: commit.length,
        }))
    }

    fn read(&mut self, out: &mut Vec<u8>) -> EngineResult<bool> {
        match &mut self.commit {
            Some(commit) => self.reader.read(commit, out).map_err(io_error),
            None => Ok(false),
        }
    }

    fn passed(&self) -> u64 {
        self.reader.passed()
    }

    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn confirm(&mut self) -> EngineResult<()> {
        let segment = self.reader.needed_segment();
        if segment != self.confirmed {
            write(&*self.shared.disk, segment).map_err(io_error)?;
            let mut pin = self.shared.attachments.pin.lock();
            match &*pin {
                Some(pin) => pin.advance(segment),
                None => *pin = Some(self.shared.system.log.pin(segment)),
            }
            *self.shared.attachments.segment.lock() = Some(segment);
            self.confirmed = segment;
        }
        Ok(())
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        let bed = self.shared.attachments.bed.clone();
        Box::new(move || bed.wake())
    }

    fn wait(&mut self, at_most: Duration) {
        let bed = &self.shared.attachments.bed;
        let mut lock = bed.lock.lock();
        bed.is_asleep.store(true, Ordering::Release);
        lock = bed.wake.wait_for(lock, at_most);
        bed.is_asleep.store(false, Ordering::Release);
        drop(lock);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.attachments.has_reader.store(false, Ordering::Release);
    }
}
