//! JSON aggregates.

use std::cmp::Ordering;

use plugin_api::AggregateFunction;

pub(crate) const FUNCTIONS: &[AggregateFunction] = &[];

/// Order of two documents.
pub(crate) fn compare(left: &[u8], right: &[u8]) -> Ordering {
    left.cmp(right)
}
