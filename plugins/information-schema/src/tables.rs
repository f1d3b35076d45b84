//! Schemas, tables and views.

use errors::Result;
use plugin_api::{
    InfoFilter, InformationContext, PartitionView, SchemaView, TableDetail, TableView, ViewUsage,
};
use types::Value;

use crate::row::{Emit, catalog, exact_time, optional, optional_number, time};

/// Calls `visit` for each table that the filter on `schema_column` and `table_column` lets through.
pub fn visit_tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    schema_column: &str,
    table_column: &str,
    detail: TableDetail,
    visit: &mut dyn FnMut(&TableView) -> Result<()>,
) -> Result<()> {
    let wanted = filter.value(schema_column);
    let table = filter.value(table_column);
    for SchemaView { name: schema, .. } in ctx.schemas() {
        if wanted.is_some_and(|wanted| !wanted.eq_ignore_ascii_case(&schema)) {
            continue;
        }
        ctx.check_cancelled()?;
        ctx.tables(&schema, table, detail, visit)?;
    }
    Ok(())
}

/// Our own schema of facts, which is found by name: dump programs leave out only the schemas that they know.
pub(crate) const UNLISTED: &str = "data_dictionary";

/// `SCHEMATA`.
pub fn schemata(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for SchemaView { name, collation, is_encrypted, .. } in ctx.schemas() {
        if &*name == UNLISTED {
            continue;
        }
        let charset = collation.split('_').next().unwrap_or(&collation);
        emit(&[
            catalog(),
            Value::text(&name),
            Value::text(charset),
            Value::text(&collation),
            Value::Null,
            Value::text(if is_encrypted { "YES" } else { "NO" }),
        ])?;
    }
    Ok(())
}

/// `TABLES`.
pub fn tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit_tables(ctx, filter, "table_schema", "table_name", tables_detail(filter), &mut |table| {
        if table.temporary {
            return Ok(());
        }
        emit(&table_row(table))
    })
}

/// The level of detail that the requested columns need: a list of names opens no table.
fn tables_detail(filter: &InfoFilter) -> TableDetail {
    /// Catalog, schema, name and type.
    const NAMES: [usize; 4] = [0, 1, 2, 3];
    /// Rows, sizes and the next AUTO_INCREMENT value.
    const STATISTICS: [usize; 7] = [7, 8, 9, 10, 11, 12, 13];
    if filter.reads_any(&STATISTICS) {
        TableDetail::Statistics
    } else if filter.reads.iter().all(|column| NAMES.contains(column)) {
        TableDetail::Name
    } else {
        TableDetail::Definition
    }
}

fn table_row(table: &TableView) -> Vec<Value> {
    let base = matches!(table.table_type, "BASE TABLE" | "SEQUENCE" | "SYSTEM VERSIONED");
    let stored = |value: Value| if base { value } else { Value::Null };
    let average = table.data_bytes.checked_div(table.rows).unwrap_or(0);
    vec![
        catalog(),
        Value::text(&table.schema),
        Value::text(&table.name),
        Value::text(table.table_type),
        optional(table.engine.as_deref()),
        stored(Value::Int(10)),
        stored(Value::text(&table.row_format)),
        stored(Value::UInt(table.rows)),
        stored(Value::UInt(average)),
        stored(Value::UInt(table.data_bytes)),
        stored(Value::UInt(0)),
        stored(Value::UInt(table.index_bytes)),
        stored(Value::UInt(0)),
        optional_number(table.auto_increment),
        time(table.created_micros),
        Value::Null,
        Value::Null,
        stored(Value::text(&table.collation)),
        Value::Null,
        stored(Value::text(&table.create_options)),
        Value::text(&table.comment),
    ]
}

/// `VIEWS`.
pub fn views(ctx: &dyn InformationContext, filter: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        let Some(definition) = table.view_definition.as_deref() else { return Ok(()) };
        let is_updatable = ctx.is_updatable(&table.schema, &table.name);
        emit(&[
            catalog(),
            Value::text(&table.schema),
            Value::text(&table.name),
            Value::text(definition),
            Value::text(&table.check_option),
            Value::text(if is_updatable { "YES" } else { "NO" }),
            Value::text(&table.definer),
            Value::text(table.security),
            Value::text(&table.session_charset),
            Value::text(&table.session_collation),
        ])
    })
}

/// `VIEW_TABLE_USAGE`.
pub fn view_tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    view_usage(ctx, filter, ("view_schema", "view_name"), |usage| usage.tables, emit)
}

/// `VIEW_ROUTINE_USAGE`.
pub fn view_routines(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    view_usage(ctx, filter, ("table_schema", "table_name"), |usage| usage.routines, emit)
}

/// A row for each object that a view names.
fn view_usage(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    (schema, name): (&str, &str),
    named: fn(ViewUsage) -> Vec<(String, String)>,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit_tables(ctx, filter, schema, name, TableDetail::Definition, &mut |table| {
        if table.view_definition.is_none() {
            return Ok(());
        }
        let usage = named(ctx.view_usage(&table.schema, &table.name));
        usage.iter().try_for_each(|(schema, name)| {
            let (view, used) = ((&table.schema, &table.name), (schema, name));
            let [view, used] = [view, used]
                .map(|(schema, name)| [catalog(), Value::text(schema), Value::text(name)]);
            emit(&[view, used].concat())
        })
    })
}

/// Bytes of the pages in which sizes are shown.
const PAGE_BYTES: u64 = 16_384;

/// Calls `visit` for each stored table with its statistics, which are those of now.
fn visit_sizes(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    visit: &mut dyn FnMut(&TableView) -> Result<()>,
) -> Result<()> {
    let detail = TableDetail::Statistics;
    visit_tables(ctx, filter, "database_name", "table_name", detail, &mut |table| {
        let has_rows = matches!(table.table_type, "BASE TABLE" | "SYSTEM VERSIONED");
        if has_rows && !table.temporary { visit(table) } else { Ok(()) }
    })
}

/// `mysql.innodb_table_stats`: estimates, in pages of 16 KiB.
pub fn table_sizes(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let now = exact_time(ctx.now_micros());
    visit_sizes(ctx, filter, &mut |table| {
        emit(&[
            Value::text(&table.schema),
            Value::text(&table.name),
            now.clone(),
            Value::UInt(table.rows),
            Value::UInt(table.data_bytes.div_ceil(PAGE_BYTES)),
            Value::UInt(table.index_bytes.div_ceil(PAGE_BYTES)),
        ])
    })
}

/// `mysql.innodb_index_stats`: different values of the first parts of each index.
pub fn index_sizes(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let now = exact_time(ctx.now_micros());
    visit_sizes(ctx, filter, &mut |table| {
        for index in table.indexes.iter().filter(|index| index.kind != "FULLTEXT") {
            let mut names = Vec::new();
            for (position, part) in index.parts.iter().enumerate() {
                names.push(part.column.as_deref().unwrap_or("!hidden"));
                emit(&[
                    Value::text(&table.schema),
                    Value::text(&table.name),
                    Value::text(&index.name),
                    now.clone(),
                    Value::text(&format!("n_diff_pfx{:02}", position + 1)),
                    Value::UInt(part.distinct),
                    Value::Null,
                    Value::text(&names.join(",")),
                ])?;
            }
        }
        Ok(())
    })
}

/// `PARTITIONS`: a table that is not partitioned is its own only partition.
pub fn partitions(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Statistics;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        let has_rows = matches!(table.table_type, "BASE TABLE" | "SYSTEM VERSIONED");
        if !has_rows || table.temporary {
            return Ok(());
        }
        if table.partitions.is_empty() {
            return emit(&partition_row(table, None));
        }
        table.partitions.iter().try_for_each(|own| emit(&partition_row(table, Some(own))))
    })
}

fn partition_row(table: &TableView, partition: Option<&PartitionView>) -> Vec<Value> {
    let mut row = vec![catalog(), Value::text(&table.schema), Value::text(&table.name)];
    match partition {
        // Name, ordinal, method, expression and description of partition and subpartition.
        None => row.extend(std::iter::repeat_n(Value::Null, 10)),
        Some(own) => row.extend([
            Value::text(&own.name),
            optional(own.sub_name.as_deref()),
            Value::UInt(own.position),
            optional_number(own.sub_position),
            Value::Null,
            Value::text(&own.method),
            optional(own.sub_method.as_deref()),
            optional(own.expression.as_deref()),
            optional(own.sub_expression.as_deref()),
            optional(own.description.as_deref()),
        ]),
    }
    // The engine keeps one tree: each partition has its share of it.
    let share = table.partitions.len().max(1) as u64;
    let rows = partition.map_or(table.rows, |own| own.rows);
    row.push(Value::UInt(rows));
    row.push(Value::UInt(table.data_bytes.checked_div(table.rows).unwrap_or(0)));
    row.push(Value::UInt(table.data_bytes / share));
    row.push(Value::UInt(0));
    row.push(Value::UInt(table.index_bytes / share));
    row.push(Value::UInt(0));
    row.push(time(table.created_micros));
    row.extend([Value::Null, Value::Null, Value::Null]);
    row.push(Value::text(partition.map_or("", |own| &own.comment)));
    row.push(Value::text(if partition.is_some() { "default" } else { "" }));
    row.push(Value::Null);
    row
}
