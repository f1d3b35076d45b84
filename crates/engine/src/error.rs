//! Errors of files in the contract's words.

use std::io;

use engine_api::{EngineError, TableDef};
use errors::{Error, ErrorCode};

/// Turns an I/O failure into the contract's error.
pub(crate) fn io_error(error: io::Error) -> EngineError {
    let text = error.to_string();
    EngineError::Other(match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Error::with(ErrorCode::RECORD_FILE_FULL, &[&"(space)"])
        }
        _ => Error::with(ErrorCode::ERROR_ON_READ, &[&"space", &0, &text]),
    })
}

/// An error that ends a build: of the engine or of its files.
pub(crate) struct Failure(EngineError);

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure(io_error(error))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure(error)
    }
}

impl From<Failure> for EngineError {
    fn from(failure: Failure) -> EngineError {
        failure.0
    }
}

/// Whether there was no space.
pub(crate) fn is_full(error: &EngineError) -> bool {
    matches!(error, EngineError::Other(error) if error.code() == ErrorCode::RECORD_FILE_FULL)
}

/// Adds the table's name to an error of its files.
#[cold]
pub(crate) fn name_table(table: &TableDef, error: EngineError) -> EngineError {
    match error {
        EngineError::Other(error) if error.code() == ErrorCode::ERROR_ON_READ => {
            let message = format!("{} in table {}", error.message(), table.name);
            EngineError::Other(Error::new(error.code(), message))
        }
        error => error,
    }
}

pub(crate) fn damaged() -> EngineError {
    EngineError::Other(Error::internal("an undo entry is damaged"))
}
