//! The memory limit of a statement.

use errors::{Error, ErrorCode, Result};

/// Counts bytes held by operators against the statement's limit.
#[derive(Default)]
pub(crate) struct Memory {
    used: usize,
    limit: usize,
}

impl Memory {
    /// Nothing is held yet.
    pub(crate) fn new(limit: usize) -> Memory {
        Memory { used: 0, limit }
    }

    pub(crate) fn charge(&mut self, bytes: usize) -> Result<()> {
        self.used += bytes;
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
    }
}
