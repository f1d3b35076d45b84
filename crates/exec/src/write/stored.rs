//! Writes of rows into the engine, with what else must hold of them: entries of FULLTEXT indexes, and periods that do not overlap.

use engine_api::{EngineResult, GetOutcome, IndexId, RowBuf, RowLock, Transaction, WaitPolicy};
use errors::Result;

use super::table::WriteTable;
use super::{Written, overlaps, written};
use crate::fulltext;
use crate::run::Run;

/// Stores a new row.
#[inline]
pub(crate) fn insert_row(
    table: &WriteTable,
    record: &[u8],
    insert: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
    run: &mut Run<'_>,
) -> Result<Written> {
    if table.is_plain {
        let stored = insert(run.transaction(table.engine)?);
        return written(stored, run);
    }
    overlaps::stored(table, (None, record), run, |run| {
        fulltext::insert_row(table, record, insert, run)
    })
}

/// Replaces the row at `locator` by a record.
#[inline]
pub(crate) fn update_row(
    table: &WriteTable,
    locator: &[u8],
    record: &[u8],
    run: &mut Run<'_>,
) -> Result<Written> {
    if table.is_plain {
        let stored = run.transaction(table.engine)?.update(table.id, locator, record);
        return written(stored, run);
    }
    let old = before(table, locator, run)?;
    overlaps::stored(table, (old.as_deref(), record), run, |run| {
        fulltext::update_row(table, locator, record, run)
    })
}

/// The row that will be replaced, where its period tells something.
fn before(table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<Option<Vec<u8>>> {
    if table.overlaps.is_empty() {
        return Ok(None);
    }
    let mut row = RowBuf::default();
    let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
    let found = run.transaction(table.engine)?.get(table.id, index, locator, lock, wait, &mut row);
    Ok((run.engine(found)? == GetOutcome::Found).then_some(row.record))
}
