//! Keys and checks as constraints.

use errors::Result;
use plugin_api::{
    ConstraintKind, ConstraintView, InfoFilter, InformationContext, ReferencedView, TableDetail,
    TableView,
};
use types::Value;

use crate::row::{Emit, catalog, yes_no};
use crate::tables::visit_tables;

fn visit(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    visit: &mut dyn FnMut(&TableView, &ConstraintView) -> Result<()>,
) -> Result<()> {
    // Only some of these tables have a table schema; the constraint's schema is always the table's.
    let schema_column = match filter.value("table_schema") {
        Some(_) => "table_schema",
        None => "constraint_schema",
    };
    visit_tables(ctx, filter, schema_column, "table_name", TableDetail::Definition, &mut |table| {
        table.constraints.iter().try_for_each(|constraint| visit(table, constraint))
    })
}

/// `TABLE_CONSTRAINTS`.
pub fn table_constraints(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |table, constraint| {
        let (kind, enforced) = match &constraint.kind {
            ConstraintKind::Primary(_) => ("PRIMARY KEY", true),
            ConstraintKind::Unique(_) => ("UNIQUE", true),
            ConstraintKind::Foreign { .. } => ("FOREIGN KEY", true),
            ConstraintKind::Check { enforced, .. } => ("CHECK", *enforced),
        };
        emit(&[
            catalog(),
            Value::text(&table.schema),
            Value::text(&constraint.name),
            Value::text(&table.schema),
            Value::text(&table.name),
            Value::text(kind),
            yes_no(enforced),
        ])
    })
}

/// `KEY_COLUMN_USAGE`.
pub fn key_column_usage(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |table, constraint| {
        let named = |columns: &[String]| columns.iter().cloned().map(Some).collect();
        let (columns, referenced): (Vec<Option<String>>, _) = match &constraint.kind {
            ConstraintKind::Primary(columns) => (named(columns), None),
            ConstraintKind::Unique(columns) => (columns.clone(), None),
            ConstraintKind::Foreign { columns, referenced, .. } => {
                (named(columns), Some(referenced))
            }
            ConstraintKind::Check { .. } => return Ok(()),
        };
        for (position, column) in columns.iter().enumerate() {
            // Expressions have a position but no row.
            let Some(column) = column else { continue };
            let ordinal = Value::UInt(position as u64 + 1);
            let target = match referenced {
                None => [Value::Null, Value::Null, Value::Null, Value::Null],
                Some(ReferencedView { schema, table, columns }) => [
                    ordinal.clone(),
                    Value::text(schema),
                    Value::text(table),
                    columns.get(position).map_or(Value::Null, |name| Value::text(name)),
                ],
            };
            let mut row = vec![
                catalog(),
                Value::text(&table.schema),
                Value::text(&constraint.name),
                catalog(),
                Value::text(&table.schema),
                Value::text(&table.name),
                Value::text(column),
                ordinal,
            ];
            row.extend(target);
            emit(&row)?;
        }
        Ok(())
    })
}

/// `REFERENTIAL_CONSTRAINTS`.
pub fn referential(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |table, constraint| {
        let ConstraintKind::Foreign { referenced, unique_name, on_update, on_delete, .. } =
            &constraint.kind
        else {
            return Ok(());
        };
        emit(&[
            catalog(),
            Value::text(&table.schema),
            Value::text(&constraint.name),
            catalog(),
            Value::text(&referenced.schema),
            Value::text(unique_name),
            Value::text("NONE"),
            Value::text(on_update),
            Value::text(on_delete),
            Value::text(&table.name),
            Value::text(&referenced.table),
        ])
    })
}

/// `CHECK_CONSTRAINTS`.
pub fn checks(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |table, constraint| {
        let ConstraintKind::Check { expression, .. } = &constraint.kind else { return Ok(()) };
        emit(&[
            catalog(),
            Value::text(&table.schema),
            Value::text(&constraint.name),
            Value::text(expression),
        ])
    })
}
