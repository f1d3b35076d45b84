//! Changes of definitions.

use std::collections::BTreeMap;

use engine_api::{EngineError, EngineResult, IndexDef, IndexId, TableDef};
use errors::Error;
use sys::sync::Arc;
use types::{DataType, TypeKind};

use crate::index_keys::IndexKeys;
use crate::key::Key;
use crate::table::{Index, Row, Table, TableData};

/// Builds a secondary index over all versions of all rows; uniqueness counts the newest ones.
pub(crate) fn build_index(table: &Table, def: &IndexDef) -> EngineResult<()> {
    let mut data = table.data.write();
    let keys = IndexKeys::new(&data.def, def)?;
    let (entries, bytes) = entries_of(&data, &keys, def)?;
    let mut new_def = TableDef::clone(&data.def);
    new_def.indexes.retain(|index| index.id != def.id);
    new_def.indexes.push(def.clone());
    data.def = Arc::new(new_def);
    data.index_bytes += bytes;
    data.indexes.push(Index { def: def.clone(), keys, entries });
    Ok(())
}

fn entries_of(
    data: &TableData,
    keys: &IndexKeys,
    def: &IndexDef,
) -> EngineResult<(BTreeMap<Key, u32>, i64)> {
    let mut entries = BTreeMap::new();
    let mut newest: BTreeMap<Vec<u8>, ()> = BTreeMap::new();
    let (mut key, mut bytes) = (Vec::new(), 0);
    for (locator, row) in &data.rows {
        for (at, record) in row_records(row) {
            let is_newest = at == 0 && row.is_live();
            keys.for_each(record, &mut key, |key, has_null| {
                if def.unique && !has_null && is_newest && newest.insert(key.clone(), ()).is_some()
                {
                    let locator = locator.as_slice().to_vec();
                    return Err(EngineError::DuplicateKey { index: def.id, locator });
                }
                let sql_length = key.len() as u32;
                key.extend_from_slice(locator.as_slice());
                bytes += key.len() as i64;
                entries.insert(Key::new(key), sql_length);
                Ok(())
            })?;
        }
    }
    Ok((entries, bytes))
}

fn row_records(row: &Row) -> impl Iterator<Item = (usize, &[u8])> {
    row.records().enumerate()
}

/// Forgets a secondary index.
pub(crate) fn remove_index(table: &Table, id: IndexId) {
    let mut data = table.data.write();
    let mut def = TableDef::clone(&data.def);
    def.indexes.retain(|index| index.id != id);
    data.def = Arc::new(def);
    data.indexes.retain(|index| index.def.id != id);
}

/// Replaces the definition when no stored byte depends on the difference; returns the old one.
pub(crate) fn replace_definition(table: &Table, def: &TableDef) -> EngineResult<Arc<TableDef>> {
    let mut data = table.data.write();
    let same_columns = data.def.columns.len() == def.columns.len()
        && data.def.columns.iter().zip(&def.columns).all(|(a, b)| same_encoding(&a.ty, &b.ty));
    let same_indexes = data.def.indexes.len() == def.indexes.len()
        && data
            .def
            .indexes
            .iter()
            .zip(&def.indexes)
            .all(|(a, b)| a.id == b.id && a.parts == b.parts && a.unique == b.unique);
    if !(same_columns && same_indexes) {
        return Err(Error::not_supported("this instant ALTER TABLE in the memory engine").into());
    }
    let old = data.def.clone();
    apply_definition(&mut data, def)?;
    Ok(old)
}

fn apply_definition(data: &mut TableData, def: &TableDef) -> EngineResult<()> {
    data.clustered = def.primary().map(|index| IndexKeys::new(def, index)).transpose()?;
    for index in &mut data.indexes {
        if let Some(new) = def.index(index.def.id) {
            index.keys = IndexKeys::new(def, new)?;
            index.def = new.clone();
        }
    }
    data.def = Arc::new(def.clone());
    Ok(())
}

/// Takes back `replace_definition`.
pub(crate) fn restore_definition(table: &Table, old: Arc<TableDef>) {
    // It was valid before.
    let _ = apply_definition(&mut table.data.write(), &old);
}

/// Whether values of `old` have the same record and key bytes in `new`.
fn same_encoding(old: &DataType, new: &DataType) -> bool {
    let widens = matches!(old.kind, TypeKind::VarChar | TypeKind::VarBinary)
        && new.length >= old.length
        // The record's length fields may depend on this border.
        && (old.length <= 255) == (new.length <= 255);
    let lengths = old.length == new.length || widens;
    let same = DataType { length: new.length, nullable: new.nullable, ..old.clone() } == *new;
    same && lengths && (new.nullable == old.nullable || new.nullable)
}
