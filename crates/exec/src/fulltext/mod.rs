//! FULLTEXT indexes: their entries beside the rows of a table, and MATCH, which ranks rows by them.
//!
//! An index's entries are rows of an engine table of its own, written by the transaction that writes the row: snapshots, undo, recovery
//! and backups hold for them as for any table. Words and keys are `types::fulltext`'s.

mod check;
mod keep;
mod query;
mod search;

pub use check::{FulltextTable, check_fulltext};
pub(crate) use keep::{KeptFulltext, delete_row, insert_row, update_row};
pub(crate) use search::{Found, MatchCode, SearchCode};

use errors::Result;
use plan::KeyColumn;
use types::key::encode_part;

use crate::layout::Layout;

/// The locator of a record of a table with this primary key.
fn locator_of(record: &[u8], layout: &Layout, key: &[KeyColumn]) -> Result<Vec<u8>> {
    let mut locator = Vec::new();
    for part in key {
        let value = layout.decode(record, part.column)?;
        encode_part(&value, &part.ty, part.prefix_length, part.descending, &mut locator);
    }
    Ok(locator)
}
