//! Rows that a statement reads and writes by table and index, counted while an observer asks for it.

use engine_api::{IndexId, TableId};
use sys::sync::Mutex;

/// Rows of a table; those that were read, of one index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCounts {
    /// The table.
    pub table: TableId,
    /// The index that rows were found by; `None` for a table that is read whole, and for writes.
    pub index: Option<IndexId>,
    /// Rows that were read.
    pub fetched: u64,
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows that were updated.
    pub updated: u64,
    /// Rows that were deleted.
    pub deleted: u64,
}

/// The counts of a statement and of those within it.
#[derive(Debug, Default)]
pub struct TableWork(Mutex<Vec<TableCounts>>);

impl TableWork {
    fn change(&self, table: TableId, index: Option<IndexId>, add: impl FnOnce(&mut TableCounts)) {
        let mut list = self.0.lock();
        let known = list.iter().position(|known| known.table == table && known.index == index);
        let at = known.unwrap_or_else(|| {
            let (fetched, inserted, updated, deleted) = (0, 0, 0, 0);
            list.push(TableCounts { table, index, fetched, inserted, updated, deleted });
            list.len() - 1
        });
        add(&mut list[at]);
    }

    #[cold]
    pub(crate) fn fetched(&self, table: TableId, index: Option<IndexId>, rows: u64) {
        self.change(table, index, |counts| counts.fetched += rows);
    }

    #[cold]
    pub(crate) fn inserted(&self, table: TableId) {
        self.change(table, None, |counts| counts.inserted += 1);
    }

    #[cold]
    pub(crate) fn updated(&self, table: TableId) {
        self.change(table, None, |counts| counts.updated += 1);
    }

    #[cold]
    pub(crate) fn deleted(&self, table: TableId) {
        self.change(table, None, |counts| counts.deleted += 1);
    }

    /// All counts so far.
    pub fn all(&self) -> Vec<TableCounts> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_count_by_index_and_writes_by_table() {
        let work = TableWork::default();
        work.fetched(TableId(1), Some(IndexId(2)), 5);
        work.fetched(TableId(1), None, 1);
        work.fetched(TableId(1), Some(IndexId(2)), 6);
        work.updated(TableId(1));
        let all = work.all();
        let shown: Vec<_> = all.iter().map(|one| (one.index, one.fetched, one.updated)).collect();
        assert_eq!(shown, [(Some(IndexId(2)), 11, 0), (None, 1, 1)]);
    }
}
