//! Key bytes as ordered map keys, and the half-open spans that key ranges become.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Bound;

use engine_api::{KeyBound, KeyRange};
use types::SqlBytes;

/// Key bytes, short ones inline, ordered bytewise.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key(SqlBytes);

impl Key {
    pub(crate) fn new(bytes: &[u8]) -> Key {
        Key(SqlBytes::new(bytes))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_slice().cmp(other.as_slice())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self.as_slice()
    }
}

/// The smallest byte string greater than every string that starts with `prefix`; `None` if no such string exists.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut next = prefix[..=last].to_vec();
    next[last] += 1;
    Some(next)
}

/// Keys from `start` inclusive to `end` exclusive; no `end` means no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Option<Vec<u8>>,
}

impl Span {
    /// `None` when the range can hold no key.
    pub(crate) fn of(range: &KeyRange) -> Option<Span> {
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
    pub(crate) fn prefix(prefix: &[u8]) -> Span {
        Span { start: prefix.to_vec(), end: successor(prefix) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// For `BTreeMap::range`, going on after `position` when given; `None` when nothing is left.
    pub(crate) fn bounds_after<'a>(
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
