//! DROP and TRUNCATE PARTITION: the dropped rows are deleted, or the others copied, whichever are fewer. EXCHANGE PARTITION deletes them.

use catalog::Table;
use engine_api::{EngineError, EngineResult, IndexId, KeyRange};
use errors::Result;
use exec::TransactionSource;

use crate::session::Session;
use statements::partition_rows::delete_range;

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
        let Some(range) = table.partition_range(*number) else { return Ok(true) };
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
            match table.partition_range(*number) {
                Some(range) => delete_range(txn, table.id, range, &|_| true)?,
                None => delete_range(txn, table.id, KeyRange::ALL, &|record| {
                    table.in_partition(record, *number)
                })?,
            }
            cancel.check()?;
        }
        Ok(())
    })
}
