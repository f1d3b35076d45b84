//! Columns of CREATE TABLE ... SELECT: from result columns to definitions.

use std::sync::Arc;

use catalog::{CatalogView, Column, ColumnDefault, Relation};
use errors::{Diagnostics, Result, bail};
use plan::{Expr, Making, OutputColumn};
use plugin_api::{ColumnMeta, Computed};
use types::{DataType, SqlMode, TypeKind, Value};

use crate::charsets::stored_collation;
use crate::columns::note_deprecated_numbers;
use crate::draft::{Draft, DraftColumn};
use crate::names::check_column_name;

/// Computed integers with fewer characters become INT.
const INT_DIGITS_END: u32 = 12;
/// Written integers with fewer characters do; a place for a sign is one of them.
const WRITTEN_INT_DIGITS_END: u32 = 10;
/// Bytes of a MEDIUMTEXT.
const MEDIUM_TEXT_MAX: u32 = 0xFF_FFFF;
/// Characters of a computed string that becomes a VARCHAR.
const VARCHAR_MADE_MAX: u32 = 512;

/// Adds the columns of a query that the statement does not define itself. `view`: where the query's tables are; `mode`: whether
/// zero dates are defaults.
///
/// # Errors
/// 1060, 1166, 1059.
pub fn add_query_columns(
    conditions: &mut Diagnostics,
    draft: &mut Draft,
    view: &CatalogView,
    mode: SqlMode,
    metas: &[ColumnMeta],
) -> Result<()> {
    for (at, meta) in metas.iter().enumerate() {
        if metas[..at].iter().any(|before| catalog::same_name(&before.name, &meta.name)) {
            bail!(DUP_FIELDNAME, meta.name);
        }
        if draft.column(&meta.name).is_some() {
            continue;
        }
        check_column_name(&meta.name)?;
        let source = source_column(view, meta);
        let ty = storable(meta);
        note_deprecated_numbers(conditions, &ty);
        let default = match (&source, ty.nullable) {
            (Some(column), true) if column.generated.is_some() => {
                ColumnDefault::Constant(Value::Null)
            }
            (Some(column), false) if column.auto_increment => zero_default(&ty, mode),
            (Some(column), _) => column.default.clone(),
            (None, true) => ColumnDefault::Constant(Value::Null),
            (None, false) => zero_default(&ty, mode),
        };
        draft.columns.push(DraftColumn {
            column: Column {
                name: Arc::from(&*meta.name),
                ty,
                stored: None,
                default,
                on_update_now: source.as_ref().and_then(|column| column.on_update_now),
                auto_increment: false,
                generated: None,
                invisible: false,
                collation_written: source.as_ref().is_some_and(|column| column.collation_written),
                comment: source.map_or_else(String::new, |column| column.comment),
                histogram: None,
                placement: catalog::Placement::default(),
                history: catalog::ColumnHistory::Kept,
            },
            origin: None,
            null_written: None,
            history_written: None,
        });
    }
    Ok(())
}

/// The catalog's column that a result column comes from.
fn source_column(view: &CatalogView, meta: &ColumnMeta) -> Option<Column> {
    match view.relation(&meta.schema, &meta.org_table)? {
        Relation::Table(table) => {
            table.column(&meta.org_name).map(|position| table.columns[position].clone())
        }
        Relation::View(_) => None,
    }
}

/// The default of a computed NOT NULL column, as the reference shows it.
fn zero_default(ty: &DataType, mode: SqlMode) -> ColumnDefault {
    let zero_dates = !mode.contains(SqlMode::NO_ZERO_DATE);
    if ty.is_integer() {
        let zero = if ty.unsigned { Value::UInt(0) } else { Value::Int(0) };
        return ColumnDefault::Constant(zero);
    }
    match ty.kind {
        TypeKind::Decimal => {
            let zero = types::Decimal::from(0_i64).rescale(ty.decimals);
            ColumnDefault::Constant(Value::Decimal(zero))
        }
        TypeKind::Float | TypeKind::Double => ColumnDefault::Constant(Value::Double(0.0)),
        TypeKind::Time => ColumnDefault::Constant(Value::Time(types::Time::ZERO)),
        TypeKind::Char | TypeKind::VarChar | TypeKind::Binary | TypeKind::VarBinary => {
            ColumnDefault::Constant(Value::text(""))
        }
        TypeKind::Year => ColumnDefault::Constant(Value::UInt(0)),
        TypeKind::Date if zero_dates => ColumnDefault::Constant(Value::Date(types::Date::ZERO)),
        TypeKind::DateTime | TypeKind::Timestamp if zero_dates => {
            ColumnDefault::Constant(Value::DateTime(types::DateTime::ZERO))
        }
        _ => ColumnDefault::None,
    }
}

/// The type that a view's column is shown with: that of a table made from the query.
pub fn shown_type(column: &OutputColumn) -> DataType {
    let mut meta = ColumnMeta::computed(&column.name, column.expr.ty());
    if let Some(source) = &column.source {
        meta.org_table = source.org_table.clone();
        meta.materialized = source.materialized;
    }
    meta.materialized |= column.making == Making::Kept;
    meta.computed = match (column.making, &column.expr) {
        (Making::Typed | Making::Kept, _) => None,
        (Making::IfNull, _) => Some(Computed::IfNull),
        (Making::Subquery, _) => Some(Computed::Subquery),
        (Making::Integer, _) => Some(Computed::Integer),
        (Making::Placeholder, _) => Some(Computed::Placeholder),
        (Making::Computed, Expr::Case { .. } | Expr::FirstNotNull { .. } | Expr::Held { .. }) => {
            Some(Computed::Choice)
        }
        (Making::Computed, Expr::UserVariable { .. }) => Some(Computed::Variable),
        (Making::Computed, _) => Some(Computed::Function),
    };
    // A computed TEXT makes a LONGTEXT of a table; a view shows what it is.
    let is_text =
        matches!(meta.ty.kind, TypeKind::TinyText | TypeKind::Text | TypeKind::MediumText);
    if is_text && !meta.materialized {
        return meta.ty;
    }
    let is_medium = meta.ty.kind == TypeKind::LongText && meta.ty.length <= MEDIUM_TEXT_MAX;
    if is_medium && meta.computed.is_some() {
        meta.ty.kind = TypeKind::MediumText;
        return meta.ty;
    }
    storable(&meta)
}

/// The column type for values of a result column's type.
fn storable(meta: &ColumnMeta) -> DataType {
    let mut ty = meta.ty.clone();
    ty.collation = stored_collation(charset::collation_or_binary(ty.collation)).id;
    if meta.computed == Some(Computed::Placeholder) && (ty.is_text() || ty.kind == TypeKind::Null) {
        (ty.kind, ty.length) = (TypeKind::Text, 65_535);
        return ty;
    }
    if matches!(meta.computed, Some(Computed::Variable | Computed::Placeholder)) {
        return variable_column(ty);
    }
    match ty.kind {
        TypeKind::Null => {
            ty.kind = TypeKind::VarBinary;
            ty.length = 0;
            ty.nullable = true;
        }
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Int
            if meta.computed == Some(Computed::Subquery) =>
        {
            ty.kind = TypeKind::BigInt;
            ty.length = 20;
        }
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
            if meta.computed.is_some_and(|computed| computed != Computed::IfNull) =>
        {
            let is_written = meta.computed == Some(Computed::Integer);
            fit_integer(&mut ty, if is_written { WRITTEN_INT_DIGITS_END } else { INT_DIGITS_END });
        }
        TypeKind::Bit if meta.computed.is_some() => {
            ty.unsigned = true;
            (ty.kind, ty.length) = match ty.length {
                0..=31 => (TypeKind::Int, 10),
                _ => (TypeKind::BigInt, 20),
            };
        }
        TypeKind::BigInt => ty.length = 20,
        TypeKind::Decimal => {
            // A computed value may have more digits than a column.
            let scale = ty.decimals.min(types::decimal::MAX_SCALE);
            let cut = u32::from(ty.decimals - scale);
            ty.length = ty.length.saturating_sub(cut).clamp(1, types::decimal::MAX_PRECISION);
            ty.length = ty.length.max(u32::from(scale));
            ty.decimals = scale;
        }
        TypeKind::Char if meta.computed.is_some() => ty.kind = TypeKind::VarChar,
        TypeKind::Binary if meta.computed.is_some() => ty.kind = TypeKind::VarBinary,
        TypeKind::Enum | TypeKind::Set
            if meta.computed.is_some() || meta.materialized && meta.org_table.is_empty() =>
        {
            ty.kind = TypeKind::VarChar;
            ty.members = None;
        }
        _ => {}
    }
    if !ty.is_string() || !meta.org_table.is_empty() {
        return ty;
    }
    fit_string(&mut ty, meta);
    ty
}

/// The widest column of the kind that a variable's value has.
fn variable_column(mut ty: DataType) -> DataType {
    (ty.kind, ty.length) = match (ty.kind, ty.is_binary()) {
        (TypeKind::Decimal, _) => {
            ty.decimals = types::decimal::MAX_SCALE;
            (TypeKind::Decimal, types::decimal::MAX_PRECISION)
        }
        // A variable that has no value.
        (TypeKind::LongText, false) if ty.length < u32::MAX => (TypeKind::Text, 65_535),
        (TypeKind::Null | TypeKind::Geometry, _) => (TypeKind::LongBlob, u32::MAX),
        (TypeKind::Enum | TypeKind::Set, _) => {
            ty.members = None;
            (TypeKind::LongText, u32::MAX)
        }
        _ if ty.is_integer() => (TypeKind::BigInt, 20),
        (_, true) if ty.is_string() => (TypeKind::LongBlob, u32::MAX),
        (_, false) if ty.is_string() => (TypeKind::LongText, u32::MAX),
        (kind, _) => (kind, ty.length),
    };
    ty
}

/// Small computed numbers become INT, as in the reference.
fn fit_integer(ty: &mut DataType, digits_end: u32) {
    (ty.kind, ty.length) = match (ty.length < digits_end, ty.unsigned) {
        (true, true) => (TypeKind::Int, 10),
        (true, false) => (TypeKind::Int, 11),
        (false, _) => (TypeKind::BigInt, 20),
    };
}

/// A computed string becomes a TEXT or BLOB beyond `VARCHAR_MADE_MAX` characters.
fn fit_string(ty: &mut DataType, meta: &ColumnMeta) {
    let char_bytes =
        u32::from(charset::collation_or_binary(ty.collation).charset.max_length.max(1));
    let aggregated = meta.computed.is_none() && is_aggregated(ty);
    let bytes = ty.length.saturating_mul(if aggregated { 1 } else { char_bytes });
    let short = matches!(ty.kind, TypeKind::VarChar | TypeKind::VarBinary);
    let made = meta.computed.is_some() || meta.materialized;
    if short && (!made || ty.length <= VARCHAR_MADE_MAX) && bytes <= 65_535
        || matches!(ty.kind, TypeKind::Char | TypeKind::Binary)
    {
        return;
    }
    let fitted = short || meta.materialized || aggregated;
    let binary = ty.is_binary();
    (ty.kind, ty.length) = match (bytes, binary) {
        _ if !fitted && meta.computed.is_none() => return,
        (256..=65_535, true) if fitted => (TypeKind::Blob, 65_535),
        (256..=65_535, false) if fitted => (TypeKind::Text, 65_535),
        (0..=255, true) if fitted => (TypeKind::TinyBlob, 255),
        (0..=255, false) if fitted => (TypeKind::TinyText, 255),
        (65_536..=0xFF_FFFF, true) if fitted => (TypeKind::MediumBlob, 0xFF_FFFF),
        (65_536..=0xFF_FFFF, false) if fitted => (TypeKind::MediumText, 0xFF_FFFF),
        (_, true) => (TypeKind::LongBlob, u32::MAX),
        (_, false) => (TypeKind::LongText, u32::MAX),
    };
}

/// Whether a long string is built from many values, like that of GROUP_CONCAT.
fn is_aggregated(ty: &DataType) -> bool {
    matches!(ty.kind, TypeKind::LongText | TypeKind::LongBlob) && ty.length < u32::MAX
}
