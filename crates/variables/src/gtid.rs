//! `gtid_purged`: which values SET takes, and what they make of the present set. There is no log: both `gtid_purged` and
//! `gtid_executed` are the set that was assigned, until the server ends.

use errors::{Result, err};
use types::GtidSet;

/// A value for `gtid_purged`: a set, added to the present one when it starts with `+`. `None` when it is malformed.
fn parse(text: &str) -> Option<(bool, GtidSet)> {
    let text = text.trim_start();
    match text.strip_prefix('+') {
        Some(added) => GtidSet::parse(added).map(|set| (true, set)),
        None => GtidSet::parse(text).map(|set| (false, set)),
    }
}

/// Whether SET takes the text for `gtid_purged`.
pub fn is_gtid_purged(text: &str) -> bool {
    parse(text).is_some()
}

/// The set after an assignment.
///
/// # Errors
/// 1231; 3546 when an added set overlaps the present one or a replacement lacks part of it.
pub(crate) fn purged_after(current: &str, assigned: &str) -> Result<GtidSet> {
    let current = GtidSet::parse(current).unwrap_or_default();
    let (adds, set) =
        parse(assigned).ok_or_else(|| err!(WRONG_VALUE_FOR_VAR, "gtid_purged", assigned))?;
    if !adds {
        let broken = "the new value must be a superset of the old value";
        let whole = current.is_subset(&set);
        return whole.then_some(set).ok_or_else(|| err!(CANT_SET_GTID_PURGED, broken));
    }
    if set.subtract(&current) != set {
        let broken = "the added gtid set must not overlap with @@GLOBAL.GTID_EXECUTED";
        return Err(err!(CANT_SET_GTID_PURGED, broken));
    }
    Ok(current.union(&set))
}
