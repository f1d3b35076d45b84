//! The `_EXTENSIONS` tables: one row for each object, with the attributes that an engine or an option may add to it. Neither engine has
//! attributes, so only the names have values.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, TableDetail};
use types::Value;

use crate::row::{Emit, catalog};
use crate::tables::{UNLISTED, visit_tables};

/// `SCHEMATA_EXTENSIONS`.
pub fn schemata(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let mut listed = ctx.schemas().into_iter().filter(|schema| schema.name != UNLISTED);
    listed.try_for_each(|schema| {
        let options = if schema.is_read_only { "READ ONLY=1" } else { "" };
        emit(&[catalog(), Value::text(&schema.name), Value::text(options)])
    })
}

/// `TABLES_EXTENSIONS`.
pub fn tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit_tables(ctx, filter, "table_schema", "table_name", TableDetail::Name, &mut |table| {
        if table.temporary {
            return Ok(());
        }
        emit(&[
            catalog(),
            Value::text(&table.schema),
            Value::text(&table.name),
            Value::Null,
            Value::Null,
        ])
    })
}

/// `COLUMNS_EXTENSIONS`.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        table.columns.iter().try_for_each(|column| {
            emit(&[
                catalog(),
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(&column.name),
                Value::Null,
                Value::Null,
            ])
        })
    })
}

/// `TABLE_CONSTRAINTS_EXTENSIONS`: all indexes, whether they are constraints or not.
pub fn table_constraints(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "constraint_schema", "table_name", detail, &mut |table| {
        table.indexes.iter().try_for_each(|index| {
            emit(&[
                catalog(),
                Value::text(&table.schema),
                Value::text(&index.name),
                Value::text(&table.name),
                Value::Null,
                Value::Null,
            ])
        })
    })
}
