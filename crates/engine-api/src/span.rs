//! The half-open spans of key bytes that key ranges become.

use std::ops::Bound;

use crate::{KeyBound, KeyRange};

/// The smallest byte string greater than every string that starts with `prefix`; `None` if no such string exists.
pub fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Keys from `start` inclusive to `end` exclusive; no `end` means no limit.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The first key that may be in it.
    pub start: Vec<u8>,
    /// The first key after it.
    pub end: Option<Vec<u8>>,
}

impl Span {
    /// `None` when the range can hold no key.
    pub fn of(range: &KeyRange) -> Option<Span> {
        let start = match &range.lower {
            KeyBound::Unbounded => Vec::new(),
            KeyBound::Included(prefix) => prefix.clone(),
            KeyBound::Excluded(prefix) => successor(prefix)?,
        };
        let end = match &range.upper {
            KeyBound::Unbounded => None,
            KeyBound::Included(prefix) => successor(prefix),
            KeyBound::Excluded(prefix) => Some(prefix.clone()),
        };
        let span = Span { start, end };
        (!span.is_empty()).then_some(span)
    }

    /// Exactly the keys that start with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Span {
        Span { start: prefix.to_vec(), end: successor(prefix) }
    }

    /// Whether no key is in it.
    pub fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// For `BTreeMap::range`, going on after `position` when given; `None` when nothing is left.
    pub fn bounds_after<'a>(
        &'a self,
        position: Option<&'a [u8]>,
        backward: bool,
    ) -> Option<(Bound<&'a [u8]>, Bound<&'a [u8]>)> {
        let mut start = Bound::Included(self.start.as_slice());
        let mut end = self.end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        match position {
            None => {}
            Some(position) if backward => {
                if position <= self.start.as_slice() {
                    return None;
                }
                end = Bound::Excluded(position);
            }
            Some(position) => {
                if self.end.as_deref().is_some_and(|end| position >= end) {
                    return None;
                }
                start = Bound::Excluded(position);
            }
        }
        // The map panics on `(Excluded(x), Excluded(x))`.
        if let (Bound::Excluded(low), Bound::Excluded(high)) = (start, end)
            && low >= high
        {
            return None;
        }
        Some((start, end))
    }
}

/// The keys of all ranges, as ranges in order without overlap.
pub fn united(ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    let mut spans: Vec<Span> = ranges.iter().filter_map(Span::of).collect();
    spans.sort();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(Span { end, .. }) if end.as_ref().is_none_or(|end| span.start < *end) => {
                if span.end.is_none() || end.is_some() && span.end > *end {
                    *end = span.end;
                }
            }
            _ => merged.push(span),
        }
    }
    let to_range = |Span { start, end }: Span| KeyRange {
        lower: if start.is_empty() { KeyBound::Unbounded } else { KeyBound::Included(start) },
        upper: end.map_or(KeyBound::Unbounded, KeyBound::Excluded),
    };
    merged.into_iter().map(to_range).collect()
}
