//! The slot for `EXECUTE 'text'` with options: how the statements of a text run besides returning their one result.

use errors::{Error, Result};

use crate::session::SessionHandle;

/// What becomes of the results of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextResults {
    /// An error of the text is an error of the statement, where that waits for it.
    Reported,
    /// `WITH NO RETURN`: rows and errors are discarded.
    Discarded,
}

/// Where a text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextPlace {
    /// In the session.
    Here,
    /// `CONCURRENT`: in another session, while this one continues.
    Beside,
    /// `CONCURRENT WAIT`: in another session, for which this one waits.
    BesideWaiting,
}

/// `EXECUTE 'text' WITH NO RETURN` and `EXECUTE 'text' CONCURRENT`.
#[derive(Clone, Copy, Debug)]
pub struct TextRequest<'a> {
    /// The statements.
    pub text: &'a str,
    /// See the type.
    pub results: TextResults,
    /// See the type.
    pub place: TextPlace,
}

/// When the statements of another session stop before their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopsWith {
    /// When the statement that opened the session is stopped, and when they are stopped themselves.
    Caller,
    /// When they are stopped themselves.
    Nobody,
}

/// The session of the statement.
pub trait TextSession {
    /// Runs the statements of a text in this session until one fails; their results are dropped.
    ///
    /// # Errors
    /// Those of the statement that failed.
    fn run_here(&mut self, text: &str) -> Result<()>;
    /// Whether a transaction is open, so that a statement does not commit by itself.
    fn in_transaction(&self) -> bool;
    /// Opens a session for the same account, as `Statements::open_session` does.
    ///
    /// # Errors
    /// As there.
    fn open_session(&mut self, stops: StopsWith) -> Result<Box<dyn SessionHandle>>;
    /// Checks that the account has a dynamic privilege.
    ///
    /// # Errors
    /// 1227.
    fn require_privilege(&self, name: &str) -> Result<()>;
    /// Raises a warning that says the same as an error.
    fn warn(&mut self, error: &Error);
    /// Error when the statement was cancelled.
    ///
    /// # Errors
    /// 1317, 3024.
    fn check_cancelled(&self) -> Result<()>;
}

/// Runs texts.
pub trait TextRunner: Send + Sync {
    /// Runs a text; the statement is answered with OK afterwards.
    ///
    /// # Errors
    /// Those of the statement.
    fn run(&self, request: &TextRequest<'_>, session: &mut dyn TextSession) -> Result<()>;
}
