//! Records with what stands in for columns that old ones do not have.

use errors::Result;
use types::record::{Cell, CellText, ColumnPlace, RecordError, RecordLayout};
use types::{DataType, Value};

/// How a table's records are read and written.
pub(crate) struct Layout {
    record: RecordLayout,
    /// By column; empty when NULL stands in for all.
    missing: Vec<Value>,
}

impl Layout {
    pub(crate) fn new(types: &[DataType], missing: Vec<Value>) -> Layout {
        let missing = if missing.iter().all(Value::is_null) { Vec::new() } else { missing };
        Layout { record: RecordLayout::new(types), missing }
    }

    /// Types of all columns.
    pub(crate) fn types(&self) -> &[DataType] {
        self.record.types()
    }

    /// Where a column is in records that have all.
    pub(crate) fn place(&self, column: usize) -> ColumnPlace {
        self.record.place(column)
    }

    /// What stands at a place.
    #[inline]
    pub(crate) fn cell_at<'a>(
        &self,
        record: &'a [u8],
        place: &ColumnPlace,
    ) -> std::result::Result<Cell<'a>, RecordError> {
        self.record.cell_at(record, place)
    }

    /// What stands in for a column that a record does not have.
    #[cold]
    pub(crate) fn stand_in(&self, column: usize) -> Value {
        self.missing.get(column).cloned().unwrap_or(Value::Null)
    }

    /// The value of a column.
    #[inline]
    pub(crate) fn decode(&self, record: &[u8], column: usize) -> Result<Value> {
        match self.record.decode_column(record, column)? {
            Some(value) => Ok(value),
            None => Ok(self.stand_in(column)),
        }
    }

    /// The values of all columns.
    pub(crate) fn decode_all(&self, record: &[u8]) -> Result<Vec<Value>> {
        (0..self.record.column_count()).map(|column| self.decode(record, column)).collect()
    }

    /// Appends the text of a column; false when it is NULL, `None` when the record is older than the column.
    pub(crate) fn write_text(
        &self,
        record: &[u8],
        column: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<bool>> {
        Ok(match self.record.write_cell_text(record, column, out)? {
            CellText::Written => Some(true),
            CellText::Null => Some(false),
            CellText::Missing => None,
        })
    }

    /// Appends the record of a row.
    pub(crate) fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        Ok(self.record.encode(values, out)?)
    }
}
