//! Tables of `data_dictionary` with the names and columns that Drizzle gave them.

use engine_api::Progress;
use errors::{ErrorCode, Result};
use plugin_api::{
    ColumnView, ConstraintKind, IndexView, InfoFilter, InformationContext, ProcessView, SchemaView,
    StatusScope, TableDetail, TableView,
};
use types::{TypeKind, Value};

use crate::columns::{has_character_set, lengths, numeric_size};
use crate::row::{Emit, optional, optional_number, time, yes_no};
use crate::tables::visit_tables;

/// Prefix of the engine's settings among the system variables.
const ENGINE_PREFIX: &str = "innodb_";
/// How the description of a variable begins that has no effect.
const UNUSED: &str = "No effect";

/// `INNODB_CONFIGURATION`: the settings of the durable engine. A setting that it has no use for has no value.
pub fn configuration(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables() {
        let Some(name) = variable.name.strip_prefix(ENGINE_PREFIX) else { continue };
        let Some(value) = variable.global.as_deref() else { continue };
        let shown = match name {
            // Its files are in the data directory.
            "data_home_dir" => Some("./"),
            _ if variable.description.starts_with(UNUSED) => None,
            _ => Some(value),
        };
        emit(&[Value::text(name), Value::text(setting_type(value)), optional(shown)])?;
    }
    Ok(())
}

fn setting_type(value: &str) -> &'static str {
    match value {
        "ON" | "OFF" => "BOOL",
        _ if value.parse::<u64>().is_ok() => "ULINT",
        _ => "TEXT",
    }
}

/// `INNODB_STATUS`: the counters of the engines that are numbers.
pub fn status(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for stat in ctx.engine_stats() {
        if let Ok(number) = stat.value.parse::<u64>() {
            let name = format!("{}.{}.{}", stat.engine, stat.group, stat.name);
            emit(&[Value::text(&name), Value::UInt(number)])?;
        }
    }
    Ok(())
}

/// `ERRORS`.
pub fn errors(_: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let mut codes: Vec<ErrorCode> = ErrorCode::all().collect();
    codes.sort_by_key(|code| code.0);
    codes.iter().try_for_each(|code| {
        let state = code.sqlstate();
        emit(&[
            Value::UInt(code.0.into()),
            Value::text(&format!("ER_{}", code.name().unwrap_or(""))),
            Value::text(code.template().unwrap_or("")),
            Value::text(&String::from_utf8_lossy(&state)),
        ])
    })
}

/// `SCHEMAS`.
pub fn schemas(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let row = |view: &SchemaView| [Value::text(&view.name), Value::text(&view.collation)];
    ctx.schemas().iter().try_for_each(|view| emit(&row(view)))
}

/// `TABLES`.
pub fn tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Statistics;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        emit(&[
            Value::text(&table.schema),
            Value::text(&table.name),
            Value::text(match table.table_type {
                "BASE TABLE" if table.temporary => "TEMPORARY",
                "BASE TABLE" | "SEQUENCE" => "STANDARD",
                "VIEW" => "VIEW",
                _ => "FUNCTION",
            }),
            optional(table.kept_by.as_deref()),
            Value::text(&table.row_format),
            Value::text(&table.collation),
            time(table.created_micros),
            Value::text(&table.comment),
            optional_number(table.auto_increment),
            Value::UInt(table.rows),
            Value::UInt(table.data_bytes),
            Value::UInt(table.index_bytes),
        ])
    })
}

/// The indexes of a table that have a column.
fn indexes_of<'a>(table: &'a TableView, column: &str) -> Vec<&'a IndexView> {
    let has =
        |index: &&IndexView| index.parts.iter().any(|part| part.column.as_deref() == Some(column));
    table.indexes.iter().filter(has).collect()
}

/// `COLUMNS`.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        let mut columns = table.columns.iter().enumerate();
        columns.try_for_each(|(place, column)| emit(&column_row(table, place, column)))
    })
}

fn column_row(table: &TableView, place: usize, column: &ColumnView) -> Vec<Value> {
    let ty = &column.ty;
    let indexes = indexes_of(table, &column.name);
    let is_first = |index: &&&IndexView| {
        index.parts.first().is_some_and(|part| part.column.as_deref() == Some(&column.name))
    };
    let (characters, octets) = lengths(ty);
    let (precision, scale) = numeric_size(ty);
    let collation = charset::collation(ty.collation).filter(|_| has_character_set(ty));
    let members = ty.members.as_ref().filter(|_| ty.kind == TypeKind::Enum).map(|members| {
        let names = members.names().map(|name| String::from_utf8_lossy(name).into_owned());
        names.collect::<Vec<_>>().join(",")
    });
    let several = |index: &&&IndexView| index.parts.len() > 1;
    vec![
        Value::text(&table.schema),
        Value::text(&table.name),
        Value::text(&column.name),
        Value::text(&column.column_type),
        Value::UInt(place as u64),
        optional(column.default.as_deref()),
        yes_no(column.default.is_none() && ty.nullable),
        optional(column.on_update.as_deref()),
        yes_no(!ty.unsigned),
        yes_no(column.auto_increment),
        yes_no(ty.nullable),
        yes_no(!indexes.is_empty()),
        yes_no(indexes.iter().any(|index| index.name == "PRIMARY")),
        yes_no(indexes.iter().any(|index| index.unique && index.parts.len() == 1)),
        yes_no(indexes.iter().any(|index| several(&index))),
        yes_no(indexes.iter().any(|index| several(&index) && is_first(&index))),
        Value::UInt(indexes.len() as u64),
        Value::text(&column.column_type.split(['(', ' ']).next().unwrap_or("").to_uppercase()),
        optional_number(characters),
        optional_number(octets),
        optional_number(precision),
        optional_number(scale),
        optional(members.as_deref()),
        optional(collation.map(|collation| collation.name)),
        Value::text(&column.comment),
    ]
}

/// Whether a key can have NULL.
fn is_nullable(table: &TableView, index: &IndexView) -> bool {
    index.parts.iter().any(|part| {
        let column = table.columns.iter().find(|column| Some(&column.name) == part.column.as_ref());
        column.is_none_or(|column| column.ty.nullable)
    })
}

/// `INDEXES`.
pub fn indexes(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        table.indexes.iter().try_for_each(|index| {
            emit(&[
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(&index.name),
                yes_no(index.name == "PRIMARY"),
                yes_no(index.unique),
                yes_no(is_nullable(table, index)),
                Value::UInt(index.parts.len() as u64),
                Value::text(index.kind),
                Value::text(&index.comment),
            ])
        })
    })
}

/// `INDEX_PARTS`.
pub fn index_parts(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        for index in &table.indexes {
            for (place, part) in index.parts.iter().enumerate() {
                let named = |column: &ColumnView| Some(&column.name) == part.column.as_ref();
                let number = table.columns.iter().position(named);
                emit(&[
                    Value::text(&table.schema),
                    Value::text(&table.name),
                    Value::text(&index.name),
                    optional(part.column.as_deref().or(part.expression.as_deref())),
                    optional_number(number.map(|number| number as u64)),
                    Value::UInt(place as u64),
                    optional_number(part.prefix_length.map(u64::from)),
                    yes_no(part.descending),
                    yes_no(index.name == "PRIMARY"),
                    yes_no(index.unique),
                    yes_no(number.is_none_or(|number| table.columns[number].ty.nullable)),
                ])?;
            }
        }
        Ok(())
    })
}

/// `FOREIGN_KEYS`.
pub fn foreign_keys(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "constraint_schema", "constraint_table", detail, &mut |table| {
        for constraint in &table.constraints {
            let ConstraintKind::Foreign { columns, referenced, on_update, on_delete, .. } =
                &constraint.kind
            else {
                continue;
            };
            emit(&[
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(&constraint.name),
                Value::text(&columns.join(", ")),
                Value::text(&format!("{}.{}", referenced.schema, referenced.table)),
                Value::text(&referenced.columns.join(", ")),
                Value::text("NONE"),
                Value::text(on_update),
                Value::text(on_delete),
            ])?;
        }
        Ok(())
    })
}

/// `SESSIONS`.
pub fn sessions(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    ctx.processes().iter().try_for_each(|process| {
        let ProcessView { id, user, host, database, command, state, info, seconds, .. } = process;
        let progress = |of: fn(&Progress) -> u64| {
            process.progress.as_ref().map_or(Value::Null, |long| Value::UInt(of(long)))
        };
        emit(&[
            Value::UInt(*id),
            Value::text(user),
            Value::text(host),
            optional(database.as_deref()),
            Value::text(command),
            Value::UInt(*seconds),
            Value::text(state),
            optional(info.as_deref()),
            progress(|long| long.work_done),
            progress(|long| long.work_expected),
        ])
    })
}

/// `GLOBAL_STATUS`.
pub fn global_status(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    counters(ctx, StatusScope::Global, "", emit)
}

/// `SESSION_STATUS`.
pub fn session_status(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    counters(ctx, StatusScope::Session, "", emit)
}

/// Counters of statements by kind begin so.
const STATEMENTS: &str = "Com_";

/// `GLOBAL_STATEMENTS`.
pub fn global_statements(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    counters(ctx, StatusScope::Global, STATEMENTS, emit)
}

/// `SESSION_STATEMENTS`.
pub fn session_statements(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    counters(ctx, StatusScope::Session, STATEMENTS, emit)
}

fn counters(
    ctx: &dyn InformationContext,
    scope: StatusScope,
    prefix: &str,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.status(scope).iter().try_for_each(|(name, value)| match name.strip_prefix(prefix) {
        Some(name) => emit(&[Value::text(name), Value::text(value)]),
        None => Ok(()),
    })
}
