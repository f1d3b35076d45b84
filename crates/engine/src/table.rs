//! A table as transactions use it: immutable recipes and roots, and a few counters that outlive changes of the definition.

use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};

use btree::Tree;
use engine_api::{EngineError, EngineResult, IndexDef, IndexId, TableDef, TableId, TableStats};
use sys::sync::Mutex;

use crate::index_build::IndexBuild;
use crate::keys::IndexKeys;
use crate::row_notes::RowNotes;

/// Bytes of a hidden row id.
const ROW_ID_BYTES: usize = 8;

/// A tree as stored in the dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredTree {
    pub index: IndexId,
    pub tree: Tree,
}

/// A secondary index.
pub(crate) struct Index {
    pub def: IndexDef,
    pub keys: IndexKeys,
    pub tree: Tree,
    /// Snapshots up to this ticket may see row versions that have no entry.
    pub usable_from: u64,
}

/// Counters of a table.
#[derive(Default)]
pub(crate) struct TableCounters {
    pub next_row_id: AtomicU64,
    /// Next value and the stored bound below which values may have been drawn. Next 0: exhausted.
    pub auto_increment: Mutex<AutoIncrement>,
    pub committed: AtomicBool,
    /// Rows inserted less rows deleted since the statistics were made.
    pub row_changes: AtomicI64,
    pub stats: Mutex<Option<TableStats>>,
    /// Trees of indexes that were built over present rows since the start, and from which ticket on each is usable.
    pub built: Mutex<Vec<(u64, u64)>>,
}

/// See `TableCounters`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AutoIncrement {
    pub next: u64,
    pub stored: u64,
}

impl Default for AutoIncrement {
    fn default() -> Self {
        AutoIncrement { next: 1, stored: 1 }
    }
}

/// A table with one definition. A change of the definition makes a new one that shares the counters.
pub(crate) struct Table {
    pub id: TableId,
    pub def: Arc<TableDef>,
    pub clustered: Tree,
    /// `None`: hidden row ids.
    pub primary: Option<IndexKeys>,
    /// No key of the clustered tree is longer, whatever changes without a new tree.
    pub key_bytes_max: usize,
    pub indexes: Vec<Index>,
    /// Indexes that are being built: changes of rows are noted for them.
    pub builds: Vec<Arc<IndexBuild>>,
    /// Where changed rows are noted while others are copied.
    pub notes: Option<Arc<RowNotes>>,
    pub counters: Arc<TableCounters>,
}

impl Table {
    pub fn new(
        def: TableDef,
        trees: &[StoredTree],
        counters: Arc<TableCounters>,
    ) -> EngineResult<Table> {
        let tree_of = |id: IndexId| {
            let found = trees.iter().find(|tree| tree.index == id);
            found.map(|stored| stored.tree).ok_or(EngineError::UnknownTable)
        };
        let layout = IndexKeys::layout(&def);
        let primary =
            def.primary().map(|index| IndexKeys::new(&def, index, &layout)).transpose()?;
        let key_bytes_max = primary.as_ref().map_or(ROW_ID_BYTES, IndexKeys::bytes_max);
        let secondary = def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED);
        let indexes = secondary.map(|index| {
            let tree = tree_of(index.id)?;
            let built = counters.built.lock();
            let built = built.iter().find(|(built, _)| *built == tree.id);
            Ok(Index {
                def: index.clone(),
                keys: IndexKeys::new(&def, index, &layout)?,
                usable_from: built.map_or(0, |(_, ticket)| *ticket),
                tree,
            })
        });
        let indexes = indexes.collect::<EngineResult<Vec<_>>>()?;
        let clustered = tree_of(IndexId::CLUSTERED)?;
        let (id, def, builds) = (def.id, Arc::new(def), Vec::new());
        let notes = None;
        Ok(Table { id, clustered, primary, key_bytes_max, indexes, builds, notes, counters, def })
    }

    /// The same table with other indexes being built.
    pub fn with_builds(&self, builds: Vec<Arc<IndexBuild>>) -> EngineResult<Table> {
        let counters = self.counters.clone();
        let same = Table::new(TableDef::clone(&self.def), &self.trees(), counters)?;
        Ok(Table { builds, ..same })
    }

    /// The same table, whose changed rows are noted.
    pub fn with_notes(&self, notes: Arc<RowNotes>) -> EngineResult<Table> {
        Ok(Table { notes: Some(notes), ..self.with_builds(Vec::new())? })
    }

    /// Bytes of memory, about.
    pub fn memory_bytes(&self) -> usize {
        /// A column in the definition, in the layout and as part of keys, with its name.
        const COLUMN_BYTES: usize = size_of::<engine_api::ColumnDef>() + 3 * 64;
        const INDEX_BYTES: usize = size_of::<Index>() + 128;
        size_of::<Table>()
            + size_of::<TableCounters>()
            + self.def.name.capacity()
            + self.def.columns.len() * COLUMN_BYTES
            + self.def.indexes.len() * INDEX_BYTES
    }

    /// Position of a secondary index.
    pub fn index_at(&self, id: IndexId) -> EngineResult<usize> {
        let found = self.indexes.iter().position(|index| index.def.id == id);
        found.ok_or(EngineError::UnknownTable)
    }

    pub fn trees(&self) -> Vec<StoredTree> {
        let clustered = StoredTree { index: IndexId::CLUSTERED, tree: self.clustered };
        let secondary =
            self.indexes.iter().map(|index| StoredTree { index: index.def.id, tree: index.tree });
        std::iter::once(clustered).chain(secondary).collect()
    }
}
