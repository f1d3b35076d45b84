//! Changes of secondary entries that a statement of many rows puts off, to make them in the order of the index (E20).
//!
//! Rows that follow one another often have their entries on leaves far apart. Where those leaves do not fit the pool, each row would cost a
//! read and a write of such a leaf; in order, each leaf is read and written once for all of its entries. Unique indexes are left out: their
//! entries decide whether a row may be there. Knows nothing of how rows are found.

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
/// Changes whose leaves are asked for together, before those of the batch in front of them are made.
const BATCH: usize = 256;
/// In a tag: the entry is marked. Otherwise it is put, and the tag is the length of its columns, which is less than this.
const MARK: u16 = 1 << 15;

/// What a statement has put off.
#[derive(Default)]
pub(crate) struct PutOff {
    /// The place in the undo behind which its changes begin, while a statement of perhaps many is under way.
    since: Option<u64>,
    /// Changes of entries so far.
    changes: u64,
    /// For each tree.
    sorters: Vec<(Tree, Sorter)>,
    /// Some were not made: the changes of the rows cannot stay either.
    is_spoilt: bool,
}

/// Changes in the order of their keys.
#[derive(Default)]
pub(crate) struct Batch {
    keys: Vec<u8>,
    /// Where each key ends, and its tag.
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

/// Hands all keys over in order, in batches: the leaves of a batch are being read while the one before it is worked on.
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
    /// For changes of entries of `tree` by the transaction `writer`; `what` they are for names the file.
    pub(crate) fn change_sorter(&self, tree: Tree, writer: u64, what: &str) -> Sorter {
        let memory = MEMORY_BYTES.min(self.config.pool_bytes / 8);
        Sorter::new(self.disk.clone(), format!("{what}-{writer}-{}", tree.id), memory)
    }
}

impl Txn {
    /// See `Transaction::expect_changes`.
    pub(crate) fn begin_putting_off(&mut self) -> EngineResult<()> {
        self.make_put_off()?;
        self.put_off = PutOff { since: Some(self.undo_mark()), ..PutOff::default() };
        Ok(())
    }

    /// See `Transaction::changes_are_over`.
    pub(crate) fn end_putting_off(&mut self) -> EngineResult<()> {
        let made = self.make_put_off();
        if made.is_ok() {
            self.put_off = PutOff::default();
        }
        made
    }

    /// Whether changes of the entries of `index` are put off now.
    fn puts_off(&self, index: &Index) -> bool {
        self.put_off.since.is_some()
            && self.put_off.changes > self.shared.config.direct_changes
            && !index.def.unique
    }

    fn sorter_of(&mut self, tree: Tree) -> &mut Sorter {
        let sorters = &mut self.put_off.sorters;
        let at = sorters.iter().position(|(known, _)| known.id == tree.id);
        let at = at.unwrap_or_else(|| {
            let writer = self.core.as_ref().map_or(0, |core| core.id);
            sorters.push((tree, self.shared.change_sorter(tree, writer, "entries")));
            sorters.len() - 1
        });
        &mut sorters[at].1
    }

    /// Puts the entry of a new version, now or later.
    pub(crate) fn put_entry_of(&mut self, index: &Index, entry: &Entry) -> EngineResult<()> {
        self.put_off.changes += 1;
        if !self.puts_off(index) {
            return self.put_entry_waiting(index.tree, entry);
        }
        let put = self.sorter_of(index.tree).add(&entry.key, entry.sql as u16);
        put.map_err(|error| self.spoil(io_error(error)))
    }

    /// Marks the entry of the version before, now or later.
    pub(crate) fn mark_entry_of(&mut self, index: &Index, entry: &Entry) -> EngineResult<()> {
        self.put_off.changes += 1;
        if !self.puts_off(index) {
            let (pool, writer) = (&self.shared.system.pool, self.own_id());
            return mark_entry(pool, index.tree, &entry.key, writer).map_err(io_error);
        }
        let marked = self.sorter_of(index.tree).add(&entry.key, MARK);
        marked.map_err(|error| self.spoil(io_error(error)))
    }

    /// What was put off is lost, or some of it.
    fn spoil(&mut self, error: EngineError) -> EngineError {
        // A deadlock has ended the transaction and all of this with it.
        if self.started {
            self.put_off.sorters.clear();
            self.put_off.is_spoilt = true;
        }
        error
    }

    /// Makes all that was put off.
    pub(crate) fn make_put_off(&mut self) -> EngineResult<()> {
        while let Some((tree, sorter)) = self.put_off.sorters.pop() {
            let made = self.make_sorted(tree, sorter);
            made.map_err(|error| self.spoil(error))?;
        }
        match self.put_off.is_spoilt {
            true => Err(Error::internal("changes of an index were put off and lost").into()),
            false => Ok(()),
        }
    }

    /// As `make_put_off`, before entries of an index are read by this transaction.
    #[inline]
    pub(crate) fn make_put_off_of(&mut self, table: TableId, index: IndexId) -> EngineResult<()> {
        if self.put_off.sorters.is_empty() || index == IndexId::CLUSTERED {
            return Ok(());
        }
        let table = self.table(table)?;
        let tree = table.indexes[table.index_at(index)?].tree;
        self.make_put_off_in(tree)
    }

    /// As `make_put_off_of`, for what a cursor reads.
    #[inline]
    pub(crate) fn make_put_off_before(
        &mut self,
        table: &Table,
        index: Option<usize>,
    ) -> EngineResult<()> {
        match index {
            Some(at) if !self.put_off.sorters.is_empty() => {
                self.make_put_off_in(table.indexes[at].tree)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn make_put_off_in(&mut self, tree: Tree) -> EngineResult<()> {
        let sorters = &mut self.put_off.sorters;
        let Some(at) = sorters.iter().position(|(known, _)| known.id == tree.id) else {
            return Ok(());
        };
        let (tree, sorter) = sorters.swap_remove(at);
        self.make_sorted(tree, sorter).map_err(|error| self.spoil(error))
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

    /// Before undo up to `mark`: what was put off since is not made at all, what was put off before is made first.
    pub(crate) fn undo_put_off(&mut self, mark: u64) -> EngineResult<()> {
        match self.put_off.since {
            Some(since) if mark <= since => {
                self.put_off.sorters.clear();
                self.put_off.is_spoilt = false;
                Ok(())
            }
            Some(_) if self.undo_mark() > mark => self.make_put_off(),
            Some(_) | None => Ok(()),
        }
    }
}

const _: () = assert!(MARK as usize > 32_768 / 4, "the columns of an entry on the largest page");
