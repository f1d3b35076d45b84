//! Who is told of the rows that a statement writes. While nobody wants to be, a statement tests one setting for each row.

use engine_api::TableId;
use errors::Result;
use types::Value;

/// A row that is written: the stored columns in the order of the record, then, if there is a binary log, those that are computed when read.
#[derive(Clone, Copy, Debug)]
pub struct RowWrite<'w> {
    /// The table.
    pub table: TableId,
    /// The row before; none when it is new.
    pub old: Option<&'w [Value]>,
    /// The row after; none when it goes.
    pub new: Option<&'w [Value]>,
    /// Columns that became what functions made of the documents in them.
    pub edited: &'w [usize],
}

/// A place among the writes of a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowMark {
    /// Writes that are kept.
    pub kept: usize,
    /// Writes that found no room.
    pub lost: u64,
    /// Bytes for the binary log.
    pub logged: u64,
}

/// Who wants the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWish {
    /// Nobody.
    No,
    /// Only a log: a row may be logged before it is written, if the write is known to need nothing else, and taken back by a mark.
    Logged,
    /// Somebody who may refuse a row before it is written, or is told once it is there.
    Told,
}

/// Is told of the rows that statements write.
pub trait RowWatch {
    /// Who wants the rows of a table.
    fn wish(&mut self, table: TableId) -> RowWish;
    /// A row of such a table will be written.
    ///
    /// # Errors
    /// Refuses the statement.
    fn before(&mut self, write: &RowWrite<'_>) -> Result<()>;
    /// A row was written. True when so much is kept that `Host::relieve_row_watch` should be called.
    ///
    /// # Errors
    /// The row cannot be kept.
    fn after(&mut self, write: &RowWrite<'_>) -> Result<bool>;
    /// Where the transaction is now.
    fn mark(&mut self) -> RowMark;
    /// What was written after a mark has been undone.
    fn undo_to(&mut self, mark: RowMark);
}
