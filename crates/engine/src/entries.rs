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
        if mtr.edit(place).insert(slot, &entry.key, &entry.value()) {
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

    /// Locks the name of a unique key and refuses a live entry with it whose locator is not `own` (E5).
    pub(crate) fn claim_unique(
        &mut self,
        table: &Table,
        at: usize,
        entry: &Entry,
        own: Option<&[u8]>,
    ) -> EngineResult<()> {
        let index = &table.indexes[at];
        let first = self.owner().lock_count();
        let name = self.lock_unique_name(index.tree, entry)?;
        let Some(locator) = self.live_duplicate(index.tree, entry, own)? else { return Ok(()) };
        let owner = self.owner();
        self.shared.system.locks.release_early(&owner, &name, first);
        self.lock_current(table, &locator, Mode::Shared, engine_api::WaitPolicy::Wait)?;
        Err(EngineError::DuplicateKey { index: index.def.id, locator })
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

    fn live_duplicate(
        &self,
        tree: Tree,
        entry: &Entry,
        own: Option<&[u8]>,
    ) -> EngineResult<Option<Vec<u8>>> {
        let pool = &self.shared.system.pool;
        let live = live_entries(pool, tree, entry.sql_key(), 2).map_err(io_error)?;
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
    let (mut start, mut key, mut found) = (sql.to_vec(), Vec::new(), Vec::new());
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
            if length == sql.len() && !marked {
                found.push(key.get(length..).unwrap_or(&[]).to_vec());
                if found.len() == limit {
                    return Ok(found);
                }
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
