//! Rolling back: each undo entry's inverse, secondary entries first, then the row (E2).

use btree::{Mtr, Seek, Tree, empty_tree, make_room, merge_if_small};
use engine_api::{EngineResult, TableId};
use locks::lock_name;
use page::{Kind, PageNo, PageRef};
use stdx::bytes::Reader;
use sys::model::breaks;
use txn::{TxnState, UndoPointer};

use crate::dictionary::definition_key;
use crate::entry::{Entry, without};
use crate::entry_tree::{RemoveEntry, mark_entry, put_entry, remove_entry};
use crate::error::damaged;
use crate::error::io_error;
use crate::keys::IndexKeys;
use crate::read::some_version_has_key;
use crate::row::{Header, UndoEntry, append_record};
use crate::shared::Shared;
use crate::table::Table;
use crate::undo_window::Window;

/// Whether locks on rows must outlive the changes that implied them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepLocks {
    /// To a savepoint: they stay.
    Yes,
    /// The transaction ends.
    No,
}

/// The effect of undoing a change on a secondary entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryUndo {
    /// An older version may have it.
    Mark,
    /// No version has it.
    Remove,
    /// The restored version has it.
    Put,
}

impl Shared {
    /// Undoes every entry of `core` above `mark`.
    pub(crate) fn undo_to(&self, core: &TxnState, mark: u64, keep: KeepLocks) -> EngineResult<()> {
        self.undo_while(core, mark, keep, &mut || true)
    }

    /// Undoes the newest entry of `core`. Its effects on secondary entries are undone already if it lies in `window`.
    pub(crate) fn undo_last(
        &self,
        core: &TxnState,
        keep: KeepLocks,
        window: Option<&mut Window>,
    ) -> EngineResult<()> {
        let last = core.last_undo();
        let mut payload = Vec::new();
        let left = core.read_undo(last, &mut payload).ok_or_else(damaged)?;
        let entry = UndoEntry::decode(&payload).ok_or_else(damaged)?;
        let marked = window.map(|window| window.take_marked(last.0));
        self.undo_one(core, entry, left, keep, marked)
    }

    fn undo_one(
        &self,
        core: &TxnState,
        entry: UndoEntry<'_>,
        left: UndoPointer,
        keep: KeepLocks,
        marked: Option<Vec<(usize, Entry)>>,
    ) -> EngineResult<()> {
        match entry {
            UndoEntry::Insert { table, key }
            | UndoEntry::Change { table, key, .. }
            | UndoEntry::Update { table, key, .. } => {
                self.undo_row(core, (table, key), entry, left, keep, marked)
            }
            UndoEntry::Blob { pages } => {
                self.free_pages(core, pages, left, |page| page.kind() == Kind::Blob)
            }
            UndoEntry::TreePages { tree, pages } => self.free_pages(core, pages, left, |page| {
                page.kind() == Kind::Node && page.tree() == tree
            }),
            UndoEntry::TreeFilled { root, tree } => {
                let tree = Tree { root: PageNo(root), id: tree };
                empty_tree(&self.system.pool, tree, |_| Ok(())).map_err(io_error)?;
                self.system.log_undone(core, Mtr::new(&self.system.pool), left);
                Ok(())
            }
            UndoEntry::CreateTree { root, tree } => {
                let tree = Tree { root: PageNo(root), id: tree };
                self.free_tree(tree, |mtr| self.system.log_undone(core, mtr, left))
            }
            UndoEntry::DropTree { .. } => {
                self.system.log_undone(core, Mtr::new(&self.system.pool), left);
                Ok(())
            }
            UndoEntry::Define { table, before } => {
                self.undo_define(core, TableId(table), before, left)
            }
        }
    }

    /// `marked`: entries are undone, and these were left marked.
    fn undo_row(
        &self,
        core: &TxnState,
        (table, key): (u64, &[u8]),
        entry: UndoEntry<'_>,
        left: UndoPointer,
        keep: KeepLocks,
        marked: Option<Vec<(usize, Entry)>>,
    ) -> EngineResult<()> {
        let Ok(table) = self.dictionary.get(TableId(table)) else {
            self.system.log_undone(core, Mtr::new(&self.system.pool), left);
            return Ok(());
        };
        if keep == KeepLocks::Yes {
            let mut name = Vec::new();
            lock_name(table.clustered.id, key, &mut name);
            self.system.locks.make_explicit(&core.owner, &name);
        }
        let (mut current, mut before) = (Vec::new(), Vec::new());
        let pool = &self.system.pool;
        let is_undone = marked.is_some();
        let mut marked = marked.unwrap_or_default();
        let found = table.clustered.get(pool, key, &mut current).map_err(io_error)?;
        // Builds up to 0.1.0 let new trees take over changed rows (E14). Undo takes the trees away first; the rows' insertion comes later.
        let is_gone = !found && matches!(entry, UndoEntry::Update { .. });
        let had = !is_gone && entry.before(&current, &mut before).ok_or_else(damaged)?;
        let before = had.then_some(&before[..]);
        if found {
            if !is_undone {
                marked = self.undo_entries(core.id, &table, key, &current, before)?;
            }
            let was_live = !Header::of(&current).is_deleted();
            let is_live = before.is_some_and(|before| !Header::of(before).is_deleted());
            let change = i64::from(is_live) - i64::from(was_live);
            table.counters.row_changes.fetch_add(change, sys::sync::atomic::Ordering::Relaxed);
        }
        self.restore_row(core, &table, key, before, left)?;
        let mut marked = marked.into_iter();
        marked.try_for_each(|(at, entry)| self.remove_if_passed(&table, key, at, &entry))
    }

    /// Undoes a change's effects on secondary entries. Returns the entries left marked, because an older version may have them.
    fn undo_entries(
        &self,
        writer: u64,
        table: &Table,
        locator: &[u8],
        current: &[u8],
        before: Option<&[u8]>,
    ) -> EngineResult<Vec<(usize, Entry)>> {
        let (pool, mut marked) = (&self.system.pool, Vec::new());
        self.each_entry_undone(table, locator, current, before, |at, undo, entry| {
            let tree = table.indexes[at].tree;
            match undo {
                EntryUndo::Mark => {
                    mark_entry(pool, tree, &entry.key, writer).map_err(io_error)?;
                    marked.push((at, entry));
                }
                EntryUndo::Remove => {
                    remove_entry(pool, tree, &entry.key, RemoveEntry::Any).map_err(io_error)?;
                }
                EntryUndo::Put => {
                    // The key was there before: no range lock of another can forbid it.
                    let _always = put_entry(pool, tree, &entry, writer, || Ok(()))?;
                }
            }
            Ok(())
        })?;
        Ok(marked)
    }

    /// Calls back for each secondary entry that undoing a change affects, with the place of its index.
    pub(crate) fn each_entry_undone(
        &self,
        table: &Table,
        locator: &[u8],
        current: &[u8],
        before: Option<&[u8]>,
        mut visit: impl FnMut(usize, EntryUndo, Entry) -> EngineResult<()>,
    ) -> EngineResult<()> {
        if table.indexes.is_empty() && table.builds.is_empty() {
            return Ok(());
        }
        let pool = &self.system.pool;
        let record = |value: &[u8]| {
            let mut record = Vec::new();
            append_record(pool, value, &mut record).map_err(io_error).map(|()| record)
        };
        let is_live = |value: &&[u8]| !Header::of(value).is_deleted();
        let current = Some(current).filter(is_live).map(record).transpose()?;
        let restored = before.filter(is_live).map(record).transpose()?;
        let horizon = self.system.known_horizon();
        let has_version = |keys: &IndexKeys, gone: &Entry| match before {
            Some(before) => {
                some_version_has_key(&self.system, horizon, keys, before.to_vec(), gone.sql_key())
            }
            None => Ok(false),
        };
        for build in &table.builds {
            build.note_undo(current.as_deref(), restored.as_deref(), locator, |gone| {
                has_version(&build.keys, gone)
            })?;
        }
        for (at, index) in table.indexes.iter().enumerate() {
            let make = |record: &Option<Vec<u8>>| match record {
                Some(record) => Entry::all(&index.keys, record, locator),
                None => Ok(Vec::new()),
            };
            let (old, new) = (make(&current)?, make(&restored)?);
            for gone in without(&old, &new) {
                let undo = match has_version(&index.keys, gone)? {
                    true => EntryUndo::Mark,
                    false => EntryUndo::Remove,
                };
                visit(at, undo, gone.clone())?;
            }
            for back in without(&new, &old) {
                visit(at, EntryUndo::Put, back.clone())?;
            }
        }
        Ok(())
    }

    /// Removes an entry that a rollback left to purge, if purge was there before: it kept the entry then for the version now undone (E17).
    fn remove_if_passed(
        &self,
        table: &Table,
        locator: &[u8],
        at: usize,
        entry: &Entry,
    ) -> EngineResult<()> {
        let (pool, index) = (&self.system.pool, &table.indexes[at]);
        let leaf = table.clustered.shared_leaf(pool, Seek::At(locator)).map_err(io_error)?;
        let (slot, found) = leaf.page().search(locator);
        let mut current = Vec::new();
        if found {
            leaf.page().copy_value(slot, &mut current);
        }
        let (horizon, sql) = (self.system.known_horizon(), entry.sql_key());
        let needed =
            found && some_version_has_key(&self.system, horizon, &index.keys, current, sql)?;
        if !needed && !breaks("E17") {
            remove_entry(pool, index.tree, &entry.key, RemoveEntry::Marked).map_err(io_error)?;
        }
        Ok(())
    }

    /// Whether `before` is a deleted row that purge has passed, or will not find: nothing must be restored in its place (E17).
    fn is_passed(&self, before: &[u8]) -> bool {
        let header = Header::of(before);
        header.is_deleted()
            && !breaks("E17")
            && self.system.find(header.id()).is_none_or(|core| {
                core.committed().is_some_and(|ticket| ticket < self.system.known_horizon())
            })
    }

    fn restore_row(
        &self,
        core: &TxnState,
        table: &Table,
        key: &[u8],
        before: Option<&[u8]>,
        left: UndoPointer,
    ) -> EngineResult<()> {
        let pool = &*self.system.pool;
        loop {
            let mut mtr = Mtr::new(pool);
            let place = mtr.add(table.clustered.exclusive_leaf(pool, key).map_err(io_error)?);
            let (slot, found) = mtr.page(place).search(key);
            // Under the latch: purge has either handled the row already, or will do so later.
            let before = before.filter(|before| !self.is_passed(before));
            let mut edit = mtr.edit(place);
            let done = match (found, before) {
                (false, None) => true,
                (true, None) => {
                    edit.remove(slot);
                    true
                }
                (true, Some(before)) => edit.replace_value(slot, before),
                (false, Some(before)) => edit.insert(slot, key, before),
            };
            if done {
                let small = btree::is_small(mtr.page(place));
                self.system.log_undone(core, mtr, left);
                if small && before.is_none() {
                    merge_if_small(pool, table.clustered, key).map_err(io_error)?;
                }
                return Ok(());
            }
            drop(mtr);
            make_room(pool, table.clustered, key).map_err(io_error)?;
        }
    }

    /// Frees those of a change's pages that still belong to it.
    fn free_pages(
        &self,
        core: &TxnState,
        pages: &[u8],
        left: UndoPointer,
        is_own: impl Fn(PageRef<'_>) -> bool,
    ) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let mut mtr = Mtr::new(pool);
        let mut places = Vec::new();
        let mut reader = Reader::new(pages);
        while let Some(no) = reader.u32() {
            let guard = pool.exclusive(PageNo(no)).map_err(io_error)?;
            if is_own(guard.page()) {
                places.push(mtr.add(guard));
            }
        }
        mtr.prepare_free().map_err(io_error)?;
        places.into_iter().for_each(|place| mtr.free(place));
        self.system.log_undone(core, mtr, left);
        Ok(())
    }

    /// Frees a tree; the last step, which frees the root, goes through `log`. Only calls `log` if the tree is freed already (E8).
    pub(crate) fn free_tree(&self, tree: Tree, log: impl FnOnce(Mtr<'_>)) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let exists = {
            let root = pool.shared(tree.root).map_err(io_error)?;
            root.page().kind() == Kind::Node && root.page().tree() == tree.id
        };
        let mut mtr = Mtr::new(pool);
        if exists {
            empty_tree(pool, tree, |_| Ok(())).map_err(io_error)?;
            let root = mtr.add(pool.exclusive(tree.root).map_err(io_error)?);
            mtr.prepare_free().map_err(io_error)?;
            mtr.free(root);
        }
        log(mtr);
        Ok(())
    }

    fn undo_define(
        &self,
        core: &TxnState,
        table: TableId,
        before: &[u8],
        left: UndoPointer,
    ) -> EngineResult<()> {
        let before = (!before.is_empty()).then_some(before);
        self.write_definition(table, before, |mtr| self.system.log_undone(core, mtr, left))?;
        self.dictionary.reload(&self.system.pool, table)
    }

    /// Sets or removes the dictionary's entry of a table, in a mini-transaction that `log` commits.
    pub(crate) fn write_definition(
        &self,
        table: TableId,
        value: Option<&[u8]>,
        log: impl FnOnce(Mtr<'_>),
    ) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let (tree, key) = (self.dictionary.tree, definition_key(table));
        loop {
            let mut mtr = Mtr::new(pool);
            let place = mtr.add(tree.exclusive_leaf(pool, &key).map_err(io_error)?);
            let (slot, found) = mtr.page(place).search(&key);
            let mut edit = mtr.edit(place);
            let done = match (found, value) {
                (false, None) => true,
                (true, None) => {
                    edit.remove(slot);
                    true
                }
                (true, Some(value)) => edit.replace_value(slot, value),
                (false, Some(value)) => edit.insert(slot, &key, value),
            };
            if done {
                log(mtr);
                return Ok(());
            }
            drop(mtr);
            make_room(pool, tree, &key).map_err(io_error)?;
        }
    }
}
