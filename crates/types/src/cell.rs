//! A cell of a result row, in the form in which its producer has it. Each consumer of rows encodes cells in its own form.
//!
//! Independent of protocols: the consumers of cells are in `wire`, in exported files, and elsewhere.

use crate::record::{RecordError, decode_cell, write_stored_text};
use crate::{DataType, Value, to_text};

/// One cell. It borrows where it can, so that a cell copied from a record into a buffer never becomes a value.
#[derive(Clone, Debug)]
pub enum ResultCell<'a> {
    /// SQL NULL.
    Null,
    /// Bytes as a record holds them for a column of type `ty`.
    Stored {
        /// The bytes.
        bytes: &'a [u8],
        /// The type of the record's column: determines how the bytes are read.
        ty: &'a DataType,
    },
    /// A borrowed value; never NULL.
    Value(&'a Value),
    /// A value made for this cell; never NULL.
    Computed(Value),
}

impl<'a> From<&'a Value> for ResultCell<'a> {
    #[inline]
    fn from(value: &'a Value) -> ResultCell<'a> {
        match value {
            Value::Null => ResultCell::Null,
            value => ResultCell::Value(value),
        }
    }
}

impl From<Value> for ResultCell<'_> {
    #[inline]
    fn from(value: Value) -> Self {
        match value {
            Value::Null => ResultCell::Null,
            value => ResultCell::Computed(value),
        }
    }
}

impl ResultCell<'_> {
    /// The value.
    ///
    /// # Errors
    /// Stored bytes that are not a value of their type.
    pub fn into_value(self) -> Result<Value, RecordError> {
        match self {
            ResultCell::Null => Ok(Value::Null),
            ResultCell::Stored { bytes, ty } => decode_cell(bytes, ty),
            ResultCell::Value(value) => Ok(value.clone()),
            ResultCell::Computed(value) => Ok(value),
        }
    }

    /// Appends the text of the cell in a result column of type `ty`; false for NULL, which has none.
    ///
    /// # Errors
    /// Stored bytes that are not a value of their type.
    pub fn write_text(&self, ty: &DataType, out: &mut Vec<u8>) -> Result<bool, RecordError> {
        match self {
            ResultCell::Null => return Ok(false),
            ResultCell::Stored { bytes, ty } => write_stored_text(bytes, ty, out)?,
            ResultCell::Value(value) => to_text(value, ty, out),
            ResultCell::Computed(value) => to_text(value, ty, out),
        }
        Ok(true)
    }
}
