//! Rows that come in the order of their keys into an empty table: put into its trees bottom up, page by page (E14).
//!
//! The first rows are inserted as usual; when there are enough of them and no other transaction uses the table, they and those that follow
//! make new trees, which become the table's at the end. Until then no reader can find the rows, and all other uses of the table by the
//! same transaction come after that end.

use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{LeafCopy, Mtr, Root, Seek, Tree, TreeBuilder, empty_tree};
use engine_api::{EngineError, EngineResult, TableId};
use errors::Error;
use locks::Mode;
use page::PageNo;
use txn::TxnState;

use crate::entry::{Entry, check_length, entry_value};
use crate::error::io_error;
use crate::obstacle::Obstacle;
use crate::row::{Header, UndoEntry, append_record};
use crate::shared::Shared;
use crate::sorter::Sorter;
use crate::space::GROUP_PAGES;
use crate::table::Table;
use crate::transaction::Txn;

/// Rows that are inserted as usual first: fewer are not worth keeping others out of the table.
const ROWS_FIRST: u64 = 256;
/// Rows between two waits for the page writer.
const BRAKE_EVERY: u64 = 256;

/// The state of the bulk insert of a statement.
#[derive(Default)]
pub(crate) enum Expected {
    /// Nothing.
    #[default]
    Nothing,
    /// The table was empty; this many rows were inserted since.
    Rows(TableId, u64),
    /// The trees are being made.
    Bulk(Box<Bulk>),
}

/// Trees that are being made.
pub(crate) struct Bulk {
    table: Arc<Table>,
    /// The entry that the rows name as their undo: no earlier version exists.
    undo: u64,
    builder: TreeBuilder,
    /// One for each index of the table.
    sorters: Vec<Sorter>,
    /// The last key.
    last: Vec<u8>,
    rows: u64,
    /// The number of `rows` that were not in the table before.
    new_rows: i64,
    rows_at_savepoint: u64,
    /// Some of the rows were to be taken back, which cannot be.
    is_spoilt: bool,
    /// Scratch.
    key: Vec<u8>,
    value: Vec<u8>,
    entries: Vec<(usize, Entry)>,
}

impl Bulk {
    /// Adds a row whose value is in the scratch memory. A failure spoils the whole bulk insert.
    fn push(&mut self, shared: &Shared, core: &TxnState, record: &[u8]) -> EngineResult<()> {
        let pool = &*shared.system.pool;
        self.entries.clear();
        for (at, index) in self.table.indexes.iter().enumerate() {
            Entry::each(&index.keys, record, &self.key, |entry| {
                check_length(pool.page_bytes(), &entry)?;
                self.entries.push((at, entry));
                Ok(())
            })?;
        }
        let tree = self.table.clustered;
        let log = |mtr: Mtr<'_>, pages: &[PageNo]| shared.log_tree_pages(core, tree, mtr, pages);
        let was_spoilt = std::mem::replace(&mut self.is_spoilt, true);
        let pushed = self.builder.push(pool, (&self.key, &self.value), log).map_err(io_error)?;
        if !pushed {
            return Err(Error::internal("a row does not fit a page").into());
        }
        for (at, entry) in &self.entries {
            self.sorters[*at].add(&entry.key, entry.sql as u16).map_err(io_error)?;
        }
        self.is_spoilt = was_spoilt;
        self.rows += 1;
        std::mem::swap(&mut self.last, &mut self.key);
        Ok(())
    }
}

impl Shared {
    /// Logs pages of a tree that is being built.
    pub(crate) fn log_tree_pages(
        &self,
        core: &TxnState,
        tree: Tree,
        mtr: Mtr<'_>,
        pages: &[PageNo],
    ) {
        // What cannot move to a file stays in memory: it is little, and the next change asks again.
        let _ = self.system.start_change(core);
        let pages: Vec<u8> = pages.iter().flat_map(|page| page.0.to_le_bytes()).collect();
        let payload = UndoEntry::TreePages { tree: tree.id, pages: &pages }.encode();
        self.system.log_change(core, mtr, &payload);
    }

    /// Shows keys and values of a tree until `visit` says that it is enough.
    fn each_row(
        &self,
        tree: Tree,
        mut visit: impl FnMut(&[u8], &[u8]) -> EngineResult<bool>,
    ) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let mut leaf = LeafCopy::new(pool);
        let (mut start, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            leaf.load(pool, tree, Seek::At(&start)).map_err(io_error)?;
            let page = leaf.page();
            for slot in 0..page.count() {
                key.clear();
                value.clear();
                page.copy_key(slot, &mut key);
                page.copy_value(slot, &mut value);
                if !visit(&key, &value)? {
                    return Ok(());
                }
            }
            if !page.upper_fence(&mut start) {
                return Ok(());
            }
        }
    }

    fn is_empty(&self, tree: Tree) -> EngineResult<bool> {
        let root = self.system.pool.shared(tree.root).map_err(io_error)?;
        Ok(root.page().level() == 0 && root.page().count() == 0)
    }
}

impl Txn {
    /// See `Transaction::expect_rows`.
    pub(crate) fn expect_rows_in(&mut self, table: &Arc<Table>) -> EngineResult<()> {
        self.end_bulk()?;
        let is_noted = !table.builds.is_empty() || table.notes.is_some();
        if table.indexes.iter().any(|index| index.def.unique) || is_noted {
            return Ok(());
        }
        for stored in table.trees() {
            if !self.shared.is_empty(stored.tree)? {
                return Ok(());
            }
        }
        self.expected = Expected::Rows(table.id, 0);
        Ok(())
    }

    /// Stores the rows that are kept back.
    pub(crate) fn end_bulk(&mut self) -> EngineResult<()> {
        match std::mem::take(&mut self.expected) {
            Expected::Bulk(bulk) => self.store_bulk(*bulk),
            Expected::Nothing | Expected::Rows(..) => Ok(()),
        }
    }

    /// Like `end_bulk`, before another use of a table. Rows that were inserted as usual so far stay so: new trees take over rows that have no
    /// earlier version, and the next use may change one of them.
    #[inline]
    pub(crate) fn end_bulk_of(&mut self, table: TableId) -> EngineResult<()> {
        match &self.expected {
            Expected::Bulk(bulk) if bulk.table.id == table => self.end_bulk(),
            Expected::Rows(expected, _) if *expected == table => {
                self.expected = Expected::Nothing;
                Ok(())
            }
            Expected::Nothing | Expected::Rows(..) | Expected::Bulk(_) => Ok(()),
        }
    }

    /// Takes a row that is to be inserted. False: it has to go the usual way.
    #[inline]
    pub(crate) fn keep_row(&mut self, table: &Arc<Table>, record: &[u8]) -> EngineResult<bool> {
        match &mut self.expected {
            Expected::Nothing => return Ok(false),
            Expected::Rows(expected, rows) => {
                *rows += u64::from(*expected == table.id);
                if *rows <= ROWS_FIRST || *expected != table.id {
                    return Ok(false);
                }
                self.begin_bulk(table)?;
            }
            Expected::Bulk(bulk) if bulk.table.id != table.id => return Ok(false),
            Expected::Bulk(_) => {}
        }
        let Expected::Bulk(mut bulk) = std::mem::take(&mut self.expected) else {
            return Ok(false);
        };
        let kept = self.keep_in(&mut bulk, record);
        self.expected = Expected::Bulk(bulk);
        match kept {
            Ok(false) => self.end_bulk().map(|()| false),
            other => other,
        }
    }

    /// False: its key is not above all others.
    fn keep_in(&mut self, bulk: &mut Bulk, record: &[u8]) -> EngineResult<bool> {
        let mut key = std::mem::take(&mut bulk.key);
        let made = self.write_locator(&bulk.table, record, &mut key);
        bulk.key = key;
        made?;
        if bulk.key <= bulk.last {
            return Ok(false);
        }
        if bulk.rows.is_multiple_of(BRAKE_EVERY) {
            self.shared.brake();
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
        }
        self.shared.room_for(GROUP_PAGES)?;
        let (place, body) = self.store_record(&bulk.table, bulk.key.len(), record)?;
        let core = self.core();
        Header::new(core.id, bulk.undo, place).write(&body, &mut bulk.value);
        bulk.push(&self.shared, &core, record)?;
        bulk.new_rows += 1;
        Ok(true)
    }

    /// Starts new trees with the present rows, if they are this transaction's and no other transaction uses the table.
    #[cold]
    fn begin_bulk(&mut self, table: &Arc<Table>) -> EngineResult<()> {
        self.expected = Expected::Nothing;
        self.make_deferred()?;
        self.wait_for_losers(table.id)?;
        let (owner, core, shared) = (self.owner(), self.core(), self.shared.clone());
        // From here on no other transaction can insert a row; the end waits for transactions that lock a span later.
        if !shared.system.locks.lock_space_alone(&owner, table.clustered.id) {
            return Ok(());
        }
        let undo = core.next_undo().0;
        let sorters = table.indexes.iter().map(|index| shared.sorter(index.tree.id)).collect();
        let mut bulk = Bulk {
            table: table.clone(),
            undo,
            builder: TreeBuilder::new(&shared.system.pool, table.clustered)
                .with_keys(table.key_bytes_max),
            sorters,
            last: Vec::new(),
            rows: 0,
            new_rows: 0,
            rows_at_savepoint: 0,
            is_spoilt: false,
            key: Vec::new(),
            value: Vec::new(),
            entries: Vec::new(),
        };
        // No row has an empty key that was not in the table: undone, it is nothing.
        let payload = UndoEntry::Insert { table: table.id.0, key: &[] }.encode();
        shared.system.log_change(&core, Mtr::new(&shared.system.pool), &payload);
        match self.adopt_rows(&mut bulk, &core) {
            Ok(true) => self.expected = Expected::Bulk(Box::new(bulk)),
            Ok(false) => shared.system.locks.unlock_space(&owner, table.clustered.id),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Takes over the rows of the table; false when one of them is not a new row of this transaction.
    fn adopt_rows(&mut self, bulk: &mut Bulk, core: &TxnState) -> EngineResult<bool> {
        let shared = self.shared.clone();
        let (mut rows, mut all_own) = (0, true);
        shared.each_row(bulk.table.clustered, |_, value| {
            let header = Header::of(value);
            rows += 1;
            all_own &= header.id() == core.id && !header.is_deleted();
            Ok(all_own && rows <= ROWS_FIRST)
        })?;
        if rows == 0 || rows > ROWS_FIRST || !all_own {
            return Ok(false);
        }
        let mut record = Vec::new();
        shared.each_row(bulk.table.clustered, |key, value| {
            bulk.key.clear();
            bulk.key.extend_from_slice(key);
            bulk.value.clear();
            bulk.value.extend_from_slice(value);
            record.clear();
            append_record(&shared.system.pool, value, &mut record).map_err(io_error)?;
            bulk.push(&shared, core, &record).map(|()| true)
        })?;
        Ok(true)
    }

    /// Makes the new trees the table's.
    fn store_bulk(&mut self, bulk: Bulk) -> EngineResult<()> {
        if bulk.is_spoilt {
            return Err(
                Error::internal("rows that came together cannot be taken back one by one").into()
            );
        }
        let (core, shared) = (self.core(), self.shared.clone());
        let pool = &*shared.system.pool;
        let Bulk { table, builder, sorters, new_rows, .. } = bulk;
        let tree = table.clustered;
        let log = |mtr: Mtr<'_>, pages: &[PageNo]| shared.log_tree_pages(&core, tree, mtr, pages);
        shared.room_for(GROUP_PAGES)?;
        if let Some(root) = builder.finish(pool, log).map_err(io_error)? {
            self.replace_tree(tree, &root)?;
        }
        for (index, sorter) in table.indexes.iter().zip(sorters) {
            self.fill_sorted(index.tree, sorter)?;
        }
        table.counters.row_changes.fetch_add(new_rows, Ordering::Relaxed);
        Ok(())
    }

    fn fill_sorted(&mut self, tree: Tree, sorter: Sorter) -> EngineResult<()> {
        let (core, shared) = (self.core(), self.shared.clone());
        let pool = &*shared.system.pool;
        let log = |mtr: Mtr<'_>, pages: &[PageNo]| shared.log_tree_pages(&core, tree, mtr, pages);
        // Readers that cannot see this transaction read the rows (E15).
        let mut builder = TreeBuilder::new(pool, tree).written_by(core.id);
        let each = |key: &[u8], sql| {
            pool.ensure_room(GROUP_PAGES)?;
            builder.push(pool, (key, &entry_value(usize::from(sql))), log).map(drop)
        };
        sorter.finish(each).map_err(io_error)?;
        match builder.finish(pool, log).map_err(io_error)? {
            Some(root) => self.replace_tree(tree, &root),
            None => Ok(()),
        }
    }

    /// Gives a tree a new root instead of the few rows of this transaction that it has.
    fn replace_tree(&mut self, tree: Tree, root: &Root) -> EngineResult<()> {
        self.wait_for_space(tree)?;
        // Later undo finds these rows gone already, which is its goal.
        empty_tree(&self.shared.system.pool, tree, |_| Ok(())).map_err(io_error)?;
        self.fill_root(tree, root)
    }

    fn wait_for_space(&mut self, tree: Tree) -> EngineResult<()> {
        let owner = self.owner();
        loop {
            let others = self.shared.system.locks.space_blockers(&owner, tree.id);
            if others.is_empty() {
                return Ok(());
            }
            self.wait_for(Obstacle::Transactions(others), Mode::Exclusive)?;
        }
    }

    /// Installs an empty tree's records, once no other transaction has locked a span of it.
    pub(crate) fn fill_root(&mut self, tree: Tree, root: &Root) -> EngineResult<()> {
        let (core, shared, owner) = (self.core(), self.shared.clone(), self.owner());
        let payload = UndoEntry::TreeFilled { root: tree.root.0, tree: tree.id }.encode();
        let may_fill = || {
            let others = shared.system.locks.space_blockers(&owner, tree.id);
            if others.is_empty() { Ok(()) } else { Err(Obstacle::Transactions(others)) }
        };
        loop {
            let put = root.put(&shared.system.pool, may_fill, |mtr| {
                shared.system.log_change(&core, mtr, &payload);
            });
            match put.map_err(io_error)? {
                Ok(()) => return Ok(()),
                Err(obstacle) => self.wait_for(obstacle, Mode::Exclusive)?,
            }
        }
    }

    /// A savepoint is taken.
    pub(crate) fn note_savepoint(&mut self) {
        if let Expected::Bulk(bulk) = &mut self.expected {
            bulk.rows_at_savepoint = bulk.rows;
        }
    }

    /// Runs before undo down to `mark`; true if nothing is left to undo.
    pub(crate) fn drop_bulk_behind(&mut self, mark: u64) -> bool {
        let undone = self.undo_mark() > mark;
        match &mut self.expected {
            Expected::Bulk(bulk) if mark >= bulk.undo => {
                bulk.is_spoilt |= undone || bulk.rows != bulk.rows_at_savepoint;
                true
            }
            _ => {
                self.expected = Expected::Nothing;
                false
            }
        }
    }
}
