//! Row locks, waiting, and the search for deadlocks.
//!
//! A row written by an active transaction is locked by that fact alone; an entry is made for it only when somebody wants to wait.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use engine_api::{CancelToken, EngineError, EngineResult, TableId};
use sys::blocking::blocking;
use sys::clock::{Clock as _, RealClock};
use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex};

use crate::key::Key;
use crate::status::{TxnStatus, WaitState};

/// A lockable row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LockName {
    pub(crate) table: TableId,
    pub(crate) locator: Key,
}

/// Strength of a row lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Shared,
    Exclusive,
}

impl Mode {
    fn conflicts(self, other: Mode) -> bool {
        !(self == Mode::Shared && other == Mode::Shared)
    }
}

#[derive(Default)]
struct Entry {
    granted: Vec<(Arc<TxnStatus>, Mode)>,
    waiting: VecDeque<(Arc<TxnStatus>, Mode)>,
}

impl Entry {
    fn mode_of(&self, txn: &TxnStatus) -> Option<Mode> {
        self.granted.iter().find(|(holder, _)| holder.id == txn.id).map(|(_, mode)| *mode)
    }

    /// Who keeps `txn` from `mode`: holders, and conflicting requests before it. A holder that upgrades passes the queue.
    fn blockers(&self, txn: &TxnStatus, mode: Mode) -> Vec<Arc<TxnStatus>> {
        let holders = self.granted.iter();
        let mut blockers: Vec<_> = holders
            .filter(|(holder, held)| holder.id != txn.id && held.conflicts(mode))
            .map(|(holder, _)| holder.clone())
            .collect();
        if self.mode_of(txn).is_none() {
            let before = self.waiting.iter().take_while(|(waiter, _)| waiter.id != txn.id);
            blockers.extend(
                before.filter(|(_, wanted)| wanted.conflicts(mode)).map(|(w, _)| w.clone()),
            );
        }
        blockers
    }

    /// Returns whether the transaction held nothing here before.
    fn grant(&mut self, txn: &Arc<TxnStatus>, mode: Mode) -> bool {
        match self.granted.iter_mut().find(|(holder, _)| holder.id == txn.id) {
            Some((_, held)) => {
                if mode == Mode::Exclusive {
                    *held = Mode::Exclusive;
                }
                false
            }
            None => {
                self.granted.push((txn.clone(), mode));
                true
            }
        }
    }

    /// Grants what has become possible, in order.
    fn promote(&mut self, name: &LockName) {
        let mut index = 0;
        while index < self.waiting.len() {
            let (txn, mode) = self.waiting[index].clone();
            if !self.blockers(&txn, mode).is_empty() {
                index += 1;
                continue;
            }
            self.waiting.remove(index);
            if self.grant(&txn, mode) {
                txn.held.lock().locks.push(name.clone());
            }
            txn.resolve_wait(WaitState::Granted);
        }
    }
}

/// A power of two.
const SHARDS: usize = 64;
/// A waiting thread looks at its cancel token this often.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// All row locks of the engine.
pub(crate) struct LockTable {
    shards: Vec<Mutex<HashMap<LockName, Entry>>>,
    /// Who waits for whom.
    graph: Mutex<HashMap<u64, (Arc<TxnStatus>, Vec<Arc<TxnStatus>>)>>,
    clock: RealClock,
    /// Entries in all shards: writers of rows that nobody locked need not look.
    entries: AtomicUsize,
    pub(crate) waits: AtomicUsize,
    pub(crate) deadlocks: AtomicUsize,
}

/// Patience of one wait.
pub(crate) struct Patience<'a> {
    pub(crate) timeout: Duration,
    pub(crate) cancel: &'a CancelToken,
}

impl LockTable {
    pub(crate) fn new() -> LockTable {
        LockTable {
            shards: (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect(),
            graph: Mutex::new(HashMap::new()),
            clock: RealClock::new(),
            entries: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            deadlocks: AtomicUsize::new(0),
        }
    }

    fn shard(&self, name: &LockName) -> &Mutex<HashMap<LockName, Entry>> {
        let hash = stdx::hash_bytes(name.table.0, name.locator.as_slice());
        &self.shards[hash as usize & (SHARDS - 1)]
    }

    /// Rows that are locked explicitly.
    pub(crate) fn count(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    /// Takes the lock when nobody is in the way.
    pub(crate) fn try_lock(&self, txn: &Arc<TxnStatus>, name: &LockName, mode: Mode) -> bool {
        let mut shard = self.shard(name).lock();
        let entry = match shard.get_mut(name) {
            Some(entry) => entry,
            None => {
                self.entries.fetch_add(1, Ordering::Relaxed);
                shard.entry(name.clone()).or_default()
            }
        };
        if !entry.blockers(txn, mode).is_empty() {
            return false;
        }
        if entry.grant(txn, mode) {
            txn.held.lock().locks.push(name.clone());
        }
        true
    }

    /// Whether somebody else holds or awaits a lock on the row.
    pub(crate) fn is_locked_by_other(&self, txn: &TxnStatus, name: &LockName) -> bool {
        // Inserters hold the table's latch exclusively and lockers hold it shared, so the count is not too old.
        if self.entries.load(Ordering::Acquire) == 0 {
            return false;
        }
        let shard = self.shard(name).lock();
        shard.get(name).is_some_and(|entry| !entry.blockers(txn, Mode::Exclusive).is_empty())
    }

    /// Gives an active writer's implicit lock an entry, so that others can queue behind it.
    pub(crate) fn make_explicit(&self, owner: &Arc<TxnStatus>, name: &LockName) {
        let mut shard = self.shard(name).lock();
        let mut held = owner.held.lock();
        if held.ended {
            return;
        }
        let entry = shard.entry(name.clone()).or_insert_with(|| {
            self.entries.fetch_add(1, Ordering::Relaxed);
            Entry::default()
        });
        if entry.grant(owner, Mode::Exclusive) {
            held.locks.push(name.clone());
        }
    }

    /// Queues for the lock and waits.
    pub(crate) fn wait_lock(
        &self,
        txn: &Arc<TxnStatus>,
        name: &LockName,
        mode: Mode,
        patience: &Patience<'_>,
    ) -> EngineResult<()> {
        let blockers = {
            let mut shard = self.shard(name).lock();
            let entry = shard.entry(name.clone()).or_insert_with(|| {
                self.entries.fetch_add(1, Ordering::Relaxed);
                Entry::default()
            });
            let blockers = entry.blockers(txn, mode);
            if blockers.is_empty() {
                if entry.grant(txn, mode) {
                    txn.held.lock().locks.push(name.clone());
                }
                return Ok(());
            }
            *txn.wait.lock() = WaitState::Waiting;
            // An upgrade stands before the others: they wait for this transaction anyway.
            if entry.mode_of(txn).is_some() {
                entry.waiting.push_front((txn.clone(), mode));
            } else {
                entry.waiting.push_back((txn.clone(), mode));
            }
            blockers
        };
        let outcome = self.wait(txn, blockers, patience);
        if outcome.is_err() {
            self.leave_queue(txn, name);
        }
        outcome
    }

    fn leave_queue(&self, txn: &TxnStatus, name: &LockName) {
        let mut shard = self.shard(name).lock();
        if let Some(entry) = shard.get_mut(name) {
            entry.waiting.retain(|(waiter, _)| waiter.id != txn.id);
            entry.promote(name);
            self.drop_if_unused(&mut shard, name);
        }
    }

    fn drop_if_unused(&self, shard: &mut HashMap<LockName, Entry>, name: &LockName) {
        if shard.get(name).is_some_and(|e| e.granted.is_empty() && e.waiting.is_empty()) {
            shard.remove(name);
            self.entries.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until `blockers[0]` ends.
    pub(crate) fn wait_end(
        &self,
        txn: &Arc<TxnStatus>,
        blockers: Vec<Arc<TxnStatus>>,
        patience: &Patience<'_>,
    ) -> EngineResult<()> {
        let Some(first) = blockers.first() else { return Ok(()) };
        {
            let mut held = first.held.lock();
            if held.ended {
                return Ok(());
            }
            *txn.wait.lock() = WaitState::Waiting;
            held.end_waiters.push(txn.clone());
        }
        let first = first.clone();
        let outcome = self.wait(txn, blockers, patience);
        if outcome.is_err() {
            first.held.lock().end_waiters.retain(|waiter| waiter.id != txn.id);
        }
        outcome
    }

    /// The wait itself: the caller has set the state to `Waiting` and stands in somebody's queue.
    fn wait(
        &self,
        txn: &Arc<TxnStatus>,
        blockers: Vec<Arc<TxnStatus>>,
        patience: &Patience<'_>,
    ) -> EngineResult<()> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.graph.lock().insert(txn.id, (txn.clone(), blockers));
        self.break_cycles(txn);
        let outcome = blocking(|| self.park(txn, patience));
        self.graph.lock().remove(&txn.id);
        *txn.wait.lock() = WaitState::Running;
        outcome
    }

    fn park(&self, txn: &TxnStatus, patience: &Patience<'_>) -> EngineResult<()> {
        let deadline = self.clock.monotonic().saturating_add(patience.timeout);
        let mut state = txn.wait.lock();
        loop {
            match *state {
                WaitState::Granted | WaitState::Running => return Ok(()),
                WaitState::Victim => {
                    self.deadlocks.fetch_add(1, Ordering::Relaxed);
                    return Err(EngineError::Deadlock);
                }
                WaitState::Waiting => {}
            }
            if patience.cancel.is_cancelled() {
                *state = WaitState::Running;
                return Err(EngineError::Cancelled);
            }
            let left = deadline.saturating_sub(self.clock.monotonic());
            if left.is_zero() {
                *state = WaitState::Running;
                return Err(EngineError::LockWaitTimeout);
            }
            state = txn.wake.wait_for(state, left.min(CANCEL_POLL));
        }
    }

    /// Ends the lightest transaction of each cycle through `txn`; on a tie `txn` itself.
    fn break_cycles(&self, txn: &Arc<TxnStatus>) {
        let mut graph = self.graph.lock();
        while let Some(cycle) = find_cycle(&graph, txn.id) {
            let weight = |id: &u64| {
                let own = u64::from(*id != txn.id);
                graph.get(id).map_or((u64::MAX, own), |(status, _)| {
                    (status.weight.load(Ordering::Relaxed), own)
                })
            };
            let Some(victim) = cycle.into_iter().min_by_key(weight) else { return };
            if let Some((status, _)) = graph.remove(&victim) {
                status.resolve_wait(WaitState::Victim);
            }
            if victim == txn.id {
                return;
            }
        }
    }

    /// Gives back everything a transaction holds. Its stamp is decided already.
    pub(crate) fn release_all(&self, txn: &Arc<TxnStatus>) {
        let held = {
            let mut held = txn.held.lock();
            held.ended = true;
            (
                std::mem::take(&mut held.locks),
                std::mem::take(&mut held.gap_tables),
                std::mem::take(&mut held.end_waiters),
            )
        };
        for table in held.1 {
            table.release_gaps(txn.id);
        }
        for name in held.0 {
            self.release_one(txn, &name);
        }
        for waiter in held.2 {
            waiter.resolve_wait(WaitState::Granted);
        }
    }

    fn release_one(&self, txn: &TxnStatus, name: &LockName) {
        let mut shard = self.shard(name).lock();
        if let Some(entry) = shard.get_mut(name) {
            entry.granted.retain(|(holder, _)| holder.id != txn.id);
            entry.promote(name);
            self.drop_if_unused(&mut shard, name);
        }
    }

    /// Gives back a lock taken since `first_lock` (a place in the transaction's list).
    pub(crate) fn release_early(&self, txn: &TxnStatus, name: &LockName, first_lock: usize) {
        {
            let mut held = txn.held.lock();
            let recent = held.locks.get(first_lock..).unwrap_or_default();
            let Some(at) = recent.iter().rposition(|lock| lock == name) else { return };
            held.locks.swap_remove(first_lock + at);
        }
        self.release_one(txn, name);
    }
}

/// The transactions of a cycle through `start`.
fn find_cycle(
    graph: &HashMap<u64, (Arc<TxnStatus>, Vec<Arc<TxnStatus>>)>,
    start: u64,
) -> Option<Vec<u64>> {
    let mut seen = HashSet::new();
    // Each element: a transaction, and how many of its blockers were looked at.
    let mut path = vec![(start, 0usize)];
    while let Some((id, next)) = path.last_mut() {
        let blocker = graph.get(id).and_then(|(_, blockers)| blockers.get(*next));
        *next += 1;
        match blocker {
            None => {
                path.pop();
            }
            Some(blocker) if blocker.id == start => {
                return Some(path.into_iter().map(|(id, _)| id).collect());
            }
            Some(blocker) => {
                if seen.insert(blocker.id) {
                    path.push((blocker.id, 0));
                }
            }
        }
    }
    None
}
