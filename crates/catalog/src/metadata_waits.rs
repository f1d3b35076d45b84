//! How often and how long sessions waited for metadata locks, by table. Counted at the end of a wait.

use std::time::Duration;

use engine_api::TableId;
use hashbrown::HashMap;
use stdx::Extent;
use sys::clock::monotonic;
use sys::sync::Mutex;

use crate::metadata_lock::Usage;

/// Tables that are told apart; waits for further ones are not kept.
const TABLES_MAX: usize = 10_000;

/// Number and time of some waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSums {
    /// How many.
    pub count: u64,
    /// Their time.
    pub nanos: u64,
    /// The shortest and the longest one, nanoseconds.
    pub extent: Extent,
}

impl WaitSums {
    fn add(&mut self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        self.extent = self.extent.with(nanos);
    }
}

/// The waits of sessions for one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableWaits {
    /// Of those that wanted to read it, or to keep others from writing it.
    pub read: WaitSums,
    /// Of those that wanted to write it, or to keep others from using it.
    pub write: WaitSums,
}

/// The waits for each table so far.
#[derive(Debug, Default)]
pub(crate) struct MetadataWaits(Mutex<HashMap<TableId, TableWaits>>);

impl MetadataWaits {
    /// All tables that were waited for.
    pub(crate) fn all(&self) -> Vec<(TableId, TableWaits)> {
        self.0.lock().iter().map(|(table, waits)| (*table, *waits)).collect()
    }

    fn add(&self, table: TableId, usage: Usage, took: Duration) {
        let mut tables = self.0.lock();
        if tables.len() >= TABLES_MAX && !tables.contains_key(&table) {
            return;
        }
        let waits = tables.entry(table).or_default();
        match usage {
            Usage::Read => waits.read.add(took),
            Usage::Write => waits.write.add(took),
        }
    }
}

/// The wait of one request. It counts when this is dropped.
pub(crate) struct TableWait<'w> {
    waits: &'w MetadataWaits,
    began: Option<(TableId, Usage, Duration)>,
}

impl<'w> TableWait<'w> {
    /// Nothing is waited for yet.
    pub(crate) fn new(waits: &'w MetadataWaits) -> TableWait<'w> {
        TableWait { waits, began: None }
    }

    /// The request waits for what `wanted` tells, the first time that it does; `None` is all tables, whose waits are those of no table.
    pub(crate) fn begin(&mut self, wanted: impl FnOnce() -> Option<(TableId, Usage)>) {
        if self.began.is_none() {
            self.began = wanted().map(|(table, usage)| (table, usage, monotonic()));
        }
    }
}

impl Drop for TableWait<'_> {
    fn drop(&mut self) {
        if let Some((table, usage, began)) = self.began {
            self.waits.add(table, usage, monotonic().saturating_sub(began));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_for_the_first_table_that_it_waits_for() {
        let waits = MetadataWaits::default();
        let mut wait = TableWait::new(&waits);
        wait.begin(|| None);
        wait.begin(|| Some((TableId(1), Usage::Write)));
        wait.begin(|| Some((TableId(2), Usage::Read)));
        assert!(waits.all().is_empty(), "it still waits");
        drop(wait);
        drop(TableWait::new(&waits));
        let all = waits.all();
        assert_eq!((all.len(), all[0].0), (1, TableId(1)));
        assert_eq!((all[0].1.write.count, all[0].1.read.count), (1, 0));
        assert_eq!(all[0].1.write.nanos, all[0].1.write.extent.most());
    }
}
