//! Attachments: bytes that a transaction leaves in the log of its engine, as a part of its commit, for a reader that follows the log.

use std::time::Duration;

use crate::EngineResult;

/// A commit with an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachedCommit {
    /// Its place in the order of all commits.
    pub position: u64,
    /// When, microseconds since 1970 UTC.
    pub micros: u64,
    /// Bytes of the attachment.
    pub length: u64,
}

/// Reads the attachments of commits that are durable, in the order of the commits: the same ones in the same order each time, also
/// after a crash. The engine keeps its log for it.
pub trait AttachmentReader: Send {
    /// The next commit with an attachment; `None` when there is none for now.
    ///
    /// # Errors
    /// I/O; a damaged log.
    fn next(&mut self) -> EngineResult<Option<AttachedCommit>>;

    /// Adds the next part of the attachment of the commit that `next` returned last to `out`; false when that was the last one.
    ///
    /// # Errors
    /// I/O.
    fn read(&mut self, out: &mut Vec<u8>) -> EngineResult<bool>;

    /// `read` begins with the first part of that attachment again.
    fn again(&mut self);

    /// Every commit with a smaller position has been returned by `next`, if it has an attachment.
    fn passed(&self) -> u64;

    /// Whether commits between those that were asked for and those that it returns are lost: the engine did not keep its log for a while.
    fn has_gap(&self) -> bool;

    /// The reader keeps all that it was given, durably: the engine may forget its log up to here.
    ///
    /// # Errors
    /// I/O.
    fn confirm(&mut self) -> EngineResult<()>;

    /// Ends a `wait` or a `pause` from another thread; the next one, if there is none now.
    fn waker(&self) -> Box<dyn Fn() + Send + Sync>;

    /// Waits until there may be another commit with an attachment, or for so long.
    fn wait(&mut self, at_most: Duration);

    /// Lets commits gather for so long; they do not end it.
    fn pause(&mut self, at_most: Duration);
}
