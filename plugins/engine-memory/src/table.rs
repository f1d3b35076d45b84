//! A table: rows with their versions, secondary entries and counters.

use std::collections::BTreeMap;

use engine_api::{EngineResult, IndexDef, IndexId, TableDef, TableId};
use sys::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
use sys::sync::{Arc, Mutex, RwLock};

use crate::index_keys::IndexKeys;
use crate::key::Key;
use crate::statistics::CachedStats;
use crate::status::TxnStatus;

/// One state of a row.
pub(crate) struct Version {
    pub(crate) writer: Arc<TxnStatus>,
    /// `None`: deleted.
    pub(crate) record: Option<Box<[u8]>>,
}

/// A row with its history.
pub(crate) struct Row {
    pub(crate) head: Version,
    /// Oldest first.
    pub(crate) older: Vec<Version>,
}

/// The versions that a reader sees.
#[derive(Clone, Copy)]
pub(crate) struct View {
    /// `None`: the newest version, committed or not.
    pub(crate) snapshot: Option<u64>,
    /// Own versions are always seen.
    pub(crate) own: Option<u64>,
}

impl View {
    fn sees(self, version: &Version) -> bool {
        match self.snapshot {
            None => true,
            Some(snapshot) => {
                Some(version.writer.id) == self.own || version.writer.committed_by(snapshot)
            }
        }
    }
}

impl Row {
    /// The record that `view` sees.
    pub(crate) fn visible(&self, view: View) -> Option<&[u8]> {
        if view.sees(&self.head) {
            return self.head.record.as_deref();
        }
        let seen = self.older.iter().rev().find(|version| view.sees(version))?;
        seen.record.as_deref()
    }

    /// Newest version that is committed or written by `own`.
    pub(crate) fn newest_settled(&self, own: u64) -> Option<&Version> {
        let all = std::iter::once(&self.head).chain(self.older.iter().rev());
        all.into_iter().find(|version| version.writer.id == own || !version.writer.is_active())
    }

    pub(crate) fn is_live(&self) -> bool {
        self.head.record.is_some()
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&self.head).chain(&self.older).filter_map(|v| v.record.as_deref())
    }
}

/// A secondary index. Keys are the SQL columns' bytes followed by the locator.
pub(crate) struct Index {
    pub(crate) def: IndexDef,
    pub(crate) keys: IndexKeys,
    /// Value: the number of key bytes that are SQL columns.
    pub(crate) entries: BTreeMap<Key, u32>,
}

/// The data that the latch protects.
pub(crate) struct TableData {
    pub(crate) def: Arc<TableDef>,
    pub(crate) clustered: Option<IndexKeys>,
    pub(crate) rows: BTreeMap<Key, Row>,
    pub(crate) indexes: Vec<Index>,
    /// Bytes of records and keys.
    pub(crate) data_bytes: i64,
    pub(crate) index_bytes: i64,
}

impl TableData {
    pub(crate) fn new(def: &TableDef) -> EngineResult<TableData> {
        let clustered = def.primary().map(|index| IndexKeys::new(def, index)).transpose()?;
        let secondary = def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED);
        let indexes = secondary
            .map(|index| {
                let keys = IndexKeys::new(def, index)?;
                Ok(Index { def: index.clone(), keys, entries: BTreeMap::new() })
            })
            .collect::<EngineResult<Vec<_>>>()?;
        Ok(TableData {
            def: Arc::new(def.clone()),
            clustered,
            rows: BTreeMap::new(),
            indexes,
            data_bytes: 0,
            index_bytes: 0,
        })
    }

    /// The secondary index with `id`.
    pub(crate) fn index(&self, id: IndexId) -> Option<&Index> {
        self.indexes.iter().find(|index| index.def.id == id)
    }

    /// Adds the secondary entries of a record.
    pub(crate) fn add_entries(&mut self, record: &[u8], locator: &[u8]) -> EngineResult<()> {
        let mut key = Vec::new();
        for index in &mut self.indexes {
            let Index { keys, entries, .. } = index;
            keys.for_each(record, &mut key, |key, _| {
                let sql_length = key.len() as u32;
                key.extend_from_slice(locator);
                if !entries.contains_key(key.as_slice()) {
                    self.index_bytes += key.len() as i64;
                    entries.insert(Key::new(key), sql_length);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Removes the secondary entries of `gone` that no version left of the row needs.
    pub(crate) fn remove_entries(&mut self, gone: &[u8], locator: &[u8]) -> EngineResult<()> {
        let TableData { indexes, rows, index_bytes, .. } = self;
        let row = rows.get(locator);
        let (mut key, mut other) = (Vec::new(), Vec::new());
        for index in indexes {
            let Index { keys, entries, .. } = index;
            keys.for_each(gone, &mut key, |key, _| {
                for record in row.into_iter().flat_map(Row::records) {
                    if keys.matches(record, key, &mut other)? {
                        return Ok(());
                    }
                }
                key.extend_from_slice(locator);
                if entries.remove(key.as_slice()).is_some() {
                    *index_bytes -= key.len() as i64;
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// A table.
pub(crate) struct Table {
    pub(crate) id: TableId,
    pub(crate) data: RwLock<TableData>,
    /// Next AUTO_INCREMENT value; 0 means exhausted.
    pub(crate) auto_increment: Mutex<u64>,
    pub(crate) next_row_id: AtomicU64,
    /// Rows with a live newest version.
    pub(crate) live_rows: AtomicI64,
    /// Set when the creating transaction commits.
    pub(crate) committed: AtomicBool,
    pub(crate) stats: Mutex<Option<CachedStats>>,
}

impl Table {
    pub(crate) fn new(def: &TableDef) -> EngineResult<Table> {
        Ok(Table {
            id: def.id,
            data: RwLock::new(TableData::new(def)?),
            auto_increment: Mutex::new(1),
            next_row_id: AtomicU64::new(1),
            live_rows: AtomicI64::new(0),
            committed: AtomicBool::new(false),
            stats: Mutex::new(None),
        })
    }

    /// Space of an index's gap locks. A table has far fewer than 2^16 indexes.
    pub(crate) fn gap_space(&self, index: IndexId) -> u64 {
        (self.id.0 << 16) | u64::from(index.0)
    }
}
