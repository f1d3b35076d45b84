//! Keys: bytes whose byte order is SQL's order, NULL first. Described in docs/format/key.md.

use charset::collation_or_binary;

use crate::{DataType, TypeKind, Value};

/// Longest key of an index, bytes (as the reference's engine).
pub const KEY_BYTES_MAX: usize = 3072;

/// Tag of NULL.
const NULL: u8 = 0;
/// Tag of a value, in nullable columns only.
const NOT_NULL: u8 = 1;

/// Appends one part of a key. A value of another type than the column's sorts by its own bytes: convert it first.
///
/// `prefix_length` counts characters of text, bytes of binary strings.
pub fn encode_part(
    value: &Value,
    ty: &DataType,
    prefix_length: Option<u32>,
    descending: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if value.is_null() {
        out.push(NULL);
    } else {
        if ty.nullable {
            out.push(NOT_NULL);
        }
        encode_value(value, ty, prefix_length, out);
    }
    if descending {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
}

/// Big-endian in `length` bytes, sign flipped.
#[inline]
fn push_signed(number: i64, length: usize, out: &mut Vec<u8>) {
    let flipped = (number as u64) ^ 1 << (8 * length - 1);
    out.extend_from_slice(&flipped.to_be_bytes()[8 - length..]);
}

#[inline]
fn push_unsigned(number: u64, length: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&number.to_be_bytes()[8 - length..]);
}

fn push_double(number: f64, out: &mut Vec<u8>) {
    // -0 and +0 are equal.
    let bits = if number == 0.0 { 0 } else { number.to_bits() };
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn push_integer(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let length = match ty.kind {
        TypeKind::TinyInt => 1,
        TypeKind::SmallInt => 2,
        TypeKind::MediumInt => 3,
        TypeKind::Int => 4,
        _ => 8,
    };
    // Values are in range after a store; a probe beyond the range is clamped by the caller.
    match (value, ty.unsigned) {
        (Value::Int(number), false) => push_signed(*number, length, out),
        (Value::UInt(number), true) => push_unsigned(*number, length, out),
        (Value::Int(number), true) => push_unsigned((*number).max(0) as u64, length, out),
        (Value::UInt(number), false) => {
            push_signed(i64::try_from(*number).unwrap_or(i64::MAX), length, out);
        }
        _ => push_other(value, out),
    }
}

fn push_string(bytes: &[u8], ty: &DataType, prefix_length: Option<u32>, out: &mut Vec<u8>) {
    let collation = collation_or_binary(ty.collation);
    let cut = match prefix_length {
        Some(length) => collation.char_prefix(bytes, length as usize),
        None => bytes.len(),
    };
    collation.write_key(&bytes[..cut], out);
}

/// Appends a value that no column of the type holds: still total and in order among values of its own kind.
fn push_other(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(number) => push_signed(*number, 8, out),
        Value::UInt(number) => push_unsigned(*number, 8, out),
        Value::Double(number) => push_double(*number, out),
        Value::Decimal(number) => number.write_key(65, 30, out),
        Value::Bytes(bytes) | Value::Json(bytes) => {
            collation_or_binary(crate::CollationId::BINARY).write_key(bytes, out);
        }
        Value::Date(date) => push_unsigned(u64::from(date.packed()), 4, out),
        Value::Time(time) => push_signed(time.micros(), 8, out),
        Value::DateTime(datetime) => push_unsigned(datetime.packed(), 8, out),
    }
}

fn encode_value(value: &Value, ty: &DataType, prefix_length: Option<u32>, out: &mut Vec<u8>) {
    use TypeKind::*;
    match (ty.kind, value) {
        (TinyInt | SmallInt | MediumInt | Int | BigInt, _) => push_integer(value, ty, out),
        (Decimal, Value::Decimal(number)) => number.write_key(ty.length, ty.decimals, out),
        (Decimal, Value::Int(number)) => {
            crate::Decimal::from_i64(*number).write_key(ty.length, ty.decimals, out);
        }
        (Float | Double, Value::Double(number)) => push_double(*number, out),
        (Year, Value::UInt(number)) => push_unsigned(*number, 2, out),
        (Enum, Value::UInt(number)) => push_unsigned(*number, enum_bytes(ty), out),
        (Bit | Set, Value::UInt(number)) => push_unsigned(*number, 8, out),
        (Date, Value::Date(date)) => push_unsigned(u64::from(date.packed()), 3, out),
        (Time, Value::Time(time)) => push_signed(time.micros(), 6, out),
        (DateTime | Timestamp, Value::DateTime(datetime)) => {
            push_unsigned(datetime.packed(), 8, out);
        }
        (Fixed(kind), Value::Bytes(bytes)) if bytes.len() == kind.bytes() => {
            out.extend_from_slice(bytes);
        }
        (_, Value::Bytes(bytes)) => push_string(bytes, ty, prefix_length, out),
        (_, Value::Json(document)) => crate::json::write_key(document, out),
        (
            Null | Decimal | Float | Double | Bit | Year | Date | Time | DateTime | Timestamp
            | Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
            | TinyBlob | Blob | MediumBlob | LongBlob | Enum | Set | Json | Vector | Geometry
            | Fixed(_),
            other,
        ) => push_other(other, out),
    }
}

/// Appends the prefix that the keys of all texts that begin with `text` share: for ranges of `LIKE 'text%'`. Ascending
/// parts only. The range ends before `out` followed by bytes FF.
pub fn encode_text_prefix(text: &[u8], ty: &DataType, out: &mut Vec<u8>) {
    if ty.nullable {
        out.push(NOT_NULL);
    }
    collation_or_binary(ty.collation).write_key_prefix(text, out);
}

/// Whether `encode_part` can be undone for this type: the column can be read from the key alone.
///
/// False for floats: their keys do not distinguish -0 from 0.
pub fn is_reversible(ty: &DataType) -> bool {
    let float = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    ty.is_numeric() && !float || ty.is_temporal() || ty.is_enum_or_set() || ty.as_fixed().is_some()
}

/// Length of a part whose length does not depend on the value; `None` for other parts and for parts that cannot be read back.
pub fn fixed_width(ty: &DataType) -> Option<usize> {
    use TypeKind::*;
    if ty.nullable || !is_reversible(ty) {
        return None;
    }
    Some(match ty.kind {
        TinyInt => 1,
        SmallInt | Year => 2,
        MediumInt | Date => 3,
        Int => 4,
        BigInt | Bit | Set | DateTime | Timestamp => 8,
        Time => 6,
        Enum => enum_bytes(ty),
        Decimal => crate::Decimal::key_length(ty.length),
        Fixed(kind) => kind.bytes(),
        Null | Float | Double | Char | VarChar | Binary | VarBinary | TinyText | Text
        | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Json | Vector
        | Geometry => return None,
    })
}

/// First byte of a key record, where a record has its format number.
pub const KEY_RECORD: u8 = 2;

/// Bytes of a key record before the keys: format, 0, length of the index's key.
pub const KEY_RECORD_HEADER: usize = 4;

/// The header of a key record: an index's key of `length` bytes and the clustered key follow it.
pub fn key_record_header(length: usize) -> [u8; KEY_RECORD_HEADER] {
    let [low, high] = (length as u16).to_le_bytes();
    [KEY_RECORD, 0, low, high]
}

/// The index's key and the clustered key of a key record; `None` when the bytes are not a key record.
#[inline]
pub fn split_key_record(record: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, keys) = record.split_first_chunk::<KEY_RECORD_HEADER>()?;
    if header[0] != KEY_RECORD {
        return None;
    }
    keys.split_at_checked(usize::from(u16::from_le_bytes([header[2], header[3]])))
}

/// A reader of the parts for which `is_reversible` is true.
#[derive(Debug)]
pub struct KeyReader<'a> {
    rest: &'a [u8],
}

impl<'a> KeyReader<'a> {
    /// Reads from the start of a key.
    pub fn new(key: &'a [u8]) -> KeyReader<'a> {
        KeyReader { rest: key }
    }

    fn take(&mut self, length: usize, flip: u8) -> Option<[u8; 32]> {
        if length > 32 || self.rest.len() < length {
            return None;
        }
        let (head, rest) = self.rest.split_at(length);
        self.rest = rest;
        let mut bytes = [0; 32];
        for (to, from) in bytes.iter_mut().zip(head) {
            *to = from ^ flip;
        }
        Some(bytes)
    }

    fn unsigned(&mut self, length: usize, flip: u8) -> Option<u64> {
        let bytes = self.take(length, flip)?;
        Some(bytes[..length].iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    fn signed(&mut self, length: usize, flip: u8) -> Option<i64> {
        let number = self.unsigned(length, flip)? ^ 1 << (8 * length - 1);
        let unused = 64 - 8 * length as u32;
        Some(((number << unused) as i64) >> unused)
    }

    /// The next part; `None` for corrupt bytes or a type that cannot be read back.
    pub fn read(&mut self, ty: &DataType, descending: bool) -> Option<Value> {
        let flip = if descending { 0xff } else { 0 };
        if ty.nullable {
            match self.take(1, flip)?[0] {
                NULL => return Some(Value::Null),
                NOT_NULL => {}
                _ => return None,
            }
        }
        use TypeKind::*;
        let integer = |length| if ty.unsigned { Err(length) } else { Ok(length) };
        let width = match ty.kind {
            TinyInt => integer(1),
            SmallInt => integer(2),
            MediumInt => integer(3),
            Int => integer(4),
            BigInt => integer(8),
            Year => Err(2),
            Enum => Err(enum_bytes(ty)),
            Bit | Set => Err(8),
            Date => {
                return crate::Date::from_packed(self.unsigned(3, flip)? as u32).map(Value::Date);
            }
            Time => return crate::Time::from_micros(self.signed(6, flip)?).map(Value::Time),
            DateTime | Timestamp => {
                return crate::DateTime::from_packed(self.unsigned(8, flip)?).map(Value::DateTime);
            }
            Float | Double => {
                let ordered = self.unsigned(8, flip)?;
                let bits = if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered };
                let number = f64::from_bits(bits);
                return number.is_finite().then_some(Value::Double(number));
            }
            Decimal => {
                let length = crate::Decimal::key_length(ty.length);
                let bytes = self.take(length, flip)?;
                return crate::Decimal::read_key(&bytes[..length], ty.length, ty.decimals)
                    .map(Value::Decimal);
            }
            Fixed(kind) => {
                let bytes = self.take(kind.bytes(), flip)?;
                return Some(Value::Bytes(crate::SqlBytes::new(&bytes[..kind.bytes()])));
            }
            Null | Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText
            | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Json | Vector | Geometry => {
                return None;
            }
        };
        match width {
            Ok(length) => self.signed(length, flip).map(Value::Int),
            Err(length) => self.unsigned(length, flip).map(Value::UInt),
        }
    }
}

/// Bytes of an ENUM's number in a key: three only where two cannot hold it.
fn enum_bytes(ty: &DataType) -> usize {
    if ty.member_count() < 1 << 16 { 2 } else { 3 }
}
