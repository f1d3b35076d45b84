//! The parser's errors for a text that is not a statement.

use std::fmt;

/// Why a text is not a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The kind of fault.
    pub kind: ParseErrorKind,
    /// Where: a byte offset into the text.
    pub offset: usize,
}

/// Kinds of [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// Error 1064, with the reference's `near '..' at line n`.
    Syntax {
        /// At most 80 characters from the offending token on; empty at the end of the text.
        near: String,
        /// From 1.
        line: u32,
    },
    /// Nested deeper than [`crate::ParseOptions::max_depth`] allows.
    TooDeep,
    /// Valid, but this server does not support it (error 1235).
    NotSupported(&'static str),
    /// Another error of the reference's parser.
    Other {
        /// The error number.
        code: u16,
        /// The message.
        message: String,
    },
    /// A literal that the plan cache lifted is not at a place where a parameter is allowed: parse
    /// without lifting and do not cache.
    LiftMismatch,
}

impl ParseError {
    /// The number of the error in the reference.
    pub fn code(&self) -> u16 {
        match &self.kind {
            ParseErrorKind::Syntax { .. } => 1064,
            ParseErrorKind::TooDeep => 1436,
            ParseErrorKind::NotSupported(_) => 1235,
            ParseErrorKind::Other { code, .. } => *code,
            ParseErrorKind::LiftMismatch => 1105,
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ParseErrorKind::Syntax { near, line } => write!(
                f,
                "You have an error in your SQL syntax; check the manual that corresponds to your \
                 MySQL server version for the right syntax to use near '{near}' at line {line}"
            ),
            ParseErrorKind::TooDeep => f.write_str("The statement is nested too deeply"),
            ParseErrorKind::NotSupported(what) => {
                write!(f, "This version of MySQL doesn't yet support '{what}'")
            }
            ParseErrorKind::Other { message, .. } => f.write_str(message),
            ParseErrorKind::LiftMismatch => f.write_str("A lifted literal is not a parameter"),
        }
    }
}

impl std::error::Error for ParseError {}
