//! Results of statements: their columns, their rows, their ends, and the sink that takes them.
//!
//! The executor writes to the sink while rows are produced. It knows values, and cells as records hold them; how a cell looks to
//! a client (as text, in a binary protocol, as JSON) is the sink's business alone.

use std::sync::Arc;

use engine_api::CommitHandle;
use errors::{Error, Result};
use types::{DataType, ResultCell, Value};

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
    /// A TIMESTAMP whose default is the current timestamp.
    pub default_now: bool,
    /// Column of a temporary table: a derived table, a set operation, a window.
    pub materialized: bool,
    /// The kind of expression that computes it; `None` for columns and aggregates.
    pub computed: Option<Computed>,
}

/// The kind of expression of a result column.
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
    /// A user variable.
    Variable,
    /// An integer that is written in the statement, nothing computed.
    Integer,
    /// A `?` of a prepared statement.
    Placeholder,
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
    /// Identifiers of transactions (`session_track_gtids`).
    Gtids(String),
    /// What the open transaction has done (`session_track_transaction_info`): eight places.
    TransactionState(String),
    /// Statements that begin a transaction like the open one.
    TransactionCharacteristics(String),
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

/// One row as the executor has it.
///
/// The sink asks for the cells and writes them in its own form, directly from their storage into its output. This side does not
/// know the client's protocol.
pub trait RowSource {
    /// Number of cells.
    fn len(&self) -> usize;
    /// Whether it has no cells.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Cell `index`, counted from 0. TIMESTAMP comes in the session time zone.
    ///
    /// # Errors
    /// A damaged record.
    ///
    /// # Panics
    /// May panic when the cell does not exist.
    fn cell(&self, index: usize) -> Result<ResultCell<'_>>;
    /// The same as an owned value.
    ///
    /// # Errors
    /// A damaged record.
    ///
    /// # Panics
    /// As `cell`.
    fn value(&self, index: usize) -> Result<Value> {
        Ok(self.cell(index)?.into_value()?)
    }
}

/// A row of values; cells beyond the last one are NULL.
#[derive(Clone, Copy, Debug)]
pub struct ValueRow<'a>(pub &'a [Value]);

impl RowSource for ValueRow<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn cell(&self, index: usize) -> Result<ResultCell<'_>> {
        Ok(self.0.get(index).map_or(ResultCell::Null, ResultCell::from))
    }
}

/// A server-side source for LOAD DATA LOCAL: the client's file in pieces.
pub trait LocalFile {
    /// The next piece; empty at the end.
    ///
    /// # Errors
    /// The client is gone or sent nonsense.
    fn read(&mut self) -> Result<Vec<u8>>;
}

/// The state of the statement after a result.
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
    /// The state after the results from here on: some clients look for it in the packet that ends the columns.
    fn followed_by(&mut self, next: Next) {
        let _ = next;
    }
    /// A row. May flush; may block when the client reads slowly, up to `net_write_timeout`.
    ///
    /// # Errors
    /// The client is gone (1160 and kin): the statement ends.
    fn row(&mut self, row: &dyn RowSource) -> Result<()>;
    /// Output parameters of a prepared CALL: `parameters` are their numbers from 0. Comes before `ok`;
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
    /// Bytes of answers so far, those of earlier statements and those that are still to be sent included.
    fn bytes_written(&mut self) -> u64 {
        0
    }
    /// Asks the client for a file (LOAD DATA LOCAL INFILE).
    ///
    /// # Errors
    /// 3948 when the client did not offer it.
    fn local_file(&mut self, name: &str) -> Result<Box<dyn LocalFile + '_>>;
}
