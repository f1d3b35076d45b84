//! The engine: the state that all transactions share, opening, and the contract's methods.

use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bufpool::PoolConfig;
use engine_api::{
    AttachmentReader, BackupSummary, BackupTarget, CancelToken, CommitHandle, DeadlockView, Engine,
    EngineError, EngineResult, EngineStat, IndexId, KeyRange, LockReport, PreparedTransaction,
    RangeEstimate, TableId, TableStats, Transaction,
};
use errors::{Error, ErrorCode};
use sys::disk::Disk;
use sys::sync::{Condvar, Mutex};
use sys::threads::{Thread, spawn};
use txn::{Progress, RecoverConfig, Recovery, recover};
use wal::{DamagePolicy, LogDamage};

use crate::archive::Archiver;
use crate::attachments::{Attachments, kept_segment};
use crate::backup::Backups;
use crate::backup::manifest::MANIFEST;
use crate::config::{ArchiveDisk, EngineConfig, Settings};
use crate::dictionary::{Dictionary, setup};
use crate::error::io_error;
use crate::identity;
use crate::losers::Losers;
use crate::prepared::Prepared;
use crate::row::UndoEntry;
use crate::shared::Shared;
use crate::sorter::FILE_PREFIX;
use crate::space::Shortage;
use crate::transaction::{Txn, commit_handle};

/// The durable engine.
pub struct DurableEngine {
    pub(crate) shared: Arc<Shared>,
    threads: Mutex<Vec<Thread>>,
    /// The thread that changed, or changes, the size of the pool.
    resizer: Mutex<Option<Thread>>,
}

impl DurableEngine {
    /// Opens the files on `disk`, recovering them after a crash, or creates them. `progress` is called during recovery; changes that were not
    /// committed are undone while the engine is already in use.
    ///
    /// # Errors
    /// I/O, damaged files.
    pub fn open(
        disk: Arc<dyn Disk>,
        config: EngineConfig,
        progress: impl Fn(&Recovery) + Send + Sync + 'static,
    ) -> EngineResult<DurableEngine> {
        let pool = PoolConfig {
            page_bytes: config.page_bytes,
            frames: config.pool_bytes / config.page_bytes,
            frames_max: config.pool_bytes_max / config.page_bytes,
            pages_max: config.pages_max,
            doublewrite: config.doublewrite,
            reserve_pages: config.reserve_bytes / config.page_bytes as u64,
        };
        identity::require_key(&*disk).map_err(open_error)?;
        for name in disk.list().map_err(io_error)? {
            // A backup that is opened in place is no longer a backup.
            if name.starts_with(FILE_PREFIX) || name == MANIFEST {
                disk.remove(&name).map_err(io_error)?;
            }
        }
        let identity = identity::read_or_make(&*disk).map_err(io_error)?;
        let block_bytes = config.log.block_bytes;
        let archive = config.archive.as_ref().map(|ArchiveDisk(archive)| {
            Archiver::open(archive.clone(), &disk, &identity, block_bytes).map_err(io_error)
        });
        let archive = archive.transpose()?;
        let keep_log_from = kept_segment(&*disk, &config).map_err(open_error)?;
        let mut progress = Progress::new(progress);
        let recovery = RecoverConfig {
            log: config.log.clone(),
            pool,
            undo_memory_bytes: config.undo_memory_bytes,
            subject_of: UndoEntry::subject,
            redo: config.redo,
            log_damage: match config.open_up_to_log_damage {
                true => DamagePolicy::StopThere,
                false => DamagePolicy::Refuse,
            },
            keep_log_from,
        };
        let opened = recover(&disk, recovery, setup, &mut progress).map_err(open_error)?;
        let shared = Arc::new(Shared {
            dictionary: Dictionary::load(&opened.system.pool, open_tables_bytes(&config))?,
            system: opened.system,
            disk,
            checkpoints: opened.checkpoints,
            checkpoint: Mutex::new(opened.checkpoint),
            backups: Backups::default(),
            identity,
            archive,
            attachments: Attachments::new(opened.kept_log, keep_log_from),
            config,
            stopping: AtomicBool::new(false),
            pause: Mutex::new(()),
            wake: Condvar::new(),
            losers: Losers::new(opened.report, progress),
            prepared: Prepared::default(),
            log_damage: opened.damage,
            settings: Settings::default(),
            brake_micros: AtomicU64::new(0),
            shortage: Shortage::default(),
            abandoned: Mutex::new(Vec::new()),
        });
        if let Some(archive) = &shared.archive {
            archive.attach(&shared.system.log);
        }
        shared.take_losers(opened.losers)?;
        shared.take_prepared(opened.prepared)?;
        shared.system.log.flush_to(shared.system.log.next_ticket() - 1).map_err(io_error)?;
        let threads = match shared.config.background {
            true => crate::background::start(&shared).map_err(io_error)?,
            false => {
                // No snapshot exists, so nothing holds purge back.
                while shared.purge(usize::MAX)? > 0 {}
                Vec::new()
            }
        };
        Ok(DurableEngine { shared, threads: Mutex::new(threads), resizer: Mutex::new(None) })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The work and the progress of recovery.
    pub fn recovery(&self) -> Recovery {
        self.shared.losers.report()
    }

    /// The part of a damaged log that was discarded at the start.
    pub fn log_damage(&self) -> Option<String> {
        self.shared.log_damage.as_ref().map(LogDamage::to_string)
    }

    /// Undoes losers, purges and writes some pages, as the background threads do.
    ///
    /// # Errors
    /// I/O.
    pub fn tick(&self) -> EngineResult<()> {
        self.shared.roll_back_losers()?;
        self.shared.roll_back_abandoned()?;
        self.shared.keep_reserves();
        self.shared.purge(usize::MAX)?;
        self.shared.system.flush_pages(64).map_err(io_error)?;
        self.shared.dictionary.close_some()?;
        self.shared.archive_log();
        Ok(())
    }

    /// Transactions that committed before the call have a smaller position, later ones do not.
    pub fn position(&self) -> u64 {
        self.shared.system.log.next_ticket()
    }

    /// Takes a checkpoint.
    ///
    /// # Errors
    /// I/O.
    pub fn checkpoint(&self) -> EngineResult<()> {
        self.shared.checkpoint().map(drop)
    }

    /// Pages of the space that neither a tree, nor a stored definition, nor the free list holds. Call it only without open transactions.
    ///
    /// # Errors
    /// I/O.
    pub fn lost_pages(&self) -> EngineResult<u64> {
        crate::check::lost_pages(&self.shared)
    }

    /// Deleted rows and marked entries of a table that purge has yet to remove.
    ///
    /// # Errors
    /// I/O.
    pub fn unpurged(&self, table: TableId) -> EngineResult<u64> {
        crate::check::unpurged(&self.shared, &*self.shared.dictionary.get(table)?)
    }
}

impl Drop for DurableEngine {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

impl DurableEngine {
    fn stop_threads(&self) {
        self.shared.stopping.store(true, Ordering::Release);
        self.shared.system.log.stop();
        self.shared.system.pool.wake_service();
        {
            let _pause = self.shared.pause.lock();
            self.shared.wake.notify_all();
        }
        let threads = std::mem::take(&mut *self.threads.lock());
        let resizer = self.resizer.lock().take();
        threads.into_iter().chain(resizer).for_each(Thread::join);
    }

    /// The pool takes the size in the background.
    fn resize_pool(&self, bytes: u64) {
        let mut resizer = self.resizer.lock();
        let pool = &self.shared.system.pool;
        if !pool.wants_size(usize::try_from(bytes).unwrap_or(usize::MAX)) {
            return;
        }
        // The one before has nothing more to do.
        if let Some(before) = resizer.take() {
            before.join();
        }
        let shared = self.shared.clone();
        let resize = move || shared.system.pool.resize(|| shared.stopping.load(Ordering::Acquire)); // pairs with `stop_threads`
        match spawn("resize", resize) {
            Ok(thread) => *resizer = Some(thread),
            // Without a thread the statement waits.
            Err(_) => pool.resize(|| false),
        }
    }
}

/// Memory for open tables that are not in use.
fn open_tables_bytes(config: &EngineConfig) -> usize {
    const POOL_SHARE: usize = 16;
    config.pool_bytes / POOL_SHARE
}

/// The error of a failed start: the finder of damage describes it.
fn open_error(error: std::io::Error) -> EngineError {
    match error.kind() {
        std::io::ErrorKind::InvalidData => {
            EngineError::Other(Error::new(ErrorCode::ERROR_ON_READ, error.to_string()))
        }
        _ => io_error(error),
    }
}

fn exhausted() -> EngineError {
    EngineError::Other(Error::with(ErrorCode::AUTOINC_READ_FAILED, &[]))
}

/// Smallest `offset + k * increment` that is at least `next`.
fn aligned(next: u64, increment: u64, offset: u64) -> Option<u64> {
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    steps.checked_mul(increment)?.checked_add(offset)
}

impl DurableEngine {
    /// Sets the next value and stores a bound above it when the stored one is reached. A crash may skip `STEP` values.
    fn move_auto_increment(
        &self,
        id: TableId,
        change: impl FnOnce(u64) -> EngineResult<(u64, u64)>,
    ) -> EngineResult<u64> {
        const STEP: u64 = 64;
        let table = self.shared.dictionary.get(id)?;
        let mut auto = table.counters.auto_increment.lock();
        let (result, next) = change(auto.next)?;
        auto.next = next;
        if next == 0 || next > auto.stored || auto.stored > next.saturating_add(STEP) {
            let bound = if next == 0 { 0 } else { next.saturating_add(STEP - 1) };
            self.shared.dictionary.store_counter(&self.shared.system.pool, id, bound)?;
            auto.stored = bound;
        }
        Ok(result)
    }
}

impl Engine for DurableEngine {
    fn name(&self) -> &'static str {
        "Squall"
    }

    fn comment(&self) -> &'static str {
        "Supports transactions, row-level locking, and crash recovery"
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn notes_rows(&self) -> bool {
        true
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        Box::new(Txn::new(self.shared.clone()))
    }

    fn has_table(&self, table: TableId) -> bool {
        self.shared.dictionary.has_committed(table)
    }

    fn table_stats(&self, table: TableId) -> EngineResult<TableStats> {
        crate::stats::table_stats(&self.shared, &*self.shared.dictionary.get(table)?)
    }

    fn forget_stats(&self, table: TableId) -> EngineResult<()> {
        *self.shared.dictionary.get(table)?.counters.stats.lock() = None;
        Ok(())
    }

    fn estimate_range(
        &self,
        table: TableId,
        index: IndexId,
        range: &KeyRange,
    ) -> EngineResult<RangeEstimate> {
        let table = self.shared.dictionary.get(table)?;
        crate::stats::estimate_range(&self.shared, &table, index, range)
    }

    fn auto_increment_reserve(
        &self,
        table: TableId,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        let increment = increment.max(1);
        // As the reference: an offset above the increment does not count.
        let offset = if offset == 0 || offset > increment { 1 } else { offset };
        self.move_auto_increment(table, |next| {
            if next == 0 {
                return Err(exhausted());
            }
            let first = aligned(next, increment, offset).ok_or_else(exhausted)?;
            let span = count.max(1).checked_mul(increment).ok_or_else(exhausted)?;
            let last = first.checked_add(span - increment).ok_or_else(exhausted)?;
            Ok((first, last.wrapping_add(1)))
        })
    }

    fn auto_increment_raise(&self, table: TableId, value: u64) -> EngineResult<()> {
        let raise = |next: u64| match next != 0 && next <= value {
            true => Ok((0, value.wrapping_add(1))),
            false => Ok((0, next)),
        };
        self.move_auto_increment(table, raise).map(drop)
    }

    fn auto_increment_set(&self, table: TableId, next: u64) -> EngineResult<()> {
        self.move_auto_increment(table, |_| Ok((0, next.max(1)))).map(drop)
    }

    fn auto_increment_next(&self, table: TableId) -> EngineResult<u64> {
        let table = self.shared.dictionary.get(table)?;
        let next = table.counters.auto_increment.lock().next;
        Ok(if next == 0 { u64::MAX } else { next })
    }

    fn stats(&self) -> Vec<EngineStat> {
        let mut stats = crate::stats::engine_stats(&self.shared, &self.recovery());
        stats.extend(crate::stats::build_stats(&self.shared));
        stats
    }

    fn locks(&self, limit: usize) -> LockReport {
        crate::lock_report::lock_report(&self.shared, limit)
    }

    fn latest_deadlock(&self) -> Option<DeadlockView> {
        crate::lock_report::latest_deadlock(&self.shared)
    }

    fn check_table_counting(
        &self,
        table: TableId,
        cancel: &CancelToken,
    ) -> EngineResult<Vec<String>> {
        // Work that a crash left half done is not damage.
        self.shared.roll_back_losers()?;
        crate::check::check_table(&self.shared, &*self.shared.dictionary.get(table)?, cancel)
    }

    fn backup(
        &self,
        target: &dyn BackupTarget,
        cancel: &CancelToken,
    ) -> EngineResult<BackupSummary> {
        crate::backup::backup(&self.shared, target, cancel)
    }

    fn directory_key(&self) -> Option<Arc<dyn sys::disk::DiskKey>> {
        self.shared.disk.key()
    }

    fn keeps_attachments(&self) -> bool {
        self.shared.config.keeps_attachments
    }

    fn attachments(&self, after: Option<u64>) -> EngineResult<Box<dyn AttachmentReader>> {
        crate::attachment_reader::reader(&self.shared, after)
    }

    fn hold_commits(&self, position: u64) {
        self.shared.system.log.hold_from(position);
    }

    fn durable_position(&self) -> EngineResult<u64> {
        let next = self.position();
        self.shared.system.log.flush_to(next - 1).map_err(io_error)?;
        Ok(next)
    }

    fn prepared(&self) -> Vec<PreparedTransaction> {
        self.shared.list_prepared()
    }

    fn commit_prepared(&self, name: &[u8], attached: &[u8]) -> EngineResult<Option<CommitHandle>> {
        let ticket = self.shared.commit_prepared(name, attached);
        Ok(ticket.map(|ticket| commit_handle(&Arc::new(self.shared.clone()), ticket)))
    }

    fn rollback_prepared(&self, name: &[u8]) -> EngineResult<()> {
        self.shared.rollback_prepared(name)?;
        // Whoever is told so forgets the name: no crash may bring it back.
        self.durable_position().map(drop)
    }

    fn set_option(&self, name: &str, value: u64) {
        match name {
            "recovery_time_target_sec" => self.shared.settings.set_recovery_target(value),
            "log_archive_backlog_max_mb" => {
                if let Some(archive) = &self.shared.archive {
                    archive.set_backlog_max(value << 20);
                }
            }
            "innodb_deadlock_detect" => self.shared.system.locks.set_deadlock_detection(value != 0),
            "innodb_buffer_pool_size" => self.resize_pool(value),
            "commit_delay_us" => self.shared.system.log.set_commit_delay(value),
            _ => {}
        }
    }

    fn option_max(&self, name: &str) -> Option<u64> {
        (name == "innodb_buffer_pool_size").then(|| self.shared.system.pool.bytes_max() as u64)
    }

    fn status(&self) -> Vec<(&'static str, String)> {
        crate::status::status(&self.shared)
    }

    fn shutdown(&self) -> EngineResult<()> {
        self.stop_threads();
        let shared = &self.shared;
        // Commits that no thread waited for become visible too, so that purge reaches them.
        shared.system.log.flush_to(shared.system.log.next_ticket() - 1).map_err(io_error)?;
        while shared.purge(usize::MAX)? > 0 {}
        for table in shared.dictionary.all_open() {
            shared.dictionary.store_auto_increment(&table)?;
        }
        shared.system.log.flush_to(shared.system.log.next_ticket() - 1).map_err(io_error)?;
        while shared.system.flush_pages(usize::MAX).map_err(io_error)? > 0 {}
        shared.checkpoint()?;
        shared.archive_log();
        Ok(())
    }
}
