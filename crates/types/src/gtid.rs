//! Sets of global transaction identifiers (GTIDs): `uuid:1-5:7,uuid:tag:3`. Knows no log and no transactions.

use std::collections::BTreeMap;
use std::fmt;

/// Characters that a tag may have.
const TAG_LENGTH_MAX: usize = 32;

/// The identifier of a server.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Uuid(pub [u8; 16]);

/// One identifier: a source, a tag that may be empty, and a number above 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Gtid {
    /// The server that the transaction began on.
    pub uuid: Uuid,
    /// Lower case; empty for none.
    pub tag: Box<str>,
    /// Its number.
    pub number: i64,
}

type Ranges = Vec<(i64, i64)>;

/// Transaction numbers of sources. Printed as the reference prints it: lower case, sorted, ranges merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    /// Ranges of numbers, ends included, in order and apart, by source and tag; neither a map nor a list is empty.
    sources: BTreeMap<Uuid, BTreeMap<Box<str>, Ranges>>,
}

impl Uuid {
    /// Reads 32 hexadecimal digits with four dashes.
    pub fn parse(text: &str) -> Option<Uuid> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 || [8, 13, 18, 23].iter().any(|dash| bytes[*dash] != b'-') {
            return None;
        }
        let mut uuid = [0; 16];
        let mut digits = bytes.iter().filter(|byte| **byte != b'-');
        for byte in &mut uuid {
            let high = char::from(*digits.next()?).to_digit(16)?;
            let low = char::from(*digits.next()?).to_digit(16)?;
            *byte = (high << 4 | low) as u8;
        }
        digits.next().is_none().then_some(Uuid(uuid))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let dash = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Gtid {
    /// Whether a text can be the tag of an identifier as servers send it: in small letters; empty for none.
    pub fn is_sent_tag(text: &str) -> bool {
        text.is_empty() || is_tag(text) && !text.bytes().any(|byte| byte.is_ascii_uppercase())
    }

    /// Reads `uuid:number` or `uuid:tag:number`.
    pub fn parse(text: &str) -> Option<Gtid> {
        let (uuid, rest) = text.trim().split_once(':')?;
        let (tag, last) = rest.rsplit_once(':').unwrap_or(("", rest));
        if !tag.is_empty() && !is_tag(tag) {
            return None;
        }
        let number = number(last).filter(|number| *number > 0)?;
        let tag = tag.to_ascii_lowercase().into();
        Some(Gtid { uuid: Uuid::parse(uuid.trim())?, tag, number })
    }
}

impl fmt::Display for Gtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.tag.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}:{}", self.uuid, self.tag, self.number)
    }
}

impl GtidSet {
    /// Reads a set; `None` when it is malformed. Empty items and ranges that end before they start count as nothing.
    pub fn parse(text: &str) -> Option<GtidSet> {
        let mut set = GtidSet::default();
        for group in text.split(',').map(str::trim).filter(|group| !group.is_empty()) {
            set.parse_group(group)?;
        }
        set.sources.values_mut().flat_map(BTreeMap::values_mut).for_each(merge);
        Some(set)
    }

    /// Adds `uuid:tag:range:range`, not merged.
    fn parse_group(&mut self, group: &str) -> Option<()> {
        let mut parts = group.split(':').map(str::trim);
        let uuid = Uuid::parse(parts.next()?)?;
        let mut tag = String::new();
        for part in parts {
            if is_tag(part) {
                tag = part.to_ascii_lowercase();
                continue;
            }
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first).filter(|first| *first > 0)?, number(last)?);
            if first <= last {
                self.ranges_mut(uuid, &tag).push((first, last));
            }
        }
        Some(())
    }

    fn ranges_mut(&mut self, uuid: Uuid, tag: &str) -> &mut Ranges {
        let tags = self.sources.entry(uuid).or_default();
        if !tags.contains_key(tag) {
            tags.insert(tag.into(), Ranges::new());
        }
        tags.get_mut(tag).expect("it was just inserted")
    }

    fn ranges_of(&self, uuid: Uuid, tag: &str) -> &[(i64, i64)] {
        self.sources.get(&uuid).and_then(|tags| tags.get(tag)).map_or(&[], Vec::as_slice)
    }

    /// The ranges of numbers, ends included, by source and tag, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Uuid, &str, &[(i64, i64)])> {
        let tags = self.sources.iter().flat_map(|(uuid, tags)| tags.iter().map(|tag| (*uuid, tag)));
        tags.map(|(uuid, (tag, ranges))| (uuid, &**tag, ranges.as_slice()))
    }

    /// Whether it has no transactions.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Whether the transaction is in it.
    pub fn contains(&self, uuid: Uuid, tag: &str, number: i64) -> bool {
        let ranges = self.ranges_of(uuid, tag);
        let at = ranges.partition_point(|range| range.1 < number);
        ranges.get(at).is_some_and(|range| range.0 <= number)
    }

    /// Adds a transaction; nothing for a number below 1. The next one of a source costs no allocation.
    pub fn add(&mut self, uuid: Uuid, tag: &str, number: i64) {
        self.add_range(uuid, tag, number, number);
    }

    /// Adds the transactions `first` to `last`.
    pub fn add_range(&mut self, uuid: Uuid, tag: &str, first: i64, last: i64) {
        if first < 1 || first > last {
            return;
        }
        let ranges = self.ranges_mut(uuid, tag);
        match ranges.last_mut() {
            Some(open) if first >= open.0 && first <= open.1.saturating_add(1) => {
                open.1 = open.1.max(last);
            }
            Some(open) if first < open.0 => {
                ranges.push((first, last));
                merge(ranges);
            }
            Some(_) | None => ranges.push((first, last)),
        }
    }

    /// The least number of a source that is not in the set.
    pub fn next_free(&self, uuid: Uuid, tag: &str) -> i64 {
        match self.ranges_of(uuid, tag).first() {
            Some((1, last)) => last.saturating_add(1),
            Some(_) | None => 1,
        }
    }

    /// Whether all its transactions are in `other`.
    pub fn is_subset(&self, other: &GtidSet) -> bool {
        self.subtract(other).is_empty()
    }

    /// Adds all transactions of another set.
    pub fn add_all(&mut self, other: &GtidSet) {
        for (uuid, tag, ranges) in other.iter() {
            let all = self.ranges_mut(uuid, tag);
            all.extend_from_slice(ranges);
            merge(all);
        }
    }

    /// The transactions of either set.
    #[must_use]
    pub fn union(&self, other: &GtidSet) -> GtidSet {
        let mut union = self.clone();
        union.add_all(other);
        union
    }

    /// The transactions that are not in `other`.
    #[must_use]
    pub fn subtract(&self, other: &GtidSet) -> GtidSet {
        let mut rest = GtidSet::default();
        for (uuid, tag, ranges) in self.iter() {
            let removed = other.ranges_of(uuid, tag);
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
                *rest.ranges_mut(uuid, tag) = kept;
            }
        }
        rest
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (uuid, tags)) in self.sources.iter().enumerate() {
            let separator = if index == 0 { "" } else { ",\n" };
            write!(f, "{separator}{uuid}")?;
            for (tag, ranges) in tags {
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
        }
        Ok(())
    }
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
