//! The half-open spans of key bytes that key ranges become.

use engine_api::{KeyBound, KeyRange};

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

    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }
}
