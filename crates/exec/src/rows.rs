//! Rows that an operator keeps: values side by side, charged to the statement.

use errors::Result;
use types::Value;

use crate::memory::Memory;

/// Rows of equal width.
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

    /// A row whose values may be taken.
    pub(crate) fn row_mut(&mut self, index: usize) -> &mut [Value] {
        &mut self.values[index * self.width..(index + 1) * self.width]
    }

    /// Keeps the next value of a row that is not complete.
    pub(crate) fn begin(&mut self, value: Value) {
        self.values.push(value);
    }

    /// Forgets the values of a row that is not complete.
    pub(crate) fn abandon(&mut self) {
        self.values.truncate(self.count * self.width);
    }

    /// Keeps the values that complete a row.
    ///
    /// # Errors
    /// The statement may hold no more.
    pub(crate) fn push(
        &mut self,
        values: impl Iterator<Item = Value>,
        memory: &mut Memory,
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
    pub(crate) fn free(&mut self, memory: &mut Memory) {
        memory.release(self.bytes);
        self.values.clear();
        self.count = 0;
        self.bytes = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
