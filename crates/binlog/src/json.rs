//! JSON documents as events have them. Close to our own binary form (`docs/format/json.md`); short integers are kept short, and decimals and times
//! are packed in another way.

use types::json::{JsonType, MAX_DEPTH, opaque};
use types::{Date, DateTime, JsonRef, JsonValue, SqlBytes, Time, json};

use crate::decimal;
use crate::read::{Malformed, Reader, Result, put_uint};

const SMALL_OBJECT: u8 = 0;
const LARGE_OBJECT: u8 = 1;
const SMALL_ARRAY: u8 = 2;
const LARGE_ARRAY: u8 = 3;
const LITERAL: u8 = 4;
const INT16: u8 = 5;
const UINT16: u8 = 6;
const INT32: u8 = 7;
const UINT32: u8 = 8;
const INT64: u8 = 9;
const UINT64: u8 = 10;
const DOUBLE: u8 = 11;
const STRING: u8 = 12;
const OPAQUE: u8 = 15;
/// The type of opaque TIMESTAMPs.
const OPAQUE_TIMESTAMP: u8 = 7;

/// A container does not fit two-byte offsets.
struct TooLarge;

/// Appends a document of our binary form.
pub(crate) fn put(document: JsonRef<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(0);
    match put_value(document, Width::Large, 0, out) {
        Ok(kind) => out[start] = kind,
        // Only within a small container.
        Err(TooLarge) => out.truncate(start),
    }
}

/// Of the container around a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Small,
    Large,
}

impl Width {
    fn bytes(self) -> usize {
        if self == Width::Small { 2 } else { 4 }
    }
}

fn integer_kind(value: JsonRef<'_>) -> Option<(u8, u64)> {
    if let Some(number) = value.as_i64() {
        let kind = if i16::try_from(number).is_ok() {
            INT16
        } else if i32::try_from(number).is_ok() {
            INT32
        } else {
            INT64
        };
        return Some((kind, number as u64));
    }
    let number = value.as_u64()?;
    let kind = match number {
        0..=0xffff => UINT16,
        0x1_0000..=0xffff_ffff => UINT32,
        0x1_0000_0000.. => UINT64,
    };
    Some((kind, number))
}

/// Appends the payload and returns its type.
fn put_value(
    value: JsonRef<'_>,
    around: Width,
    depth: usize,
    out: &mut Vec<u8>,
) -> std::result::Result<u8, TooLarge> {
    if let Some((kind, number)) = integer_kind(value) {
        let width = match kind {
            INT16 | UINT16 => 2,
            INT32 | UINT32 => 4,
            _ => 8,
        };
        put_uint(number, width, out);
        return Ok(kind);
    }
    match value.kind() {
        JsonType::Double => {
            out.extend_from_slice(&value.as_f64().unwrap_or(0.0).to_le_bytes());
            Ok(DOUBLE)
        }
        JsonType::String => {
            let text = value.as_bytes().unwrap_or(b"");
            put_length(text.len(), out);
            out.extend_from_slice(text);
            Ok(STRING)
        }
        JsonType::Array | JsonType::Object if depth <= MAX_DEPTH => {
            put_container(value, around, depth, out)
        }
        JsonType::Decimal => {
            let number = value.as_decimal().unwrap_or_default();
            let (precision, scale) = (number.precision().min(65) as u8, number.scale());
            let mut packed = vec![precision, scale];
            decimal::put(&number, precision, scale, &mut packed);
            Ok(put_opaque(opaque::DECIMAL, &packed, out))
        }
        JsonType::Date => {
            let packed = pack_datetime(value.as_date().unwrap_or_default().at_midnight());
            Ok(put_opaque(opaque::DATE, &packed.to_le_bytes(), out))
        }
        JsonType::DateTime => {
            let packed = pack_datetime(value.as_datetime().unwrap_or_default());
            Ok(put_opaque(opaque::DATETIME, &packed.to_le_bytes(), out))
        }
        JsonType::Time => {
            let packed = pack_time(value.as_time().unwrap_or_default());
            Ok(put_opaque(opaque::TIME, &packed.to_le_bytes(), out))
        }
        JsonType::Opaque(kind) => Ok(put_opaque(kind, value.as_bytes().unwrap_or(b""), out)),
        JsonType::Null | JsonType::Bool | JsonType::Int | JsonType::UInt => {
            out.push(literal(value));
            Ok(LITERAL)
        }
        JsonType::Array | JsonType::Object => {
            out.push(0);
            Ok(LITERAL)
        }
    }
}

fn literal(value: JsonRef<'_>) -> u8 {
    match value.as_bool() {
        Some(true) => 1,
        Some(false) => 2,
        None => 0,
    }
}

fn put_opaque(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.push(kind);
    put_length(bytes.len(), out);
    out.extend_from_slice(bytes);
    OPAQUE
}

fn put_length(mut length: usize, out: &mut Vec<u8>) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// With two-byte offsets if they suffice. Within a small container they must.
fn put_container(
    value: JsonRef<'_>,
    around: Width,
    depth: usize,
    out: &mut Vec<u8>,
) -> std::result::Result<u8, TooLarge> {
    let start = out.len();
    let named = value.kind() == JsonType::Object;
    if put_entries(value, Width::Small, depth, out).is_ok() {
        return Ok(if named { SMALL_OBJECT } else { SMALL_ARRAY });
    }
    out.truncate(start);
    if around == Width::Small {
        return Err(TooLarge);
    }
    put_entries(value, Width::Large, depth, out)?;
    Ok(if named { LARGE_OBJECT } else { LARGE_ARRAY })
}

fn put_entries(
    value: JsonRef<'_>,
    width: Width,
    depth: usize,
    out: &mut Vec<u8>,
) -> std::result::Result<(), TooLarge> {
    let (start, count) = (out.len(), value.len());
    let bytes = width.bytes();
    let check = |out: &Vec<u8>| {
        let fits = width == Width::Large || out.len() - start <= usize::from(u16::MAX);
        if fits { Ok(()) } else { Err(TooLarge) }
    };
    let set = |out: &mut Vec<u8>, at: usize, number: usize| {
        out[at..at + bytes].copy_from_slice(&(number as u32).to_le_bytes()[..bytes]);
    };
    let named = value.kind() == JsonType::Object;
    let names = start + 2 * bytes;
    let entries = names + if named { count * (bytes + 2) } else { 0 };
    if width == Width::Small && entries - start + count * 3 > usize::from(u16::MAX) {
        return Err(TooLarge);
    }
    out.resize(entries + count * (1 + bytes), 0);
    set(out, start, count);
    for (index, (name, _)) in value.members().enumerate() {
        let at = names + index * (bytes + 2);
        let offset = out.len() - start;
        set(out, at, offset);
        out[at + bytes..at + bytes + 2].copy_from_slice(&(name.len() as u16).to_le_bytes());
        out.extend_from_slice(name);
        check(out)?;
    }
    let values = value.elements().chain(value.members().map(|(_, value)| value));
    for (index, value) in values.enumerate() {
        let at = entries + index * (1 + bytes);
        if let Some((kind, inline)) = inlined(value, width) {
            out[at] = kind;
            set(out, at + 1, inline as usize);
            continue;
        }
        let offset = out.len() - start;
        out[at] = put_value(value, width, depth + 1, out)?;
        set(out, at + 1, offset);
        check(out)?;
    }
    let size = out.len() - start;
    set(out, start + bytes, size);
    check(out)
}

/// The type and the bytes of a value that is kept in place of its offset.
fn inlined(value: JsonRef<'_>, width: Width) -> Option<(u8, u32)> {
    if let Some((kind, number)) = integer_kind(value) {
        return match kind {
            INT16 | UINT16 => Some((kind, number as u32)),
            INT32 | UINT32 if width == Width::Large => Some((kind, number as u32)),
            _ => None,
        };
    }
    let is_literal = matches!(value.kind(), JsonType::Null | JsonType::Bool);
    is_literal.then(|| (LITERAL, u32::from(literal(value))))
}

/// A date and time as events pack it: thirteen months a year, 24 bits of microseconds.
fn pack_datetime(at: DateTime) -> i64 {
    let month = u64::from(at.year()) * 13 + u64::from(at.month());
    let day = month << 5 | u64::from(at.day());
    let seconds = u64::from(at.hour() << 12 | at.minute() << 6 | at.second());
    ((day << 17 | seconds) << 24 | u64::from(at.microsecond())) as i64
}

fn unpack_datetime(packed: i64) -> Option<DateTime> {
    let packed = u64::try_from(packed).ok()?;
    let (micros, seconds, day) = (packed & 0xff_ffff, packed >> 24 & 0x1_ffff, packed >> 41);
    let month = (day >> 5) as u32;
    let date = Date::new(month / 13, month % 13, (day & 31) as u32)?;
    let [hour, minute, second] = [seconds >> 12, seconds >> 6 & 63, seconds & 63];
    DateTime::new(date, hour as u32, minute as u32, second as u32, micros as u32)
}

fn pack_time(time: Time) -> i64 {
    let seconds = time.hour() << 12 | time.minute() << 6 | time.second();
    let packed = i64::from(seconds) << 24 | i64::from(time.microsecond());
    if time.is_negative() { -packed } else { packed }
}

fn unpack_time(packed: i64) -> Option<Time> {
    let magnitude = packed.unsigned_abs();
    let (micros, seconds) = ((magnitude & 0xff_ffff) as u32, magnitude >> 24);
    let hour = u32::try_from(seconds >> 12).ok()?;
    Time::new(packed < 0, hour, (seconds >> 6 & 63) as u32, (seconds & 63) as u32, micros)
}

/// Reads a document into our binary form.
pub(crate) fn read(bytes: &[u8]) -> Result<SqlBytes> {
    // The reference writes nothing at all for NULL in a column that may not be NULL.
    if bytes.is_empty() {
        return Ok(JsonValue::Null.to_binary());
    }
    Ok(read_document(bytes)?.to_binary())
}

pub(crate) fn read_document(bytes: &[u8]) -> Result<JsonValue> {
    let mut budget = Budget(bytes.len());
    let (&kind, data) = bytes.split_first().ok_or(BAD)?;
    read_value(kind, data, 0, &mut budget)
}

const BAD: Malformed = Malformed("JSON document");

/// What may still be read: parts of a document do not overlap, so together they are not longer than it.
struct Budget(usize);

impl Budget {
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.0 = self.0.checked_sub(bytes).ok_or(BAD)?;
        Ok(())
    }
}

fn read_value(kind: u8, data: &[u8], depth: usize, budget: &mut Budget) -> Result<JsonValue> {
    let mut reader = Reader::new(data);
    budget.take(1)?;
    Ok(match kind {
        SMALL_OBJECT | SMALL_ARRAY => read_container(data, kind == SMALL_OBJECT, 2, depth, budget)?,
        LARGE_OBJECT | LARGE_ARRAY => read_container(data, kind == LARGE_OBJECT, 4, depth, budget)?,
        LITERAL => match reader.u8()? {
            0 => JsonValue::Null,
            1 => JsonValue::Bool(true),
            2 => JsonValue::Bool(false),
            _ => return Err(BAD),
        },
        INT16 => JsonValue::Int(i64::from(reader.u16()? as i16)),
        UINT16 => JsonValue::UInt(u64::from(reader.u16()?)),
        INT32 => JsonValue::Int(i64::from(reader.i32()?)),
        UINT32 => JsonValue::UInt(u64::from(reader.u32()?)),
        INT64 => JsonValue::Int(reader.i64()?),
        UINT64 => JsonValue::UInt(reader.u64()?),
        DOUBLE => match reader.f64()? {
            number if number.is_finite() => JsonValue::Double(number),
            _ => return Err(BAD),
        },
        STRING => {
            let text = read_text(&mut reader, budget)?;
            std::str::from_utf8(text).map_err(|_| BAD)?;
            JsonValue::String(text.to_vec())
        }
        OPAQUE => {
            let kind = reader.u8()?;
            read_opaque(kind, read_text(&mut reader, budget)?)?
        }
        _ => return Err(BAD),
    })
}

fn read_text<'a>(reader: &mut Reader<'a>, budget: &mut Budget) -> Result<&'a [u8]> {
    let mut length = 0usize;
    for group in 0..5 {
        let byte = reader.u8()?;
        length |= usize::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            budget.take(length)?;
            return reader.bytes(length);
        }
    }
    Err(BAD)
}

fn read_opaque(kind: u8, bytes: &[u8]) -> Result<JsonValue> {
    let mut reader = Reader::new(bytes);
    Ok(match kind {
        opaque::DECIMAL => {
            let (precision, scale) = (reader.u8()?, reader.u8()?);
            JsonValue::Decimal(decimal::read(&mut reader, precision, scale)?)
        }
        opaque::DATE => JsonValue::Date(unpack_datetime(reader.i64()?).ok_or(BAD)?.date()),
        opaque::DATETIME | OPAQUE_TIMESTAMP => {
            JsonValue::DateTime(unpack_datetime(reader.i64()?).ok_or(BAD)?)
        }
        opaque::TIME => JsonValue::Time(unpack_time(reader.i64()?).ok_or(BAD)?),
        _ => JsonValue::Opaque(kind, bytes.to_vec()),
    })
}

fn read_container(
    data: &[u8],
    named: bool,
    width: usize,
    depth: usize,
    budget: &mut Budget,
) -> Result<JsonValue> {
    if depth >= MAX_DEPTH {
        return Err(BAD);
    }
    let mut reader = Reader::new(data);
    let (count, size) = (reader.uint(width)? as usize, reader.uint(width)? as usize);
    let data = data.get(..size).ok_or(BAD)?;
    let entry = 1 + width + if named { width + 2 } else { 0 };
    budget.take(count.checked_mul(entry).ok_or(BAD)?)?;
    let mut names = Vec::new();
    for _ in 0..if named { count } else { 0 } {
        let (offset, length) = (reader.uint(width)? as usize, usize::from(reader.u16()?));
        budget.take(length)?;
        let name = data.get(offset..).and_then(|rest| rest.get(..length)).ok_or(BAD)?;
        std::str::from_utf8(name).map_err(|_| BAD)?;
        names.push(name.to_vec());
    }
    let mut values = Vec::with_capacity(count.min(data.len()));
    for _ in 0..count {
        let (kind, place) = (reader.u8()?, reader.bytes(width)?);
        let is_inline = match kind {
            LITERAL | INT16 | UINT16 => true,
            INT32 | UINT32 => width == 4,
            _ => false,
        };
        let place = if is_inline {
            place
        } else {
            let offset = Reader::new(place).uint(width)? as usize;
            data.get(offset..).ok_or(BAD)?
        };
        // An inlined value has no byte of its own.
        if is_inline {
            budget.0 += 1;
        }
        values.push(read_value(kind, place, depth + 1, budget)?);
    }
    if named {
        let members = names.into_iter().zip(values).collect();
        return Ok(JsonValue::Object(json::JsonObject::from_members(members)));
    }
    Ok(JsonValue::Array(values))
}
