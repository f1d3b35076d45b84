//! The memory limit of a statement, and the budget that all statements share.

use errors::{Error, ErrorCode, Result};
use sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::connection::{ConnectionMemory, CountedMemory};

/// Steps in which others see what is held, and in which it is taken from the budget: the words are seldom written.
const STEP: usize = 1 << 20;
/// What one sort or hash table may hold however many others there are.
const OPERATOR_BYTES_MIN: usize = 256 << 10;
/// How many sorts and hash tables a connection with a limit has room for before they move to files.
const OPERATORS_OF_CONNECTION: usize = 4;
/// The part of the budget that statements within their share may take beyond it, until the largest ones have ended.
const BEYOND_SHARE: usize = 8;

/// Bytes that the sorts, hash tables and kept rows of all statements may hold together.
///
/// From half of it on, operators move to files earlier. When all is taken, a statement that holds more than its share (the budget divided by the statements that
/// hold some) gets error 1041 when it wants more, so the largest ones end first.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: AtomicUsize,
    used: AtomicUsize,
    /// Statements that hold some.
    holders: AtomicUsize,
    refused: AtomicU64,
    /// The part of it that counted connections hold.
    counted: CountedMemory,
}

impl Default for MemoryBudget {
    fn default() -> MemoryBudget {
        MemoryBudget::new(usize::MAX)
    }
}

impl MemoryBudget {
    /// A budget of `limit` bytes.
    pub fn new(limit: usize) -> MemoryBudget {
        MemoryBudget {
            limit: AtomicUsize::new(limit),
            used: AtomicUsize::new(0),
            holders: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            counted: CountedMemory::default(),
        }
    }

    /// The part of it that counted connections hold.
    pub fn counted(&self) -> &CountedMemory {
        &self.counted
    }

    /// From now on it is `limit` bytes. What is held stays.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Bytes in all, bytes held, and requests that were refused.
    pub fn state(&self) -> (usize, usize, u64) {
        let read = |word: &AtomicUsize| word.load(Ordering::Relaxed);
        (read(&self.limit), read(&self.used), self.refused.load(Ordering::Relaxed))
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that nobody holds.
    fn left(&self) -> usize {
        self.limit().saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// What each of the statements that hold some may hold.
    fn share(&self) -> usize {
        self.limit() / self.holders.load(Ordering::Relaxed).max(1)
    }

    fn enter(&self) {
        self.holders.fetch_add(1, Ordering::Relaxed);
    }

    fn leave(&self) {
        let before = self.holders.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "who leaves has entered");
    }

    /// Takes `more` bytes for a statement that then holds `held`.
    fn take(&self, more: usize, held: usize) -> Result<()> {
        let used = self.used.fetch_add(more, Ordering::Relaxed) + more;
        let limit = self.limit();
        if used <= limit
            || held <= self.share() && used <= limit.saturating_add(limit / BEYOND_SHARE)
        {
            return Ok(());
        }
        self.give(more);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Error::with(ErrorCode::OUT_OF_RESOURCES, &[]))
    }

    fn give(&self, bytes: usize) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes, "only what was taken is given back");
    }
}

/// Counts bytes held by operators against the statement's limit and the budget.
pub struct Memory<'b> {
    budget: &'b MemoryBudget,
    connection: &'b ConnectionMemory,
    used: usize,
    limit: usize,
    /// The limit is what the connection has left.
    is_connections_limit: bool,
    /// What others see of it, and what is taken from the budget.
    shown: usize,
}

impl<'b> Memory<'b> {
    /// Nothing is held yet.
    pub fn new(
        limit: usize,
        budget: &'b MemoryBudget,
        connection: &'b ConnectionMemory,
    ) -> Memory<'b> {
        let left = connection.left();
        let is_connections_limit = left < limit;
        let limit = limit.min(left);
        Memory { budget, connection, used: 0, limit, is_connections_limit, shown: 0 }
    }

    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        if self.used > self.limit {
            return Err(self.excess());
        }
        if self.used - self.shown.min(self.used) >= STEP {
            self.budget_take()?;
        }
        Ok(())
    }

    #[cold]
    fn excess(&self) -> Error {
        match self.is_connections_limit {
            true => self.connection.excess(self.used),
            false => Error::with(ErrorCode::OUT_OF_SORTMEMORY, &[]),
        }
    }

    /// Bytes that may still be held.
    #[inline]
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used).min(self.budget.left())
    }

    #[inline]
    pub fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        if self.shown >= self.used + STEP {
            self.show(self.used);
        }
    }

    /// What one operator may hold, of the `configured` bytes, before it moves to files.
    #[inline]
    pub fn operator_bytes(&self, configured: usize) -> usize {
        let configured = match self.is_connections_limit {
            true => configured.min((self.limit / OPERATORS_OF_CONNECTION).max(OPERATOR_BYTES_MIN)),
            false => configured,
        };
        // Who holds little is no matter of the budget.
        if self.shown == 0 { configured } else { self.shared_operator_bytes(configured) }
    }

    fn shared_operator_bytes(&self, configured: usize) -> usize {
        let budget = self.budget;
        match budget.left() < budget.limit() / 2 {
            true => configured.min((budget.share() / 2).max(OPERATOR_BYTES_MIN)),
            false => configured,
        }
    }

    #[cold]
    fn budget_take(&mut self) -> Result<()> {
        let more = self.used - self.shown;
        if self.shown == 0 {
            self.budget.enter();
        }
        let taken = self.take(more);
        if taken.is_err() && self.shown == 0 {
            self.budget.leave();
        }
        taken?;
        sys::waits::hold(self.shown as u64, self.used as u64);
        self.shown = self.used;
        Ok(())
    }

    /// Takes `more` bytes of the budget and of the connection's limit.
    fn take(&self, more: usize) -> Result<()> {
        self.budget.take(more, self.used)?;
        let held = self.connection.hold(more, &self.budget.counted);
        held.inspect_err(|_| self.budget.give(more))
    }

    /// Others see `bytes`, which is less than before.
    #[cold]
    fn show(&mut self, bytes: usize) {
        sys::waits::hold(self.shown as u64, bytes as u64);
        self.budget.give(self.shown - bytes);
        self.connection.release(self.shown - bytes, &self.budget.counted);
        self.shown = bytes;
        if bytes == 0 {
            self.budget.leave();
        }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if self.shown > 0 {
            self.show(0);
        }
    }
}

/// Bytes that the threads of one pipeline hold.
pub struct SharedMemory<'b> {
    budget: &'b MemoryBudget,
    connection: &'b ConnectionMemory,
    used: AtomicUsize,
    limit: usize,
}

impl<'b> SharedMemory<'b> {
    /// As much as `memory` has left.
    #[inline]
    pub fn within(memory: &Memory<'b>) -> SharedMemory<'b> {
        memory.budget.enter();
        let (budget, connection) = (memory.budget, memory.connection);
        SharedMemory { budget, connection, used: AtomicUsize::new(0), limit: memory.left() }
    }

    /// Takes `more` bytes; false when there are not so many.
    #[inline]
    pub fn take(&self, more: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed) + more;
        if used > self.limit || self.budget.take(more, used).is_err() {
            return false;
        }
        // The row program, which takes over, moves to files and is told of the limit.
        if self.connection.hold(more, &self.budget.counted).is_err() {
            self.budget.give(more);
            return false;
        }
        self.used.fetch_add(more, Ordering::Relaxed);
        true
    }
}

impl Drop for SharedMemory<'_> {
    fn drop(&mut self) {
        let used = self.used.load(Ordering::Relaxed);
        self.budget.give(used);
        self.connection.release(used, &self.budget.counted);
        self.budget.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    fn unlimited() -> ConnectionMemory {
        ConnectionMemory::default()
    }

    #[test]
    fn the_largest_statement_is_refused_first_and_small_ones_go_on() {
        let budget = MemoryBudget::new(64 * MB);
        let connection = unlimited();
        let mut large = Memory::new(usize::MAX, &budget, &connection);
        large.charge(60 * MB).expect("there is enough");
        let mut small: Vec<_> =
            (0..3).map(|_| Memory::new(usize::MAX, &budget, &connection)).collect();
        for memory in &mut small {
            memory.charge(2 * MB).expect("below its share");
        }
        let error = large.charge(2 * MB).expect_err("it has most of it");
        assert_eq!(error.code(), ErrorCode::OUT_OF_RESOURCES);
        // Beyond an eighth nobody gets more, whatever its share is.
        assert!(small[0].charge(5 * MB).is_ok() && small[1].charge(5 * MB).is_err());
        drop(large);
        assert!(small[2].charge(5 * MB).is_ok());
        drop(small);
        assert_eq!(budget.state(), (64 * MB, 0, 2));
        assert_eq!(budget.share(), 64 * MB, "nobody holds any");
    }

    #[test]
    fn operators_move_to_files_earlier_when_half_is_taken() {
        let budget = MemoryBudget::new(64 * MB);
        let connection = unlimited();
        let mut first = Memory::new(usize::MAX, &budget, &connection);
        first.charge(16 * MB).expect("there is enough");
        assert_eq!(first.operator_bytes(40 * MB), 40 * MB);
        let mut second = Memory::new(usize::MAX, &budget, &connection);
        second.charge(20 * MB).expect("there is enough");
        assert_eq!(first.operator_bytes(40 * MB), 16 * MB);
        assert_eq!(first.operator_bytes(MB), MB);
        first.release(16 * MB);
        assert_eq!(second.operator_bytes(40 * MB), 40 * MB);
    }

    #[test]
    fn threads_of_a_pipeline_take_from_the_budget() {
        let budget = MemoryBudget::new(8 * MB);
        let connection = unlimited();
        let memory = Memory::new(6 * MB, &budget, &connection);
        let shared = SharedMemory::within(&memory);
        assert!(shared.take(5 * MB) && !shared.take(2 * MB));
        let other = Memory::new(usize::MAX, &budget, &connection);
        assert_eq!(other.left(), 3 * MB);
        drop(shared);
        assert_eq!(other.left(), 8 * MB);
    }
}
