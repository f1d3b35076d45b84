//! Rolling back: each undo entry's inverse, secondary entries first, then the row (E2).

use btree::{Mtr, Tree, empty_tree, make_room, merge_if_small};
use engine_api::{EngineError, EngineResult, TableId};
use errors::Error;
use locks::lock_name;
use page::{Kind, PageNo, PageRef};
use stdx::bytes::Reader;
use txn::{Core, UndoPointer};

use crate::dictionary::{definition_key, io_error};
use crate::engine::Shared;
use crate::entries::{Entry, RemoveEntry, mark_entry, put_entry, remove_entry};
use crate::keys::IndexKeys;
use crate::read::some_version_has_key;
use crate::row::{Header, UndoEntry, append_record};
use crate::table::Table;

fn damaged() -> EngineError {
    EngineError::Other(Error::internal("an undo entry is damaged"))
}

/// Whether locks on rows must outlive the changes that implied them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepLocks {
    /// To a savepoint: they stay.
    Yes,
    /// The transaction ends.
    No,
}

impl Shared {
    /// Undoes every entry of `core` above `mark`.
    pub(crate) fn undo_to(&self, core: &Core, mark: u64, keep: KeepLocks) -> EngineResult<()> {
        while self.undo_last(core, mark, keep)? {}
        Ok(())
    }

    /// Undoes the newest entry of `core` above `mark`; false when there is none.
    pub(crate) fn undo_last(&self, core: &Core, mark: u64, keep: KeepLocks) -> EngineResult<bool> {
        let last = core.last_undo();
        if last.0 <= mark {
            return Ok(false);
        }
        let mut payload = Vec::new();
        let left = core.read_undo(last, &mut payload).ok_or_else(damaged)?;
        let entry = UndoEntry::decode(&payload).ok_or_else(damaged)?;
        self.undo_one(core, entry, left, keep)?;
        Ok(true)
    }

    fn undo_one(
        &self,
        core: &Core,
        entry: UndoEntry<'_>,
        left: UndoPointer,
        keep: KeepLocks,
    ) -> EngineResult<()> {
        match entry {
            UndoEntry::Insert { table, key } => self.undo_row(core, table, key, None, left, keep),
            UndoEntry::Change { table, key, before } => {
                self.undo_row(core, table, key, Some(before), left, keep)
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

    fn undo_row(
        &self,
        core: &Core,
        table: u64,
        key: &[u8],
        before: Option<&[u8]>,
        left: UndoPointer,
        keep: KeepLocks,
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
        let mut current = Vec::new();
        let pool = &self.system.pool;
        if table.clustered.get(pool, key, &mut current).map_err(io_error)? {
            self.undo_entries(core.id, &table, key, &current, before)?;
            let was_live = !Header::of(&current).is_deleted();
            let is_live = before.is_some_and(|before| !Header::of(before).is_deleted());
            let change = i64::from(is_live) - i64::from(was_live);
            table.counters.row_changes.fetch_add(change, sys::sync::atomic::Ordering::Relaxed);
        }
        self.restore_row(core, &table, key, before, left)
    }

    /// Takes back what a change did to secondary entries.
    fn undo_entries(
        &self,
        writer: u64,
        table: &Table,
        locator: &[u8],
        current: &[u8],
        before: Option<&[u8]>,
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
        let horizon = self.system.horizon();
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
        for index in &table.indexes {
            let make = |record: &Option<Vec<u8>>| {
                let record = record.as_ref();
                record.map(|record| Entry::new(&index.keys, record, locator)).transpose()
            };
            let (gone, back) = (make(&current)?, make(&restored)?);
            if gone == back {
                continue;
            }
            if let Some(gone) = gone {
                match has_version(&index.keys, &gone)? {
                    true => mark_entry(pool, index.tree, &gone.key, writer),
                    false => remove_entry(pool, index.tree, &gone.key, RemoveEntry::Any),
                }
                .map_err(io_error)?;
            }
            if let Some(back) = back {
                // The key was there before: no range lock of another can forbid it.
                let _always = put_entry(pool, index.tree, &back, writer, || Ok(()))?;
            }
        }
        Ok(())
    }

    fn restore_row(
        &self,
        core: &Core,
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

    /// Frees those of a change's pages that are still what it made them.
    fn free_pages(
        &self,
        core: &Core,
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

    /// Frees a tree; the last step, which frees the root, goes through `log`. Nothing but `log` when the tree is gone already (E8).
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
        core: &Core,
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
