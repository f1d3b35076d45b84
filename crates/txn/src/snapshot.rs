//! Snapshots in O(1): two numbers, and a slot that holds the purge horizon back.

use sys::model::breaks;
use sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

/// The bounds of the commits that a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Commits with a ticket below it are seen.
    pub ts: u64,
    /// Every id below it is seen.
    pub low: u64,
}

/// The visibility of a version to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility<T> {
    /// It is seen.
    Visible,
    /// Its writer's undo leads to the previous one.
    Hidden(T),
}

#[repr(align(128))]
struct Slot(AtomicU64);

/// The value of an unused slot.
const FREE: u64 = 0;
/// The value of a slot without a snapshot now.
const IDLE: u64 = u64::MAX;

/// One slot per transaction object.
pub struct SnapshotSlots {
    slots: Box<[Slot]>,
    /// Slots from here on were never taken: the horizon need not read them.
    used: AtomicUsize,
}

impl SnapshotSlots {
    pub(crate) fn new(count: usize) -> SnapshotSlots {
        let slots = (0..count).map(|_| Slot(AtomicU64::new(FREE))).collect();
        SnapshotSlots { slots, used: AtomicUsize::new(0) }
    }

    /// Takes a slot for a transaction object's life; `None` when all are taken.
    pub fn take(&self) -> Option<usize> {
        let found = (0..self.slots.len()).find(|index| {
            let slot = &self.slots[*index].0;
            slot.load(Ordering::Relaxed) == FREE
                && slot.compare_exchange(FREE, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        // Before the first pin of the slot, whose fence orders this store against the horizon's read.
        self.used.fetch_max(found + 1, Ordering::SeqCst);
        Some(found)
    }

    /// Releases a slot.
    pub fn give_back(&self, slot: usize) {
        self.slots[slot].0.store(FREE, Ordering::Release);
    }

    /// Ends a snapshot.
    #[inline]
    pub fn release(&self, slot: usize) {
        self.slots[slot].0.store(IDLE, Ordering::Release);
    }

    /// Takes a snapshot (X5).
    #[inline]
    pub(crate) fn pin(&self, slot: usize, low: &AtomicU64, visible: impl Fn() -> u64) -> Snapshot {
        let slot = &self.slots[slot].0;
        debug_assert!(slot.load(Ordering::Relaxed) != FREE, "a snapshot's slot was taken");
        slot.store(visible(), Ordering::Relaxed);
        if !breaks("X5") {
            fence(Ordering::SeqCst);
        }
        let low = low.load(Ordering::Acquire);
        let ts = visible();
        Snapshot { ts, low }
    }

    /// Commits below it are seen by every snapshot, present and future (X5).
    pub(crate) fn horizon(&self, visible: u64) -> u64 {
        fence(Ordering::SeqCst);
        let used = self.used.load(Ordering::SeqCst);
        let pinned = self.slots[..used].iter().map(|slot| slot.0.load(Ordering::Acquire));
        pinned
            .filter(|value| *value != FREE && !breaks("pins hold purge back"))
            .fold(visible, u64::min)
    }
}
