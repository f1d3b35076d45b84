//! Status counters. Each session counts in its own memory; the sums are computed when they are read.

use exec::ExecCounts;
use plan::{Access, InsertSource, Physical, Plan};
use plugin_api::CountedCommand;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

/// A session's counter: its position in `NAMES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub usize);

macro_rules! counters {
    ($($constant:ident $name:literal),* $(,)?) => {
        /// Names of the session counters.
        pub const NAMES: &[&str] = &[$($name),*];
        /// Where each stands.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Position { $($constant),* }

        impl Counter { $(pub const $constant: Counter = Counter(Position::$constant as usize);)* }
    };
}

counters! {
    ADMIN_COMMANDS "Com_admin_commands",
    ALTER_DB "Com_alter_db",
    ALTER_EVENT "Com_alter_event",
    ALTER_FUNCTION "Com_alter_function",
    ALTER_INSTANCE "Com_alter_instance",
    ALTER_LIBRARY "Com_alter_library",
    ALTER_PROCEDURE "Com_alter_procedure",
    ALTER_RESOURCE_GROUP "Com_alter_resource_group",
    ALTER_SERVER "Com_alter_server",
    ALTER_TABLE "Com_alter_table",
    ALTER_TABLESPACE "Com_alter_tablespace",
    ALTER_USER "Com_alter_user",
    ALTER_USER_DEFAULT_ROLE "Com_alter_user_default_role",
    ANALYZE "Com_analyze",
    ASSIGN_TO_KEYCACHE "Com_assign_to_keycache",
    BEGIN "Com_begin",
    BINLOG "Com_binlog",
    CALL_PROCEDURE "Com_call_procedure",
    CHANGE_DB "Com_change_db",
    CHANGE_REPL_FILTER "Com_change_repl_filter",
    CHANGE_REPLICATION_SOURCE "Com_change_replication_source",
    CHECK "Com_check",
    CHECKSUM "Com_checksum",
    CLONE "Com_clone",
    COMMIT "Com_commit",
    CREATE_DB "Com_create_db",
    CREATE_EVENT "Com_create_event",
    CREATE_FUNCTION "Com_create_function",
    CREATE_INDEX "Com_create_index",
    CREATE_LIBRARY "Com_create_library",
    CREATE_PROCEDURE "Com_create_procedure",
    CREATE_RESOURCE_GROUP "Com_create_resource_group",
    CREATE_ROLE "Com_create_role",
    CREATE_SERVER "Com_create_server",
    CREATE_SRS "Com_create_spatial_reference_system",
    CREATE_TABLE "Com_create_table",
    CREATE_TRIGGER "Com_create_trigger",
    CREATE_UDF "Com_create_udf",
    CREATE_USER "Com_create_user",
    CREATE_VIEW "Com_create_view",
    DEALLOC_SQL "Com_dealloc_sql",
    DELETE "Com_delete",
    DELETE_MULTI "Com_delete_multi",
    DO "Com_do",
    DROP_DB "Com_drop_db",
    DROP_EVENT "Com_drop_event",
    DROP_FUNCTION "Com_drop_function",
    DROP_INDEX "Com_drop_index",
    DROP_LIBRARY "Com_drop_library",
    DROP_PROCEDURE "Com_drop_procedure",
    DROP_RESOURCE_GROUP "Com_drop_resource_group",
    DROP_ROLE "Com_drop_role",
    DROP_SERVER "Com_drop_server",
    DROP_SRS "Com_drop_spatial_reference_system",
    DROP_TABLE "Com_drop_table",
    DROP_TRIGGER "Com_drop_trigger",
    DROP_USER "Com_drop_user",
    DROP_VIEW "Com_drop_view",
    EMPTY_QUERY "Com_empty_query",
    EXECUTE_SQL "Com_execute_sql",
    EXPLAIN "Com_explain_other",
    FLUSH "Com_flush",
    GET_DIAGNOSTICS "Com_get_diagnostics",
    GRANT "Com_grant",
    GRANT_ROLES "Com_grant_roles",
    GROUP_REPLICATION_START "Com_group_replication_start",
    GROUP_REPLICATION_STOP "Com_group_replication_stop",
    HA_CLOSE "Com_ha_close",
    HA_OPEN "Com_ha_open",
    HA_READ "Com_ha_read",
    HELP "Com_help",
    IMPORT "Com_import",
    INSERT "Com_insert",
    INSERT_SELECT "Com_insert_select",
    INSTALL_COMPONENT "Com_install_component",
    INSTALL_PLUGIN "Com_install_plugin",
    KILL "Com_kill",
    LOAD "Com_load",
    LOCK_INSTANCE "Com_lock_instance",
    LOCK_TABLES "Com_lock_tables",
    OPTIMIZE "Com_optimize",
    PRELOAD_KEYS "Com_preload_keys",
    PREPARE_SQL "Com_prepare_sql",
    PURGE "Com_purge",
    PURGE_BEFORE_DATE "Com_purge_before_date",
    RELEASE_SAVEPOINT "Com_release_savepoint",
    RENAME_TABLE "Com_rename_table",
    RENAME_USER "Com_rename_user",
    REPAIR "Com_repair",
    REPLACE "Com_replace",
    REPLACE_SELECT "Com_replace_select",
    REPLICA_START "Com_replica_start",
    REPLICA_STOP "Com_replica_stop",
    RESET "Com_reset",
    RESIGNAL "Com_resignal",
    RESTART "Com_restart",
    REVOKE "Com_revoke",
    REVOKE_ALL "Com_revoke_all",
    REVOKE_ROLES "Com_revoke_roles",
    ROLLBACK "Com_rollback",
    ROLLBACK_TO "Com_rollback_to_savepoint",
    SAVEPOINT "Com_savepoint",
    SELECT "Com_select",
    SET_OPTION "Com_set_option",
    SET_PASSWORD "Com_set_password",
    SET_RESOURCE_GROUP "Com_set_resource_group",
    SET_ROLE "Com_set_role",
    SHOW_BINARY_LOG_STATUS "Com_show_binary_log_status",
    SHOW_BINLOG_EVENTS "Com_show_binlog_events",
    SHOW_BINLOGS "Com_show_binlogs",
    SHOW_CHARSETS "Com_show_charsets",
    SHOW_COLLATIONS "Com_show_collations",
    SHOW_CREATE_DB "Com_show_create_db",
    SHOW_CREATE_EVENT "Com_show_create_event",
    SHOW_CREATE_FUNC "Com_show_create_func",
    SHOW_CREATE_LIBRARY "Com_show_create_library",
    SHOW_CREATE_PROC "Com_show_create_proc",
    SHOW_CREATE_TABLE "Com_show_create_table",
    SHOW_CREATE_TRIGGER "Com_show_create_trigger",
    SHOW_CREATE_USER "Com_show_create_user",
    SHOW_DATABASES "Com_show_databases",
    SHOW_ENGINE_LOGS "Com_show_engine_logs",
    SHOW_ENGINE_MUTEX "Com_show_engine_mutex",
    SHOW_ENGINE_STATUS "Com_show_engine_status",
    SHOW_ERRORS "Com_show_errors",
    SHOW_EVENTS "Com_show_events",
    SHOW_FIELDS "Com_show_fields",
    SHOW_FUNCTION_CODE "Com_show_function_code",
    SHOW_FUNCTION_STATUS "Com_show_function_status",
    SHOW_GRANTS "Com_show_grants",
    SHOW_KEYS "Com_show_keys",
    SHOW_LIBRARY_STATUS "Com_show_library_status",
    SHOW_OPEN_TABLES "Com_show_open_tables",
    SHOW_PARSE_TREE "Com_show_parse_tree",
    SHOW_PLUGINS "Com_show_plugins",
    SHOW_PRIVILEGES "Com_show_privileges",
    SHOW_PROCEDURE_CODE "Com_show_procedure_code",
    SHOW_PROCEDURE_STATUS "Com_show_procedure_status",
    SHOW_PROCESSLIST "Com_show_processlist",
    SHOW_PROFILE "Com_show_profile",
    SHOW_PROFILES "Com_show_profiles",
    SHOW_RELAYLOG_EVENTS "Com_show_relaylog_events",
    SHOW_REPLICA_STATUS "Com_show_replica_status",
    SHOW_REPLICAS "Com_show_replicas",
    SHOW_STATUS "Com_show_status",
    SHOW_STORAGE_ENGINES "Com_show_storage_engines",
    SHOW_TABLE_STATUS "Com_show_table_status",
    SHOW_TABLES "Com_show_tables",
    SHOW_TRIGGERS "Com_show_triggers",
    SHOW_VARIABLES "Com_show_variables",
    SHOW_WARNINGS "Com_show_warnings",
    SHUTDOWN "Com_shutdown",
    SIGNAL "Com_signal",
    STMT_CLOSE "Com_stmt_close",
    STMT_EXECUTE "Com_stmt_execute",
    STMT_FETCH "Com_stmt_fetch",
    STMT_PREPARE "Com_stmt_prepare",
    STMT_REPREPARE "Com_stmt_reprepare",
    STMT_RESET "Com_stmt_reset",
    STMT_SEND_LONG_DATA "Com_stmt_send_long_data",
    TRUNCATE "Com_truncate",
    UNINSTALL_COMPONENT "Com_uninstall_component",
    UNINSTALL_PLUGIN "Com_uninstall_plugin",
    UNLOCK_INSTANCE "Com_unlock_instance",
    UNLOCK_TABLES "Com_unlock_tables",
    UPDATE "Com_update",
    UPDATE_MULTI "Com_update_multi",
    XA_COMMIT "Com_xa_commit",
    XA_END "Com_xa_end",
    XA_PREPARE "Com_xa_prepare",
    XA_RECOVER "Com_xa_recover",
    XA_ROLLBACK "Com_xa_rollback",
    XA_START "Com_xa_start",
    CREATED_TMP_DISK_TABLES "Created_tmp_disk_tables",
    CREATED_TMP_TABLES "Created_tmp_tables",
    HANDLER_COMMIT "Handler_commit",
    HANDLER_PREPARE "Handler_prepare",
    HANDLER_DELETE "Handler_delete",
    HANDLER_READ_FIRST "Handler_read_first",
    HANDLER_READ_KEY "Handler_read_key",
    HANDLER_READ_LAST "Handler_read_last",
    HANDLER_READ_NEXT "Handler_read_next",
    HANDLER_READ_PREV "Handler_read_prev",
    HANDLER_READ_RND_NEXT "Handler_read_rnd_next",
    HANDLER_ROLLBACK "Handler_rollback",
    HANDLER_SAVEPOINT "Handler_savepoint",
    HANDLER_SAVEPOINT_ROLLBACK "Handler_savepoint_rollback",
    HANDLER_UPDATE "Handler_update",
    HANDLER_WRITE "Handler_write",
    SELECT_FULL_JOIN "Select_full_join",
    SELECT_FULL_RANGE_JOIN "Select_full_range_join",
    SELECT_RANGE "Select_range",
    SELECT_SCAN "Select_scan",
    SORT_RANGE "Sort_range",
    SORT_ROWS "Sort_rows",
    SORT_SCAN "Sort_scan",
    QUERIES "Queries",
    QUESTIONS "Questions",
    SLOW_QUERIES "Slow_queries",
    SORT_MERGE_PASSES "Sort_merge_passes",
    PLAN_CACHE_HITS "Plan_cache_hits",
    PLAN_CACHE_MISSES "Plan_cache_misses",
}

impl From<CountedCommand> for Counter {
    fn from(command: CountedCommand) -> Counter {
        match command {
            CountedCommand::Administration => Counter::ADMIN_COMMANDS,
            CountedCommand::LongData => Counter::STMT_SEND_LONG_DATA,
        }
    }
}

/// Counters of one session, or the sum of closed ones.
#[derive(Debug)]
pub struct SessionCounters(Box<[AtomicU64]>);

impl Default for SessionCounters {
    fn default() -> Self {
        SessionCounters(NAMES.iter().map(|_| AtomicU64::new(0)).collect())
    }
}

impl SessionCounters {
    /// Adds; only the session's own thread does, so a load and a store suffice.
    #[inline]
    pub fn add(&self, counter: Counter, amount: u64) {
        if let Some(cell) = self.0.get(counter.0) {
            cell.store(cell.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        }
    }

    /// Adds one, if there is a counter.
    #[inline]
    pub fn add_some(&self, counter: Option<Counter>) {
        if let Some(counter) = counter {
            self.add(counter, 1);
        }
    }

    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.0.get(counter.0).map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Adds a statement's counts of row operations; counters whose count is zero are not written.
    #[inline]
    pub fn add_rows(&self, counts: &ExecCounts) {
        let pairs = [
            (Counter::HANDLER_READ_KEY, counts.read_key),
            (Counter::HANDLER_READ_NEXT, counts.read_next),
            (Counter::HANDLER_READ_RND_NEXT, counts.read_rnd_next),
            (Counter::HANDLER_READ_FIRST, counts.read_first),
            (Counter::HANDLER_READ_LAST, counts.read_last),
            (Counter::HANDLER_READ_PREV, counts.read_prev),
            (Counter::HANDLER_WRITE, counts.write),
            (Counter::HANDLER_UPDATE, counts.update),
            (Counter::HANDLER_DELETE, counts.delete),
            (Counter::SORT_RANGE, counts.sort_range),
            (Counter::SORT_ROWS, counts.sort_rows),
            (Counter::SORT_SCAN, counts.sort_scan),
            (Counter::CREATED_TMP_TABLES, counts.temporary_tables),
            (Counter::SORT_MERGE_PASSES, counts.sort_merge_passes),
            (Counter::CREATED_TMP_DISK_TABLES, counts.disk_tables),
        ];
        for (counter, amount) in pairs {
            if amount > 0 {
                self.add(counter, amount);
            }
        }
    }

    /// Adds these counts to `sums`.
    pub fn add_to(&self, sums: &mut [u64]) {
        for (sum, cell) in sums.iter_mut().zip(&self.0) {
            *sum += cell.load(Ordering::Relaxed);
        }
    }

    /// Adds the counts of a session that ends.
    pub fn absorb(&self, closed: &SessionCounters) {
        for (cell, other) in self.0.iter().zip(&closed.0) {
            cell.fetch_add(other.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// FLUSH STATUS.
    pub fn reset(&self) {
        for cell in &self.0 {
            cell.store(0, Ordering::Relaxed);
        }
    }
}

/// Counters of the server as a whole, counted rarely.
#[derive(Debug, Default)]
pub struct ServerCounters(Mutex<Vec<(&'static str, u64)>>);

impl ServerCounters {
    pub fn add(&self, name: &'static str, amount: u64) {
        let mut counters = self.0.lock();
        match counters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += amount,
            None => counters.push((name, amount)),
        }
    }

    pub fn all(&self) -> Vec<(&'static str, u64)> {
        self.0.lock().clone()
    }
}

/// How a statement reads its tables: the counters that every execution adds one to.
pub fn access_counters(plan: &Plan) -> Vec<Counter> {
    let mut counters = Vec::new();
    match plan {
        Plan::Query(query) => {
            note_access(&query.root, false, &mut counters);
            query.subqueries.iter().for_each(|sub| note_access(&sub.root, false, &mut counters));
            query.ctes.iter().for_each(|(_, root, _)| note_access(root, false, &mut counters));
        }
        Plan::Insert(insert) => {
            if let InsertSource::Query(query) = &insert.source {
                note_access(&query.root, false, &mut counters);
            }
        }
        // The reference counts reads of SELECT only.
        Plan::Update(_) | Plan::Delete(_) | Plan::Do { .. } | Plan::Rows { .. } => {}
    }
    counters
}

/// `inner`: not the first table of its join.
fn note_access(node: &Physical, inner: bool, counters: &mut Vec<Counter>) {
    match node {
        Physical::Scan { access, .. } => match (access, inner) {
            (Access::Full { .. }, false) => counters.push(Counter::SELECT_SCAN),
            (Access::Full { .. }, true) => counters.push(Counter::SELECT_FULL_JOIN),
            (Access::Ranges { ranges, .. }, _)
                if ranges.iter().all(|range| range.lower.is_none() && range.upper.is_none()) => {}
            (Access::Ranges { .. } | Access::Merge { .. }, false) => {
                counters.push(Counter::SELECT_RANGE)
            }
            (Access::Ranges { .. } | Access::Merge { .. }, true) => {
                counters.push(Counter::SELECT_FULL_RANGE_JOIN);
            }
            (Access::Unique { .. } | Access::Fulltext { .. } | Access::Walk(_), _) => {}
        },
        Physical::NestedLoop { outer, inner: right, .. }
        | Physical::HashJoin { outer, inner: right, .. } => {
            note_access(outer, inner, counters);
            note_access(right, true, counters);
        }
        other => other.for_each_input(&mut |input| note_access(input, inner, counters)),
    }
}
