//! The outcomes of locking or writing a row.

use std::sync::Arc;

use locks::Owner;

/// The obstacle of a lock attempt or a write.
pub(crate) enum Obstacle {
    /// Wait for the record's lock, then try again.
    Row(Vec<u8>),
    /// Wait until one of these ends, then try again.
    Transactions(Vec<Arc<Owner>>),
    /// Like `Transactions`, before the key with this name is inserted into a range that they have locked.
    Insert(Vec<Arc<Owner>>, Vec<u8>),
}

/// What a locking read does if the row does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing: if need be, its caller locks the range.
    Left,
    /// It is locked like a row: an entry led to it, and would be this row's again without an insert into a locked range (E18).
    Locked,
}

/// A row that a locking read has read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    /// It is locked; its value is in the scratch buffer.
    Found,
    /// No live row exists.
    Missing,
    /// It is locked by another and the policy is to leave it out.
    Skipped,
}
