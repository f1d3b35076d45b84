//! The slot for statements that control replicas: CHANGE REPLICATION, START, STOP and RESET REPLICA.

use errors::{Error, Result};
use types::SqlMode;

/// The session of such a statement.
pub trait ReplicationSession {
    /// Checks that the account has a dynamic privilege.
    ///
    /// # Errors
    /// 1227.
    fn require_privilege(&self, name: &str) -> Result<()>;
    /// SQL mode, for parsing.
    fn sql_mode(&self) -> SqlMode;
    /// Raises a warning that says the same as an error.
    fn warn(&mut self, error: &Error);
}

/// Controls replicas.
pub trait ReplicationControl: Send + Sync {
    /// Runs one statement, given as its text; it is answered with OK afterwards.
    ///
    /// # Errors
    /// Those of the statement.
    fn run(&self, sql: &str, session: &mut dyn ReplicationSession) -> Result<()>;
}
