//! From files to a running system: torn pages, redo, who was active, a fresh log, a first checkpoint.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use btree::{RedoBody, redo};
use bufpool::{Pool, PoolConfig};
use stdx::bytes::Reader;
use sys::disk::{Disk, OpenMode};
use wal::{Checkpoint, CheckpointFile, Log, LogConfig, LogPosition, Record, ReplayEnd};

use crate::checkpoint::{Straddler, read_straddle, remove_straddles_except, take_checkpoint};
use crate::core::{Core, UndoLog};
use crate::system::{KIND_ABORTED, KIND_CHANGE, KIND_COMMIT, KIND_PURGED, KIND_UNDONE, TxnSystem};

/// What recovery did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Whether the disk was empty.
    pub is_new: bool,
    /// Pages put back from the doublewrite file.
    pub torn_pages: usize,
    /// Log records replayed.
    pub records: u64,
    /// Log bytes read.
    pub log_bytes: u64,
    /// Transactions to roll back.
    pub losers: usize,
}

/// A running system.
pub struct Recovered {
    /// Transactions, pages, log.
    pub system: Arc<TxnSystem>,
    /// For later checkpoints.
    pub checkpoints: CheckpointFile,
    /// Number of the last checkpoint.
    pub checkpoint: u64,
    /// Transactions that were active and must be rolled back, newest first.
    pub losers: Vec<Arc<Core>>,
    /// What was done.
    pub report: Recovery,
}

/// Opens the files on `disk`, or sets them up. `setup` fills a new space. `progress` hears of records replayed so far.
///
/// # Errors
/// I/O; `InvalidData` for damage that cannot be repaired.
pub fn recover(
    disk: &Arc<dyn Disk>,
    log_config: LogConfig,
    pool_config: PoolConfig,
    setup: impl FnOnce(&Pool) -> io::Result<()>,
    progress: &dyn Fn(&Recovery),
) -> io::Result<Recovered> {
    let (checkpoints, newest) = CheckpointFile::open(&**disk)?;
    let file = disk.open("space", OpenMode::OrCreate)?;
    let doublewrite = disk.open("doublewrite", OpenMode::OrCreate)?;
    disk.sync_dir()?;
    let Some(checkpoint) = newest else {
        file.set_size(0)?;
        let pool = Arc::new(Pool::new(pool_config, file, doublewrite)?);
        return create(disk, log_config, pool, checkpoints, setup);
    };
    if checkpoint.page_bytes as usize != pool_config.page_bytes {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the files have another page size",
        ));
    }
    let mut report = Recovery {
        torn_pages: Pool::restore_torn(&*file, &*doublewrite, pool_config.page_bytes)?,
        ..Recovery::default()
    };
    let pool = Arc::new(Pool::new(pool_config, file, doublewrite)?);
    let mut found = Found::from(read_straddle(&**disk, checkpoint.number)?);
    let block = log_config.block_bytes;
    let end = wal::replay(&**disk, checkpoint.position, checkpoint.redo_from, block, |record| {
        report.records += 1;
        if report.records.is_multiple_of(100_000) {
            progress(&report);
        }
        let body = RedoBody::parse(record.body).ok_or_else(damaged)?;
        redo(&pool, record.ticket, &body)?;
        found.apply(&record, body.extra).ok_or_else(damaged)
    })?;
    report.log_bytes = end.read_bytes;
    restart(disk, log_config, pool, checkpoints, checkpoint, end, found, report)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged log record")
}

fn create(
    disk: &Arc<dyn Disk>,
    log_config: LogConfig,
    pool: Arc<Pool>,
    checkpoints: CheckpointFile,
    setup: impl FnOnce(&Pool) -> io::Result<()>,
) -> io::Result<Recovered> {
    // Whatever a first start that failed left behind is of no use.
    wal::remove_segments_before(&**disk, u64::MAX)?;
    let start = LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };
    let log = Arc::new(Log::start(disk.clone(), log_config, start, 1)?);
    pool.connect(log.clone());
    setup(&pool)?;
    log.flush_to(log.next_ticket() - 1)?;
    let system = Arc::new(TxnSystem::new(pool, log));
    let checkpoint = take_checkpoint(&system, &**disk, &checkpoints, 0)?;
    let report = Recovery { is_new: true, ..Recovery::default() };
    Ok(Recovered { system, checkpoints, checkpoint, losers: Vec::new(), report })
}

#[allow(clippy::too_many_arguments)]
fn restart(
    disk: &Arc<dyn Disk>,
    log_config: LogConfig,
    pool: Arc<Pool>,
    checkpoints: CheckpointFile,
    checkpoint: Checkpoint,
    end: ReplayEnd,
    found: Found,
    mut report: Recovery,
) -> io::Result<Recovered> {
    let next_ticket = end.next_ticket.max(checkpoint.next_ticket);
    let next = LogPosition { low: next_ticket, high: next_ticket, ..end.next };
    // Everything replayed goes to its place before the old log is given up: recovery can be repeated at any moment until then.
    while pool.flush(usize::MAX, u64::MAX)? > 0 {}
    let log = Arc::new(Log::start(disk.clone(), log_config, next, next_ticket)?);
    pool.connect(log.clone());
    let system = Arc::new(TxnSystem::new(pool, log));
    let mut losers = Vec::new();
    for (id, straddler) in found.cores {
        let core = Arc::new(Core::new(id, system.locks.new_owner()));
        *core.undo.lock() = straddler.undo;
        core.commit.store(straddler.commit, Ordering::Release);
        core.purged.store(straddler.purged, Ordering::Release);
        if core.is_active() {
            losers.push(core.clone());
        }
        system.adopt(core);
    }
    losers.sort_by_key(|core| std::cmp::Reverse(core.id));
    report.losers = losers.len();
    let number = take_checkpoint(&system, &**disk, &checkpoints, checkpoint.number)?;
    wal::remove_segments_before(&**disk, next.segment)?;
    remove_straddles_except(&**disk, number)?;
    Ok(Recovered { system, checkpoints, checkpoint: number, losers, report })
}

/// Transactions that are not settled, as far as the log was read.
struct Found {
    cores: HashMap<u64, Straddler>,
}

impl Found {
    fn from(straddlers: Vec<Straddler>) -> Found {
        Found { cores: straddlers.into_iter().map(|core| (core.id, core)).collect() }
    }

    /// A transaction that is neither in the straddle file nor begins in the log read here was settled before the checkpoint: the
    /// records of it that remain need nothing.
    fn core(&mut self, id: u64) -> Option<&mut Straddler> {
        self.cores.get_mut(&id)
    }

    fn apply(&mut self, record: &Record<'_>, extra: &[u8]) -> Option<()> {
        const FIRST_POINTER: u64 = 1;
        let mut reader = Reader::new(extra);
        match record.kind {
            KIND_CHANGE => {
                let (id, pointer, previous) = (reader.u64()?, reader.u64()?, reader.u64()?);
                if pointer == FIRST_POINTER {
                    let new = || Straddler { id, commit: 0, purged: 0, undo: UndoLog::default() };
                    self.cores.entry(id).or_insert_with(new);
                }
                if let Some(core) = self.core(id) {
                    core.undo.restore(pointer, previous, reader.rest());
                }
            }
            KIND_UNDONE => {
                let (id, left) = (reader.u64()?, reader.u64()?);
                if let Some(core) = self.core(id) {
                    core.undo.last = left;
                }
            }
            KIND_COMMIT => {
                if let Some(core) = self.core(reader.u64()?) {
                    core.commit = record.ticket;
                }
            }
            KIND_ABORTED => {
                self.cores.remove(&reader.u64()?);
            }
            KIND_PURGED => {
                let (id, done) = (reader.u64()?, reader.u64()?);
                if let Some(core) = self.core(id) {
                    core.purged = core.purged.max(done);
                }
            }
            _ => {}
        }
        Some(())
    }
}
