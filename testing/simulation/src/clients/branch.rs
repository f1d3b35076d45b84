//! An XA branch that outlives its client's connection, and the server.

use crate::model::State;

/// How far a branch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// XA PREPARE was sent.
    Preparing,
    /// It was acknowledged.
    Prepared,
    /// XA COMMIT was sent.
    Committing,
    /// XA ROLLBACK was sent.
    RollingBack,
}

/// A branch.
#[derive(Clone, Debug)]
pub struct Branch {
    pub(crate) xid: String,
    pub(crate) stage: Stage,
    /// The client's rows when it is committed.
    pub(crate) state: State,
}
