//! The slot for log sinks: plugins that take the lines of the error log, and those that have log files of their own.

use errors::Result;

/// How serious a line of the error log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something failed.
    Error,
    /// Something may fail.
    Warning,
    /// Something happened.
    Information,
    /// For developers.
    Debug,
}

/// Takes log lines.
pub trait LogSink: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// A line of the error log, without its end.
    fn error_line(&self, _severity: Severity, _line: &str) {}
    /// Opens its files again by their names: FLUSH LOGS, SIGHUP.
    ///
    /// # Errors
    /// A file cannot be opened: the log goes on in the old one.
    fn reopen(&self) -> Result<()> {
        Ok(())
    }
}
