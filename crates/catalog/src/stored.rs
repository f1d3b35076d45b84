//! A table as the catalog keeps it: the bytes of its dictionary entry, decoded when a session asks for the table. Tables that were
//! used recently stay decoded, up to a limit; a reference to one keeps it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapWeak;
use engine_api::TableId;
use errors::Result;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicUsize, Ordering};

use crate::{Table, codec};

/// The default number of tables that stay decoded.
const TABLES_MAX: usize = 2000;
/// Bytes of entries of tables that stay decoded: what is decoded takes about as much again for long texts, several times as much for short ones.
const BYTES_MAX: usize = 16 << 20;

/// See the module's documentation.
pub(crate) struct StoredTable {
    pub(crate) id: TableId,
    /// What lists of names tell: whether it is a sequence, and whether it keeps history.
    pub(crate) is_sequence: bool,
    pub(crate) keeps_history: bool,
    encoded: Box<[u8]>,
    /// The table, while it is referenced.
    read: ArcSwapWeak<Table>,
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTable").field("id", &self.id).finish_non_exhaustive()
    }
}

impl StoredTable {
    /// A table that was just created or changed.
    pub(crate) fn new(table: &Arc<Table>) -> StoredTable {
        StoredTable {
            id: table.id,
            is_sequence: table.is_sequence(),
            keeps_history: table.row_times().is_some(),
            encoded: codec::write_table(table).into(),
            read: ArcSwapWeak::new(Arc::downgrade(table)),
        }
    }

    /// A table from the dictionary, as stored and decoded.
    ///
    /// # Errors
    /// A damaged entry.
    pub(crate) fn load(encoded: &[u8]) -> Result<(StoredTable, Table)> {
        let table = codec::read_table(encoded)?;
        let read = ArcSwapWeak::new(Weak::new());
        let (id, is_sequence) = (table.id, table.is_sequence());
        let keeps_history = table.row_times().is_some();
        let encoded = encoded.into();
        Ok((StoredTable { id, is_sequence, keeps_history, encoded, read }, table))
    }

    fn present(&self) -> Option<Arc<Table>> {
        self.read.load().upgrade()
    }

    /// The table, without keeping it in memory: for scans over many tables.
    pub(crate) fn look(&self) -> Arc<Table> {
        self.present().unwrap_or_else(|| Arc::new(self.decode()))
    }

    fn decode(&self) -> Table {
        codec::read_table(&self.encoded).expect("the entry was read or written before")
    }

    /// Whether `table` is the object that other callers get now.
    pub(crate) fn is(&self, table: &Arc<Table>) -> bool {
        std::ptr::eq(self.read.load().as_ptr(), Arc::as_ptr(table))
    }

    /// Its dictionary entry.
    pub(crate) fn encoded(&self) -> &[u8] {
        &self.encoded
    }

    /// Approximate bytes of memory while it is not decoded.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<StoredTable>() + self.encoded.len()
    }
}

/// Tables that stay decoded, the oldest first.
#[derive(Debug, Default)]
struct Recent {
    tables: VecDeque<(Arc<StoredTable>, Arc<Table>)>,
    /// Bytes of their entries.
    bytes: usize,
}

/// The tables that were decoded recently.
#[derive(Debug)]
pub(crate) struct ReadTables {
    recent: Mutex<Recent>,
    limit: AtomicUsize,
}

impl Default for ReadTables {
    fn default() -> ReadTables {
        ReadTables { recent: Mutex::default(), limit: AtomicUsize::new(TABLES_MAX) }
    }
}

impl ReadTables {
    /// The table, for use.
    pub(crate) fn get(&self, stored: &Arc<StoredTable>) -> Arc<Table> {
        if let Some(table) = stored.present() {
            return table;
        }
        let mut recent = self.recent.lock();
        // Another thread may have decoded it: all users must have the same object.
        if let Some(table) = stored.present() {
            return table;
        }
        let table = Arc::new(stored.decode());
        stored.read.store(Arc::downgrade(&table));
        recent.bytes += stored.encoded.len();
        recent.tables.push_back((stored.clone(), table.clone()));
        self.shrink(&mut recent);
        table
    }

    fn shrink(&self, recent: &mut Recent) {
        let limit = self.limit.load(Ordering::Relaxed);
        // The newest stays however large it is: the next statement most likely wants it.
        while recent.tables.len() > limit || recent.bytes > BYTES_MAX && recent.tables.len() > 1 {
            let Some((stored, table)) = recent.tables.pop_front() else { return };
            recent.bytes -= stored.encoded.len();
            if Arc::strong_count(&table) == 1 {
                // So that the memory of the last reference is freed too. A caller that comes in between has a separate table.
                stored.read.store(Weak::new());
            }
        }
    }

    pub(crate) fn set_limit(&self, tables: usize) {
        self.limit.store(tables, Ordering::Relaxed);
        self.shrink(&mut self.recent.lock());
    }

    pub(crate) fn count(&self) -> usize {
        self.recent.lock().tables.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::table;

    #[test]
    fn tables_stay_decoded_up_to_the_limit_and_while_they_are_referenced() {
        let stored: Vec<Arc<StoredTable>> = (1..=3)
            .map(|id| {
                let bytes = codec::write_table(&table(id, "s", "t"));
                Arc::new(StoredTable::load(&bytes).expect("readable").0)
            })
            .collect();
        let read = ReadTables::default();
        read.set_limit(2);
        let held = read.get(&stored[0]);
        assert_eq!(format!("{held:?}"), format!("{:?}", table(1, "s", "t")));
        assert!(Arc::ptr_eq(&held, &read.get(&stored[0])) && stored[0].is(&held));
        drop(read.get(&stored[1]));
        assert_eq!(read.count(), 2);
        // The first is evicted but still in use: all others get the same object.
        drop(read.get(&stored[2]));
        assert_eq!(read.count(), 2);
        assert!(Arc::ptr_eq(&held, &read.get(&stored[0])) && stored[0].is(&held));
        read.set_limit(0);
        assert!(stored[0].is(&held) && stored[1].present().is_none());
        // Large ones are bounded by their bytes, the newest excepted.
        read.set_limit(100);
        let mut large = table(9, "s", "t");
        large.comment = "x".repeat(BYTES_MAX * 2 / 3);
        let large: Vec<_> = (9..=11)
            .map(|id| {
                large.id = TableId(id);
                let bytes = codec::write_table(&large);
                Arc::new(StoredTable::load(&bytes).expect("readable").0)
            })
            .collect();
        large.iter().for_each(|stored| drop(read.get(stored)));
        assert!(read.count() == 1 && large[0].present().is_none() && large[2].present().is_some());
        read.set_limit(0);
        // `look` does not keep the table.
        let looked = stored[1].look();
        assert!(read.count() == 0 && !stored[1].is(&looked));
        drop(held);
        assert!(stored[0].present().is_none());
    }
}
