//! The slot for tables whose rows are facts about the server: information_schema, performance_schema, data_dictionary, mysql.*.

use std::sync::Arc;

use engine_api::{DeadlockView, LockReport};
use errors::Result;
use types::{DataType, Value};

/// A column of an information table.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoColumn {
    /// Name as shown.
    pub name: &'static str,
    /// Type.
    pub ty: DataType,
}

/// What a statement wants of a table: equality conditions that the WHERE clause has on look-up columns, which a table may use to
/// produce fewer rows (the executor filters all the same), and the columns that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfoFilter {
    /// `column = 'literal'` pairs, column names in lower case.
    pub equals: Vec<(String, String)>,
    /// Positions of the columns that the statement reads: values of others may be anything.
    pub reads: Vec<usize>,
}

impl InfoFilter {
    /// The literal that `column` (lower case) must equal.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.equals.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_str())
    }

    /// Whether the statement reads one of these columns.
    pub fn reads_any(&self, columns: &[usize]) -> bool {
        self.reads.iter().any(|read| columns.contains(read))
    }
}

/// A table of facts.
pub trait InformationTable: Send + Sync {
    /// `information_schema`, `performance_schema`, `data_dictionary`, `mysql` or `sys`.
    fn schema(&self) -> &'static str;
    /// Name as shown.
    fn name(&self) -> &'static str;
    /// Columns.
    fn columns(&self) -> &[InfoColumn];
    /// Produces the rows.
    ///
    /// # Errors
    /// What `emit` returns, and cancelled statements.
    fn rows(
        &self,
        ctx: &dyn InformationContext,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()>;
}

/// How much of a table is asked for. Each has what those before it have; what is not asked for may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableDetail {
    /// Schema, name and type.
    Name,
    /// What its definition says.
    Definition,
    /// What its engine has counted, and the CREATE statement, which shows some of it.
    Statistics,
}

/// A table or view of the catalog, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableView {
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub name: String,
    /// `BASE TABLE`, `VIEW`, `SYSTEM VIEW`, `SEQUENCE`.
    pub table_type: &'static str,
    /// Engine name; `None` for views.
    pub engine: Option<String>,
    /// Default collation name.
    pub collation: String,
    /// Comment.
    pub comment: String,
    /// As given in CREATE TABLE, for `CREATE_OPTIONS`.
    pub create_options: String,
    /// `ROW_FORMAT` shown.
    pub row_format: String,
    /// Next AUTO_INCREMENT value, when the table has such a column.
    pub auto_increment: Option<u64>,
    /// Estimated rows.
    pub rows: u64,
    /// Bytes of data and of indexes.
    pub data_bytes: u64,
    /// Bytes of indexes other than the clustered one.
    pub index_bytes: u64,
    /// Creation time, microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Columns in order.
    pub columns: Vec<ColumnView>,
    /// Indexes, primary first.
    pub indexes: Vec<IndexView>,
    /// Primary, unique, foreign keys and checks.
    pub constraints: Vec<ConstraintView>,
    /// Full text of SHOW CREATE TABLE or SHOW CREATE VIEW.
    pub create_statement: String,
    /// Defining SELECT of a view.
    pub view_definition: Option<String>,
    /// `user@host` of a view.
    pub definer: String,
    /// `DEFINER` or `INVOKER`, of a view.
    pub security: &'static str,
    /// `NONE`, `LOCAL` or `CASCADED`, of a view.
    pub check_option: String,
    /// `character_set_client` and `collation_connection` of the session that made a view.
    pub session_charset: String,
    /// See `session_charset`.
    pub session_collation: String,
    /// CREATE TEMPORARY.
    pub temporary: bool,
    /// Partitions in order, subpartitions where there are some; none of a table without PARTITION BY.
    pub partitions: Vec<PartitionView>,
}

/// A partition or a subpartition, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartitionView {
    /// Name.
    pub name: String,
    /// Name of the subpartition.
    pub sub_name: Option<String>,
    /// Place of the partition, from 1.
    pub position: u64,
    /// Place of the subpartition in it, from 1.
    pub sub_position: Option<u64>,
    /// `RANGE`, `LIST COLUMNS`, `LINEAR HASH`, ...
    pub method: String,
    /// The same of subpartitions.
    pub sub_method: Option<String>,
    /// Expression or columns; `None` for KEY ().
    pub expression: Option<String>,
    /// The same of subpartitions.
    pub sub_expression: Option<String>,
    /// VALUES.
    pub description: Option<String>,
    /// Comment.
    pub comment: String,
    /// Estimated rows.
    pub rows: u64,
}

/// A column, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnView {
    /// Name.
    pub name: String,
    /// Type.
    pub ty: DataType,
    /// `COLUMN_TYPE`, for example `int unsigned`.
    pub column_type: String,
    /// Default as text, or the text of an expression default.
    pub default: Option<String>,
    /// The default is an expression (`DEFAULT_GENERATED`).
    pub default_is_expression: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// `CURRENT_TIMESTAMP(n)` of ON UPDATE.
    pub on_update: Option<String>,
    /// Expression of a generated column, and whether it is stored.
    pub generated: Option<(String, bool)>,
    /// Comment.
    pub comment: String,
    /// INVISIBLE.
    pub invisible: bool,
    /// `PRI`, `UNI`, `MUL` or empty.
    pub key: &'static str,
    /// How its values are spread, a JSON document.
    pub histogram: Option<Value>,
}

/// An index, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexView {
    /// Name; `PRIMARY` for the primary key.
    pub name: String,
    /// UNIQUE or PRIMARY.
    pub unique: bool,
    /// `BTREE`, `FULLTEXT`, `SPATIAL`, `HASH`.
    pub kind: &'static str,
    /// Column name (or expression), prefix length, descending, distinct keys up to this part.
    pub parts: Vec<(Option<String>, Option<String>, Option<u32>, bool, u64)>,
    /// Comment.
    pub comment: String,
    /// Not INVISIBLE.
    pub visible: bool,
}

/// What a constraint demands.
#[derive(Clone, Debug, PartialEq)]
pub enum ConstraintKind {
    /// PRIMARY KEY over these columns.
    Primary(Vec<String>),
    /// UNIQUE over these columns; `None` stands for an expression.
    Unique(Vec<Option<String>>),
    /// FOREIGN KEY.
    Foreign {
        /// Own columns.
        columns: Vec<String>,
        /// Schema, table and columns referenced.
        referenced: (String, String, Vec<String>),
        /// Name of the referenced unique key.
        unique_name: String,
        /// `RESTRICT`, `CASCADE`, `SET NULL`, `NO ACTION`, `SET DEFAULT`.
        on_update: &'static str,
        /// Likewise.
        on_delete: &'static str,
    },
    /// CHECK with its expression, and whether it is enforced.
    Check(String, bool),
}

/// A constraint, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstraintView {
    /// Name.
    pub name: String,
    /// What it demands.
    pub kind: ConstraintKind,
}

/// A system variable, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableView {
    /// Name.
    pub name: String,
    /// Session value (global one when it has none), printed as SHOW VARIABLES does.
    pub session: String,
    /// Global value; `None` for session-only variables.
    pub global: Option<String>,
    /// Whether SET can change it while the server runs.
    pub dynamic: bool,
    /// Where the value comes from: `COMPILED`, `COMMAND_LINE`, `PERSISTED`, `DYNAMIC`.
    pub source: &'static str,
    /// One sentence with the unit.
    pub description: &'static str,
}

/// A connection, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessView {
    /// Connection id.
    pub id: u64,
    /// User.
    pub user: String,
    /// Host and port, or `localhost`.
    pub host: String,
    /// Current schema.
    pub database: Option<String>,
    /// `Sleep`, `Query`, `Execute`, ...
    pub command: &'static str,
    /// Seconds in the state.
    pub seconds: u64,
    /// What it does, or empty.
    pub state: &'static str,
    /// Text of the running statement.
    pub info: Option<String>,
    /// `user@host` of the account that it logged in as.
    pub account: String,
    /// What the client said of itself: names and values.
    pub attributes: Arc<[(String, String)]>,
}

/// How many calls of one kind to the operating system's files took how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoBucket {
    /// Name of the call.
    pub call: &'static str,
    /// They took less than this, a power of two, and no less than half of it.
    pub below_micros: u64,
    /// How many.
    pub count: u64,
    /// Their time in all.
    pub total_micros: u64,
}

/// What information tables may ask of the server. Every answer is filtered by what the session's account may see.
pub trait InformationContext {
    /// Schemas in name order: name, default collation name.
    fn schemas(&self) -> Vec<(String, String)>;
    /// Visits the tables of a schema in name order, information tables included. Pass `name` to get one.
    ///
    /// # Errors
    /// Cancelled; what `visit` returns.
    fn tables(
        &self,
        schema: &str,
        name: Option<&str>,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()>;
    /// CREATE DATABASE text of a schema.
    fn schema_create_statement(&self, schema: &str) -> Option<String>;
    /// All system variables in name order.
    fn variables(&self) -> Vec<VariableView>;
    /// Status counters in name order; session values when `global` is false.
    fn status(&self, global: bool) -> Vec<(String, String)>;
    /// Connections.
    fn processes(&self) -> Vec<ProcessView>;
    /// Warnings of the last statement: level, code, message.
    fn conditions(&self) -> Vec<(&'static str, u16, String)>;
    /// Engines: name, support (`YES`, `DEFAULT`), comment, transactions, XA, savepoints.
    fn engines(&self) -> Vec<(String, &'static str, String, bool, bool, bool)>;
    /// Engine counters: engine, group, name, value.
    fn engine_stats(&self) -> Vec<(String, String, String, String)>;

    /// Transactions and locks of each engine, of sessions that may be seen.
    fn engine_locks(&self) -> Vec<(String, LockReport)> {
        Vec::new()
    }
    /// The deadlock that each engine found last, if any.
    fn latest_deadlocks(&self) -> Vec<(String, DeadlockView)> {
        Vec::new()
    }

    /// The events of a schema in name order.
    fn events(&self, _schema: &str) -> Vec<EventView> {
        Vec::new()
    }
    /// The routines of a schema, procedures first, each in name order.
    fn routines(&self, _schema: &str) -> Vec<RoutineView> {
        Vec::new()
    }
    /// Triggers of a schema in order of table, event, time and place.
    fn triggers(&self, _schema: &str) -> Vec<TriggerView> {
        Vec::new()
    }

    /// Whether rows can be changed through a view. The view is bound for it.
    fn is_updatable(&self, _schema: &str, _view: &str) -> bool {
        false
    }

    /// Bytes of memory for definitions that nobody uses, about.
    fn catalog_bytes(&self) -> u64 {
        0
    }
    /// Bytes of memory of the whole process.
    fn resident_bytes(&self) -> u64;
    /// The server's calls to files by how long they took.
    fn io_times(&self) -> Vec<IoBucket> {
        Vec::new()
    }
    /// Plugins.
    fn plugins(&self) -> Vec<(crate::PluginInfo, Vec<(&'static str, String)>)>;
    /// Functions: name, help text.
    fn functions(&self) -> Vec<(&'static str, &'static str)>;
    /// Plan cache entries: schema, text, hits, bytes, total execution nanoseconds.
    fn plan_cache(&self) -> Vec<(String, String, u64, u64, u64)>;
    /// Rows of one of the account tables (`user`, `db`, `tables_priv`, `role_edges`...), columns as `InformationTable::columns` of it.
    fn accounts(&self) -> Vec<AccountView>;
    /// The session's own account and all roles that it holds, by way of others too; its own first.
    fn role_accounts(&self) -> Vec<AccountView> {
        Vec::new()
    }
    /// The roles in force: user, host.
    fn active_roles(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// Grants of an account as statements, `None` for the session's own.
    ///
    /// # Errors
    /// 1141.
    fn grants(&self, account: Option<&str>) -> Result<Vec<String>>;
    /// The session's current schema.
    fn database(&self) -> Option<String>;
    /// The session's `user@host`.
    fn current_user(&self) -> String;
    /// Server start, microseconds since 1970 UTC.
    fn started_micros(&self) -> i64;
    /// Now, microseconds since 1970 UTC.
    fn now_micros(&self) -> i64;
    /// Error when the statement was cancelled.
    ///
    /// # Errors
    /// 1317.
    fn check_cancelled(&self) -> Result<()>;
}

/// A stored routine, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutineView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `PROCEDURE` or `FUNCTION`.
    pub kind: &'static str,
    /// Parameters in order.
    pub parameters: Vec<ParameterView>,
    /// What a function returns.
    pub returns: Option<ParameterView>,
    /// Text of the body, for who may see it.
    pub body: Option<String>,
    /// `user@host`.
    pub definer: String,
    /// `DEFINER` or `INVOKER`.
    pub security: &'static str,
    /// DETERMINISTIC.
    pub deterministic: bool,
    /// `CONTAINS SQL` and so on.
    pub data_access: String,
    /// Comment.
    pub comment: String,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// An event, as information tables see it; local times are of its own time zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `user@host`.
    pub definer: String,
    /// Its time zone.
    pub time_zone: String,
    /// Text of the body.
    pub body: String,
    /// AT of an event that runs once.
    pub execute_at: Option<types::DateTime>,
    /// EVERY: value and unit.
    pub interval: Option<(String, String)>,
    /// STARTS.
    pub starts: Option<types::DateTime>,
    /// ENDS.
    pub ends: Option<types::DateTime>,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// `ENABLED`, `DISABLED` or `REPLICA_SIDE_DISABLED`.
    pub status: &'static str,
    /// ON COMPLETION PRESERVE.
    pub preserve: bool,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// When it ran last.
    pub executed: Option<types::DateTime>,
    /// Comment.
    pub comment: String,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// A trigger, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriggerView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// The table.
    pub table: String,
    /// `INSERT`, `UPDATE` or `DELETE`.
    pub event: &'static str,
    /// `BEFORE` or `AFTER`.
    pub timing: &'static str,
    /// Its place among those of the same table, event and time.
    pub order: u64,
    /// Text of the body.
    pub body: String,
    /// `user@host`.
    pub definer: String,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// A parameter of a routine, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterView {
    /// Name.
    pub name: String,
    /// `IN`, `OUT` or `INOUT`.
    pub mode: String,
    /// Type.
    pub ty: DataType,
    /// Type as written.
    pub type_text: String,
}

/// An account, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountView {
    /// User name.
    pub user: String,
    /// Host pattern.
    pub host: String,
    /// Authentication method.
    pub plugin: String,
    /// Stored secret; empty unless the session may read it.
    pub authentication_string: String,
    /// Global privileges, names as GRANT spells them.
    pub privileges: Vec<String>,
    /// Schema privileges: schema pattern, names.
    pub schema_privileges: Vec<(String, Vec<String>)>,
    /// Table privileges: schema, table, names.
    pub table_privileges: Vec<(String, String, Vec<String>)>,
    /// Column privileges: schema, table, column, names.
    pub column_privileges: Vec<(String, String, String, Vec<String>)>,
    /// Privileges on routines: schema, `PROCEDURE` or `FUNCTION`, routine, names.
    pub routine_privileges: Vec<(String, &'static str, String, Vec<String>)>,
    /// Dynamic privileges, and whether they come with GRANT OPTION.
    pub dynamic_privileges: Vec<(String, bool)>,
    /// Granted roles: user, host, WITH ADMIN OPTION.
    pub roles: Vec<(String, String, bool)>,
    /// Roles active after log-in: user, host.
    pub default_roles: Vec<(String, String)>,
    /// Accounts that it may act for: user, host, WITH GRANT OPTION.
    pub proxies: Vec<(String, String, bool)>,
    /// `ANY`, `X509`, `SPECIFIED` or empty: what of TLS the account requires.
    pub tls: &'static str,
    /// MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR, MAX_CONNECTIONS_PER_HOUR, MAX_USER_CONNECTIONS.
    pub limits: [u64; 4],
    /// PASSWORD EXPIRE.
    pub password_expired: bool,
    /// Last change of the password, microseconds since 1970 UTC; 0 for never.
    pub password_changed_micros: i64,
    /// PASSWORD EXPIRE INTERVAL; 0 for NEVER.
    pub password_lifetime: Option<u64>,
    /// PASSWORD HISTORY.
    pub password_history: Option<u64>,
    /// PASSWORD REUSE INTERVAL.
    pub password_reuse_days: Option<u64>,
    /// PASSWORD REQUIRE CURRENT.
    pub password_require_current: Option<bool>,
    /// What else is kept of it, a JSON text or empty: `mysql.user.User_attributes`.
    pub user_attributes: String,
    /// Earlier passwords: since when, microseconds since 1970 UTC, and as stored; empty unless the session may read them.
    pub earlier_passwords: Vec<(i64, String)>,
    /// WITH GRANT OPTION, global.
    pub grant_option: bool,
    /// ACCOUNT LOCK.
    pub locked: bool,
    /// ATTRIBUTE and COMMENT, a JSON text or empty.
    pub attribute: String,
}
