//! The errors of an engine, in terms of storage. The SQL layers word them for the client.

use crate::IndexId;

/// Result of an engine call.
pub type EngineResult<T> = Result<T, EngineError>;

/// An engine's refusal.
#[derive(Clone, Debug)]
pub enum EngineError {
    /// A unique index already has the key. The caller words error 1062 and may read the row at `locator`.
    DuplicateKey {
        /// The violated index.
        index: IndexId,
        /// Clustered key of the row that has the key.
        locator: Vec<u8>,
    },
    /// A row lock was not granted in time (1205); only the statement is rolled back, by the caller.
    LockWaitTimeout,
    /// This transaction was chosen as the victim of a deadlock (1213); the engine has rolled it back whole.
    Deadlock,
    /// The engine has rolled this transaction back whole for another reason, such as the failure of the node that led it (1297).
    TransactionLost(errors::Error),
    /// A commit was sent, and nobody knows whether it happened (1297); the transaction is over.
    OutcomeUnknown(errors::Error),
    /// NOWAIT met a lock (3572).
    LockNotAvailable,
    /// KILL, a time limit, or the client went away.
    Cancelled,
    /// The row at a locator no longer exists.
    RowNotFound,
    /// No such table in this engine.
    UnknownTable,
    /// A write inside a read-only transaction (1792).
    ReadOnly,
    /// Anything else, already worded: full disk, damaged page, limits, features that the engine lacks (1235).
    Other(errors::Error),
}

impl From<errors::Error> for EngineError {
    fn from(error: errors::Error) -> Self {
        EngineError::Other(error)
    }
}

impl EngineError {
    /// Whether the engine has ended the transaction.
    pub fn ends_transaction(&self) -> bool {
        match self {
            EngineError::Deadlock
            | EngineError::TransactionLost(_)
            | EngineError::OutcomeUnknown(_) => true,
            EngineError::DuplicateKey { .. }
            | EngineError::LockWaitTimeout
            | EngineError::LockNotAvailable
            | EngineError::Cancelled
            | EngineError::RowNotFound
            | EngineError::UnknownTable
            | EngineError::ReadOnly
            | EngineError::Other(_) => false,
        }
    }

    /// Words the error for a client. `DuplicateKey` should be worded by the caller, which knows names and values; here it is generic.
    pub fn into_error(self, cancel: &crate::CancelToken) -> errors::Error {
        use errors::{Error, ErrorCode};
        match self {
            EngineError::DuplicateKey { .. } => Error::with(ErrorCode::DUP_KEY, &[]),
            EngineError::LockWaitTimeout => Error::with(ErrorCode::LOCK_WAIT_TIMEOUT, &[]),
            EngineError::Deadlock => Error::with(ErrorCode::LOCK_DEADLOCK, &[]),
            EngineError::LockNotAvailable => Error::with(ErrorCode::LOCK_NOWAIT, &[]),
            EngineError::Cancelled => cancel
                .check()
                .err()
                .unwrap_or_else(|| Error::with(ErrorCode::QUERY_INTERRUPTED, &[])),
            EngineError::RowNotFound => Error::with(ErrorCode::KEY_NOT_FOUND, &[&""]),
            EngineError::UnknownTable => Error::internal("the engine does not know the table"),
            EngineError::ReadOnly => {
                Error::with(ErrorCode::CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, &[])
            }
            EngineError::TransactionLost(error)
            | EngineError::OutcomeUnknown(error)
            | EngineError::Other(error) => error,
        }
    }
}
