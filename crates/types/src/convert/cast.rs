//! `CAST` and the implicit conversions of expressions.

use charset::{Encoding, collation_or_binary};
use errors::{Error, ErrorCode, Result};

use super::numbers::{float_prefix, to_decimal, to_f64, to_i64, to_u64};
use super::{CastContext, text_for_message, to_date, to_datetime, to_time};
use crate::json::{self, JsonParseError, JsonValue};
use crate::text::{fsp_of, to_text};
use crate::{CollationId, DataType, SqlBytes, TypeKind, Value};

/// Converts a value as `CAST(value AS to)` does. NULL remains NULL; most failures are warnings and give NULL, 0 or a
/// clamped value.
pub fn cast(
    value: &Value,
    from: &DataType,
    to: &DataType,
    ctx: &mut CastContext<'_>,
) -> Result<Value> {
    use TypeKind::*;
    if value.is_null() {
        return Ok(Value::Null);
    }
    if to.is_temporal() && from.is_enum_or_set() {
        // By the name: the number of a value is no date.
        let named = DataType::varchar(from.length, from.collation);
        return cast(&Value::Bytes(string_of(value, from)), &named, to, ctx);
    }
    if let Some(kind) = from.as_fixed()
        && to.kind != Json
        && let Some(value) = super::fixed::plain(value, kind, to)
    {
        return cast(&value.0, &value.1, to, ctx);
    }
    let mode = ctx.sql_mode.temporal();
    let some = |value: Option<Value>| Ok(value.unwrap_or(Value::Null));
    match to.kind {
        Null => Ok(Value::Null),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Ok(if to.unsigned {
            Value::UInt(to_u64(value, from, ctx))
        } else {
            Value::Int(to_i64(value, from, ctx))
        }),
        Bit | Set | Enum => Ok(Value::UInt(to_u64(value, from, ctx))),
        Decimal => Ok(cast_decimal(value, from, to, ctx)),
        Float => cast_float(value, from, ctx),
        Double => Ok(Value::Double(to_f64(value, from, ctx))),
        Date => some(to_date(value, from, mode, ctx).map(Value::Date)),
        Time => some(to_time(value, from, fsp_of(to), mode, ctx).map(Value::Time)),
        DateTime | Timestamp => {
            some(to_datetime(value, from, fsp_of(to), mode, ctx).map(Value::DateTime))
        }
        Year => some(cast_year(value, from, ctx)),
        Char | VarChar | TinyText | Text | MediumText | LongText => {
            Ok(cast_text(value, from, to, ctx))
        }
        Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob => {
            Ok(cast_binary(value, from, to, ctx))
        }
        Json => cast_json(value, from),
        Vector | Geometry => Ok(value.clone()),
        Fixed(kind) => Ok(super::fixed::cast(value, from, kind, ctx)),
    }
}

fn cast_decimal(value: &Value, from: &DataType, to: &DataType, ctx: &mut CastContext<'_>) -> Value {
    let exact = to_decimal(value, from, ctx);
    let fitted = exact.clamped(to.length, to.decimals);
    if exact.round(i32::from(to.decimals)) != fitted {
        let mut shown = Vec::new();
        match value {
            // Strings and dates are shown as literals with their quotes.
            Value::Bytes(text) => {
                shown.push(b'\'');
                shown.extend_from_slice(text);
                shown.push(b'\'');
            }
            _ => to_text(value, from, &mut shown),
        }
        // The text of the expression, when the caller gave it.
        let shown = match ctx.column {
            "" => text_for_message(&shown).into_owned(),
            named => named.to_owned(),
        };
        ctx.diagnostics.warn(ErrorCode::WARN_DATA_OUT_OF_RANGE, &[&shown, &ctx.row]);
    }
    Value::Decimal(fitted)
}

fn cast_float(value: &Value, from: &DataType, ctx: &mut CastContext<'_>) -> Result<Value> {
    let number = to_f64(value, from, ctx);
    let narrow = number as f32;
    if narrow.is_infinite() {
        let mut shown = Vec::new();
        value.write_plain_text(&mut shown);
        return Err(Error::with(
            ErrorCode::DATA_OUT_OF_RANGE,
            &[&"DOUBLE", &text_for_message(&shown)],
        ));
    }
    Ok(Value::Double(f64::from(narrow)))
}

/// YEAR of a number: two digits mean 1970 to 2069.
pub(super) fn year_of_number(number: i64) -> Option<u64> {
    match number {
        0 => Some(0),
        1..70 => Some(2000 + number as u64),
        70..100 => Some(1900 + number as u64),
        1901..=2155 => Some(number as u64),
        _ => None,
    }
}

/// YEAR of a text that is wholly or begins with a number: `0` and `00` mean 2000, `0000` means 0.
pub(super) fn year_of_text(number: i64, length: usize) -> Option<u64> {
    if number == 0 && length != 4 { Some(2000) } else { year_of_number(number) }
}

fn cast_year(value: &Value, from: &DataType, ctx: &mut CastContext<'_>) -> Option<Value> {
    let number = match value {
        Value::Date(date) => i64::from(date.year()),
        Value::DateTime(datetime) => i64::from(datetime.year()),
        Value::Time(_) => i64::from(ctx.today.year()),
        Value::Bytes(text) => {
            let digits = super::numbers::trim(text);
            let sign = usize::from(digits.first() == Some(&b'+'));
            let count = digits[sign..].iter().take_while(|c| c.is_ascii_digit()).count();
            let number = std::str::from_utf8(&digits[sign..sign + count])
                .ok()
                .and_then(|digits| digits.parse::<u64>().ok());
            let Some(number) = number else {
                let shown = text_for_message(text).into_owned();
                ctx.diagnostics.warn(ErrorCode::WRONG_VALUE, &[&"YEAR", &shown]);
                return None;
            };
            let year = match number {
                // Digits of a text are no year 0.
                0 => Some(2000),
                _ => year_of_number(i64::try_from(number).unwrap_or(-1)),
            };
            if year.is_none() || sign + count < text.len() {
                ctx.warn_truncated("YEAR", text);
            }
            return year.map(Value::UInt);
        }
        _ => to_i64(value, from, ctx),
    };
    let year = year_of_number(number);
    if year.is_none() {
        ctx.warn_truncated("YEAR", number.to_string().as_bytes());
    }
    year.map(Value::UInt)
}

/// The bytes of a value as a string.
pub(super) fn string_of(value: &Value, from: &DataType) -> SqlBytes {
    if let Value::Bytes(bytes) = value
        && from.as_fixed().is_none()
    {
        return bytes.clone();
    }
    let mut text = Vec::new();
    if let Value::Double(number) = value {
        crate::text::write_float_within(*number, from, usize::MAX, &mut text);
    } else {
        to_text(value, from, &mut text);
    }
    SqlBytes::from(text)
}

/// The same as the bytes of the character set that `from` is in: what a binary string takes of a text.
pub(super) fn native_string_of(value: &Value, from: &DataType) -> SqlBytes {
    let bytes = string_of(value, from);
    if bytes.is_empty() || !(from.is_text() || from.is_enum_or_set()) {
        return bytes;
    }
    match collation_or_binary(from.collation).charset.native(&bytes) {
        std::borrow::Cow::Borrowed(_) => bytes,
        std::borrow::Cow::Owned(native) => SqlBytes::from(native),
    }
}

/// Whether a value's bytes are those of no character set yet: a text takes them as bytes of its own.
pub(super) fn is_raw(value: &Value, from: &DataType) -> bool {
    matches!(value, Value::Bytes(_))
        && from.collation == CollationId::BINARY
        && from.as_fixed().is_none()
        || from.kind == TypeKind::Bit
}

fn cast_text(value: &Value, from: &DataType, to: &DataType, ctx: &mut CastContext<'_>) -> Value {
    let mut bytes = string_of(value, from);
    let collation = collation_or_binary(to.collation);
    let charset = collation.charset;
    if is_raw(value, from) {
        if let Some(at) = charset.find_malformed(&bytes) {
            let shown: String = bytes[at..].iter().take(6).map(|b| format!("{b:02X}")).collect();
            ctx.diagnostics.warn(ErrorCode::INVALID_CHARACTER_STRING, &[&charset.name, &shown]);
            return Value::Null;
        }
        if !charset.is_utf8() {
            bytes = SqlBytes::from(charset.decode(&bytes).bytes);
        }
    } else if charset.encoding != Encoding::Utf8mb4 && !charset.has_all(&bytes) {
        bytes = SqlBytes::from(charset.decode(&charset.encode(&bytes).bytes).bytes);
    }
    let cut = collation.char_prefix(&bytes, to.length as usize);
    if cut == bytes.len() {
        return Value::Bytes(bytes);
    }
    ctx.warn_truncated(&format!("CHAR({})", to.length), &bytes);
    Value::Bytes(SqlBytes::new(&bytes[..cut]))
}

fn cast_binary(value: &Value, from: &DataType, to: &DataType, ctx: &mut CastContext<'_>) -> Value {
    let bytes = native_string_of(value, from);
    let length = to.length as usize;
    if bytes.len() > length {
        ctx.warn_truncated(&format!("BINARY({length})"), &bytes);
        return Value::Bytes(SqlBytes::new(&bytes[..length]));
    }
    if to.kind == TypeKind::Binary && bytes.len() < length {
        let mut padded = bytes.to_vec();
        padded.resize(length, 0);
        return Value::Bytes(SqlBytes::from(padded));
    }
    Value::Bytes(bytes)
}

/// The error for a text that is not JSON; `otherwise` makes the common one from message and position.
pub(super) fn json_error(
    error: JsonParseError,
    otherwise: impl FnOnce(&JsonParseError) -> Error,
) -> Error {
    if error.too_deep {
        Error::with(ErrorCode::JSON_DOCUMENT_TOO_DEEP, &[])
    } else if error.name_too_long {
        Error::with(ErrorCode::JSON_KEY_TOO_BIG, &[])
    } else {
        otherwise(&error)
    }
}

fn cast_json(value: &Value, from: &DataType) -> Result<Value> {
    match value {
        Value::Json(_) => Ok(value.clone()),
        Value::Bytes(text) if from.collation != CollationId::BINARY || from.is_text() => {
            let tree = json::parse(text).map_err(|error| {
                json_error(error, |e| {
                    Error::with(
                        ErrorCode::INVALID_JSON_TEXT_IN_PARAM,
                        &[&1, &"cast_as_json", &e.message, &e.position],
                    )
                })
            })?;
            Ok(tree.to_value())
        }
        Value::Bytes(bytes) if from.kind == TypeKind::Geometry => {
            let tree = json::of_geometry(bytes);
            if tree.depth() > json::MAX_DEPTH {
                return Err(Error::with(ErrorCode::JSON_DOCUMENT_TOO_DEEP, &[]));
            }
            Ok(tree.to_value())
        }
        _ => Ok(json_of_value(value, from).to_value()),
    }
}

/// A value of a type as a JSON value: texts become strings and are not parsed, truth values, BIT and binary strings are
/// distinguished by the type.
pub fn json_of_value(value: &Value, ty: &DataType) -> JsonValue {
    match value {
        Value::UInt(_) if ty.is_enum_or_set() => JsonValue::String(string_of(value, ty).to_vec()),
        Value::UInt(_) if ty.kind == TypeKind::Bit => {
            JsonValue::Opaque(json::opaque::BIT, string_of(value, ty).to_vec())
        }
        Value::Bytes(bytes) if ty.kind == TypeKind::Geometry => json::of_geometry(bytes),
        Value::Bytes(bytes) if ty.is_binary() => {
            JsonValue::Opaque(opaque_kind(ty.kind), bytes.to_vec())
        }
        Value::Bytes(_) if ty.as_fixed().is_some() => {
            JsonValue::String(string_of(value, ty).to_vec())
        }
        Value::Int(number) if ty.is_truth() => JsonValue::Bool(*number != 0),
        _ => JsonValue::from_sql(value, false),
    }
}

/// The number of a binary string's type in an opaque JSON value.
fn opaque_kind(kind: TypeKind) -> u8 {
    const KINDS: [(TypeKind, u8); 5] = [
        (TypeKind::Binary, json::opaque::BINARY),
        (TypeKind::TinyBlob, json::opaque::TINY_BLOB),
        (TypeKind::Blob, json::opaque::BLOB),
        (TypeKind::MediumBlob, json::opaque::MEDIUM_BLOB),
        (TypeKind::LongBlob, json::opaque::LONG_BLOB),
    ];
    let found = KINDS.iter().find(|(known, _)| *known == kind);
    found.map_or(json::opaque::VARBINARY, |(_, number)| *number)
}

/// The double of a text, for assignments that distinguish overflow from garbage.
pub(super) fn float_of_text(text: &[u8]) -> (f64, bool, bool) {
    let prefix = float_prefix(text);
    (prefix.number, prefix.empty || prefix.garbage, prefix.overflow)
}
