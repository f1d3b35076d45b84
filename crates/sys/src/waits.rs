//! What each thread waits for now, and how long it has waited for what so far.
//!
//! A thread has a slot of a fixed table from its first wait (threads of `crate::threads` from their start) until it ends. Only the thread itself writes to its slot, and
//! only where it really blocks, so that running code pays nothing. The table is bounded: threads beyond it wait unseen.
//!
//! Waits nest: the outermost says what for. A wait for a row lock that sleeps on a condition counts as a row lock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stdx::{Extent, SharedExtent};

use crate::clock::monotonic;

/// The object of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Wait {
    /// None: the thread runs, or would like to.
    Running,
    /// Work: a client's next command, a background thread's next turn.
    Idle,
    /// A mutex or a reader-writer lock.
    Mutex,
    /// A page latch.
    Latch,
    /// A lock of a row or of a range of rows, held by a transaction.
    RowLock,
    /// A metadata lock or a user lock.
    MetadataLock,
    /// Writing the log: of this thread or of another one that writes for it.
    LogFlush,
    /// A read of a file.
    Read,
    /// A write of a file other than the log.
    Write,
    /// A file other than the log to become durable.
    Sync,
    /// A peer: room to send to it, or the rest of a message.
    Network,
    /// Time to pass.
    Sleep,
}

impl Wait {
    /// Kinds of waits.
    pub const COUNT: usize = 12;
    /// All of them, in their order.
    pub const ALL: [Wait; Wait::COUNT] = [
        Wait::Running,
        Wait::Idle,
        Wait::Mutex,
        Wait::Latch,
        Wait::RowLock,
        Wait::MetadataLock,
        Wait::LogFlush,
        Wait::Read,
        Wait::Write,
        Wait::Sync,
        Wait::Network,
        Wait::Sleep,
    ];

    /// The word that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            Wait::Running => "running",
            Wait::Idle => "idle",
            Wait::Mutex => "mutex",
            Wait::Latch => "latch",
            Wait::RowLock => "row lock",
            Wait::MetadataLock => "metadata lock",
            Wait::LogFlush => "log flush",
            Wait::Read => "read",
            Wait::Write => "write",
            Wait::Sync => "sync",
            Wait::Network => "network",
            Wait::Sleep => "sleeping",
        }
    }
}

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// How many have ended.
    pub count: u64,
    /// Their time in all.
    pub nanos: u64,
}

/// Waits of a thread by kind. Waits of a connection's thread for the next command are marked, but neither counted nor timed: that would cost each statement two looks at the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals([Total; Wait::COUNT]);

impl Totals {
    /// Waits of one kind.
    pub fn of(&self, wait: Wait) -> Total {
        self.0[wait as usize]
    }

    /// How many have ended, of all kinds.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|total| total.count).sum()
    }

    /// The kinds that something was waited for, with their totals.
    pub fn kinds(&self) -> impl Iterator<Item = (Wait, Total)> {
        Wait::ALL.into_iter().map(|wait| (wait, self.of(wait))).filter(|(_, total)| total.count > 0)
    }

    /// The waits since `earlier` of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &Totals) -> Totals {
        Totals(std::array::from_fn(|at| Total {
            count: self.0[at].count.saturating_sub(earlier.0[at].count),
            nanos: self.0[at].nanos.saturating_sub(earlier.0[at].nanos),
        }))
    }

    /// Adds the waits of another thread that worked for the same statement.
    pub fn add(&mut self, other: &Totals) {
        for (total, more) in self.0.iter_mut().zip(&other.0) {
            total.count += more.count;
            total.nanos += more.nanos;
        }
    }
}

/// The shortest and the longest wait of each kind, nanoseconds.
pub type Extents = [Extent; Wait::COUNT];

/// A thread as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadWaits {
    /// Number of its slot; another thread may have it later.
    pub slot: u32,
    /// The thread's name.
    pub name: String,
    /// The operating system's number of the thread.
    pub thread_id: u32,
    /// Monotonic time (`clock::monotonic`) when it got its slot.
    pub started: Duration,
    /// What it waits for now.
    pub wait: Wait,
    /// Since when, monotonic. `None` while it runs, and for waits that are not timed.
    pub since: Option<Duration>,
    /// Its waits that have ended.
    pub totals: Totals,
    /// The shortest and the longest of them by kind, nanoseconds.
    pub extents: Extents,
    /// Bytes that its statement's operators hold, in steps of a MiB (`hold`).
    pub held_bytes: u64,
    /// Time on a processor, as the kernel counts it. `None` when the thread has just ended.
    pub cpu: Option<Duration>,
}

/// Threads that have slots at most.
const SLOTS: usize = 4096;
/// In place of a slot's number: the thread has none.
pub const NO_SLOT: u32 = u32::MAX;
/// Bits of a `Wait` below the time in `Slot::current`.
const WAIT_BITS: u32 = 4;

#[repr(align(128))]
struct Slot {
    /// 0: nobody has it.
    thread_id: AtomicU32,
    started: AtomicU64,
    /// A `Wait` and, above it, when it began in monotonic nanoseconds (0: not timed): one word, so that others see both of one wait.
    current: AtomicU64,
    counts: [AtomicU64; Wait::COUNT],
    nanos: [AtomicU64; Wait::COUNT],
    extents: [SharedExtent; Wait::COUNT],
    held_bytes: AtomicU64,
    pages: AtomicU64,
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        thread_id: AtomicU32::new(0),
        started: AtomicU64::new(0),
        current: AtomicU64::new(0),
        counts: [const { AtomicU64::new(0) }; Wait::COUNT],
        nanos: [const { AtomicU64::new(0) }; Wait::COUNT],
        extents: [const { SharedExtent::new() }; Wait::COUNT],
        held_bytes: AtomicU64::new(0),
        pages: AtomicU64::new(0),
    }
}; SLOTS];

/// Names by slot, slots that were given back, and the first one that nobody ever had.
struct Registry {
    names: Vec<String>,
    free: Vec<u32>,
    /// Waits of threads that have ended.
    ended: Totals,
    ended_extents: Extents,
    ended_pages: u64,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    names: Vec::new(),
    free: Vec::new(),
    ended: Totals([Total { count: 0, nanos: 0 }; Wait::COUNT]),
    ended_extents: [Extent::NONE; Wait::COUNT],
    ended_pages: 0,
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gives the slot back when the thread ends.
struct Lease(u32);

impl Drop for Lease {
    fn drop(&mut self) {
        let _ended = SLOT.try_with(|slot| slot.set(NO_SLOT));
        if self.0 != NO_SLOT {
            let mut registry = registry();
            let slot = &TABLE[self.0 as usize];
            registry.ended.add(&slot.totals());
            widen(&mut registry.ended_extents, &slot.extents());
            registry.ended_pages += slot.pages.load(Ordering::Relaxed);
            slot.thread_id.store(0, Ordering::Relaxed);
            registry.free.push(self.0);
        }
    }
}

/// The thread has not asked for a slot yet.
const UNKNOWN: u32 = NO_SLOT - 1;

thread_local! {
    static SLOT: Cell<u32> = const { Cell::new(UNKNOWN) };
    static LEASE: Lease = lease();
}

fn lease() -> Lease {
    let mut registry = registry();
    let number = match registry.free.pop() {
        Some(number) => number,
        None if registry.names.len() < SLOTS => {
            registry.names.push(String::new());
            registry.names.len() as u32 - 1
        }
        None => return Lease(NO_SLOT),
    };
    let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
    registry.names[number as usize] = name;
    let slot = &TABLE[number as usize];
    for word in slot.counts.iter().chain(&slot.nanos) {
        word.store(0, Ordering::Relaxed);
    }
    slot.extents.iter().for_each(SharedExtent::clear);
    slot.current.store(0, Ordering::Relaxed);
    slot.held_bytes.store(0, Ordering::Relaxed);
    slot.pages.store(0, Ordering::Relaxed);
    slot.started.store(now(), Ordering::Relaxed);
    let thread_id = rustix::thread::gettid().as_raw_nonzero().get();
    slot.thread_id.store(thread_id.cast_unsigned(), Ordering::Relaxed);
    Lease(number)
}

/// Monotonic time in nanoseconds; never 0 on a machine that has run for a while.
fn now() -> u64 {
    nanos(monotonic())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The calling thread's slot; `NO_SLOT` when it has none.
#[inline]
pub fn slot() -> u32 {
    // No model runs here: its threads are not the operating system's.
    if cfg!(any(loom, shuttle)) {
        return NO_SLOT;
    }
    match SLOT.try_with(Cell::get).unwrap_or(NO_SLOT) {
        UNKNOWN => take_slot(),
        number => number,
    }
}

#[cold]
fn take_slot() -> u32 {
    let number = LEASE.try_with(|lease| lease.0).unwrap_or(NO_SLOT);
    SLOT.set(number);
    number
}

#[inline]
fn own() -> Option<&'static Slot> {
    TABLE.get(slot() as usize)
}

/// Shows that the calling thread holds so many bytes instead of `before`, of its own or of a statement inside its statement.
pub fn hold(before: u64, now: u64) {
    if let Some(slot) = own() {
        // Only this thread writes it.
        let held = slot.held_bytes.load(Ordering::Relaxed);
        slot.held_bytes.store(held.saturating_sub(before).saturating_add(now), Ordering::Relaxed);
    }
}

/// The calling thread has asked for so many pages more.
#[cold]
pub(crate) fn show_pages(more: u64) {
    if let Some(slot) = own() {
        // Only this thread writes it.
        slot.pages.store(slot.pages.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }
}

/// Pages that all threads with slots have asked the buffer pool for since the start, but for the last ones of each thread: a thread shows 64 at once.
pub fn pages() -> u64 {
    let registry = registry();
    let is_used = |slot: &&Slot| slot.thread_id.load(Ordering::Relaxed) != 0;
    let used = TABLE[..registry.names.len()].iter().filter(is_used);
    registry.ended_pages + used.map(|slot| slot.pages.load(Ordering::Relaxed)).sum::<u64>()
}

/// A wait that lasts until this is dropped.
#[must_use]
pub struct Guard {
    /// `None` inside another wait, and for threads without a slot.
    slot: Option<&'static Slot>,
    wait: Wait,
    since: u64,
}

impl Guard {
    /// Ends the wait at a time (`clock::monotonic`) that the caller knows anyway.
    pub fn end_at(mut self, time: Duration) {
        self.end(|| nanos(time));
    }

    fn end(&mut self, time: impl FnOnce() -> u64) {
        let Some(slot) = self.slot.take() else { return };
        let took = time().saturating_sub(self.since);
        let at = self.wait as usize;
        // Only this thread writes them.
        slot.counts[at].store(slot.counts[at].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        slot.nanos[at].store(slot.nanos[at].load(Ordering::Relaxed) + took, Ordering::Relaxed);
        slot.extents[at].add(took);
        slot.current.store(0, Ordering::Relaxed);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end(now);
    }
}

/// The calling thread waits until the result is dropped. Inside another wait this changes nothing.
pub fn enter(wait: Wait) -> Guard {
    begin(wait, now)
}

/// Like `enter` with a time (`clock::monotonic`) that the caller knows anyway.
pub fn enter_at(wait: Wait, time: Duration) -> Guard {
    begin(wait, || nanos(time))
}

#[inline]
fn begin(wait: Wait, time: impl FnOnce() -> u64) -> Guard {
    let slot = own().filter(|slot| slot.current.load(Ordering::Relaxed) == 0);
    let Some(slot) = slot else { return Guard { slot: None, wait, since: 0 } };
    let since = time();
    slot.current.store(since << WAIT_BITS | wait as u64, Ordering::Relaxed);
    Guard { slot: Some(slot), wait, since }
}

/// Marks the calling thread as idle while `body` waits for a client, without a look at the clock.
#[inline]
pub(crate) fn idle<T>(body: impl FnOnce() -> T) -> T {
    let slot = own().filter(|slot| slot.current.load(Ordering::Relaxed) == 0);
    let Some(slot) = slot else { return body() };
    slot.current.store(Wait::Idle as u64, Ordering::Relaxed);
    let result = body();
    slot.current.store(0, Ordering::Relaxed);
    result
}

fn widen(extents: &mut Extents, more: &Extents) {
    for (extent, more) in extents.iter_mut().zip(more) {
        *extent = extent.and(*more);
    }
}

impl Slot {
    fn extents(&self) -> Extents {
        std::array::from_fn(|at| self.extents[at].get())
    }

    fn totals(&self) -> Totals {
        Totals(std::array::from_fn(|at| Total {
            count: self.counts[at].load(Ordering::Relaxed),
            nanos: self.nanos[at].load(Ordering::Relaxed),
        }))
    }
}

/// The calling thread's waits so far.
pub fn mine() -> Totals {
    own().map_or(Totals::default(), Slot::totals)
}

/// Nanoseconds that the calling thread has waited so far, for each of these kinds.
pub fn mine_nanos<const N: usize>(kinds: [Wait; N]) -> [u64; N] {
    let nanos = |slot: &Slot| kinds.map(|kind| slot.nanos[kind as usize].load(Ordering::Relaxed));
    own().map_or([0; N], nanos)
}

/// How many of the calling thread's waits have ended.
pub fn mine_ended() -> u64 {
    let count = |slot: &Slot| slot.counts.iter().map(|one| one.load(Ordering::Relaxed)).sum();
    own().map_or(0, count)
}

/// All threads that have slots.
pub fn threads() -> Vec<ThreadWaits> {
    // A thread that ends waits for this mutex before another one gets its slot.
    let registry = registry();
    (0..registry.names.len()).filter_map(|number| view(&registry, number)).collect()
}

/// The waits of all threads that have or had slots, and the shortest and the longest of them.
pub fn all() -> (Totals, Extents) {
    let registry = registry();
    let (mut sum, mut extents) = (registry.ended, registry.ended_extents);
    let is_used = |slot: &&Slot| slot.thread_id.load(Ordering::Relaxed) != 0;
    for slot in TABLE[..registry.names.len()].iter().filter(is_used) {
        sum.add(&slot.totals());
        widen(&mut extents, &slot.extents());
    }
    (sum, extents)
}

/// The thread that has a slot, if one has it.
pub fn thread(slot: u32) -> Option<ThreadWaits> {
    view(&registry(), slot as usize)
}

fn view(registry: &Registry, number: usize) -> Option<ThreadWaits> {
    let slot = TABLE.get(number)?;
    let thread_id = slot.thread_id.load(Ordering::Relaxed);
    if thread_id == 0 {
        return None;
    }
    let current = slot.current.load(Ordering::Relaxed);
    let since = current >> WAIT_BITS;
    Some(ThreadWaits {
        slot: number as u32,
        name: registry.names.get(number)?.clone(),
        thread_id,
        started: Duration::from_nanos(slot.started.load(Ordering::Relaxed)),
        wait: Wait::ALL[(current as usize & ((1 << WAIT_BITS) - 1)).min(Wait::COUNT - 1)],
        since: (since > 0).then(|| Duration::from_nanos(since)),
        totals: slot.totals(),
        extents: slot.extents(),
        held_bytes: slot.held_bytes.load(Ordering::Relaxed),
        cpu: crate::clock::thread_cpu(thread_id),
    })
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync::Arc;

    #[test]
    fn a_thread_that_waits_for_a_mutex_is_seen_and_its_time_counts() {
        let mutex = Arc::new(crate::sync::Mutex::new(()));
        let held = mutex.lock();
        let theirs = mutex.clone();
        let thread = std::thread::Builder::new().name("waits-test".into());
        let thread = thread.spawn(move || {
            let before = mine();
            let inside = enter(Wait::RowLock);
            drop(enter(Wait::Sleep));
            drop(inside);
            drop(theirs.lock());
            (slot(), mine().since(&before))
        });
        let thread = thread.unwrap();
        let seen = loop {
            let found = threads().into_iter().find(|one| one.name == "waits-test");
            if let Some(found) = found.filter(|one| one.wait == Wait::Mutex) {
                break found;
            }
            std::thread::yield_now();
        };
        assert!(seen.since.is_some_and(|since| since <= monotonic()));
        assert!(seen.cpu.is_some());
        drop(held);
        let (slot, totals) = thread.join().unwrap();
        assert_eq!(slot, seen.slot);
        assert_eq!(totals.of(Wait::Mutex).count, 1);
        assert_eq!(totals.of(Wait::RowLock).count, 1);
        assert_eq!(totals.of(Wait::Sleep).count, 0, "the outer wait says what for");
        let is_gone =
            |one: &ThreadWaits| one.name != "waits-test" || one.thread_id != seen.thread_id;
        assert!(threads().iter().all(is_gone), "the slot ends with the thread");
    }

    #[test]
    fn slots_are_used_again() {
        for _ in 0..SLOTS + 10 {
            let taken = std::thread::spawn(slot).join().unwrap();
            assert_ne!(taken, NO_SLOT);
        }
    }
}
