//! Writes of rows that somebody is told of. All writes of rows go through here, except for those of point programs, which log a row
//! before they write it and leave tables of which somebody is told to the operators.

use engine_api::{EngineResult, GetOutcome, IndexId, RowBuf, RowLock, Transaction, WaitPolicy};
use errors::{Diagnostics, Result};
use types::{StoreMode, Value};

use super::foreign::with_row;
use super::row::computed;
use super::table::{WriteColumn, WriteTable};
use super::{Written, written};
use crate::fulltext;
use crate::run::Run;
use crate::watch::{RowMark, RowWish, RowWrite};

/// Who wants the rows of a table.
#[inline]
pub(crate) fn wish(table: &WriteTable, run: &mut Run<'_>) -> RowWish {
    if run.env.settings.watches_rows { asked(table, run) } else { RowWish::No }
}

#[cold]
fn asked(table: &WriteTable, run: &mut Run<'_>) -> RowWish {
    run.host.row_watch().map_or(RowWish::No, |watch| watch.wish(table.id))
}

/// Logs a row before it is written: its records before and after. Returns the mark that takes it back.
pub(crate) fn log_row(
    table: &WriteTable,
    (old, new): (&[u8], Option<&[u8]>),
    run: &mut Run<'_>,
) -> Result<RowMark> {
    let mut room = run.buffers.logged.take().unwrap_or_default();
    let (before, after) = &mut *room;
    let mark = mark(run).unwrap_or_default();
    let decoded = read(table, old, before, run).and_then(|()| match new {
        Some(new) => read(table, new, after, run),
        None => Ok(()),
    });
    let new = new.map(|_| &after[..]);
    let write = RowWrite { table: table.id, old: Some(before), new, edited: &table.edited };
    let logged = decoded.and_then(|()| self::after(&write, run));
    give_back(room, run);
    match logged {
        Ok(()) => Ok(mark),
        Err(error) => {
            undo_to(Some(mark), run);
            Err(error)
        }
    }
}

/// Stores a new row.
#[inline]
pub(crate) fn insert_row(
    table: &WriteTable,
    record: &[u8],
    insert: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
    run: &mut Run<'_>,
) -> Result<Written> {
    if wish(table, run) == RowWish::No {
        return store_row(table, record, insert, run);
    }
    let mut room = run.buffers.logged.take().unwrap_or_default();
    let new = &mut room.1;
    let written = read(table, record, new, run).and_then(|()| {
        let write = RowWrite { table: table.id, old: None, new: Some(new), edited: &[] };
        before(&write, run)?;
        let written = store_row(table, record, insert, run)?;
        if let Written::Done = written {
            after(&write, run)?;
        }
        Ok(written)
    });
    give_back(room, run);
    written
}

/// Keeps the room for the next row, not the values.
fn give_back(mut room: Box<(Vec<Value>, Vec<Value>)>, run: &mut Run<'_>) {
    room.0.clear();
    room.1.clear();
    run.buffers.logged = Some(room);
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
    let Some(old) = old else { return change_row(table, locator, record, run) };
    let mut new = Vec::new();
    read(table, record, &mut new, run)?;
    let write =
        RowWrite { table: table.id, old: Some(&old), new: Some(&new), edited: &table.edited };
    before(&write, run)?;
    let written = change_row(table, locator, record, run)?;
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
    if wish(table, run) == RowWish::No {
        return Ok(None);
    }
    let Some(row) = stored_row(table, locator, run)? else { return Ok(None) };
    let mut values = Vec::new();
    read(table, &row.record, &mut values, run)?;
    Ok(Some(values))
}

fn stored_row(table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<Option<RowBuf>> {
    let mut row = RowBuf::default();
    let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
    let transaction = run.transaction(table.engine)?;
    let found = transaction.get(table.id, index, locator, lock, wait, &mut row);
    Ok((run.engine(found)? == GetOutcome::Found).then_some(row))
}

/// Reads a row, and after it the columns that are computed when read, for readers of the binary log. What a computation has to say was said
/// when the row was written or read.
fn read(table: &WriteTable, record: &[u8], out: &mut Vec<Value>, run: &mut Run<'_>) -> Result<()> {
    table.layout.decode_into(record, out)?;
    if table.virtuals.is_empty() {
        return Ok(());
    }
    let kept = std::mem::replace(run.function.diagnostics, Diagnostics::new(0));
    let computed = with_row(table, out, run, |run| {
        let value = |column: &WriteColumn| match &column.generated {
            Some(generated) => {
                computed(generated, column, 1, StoreMode::Lenient, run).unwrap_or(Value::Null)
            }
            None => Value::Null,
        };
        table.virtuals.iter().map(value).collect::<Vec<Value>>()
    });
    *run.function.diagnostics = kept;
    out.extend(computed);
    Ok(())
}

fn before(write: &RowWrite<'_>, run: &mut Run<'_>) -> Result<()> {
    run.host.row_watch().map_or(Ok(()), |watch| watch.before(write))
}

fn after(write: &RowWrite<'_>, run: &mut Run<'_>) -> Result<()> {
    let is_much = run.host.row_watch().map_or(Ok(false), |watch| watch.after(write))?;
    if is_much { run.host.relieve_row_watch() } else { Ok(()) }
}

/// Gives a new row to the engine.
#[inline]
fn store_row(
    table: &WriteTable,
    record: &[u8],
    insert: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
    run: &mut Run<'_>,
) -> Result<Written> {
    if table.is_plain {
        let stored = insert(run.transaction(table.engine)?);
        return written(stored, run);
    }
    without_overlaps(table, (None, record), run, |run| {
        fulltext::insert_row(table, record, insert, run)
    })
}

/// Gives a changed row to the engine.
#[inline]
fn change_row(
    table: &WriteTable,
    locator: &[u8],
    record: &[u8],
    run: &mut Run<'_>,
) -> Result<Written> {
    if table.is_plain {
        let stored = run.transaction(table.engine)?.update(table.id, locator, record);
        return written(stored, run);
    }
    let old = match table.overlaps {
        Some(_) => stored_row(table, locator, run)?,
        None => None,
    };
    let old = old.as_ref().map(|old| &old.record[..]);
    without_overlaps(table, (old, record), run, |run| {
        fulltext::update_row(table, locator, record, run)
    })
}

/// Stores a row in place of `old`, which is undone if it overlaps another one: it is a duplicate then.
fn without_overlaps<'r>(
    table: &WriteTable,
    rows: (Option<&[u8]>, &[u8]),
    run: &mut Run<'r>,
    store: impl FnOnce(&mut Run<'r>) -> Result<Written>,
) -> Result<Written> {
    let Some(overlaps) = &table.overlaps else { return store(run) };
    let savepoint = run.transaction(table.engine)?.savepoint();
    let stored = store(run)?;
    if let Written::Duplicate { .. } = stored {
        return Ok(stored);
    }
    let Some((index, locator)) = overlaps.find(&table.layout, rows, run)? else {
        return Ok(Written::Done);
    };
    let undone = run.transaction(table.engine)?.rollback_to(savepoint);
    run.engine(undone)?;
    Ok(Written::Duplicate { index, locator })
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
