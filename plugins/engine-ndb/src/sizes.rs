//! How long keys and records of a table can be. The cluster reserves the longest form of each row that a transaction changes, so tables are made no wider than they need.

use engine_api::{ColumnDef, IndexDef, TableDef};
use types::key::KEY_BYTES_MAX;
use types::record::fixed_length;
use types::{DataType, TypeKind};

/// Longest record: what a row of the cluster has left beside the longest key.
const RECORD_BYTES_MAX: u64 = 26_800;
/// Longest key that the cluster has.
const ENTRY_BYTES_MAX: u64 = 4_000;
/// Bytes of a hidden row id.
const ROW_ID_BYTES: u64 = 8;
/// Header, null bits and offsets of a record.
const RECORD_HEADER: u64 = 32;
/// Longest key of a value that is neither text nor bytes: a DECIMAL.
const PLAIN_KEY: u64 = 40;

/// Bytes of a character in records.
const CHARACTER_BYTES: u64 = 4;
/// Bytes of a character in keys: weights of three levels. Characters with more are rare enough that a key full of them is refused.
const CHARACTER_KEY: u64 = 8;
/// Ends of levels.
const TEXT_KEY: u64 = 16;

fn is_bounded(ty: &DataType) -> bool {
    matches!(ty.kind, TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary)
}

fn column_bytes(column: &ColumnDef) -> u64 {
    // Each column of variable length has an offset too.
    const OFFSET: u64 = 5;
    let length = u64::from(column.ty.length);
    match fixed_length(&column.ty) {
        Some(bytes) => u64::from(bytes) + 1,
        None if is_bounded(&column.ty) && column.ty.is_text() => length * CHARACTER_BYTES + OFFSET,
        None if is_bounded(&column.ty) => length + OFFSET,
        None => RECORD_BYTES_MAX,
    }
}

/// Bytes of the longest record.
fn record_bytes(def: &TableDef) -> u64 {
    def.columns.iter().map(column_bytes).sum::<u64>() + RECORD_HEADER
}

/// Bytes of the longest key of an index.
fn key_bytes(def: &TableDef, index: &IndexDef) -> u64 {
    let part = |part: &engine_api::KeyPart| {
        let Some(column) = def.columns.get(part.column) else { return KEY_BYTES_MAX as u64 };
        let ty = &column.ty;
        let length = part.prefix_length.map_or(u64::from(ty.length), u64::from);
        let bytes = match fixed_length(ty) {
            Some(_) => PLAIN_KEY,
            None if !is_bounded(ty) && part.prefix_length.is_none() => KEY_BYTES_MAX as u64,
            None if ty.is_text() => length * CHARACTER_KEY + TEXT_KEY,
            // A zero byte takes two.
            None => length * 2 + TEXT_KEY,
        };
        bytes + 1
    };
    index.parts.iter().map(part).sum::<u64>().min(KEY_BYTES_MAX as u64)
}

fn locator_bytes(def: &TableDef) -> u64 {
    def.primary().map_or(ROW_ID_BYTES, |primary| key_bytes(def, primary))
}

/// Columns of a table of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) key_bytes: u32,
    pub(crate) row_bytes: u32,
}

/// What the rows of a table need; `with_room` for a new table, so that columns may be added later.
pub(crate) fn of_rows(def: &TableDef, with_room: bool) -> Sizes {
    let needed = record_bytes(def);
    let wanted = if with_room { needed + needed / 4 + 256 } else { needed };
    Sizes { key_bytes: locator_bytes(def) as u32, row_bytes: wanted.min(RECORD_BYTES_MAX) as u32 }
}

/// What the entries of an index need.
pub(crate) fn of_index(def: &TableDef, index: &IndexDef) -> Sizes {
    let locator = locator_bytes(def);
    Sizes {
        key_bytes: (key_bytes(def, index) + locator).min(ENTRY_BYTES_MAX) as u32,
        row_bytes: (locator + 1).max(3) as u32,
    }
}

#[cfg(test)]
mod tests {
    use engine_api::{IndexId, KeyPart, TableId};
    use types::CollationId;

    use super::*;

    #[test]
    fn tables_are_as_wide_as_their_rows() {
        let column = |ty| ColumnDef { name: "c".into(), ty, instant_default: None };
        let index = |id, column| IndexDef {
            id: IndexId(id),
            name: "i".into(),
            unique: true,
            parts: vec![KeyPart { column, prefix_length: None, descending: false, elements: None }],
        };
        let mut def = TableDef {
            id: TableId(2000),
            name: "t".into(),
            columns: vec![
                column(DataType::bigint()),
                column(DataType::varchar(40, CollationId::BINARY)),
            ],
            indexes: vec![index(0, 0), index(1, 1)],
        };
        let rows = of_rows(&def, false);
        assert!(rows.key_bytes < 64 && rows.row_bytes < 300, "{rows:?}");
        assert!(of_rows(&def, true).row_bytes > rows.row_bytes + 200);
        assert!(of_index(&def, &def.indexes[1]).key_bytes < 500);
        def.columns.push(column(DataType::new(TypeKind::Text, 65_535, 0)));
        assert_eq!(u64::from(of_rows(&def, false).row_bytes), RECORD_BYTES_MAX);
    }
}
