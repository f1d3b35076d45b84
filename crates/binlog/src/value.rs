//! One value of a row image.

use std::borrow::Cow;

use types::{DataType, Date, DateTime, Decimal, JsonRef, SqlBytes, Time, TypeKind, Value};

use crate::layout::{Shape, byte_length};
use crate::read::{Malformed, Reader, Result, put_uint, put_uint_be};
use crate::{decimal, json, mariadb};

/// Added to a datetime, so that its bytes sort.
const DATETIME_BIAS: u64 = 0x80_0000_0000;

/// Appends a value that is not NULL. A value of another type than the column's becomes the type's zero.
pub(crate) fn put(value: &Value, shape: Shape, out: &mut Vec<u8>) {
    match shape {
        Shape::Int { width, .. } => put_uint(integer(value), usize::from(width), out),
        Shape::Member { width } => put_uint(integer(value), usize::from(width), out),
        Shape::Bit { bytes } => put_uint_be(integer(value), usize::from(bytes), out),
        Shape::Year => out.push(integer(value).saturating_sub(1900) as u8),
        Shape::Float => out.extend_from_slice(&(double(value) as f32).to_le_bytes()),
        Shape::Double => out.extend_from_slice(&double(value).to_le_bytes()),
        Shape::Decimal { precision, scale } => {
            let number = if let Value::Decimal(number) = value { number } else { &Decimal::ZERO };
            decimal::put(number, precision, scale, out);
        }
        Shape::Date => {
            let date = if let Value::Date(date) = value { *date } else { Date::ZERO };
            put_uint(u64::from(date.packed()), 3, out);
        }
        Shape::Time { fsp } => {
            put_time(if let Value::Time(time) = value { *time } else { Time::ZERO }, fsp, out);
        }
        Shape::DateTime { fsp } => put_datetime(datetime(value), fsp, out),
        Shape::Timestamp { fsp } => put_timestamp(datetime(value), fsp, out),
        Shape::Old { kind, fsp } => mariadb::put_old(value, kind, fsp, out),
        Shape::Text { prefix, charset, padded } => {
            let text = if let Value::Bytes(bytes) = value { bytes.as_slice() } else { b"" };
            let text = match charset {
                Some(charset) => Cow::Owned(charset.encode(text).bytes),
                None => Cow::Borrowed(text),
            };
            let mut text = &text[..];
            while let ([rest @ .., 0], 1..) = (text, padded) {
                text = rest;
            }
            put_uint(text.len() as u64, usize::from(prefix), out);
            out.extend_from_slice(text);
        }
        Shape::Fixed(kind) => {
            let bytes =
                if let Value::Bytes(bytes) = value { kind.native(bytes) } else { kind.zero() };
            let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            out.push(end as u8);
            out.extend_from_slice(&bytes[..end]);
        }
        Shape::Json => {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            if let Value::Json(document) = value {
                json::put(JsonRef::new(document), out);
            }
            let size = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&size.to_le_bytes());
        }
    }
}

/// Appends a value as MySQL's rows in memory have it, which CHECKSUM TABLE reads: as in a row image, but texts have no length, CHAR and BINARY are
/// filled up, and a document is text. NULL becomes the type's zero. That this is the form was found by checksums of MySQL 9.7.
pub fn put_in_row_format(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let start = out.len();
    match Shape::of(ty) {
        Shape::Json => {
            if let Value::Json(document) = value {
                JsonRef::new(document).write_text(out);
            } else {
                out.extend_from_slice(b"null");
            }
        }
        Shape::Text { charset, .. } => {
            let text = if let Value::Bytes(bytes) = value { bytes.as_slice() } else { b"" };
            let encoded = |text| match charset {
                Some(charset) => Cow::Owned(charset.encode(text).bytes),
                None => Cow::Borrowed(text),
            };
            out.extend_from_slice(&encoded(text));
            let full = start + byte_length(ty) as usize;
            let missing = full.saturating_sub(out.len());
            if ty.kind == TypeKind::Binary {
                out.resize(out.len() + missing, 0);
            } else if ty.kind == TypeKind::Char {
                let space = encoded(b" ");
                out.extend(space.iter().cycle().take(missing));
            }
        }
        shape => put(value, shape, out),
    }
}

/// About as many bytes as `put` appends, at least.
pub(crate) fn size_hint(value: &Value) -> usize {
    if let Value::Bytes(bytes) | Value::Json(bytes) = value { bytes.len() + 4 } else { 8 }
}

fn integer(value: &Value) -> u64 {
    if let Value::UInt(number) = value {
        return *number;
    }
    if let Value::Int(number) = value { *number as u64 } else { 0 }
}

fn double(value: &Value) -> f64 {
    if let Value::Double(number) = value { *number } else { 0.0 }
}

fn datetime(value: &Value) -> DateTime {
    if let Value::DateTime(at) = value { *at } else { DateTime::ZERO }
}

/// Microseconds in the unit of a fraction's last byte, and the bytes.
fn fraction(fsp: u8) -> (u32, usize) {
    match fsp {
        0 => (1_000_000, 0),
        1 | 2 => (10_000, 1),
        3 | 4 => (100, 2),
        _ => (1, 3),
    }
}

fn put_time(time: Time, fsp: u8, out: &mut Vec<u8>) {
    let (unit, bytes) = fraction(fsp);
    let seconds = i64::from(time.hour() << 12 | time.minute() << 6 | time.second());
    let magnitude = seconds << (8 * bytes) | i64::from(time.microsecond() / unit);
    let number = if time.is_negative() { -magnitude } else { magnitude };
    put_uint_be((number + (0x80_0000 << (8 * bytes))) as u64, 3 + bytes, out);
}

fn read_time(reader: &mut Reader<'_>, fsp: u8) -> Result<Time> {
    let (unit, bytes) = fraction(fsp);
    let number = reader.uint_be(3 + bytes)? as i64 - (0x80_0000 << (8 * bytes));
    let magnitude = number.unsigned_abs();
    let seconds = (magnitude >> (8 * bytes)) as u32;
    let micros = (magnitude & ((1 << (8 * bytes)) - 1)) as u32 * unit;
    Time::new(number < 0, seconds >> 12, seconds >> 6 & 63, seconds & 63, micros)
        .ok_or(Malformed("TIME"))
}

fn put_datetime(at: DateTime, fsp: u8, out: &mut Vec<u8>) {
    let (unit, bytes) = fraction(fsp);
    let month = u64::from(at.year()) * 13 + u64::from(at.month());
    let seconds = u64::from(at.hour() << 12 | at.minute() << 6 | at.second());
    let whole = (month << 5 | u64::from(at.day())) << 17 | seconds;
    put_uint_be(whole + DATETIME_BIAS, 5, out);
    put_uint_be(u64::from(at.microsecond() / unit), bytes, out);
}

fn read_datetime(reader: &mut Reader<'_>, fsp: u8) -> Result<DateTime> {
    const BAD: Malformed = Malformed("DATETIME");
    let (unit, bytes) = fraction(fsp);
    let whole = reader.uint_be(5)?.checked_sub(DATETIME_BIAS).ok_or(BAD)?;
    let micros = read_fraction(reader, unit, bytes)?;
    let (seconds, day) = (whole as u32 & 0x1_ffff, (whole >> 17) as u32);
    let month = day >> 5;
    let date = Date::new(month / 13, month % 13, day & 31).ok_or(BAD)?;
    DateTime::new(date, seconds >> 12, seconds >> 6 & 63, seconds & 63, micros).ok_or(BAD)
}

fn read_fraction(reader: &mut Reader<'_>, unit: u32, bytes: usize) -> Result<u32> {
    let parts = reader.uint_be(bytes)? as u32;
    parts.checked_mul(unit).ok_or(Malformed("fraction of a second"))
}

fn put_timestamp(at: DateTime, fsp: u8, out: &mut Vec<u8>) {
    let (unit, bytes) = fraction(fsp);
    let micros = at.to_unix_micros().filter(|_| !at.is_zero()).unwrap_or(0);
    let micros = u64::try_from(micros).unwrap_or(0);
    put_uint_be(micros / 1_000_000, 4, out);
    put_uint_be(micros % 1_000_000 / u64::from(unit), bytes, out);
}

fn read_timestamp(reader: &mut Reader<'_>, fsp: u8) -> Result<DateTime> {
    let (unit, bytes) = fraction(fsp);
    let seconds = reader.uint_be(4)? as i64;
    let micros = read_fraction(reader, unit, bytes)?;
    if seconds == 0 && micros == 0 {
        return Ok(DateTime::ZERO);
    }
    DateTime::from_unix_micros(seconds * 1_000_000 + i64::from(micros))
        .ok_or(Malformed("TIMESTAMP"))
}

/// Reads a value that is not NULL.
pub(crate) fn read(reader: &mut Reader<'_>, shape: Shape) -> Result<Value> {
    Ok(match shape {
        Shape::Int { width, unsigned } => {
            let number = reader.uint(usize::from(width))?;
            if unsigned {
                Value::UInt(number)
            } else {
                let unused = 64 - 8 * u32::from(width);
                Value::Int((number << unused) as i64 >> unused)
            }
        }
        Shape::Member { width } => Value::UInt(reader.uint(usize::from(width))?),
        Shape::Bit { bytes } => Value::UInt(reader.uint_be(usize::from(bytes))?),
        Shape::Year => match reader.u8()? {
            0 => Value::UInt(0),
            year => Value::UInt(1900 + u64::from(year)),
        },
        Shape::Float => Value::Double(finite(f64::from(reader.f32()?))?),
        Shape::Double => Value::Double(finite(reader.f64()?)?),
        Shape::Decimal { precision, scale } => {
            Value::Decimal(decimal::read(reader, precision, scale)?)
        }
        Shape::Date => {
            let packed = reader.uint(3)? as u32;
            Value::Date(Date::from_packed(packed).ok_or(Malformed("DATE"))?)
        }
        Shape::Time { fsp } => Value::Time(read_time(reader, fsp)?),
        Shape::DateTime { fsp } => Value::DateTime(read_datetime(reader, fsp)?),
        Shape::Timestamp { fsp } => Value::DateTime(read_timestamp(reader, fsp)?),
        Shape::Old { kind, fsp } => mariadb::read_old(reader, kind, fsp)?,
        Shape::Text { prefix, charset, padded } => {
            let length = reader.uint(usize::from(prefix))? as usize;
            let bytes = reader.bytes(length)?;
            Value::Bytes(match charset {
                Some(charset) => SqlBytes::from(charset.decode(bytes).bytes),
                None if bytes.len() < usize::from(padded) => {
                    let mut bytes = bytes.to_vec();
                    bytes.resize(usize::from(padded), 0);
                    SqlBytes::from(bytes)
                }
                None => SqlBytes::new(bytes),
            })
        }
        Shape::Fixed(kind) => {
            let length = usize::from(reader.u8()?);
            let mut bytes = reader.bytes(length)?.to_vec();
            bytes.resize(bytes.len().max(kind.bytes()), 0);
            Value::Bytes(kind.of_native(&bytes).ok_or(Malformed("bytes of a column"))?)
        }
        Shape::Json => {
            let length = reader.u32()? as usize;
            Value::Json(json::read(reader.bytes(length)?)?)
        }
    })
}

fn finite(number: f64) -> Result<f64> {
    if number.is_finite() { Ok(number) } else { Err(Malformed("floating-point number")) }
}
