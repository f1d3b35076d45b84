//! Characters of a string: a byte each in a binary string, else UTF-8. All positions here are bytes unless a name says otherwise.

use charset::Collation;
use types::CollationId;

/// How a string's characters are counted and compared.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    collation: &'static Collation,
}

impl Text {
    pub(crate) fn new(collation: CollationId) -> Text {
        Text { collation: charset::collation_or_binary(collation) }
    }

    pub(crate) fn collation(self) -> &'static Collation {
        self.collation
    }

    pub(crate) fn length(self, text: &[u8]) -> usize {
        self.collation.char_length(text)
    }

    /// Bytes of the first `characters`.
    pub(crate) fn prefix(self, text: &[u8], characters: usize) -> usize {
        self.collation.char_prefix(text, characters)
    }

    /// Length of the character at the start.
    pub(crate) fn step(self, text: &[u8]) -> usize {
        self.prefix(text, 1).max(1)
    }

    /// Characters from `start` (0-based), at most `count`.
    pub(crate) fn slice(self, text: &[u8], start: usize, count: usize) -> &[u8] {
        let from = self.prefix(text, start);
        let rest = &text[from..];
        &rest[..self.prefix(rest, count)]
    }

    /// Byte position of the first match of `needle` at or after byte `from`, by the collation.
    pub(crate) fn find(self, text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
        if needle.is_empty() {
            return Some(from);
        }
        if self.collation.is_bin() {
            return self.find_exact(text, needle, from);
        }
        if let Some(found) = self.collation.find_ascii(text, needle, from) {
            return found;
        }
        let characters = self.length(needle);
        let mut at = from;
        let mut end = at + self.prefix(&text[at..], characters);
        while at < text.len() && self.length(&text[at..end]) == characters {
            if self.collation.equal(&text[at..end], needle) {
                return Some(at);
            }
            at += self.step(&text[at..]);
            end += self.prefix(&text[end..], 1);
        }
        None
    }

    fn find_exact(self, text: &[u8], needle: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while at + needle.len() <= text.len() {
            if text[at..].starts_with(needle) {
                return Some(at);
            }
            at += self.step(&text[at..]);
        }
        None
    }
}

/// Byte positions where `needle` (not empty) occurs exactly, not overlapping, from left to right.
pub(crate) fn exact_matches(text: &[u8], needle: &[u8]) -> Vec<usize> {
    memchr::memmem::find_iter(text, needle).collect()
}
