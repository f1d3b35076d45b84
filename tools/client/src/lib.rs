//! The protocol's client side for Squall's own tools: one blocking connection.
//!
//! Contains packets and authentication, no output formats or workloads.

mod auth;
mod connection;
mod stream;

pub use connection::{
    Answer, Column, Connection, Encryption, Framing, Options, Outcome, Prepared, Target, Tls,
};

pub use stream::{Carrier, Reach};

/// A client's errors: the server's own error keeps its number.
#[derive(Debug)]
pub enum Failure {
    /// The server answered with an error.
    Server(errors::Error),
    /// The connection is unusable.
    Lost(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Server(error) => {
                let state = error.sqlstate();
                let state = String::from_utf8_lossy(&state);
                write!(f, "ERROR {} ({state}): {}", error.code().0, error.message())
            }
            Failure::Lost(why) => write!(f, "ERROR 2013 (HY000): {why}"),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Failure::Lost(format!("Lost connection to server: {error}"))
    }
}

impl From<wire::Malformed> for Failure {
    fn from(_: wire::Malformed) -> Self {
        Failure::Lost("the server sent a packet that makes no sense".into())
    }
}

/// Result of a call on a connection.
pub type Result<T> = std::result::Result<T, Failure>;
