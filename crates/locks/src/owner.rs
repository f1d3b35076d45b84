//! A transaction as the lock table knows it.

use std::time::Duration;

use sys::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use sys::sync::{Arc, Condvar, Mutex};

use crate::report::Tag;

/// The locks that a transaction holds and the waiters for its end.
#[derive(Default)]
pub(crate) struct Held {
    pub ended: bool,
    /// Names of locked records; an empty string marks a removed one.
    pub names: Vec<Box<[u8]>>,
    /// Empty names.
    pub empty: usize,
    /// Place after the name forgotten last.
    pub next_written: usize,
    /// Spaces in which it holds spans.
    pub spaces: Vec<u64>,
    /// Spaces in which it has packed locks.
    pub packed_spaces: Vec<u64>,
    pub end_waiters: Vec<Arc<Owner>>,
}

impl Held {
    /// Takes all names but the last `keep` out of the list, and moves a place in the list (`Owner::lock_count`) with them.
    pub fn take_older(&mut self, keep: usize, place: usize) -> (Vec<Box<[u8]>>, usize) {
        let newer = self.names.split_off(self.names.len().saturating_sub(keep));
        let older = std::mem::replace(&mut self.names, newer);
        self.empty = self.names.iter().filter(|name| name.is_empty()).count();
        self.next_written = 0;
        let place = place.saturating_sub(older.len());
        (older, place)
    }

    /// Takes a name out of the list. Rows are mostly written in the order in which they were locked, so the search continues after
    /// the last find. Places of other names stay until half of the list is empty; then they move to the front.
    pub fn forget(&mut self, name: &[u8]) -> bool {
        const EMPTY_MIN: usize = 1024;
        /// Names searched on each side: a row written far from where it was locked keeps its entry.
        const NEAR: usize = 256;
        let middle = self.next_written.min(self.names.len());
        let behind = middle..(middle + NEAR).min(self.names.len());
        let before = middle.saturating_sub(NEAR)..middle;
        let found = behind.chain(before).find(|at| *self.names[*at] == *name);
        let Some(at) = found else { return false };
        self.names[at] = Box::default();
        self.next_written = at + 1;
        self.empty += 1;
        if self.empty >= EMPTY_MIN && self.empty * 2 > self.names.len() {
            self.names.retain(|name| !name.is_empty());
            (self.empty, self.next_written) = (0, 0);
        }
        true
    }
}

/// Numbers for future owners, drawn many at a time, so that callers that create an owner for each transaction do not contend for the counter.
#[derive(Debug, Default)]
pub struct OwnerNumbers {
    next: u64,
    end: u64,
}

impl OwnerNumbers {
    /// Numbers drawn at a time.
    const AT_ONCE: u64 = 1024;

    pub(crate) fn draw(&mut self, counter: &AtomicU64) -> u64 {
        if self.next == self.end {
            self.next = counter.fetch_add(Self::AT_ONCE, Ordering::Relaxed);
            self.end = self.next + Self::AT_ONCE;
        }
        self.next += 1;
        self.next - 1
    }
}

/// The state of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitState {
    Running,
    Waiting,
    Granted,
    Victim,
}

/// Holder of locks.
pub struct Owner {
    pub(crate) id: u64,
    tag: Tag,
    /// No session has it any more.
    detached: AtomicBool,
    /// Since 1970.
    pub(crate) started: Duration,
    weight: AtomicU64,
    /// Number of its packed sets.
    pub(crate) packed_sets: AtomicUsize,
    pub(crate) held: Mutex<Held>,
    pub(crate) wait: Mutex<WaitState>,
    pub(crate) wake: Condvar,
}

impl Owner {
    pub(crate) fn new(id: u64, tag: Tag, started: Duration) -> Owner {
        Owner {
            id,
            tag,
            detached: AtomicBool::new(false),
            started,
            weight: AtomicU64::new(0),
            packed_sets: AtomicUsize::new(0),
            held: Mutex::new(Held::default()),
            wait: Mutex::new(WaitState::Running),
            wake: Condvar::new(),
        }
    }

    /// Its session has detached from it.
    pub fn detach(&self) {
        self.detached.store(true, Ordering::Relaxed);
    }

    /// The values given to `LockTable::new_owner_for`, without the session when it is detached.
    pub(crate) fn tag(&self) -> Tag {
        match self.detached.load(Ordering::Relaxed) {
            true => Tag { session: 0, ..self.tag },
            false => self.tag,
        }
    }

    /// Counts a change: the lightest transaction of a deadlock is its victim.
    pub fn add_weight(&self) {
        self.weight.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight.load(Ordering::Relaxed)
    }

    /// Number of records locked explicitly; a place for `release_early`.
    pub fn lock_count(&self) -> usize {
        self.held.lock().names.len()
    }

    /// Whether another transaction can wait for it.
    pub(crate) fn holds_any(&self) -> bool {
        let held = self.held.lock();
        let has_records = held.names.len() > held.empty || !held.packed_spaces.is_empty();
        has_records || !held.spaces.is_empty() || !held.end_waiters.is_empty()
    }

    pub(crate) fn resolve_wait(&self, outcome: WaitState) {
        let mut wait = self.wait.lock();
        if *wait == WaitState::Waiting {
            *wait = outcome;
            self.wake.notify_all();
        }
    }
}
