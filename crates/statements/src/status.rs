//! Status counters. Each session counts in its own memory; the sums are computed when they are read.

use exec::ExecCounts;
use plan::{Access, InsertSource, Physical, Plan};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

/// A session's counter: its position in `NAMES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub usize);

macro_rules! counters {
    ($($constant:ident $name:literal),* $(,)?) => {
        /// Names of the session counters.
        pub const NAMES: &[&str] = &[$($name),*];
        counters!(@ 0usize; $($constant)*);
    };
    (@ $at:expr; $head:ident $($tail:ident)*) => {
        impl Counter { pub const $head: Counter = Counter($at); }
        counters!(@ $at + 1usize; $($tail)*);
    };
    (@ $at:expr;) => {};
}

counters! {
    ALTER_DB "Com_alter_db",
    ALTER_TABLE "Com_alter_table",
    ALTER_USER "Com_alter_user",
    ANALYZE "Com_analyze",
    BEGIN "Com_begin",
    CHANGE_DB "Com_change_db",
    CHECK "Com_check",
    CHECKSUM "Com_checksum",
    COMMIT "Com_commit",
    CREATE_DB "Com_create_db",
    CREATE_INDEX "Com_create_index",
    CREATE_ROLE "Com_create_role",
    CREATE_TABLE "Com_create_table",
    CREATE_USER "Com_create_user",
    CREATE_VIEW "Com_create_view",
    DEALLOC_SQL "Com_dealloc_sql",
    DELETE "Com_delete",
    DELETE_MULTI "Com_delete_multi",
    DO "Com_do",
    DROP_DB "Com_drop_db",
    DROP_INDEX "Com_drop_index",
    DROP_ROLE "Com_drop_role",
    DROP_TABLE "Com_drop_table",
    DROP_USER "Com_drop_user",
    DROP_VIEW "Com_drop_view",
    EXECUTE_SQL "Com_execute_sql",
    EXPLAIN "Com_explain_other",
    FLUSH "Com_flush",
    GET_DIAGNOSTICS "Com_get_diagnostics",
    GRANT "Com_grant",
    GRANT_ROLES "Com_grant_roles",
    HELP "Com_help",
    INSERT "Com_insert",
    INSERT_SELECT "Com_insert_select",
    HA_CLOSE "Com_ha_close",
    HA_OPEN "Com_ha_open",
    HA_READ "Com_ha_read",
    INSTALL_COMPONENT "Com_install_component",
    INSTALL_PLUGIN "Com_install_plugin",
    KILL "Com_kill",
    LOAD "Com_load",
    LOCK_TABLES "Com_lock_tables",
    OPTIMIZE "Com_optimize",
    PREPARE_SQL "Com_prepare_sql",
    RELEASE_SAVEPOINT "Com_release_savepoint",
    RENAME_TABLE "Com_rename_table",
    RENAME_USER "Com_rename_user",
    REPAIR "Com_repair",
    REPLACE "Com_replace",
    REPLACE_SELECT "Com_replace_select",
    RESET "Com_reset",
    REVOKE "Com_revoke",
    REVOKE_ROLES "Com_revoke_roles",
    ROLLBACK "Com_rollback",
    ROLLBACK_TO "Com_rollback_to_savepoint",
    SAVEPOINT "Com_savepoint",
    SELECT "Com_select",
    SET_OPTION "Com_set_option",
    SET_PASSWORD "Com_set_password",
    SET_ROLE "Com_set_role",
    SHOW "Com_show_variables",
    SHUTDOWN "Com_shutdown",
    SIGNAL "Com_signal",
    STMT_CLOSE "Com_stmt_close",
    STMT_EXECUTE "Com_stmt_execute",
    STMT_FETCH "Com_stmt_fetch",
    STMT_PREPARE "Com_stmt_prepare",
    STMT_REPREPARE "Com_stmt_reprepare",
    STMT_RESET "Com_stmt_reset",
    TRUNCATE "Com_truncate",
    UNLOCK_TABLES "Com_unlock_tables",
    UNINSTALL_COMPONENT "Com_uninstall_component",
    UNINSTALL_PLUGIN "Com_uninstall_plugin",
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
