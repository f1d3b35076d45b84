//! Chooses the algorithm of an ALTER TABLE from the old and the new definition alone: nothing here reads a row or changes anything.

use catalog::{Column, ColumnDefault, FulltextIndex, Table};
use engine_api::{IndexDef, IndexId};
use errors::{Error, Result, bail, err};
use syntax::ast::Ident;
use types::Value;

use super::{Altered, Request};

/// The ALGORITHM clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AlgorithmClause {
    /// DEFAULT, or no clause.
    #[default]
    Default,
    /// Only the dictionary changes.
    Instant,
    /// INPLACE and NOCOPY.
    Inplace,
    /// The rows are copied.
    Copy,
}

impl AlgorithmClause {
    /// The clause with this word; 1800 for any other.
    pub(super) fn named(word: &Ident) -> Result<AlgorithmClause> {
        Ok(match word.text.to_ascii_uppercase().as_str() {
            "DEFAULT" => AlgorithmClause::Default,
            "INSTANT" => AlgorithmClause::Instant,
            "INPLACE" | "NOCOPY" => AlgorithmClause::Inplace,
            "COPY" => AlgorithmClause::Copy,
            _ => bail!(UNKNOWN_ALTER_ALGORITHM, word.text),
        })
    }
}

/// The LOCK clause: the access that other sessions have to the table during the change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockClause {
    /// DEFAULT, or no clause.
    #[default]
    Default,
    /// Others read and write.
    None,
    /// Others read.
    Shared,
    /// Others wait.
    Exclusive,
}

impl LockClause {
    /// The clause with this word; 1801 for any other.
    pub(super) fn named(word: &Ident) -> Result<LockClause> {
        Ok(match word.text.to_ascii_uppercase().as_str() {
            "DEFAULT" => LockClause::Default,
            "NONE" => LockClause::None,
            "SHARED" => LockClause::Shared,
            "EXCLUSIVE" => LockClause::Exclusive,
            _ => bail!(UNKNOWN_ALTER_LOCK, word.text),
        })
    }
}

/// Indexes that are added and dropped without a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexChanges {
    /// Indexes of the new definition that are to be built.
    pub added: Vec<IndexId>,
    /// Indexes of the old definition that are dropped.
    pub dropped: Vec<IndexId>,
}

/// Places of dropped columns that records may have before the rows are rewritten.
const VACANT_MAX: usize = 64;

/// How an ALTER TABLE is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// The rows do not change; these indexes are added and dropped.
    InPlace(IndexChanges),
    /// The rows are copied into a table of the new definition.
    Copy,
}

/// How the ALTER TABLE is carried out.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The reference copies: it reports the number of rows, and checks their values.
    pub counts_rows: bool,
    /// Rows that are copied may be used by others in the meantime.
    pub copies_online: bool,
}

/// Facts for the decision besides the definitions.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// More rows of partitions are deleted than stay.
    pub most_rows_go: bool,
    /// `foreign_key_checks`.
    pub checks_foreign_keys: bool,
    /// The engine can note which rows are changed during a copy.
    pub engine_notes_rows: bool,
}

/// Chooses the algorithm, and gives new columns their instant default where it needs no copy.
///
/// # Errors
/// 1221, 1845, 1846 where ALGORITHM and LOCK request the impossible.
pub fn choose(
    old: &Table,
    altered: &mut Altered,
    request: &Request,
    facts: Facts,
) -> Result<Choice> {
    let Altered { table: new, origins, .. } = altered;
    check_fulltext(old, new, request)?;
    if request.algorithm == AlgorithmClause::Instant && adds_spatial(old, new) {
        const REASON: &str = "Do not support online operation on table with GIS index";
        let others = "ALGORITHM=COPY/INPLACE";
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "ALGORITHM=INSTANT", REASON, others);
    }
    let in_place = in_place_changes(old, new, origins);
    let adds_constraints = altered.adds_foreign_keys || altered.adds_checks;
    let moves = old.engine != new.engine;
    let must_copy =
        in_place.is_none() || moves || request.rebuild || adds_constraints || facts.most_rows_go;
    let copies = must_copy || request.algorithm == AlgorithmClause::Copy;
    check_discarded(old, altered, request, copies)?;
    let rewrites = Rewrites::of(old, altered, facts);
    let counts_rows = request.algorithm == AlgorithmClause::Copy
        || request.orders
        || request.repartitions
        || altered.adds_checks
        || altered.adds_foreign_keys && facts.checks_foreign_keys
        || rewrites.reference_copies();
    let is_instant = request.algorithm == AlgorithmClause::Instant;
    check_demands(request, &rewrites, altered.adds_checks)?;
    if must_copy && is_instant {
        return Err(not_instant());
    }
    let obstacle =
        copies.then(|| obstacle_to_others(old, altered, request, facts, &rewrites)).flatten();
    if request.lock == LockClause::None
        && let Some(reason) = obstacle
    {
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
    }
    let copies_online =
        obstacle.is_none() && request.lock != LockClause::Exclusive && !request.discards;
    let changes = match in_place {
        Some(changes) if !copies => changes,
        Some(_) | None => {
            return Ok(Choice { algorithm: Algorithm::Copy, counts_rows, copies_online });
        }
    };
    if is_instant && changes != IndexChanges::default() {
        return Err(not_instant());
    }
    if request.lock == LockClause::None && !builds_online(old, &altered.table, &changes) {
        let reason = "indexes over columns added by the same statement are built with a lock";
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", reason, "LOCK=SHARED");
    }
    // Where the engine refuses, the rows are copied under the lock that was taken for the change in place.
    let copies_online = false;
    Ok(Choice { algorithm: Algorithm::InPlace(changes), counts_rows, copies_online })
}

/// 1814 where missing rows would have to be rewritten, or to get or lose a column.
fn check_discarded(old: &Table, altered: &Altered, request: &Request, copies: bool) -> Result<()> {
    let goes = request.discards || !request.gone.is_empty();
    let count = |table: &Table| table.columns.iter().filter(|column| !column.is_vacant()).count();
    let changes = copies || count(old) != count(&altered.table);
    if old.is_discarded() && changes && !goes {
        bail!(TABLESPACE_DISCARDED, format!("{}/{}", old.schema, old.name));
    }
    Ok(())
}

/// 1845 of ALGORITHM=INSTANT.
pub fn not_instant() -> Error {
    err!(ALTER_OPERATION_NOT_SUPPORTED, "ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE")
}

/// Returns the index changes of an in-place change, or `None` when the rows must be rewritten. Gives new columns their instant default.
/// `origins` says which old column each new one was.
fn in_place_changes(
    old: &Table,
    new: &mut Table,
    origins: &[Option<usize>],
) -> Option<IndexChanges> {
    let before = old.definition.columns.len();
    let has_room = new.columns.iter().filter(|column| column.is_vacant()).count() <= VACANT_MAX;
    if new.definition.columns.len() < before || !has_room {
        return None;
    }
    for (place, column) in old.definition.columns.iter().enumerate() {
        // A stored column must be the same one, at its position: another may have replaced a dropped one.
        let at = |columns: &[Column]| columns.iter().position(|known| known.stored == Some(place));
        let (was, now) = (at(&old.columns)?, at(&new.columns)?);
        // The column of the partitions' numbers has no origin: it is made anew, behind the others.
        let origin = origins.get(now).copied().unwrap_or_else(|| old.partition_column());
        if origin != Some(was) {
            return None;
        }
        let (was, now) = (&old.columns[was], &new.columns[now]);
        let expression =
            |made: &catalog::Generated| (made.expression.clone(), made.elements.clone());
        let same_expression =
            was.generated.as_ref().map(expression) == now.generated.as_ref().map(expression);
        let same_expression =
            same_expression || now.is_vacant() || keeps_partitions(old, new, &was.name);
        let keeps_bytes = same_encoding(&column.ty, &new.definition.columns[place].ty)
            && keeps_geometries(&was.ty, &now.ty);
        if !same_expression || !keeps_bytes {
            return None;
        }
        // Its zeros are replaced by generated values.
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
    // The words are indexed by writing the rows.
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

/// Whether a FULLTEXT index has no entries yet.
fn adds_fulltext(old: &Table, new: &Table) -> bool {
    let is_known =
        |index: &FulltextIndex| old.fulltext.iter().any(|known| known.entries == index.entries);
    !new.fulltext.iter().all(is_known)
}

/// Whether a spatial index has no entries yet.
fn adds_spatial(old: &Table, new: &Table) -> bool {
    let is_known = |index: &catalog::Index| old.indexes.iter().any(|known| known.id == index.id);
    let mut added = new.indexes.iter().filter(|index| !is_known(index));
    added.any(|index| new.spatial_column(index).is_some())
}

/// 1846 where a FULLTEXT index is to be built without a lock.
fn check_fulltext(old: &Table, new: &Table, request: &Request) -> Result<()> {
    const REASON: &str = "Fulltext index creation requires a lock";
    if !adds_fulltext(old, new) {
        return Ok(());
    }
    if request.algorithm == AlgorithmClause::Instant {
        let others = "ALGORITHM=COPY/INPLACE";
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "ALGORITHM=INSTANT", REASON, others);
    }
    if request.lock == LockClause::None {
        bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, "LOCK=NONE", REASON, "LOCK=SHARED");
    }
    Ok(())
}

/// Whether a column is that of the partitions' numbers, and these do not change.
fn keeps_partitions(old: &Table, new: &Table, column: &str) -> bool {
    match (&old.partitioning, &new.partitioning) {
        (Some(old), Some(new)) => column == catalog::PARTITION_COLUMN && new.keeps_numbers(old),
        _ => false,
    }
}

/// Whether all new indexes are over columns that the rows already have: then they can be built before anything else changes.
pub fn builds_online(old: &Table, new: &Table, changes: &IndexChanges) -> bool {
    let (before, after) = (&old.definition.columns, &new.definition.columns);
    let added = new.definition.indexes.iter().filter(|index| changes.added.contains(&index.id));
    added.flat_map(|index| &index.parts).all(|part| {
        before.get(part.column).map(|column| &column.ty)
            == after.get(part.column).map(|column| &column.ty)
    })
}

/// 1221, 1845, 1846 where ALGORITHM and LOCK do not permit the chosen way.
fn check_demands(request: &Request, rewrites: &Rewrites, adds_checks: bool) -> Result<()> {
    let (algorithm, others) = match request.algorithm {
        AlgorithmClause::Default | AlgorithmClause::Copy => return Ok(()),
        AlgorithmClause::Instant if request.lock != LockClause::Default => {
            bail!(WRONG_USAGE, "ALGORITHM=INSTANT", "LOCK=NONE/SHARED/EXCLUSIVE");
        }
        AlgorithmClause::Instant => ("ALGORITHM=INSTANT", "ALGORITHM=COPY/INPLACE"),
        AlgorithmClause::Inplace => ("ALGORITHM=INPLACE", "ALGORITHM=COPY"),
    };
    let instant = request.algorithm == AlgorithmClause::Instant;
    let reason = if rewrites.loses_primary {
        DROPS_PRIMARY
    } else if rewrites.adds_counter && instant {
        ADDS_COUNTER
    } else if rewrites.checks_parents {
        CHECKS_PARENTS
    } else if rewrites.changes_type {
        if instant { TYPE_INSTANT } else { TYPE_INPLACE }
    } else if rewrites.computes {
        bail!(ALTER_OPERATION_NOT_SUPPORTED, algorithm, others);
    } else if adds_checks {
        bail!(ALTER_OPERATION_NOT_SUPPORTED, algorithm, "ALGORITHM=COPY");
    } else {
        return Ok(());
    };
    bail!(ALTER_OPERATION_NOT_SUPPORTED_REASON, algorithm, reason, others)
}

const DROPS_PRIMARY: &str =
    "Dropping a primary key is not allowed without also adding a new primary key";
const ADDS_COUNTER: &str = "Adding an auto-increment column requires a lock";
const CHECKS_PARENTS: &str = "Adding foreign keys needs foreign_key_checks=OFF";
const TYPE_INSTANT: &str = "Need to rebuild the table to change column type";
const TYPE_INPLACE: &str = "Cannot change column type INPLACE";

/// Why others cannot use the table while its rows are copied, if they cannot. Rows that they change are removed from the copy and copied again, so a
/// row must have the same key in the copy each time.
fn obstacle_to_others(
    old: &Table,
    altered: &Altered,
    request: &Request,
    facts: Facts,
    rewrites: &Rewrites,
) -> Option<&'static str> {
    let new = &altered.table;
    if old.temporary || !facts.engine_notes_rows {
        return Some("the engine copies rows under a lock");
    }
    if request.kept.is_some() || !request.gone.is_empty() {
        return Some("rows of partitions are deleted under a lock");
    }
    if rewrites.checks_parents {
        return Some(CHECKS_PARENTS);
    }
    if new.refuses_overlaps() {
        return Some("rows whose periods must not overlap are copied under a lock");
    }
    if rewrites.loses_primary {
        return Some(DROPS_PRIMARY);
    }
    let Some(primary) = new.definition.primary() else {
        return Some("rows without a primary key are copied under a lock");
    };
    for (column, origin) in new.columns.iter().zip(&altered.origins) {
        let was = origin.and_then(|origin| old.columns.get(origin));
        if column.auto_increment && !was.is_some_and(|was| was.auto_increment) {
            return Some(ADDS_COUNTER);
        }
        // A place that is dropped with the copy.
        if column.is_vacant() {
            continue;
        }
        let in_key = primary.parts.iter().any(|part| Some(part.column) == column.stored);
        let varies = matches!(column.default, ColumnDefault::Now(_) | ColumnDefault::Expression(_));
        if in_key && was.is_none() && column.generated.is_none() && varies {
            return Some("a new column of the primary key has a default that is not constant");
        }
    }
    None
}

/// What about the rows is not as it was.
#[derive(Clone, Copy, Debug, Default)]
struct Rewrites {
    /// The primary key is dropped, and there is no other.
    loses_primary: bool,
    /// A column becomes AUTO_INCREMENT.
    adds_counter: bool,
    /// Rows are looked for in the parents of new foreign keys.
    checks_parents: bool,
    /// Values have another type, or other bytes.
    changes_type: bool,
    /// Values are computed anew.
    computes: bool,
}

impl Rewrites {
    fn of(old: &Table, altered: &Altered, facts: Facts) -> Rewrites {
        let new = &altered.table;
        let has_primary = |table: &Table| table.definition.primary().is_some();
        let mut all = Rewrites {
            loses_primary: has_primary(old) && !has_primary(new),
            checks_parents: altered.adds_foreign_keys && facts.checks_foreign_keys,
            ..Rewrites::default()
        };
        let columns = new.columns.iter().zip(&altered.origins);
        for (now, origin) in columns.filter(|(now, _)| !now.is_vacant()) {
            let was = origin.and_then(|origin| old.columns.get(origin));
            all.add_column(was, now);
        }
        all
    }

    fn add_column(&mut self, was: Option<&Column>, now: &Column) {
        let stored_expression = |column: &Column| {
            let generated = column.generated.as_ref();
            generated.filter(|generated| generated.stored).map(|g| g.expression.clone())
        };
        self.adds_counter |= now.auto_increment && !was.is_some_and(|was| was.auto_increment);
        let Some(was) = was else {
            self.computes |= stored_expression(now).is_some()
                || matches!(now.default, ColumnDefault::Expression(_));
            return;
        };
        let mut ty = was.ty.clone();
        ty.nullable = now.ty.nullable;
        let grows_length_bytes =
            now.ty.kind == types::TypeKind::VarChar && (length_bytes(&ty) != length_bytes(&now.ty));
        self.changes_type |= !same_encoding(&ty, &now.ty)
            || (now.auto_increment && !was.auto_increment)
            || grows_length_bytes
            || stored_expression(was) != stored_expression(now);
    }

    /// Whether the reference makes a copy, and so reports the rows; other rebuilds report none.
    fn reference_copies(&self) -> bool {
        self.loses_primary || self.changes_type || self.computes
    }
}

/// Bytes of the length of a VARCHAR in the reference's records.
fn length_bytes(ty: &types::DataType) -> u8 {
    let widest = charset::collation_or_binary(ty.collation).charset.max_length.max(1);
    if ty.length.saturating_mul(u32::from(widest)) > 255 { 2 } else { 1 }
}

/// The value of old rows in a new NOT NULL column without a default, as the reference fills it; `None` when that takes a copy.
pub(super) fn implicit_default(ty: &types::DataType) -> Option<Value> {
    use types::TypeKind::*;
    Some(match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Value::UInt(0),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(0),
        Bit | Set => Value::UInt(0),
        Fixed(kind) => Value::Bytes(kind.zero()),
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

/// Whether a column accepts its existing geometries: without an SRID attribute it accepts all.
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
    // NULL becoming NOT NULL needs a check of the rows; the other way changes index keys.
    if old.nullable != new.nullable
        || old.collation != new.collation
        || old.unsigned != new.unsigned
    {
        return false;
    }
    match (old.kind, new.kind) {
        (VarChar, VarChar) | (VarBinary, VarBinary) => new.length >= old.length,
        (Enum, Enum) | (Set, Set) => match (&old.members, &new.members) {
            // More members may need wider numbers.
            (Some(before), Some(after)) => {
                after.starts_with(before)
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
