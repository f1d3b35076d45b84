//! How long threads wait for locks, where, and, on request, how long they hold them.
//!
//! A lock belongs to a *class*: a mutex or reader-writer lock to the place in the source where it was made, so that no lock is without a name; latches, row locks and the like to a static
//! [`Class`]. Waits are always counted, by class: only a thread that waits does that. While `set(true)` is in force, every acquisition and its hold time count too, in an array of the
//! thread's own, so that no acquisition writes shared memory; times are then in the processor's ticks. Otherwise an acquisition costs one load of a word that never changes.

use std::cell::Cell;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use stdx::{Extent, SharedExtent};

use crate::clock::monotonic;

/// Kinds of locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `sync::Mutex`.
    Mutex,
    /// `sync::RwLock`.
    RwLock,
    /// The latch of a page in memory.
    Latch,
    /// Locks of transactions.
    RowLock,
    /// Locks of definitions, and user locks.
    MetadataLock,
}

impl Kind {
    /// The word that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Mutex => "mutex",
            Kind::RwLock => "rwlock",
            Kind::Latch => "latch",
            Kind::RowLock => "row lock",
            Kind::MetadataLock => "metadata lock",
        }
    }
}

/// Locks with a name of their own.
#[derive(Debug)]
pub struct Class {
    name: &'static str,
    kind: Kind,
}

impl Class {
    /// Locks of one kind and name; for a static.
    pub const fn new(name: &'static str, kind: Kind) -> Class {
        Class { name, kind }
    }
}

/// The class of a lock.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// Made here.
    Place(&'static Location<'static>, Kind),
    /// Named.
    Class(&'static Class),
}

impl Of {
    fn key(self) -> usize {
        match self {
            Of::Place(place, _) => std::ptr::from_ref(place).addr(),
            Of::Class(class) => std::ptr::from_ref(class).addr(),
        }
    }

    fn kind(self) -> Kind {
        match self {
            Of::Place(_, kind) => kind,
            Of::Class(class) => class.kind,
        }
    }

    /// `crate/file.rs:line`, or the class's name.
    fn name(self) -> String {
        match self {
            Of::Place(place, _) => {
                let file = place.file().replace("crates/", "").replace("plugins/", "");
                format!("{}:{}", file.replace("/src/", "/"), place.line())
            }
            Of::Class(class) => class.name.to_owned(),
        }
    }
}

/// Classes at most; a power of two. Later ones are not counted.
const CLASSES: usize = 1024;

/// What a class's waits came to.
struct Waits {
    waits: AtomicU64,
    wait_nanos: AtomicU64,
    extent: SharedExtent,
    /// The longest wait whose stack was kept.
    stack_nanos_max: AtomicU64,
    spins: AtomicU64,
    spin_nanos: AtomicU64,
    unlock_wakes: AtomicU64,
    unlock_nanos: AtomicU64,
}

impl Waits {
    const fn new() -> Waits {
        Waits {
            waits: AtomicU64::new(0),
            wait_nanos: AtomicU64::new(0),
            extent: SharedExtent::new(),
            stack_nanos_max: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            spin_nanos: AtomicU64::new(0),
            unlock_wakes: AtomicU64::new(0),
            unlock_nanos: AtomicU64::new(0),
        }
    }
}

/// One thread's acquisitions of a class, in ticks. Only that thread writes.
#[derive(Default)]
struct Holds {
    acquires: AtomicU64,
    held: AtomicU64,
    held_max: AtomicU64,
    unlocking: AtomicU64,
}

static KEYS: [AtomicUsize; CLASSES] = [const { AtomicUsize::new(0) }; CLASSES];
static WAITS: [Waits; CLASSES] = [const { Waits::new() }; CLASSES];
static IS_ON: AtomicBool = AtomicBool::new(false);

struct Registry {
    /// By the class's number.
    classes: Vec<(usize, Of)>,
    /// The stack of the thread with the longest wait, by the class's number.
    stacks: Vec<(usize, Vec<u64>)>,
    /// Of each thread that has counted, also of those that ended.
    holds: Vec<&'static [Holds]>,
    /// Arrays of threads that ended: the next thread goes on with one.
    unused: Vec<&'static [Holds]>,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    classes: Vec::new(),
    stacks: Vec::new(),
    holds: Vec::new(),
    unused: Vec::new(),
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether acquisitions are counted.
#[inline]
pub fn is_on() -> bool {
    // Relaxed: a switch holds for the acquisitions that see it. Under a model nothing is counted.
    !cfg!(any(loom, shuttle)) && IS_ON.load(Ordering::Relaxed)
}

/// Begins or ends the counting of acquisitions.
pub fn set(on: bool) {
    start_of_ticks();
    IS_ON.store(on, Ordering::Relaxed);
}

/// The class's number. `None` when there are too many classes.
fn number(of: Of) -> Option<usize> {
    let key = of.key();
    let first = (key >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - CLASSES.ilog2());
    for step in 0..CLASSES {
        let at = (first + step) % CLASSES;
        match KEYS[at].load(Ordering::Relaxed) {
            0 => return add_class(of, at),
            known if known == key => return Some(at),
            _ => {}
        }
    }
    None
}

#[cold]
fn add_class(of: Of, from: usize) -> Option<usize> {
    let mut registry = registry();
    let free = |at: &usize| {
        matches!(KEYS[*at].load(Ordering::Relaxed), 0)
            || KEYS[*at].load(Ordering::Relaxed) == of.key()
    };
    // One is kept free, so that a search ends.
    let at = (from..CLASSES).chain(0..from).find(free)?;
    if registry.classes.len() + 1 >= CLASSES {
        return None;
    }
    if KEYS[at].load(Ordering::Relaxed) == 0 {
        registry.classes.push((at, of));
        KEYS[at].store(of.key(), Ordering::Relaxed);
    }
    Some(at)
}

/// The array of the calling thread, given back when it ends.
struct Own(Cell<Option<&'static [Holds]>>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(holds) = self.0.take() {
            registry().unused.push(holds);
        }
    }
}

thread_local! {
    static OWN: Own = const { Own(Cell::new(None)) };
}

fn own() -> Option<&'static [Holds]> {
    OWN.try_with(|own| {
        if own.0.get().is_none() {
            let mut registry = registry();
            let holds = registry.unused.pop().unwrap_or_else(|| {
                let fresh: Box<[Holds]> = (0..CLASSES).map(|_| Holds::default()).collect();
                let fresh: &'static [Holds] = Box::leak(fresh);
                registry.holds.push(fresh);
                fresh
            });
            own.0.set(Some(holds));
        }
        own.0.get()
    })
    .ok()
    .flatten()
}

/// The processor's counter, which is cheaper than the clock; never 0.
#[inline]
fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this architecture has the instruction; the kernel lets programs use it.
    let now = unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let now = nanos(monotonic());
    now.max(1)
}

fn start_of_ticks() -> (u64, Duration) {
    static START: OnceLock<(u64, Duration)> = OnceLock::new();
    *START.get_or_init(|| (ticks(), monotonic()))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds of a tick, as measured since the first `set`.
fn nanos_per_tick() -> f64 {
    let (ticks_then, then) = start_of_ticks();
    let (passed, time) = (ticks().saturating_sub(ticks_then), monotonic().saturating_sub(then));
    if passed == 0 { 1.0 } else { nanos(time) as f64 / passed as f64 }
}

/// A lock was taken while counting is on: the time in ticks, for `released`.
#[cold]
pub(crate) fn acquired(of: Of) -> u64 {
    acquired_without_end(of);
    ticks()
}

/// A lock was taken whose hold time is not measured. Call it only when `is_on`.
#[cold]
pub fn acquired_without_end(of: Of) {
    if let (Some(at), Some(own)) = (number(of), own()) {
        let acquires = &own[at].acquires;
        acquires.store(acquires.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A lock that was `acquired` at `since` is given back by `unlock`.
#[cold]
pub(crate) fn released(of: Of, since: u64, unlock: impl FnOnce()) {
    let end = ticks();
    unlock();
    let unlocked = ticks();
    if let (Some(at), Some(own)) = (number(of), own()) {
        let (holds, held) = (&own[at], end.saturating_sub(since));
        let add = |word: &AtomicU64, more: u64| {
            word.store(word.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        };
        add(&holds.held, held);
        add(&holds.unlocking, unlocked.saturating_sub(end));
        holds.held_max.store(holds.held_max.load(Ordering::Relaxed).max(held), Ordering::Relaxed);
    }
}

/// A wait for a lock, begun with `begin`, counted when it is dropped.
#[must_use]
pub struct Waiting {
    of: Of,
    start: Duration,
    spins: u32,
    spun: Duration,
}

/// The calling thread begins to wait for a lock.
pub fn begin(of: Of) -> Waiting {
    Waiting { of, start: monotonic(), spins: 0, spun: Duration::ZERO }
}

impl Waiting {
    /// So far the wait was spinning.
    pub fn spun(&mut self, spins: u32) {
        self.spins = spins;
        self.spun = monotonic().saturating_sub(self.start);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(at) = number(self.of) else { return };
        let waits = &WAITS[at];
        let took = nanos(monotonic().saturating_sub(self.start));
        let spun = nanos(self.spun).min(took);
        waits.waits.fetch_add(1, Ordering::Relaxed);
        waits.wait_nanos.fetch_add(took - spun, Ordering::Relaxed);
        waits.spins.fetch_add(self.spins.into(), Ordering::Relaxed);
        waits.spin_nanos.fetch_add(spun, Ordering::Relaxed);
        waits.extent.add(took);
        // Of the waits whose stack was kept, not of all: those before `lock_stats` was on have none.
        let longest = waits.stack_nanos_max.load(Ordering::Relaxed);
        if is_on() && took > longest.saturating_add(longest / 2).max(STACK_WAIT_MIN_NANOS) {
            waits.stack_nanos_max.fetch_max(took, Ordering::Relaxed);
            keep_stack(at);
        }
    }
}

/// Shorter waits are not worth a stack.
const STACK_WAIT_MIN_NANOS: u64 = 10_000;

/// Keeps the calling thread's stack as that of the class's longest wait.
#[cold]
fn keep_stack(at: usize) {
    let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
    let Some(stack) = crate::stacks::capture_thread(own) else { return };
    let mut registry = registry();
    registry.stacks.retain(|(class, _)| *class != at);
    registry.stacks.push((at, stack));
}

/// A lock of the class was given back in a way that took `time`, because other threads had to be woken.
pub fn woke(of: Of, time: Duration) {
    if let Some(at) = number(of) {
        WAITS[at].unlock_wakes.fetch_add(1, Ordering::Relaxed);
        WAITS[at].unlock_nanos.fetch_add(nanos(time), Ordering::Relaxed);
    }
}

/// The counts of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockStats {
    /// `crate/file.rs:line` of the place where the lock is made, or the name of the class.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Acquisitions while counting was on.
    pub acquires: u64,
    /// Acquisitions that waited; counted always, as everything below but holds.
    pub waits: u64,
    /// Spins before the thread slept.
    pub spins: u64,
    /// Time of these spins.
    pub spin_nanos: u64,
    /// Releases that woke other threads. No release spins.
    pub unlock_wakes: u64,
    /// Time of releases: of those that woke others, and of all while counting was on.
    pub unlock_nanos: u64,
    /// Time of waits, without the spins that are counted.
    pub wait_nanos: u64,
    /// The shortest and the longest wait, nanoseconds.
    pub extent: Extent,
    /// Time between acquisition and release, while counting was on.
    pub hold_nanos: u64,
    /// The longest such time.
    pub hold_nanos_max: u64,
    /// Stack of the thread with the longest wait while counting was on, the innermost address first.
    pub stack: Vec<u64>,
}

/// All classes that were counted so far.
pub fn all() -> Vec<LockStats> {
    let registry = registry();
    let ratio = nanos_per_tick();
    let in_nanos = |ticks: u64| (ticks as f64 * ratio) as u64;
    let mut found: Vec<LockStats> = Vec::new();
    for (at, of) in &registry.classes {
        let sum = |value: fn(&Holds) -> &AtomicU64| -> u64 {
            registry.holds.iter().map(|own| value(&own[*at]).load(Ordering::Relaxed)).sum()
        };
        let longest = registry.holds.iter().map(|own| own[*at].held_max.load(Ordering::Relaxed));
        let waits = &WAITS[*at];
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let stack = registry.stacks.iter().find(|(class, _)| class == at);
        let stats = LockStats {
            name: of.name(),
            kind: of.kind(),
            acquires: sum(|own| &own.acquires),
            waits: load(&waits.waits),
            spins: load(&waits.spins),
            spin_nanos: load(&waits.spin_nanos),
            unlock_wakes: load(&waits.unlock_wakes),
            unlock_nanos: load(&waits.unlock_nanos) + in_nanos(sum(|own| &own.unlocking)),
            wait_nanos: load(&waits.wait_nanos),
            extent: waits.extent.get(),
            hold_nanos: in_nanos(sum(|own| &own.held)),
            hold_nanos_max: in_nanos(longest.max().unwrap_or(0)),
            stack: stack.map_or_else(Vec::new, |(_, stack)| stack.clone()),
        };
        // The compiler may keep one place several times.
        match found.iter_mut().find(|one| one.name == stats.name && one.kind == stats.kind) {
            Some(known) => known.add(stats),
            None => found.push(stats),
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

impl LockStats {
    fn add(&mut self, other: LockStats) {
        let is_longer = self.stack.is_empty() || other.extent.most() > self.extent.most();
        if is_longer && !other.stack.is_empty() {
            self.stack = other.stack;
        }
        self.acquires += other.acquires;
        self.waits += other.waits;
        self.spins += other.spins;
        self.spin_nanos += other.spin_nanos;
        self.unlock_wakes += other.unlock_wakes;
        self.unlock_nanos += other.unlock_nanos;
        self.wait_nanos += other.wait_nanos;
        self.extent = self.extent.and(other.extent);
        self.hold_nanos += other.hold_nanos;
        self.hold_nanos_max = self.hold_nanos_max.max(other.hold_nanos_max);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use crate::sync;
    use crate::waits::{self, Wait};

    fn of_this_file(line: u32) -> LockStats {
        let name = format!("sys/lock_stats.rs:{line}");
        all().into_iter().find(|one| one.name == name).unwrap()
    }

    #[test]
    fn waits_count_always_and_acquisitions_on_request() {
        let (mutex, line) = (sync::Arc::new(sync::Mutex::new(())), line!());
        let wait_once = || {
            let held = mutex.lock();
            let theirs = mutex.clone();
            let thread = crate::threads::spawn("lock-stats", move || drop(theirs.lock())).unwrap();
            while !waits::threads()
                .iter()
                .any(|one| one.name == "lock-stats" && one.wait == Wait::Mutex)
            {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(2));
            drop(held);
            thread.join();
        };
        wait_once();
        let first = of_this_file(line);
        assert_eq!((first.kind, first.acquires, first.waits), (Kind::Mutex, 0, 1));
        assert!(first.wait_nanos >= 2_000_000 && first.extent.most() >= 2_000_000);
        assert!(first.stack.is_empty());
        set(true);
        wait_once();
        std::thread::sleep(Duration::from_millis(1));
        let second = of_this_file(line);
        set(false);
        drop(mutex.lock());
        assert_eq!((second.acquires, second.waits), (2, 2));
        assert!(second.hold_nanos >= 2_000_000, "the first thread held it meanwhile: {second:?}");
        assert!(second.hold_nanos_max <= second.hold_nanos && second.unlock_nanos > 0);
        assert_eq!(of_this_file(line).acquires, 2, "counting is off again");
    }
}
