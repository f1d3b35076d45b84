//! Status variables under names of the reference's default engine that no engine alone can answer, and those of things that do not exist here.

use sys::waits::{self, Wait};

use crate::facts::ServerFacts;

/// What they count does not exist here, so that it never happens: a cache of index blocks beside the pool, delayed inserts, a log of the coordinator of commits, tables without
/// transactions, positions of rows that a sort reads again, TLS as a client or begun again, locks of tables that statements wait for, bounds of the tables about performance.
pub(crate) const ABSENT: [&str; 84] = [
    "Binlog_stmt_cache_disk_use",
    "Binlog_stmt_cache_use",
    "Com_create_masking_policy",
    "Com_drop_masking_policy",
    "Com_show_create_masking_policy",
    "Delayed_errors",
    "Delayed_insert_threads",
    "Delayed_writes",
    "Handler_discover",
    "Handler_external_lock",
    "Handler_mrr_init",
    "Handler_read_rnd",
    "Innodb_system_rows_deleted",
    "Innodb_system_rows_inserted",
    "Innodb_system_rows_read",
    "Innodb_system_rows_updated",
    "Innodb_truncated_status_writes",
    "Innodb_undo_tablespaces_active",
    "Innodb_undo_tablespaces_explicit",
    "Innodb_undo_tablespaces_implicit",
    "Innodb_undo_tablespaces_total",
    "Key_blocks_not_flushed",
    "Key_blocks_unused",
    "Key_blocks_used",
    "Key_read_requests",
    "Key_reads",
    "Key_write_requests",
    "Key_writes",
    "Not_flushed_delayed_rows",
    "Open_streams",
    "Performance_schema_accounts_lost",
    "Performance_schema_cond_classes_lost",
    "Performance_schema_cond_instances_lost",
    "Performance_schema_file_classes_lost",
    "Performance_schema_file_handles_lost",
    "Performance_schema_file_instances_lost",
    "Performance_schema_hosts_lost",
    "Performance_schema_index_stat_lost",
    "Performance_schema_locker_lost",
    "Performance_schema_logger_lost",
    "Performance_schema_memory_classes_lost",
    "Performance_schema_metadata_lock_lost",
    "Performance_schema_meter_lost",
    "Performance_schema_metric_lost",
    "Performance_schema_mutex_classes_lost",
    "Performance_schema_mutex_instances_lost",
    "Performance_schema_nested_statement_lost",
    "Performance_schema_prepared_statements_lost",
    "Performance_schema_program_lost",
    "Performance_schema_rwlock_classes_lost",
    "Performance_schema_rwlock_instances_lost",
    "Performance_schema_session_connect_attrs_lost",
    "Performance_schema_socket_classes_lost",
    "Performance_schema_socket_instances_lost",
    "Performance_schema_stage_classes_lost",
    "Performance_schema_statement_classes_lost",
    "Performance_schema_table_handles_lost",
    "Performance_schema_table_instances_lost",
    "Performance_schema_table_lock_stat_lost",
    "Performance_schema_thread_classes_lost",
    "Performance_schema_thread_instances_lost",
    "Performance_schema_users_lost",
    "Replica_open_temp_tables",
    "Secondary_engine_execution_count",
    "Select_range_check",
    "Slave_open_temp_tables",
    "Ssl_accept_renegotiates",
    "Ssl_callback_cache_hits",
    "Ssl_client_connects",
    "Ssl_connect_renegotiates",
    "Ssl_finished_connects",
    "Ssl_session_cache_hits",
    "Ssl_session_cache_misses",
    "Ssl_session_cache_overflows",
    "Ssl_session_cache_size",
    "Ssl_session_cache_timeouts",
    "Ssl_used_session_cache_entries",
    "Table_locks_waited",
    "Table_open_cache_triggers_hits",
    "Table_open_cache_triggers_misses",
    "Table_open_cache_triggers_overflows",
    "Tc_log_max_pages_used",
    "Tc_log_page_size",
    "Tc_log_page_waits",
];

/// Reads, writes and syncs of all files, and the files that are open.
pub(crate) fn file_status(server: &dyn ServerFacts) -> Vec<(String, String)> {
    const PAGE_BYTES: u64 = 16_384;
    let operations = server.file_operations();
    let sum = |operation: &str, class: Option<&str>| {
        let wanted = operations
            .iter()
            .filter(|one| one.operation == operation && class.is_none_or(|name| one.class == name));
        wanted.fold((0, 0), |(requests, bytes), one| (requests + one.requests, bytes + one.bytes))
    };
    let (reads, read_bytes) = sum("read", None);
    let (writes, written_bytes) = sum("write", None);
    let (copies, copied_bytes) = sum("write", Some("doublewrite"));
    let uses = server.file_uses();
    let open = |class: Option<&str>| -> u64 {
        let wanted = uses.iter().filter(|file| class.is_none_or(|name| file.class == name));
        wanted.map(|file| file.open_count).sum()
    };
    [
        ("Created_tmp_files", sys::usage::temporary_files()),
        ("Innodb_data_fsyncs", sum("sync", None).0),
        ("Innodb_data_read", read_bytes),
        ("Innodb_data_reads", reads),
        ("Innodb_data_writes", writes),
        ("Innodb_data_written", written_bytes),
        ("Innodb_dblwr_pages_written", copied_bytes / PAGE_BYTES),
        ("Innodb_dblwr_writes", copies),
        ("Innodb_num_open_files", open(Some("pages"))),
        ("Open_files", open(None)),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .into()
}

/// Rows that statements read and wrote: the Handler_ counters of all sessions, or of one.
pub(crate) fn row_status(counters: &[(&'static str, u64)]) -> Vec<(String, String)> {
    let of = |wanted: &[&str]| -> u64 {
        counters.iter().filter(|(name, _)| wanted.contains(name)).map(|(_, count)| count).sum()
    };
    const READS: [&str; 6] = [
        "Handler_read_first",
        "Handler_read_key",
        "Handler_read_last",
        "Handler_read_next",
        "Handler_read_prev",
        "Handler_read_rnd_next",
    ];
    [
        ("Innodb_rows_deleted", of(&["Handler_delete"])),
        ("Innodb_rows_inserted", of(&["Handler_write"])),
        ("Innodb_rows_read", of(&READS)),
        ("Innodb_rows_updated", of(&["Handler_update"])),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .into()
}

/// Threads that wait for files now.
pub(crate) fn waiting_status() -> Vec<(String, String)> {
    let threads = waits::threads();
    let waiting = |wait: Wait| threads.iter().filter(|thread| thread.wait == wait).count();
    [
        ("Innodb_data_pending_fsyncs", waiting(Wait::Sync)),
        ("Innodb_data_pending_reads", waiting(Wait::Read)),
        ("Innodb_data_pending_writes", waiting(Wait::Write)),
        ("Innodb_os_log_pending_fsyncs", waiting(Wait::LogFlush)),
        ("Innodb_os_log_pending_writes", waiting(Wait::LogFlush)),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_string()))
    .into()
}
