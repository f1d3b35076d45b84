//! Tables of a number, a number that may be NULL, and bytes that may be long.

use std::collections::BTreeMap;

use engine_api::{EngineResult, IndexId, TableDef, TableId, Transaction};
use types::record::RecordLayout;
use types::{DataType, SqlBytes, Value};

use super::{each_record, whole};

/// Rows by their first column.
pub type Rows = BTreeMap<i64, (Option<i64>, Vec<u8>)>;

fn types() -> [DataType; 3] {
    [
        DataType::bigint().with_nullable(false),
        DataType::bigint(),
        DataType::varbinary(10_000).with_nullable(false),
    ]
}

/// A table with an index over the second column and one over a prefix of the third.
pub fn table(id: TableId, name: &str, is_second_unique: bool) -> TableDef {
    let indexes = [(0, true, None), (1, is_second_unique, None), (2, false, Some(20))];
    super::table(id, name, &types(), &indexes)
}

/// A row as it is stored.
pub fn record(a: i64, b: Option<i64>, c: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let values = [Value::Int(a), b.map_or(Value::Null, Value::Int), Value::Bytes(SqlBytes::new(c))];
    let _ = RecordLayout::new(&types()).encode(&values, &mut out);
    out
}

/// All rows, by an index, which has each once.
pub fn rows(txn: &mut dyn Transaction, table: TableId, index: IndexId) -> EngineResult<Rows> {
    let (mut rows, mut values) = (Rows::new(), Vec::new());
    each_record(txn, &whole(table, index), 10, |record| {
        values.clear();
        RecordLayout::new(&types()).decode_all(record, &mut values).unwrap();
        let [Value::Int(a), b, Value::Bytes(c)] = &values[..] else { panic!("{values:?}") };
        let b = match b {
            Value::Int(b) => Some(*b),
            _ => None,
        };
        assert!(rows.insert(*a, (b, c.as_slice().to_vec())).is_none(), "a row came twice");
    })?;
    Ok(rows)
}
