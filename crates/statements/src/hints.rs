//! The hints of statements: where they are, and which variables they may set.

use std::sync::Arc;

use errors::{Diagnostics, ErrorCode};
use syntax::ast::{self, SetExpr, Statement};
use syntax::{Hint, Hints};
use types::Value;
use variables::{Definitions, Scope, SessionValues};

/// Variables that a hint may set.
pub const HINTABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "cte_max_recursion_depth",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "foreign_key_checks",
    "group_concat_max_len",
    "innodb_lock_wait_timeout",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "secondary_engine_cost_threshold",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "tmp_table_size",
    "transaction_alloc_block_size",
    "transaction_prealloc_size",
    "unique_checks",
    "updatable_views_with_limit",
    "use_secondary_engine",
    "windowing_use_high_precision",
];

/// The hints of a statement's first block.
pub fn hints_of(statement: &Statement) -> Option<&str> {
    match statement {
        Statement::Query(query) => hints_of_body(&query.body),
        Statement::Insert(insert) => insert.hints.as_deref(),
        Statement::Update(update) => update.hints.as_deref(),
        Statement::Delete(delete) => delete.hints.as_deref(),
        _ => None,
    }
}

fn hints_of_body(body: &SetExpr) -> Option<&str> {
    match body {
        SetExpr::Select(select) => select.hints.as_deref(),
        SetExpr::SetOp(operation) => hints_of_body(&operation.first),
        SetExpr::Query(query) => hints_of_body(&query.body),
        SetExpr::Table(_) | SetExpr::Values(_) => None,
    }
}

/// Whether its hints change what is around the statement while it runs: variables, or its resource group. It is planned each time, as it may be planned under other settings than its session's.
pub fn changes_surroundings(statement: &Statement) -> bool {
    hints_of(statement).is_some_and(|text| {
        let text = text.to_ascii_uppercase();
        ["SET_VAR", "RESOURCE_GROUP"].iter().any(|name| text.contains(name))
    })
}

/// Sets the variables that hints name; one that cannot be set causes a warning.
pub fn set_variables(
    hints: &Hints,
    definitions: &Definitions,
    values: &mut Arc<SessionValues>,
    conditions: &mut Diagnostics,
) {
    let mut set: Vec<&str> = Vec::new();
    for hint in &hints.list {
        let Hint::SetVar { name, value } = hint else { continue };
        if set.contains(&&**name) {
            let shown = format!("SET_VAR({name}={value})");
            conditions.warn(ErrorCode::WARN_CONFLICTING_HINT, &[&shown]);
            continue;
        }
        set.push(name);
        set_hinted(definitions, values, conditions, name, value);
    }
}

/// Sets one variable; a variable that cannot be set causes a warning.
fn set_hinted(
    definitions: &Definitions,
    values: &mut Arc<SessionValues>,
    conditions: &mut Diagnostics,
    name: &str,
    value: &str,
) {
    let Some(id) = definitions.find(name) else {
        let shown = format!("'{name}'");
        conditions.warn(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &"SET_VAR"]);
        return;
    };
    let definition = definitions.get(id);
    if definition.scope == Scope::Global || !HINTABLE.contains(&definition.name) {
        let shown = format!("'{name}'");
        conditions.warn(ErrorCode::NOT_HINT_UPDATABLE_VARIABLE, &[&shown]);
        return;
    }
    let current = values.get(id).clone();
    match variables::convert(definition, &literal(value), &current) {
        Ok(converted) => Arc::make_mut(values).set(id, converted.value),
        Err(error) => conditions.push_error(errors::Level::Warning, &error),
    }
}

/// The value of a literal in a hint: a number, perhaps with a unit, a word, or a quoted text.
fn literal(text: &str) -> Value {
    let parsed = syntax::parse_one(&format!("DO {text}"), &syntax::ParseOptions::default());
    if let Ok((Statement::Do(items), _)) = &parsed
        && let [ast::SelectItem { kind: ast::SelectItemKind::Expr { expr, .. }, .. }] = &items[..]
        && let ast::ExprKind::Literal(ast::Literal::String(text)) = &expr.kind
    {
        return Value::Bytes((*text.value).into());
    }
    if let Some(size) = variables::parse_size(text) {
        return Value::UInt(size);
    }
    Value::text(text)
}
