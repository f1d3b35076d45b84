//! What the statements of one connection hold, its limit, and the sum over the connections that are counted.

use errors::{Error, ErrorCode, Result};
use sys::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The sum over all connections that are counted (`Global_connection_memory`), its limit, and how often values were passed that are only watched.
#[derive(Debug)]
pub struct CountedMemory {
    used: AtomicUsize,
    limit: AtomicUsize,
    watched: AtomicUsize,
    watched_of_one: AtomicUsize,
    past: AtomicU64,
    past_of_one: AtomicU64,
}

impl Default for CountedMemory {
    fn default() -> CountedMemory {
        CountedMemory {
            used: AtomicUsize::new(0),
            limit: AtomicUsize::new(usize::MAX),
            watched: AtomicUsize::new(usize::MAX),
            watched_of_one: AtomicUsize::new(usize::MAX),
            past: AtomicU64::new(0),
            past_of_one: AtomicU64::new(0),
        }
    }
}

/// The sum where it is one: a thread may take bytes out before the thread that counted them has added them, and then it is below zero
/// for a moment.
fn at_least_none(sum: usize) -> usize {
    if (sum as isize) < 0 { 0 } else { sum }
}

/// The settings of all connections together.
#[derive(Clone, Copy, Debug)]
pub struct CountedLimits {
    /// `global_connection_memory_limit`.
    pub all: usize,
    /// `global_connection_memory_status_limit`.
    pub watched: usize,
    /// `connection_memory_status_limit`.
    pub watched_of_one: usize,
}

impl CountedMemory {
    /// From now on these hold.
    pub fn set_limits(&self, limits: CountedLimits) {
        self.limit.store(limits.all, Ordering::Relaxed);
        self.watched.store(limits.watched, Ordering::Relaxed);
        self.watched_of_one.store(limits.watched_of_one, Ordering::Relaxed);
    }

    /// Bytes that are counted, and how often `watched_of_one` and `watched` were passed.
    pub fn state(&self) -> (usize, u64, u64) {
        let past = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (
            at_least_none(self.used.load(Ordering::Relaxed)),
            past(&self.past_of_one),
            past(&self.past),
        )
    }
}

/// The settings of a connection.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// `connection_memory_limit`.
    pub bytes: usize,
    /// `connection_memory_chunk_size`: what has to change before the sum does.
    pub chunk: usize,
    /// `global_connection_memory_tracking`.
    pub is_counted: bool,
    /// An administrator's connection is counted and has no limit.
    pub is_exempt: bool,
}

/// What the statements of one connection hold: one runs at a time, but there are those inside it, and threads that help it.
#[derive(Debug)]
pub struct ConnectionMemory {
    limit: AtomicUsize,
    chunk: AtomicUsize,
    is_counted: AtomicBool,
    is_exempt: AtomicBool,
    held: AtomicUsize,
    counted: AtomicUsize,
}

impl Default for ConnectionMemory {
    /// Nothing is held, and nothing limited.
    fn default() -> ConnectionMemory {
        ConnectionMemory {
            limit: AtomicUsize::new(usize::MAX),
            chunk: AtomicUsize::new(1),
            is_counted: AtomicBool::new(false),
            is_exempt: AtomicBool::new(true),
            held: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
        }
    }
}

impl ConnectionMemory {
    /// From now on these hold.
    pub fn set_limits(&self, limits: ConnectionLimits) {
        let bytes = if limits.is_exempt { usize::MAX } else { limits.bytes };
        self.limit.store(bytes, Ordering::Relaxed);
        self.chunk.store(limits.chunk, Ordering::Relaxed);
        self.is_counted.store(limits.is_counted, Ordering::Relaxed);
        self.is_exempt.store(limits.is_exempt, Ordering::Relaxed);
    }

    /// What a statement may hold beside those around it.
    #[inline]
    pub fn left(&self) -> usize {
        match self.limit.load(Ordering::Relaxed) {
            usize::MAX => usize::MAX,
            limit => limit.saturating_sub(self.held.load(Ordering::Relaxed)),
        }
    }

    /// Holds `more` bytes. What is refused is not held.
    ///
    /// # Errors
    /// 4082 and 4081, which end the connection.
    #[inline]
    pub fn hold(&self, more: usize, all: &CountedMemory) -> Result<()> {
        let held = self.held.fetch_add(more, Ordering::Relaxed) + more;
        let outcome = if held > self.limit.load(Ordering::Relaxed) {
            Err(self.excess(held))
        } else {
            self.count(held, all)
        };
        match outcome {
            Ok(()) => {
                let watched = all.watched_of_one.load(Ordering::Relaxed);
                if held > watched && held - more <= watched {
                    all.past_of_one.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(_) => self.release(more, all),
        }
        outcome
    }

    /// Adds to the sum what is not in it yet, from a chunk on. Threads of one statement come here together: each adds its own part once.
    fn count(&self, held: usize, all: &CountedMemory) -> Result<()> {
        if !self.is_counted.load(Ordering::Relaxed) {
            return Ok(());
        }
        let chunk = self.chunk.load(Ordering::Relaxed);
        let more = self.change_counted(|counted| {
            let more = held.saturating_sub(counted);
            if more < chunk { 0 } else { more as isize }
        });
        if more == 0 {
            return Ok(());
        }
        let used = at_least_none(all.used.fetch_add(more, Ordering::Relaxed).wrapping_add(more));
        let watched = all.watched.load(Ordering::Relaxed);
        if used > watched && used.saturating_sub(more) <= watched {
            all.past.fetch_add(1, Ordering::Relaxed);
        }
        let limit = all.limit.load(Ordering::Relaxed);
        if used <= limit || self.is_exempt.load(Ordering::Relaxed) {
            return Ok(());
        }
        // Another thread may have taken some of it out already.
        let less = self.change_counted(|counted| -(more.min(counted) as isize));
        all.used.fetch_sub(less, Ordering::Relaxed);
        let code = ErrorCode::GLOBAL_CONNECTION_MEMORY_LIMIT;
        Err(Error::with(code, &[&limit, &used]))
    }

    /// Changes what is counted by what `change` says of it; returns by how much.
    fn change_counted(&self, change: impl Fn(usize) -> isize) -> usize {
        let mut by = 0;
        let changed = self.counted.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |counted| {
            by = change(counted);
            (by != 0).then(|| counted.saturating_add_signed(by))
        });
        if changed.is_ok() { by.unsigned_abs() } else { 0 }
    }

    /// Holds `bytes` less.
    #[inline]
    pub fn release(&self, bytes: usize, all: &CountedMemory) {
        let before = self.held.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "only what was held is released");
        let held = before.saturating_sub(bytes);
        let chunk = self.chunk.load(Ordering::Relaxed);
        let less = self.change_counted(|counted| {
            let less = counted.saturating_sub(held);
            if held == 0 || less >= chunk { -(less as isize) } else { 0 }
        });
        if less > 0 {
            all.used.fetch_sub(less, Ordering::Relaxed);
        }
    }

    /// Error 4082 for a connection that wants to hold so much.
    pub fn excess(&self, wanted: usize) -> Error {
        let code = ErrorCode::CONNECTION_MEMORY_LIMIT;
        Error::with(code, &[&self.limit.load(Ordering::Relaxed), &wanted])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "a test")]

    use super::*;

    fn connection(bytes: usize) -> ConnectionMemory {
        let memory = ConnectionMemory::default();
        memory.set_limits(ConnectionLimits {
            bytes,
            chunk: 10,
            is_counted: true,
            is_exempt: false,
        });
        memory
    }

    #[test]
    fn each_connection_and_all_together_have_a_limit() {
        let all = CountedMemory::default();
        let limits = CountedLimits { all: 150, watched: 120, watched_of_one: 90 };
        all.set_limits(limits);
        let (first, second) = (connection(100), connection(1000));
        first.hold(100, &all).expect("its limit");
        let refused = first.hold(1, &all).expect_err("beyond its limit");
        assert_eq!(refused.code(), ErrorCode::CONNECTION_MEMORY_LIMIT);
        second.hold(50, &all).expect("all together");
        second.hold(9, &all).expect("less than a chunk is not counted");
        let refused = second.hold(1, &all).expect_err("beyond all");
        assert_eq!(refused.code(), ErrorCode::GLOBAL_CONNECTION_MEMORY_LIMIT);
        assert_eq!(all.state(), (150, 1, 1), "bytes, passed by one, by all");
        first.release(100, &all);
        second.release(59, &all);
        assert_eq!(all.state().0, 0);
    }

    #[test]
    fn threads_of_a_statement_are_counted_once() {
        let all = CountedMemory::default();
        let memory = connection(usize::MAX);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for bytes in 1..2000 {
                        memory.hold(bytes, &all).expect("no limit");
                        memory.release(bytes, &all);
                    }
                });
            }
        });
        assert!(all.state().0 < 10, "{:?}", all.state());
        memory.hold(10, &all).expect("no limit");
        memory.release(10, &all);
        assert_eq!(all.state().0, 0);
    }

    #[test]
    fn an_administrator_has_no_limit() {
        let all = CountedMemory::default();
        all.set_limits(CountedLimits { all: 10, watched: 10, watched_of_one: 10 });
        let memory = ConnectionMemory::default();
        assert!(memory.hold(1000, &all).is_ok() && memory.left() == usize::MAX);
        memory.release(1000, &all);
    }
}
