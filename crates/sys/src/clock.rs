//! One trait for time, so that tests decide when it passes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use crate::simulation;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Time since some fixed point; never goes back.
    fn monotonic(&self) -> Duration;
    /// Time since 1970-01-01 UTC.
    fn wall(&self) -> Duration;
    /// The same as of a few milliseconds ago at most, for less.
    fn wall_coarse(&self) -> Duration {
        self.wall()
    }
}

/// The machine's clocks.
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// Monotonic time starts at zero now.
    pub fn new() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn monotonic(&self) -> Duration {
        // Under a model time stands still: nothing may depend on how fast the model runs.
        if cfg!(any(loom, shuttle)) {
            return Duration::ZERO;
        }
        simulation::monotonic().unwrap_or_else(|| self.start.elapsed())
    }

    fn wall(&self) -> Duration {
        simulation::wall().unwrap_or_else(|| read(ClockId::Realtime))
    }

    fn wall_coarse(&self) -> Duration {
        simulation::wall().unwrap_or_else(|| read(ClockId::RealtimeCoarse))
    }
}

#[inline]
fn read(clock: ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), time.tv_nsec as u32)
}

/// A clock that a test moves.
#[derive(Default)]
pub struct SimClock(AtomicU64);

impl SimClock {
    /// A clock at zero.
    pub fn new() -> SimClock {
        SimClock::default()
    }

    /// Lets time pass.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_nanos() as u64, Ordering::AcqRel);
    }
}

impl Clock for SimClock {
    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Acquire))
    }

    fn wall(&self) -> Duration {
        self.monotonic()
    }
}

/// Time since some fixed point; never goes back.
#[inline]
pub fn monotonic() -> Duration {
    if cfg!(any(loom, shuttle)) {
        return Duration::ZERO;
    }
    simulation::monotonic().unwrap_or_else(|| read(ClockId::Monotonic))
}

/// The machine's wall clock: time since 1970-01-01 UTC.
pub fn wall() -> Duration {
    simulation::wall().unwrap_or_else(|| read(ClockId::Realtime))
}

/// Time that a thread of this process, by the operating system's number, has been on a processor. `None` when there is no such thread.
pub fn thread_cpu(thread_id: u32) -> Option<Duration> {
    if simulation::current().is_some() {
        return None;
    }
    /// A clock's number is the thread's, inverted, above three bits that say: of one thread, as the scheduler counts.
    const SCHEDULED: i32 = 6;
    let clock = !thread_id.cast_signed() << 3 | SCHEDULED;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is alive and writable; a number that names no clock is refused.
    let failed = unsafe { libc::clock_gettime(clock, &mut time) };
    (failed == 0).then(|| Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32))
}

/// Time that a thread of this process has waited for a processor while it could run. `None` when there is no such thread, or the kernel does not count it.
pub fn thread_run_queue(thread_id: u32) -> Option<Duration> {
    if simulation::current().is_some() {
        return None;
    }
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread_id}/schedstat")).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_threads_time_is_that_of_the_scheduler() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        let before = thread_cpu(own).unwrap();
        while thread_cpu(own).unwrap() - before < Duration::from_millis(200) {
            std::hint::black_box(before);
        }
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
        let scheduled: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
        let (scheduled, counted) = (scheduled as f64, thread_cpu(own).unwrap().as_nanos() as f64);
        assert!((scheduled / counted - 1.0).abs() < 0.05, "{scheduled} {counted}");
        assert!(thread_run_queue(own).is_some());
        assert_eq!(thread_cpu(u32::MAX >> 4), None, "there is no such thread");
    }
}
