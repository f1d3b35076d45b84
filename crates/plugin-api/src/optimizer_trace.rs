//! Traces of the optimizer, as a session lends them.

/// What planning considered for a statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptimizerTraceView {
    /// The statement's text.
    pub query: String,
    /// A JSON document, cut where there is no room.
    pub trace: String,
    /// Bytes that were cut.
    pub missing_bytes: u64,
    /// The account may not see what the statement reads: both texts are empty.
    pub is_hidden: bool,
}
