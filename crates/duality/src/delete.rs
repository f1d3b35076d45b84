//! DELETE of a document, or of elements of its arrays.

use errors::{Result, bail};
use types::JsonValue;

use crate::document::Document;
use crate::{Host, Shape, statements};

/// Deletes a document that the view shows; returns the affected rows. Objects that are no elements of arrays stay.
///
/// # Errors
/// 6498: a row has no tag for that; errors of the tables.
pub(crate) fn delete(shape: &Shape, shown: JsonValue, host: &mut dyn Host) -> Result<u64> {
    let shown = Document::shown(shape, shown)?;
    delete_rows(&shown, &[0], host)
}

/// Deletes rows with the elements of their arrays, the last written first.
pub(crate) fn delete_rows(
    shown: &Document<'_>,
    items: &[usize],
    host: &mut dyn Host,
) -> Result<u64> {
    let mut all = Vec::new();
    items.iter().for_each(|item| add(shown, *item, &mut all));
    let mut affected = 0;
    for node in shown.shape.order.iter().rev() {
        for item in all.iter().rev().filter(|item| shown.items[**item].node == *node) {
            let own = shown.node(*item);
            if !own.tags.delete {
                bail!(JDV_NO_DELETE_TAG, own.schema, own.table, shown.items[*item].path);
            }
            if let Some(key) = shown.key(*item) {
                affected += host.write(&statements::delete(own, key))?.affected;
            }
        }
    }
    Ok(affected)
}

/// A row and the elements of its arrays, in the order of the document.
fn add(shown: &Document<'_>, item: usize, all: &mut Vec<usize>) {
    all.push(item);
    for child in &shown.items[item].children {
        if shown.node(*child).link.as_ref().is_some_and(|link| link.is_nested) {
            add(shown, *child, all);
        }
    }
}
