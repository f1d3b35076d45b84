//! FULLTEXT indexes: their entries for the rows of a table, and MATCH, which ranks rows by them.
//!
//! An index's entries are rows of a separate engine table, written by the transaction that writes the row: snapshots, undo, recovery
//! and backups hold for them as for any table. Words and keys are `types::fulltext`'s.

mod check;
mod keep;
mod search;

pub use check::{FulltextTable, check_fulltext};
pub(crate) use keep::{KeptFulltext, delete_row, insert_row, update_row};
pub(crate) use search::{Found, MatchCode, SearchCode};
