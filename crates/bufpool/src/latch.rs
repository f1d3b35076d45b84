//! The version latch: one word that readers check and writers count up. Boehm's seqlock with a shared mode.
//!
//! Bits: 0 exclusive, 1-14 number of shared holders, 15 a thread is parked, 16-63 version.

use sys::clock::monotonic;
use sys::lock_stats::{self, Class, Kind, Of};
use sys::model::{breaks, sized};
use sys::sync::atomic::{AtomicU64, Ordering, fence};
use sys::sync::{park, spin_hint, spin_until_clear, unpark_all};
use sys::waits::{self, Wait};

const EXCLUSIVE: u64 = 1;
const SHARED_ONE: u64 = 2;
const SHARED: u64 = 0x7FFE;
const PARKED: u64 = 0x8000;
const VERSION_ONE: u64 = 0x1_0000;
const VERSION: u64 = !0xFFFF;

/// Spins before a waiter parks: about a microsecond, the length of a usual page change.
const SPINS: u32 = sized(64, 1) as u32;

static PAGES: Class = Class::new("page latch", Kind::Latch);

/// The latch of one page number. Its waits count, and while `sys::lock_stats` are on its acquisitions; not how long it is held.
#[derive(Debug)]
pub struct Latch(AtomicU64);

impl Default for Latch {
    fn default() -> Self {
        Latch::new()
    }
}

impl Latch {
    /// Free, at version zero.
    pub fn new() -> Latch {
        Latch(AtomicU64::new(0))
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&self.0).addr()
    }

    /// Waits while `busy` holds of the word; returns the first word for which it does not.
    fn wait_until_not(&self, busy: u64) -> u64 {
        // Acquire: pairs with the release of the holder that gave the latch back.
        let word = self.0.load(Ordering::Acquire);
        if word & busy == 0 { word } else { self.wait_while_busy(busy) }
    }

    #[cold]
    fn wait_while_busy(&self, busy: u64) -> u64 {
        let _waiting = waits::enter(Wait::Latch);
        let mut counted = lock_stats::begin(Of::Class(&PAGES));
        let _seen = sys::probes::latch_wait(self.address());
        let mut spins = SPINS;
        loop {
            let (word, spun) = spin_until_clear(&self.0, busy, spins);
            if spins > 0 {
                counted.spun(spun);
            }
            if word & busy == 0 {
                return word;
            }
            // Once it had to park, a waiter does not spin again.
            spins = 0;
            let marked = word | PARKED;
            if word == marked
                || self
                    .0
                    .compare_exchange(word, marked, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            {
                park(self.address(), || {
                    let now = self.0.load(Ordering::Relaxed);
                    breaks("park looks again") || now & PARKED != 0 && now & busy != 0
                });
            }
        }
    }

    /// The version, for an optimistic read. Waits while a writer holds the latch.
    #[inline]
    pub fn version(&self) -> u64 {
        let word = self.0.load(Ordering::Acquire);
        if word & EXCLUSIVE == 0 {
            return word & VERSION;
        }
        self.wait_until_not(EXCLUSIVE) & VERSION
    }

    /// The version when no writer holds the latch right now.
    #[inline]
    pub fn try_version(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        (word & EXCLUSIVE == 0).then_some(word & VERSION)
    }

    /// Whether everything read since `version` was one state of the page.
    #[inline]
    pub fn validate(&self, version: u64) -> bool {
        // Pairs with the release fence in `acquired`: a reader that saw a new word sees the exclusive bit or a new version.
        if !breaks("fence before validating") {
            fence(Ordering::Acquire);
        }
        self.0.load(Ordering::Relaxed) & (VERSION | EXCLUSIVE) == version
    }

    #[inline]
    fn count() {
        if lock_stats::is_on() {
            lock_stats::acquired_without_end(Of::Class(&PAGES));
        }
    }

    fn acquired() {
        Self::count();
        if !breaks("fence after locking") {
            fence(Ordering::Release);
        }
    }

    /// Takes the exclusive mode when the page is still at `version`; waits for shared holders only.
    pub fn upgrade(&self, version: u64) -> bool {
        loop {
            let word = self.0.load(Ordering::Relaxed);
            if word & (VERSION | EXCLUSIVE) != version {
                return false;
            }
            if word & SHARED != 0 {
                self.wait_until_not(SHARED | EXCLUSIVE);
                continue;
            }
            let taken = self.0.compare_exchange_weak(
                word,
                word | EXCLUSIVE,
                Ordering::Acquire,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                Self::acquired();
                return true;
            }
        }
    }

    /// Takes the exclusive mode.
    pub fn lock_exclusive(&self) {
        loop {
            let word = self.wait_until_not(SHARED | EXCLUSIVE);
            if self.take(word, word | EXCLUSIVE) {
                Self::acquired();
                return;
            }
        }
    }

    /// Takes the exclusive mode when the latch is free.
    pub fn try_lock_exclusive(&self) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        if word & (SHARED | EXCLUSIVE) != 0 || !self.take(word, word | EXCLUSIVE) {
            return false;
        }
        Self::acquired();
        true
    }

    fn take(&self, word: u64, new: u64) -> bool {
        self.0.compare_exchange(word, new, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the exclusive mode back under a new version.
    pub fn unlock_exclusive(&self) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert!(word & EXCLUSIVE != 0, "only the holder gives the exclusive mode back");
        debug_assert!(word & SHARED == 0, "an exclusive latch is not shared");
        let old = self.0.swap((word & VERSION) + VERSION_ONE, Ordering::Release);
        if old & PARKED != 0 {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let start = monotonic();
        unpark_all(self.address());
        lock_stats::woke(Of::Class(&PAGES), monotonic().saturating_sub(start));
    }

    /// Takes the shared mode.
    pub fn lock_shared(&self) {
        loop {
            let word = self.wait_until_not(EXCLUSIVE);
            if word & SHARED != SHARED && self.take(word, word + SHARED_ONE) {
                Self::count();
                return;
            }
            spin_hint();
        }
    }

    /// Takes the shared mode when no writer holds the latch.
    pub fn try_lock_shared(&self) -> bool {
        loop {
            let word = self.0.load(Ordering::Relaxed);
            if word & EXCLUSIVE != 0 || word & SHARED == SHARED {
                return false;
            }
            if self.take(word, word + SHARED_ONE) {
                Self::count();
                return true;
            }
        }
    }

    /// Gives the shared mode back.
    pub fn unlock_shared(&self) {
        let old = self.0.fetch_sub(SHARED_ONE, Ordering::Release);
        assert!(old & SHARED != 0, "only a holder gives the shared mode back");
        if old & SHARED == SHARED_ONE && old & PARKED != 0 {
            self.0.fetch_and(!PARKED, Ordering::Relaxed);
            self.wake_all();
        }
    }
}
