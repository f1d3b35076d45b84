//! Deletes the rows of a part of a table.

use engine_api::{
    Direction, EngineResult, IndexId, KeyRange, RowBatch, RowLock, ScanSpec, TableId, Transaction,
    WaitPolicy,
};

/// Rows that are deleted in one batch.
const FETCH_ROWS: usize = 256;

/// Deletes the rows in a range of the clustered index that go.
///
/// # Errors
/// Those of the engine.
pub fn delete_range(
    txn: &mut dyn Transaction,
    table: TableId,
    range: KeyRange,
    goes: &dyn Fn(&[u8]) -> bool,
) -> EngineResult<()> {
    let cursor = txn.open_cursor(&ScanSpec {
        table,
        index: IndexId::CLUSTERED,
        range,
        direction: Direction::Forward,
        lock: RowLock::None,
        wait: WaitPolicy::Wait,
    })?;
    let mut batch = RowBatch::new();
    while txn.fetch(cursor, FETCH_ROWS, &mut batch)? > 0 {
        for row in batch.iter().filter(|row| goes(row.record)) {
            txn.delete(table, row.locator)?;
        }
        batch.clear();
    }
    txn.close_cursor(cursor);
    Ok(())
}
