//! Snapshots in O(1): two numbers, and a slot that holds the purge horizon back.

use std::sync::atomic::{AtomicU64, Ordering, fence};

/// What a reader may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Commits with a ticket below it are seen.
    pub ts: u64,
    /// Every id below it is seen.
    pub low: u64,
}

/// What a version is to a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Visibility<T> {
    /// It is seen.
    Visible,
    /// Its writer's undo leads to the one before.
    Hidden(T),
}

#[repr(align(128))]
struct Slot(AtomicU64);

/// A slot that nobody uses.
const FREE: u64 = 0;
/// A slot whose owner has no snapshot now.
const IDLE: u64 = u64::MAX;

/// One slot per transaction object.
pub struct SnapshotSlots(Box<[Slot]>);

impl SnapshotSlots {
    pub(crate) fn new(count: usize) -> SnapshotSlots {
        SnapshotSlots((0..count).map(|_| Slot(AtomicU64::new(FREE))).collect())
    }

    /// Takes a slot for a transaction object's life; `None` when all are taken.
    pub fn take(&self) -> Option<usize> {
        let start = sys::threads::number() * 16 % self.0.len();
        let order = (start..self.0.len()).chain(0..start);
        order.into_iter().find(|index| {
            let slot = &self.0[*index].0;
            slot.load(Ordering::Relaxed) == FREE
                && slot.compare_exchange(FREE, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        })
    }

    /// Gives a slot back.
    pub fn give_back(&self, slot: usize) {
        self.0[slot].0.store(FREE, Ordering::Release);
    }

    /// Ends a snapshot.
    #[inline]
    pub fn release(&self, slot: usize) {
        self.0[slot].0.store(IDLE, Ordering::Release);
    }

    /// Takes a snapshot (X5).
    #[inline]
    pub(crate) fn pin(&self, slot: usize, low: &AtomicU64, visible: impl Fn() -> u64) -> Snapshot {
        let slot = &self.0[slot].0;
        slot.store(visible(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let low = low.load(Ordering::Acquire);
        let ts = visible();
        Snapshot { ts, low }
    }

    /// Commits below it are seen by every snapshot, present and future (X5).
    pub(crate) fn horizon(&self, visible: u64) -> u64 {
        fence(Ordering::SeqCst);
        let pinned = self.0.iter().map(|slot| slot.0.load(Ordering::Acquire));
        pinned.filter(|value| *value != FREE).fold(visible, u64::min)
    }
}
