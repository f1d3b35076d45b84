//! Tagged fields: the frame of every stored object. Knows no object.
//!
//! An object is its format number, then fields `tag: u16, length: u32, bytes`. A reader skips tags that it does not know and
//! takes the default for tags that are absent, so that fields can be added without rewriting stored objects.

use errors::{Error, Result};
use stdx::bytes::{Reader, put_blob, put_u16};

/// Format number of the frame.
pub(crate) const FORMAT: u16 = 1;

/// The same frame, of a table with FULLTEXT indexes.
pub(crate) const FORMAT_ENTRIES: u16 = 2;

/// The same frame, of a table with columns of some geometries or of one reference system; it may have FULLTEXT indexes, too.
pub(crate) const FORMAT_GEOMETRIES: u16 = 3;

/// The same frame, of a table with multi-valued indexes; it may have any of those, too.
pub(crate) const FORMAT_ELEMENTS: u16 = 4;

/// The same frame, of a table with spatial indexes; it may have any of those, too.
pub(crate) const FORMAT_CELLS: u16 = 5;

/// The same frame, of a table with FULLTEXT indexes of grams; it may have any of those, too.
pub(crate) const FORMAT_GRAMS: u16 = 6;

/// The same frame, of a table with columns of UUID, INET4 or INET6; it may have any of those, too.
pub(crate) const FORMAT_FIXED: u16 = 7;
/// The same frame, of a table that keeps history; it may have any of those, too.
pub(crate) const FORMAT_HISTORY: u16 = 8;

/// The same frame, of a table with a period of application time; it may have any of those, too.
pub(crate) const FORMAT_PERIOD: u16 = 9;
/// Of a table that lacks its rows, or those of partitions: a version that does not know it would take the table for an empty one.
pub(crate) const FORMAT_DISCARDED: u16 = 10;

/// Builds one object.
pub(crate) struct FieldWriter(Vec<u8>);

impl FieldWriter {
    /// A top-level object.
    pub(crate) fn object() -> FieldWriter {
        FieldWriter::of_format(FORMAT)
    }

    /// A table that versions which do not know this format must not write.
    pub(crate) fn of_format(format: u16) -> FieldWriter {
        let mut out = Vec::new();
        put_u16(&mut out, format);
        FieldWriter(out)
    }

    /// A nested object: no format number.
    pub(crate) fn nested() -> FieldWriter {
        FieldWriter(Vec::new())
    }

    pub(crate) fn bytes(&mut self, tag: u16, bytes: &[u8]) {
        put_u16(&mut self.0, tag);
        put_blob(&mut self.0, bytes);
    }

    pub(crate) fn text(&mut self, tag: u16, text: &str) {
        if !text.is_empty() {
            self.bytes(tag, text.as_bytes());
        }
    }

    pub(crate) fn number(&mut self, tag: u16, number: u64) {
        if number != 0 {
            self.bytes(tag, &number.to_le_bytes());
        }
    }

    pub(crate) fn flag(&mut self, tag: u16, flag: bool) {
        self.number(tag, u64::from(flag));
    }

    pub(crate) fn nest(&mut self, tag: u16, nested: FieldWriter) {
        self.bytes(tag, &nested.0);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// A field of a stored object.
pub(crate) struct Field<'a> {
    pub(crate) tag: u16,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Field<'a> {
    pub(crate) fn text(&self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes).map_err(|_| damaged())
    }

    pub(crate) fn number(&self) -> Result<u64> {
        self.bytes.try_into().map(u64::from_le_bytes).map_err(|_| damaged())
    }

    pub(crate) fn count(&self) -> Result<usize> {
        usize::try_from(self.number()?).map_err(|_| damaged())
    }

    pub(crate) fn narrow<T: TryFrom<u64>>(&self) -> Result<T> {
        T::try_from(self.number()?).map_err(|_| damaged())
    }

    pub(crate) fn flag(&self) -> Result<bool> {
        Ok(self.number()? != 0)
    }
}

/// Fields of a top-level object.
pub(crate) fn object_fields(bytes: &[u8]) -> Result<Vec<Field<'_>>> {
    let mut reader = Reader::new(bytes);
    match reader.u16() {
        Some(
            FORMAT | FORMAT_ENTRIES | FORMAT_GEOMETRIES | FORMAT_ELEMENTS | FORMAT_CELLS
            | FORMAT_GRAMS | FORMAT_FIXED | FORMAT_HISTORY | FORMAT_PERIOD | FORMAT_DISCARDED,
        ) => nested_fields(reader.rest()),
        Some(_) | None => Err(damaged()),
    }
}

/// Fields of a nested object.
pub(crate) fn nested_fields(bytes: &[u8]) -> Result<Vec<Field<'_>>> {
    let mut reader = Reader::new(bytes);
    let mut fields = Vec::new();
    while !reader.is_empty() {
        let tag = reader.u16().ok_or_else(damaged)?;
        let bytes = reader.blob().ok_or_else(damaged)?;
        fields.push(Field { tag, bytes });
    }
    Ok(fields)
}

/// A stored object that this version cannot read.
pub(crate) fn damaged() -> Error {
    Error::internal("a dictionary object is damaged or of a later version")
}
