//! Tables and indexes: made, changed, dropped, inside transactions (E8).

use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{LeafCopy, Mtr, Seek, Tree, TreeBuilder, create_tree};
use engine_api::{EngineError, EngineResult, IndexDef, IndexId, TableDef, TableId};
use errors::Error;
use page::PageNo;
use types::{DataType, TypeKind};

use crate::codec;
use crate::dictionary::{definition_key, io_error};
use crate::entries::{Entry, entry_value};
use crate::keys::IndexKeys;
use crate::row::{BlobRef, Header, UndoEntry, append_record, body};
use crate::sorter::Sorter;
use crate::table::{StoredTree, Table, TableCounters};
use crate::transaction::{Pending, Txn};

impl Txn {
    fn new_tree(&mut self, index: IndexId) -> EngineResult<StoredTree> {
        let core = self.core();
        let shared = self.shared.clone();
        let id = shared.system.log.draw();
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

    /// Puts a new definition with these trees in force for everybody; its metadata lock is held.
    fn put_definition(
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

    pub(crate) fn build_index(&mut self, table: &Arc<Table>, index: &IndexDef) -> EngineResult<()> {
        self.wait_for_losers(table.id)?;
        let keys = IndexKeys::new(&table.def, index, &IndexKeys::layout(&table.def))?;
        let stored = self.new_tree(index.id)?;
        self.fill_index(table, index, &keys, stored.tree)?;
        let mut def = TableDef::clone(&table.def);
        def.indexes.retain(|other| other.id != index.id);
        def.indexes.push(index.clone());
        let mut trees = table.trees();
        trees.push(stored);
        self.put_definition(table, def, &trees)
    }

    /// Makes an entry for each row that is live now; the caller keeps writers away.
    fn fill_index(
        &mut self,
        table: &Table,
        index: &IndexDef,
        keys: &IndexKeys,
        tree: Tree,
    ) -> EngineResult<()> {
        let mut sorter = self.shared.sorter(tree.id);
        self.collect_entries(table, keys, &mut sorter)?;
        let (core, shared) = (self.core(), self.shared.clone());
        let pool = &*shared.system.pool;
        let mut builder = TreeBuilder::new(pool, tree);
        let mut previous = Vec::new();
        sorter.finish(|key, tag| -> Result<(), Failure> {
            let sql = usize::from(tag & !HAS_NULL);
            if index.unique && tag & HAS_NULL == 0 {
                if key.get(..sql) == Some(&previous) {
                    let locator = key.get(sql..).unwrap_or_default().to_vec();
                    return Err(EngineError::DuplicateKey { index: index.id, locator }.into());
                }
                previous.clear();
                previous.extend_from_slice(&key[..sql]);
            }
            builder.push(pool, (key, &entry_value(sql)), |mtr, pages| {
                shared.log_tree_pages(&core, tree, mtr, pages);
            })?;
            Ok(())
        })?;
        let pages = |mtr: Mtr<'_>, pages: &[PageNo]| shared.log_tree_pages(&core, tree, mtr, pages);
        let root = builder.finish(pool, pages).map_err(io_error)?;
        match root {
            Some(root) => self.fill_root(tree, &root),
            None => Ok(()),
        }
    }

    /// Gives the sorter the entry of each live row.
    fn collect_entries(
        &mut self,
        table: &Table,
        keys: &IndexKeys,
        sorter: &mut Sorter,
    ) -> EngineResult<()> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let mut leaf = LeafCopy::new(pool);
        let (mut start, mut locator) = (Vec::new(), Vec::new());
        let (mut value, mut record) = (Vec::new(), Vec::new());
        loop {
            leaf.load(pool, table.clustered, Seek::At(&start)).map_err(io_error)?;
            let page = leaf.page();
            for slot in 0..page.count() {
                value.clear();
                page.copy_value(slot, &mut value);
                if Header::of(&value).is_deleted() {
                    continue;
                }
                locator.clear();
                page.copy_key(slot, &mut locator);
                let entry = match Header::of(&value).is_out_of_line() {
                    true => {
                        record.clear();
                        append_record(pool, &value, &mut record).map_err(io_error)?;
                        Entry::new(keys, &record, &locator)?
                    }
                    false => Entry::new(keys, body(&value), &locator)?,
                };
                crate::entries::check_length(pool.page_bytes(), &entry)?;
                let tag = entry.sql as u16 | if entry.has_null { HAS_NULL } else { 0 };
                sorter.add(&entry.key, tag).map_err(io_error)?;
            }
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            if !page.upper_fence(&mut start) {
                return Ok(());
            }
        }
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

/// Flag beside the length of an entry's columns while it is sorted.
const HAS_NULL: u16 = 1 << 15;

/// What ends a build: of the engine or of its files.
struct Failure(EngineError);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(io_error(error))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure(error)
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> EngineError {
        failure.0
    }
}

/// Whether no stored byte depends on the difference: names, wider texts, new columns behind the others with a default or NULL.
fn is_instant(old: &TableDef, new: &TableDef) -> bool {
    let columns = old.columns.len() <= new.columns.len()
        && old.columns.iter().zip(&new.columns).all(|(old, new)| same_encoding(&old.ty, &new.ty))
        && new.columns[old.columns.len()..]
            .iter()
            .all(|column| column.instant_default.is_some() || column.ty.nullable);
    let indexes = old.indexes.len() == new.indexes.len()
        && old.indexes.iter().zip(&new.indexes).all(|(old, new)| {
            old.id == new.id && old.parts == new.parts && old.unique == new.unique
        });
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
