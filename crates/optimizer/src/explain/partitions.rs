//! Partitioned tables in EXPLAIN: the partitions that a scan reads, and its key without the hidden part.

use std::borrow::Cow;

use catalog::Table;
use plan::{Access, IndexKeySource, RangeSpec};

use crate::pruning::known_number;

/// The access as it would be without the number of the partition in front of the key.
pub(super) fn without_numbers<'a>(table: &Table, access: &'a Access) -> Cow<'a, Access> {
    if table.partition_column().is_none() {
        return Cow::Borrowed(access);
    }
    match access {
        Access::Unique { index: 0, key } => {
            Cow::Owned(Access::Unique { index: 0, key: key[1..].to_vec() })
        }
        Access::Ranges { index: 0, ranges, backward, or_all, keys } => {
            let mut shown: Vec<RangeSpec> = Vec::with_capacity(ranges.len());
            for range in ranges {
                let own = match range.equal.split_first() {
                    Some((_, rest)) => RangeSpec { equal: rest.to_vec(), ..range.clone() },
                    None => RangeSpec::default(),
                };
                if !shown.contains(&own) {
                    shown.push(own);
                }
            }
            let (backward, or_all, keys) = (*backward, *or_all, *keys);
            if shown.iter().all(|range| *range == RangeSpec::default()) {
                return Cow::Owned(Access::Full { index: 0, backward });
            }
            Cow::Owned(Access::Ranges { index: 0, ranges: shown, backward, or_all, keys })
        }
        _ => Cow::Borrowed(access),
    }
}

/// Names of the partitions that a scan reads, as far as constants show.
pub(super) fn read(table: &Table, access: &Access) -> Option<String> {
    let partitioning = table.partitioning.as_ref()?;
    let known = |source: &IndexKeySource| known_number(&source.value);
    let is_read = |number: u16| match access {
        Access::Unique { index: 0, key } => {
            key.first().and_then(known).is_none_or(|own| own == Some(number))
        }
        Access::Ranges { index: 0, ranges, .. } => ranges.iter().any(|range| {
            if let Some(first) = range.equal.first() {
                return known(first).is_none_or(|own| own == Some(number));
            }
            let end = |bound: &Option<plan::RangeBound>| bound.as_ref().and_then(|b| known(&b.key));
            let above = match end(&range.lower) {
                Some(lower) => lower.is_some_and(|lower| lower <= number),
                None => true,
            };
            let below = match end(&range.upper) {
                Some(upper) => upper.is_some_and(|upper| number <= upper),
                None => true,
            };
            above && below
        }),
        _ => true,
    };
    let numbers = partitioning.numbers().into_iter().filter(|number| is_read(*number));
    let names: Vec<String> = numbers.filter_map(|number| partitioning.leaf_name(number)).collect();
    (!names.is_empty()).then(|| names.join(","))
}
