//! The variables that every statement reads, decoded. Rebuilt when a SET changes one of them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use charset::{Charset, Collation};
use engine_api::IsolationLevel;
use plan::ExecutionMode;
use plugin_api::{HistorySettings, LogWishes, RowImage, Tracking};
use sys::io_times::IoTimes;
use sys::temporary::TemporaryFiles;
use types::temporal::{TemporalMode, parse_datetime};
use types::{DateTime, SqlMode, Value, ZoneRules};

use crate::{Globals, SessionValues, as_text, as_u64};

/// What COMMIT and ROLLBACK do without CHAIN or RELEASE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionType {
    /// Nothing more.
    NoChain,
    /// A new transaction begins.
    Chain,
    /// The connection ends.
    Release,
}

/// What replies tell of the transaction (`session_track_transaction_info`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionTracking {
    /// Nothing.
    Off,
    /// What it has done.
    State,
    /// Also the statements that begin one like it.
    Characteristics,
}

/// How long a client may be silent in a transaction, each limit with its variable; `None` for no limit.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleTransactions {
    /// Whatever it has done.
    pub any: Option<(&'static str, Duration)>,
    /// It has written nothing.
    pub readonly: Option<(&'static str, Duration)>,
    /// It has written.
    pub write: Option<(&'static str, Duration)>,
}

/// Decoded session variables.
#[derive(Clone)]
pub struct Settings {
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `autocommit`.
    pub autocommit: bool,
    /// `collation_connection`: the collation of literals.
    pub collation_connection: &'static Collation,
    /// `character_set_client`: the character set of statements.
    pub charset_client: &'static Charset,
    /// `None`: results go out as stored.
    pub charset_results: Option<&'static Charset>,
    /// `collation_server`: the collation of new schemas.
    pub collation_server: &'static Collation,
    /// `time_zone`.
    pub time_zone: Arc<dyn ZoneRules>,
    /// `div_precision_increment`.
    pub div_precision_increment: u8,
    /// `group_concat_max_len`.
    pub group_concat_max_len: u64,
    /// `max_allowed_packet`.
    pub max_allowed_packet: u64,
    /// What the session sets of tables that keep history.
    pub history: HistorySettings,
    /// `max_execution_time`; `None` for no limit.
    pub max_execution_time: Option<Duration>,
    /// `max_statement_time`; `None` for no limit.
    pub max_statement_time: Option<Duration>,
    /// How long a client may be silent in a transaction.
    pub idle_transactions: IdleTransactions,
    /// `sql_select_limit`; `None` for no limit.
    pub sql_select_limit: Option<u64>,
    /// `execution_mode`.
    pub execution_mode: ExecutionMode,
    /// `parallel_degree`, resolved to a number of threads.
    pub parallel_degree: usize,
    /// `connection_memory_limit`.
    pub connection_memory_limit: usize,
    /// `connection_memory_chunk_size`.
    pub connection_memory_chunk: usize,
    /// `global_connection_memory_tracking`.
    pub counts_memory: bool,
    /// Bytes that one sort or hash table may keep in memory.
    pub operator_memory_bytes: usize,
    /// Files below `tmpdir`.
    pub temporary_files: Arc<TemporaryFiles>,
    /// `enable_cascade_triggers`: what foreign keys do to rows fires triggers.
    pub cascades_fire_triggers: bool,
    /// `sql_safe_updates`.
    pub sql_safe_updates: bool,
    /// `explicit_defaults_for_timestamp` is OFF: NULL for a NOT NULL TIMESTAMP means the present time.
    pub null_timestamp_is_now: bool,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// Foreign keys must refer to a whole unique key.
    pub restricts_foreign_keys: bool,
    /// `transactional_ddl`: definitions change within the open transaction.
    pub transactional_ddl: bool,
    /// `ddl_wait_policy`: new statements on a table do not wait for a change of its definition that waits itself.
    pub ddl_skips_ahead: bool,
    /// `lock_wait_timeout`: for metadata locks.
    pub lock_wait_timeout: Duration,
    /// `innodb_lock_wait_timeout`: for row locks.
    pub row_lock_timeout: Duration,
    /// `transaction_isolation`.
    pub isolation: IsolationLevel,
    /// `transaction_read_only`.
    pub transaction_read_only: bool,
    /// What of the session goes to the binary log.
    pub binary_log: LogSettings,
    /// `completion_type`.
    pub completion_type: CompletionType,
    /// `max_error_count`.
    pub max_error_count: u32,
    /// `sql_notes`.
    pub sql_notes: bool,
    /// `auto_increment_increment`.
    pub auto_increment_increment: u64,
    /// `auto_increment_offset`.
    pub auto_increment_offset: u64,
    /// `cte_max_recursion_depth`.
    pub cte_max_recursion_depth: u64,
    /// `None` when `sql_big_selects` lifts the bound.
    pub max_join_size: Option<u64>,
    /// `statement_cost`: statements are measured.
    pub statement_cost: bool,
    /// `profiling`: the steps of statements are measured.
    pub profiling: bool,
    /// `optimizer_trace`: what planning considers is kept.
    pub traces_optimizer: bool,
    /// `long_query_time` in microseconds.
    pub long_query_micros: i64,
    /// `session_track_schema`.
    pub track_schema: bool,
    /// `session_track_state_change`.
    pub track_state: bool,
    /// `session_track_transaction_info`.
    pub track_transaction: TransactionTracking,
    /// Lower case; `*` for all.
    pub track_variables: Vec<String>,
}

impl Settings {
    /// Decodes a session's variables; `zone` finds time zones, `io_times` counts file operations.
    pub fn decode(
        globals: &Globals,
        values: &SessionValues,
        zone: &dyn Fn(&str) -> Option<Arc<dyn ZoneRules>>,
        io_times: &Arc<IoTimes>,
    ) -> Settings {
        let read = Read { globals, values };
        let select_limit = read.number("sql_select_limit");
        let execution_ms = read.number("max_execution_time");
        let zone_name = read.text("time_zone");
        let time_zone = zone(&zone_name).unwrap_or_else(|| Arc::new(types::FixedOffset::utc()));
        Settings {
            sql_mode: SqlMode::parse(&read.text("sql_mode")).unwrap_or(SqlMode::DEFAULT),
            autocommit: read.flag("autocommit"),
            collation_connection: read.collation("collation_connection"),
            charset_client: read.charset("character_set_client"),
            charset_results: match read.value("character_set_results") {
                Value::Null => None,
                _ => Some(read.charset("character_set_results")),
            },
            collation_server: read.collation("collation_server"),
            history: HistorySettings {
                as_of_micros: as_of(&read.text("system_versioning_asof"), &*time_zone),
                gives_row_times: read.flag("system_versioning_insert_history"),
                stored_rows: read.flag("system_versioning_stored_rows"),
            },
            time_zone,
            div_precision_increment: read.number("div_precision_increment") as u8,
            group_concat_max_len: read.number("group_concat_max_len"),
            max_allowed_packet: read.number("max_allowed_packet"),
            idle_transactions: IdleTransactions {
                any: read.idle("idle_transaction_timeout"),
                readonly: read.idle("idle_readonly_transaction_timeout"),
                write: read.idle("idle_write_transaction_timeout"),
            },
            max_statement_time: read.seconds("max_statement_time"),
            max_execution_time: (execution_ms > 0).then(|| Duration::from_millis(execution_ms)),
            sql_select_limit: (select_limit != u64::MAX).then_some(select_limit),
            execution_mode: match read.text("execution_mode").as_str() {
                "ROW" => ExecutionMode::Row,
                "BATCH" => ExecutionMode::Batch,
                _ => ExecutionMode::Auto,
            },
            parallel_degree: match read.number("parallel_degree") as usize {
                0 => sys::threads::processors(),
                degree => degree,
            },
            connection_memory_limit: read.number("connection_memory_limit") as usize,
            connection_memory_chunk: read.number("connection_memory_chunk_size") as usize,
            counts_memory: read.flag("global_connection_memory_tracking"),
            operator_memory_bytes: crate::operator_bytes(
                read.number("sort_buffer_size"),
                read.number("tmp_table_size"),
            ) as usize,
            temporary_files: Arc::new(TemporaryFiles::new(
                Path::new(&read.text("tmpdir")),
                io_times.clone(),
            )),
            cascades_fire_triggers: read.flag("enable_cascade_triggers"),
            sql_safe_updates: read.flag("sql_safe_updates"),
            null_timestamp_is_now: !read.flag("explicit_defaults_for_timestamp"),
            foreign_key_checks: read.flag("foreign_key_checks"),
            statement_cost: read.flag("statement_cost"),
            profiling: read.flag("profiling"),
            traces_optimizer: read.has_switch("optimizer_trace", "enabled=on"),
            restricts_foreign_keys: read.flag("restrict_fk_on_non_standard_key"),
            transactional_ddl: read.flag("transactional_ddl"),
            ddl_skips_ahead: read.text("ddl_wait_policy") == "skip_ahead",
            lock_wait_timeout: Duration::from_secs(read.number("lock_wait_timeout")),
            row_lock_timeout: Duration::from_secs(read.number("innodb_lock_wait_timeout")),
            isolation: isolation(&read.text("transaction_isolation")),
            transaction_read_only: read.flag("transaction_read_only"),
            binary_log: LogSettings::decode(&read),
            completion_type: match read.text("completion_type").as_str() {
                "CHAIN" => CompletionType::Chain,
                "RELEASE" => CompletionType::Release,
                _ => CompletionType::NoChain,
            },
            max_error_count: read.number("max_error_count") as u32,
            sql_notes: read.flag("sql_notes"),
            auto_increment_increment: read.number("auto_increment_increment"),
            auto_increment_offset: read.number("auto_increment_offset"),
            cte_max_recursion_depth: read.number("cte_max_recursion_depth"),
            long_query_micros: (read.double("long_query_time") * 1e6) as i64,
            max_join_size: (!read.flag("sql_big_selects")).then(|| read.number("max_join_size")),
            track_schema: read.flag("session_track_schema"),
            track_state: read.flag("session_track_state_change"),
            track_transaction: match read.text("session_track_transaction_info").as_str() {
                "STATE" => TransactionTracking::State,
                "CHARACTERISTICS" => TransactionTracking::Characteristics,
                _ => TransactionTracking::Off,
            },
            track_variables: read
                .text("session_track_system_variables")
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase())
                .filter(|name| !name.is_empty())
                .collect(),
        }
    }

    /// Whether replies report changes of a variable.
    pub fn tracks(&self, name: &str) -> bool {
        self.track_variables.iter().any(|tracked| tracked == "*" || tracked == name)
    }
}

/// The time that `system_versioning_asof` names, in the session's zone; `None` for DEFAULT.
fn as_of(text: &str, zone: &dyn ZoneRules) -> Option<i64> {
    if text == "DEFAULT" {
        return None;
    }
    zone.local_to_utc(local_as_of(text)?)
}

fn local_as_of(text: &str) -> Option<DateTime> {
    parse_datetime(text.as_bytes(), 6, TemporalMode::default()).value
}

/// Whether `system_versioning_asof` may have a value.
pub fn is_as_of(text: &str) -> bool {
    text.eq_ignore_ascii_case("DEFAULT") || local_as_of(text).is_some()
}

/// `original_commit_timestamp` of transactions that begin here.
const UNKNOWN_COMMIT: u64 = 36_028_797_018_963_968;

/// What of a session goes to the binary log.
#[derive(Clone, Debug, Default)]
pub struct LogSettings {
    /// `sql_log_bin`: its changes.
    pub changes: bool,
    /// `binlog_rows_query_log_events`: with the texts of their statements.
    pub texts: bool,
    /// `binlog_row_image`.
    pub row_image: RowImage,
    /// `binlog_row_value_options`: documents as changes.
    pub partial_json: bool,
    /// The identifier in `gtid_next`.
    pub gtid_next: Option<Box<str>>,
    /// What else it wants of its transactions.
    pub wishes: LogWishes,
}

impl LogSettings {
    /// The next transaction is one of another server, or with an identifier of this one.
    pub fn repeat(&mut self, gtid: Option<String>, server_id: u32, commit_micros: u64) {
        self.gtid_next = gtid.map(String::into_boxed_str);
        self.wishes.server_id = server_id;
        self.wishes.commit_micros = commit_micros;
    }

    fn decode(read: &Read<'_>) -> LogSettings {
        // Without a binary log nobody asks for the others, and a connection reads less.
        if !read.flag("log_bin") {
            return LogSettings::default();
        }
        let gtid = Some(read.text("gtid_next")).filter(|text| text.contains(':'));
        LogSettings {
            changes: read.flag("sql_log_bin"),
            texts: read.flag("binlog_rows_query_log_events"),
            row_image: match read.text("binlog_row_image").as_str() {
                "MINIMAL" => RowImage::Minimal,
                "NOBLOB" => RowImage::NoBlob,
                _ => RowImage::Full,
            },
            partial_json: !read.text("binlog_row_value_options").is_empty(),
            gtid_next: gtid.map(String::into_boxed_str),
            wishes: LogWishes {
                tracking: match read.text("session_track_gtids").as_str() {
                    "OWN_GTID" => Tracking::Own,
                    "ALL_GTIDS" => Tracking::All,
                    _ => Tracking::Off,
                },
                compression: read
                    .flag("binlog_transaction_compression")
                    .then(|| read.number("binlog_transaction_compression_level_zstd") as i32),
                server_id: read.number("original_server_id") as u32,
                commit_micros: match read.number("original_commit_timestamp") {
                    UNKNOWN_COMMIT => 0,
                    known => known,
                },
            },
        }
    }
}

/// An isolation level by its name in `transaction_isolation`.
pub fn isolation(name: &str) -> IsolationLevel {
    match name {
        "READ-UNCOMMITTED" => IsolationLevel::ReadUncommitted,
        "READ-COMMITTED" => IsolationLevel::ReadCommitted,
        "SERIALIZABLE" => IsolationLevel::Serializable,
        _ => IsolationLevel::RepeatableRead,
    }
}

struct Read<'a> {
    globals: &'a Globals,
    values: &'a SessionValues,
}

impl Read<'_> {
    /// Without a copy: each log-in reads all of them.
    fn look(&self, name: &str) -> Option<&Value> {
        let id = self.globals.definitions.find(name)?;
        Some(self.values.get(id))
    }

    fn value(&self, name: &str) -> Value {
        self.look(name).cloned().unwrap_or(Value::Null)
    }

    fn number(&self, name: &str) -> u64 {
        self.look(name).map_or(0, as_u64)
    }

    fn double(&self, name: &str) -> f64 {
        if let Some(Value::Double(number)) = self.look(name) { *number } else { 0.0 }
    }

    /// Whether a variable of switches has this one.
    fn has_switch(&self, name: &str, switch: &str) -> bool {
        let Some(Value::Bytes(switches)) = self.look(name) else { return false };
        switches.windows(switch.len()).any(|part| part == switch.as_bytes())
    }

    /// Seconds; `None` for 0.
    fn seconds(&self, name: &str) -> Option<Duration> {
        let seconds = self.double(name);
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    /// A limit with its variable; `None` for 0.
    fn idle(&self, name: &'static str) -> Option<(&'static str, Duration)> {
        let seconds = self.number(name);
        (seconds > 0).then(|| (name, Duration::from_secs(seconds)))
    }

    fn flag(&self, name: &str) -> bool {
        self.number(name) != 0
    }

    fn text(&self, name: &str) -> String {
        self.look(name).map_or_else(|| as_text(&Value::Null), as_text)
    }

    fn collation(&self, name: &str) -> &'static Collation {
        charset::collation_by_name(&self.text(name))
            .unwrap_or_else(|| charset::collation_or_binary(types::CollationId::UTF8MB4_0900_AI_CI))
    }

    fn charset(&self, name: &str) -> &'static Charset {
        charset::charset_by_name(&self.text(name)).unwrap_or_else(|| {
            charset::collation_or_binary(types::CollationId::UTF8MB4_0900_AI_CI).charset
        })
    }
}
