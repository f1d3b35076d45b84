//! The hints of statements: where they are, and which variables they may set.

use syntax::ast::{SetExpr, Statement};

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

/// Whether the statement sets variables for itself: it is planned under other settings than its session's.
pub fn sets_variables(statement: &Statement) -> bool {
    hints_of(statement).is_some_and(|text| text.to_ascii_uppercase().contains("SET_VAR"))
}
