//! Secondary entries: made from records, put, marked, removed. Every step may be repeated (E2).

use btree::{Mtr, Seek, Tree, make_room, merge_if_small, record_bytes_max};
use bufpool::Pool;
use engine_api::{EngineError, EngineResult};
use errors::{Error, ErrorCode};
use locks::Mode;
use std::io;
use txn::KIND_PAGES;

use crate::dictionary::io_error;
use crate::keys::IndexKeys;
use crate::locking::Obstacle;
use crate::read::committed_version;
use crate::table::Table;
use crate::transaction::Txn;

/// Mark in an entry's value.
const MARKED: u64 = 1;

/// One entry of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Columns, then locator.
    pub key: Vec<u8>,
    /// Bytes of the columns.
    pub sql: usize,
    pub has_null: bool,
}

impl Entry {
    pub fn new(keys: &IndexKeys, record: &[u8], locator: &[u8]) -> EngineResult<Entry> {
        let mut key = Vec::with_capacity(locator.len() + 24);
        let has_null = keys.append(record, &mut key)?;
        let sql = key.len();
        key.extend_from_slice(locator);
        Ok(Entry { key, sql, has_null })
    }

    pub fn sql_key(&self) -> &[u8] {
        &self.key[..self.sql]
    }

    fn value(&self) -> [u8; 8] {
        entry_value(self.sql)
    }
}

/// The value of a live entry whose columns take `sql` bytes.
pub(crate) fn entry_value(sql: usize) -> [u8; 8] {
    ((sql as u64) << 16).to_le_bytes()
}

/// Space of the locks on the keys of a unique index (E5).
pub(crate) fn unique_space(tree: Tree) -> u64 {
    const UNIQUE_NAMES: u64 = 1 << 63;
    tree.id | UNIQUE_NAMES
}

/// Length of the columns of an entry, and whether it is marked, from its value.
pub(crate) fn read_entry(value: u64) -> (usize, bool) {
    ((value >> 16) as usize & 0xFFFF, value & MARKED != 0)
}

/// The entries of a record in every index of `table`.
pub(crate) fn entries_of(
    table: &Table,
    page_bytes: usize,
    record: &[u8],
    locator: &[u8],
) -> EngineResult<Vec<Entry>> {
    let entries = table.indexes.iter().map(|index| {
        let entry = Entry::new(&index.keys, record, locator)?;
        check_length(page_bytes, &entry)?;
        Ok(entry)
    });
    entries.collect()
}

/// Puts an entry that is there live again, or inserts it when `may_insert` agrees, under the leaf's latch.
pub(crate) fn put_entry(
    pool: &Pool,
    tree: Tree,
    entry: &Entry,
    writer: u64,
    may_insert: impl Fn() -> Result<(), Obstacle>,
) -> EngineResult<Result<(), Obstacle>> {
    loop {
        let mut mtr = Mtr::new(pool);
        let place = mtr.add(tree.exclusive_leaf(pool, &entry.key).map_err(io_error)?);
        let (slot, found) = mtr.page(place).search(&entry.key);
        if found {
            mtr.edit(place).set_value_word(slot, 0, u64::from_le_bytes(entry.value()));
            note_writer(&mut mtr, place, writer);
            mtr.commit(KIND_PAGES, &[]);
            return Ok(Ok(()));
        }
        if let Err(obstacle) = may_insert() {
            return Ok(Err(obstacle));
        }
        let value = entry.value();
        let is_crowded = mtr.page(place).is_crowded(entry.key.len(), value.len());
        if !is_crowded && mtr.edit(place).insert(slot, &entry.key, &value) {
            note_writer(&mut mtr, place, writer);
            mtr.commit(KIND_PAGES, &[]);
            return Ok(Ok(()));
        }
        drop(mtr);
        make_room(pool, tree, &entry.key).map_err(io_error)?;
    }
}

/// E15: the leaf says who changed its entries last.
fn note_writer(mtr: &mut Mtr<'_>, place: usize, writer: u64) {
    if mtr.page(place).max_txn() < writer {
        mtr.edit(place).set_max_txn(writer);
    }
}

/// Marks an entry deleted; nothing when it is not there.
pub(crate) fn mark_entry(pool: &Pool, tree: Tree, key: &[u8], writer: u64) -> io::Result<()> {
    let mut mtr = Mtr::new(pool);
    let place = mtr.add(tree.exclusive_leaf(pool, key)?);
    let (slot, found) = mtr.page(place).search(key);
    if found {
        let value = mtr.page(place).value_word(slot, 0);
        mtr.edit(place).set_value_word(slot, 0, value | MARKED);
        note_writer(&mut mtr, place, writer);
        mtr.commit(KIND_PAGES, &[]);
    }
    Ok(())
}

/// Removes an entry; nothing when it is not there, or live and `only_marked`.
pub(crate) fn remove_entry(
    pool: &Pool,
    tree: Tree,
    key: &[u8],
    only: RemoveEntry,
) -> io::Result<()> {
    let mut mtr = Mtr::new(pool);
    let place = mtr.add(tree.exclusive_leaf(pool, key)?);
    let (slot, found) = mtr.page(place).search(key);
    let matches = found
        && match only {
            RemoveEntry::Any => true,
            RemoveEntry::Marked => mtr.page(place).value_word(slot, 0) & MARKED != 0,
        };
    if !matches {
        return Ok(());
    }
    mtr.edit(place).remove(slot);
    let small = btree::is_small(mtr.page(place));
    mtr.commit(KIND_PAGES, &[]);
    if small {
        merge_if_small(pool, tree, key)?;
    }
    Ok(())
}

/// Which entries `remove_entry` removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RemoveEntry {
    Any,
    Marked,
}

impl Txn {
    /// Puts an entry, waiting for range locks of others.
    pub(crate) fn put_entry_waiting(&mut self, tree: Tree, entry: &Entry) -> EngineResult<()> {
        let writer = self.own_id();
        loop {
            let shared = self.shared.clone();
            let may_insert = || self.may_insert(tree.id, &entry.key);
            match put_entry(&shared.system.pool, tree, entry, writer, may_insert)? {
                Ok(()) => return Ok(()),
                Err(obstacle) => self.wait_for(obstacle, Mode::Exclusive)?,
            }
        }
    }

    /// Locks the name of a unique key and refuses a live entry with it whose locator is not `own` (E5). The row in the way is then locked
    /// in `mode`, and in the way still.
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

/// Locators of the first live entries with these columns, at most `limit`.
pub(crate) fn live_entries(
    pool: &Pool,
    tree: Tree,
    sql: &[u8],
    limit: usize,
) -> io::Result<Vec<Vec<u8>>> {
    entries_with(pool, tree, sql, limit, None)
}

/// As `live_entries`; `gone` gets the locators of marked entries before the last of them.
fn entries_with(
    pool: &Pool,
    tree: Tree,
    sql: &[u8],
    limit: usize,
    mut gone: Option<&mut Vec<Vec<u8>>>,
) -> io::Result<Vec<Vec<u8>>> {
    let (mut start, mut key, mut found) = (sql.to_vec(), Vec::new(), Vec::new());
    if let Some(gone) = &mut gone {
        gone.clear();
    }
    loop {
        let leaf = tree.shared_leaf(pool, Seek::At(&start))?;
        let page = leaf.page();
        for slot in page.search(&start).0..page.count() {
            key.clear();
            page.copy_key(slot, &mut key);
            if !key.starts_with(sql) {
                return Ok(found);
            }
            let (length, marked) = read_entry(page.value_word(slot, 0));
            let locator = || key.get(length..).unwrap_or(&[]).to_vec();
            match (length == sql.len(), marked, &mut gone) {
                (true, false, _) => found.push(locator()),
                (true, true, Some(gone)) => gone.push(locator()),
                _ => {}
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
        if !page.upper_fence(&mut start) {
            return Ok(found);
        }
    }
}

/// Refuses an entry that does not fit a page.
pub(crate) fn check_length(page_bytes: usize, entry: &Entry) -> EngineResult<()> {
    let limit = record_bytes_max(page_bytes) - 8;
    match entry.key.len() <= limit {
        true => Ok(()),
        false => Err(EngineError::Other(Error::with(ErrorCode::TOO_LONG_KEY, &[&limit]))),
    }
}
