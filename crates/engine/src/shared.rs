//! The state that all transactions and threads of an engine share.

use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine_api::EngineResult;
use sys::blocking::blocking;
use sys::disk::Disk;
use sys::sync::{Condvar, Mutex};
use txn::{TxnState, TxnSystem, take_checkpoint};
use wal::{Checkpoint, CheckpointFile, LogDamage};

use crate::archive::Archiver;
use crate::attachments::Attachments;
use crate::backup::Backups;
use crate::config::{EngineConfig, Settings};
use crate::dictionary::Dictionary;
use crate::error::io_error;
use crate::losers::Losers;
use crate::prepared::Prepared;
use crate::side_log::SideLog;
use crate::sorter::{FILE_PREFIX, Sorter};
use crate::space::Shortage;

/// The state that transactions share.
pub(crate) struct Shared {
    pub system: Arc<TxnSystem>,
    pub dictionary: Dictionary,
    pub disk: Arc<dyn Disk>,
    pub checkpoints: CheckpointFile,
    pub checkpoint: Mutex<Checkpoint>,
    pub backups: Backups,
    /// The identity of the data directory.
    pub identity: String,
    pub archive: Option<Archiver>,
    pub attachments: Attachments,
    pub config: EngineConfig,
    pub stopping: AtomicBool,
    pub pause: Mutex<()>,
    pub wake: Condvar,
    pub losers: Losers,
    pub prepared: Prepared,
    pub log_damage: Option<LogDamage>,
    pub settings: Settings,
    pub shortage: Shortage,
    /// Transactions whose rollback failed: it is tried again.
    pub abandoned: Mutex<Vec<Arc<TxnState>>>,
    /// Microseconds that a change waits because the log outgrew the recovery target.
    pub brake_micros: AtomicU64,
}

/// Ended transactions of one lane above which the threads that fill it purge it themselves.
const PURGE_BACKLOG_MAX: usize = 512;

impl Shared {
    /// Back-pressure: when purge falls behind, committers help.
    pub(crate) fn after_commit(&self) {
        self.brake();
        if self.system.purge_is_behind(PURGE_BACKLOG_MAX) {
            // A failed transaction stays queued for the background threads.
            let _ = self.purge_own(64);
        }
    }

    /// Returns a sorter for the entries of a new index; `id` is its tree's.
    pub(crate) fn sorter(&self, id: u64) -> Sorter {
        /// Enough for runs that merge in one pass.
        const MEMORY_BYTES_MAX: usize = 32 << 20;
        Sorter::new(
            self.disk.clone(),
            id.to_string(),
            MEMORY_BYTES_MAX.min(self.config.pool_bytes / 2),
        )
    }

    /// Brings the log's archive up to date. Failures are counted and tried again.
    pub(crate) fn archive_log(&self) {
        if let Some(archive) = &self.archive {
            archive.round(&self.system.log, &self.disk, &self.config.log);
        }
    }

    pub(crate) fn side_log(&self, id: u64) -> SideLog {
        SideLog::new(self.disk.clone(), format!("{FILE_PREFIX}{id}-changes"))
    }

    /// Waits a little when the log is larger than a restart may replay (E11). Called without latches.
    #[inline]
    pub(crate) fn brake(&self) {
        let micros = self.brake_micros.load(Ordering::Relaxed);
        if micros > 0 {
            blocking(|| sys::threads::sleep(std::time::Duration::from_micros(micros)));
        }
    }

    /// Takes a checkpoint now. Redo of a crash from here on starts no later.
    pub(crate) fn checkpoint(&self) -> EngineResult<Checkpoint> {
        let mut last = self.checkpoint.lock();
        let taken = take_checkpoint(&self.system, &*self.disk, &self.checkpoints, last.number);
        *last = taken.map_err(io_error)?;
        Ok(*last)
    }
}
