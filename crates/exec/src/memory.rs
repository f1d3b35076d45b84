//! The memory limit of a statement.

use errors::{Error, ErrorCode, Result};

/// Steps in which others see what is held: the word that they read is seldom written.
const SHOWN_STEP: usize = 1 << 20;

/// Counts bytes held by operators against the statement's limit.
#[derive(Default)]
pub(crate) struct Memory {
    used: usize,
    limit: usize,
    /// What others see of it.
    shown: usize,
}

impl Memory {
    /// Nothing is held yet.
    pub(crate) fn new(limit: usize) -> Memory {
        Memory { used: 0, limit, shown: 0 }
    }

    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
        if self.used - self.shown.min(self.used) >= SHOWN_STEP {
            self.show(self.used);
        }
        if self.used > self.limit {
            return Err(Error::with(ErrorCode::OUT_OF_SORTMEMORY, &[]));
        }
        Ok(())
    }

    /// Bytes that may still be held.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    pub(crate) fn release(&mut self, bytes: usize) {
        self.used = self.used.saturating_sub(bytes);
        if self.shown >= self.used + SHOWN_STEP {
            self.show(self.used);
        }
    }

    #[cold]
    fn show(&mut self, bytes: usize) {
        sys::waits::hold(self.shown as u64, bytes as u64);
        self.shown = bytes;
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.shown > 0 {
            self.show(0);
        }
    }
}
