//! CHECK TABLE: every row has its entries, and there are no others.

use engine_api::{CancelToken, EngineError, EngineResult};

use crate::error::NdbError;
use crate::link::Link;
use crate::shim::{Hold, NdbTable, NdbTransaction, Operation, ScanRange};
use crate::table::Table;
use sys::sync::Arc;

/// Rows looked at in one round trip.
const BATCH: usize = 128;

/// The faults of a table that nobody changes meanwhile.
pub(crate) fn check(link: &Link, table: &Table, cancel: &CancelToken) -> EngineResult<Vec<String>> {
    let mut problems = Vec::new();
    let mut transaction =
        NdbTransaction::begin(&link.connection, None).map_err(NdbError::into_engine)?;
    let rows = read_all(&mut transaction, &table.rows).map_err(NdbError::into_engine)?;
    for rows in rows.chunks(BATCH) {
        cancel.count_work(rows.len() as u64);
        if cancel.is_cancelled() {
            return Err(EngineError::Cancelled);
        }
        let (mut reads, mut wanted) = (Vec::new(), Vec::new());
        for (locator, record) in rows {
            let mut key = Vec::new();
            if let Some(clustered) = &table.clustered {
                clustered.append(record, &mut key)?;
                if key != *locator {
                    problems.push(format!("row {locator:?} has another clustered key"));
                }
            }
            for (index, entry) in table.indexes.iter().zip(table.entries(record, locator)?) {
                reads.push(Operation::read(&index.entries, &entry.key, Hold::Nothing));
                wanted.push((&index.def.name, entry));
            }
        }
        if !reads.is_empty() {
            transaction.execute(&mut reads).map_err(NdbError::into_engine)?;
        }
        assert_eq!(reads.len(), wanted.len(), "each entry was read");
        for (read, (name, entry)) in reads.iter().zip(wanted) {
            if read.code != 0 || read.row != entry.row {
                problems.push(format!("{name}: the entry {:?} is missing or wrong", entry.key));
            }
        }
    }
    for index in &table.indexes {
        let entries = read_all(&mut transaction, &index.entries).map_err(NdbError::into_engine)?;
        if entries.len() != rows.len() {
            problems.push(format!(
                "{}: {} entries for {} rows",
                index.def.name,
                entries.len(),
                rows.len()
            ));
        }
    }
    Ok(problems)
}

type Pair = (Vec<u8>, Vec<u8>);

fn read_all(
    transaction: &mut NdbTransaction,
    table: &Arc<NdbTable>,
) -> Result<Vec<Pair>, NdbError> {
    let range = ScanRange {
        low: None,
        low_inclusive: true,
        high: None,
        descending: false,
        with_rows: true,
        batch: 256,
    };
    let mut scan = transaction.scan(table, &range)?;
    let mut pairs = Vec::new();
    while scan.next(1024, |key, row| pairs.push((key.to_vec(), row.to_vec())))? > 0 {}
    Ok(pairs)
}
