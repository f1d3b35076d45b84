//! Session variables that not every account may set.

/// The privileges of which one is needed, as error 1227 lists them. SUPER includes the others.
const ADMINS: &str = "SUPER, SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN";
/// The same in the reference's other wording.
const NEWER_ADMINS: &str = "SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN";
const APPLIERS: &str =
    "SUPER, SYSTEM_VARIABLES_ADMIN, SESSION_VARIABLES_ADMIN or REPLICATION_APPLIER";

const RESTRICTED: [(&str, &str); 36] = [
    ("binlog_direct_non_transactional_updates", ADMINS),
    ("binlog_format", ADMINS),
    ("binlog_row_image", ADMINS),
    ("binlog_row_value_options", ADMINS),
    ("binlog_rows_query_log_events", ADMINS),
    ("binlog_transaction_compression", ADMINS),
    ("binlog_transaction_compression_level_zstd", ADMINS),
    ("bulk_insert_buffer_size", ADMINS),
    ("character_set_database", ADMINS),
    ("character_set_filesystem", ADMINS),
    ("connection_memory_chunk_size", ADMINS),
    ("connection_memory_limit", ADMINS),
    ("global_connection_memory_tracking", ADMINS),
    ("gtid_next", APPLIERS),
    ("histogram_generation_max_mem_size", ADMINS),
    ("immediate_server_version", APPLIERS),
    ("internal_tmp_mem_storage_engine", NEWER_ADMINS),
    ("low_priority_updates", NEWER_ADMINS),
    ("max_delayed_threads", NEWER_ADMINS),
    ("max_error_count", NEWER_ADMINS),
    ("max_insert_delayed_threads", NEWER_ADMINS),
    ("min_examined_row_limit", NEWER_ADMINS),
    ("original_commit_timestamp", APPLIERS),
    ("original_server_version", APPLIERS),
    ("preload_buffer_size", NEWER_ADMINS),
    ("pseudo_replica_mode", APPLIERS),
    ("pseudo_slave_mode", APPLIERS),
    ("pseudo_thread_id", ADMINS),
    ("select_into_buffer_size", NEWER_ADMINS),
    ("select_into_disk_sync_delay", NEWER_ADMINS),
    ("sql_generate_invisible_primary_key", ADMINS),
    ("sql_log_bin", ADMINS),
    ("sql_log_off", ADMINS),
    ("sql_require_primary_key", ADMINS),
    ("system_versioning_stored_rows", APPLIERS),
    ("xa_detach_on_prepare", ADMINS),
];

/// The privileges of which an account needs one to set a session variable; none for a variable that everybody may set.
pub fn privileges_to_set(name: &str) -> Option<&'static str> {
    let found = RESTRICTED.iter().find(|(restricted, _)| *restricted == name);
    found.map(|(_, privileges)| *privileges)
}
