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
struct Slot {
    /// What its snapshot holds back, `FREE` or `IDLE`.
    value: AtomicU64,
    /// Snapshots taken in it so far: only its transaction counts.
    pins: AtomicU64,
    /// Whose it is: see `tag`.
    tag: AtomicU64,
    /// The snapshot that `note` saw last, and when first.
    noted_pins: AtomicU64,
    noted_micros: AtomicU64,
}

impl Slot {
    fn new() -> Slot {
        Slot {
            value: AtomicU64::new(FREE),
            pins: AtomicU64::new(0),
            tag: AtomicU64::new(0),
            noted_pins: AtomicU64::new(0),
            noted_micros: AtomicU64::new(0),
        }
    }
}

/// A snapshot that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotView {
    /// Number of its slot.
    pub slot: usize,
    /// As given to `tag`.
    pub tag: u64,
    /// When it was noted first: it was taken at most one round of purge before.
    pub since_micros: u64,
}

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
        let slots = (0..count).map(|_| Slot::new()).collect();
        SnapshotSlots { slots, used: AtomicUsize::new(0) }
    }

    /// Takes a slot for a transaction object's life; `None` when all are taken.
    pub fn take(&self) -> Option<usize> {
        let found = (0..self.slots.len()).find(|index| {
            let slot = &self.slots[*index].value;
            slot.load(Ordering::Relaxed) == FREE
                && slot.compare_exchange(FREE, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })?;
        // Before the first pin of the slot, whose fence orders this store against the horizon's read.
        self.used.fetch_max(found + 1, Ordering::SeqCst);
        Some(found)
    }

    /// Releases a slot.
    pub fn give_back(&self, slot: usize) {
        self.slots[slot].value.store(FREE, Ordering::Release);
    }

    /// Says whose snapshots are taken in a slot.
    pub fn tag(&self, slot: usize, tag: u64) {
        let known = &self.slots[slot].tag;
        if known.load(Ordering::Relaxed) != tag {
            known.store(tag, Ordering::Relaxed);
        }
    }

    /// Shows the snapshots that are held. Call it now and then: one that is new since the last call begins now, so that taking it needs no clock.
    pub fn note(&self, now_micros: u64, mut visit: impl FnMut(SnapshotView)) {
        // Pairs with the store in `take`.
        let used = self.used.load(Ordering::SeqCst);
        for (number, slot) in self.slots[..used].iter().enumerate() {
            // Pairs with the stores in `release` and `give_back`.
            let value = slot.value.load(Ordering::Acquire);
            if value == FREE || value == IDLE {
                continue;
            }
            let pins = slot.pins.load(Ordering::Relaxed);
            if slot.noted_pins.swap(pins, Ordering::Relaxed) != pins {
                slot.noted_micros.store(now_micros, Ordering::Relaxed);
            }
            let since_micros = slot.noted_micros.load(Ordering::Relaxed);
            let tag = slot.tag.load(Ordering::Relaxed);
            visit(SnapshotView { slot: number, tag, since_micros });
        }
    }

    /// Ends a snapshot.
    #[inline]
    pub fn release(&self, slot: usize) {
        self.slots[slot].value.store(IDLE, Ordering::Release);
    }

    /// Takes a snapshot (X5).
    #[inline]
    pub(crate) fn pin(&self, slot: usize, low: &AtomicU64, visible: impl Fn() -> u64) -> Snapshot {
        let slot = &self.slots[slot];
        debug_assert!(slot.value.load(Ordering::Relaxed) != FREE, "a snapshot's slot was taken");
        slot.pins.store(slot.pins.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        slot.value.store(visible(), Ordering::Relaxed);
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
        let pinned = self.slots[..used].iter().map(|slot| slot.value.load(Ordering::Acquire));
        pinned
            .filter(|value| *value != FREE && !breaks("pins hold purge back"))
            .fold(visible, u64::min)
    }
}
