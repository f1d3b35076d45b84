//! Purge: removes what committed changes left behind and no snapshot sees any more.

use std::sync::Arc;
use sys::sync::atomic::Ordering;

use btree::{Mtr, Seek, Tree, empty_tree, merge_if_small};
use engine_api::{EngineResult, TableId};
use page::{Kind, PageNo};
use txn::{KIND_PAGES, PurgeLane, TxnState, UndoPointer};

use crate::dictionary::definition_key;
use crate::entry::Entry;
use crate::entry_tree::{RemoveEntry, remove_entry};
use crate::error::damaged;
use crate::error::io_error;
use crate::read::some_version_has_key;
use crate::row::{BlobRef, Gone, Header, UndoEntry, append_record, body};
use crate::shared::Shared;
use crate::table::{Index, Table};

/// Changes of one transaction that are purged once the engine stops. The others are left to its next run: if each needs pages read, this
/// number takes a second.
const CHANGES_AT_STOP: usize = 4096;

/// The outcome of the purge of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purged {
    Whole,
    /// The engine stops: the rest is left to its next run.
    InPart,
}

/// The entries that a change noted, with those of their indexes that are still there.
pub(crate) fn gone_of<'t>(
    table: &'t Table,
    gone: Gone<'t>,
) -> impl Iterator<Item = (&'t Index, &'t [u8])> {
    gone.iter().filter_map(|(id, sql)| {
        let index = table.indexes.iter().find(|index| u64::from(index.def.id.0) == id);
        index.map(|index| (index, sql))
    })
}

/// Changes whose pages are read ahead together.
const AHEAD: usize = 256;

/// The horizon below which purge works, recomputed now and then.
#[derive(Default)]
struct Horizon {
    at: u64,
    uses: usize,
}

impl Horizon {
    fn now(&mut self, shared: &Shared) -> u64 {
        /// Transactions purged under one horizon: looking at every snapshot costs more than a small transaction's purge.
        const USES: usize = 64;
        if self.uses.is_multiple_of(USES) {
            self.at = shared.system.horizon();
        }
        self.uses += 1;
        self.at
    }
}

impl Shared {
    /// Purges up to `limit` transactions; returns how many. Lanes that other threads are purging are left to them.
    pub(crate) fn purge(&self, limit: usize) -> EngineResult<usize> {
        let (mut count, mut horizon) = (0, Horizon::default());
        for lane in self.system.purge_lanes() {
            count += self.purge_lane(&lane, limit - count, &mut horizon)?;
            if count == limit {
                break;
            }
        }
        self.system.advance_low();
        // Undo that an old snapshot keeps from being purged moves out of memory, unless the device is full.
        let _ = self.system.file_ended();
        Ok(count)
    }

    /// Like `purge`, of the transactions that this thread and others like it ended.
    pub(crate) fn purge_own(&self, limit: usize) -> EngineResult<()> {
        if let Some(lane) = self.system.own_purge_lane() {
            self.purge_lane(&lane, limit, &mut Horizon::default())?;
        }
        Ok(())
    }

    fn purge_lane(
        &self,
        lane: &PurgeLane<'_>,
        limit: usize,
        horizon: &mut Horizon,
    ) -> EngineResult<usize> {
        let mut settled = Vec::new();
        let mut outcome = Ok(());
        while settled.len() < limit {
            let horizon = horizon.now(self);
            let Some(core) = self.system.next_to_purge(lane, horizon) else { break };
            let purged = self.purge_core(&core, horizon);
            if !matches!(purged, Ok(Purged::Whole)) {
                self.system.requeue(lane, &core);
                outcome = purged.map(drop);
                break;
            }
            self.system.retire(&core);
            settled.push(core.id);
        }
        self.system.log_settled(&settled);
        outcome.map(|()| settled.len())
    }

    fn purge_core(&self, core: &Arc<TxnState>, horizon: u64) -> EngineResult<Purged> {
        if core.committed().is_none() || !core.has_garbage() {
            return Ok(Purged::Whole);
        }
        let mut entries = core.undo_entries();
        let mut take = || entries.by_ref().take(AHEAD).collect::<Vec<_>>();
        let (mut ready, mut at_stop) = (take(), 0);
        while let Some(last) = ready.last().copied() {
            // The pages of the next ones come in while these are worked on.
            let next = take();
            self.ask_for_purge(core, &next)?;
            for pointer in std::mem::replace(&mut ready, next) {
                self.purge_entry(core, pointer, horizon)?;
            }
            at_stop += usize::from(self.stopping.load(Ordering::Acquire));
            // Stopping the engine does not wait for the end of a large transaction's purge. Finished parts stay done.
            if !ready.is_empty() && at_stop > CHANGES_AT_STOP / AHEAD {
                self.system.log_purged(core, Mtr::new(&self.system.pool), last);
                return Ok(Purged::InPart);
            }
        }
        Ok(Purged::Whole)
    }

    fn purge_entry(
        &self,
        core: &Arc<TxnState>,
        pointer: UndoPointer,
        horizon: u64,
    ) -> EngineResult<()> {
        let mut payload = Vec::new();
        core.read_undo(pointer, &mut payload).ok_or_else(damaged)?;
        match UndoEntry::decode(&payload).ok_or_else(damaged)? {
            UndoEntry::Change { table, key, before } => match self.dictionary.get(TableId(table)) {
                Ok(table) => self.purge_change(core, pointer, &table, key, before, horizon),
                Err(_) => Ok(()),
            },
            UndoEntry::Update { gone, .. } if gone.is_empty() => Ok(()),
            UndoEntry::Update { table, key, gone, .. } => match self.dictionary.get(TableId(table))
            {
                Ok(table) => self.purge_gone(&table, key, gone, horizon),
                Err(_) => Ok(()),
            },
            UndoEntry::DropTree { root, tree, has_blobs } => {
                let tree = Tree { root: PageNo(root), id: tree };
                self.purge_tree(core, pointer, tree, has_blobs)
            }
            UndoEntry::Define { table, before } => {
                self.purge_definition(core, pointer, TableId(table), before)
            }
            UndoEntry::Insert { .. }
            | UndoEntry::Blob { .. }
            | UndoEntry::CreateTree { .. }
            | UndoEntry::TreePages { .. }
            | UndoEntry::TreeFilled { .. } => Ok(()),
        }
    }

    /// Requests the pages that purging changes will need: if rows and their entries are far apart, their pages are read in parallel.
    fn ask_for_purge(&self, core: &TxnState, entries: &[UndoPointer]) -> EngineResult<()> {
        let pool = &*self.system.pool;
        if entries.is_empty() || !pool.reads_ahead() {
            return Ok(());
        }
        let mut payload = Vec::new();
        let mut keys: Vec<(Tree, Vec<Vec<u8>>)> = Vec::new();
        let mut add = |tree: Tree, key: Vec<u8>| {
            let known = keys.iter_mut().find(|(known, _)| known.id == tree.id);
            match known {
                Some((_, keys)) => keys.push(key),
                None => keys.push((tree, vec![key])),
            }
        };
        for pointer in entries {
            core.read_undo(*pointer, &mut payload).ok_or_else(damaged)?;
            let entry = UndoEntry::decode(&payload).ok_or_else(damaged)?;
            if let UndoEntry::Update { table, key, gone, .. } = entry
                && !gone.is_empty()
                && let Ok(table) = self.dictionary.get(TableId(table))
            {
                add(table.clustered, key.to_vec());
                gone_of(&table, gone).for_each(|(index, sql)| add(index.tree, [sql, key].concat()));
            }
            let UndoEntry::Change { table, key, before } = entry else { continue };
            let Ok(table) = self.dictionary.get(TableId(table)) else { continue };
            add(table.clustered, key.to_vec());
            let header = Header::of(before);
            if header.is_deleted() || header.is_out_of_line() {
                continue;
            }
            for index in &table.indexes {
                Entry::each(&index.keys, body(before), key, |entry| {
                    add(index.tree, entry.key);
                    Ok(())
                })?;
            }
        }
        for (tree, mut keys) in keys {
            keys.sort_unstable();
            tree.read_ahead(pool, keys.iter().map(Vec::as_slice));
        }
        Ok(())
    }

    fn purge_change(
        &self,
        core: &TxnState,
        pointer: UndoPointer,
        table: &Table,
        key: &[u8],
        before: &[u8],
        horizon: u64,
    ) -> EngineResult<()> {
        let header = Header::of(before);
        let may_go = self.purge_entries(table, key, before, horizon)?;
        if may_go.is_some_and(|current| current.is_deleted() && current.id() == core.id) {
            self.remove_row(table, key, core.id)?;
        }
        if header.is_out_of_line() {
            let old = BlobRef::decode(body(before)).map_err(io_error)?;
            let pool = &self.system.pool;
            old.free(pool, |mtr| self.system.log_purged(core, mtr, pointer)).map_err(io_error)?;
        }
        Ok(())
    }

    /// Removes the marked entries of an old version that no version left has (E4). Returns the row's header now.
    fn purge_entries(
        &self,
        table: &Table,
        locator: &[u8],
        before: &[u8],
        horizon: u64,
    ) -> EngineResult<Option<Header>> {
        let pool = &self.system.pool;
        let leaf = table.clustered.shared_leaf(pool, Seek::At(locator)).map_err(io_error)?;
        let (slot, found) = leaf.page().search(locator);
        let mut current = Vec::new();
        if found {
            leaf.page().copy_value(slot, &mut current);
        }
        let header = found.then(|| Header::of(&current));
        if table.indexes.is_empty() || Header::of(before).is_deleted() {
            return Ok(header);
        }
        let mut record = Vec::new();
        append_record(pool, before, &mut record).map_err(io_error)?;
        for index in &table.indexes {
            Entry::each(&index.keys, &record, locator, |entry| {
                let needed = found
                    && some_version_has_key(
                        &self.system,
                        horizon,
                        &index.keys,
                        current.clone(),
                        entry.sql_key(),
                    )?;
                if !needed {
                    remove_entry(pool, index.tree, &entry.key, RemoveEntry::Marked)
                        .map_err(io_error)?;
                }
                Ok(())
            })?;
        }
        Ok(header)
    }

    /// Like `purge_entries`, for the entries that the change noted (E22).
    fn purge_gone(
        &self,
        table: &Table,
        locator: &[u8],
        gone: Gone<'_>,
        horizon: u64,
    ) -> EngineResult<()> {
        let pool = &self.system.pool;
        let leaf = table.clustered.shared_leaf(pool, Seek::At(locator)).map_err(io_error)?;
        let (slot, found) = leaf.page().search(locator);
        let mut current = Vec::new();
        if found {
            leaf.page().copy_value(slot, &mut current);
        }
        for (index, sql) in gone_of(table, gone) {
            let needed = found
                && some_version_has_key(&self.system, horizon, &index.keys, current.clone(), sql)?;
            if !needed {
                let key = [sql, locator].concat();
                remove_entry(pool, index.tree, &key, RemoveEntry::Marked).map_err(io_error)?;
            }
        }
        Ok(())
    }

    fn remove_row(&self, table: &Table, key: &[u8], id: u64) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let mut mtr = Mtr::new(pool);
        let place = mtr.add(table.clustered.exclusive_leaf(pool, key).map_err(io_error)?);
        let (slot, found) = mtr.page(place).search(key);
        let mut value = Vec::new();
        if found {
            mtr.page(place).copy_value(slot, &mut value);
        }
        let header = Header::of(&value);
        if !found || !header.is_deleted() || header.id() != id {
            return Ok(());
        }
        mtr.edit(place).remove(slot);
        let small = btree::is_small(mtr.page(place));
        mtr.commit(KIND_PAGES, &[]);
        if small {
            merge_if_small(pool, table.clustered, key).map_err(io_error)?;
        }
        Ok(())
    }

    fn purge_tree(
        &self,
        core: &TxnState,
        pointer: UndoPointer,
        tree: Tree,
        has_blobs: bool,
    ) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let mut blobs = Vec::new();
        if has_blobs {
            let root = pool.shared(tree.root).map_err(io_error)?;
            let exists = root.page().kind() == Kind::Node && root.page().tree() == tree.id;
            drop(root);
            if exists {
                let collect = |page: page::PageRef<'_>| {
                    let mut value = Vec::new();
                    for slot in 0..page.count() {
                        value.clear();
                        page.copy_value(slot, &mut value);
                        if Header::of(&value).is_out_of_line() {
                            blobs.push(BlobRef::decode(body(&value))?);
                        }
                    }
                    Ok(())
                };
                empty_tree(pool, tree, collect).map_err(io_error)?;
            }
        }
        self.free_tree(tree, |mtr| self.system.log_purged(core, mtr, pointer))?;
        for blob in blobs {
            let plain = |mtr: Mtr<'_>| {
                mtr.commit(KIND_PAGES, &[]);
            };
            blob.free(pool, plain).map_err(io_error)?;
        }
        Ok(())
    }

    fn purge_definition(
        &self,
        core: &TxnState,
        pointer: UndoPointer,
        table: TableId,
        before: &[u8],
    ) -> EngineResult<()> {
        if before.is_empty() {
            return Ok(());
        }
        let pool = &*self.system.pool;
        let mut value = Vec::new();
        let exists = self.dictionary.tree.get(pool, &definition_key(table), &mut value);
        if !exists.map_err(io_error)? {
            self.dictionary.remove_counter(pool, table).map_err(io_error)?;
        }
        let old = BlobRef::decode(before).map_err(io_error)?;
        old.free(pool, |mtr| self.system.log_purged(core, mtr, pointer)).map_err(io_error)
    }
}
