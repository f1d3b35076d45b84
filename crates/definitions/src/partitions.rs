//! PARTITION BY: from the statement to the catalog's partitioning, with its errors; the hidden column that holds each row's number.

use std::collections::HashSet;
use std::sync::Arc;

use binder::Disallowed;
use catalog::{
    Column, ColumnDefault, Generated, PARTITION_COLUMN, Partition, PartitionKind, PartitionMethod,
    PartitionValue, Partitioning, Rotation, same_name,
};
use errors::{Diagnostics, Error, ErrorCode, Level, Result, bail, err};
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use syntax::ast::{self, Ident, PartitionDef, PartitionOption, PartitionValues};
use types::convert::{CastContext, StoreMode, store};
use types::partition::tuple_key;
use types::{DataType, FunctionRole, PartitionUse, TypeKind, Value};
use variables::Settings;

use crate::context::Context;
use crate::draft::{Draft, DraftColumn};
use crate::engines::engine_choice;
use crate::expressions::{bind_over_columns, bind_qualified, expression_text, in_place};
use crate::names::is_too_long;
use crate::quoting::{literal, quote};
use crate::system_partitions;

/// Maximum number of partitions of a table, subpartitions included.
pub(crate) const PARTITIONS_MAX: u64 = 8192;
/// Maximum number of columns of KEY and COLUMNS.
const COLUMNS_MAX: usize = 16;
/// Maximum length of a partition comment in characters.
const COMMENT_MAX: usize = 1024;

/// The name of a method in messages.
pub(crate) fn word(kind: PartitionKind) -> &'static str {
    match kind {
        PartitionKind::Range => "RANGE",
        PartitionKind::List => "LIST",
        PartitionKind::Hash => "HASH",
        PartitionKind::Key => "KEY",
        PartitionKind::SystemTime => "SYSTEM_TIME",
    }
}

/// Builds the partitioning of a draft from its PARTITION BY clause.
pub fn build_partitioning(
    ctx: &mut dyn Context,
    draft: &Draft,
    written: &ast::Partitioning,
) -> Result<Partitioning> {
    let method = partition_method(ctx, draft, &written.method)?;
    let by_time = method.kind == PartitionKind::SystemTime;
    let by_value = matches!(method.kind, PartitionKind::Range | PartitionKind::List);
    let sub = match &written.subpartition {
        Some(_) if !by_value && !by_time => bail!(SUBPARTITION_ERROR),
        Some(sub) => Some(partition_method(ctx, draft, sub)?),
        None => None,
    };
    if by_value && written.partitions.is_empty() {
        bail!(PARTITIONS_MUST_BE_DEFINED_ERROR, word(method.kind));
    }
    if written.count == Some(0) {
        bail!(NO_PARTS_ERROR, "partitions");
    }
    if written.subpartition_count == Some(0) {
        bail!(NO_PARTS_ERROR, "subpartitions");
    }
    let listed = !written.partitions.is_empty();
    let count = match written.count {
        Some(count) if listed && count != written.partitions.len() as u64 => {
            bail!(PARTITION_WRONG_NO_PART_ERROR)
        }
        Some(count) => count,
        None if by_time && !listed => 2,
        None => (written.partitions.len() as u64).max(1),
    };
    if by_time {
        system_partitions::check_listed(draft, written)?;
    }
    let sub_listed = written.partitions.iter().any(|own| !own.subpartitions.is_empty());
    let first = written.partitions.first().map_or(0, |own| own.subpartitions.len());
    let sub_count = match (&sub, written.subpartition_count) {
        (None, _) if sub_listed => bail!(SUBPARTITION_ERROR),
        (None, _) => 0,
        (Some(_), Some(count)) => count,
        (Some(_), None) => first.max(1) as u64,
    };
    let uneven = |own: &PartitionDef| own.subpartitions.len() as u64 != sub_count;
    if sub_listed && written.partitions.iter().any(uneven) {
        bail!(PARTITION_WRONG_NO_SUBPART_ERROR);
    }
    if count.saturating_mul(sub_count.max(1)) > PARTITIONS_MAX {
        bail!(TOO_MANY_PARTITIONS_ERROR);
    }
    let mut partitioning = Partitioning {
        method,
        sub,
        partitions: Vec::with_capacity(count as usize),
        listed,
        sub_listed,
    };
    if listed {
        for definition in &written.partitions {
            let built = build_partition(ctx, draft, &partitioning, definition)?;
            partitioning.partitions.push(built);
        }
    } else if by_time {
        partitioning.partitions.extend(system_partitions::unlisted(count));
    } else {
        let places = 0..count;
        partitioning.partitions.extend(places.map(|place| unnamed(format!("p{place}"))));
    }
    name_subpartitions(&mut partitioning, sub_count as usize);
    partitioning.renumber();
    check_names(&partitioning)?;
    check_values(draft, &partitioning)?;
    system_partitions::check_rotation(&partitioning)?;
    system_partitions::set_ends(ctx, draft, &mut partitioning)?;
    Ok(partitioning)
}

/// 1054 for columns that are qualified with another table's name. ALTER TABLE does not check this, as in the reference.
pub fn check_partition_qualifiers(
    ctx: &dyn Context,
    draft: &Draft,
    written: &ast::Partitioning,
) -> Result<()> {
    use ast::PartitionMethod as M;
    for method in [Some(&written.method), written.subpartition.as_ref()].into_iter().flatten() {
        let (M::Hash { expr, .. } | M::Range(expr) | M::List(expr)) = method else { continue };
        match bind_qualified(ctx, draft, expr) {
            Err(error) if error.code() == ErrorCode::BAD_FIELD_ERROR => {
                return Err(in_place(&error, "partition function"));
            }
            // Anything else is found again when the method is built, in its order.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

fn partition_method(
    ctx: &mut dyn Context,
    draft: &Draft,
    written: &ast::PartitionMethod,
) -> Result<PartitionMethod> {
    let by = |kind, linear| PartitionMethod {
        kind,
        linear,
        algorithm_one: false,
        expression: None,
        columns: Vec::new(),
        rotation: Rotation::default(),
    };
    use ast::PartitionMethod as M;
    Ok(match written {
        M::Hash { linear, expr } => {
            let expression = Some(partition_expression(ctx, draft, expr)?);
            PartitionMethod { expression, ..by(PartitionKind::Hash, *linear) }
        }
        M::Range(expr) | M::List(expr) => {
            let is_range = matches!(written, M::Range(_));
            let kind = if is_range { PartitionKind::Range } else { PartitionKind::List };
            let expression = Some(partition_expression(ctx, draft, expr)?);
            PartitionMethod { expression, ..by(kind, false) }
        }
        M::Key { linear, algorithm, columns } => {
            let columns = partition_columns(draft, columns, PartitionKind::Key)?;
            let algorithm_one = *algorithm == Some(1);
            PartitionMethod { columns, algorithm_one, ..by(PartitionKind::Key, *linear) }
        }
        M::RangeColumns(columns) | M::ListColumns(columns) => {
            let is_range = matches!(written, M::RangeColumns(_));
            let kind = if is_range { PartitionKind::Range } else { PartitionKind::List };
            let columns = partition_columns(draft, columns, kind)?;
            PartitionMethod { columns, ..by(kind, false) }
        }
        M::SystemTime { interval, starts, limit, auto } => {
            let (interval, starts) = (interval.as_ref(), starts.as_ref());
            let (limit, auto) = (*limit, *auto);
            let written = system_partitions::Written { interval, starts, limit, auto };
            system_partitions::method(ctx, draft, &written)?
        }
    })
}

/// Characters of a partition's expression in canonical form.
const EXPRESSION_CHARS_MAX: usize = 2048;

/// Text of an expression, and whether it is unsigned; 1486, 1491, 1564, 1659 for those that are not allowed.
fn partition_expression(
    ctx: &dyn Context,
    draft: &Draft,
    expr: &ast::Expr,
) -> Result<(Arc<str>, bool)> {
    let text = expression_text(expr);
    let bound = match bind_over_columns(ctx, &draft.columns, &text) {
        Err(error) => return Err(in_place(&error, "partition function")),
        Ok(bound) => bound,
    };
    let on_timestamp = matches!(
        &bound.disallowed,
        Some(Disallowed::Function(function)) if function.is(FunctionRole::UnixTimestamp)
    );
    if bound.columns.is_empty() || bound.disallowed.is_some() && !on_timestamp {
        bail!(WRONG_EXPR_IN_PARTITION_FUNC_ERROR);
    }
    check_function(&bound.expr, false)?;
    if text.chars().count() > EXPRESSION_CHARS_MAX {
        bail!(PARTITION_EXPR_TOO_LONG);
    }
    let ty = bound.expr.ty();
    let is_integer = ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit);
    if !is_integer {
        if bound.expr.as_column().is_some() {
            let name = &draft.columns[bound.columns[0]].column.name;
            bail!(FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD, name);
        }
        bail!(PARTITION_FUNC_NOT_ALLOWED_ERROR, "PARTITION");
    }
    Ok((text, ty.unsigned))
}

/// One partition with its values; subpartitions as far as they are listed.
pub(crate) fn build_partition(
    ctx: &mut dyn Context,
    draft: &Draft,
    partitioning: &Partitioning,
    definition: &PartitionDef,
) -> Result<Partition> {
    let method = &partitioning.method;
    let mut partition = unnamed(definition.name.text.to_string());
    let wrong =
        |kind: PartitionKind, clause: &str| err!(PARTITION_WRONG_VALUES_ERROR, word(kind), clause);
    partition.values = match (&definition.values, method.kind) {
        (PartitionValues::LessThan(values), PartitionKind::Range) => {
            vec![partition_tuple(ctx, draft, method, values, definition)?]
        }
        (PartitionValues::In(rows), PartitionKind::List) => {
            let mut tuples = Vec::with_capacity(rows.len());
            for row in rows {
                if row.iter().any(Option::is_none) {
                    bail!(MAXVALUE_IN_VALUES_IN);
                }
                tuples.push(partition_tuple(ctx, draft, method, row, definition)?);
            }
            if method.expression.is_some() {
                // NULL is shown first.
                tuples.sort_by_key(|tuple| tuple[0].value != Some(Value::Null));
            }
            tuples
        }
        (PartitionValues::None, PartitionKind::Hash | PartitionKind::Key)
        | (PartitionValues::History | PartitionValues::Current, PartitionKind::SystemTime) => {
            Vec::new()
        }
        (PartitionValues::None, PartitionKind::SystemTime) => {
            bail!(PARTITION_WRONG_TYPE, "HASH", "SYSTEM_TIME")
        }
        (PartitionValues::None, PartitionKind::Range) => {
            bail!(PARTITION_REQUIRES_VALUES_ERROR, "RANGE", "LESS THAN")
        }
        (PartitionValues::None, PartitionKind::List) => {
            bail!(PARTITION_REQUIRES_VALUES_ERROR, "LIST", "IN")
        }
        (PartitionValues::LessThan(_), _) => {
            return Err(wrong(PartitionKind::Range, "LESS THAN"));
        }
        (PartitionValues::In(_), _) => return Err(wrong(PartitionKind::List, "IN")),
        (PartitionValues::History | PartitionValues::Current, kind) => {
            bail!(PARTITION_WRONG_TYPE, "SYSTEM_TIME", word(kind))
        }
        (PartitionValues::Default, _) => {
            return Err(Error::not_supported("DEFAULT partitions"));
        }
    };
    partition_options(ctx, &mut partition, &definition.options)?;
    for (name, options) in &definition.subpartitions {
        let mut sub = unnamed(name.text.to_string());
        partition_options(ctx, &mut sub, options)?;
        partition.subpartitions.push((sub.name, sub.comment));
    }
    Ok(partition)
}

fn partition_options(
    ctx: &mut dyn Context,
    partition: &mut Partition,
    options: &[PartitionOption],
) -> Result<()> {
    for option in options {
        match option {
            PartitionOption::Engine(name) => {
                engine_choice(&ctx.engines(), &name.text)?;
            }
            PartitionOption::Comment(text) => {
                if text.chars().count() > COMMENT_MAX {
                    bail!(TOO_LONG_TABLE_PARTITION_COMMENT, partition.name, COMMENT_MAX);
                }
                partition.comment = text.to_string();
            }
            PartitionOption::MaxRows(rows) => {
                partition.options.push(("MAX_ROWS".into(), rows.to_string()));
            }
            PartitionOption::MinRows(rows) => {
                partition.options.push(("MIN_ROWS".into(), rows.to_string()));
            }
            PartitionOption::Tablespace(name) => {
                let shown = crate::tablespaces::of_partition(ctx, &name.text)?;
                partition.options.push((crate::tablespaces::OPTION.into(), shown));
            }
            // The engine decides where rows are stored.
            PartitionOption::DataDirectory(_)
            | PartitionOption::IndexDirectory(_)
            | PartitionOption::Nodegroup(_) => {}
        }
    }
    Ok(())
}

fn partition_tuple(
    ctx: &mut dyn Context,
    draft: &Draft,
    method: &PartitionMethod,
    values: &[Option<ast::Expr>],
    definition: &PartitionDef,
) -> Result<Vec<PartitionValue>> {
    let is_list = method.kind == PartitionKind::List;
    if method.expression.is_some() && values.len() != 1 {
        if is_list {
            bail!(ROW_SINGLE_PARTITION_FIELD_ERROR);
        }
        bail!(TOO_MANY_VALUES_ERROR, "RANGE");
    }
    if method.expression.is_none() && values.len() != method.columns.len() {
        bail!(PARTITION_COLUMN_LIST_ERROR);
    }
    let mut evaluated = Vec::with_capacity(values.len());
    for value in values {
        evaluated.push(match value {
            Some(expr) => {
                let found = ctx.evaluate(expr);
                Some(found.map_err(|error| in_place(&error, "partition function"))?)
            }
            None => None,
        });
    }
    typed_tuple(ctx, draft, method, evaluated, &definition.name.text)
}

/// Values in the types of the columns or the expression; `None` is MAXVALUE.
fn typed_tuple(
    ctx: &dyn Context,
    draft: &Draft,
    method: &PartitionMethod,
    values: Vec<Option<(Value, DataType)>>,
    partition: &str,
) -> Result<Vec<PartitionValue>> {
    let mut tuple = Vec::with_capacity(values.len());
    for (at, value) in values.into_iter().enumerate() {
        let Some((value, from)) = value else {
            tuple.push(PartitionValue { value: None, text: "MAXVALUE".into() });
            continue;
        };
        tuple.push(match &method.expression {
            Some((_, unsigned)) => integer_value(value, &from, *unsigned, method.kind, partition)?,
            None => {
                let name = &method.columns[at];
                let column = draft.column(name).map(|at| &draft.columns[at].column);
                let column = column.ok_or_else(|| err!(FIELD_NOT_FOUND_PART_ERROR))?;
                column_value(ctx.settings(), value, &from, column, method.kind)?
            }
        });
    }
    Ok(tuple)
}

/// A value of COLUMNS in its column's type; 1654.
fn column_value(
    settings: &Settings,
    value: Value,
    from: &DataType,
    column: &Column,
    kind: PartitionKind,
) -> Result<PartitionValue> {
    if value.is_null() {
        if kind == PartitionKind::Range {
            bail!(NULL_IN_VALUES_LESS_THAN);
        }
        return Ok(PartitionValue { value: Some(Value::Null), text: "NULL".into() });
    }
    let ty = &column.ty;
    let fits = if ty.is_integer() {
        from.is_integer()
    } else if ty.is_string() || ty.as_fixed().is_some() {
        from.is_string()
    } else {
        from.is_string() || from.is_temporal()
    };
    if !fits {
        bail!(WRONG_TYPE_COLUMN_VALUE_ERROR);
    }
    let mut conditions = Diagnostics::default();
    let mut cast = CastContext::new(settings.sql_mode, &mut conditions);
    cast.column = &column.name;
    cast.time_zone = &*settings.time_zone;
    let target = ty.clone().with_nullable(true);
    let stored = store(&value, from, &target, &mut cast, StoreMode::Strict);
    let stored = stored.map_err(|_| err!(WRONG_TYPE_COLUMN_VALUE_ERROR))?;
    if conditions.count(Level::Warning) + conditions.count(Level::Error) > 0 {
        bail!(WRONG_TYPE_COLUMN_VALUE_ERROR);
    }
    let text = match &stored {
        Value::Bytes(bytes) if ty.is_binary() => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
            format!("_binary 0x{hex}")
        }
        stored if ty.is_integer() => shown(stored, ty),
        stored if ty.as_fixed().is_some() => literal(&shown(stored, ty)),
        _ => literal(&shown(&value, from)),
    };
    Ok(PartitionValue { value: Some(stored), text: text.into() })
}

/// Values converted to the columns' present types.
pub(crate) fn renew_partition_values(ctx: &mut dyn Context, draft: &mut Draft) -> Result<()> {
    let Some(mut partitioning) = draft.partitioning.take() else { return Ok(()) };
    for method in [Some(&mut partitioning.method), partitioning.sub.as_mut()] {
        if let Some((text, unsigned)) = method.and_then(|method| method.expression.as_mut()) {
            *unsigned = bind_over_columns(ctx, &draft.columns, text)?.expr.ty().unsigned;
        }
    }
    let method = partitioning.method.clone();
    let by_time = partitioning.by_system_time();
    for partition in partitioning.partitions.iter_mut().filter(|_| !by_time) {
        for tuple in &mut partition.values {
            *tuple = renewed_tuple(ctx, draft, &method, tuple, &partition.name)?;
        }
    }
    check_values(draft, &partitioning)?;
    draft.partitioning = Some(partitioning);
    Ok(())
}

fn renewed_tuple(
    ctx: &mut dyn Context,
    draft: &Draft,
    method: &PartitionMethod,
    tuple: &[PartitionValue],
    partition: &str,
) -> Result<Vec<PartitionValue>> {
    let mut values = Vec::with_capacity(tuple.len());
    for bound in tuple {
        if bound.value.is_none() {
            values.push(None);
            continue;
        }
        let sql = format!("DO {}", bound.text);
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default());
        let Ok((syntax::Statement::Do(items), _)) = parsed else {
            return Err(Error::internal("a partition's value was not read back"));
        };
        let Some(ast::SelectItemKind::Expr { expr, .. }) = items.into_iter().next().map(|i| i.kind)
        else {
            return Err(Error::internal("a partition's value was not read back"));
        };
        values.push(Some(ctx.evaluate_kept(&expr, &sql)?));
    }
    typed_tuple(ctx, draft, method, values, partition)
}

/// 1503, 1506, 1562: features that a partitioned table may not have.
pub fn check_partitioned(ctx: &dyn Context, draft: &Draft) -> Result<()> {
    let Some(partitioning) = &draft.partitioning else { return Ok(()) };
    if draft.temporary {
        bail!(PARTITION_NO_TEMPORARY);
    }
    crate::tablespaces::check_partitioned(draft)?;
    if !draft.foreign_keys.is_empty() {
        bail!(FOREIGN_KEY_ON_PARTITIONED);
    }
    let mut used = partition_reads(ctx, draft, &resolved(draft, partitioning)?)?;
    if partitioning.by_system_time() {
        // The end of the row is in each unique key.
        used.remove(0);
    }
    let is_time = |name: &Arc<str>| {
        draft.column(name).is_some_and(|at| draft.columns[at].column.history.is_time())
    };
    if used.iter().any(is_time) {
        return Err(Error::not_supported("partitions by the times of rows"));
    }
    for index in draft.indexes.iter().filter(|index| index.unique || index.primary) {
        let has = |name: &Arc<str>| {
            index.parts.iter().any(|part| {
                let column = draft.column(&part.column).map(|at| &draft.columns[at].column.ty);
                let whole = part.prefix_length.is_none_or(|length| {
                    column.is_some_and(|ty| !ty.is_blob() && length >= u64::from(ty.length))
                });
                whole && same_name(&part.column, name)
            })
        };
        if !used.iter().all(has) {
            let what = if index.primary { "PRIMARY KEY" } else { "UNIQUE INDEX" };
            bail!(UNIQUE_KEY_NEED_ALL_FIELDS_IN_PF, what);
        }
    }
    Ok(())
}

/// Names of the columns that a row's partition depends on.
pub(crate) fn partition_reads(
    ctx: &dyn Context,
    draft: &Draft,
    partitioning: &Partitioning,
) -> Result<Vec<Arc<str>>> {
    let mut used: Vec<Arc<str>> = partitioning.column_names().cloned().collect();
    for method in [Some(&partitioning.method), partitioning.sub.as_ref()].into_iter().flatten() {
        if let Some((text, _)) = &method.expression {
            let bound = bind_over_columns(ctx, &draft.columns, text)?;
            let names = bound.columns.iter().map(|at| draft.columns[*at].column.name.clone());
            used.extend(names);
        }
    }
    Ok(used)
}

/// A partition without values.
pub(crate) fn unnamed(name: String) -> Partition {
    Partition {
        number: 0,
        name: name.into(),
        values: Vec::new(),
        comment: String::new(),
        options: Vec::new(),
        subpartitions: Vec::new(),
    }
}

fn shown(value: &Value, ty: &DataType) -> String {
    let mut text = Vec::new();
    types::to_text(value, ty, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// A value of RANGE and LIST over an expression; 1563, 1566, 1697.
fn integer_value(
    value: Value,
    from: &DataType,
    unsigned: bool,
    kind: PartitionKind,
    partition: &str,
) -> Result<PartitionValue> {
    let value = match value {
        Value::Null if kind == PartitionKind::Range => bail!(NULL_IN_VALUES_LESS_THAN),
        Value::Null => return Ok(PartitionValue { value: Some(value), text: "NULL".into() }),
        Value::Int(number) if unsigned => {
            let number = u64::try_from(number).map_err(|_| err!(PARTITION_CONST_DOMAIN_ERROR))?;
            Value::UInt(number)
        }
        Value::UInt(number) if !unsigned => {
            let number = i64::try_from(number).map_err(|_| err!(PARTITION_CONST_DOMAIN_ERROR))?;
            Value::Int(number)
        }
        Value::Int(_) | Value::UInt(_) if from.is_integer() => value,
        _ => bail!(VALUES_IS_NOT_INT_TYPE_ERROR, partition),
    };
    let text = match &value {
        Value::UInt(number) => number.to_string(),
        Value::Int(number) => number.to_string(),
        _ => String::new(),
    };
    Ok(PartitionValue { value: Some(value), text: text.into() })
}

/// 1486 and 1564 for functions that a partition expression may not contain. A TIMESTAMP may be read by UNIX_TIMESTAMP only: every other
/// function would depend on the time zone.
fn check_function(expr: &Expr, in_timestamp: bool) -> Result<()> {
    let each = |args: &[&Expr]| args.iter().try_for_each(|arg| check_function(arg, false));
    match expr {
        Expr::Column { .. } | Expr::Literal { .. } => Ok(()),
        Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. } => {
            if !in_timestamp {
                bail!(WRONG_EXPR_IN_PARTITION_FUNC_ERROR);
            }
            check_function(operand, false)
        }
        Expr::Cast { operand, .. } => check_function(operand, in_timestamp),
        Expr::Unary { op: UnaryOp::Negate, operand, .. } => each(&[operand]),
        Expr::Binary {
            op:
                BinaryOp::Add
                | BinaryOp::Subtract
                | BinaryOp::Multiply
                | BinaryOp::IntegerDivide
                | BinaryOp::Modulo,
            left,
            right,
            ..
        } => each(&[left, right]),
        Expr::Function { function, args, .. }
            if function.traits.partition != PartitionUse::Refused =>
        {
            let in_timestamp = function.traits.partition == PartitionUse::Timestamp;
            if !takes(function.traits.partition, args) {
                bail!(WRONG_EXPR_IN_PARTITION_FUNC_ERROR);
            }
            args.iter().try_for_each(|arg| check_function(arg, in_timestamp))
        }
        _ => Err(err!(PARTITION_FUNCTION_IS_NOT_ALLOWED)),
    }
}

/// Whether a function of time reads columns of the types that it needs: a text, or a date without a time, would be converted by the
/// rules of the session.
fn takes(partition: PartitionUse, args: &[Expr]) -> bool {
    let unit = args.iter().find_map(|arg| match arg {
        Expr::Literal { value: Value::Bytes(text), .. } => std::str::from_utf8(text).ok(),
        _ => None,
    });
    let (date, time) = match partition {
        PartitionUse::Refused => return false,
        PartitionUse::Any => return true,
        PartitionUse::Timestamp => (false, false),
        PartitionUse::Date | PartitionUse::DateOnly => (true, false),
        PartitionUse::Time => (false, true),
        PartitionUse::ByUnit => {
            let Some(unit) = unit else { return true };
            // Names of units, whole or as a part of one like DAY_HOUR.
            let unit = unit.to_ascii_uppercase();
            let with_time = ["HOUR", "MINUTE", "SECOND", "MICROSECOND"];
            let time = with_time.iter().any(|part| unit.contains(part));
            (!time || unit.starts_with("DAY_"), time)
        }
    };
    args.iter().all(|arg| {
        let Some(ty) = column_type_of(arg) else { return partition != PartitionUse::DateOnly };
        match ty.kind {
            TypeKind::Timestamp => partition == PartitionUse::Timestamp,
            TypeKind::DateTime => date || time,
            TypeKind::Date => date && !time,
            TypeKind::Time => time && !date,
            _ => false,
        }
    })
}

/// The type of the column that an argument is, converted or not.
fn column_type_of(expr: &Expr) -> Option<&DataType> {
    match expr {
        Expr::Column { ty, .. } => Some(ty),
        Expr::Cast { operand, .. } => column_type_of(operand),
        _ => None,
    }
}

/// The columns of KEY and COLUMNS; 1488, 1502, 1652, 1655, 1659.
fn partition_columns(
    draft: &Draft,
    written: &[Ident],
    kind: PartitionKind,
) -> Result<Vec<Arc<str>>> {
    let mut columns: Vec<Arc<str>> = Vec::with_capacity(written.len());
    for name in written {
        let at = draft.column(&name.text).ok_or_else(|| err!(FIELD_NOT_FOUND_PART_ERROR))?;
        let column = &draft.columns[at].column;
        if columns.iter().any(|known| same_name(known, &name.text)) {
            bail!(SAME_NAME_PARTITION_FIELD, name.text);
        }
        let ty = &column.ty;
        if ty.is_blob() || matches!(ty.kind, TypeKind::Json | TypeKind::Geometry | TypeKind::Vector)
        {
            bail!(BLOB_FIELD_IN_PART_FUNC_ERROR);
        }
        let is_listed = ty.is_integer()
            || ty.is_string()
            || ty.as_fixed().is_some()
            || matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Time);
        if kind != PartitionKind::Key && !is_listed {
            bail!(FIELD_TYPE_NOT_ALLOWED_AS_PARTITION_FIELD, column.name);
        }
        columns.push(column.name.clone());
    }
    if columns.len() > COLUMNS_MAX {
        bail!(TOO_MANY_PARTITION_FUNC_FIELDS_ERROR, "list of partition fields");
    }
    Ok(columns)
}

/// Generates names of subpartitions that were not listed.
pub(crate) fn name_subpartitions(partitioning: &mut Partitioning, count: usize) {
    for partition in &mut partitioning.partitions {
        for place in partition.subpartitions.len()..count {
            let name = format!("{}sp{place}", partition.name).into();
            partition.subpartitions.push((name, String::new()));
        }
    }
}

/// 1517, 1059, 1567.
pub(crate) fn check_names(partitioning: &Partitioning) -> Result<()> {
    let mut taken = HashSet::new();
    for partition in &partitioning.partitions {
        let subs = partition.subpartitions.iter().map(|(name, _)| name);
        for name in std::iter::once(&partition.name).chain(subs) {
            if name.is_empty() || name.ends_with(' ') {
                bail!(WRONG_PARTITION_NAME);
            }
            if is_too_long(name) {
                bail!(TOO_LONG_IDENT, name);
            }
            if !taken.insert(name.to_lowercase()) {
                bail!(SAME_NAME_PARTITION, name);
            }
        }
    }
    Ok(())
}

/// 1481, 1493, 1495: bounds must grow, and no value may be listed twice.
pub(crate) fn check_values(draft: &Draft, partitioning: &Partitioning) -> Result<()> {
    let method = &partitioning.method;
    let types: Vec<DataType> = match &method.expression {
        Some((_, unsigned)) => vec![catalog::integer_type(*unsigned)],
        None => method.columns.iter().filter_map(|name| type_of(draft, name)).collect(),
    };
    let key = |tuple: &[PartitionValue]| {
        let mut key = Vec::new();
        for (bound, ty) in tuple.iter().zip(&types) {
            match &bound.value {
                Some(value) => key.extend(tuple_key([(value, ty)])),
                None => key.push(0xFF),
            }
        }
        key
    };
    match method.kind {
        PartitionKind::Range => {
            let mut last: Option<Vec<u8>> = None;
            for (at, partition) in partitioning.partitions.iter().enumerate() {
                let Some(tuple) = partition.values.first() else { continue };
                let is_last = at + 1 == partitioning.partitions.len();
                if !is_last && method.expression.is_some() && tuple[0].value.is_none() {
                    bail!(PARTITION_MAXVALUE_ERROR);
                }
                let own = key(tuple);
                if last.as_ref().is_some_and(|last| *last >= own) {
                    bail!(RANGE_NOT_INCREASING_ERROR);
                }
                last = Some(own);
            }
        }
        PartitionKind::List => {
            let mut seen = HashSet::new();
            let tuples = partitioning.partitions.iter().flat_map(|own| &own.values);
            for tuple in tuples {
                if !seen.insert(key(tuple)) {
                    bail!(MULTIPLE_DEF_CONST_IN_LIST_PART_ERROR);
                }
            }
        }
        PartitionKind::Hash | PartitionKind::Key | PartitionKind::SystemTime => {}
    }
    Ok(())
}

fn type_of(draft: &Draft, name: &str) -> Option<DataType> {
    draft.column(name).map(|at| draft.columns[at].column.ty.clone())
}

/// The same with the columns of the primary key, or of the first unique one without NULL, where KEY lists none; 1488.
fn resolved(draft: &Draft, partitioning: &Partitioning) -> Result<Partitioning> {
    let mut resolved = partitioning.clone();
    let methods = [Some(&mut resolved.method), resolved.sub.as_mut()];
    for method in methods.into_iter().flatten() {
        if method.kind != PartitionKind::Key || !method.columns.is_empty() {
            continue;
        }
        let is_null = |name: &str| type_of(draft, name).is_none_or(|ty| ty.nullable);
        let primary = draft.indexes.iter().find(|index| index.primary);
        let stand_in = || {
            draft
                .indexes
                .iter()
                .find(|index| index.unique && !index.parts.iter().any(|part| is_null(&part.column)))
        };
        let index = primary.or_else(stand_in);
        let index = index.ok_or_else(|| err!(FIELD_NOT_FOUND_PART_ERROR))?;
        method.columns = index.parts.iter().map(|part| part.column.clone()).collect();
    }
    Ok(resolved)
}

/// The hidden stored column with the number of each row's partition.
///
/// # Errors
/// 1488.
pub(crate) fn partition_column(
    draft: &Draft,
    partitioning: &Partitioning,
    origin: Option<usize>,
) -> Result<DraftColumn> {
    let resolved = resolved(draft, partitioning)?;
    let router = resolved.router(&|name| type_of(draft, name))?;
    let hex: String = router.write().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut text = format!("partition_number(x'{hex}'");
    for method in [Some(&resolved.method), resolved.sub.as_ref()].into_iter().flatten() {
        if let Some((expression, _)) = &method.expression {
            text.push_str(&format!(",{expression}"));
        }
        for column in &method.columns {
            text.push_str(&format!(",{}", quote(column)));
        }
    }
    text.push(')');
    let mut ty = DataType::new(TypeKind::SmallInt, 5, 0).with_nullable(false);
    ty.unsigned = true;
    Ok(DraftColumn {
        column: Column {
            name: PARTITION_COLUMN.into(),
            ty,
            stored: None,
            default: ColumnDefault::None,
            on_update_now: None,
            auto_increment: false,
            generated: Some(Generated {
                expression: text.into(),
                stored: true,
                hidden: true,
                elements: None,
            }),
            invisible: true,
            comment: String::new(),
            collation_written: false,
            histogram: None,
            placement: catalog::Placement::default(),
            history: catalog::ColumnHistory::Kept,
        },
        origin,
        null_written: None,
        history_written: None,
    })
}
