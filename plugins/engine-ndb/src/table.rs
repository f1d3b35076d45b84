//! A table of the engine: its rows are one table of the cluster, and each secondary index is another.
//!
//! Rows: clustered key -> record. An entry of a secondary index is its key followed by the clustered key; an entry of a unique index without NULLs is its key
//! alone, so that the cluster refuses a second one. The row of an entry says where the clustered key is.

use engine_api::{EngineError, EngineResult, IndexDef, IndexId, TableDef, TableId};
use errors::{Error, ErrorCode};
use sys::sync::Arc;

use crate::error::NdbError;
use crate::index_keys::IndexKeys;
use crate::shim::{Connection, NdbTable};

/// Longest key of the table of rows: as long as any key of SQL.
pub(crate) const KEY_BYTES: u32 = 3072;
/// Longest record: what a row of the cluster has left beside such a key.
pub(crate) const RECORD_BYTES: u32 = 26_800;
/// Longest key that the cluster has.
pub(crate) const ENTRY_BYTES: u32 = 4_000;

/// A secondary index.
pub(crate) struct Index {
    pub(crate) def: IndexDef,
    pub(crate) keys: IndexKeys,
    pub(crate) entries: Arc<NdbTable>,
}

/// First byte of an entry's row: the clustered key follows.
const LOCATOR: u8 = 0;
/// The length of the index's own part of the key follows, two bytes; the rest of the key is the clustered key.
const LENGTH: u8 = 1;

/// An entry of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) row: Vec<u8>,
}

impl Entry {
    /// No other row may have it.
    pub(crate) fn is_unique(&self) -> bool {
        self.row.first() == Some(&LOCATOR)
    }
}

/// The index's own key and the clustered key of an entry that was read.
pub(crate) fn split_entry<'a>(key: &'a [u8], row: &'a [u8]) -> EngineResult<(&'a [u8], &'a [u8])> {
    let damaged = || EngineError::Other(Error::internal("an index entry in NDB is damaged"));
    match row {
        [LOCATOR, locator @ ..] => Ok((key, locator)),
        [LENGTH, low, high] => {
            key.split_at_checked(usize::from(u16::from_le_bytes([*low, *high]))).ok_or_else(damaged)
        }
        _ => Err(damaged()),
    }
}

impl Index {
    /// The entry of a row.
    pub(crate) fn entry(&self, record: &[u8], locator: &[u8]) -> EngineResult<Entry> {
        let mut key = Vec::new();
        let has_null = self.keys.append(record, &mut key)?;
        let mut row = Vec::new();
        if self.def.unique && !has_null {
            row.push(LOCATOR);
            row.extend_from_slice(locator);
        } else {
            row.push(LENGTH);
            row.extend_from_slice(&(key.len() as u16).to_le_bytes());
            key.extend_from_slice(locator);
        }
        if key.len() > self.entries.key_bytes {
            return Err(Error::with(ErrorCode::TOO_LONG_KEY, &[&self.entries.key_bytes]).into());
        }
        Ok(Entry { key, row })
    }
}

/// A table.
pub(crate) struct Table {
    pub(crate) def: Arc<TableDef>,
    pub(crate) rows: Arc<NdbTable>,
    pub(crate) clustered: Option<IndexKeys>,
    pub(crate) indexes: Vec<Index>,
}

pub(crate) fn rows_name(table: TableId) -> String {
    format!("t{}", table.0)
}

pub(crate) fn index_name(table: TableId, index: IndexId) -> String {
    format!("i{}_{}", table.0, index.0)
}

/// The tables of the cluster that a definition needs: name, bytes of keys and rows.
pub(crate) fn parts(def: &TableDef) -> Vec<(String, u32, u32)> {
    let mut parts = vec![(rows_name(def.id), KEY_BYTES, RECORD_BYTES)];
    parts.extend(secondary(def).map(|index| index_part(def.id, index.id)));
    parts
}

pub(crate) fn index_part(table: TableId, index: IndexId) -> (String, u32, u32) {
    (index_name(table, index), ENTRY_BYTES, KEY_BYTES + 1)
}

pub(crate) fn secondary(def: &TableDef) -> impl Iterator<Item = &IndexDef> {
    def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED)
}

impl Table {
    /// Looks up what a definition names.
    pub(crate) fn open(connection: &Arc<Connection>, def: TableDef) -> EngineResult<Table> {
        let open = |name: String| NdbTable::open(connection, &name).map_err(NdbError::into_engine);
        let clustered = def.primary().map(|index| IndexKeys::new(&def, index)).transpose()?;
        let rows = open(rows_name(def.id))?;
        let indexes = secondary(&def).map(|index| {
            let entries = open(index_name(def.id, index.id))?;
            Ok(Index { def: index.clone(), keys: IndexKeys::new(&def, index)?, entries })
        });
        let indexes = indexes.collect::<EngineResult<Vec<_>>>()?;
        Ok(Table { rows, clustered, indexes, def: Arc::new(def) })
    }

    pub(crate) fn id(&self) -> TableId {
        self.def.id
    }

    pub(crate) fn index(&self, id: IndexId) -> EngineResult<&Index> {
        self.indexes.iter().find(|index| index.def.id == id).ok_or(EngineError::UnknownTable)
    }

    /// The entries of a row, in the order of `indexes`.
    pub(crate) fn entries(&self, record: &[u8], locator: &[u8]) -> EngineResult<Vec<Entry>> {
        self.indexes.iter().map(|index| index.entry(record, locator)).collect()
    }

    /// Refuses a record that no row of the cluster can hold.
    pub(crate) fn check_record(&self, record: &[u8]) -> EngineResult<()> {
        match record.len() > self.rows.row_bytes {
            true => Err(Error::with(ErrorCode::TOO_BIG_ROWSIZE, &[&self.rows.row_bytes]).into()),
            false => Ok(()),
        }
    }
}
