//! A commit that is decided but perhaps not yet durable.

use std::sync::Arc;
use std::time::Duration;

use crate::EngineResult;

/// The interface that an engine implements for commits that wait for its log.
pub trait CommitWait: Send + Sync {
    /// Whether the commit may be acknowledged. Never blocks.
    fn is_durable(&self) -> bool;
    /// Blocks until the commit may be acknowledged.
    ///
    /// # Errors
    /// The log failed; the commit must not be acknowledged.
    fn wait(&self) -> EngineResult<()>;
    /// Calls `wake` once, from any thread, when `is_durable` has become true; at once when it already is.
    fn notify(&self, wake: Box<dyn FnOnce() + Send>);
    /// For a thread with no other work: makes the commit durable on this thread, if no other thread is doing so and that took no longer
    /// than `patience` lately. `Ok(false)`: not now; `wake` is called once, from any thread, when the caller should check again.
    ///
    /// # Errors
    /// As for `wait`.
    fn lead(&self, patience: Duration, wake: Box<dyn FnOnce() + Send>) -> EngineResult<bool> {
        let _for_own_threads = patience;
        self.notify(wake);
        Ok(false)
    }
}

/// Returned by a commit. The reply to the client must be held back until it is durable.
#[derive(Clone)]
pub enum CommitHandle {
    /// Nothing to wait for.
    Durable,
    /// Wait, poll or be called back.
    Pending(Arc<dyn CommitWait>),
}

impl CommitHandle {
    /// Blocks until the commit may be acknowledged.
    ///
    /// # Errors
    /// The log failed.
    pub fn wait(&self) -> EngineResult<()> {
        match self {
            CommitHandle::Durable => Ok(()),
            CommitHandle::Pending(wait) => wait.wait(),
        }
    }

    /// Whether the commit may be acknowledged now.
    pub fn is_durable(&self) -> bool {
        match self {
            CommitHandle::Durable => true,
            CommitHandle::Pending(wait) => wait.is_durable(),
        }
    }
}

impl std::fmt::Debug for CommitHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_durable() {
            "CommitHandle(durable)"
        } else {
            "CommitHandle(pending)"
        })
    }
}
