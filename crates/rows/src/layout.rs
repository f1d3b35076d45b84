//! Records, with the values of columns that old records do not have.

use errors::Result;
use plan::EntryParts;
use types::key::{KEY_RECORD, KeyReader, fixed_width, split_key_record};
use types::record::{Cell, ColumnPlace, RecordError, RecordLayout};
use types::{CollationId, DataType, ResultCell, Value};

use crate::value_key::{append_sort_key, append_text_sort_key};

/// How a table's records are read and written.
pub struct Layout {
    record: RecordLayout,
    /// By column; empty when all are NULL.
    missing: Vec<Value>,
    /// By column, for scans whose rows may be key records: the place in the key.
    keys: Vec<Option<KeyPlace>>,
}

/// A column in a key record.
#[derive(Clone, Debug)]
pub struct KeyPlace {
    /// In the primary key's part of the record; else in the index's.
    pub in_primary: bool,
    /// Parts before it.
    before: Vec<(DataType, bool)>,
    /// Bytes of them, when that is known.
    pub offset: Option<usize>,
    /// The column's type.
    pub ty: DataType,
    /// How the key orders it.
    pub descending: bool,
}

impl KeyPlace {
    /// The value in a key record.
    #[inline]
    pub fn value(&self, record: &[u8]) -> Option<Value> {
        let (index, primary) = split_key_record(record)?;
        let key = if self.in_primary { primary } else { index };
        match self.offset {
            Some(offset) => KeyReader::new(key.get(offset..)?).read(&self.ty, self.descending),
            None => {
                let mut reader = KeyReader::new(key);
                for (ty, descending) in &self.before {
                    reader.read(ty, *descending)?;
                }
                reader.read(&self.ty, self.descending)
            }
        }
    }
}

fn places(types: &[DataType], parts: &EntryParts) -> Vec<Option<KeyPlace>> {
    let mut places = vec![None; types.len()];
    for (in_primary, parts) in [(true, &parts.primary), (false, &parts.index)] {
        let (mut before, mut offset) = (Vec::new(), Some(0));
        for part in parts {
            let Some(ty) = types.get(part.column) else { break };
            if !part.whole || !types::key::is_reversible(ty) {
                break;
            }
            places[part.column] = Some(KeyPlace {
                in_primary,
                before: before.clone(),
                offset,
                ty: ty.clone(),
                descending: part.descending,
            });
            before.push((ty.clone(), part.descending));
            offset = offset.zip(fixed_width(ty)).map(|(offset, width)| offset + width);
        }
    }
    places
}

impl Layout {
    /// For records of these columns; `missing` are the values of columns that old records do not have.
    pub fn new(types: &[DataType], missing: Vec<Value>) -> Layout {
        let missing = if missing.iter().all(Value::is_null) { Vec::new() } else { missing };
        Layout { record: RecordLayout::new(types), missing, keys: Vec::new() }
    }

    /// For a scan whose rows may be key records.
    pub fn with_entries(mut self, parts: Option<&EntryParts>) -> Layout {
        if let Some(parts) = parts {
            self.keys = places(self.record.types(), parts);
        }
        self
    }

    /// Where key records have a column.
    pub fn key_place(&self, column: usize) -> Option<&KeyPlace> {
        self.keys.get(column)?.as_ref()
    }

    /// Types of all columns.
    pub fn types(&self) -> &[DataType] {
        self.record.types()
    }

    /// The place of a column in records that have all columns.
    pub fn place(&self, column: usize) -> ColumnPlace {
        self.record.place(column)
    }

    /// The cell at a place.
    #[inline]
    pub fn cell_at<'a>(
        &self,
        record: &'a [u8],
        place: &ColumnPlace,
    ) -> std::result::Result<Cell<'a>, RecordError> {
        self.record.cell_at(record, place)
    }

    /// The value of a column that a record does not have.
    #[cold]
    pub fn stand_in(&self, column: usize) -> Value {
        self.missing.get(column).cloned().unwrap_or(Value::Null)
    }

    /// The value of a column.
    #[inline]
    pub fn decode(&self, record: &[u8], column: usize) -> Result<Value> {
        if !self.keys.is_empty() && record.first() == Some(&KEY_RECORD) {
            let value = self.key_place(column).and_then(|place| place.value(record));
            return value.ok_or_else(|| RecordError::Corrupt.into());
        }
        match self.record.decode_column(record, column)? {
            Some(value) => Ok(value),
            None => Ok(self.stand_in(column)),
        }
    }

    /// Appends a column's sort key; texts go there without becoming values.
    pub fn append_sort_key(
        &self,
        record: &[u8],
        column: usize,
        (collation, descending): (CollationId, bool),
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let ty = &self.record.types()[column];
        if ty.is_string()
            && record.first() != Some(&KEY_RECORD)
            && let Cell::Bytes(text) = self.record.cell(record, column)?
        {
            append_text_sort_key(text, collation, descending, out);
            return Ok(());
        }
        append_sort_key(&self.decode(record, column)?, collation, descending, out);
        Ok(())
    }

    /// Replaces `out` with the values of all columns.
    ///
    /// # Errors
    /// A damaged record.
    pub fn decode_into(&self, record: &[u8], out: &mut Vec<Value>) -> Result<()> {
        out.clear();
        (0..self.record.column_count())
            .try_for_each(|column| self.decode(record, column).map(|value| out.push(value)))
    }

    /// The values of all columns.
    pub fn decode_all(&self, record: &[u8]) -> Result<Vec<Value>> {
        (0..self.record.column_count()).map(|column| self.decode(record, column)).collect()
    }

    /// A column as a result shows it: its place in the record, if it has one.
    #[inline]
    pub fn result_cell<'a>(&'a self, record: &'a [u8], column: usize) -> Result<ResultCell<'a>> {
        if !self.keys.is_empty() && record.first() == Some(&KEY_RECORD) {
            return Ok(self.decode(record, column)?.into());
        }
        Ok(match self.record.cell(record, column)? {
            Cell::Bytes(bytes) => ResultCell::Stored { bytes, ty: &self.record.types()[column] },
            Cell::Null => ResultCell::Null,
            Cell::Missing => self.missing.get(column).map_or(ResultCell::Null, ResultCell::from),
        })
    }

    /// Appends the record of a row.
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) -> Result<()> {
        Ok(self.record.encode(values, out)?)
    }

    /// Replaces `out` with the record of a row of which only some values differ from `old`. False: it must be built from all values.
    ///
    /// # Errors
    /// A value of another type than its column; a damaged record.
    pub fn encode_over<'v>(
        &self,
        old: &[u8],
        value_of: impl Fn(usize) -> Option<&'v Value>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        Ok(self.record.encode_over(old, value_of, out)?)
    }

    /// As `encode`, of `count` separate values.
    pub fn encode_from<'v>(
        &self,
        count: usize,
        value_of: impl Fn(usize) -> &'v Value,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        Ok(self.record.encode_from(count, value_of, out)?)
    }
}
