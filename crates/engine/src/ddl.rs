//! Tables and indexes: made, changed, dropped, inside transactions (E8).

use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{Mtr, Tree, create_tree};
use engine_api::{EngineResult, IndexDef, IndexId, TableDef, TableId};
use errors::Error;
use types::{DataType, TypeKind};

use crate::codec;
use crate::dictionary::definition_key;
use crate::error::io_error;
use crate::row::{BlobRef, UndoEntry};
use crate::space::ROW_PAGES;
use crate::table::{StoredTree, Table, TableCounters};
use crate::transaction::{Pending, Txn};

impl Txn {
    pub(crate) fn new_tree(&mut self, index: IndexId) -> EngineResult<StoredTree> {
        let core = self.core();
        let shared = self.shared.clone();
        let id = shared.system.log.draw();
        self.start_change()?;
        shared.room_for(ROW_PAGES)?;
        let mut mtr = Mtr::new(&shared.system.pool);
        let tree = create_tree(&mut mtr, id).map_err(io_error)?;
        let payload = UndoEntry::CreateTree { root: tree.root.0, tree: id }.encode();
        shared.system.log_change(&core, mtr, &payload);
        Ok(StoredTree { index, tree })
    }

    /// Stores a definition; `None` removes it.
    fn define(
        &mut self,
        id: TableId,
        stored: Option<(&TableDef, &[StoredTree])>,
    ) -> EngineResult<()> {
        let core = self.core();
        let shared = self.shared.clone();
        let value = match stored {
            Some((def, trees)) => {
                let bytes = codec::encode(def, trees);
                let first = self.write_blob(&bytes)?;
                Some(BlobRef { first, length: bytes.len() as u32 }.encode())
            }
            None => None,
        };
        let (tree, mut before) = (shared.dictionary.tree, Vec::new());
        // The metadata lock keeps others from this entry.
        tree.get(&shared.system.pool, &definition_key(id), &mut before).map_err(io_error)?;
        let payload = UndoEntry::Define { table: id.0, before: &before }.encode();
        let value = value.as_ref().map(|value| value.as_slice());
        shared.write_definition(id, value, |mtr| {
            shared.system.log_change(&core, mtr, &payload);
        })
    }

    fn log_drop_tree(&mut self, tree: Tree, has_blobs: bool) {
        let core = self.core();
        let payload = UndoEntry::DropTree { root: tree.root.0, tree: tree.id, has_blobs }.encode();
        self.shared.system.log_change(&core, Mtr::new(&self.shared.system.pool), &payload);
    }

    pub(crate) fn create_table_with(&mut self, def: &TableDef) -> EngineResult<()> {
        if self.shared.dictionary.get(def.id).is_ok() {
            return Err(Error::internal("a table id was used twice").into());
        }
        let mark = self.undo_mark();
        let mut trees = vec![self.new_tree(IndexId::CLUSTERED)?];
        for index in def.indexes.iter().filter(|index| index.id != IndexId::CLUSTERED) {
            trees.push(self.new_tree(index.id)?);
        }
        let counters = TableCounters::default();
        counters.next_row_id.store(1, Ordering::Relaxed);
        let table = Table::new(def.clone(), &trees, Arc::new(counters))?;
        self.define(def.id, Some((def, &trees)))?;
        self.shared.dictionary.put(Arc::new(table));
        self.pending.push((mark + 1, Pending::Created(def.id)));
        Ok(())
    }

    pub(crate) fn drop_table_at_commit(&mut self, table: &Table) -> EngineResult<()> {
        self.wait_for_losers(table.id)?;
        let mark = self.undo_mark();
        self.define(table.id, None)?;
        for stored in table.trees() {
            self.log_drop_tree(stored.tree, stored.index == IndexId::CLUSTERED);
        }
        self.pending.push((mark + 1, Pending::Dropped(table.id)));
        Ok(())
    }

    /// Publishes a new definition with these trees to all transactions; the caller holds the metadata lock.
    pub(crate) fn put_definition(
        &mut self,
        table: &Table,
        def: TableDef,
        trees: &[StoredTree],
    ) -> EngineResult<()> {
        let new = Table::new(def, trees, table.counters.clone())?;
        self.define(table.id, Some((&new.def, trees)))?;
        *new.counters.stats.lock() = None;
        self.shared.dictionary.put(Arc::new(new));
        Ok(())
    }

    pub(crate) fn replace_definition(&mut self, table: &Table, def: &TableDef) -> EngineResult<()> {
        self.wait_for_losers(table.id)?;
        if !is_instant(&table.def, def) {
            return Err(Error::not_supported("this ALTER TABLE without a copy").into());
        }
        self.put_definition(table, def.clone(), &table.trees())
    }

    pub(crate) fn drop_index_of(&mut self, table: &Table, index: IndexId) -> EngineResult<()> {
        self.wait_for_losers(table.id)?;
        let tree = table.indexes[table.index_at(index)?].tree;
        let mut def = TableDef::clone(&table.def);
        def.indexes.retain(|other| other.id != index);
        let trees: Vec<_> = table.trees().into_iter().filter(|tree| tree.index != index).collect();
        self.put_definition(table, def, &trees)?;
        self.log_drop_tree(tree, false);
        Ok(())
    }
}

/// Whether no stored byte depends on the difference: names, wider texts, new last columns with a default or NULL.
fn is_instant(old: &TableDef, new: &TableDef) -> bool {
    let columns = old.columns.len() <= new.columns.len()
        && old.columns.iter().zip(&new.columns).all(|(old, new)| same_encoding(&old.ty, &new.ty))
        && new.columns[old.columns.len()..]
            .iter()
            .all(|column| column.instant_default.is_some() || column.ty.nullable);
    // In any order: an index that is built later may be shown before others.
    let is_same = |old: &IndexDef, new: &IndexDef| {
        old.id == new.id && old.parts == new.parts && old.unique == new.unique
    };
    let indexes = old.indexes.len() == new.indexes.len()
        && old.indexes.iter().all(|old| new.indexes.iter().any(|new| is_same(old, new)));
    columns && indexes
}

/// Whether values of `old` have the same record and key bytes in `new`.
fn same_encoding(old: &DataType, new: &DataType) -> bool {
    let widens =
        matches!(old.kind, TypeKind::VarChar | TypeKind::VarBinary) && new.length >= old.length;
    let lengths = old.length == new.length || widens;
    // A nullable part has a tag in keys, so nullability must stay.
    DataType { length: new.length, ..old.clone() } == *new && lengths
}
