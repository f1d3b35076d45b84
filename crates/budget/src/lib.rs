//! Memory that statements and connections may use: of the server, of one connection, of one statement and of the threads that help it.
//!
//! Counts only; who allocates asks first. Knows no rows and no operators.

mod budget;
mod connection;

pub use budget::{Memory, MemoryBudget, SharedMemory};
pub use connection::{ConnectionLimits, ConnectionMemory, CountedLimits, CountedMemory};
