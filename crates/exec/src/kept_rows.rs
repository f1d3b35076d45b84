//! Rows that an operator keeps, charged to the statement: all in memory, or in order of arrival in memory and after
//! that in a file without a name.

use errors::Result;
use types::Value;

use crate::context::ExecSettings;
use crate::spill::{Extent, RowReader, RowWriter};
use budget::Memory;

/// Rows of equal width in memory, values side by side.
pub(crate) struct Rows {
    values: Vec<Value>,
    width: usize,
    count: usize,
    bytes: usize,
}

impl Rows {
    pub(crate) fn new(width: usize) -> Rows {
        Rows { values: Vec::new(), width, count: 0, bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn row(&self, index: usize) -> &[Value] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    /// A row whose values may be moved out.
    pub(crate) fn row_mut(&mut self, index: usize) -> &mut [Value] {
        &mut self.values[index * self.width..(index + 1) * self.width]
    }

    /// Keeps the next value of an incomplete row.
    pub(crate) fn begin(&mut self, value: Value) {
        self.values.push(value);
    }

    /// Discards the values of an incomplete row.
    pub(crate) fn abandon(&mut self) {
        self.values.truncate(self.count * self.width);
    }

    /// Keeps the values that complete a row.
    ///
    /// # Errors
    /// The statement may use no more memory.
    pub(crate) fn push(
        &mut self,
        values: impl Iterator<Item = Value>,
        memory: &mut Memory<'_>,
    ) -> Result<()> {
        self.values.extend(values);
        self.count += 1;
        debug_assert_eq!(self.values.len(), self.count * self.width, "rows are of equal width");
        let last = &self.values[self.values.len() - self.width..];
        let heap: usize = last.iter().map(Value::heap_bytes).sum();
        let bytes = self.width * size_of::<Value>() + heap;
        self.bytes += bytes;
        memory.charge(bytes)
    }

    /// Forgets all rows.
    pub(crate) fn free(&mut self, memory: &mut Memory<'_>) {
        memory.release(self.bytes);
        self.values.clear();
        self.count = 0;
        self.bytes = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Rows of equal width, in memory and after that in a file. Pushed first, then `end`ed, then read from the front.
pub(crate) struct KeptRows {
    /// The first rows.
    memory: Rows,
    /// The other rows, and their file region once they are complete.
    file: Option<RowWriter>,
    extent: Option<Extent>,
    /// Rows in memory and in the file.
    count: u64,
}

impl KeptRows {
    pub(crate) fn new(width: usize) -> KeptRows {
        KeptRows { memory: Rows::new(width), file: None, extent: None, count: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes charged to the statement.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    /// The place for the next row while all take at most `bytes_max`.
    pub(crate) fn in_memory(&mut self, bytes_max: usize) -> Option<&mut Rows> {
        let fits = self.file.is_none() && self.memory.bytes() <= bytes_max;
        fits.then_some(&mut self.memory)
    }

    /// Counts a row that `in_memory` took.
    pub(crate) fn count_row(&mut self) {
        self.count += 1;
    }

    /// Appends a row to the file.
    pub(crate) fn append<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value>,
        settings: &ExecSettings,
    ) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(RowWriter::create(settings)?),
        };
        self.count += 1;
        file.push(&[], values)
    }

    /// No more rows will be added. Returns whether some are in a file.
    pub(crate) fn end_file(&mut self) -> Result<bool> {
        if let Some(file) = &mut self.file {
            self.extent = Some(file.end_sequence()?);
        }
        Ok(self.file.is_some())
    }

    /// Forgets all rows.
    pub(crate) fn free(&mut self, memory: &mut Memory<'_>) {
        self.memory.free(memory);
        (self.file, self.extent, self.count) = (None, None, 0);
    }
}

/// A place in kept rows; a new one is before the first.
#[derive(Default)]
pub(crate) struct KeptReader {
    at: usize,
    file: Option<RowReader>,
    key: Vec<u8>,
    /// The last row that was read from the file.
    values: Vec<Value>,
}

impl KeptReader {
    /// The next row; `None` after the last.
    pub(crate) fn next<'a>(&'a mut self, rows: &'a KeptRows) -> Result<Option<&'a [Value]>> {
        if self.at < rows.memory.len() {
            self.at += 1;
            return Ok(Some(rows.memory.row(self.at - 1)));
        }
        let (Some(file), Some(extent)) = (&rows.file, rows.extent) else { return Ok(None) };
        let reader = self.file.get_or_insert_with(|| file.reader(extent));
        let found = reader.next(&mut self.key, &mut self.values)?;
        Ok(found.then_some(self.values.as_slice()))
    }
}
