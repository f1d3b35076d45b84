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
use crate::sizes::{self, Sizes};

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
    /// Of a shared definition; else 0.
    pub(crate) stamp: u64,
}

pub(crate) fn rows_name(table: TableId) -> String {
    format!("t{}", table.0)
}

pub(crate) fn index_name(table: TableId, index: IndexId) -> String {
    format!("i{}_{}", table.0, index.0)
}

/// The tables of the cluster that a new table needs.
pub(crate) fn parts(def: &TableDef) -> Vec<(String, Sizes)> {
    let mut parts = vec![(rows_name(def.id), sizes::of_rows(def, true))];
    parts.extend(secondary(def).map(|index| index_part(def, index)));
    parts
}

pub(crate) fn index_part(def: &TableDef, index: &IndexDef) -> (String, Sizes) {
    (index_name(def.id, index.id), sizes::of_index(def, index))
}

pub(crate) fn secondary(def: &TableDef) -> impl Iterator<Item = &IndexDef> {
    def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED)
}

impl Table {
    /// Looks up what a definition names.
    pub(crate) fn open(
        connection: &Arc<Connection>,
        def: TableDef,
        stamp: u64,
    ) -> EngineResult<Table> {
        let open = |name: String| NdbTable::open(connection, &name).map_err(NdbError::into_engine);
        let clustered = def.primary().map(|index| IndexKeys::new(&def, index)).transpose()?;
        let rows = open(rows_name(def.id))?;
        let indexes = secondary(&def).map(|index| {
            let entries = open(index_name(def.id, index.id))?;
            Ok(Index { def: index.clone(), keys: IndexKeys::new(&def, index)?, entries })
        });
        let indexes = indexes.collect::<EngineResult<Vec<_>>>()?;
        Ok(Table { rows, clustered, indexes, def: Arc::new(def), stamp })
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

    /// Whether rows and keys of another definition fit.
    pub(crate) fn holds(&self, def: &TableDef) -> bool {
        let fits = |table: &NdbTable, sizes: Sizes| {
            sizes.key_bytes as usize <= table.key_bytes
                && sizes.row_bytes as usize <= table.row_bytes
        };
        let indexes = self.indexes.iter().zip(secondary(def));
        fits(&self.rows, sizes::of_rows(def, false))
            && indexes.into_iter().all(|(own, new)| fits(&own.entries, sizes::of_index(def, new)))
    }

    /// Refuses a record that no row of the cluster can hold.
    pub(crate) fn check_record(&self, record: &[u8]) -> EngineResult<()> {
        match record.len() > self.rows.row_bytes {
            true => Err(Error::with(ErrorCode::TOO_BIG_ROWSIZE, &[&self.rows.row_bytes]).into()),
            false => Ok(()),
        }
    }
}
