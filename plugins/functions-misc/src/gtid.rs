//! GTID_SUBSET and GTID_SUBTRACT.

use std::collections::BTreeMap;

use errors::{Error, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::Value;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "GTID_SUBSET",
        Arity::exactly(2),
        "GTID_SUBSET(set1, set2)\nWhether all transactions of set1 are in set2.",
        bind_subset,
    ),
    scalar(
        "GTID_SUBTRACT",
        Arity::exactly(2),
        "GTID_SUBTRACT(set1, set2)\nThe transactions of set1 that are not in set2.",
        bind_subtract,
    ),
];

/// Ranges of transaction numbers, ends included, in order and apart, by source (and tag).
type Set = BTreeMap<String, Vec<(i64, i64)>>;

fn bind_subset(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let (left, right) = (parse(&kit::text(&args[0]))?, parse(&kit::text(&args[1]))?);
        Ok(Value::bool(subtract(left, &right).is_empty()))
    }))
}

fn bind_subtract(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let length = kit::text_length(&args[0].ty).saturating_mul(12);
    let ty = text_type(length, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let (left, right) = (parse(&kit::text(&args[0]))?, parse(&kit::text(&args[1]))?);
        Ok(Value::from(print(&subtract(left, &right)).as_str()))
    }))
}

#[cold]
fn malformed(what: &str) -> Error {
    Error::with(errors::ErrorCode(1772), &[&what])
}

fn parse(text: &str) -> Result<Set> {
    let mut set = Set::new();
    for group in text.split(',').map(str::trim).filter(|group| !group.is_empty()) {
        let mut parts = group.split(':').map(str::trim);
        let source = parts.next().unwrap_or_default().to_ascii_lowercase();
        if !is_uuid(&source) {
            return Err(malformed(text));
        }
        let mut key = source.clone();
        for part in parts {
            if part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
                key = format!("{source}:{}", part.to_ascii_lowercase());
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.trim().parse::<i64>().ok().filter(|number| *number > 0);
            let (Some(first), Some(last)) = (number(first), number(last)) else {
                return Err(malformed(text));
            };
            if first <= last {
                set.entry(key.clone()).or_default().push((first, last));
            }
        }
    }
    set.values_mut().for_each(merge);
    Ok(set)
}

fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn merge(ranges: &mut Vec<(i64, i64)>) {
    ranges.sort_unstable();
    let mut merged: Vec<(i64, i64)> = Vec::with_capacity(ranges.len());
    for &(first, last) in ranges.iter() {
        match merged.last_mut() {
            Some(open) if first <= open.1.saturating_add(1) => open.1 = open.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    *ranges = merged;
}

fn subtract(left: Set, right: &Set) -> Set {
    let mut rest = Set::new();
    for (source, ranges) in left {
        let removed = right.get(&source).map_or(&[][..], Vec::as_slice);
        let mut kept = Vec::new();
        for (mut first, last) in ranges {
            for &(start, end) in removed {
                if end < first || start > last {
                    continue;
                }
                if start > first {
                    kept.push((first, start - 1));
                }
                first = first.max(end.saturating_add(1));
            }
            if first <= last {
                kept.push((first, last));
            }
        }
        if !kept.is_empty() {
            rest.insert(source, kept);
        }
    }
    rest
}

fn print(set: &Set) -> String {
    let groups: Vec<String> = set
        .iter()
        .map(|(source, ranges)| {
            let ranges: Vec<String> = ranges
                .iter()
                .map(
                    |(first, last)| {
                        if first == last { first.to_string() } else { format!("{first}-{last}") }
                    },
                )
                .collect();
            format!("{source}:{}", ranges.join(":"))
        })
        .collect();
    groups.join(",\n")
}
