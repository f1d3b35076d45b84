//! The slot for functions that run SQL statements.

use errors::Result;
use types::Value;

use crate::result::ColumnMeta;
use crate::session::SessionHandle;

/// The result of a statement that a function ran.
#[derive(Clone, Debug, Default)]
pub struct StatementResult {
    /// The columns of its rows; empty when it returns none.
    pub columns: Vec<ColumnMeta>,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
    /// Affected rows.
    pub affected_rows: u64,
    /// First generated AUTO_INCREMENT value.
    pub last_insert_id: u64,
    /// Number of warnings.
    pub warnings: u16,
    /// `Rows matched: 1  Changed: 1  Warnings: 0` and the like.
    pub info: String,
}

/// The session of the statement that calls a function, as far as the function may run statements with it. A function gets it that
/// declares `ScalarFunction::runs_statements` and is bound with `BoundFunction::with_statements`. In a view every method returns error 1350: its author would run statements as its reader.
pub trait Statements {
    /// Runs one statement in the session and the transaction of the calling statement, by the rules of stored functions: with the
    /// privileges of the caller; it may not commit, not even implicitly, and not write a table that the calling statement uses. `?` in
    /// `sql` are the parameters. A statement that fails has changed nothing; after a deadlock the calling statement fails as well,
    /// whatever the function returns.
    ///
    /// # Errors
    /// The statement's; 1436 when functions and statements call each other too deeply; 1041 for a result that is too large.
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult>;

    /// Opens a session for the same account, with the same variables and current schema, but with a number, a connection id and
    /// transactions of its own. It counts as a connection and can be killed; what stops the calling statement stops its statements too.
    /// Its rows and changes reach the client only through the sink given to it; commits are durable when their statement ends. It waits
    /// for a table no longer than for a row (`innodb_lock_wait_timeout`): the one who holds it may be the calling statement. It ends when
    /// the handle is dropped, and may not open another.
    ///
    /// # Errors
    /// 1040, 1226 for too many sessions; 1424 in a session that was opened so; 1792 in a read-only transaction.
    fn open_session(&mut self) -> Result<Box<dyn SessionHandle>>;

    /// Checks that the account has a dynamic privilege.
    ///
    /// # Errors
    /// 1227.
    fn require_privilege(&self, name: &str) -> Result<()>;
}
