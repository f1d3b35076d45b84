//! The slot for the binary log: what transactions changed, for replicas and other readers.
//!
//! A session has a recorder, which turns its transaction's changes into bytes. They become the attachment of the transaction's commit in the
//! log of the default engine: so a commit and what is logged of it are durable together or not at all. The binary log follows the
//! attachments and makes of them what its readers see.

use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, CommitHandle};
use errors::Result;
use types::{DataType, Value};

use crate::replication::ReplicationSession;

/// A column of a table whose rows are logged.
#[derive(Clone, Debug)]
pub struct LoggedColumn {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub ty: DataType,
    /// Whether `SELECT *` shows it.
    pub is_visible: bool,
    /// Where its value is in a row as `Recorder::row` gets it.
    pub place: usize,
}

/// A table whose rows are logged.
#[derive(Clone, Debug)]
pub struct LoggedTable {
    /// A number that changes with its definition.
    pub id: u64,
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its columns but hidden ones, in order.
    pub columns: Vec<LoggedColumn>,
    /// Columns of the primary key, by place among these, with the length of a prefix.
    pub primary_key: Vec<(usize, Option<u32>)>,
    /// Changes of rows with different primary keys can be repeated in any order: there is no other unique key, no foreign key from or to the
    /// table, and no key that a collation calls equal to another.
    pub is_independent: bool,
}

/// What a reader must know of the session to repeat a statement.
#[derive(Clone, Copy)]
pub struct StatementContext<'a> {
    /// `CONNECTION_ID()`.
    pub connection_id: u64,
    /// When the statement began, microseconds since 1970 UTC.
    pub started_micros: i64,
    /// The current schema.
    pub schema: Option<&'a str>,
    /// `sql_mode`, as the reference numbers it.
    pub sql_mode: u64,
    /// Default collation of the client's character set.
    pub client_collation: u16,
    /// Collation of the connection.
    pub connection_collation: u16,
    /// Collation of the server.
    pub server_collation: u16,
    /// `time_zone`; only for definitions.
    pub time_zone: &'a str,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `auto_increment_increment` and `auto_increment_offset`.
    pub auto_increment: (u64, u64),
    /// `binlog_row_image`.
    pub row_image: RowImage,
    /// Changes of documents are logged instead of documents (`binlog_row_value_options`).
    pub partial_json: bool,
    /// The identifier that `gtid_next` gives to the transaction.
    pub gtid: Option<&'a str>,
    /// What else the session wants of its transactions in the log.
    pub wishes: LogWishes,
    /// The text of the statement, when rows are to be logged with it.
    pub text: Option<&'a [u8]>,
}

/// What a session wants of its transactions in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogWishes {
    /// Which identifiers replies tell (`session_track_gtids`).
    pub tracking: Tracking,
    /// The level of zstd that they are compressed with (`binlog_transaction_compression`).
    pub compression: Option<i32>,
    /// The server where they began; 0 for this one (`original_server_id`).
    pub server_id: u32,
    /// Microseconds since 1970 UTC of their commit there; 0 for this server's (`original_commit_timestamp`).
    pub commit_micros: u64,
}

/// Which identifiers of transactions replies tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// None.
    #[default]
    Off,
    /// Those of the session's own transactions.
    Own,
    /// All that have committed.
    All,
}

/// Which columns of changed rows are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowImage {
    /// All.
    #[default]
    Full,
    /// Those that name the row before, those that change after.
    Minimal,
    /// All but texts and blobs that do not change.
    NoBlob,
}

/// Turns the changes of one session's transactions into bytes.
pub trait Recorder: Send {
    /// A statement begins whose rows or text may be recorded.
    fn begin_statement(&mut self, context: &StatementContext<'_>);
    /// A row was written: the records before and after. `edited` are the columns that became what functions made of the documents in
    /// them, by place in the record.
    ///
    /// # Errors
    /// The row cannot be logged; 1837 when an identifier was given that has been used.
    fn row(
        &mut self,
        table: &Arc<LoggedTable>,
        old: Option<&[Value]>,
        new: Option<&[Value]>,
        edited: &[usize],
    ) -> Result<()>;
    /// The statement changes definitions; `text` repeats it.
    ///
    /// # Errors
    /// 1837 when an identifier was given that has been used.
    fn definition(&mut self, context: &StatementContext<'_>, text: &[u8]) -> Result<()>;
    /// The transaction commits: one that was given an identifier is recorded, even if it changed nothing.
    fn commit(&mut self, context: &StatementContext<'_>);
    /// A place in what was recorded since the transaction began.
    fn mark(&mut self) -> u64;
    /// Forgets what was recorded after a mark. Returns the mark when some of that has been taken.
    fn undo_to(&mut self, mark: u64) -> Option<u64>;
    /// Bytes that wait to be taken.
    fn waiting(&self) -> usize;
    /// Adds what waits to `out`.
    fn take(&mut self, out: &mut Vec<u8>);
    /// The last statement of the transaction has been recorded.
    fn finish(&mut self);
    /// The transaction has ended; the identifier that it was given is used.
    fn reset(&mut self);
    /// `gtid_next` was set, perhaps to the same again: what it gives may be used once more.
    fn renew_identifier(&mut self);
    /// Whether a transaction was handed over since this was asked last, perhaps one that was then rolled back.
    fn take_logged(&mut self) -> bool;
    /// Numbers of the transactions that were finished and whose identifiers are to be told, since this was asked last.
    fn take_tracked(&mut self) -> Vec<u64>;
}

/// Where the log is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BinaryLogStatus {
    /// The newest file.
    pub file: String,
    /// The end of it.
    pub position: u64,
    /// All transactions executed.
    pub executed: String,
    /// Those of them that are no longer in the log.
    pub purged: String,
}

/// Which files go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeLimit {
    /// Those before this one.
    To(String),
    /// Those written last before this time, microseconds since 1970 UTC.
    Before(i64),
}

/// What a reader asks for.
#[derive(Clone, Debug, Default)]
pub struct DumpRequest {
    /// Its `server_id`.
    pub server_id: u32,
    /// The change stream that it reads; none for other readers.
    pub stream: Option<String>,
    /// Ends at the end of the log.
    pub is_short: bool,
    /// File and place to begin at; the first file when the name is empty.
    pub file: String,
    /// See `file`.
    pub position: u64,
    /// Transactions that it has, as COM_BINLOG_DUMP_GTID carries them.
    pub gtids: Option<Vec<u8>>,
    /// Whether it acknowledges what it has.
    pub acknowledges: bool,
    /// Whether it understands checksums.
    pub takes_checksums: bool,
    /// Time between heartbeats; none wanted when zero.
    pub heartbeat: Duration,
    /// The connection.
    pub connection_id: u64,
    /// Its sink passes on what the account may SELECT, and nothing else: the privilege to read all of the log is not needed.
    pub is_filtered: bool,
}

/// Sends events to a reader.
pub trait DumpSink {
    /// Sends an event.
    ///
    /// # Errors
    /// The reader is gone.
    fn event(&mut self, event: &[u8]) -> Result<()>;
    /// Sends an event that asks for an answer; packets after it are numbered from 1.
    ///
    /// # Errors
    /// The reader is gone.
    fn asking_event(&mut self, event: &[u8]) -> Result<()>;
    /// What the reader has answered, waiting for it at most so long.
    ///
    /// # Errors
    /// The reader is gone.
    fn answer(&mut self, limit: Duration) -> Result<Option<Vec<u8>>>;
    /// Sends what was buffered: more events come later.
    ///
    /// # Errors
    /// The reader is gone.
    fn flush(&mut self) -> Result<()>;
}

/// A reader that has announced itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegisteredReplica {
    /// Its `server_id`.
    pub server_id: u32,
    /// What it calls its host.
    pub host: String,
    /// What it calls its user.
    pub user: String,
    /// Its port.
    pub port: u16,
    /// Its `server_uuid`.
    pub uuid: String,
    /// Its connection.
    pub connection_id: u64,
}

/// The binary log. At most one plugin fills the slot.
pub trait BinaryLog: Send + Sync {
    /// Whether changes are logged.
    fn is_active(&self) -> bool;
    /// A recorder for a session.
    fn recorder(&self) -> Box<dyn Recorder>;
    /// Where the log is, with everything that has committed; while it cannot be written, where it was.
    ///
    /// # Errors
    /// The log cannot be read.
    fn status(&self) -> Result<BinaryLogStatus>;
    /// Begins a new file.
    ///
    /// # Errors
    /// I/O.
    fn rotate(&self) -> Result<()>;
    /// Removes old files, but none that a reader is at.
    ///
    /// # Errors
    /// 1373 for an unknown file; I/O.
    fn purge(&self, limit: &PurgeLimit) -> Result<()>;
    /// Begins anew with a file of this number, with no transaction executed.
    ///
    /// # Errors
    /// I/O.
    fn reset(&self, first: u64) -> Result<()>;
    /// The identifiers of transactions that committed durably, by the numbers of `take_tracked`; waits until the log has them.
    ///
    /// # Errors
    /// The log cannot be written.
    fn tracked(&self, numbers: &[u64]) -> Result<String>;
    /// Waits until replicas have what was committed, if they are to be waited for; `commit`, the last of it, may not be durable.
    ///
    /// # Errors
    /// The engine's log cannot be written.
    fn wait_for_replicas(&self, commit: Option<&CommitHandle>) -> Result<()>;
    /// Whether `gtid_purged` takes a value: a set, or with `+` before it what is added.
    ///
    /// # Errors
    /// 3546; the log cannot be written.
    fn check_purged(&self, value: &str) -> Result<()>;
    /// Adds transactions to those executed and purged; a `+` before the set is passed over.
    ///
    /// # Errors
    /// 1772 for a malformed set; I/O.
    fn add_purged(&self, gtids: &str) -> Result<()>;
    /// A backup begins: the log keeps what `end_backup` needs to know.
    fn begin_backup(&self);
    /// The backup has ended: the transactions that committed before a position of its engine's log; `None` where `begin_backup` was not called
    /// or the log is off.
    ///
    /// # Errors
    /// The log cannot be written.
    fn end_backup(&self, end_position: u64) -> Result<Option<String>>;
    /// Runs CREATE, ALTER or DROP CHANGE STREAM, given as its text. The privilege was checked.
    ///
    /// # Errors
    /// Those of the statement.
    fn change_stream(&self, sql: &str, session: &mut dyn ReplicationSession) -> Result<()>;
    /// A reader announces itself.
    fn register(&self, replica: RegisteredReplica);
    /// A connection has ended.
    fn unregister(&self, connection_id: u64);
    /// Sends events until the reader goes or `cancel` fires.
    ///
    /// # Errors
    /// 1236 and the reader's.
    fn dump(
        &self,
        request: &DumpRequest,
        sink: &mut dyn DumpSink,
        cancel: &CancelToken,
    ) -> Result<()>;
}
