//! Sets of global transaction identifiers (GTIDs): `uuid:1-5:7,uuid:tag:3`. Knows no log and no transactions.

use std::collections::BTreeMap;
use std::fmt;

/// Characters that a tag may have.
const TAG_LENGTH_MAX: usize = 32;

/// Transaction numbers of sources. Printed as the reference prints it: lower case, sorted, ranges merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    /// Ranges of numbers, ends included, in order and apart, by UUID and tag; the tag may be empty, no list is.
    ranges: BTreeMap<(String, String), Vec<(i64, i64)>>,
}

impl GtidSet {
    /// Reads a set; `None` when it is malformed. Empty items and ranges that end before they start count as nothing.
    pub fn parse(text: &str) -> Option<GtidSet> {
        let mut set = GtidSet::default();
        for group in text.split(',').map(str::trim).filter(|group| !group.is_empty()) {
            set.parse_group(group)?;
        }
        set.ranges.values_mut().for_each(merge);
        Some(set)
    }

    /// Adds `uuid:tag:range:range`, not merged.
    fn parse_group(&mut self, group: &str) -> Option<()> {
        let mut parts = group.split(':').map(str::trim);
        let uuid = parts.next().filter(|uuid| is_uuid(uuid))?.to_ascii_lowercase();
        let mut tag = String::new();
        for part in parts {
            if is_tag(part) {
                tag = part.to_ascii_lowercase();
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).filter(|first| *first > 0)?, number(last)?);
            if first <= last {
                let key = (uuid.clone(), tag.clone());
                self.ranges.entry(key).or_default().push((first, last));
            }
        }
        Some(())
    }

    /// Whether it has no transactions.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether all its transactions are in `other`.
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        self.subtract(other).is_empty()
    }

    /// The transactions of either set.
    #[must_use]
    pub fn union(&self, other: &GtidSet) -> GtidSet {
        let mut union = self.clone();
        for (key, ranges) in &other.ranges {
            let all = union.ranges.entry(key.clone()).or_default();
            all.extend_from_slice(ranges);
            merge(all);
        }
        union
    }

    /// The transactions that are not in `other`.
    #[must_use]
    pub fn subtract(&self, other: &GtidSet) -> GtidSet {
        let mut rest = GtidSet::default();
        for (key, ranges) in &self.ranges {
            let removed = other.ranges.get(key).map_or(&[][..], Vec::as_slice);
            let mut kept = Vec::new();
            for &(mut first, last) in ranges {
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
                rest.ranges.insert(key.clone(), kept);
            }
        }
        rest
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last_uuid = "";
        for ((uuid, tag), ranges) in &self.ranges {
            if uuid != last_uuid {
                let separator = if last_uuid.is_empty() { "" } else { ",\n" };
                write!(f, "{separator}{uuid}")?;
                last_uuid = uuid;
            }
            if !tag.is_empty() {
                write!(f, ":{tag}")?;
            }
            for (first, last) in ranges {
                write!(f, ":{first}")?;
                if first != last {
                    write!(f, "-{last}")?;
                }
            }
        }
        Ok(())
    }
}

fn is_uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_tag(text: &str) -> bool {
    text.len() <= TAG_LENGTH_MAX
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The greatest number is not one of a transaction.
fn number(text: &str) -> Option<i64> {
    let text = text.trim();
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_plain && *number < i64::MAX)
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
