//! Gives the changes of committed transactions to sinks, each transaction after those that committed before it.
//!
//! Transactions with such changes commit one at a time, so that their turns are in the order of their commits; then each waits for the
//! log and for its turn. Transactions without them know nothing of this.

use engine_api::CommitHandle;
use errors::Result;
use sys::sync::atomic::{AtomicUsize, Ordering};
use sys::sync::{Condvar, Mutex};

/// Bytes of changes that all open transactions together may keep.
const BYTES_MAX: usize = 256 << 20;

/// The order of transactions with changes for sinks.
#[derive(Debug, Default)]
pub struct ChangeOrder {
    turns: Mutex<Turns>,
    next_turn: Condvar,
    bytes: AtomicUsize,
}

#[derive(Debug, Default)]
struct Turns {
    /// Transactions that have committed.
    given: u64,
    /// Those whose sinks have been told.
    done: u64,
}

/// Ends a turn, whatever happens in it.
struct Turn<'o>(&'o ChangeOrder);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.turns.lock().done += 1;
        self.0.next_turn.notify_all();
    }
}

impl ChangeOrder {
    /// Whether there is room for more changes; then it is taken.
    pub fn reserve(&self, bytes: usize) -> bool {
        let taken = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if taken + bytes > BYTES_MAX {
            self.free(bytes);
            return false;
        }
        true
    }

    /// Gives room back.
    pub fn free(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Commits, and then tells the sinks with the transaction's number.
    ///
    /// # Errors
    /// Those of `commit`.
    #[cold]
    pub fn commit(
        &self,
        commit: impl FnOnce() -> Result<CommitHandle>,
        tell: impl FnOnce(u64),
    ) -> Result<CommitHandle> {
        let mut turns = self.turns.lock();
        let handle = commit()?;
        turns.given += 1;
        let number = turns.given;
        drop(turns);
        sys::blocking::blocking(|| {
            // After a failure of the log nobody knows whether the changes will be there.
            let is_durable = handle.wait().is_ok();
            let mut turns = self.turns.lock();
            while turns.done + 1 != number {
                turns = self.next_turn.wait(turns);
            }
            drop(turns);
            let _turn = Turn(self);
            if is_durable {
                tell(number);
            }
        });
        Ok(handle)
    }
}
