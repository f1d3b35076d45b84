//! From files to a running system: torn pages, redo, the active transactions, resuming the log, a first checkpoint.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use sys::sync::atomic::Ordering;

use bufpool::{Pool, PoolConfig};
use stdx::bytes::Reader;
use sys::clock::{Clock as _, RealClock};
use sys::disk::{Disk, OpenMode};
use wal::{
    Checkpoint, CheckpointFile, DamagePolicy, Log, LogConfig, LogDamage, LogPin, LogPosition,
    Record, ReplayEnd,
};

use crate::checkpoint::{UnsettledTxn, read_unsettled, remove_unsettled_except, take_checkpoint};
use crate::redo::{RedoCrew, replay};
use crate::system::{
    KIND_ABORTED, KIND_CHANGE, KIND_COMMIT, KIND_PREPARED, KIND_PURGED, KIND_SETTLED, KIND_UNDONE,
    NO_PAGES, TxnSystem,
};
use crate::txn_state::TxnState;
use crate::undo_log::{FILE_PREFIX, UndoLog, UndoSpace};

/// The figures of a recovery.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Whether the disk was empty.
    pub is_new: bool,
    /// Pages restored from the doublewrite file.
    pub torn_pages: usize,
    /// Log records replayed.
    pub records: u64,
    /// Log bytes read.
    pub log_bytes: u64,
    /// Transactions to roll back.
    pub losers: usize,
    /// Bytes of their undo, and how many of them are undone.
    pub undo_total: u64,
    /// See `undo_total`.
    pub undo_done: u64,
    /// The current phase.
    pub phase: RecoveryPhase,
    /// Of the whole, 0 to 100; it never goes back.
    pub percent: u8,
    /// Bytes of log to read at most.
    pub log_bytes_total: u64,
    /// Pages brought up to date, each counted once for every stretch of the log that changes it.
    pub pages_done: u64,
    /// The same for the whole log, extrapolated until it is read.
    pub pages_total: u64,
    /// Bytes of log read and replayed in a second; 0 when there was too little to measure.
    pub redo_rate: u64,
    /// Transactions rolled back.
    pub losers_done: usize,
    /// Time since the start.
    pub elapsed: Duration,
}

/// Steps of recovery in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecoveryPhase {
    /// Reading the log and replaying page changes.
    #[default]
    Redo,
    /// Examining uncommitted transactions.
    Analysis,
    /// Undoing it. The engine is open.
    Rollback,
    /// Nothing is left.
    Done,
}

impl RecoveryPhase {
    /// As shown to users.
    pub fn as_str(self) -> &'static str {
        match self {
            RecoveryPhase::Redo => "redo",
            RecoveryPhase::Analysis => "analysis",
            RecoveryPhase::Rollback => "rollback",
            RecoveryPhase::Done => "done",
        }
    }
}

impl Recovery {
    /// Estimated seconds until the end at the present rate; `None` before an estimate is possible.
    pub fn eta_seconds(&self) -> Option<u64> {
        match self.percent {
            0 => None,
            percent => {
                let left = u128::from(100 - percent.min(100));
                Some((self.elapsed.as_millis() * left / u128::from(percent) / 1000) as u64)
            }
        }
    }
}

/// Reports the progress of recovery to the listener, at a limited rate.
pub struct Progress {
    listener: Box<dyn Fn(&Recovery) + Send + Sync>,
    clock: RealClock,
    started: Duration,
    told: Option<(Duration, RecoveryPhase)>,
}

impl Progress {
    /// For a recovery that starts now. The listener asks nothing of the engine.
    pub fn new(listener: impl Fn(&Recovery) + Send + Sync + 'static) -> Progress {
        let clock = RealClock::new();
        Progress { listener: Box::new(listener), started: clock.monotonic(), clock, told: None }
    }

    /// Enters or continues a phase of which `done` of `total` is done.
    pub fn tell(&mut self, report: &mut Recovery, phase: RecoveryPhase, done: u64, total: u64) {
        const EVERY: Duration = Duration::from_millis(50);
        sys::probes::recovery(phase as u8, done, total);
        // Shares of the whole: reading and replaying takes most of the time.
        let (from, to) = match phase {
            RecoveryPhase::Redo => (0, 80),
            RecoveryPhase::Analysis => (80, 85),
            RecoveryPhase::Rollback => (85, 100),
            RecoveryPhase::Done => (100, 100),
        };
        let share = (done.min(total) * (to - from)).checked_div(total).unwrap_or(0);
        if report.phase == RecoveryPhase::Done {
            return;
        }
        let now = self.clock.monotonic();
        report.phase = phase;
        report.percent = report.percent.max((from + share) as u8);
        report.elapsed = now.saturating_sub(self.started);
        let is_news = self.told.is_none_or(|(at, told)| told != phase || now >= at + EVERY);
        if is_news {
            self.told = Some((now, phase));
            (self.listener)(report);
        }
    }
}

/// A running system.
pub struct Recovered {
    /// Transactions, pages, log.
    pub system: Arc<TxnSystem>,
    /// For later checkpoints.
    pub checkpoints: CheckpointFile,
    /// The last checkpoint.
    pub checkpoint: Checkpoint,
    /// Transactions that were active and must be rolled back, newest first.
    pub losers: Vec<Arc<TxnState>>,
    /// Transactions that are prepared, in no order.
    pub prepared: Vec<Arc<TxnState>>,
    /// The figures.
    pub report: Recovery,
    /// The part of the log that was discarded.
    pub damage: Option<LogDamage>,
    /// Keeps segments of the log, as was asked for.
    pub kept_log: Option<LogPin>,
}

/// The settings of recovery.
pub struct RecoverConfig {
    /// The log.
    pub log: LogConfig,
    /// The pool.
    pub pool: PoolConfig,
    /// Undo that one transaction keeps in memory.
    pub undo_memory_bytes: usize,
    /// The subject of an undo entry, a number; 0 for none (X16).
    pub subject_of: fn(&[u8]) -> u64,
    /// The workers that replay.
    pub redo: RedoCrew,
    /// Whether to open a log that cannot be read to its end.
    pub log_damage: DamagePolicy,
    /// Segments of the log from this number on are kept for a reader, until it moves the pin.
    pub keep_log_from: Option<u64>,
}

/// Opens the files on `disk`, or sets them up. `setup` fills a new space. `progress` hears of the log replayed so far.
///
/// # Errors
/// I/O; `InvalidData` for damage that cannot be repaired.
pub fn recover(
    disk: &Arc<dyn Disk>,
    config: RecoverConfig,
    setup: impl FnOnce(&Pool) -> io::Result<()>,
    progress: &mut Progress,
) -> io::Result<Recovered> {
    let RecoverConfig { log: log_config, pool: pool_config, redo, log_damage, .. } = config;
    let (memory_bytes, subject_of) = (config.undo_memory_bytes, config.subject_of);
    let keep_log_from = config.keep_log_from;
    let space = UndoSpace { disk: disk.clone(), memory_bytes, subject_of };
    let (checkpoints, newest) = CheckpointFile::open(&**disk)?;
    let file = disk.open_pages("space", OpenMode::OrCreate)?;
    let doublewrite = disk.open_log("doublewrite", OpenMode::OrCreate)?;
    disk.sync_dir()?;
    let Some(checkpoint) = newest else {
        file.set_size(0)?;
        let pool = Arc::new(Pool::new(pool_config, file, doublewrite)?);
        return create(space, (log_config, keep_log_from), pool, checkpoints, setup);
    };
    if checkpoint.page_bytes as usize != pool_config.page_bytes {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the files have another page size",
        ));
    }
    let mut report = Recovery {
        torn_pages: Pool::restore_torn(&*file, &*doublewrite, pool_config.page_bytes)?,
        log_bytes_total: wal::replay_bytes(&**disk, checkpoint.position)?,
        ..Recovery::default()
    };
    progress.tell(&mut report, RecoveryPhase::Redo, 0, 1);
    if !pool_config.doublewrite {
        // A batch of an earlier start would be older than the pages that it is about.
        file.sync()?;
        doublewrite.set_size(0)?;
        doublewrite.sync()?;
    }
    let pool = Arc::new(Pool::new(pool_config, file, doublewrite)?);
    let mut found = Found::new(read_unsettled(&space, checkpoint.number)?, space);
    let started = progress.clock.monotonic();
    let place = (&checkpoint, &log_config);
    let telling = (&mut report, &mut *progress);
    let end = replay(&**disk, &pool, place, redo, &mut found, telling)?;
    if let (Some(damage), DamagePolicy::Refuse) = (&end.damage, log_damage) {
        let message = format!(
            "{damage}. Commits behind it would be lost. Restore a backup; or copy the files and start once with \
             --open-up-to-log-damage, which takes what lies before it"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    report.log_bytes = end.read_bytes;
    let took = progress.clock.monotonic().saturating_sub(started);
    report.redo_rate = match report.log_bytes >= RATE_BYTES_MIN {
        true => (report.log_bytes as f64 / took.as_secs_f64().max(1e-6)) as u64,
        false => checkpoint.redo_rate,
    };
    restart((log_config, keep_log_from), pool, checkpoints, &checkpoint, end, found, report)
}

/// A replay of less log says little of how fast a longer one would be.
const RATE_BYTES_MIN: u64 = 32 << 20;

pub(crate) fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "damaged log record")
}

fn create(
    space: UndoSpace,
    (log_config, keep_log_from): (LogConfig, Option<u64>),
    pool: Arc<Pool>,
    checkpoints: CheckpointFile,
    setup: impl FnOnce(&Pool) -> io::Result<()>,
) -> io::Result<Recovered> {
    let disk = space.disk.clone();
    // Files left behind by a failed first start are useless.
    wal::remove_segments_except(&*disk, &log_config, &[])?;
    let start = LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };
    let log = Arc::new(Log::start(disk.clone(), log_config, start, 1)?);
    let kept_log = keep_log_from.map(|segment| log.pin(segment));
    pool.connect(log.clone());
    setup(&pool)?;
    pool.reserve_at_start()?;
    log.flush_to(log.next_ticket() - 1)?;
    let system = Arc::new(TxnSystem::new(pool, log, space));
    // Two: from here on one of the blocks is always whole, and a file without a whole block is damaged.
    let first = take_checkpoint(&system, &*disk, &checkpoints, 0)?;
    let checkpoint = take_checkpoint(&system, &*disk, &checkpoints, first.number)?;
    let report = Recovery { is_new: true, ..Recovery::default() };
    let (losers, prepared) = (Vec::new(), Vec::new());
    let damage = None;
    Ok(Recovered { system, checkpoints, checkpoint, losers, prepared, report, damage, kept_log })
}

/// Resumes the log after the replayed part (W10): changed pages stay in memory, and the checkpoint still names the old part of the
/// log until they are written. Recovery can be repeated at any time.
fn restart(
    (log_config, keep_log_from): (LogConfig, Option<u64>),
    pool: Arc<Pool>,
    checkpoints: CheckpointFile,
    checkpoint: &Checkpoint,
    mut end: ReplayEnd,
    found: Found,
    mut report: Recovery,
) -> io::Result<Recovered> {
    let space = found.space.clone();
    let disk = space.disk.clone();
    let next_ticket = end.next_ticket.max(checkpoint.next_ticket);
    if let Some(from) = keep_log_from {
        // A reader is behind the checkpoint.
        let older = wal::positions_before(&*disk, from, checkpoint.position.segment)?;
        end.segments.splice(0..0, older);
    }
    // One that a crash left behind is the reserve of the first checkpoint of this run.
    remove_unsettled_except(&*disk, checkpoint.number)?;
    wal::remove_segments_except(&*disk, &log_config, &end.segments)?;
    let log = Arc::new(Log::resume(disk.clone(), log_config, &end, next_ticket)?);
    let kept_log = keep_log_from.map(|segment| log.pin(segment));
    if end.damage.is_some() {
        // The new run must be found: after the old run's end a replay meets the damage again.
        let first = log.append(KIND_SETTLED, &[&NO_PAGES], |_| {});
        log.flush_to(first)?;
    }
    pool.connect(log.clone());
    let (pages, free) = btree::pages_in_use(&pool)?;
    pool.note_pages(pages, free);
    if let Err(error) = pool.reserve_at_start() {
        let text = format!("data pages have no reserve: {error}");
        sys::process::warn(&text);
    }
    let system = Arc::new(TxnSystem::new(pool, log, space));
    system.set_redo_rate(report.redo_rate);
    let (mut losers, mut prepared, mut kept_files) = (Vec::new(), Vec::new(), Vec::new());
    for (id, unsettled) in found.cores {
        if let Some((shared, _)) = &unsettled.undo.shared {
            shared.enter();
        }
        kept_files.extend(unsettled.undo.file_name());
        let core = Arc::new(TxnState::new(id, system.locks.new_owner(), unsettled.undo));
        core.commit.store(unsettled.commit, Ordering::Release);
        core.purged.store(unsettled.purged, Ordering::Release);
        if core.is_active() {
            let is_prepared = unsettled.name.is_some();
            *core.name.lock() = unsettled.name;
            if is_prepared { &mut prepared } else { &mut losers }.push(core.clone());
        }
        system.adopt(core);
    }
    losers.sort_by_key(|core| std::cmp::Reverse(core.id));
    report.losers = losers.len();
    let taken = take_checkpoint(&system, &*disk, &checkpoints, checkpoint.number)?;
    remove_unsettled_except(&*disk, taken.number)?;
    for name in disk.list()? {
        if name.starts_with(FILE_PREFIX) && !kept_files.contains(&name) {
            disk.remove(&name)?;
        }
    }
    let damage = end.damage;
    let checkpoint = taken;
    Ok(Recovered { system, checkpoints, checkpoint, losers, prepared, report, damage, kept_log })
}

/// Transaction ids are numbers of our own; they only need spreading.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = stdx::hash_bytes(self.0, bytes);
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = stdx::mix(id);
    }
}

/// Transactions that are not settled, as far as the log was read (X13).
pub(crate) struct Found {
    space: UndoSpace,
    cores: HashMap<u64, UnsettledTxn, BuildHasherDefault<IdHasher>>,
    /// Memory of settled transactions, for reuse by new ones.
    spare: Vec<Vec<u8>>,
}

/// Settled transactions that keep their memory for reuse.
const SPARE_MAX: usize = 16;

impl Found {
    fn new(unsettled: Vec<UnsettledTxn>, space: UndoSpace) -> Found {
        let cores = unsettled.into_iter().map(|core| (core.id, core)).collect();
        Found { space, cores, spare: Vec::new() }
    }

    fn remove(&mut self, id: u64) {
        let Some(core) = self.cores.remove(&id) else { return };
        if self.spare.len() < SPARE_MAX && core.undo.bytes.capacity() > 0 {
            let mut bytes = core.undo.bytes;
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// A transaction that is neither in the file of unsettled transactions nor begins in the log read here was settled before the checkpoint: the
    /// its remaining records need no work.
    fn core(&mut self, id: u64) -> Option<&mut UnsettledTxn> {
        self.cores.get_mut(&id)
    }

    pub(crate) fn apply(&mut self, record: &Record<'_>, extra: &[u8]) -> Option<()> {
        const FIRST_POINTER: u64 = 1;
        let mut reader = Reader::new(extra);
        match record.kind {
            KIND_CHANGE => {
                let (id, pointer, previous) = (reader.u64()?, reader.u64()?, reader.u64()?);
                if pointer == FIRST_POINTER {
                    let new = || {
                        let mut undo = UndoLog::new(id);
                        undo.bytes = self.spare.pop().unwrap_or_default();
                        UnsettledTxn { id, commit: 0, purged: 0, undo, name: None }
                    };
                    self.cores.entry(id).or_insert_with(new);
                }
                if let Some(core) = self.cores.get_mut(&id) {
                    core.undo.restore(pointer, previous, reader.rest(), &self.space);
                    // What a full file system does not take stays in memory.
                    let _ = core.undo.spill_if_large(&self.space);
                }
            }
            KIND_UNDONE => {
                let (id, left) = (reader.u64()?, reader.u64()?);
                if let Some(core) = self.core(id) {
                    core.undo.last = left;
                    // After the prepare: its rollback was decided.
                    core.name = None;
                }
            }
            KIND_COMMIT => {
                if let Some(core) = self.core(reader.u64()?) {
                    core.commit = record.ticket;
                }
            }
            KIND_PREPARED => {
                if let Some(core) = self.core(reader.u64()?) {
                    core.name = Some(reader.rest().into());
                }
            }
            KIND_ABORTED => self.remove(reader.u64()?),
            KIND_PURGED => {
                let (id, done) = (reader.u64()?, reader.u64()?);
                if let Some(core) = self.core(id) {
                    core.purged = core.purged.max(done);
                }
            }
            KIND_SETTLED => {
                while !reader.is_empty() {
                    self.remove(reader.u64()?);
                }
            }
            _ => {}
        }
        Some(())
    }
}
