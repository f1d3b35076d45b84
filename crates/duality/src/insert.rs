//! INSERT of a document.

use errors::Result;
use types::JsonValue;

use crate::change::Change;
use crate::document::Document;
use crate::{Host, Shape};

/// Inserts the rows of a document; returns the affected rows. Rows below the document itself may be there already.
///
/// # Errors
/// 6485 to 6492, 6507, 6560: the document does not fit the view or its tags; errors of the tables.
pub(crate) fn insert(shape: &Shape, document: JsonValue, host: &mut dyn Host) -> Result<u64> {
    let document = Document::read(shape, document)?;
    let mut change = Change::new(&document, host);
    let root = document.items[0].first;
    change.each_row(&mut |change, first| {
        if first == root { change.insert(first) } else { change.insert_or_change(first) }
    })?;
    Ok(change.affected)
}
