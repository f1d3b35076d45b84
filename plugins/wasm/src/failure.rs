//! Why a call of a module ended without a result.

use errors::{Error, err};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The module's fault: what it did.
    Guest(String),
    /// The server's error: the statement was cancelled.
    Server(Error),
}

impl Failure {
    pub(crate) fn guest(what: impl Into<String>) -> Failure {
        Failure::Guest(what.into())
    }

    /// The failure of an operation of the interpreter. Its messages may quote a module at length.
    pub(crate) fn trap(error: &wasmi::Error) -> Failure {
        Failure::Guest(first_line(&error.to_string()))
    }

    /// The error of a call of `function`: 3200, or the server's own.
    pub(crate) fn of_call(self, function: &str) -> Error {
        match self {
            Failure::Guest(what) => err!(UDF_ERROR, function, what),
            Failure::Server(error) => error,
        }
    }

    /// The error of a module that cannot become `function`: 1123, or the server's own.
    pub(crate) fn of_definition(self, function: &str) -> Error {
        match self {
            Failure::Guest(what) => err!(CANT_INITIALIZE_UDF, function, what),
            Failure::Server(error) => error,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Server(error)
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}
