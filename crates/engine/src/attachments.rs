//! Attachments of commits on their way into the log, and what their reader needs: its place in the log, and where it waits.
//!
//! The file `attachments` names the first segment of the log that the reader still needs, so that a recovery keeps it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use engine_api::EngineResult;
use sys::disk::{Disk, OpenMode};
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::sync::{Condvar, Mutex};
use txn::{TxnState, TxnSystem};
use wal::{Log, LogConfig, LogPin};

use crate::config::EngineConfig;
use crate::error::io_error;

const FILE_NAME: &str = "attachments";
const NEW_FILE_NAME: &str = "attachments-new";
const MAGIC: [u8; 4] = *b"SQAT";
/// Attached bytes that a transaction keeps before it writes them to the log.
const PIECE_BYTES: usize = 256 << 10;

/// The reader's place in the log, and its bed.
#[derive(Default)]
pub(crate) struct Attachments {
    /// Keeps the log for the reader.
    pub pin: Mutex<Option<LogPin>>,
    /// The segment from which the reader goes on; none if there is none yet.
    pub segment: Mutex<Option<u64>>,
    pub has_reader: AtomicBool,
    pub bed: Arc<Bed>,
}

/// Where the reader waits.
#[derive(Default)]
pub(crate) struct Bed {
    is_asleep: AtomicBool,
    /// Somebody wakes the reader, which has not seen it yet.
    is_called: Mutex<bool>,
    wake: Condvar,
}

impl Bed {
    pub fn wake(&self) {
        let mut is_called = self.is_called.lock();
        *is_called = true;
        // Pairs with the swap in `Attachments::committed`.
        self.is_asleep.store(false, Ordering::Release);
        self.wake.notify_all();
    }

    /// Waits until woken, or for so long.
    pub fn wait(&self, at_most: Duration) {
        // Pairs with the swap in `Attachments::committed`.
        self.is_asleep.store(true, Ordering::Release);
        self.pause(at_most);
        // Pairs with the swap in `Attachments::committed`.
        self.is_asleep.store(false, Ordering::Release);
    }

    /// The same, and commits do not wake it.
    pub fn pause(&self, at_most: Duration) {
        let mut is_called = self.is_called.lock();
        if !*is_called {
            is_called = self.wake.wait_for(is_called, at_most);
        }
        *is_called = false;
    }
}

impl Attachments {
    /// For a log that is pinned from `segment` on.
    pub fn new(pin: Option<LogPin>, segment: Option<u64>) -> Attachments {
        Attachments { pin: Mutex::new(pin), segment: Mutex::new(segment), ..Attachments::default() }
    }
}

impl Attachments {
    /// A commit with an attachment has the ticket `ticket`.
    pub fn committed(&self, log: &Log, ticket: u64) {
        // Pairs with the stores of `Bed`.
        let bed = &self.bed;
        if bed.is_asleep.load(Ordering::Acquire) && bed.is_asleep.swap(false, Ordering::AcqRel) {
            let bed = bed.clone();
            log.notify_durable(ticket, Box::new(move || bed.wake()));
        }
    }
}

/// Attached bytes in a record, which is smaller than a segment.
fn piece_max(config: &LogConfig) -> usize {
    PIECE_BYTES.min(config.segment_bytes as usize / 4)
}

/// What a transaction attaches to its commit.
#[derive(Default)]
pub(crate) struct Attaching {
    /// Not yet in the log.
    bytes: Vec<u8>,
    /// Bytes before them that are.
    logged: u64,
}

impl Attaching {
    pub fn len(&self) -> u64 {
        self.logged + self.bytes.len() as u64
    }

    /// What is not in the log yet.
    pub fn rest(&self) -> &[u8] {
        debug_assert!(
            self.bytes.len() <= 2 * PIECE_BYTES || self.logged == 0,
            "most of it is in the log"
        );
        &self.bytes
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.logged = 0;
    }

    /// Adds bytes. True when so many are not in the log that `log` should be called.
    pub fn push(&mut self, bytes: &[u8], config: &LogConfig) -> bool {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() >= piece_max(config)
    }

    /// Writes to the log what is not there yet. Call without latches.
    pub fn log(
        &mut self,
        system: &TxnSystem,
        core: &TxnState,
        config: &LogConfig,
    ) -> EngineResult<()> {
        for part in self.bytes.chunks(piece_max(config)) {
            system.attach(core, part).map_err(io_error)?;
            self.logged += part.len() as u64;
        }
        self.bytes.clear();
        Ok(())
    }

    /// Keeps only the first `length` bytes. True when the log has more, so that it must be told.
    pub fn truncate(&mut self, length: u64) -> bool {
        match length.checked_sub(self.logged) {
            Some(kept) => {
                self.bytes.truncate(kept as usize);
                false
            }
            None => {
                debug_assert!(length < self.logged, "the log has more than stays");
                self.logged = length;
                self.bytes.clear();
                true
            }
        }
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

pub(crate) fn read(disk: &dyn Disk) -> io::Result<Option<u64>> {
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

/// Writes the file anew.
pub(crate) fn write(disk: &dyn Disk, segment: u64) -> io::Result<()> {
    let number = segment.to_le_bytes();
    let crc = page::crc(&number).to_le_bytes();
    let file = disk.open(NEW_FILE_NAME, OpenMode::OrCreate)?;
    file.set_size(0)?;
    file.write_at(&[&MAGIC[..], &crc, &number].concat(), 0)?;
    file.sync()?;
    disk.rename(NEW_FILE_NAME, FILE_NAME)?;
    disk.sync_dir()
}
