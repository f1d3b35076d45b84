//! Keys WITHOUT OVERLAPS: which rows they look at.

use plan::OverlapCheck;
use types::Value;
use types::key::encode_part;

/// What keys begin with before the columns of the key: the numbers of the partitions in which rows may be that are like the new one.
pub fn leading(check: &OverlapCheck, new: &[Value]) -> Vec<Vec<u8>> {
    let Some((part, numbers)) = &check.partitions else { return vec![Vec::new()] };
    let key = |number: &Value| {
        let mut key = Vec::new();
        encode_part(number, &part.ty, None, part.descending, &mut key);
        key
    };
    match numbers.is_empty() {
        true => vec![key(&new[part.column])],
        false => numbers.iter().map(|number| key(&Value::UInt((*number).into()))).collect(),
    }
}

/// Whether a change of a row may make it overlap others.
pub fn differs(check: &OverlapCheck, old: &[Value], new: &[Value]) -> bool {
    let period = [check.start, check.end];
    let end = check.current.as_ref().map(|(end, _)| *end);
    let mut columns = check.alike.iter().map(|part| part.column).chain(period).chain(end);
    columns.any(|column| old[column] != new[column])
}

/// Whether a row counts: old rows of a table that keeps history do not.
pub fn counts(check: &OverlapCheck, row: &[Value]) -> bool {
    check.current.as_ref().is_none_or(|(end, never)| row[*end] == *never)
}
