//! Reading one snapshot on several threads, many records at a time: for scans that keep nothing but values of some columns.

use crate::{EngineResult, KeyRange};

/// Records of one read, somewhere in one buffer. An engine may leave other bytes between them.
#[derive(Clone, Debug, Default)]
pub struct RecordBlock {
    bytes: Vec<u8>,
    /// For each record: start, end.
    places: Vec<(usize, usize)>,
}

impl RecordBlock {
    /// An empty block.
    pub fn new() -> RecordBlock {
        RecordBlock::default()
    }

    /// Forgets the records, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
    }

    /// The buffer, for an engine that fills it with more than one record at a time.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The buffer's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes from `start` to `end` of the buffer are the next record.
    ///
    /// # Panics
    /// If they are outside the buffer.
    pub fn push_place(&mut self, start: usize, end: usize) {
        assert!(start <= end && end <= self.bytes.len());
        self.places.push((start, end));
    }

    /// Appends a record that `fill` writes at the end of the buffer.
    pub fn push_with(&mut self, fill: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        fill(&mut self.bytes);
        self.push_place(start, self.bytes.len().max(start));
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Record `index`, counted from 0.
    ///
    /// # Panics
    /// If no such record exists.
    #[inline]
    pub fn record(&self, index: usize) -> &[u8] {
        let (start, end) = self.places[index];
        &self.bytes[start..end]
    }

    /// All records in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.places.iter().map(|(start, end)| &self.bytes[*start..*end])
    }
}

/// Reads the clustered index of one table as its transaction sees it, on any thread. It borrows the transaction, which can
/// neither write nor end in that time.
pub trait SnapshotReader: Send + Sync {
    /// Ranges in key order, at most `parts` and of about equal size, that together are `range`.
    ///
    /// # Errors
    /// I/O.
    fn split(&self, range: &KeyRange, parts: usize) -> EngineResult<Vec<KeyRange>>;

    /// Replaces `block` with the first records of `range`, about a page of them, and sets `range` to the rest. False if nothing is
    /// left; the block may still hold records. A block without records does not mean the end.
    ///
    /// # Errors
    /// I/O, `Cancelled`.
    fn read(&self, range: &mut KeyRange, block: &mut RecordBlock) -> EngineResult<bool>;
}
