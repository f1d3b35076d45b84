//! Durations of calls to the operating system's files: counts by powers of two of microseconds, for each kind of call. A process has
//! one `IoTimes`, passed to the code that opens files.
//!
//! Every thread counts in one of a few shards, so that threads that do I/O do not share a cache line. Each system call counts once, also
//! those of a loop, so that the sums agree with a tracer of system calls.

use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::clock::{Clock as _, RealClock};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Pread,
    Pwrite,
    Fdatasync,
    Fsync,
    Ftruncate,
    IoUringEnter,
}

const CALLS: [(Call, &str); 6] = [
    (Call::Pread, "pread"),
    (Call::Pwrite, "pwrite"),
    (Call::Fdatasync, "fdatasync"),
    (Call::Fsync, "fsync"),
    (Call::Ftruncate, "ftruncate"),
    (Call::IoUringEnter, "io_uring_enter"),
];
/// Bucket n counts durations below 2^n microseconds and not below half of it; the last one everything longer.
const BUCKETS: usize = 28;
/// A power of two.
const SHARDS: usize = 16;

#[derive(Default)]
struct Bucket {
    count: AtomicU64,
    micros: AtomicU64,
}

#[repr(align(128))]
#[derive(Default)]
struct Shard([[Bucket; BUCKETS]; CALLS.len()]);

/// One line of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoBucket {
    /// Name of the call.
    pub call: &'static str,
    /// The calls took less than this.
    pub below_micros: u64,
    /// The number of calls.
    pub count: u64,
    /// Their time in all.
    pub total_micros: u64,
}

/// See the file's head.
pub struct IoTimes {
    shards: Box<[Shard]>,
    clock: RealClock,
}

impl Default for IoTimes {
    fn default() -> IoTimes {
        let shards = (0..SHARDS).map(|_| Shard::default()).collect();
        IoTimes { shards, clock: RealClock::new() }
    }
}

impl std::fmt::Debug for IoTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.buckets()).finish()
    }
}

impl IoTimes {
    /// Makes a file, or the names in a directory, durable.
    ///
    /// # Errors
    /// I/O.
    pub fn sync_all(&self, file: &std::fs::File) -> io::Result<()> {
        self.time(Call::Fsync, || file.sync_all())
    }

    /// Writes all of `buf` at `offset`; each call counts.
    pub(crate) fn write_all(
        &self,
        file: &std::fs::File,
        mut buf: &[u8],
        mut offset: u64,
    ) -> io::Result<()> {
        while !buf.is_empty() {
            match self.time(Call::Pwrite, || file.write_at(buf, offset)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    buf = &buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes one call and counts it.
    pub(crate) fn time<T>(&self, call: Call, make: impl FnOnce() -> T) -> T {
        let start = self.clock.monotonic();
        let result = make();
        self.add(call, self.clock.monotonic().saturating_sub(start));
        result
    }

    fn add(&self, call: Call, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = ((u64::BITS - micros.leading_zeros()) as usize).min(BUCKETS - 1);
        let shard = &self.shards[crate::threads::number() & (SHARDS - 1)];
        let bucket = &shard.0[call as usize][bucket];
        bucket.count.fetch_add(1, Ordering::Relaxed);
        bucket.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The buckets that are not empty, by call and time.
    pub fn buckets(&self) -> Vec<IoBucket> {
        let mut found = Vec::new();
        for (call, name) in CALLS {
            for at in 0..BUCKETS {
                let buckets = self.shards.iter().map(|shard| &shard.0[call as usize][at]);
                let (count, total_micros) = buckets.fold((0, 0), |(count, micros), bucket| {
                    let more = bucket.count.load(Ordering::Relaxed);
                    (count + more, micros + bucket.micros.load(Ordering::Relaxed))
                });
                if count > 0 {
                    found.push(IoBucket { call: name, below_micros: 1 << at, count, total_micros });
                }
            }
        }
        found
    }
}
