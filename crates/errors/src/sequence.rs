//! Errors of sequences, with the numbers and SQLSTATEs of MariaDB, which programs that use sequences know. MySQL gives some of these
//! numbers to other errors, so they have no place in the catalogue, where a number has one meaning.

use std::fmt::Display;

use crate::{Error, ErrorCode};

/// What is wrong with a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceError {
    /// It has no more values.
    RunOut,
    /// Its options contradict each other.
    BadOptions,
    /// It has not the columns of a sequence; why.
    BadStructure(&'static str),
    /// It is a table or a view.
    NotASequence,
    /// Likewise; of DROP SEQUENCE.
    NotToBeDropped,
    /// There is none.
    Unknown,
}

impl SequenceError {
    /// The error about the sequence with this name.
    #[cold]
    pub fn about(self, name: impl Display) -> Error {
        let (code, state, text) = match self {
            SequenceError::RunOut => (4084, *b"HY000", format!("Sequence '{name}' has run out")),
            SequenceError::BadOptions => {
                (4085, *b"HY000", format!("Sequence '{name}' has out of range value for options"))
            }
            SequenceError::BadStructure(why) => {
                let text = format!("Sequence '{name}' table structure is invalid ({why})");
                (4086, *b"HY000", text)
            }
            SequenceError::NotASequence => (4089, *b"42S02", format!("'{name}' is not a SEQUENCE")),
            SequenceError::NotToBeDropped => {
                (4090, *b"42S02", format!("'{name}' is not a SEQUENCE"))
            }
            SequenceError::Unknown => (4091, *b"42S02", format!("Unknown SEQUENCE: '{name}'")),
        };
        Error::with_sqlstate(ErrorCode(code), state, text)
    }
}
