//! Buffers in which rows leave an engine; reused from call to call so that no row costs an allocation.

/// One row: its locator and its record.
#[derive(Clone, Copy, Debug)]
pub struct RowRef<'a> {
    /// Clustered key bytes: names the row in `update`, `delete` and `unlock`.
    pub locator: &'a [u8],
    /// The record, see `types::record`.
    pub record: &'a [u8],
}

/// A single row, for point reads.
#[derive(Clone, Debug, Default)]
pub struct RowBuf {
    /// Clustered key bytes.
    pub locator: Vec<u8>,
    /// The record.
    pub record: Vec<u8>,
}

impl RowBuf {
    /// As a reference.
    pub fn as_row(&self) -> RowRef<'_> {
        RowRef { locator: &self.locator, record: &self.record }
    }

    /// Empties the buffer, keeping its memory.
    pub fn clear(&mut self) {
        self.locator.clear();
        self.record.clear();
    }
}

/// Rows of one fetch, bytes side by side in one buffer.
#[derive(Clone, Debug, Default)]
pub struct RowBatch {
    bytes: Vec<u8>,
    /// For each row: end of its locator, end of its record. It starts at the end of the previous row.
    ends: Vec<(usize, usize)>,
}

impl RowBatch {
    /// An empty batch.
    pub fn new() -> RowBatch {
        RowBatch::default()
    }

    /// Forgets the rows, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Appends a row.
    pub fn push(&mut self, locator: &[u8], record: &[u8]) {
        self.bytes.extend_from_slice(locator);
        let locator_end = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.ends.push((locator_end, self.bytes.len()));
    }

    /// Appends a row; `fill` writes its record after the locator. For engines that rebuild records.
    #[inline]
    pub fn push_with(&mut self, locator: &[u8], fill: impl FnOnce(&mut Vec<u8>)) {
        self.push_parts(|out| out.extend_from_slice(locator), fill);
    }

    /// Appends a row: `locate` writes its locator, `fill` its record.
    #[inline]
    pub fn push_parts(
        &mut self,
        locate: impl FnOnce(&mut Vec<u8>),
        fill: impl FnOnce(&mut Vec<u8>),
    ) {
        locate(&mut self.bytes);
        let locator_end = self.bytes.len();
        fill(&mut self.bytes);
        self.ends.push((locator_end, self.bytes.len()));
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes held.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Row `index`, counted from 0.
    ///
    /// # Panics
    /// If no such row exists.
    #[inline]
    pub fn row(&self, index: usize) -> RowRef<'_> {
        let start = if index == 0 { 0 } else { self.ends[index - 1].1 };
        let (locator_end, record_end) = self.ends[index];
        RowRef {
            locator: &self.bytes[start..locator_end],
            record: &self.bytes[locator_end..record_end],
        }
    }

    /// All rows in order.
    pub fn iter(&self) -> impl Iterator<Item = RowRef<'_>> {
        (0..self.len()).map(|index| self.row(index))
    }
}
