//! Reading a private copy of a tree page as plain bytes, so that records can be used in place.

use crate::layout::{HEADER_BYTES, W_FENCES, W_SPACE, W_TXN, padded};

/// Bytes copied by `PageRef::copy_page` from a page that did not change during the copy.
#[derive(Clone, Copy)]
pub struct PageImage<'a>(&'a [u8]);

impl<'a> PageImage<'a> {
    /// Looks at a copy.
    pub fn new(bytes: &'a [u8]) -> PageImage<'a> {
        PageImage(bytes)
    }

    /// The eight bytes at `offset`; zeros outside the page.
    #[inline]
    pub fn word_at(self, offset: usize) -> u64 {
        match self.0.get(offset..offset + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or([0; 8])),
            None => 0,
        }
    }

    /// Number of records.
    pub fn count(self) -> usize {
        (self.word_at(W_SPACE * 8) & 0xFFFF) as usize
    }

    /// Total. The whole key in a slot, prefix included.
    pub fn key(self, slot: usize) -> Vec<u8> {
        let word = self.word_at(HEADER_BYTES + slot * 8);
        let (offset, suffix) = ((word & 0xFFFF) as usize, (word >> 16) as usize & 0xFFFF);
        let lower = (self.word_at(W_FENCES * 8) & 0xFFFF) as usize;
        let prefix = (self.word_at(W_SPACE * 8) >> 48) as usize;
        let bytes = |start: usize, length| self.0.get(start..start + length).unwrap_or(&[]);
        [bytes(lower, prefix), bytes(offset + 8, suffix)].concat()
    }

    /// Total. The places of the two parts of the key in a slot: the prefix of the page, and the slot's suffix.
    #[inline]
    pub fn key_places(self, slot: usize) -> [std::ops::Range<usize>; 2] {
        let word = self.word_at(HEADER_BYTES + slot * 8);
        let (offset, suffix) = ((word & 0xFFFF) as usize, (word >> 16) as usize & 0xFFFF);
        let lower = (self.word_at(W_FENCES * 8) & 0xFFFF) as usize;
        let prefix = (self.word_at(W_SPACE * 8) >> 48) as usize;
        let inside = |start: usize, length: usize| {
            let start = start.min(self.0.len());
            start..(start + length).min(self.0.len())
        };
        [inside(lower, prefix), inside(offset + 8, suffix)]
    }

    /// The largest id of a transaction that changed an entry here.
    pub fn max_txn(self) -> u64 {
        self.word_at(W_TXN * 8)
    }

    /// Total. Start and end of the value in a slot, inside the page.
    #[inline]
    pub fn value_place(self, slot: usize) -> (usize, usize) {
        let word = self.word_at(HEADER_BYTES + slot * 8);
        let (offset, suffix) = ((word & 0xFFFF) as usize, (word >> 16) as usize & 0xFFFF);
        let length = (self.word_at(offset) & 0xFFFF) as usize;
        let start = (offset + 8 + padded(suffix)).min(self.0.len());
        (start, (start + length).min(self.0.len()))
    }
}
