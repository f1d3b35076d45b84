//! Column definitions: from syntax to the catalog's columns, with defaults converted and expressions checked.

use std::sync::Arc;

use catalog::{Check, Column, ColumnDefault, ColumnHistory, Generated, Medium, RecordFormat};
use errors::{Diagnostics, Error, ErrorCode, Level, Result, bail, err};
use syntax::ast::{self, ColumnAttribute, ExprKind};
use types::convert::{CastContext, StoreMode, store};
use types::{DataType, SqlMode, TypeKind, Value};

use crate::charsets::note_type_charset;
use crate::column_type::{TypeContext, column_type};
use crate::context::Context;
use crate::draft::{Draft, DraftColumn, DraftIndex, DraftPart};
use crate::expressions::{bind_over_columns, default_text, expression_text};
use crate::foreign_keys::foreign_key;
use crate::names::{check_column_name, is_too_long};

/// A built column, and the other parts of its definition.
pub struct BuiltColumn {
    pub(crate) column: DraftColumn,
    pub(crate) primary: bool,
    pub(crate) unique: bool,
    pub(crate) checks: Vec<ast::CheckDef>,
    pub(crate) references: Option<ast::References>,
}

/// The warning about FLOAT(m, d) and DOUBLE(m, d).
const FIXED_FLOAT: &str = "Specifying number of digits for floating point data types is deprecated \
                           and will be removed in a future release.";

const UNSIGNED_FRACTION: &str = "UNSIGNED for decimal and floating point data types is deprecated and support \
                                 for it will be removed in a future release.";

/// The warnings about a FLOAT or DOUBLE with fixed decimals, and about numbers with a fraction that are unsigned, from a query or a table.
pub(crate) fn note_deprecated_numbers(conditions: &mut Diagnostics, ty: &DataType) {
    let code = ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT;
    let is_float = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    if is_float && ty.decimals < types::NOT_FIXED_DECIMALS {
        conditions.push_error(Level::Warning, &Error::new(code, FIXED_FLOAT));
    }
    if ty.unsigned && (is_float || ty.kind == TypeKind::Decimal) {
        conditions.push_error(Level::Warning, &Error::new(code, UNSIGNED_FRACTION));
    }
}

/// Warns of deprecated parts of a column type.
fn warn_of_type(conditions: &mut Diagnostics, written: &ast::DataType) {
    use ast::TypeName::*;
    let is_integer = matches!(written.name, TinyInt | SmallInt | MediumInt | Int | BigInt);
    let is_float = matches!(written.name, Float | Double);
    let mut warn = |text: &str| {
        let error = Error::new(ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT, text);
        conditions.push_error(Level::Warning, &error);
    };
    if is_float && written.length.is_some() {
        warn(FIXED_FLOAT);
    }
    if written.zerofill {
        warn(
            "The ZEROFILL attribute is deprecated and will be removed in a future release. \
             Use the LPAD function to zero-pad numbers, or store the formatted numbers in a \
             CHAR column.",
        );
    }
    if written.unsigned && (is_float || written.name == Decimal) {
        warn(UNSIGNED_FRACTION);
    }
    if is_integer && written.length.is_some() {
        warn("Integer display width is deprecated and will be removed in a future release.");
    }
    if written.binary {
        let names: [&dyn std::fmt::Display; 2] =
            [&"BINARY as attribute of a type", &"a CHARACTER SET clause with _bin collation"];
        conditions.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &names);
    }
    if written.name == Year && written.length.is_some() {
        let names: [&dyn std::fmt::Display; 2] = [&"YEAR(4)", &"YEAR"];
        conditions.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &names);
    }
}

/// Reports that a VARCHAR or VARBINARY exceeds the maximum length.
fn note_conversion(
    conditions: &mut Diagnostics,
    column: &str,
    written: &ast::DataType,
    ty: &DataType,
) {
    let is_var = matches!(written.name, ast::TypeName::Varchar | ast::TypeName::Varbinary);
    if is_var && ty.is_blob() {
        let words = if ty.is_text() { ["VARCHAR", "TEXT"] } else { ["VARBINARY", "BLOB"] };
        conditions.note(ErrorCode::AUTO_CONVERT, &[&column, &words[0], &words[1]]);
    }
}

/// One column definition.
pub fn build_column(
    ctx: &mut dyn Context,
    draft: &Draft,
    definition: &ast::ColumnDef,
) -> Result<BuiltColumn> {
    let name = &*definition.name.text;
    check_column_name(name)?;
    let collate = definition.attributes.iter().find_map(|attribute| match attribute {
        ColumnAttribute::Collation(name) => Some(&*name.text),
        _ => None,
    });
    let types = TypeContext {
        table_collation: draft.declared_collation,
        collate,
        sql_mode: ctx.settings().sql_mode,
        enum_members_max: variables::as_u64(&ctx.variable("enum_max_values")) as usize,
        column: name,
    };
    let mut ty = column_type(&definition.data_type, &types)?;
    note_conversion(ctx.conditions(), name, &definition.data_type, &ty);
    note_type_charset(ctx.conditions(), &definition.data_type, collate);
    warn_of_type(ctx.conditions(), &definition.data_type);
    ty.nullable = true;
    let column = Column {
        name: name.into(),
        ty,
        stored: None,
        default: ColumnDefault::None,
        on_update_now: None,
        auto_increment: false,
        generated: None,
        invisible: false,
        comment: String::new(),
        collation_written: is_collation_written(&definition.data_type, collate),
        histogram: None,
        placement: catalog::Placement::default(),
        history: ColumnHistory::Kept,
    };
    let mut built = BuiltColumn {
        column: DraftColumn { column, origin: None, null_written: None, history_written: None },
        primary: false,
        unique: false,
        checks: Vec::new(),
        references: None,
    };
    if definition.data_type.name == ast::TypeName::Serial {
        built.column.null_written = Some(false);
        built.column.column.auto_increment = true;
        built.unique = true;
    }
    let mut default = None;
    for attribute in &definition.attributes {
        if let ColumnAttribute::Default { value, parenthesised } = attribute {
            default = Some((value, *parenthesised));
        } else {
            apply_attribute(ctx, &mut built, attribute)?;
        }
    }
    finish_column(ctx, &mut built, default)?;
    Ok(built)
}

fn apply_attribute(
    ctx: &mut dyn Context,
    built: &mut BuiltColumn,
    attribute: &ColumnAttribute,
) -> Result<()> {
    let column = &mut built.column.column;
    match attribute {
        ColumnAttribute::Null(nullable) => built.column.null_written = Some(*nullable),
        ColumnAttribute::Default { .. } | ColumnAttribute::Collation(_) => {}
        ColumnAttribute::OnUpdateNow(digits) => {
            let digits = digits.unwrap_or(0);
            let fits = matches!(column.ty.kind, TypeKind::DateTime | TypeKind::Timestamp)
                && u32::from(column.ty.decimals) == digits;
            if !fits {
                bail!(INVALID_ON_UPDATE, column.name);
            }
            column.on_update_now = Some(column.ty.decimals);
        }
        ColumnAttribute::AutoIncrement => {
            if !column.ty.is_integer() {
                bail!(WRONG_FIELD_SPEC, column.name);
            }
            column.auto_increment = true;
        }
        ColumnAttribute::PrimaryKey => built.primary = true,
        ColumnAttribute::Unique => built.unique = true,
        ColumnAttribute::Comment(text) => column.comment = text.to_string(),
        ColumnAttribute::Visible(visible) => column.invisible = !visible,
        ColumnAttribute::Generated { expr, stored } => {
            column.generated = Some(Generated {
                expression: expression_text(expr),
                stored: *stored,
                hidden: false,
                elements: None,
            });
        }
        ColumnAttribute::Check(check) => built.checks.push(check.clone()),
        ColumnAttribute::References(references) => {
            built.references = Some(references.clone());
        }
        ColumnAttribute::RowPeriod(is_start) => {
            column.history = match is_start {
                true => ColumnHistory::RowStart { declared: true },
                false => ColumnHistory::RowEnd { declared: true },
            };
            // As of a generated column.
            built.column.null_written = Some(false);
        }
        ColumnAttribute::SystemVersioning(is_kept) => {
            built.column.history_written = Some(*is_kept);
            if !is_kept {
                column.history = ColumnHistory::NotKept;
            }
        }
        ColumnAttribute::Srid(srid) => {
            if column.ty.kind != TypeKind::Geometry {
                bail!(WRONG_USAGE, "SRID", "non-geometry column");
            }
            let number =
                u32::try_from(*srid).map_err(|_| err!(DATA_OUT_OF_RANGE, "SRID", "SRID"))?;
            if ctx.catalog().reference_system(number).is_none() {
                bail!(SRS_NOT_FOUND, number);
            }
            column.ty.spatial.srid = Some(number);
        }
        ColumnAttribute::ColumnFormat(word) => {
            column.placement.format = match &*word.text.to_ascii_uppercase() {
                "FIXED" => Some(RecordFormat::Fixed),
                "DYNAMIC" => Some(RecordFormat::Dynamic),
                _ => None,
            };
            ignore_attribute(ctx, &column.name.clone());
        }
        ColumnAttribute::Storage(word) => {
            column.placement.medium = match &*word.text.to_ascii_uppercase() {
                "DISK" => Some(Medium::Disk),
                "MEMORY" => Some(Medium::Memory),
                _ => None,
            };
            ignore_attribute(ctx, &column.name.clone());
        }
        ColumnAttribute::EngineAttribute(_)
        | ColumnAttribute::SecondaryEngineAttribute(_)
        | ColumnAttribute::NotSecondary
        | ColumnAttribute::Compressed => {
            ignore_attribute(ctx, &column.name.clone());
        }
    }
    Ok(())
}

/// Notes that an attribute has no effect: every column is stored in one way.
fn ignore_attribute(ctx: &mut dyn Context, column: &str) {
    let what = format!("storage attribute of column {column}");
    ctx.conditions().note(errors::ErrorCode::OPTION_IGNORED, &[&what]);
}

/// Nullability and default, once all attributes are known.
fn finish_column(
    ctx: &mut dyn Context,
    built: &mut BuiltColumn,
    default: Option<(&ast::Expr, bool)>,
) -> Result<()> {
    let not_null = built.column.null_written == Some(false)
        || built.column.column.auto_increment
        || (built.primary && built.column.null_written.is_none());
    let is_implied = built.column.column.ty.kind == TypeKind::Timestamp
        && built.column.null_written.is_none()
        && crate::timestamps::are_implied(ctx);
    let column = &mut built.column.column;
    column.ty.nullable = !not_null && !is_implied;
    if column.is_computed() {
        if default.is_some() {
            bail!(WRONG_USAGE, "DEFAULT", "generated column");
        }
        if column.auto_increment {
            bail!(WRONG_USAGE, "AUTO_INCREMENT", "generated column");
        }
        if column.placement.medium.is_some() {
            bail!(WRONG_USAGE, "STORAGE", "generated column");
        }
        if column.placement.format.is_some() {
            bail!(WRONG_USAGE, "COLUMN_FORMAT", "generated column");
        }
        return Ok(());
    }
    let Some((expr, parenthesised)) = default else {
        column.default = if column.ty.nullable {
            ColumnDefault::Constant(Value::Null)
        } else {
            ColumnDefault::None
        };
        return Ok(());
    };
    if !parenthesised && matches!(expr.kind, ExprKind::Literal(ast::Literal::Null)) {
        // As if NULL were written.
        built.column.null_written.get_or_insert(true);
    }
    let name = column.name.clone();
    if column.auto_increment {
        bail!(INVALID_DEFAULT, name);
    }
    let ty = column.ty.clone();
    column.default = column_default(ctx, &name, &ty, expr, parenthesised)?;
    Ok(())
}

/// DEFAULT of a column of type `ty`.
pub(crate) fn column_default(
    ctx: &mut dyn Context,
    name: &str,
    ty: &DataType,
    expr: &ast::Expr,
    parenthesised: bool,
) -> Result<ColumnDefault> {
    if let Some(digits) = current_timestamp(expr) {
        let temporal = matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
        if temporal && u64::from(ty.decimals) == digits {
            return Ok(ColumnDefault::Now(ty.decimals));
        }
        if !parenthesised {
            bail!(INVALID_DEFAULT, name);
        }
    }
    let uses_sequence = matches!(expr.kind, ExprKind::NextValue(_) | ExprKind::PreviousValue(_));
    if parenthesised || uses_sequence {
        return Ok(ColumnDefault::Expression(default_text(ctx, expr)));
    }
    let (value, from) = ctx.evaluate(expr)?;
    if value.is_null() {
        if !ty.nullable {
            bail!(INVALID_DEFAULT, name);
        }
        return Ok(ColumnDefault::Constant(Value::Null));
    }
    if ty.is_blob() {
        let is_empty = matches!(&value, Value::Bytes(bytes) if bytes.is_empty());
        let is_bytes = !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry);
        if ctx.settings().sql_mode.is_strict() || !is_empty || !is_bytes {
            bail!(BLOB_CANT_HAVE_DEFAULT, name);
        }
        ctx.conditions().warn(errors::ErrorCode::BLOB_CANT_HAVE_DEFAULT, &[&name]);
        return Ok(ColumnDefault::None);
    }
    // A member is named, not numbered.
    if ty.is_enum_or_set() && !matches!(value, Value::Bytes(_)) {
        bail!(INVALID_DEFAULT, name);
    }
    let (value, from) = match binder::number_of_bits(expr).filter(|_| ty.is_numeric()) {
        Some(number) => (Value::UInt(number), DataType::bigint_unsigned()),
        None => (value, from),
    };
    let value = convert_default(ctx, name, ty, &value, &from)?;
    Ok(ColumnDefault::Constant(value))
}

/// A constant in the column's type; 1067 when it does not fit. Without strict mode a date that NO_ZERO_DATE or NO_ZERO_IN_DATE refuses is
/// the zero date, with a warning.
fn convert_default(
    ctx: &mut dyn Context,
    name: &str,
    ty: &DataType,
    value: &Value,
    from: &DataType,
) -> Result<Value> {
    let mode = ctx.settings().sql_mode;
    let fitted = fit_default(ctx, name, ty, (value, from), mode);
    if fitted.is_ok() || mode.is_strict() {
        return fitted;
    }
    let zero = if ty.kind == TypeKind::Date {
        Value::Date(types::Date::ZERO)
    } else if matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp) {
        Value::DateTime(types::DateTime::ZERO)
    } else {
        return fitted;
    };
    let zeros = mode.without(SqlMode::NO_ZERO_DATE).without(SqlMode::NO_ZERO_IN_DATE);
    // A TIMESTAMP has the zero date and no other with zeros.
    let as_date = DataType::new(TypeKind::DateTime, 26, 6);
    fit_default(ctx, name, &as_date, (value, from), zeros)?;
    ctx.conditions().warn(errors::ErrorCode::WARN_DATA_OUT_OF_RANGE, &[&name, &1]);
    Ok(zero)
}

fn fit_default(
    ctx: &mut dyn Context,
    name: &str,
    ty: &DataType,
    (value, from): (&Value, &DataType),
    mode: SqlMode,
) -> Result<Value> {
    let mut conditions = Diagnostics::default();
    let settings = ctx.settings();
    let mut cast = CastContext::new(mode, &mut conditions);
    cast.column = name;
    cast.time_zone = &*settings.time_zone;
    let converted = store(value, from, ty, &mut cast, StoreMode::Strict)
        .map_err(|_| err!(INVALID_DEFAULT, name))?;
    // An old way to write a time is still the same time.
    let is_style = |code: errors::ErrorCode| matches!(code.0, 4095 | 4096);
    let changed = |found: &errors::Condition| found.level != Level::Note && !is_style(found.code);
    if conditions.conditions().iter().any(changed) {
        bail!(INVALID_DEFAULT, name);
    }
    conditions.conditions().iter().for_each(|found| ctx.conditions().push(found.clone()));
    Ok(converted)
}

/// Adds a built column, with its indexes and constraints, to a draft.
pub fn add_built_column(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    built: BuiltColumn,
    position: usize,
) -> Result<()> {
    let name = built.column.column.name.clone();
    draft.columns.insert(position, built.column);
    add_column_extras(
        ctx,
        draft,
        &name,
        built.primary,
        built.unique,
        &built.checks,
        built.references.as_ref(),
    )
}

/// Keys, checks and references in a column definition.
pub(crate) fn add_column_extras(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    name: &Arc<str>,
    primary: bool,
    unique: bool,
    checks: &[ast::CheckDef],
    references: Option<&ast::References>,
) -> Result<()> {
    let part = DraftPart { column: name.clone(), prefix_length: None, descending: false };
    for (wanted, primary) in [(primary, true), (unique, false)] {
        if wanted {
            draft.indexes.push(DraftIndex::of_column(part.clone(), primary));
        }
    }
    for check in checks {
        add_check(ctx, draft, check, Some(name))?;
    }
    if let Some(references) = references {
        let key = foreign_key(None, std::slice::from_ref(name), references, draft)?;
        draft.add_foreign_key(key, None)?;
    }
    Ok(())
}

/// CHECK; its expression is bound when the table is complete. That of a `column` may read this column only.
pub(crate) fn add_check(
    ctx: &mut dyn Context,
    draft: &mut Draft,
    check: &ast::CheckDef,
    column: Option<&str>,
) -> Result<()> {
    let name: Option<Arc<str>> = check.name.as_ref().map(|name| Arc::from(&*name.text));
    if let Some(name) = &name
        && is_too_long(name)
    {
        bail!(TOO_LONG_IDENT, name);
    }
    let expression = expression_text(&check.expr);
    let enforced = check.enforced.unwrap_or(true);
    let own = column.and_then(|name| draft.column(name)).map(|at| &draft.columns[at]);
    let reads_others = own.is_some_and(|own| {
        let bound = bind_over_columns(ctx, std::slice::from_ref(own), &expression);
        bound.is_err_and(|error| error.code() == ErrorCode::BAD_FIELD_ERROR)
    });
    draft.checks.push((name, Check { name: Arc::from(""), expression, enforced }));
    let shown = || draft.last_check_name();
    if reads_others {
        bail!(COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN, shown());
    }
    if !unparse::is_predicate(&check.expr) {
        bail!(NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT, shown());
    }
    Ok(())
}

/// Whether a definition names a character set or a collation.
fn is_collation_written(written: &ast::DataType, collate: Option<&str>) -> bool {
    written.charset.is_some() || written.binary || collate.is_some()
}

/// The digits of `CURRENT_TIMESTAMP[(n)]` and its synonyms.
fn current_timestamp(expr: &ast::Expr) -> Option<u64> {
    let ExprKind::Function(call) = &expr.kind else { return None };
    if !call.is_now() {
        return None;
    }
    match call.args.as_slice() {
        [] => Some(0),
        [ast::Expr { kind: ExprKind::Literal(ast::Literal::Integer(digits)), .. }] => Some(*digits),
        _ => None,
    }
}
