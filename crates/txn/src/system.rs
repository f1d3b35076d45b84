//! The table of writing transactions, commit and rollback records, the purge queue.

use std::io;
use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use btree::Mtr;
use bufpool::Pool;
use hashbrown::HashMap;
use locks::{LockTable, Owner};
use sys::model::{breaks, sized};
use sys::sync::{Mutex, MutexGuard};
use wal::Log;

use crate::checkpoint::RESERVE_BYTES_MIN;
use crate::filed::{Filed, Filer, shared_name};
use crate::purge_queue::{Ended, PurgeLane, PurgeQueue};
use crate::snapshot::{Snapshot, SnapshotSlots, Visibility};
use crate::txn_state::{ABORTED, TxnState, UndoPointer};
use crate::undo_log::{UndoLog, UndoSpace};

/// Record that only changes pages.
pub const KIND_PAGES: u8 = 1;
/// Row change with its undo entry: transaction, pointer, previous pointer, payload.
pub(crate) const KIND_CHANGE: u8 = 2;
/// Step of a rollback: transaction, pointer of the newest entry left.
pub(crate) const KIND_UNDONE: u8 = 3;
/// Transaction, the wall clock's time in microseconds since 1970, which logs of earlier versions do not have, and the rest of what is
/// attached.
pub(crate) const KIND_COMMIT: u8 = 4;
/// A transaction with a complete rollback.
pub(crate) const KIND_ABORTED: u8 = 5;
/// Step of purge: transaction, pointer up to which no work is left.
pub(crate) const KIND_PURGED: u8 = 6;
/// Transactions that are settled.
pub(crate) const KIND_SETTLED: u8 = 7;
/// Transaction that is prepared, and its name.
pub(crate) const KIND_PREPARED: u8 = 8;
/// Transaction, and bytes that it attaches to its commit.
pub(crate) const KIND_ATTACHED: u8 = 9;
/// Transaction, and how many of the bytes of such records stay attached.
pub(crate) const KIND_DETACHED: u8 = 10;

/// A power of two.
const SHARDS: usize = sized(64, 2);
/// Transaction objects at a time.
const SLOTS: usize = sized(8192, 8);
/// A record's body without page changes: no pages, no operations.
pub(crate) const NO_PAGES: [u8; 5] = [0; 5];

#[repr(align(128))]
struct Mark(Mutex<()>);

/// A writing transaction that is not settled.
pub(crate) enum Slot {
    Live(Arc<TxnState>),
    Filed(Filed),
}

/// A part of the table.
#[derive(Default)]
struct Part {
    slots: HashMap<u64, Slot, foldhash::fast::RandomState>,
    /// Those of the table that some snapshot may not see: new ones, until `advance_low` finds that they are seen.
    unseen: Vec<Arc<TxnState>>,
}

/// On separate cache lines: transactions of two connections contend for it only if their ids do.
#[derive(Default)]
#[repr(align(128))]
struct Shard(Mutex<Part>);

impl Shard {
    fn lock(&self) -> MutexGuard<'_, Part> {
        self.0.lock()
    }
}

/// Memory of a transaction besides its undo.
const CORE_BYTES: usize = 512;
/// Ended transactions may take this many times the memory that one may have for its undo; beyond that, the oldest are filed.
const QUEUE_SHARE: usize = 16;
/// They are filed in parts of about these bytes.
const FILED_AT_ONCE: usize = 1 << 20;

/// Transactions of one engine.
pub struct TxnSystem {
    /// Pages.
    pub pool: Arc<Pool>,
    /// The log.
    pub log: Arc<Log>,
    /// Row and range locks.
    pub locks: LockTable,
    /// Snapshots.
    pub slots: SnapshotSlots,
    cores: Box<[Shard]>,
    beginning: Box<[Mark]>,
    low: AtomicU64,
    queue: PurgeQueue,
    /// The horizon computed last.
    horizon: AtomicU64,
    filer: Filer,
    /// Owner of filed transactions, which hold no locks.
    nobody: Arc<Owner>,
    pub(crate) undo_space: UndoSpace,
    /// Undo files of transactions that are settled; the last checkpoint may still name them.
    pub(crate) unused_files: Mutex<Vec<String>>,
    /// Held while a checkpoint is taken; the number of `FilePin`s.
    pub(crate) checkpointing: Mutex<u64>,
    /// Bytes of log that a recovery replays in a second, as measured; 0 unknown.
    redo_rate: AtomicU64,
    /// Bytes of the last checkpoint's file of unsettled transactions.
    pub(crate) unsettled_bytes: AtomicU64,
    /// Bytes that the next one's file has at least; 0 for none.
    pub(crate) checkpoint_reserve_min: u64,
    pub(crate) has_checkpoint_reserve: AtomicBool,
}

impl TxnSystem {
    /// No transactions.
    pub(crate) fn new(pool: Arc<Pool>, log: Arc<Log>, undo_space: UndoSpace) -> TxnSystem {
        let locks = LockTable::new();
        // Tests of logs without a reserve have none here either.
        let reserves = log.reserve_state().1 > 0;
        TxnSystem {
            low: AtomicU64::new(log.next_ticket()),
            pool,
            log,
            nobody: locks.new_owner(),
            locks,
            slots: SnapshotSlots::new(SLOTS),
            cores: (0..SHARDS).map(|_| Shard::default()).collect(),
            beginning: (0..sys::threads::sizes().shards(SHARDS))
                .map(|_| Mark(Mutex::new(())))
                .collect(),
            queue: PurgeQueue::new(),
            horizon: AtomicU64::new(0),
            filer: Filer::default(),
            undo_space,
            unused_files: Mutex::new(Vec::new()),
            checkpointing: Mutex::new(0),
            redo_rate: AtomicU64::new(0),
            unsettled_bytes: AtomicU64::new(0),
            checkpoint_reserve_min: if reserves { RESERVE_BYTES_MIN } else { 0 },
            has_checkpoint_reserve: AtomicBool::new(!reserves),
        }
    }

    fn shard(&self, id: u64) -> &Shard {
        &self.cores[id as usize & (SHARDS - 1)]
    }

    /// Puts a transaction into the table.
    fn insert(&self, core: &Arc<TxnState>) {
        let mut part = self.shard(core.id).lock();
        part.unseen.push(core.clone());
        part.slots.insert(core.id, Slot::Live(core.clone()));
    }

    /// A transaction's first write.
    pub fn begin_write(&self, owner: Arc<Owner>) -> Arc<TxnState> {
        // X1: the mark is at or below the id, and stays until the transaction is in the table.
        let mark = &self.beginning[sys::threads::number() & (self.beginning.len() - 1)].0;
        let guard = mark.lock();
        let id = self.log.draw();
        let core = Arc::new(TxnState::fresh(id, owner, UndoLog::new(id)));
        self.insert(&core);
        drop(guard);
        core
    }

    /// Puts a transaction that recovery found into the table.
    pub(crate) fn adopt(&self, core: Arc<TxnState>) {
        self.low.fetch_min(core.id, Ordering::AcqRel);
        self.insert(&core);
        if !core.is_active() {
            self.enqueue(&core);
        }
    }

    /// Whether every snapshot sees the end of a transaction, as far as is known: true for nearly all writers of rows. Writes no shared
    /// memory, unlike `find`.
    #[inline]
    pub fn is_seen_by_all(&self, id: u64) -> bool {
        id < self.low.load(Ordering::Acquire)
    }

    /// The transaction that wrote a row, unless it is settled.
    pub fn find(&self, id: u64) -> Option<Arc<TxnState>> {
        match self.shard(id).lock().slots.get(&id)? {
            Slot::Live(core) => Some(core.clone()),
            Slot::Filed(filed) => Some(Arc::new(filed.core(id, &self.nobody))),
        }
    }

    fn enqueue(&self, core: &TxnState) {
        self.queue.push(ended(core));
    }

    /// Takes a snapshot in a slot.
    #[inline]
    pub fn snapshot(&self, slot: usize) -> Snapshot {
        self.slots.pin(slot, &self.low, || self.log.visible())
    }

    /// Whether a row version of transaction `id` is seen. The common case touches no shared memory but the snapshot's own numbers.
    #[inline]
    pub fn visibility(&self, snapshot: &Snapshot, id: u64, own: u64) -> Visibility<Arc<TxnState>> {
        if id < snapshot.low || id == own {
            return Visibility::Visible;
        }
        // X4: not in the table is settled.
        let Some(core) = self.find(id) else { return Visibility::Visible };
        match core.committed() {
            Some(ticket) if ticket < snapshot.ts => Visibility::Visible,
            _ => Visibility::Hidden(core),
        }
    }

    /// The newest undo entry of a transaction before a change begins: entries beyond the limit go to a file now, while no latch is held.
    ///
    /// # Errors
    /// They cannot, and there is no room for more in memory.
    pub fn start_change(&self, core: &TxnState) -> io::Result<UndoPointer> {
        core.start_change(&self.undo_space)
    }

    /// Logs a row change: the page edits in `mtr`, and the undo entry, which lands where `next_undo` said.
    pub fn log_change(&self, core: &TxnState, mtr: Mtr<'_>, payload: &[u8]) -> u64 {
        if !core.garbage.load(Ordering::Relaxed) {
            // A purging thread has seen the commit, which comes after this.
            core.garbage.store(true, Ordering::Relaxed);
        }
        self.log_clean_change(core, mtr, payload)
    }

    /// Like `log_change`, for a change that leaves nothing to purge.
    pub fn log_clean_change(&self, core: &TxnState, mtr: Mtr<'_>, payload: &[u8]) -> u64 {
        let mut undo = core.undo.lock();
        let previous = undo.last;
        let pointer = undo.push(payload, &self.undo_space);
        let mut head = [0; 24];
        head[..8].copy_from_slice(&core.id.to_le_bytes());
        head[8..16].copy_from_slice(&pointer.to_le_bytes());
        head[16..].copy_from_slice(&previous.to_le_bytes());
        core.owner.add_weight();
        mtr.commit_with(KIND_CHANGE, [&head, payload])
    }

    /// Logs a step of a rollback: entries above `left` are undone (X8).
    pub fn log_undone(&self, core: &TxnState, mtr: Mtr<'_>, left: UndoPointer) {
        let mut undo = core.undo.lock();
        undo.last = left.0;
        mtr.commit(KIND_UNDONE, &pair(core.id, left.0));
    }

    /// Logs a step of purge: entries up to `done` need no more work, in one record with the pages it frees.
    pub fn log_purged(&self, core: &TxnState, mtr: Mtr<'_>, done: UndoPointer) {
        core.purged.store(done.0, Ordering::Release);
        // `core` of a filed transaction is only a copy: the checkpoint reads the table.
        if let Some(Slot::Filed(filed)) = self.shard(core.id).lock().slots.get_mut(&core.id) {
            filed.purged = done.0;
        }
        mtr.commit(KIND_PURGED, &pair(core.id, done.0));
    }

    /// Prepares a transaction: once the ticket returned is durable, a crash does not roll it back (X17).
    pub fn prepare(&self, core: &TxnState, name: &[u8]) -> u64 {
        let _undo = core.undo.lock();
        let publish = |_| *core.name.lock() = Some(name.into());
        self.log.append(KIND_PREPARED, &[&NO_PAGES, &core.id.to_le_bytes(), name], publish)
    }

    /// A prepared transaction is to be rolled back, by its caller or the next start: it is as if it had never been prepared.
    pub fn unprepare(&self, core: &TxnState) {
        let _undo = core.undo.lock();
        *core.name.lock() = None;
    }

    /// Attaches bytes to the commit of a transaction, if it commits. Call without latches.
    ///
    /// # Errors
    /// The log is broken.
    pub fn attach(&self, core: &TxnState, bytes: &[u8]) -> io::Result<()> {
        let parts = [&NO_PAGES[..], &core.id.to_le_bytes(), bytes];
        let (_, is_large) = self.log.append_watched(KIND_ATTACHED, &parts, |_| {});
        if is_large { self.log.relieve() } else { Ok(()) }
    }

    /// Keeps only the first `length` bytes of those that `attach` attached.
    pub fn detach(&self, core: &TxnState, length: u64) {
        self.log.append(KIND_DETACHED, &[&NO_PAGES, &pair(core.id, length)], |_| {});
    }

    /// Decides a commit and returns its ticket (X3). `attached` follows what `attach` attached. Locks are the caller's to release
    /// afterwards.
    pub fn commit(&self, core: &Arc<TxnState>, attached: &[u8]) -> u64 {
        let ticket = {
            let _undo = core.undo.lock();
            let publish = |ticket| {
                if !breaks("X3") {
                    core.commit.store(ticket, Ordering::Release);
                }
            };
            let micros = sys::clock::wall().as_micros() as u64;
            self.log.append(KIND_COMMIT, &[&NO_PAGES, &pair(core.id, micros), attached], publish)
        };
        if breaks("X3") {
            core.commit.store(ticket, Ordering::Release);
        }
        sys::probes::commit(core.id, ticket);
        self.enqueue(core);
        ticket
    }

    /// Ends a transaction after all its entries are undone.
    pub fn finish_rollback(&self, core: &Arc<TxnState>) {
        {
            let _undo = core.undo.lock();
            let publish = |ticket| {
                core.ended.store(ticket, Ordering::Release);
                core.commit.store(ABORTED, Ordering::Release);
            };
            self.log.append(KIND_ABORTED, &[&NO_PAGES, &core.id.to_le_bytes()], publish);
        }
        self.enqueue(core);
    }

    /// All snapshots see commits below it. It never goes back: a snapshot that is being taken may hold less in its slot than it sees.
    pub fn horizon(&self) -> u64 {
        let horizon = self.slots.horizon(self.log.visible());
        self.horizon.fetch_max(horizon, Ordering::AcqRel).max(horizon)
    }

    /// The last computed horizon, or a later one: purge works below it, or will.
    pub fn known_horizon(&self) -> u64 {
        self.horizon.load(Ordering::Acquire)
    }

    /// Ended transactions that wait for purge.
    pub fn purge_backlog(&self) -> usize {
        self.queue.backlog().transactions
    }

    /// Bytes of memory of ended transactions that wait for purge, besides undo.
    pub fn queue_bytes(&self) -> usize {
        let backlog = self.queue.backlog();
        let unfiled = backlog.transactions.saturating_sub(backlog.filed);
        backlog.capacity * size_of::<Ended>()
            + unfiled * CORE_BYTES
            + backlog.filed * size_of::<(u64, Slot)>()
    }

    /// Whether more than `limit` ended transactions wait in the calling thread's lane, and not for an old snapshot.
    pub fn purge_is_behind(&self, limit: usize) -> bool {
        self.queue.is_behind(limit, self.horizon.load(Ordering::Relaxed))
    }

    /// The lane of the purge queue that the calling thread fills, unless another thread holds it.
    pub fn own_purge_lane(&self) -> Option<PurgeLane<'_>> {
        self.queue.own_lane()
    }

    /// The lanes of the purge queue that no thread holds.
    pub fn purge_lanes(&self) -> impl Iterator<Item = PurgeLane<'_>> {
        self.queue.free_lanes()
    }

    /// Takes the oldest ended transaction of a lane that all snapshots see. After its index work the caller calls `retire`.
    pub fn next_to_purge(&self, lane: &PurgeLane<'_>, horizon: u64) -> Option<Arc<TxnState>> {
        self.find(lane.take(horizon)?)
    }

    /// Queues a transaction again after its purge failed.
    pub fn requeue(&self, lane: &PurgeLane<'_>, core: &TxnState) {
        lane.put_back(ended(core));
    }

    /// Forgets a transaction: its rows are settled (X4).
    pub fn retire(&self, core: &TxnState) {
        self.shard(core.id).lock().slots.remove(&core.id);
        let undo = core.undo.lock();
        let unused = match &undo.shared {
            Some((shared, _)) => {
                self.filer.bytes.fetch_sub(undo.base, Ordering::Relaxed);
                shared.leave()
            }
            None => undo.file.is_some(),
        };
        if unused {
            self.unused_files.lock().extend(undo.file_name());
        }
    }

    /// Files the oldest ended transactions while those in memory take more than their share, except in lanes that are being
    /// purged.
    ///
    /// # Errors
    /// I/O; transactions that are not filed stay in memory.
    pub fn file_ended(&self) -> io::Result<()> {
        let bytes_max = self.undo_space.memory_bytes.saturating_mul(QUEUE_SHARE);
        let is_too_much = || self.queue.backlog().bytes > bytes_max;
        if !is_too_much() {
            return Ok(());
        }
        for lane in self.queue.free_lanes() {
            while is_too_much() {
                let batch = lane.unfiled(FILED_AT_ONCE);
                if batch.is_empty() {
                    break;
                }
                self.file_batch(&batch)?;
                lane.note_filed(&batch);
            }
        }
        Ok(())
    }

    fn file_batch(&self, batch: &[(u64, usize)]) -> io::Result<()> {
        let (mut bytes, mut parts) = (Vec::new(), Vec::new());
        for (id, _) in batch {
            let live = match self.shard(*id).lock().slots.get(id) {
                Some(Slot::Live(core)) => Some(core.clone()),
                Some(Slot::Filed(_)) | None => None,
            };
            let Some(core) = live else { continue };
            let mut undo = core.undo.lock();
            if undo.file.is_some() {
                if undo.shared.is_none() {
                    undo.spill(&self.undo_space);
                }
                continue;
            }
            let place = (bytes.len() as u64, undo.bytes.len() as u64, undo.last);
            bytes.extend_from_slice(undo.sealed());
            drop(undo);
            parts.push((core, place));
        }
        if parts.is_empty() {
            return Ok(());
        }
        let (file, start, unused) =
            self.filer.append(&self.undo_space, &bytes, || self.log.draw())?;
        self.filer.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        self.unused_files.lock().extend(unused.map(shared_name));
        for (core, (offset, length, last)) in parts {
            file.enter();
            let filed = Filed {
                commit: core.commit.load(Ordering::Acquire),
                ended: core.ended.load(Ordering::Acquire),
                purged: core.purged.load(Ordering::Acquire),
                last,
                file: file.clone(),
                at: start + offset,
                length,
            };
            self.shard(core.id).lock().slots.insert(core.id, Slot::Filed(filed));
        }
        Ok(())
    }

    /// Logs that transactions are settled (X13): recovery need not keep their undo. After `retire`.
    pub fn log_settled(&self, ids: &[u64]) {
        /// Ids of one record.
        const IDS_MAX: usize = 1024;
        for ids in ids.chunks(IDS_MAX) {
            let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
            self.log.append(KIND_SETTLED, &[&NO_PAGES, &bytes], |_| {});
        }
    }

    /// Commits so far.
    pub fn commits(&self) -> u64 {
        self.log.count_of(KIND_COMMIT)
    }

    /// Bytes of log that recovery replays in a second on this machine, as far as it was measured; 0 unknown.
    pub fn redo_rate(&self) -> u64 {
        self.redo_rate.load(Ordering::Relaxed)
    }

    pub(crate) fn set_redo_rate(&self, rate: u64) {
        self.redo_rate.store(rate, Ordering::Relaxed);
    }

    /// Moves `low` up (X1). Cheap enough for every few milliseconds.
    pub fn advance_low(&self) {
        let visible = self.log.visible();
        let mut low = self.log.next_ticket();
        // X1: a thread that drew an id below `low` held its mark then; once the mark is passed, its transaction is in the table.
        if !breaks("X1") {
            self.beginning.iter().for_each(|mark| drop(mark.0.lock()));
        }
        for shard in &self.cores {
            // A transaction seen once stays so, and is not read again, however long an old snapshot keeps it in the table.
            let Part { slots, unseen } = &mut *shard.lock();
            unseen.retain(|core| {
                let is_unseen = match core.committed() {
                    Some(ticket) => ticket >= visible,
                    None => core.is_active() || slots.contains_key(&core.id),
                };
                if is_unseen {
                    low = low.min(core.id);
                }
                is_unseen
            });
        }
        self.low.store(low, Ordering::Release);
    }

    pub(crate) fn all_cores(&self) -> Vec<Arc<TxnState>> {
        self.cores
            .iter()
            .flat_map(|shard| {
                let slots = &shard.lock().slots;
                let live = slots.values().filter_map(|slot| match slot {
                    Slot::Live(core) => Some(core.clone()),
                    Slot::Filed(_) => None,
                });
                live.collect::<Vec<_>>()
            })
            .collect()
    }

    /// Shows every filed transaction.
    pub(crate) fn each_filed(&self, mut each: impl FnMut(u64, &Filed)) {
        for shard in &self.cores {
            for (id, slot) in &shard.lock().slots {
                if let Slot::Filed(filed) = slot {
                    each(*id, filed);
                }
            }
        }
    }

    /// Lock owners of active transactions that have changed something, at most the given number.
    pub fn active_owners(&self, limit: usize) -> Vec<Arc<Owner>> {
        let mut owners = Vec::new();
        for shard in &self.cores {
            for slot in shard.lock().slots.values() {
                match slot {
                    Slot::Live(core) if core.is_active() && owners.len() < limit => {
                        owners.push(core.owner.clone());
                    }
                    Slot::Live(_) | Slot::Filed(_) => {}
                }
            }
        }
        owners
    }

    /// Active transactions, bytes of undo in memory, and in files.
    pub fn totals(&self) -> (usize, u64, u64) {
        let cores = self.all_cores();
        let active = cores.iter().filter(|core| core.is_active()).count();
        let bytes = cores.iter().map(|core| core.undo_bytes());
        let filed = self.filer.bytes.load(Ordering::Relaxed);
        let (memory, files) = bytes.fold((0, filed), |(memory, files), (more, filed)| {
            (memory + more as u64, files + filed)
        });
        (active, memory, files)
    }

    /// Flushes dirty pages: the oldest first, up to `pages`.
    ///
    /// # Errors
    /// I/O.
    pub fn flush_pages(&self, pages: usize) -> io::Result<usize> {
        self.pool.flush(pages, u64::MAX)
    }
}

fn ended(core: &TxnState) -> Ended {
    let bytes = {
        let mut undo = core.undo.lock();
        undo.trim();
        undo.bytes.len() + CORE_BYTES
    };
    let at = core.committed().unwrap_or_else(|| core.ended.load(Ordering::Acquire));
    Ended { id: core.id, at, bytes }
}

fn pair(first: u64, second: u64) -> [u8; 16] {
    let mut out = [0; 16];
    out[..8].copy_from_slice(&first.to_le_bytes());
    out[8..].copy_from_slice(&second.to_le_bytes());
    out
}
