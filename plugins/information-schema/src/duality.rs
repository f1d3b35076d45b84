//! The tables about JSON duality views.

use errors::Result;
use plugin_api::{DualityObjectView, InfoFilter, InformationContext, TableDetail, TableView};
use types::Value;

use crate::row::{Emit, catalog};
use crate::tables::visit_tables;

fn visit(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut dyn FnMut(&TableView) -> Result<()>,
) -> Result<()> {
    let detail = TableDetail::Definition;
    visit_tables(ctx, filter, "table_schema", "table_name", detail, &mut |table| {
        if table.duality.is_empty() { Ok(()) } else { emit(table) }
    })
}

fn flag(is_set: bool) -> Value {
    Value::Int(i64::from(is_set))
}

fn flag_text(is_set: bool) -> Value {
    Value::text(if is_set { "1" } else { "0" })
}

/// Objects and their numbers, those of one object by their keys.
fn in_order(all: &[DualityObjectView]) -> Vec<(usize, &DualityObjectView)> {
    let mut out = Vec::with_capacity(all.len());
    add_in_order(all, 0, &mut out);
    out
}

fn add_in_order<'a>(
    all: &'a [DualityObjectView],
    id: usize,
    out: &mut Vec<(usize, &'a DualityObjectView)>,
) {
    let Some(object) = all.get(id) else { return };
    out.push((id, object));
    let link = |at: &usize| all[*at].link.as_ref();
    let mut within: Vec<usize> =
        (id + 1..all.len()).filter(|at| link(at).is_some_and(|link| link.parent == id)).collect();
    within.sort_by_key(|at| link(at).map(|link| &link.key));
    within.into_iter().for_each(|at| add_in_order(all, at, out));
}

/// Catalog, schema and name.
fn named(schema: &str, name: &str) -> [Value; 3] {
    [catalog(), Value::text(schema), Value::text(name)]
}

/// `JSON_DUALITY_VIEWS`.
pub fn views(ctx: &dyn InformationContext, filter: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    visit(ctx, filter, &mut |view| {
        let any = |is_set: fn(&DualityObjectView) -> bool| view.duality.iter().any(is_set);
        let root = &view.duality[0];
        let is_changed = any(|one| one.insert || one.update || one.delete);
        let mut row = named(&view.schema, &view.name).to_vec();
        row.extend([Value::text(&view.definer), Value::text(view.security), Value::text("data")]);
        row.extend(named(&root.schema, &root.table));
        row.extend([
            flag_text(any(|one| one.insert)),
            flag_text(any(|one| one.update)),
            flag_text(any(|one| one.delete)),
            flag_text(!is_changed),
            Value::text("valid"),
        ]);
        emit(&row)
    })
}

/// `JSON_DUALITY_VIEW_TABLES`.
pub fn tables(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |view| {
        for (id, object) in in_order(&view.duality) {
            let mut row = named(&view.schema, &view.name).to_vec();
            row.extend(named(&object.schema, &object.table));
            row.extend([
                Value::text(&condition(object, &view.duality)),
                flag(object.insert),
                flag(object.update),
                flag(object.delete),
                flag(!object.insert && !object.update && !object.delete),
                flag(object.link.is_none()),
                Value::Int(id as i64),
            ]);
            match &object.link {
                None => row.extend([Value::Null, Value::Null]),
                Some(link) => row.extend([
                    Value::Int(link.parent as i64),
                    Value::text(if link.is_nested { "nested" } else { "singleton" }),
                ]),
            }
            emit(&row)?;
        }
        Ok(())
    })
}

/// The condition of an object within another, the own column first.
fn condition(object: &DualityObjectView, all: &[DualityObjectView]) -> String {
    let Some(link) = &object.link else { return String::new() };
    let above = &all[link.parent];
    let column =
        |one: &DualityObjectView, name: &str| format!("{}.{}.{name}", one.schema, one.table);
    format!("{} = {}", column(object, &link.child_column), column(above, &link.parent_column))
}

/// `JSON_DUALITY_VIEW_COLUMNS`: the primary key is never changed.
pub fn columns(
    ctx: &dyn InformationContext,
    filter: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, filter, &mut |view| {
        for (id, object) in in_order(&view.duality) {
            let mut columns: Vec<_> = object.columns.iter().collect();
            columns.sort_by_key(|(_, key, _)| key);
            for (column, key, is_primary) in columns {
                let is_updated = object.update && !is_primary;
                let mut row = named(&view.schema, &view.name).to_vec();
                row.extend(named(&object.schema, &object.table));
                row.extend([
                    flag(object.link.is_none()),
                    Value::Int(id as i64),
                    Value::text(column),
                    Value::text(key),
                    flag(false),
                    flag(is_updated),
                    flag(false),
                    flag(!is_updated),
                ]);
                emit(&row)?;
            }
        }
        Ok(())
    })
}

/// `JSON_DUALITY_VIEW_LINKS`.
pub fn links(ctx: &dyn InformationContext, filter: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    visit(ctx, filter, &mut |view| {
        for (_, object) in in_order(&view.duality) {
            let Some(link) = &object.link else { continue };
            let above = &view.duality[link.parent];
            let mut row = named(&view.schema, &view.name).to_vec();
            row.extend(named(&above.schema, &above.table));
            row.extend(named(&object.schema, &object.table));
            row.extend([
                Value::text(&link.parent_column),
                Value::text(&link.child_column),
                Value::text(if link.is_nested { "nested" } else { "outer" }),
                Value::text(&link.key),
            ]);
            emit(&row)?;
        }
        Ok(())
    })
}
