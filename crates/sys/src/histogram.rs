//! Durations: counts by powers of two of microseconds, written by many threads, read for reports.

use std::time::Duration;

use crate::clock::{Clock as _, RealClock};
// Counts that nothing depends on are kept from models.
#[cfg(not(any(loom, shuttle)))]
use crate::sync::atomic::{AtomicU64, Ordering};
#[cfg(any(loom, shuttle))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Bucket n counts durations below 2^n microseconds and not below half of it; the last one everything longer.
const BUCKETS: usize = 28;

/// Durations of one kind of operation.
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    total_micros: AtomicU64,
    max_micros: AtomicU64,
    clock: RealClock,
}

/// An approximate copy of a histogram: other threads continue counting during the copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Operations.
    pub count: u64,
    /// Their time in all.
    pub total_micros: u64,
    /// Half of them took at most this, rounded up to a power of two.
    pub p50_micros: u64,
    /// 99 of 100 took at most this, rounded up to a power of two.
    pub p99_micros: u64,
    /// The longest.
    pub max_micros: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram::new()
    }
}

impl Histogram {
    /// Nothing counted.
    pub fn new() -> Histogram {
        Histogram {
            buckets: std::array::from_fn(|_| AtomicU64::new(0)),
            total_micros: AtomicU64::new(0),
            max_micros: AtomicU64::new(0),
            clock: RealClock::new(),
        }
    }

    /// Runs `body` and counts its duration.
    pub fn time<T>(&self, body: impl FnOnce() -> T) -> T {
        self.measure(body).0
    }

    /// Like `time`, and returns the duration.
    pub fn measure<T>(&self, body: impl FnOnce() -> T) -> (T, Duration) {
        let start = self.clock.monotonic();
        let result = body();
        let took = self.clock.monotonic().saturating_sub(start);
        self.add(took);
        (result, took)
    }

    /// Counts one operation.
    pub fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = (u64::BITS - micros.leading_zeros()) as usize;
        self.buckets[bucket.min(BUCKETS - 1)].fetch_add(1, Ordering::Relaxed);
        self.total_micros.fetch_add(micros, Ordering::Relaxed);
        if micros > self.max_micros.load(Ordering::Relaxed) {
            self.max_micros.fetch_max(micros, Ordering::Relaxed);
        }
    }

    /// The counts so far.
    pub fn summary(&self) -> Summary {
        let counts = self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed));
        let count: u64 = counts.iter().sum();
        let max_micros = self.max_micros.load(Ordering::Relaxed);
        let at = |share: u64| {
            let wanted = (count * share).div_ceil(100);
            let mut seen = 0;
            let found = counts.iter().position(|bucket| {
                seen += bucket;
                seen >= wanted
            });
            found.map_or(0, |bucket| (1_u64 << bucket).min(max_micros))
        };
        Summary {
            count,
            total_micros: self.total_micros.load(Ordering::Relaxed),
            p50_micros: at(50),
            p99_micros: at(99),
            max_micros,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn counts_fall_into_powers_of_two() {
        let histogram = Histogram::new();
        assert_eq!(histogram.summary(), Summary::default());
        for micros in [0, 1, 3, 3, 3, 3, 3, 3, 3, 100] {
            histogram.add(Duration::from_micros(micros));
        }
        let summary = histogram.summary();
        assert_eq!((summary.count, summary.total_micros), (10, 122));
        assert_eq!((summary.p50_micros, summary.p99_micros, summary.max_micros), (4, 100, 100));
    }
}
