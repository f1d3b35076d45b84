//! Which way an ALTER TABLE may go, from the old and the new definition alone: nothing here reads a row or changes anything.

use catalog::{Column, ColumnDefault, FulltextIndex, Table};
use engine_api::{IndexDef, IndexId};
use errors::{Result, bail};
use types::Value;

use super::{Algorithm, Lock, Request};

/// Indexes that come and go without a copy.
#[derive(Debug, Default)]
pub(super) struct IndexChanges {
    pub added: Vec<IndexId>,
    pub dropped: Vec<IndexId>,
}

/// What an in-place change does to indexes, or `None` when the rows must be written anew. Gives new columns their instant default.
/// `origins` says which old column each new one was.
pub(super) fn choose_way(
    old: &Table,
    new: &mut Table,
    origins: &[Option<usize>],
) -> Option<IndexChanges> {
    let before = old.definition.columns.len();
    if new.definition.columns.len() < before {
        return None;
    }
    for (place, column) in old.definition.columns.iter().enumerate() {
        // A stored column must be the same one, at its place: another may have come for one that went.
        let at = |columns: &[Column]| columns.iter().position(|known| known.stored == Some(place));
        let (was, now) = (at(&old.columns)?, at(&new.columns)?);
        if origins.get(now) != Some(&Some(was)) {
            return None;
        }
        let (was, now) = (&old.columns[was], &new.columns[now]);
        let same_expression = was.generated.as_ref().map(|generated| &generated.expression)
            == now.generated.as_ref().map(|generated| &generated.expression);
        let same_expression = same_expression || keeps_partitions(old, new, &was.name);
        let keeps_bytes = same_encoding(&column.ty, &new.definition.columns[place].ty)
            && keeps_geometries(&was.ty, &now.ty);
        if !same_expression || !keeps_bytes {
            return None;
        }
        // Its zeros get values.
        if now.auto_increment && !was.auto_increment {
            return None;
        }
    }
    for place in before..new.definition.columns.len() {
        let column = new.columns.iter().find(|column| column.stored == Some(place))?;
        if column.generated.is_some() || column.auto_increment {
            return None;
        }
        let default = match &column.default {
            ColumnDefault::Constant(value) => value.clone(),
            ColumnDefault::None if column.ty.nullable => Value::Null,
            ColumnDefault::None => implicit_default(&column.ty)?,
            ColumnDefault::Now(_) | ColumnDefault::Expression(_) => return None,
        };
        new.definition.columns[place].instant_default =
            if default.is_null() { None } else { Some(default) };
    }
    // Words are found by writing the rows.
    if adds_fulltext(old, new) {
        return None;
    }
    let primary = |table: &Table| table.definition.primary().map(|index| index.parts.clone());
    if primary(old) != primary(new) {
        return None;
    }
    let mut changes = IndexChanges::default();
    let same = |one: &IndexDef, other: &IndexDef| {
        one.id == other.id && one.unique == other.unique && one.parts == other.parts
    };
    for index in &old.definition.indexes {
        if !new.definition.indexes.iter().any(|other| same(index, other)) {
            changes.dropped.push(index.id);
        }
    }
    for index in &new.definition.indexes {
        if !old.definition.indexes.iter().any(|other| same(index, other)) {
            // An index that changes under its old id is dropped first.
            changes.added.push(index.id);
        }
    }
    Some(changes)
}

/// Whether there is a FULLTEXT index that has no entries yet.
fn adds_fulltext(old: &Table, new: &Table) -> bool {
    let is_known =
        |index: &FulltextIndex| old.fulltext.iter().any(|known| known.entries == index.entries);
    !new.fulltext.iter().all(is_known)
}

/// 1846 where a FULLTEXT index is to be made without a lock.
pub(super) fn check_fulltext(old: &Table, new: &Table, request: &Request) -> Result<()> {
    const REASON: &str = "Fulltext index creation requires a lock";
    if !adds_fulltext(old, new) {
        return Ok(());
    }
    if request.algorithm == Algorithm::Instant {
        let others = "ALGORITHM=COPY/INPLACE";
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "ALGORITHM=INSTANT", REASON, others);
    }
    if request.lock == Lock::None {
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", REASON, "LOCK=SHARED");
    }
    Ok(())
}

/// Whether a column is that of the partitions' numbers, and they stay what they are.
fn keeps_partitions(old: &Table, new: &Table, column: &str) -> bool {
    match (&old.partitioning, &new.partitioning) {
        (Some(old), Some(new)) => column == catalog::PARTITION_COLUMN && new.keeps_numbers(old),
        _ => false,
    }
}

/// Whether all new indexes are over columns that the rows have already: then they can be built before anything else changes.
pub(super) fn builds_online(old: &Table, new: &Table, changes: &IndexChanges) -> bool {
    let (before, after) = (&old.definition.columns, &new.definition.columns);
    let added = new.definition.indexes.iter().filter(|index| changes.added.contains(&index.id));
    added.flat_map(|index| &index.parts).all(|part| {
        before.get(part.column).map(|column| &column.ty)
            == after.get(part.column).map(|column| &column.ty)
    })
}

/// 1221, 1845, 1846 where ALGORITHM and LOCK ask for what will not happen.
pub(super) fn check_demands(request: &Request, needs_copy: bool, copies: bool) -> Result<()> {
    const TYPE: &str = "Cannot change column type INPLACE";
    if request.algorithm == Algorithm::Instant && request.lock != Lock::Default {
        bail!(WRONG_USAGE, "ALGORITHM=INSTANT", "LOCK=NONE/SHARED/EXCLUSIVE");
    }
    if request.algorithm == Algorithm::Inplace && needs_copy {
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "ALGORITHM=INPLACE", TYPE, "ALGORITHM=COPY");
    }
    if request.lock == Lock::None && copies {
        let reason = match (request.algorithm, needs_copy) {
            (Algorithm::Copy, _) => "COPY algorithm requires a lock",
            (_, true) => TYPE,
            (_, false) => "rows are written anew under a lock",
        };
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
    }
    Ok(())
}

/// Whether the reference makes a copy for what changed, and so reports the rows; other rebuilds report none.
pub(super) fn reference_copies(old: &Table, new: &Table, origins: &[Option<usize>]) -> bool {
    let loses_primary = old.definition.primary().is_some() && new.definition.primary().is_none();
    loses_primary
        || new.columns.iter().zip(origins).any(|(now, origin)| {
            let stored_expression = |column: &catalog::Column| {
                let generated = column.generated.as_ref();
                generated.filter(|generated| generated.stored).map(|g| g.expression.clone())
            };
            match origin.and_then(|origin| old.columns.get(origin)) {
                Some(was) => {
                    let mut ty = was.ty.clone();
                    ty.nullable = now.ty.nullable;
                    let grows_length_bytes = now.ty.kind == types::TypeKind::VarChar
                        && (length_bytes(&ty) != length_bytes(&now.ty));
                    !same_encoding(&ty, &now.ty)
                        || (now.auto_increment && !was.auto_increment)
                        || grows_length_bytes
                        || stored_expression(was) != stored_expression(now)
                }
                None => {
                    stored_expression(now).is_some()
                        || matches!(now.default, ColumnDefault::Expression(_))
                }
            }
        })
}

/// Bytes of the length of a VARCHAR in the reference's records.
fn length_bytes(ty: &types::DataType) -> u8 {
    let widest = charset::collation_or_binary(ty.collation).charset.max_length.max(1);
    if ty.length.saturating_mul(u32::from(widest)) > 255 { 2 } else { 1 }
}

/// What old rows have in a NOT NULL column without a default, as the reference fills it; `None` when that takes a copy.
fn implicit_default(ty: &types::DataType) -> Option<Value> {
    use types::TypeKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Value::UInt(0),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(0),
        Bit | Set => Value::UInt(0),
        Enum => Value::UInt(1),
        Float | Double => Value::Double(0.0),
        Decimal => Value::Decimal(types::Decimal::from(0_i64).rescale(ty.decimals)),
        VarChar | TinyText | Text | MediumText | LongText | VarBinary | TinyBlob | Blob
        | MediumBlob | LongBlob | Char => Value::text(""),
        Null | Year | Date | Time | DateTime | Timestamp | Binary | Json | Vector | Geometry => {
            return None;
        }
    })
}

/// Whether a column takes the geometries that it had: a missing SRID attribute refuses none.
fn keeps_geometries(old: &types::DataType, new: &types::DataType) -> bool {
    let (old, new) = (old.spatial, new.spatial);
    old.kind == new.kind && (new.srid.is_none() || old.srid == new.srid)
}

/// Whether records hold values of both types in the same bytes, and every value of the first is one of the second.
fn same_encoding(old: &types::DataType, new: &types::DataType) -> bool {
    use types::TypeKind::*;
    if old == new {
        return true;
    }
    // NULL becoming NOT NULL needs a look at the rows; the other way changes index keys.
    if old.nullable != new.nullable
        || old.collation != new.collation
        || old.unsigned != new.unsigned
    {
        return false;
    }
    match (old.kind, new.kind) {
        (VarChar, VarChar) | (VarBinary, VarBinary) => new.length >= old.length,
        (Enum, Enum) | (Set, Set) => match (&old.members, &new.members) {
            // More members may take wider numbers.
            (Some(before), Some(after)) => {
                after.names.starts_with(&before.names)
                    && types::record::fixed_length(old) == types::record::fixed_length(new)
            }
            _ => false,
        },
        (TinyInt, TinyInt)
        | (SmallInt, SmallInt)
        | (MediumInt, MediumInt)
        | (Int, Int)
        | (BigInt, BigInt) => true,
        (Geometry, Geometry) => keeps_geometries(old, new),
        _ => false,
    }
}
