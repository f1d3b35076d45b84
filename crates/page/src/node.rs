//! Filling whole tree pages: splits, merges and root changes rebuild a node from a list of records.

use crate::edit::PageMut;
use crate::layout::{Fences, PageNo, SLOT_BYTES, padded, record_bytes};
use crate::read::PageRef;

/// The records do not fit one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildError;

/// Records of one or more nodes, in key order, in private memory.
#[derive(Default)]
pub struct NodeBuilder {
    bytes: Vec<u8>,
    /// Start of key, start of value, end.
    places: Vec<(usize, usize, usize)>,
}

impl NodeBuilder {
    /// No records.
    pub fn new() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// Appends every record of a page.
    pub fn take_page(&mut self, page: PageRef<'_>) {
        for slot in 0..page.count() {
            let start = self.bytes.len();
            page.copy_key(slot, &mut self.bytes);
            let value = self.bytes.len();
            page.copy_value(slot, &mut self.bytes);
            self.places.push((start, value, self.bytes.len()));
        }
    }

    /// Appends one record.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        debug_assert!(
            self.places.is_empty() || self.key(self.len() - 1) < key,
            "records come in the order of their keys"
        );
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.places.push((start, middle, self.bytes.len()));
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Key of record `index`.
    pub fn key(&self, index: usize) -> &[u8] {
        let (start, value, _) = self.places[index];
        &self.bytes[start..value]
    }

    /// Value of record `index`.
    pub fn value(&self, index: usize) -> &[u8] {
        let (_, value, end) = self.places[index];
        &self.bytes[value..end]
    }

    /// Bytes that records `range` would take in a page with these fences.
    pub fn bytes_needed(&self, range: std::ops::Range<usize>, fences: &Fences) -> usize {
        let prefix = fences.prefix_length();
        let fence = |fence: &Option<Vec<u8>>| fence.as_ref().map_or(0, |key| padded(key.len()));
        let records: usize = range
            .map(|index| {
                let suffix = self.key(index).len().saturating_sub(prefix);
                record_bytes(suffix, self.value(index).len()) + SLOT_BYTES
            })
            .sum();
        records + fence(&fences.lower) + fence(&fences.upper)
    }

    /// Index at which to split so that both halves hold about the same bytes. At least one record on each side.
    ///
    /// # Panics
    /// If it has fewer than two records.
    pub fn middle(&self) -> usize {
        assert!(self.len() >= 2, "one record cannot be divided");
        let total: usize = (0..self.len()).map(|index| self.weight(index)).sum();
        let mut left = 0;
        for index in 0..self.len() {
            left += self.weight(index);
            if left * 2 >= total {
                return (index + 1).clamp(1, self.len() - 1);
            }
        }
        self.len() - 1
    }

    fn weight(&self, index: usize) -> usize {
        record_bytes(self.key(index).len(), self.value(index).len()) + SLOT_BYTES
    }

    /// Formats `page` as a node with records `range`.
    ///
    /// # Errors
    /// They do not fit; the page is then half built, so the caller checks `bytes_needed` first.
    pub fn write(
        &self,
        page: &mut PageMut<'_>,
        (no, level, tree): (PageNo, u8, u64),
        fences: &Fences,
        range: std::ops::Range<usize>,
    ) -> Result<(), BuildError> {
        assert!(range.end <= self.len(), "the records exist");
        page.format_node(no, level, tree, fences);
        for (slot, index) in range.enumerate() {
            if !page.insert(slot, self.key(index), self.value(index)) {
                return Err(BuildError);
            }
        }
        Ok(())
    }
}
