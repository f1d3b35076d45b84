//! The shortest and the longest of some times.

use std::sync::atomic::{AtomicU64, Ordering};

/// The shortest and the longest of some times, in one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    least: u64,
    most: u64,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent::NONE
    }
}

impl Extent {
    /// Of no times.
    pub const NONE: Extent = Extent { least: u64::MAX, most: 0 };

    /// The shortest; 0 of none.
    pub const fn least(self) -> u64 {
        if self.least > self.most { 0 } else { self.least }
    }

    /// The longest; 0 of none.
    pub const fn most(self) -> u64 {
        self.most
    }

    /// With one time more.
    #[must_use]
    pub fn with(self, time: u64) -> Extent {
        Extent { least: self.least.min(time), most: self.most.max(time) }
    }

    /// Of these times and others.
    #[must_use]
    pub fn and(self, other: Extent) -> Extent {
        Extent { least: self.least.min(other.least), most: self.most.max(other.most) }
    }
}

/// An `Extent` that threads add to.
#[derive(Debug)]
pub struct SharedExtent {
    least: AtomicU64,
    most: AtomicU64,
}

impl Default for SharedExtent {
    fn default() -> SharedExtent {
        SharedExtent::new()
    }
}

impl SharedExtent {
    /// Of no times.
    pub const fn new() -> SharedExtent {
        SharedExtent { least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }

    /// Adds a time. Most are neither the shortest nor the longest, and write nothing.
    pub fn add(&self, time: u64) {
        if time < self.least.load(Ordering::Relaxed) {
            self.least.fetch_min(time, Ordering::Relaxed);
        }
        if time > self.most.load(Ordering::Relaxed) {
            self.most.fetch_max(time, Ordering::Relaxed);
        }
    }

    /// What they come to.
    pub fn get(&self) -> Extent {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        Extent { least: load(&self.least), most: load(&self.most) }
    }

    /// Forgets all times.
    pub fn clear(&self) {
        self.least.store(u64::MAX, Ordering::Relaxed);
        self.most.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_and_the_longest_are_kept() {
        let shared = SharedExtent::new();
        assert_eq!((shared.get().least(), shared.get().most()), (0, 0));
        [7, 3, 12].into_iter().for_each(|time| shared.add(time));
        assert_eq!((shared.get().least(), shared.get().most()), (3, 12));
        assert_eq!(Extent::NONE.with(3).and(Extent::NONE).with(12), shared.get());
        shared.clear();
        assert_eq!(shared.get(), Extent::NONE);
    }
}
