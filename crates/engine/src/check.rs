//! Verifying a table, and that no page is lost. Runs while no transaction writes; purge may run concurrently.

use std::collections::HashSet;
use std::io;

use btree::{LeafCopy, Seek, Tree, check_tree, check_tree_with, pages_in_use};
use engine_api::{CancelToken, EngineError, EngineResult};
use errors::ErrorCode;
use page::{HEADER_BYTES, PageNo};

use crate::entry::{Entry, read_entry};
use crate::error::io_error;
use crate::row::{BlobRef, Header, append_record, body};
use crate::shared::Shared;
use crate::table::Table;

/// Calls `visit` with key and value of each record.
pub(crate) fn for_each(
    shared: &Shared,
    tree: Tree,
    mut visit: impl FnMut(&[u8], &[u8]) -> EngineResult<()>,
) -> EngineResult<()> {
    let pool = &shared.system.pool;
    let mut leaf = LeafCopy::new(pool);
    let (mut start, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        leaf.load(pool, tree, Seek::At(&start)).map_err(io_error)?;
        // Purge may have merged the leaf that begins at `start` with the previous one, which was already visited.
        for slot in leaf.page().search(&start).0..leaf.page().count() {
            key.clear();
            value.clear();
            leaf.page().copy_key(slot, &mut key);
            leaf.page().copy_value(slot, &mut value);
            visit(&key, &value)?;
        }
        if !leaf.page().upper_fence(&mut start) {
            return Ok(());
        }
    }
}

fn entry_word(value: &[u8]) -> u64 {
    value.try_into().map_or(0, u64::from_le_bytes)
}

/// Trees are sound, every live row has its live entries, every live entry has its row. A page that cannot be read is a finding too.
/// `cancel` counts rows and entries.
pub(crate) fn check_table(
    shared: &Shared,
    table: &Table,
    cancel: &CancelToken,
) -> EngineResult<Vec<String>> {
    match find_wrong(shared, table, cancel) {
        Err(EngineError::Other(error)) if error.code() == ErrorCode::ERROR_ON_READ => {
            Ok(vec![error.message().to_owned()])
        }
        outcome => outcome,
    }
}

/// Faults reported for one table at most; more of them say nothing new.
const WRONG_MAX: usize = 1000;

/// Counts one row or entry that was looked at.
fn count_one(cancel: &CancelToken) -> EngineResult<()> {
    cancel.count_work(1);
    if cancel.is_cancelled() { Err(EngineError::Cancelled) } else { Ok(()) }
}

fn find_wrong(shared: &Shared, table: &Table, cancel: &CancelToken) -> EngineResult<Vec<String>> {
    let pool = &shared.system.pool;
    let mut wrong = Vec::new();
    for stored in table.trees() {
        wrong.extend(check_tree_with(pool, stored.tree, &mut |_| {}).map_err(io_error)?.wrong);
    }
    // Of a multi-valued index a row may have any number of entries.
    let mut expected = vec![0_u64; table.indexes.len()];
    for_each(shared, table.clustered, |locator, value| {
        if Header::of(value).is_deleted() {
            return Ok(());
        }
        count_one(cancel)?;
        let mut record = Vec::new();
        append_record(pool, value, &mut record).map_err(io_error)?;
        for (index, expected) in table.indexes.iter().zip(&mut expected) {
            let mut stored = Vec::new();
            Entry::each(&index.keys, &record, locator, |entry| {
                *expected += 1;
                stored.clear();
                let found = index.tree.get(pool, &entry.key, &mut stored).map_err(io_error)?;
                let is_live = found && read_entry(entry_word(&stored)) == (entry.sql, false);
                if !is_live && wrong.len() < WRONG_MAX {
                    wrong.push(format!("{}: no live entry for row {locator:?}", index.def.name));
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    for (index, expected) in table.indexes.iter().zip(expected) {
        let mut entries = 0_u64;
        for_each(shared, index.tree, |_, value| {
            entries += u64::from(!read_entry(entry_word(value)).1);
            count_one(cancel)
        })?;
        if entries != expected {
            let name = &index.def.name;
            wrong.push(format!("{name}: {entries} live entries where rows have {expected}"));
        }
    }
    Ok(wrong)
}

/// Shows where the dictionary keeps the stored definitions.
pub(crate) fn dictionary_blobs(
    shared: &Shared,
    visit: &mut dyn FnMut(BlobRef) -> io::Result<()>,
) -> EngineResult<()> {
    for_each(shared, shared.dictionary.tree, |key, value| {
        if key.first() == Some(&1) {
            BlobRef::decode(value).and_then(&mut *visit).map_err(io_error)?;
        }
        Ok(())
    })
}

/// Shows where a table keeps its records out of line.
pub(crate) fn blobs_of(
    shared: &Shared,
    table: &Table,
    visit: &mut dyn FnMut(BlobRef) -> io::Result<()>,
) -> EngineResult<()> {
    for_each(shared, table.clustered, |_, value| {
        if Header::of(value).is_out_of_line() {
            BlobRef::decode(body(value)).and_then(&mut *visit).map_err(io_error)?;
        }
        Ok(())
    })
}

/// See `DurableEngine::lost_pages`.
pub(crate) fn lost_pages(shared: &Shared) -> EngineResult<u64> {
    let pool = &shared.system.pool;
    let mut held: HashSet<PageNo> = HashSet::from([PageNo::META]);
    held.extend(check_tree(pool, shared.dictionary.tree).map_err(io_error)?.pages);
    let page_body = (pool.page_bytes() - HEADER_BYTES) as u64;
    let mut in_blobs = 0;
    let mut count = |blob: BlobRef| {
        in_blobs += u64::from(blob.length).div_ceil(page_body);
        Ok(())
    };
    dictionary_blobs(shared, &mut count)?;
    for table in shared.dictionary.all()? {
        for stored in table.trees() {
            held.extend(check_tree(pool, stored.tree).map_err(io_error)?.pages);
        }
        blobs_of(shared, &table, &mut count)?;
    }
    let (count, free) = pages_in_use(pool).map_err(io_error)?;
    Ok(count.saturating_sub(free + held.len() as u64 + in_blobs))
}

/// See `DurableEngine::unpurged`.
pub(crate) fn unpurged(shared: &Shared, table: &Table) -> EngineResult<u64> {
    let mut count = 0;
    for_each(shared, table.clustered, |_, value| {
        count += u64::from(Header::of(value).is_deleted());
        Ok(())
    })?;
    for index in &table.indexes {
        for_each(shared, index.tree, |_, value| {
            count += u64::from(read_entry(entry_word(value)).1);
            Ok(())
        })?;
    }
    Ok(count)
}
