//! Result rows: cells of the text protocol, rows of the binary protocol, and their decoders for clients.

use types::record::{RecordError, is_stored_as_text, write_stored_text};
use types::{DataType, ResultCell, TypeKind, Value, to_text};

use crate::{
    ColumnFlags, ColumnType, Malformed, Reader, TypeOnWire, decode_binary_datetime,
    decode_binary_time, parameters::decode_value, put_binary_date, put_binary_datetime,
    put_binary_time, put_lenenc_bytes, put_lenenc_int,
};

/// A NULL cell of a text row.
const TEXT_NULL: u8 = 0xfb;
/// The longest string whose length takes one byte.
const SHORT_MAX: usize = 250;
/// Bytes of the longest length.
const LENGTH_BYTES_MAX: usize = 9;
/// The first two bits of a binary row's NULL bitmap are not used.
const ROW_BITMAP_OFFSET: usize = 2;

/// Appends a NULL cell.
#[inline]
pub fn put_text_null(out: &mut Vec<u8>) {
    out.push(TEXT_NULL);
}

/// Appends a string cell.
#[inline]
pub fn put_text_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_lenenc_bytes(out, bytes);
}

/// Appends a signed integer cell.
#[inline]
pub fn put_text_int(out: &mut Vec<u8>, number: i64) {
    let mut digits = itoa::Buffer::new();
    put_short(out, digits.format(number).as_bytes());
}

/// Appends an unsigned integer cell.
#[inline]
pub fn put_text_uint(out: &mut Vec<u8>, number: u64) {
    let mut digits = itoa::Buffer::new();
    put_short(out, digits.format(number).as_bytes());
}

/// A cell known to be shorter than 251 bytes.
fn put_short(out: &mut Vec<u8>, text: &[u8]) {
    out.push(text.len() as u8);
    out.extend_from_slice(text);
}

/// Appends a cell of a text row; `ty` is the type of the result's column.
///
/// # Errors
/// A damaged record.
#[inline]
pub fn put_text_cell(
    out: &mut Vec<u8>,
    ty: &DataType,
    cell: ResultCell<'_>,
) -> Result<(), RecordError> {
    match cell {
        ResultCell::Null => put_text_null(out),
        ResultCell::Stored { bytes, ty } if is_stored_as_text(ty.kind) => {
            put_lenenc_bytes(out, bytes);
        }
        ResultCell::Stored { bytes, ty } => {
            return put_measured(out, |out| write_stored_text(bytes, ty, out));
        }
        ResultCell::Value(value) => put_text_value(out, ty, value),
        ResultCell::Computed(value) => put_text_value(out, ty, &value),
    }
    Ok(())
}

fn put_text_value(out: &mut Vec<u8>, ty: &DataType, value: &Value) {
    match value {
        Value::Null => put_text_null(out),
        Value::Bytes(bytes) if ty.as_fixed().is_none() => put_lenenc_bytes(out, bytes),
        Value::Bytes(_)
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => put_measured(out, |out| to_text(value, ty, out)),
    }
}

/// Appends the output of `body`, after its length.
#[inline]
fn put_measured<T>(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let start = out.len();
    out.push(0);
    let outcome = body(out);
    let length = out.len() - start - 1;
    if length <= SHORT_MAX {
        out[start] = length as u8;
    } else {
        widen_length(out, start, length);
    }
    outcome
}

/// Makes room for a length that one byte at `start` does not hold.
#[cold]
fn widen_length(out: &mut Vec<u8>, start: usize, length: usize) {
    let mut head = Vec::with_capacity(LENGTH_BYTES_MAX);
    put_lenenc_int(&mut head, length as u64);
    out.splice(start..=start, head);
}

/// Reads a text row of `columns` cells.
///
/// # Errors
/// Cut short, or bytes are left over.
pub fn decode_text_row<'a>(
    payload: &'a [u8],
    columns: usize,
    cells: &mut Vec<Option<&'a [u8]>>,
) -> Result<(), Malformed> {
    let mut reader = Reader::new(payload);
    cells.clear();
    for _ in 0..columns {
        cells.push(reader.nullable_lenenc_bytes()?);
    }
    if reader.is_empty() { Ok(()) } else { Err(Malformed) }
}

/// Writes one row of the binary protocol: header, NULL bitmap, then the cells in order.
#[derive(Debug)]
pub struct BinaryRowWriter {
    bitmap_start: usize,
}

impl BinaryRowWriter {
    /// Begins a row of `columns` cells at the end of `out`.
    #[inline]
    pub fn begin(out: &mut Vec<u8>, columns: usize) -> BinaryRowWriter {
        out.push(0);
        let bitmap_start = out.len();
        let bitmap_bytes = (columns + ROW_BITMAP_OFFSET).div_ceil(8);
        out.resize(bitmap_start + bitmap_bytes, 0);
        BinaryRowWriter { bitmap_start }
    }

    /// Makes cell `index` NULL; no bytes may be appended for it.
    #[inline]
    pub fn set_null(&self, out: &mut [u8], index: usize) {
        let bit = index + ROW_BITMAP_OFFSET;
        out[self.bitmap_start + bit / 8] |= 1 << (bit % 8);
    }

    /// Whether cells of `kind` are sent as in the text protocol: as length-encoded strings.
    #[inline]
    pub fn is_sent_as_text(kind: TypeKind) -> bool {
        match kind {
            TypeKind::Null
            | TypeKind::TinyInt
            | TypeKind::SmallInt
            | TypeKind::MediumInt
            | TypeKind::Int
            | TypeKind::BigInt
            | TypeKind::Float
            | TypeKind::Double
            | TypeKind::Year
            | TypeKind::Date
            | TypeKind::Time
            | TypeKind::DateTime
            | TypeKind::Timestamp => false,
            TypeKind::Decimal
            | TypeKind::Bit
            | TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::Binary
            | TypeKind::VarBinary
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
            | TypeKind::Enum
            | TypeKind::Set
            | TypeKind::Json
            | TypeKind::Vector
            | TypeKind::Geometry
            | TypeKind::Fixed(_) => true,
        }
    }

    /// Appends cell `index`; `ty` is the type of the result's column.
    ///
    /// # Errors
    /// A damaged record.
    #[inline]
    pub fn put_cell(
        &self,
        out: &mut Vec<u8>,
        index: usize,
        ty: &DataType,
        cell: ResultCell<'_>,
    ) -> Result<(), RecordError> {
        match cell {
            ResultCell::Null => self.set_null(out, index),
            cell if BinaryRowWriter::is_sent_as_text(ty.kind) => {
                return put_text_cell(out, ty, cell);
            }
            ResultCell::Value(value) => self.put_value(out, index, ty, value),
            cell => self.put_value(out, index, ty, &cell.into_value()?),
        }
        Ok(())
    }

    /// Appends cell `index` of a type that is not sent as text. A value that does not fit its type is
    /// brought into the type's width: the announced type decides how many bytes the client reads.
    #[inline]
    fn put_value(&self, out: &mut Vec<u8>, index: usize, ty: &DataType, value: &Value) {
        if value.is_null() || ty.kind == TypeKind::Null {
            self.set_null(out, index);
            return;
        }
        match ty.kind {
            TypeKind::TinyInt => out.push(integer_bits(value) as u8),
            TypeKind::SmallInt | TypeKind::Year => {
                out.extend_from_slice(&(integer_bits(value) as u16).to_le_bytes());
            }
            TypeKind::MediumInt | TypeKind::Int => {
                out.extend_from_slice(&(integer_bits(value) as u32).to_le_bytes());
            }
            TypeKind::BigInt => out.extend_from_slice(&integer_bits(value).to_le_bytes()),
            TypeKind::Float => {
                out.extend_from_slice(&(double_of(value) as f32).to_le_bytes());
            }
            TypeKind::Double => out.extend_from_slice(&double_of(value).to_le_bytes()),
            TypeKind::Date => put_binary_date(out, datetime_of(value).date()),
            TypeKind::DateTime | TypeKind::Timestamp => {
                put_binary_datetime(out, datetime_of(value));
            }
            TypeKind::Time => put_binary_time(out, time_of(value)),
            // `put_cell` sends these as text.
            TypeKind::Null
            | TypeKind::Decimal
            | TypeKind::Bit
            | TypeKind::Char
            | TypeKind::VarChar
            | TypeKind::Binary
            | TypeKind::VarBinary
            | TypeKind::TinyText
            | TypeKind::Text
            | TypeKind::MediumText
            | TypeKind::LongText
            | TypeKind::TinyBlob
            | TypeKind::Blob
            | TypeKind::MediumBlob
            | TypeKind::LongBlob
            | TypeKind::Enum
            | TypeKind::Set
            | TypeKind::Json
            | TypeKind::Vector
            | TypeKind::Geometry
            | TypeKind::Fixed(_) => match value {
                Value::Bytes(bytes) => put_lenenc_bytes(out, bytes),
                _ => put_lenenc_bytes(out, b""),
            },
        }
    }
}

fn integer_bits(value: &Value) -> u64 {
    match value {
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Double(number) => *number as i64 as u64,
        Value::Null
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => 0,
    }
}

fn double_of(value: &Value) -> f64 {
    match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Null
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => 0.0,
    }
}

fn datetime_of(value: &Value) -> types::DateTime {
    match value {
        Value::DateTime(at) => *at,
        Value::Date(date) => date.at_midnight(),
        _ => types::DateTime::ZERO,
    }
}

fn time_of(value: &Value) -> types::Time {
    match value {
        Value::Time(time) => *time,
        Value::DateTime(at) => at.time(),
        _ => types::Time::ZERO,
    }
}

/// Reads a binary row, on the client's side. Decimals, strings, JSON come as `Value::Bytes`.
///
/// # Errors
/// Cut short.
pub fn decode_binary_row(
    payload: &[u8],
    columns: &[TypeOnWire],
    cells: &mut Vec<Value>,
) -> Result<(), Malformed> {
    let mut reader = Reader::new(payload);
    if reader.u8()? != 0 {
        return Err(Malformed);
    }
    let bitmap = reader.bytes((columns.len() + ROW_BITMAP_OFFSET).div_ceil(8))?;
    cells.clear();
    for (index, column) in columns.iter().enumerate() {
        let bit = index + ROW_BITMAP_OFFSET;
        if bitmap[bit / 8] & 1 << (bit % 8) != 0 {
            cells.push(Value::Null);
            continue;
        }
        let unsigned = column.flags.contains(ColumnFlags::UNSIGNED);
        cells.push(decode_cell(&mut reader, column.ty, unsigned)?);
    }
    if reader.is_empty() { Ok(()) } else { Err(Malformed) }
}

fn decode_cell(
    reader: &mut Reader<'_>,
    ty: ColumnType,
    unsigned: bool,
) -> Result<Value, Malformed> {
    match ty {
        ColumnType::Date => Ok(Value::Date(decode_binary_datetime(reader)?.date())),
        ColumnType::Time => Ok(Value::Time(decode_binary_time(reader)?)),
        ColumnType::NewDecimal | ColumnType::Decimal => {
            Ok(Value::Bytes(reader.lenenc_bytes()?.into()))
        }
        other => decode_value(reader, other, unsigned),
    }
}
