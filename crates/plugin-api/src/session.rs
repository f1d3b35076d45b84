//! The interface between a protocol plugin and the SQL layers: connections and their commands. Results leave through a `ResultSink`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine_api::CancelToken;
use errors::{Error, Result, bail};
use stdx::SharedExtent;
use types::Value;

use crate::authentication::{AccountSecret, Authenticator};
use crate::binary_log::{DumpRequest, DumpSink, RegisteredReplica};
use crate::http::{ConsolePage, HttpRoutes};
use crate::information::{InfoColumn, ProcessView, TimedCounts};
use crate::result::{ColumnMeta, OkInfo, ResultSink};
use crate::stream_sink::StreamSink;

/// The origin of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// TCP, with the peer's address.
    Tcp(std::net::SocketAddr),
    /// UNIX socket.
    Local,
}

/// The protocol's facts about a connection before it authenticates.
#[derive(Clone, Debug)]
pub struct ConnectInfo {
    /// `CONNECTION_ID()`.
    pub connection_id: u64,
    /// Where from.
    pub kind: ConnectionKind,
    /// Cancels the running statement or the connection.
    pub cancel: CancelToken,
    /// Counters of the traffic on the connection so far.
    pub traffic: Traffic,
    /// Came through the administrative address: it has a place beyond `max_connections`, and wants SERVICE_CONNECTION_ADMIN.
    pub is_administrative: bool,
}

/// The socket of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketView {
    /// The process's number of it.
    pub descriptor: i32,
    /// The client's address; `None` for a UNIX socket.
    pub peer: Option<std::net::SocketAddr>,
    /// Calls that received bytes, and waits for the rest of a message. A wait for the next command has no time.
    pub read: TimedCounts,
    /// Calls that sent bytes, and waits for room.
    pub write: TimedCounts,
}

/// What went over a connection. Clones share the counters; only the connection counts, every holder may read.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Arc<TrafficCounts>);

#[derive(Debug, Default)]
struct TrafficCounts {
    /// Number of the socket, and the client's address. `None`: nothing is sent.
    socket: Option<(i32, Option<std::net::SocketAddr>)>,
    received: Direction,
    sent: Direction,
}

/// One direction.
#[derive(Debug, Default)]
struct Direction {
    calls: AtomicU64,
    bytes: AtomicU64,
    /// Time of waits: rare, and long.
    nanos: AtomicU64,
    extent: SharedExtent,
}

impl Direction {
    fn add(&self, bytes: u64) {
        add(&self.calls, 1);
        add(&self.bytes, bytes);
    }

    fn add_wait(&self, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(&self.nanos, nanos);
        self.extent.add(nanos);
    }

    fn counts(&self) -> TimedCounts {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        TimedCounts {
            count: load(&self.calls),
            bytes: load(&self.bytes),
            nanos: load(&self.nanos),
            extent: self.extent.get(),
        }
    }
}

impl Traffic {
    /// Of a connection over the socket with this number.
    pub fn over(descriptor: i32, peer: Option<std::net::SocketAddr>) -> Traffic {
        let socket = Some((descriptor, peer));
        Traffic(Arc::new(TrafficCounts { socket, ..TrafficCounts::default() }))
    }

    /// A call brought bytes from the client.
    pub fn add_received(&self, bytes: u64) {
        self.0.received.add(bytes);
    }

    /// A call took bytes to the client.
    pub fn add_sent(&self, bytes: u64) {
        self.0.sent.add(bytes);
    }

    /// The rest of a message was waited for.
    pub fn add_receive_wait(&self, took: Duration) {
        self.0.received.add_wait(took);
    }

    /// Room to send was waited for.
    pub fn add_send_wait(&self, took: Duration) {
        self.0.sent.add_wait(took);
    }

    /// Bytes received and sent.
    pub fn counts(&self) -> (u64, u64) {
        let bytes = |direction: &Direction| direction.bytes.load(Ordering::Relaxed);
        (bytes(&self.0.received), bytes(&self.0.sent))
    }

    /// The socket; `None` for sessions without one.
    pub fn socket(&self) -> Option<SocketView> {
        let (descriptor, peer) = self.0.socket?;
        let (read, write) = (self.0.received.counts(), self.0.sent.counts());
        Some(SocketView { descriptor, peer, read, write })
    }
}

/// Only one thread at a time counts: no locked instruction is needed for each statement.
fn add(count: &AtomicU64, bytes: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
}

/// The fields that a client sends to log in (handshake response or COM_CHANGE_USER).
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
    /// The certificate by which the client proved who it is.
    pub certificate: Option<PeerCertificate>,
}

/// Names in a client's certificate, as OpenSSL writes them in one line: `/C=SE/O=Example/CN=client`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Whose it is.
    pub subject: String,
    /// Who signed it.
    pub issuer: String,
}

/// A transaction of another server that is repeated here.
#[derive(Clone, Copy, Debug)]
pub struct RepeatedTransaction<'a> {
    /// Its identifier; without one it gets one of this server.
    pub gtid: Option<&'a types::Gtid>,
    /// Where it began; 0: here.
    pub server_id: u32,
    /// When it was committed there, in microseconds since 1970; 0 when that is not known.
    pub commit_micros: u64,
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
    /// a client cannot distinguish them.
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
    /// Opens a session of the server itself, with every privilege, that repeats what another server did: it fires no triggers. `cancel` stops
    /// its statements. It ends when the handle is dropped.
    ///
    /// # Errors
    /// 1235 where there is none.
    fn open_applier(&self, _cancel: CancelToken) -> Result<Box<dyn SessionHandle>> {
        Err(Error::not_supported("sessions of replicas"))
    }
    /// How long the answer to a log-in is to be held back. The protocol waits without a thread.
    fn login_delay(&self, _request: &AuthRequest, _kind: &ConnectionKind) -> Duration {
        Duration::ZERO
    }
    /// Is told of a log-in that its method refused, and may give the reason: an account that is locked from now on (3955).
    fn refused(&self, _request: &AuthRequest, _kind: &ConnectionKind) -> Option<Error> {
        None
    }
    /// The user that a bearer token names by the first authentication method that knows such tokens; the token is then his password.
    fn bearer_user(&self, _token: &str) -> Option<String> {
        None
    }
    /// KILL from COM_PROCESS_KILL is a statement; this is for the protocol's own use when a peer vanishes.
    fn kill(&self, connection_id: u64);
    /// Current value of a global system variable that the protocol needs (`max_connections`, `connect_timeout`, `max_allowed_packet`, ...).
    fn global_integer(&self, variable: &str) -> u64;
    /// Current value of a global system variable as text; empty when it is NULL or does not exist.
    fn global_text(&self, variable: &str) -> String;
    /// Status variables of the server as a whole, as SHOW GLOBAL STATUS has them, in order of name. Adds up all sessions: for callers who
    /// ask once a second, not once a statement.
    fn status(&self) -> Vec<(String, String)>;
    /// The sessions that run a statement now, in order of id.
    fn running_sessions(&self) -> Vec<ProcessView> {
        Vec::new()
    }
    /// The calls over HTTP of the plugins that are loaded now.
    fn http_routes(&self) -> Vec<Arc<dyn HttpRoutes>> {
        Vec::new()
    }
    /// The sinks of change streams of the plugins that are loaded now.
    fn stream_sinks(&self) -> Vec<Arc<dyn StreamSink>> {
        Vec::new()
    }
    /// The console pages of the plugins that are loaded now.
    fn console_pages(&self) -> Vec<ConsolePage> {
        Vec::new()
    }
    /// Reads an information table as the server itself, which has every privilege: gives the columns and the values of each row.
    ///
    /// # Errors
    /// 1109 for an unknown table; what `emit` returns.
    fn read_information(
        &self,
        schema: &str,
        table: &str,
        _emit: &mut dyn FnMut(&[InfoColumn], &[Value]) -> Result<()>,
    ) -> Result<()> {
        bail!(UNKNOWN_TABLE, table, schema)
    }
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

/// The public description of a prepared statement.
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

/// The protocol's action after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutcome {
    /// Wait for the next command.
    Continue,
    /// Close the connection (COMMIT RELEASE, KILL of itself, SHUTDOWN).
    Close,
}

/// A command that the session itself has no part in, but counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedCommand {
    /// Com_admin_commands: a ping, options of the connection.
    Administration,
    /// COM_STMT_SEND_LONG_DATA.
    LongData,
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
    /// The number of a statement's parameters, and the result columns' types: both are needed to decode COM_STMT_EXECUTE.
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
    /// How long the client may be silent in the transaction that is open now, with the variable that says so. `None` without a transaction or a limit.
    fn idle_transaction_limit(&self) -> Option<(&'static str, Duration)>;
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
    /// In a session that repeats what another server did: what its next transaction is in the binary log, as SET `gtid_next`,
    /// `original_server_id` and `original_commit_timestamp` say it, without a statement for each transaction.
    ///
    /// # Errors
    /// 1815 in other sessions.
    fn repeat_transaction(&mut self, _next: &RepeatedTransaction<'_>) -> Result<()> {
        Err(Error::internal("this session repeats no transactions"))
    }
    /// Columns of a table whose names match the pattern (COM_FIELD_LIST).
    ///
    /// # Errors
    /// 1146, 1046.
    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnMeta>>;
    /// Counts a command that the protocol answers alone.
    fn count(&mut self, command: CountedCommand);
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
    /// Notes the session's state for `renew`: call it right after the log-in, and again after `change_user`.
    fn remember_login(&mut self) {}
    /// Makes the session as it was when `remember_login` was called, for the next request of the same account. False when that takes a log-in:
    /// something is open in it, one of its variables has changed, or so has an account, a definition or a global variable.
    fn renew(&mut self) -> bool {
        false
    }
    /// COM_REGISTER_REPLICA.
    ///
    /// # Errors
    /// 1227.
    fn register_replica(&mut self, _replica: RegisteredReplica) -> Result<OkInfo> {
        bail!(UNKNOWN_COM_ERROR)
    }
    /// COM_BINLOG_DUMP, COM_BINLOG_DUMP_GTID: sends the binary log until the reader goes.
    ///
    /// # Errors
    /// 1227, 1236; to be sent to the reader.
    fn dump_binary_log(&mut self, _request: DumpRequest, _sink: &mut dyn DumpSink) -> Result<()> {
        bail!(UNKNOWN_COM_ERROR)
    }
    /// COM_SET_OPTION: multi statements on or off.
    fn set_multi_statements(&mut self, on: bool);
    /// Session value of an integer variable that the protocol needs (`wait_timeout`, `net_write_timeout`, `max_allowed_packet`).
    fn integer_variable(&self, name: &str) -> u64;
    /// Character set id that results and messages are sent in; utf8mb4 unless the client asked otherwise. 63 for "as stored".
    fn result_collation(&self) -> u16;
    /// Whether the account has a global or dynamic privilege, given in capitals.
    fn has_privilege(&self, _name: &str) -> bool {
        false
    }
    /// Whether the account may read all of a table at present: it has SELECT on the table itself, on its schema or everywhere, and no
    /// plugin denies it.
    ///
    /// # Errors
    /// 1142, 1044.
    fn check_reads_table(&mut self, _schema: &str, _table: &str) -> Result<()> {
        bail!(UNKNOWN_COM_ERROR)
    }
    /// Flags for an OK that the protocol sends itself (COM_PING).
    fn state(&self) -> OkInfo;
}
