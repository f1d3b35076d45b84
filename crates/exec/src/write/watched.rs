//! Writes of rows that somebody is told of. All writes of rows go through here, except for those of point programs, which log a row
//! before they write it and leave tables of which somebody is told to the operators.

use engine_api::{EngineResult, GetOutcome, IndexId, RowBuf, RowLock, Transaction, WaitPolicy};
use errors::{Diagnostics, Result};
use types::{StoreMode, Value};

use super::Written;
use super::foreign::with_row;
use super::row::computed;
use super::stored;
use super::table::{WriteColumn, WriteTable};
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
        return stored::insert_row(table, record, insert, run);
    }
    let mut room = run.buffers.logged.take().unwrap_or_default();
    let new = &mut room.1;
    let written = read(table, record, new, run).and_then(|()| {
        let write = RowWrite { table: table.id, old: None, new: Some(new), edited: &[] };
        before(&write, run)?;
        let written = stored::insert_row(table, record, insert, run)?;
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
    let Some(old) = old else { return stored::update_row(table, locator, record, run) };
    let mut new = Vec::new();
    read(table, record, &mut new, run)?;
    let write =
        RowWrite { table: table.id, old: Some(&old), new: Some(&new), edited: &table.edited };
    before(&write, run)?;
    let written = stored::update_row(table, locator, record, run)?;
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
    let mut row = RowBuf::default();
    let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
    let transaction = run.transaction(table.engine)?;
    let found = transaction.get(table.id, index, locator, lock, wait, &mut row);
    if run.engine(found)? != GetOutcome::Found {
        return Ok(None);
    }
    let mut values = Vec::new();
    read(table, &row.record, &mut values, run)?;
    Ok(Some(values))
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
