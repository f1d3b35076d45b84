//! MySQL error numbers, SQLSTATEs, message templates, the server's error type and the diagnostics area.
//!
//! Independent of SQL, sessions and packets. No code builds messages by hand: an error is a code of the
//! catalogue plus arguments, `err!(DUP_ENTRY, value, key)`.

mod code;
mod diagnostics;
mod error;
mod items;
mod sequence;
mod table_base;
mod table_late;
#[cfg(test)]
mod tests;

pub use code::ErrorCode;
pub use diagnostics::{Condition, Diagnostics, Level, MAX_ERROR_COUNT_DEFAULT};
pub use error::{Error, MESSAGE_BYTES_MAX, Result, fill_template};
pub use items::{ConditionItem, ConditionItems};
pub use sequence::SequenceError;
