//! Unique keys WITHOUT OVERLAPS: rows that are alike in some columns have no time in common.
//!
//! A row is stored first, and then the key is searched by a locking read for rows that it must not have a time in common with; if there is one, storing the
//! row is undone, and the row is a duplicate. So of two transactions that store overlapping rows at the same time the one that searches last finds
//! the other's row: both rows are in the index by then. It waits for the other transaction, as every locking read does for a row that
//! is stored, changed or deleted by another, at every isolation level, and sees what has become of it. (Both may search
//! last: then both wait, and one of them ends with a deadlock.)
//!
//! Rows that are alike do not overlap, so that the order of their ends is that of their starts, and the first one that ends after the new row starts
//! tells for all: if it starts before the new row ends the two overlap, and if not, all later ones start even later. That holds also while rows of others
//! are there that have yet to be searched for. Let `r` be the row that ended the search, and let a later row `s` overlap the new row.
//! Then `s` has in it all the time of `r`, and one of the two was stored last. `s` searched last: then it found `r`, or the new row, which come
//! before `s` in the index. `r` searched last: then it found `s`, or ended with a row between the two, of which the same is true.

use engine_api::{Direction, IndexId, KeyBound, KeyRange, RowBatch, RowLock, ScanSpec, WaitPolicy};
use errors::Result;
use plan::OverlapCheck;
use types::Value;
use types::key::encode_part;

use super::Written;
use super::table::WriteTable;
use crate::run::Run;

/// Rows read at a time: the first that is not the new one tells.
const ROWS_PER_FETCH: usize = 2;

/// Stores a row; it is a duplicate if it overlaps another one. `old`: the row that it replaces.
pub(crate) fn stored<'r>(
    table: &WriteTable,
    (old, record): (Option<&[u8]>, &[u8]),
    run: &mut Run<'r>,
    store: impl FnOnce(&mut Run<'r>) -> Result<Written>,
) -> Result<Written> {
    if table.overlaps.is_empty() {
        return store(run);
    }
    let savepoint = run.transaction(table.engine)?.savepoint();
    if let Written::Duplicate { index, locator } = store(run)? {
        return Ok(Written::Duplicate { index, locator });
    }
    let new = table.layout.decode_all(record)?;
    let old = old.map(|old| table.layout.decode_all(old)).transpose()?;
    for check in &table.overlaps {
        if old.as_ref().is_some_and(|old| !differs(check, old, &new)) {
            continue;
        }
        if let Some(locator) = find(table, check, &new, run)? {
            let undone = run.transaction(table.engine)?.rollback_to(savepoint);
            run.engine(undone)?;
            return Ok(Written::Duplicate { index: IndexId(check.index), locator });
        }
    }
    Ok(Written::Done)
}

/// Whether a change of a row may make it overlap others.
fn differs(check: &OverlapCheck, old: &[Value], new: &[Value]) -> bool {
    let period = [check.start, check.end];
    let end = check.current.as_ref().map(|(end, _)| *end);
    let mut columns = check.alike.iter().map(|part| part.column).chain(period).chain(end);
    columns.any(|column| old[column] != new[column])
}

/// Whether a row counts: old rows of a table that keeps history do not.
fn counts(check: &OverlapCheck, row: &[Value]) -> bool {
    check.current.as_ref().is_none_or(|(end, never)| row[*end] == *never)
}

/// The locator of a row that overlaps `new`, which is stored.
fn find(
    table: &WriteTable,
    check: &OverlapCheck,
    new: &[Value],
    run: &mut Run<'_>,
) -> Result<Option<Vec<u8>>> {
    let is_null = check.alike.iter().any(|part| new[part.column].is_null());
    if is_null || !counts(check, new) {
        return Ok(None);
    }
    let mut alike = Vec::new();
    for part in &check.alike {
        let value = &new[part.column];
        encode_part(value, &part.ty, part.prefix_length, part.descending, &mut alike);
    }
    let mut lower = alike.clone();
    encode_part(&new[check.start], &table.columns[check.end].ty, None, false, &mut lower);
    let spec = ScanSpec {
        table: table.id,
        index: IndexId(check.index),
        range: KeyRange { lower: KeyBound::Excluded(lower), upper: KeyBound::Included(alike) },
        direction: Direction::Forward,
        lock: RowLock::Shared,
        wait: WaitPolicy::Wait,
    };
    let opened = run.transaction(table.engine)?.open_cursor(&spec);
    let cursor = run.engine(opened)?;
    let mut batch = RowBatch::new();
    let mut found = Ok(None);
    let mut is_over = false;
    while !is_over {
        batch.clear();
        let fetched = run.transaction(table.engine)?.fetch(cursor, ROWS_PER_FETCH, &mut batch);
        is_over = !matches!(fetched, Ok(count) if count > 0);
        if let Err(error) = fetched {
            found = Err(run.engine_error(error));
        }
        for row in batch.iter().take_while(|_| !is_over) {
            match judge(table, check, new, row.record) {
                Ok(None) => continue,
                Ok(Some(overlaps)) => found = Ok(overlaps.then(|| row.locator.to_vec())),
                Err(error) => found = Err(error),
            }
            is_over = true;
            break;
        }
    }
    run.transaction(table.engine)?.close_cursor(cursor);
    found
}

/// Whether a stored row overlaps the new one; `None` for a row that does not tell.
fn judge(
    table: &WriteTable,
    check: &OverlapCheck,
    new: &[Value],
    record: &[u8],
) -> Result<Option<bool>> {
    let row = table.layout.decode_all(record)?;
    let is_new = !differs(check, &row, new);
    if is_new || !counts(check, &row) {
        return Ok(None);
    }
    Ok(Some(rows::times::is_before(&row[check.start], &new[check.end])))
}
