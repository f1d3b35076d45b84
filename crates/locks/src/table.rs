//! Record locks, queues and waits.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use hashbrown::HashMap;
use hashbrown::hash_map::EntryRef;
use stdx::Few;
use sys::blocking::blocking;
use sys::clock::{Clock as _, RealClock};
use sys::histogram::{Histogram, Summary};
use sys::lock_stats::{self, Class, Kind, Of};
use sys::model::{breaks, sized};
use sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sys::sync::{Arc, Mutex};
use sys::waits;

use crate::owner::{Owner, OwnerNumbers, WaitState};
use crate::packed::{Hit, Packed};
use crate::ranges::Ranges;
use crate::report::Tag;
use crate::waits::{Awaited, Waits};

static ROWS: Class = Class::new("row lock", Kind::RowLock);

/// Strength of a record lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Other transactions may share it.
    Shared,
    /// No other transaction may hold it.
    Exclusive,
}

impl Mode {
    fn conflicts(self, other: Mode) -> bool {
        !(self == Mode::Shared && other == Mode::Shared)
    }
}

/// Why a wait ended without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitError {
    /// Not granted in time.
    Timeout,
    /// Chosen as the victim of a deadlock.
    Deadlock,
    /// The statement was cancelled.
    Cancelled,
}

/// The limits of a wait.
pub struct Patience<'a> {
    /// The longest time to wait.
    pub timeout: Duration,
    /// Asked now and then whether to abandon the wait.
    pub is_cancelled: &'a dyn Fn() -> bool,
}

/// Counters since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct WaitEvents {
    /// Record names with an entry now.
    pub entries: u64,
    /// Packed locks, or ranges of them, now.
    pub packed: u64,
    /// Waits.
    pub waits: u64,
    /// Deadlocks found.
    pub deadlocks: u64,
}

/// Replaces `out` with the name of a record: the space, then the key.
pub fn lock_name(space: u64, key: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&space.to_le_bytes());
    out.extend_from_slice(key);
}

/// Whether a lock may be released before its transaction ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// It was granted to a waiter that has not read the record again yet.
    NotYet,
    /// Requested once: the requester may release it.
    Once,
    /// It stays: it was requested more than once, or the transaction has written the record.
    Always,
}

/// A lock that a transaction holds.
pub(crate) struct Grant {
    pub(crate) owner: Arc<Owner>,
    pub(crate) mode: Mode,
    /// The requests for it so far.
    asked: Asked,
}

#[derive(Default)]
pub(crate) struct Entry {
    pub(crate) granted: Few<Grant>,
    pub(crate) waiting: VecDeque<(Arc<Owner>, Mode)>,
}

impl Entry {
    fn mode_of(&self, id: u64) -> Option<Mode> {
        self.granted.iter().find(|grant| grant.owner.id == id).map(|grant| grant.mode)
    }

    /// Whether others block `owner` from `mode`: holders, and conflicting requests before it. A holder that upgrades passes the queue.
    fn is_blocked(&self, owner: Option<&Owner>, mode: Mode) -> bool {
        let id = owner.map_or(0, |owner| owner.id);
        let conflicts = |grant: &Grant| grant.owner.id != id && grant.mode.conflicts(mode);
        let mut before = self.waiting.iter().take_while(|(waiter, _)| waiter.id != id);
        self.granted.iter().any(conflicts)
            || (owner.is_none_or(|owner| self.mode_of(owner.id).is_none())
                && before.any(|(_, wanted)| wanted.conflicts(mode)))
    }

    /// The transactions that a waiter waits for: all of them, as any of those between may be about to leave. Adds to `covered` other waiters that wait
    /// for no transaction that this one does not wait for.
    fn awaited_by(&self, id: u64, covered: &mut HashSet<u64>) -> Vec<u64> {
        let Some(at) = self.waiting.iter().rposition(|(waiter, _)| waiter.id == id) else {
            return Vec::new();
        };
        let mode = self.waiting[at].1;
        let holders = self.granted.iter();
        let holders = holders.filter(|grant| grant.owner.id != id && grant.mode.conflicts(mode));
        let mut awaited: Vec<u64> = holders.map(|grant| grant.owner.id).collect();
        if self.mode_of(id).is_none() {
            for (waiter, wanted) in self.waiting.range(..at) {
                if wanted.conflicts(mode) {
                    awaited.push(waiter.id);
                }
                if mode == Mode::Exclusive && self.mode_of(waiter.id).is_none() {
                    covered.insert(waiter.id);
                }
            }
        }
        awaited
    }

    /// Which requests wait for which locks or requests before them: positions, holders first, then requests.
    pub(crate) fn waits(&self) -> Vec<(usize, usize)> {
        let mut waits = Vec::new();
        for (at, (owner, mode)) in self.waiting.iter().enumerate() {
            let own = self.granted.len() + at;
            let holders = self.granted.iter().enumerate();
            let holders = holders
                .filter(|(_, grant)| grant.owner.id != owner.id && grant.mode.conflicts(*mode));
            waits.extend(holders.map(|(holder, _)| (own, holder)));
            if self.mode_of(owner.id).is_none() {
                let before = self.waiting.range(..at).enumerate();
                let before = before.filter(|(_, (_, wanted))| wanted.conflicts(*mode));
                waits.extend(before.map(|(other, _)| (own, self.granted.len() + other)));
            }
        }
        waits
    }

    /// Returns whether the transaction held nothing here before.
    fn grant(&mut self, owner: &Arc<Owner>, mode: Mode) -> bool {
        match self.granted.iter_mut().find(|grant| grant.owner.id == owner.id) {
            Some(grant) => {
                if mode == Mode::Exclusive {
                    grant.mode = Mode::Exclusive;
                }
                false
            }
            None => {
                self.granted.push(Grant { owner: owner.clone(), mode, asked: Asked::NotYet });
                true
            }
        }
    }

    /// Counts a holder's request for its lock. A waiter requests it once more after the grant.
    fn note_asked(&mut self, owner: &Owner) {
        if let Some(grant) = self.granted.iter_mut().find(|grant| grant.owner.id == owner.id) {
            grant.asked = match grant.asked {
                Asked::NotYet => Asked::Once,
                Asked::Once | Asked::Always => Asked::Always,
            };
        }
    }

    /// The holder has written the record.
    fn note_written(&mut self, owner: &Owner) {
        if let Some(grant) = self.granted.iter_mut().find(|grant| grant.owner.id == owner.id) {
            grant.asked = Asked::Always;
        }
    }

    /// Grants the requests that have become possible, in order.
    fn promote(&mut self, name: &[u8]) {
        let mut index = 0;
        while index < self.waiting.len() {
            let (owner, mode) = self.waiting[index].clone();
            if self.is_blocked(Some(&owner), mode) {
                index += 1;
                continue;
            }
            self.waiting.remove(index);
            if self.grant(&owner, mode) {
                owner.held.lock().names.push(name.into());
            }
            owner.resolve_wait(WaitState::Granted);
        }
    }

    /// A transaction's lock that it shares with no other and that blocks no waiter.
    fn mode_if_alone(&self, owner: &Owner) -> Option<Mode> {
        match &self.granted[..] {
            [grant] if grant.owner.id == owner.id && self.waiting.is_empty() => Some(grant.mode),
            _ => None,
        }
    }

    /// A transaction's lock that blocks no waiter.
    fn mode_if_quiet(&self, owner: &Owner) -> Option<Mode> {
        self.mode_of(owner.id).filter(|_| self.waiting.is_empty())
    }

    /// Adds conflicting packed locks of others to the entry (L6). Returns whether the transaction itself holds such a lock packed.
    fn unpack(&mut self, packed: &[Hit], owner: Option<&Owner>, name: &[u8], mode: Mode) -> bool {
        let is_own = |hit: &&Hit| owner.is_some_and(|owner| owner.id == hit.owner.id);
        let holds = owner.is_some_and(|owner| self.mode_of(owner.id).is_some())
            || packed.iter().any(|hit| is_own(&hit) && hit.is_exact);
        let others = packed.iter().filter(|hit| !is_own(hit) && hit.mode.conflicts(mode));
        // A range that merged locks of another transaction have become does not block a holder of the record itself.
        for hit in others.filter(|hit| hit.is_exact || !holds) {
            let mut held = hit.owner.held.lock();
            if !held.ended && self.grant(&hit.owner, hit.mode) {
                held.names.push(name.into());
            }
        }
        packed.iter().filter(is_own).any(|hit| hit.mode == Mode::Exclusive || hit.mode == mode)
    }

    fn is_unused(&self) -> bool {
        self.granted.is_empty() && self.waiting.is_empty()
    }
}

/// A power of two.
const SHARDS: usize = sized(1024, 2);
/// Low bits of the last byte of keys that share a shard.
const NEAR_BITS: u32 = 4;
/// Room of a shard with an entry: for all of some neighbours.
const ENTRIES_MIN: usize = 1 << NEAR_BITS;
/// A waiting thread asks whether it was cancelled this often.
const CANCEL_POLL: Duration = Duration::from_millis(20);

/// Locks by name.
pub(crate) type Entries = HashMap<Box<[u8]>, Entry, foldhash::fast::RandomState>;

#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    pub(crate) entries: Mutex<Entries>,
    /// Entries in the shard: writers of unlocked rows take no mutex.
    pub(crate) count: AtomicUsize,
}

/// Whether two names share a shard because their keys are near each other.
fn is_near(one: &[u8], other: &[u8]) -> bool {
    match (one.split_last(), other.split_last()) {
        (Some((one_last, one)), Some((other_last, other))) => {
            one_last >> NEAR_BITS == other_last >> NEAR_BITS && one == other
        }
        _ => one == other,
    }
}

/// All locks of an engine.
pub struct LockTable {
    pub(crate) shards: Vec<Shard>,
    pub(crate) ranges: Ranges,
    pub(crate) packed: Packed,
    pub(crate) waiters: Waits,
    clock: RealClock,
    next_owner: AtomicU64,
    waits: AtomicU64,
    deadlocks: AtomicU64,
    wait_times: Histogram,
}

impl Default for LockTable {
    fn default() -> Self {
        LockTable::new()
    }
}

impl LockTable {
    /// No locks.
    pub fn new() -> LockTable {
        LockTable {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            ranges: Ranges::new(),
            packed: Packed::new(),
            waiters: Waits::new(),
            clock: RealClock::new(),
            next_owner: AtomicU64::new(1),
            waits: AtomicU64::new(0),
            deadlocks: AtomicU64::new(0),
            wait_times: Histogram::new(),
        }
    }

    /// Creates a holder without locks.
    pub fn new_owner(&self) -> Arc<Owner> {
        self.new_owner_for(Tag::default())
    }

    /// Like `new_owner`; reports return `tag`.
    pub fn new_owner_for(&self, tag: Tag) -> Arc<Owner> {
        self.owner(self.next_owner.fetch_add(1, Ordering::Relaxed), tag)
    }

    /// Like `new_owner_for`, for a caller that creates many owners and keeps `numbers` for the next ones.
    pub fn new_owner_from(&self, numbers: &mut OwnerNumbers, tag: Tag) -> Arc<Owner> {
        self.owner(numbers.draw(&self.next_owner), tag)
    }

    fn owner(&self, id: u64, tag: Tag) -> Arc<Owner> {
        Arc::new(Owner::new(id, tag, self.clock.wall_coarse()))
    }

    /// Switches deadlock detection, from the next wait on. Without it, lock wait timeouts end deadlocks.
    pub fn set_deadlock_detection(&self, detects: bool) {
        self.waiters.set_detection(detects);
    }

    /// Durations of waits.
    pub fn wait_times(&self) -> Summary {
        self.wait_times.summary()
    }

    /// Counters.
    pub fn events(&self) -> WaitEvents {
        let entries = self.shards.iter().map(|shard| shard.count.load(Ordering::Relaxed));
        WaitEvents {
            entries: entries.sum::<usize>() as u64,
            packed: self.packed.size().1 as u64,
            waits: self.waits.load(Ordering::Relaxed),
            deadlocks: self.deadlocks.load(Ordering::Relaxed),
        }
    }

    /// Approximate bytes of memory, for entries with short names and one holder.
    pub fn memory_bytes(&self) -> usize {
        /// The entry in the map, its list, and the name there and in the holder's list.
        const ENTRY_BYTES: usize = size_of::<(Box<[u8]>, Entry)>() + 64 + 2 * 32;
        let entries = self.shards.iter().map(|shard| shard.count.load(Ordering::Relaxed));
        self.shards.len() * size_of::<Shard>()
            + entries.sum::<usize>() * ENTRY_BYTES
            + self.packed.size().0
    }

    /// Keys that differ only in the low bits of their last byte share a shard: a transaction that locks or writes row after row finds the shard in its caches.
    fn shard(&self, name: &[u8]) -> &Shard {
        let (last, group) = name.split_last().unwrap_or((&0, &[]));
        let hash = stdx::hash_bytes(u64::from(last >> NEAR_BITS), group);
        &self.shards[hash as usize & (SHARDS - 1)]
    }

    /// Takes the lock if no other transaction blocks it. The caller holds the record's page latched.
    pub fn try_lock(&self, owner: &Arc<Owner>, name: &[u8], mode: Mode) -> bool {
        if lock_stats::is_on() {
            lock_stats::acquired_without_end(Of::Class(&ROWS));
        }
        let shard = self.shard(name);
        let mut entries = shard.entries.lock();
        let entry = shard.entry(&mut entries, name);
        let packed = self.packed_on(Some(owner), name);
        let is_packed = entry.unpack(&packed, Some(owner), name, mode);
        if entry.is_blocked(Some(owner), mode) {
            return false;
        }
        if is_packed {
            shard.drop_if_unused(&mut entries, name);
            return true;
        }
        if entry.grant(owner, mode) {
            owner.held.lock().names.push(name.into());
        }
        entry.note_asked(owner);
        true
    }

    /// Packed locks on a record, if any are another's. The caller holds the shard of the name.
    fn packed_on(&self, owner: Option<&Owner>, name: &[u8]) -> Vec<Hit> {
        match self.packed.has_only(owner) || breaks("L6") {
            true => Vec::new(),
            false => self.packed.find(name),
        }
    }

    /// Packs a transaction's record locks, all but the last `keep`: their entries are removed. For transactions that hold very many, called
    /// without latches. `place` is a value of `Owner::lock_count` from before; returns what it is now.
    pub fn pack(&self, owner: &Arc<Owner>, keep: usize, place: usize) -> usize {
        let (mut names, place) = owner.held.lock().take_older(keep, place);
        names.retain(|name| !name.is_empty());
        names.sort_unstable();
        let mut modes = Vec::with_capacity(names.len());
        for near in names.chunk_by(|one, other| is_near(one, other)) {
            let entries = self.shard(&near[0]).entries.lock();
            let mode =
                |name| entries.get(name).and_then(|entry: &Entry| entry.mode_if_quiet(owner));
            modes.extend(near.iter().map(|name| mode(&**name)));
        }
        let mut groups = [(Mode::Shared, Vec::new()), (Mode::Exclusive, Vec::new())];
        let mut kept = Vec::new();
        for (name, mode) in names.into_iter().zip(modes) {
            match mode {
                Some(Mode::Shared) => groups[0].1.push(name),
                Some(Mode::Exclusive) => groups[1].1.push(name),
                None => kept.push(name),
            }
        }
        for (mode, names) in groups {
            self.packed.add(owner, &names, mode);
            for near in names.chunk_by(|one, other| is_near(one, other)) {
                let shard = self.shard(&near[0]);
                let mut entries = shard.entries.lock();
                for name in near {
                    // Since then another transaction may have begun to await it.
                    match entries.entry_ref(&**name) {
                        EntryRef::Occupied(mut entry)
                            if entry.get().mode_if_quiet(owner).is_some() =>
                        {
                            entry.get_mut().granted.retain(|grant| grant.owner.id != owner.id);
                            if entry.get().is_unused() {
                                entry.remove();
                                shard.note_removed(&mut entries);
                            }
                        }
                        EntryRef::Occupied(_) | EntryRef::Vacant(_) => kept.push(name.clone()),
                    }
                }
            }
        }
        let mut held = owner.held.lock();
        let place = place + kept.len();
        held.names.splice(..0, kept);
        place
    }

    /// Whether another transaction holds or awaits a lock on the record. The caller holds its page latched exclusively; a thread that locks
    /// holds it shared, so the count is up to date.
    pub fn is_locked_by_other(&self, owner: Option<&Owner>, name: &[u8]) -> bool {
        let shard = self.shard(name);
        if shard.count.load(Ordering::Acquire) == 0 && self.packed.has_only(owner) {
            return false;
        }
        let mut entries = shard.entries.lock();
        let packed = self.packed_on(owner, name);
        if packed.is_empty() {
            let entry = entries.get(name);
            return entry.is_some_and(|entry| entry.is_blocked(owner, Mode::Exclusive));
        }
        let entry = shard.entry(&mut entries, name);
        entry.unpack(&packed, owner, name, Mode::Exclusive);
        let is_locked = entry.is_blocked(owner, Mode::Exclusive);
        shard.drop_if_unused(&mut entries, name);
        is_locked
    }

    /// Gives an active writer's implicit lock an entry, so that others can queue behind it.
    pub fn make_explicit(&self, owner: &Arc<Owner>, name: &[u8]) {
        let has_waiters = {
            let shard = self.shard(name);
            let mut entries = shard.entries.lock();
            let mut held = owner.held.lock();
            if held.ended {
                return;
            }
            let entry = shard.entry(&mut entries, name);
            let is_new = entry.grant(owner, Mode::Exclusive);
            entry.note_written(owner);
            if is_new {
                held.names.push(name.into());
            }
            is_new && !entry.waiting.is_empty()
        };
        // When they came it was not known yet that they wait for this one too.
        if has_waiters {
            self.waiters.check(owner, |id, wait, covered| self.awaited_by(id, wait, covered));
        }
    }

    /// Queues for the lock and waits. The caller holds no latch; afterwards it reads the record again.
    ///
    /// # Errors
    /// See `WaitError`; the lock is then not held.
    pub fn wait_lock(
        &self,
        owner: &Arc<Owner>,
        name: &[u8],
        mode: Mode,
        patience: &Patience<'_>,
    ) -> Result<(), WaitError> {
        let shard = self.shard(name);
        {
            let mut entries = shard.entries.lock();
            let entry = shard.entry(&mut entries, name);
            entry.unpack(&self.packed_on(Some(owner), name), Some(owner), name, mode);
            if !entry.is_blocked(Some(owner), mode) {
                if entry.grant(owner, mode) {
                    owner.held.lock().names.push(name.into());
                }
                return Ok(());
            }
            if !breaks("waiting before queued") {
                *owner.wait.lock() = WaitState::Waiting;
            }
            // An upgrade goes before the others: they wait for this transaction anyway.
            match entry.mode_of(owner.id) {
                Some(_) => entry.waiting.push_front((owner.clone(), mode)),
                None => entry.waiting.push_back((owner.clone(), mode)),
            }
        }
        if breaks("waiting before queued") {
            *owner.wait.lock() = WaitState::Waiting;
        }
        let outcome = self.wait(owner, Awaited::Record(name.into()), patience);
        if outcome.is_err() {
            let mut entries = shard.entries.lock();
            if let Some(entry) = entries.get_mut(name) {
                entry.waiting.retain(|(waiter, _)| waiter.id != owner.id);
                entry.promote(name);
            }
            shard.drop_if_unused(&mut entries, name);
        }
        outcome
    }

    /// Waits until `blockers[0]` ends. `insert` is the name of the key to be inserted, if that is the reason.
    ///
    /// # Errors
    /// See `WaitError`.
    pub fn wait_end(
        &self,
        owner: &Arc<Owner>,
        blockers: &[Arc<Owner>],
        insert: Option<&[u8]>,
        patience: &Patience<'_>,
    ) -> Result<(), WaitError> {
        let Some(first) = blockers.first().cloned() else { return Ok(()) };
        {
            let mut held = first.held.lock();
            if held.ended {
                return Ok(());
            }
            *owner.wait.lock() = WaitState::Waiting;
            held.end_waiters.push(owner.clone());
        }
        let ends = blockers.iter().map(|blocker| blocker.id).collect();
        let outcome = self.wait(owner, Awaited::Ends(ends, insert.map(Box::from)), patience);
        if outcome.is_err() {
            first.held.lock().end_waiters.retain(|waiter| waiter.id != owner.id);
        }
        outcome
    }

    /// The wait itself: the caller has set the state to `Waiting` and is in a queue.
    fn wait(
        &self,
        owner: &Arc<Owner>,
        awaited: Awaited,
        patience: &Patience<'_>,
    ) -> Result<(), WaitError> {
        self.waits.fetch_add(1, Ordering::Relaxed);
        let is_awaited = |awaited: &Awaited| owner.holds_any() || self.has_next(owner, awaited);
        let awaited_by = |id, wait: &_, covered: &mut _| self.awaited_by(id, wait, covered);
        self.waiters.add(owner, awaited, is_awaited, awaited_by);
        let outcome = self.wait_times.time(|| blocking(|| self.park(owner, patience)));
        self.waiters.remove(owner);
        *owner.wait.lock() = WaitState::Running;
        outcome
    }

    fn park(&self, owner: &Owner, patience: &Patience<'_>) -> Result<(), WaitError> {
        let _waiting = waits::enter(waits::Wait::RowLock);
        let _counted = lock_stats::begin(Of::Class(&ROWS));
        let _seen = sys::probes::lock_wait(owner.id);
        let deadline = self.clock.monotonic().saturating_add(patience.timeout);
        let mut state = owner.wait.lock();
        loop {
            match *state {
                WaitState::Granted | WaitState::Running => return Ok(()),
                WaitState::Victim => {
                    self.deadlocks.fetch_add(1, Ordering::Relaxed);
                    return Err(WaitError::Deadlock);
                }
                WaitState::Waiting => {}
            }
            let left = deadline.saturating_sub(self.clock.monotonic());
            let failure = match ((patience.is_cancelled)(), left.is_zero()) {
                (true, _) => Some(WaitError::Cancelled),
                (false, true) => Some(WaitError::Timeout),
                (false, false) => None,
            };
            if let Some(failure) = failure {
                *state = WaitState::Running;
                return Err(failure);
            }
            state = owner.wake.wait_for(state, left.min(CANCEL_POLL));
        }
    }

    /// As for a victim that has not left its queue yet.
    #[cfg(test)]
    pub(crate) fn forget_wait(&self, owner: &Owner) {
        self.waiters.remove(owner);
    }

    /// The transactions that a waiter waits for; see `AwaitedBy`.
    fn awaited_by(&self, id: u64, awaited: &Awaited, covered: &mut HashSet<u64>) -> Vec<u64> {
        match awaited {
            Awaited::Record(name) => {
                let entries = self.shard(name).entries.lock();
                entries.get(name).map_or(Vec::new(), |entry| entry.awaited_by(id, covered))
            }
            Awaited::Ends(others, _) => others.clone(),
        }
    }

    /// Whether another transaction queues behind a waiter.
    fn has_next(&self, owner: &Owner, awaited: &Awaited) -> bool {
        let Awaited::Record(name) = awaited else { return false };
        let entries = self.shard(name).entries.lock();
        let last = entries.get(name).and_then(|entry| entry.waiting.back());
        last.is_some_and(|(waiter, _)| waiter.id != owner.id)
    }

    /// Releases all locks of a transaction. It has already committed or rolled back.
    pub fn release_all(&self, owner: &Arc<Owner>) {
        let packed;
        let (names, spaces, waiters) = {
            let mut held = owner.held.lock();
            held.ended = true;
            let names = std::mem::take(&mut held.names);
            let waiters = std::mem::take(&mut held.end_waiters);
            packed = std::mem::take(&mut held.packed_spaces);
            (names, std::mem::take(&mut held.spaces), waiters)
        };
        // Before the entries: a waiter that their removal wakes must not find these.
        self.packed.release(owner, &packed);
        self.ranges.release(owner, spaces);
        let names = names.iter().filter(|name| !name.is_empty());
        names.for_each(|name| self.release_one(owner, name));
        waiters.iter().for_each(|waiter| waiter.resolve_wait(WaitState::Granted));
    }

    fn release_one(&self, owner: &Owner, name: &[u8]) {
        let shard = self.shard(name);
        let mut entries = shard.entries.lock();
        if let Some(entry) = entries.get_mut(name) {
            entry.granted.retain(|grant| grant.owner.id != owner.id);
            entry.promote(name);
        }
        shard.drop_if_unused(&mut entries, name);
    }

    /// Releases a lock taken since `first` (a value of `Owner::lock_count`), unless it was requested more than once, as another part of
    /// the statement may rely on it, or its record was written.
    pub fn release_early(&self, owner: &Owner, name: &[u8], first: usize) {
        let is_free = |grant: &Grant| grant.owner.id == owner.id && grant.asked != Asked::Always;
        let may_go = |entry: &Entry| entry.granted.iter().any(is_free);
        if !self.shard(name).entries.lock().get(name).is_some_and(may_go) {
            return;
        }
        {
            let mut held = owner.held.lock();
            let recent = held.names.get(first..).unwrap_or_default();
            let Some(at) = recent.iter().rposition(|lock| **lock == *name) else { return };
            held.names.swap_remove(first + at);
        }
        self.release_one(owner, name);
    }

    /// Forgets the lock on a record that its owner has just written, unless another transaction shares or awaits it: the row itself names
    /// its holder. The caller holds the record's page latched exclusively.
    pub fn forget_implied(&self, owner: &Owner, name: &[u8]) {
        let shard = self.shard(name);
        if shard.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut entries = shard.entries.lock();
        let is_alone = |entry: &Entry| entry.mode_if_alone(owner).is_some();
        if entries.get(name).is_some_and(is_alone) && owner.held.lock().forget(name) {
            entries.remove(name);
            shard.note_removed(&mut entries);
        } else if let Some(entry) = entries.get_mut(name) {
            entry.note_written(owner);
        }
    }

    /// Locks a span of keys against inserts by others, before the scan latches the pages that it reads.
    pub fn lock_range(&self, owner: &Arc<Owner>, space: u64, start: &[u8], end: Option<&[u8]>) {
        self.ranges.add(owner, space, start, end);
    }

    /// Locks all keys of a space against inserts of others, if no span of it is locked yet, also by the owner.
    pub fn lock_space_alone(&self, owner: &Arc<Owner>, space: u64) -> bool {
        self.ranges.add_alone(owner, space)
    }

    /// Number of spans.
    pub fn range_count(&self) -> usize {
        self.ranges.count()
    }

    /// Undoes `lock_space_alone`.
    pub fn unlock_space(&self, owner: &Owner, space: u64) {
        self.ranges.release(owner, vec![space]);
    }

    /// Other transactions that have locked any span of a space.
    pub fn space_blockers(&self, owner: &Owner, space: u64) -> Vec<Arc<Owner>> {
        self.ranges.others(owner, space)
    }

    /// The transactions whose spans block an insert of `key`. The caller holds the leaf exclusively.
    pub fn range_blockers(&self, owner: Option<&Owner>, space: u64, key: &[u8]) -> Vec<Arc<Owner>> {
        self.ranges.blockers(owner, space, key)
    }
}

impl Shard {
    fn entry<'a>(&self, entries: &'a mut Entries, name: &[u8]) -> &'a mut Entry {
        if entries.capacity() == 0 {
            entries.reserve(ENTRIES_MIN);
        }
        match entries.entry_ref(name) {
            EntryRef::Occupied(entry) => entry.into_mut(),
            EntryRef::Vacant(place) => {
                self.count.fetch_add(1, Ordering::Release);
                place.insert_with_key(name.into(), Entry::default())
            }
        }
    }

    /// Counts a removed entry. An empty shard keeps no memory: the next shard in use then gets recently used memory, which is in the
    /// processor's caches.
    fn note_removed(&self, entries: &mut Entries) {
        self.count.fetch_sub(1, Ordering::Release);
        if entries.is_empty() {
            *entries = Entries::with_hasher(entries.hasher().clone());
        }
    }

    fn drop_if_unused(&self, entries: &mut Entries, name: &[u8]) {
        if let EntryRef::Occupied(entry) = entries.entry_ref(name)
            && entry.get().is_unused()
        {
            entry.remove();
            self.note_removed(entries);
        }
    }
}
