//! The entries of rows: made from records, and the names of unique keys, which their writers lock (E5).

use btree::Tree;
use engine_api::{EngineError, EngineResult};
use locks::Mode;

use crate::entry::{Entry, check_length, unique_space};
use crate::entry_tree::{entries_with, put_entry};
use crate::error::io_error;
use crate::obstacle::Obstacle;
use crate::read::committed_version;
use crate::space::ROW_PAGES;
use crate::table::Table;
use crate::transaction::Txn;

/// The entries of a record in every index of `table`, each with the number of its index, in order.
pub(crate) fn entries_of(
    table: &Table,
    page_bytes: usize,
    record: &[u8],
    locator: &[u8],
) -> EngineResult<Vec<(usize, Entry)>> {
    let mut entries = Vec::with_capacity(table.indexes.len());
    for (at, index) in table.indexes.iter().enumerate() {
        Entry::each(&index.keys, record, locator, |entry| {
            check_length(page_bytes, &entry)?;
            entries.push((at, entry));
            Ok(())
        })?;
    }
    Ok(entries)
}

impl Txn {
    /// Puts an entry, waiting for range locks of others.
    pub(crate) fn put_entry_waiting(&mut self, tree: Tree, entry: &Entry) -> EngineResult<()> {
        let writer = self.own_id();
        loop {
            let shared = self.shared.clone();
            shared.room_for(ROW_PAGES)?;
            let may_insert = || self.may_insert(tree.id, &entry.key);
            match put_entry(&shared.system.pool, tree, entry, writer, may_insert)? {
                Ok(()) => return Ok(()),
                Err(obstacle) => self.wait_for(obstacle, Mode::Exclusive)?,
            }
        }
    }

    /// Locks the name of a unique key and refuses a live entry with it whose locator is not `own` (E5). The conflicting row is then locked
    /// in `mode`, and still conflicts.
    pub(crate) fn claim_unique(
        &mut self,
        table: &Table,
        at: usize,
        entry: &Entry,
        own: Option<&[u8]>,
        mode: Mode,
    ) -> EngineResult<()> {
        let index = &table.indexes[at];
        loop {
            let first = self.owner().lock_count();
            let name = self.lock_unique_name(index.tree, entry)?;
            let mut marked = Vec::new();
            let live = self.live_duplicate(index.tree, entry, own, &mut marked)?;
            let Some(locator) = live else { return self.note_gone(table, marked) };
            let owner = self.owner();
            self.shared.system.locks.release_early(&owner, &name, first);
            self.lock_current(table, &locator, mode, engine_api::WaitPolicy::Wait)?;
            // Its holder may have deleted it, or given it another key.
            if self.live_duplicate(index.tree, entry, own, &mut marked)?.as_ref() == Some(&locator)
            {
                return Err(EngineError::DuplicateKey { index: index.def.id, locator });
            }
        }
    }

    /// Remembers the commits that took a unique key from these rows (E9): a snapshot from before them would have it twice.
    fn note_gone(&mut self, table: &Table, locators: Vec<Vec<u8>>) -> EngineResult<()> {
        let shared = self.shared.clone();
        for locator in locators {
            self.value.clear();
            let found = table.clustered.get(&shared.system.pool, &locator, &mut self.value);
            if found.map_err(io_error)? {
                let (_, ticket) = committed_version(&shared.system, &mut self.value)?;
                self.seen = self.seen.max(ticket);
            }
        }
        Ok(())
    }

    /// Locks the name of a unique key.
    pub(crate) fn lock_unique_name(&mut self, tree: Tree, entry: &Entry) -> EngineResult<Vec<u8>> {
        let mut name = Vec::new();
        locks::lock_name(unique_space(tree), entry.sql_key(), &mut name);
        let owner = self.owner();
        while !self.shared.system.locks.try_lock(&owner, &name, Mode::Exclusive) {
            self.wait_for(Obstacle::Row(name.clone()), Mode::Exclusive)?;
        }
        // E10: losers of a crash have a range instead of names.
        while let Err(obstacle) = self.may_insert(unique_space(tree), entry.sql_key()) {
            self.wait_for(obstacle, Mode::Exclusive)?;
        }
        Ok(name)
    }

    /// Finds also the locators of marked entries with the same columns.
    fn live_duplicate(
        &self,
        tree: Tree,
        entry: &Entry,
        own: Option<&[u8]>,
        marked: &mut Vec<Vec<u8>>,
    ) -> EngineResult<Option<Vec<u8>>> {
        let pool = &self.shared.system.pool;
        let live = entries_with(pool, tree, entry.sql_key(), 2, Some(marked)).map_err(io_error)?;
        Ok(live.into_iter().find(|locator| own != Some(locator.as_slice())))
    }
}
