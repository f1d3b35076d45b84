//! The slot for statements that control replicas: CHANGE REPLICATION, START, STOP and RESET REPLICA; and for BINLOG, which repeats changes.

use std::sync::Arc;

use engine_api::{CancelToken, DiskKey};
use errors::{Error, Result};

use types::{SqlMode, Value};

use crate::ResultSink;

/// The session of such a statement.
pub trait ReplicationSession {
    /// Checks that the account has a dynamic privilege.
    ///
    /// # Errors
    /// 1227.
    fn require_privilege(&self, name: &str) -> Result<()>;
    /// Fires when the statement is killed.
    fn cancel(&self) -> CancelToken;
    /// The key under which the data directory is encrypted; none when it is not.
    fn directory_key(&self) -> Option<Arc<dyn DiskKey>>;
    /// `CONNECTION_ID()`.
    fn connection_id(&self) -> u64;
    /// SQL mode, for parsing.
    fn sql_mode(&self) -> SqlMode;
    /// Raises a warning that says the same as an error.
    fn warn(&mut self, error: &Error);
    /// Runs a statement in the transaction of this session, with every privilege and without triggers, as a replica does.
    ///
    /// # Errors
    /// Those of the statement.
    fn repeat(
        &mut self,
        sql: &str,
        parameters: &[Value],
        answer: &mut dyn ResultSink,
    ) -> Result<()>;
    /// Whether statements are part of a transaction that goes on after them.
    fn is_in_transaction(&self) -> bool;
    /// Whether the events that BINLOG has given this session have checksums; `None` before the first description of their format.
    fn events_have_checksums(&self) -> Option<bool>;
    /// Keeps what the description of a format says of checksums.
    fn note_event_format(&mut self, has_checksums: bool);
}

/// Controls replicas.
pub trait ReplicationControl: Send + Sync {
    /// Runs one statement, given as its text; it is answered with OK afterwards.
    ///
    /// # Errors
    /// Those of the statement.
    fn run(&self, sql: &str, session: &mut dyn ReplicationSession) -> Result<()>;
}
