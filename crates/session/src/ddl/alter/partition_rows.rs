//! DROP and TRUNCATE PARTITION: the dropped rows are deleted, or the others copied, whichever are fewer. EXCHANGE PARTITION deletes them.

use catalog::Table;
use engine_api::{
    Direction, EngineError, EngineResult, IndexId, KeyRange, RowBatch, RowLock, ScanSpec, TableId,
    Transaction, WaitPolicy,
};
use errors::Result;
use exec::TransactionSource;
use types::Value;

use crate::session::Session;

/// Rows that are deleted in one batch.
const FETCH_ROWS: usize = 256;

/// Whether more rows are deleted than stay, by the engine's estimate.
pub(super) fn most_rows_go(session: &mut Session, table: &Table, gone: &[u16]) -> Result<bool> {
    if gone.is_empty() {
        return Ok(false);
    }
    let engine = session.transactions.engine(&table.engine)?;
    let cancel = &session.shared.cancel;
    let word = |error: EngineError| error.into_error(cancel);
    let all = engine.table_stats(table.id).map_err(word)?.rows;
    let mut rows: u64 = 0;
    for number in gone {
        let Some(range) = range_of(table, *number) else { return Ok(true) };
        let found = engine.estimate_range(table.id, IndexId::CLUSTERED, &range);
        rows = rows.saturating_add(found.map_err(word)?.rows);
    }
    Ok(rows > all.saturating_sub(rows))
}

/// Deletes the rows of partitions, which no other session uses.
pub(super) fn empty_partitions(
    session: &mut Session,
    table: &Table,
    gone: &[u16],
) -> EngineResult<()> {
    if gone.is_empty() {
        return Ok(());
    }
    let cancel = session.shared.cancel.clone();
    sys::blocking::blocking(|| {
        // Commits of other sessions before the lock was granted must be visible.
        session.server.catalog.wait_for_earlier_commits(&cancel)?;
        let txn = session.transactions.transaction(&table.engine)?;
        for number in gone {
            match range_of(table, *number) {
                Some(range) => delete_range(txn, table.id, range, &|_| true)?,
                None => delete_range(txn, table.id, KeyRange::ALL, &in_partition(table, *number))?,
            }
            cancel.check()?;
        }
        Ok(())
    })
}

/// Where the rows of a partition are in the clustered index. `None`: they are not contiguous.
fn range_of(table: &Table, number: u16) -> Option<KeyRange> {
    let column = &table.columns[table.partition_column()?];
    let first = table.definition.primary()?.parts.first()?;
    if column.stored != Some(first.column) {
        return None;
    }
    let mut key = Vec::new();
    let number = Value::UInt(u64::from(number));
    types::key::encode_part(&number, &column.ty, None, first.descending, &mut key);
    Some(KeyRange::prefix(key))
}

/// Whether a record belongs to a partition whose rows are not contiguous.
fn in_partition(table: &Table, number: u16) -> impl Fn(&[u8]) -> bool + '_ {
    let columns = &table.definition.columns;
    let layout = table.definition.layout();
    let stored = table.partition_column().and_then(|at| table.columns[at].stored);
    move |record| {
        let value = stored.and_then(|stored| {
            layout.value(record, stored, columns[stored].instant_default.as_ref())
        });
        value == Some(Value::UInt(u64::from(number)))
    }
}

fn delete_range(
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
