//! The border between a protocol plugin and the SQL layers: commands go in, results leave through a sink.
//!
//! The sink is written to by the executor while rows are produced; a protocol encodes each cell straight into its output buffer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result};
use types::{DataType, Value};

use crate::authentication::{AccountSecret, Authenticator};

/// Where a connection comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// TCP, with the peer's address.
    Tcp(std::net::SocketAddr),
    /// UNIX socket.
    Local,
}

/// What the protocol knows of a connection before it authenticates.
#[derive(Clone, Debug)]
pub struct ConnectInfo {
    /// `CONNECTION_ID()`.
    pub connection_id: u64,
    /// Where from.
    pub kind: ConnectionKind,
    /// Cancels the running statement or the connection.
    pub cancel: CancelToken,
    /// What went over the connection so far.
    pub traffic: Traffic,
}

/// Bytes that went over a connection. Cloning shares; only the connection counts, anybody may read.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Arc<TrafficCounts>);

#[derive(Debug, Default)]
struct TrafficCounts {
    received: AtomicU64,
    sent: AtomicU64,
}

impl Traffic {
    /// Bytes came from the client.
    pub fn add_received(&self, bytes: u64) {
        add(&self.0.received, bytes);
    }

    /// Bytes went to the client.
    pub fn add_sent(&self, bytes: u64) {
        add(&self.0.sent, bytes);
    }

    /// Bytes received and sent.
    pub fn counts(&self) -> (u64, u64) {
        (self.0.received.load(Ordering::Relaxed), self.0.sent.load(Ordering::Relaxed))
    }
}

/// Only one thread at a time counts: no locked instruction is needed for each statement.
fn add(count: &AtomicU64, bytes: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// What a client sent to log in (handshake response or COM_CHANGE_USER).
#[derive(Clone, Debug, Default)]
pub struct AuthRequest {
    /// User name.
    pub user: String,
    /// Initial schema, when given.
    pub database: Option<String>,
    /// Collation id of the client's character set.
    pub collation: u16,
    /// Connection attributes.
    pub attributes: Vec<(String, String)>,
    /// CLIENT_FOUND_ROWS: affected rows count matched rows.
    pub found_rows: bool,
    /// CLIENT_INTERACTIVE: `wait_timeout` starts from `interactive_timeout`.
    pub interactive: bool,
    /// CLIENT_MULTI_STATEMENTS.
    pub multi_statements: bool,
    /// CLIENT_IGNORE_SPACE.
    pub ignore_space: bool,
    /// CLIENT_LOCAL_FILES.
    pub local_files: bool,
    /// CLIENT_CAN_HANDLE_EXPIRED_PASSWORDS.
    pub expired_passwords: bool,
    /// Whether the connection is encrypted: `(protocol version, cipher)`.
    pub tls: Option<(String, String)>,
}

/// Opens sessions. One for the whole server.
pub trait SessionFactory: Send + Sync {
    /// Version string for the greeting.
    fn server_version(&self) -> String;
    /// Default collation id for the greeting.
    fn server_collation(&self) -> u16;
    /// Name of the default authentication method for the greeting.
    fn default_authentication(&self) -> String;
    /// Finds the account of a login: its method and secret. An unknown user gets a method and a secret that never match, so that
    /// a client cannot tell.
    ///
    /// # Errors
    /// Account locked (3118), host blocked, secure transport required (3159).
    fn find_account(
        &self,
        request: &AuthRequest,
        kind: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)>;
    /// Opens a session for a login whose exchange was accepted.
    ///
    /// # Errors
    /// Unknown schema (1049), no right to it (1044), too many connections of the user (1226).
    fn open(&self, info: ConnectInfo, request: &AuthRequest) -> Result<Box<dyn SessionHandle>>;
    /// Hears of a log-in that its method refused, and may say why: an account that is locked from now on (3955).
    fn refused(&self, _request: &AuthRequest, _kind: &ConnectionKind) -> Option<Error> {
        None
    }
    /// KILL from COM_PROCESS_KILL is a statement; this is for the protocol's own use when a peer vanishes.
    fn kill(&self, connection_id: u64);
    /// Current value of a global system variable that the protocol needs (`max_connections`, `connect_timeout`, `max_allowed_packet`, ...).
    fn global_integer(&self, variable: &str) -> u64;
    /// Adds to a status counter (`Connections`, `Aborted_connects`, `Bytes_sent`...). Called rarely, not per statement.
    fn count_status(&self, name: &'static str, amount: u64);
}

/// An attribute of COM_QUERY or COM_STMT_EXECUTE.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryAttribute {
    /// Name; empty for a positional parameter.
    pub name: String,
    /// Value.
    pub value: Value,
}

/// Metadata of a result column.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnMeta {
    /// Schema of the column's table, or empty.
    pub schema: Arc<str>,
    /// Alias of the table, or empty.
    pub table: Arc<str>,
    /// The table's own name, or empty.
    pub org_table: Arc<str>,
    /// Caption.
    pub name: Arc<str>,
    /// The column's own name, or empty.
    pub org_name: Arc<str>,
    /// Type.
    pub ty: DataType,
    /// Column of PRIMARY KEY.
    pub primary_key: bool,
    /// Column of a UNIQUE key.
    pub unique_key: bool,
    /// First column of a non-unique key.
    pub multiple_key: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// No default: an INSERT must give a value.
    pub no_default: bool,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// A TIMESTAMP that takes the present moment by default.
    pub default_now: bool,
    /// Column of a temporary table: a derived table, a set operation, a window.
    pub materialized: bool,
    /// What an expression computes, in contrast to what a column or an aggregate has.
    pub computed: Option<Computed>,
}

/// What kind of expression a result column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// A call or a cast.
    Function,
    /// One of several values: CASE, IF, COALESCE.
    Choice,
    /// IFNULL.
    IfNull,
    /// A subquery.
    Subquery,
}

impl ColumnMeta {
    /// A computed column called `name`.
    pub fn computed(name: &str, ty: DataType) -> ColumnMeta {
        let none: Arc<str> = Arc::from("");
        ColumnMeta {
            schema: none.clone(),
            table: none.clone(),
            org_table: none.clone(),
            name: Arc::from(name),
            org_name: none,
            ty,
            primary_key: false,
            unique_key: false,
            multiple_key: false,
            auto_increment: false,
            no_default: false,
            on_update_now: false,
            default_now: false,
            materialized: false,
            computed: None,
        }
    }
}

/// A change of session state to report to a client that asked (CLIENT_SESSION_TRACK).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateChange {
    /// A tracked system variable.
    SystemVariable(String, String),
    /// The current schema.
    Schema(String),
    /// Something changed (`session_track_state_change`).
    State,
}

/// The end of a statement without a result set.
#[derive(Clone, Debug, Default)]
pub struct OkInfo {
    /// Affected rows.
    pub affected_rows: u64,
    /// First generated AUTO_INCREMENT value, or the argument of LAST_INSERT_ID(expr).
    pub last_insert_id: u64,
    /// Number of warnings.
    pub warnings: u16,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like.
    pub info: String,
    /// More results follow.
    pub more_results: bool,
    /// Tracked changes.
    pub changes: Vec<StateChange>,
    /// The reply may not be sent before this is durable.
    pub commit: Option<CommitHandle>,
    /// A transaction is open after this statement.
    pub in_transaction: bool,
    /// `autocommit` after this statement.
    pub autocommit: bool,
    /// This is the result of COM_STMT_EXECUTE with a cursor, and the cursor is open.
    pub cursor_open: bool,
    /// The cursor (or result) has no further row.
    pub last_row_sent: bool,
    /// `NO_BACKSLASH_ESCAPES` is on after this statement.
    pub no_backslash_escapes: bool,
    /// The result that ends here is the OUT parameters of a CALL.
    pub out_parameters: bool,
}

/// Flags that accompany every end of result.
pub type SessionState = OkInfo;

/// One row as the executor has it. Cells are asked for in order, once each.
pub trait RowSource {
    /// Number of cells.
    fn len(&self) -> usize;
    /// Whether there is no cell.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Appends cell `index` to `out` as a text-protocol cell: length-encoded string, or 0xFB for NULL.
    ///
    /// # Errors
    /// A damaged record.
    fn write_text(&self, index: usize, ty: &DataType, out: &mut Vec<u8>) -> Result<()>;
    /// The cell as a value (binary protocol, or any sink that wants values). TIMESTAMP comes in the session time zone.
    ///
    /// # Errors
    /// A damaged record.
    fn value(&self, index: usize, ty: &DataType) -> Result<Value>;
}

/// A server-side source for LOAD DATA LOCAL: the client's file in pieces.
pub trait LocalFile {
    /// The next piece; empty at the end.
    ///
    /// # Errors
    /// The client is gone or sent nonsense.
    fn read(&mut self) -> Result<Vec<u8>>;
}

/// What comes behind a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: it is the last one of the command.
    End,
    /// Another result.
    Result,
}

/// Takes the results of a command. For each statement either `columns`, rows, `end`; or `ok`; or `error`.
pub trait ResultSink {
    /// A result set begins.
    ///
    /// # Errors
    /// The client is gone.
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()>;
    /// The same with columns that other executions of the statement share: a sink may know them already.
    ///
    /// # Errors
    /// The client is gone.
    fn shared_columns(&mut self, columns: &Arc<[ColumnMeta]>) -> Result<()> {
        self.columns(columns)
    }
    /// What comes behind the results from here on: some clients look for it in what ends the columns.
    fn followed_by(&mut self, next: Next) {
        let _ = next;
    }
    /// A row. May flush; may block when the client reads slowly, up to `net_write_timeout`.
    ///
    /// # Errors
    /// The client is gone (1160 and kin): the statement ends.
    fn row(&mut self, row: &dyn RowSource) -> Result<()>;
    /// What a CALL gives to parameters of the prepared statement that it is: `parameters` are their numbers from 0. Comes before `ok`;
    /// a sink whose client does not take them drops them.
    ///
    /// # Errors
    /// The client is gone.
    fn out_parameters(
        &mut self,
        parameters: &[usize],
        columns: &[ColumnMeta],
        row: &dyn RowSource,
        state: &SessionState,
    ) -> Result<()> {
        let _ = (parameters, columns, row, state);
        Ok(())
    }
    /// The result set ends.
    ///
    /// # Errors
    /// The client is gone.
    fn end(&mut self, state: &SessionState) -> Result<()>;
    /// A statement without a result set ends.
    ///
    /// # Errors
    /// The client is gone.
    fn ok(&mut self, ok: &OkInfo) -> Result<()>;
    /// A statement fails; nothing of its result set can follow.
    ///
    /// # Errors
    /// The client is gone.
    fn error(&mut self, error: &Error) -> Result<()>;
    /// Asks the client for a file (LOAD DATA LOCAL INFILE).
    ///
    /// # Errors
    /// 3948 when the client did not offer it.
    fn local_file(&mut self, name: &str) -> Result<Box<dyn LocalFile + '_>>;
}

/// What a prepared statement looks like from outside.
#[derive(Clone, Debug, Default)]
pub struct PreparedInfo {
    /// Id for COM_STMT_EXECUTE.
    pub statement_id: u32,
    /// Parameters with their inferred types.
    pub parameters: Vec<ColumnMeta>,
    /// Result columns; empty when it returns none.
    pub columns: Vec<ColumnMeta>,
    /// Number of warnings.
    pub warnings: u16,
}

/// COM_STMT_EXECUTE.
#[derive(Debug)]
pub struct ExecuteRequest<'a> {
    /// Which statement.
    pub statement_id: u32,
    /// Parameters, long data included, in order.
    pub parameters: &'a [Value],
    /// Query attributes.
    pub attributes: &'a [QueryAttribute],
    /// CURSOR_TYPE_READ_ONLY was asked for.
    pub cursor: bool,
}

/// What the protocol does after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Wait for the next command.
    Continue,
    /// Close the connection (COMMIT RELEASE, KILL of itself, SHUTDOWN).
    Close,
}

/// A logged-in session. One command at a time. Every method reports a statement's failure through the sink; `Err` means that the
/// connection itself is lost.
pub trait SessionHandle: Send {
    /// COM_QUERY: one or more statements.
    ///
    /// # Errors
    /// The client is gone.
    fn query(
        &mut self,
        sql: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome>;
    /// COM_STMT_PREPARE.
    ///
    /// # Errors
    /// To be sent to the client; the session lives.
    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedInfo>;
    /// How many parameters a statement has, and the result columns' types: what is needed to decode COM_STMT_EXECUTE.
    ///
    /// # Errors
    /// 1243 for an unknown id.
    fn parameter_count(&self, statement_id: u32) -> Result<usize>;
    /// COM_STMT_EXECUTE.
    ///
    /// # Errors
    /// The client is gone.
    fn execute(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome>;
    /// COM_STMT_FETCH: rows then `end`, or `error`; `columns` is not called.
    ///
    /// # Errors
    /// The client is gone.
    fn fetch(&mut self, statement_id: u32, rows: u32, sink: &mut dyn ResultSink) -> Result<()>;
    /// COM_STMT_RESET: closes the cursor. (Long data is kept by the protocol.)
    ///
    /// # Errors
    /// 1243.
    fn reset_statement(&mut self, statement_id: u32) -> Result<OkInfo>;
    /// COM_STMT_CLOSE.
    fn close_statement(&mut self, statement_id: u32);
    /// COM_INIT_DB.
    ///
    /// # Errors
    /// 1049, 1044.
    fn init_db(&mut self, schema: &str) -> Result<OkInfo>;
    /// COM_FIELD_LIST: columns of a table whose names match the pattern.
    ///
    /// # Errors
    /// 1146, 1046.
    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnMeta>>;
    /// COM_STATISTICS: one line.
    fn statistics(&mut self) -> String;
    /// COM_PROCESS_KILL.
    ///
    /// # Errors
    /// 1094, 1095.
    fn kill(&mut self, connection_id: u64) -> Result<OkInfo>;
    /// COM_RESET_CONNECTION.
    ///
    /// # Errors
    /// Rollback failed.
    fn reset_connection(&mut self) -> Result<OkInfo>;
    /// COM_CHANGE_USER after its exchange was accepted.
    ///
    /// # Errors
    /// As `SessionFactory::open`.
    fn change_user(&mut self, request: &AuthRequest) -> Result<OkInfo>;
    /// COM_SET_OPTION: multi statements on or off.
    fn set_multi_statements(&mut self, on: bool);
    /// Session value of an integer variable that the protocol needs (`wait_timeout`, `net_write_timeout`, `max_allowed_packet`).
    fn integer_variable(&self, name: &str) -> u64;
    /// Character set id that results and messages are sent in; utf8mb4 unless the client asked otherwise. 63 for "as stored".
    fn result_collation(&self) -> u16;
    /// Flags for an OK that the protocol sends itself (COM_PING).
    fn state(&self) -> OkInfo;
}
