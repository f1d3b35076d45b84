//! Tables whose columns are all BIGINT NOT NULL.

use engine_api::{EngineResult, ScanSpec, TableDef, TableId, Transaction};
use types::record::RecordLayout;
use types::{DataType, Value};

use super::each_record;

/// Types of `N` columns.
pub fn types<const N: usize>() -> [DataType; N] {
    std::array::from_fn(|_| DataType::bigint().with_nullable(false))
}

/// A table of `N` columns. `indexes`: the column of each and whether it is unique; the first is the primary key.
pub fn table<const N: usize>(id: TableId, name: &str, indexes: &[(usize, bool)]) -> TableDef {
    let indexes: Vec<_> = indexes.iter().map(|(column, unique)| (*column, *unique, None)).collect();
    super::table(id, name, &types::<N>(), &indexes)
}

/// A row as it is stored.
pub fn record<const N: usize>(values: [i64; N]) -> Vec<u8> {
    let mut out = Vec::new();
    let _ = RecordLayout::new(&types::<N>()).encode(&values.map(Value::Int), &mut out);
    out
}

/// The values of a stored row.
pub fn fields<const N: usize>(record: &[u8]) -> [i64; N] {
    let mut values = Vec::new();
    RecordLayout::new(&types::<N>()).decode_all(record, &mut values).unwrap();
    std::array::from_fn(|at| match values[at] {
        Value::Int(value) => value,
        _ => panic!("{values:?}"),
    })
}

/// The rows of a scan, fetched `at_once` at a time.
pub fn rows<const N: usize>(
    txn: &mut dyn Transaction,
    spec: &ScanSpec,
    at_once: usize,
) -> EngineResult<Vec<[i64; N]>> {
    let mut rows = Vec::new();
    each_record(txn, spec, at_once, |record| rows.push(fields(record)))?;
    Ok(rows)
}
