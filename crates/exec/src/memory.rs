//! The memory limit of a statement, and the budget that all statements share.

use errors::{Error, ErrorCode, Result};
use sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Steps in which others see what is held, and in which it is taken from the budget: the words are seldom written.
const STEP: usize = 1 << 20;
/// What one sort or hash table may hold however many others there are.
const OPERATOR_BYTES_MIN: usize = 256 << 10;
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
        }
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
pub(crate) struct Memory<'b> {
    budget: &'b MemoryBudget,
    used: usize,
    limit: usize,
    /// What others see of it, and what is taken from the budget.
    shown: usize,
}

impl<'b> Memory<'b> {
    /// Nothing is held yet.
    pub(crate) fn new(limit: usize, budget: &'b MemoryBudget) -> Memory<'b> {
        Memory { budget, used: 0, limit, shown: 0 }
    }

    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        if self.used > self.limit {
            return Err(Error::with(ErrorCode::OUT_OF_SORTMEMORY, &[]));
        }
        if self.used - self.shown.min(self.used) >= STEP {
            self.budget_take()?;
        }
        Ok(())
    }

    /// Bytes that may still be held.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used).min(self.budget.left())
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        if self.shown >= self.used + STEP {
            self.show(self.used);
        }
    }

    /// What one operator may hold, of the `configured` bytes, before it moves to files.
    #[inline]
    pub(crate) fn operator_bytes(&self, configured: usize) -> usize {
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
        let taken = self.budget.take(more, self.used);
        if taken.is_err() && self.shown == 0 {
            self.budget.leave();
        }
        taken?;
        sys::waits::hold(self.shown as u64, self.used as u64);
        self.shown = self.used;
        Ok(())
    }

    /// Others see `bytes`, which is less than before.
    #[cold]
    fn show(&mut self, bytes: usize) {
        sys::waits::hold(self.shown as u64, bytes as u64);
        self.budget.give(self.shown - bytes);
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
pub(crate) struct SharedMemory<'b> {
    budget: &'b MemoryBudget,
    used: AtomicUsize,
    limit: usize,
}

impl<'b> SharedMemory<'b> {
    /// As much as `memory` has left.
    pub(crate) fn within(memory: &Memory<'b>) -> SharedMemory<'b> {
        memory.budget.enter();
        SharedMemory { budget: memory.budget, used: AtomicUsize::new(0), limit: memory.left() }
    }

    /// Takes `more` bytes; false when there are not so many.
    pub(crate) fn take(&self, more: usize) -> bool {
        let used = self.used.load(Ordering::Relaxed) + more;
        if used > self.limit || self.budget.take(more, used).is_err() {
            return false;
        }
        self.used.fetch_add(more, Ordering::Relaxed);
        true
    }
}

impl Drop for SharedMemory<'_> {
    fn drop(&mut self) {
        self.budget.give(self.used.load(Ordering::Relaxed));
        self.budget.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: usize = 1 << 20;

    #[test]
    fn the_largest_statement_is_refused_first_and_small_ones_go_on() {
        let budget = MemoryBudget::new(64 * MB);
        let mut large = Memory::new(usize::MAX, &budget);
        large.charge(60 * MB).expect("there is enough");
        let mut small: Vec<_> = (0..3).map(|_| Memory::new(usize::MAX, &budget)).collect();
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
        let mut first = Memory::new(usize::MAX, &budget);
        first.charge(16 * MB).expect("there is enough");
        assert_eq!(first.operator_bytes(40 * MB), 40 * MB);
        let mut second = Memory::new(usize::MAX, &budget);
        second.charge(20 * MB).expect("there is enough");
        assert_eq!(first.operator_bytes(40 * MB), 16 * MB);
        assert_eq!(first.operator_bytes(MB), MB);
        first.release(16 * MB);
        assert_eq!(second.operator_bytes(40 * MB), 40 * MB);
    }

    #[test]
    fn threads_of_a_pipeline_take_from_the_budget() {
        let budget = MemoryBudget::new(8 * MB);
        let memory = Memory::new(6 * MB, &budget);
        let shared = SharedMemory::within(&memory);
        assert!(shared.take(5 * MB) && !shared.take(2 * MB));
        let other = Memory::new(usize::MAX, &budget);
        assert_eq!(other.left(), 3 * MB);
        drop(shared);
        assert_eq!(other.left(), 8 * MB);
    }
}
