//! Writes of rows that somebody is told of. All writes of rows go through here, except for those of point programs, which leave watched
//! tables to the operators.

use engine_api::{EngineResult, GetOutcome, IndexId, RowBuf, RowLock, Transaction, WaitPolicy};
use errors::Result;
use types::Value;

use super::Written;
use super::table::WriteTable;
use crate::fulltext;
use crate::run::Run;
use crate::watch::{RowMark, RowWrite};

/// Whether somebody wants the rows of a table.
#[inline]
pub(crate) fn is_watched(table: &WriteTable, run: &mut Run<'_>) -> bool {
    run.env.settings.watches_rows && asks(table, run)
}

#[cold]
fn asks(table: &WriteTable, run: &mut Run<'_>) -> bool {
    run.host.row_watch().is_some_and(|watch| watch.wants(table.id))
}

/// Stores a new row.
#[inline]
pub(crate) fn insert_row(
    table: &WriteTable,
    record: &[u8],
    insert: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
    run: &mut Run<'_>,
) -> Result<Written> {
    if !is_watched(table, run) {
        return fulltext::insert_row(table, record, insert, run);
    }
    let new = table.layout.decode_all(record)?;
    let write = RowWrite { table: table.id, old: None, new: Some(&new), edited: &[] };
    before(&write, run)?;
    let written = fulltext::insert_row(table, record, insert, run)?;
    if let Written::Done = written {
        after(&write, run)?;
    }
    Ok(written)
}

/// Replaces the row at `locator` by a record.
#[inline]
pub(crate) fn update_row(
    table: &WriteTable,
    locator: &[u8],
    record: &[u8],
    run: &mut Run<'_>,
) -> Result<Written> {
    let old = stored_if_watched(table, locator, run)?;
    let Some(old) = old else { return fulltext::update_row(table, locator, record, run) };
    let new = table.layout.decode_all(record)?;
    let write =
        RowWrite { table: table.id, old: Some(&old), new: Some(&new), edited: &table.edited };
    before(&write, run)?;
    let written = fulltext::update_row(table, locator, record, run)?;
    if let Written::Done = written {
        after(&write, run)?;
    }
    Ok(written)
}

/// Deletes the row at `locator`; false when it does not exist.
#[inline]
pub(crate) fn delete_row(table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<bool> {
    let old = stored_if_watched(table, locator, run)?;
    let Some(old) = old else { return fulltext::delete_row(table, locator, run) };
    let write = RowWrite { table: table.id, old: Some(&old), new: None, edited: &[] };
    before(&write, run)?;
    let is_deleted = fulltext::delete_row(table, locator, run)?;
    if is_deleted {
        after(&write, run)?;
    }
    Ok(is_deleted)
}

/// The row at `locator`, if it exists and somebody wants to know of it.
fn stored_if_watched(
    table: &WriteTable,
    locator: &[u8],
    run: &mut Run<'_>,
) -> Result<Option<Vec<Value>>> {
    if !is_watched(table, run) {
        return Ok(None);
    }
    let mut row = RowBuf::default();
    let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
    let transaction = run.transaction(table.engine)?;
    let found = transaction.get(table.id, index, locator, lock, wait, &mut row);
    if run.engine(found)? != GetOutcome::Found {
        return Ok(None);
    }
    table.layout.decode_all(&row.record).map(Some)
}

fn before(write: &RowWrite<'_>, run: &mut Run<'_>) -> Result<()> {
    run.host.row_watch().map_or(Ok(()), |watch| watch.before(write))
}

fn after(write: &RowWrite<'_>, run: &mut Run<'_>) -> Result<()> {
    let is_much = run.host.row_watch().map_or(Ok(false), |watch| watch.after(write))?;
    if is_much { run.host.relieve_row_watch() } else { Ok(()) }
}

/// Where the transaction's watched writes are now.
pub(crate) fn mark(run: &mut Run<'_>) -> Option<RowMark> {
    match run.env.settings.watches_rows {
        true => run.host.row_watch().map(|watch| watch.mark()),
        false => None,
    }
}

/// What was written after a mark has been undone.
pub(crate) fn undo_to(mark: Option<RowMark>, run: &mut Run<'_>) {
    if let (Some(mark), Some(watch)) = (mark, run.host.row_watch()) {
        watch.undo_to(mark);
    }
}
