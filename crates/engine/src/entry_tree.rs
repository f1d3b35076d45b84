//! Secondary entries in their trees: inserted, marked, removed, searched. Every step may be repeated (E2).

use std::io;

use btree::{Mtr, Seek, Tree, make_room, merge_if_small};
use bufpool::Pool;
use engine_api::EngineResult;
use txn::KIND_PAGES;

use crate::entry::{Entry, MARKED, read_entry};
use crate::error::io_error;
use crate::obstacle::Obstacle;

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

/// E15: the leaf names the transaction that changed its entries last.
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

/// Locators of the first live entries with these columns, at most `limit`.
pub(crate) fn live_entries(
    pool: &Pool,
    tree: Tree,
    sql: &[u8],
    limit: usize,
) -> io::Result<Vec<Vec<u8>>> {
    entries_with(pool, tree, sql, limit, None)
}

/// Like `live_entries`; `gone` gets the locators of marked entries before the last of them.
pub(crate) fn entries_with(
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
