//! The status variables as metrics. Their names say what they are; those whose names do not are listed.

use std::collections::HashSet;

use crate::exposition::{Type, Writer, metric_name};

/// Status variables that rise and fall.
const GAUGES: &[(&str, &str)] = &[
    ("Js_isolates", "JavaScript isolates."),
    ("Js_isolates_in_use", "JavaScript isolates that run a script."),
    ("Max_used_connections", "Most connections open at one time since the start."),
    ("Open_tables", "Tables whose definitions are in memory."),
    ("Prepared_stmt_count", "Prepared statements of all sessions."),
    ("Threads_cached", "Threads that wait for a connection."),
    ("Threads_connected", "Open connections."),
    ("Threads_running", "Sessions that run a statement."),
    ("Uptime", "Seconds since the start."),
    ("Uptime_since_flush_status", "Seconds since the counters were set to zero."),
    ("Open_files", "Files that are open."),
    ("Open_table_definitions", "Tables whose definitions are in memory."),
    ("Innodb_page_size", "Bytes of a page."),
    ("Innodb_buffer_pool_bytes_data", "Bytes of pages in the pool."),
    ("Innodb_buffer_pool_bytes_dirty", "Bytes of pages that have to be written."),
    ("Innodb_buffer_pool_pages_data", "Pages in the pool."),
    ("Innodb_buffer_pool_pages_dirty", "Pages that have to be written."),
    ("Innodb_buffer_pool_pages_free", "Pages that fit in the pool beside those that are there."),
    ("Innodb_data_pending_fsyncs", "Threads that wait for a file to become durable."),
    ("Innodb_data_pending_reads", "Threads that wait for a read of a file."),
    ("Innodb_data_pending_writes", "Threads that wait for a write of a file."),
    ("Innodb_num_open_files", "Files of pages that are open."),
    ("Innodb_os_log_pending_fsyncs", "Threads that wait for the log."),
    ("Innodb_os_log_pending_writes", "Threads that wait for the log."),
    ("Innodb_redo_log_physical_size", "Bytes of the log that is kept."),
    ("Innodb_row_lock_current_waits", "Waits for row locks that go on."),
    ("Innodb_row_lock_time_avg", "Milliseconds of a wait for a row lock in the mean."),
    ("Innodb_row_lock_time_max", "Milliseconds of the longest wait for a row lock."),
    (
        "Statement_memory_limit_bytes",
        "Bytes that sorts, hash tables and kept rows of all statements may hold.",
    ),
    ("Statement_memory_used_bytes", "Bytes of them that are held."),
    (
        "Innodb_buffer_pool_resize_status_code",
        "Stage of a change of the pool's size; 0 when none goes on.",
    ),
    (
        "Innodb_buffer_pool_resize_status_progress",
        "Percent of a change of the pool's size that is done.",
    ),
];

/// Counters that have a help text of their own.
const COUNTERS: &[(&str, &str)] = &[
    ("Aborted_clients", "Connections that were lost without a log-out."),
    ("Aborted_connects", "Log-ins that failed."),
    ("Bytes_received", "Bytes from clients."),
    ("Bytes_sent", "Bytes to clients."),
    ("Connections", "Attempts to connect."),
    ("Created_tmp_disk_tables", "Temporary tables on disk."),
    ("Created_tmp_tables", "Temporary tables."),
    ("Plan_cache_hits", "Statements that found their plan in the cache."),
    ("Plan_cache_misses", "Statements that were planned."),
    ("Queries", "Statements, also those inside programs."),
    ("Questions", "Statements of clients."),
    ("Slow_queries", "Statements that took longer than long_query_time."),
    ("Sort_merge_passes", "Passes that merged sorted runs."),
    ("Sort_rows", "Rows that were sorted."),
    ("Threads_created", "Threads made for connections."),
];

/// What the names of further counters begin with, and what they count. `{}` is the rest of the name.
const FAMILIES: &[(&str, &str)] = &[
    ("Com_", "Statements of the kind {}."),
    ("Handler_", "Calls of an engine: {}."),
    ("Select_", "Reads of tables in joins: {}."),
    ("Sort_", "Sorts: {}."),
    ("Created_", "Created: {}."),
    ("Aborted_", "Aborted: {}."),
    ("Bytes_", "Bytes: {}."),
    ("Connection_errors_", "Connections refused: {}."),
    ("Audit_log_", "Audit log: {}."),
    ("Innodb_data_", "Calls and bytes of files: {}."),
    ("Innodb_rows_", "Rows: {}."),
];

/// The type and the meaning of a status variable.
fn described(name: &str) -> (Type, String) {
    let listed = |list: &[(&str, &str)]| {
        list.iter().find(|(known, _)| *known == name).map(|(_, help)| (*help).to_owned())
    };
    if let Some(help) = listed(GAUGES) {
        return (Type::Gauge, help);
    }
    if let Some(help) = listed(COUNTERS) {
        return (Type::Counter, help);
    }
    for (prefix, help) in FAMILIES {
        if let Some(rest) = name.strip_prefix(prefix) {
            return (Type::Counter, help.replace("{}", &rest.replace('_', " ")));
        }
    }
    (Type::Unknown, format!("The status variable {name}."))
}

/// The value of a status variable as a number.
fn number(value: &str) -> Option<f64> {
    match value {
        "ON" | "YES" => Some(1.0),
        "OFF" | "NO" => Some(0.0),
        _ => value.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

/// Writes all of them; those that are texts become labels of `squall_status_text_info`.
pub fn write(writer: &mut Writer, status: &[(String, String)]) {
    let mut seen = HashSet::new();
    for (name, value) in status {
        let metric = format!("status_{}", metric_name(name));
        let Some(number) = number(value) else { continue };
        if seen.insert(metric.clone()) {
            let (ty, help) = described(name);
            writer.one(&metric, ty, &help, number);
        }
    }
    let is_text = |value: &str| number(value).is_none() && !value.is_empty();
    writer.family("status_text", Type::Info, "Status variables that are no numbers.");
    for (name, value) in status.iter().filter(|(_, value)| is_text(value)) {
        writer.sample(&[("name", name), ("value", value)], 1);
    }
}
