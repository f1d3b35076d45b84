//! Changes of secondary entries that a statement of many rows defers, to make them in the order of the index (E20).
//!
//! Consecutive rows often have their entries on leaves far apart. If those leaves do not fit the pool, each row would cost a
//! read and a write of such a leaf; in order, each leaf is read and written once for all of its entries. Unique indexes are left out: their
//! entries decide whether a row is allowed. Independent of how rows are found.

use btree::Tree;
use bufpool::Pool;
use engine_api::{EngineError, EngineResult, IndexId, TableId};
use errors::Error;

use crate::entry::Entry;
use crate::entry_tree::mark_entry;
use crate::error::{Failure, io_error};
use crate::shared::Shared;
use crate::sorter::Sorter;
use crate::table::{Index, Table};
use crate::transaction::Txn;

/// Memory for the changes of one index; more go to a file.
const MEMORY_BYTES: usize = 8 << 20;
/// Changes whose leaves are read ahead together, before those of the previous batch are made.
const BATCH: usize = 256;
/// In a tag: the entry is marked. Otherwise it is inserted, and the tag is the length of its columns, which is less than this.
const MARK: u16 = 1 << 15;

/// The changes of entries that a statement has deferred.
#[derive(Default)]
pub(crate) struct DeferredEntries {
    /// The place in the undo after which the changes of a statement that may change many rows begin, while it runs.
    since: Option<u64>,
    /// Changes of entries so far.
    changes: u64,
    /// The deferred changes of each tree.
    sorters: Vec<(Tree, Sorter)>,
    /// Some changes were lost: the changes of the rows must be undone too.
    is_incomplete: bool,
}

/// Changes in the order of their keys.
#[derive(Default)]
pub(crate) struct Batch {
    keys: Vec<u8>,
    /// The end of each key, and its tag.
    items: Vec<(usize, u16)>,
}

impl Batch {
    fn push(&mut self, key: &[u8], tag: u16) {
        self.keys.extend_from_slice(key);
        self.items.push((self.keys.len(), tag));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], u16)> {
        let mut start = 0;
        self.items.iter().map(move |(end, tag)| {
            let key = &self.keys[start..*end];
            start = *end;
            (key, *tag)
        })
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.items.clear();
    }
}

/// Calls `work` for all keys in order, in batches: the leaves of a batch are read while the previous batch is processed.
pub(crate) fn each_batch(
    pool: &Pool,
    tree: Tree,
    sorter: Sorter,
    mut work: impl FnMut(&[u8], u16) -> EngineResult<()>,
) -> EngineResult<()> {
    let (mut ready, mut next) = (Batch::default(), Batch::default());
    let mut make = |batch: &mut Batch| {
        batch.iter().try_for_each(|(key, tag)| work(key, tag))?;
        batch.clear();
        EngineResult::Ok(())
    };
    let taken = sorter.finish(|key, tag| -> Result<(), Failure> {
        next.push(key, tag);
        if next.items.len() == BATCH {
            tree.read_ahead(pool, next.iter().map(|(key, _)| key));
            std::mem::swap(&mut ready, &mut next);
            make(&mut next)?;
        }
        Ok(())
    });
    taken.map_err(EngineError::from)?;
    make(&mut ready)?;
    make(&mut next)
}

impl Shared {
    /// Returns a sorter for changes of entries of `tree` by the transaction `writer`; the purpose `what` is part of the file's name.
    pub(crate) fn change_sorter(&self, tree: Tree, writer: u64, what: &str) -> Sorter {
        let memory = MEMORY_BYTES.min(self.config.pool_bytes / 8);
        Sorter::new(self.disk.clone(), format!("{what}-{writer}-{}", tree.id), memory)
    }
}

impl Txn {
    /// See `Transaction::expect_changes`.
    pub(crate) fn begin_deferring(&mut self) -> EngineResult<()> {
        self.make_deferred()?;
        self.deferred =
            DeferredEntries { since: Some(self.undo_mark()), ..DeferredEntries::default() };
        Ok(())
    }

    /// See `Transaction::changes_are_over`.
    pub(crate) fn end_deferring(&mut self) -> EngineResult<()> {
        let made = self.make_deferred();
        if made.is_ok() {
            self.deferred = DeferredEntries::default();
        }
        made
    }

    /// Whether changes of the entries of `index` are deferred now.
    fn defers(&self, index: &Index) -> bool {
        self.deferred.since.is_some()
            && self.deferred.changes > self.shared.config.direct_changes
            && !index.def.unique
    }

    fn sorter_of(&mut self, tree: Tree) -> &mut Sorter {
        let sorters = &mut self.deferred.sorters;
        let at = sorters.iter().position(|(known, _)| known.id == tree.id);
        let at = at.unwrap_or_else(|| {
            let writer = self.core.as_ref().map_or(0, |core| core.id);
            sorters.push((tree, self.shared.change_sorter(tree, writer, "entries")));
            sorters.len() - 1
        });
        &mut sorters[at].1
    }

    /// Inserts the entry of a new version, now or deferred.
    pub(crate) fn put_entry_of(&mut self, index: &Index, entry: &Entry) -> EngineResult<()> {
        self.deferred.changes += 1;
        if !self.defers(index) {
            return self.put_entry_waiting(index.tree, entry);
        }
        let put = self.sorter_of(index.tree).add(&entry.key, entry.sql as u16);
        put.map_err(|error| self.discard_deferred(io_error(error)))
    }

    /// Marks the entry of the previous version, now or deferred.
    pub(crate) fn mark_entry_of(&mut self, index: &Index, entry: &Entry) -> EngineResult<()> {
        self.deferred.changes += 1;
        if !self.defers(index) {
            let (pool, writer) = (&self.shared.system.pool, self.own_id());
            return mark_entry(pool, index.tree, &entry.key, writer).map_err(io_error);
        }
        let marked = self.sorter_of(index.tree).add(&entry.key, MARK);
        marked.map_err(|error| self.discard_deferred(io_error(error)))
    }

    /// Discards the deferred changes after an error, and passes the error on.
    fn discard_deferred(&mut self, error: EngineError) -> EngineError {
        // A deadlock has ended the transaction and all of this with it.
        if self.started {
            self.deferred.sorters.clear();
            self.deferred.is_incomplete = true;
        }
        error
    }

    /// Makes all deferred changes.
    pub(crate) fn make_deferred(&mut self) -> EngineResult<()> {
        while let Some((tree, sorter)) = self.deferred.sorters.pop() {
            let made = self.make_sorted(tree, sorter);
            made.map_err(|error| self.discard_deferred(error))?;
        }
        match self.deferred.is_incomplete {
            true => Err(Error::internal("deferred changes of an index were lost").into()),
            false => Ok(()),
        }
    }

    /// Like `make_deferred`, for one index, before this transaction reads its entries.
    #[inline]
    pub(crate) fn make_deferred_of(&mut self, table: TableId, index: IndexId) -> EngineResult<()> {
        if self.deferred.sorters.is_empty() || index == IndexId::CLUSTERED {
            return Ok(());
        }
        let table = self.table(table)?;
        let tree = table.indexes[table.index_at(index)?].tree;
        self.make_deferred_in(tree)
    }

    /// Like `make_deferred_of`, for the index that a cursor reads.
    #[inline]
    pub(crate) fn make_deferred_before(
        &mut self,
        table: &Table,
        index: Option<usize>,
    ) -> EngineResult<()> {
        match index {
            Some(at) if !self.deferred.sorters.is_empty() => {
                self.make_deferred_in(table.indexes[at].tree)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn make_deferred_in(&mut self, tree: Tree) -> EngineResult<()> {
        let sorters = &mut self.deferred.sorters;
        let Some(at) = sorters.iter().position(|(known, _)| known.id == tree.id) else {
            return Ok(());
        };
        let (tree, sorter) = sorters.swap_remove(at);
        self.make_sorted(tree, sorter).map_err(|error| self.discard_deferred(error))
    }

    fn make_sorted(&mut self, tree: Tree, sorter: Sorter) -> EngineResult<()> {
        let (shared, writer) = (self.shared.clone(), self.own_id());
        let pool = &*shared.system.pool;
        let mut entry = Entry { key: Vec::new(), sql: 0, has_null: false };
        let mut count: usize = 0;
        each_batch(pool, tree, sorter, |key, tag| {
            count += 1;
            if count.is_multiple_of(BATCH) {
                self.shared.brake();
                if self.cancel.is_cancelled() {
                    return Err(EngineError::Cancelled);
                }
            }
            if tag & MARK != 0 {
                return mark_entry(pool, tree, key, writer).map_err(io_error);
            }
            entry.key.clear();
            entry.key.extend_from_slice(key);
            entry.sql = usize::from(tag);
            self.put_entry_waiting(tree, &entry)
        })
    }

    /// Before undo down to `mark`: discards the deferred changes if all were deferred after it, else makes them first.
    pub(crate) fn undo_deferred(&mut self, mark: u64) -> EngineResult<()> {
        match self.deferred.since {
            Some(since) if mark <= since => {
                self.deferred.sorters.clear();
                self.deferred.is_incomplete = false;
                Ok(())
            }
            Some(_) if self.undo_mark() > mark => self.make_deferred(),
            Some(_) | None => Ok(()),
        }
    }
}

const _: () = assert!(MARK as usize > 32_768 / 4, "the columns of an entry on the largest page");
