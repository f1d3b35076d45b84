//! ALTER TABLE in place: indexes are created and dropped, concurrently with writers where possible, and rows are not changed.

use catalog::{Index, MetadataGuard, Table};
use definitions::alter::{IndexChanges, builds_online};
use engine_api::{
    Direction, EngineError, EngineResult, GetOutcome, IndexDef, IndexId, KeyRange, RowBatch,
    RowBuf, RowLock, ScanSpec, TableId, Transaction, WaitPolicy,
};
use errors::Result;
use exec::TransactionSource;
use types::Value;

use crate::measured::{begin_stage, end_stage};
use crate::session::Session;

/// `next`, or the value after the largest one of the AUTO_INCREMENT column. `None` for a table without one.
pub(super) fn next_beyond_rows(
    session: &mut Session,
    old: &Table,
    new: &Table,
    next: u64,
) -> Result<Option<u64>> {
    let Some(at) = new.columns.iter().position(|column| column.auto_increment) else {
        return Ok(None);
    };
    let leads = |index: &&Index| index.parts.first().is_some_and(|part| part.column == at);
    let index = new.indexes.iter().find(leads);
    let (Some(index), Some(stored)) = (index, new.columns[at].stored) else {
        return Ok(None);
    };
    let backward = !index.parts[0].descending;
    let cancel = session.shared.cancel.clone();
    let txn = session.transactions.transaction(&old.engine)?;
    let last = last_row(txn, old.id, index.id, backward).map_err(|e| e.into_error(&cancel))?;
    let layout = new.definition.layout();
    let missing = new.definition.columns[stored].instant_default.as_ref();
    let largest = match last.and_then(|row| layout.value(&row, stored, missing)) {
        Some(Value::Int(value)) => u64::try_from(value).unwrap_or(0),
        Some(Value::UInt(value)) => value,
        _ => 0,
    };
    Ok(Some(next.max(largest.saturating_add(1))))
}

/// Changes the definition and its indexes without rewriting rows. New indexes are built while others use the table, if possible.
pub(super) fn alter_in_place(
    session: &mut Session,
    table: &Table,
    new: &Table,
    changes: &IndexChanges,
    guard: &mut MetadataGuard,
) -> Result<(), EngineError> {
    let engine = session.transactions.engine(&table.engine).map_err(EngineError::Other)?;
    let is_added = |index: &&IndexDef| changes.added.contains(&index.id);
    let added: Vec<_> = new.definition.indexes.iter().filter(is_added).cloned().collect();
    // Within a transaction the table stays locked until its end anyway.
    let online = !added.is_empty()
        && !table.temporary
        && !session.transactions.is_defining()
        && builds_online(table, new, changes);
    let mut left = added.as_slice();
    if online && session.transactions.transaction(engine.name())?.begin_indexes(table.id, left)? {
        guard.downgrade();
        let filled = as_stage(session, table, READ_AND_SORT, |txn| txn.fill_indexes(table.id));
        filled?;
        guard.upgrade(session.ddl_wait(), &session.shared.cancel).map_err(EngineError::Other)?;
        as_stage(session, table, APPLY, |txn| txn.finish_indexes(table.id))?;
        left = &[];
    }
    let txn = session.transactions.transaction(engine.name())?;
    for index in &changes.dropped {
        txn.drop_index(table.id, *index)?;
    }
    for index in &table.fulltext {
        if !new.fulltext.iter().any(|known| known.entries == index.entries) {
            txn.drop_table(index.entries)?;
        }
    }
    let mut definition = new.definition.clone();
    let mut before = table.definition.clone();
    before.indexes.retain(|index| !changes.dropped.contains(&index.id));
    match left {
        [] => before.indexes.extend(added.iter().cloned()),
        left => definition.indexes.retain(|index| !left.contains(index)),
    }
    if definition != before {
        txn.alter_table(&definition)?;
    }
    for index in left {
        as_stage(session, table, READ_AND_SORT, |txn| txn.create_index(table.id, index))?;
    }
    Ok(())
}

/// The reference's names for the parts of building an index.
const READ_AND_SORT: &str = "alter table (read PK and internal sort)";
const APPLY: &str = "alter table (log apply index)";

/// Shows a part of building an index as a stage of the statement; the engine counts the rows that it reads.
fn as_stage(
    session: &mut Session,
    table: &Table,
    stage: &'static str,
    body: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
) -> EngineResult<()> {
    let engine = session.transactions.engine(&table.engine)?;
    let rows = engine.table_stats(table.id).map_or(0, |stats| stats.rows);
    begin_stage(session, stage);
    let cancel = session.shared.cancel.clone();
    let long = (stage == READ_AND_SORT).then(|| cancel.long(rows));
    let txn = session.transactions.transaction(&table.engine)?;
    let built = sys::blocking::blocking(|| body(txn));
    let progress = cancel.progress();
    drop(long);
    end_stage(session, progress);
    built
}

/// The columns of an index in one row, as error 1062 shows them.
pub(super) fn shown_entry(
    session: &mut Session,
    table: &Table,
    index: &Index,
    locator: &[u8],
) -> Option<String> {
    let txn = session.transactions.transaction(&table.engine).ok()?;
    let mut row = RowBuf::default();
    let (clustered, wait) = (IndexId::CLUSTERED, WaitPolicy::Wait);
    let found = txn.get(table.id, clustered, locator, RowLock::None, wait, &mut row).ok()?;
    if found != GetOutcome::Found {
        return None;
    }
    let layout = table.definition.layout();
    let columns = &table.definition.columns;
    let mut text = Vec::new();
    for (at, part) in index.parts.iter().enumerate() {
        let column = &table.columns.get(part.column)?;
        let stored = column.stored?;
        let missing = columns.get(stored)?.instant_default.as_ref();
        if at > 0 {
            text.push(b'-');
        }
        match layout.value(&row.record, stored, missing)? {
            Value::Null => text.extend_from_slice(b"NULL"),
            Value::DateTime(_) if column.ty.kind == types::TypeKind::Timestamp => return None,
            value => types::to_text(&value, &column.ty, &mut text),
        }
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The record at one end of an index.
fn last_row(
    txn: &mut dyn Transaction,
    table: TableId,
    index: IndexId,
    backward: bool,
) -> EngineResult<Option<Vec<u8>>> {
    let cursor = txn.open_cursor(&ScanSpec {
        table,
        index,
        range: KeyRange::ALL,
        direction: if backward { Direction::Backward } else { Direction::Forward },
        lock: RowLock::None,
        wait: WaitPolicy::Wait,
    })?;
    let mut batch = RowBatch::new();
    let fetched = txn.fetch(cursor, 1, &mut batch);
    txn.close_cursor(cursor);
    Ok((fetched? > 0).then(|| batch.row(0).record.to_vec()))
}
