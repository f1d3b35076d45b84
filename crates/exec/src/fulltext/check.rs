//! CHECK TABLE: whether a FULLTEXT index has exactly the entries that the rows require.

use engine_api::{
    CancelToken, Direction, GetOutcome, IndexId, KeyRange, RowBatch, RowBuf, RowLock, RowRef,
    ScanSpec, TableId, Transaction, WaitPolicy,
};
use errors::Result;
use plan::FulltextWrite;
use rows::layout::Layout;
use types::fulltext::{entry_key, entry_types};
use types::{DataType, Value};

use super::keep::KeptFulltext;

/// Rows that are fetched at once.
const FETCH_ROWS: usize = 256;
/// The number of faults reported per index.
const FAULTS_MAX: usize = 16;

/// A table with FULLTEXT indexes.
#[derive(Clone, Debug)]
pub struct FulltextTable {
    /// The engine's id.
    pub table: u64,
    /// Types of the record's columns.
    pub layout: Vec<DataType>,
    /// Values for records older than their columns.
    pub missing: Vec<Value>,
    /// Names and indexes.
    pub indexes: Vec<(String, FulltextWrite)>,
}

/// Compares the entries with the rows, in the transaction's snapshot; the strings describe the faults.
///
/// # Errors
/// I/O, `Cancelled`.
pub fn check_fulltext(
    table: &FulltextTable,
    txn: &mut dyn Transaction,
    cancel: &CancelToken,
) -> Result<Vec<String>> {
    let layout = Layout::new(&table.layout, table.missing.clone());
    let entries = Layout::new(&entry_types(), Vec::new());
    let mut faults = Vec::new();
    for (name, index) in &table.indexes {
        let kept = KeptFulltext::new(index);
        let (mut wanted, mut wrong) = (0_u64, 0_usize);
        each_row(TableId(table.table), txn, cancel, &mut |row, txn| {
            for (word, count) in kept.words(row.record, &layout)? {
                wanted += 1;
                let mut entry = RowBuf::default();
                let got = txn.get(
                    TableId(index.entries),
                    IndexId::CLUSTERED,
                    &entry_key(&word, row.locator),
                    RowLock::None,
                    WaitPolicy::Wait,
                    &mut entry,
                );
                let is_there = got.map_err(|error| error.into_error(cancel))? == GetOutcome::Found
                    && entries.decode(&entry.record, 2)? == Value::UInt(u64::from(count));
                if !is_there && wrong < FAULTS_MAX {
                    wrong += 1;
                    faults.push(format!("index {name}: the entry of a word of a row is not there"));
                }
            }
            Ok(())
        })?;
        let present = count_rows(TableId(index.entries), txn, cancel)?;
        if present != wanted {
            faults.push(format!("index {name}: {present} entries for {wanted} words of rows"));
        }
    }
    Ok(faults)
}

fn count_rows(table: TableId, txn: &mut dyn Transaction, cancel: &CancelToken) -> Result<u64> {
    let mut count = 0;
    each_row(table, txn, cancel, &mut |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn each_row(
    table: TableId,
    txn: &mut dyn Transaction,
    cancel: &CancelToken,
    see: &mut dyn FnMut(RowRef<'_>, &mut dyn Transaction) -> Result<()>,
) -> Result<()> {
    let word = |error: engine_api::EngineError| error.into_error(cancel);
    let cursor = txn
        .open_cursor(&ScanSpec {
            table,
            index: IndexId::CLUSTERED,
            range: KeyRange::ALL,
            direction: Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        })
        .map_err(word)?;
    let mut batch = RowBatch::new();
    loop {
        cancel.check()?;
        batch.clear();
        if txn.fetch(cursor, FETCH_ROWS, &mut batch).map_err(word)? == 0 {
            break;
        }
        for row in batch.iter() {
            see(row, txn)?;
        }
    }
    txn.close_cursor(cursor);
    Ok(())
}
