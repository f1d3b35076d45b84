//! A statement in the dispatcher.

use types::Value;

/// Where a statement came from, which decides which statements are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// COM_QUERY.
    Text,
    /// A prepared statement.
    Prepared,
    /// A stored program: its parameters are the program's variables.
    Program,
}

/// The dispatcher's facts about the running statement.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// The text that spans refer to.
    pub source: &'a [u8],
    /// Parameters of a prepared statement, variables of a program.
    pub parameters: &'a [Value],
    /// Where it came from.
    pub origin: Origin,
    /// The address of a statement of a loaded program, whose plan may be kept.
    pub kept: Option<usize>,
}
