//! Ended transactions whose undo is probably not needed soon: it moves to files that many share, and a few words stay in memory.
//!
//! An old snapshot keeps every later transaction from being purged; without this, memory would grow with each of them.

use std::io;
use std::sync::Arc;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use locks::Owner;
use sys::disk::{Disk, File, OpenMode};

use crate::txn_state::TxnState;
use crate::undo_log::{FILE_PREFIX, UndoLog, UndoSpace};

/// Size at which a shared file is closed and another begun.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Name of a file that transactions share.
pub(crate) fn shared_name(number: u64) -> String {
    format!("{FILE_PREFIX}shared-{number}")
}

/// A file with the undo of many transactions.
pub(crate) struct SharedFile {
    pub number: u64,
    pub file: Arc<dyn File>,
    /// Transactions in it that are not settled, and one while it grows.
    users: AtomicUsize,
}

impl SharedFile {
    /// An existing file. Every user calls `enter`.
    pub fn existing(disk: &dyn Disk, number: u64) -> io::Result<SharedFile> {
        let file = disk.open(&shared_name(number), OpenMode::Existing)?;
        Ok(SharedFile { number, file, users: AtomicUsize::new(0) })
    }

    pub fn enter(&self) {
        self.users.fetch_add(1, Ordering::Relaxed);
    }

    /// True when no user is left.
    pub fn leave(&self) -> bool {
        self.users.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// The words of an ended transaction that stay in memory.
pub(crate) struct Filed {
    pub commit: u64,
    pub ended: u64,
    pub purged: u64,
    pub last: u64,
    /// The place of its undo.
    pub file: Arc<SharedFile>,
    pub at: u64,
    pub length: u64,
}

impl Filed {
    /// A temporary state for reading the undo. Changes of it are not kept.
    pub fn core(&self, id: u64, owner: &Arc<Owner>) -> TxnState {
        let undo = UndoLog::shared(id, self.last, self.length, (self.file.clone(), self.at));
        let core = TxnState::new(id, owner.clone(), undo);
        core.commit.store(self.commit, Ordering::Release);
        core.ended.store(self.ended, Ordering::Release);
        core.purged.store(self.purged, Ordering::Release);
        core
    }
}

struct Growing {
    file: Arc<SharedFile>,
    end: u64,
}

/// Writes shared files one after the other.
#[derive(Default)]
pub(crate) struct Filer {
    growing: Mutex<Option<Growing>>,
    /// Bytes in files, as `totals` shows them.
    pub bytes: AtomicU64,
}

impl Filer {
    /// Appends `bytes` and returns where they are. `number` names a new file when one is needed; the second result is a file that
    /// is complete and has no user.
    pub fn append(
        &self,
        space: &UndoSpace,
        bytes: &[u8],
        number: impl FnOnce() -> u64,
    ) -> io::Result<(Arc<SharedFile>, u64, Option<u64>)> {
        let mut growing = self.growing.lock();
        let mut unused = None;
        if growing.as_ref().is_some_and(|growing| growing.end >= FILE_BYTES_MAX)
            && let Some(full) = growing.take()
            && full.file.leave()
        {
            unused = Some(full.file.number);
        }
        let current = match &mut *growing {
            Some(current) => current,
            None => {
                let number = number();
                let file = space.disk.open(&shared_name(number), OpenMode::OrCreate)?;
                file.set_size(0)?;
                let file = SharedFile { number, file, users: AtomicUsize::new(1) };
                growing.insert(Growing { file: Arc::new(file), end: 0 })
            }
        };
        let at = current.end;
        current.file.file.write_at(bytes, at)?;
        current.end += bytes.len() as u64;
        Ok((current.file.clone(), at, unused))
    }
}
