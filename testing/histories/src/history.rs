//! Operations and results of clients: transactions of appends to lists and reads of lists. Independent of servers.

/// Where a list is.
pub type Key = u32;
/// An appended element; each is appended at most once to a key.
pub type Element = u32;

/// How a list was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Without a lock: from the snapshot where the level has one.
    Plain,
    /// FOR SHARE or FOR UPDATE.
    Locking,
}

/// One operation that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// An element was appended.
    Append {
        /// The list.
        key: Key,
        /// The element.
        element: Element,
        /// Undone by ROLLBACK TO SAVEPOINT.
        undone: bool,
    },
    /// A list was read completely.
    Read {
        /// The list.
        key: Key,
        /// The elements it held.
        elements: Vec<Element>,
        /// How.
        reading: Reading,
    },
}

/// The end of a transaction, from its client's view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// COMMIT was acknowledged.
    Committed,
    /// Rolled back, by itself or by the server.
    Aborted,
    /// COMMIT returned an error or no answer arrived.
    Unknown,
}

/// One transaction.
#[derive(Clone, Debug)]
pub struct Transaction {
    /// Its operations, in order.
    pub ops: Vec<Op>,
    /// How it ended.
    pub end: End,
    /// Before its first statement was sent.
    pub began: u64,
    /// After the answer to its last statement.
    pub ended: u64,
}

/// Level under which a history was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Uncommitted data is never read; there is no other promise across statements.
    ReadCommitted,
    /// With the reference's meaning: plain reads from one snapshot, writes and locking reads on current data, all locks kept.
    RepeatableRead,
    /// Every read locks.
    Serializable,
}
