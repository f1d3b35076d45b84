//! Values as numbers.

use errors::ErrorCode;

use super::CastContext;
use crate::json::{JsonRef, JsonType};
use crate::text::fsp_of;
use crate::{DataType, Decimal, Value};

/// The numeric prefix of a text.
pub(super) struct FloatPrefix {
    pub(super) number: f64,
    pub(super) empty: bool,
    pub(super) garbage: bool,
    pub(super) overflow: bool,
}

pub(super) fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

pub(super) fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|&c| !is_blank(c)).unwrap_or(text.len());
    let end = text.iter().rposition(|&c| !is_blank(c)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// Bytes of the number at the start of `text`: sign, digits, point, digits, exponent.
fn float_extent(text: &[u8]) -> usize {
    let digits = |mut at: usize| {
        while text.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        at
    };
    let sign = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = digits(sign);
    let mut end = whole;
    let mut count = whole - sign;
    if text.get(end) == Some(&b'.') {
        end = digits(whole + 1);
        count += end - whole - 1;
    }
    if count == 0 {
        return 0;
    }
    if matches!(text.get(end), Some(b'e' | b'E')) {
        let from = end + 1 + usize::from(matches!(text.get(end + 1), Some(b'+' | b'-')));
        let to = digits(from);
        if to > from {
            end = to;
        }
    }
    end
}

pub(super) fn float_prefix(text: &[u8]) -> FloatPrefix {
    let trimmed = trim(text);
    let extent = float_extent(trimmed);
    let number: f64 = std::str::from_utf8(&trimmed[..extent])
        .ok()
        .and_then(|prefix| prefix.parse().ok())
        .unwrap_or(0.0);
    FloatPrefix {
        number: number.clamp(-f64::MAX, f64::MAX),
        empty: extent == 0,
        garbage: extent < trimmed.len(),
        overflow: number.is_infinite(),
    }
}

/// A whole text as a double: blanks around it are allowed. `None` for anything else.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    let prefix = float_prefix(text);
    if prefix.empty || prefix.garbage || prefix.overflow { None } else { Some(prefix.number) }
}

/// The integer prefix of a text.
struct IntPrefix {
    negative: bool,
    magnitude: u64,
    overflow: bool,
    garbage: bool,
}

fn int_prefix(text: &[u8]) -> IntPrefix {
    let trimmed = trim(text);
    let negative = trimmed.first() == Some(&b'-');
    let sign = usize::from(matches!(trimmed.first(), Some(b'+' | b'-')));
    let mut at = sign;
    let (mut magnitude, mut overflow) = (0u64, false);
    while let Some(digit) = trimmed.get(at).filter(|c| c.is_ascii_digit()) {
        let next = magnitude.checked_mul(10).and_then(|m| m.checked_add(u64::from(digit - b'0')));
        match next {
            Some(next) if !overflow => magnitude = next,
            _ => overflow = true,
        }
        at += 1;
    }
    if overflow {
        magnitude = u64::MAX;
    }
    if negative && magnitude > 1 << 63 {
        magnitude = 1 << 63;
        overflow = true;
    }
    IntPrefix { negative, magnitude, overflow, garbage: at == sign || at < trimmed.len() }
}

/// An integer from text: the number modulo 2^64, and its warnings.
fn integer_of_text(text: &[u8], unsigned: bool, ctx: &mut CastContext<'_>) -> u64 {
    let prefix = int_prefix(text);
    if prefix.overflow || prefix.garbage {
        ctx.warn_truncated("INTEGER", text);
    }
    if prefix.negative {
        if unsigned && !prefix.overflow {
            let message = "Cast to unsigned converted negative integer to its positive complement";
            ctx.diagnostics.warn(ErrorCode::UNKNOWN_ERROR, &[&message]);
        }
        return prefix.magnitude.wrapping_neg();
    }
    if !unsigned && !prefix.overflow && prefix.magnitude > i64::MAX as u64 {
        let message =
            "Cast to signed converted positive out-of-range integer to its negative complement";
        ctx.diagnostics.warn(ErrorCode::UNKNOWN_ERROR, &[&message]);
    }
    prefix.magnitude
}

/// A JSON scalar as an SQL number; `None`, with a warning, when it is none. A text counts as far as it begins with a number,
/// with a warning when more follows. Dates and times are no numbers in JSON.
pub(super) fn json_number(
    document: &[u8],
    target: &str,
    ctx: &mut CastContext<'_>,
) -> Option<Value> {
    let value = JsonRef::new(document);
    let (number, whole) = match value.kind() {
        JsonType::Int => (value.as_i64().map(Value::Int), true),
        JsonType::UInt => (value.as_u64().map(Value::UInt), true),
        JsonType::Double => (value.as_f64().map(Value::Double), true),
        JsonType::Decimal => (value.as_decimal().map(Value::Decimal), true),
        JsonType::Bool => (value.as_bool().map(Value::bool), true),
        JsonType::String => {
            let (number, whole) =
                number_of_json_text(value.as_bytes().unwrap_or(b""), target == "INTEGER");
            (Some(number), whole)
        }
        JsonType::Date
        | JsonType::Time
        | JsonType::DateTime
        | JsonType::Null
        | JsonType::Opaque(_)
        | JsonType::Array
        | JsonType::Object => (None, false),
    };
    if number.is_none() || !whole {
        let column = if ctx.column.is_empty() { "cast_as_json" } else { ctx.column };
        let args: [&dyn std::fmt::Display; 3] = [&target, &column, &ctx.row];
        ctx.diagnostics.warn(ErrorCode::INVALID_JSON_VALUE_FOR_CAST, &args);
    }
    number
}

/// The number that a text in JSON begins with, and whether it is the whole text.
fn number_of_json_text(text: &[u8], integer: bool) -> (Value, bool) {
    match Decimal::parse(text) {
        Some(number) if !integer || number.scale() == 0 => (Value::Decimal(number), true),
        _ if integer => {
            let prefix = int_prefix(text);
            let number = Decimal::from_u64(prefix.magnitude);
            let number = if prefix.negative { number.neg() } else { number };
            (Value::Decimal(number), false)
        }
        _ => (Value::Decimal(Decimal::parse_lenient(text).value), false),
    }
}

/// As a double; 0 for NULL.
pub fn to_f64(value: &Value, ty: &DataType, ctx: &mut CastContext<'_>) -> f64 {
    match value {
        Value::Null => 0.0,
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_f64(),
        Value::Bytes(text) => {
            let prefix = float_prefix(text);
            // An empty text is 0 without a warning.
            if prefix.garbage || prefix.overflow {
                ctx.warn_truncated("DOUBLE", text);
            }
            prefix.number
        }
        Value::Date(date) => date.to_number() as f64,
        Value::Time(time) => time.to_decimal(fsp_of(ty)).to_f64(),
        Value::DateTime(datetime) => datetime.to_decimal(fsp_of(ty)).to_f64(),
        Value::Json(document) => match json_number(document, "DOUBLE", ctx) {
            Some(number) => to_f64(&number, &DataType::null(), ctx),
            None => 0.0,
        },
    }
}

/// Rounded half to even, clamped to `i64`.
pub(super) fn round_f64(number: f64) -> i64 {
    // The cast saturates.
    number.round_ties_even() as i64
}

fn clamp_decimal(number: &Decimal, unsigned: bool, ctx: &mut CastContext<'_>) -> u64 {
    let (clamped, overflow) = if unsigned && !number.is_negative() {
        number.to_u64()
    } else {
        let (signed, overflow) = number.to_i64();
        (signed as u64, overflow)
    };
    if overflow {
        let mut text = Vec::new();
        number.write_text(&mut text);
        ctx.warn_truncated("DECIMAL", &text);
    }
    clamped
}

/// As an integer modulo 2^64.
fn to_bits(value: &Value, unsigned: bool, ctx: &mut CastContext<'_>) -> u64 {
    match value {
        Value::Null => 0,
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Double(number) => round_f64(*number) as u64,
        Value::Decimal(number) => clamp_decimal(number, unsigned, ctx),
        Value::Bytes(text) => integer_of_text(text, unsigned, ctx),
        Value::Date(date) => date.to_number() as u64,
        Value::Time(time) => time.round_fsp(0).to_number() as u64,
        Value::DateTime(datetime) => {
            datetime.round_fsp(0).unwrap_or(datetime.truncate_fsp(0)).to_number() as u64
        }
        Value::Json(document) => match json_number(document, "INTEGER", ctx) {
            Some(Value::Double(number)) if number.abs() >= 9.3e18 => {
                let column = if ctx.column.is_empty() { "cast_as_json" } else { ctx.column };
                let args: [&dyn std::fmt::Display; 3] = [&"INTEGER", &column, &ctx.row];
                ctx.diagnostics.warn(ErrorCode::NUMERIC_JSON_VALUE_OUT_OF_RANGE, &args);
                round_f64(number) as u64
            }
            Some(number) => to_bits(&number, unsigned, ctx),
            None => 0,
        },
    }
}

/// As a signed integer; 0 for NULL. Unsigned values beyond the range wrap.
pub fn to_i64(value: &Value, _ty: &DataType, ctx: &mut CastContext<'_>) -> i64 {
    match value {
        Value::Int(number) => *number,
        _ => to_bits(value, false, ctx) as i64,
    }
}

/// As an unsigned integer; 0 for NULL. Negative values wrap.
pub fn to_u64(value: &Value, _ty: &DataType, ctx: &mut CastContext<'_>) -> u64 {
    to_bits(value, true, ctx)
}

/// As a decimal; 0 for NULL.
pub fn to_decimal(value: &Value, ty: &DataType, ctx: &mut CastContext<'_>) -> Decimal {
    match value {
        Value::Null => Decimal::ZERO,
        Value::Int(number) => Decimal::from_i64(*number),
        Value::UInt(number) => Decimal::from_u64(*number),
        Value::Double(number) => match Decimal::from_f64(*number) {
            Some(number) => number,
            None => {
                let mut text = Vec::new();
                crate::text::write_f64(*number, &mut text);
                ctx.warn_truncated("DECIMAL", &text);
                Decimal::largest(81, 0, *number < 0.0)
            }
        },
        Value::Decimal(number) => number.clone(),
        Value::Bytes(text) => {
            let parsed = Decimal::parse_lenient(text);
            if parsed.truncated() {
                ctx.warn_truncated("DECIMAL", text);
            }
            parsed.value
        }
        Value::Date(date) => Decimal::from_i64(date.to_number()),
        Value::Time(time) => time.to_decimal(fsp_of(ty)),
        Value::DateTime(datetime) => datetime.to_decimal(fsp_of(ty)),
        Value::Json(document) => match json_number(document, "DECIMAL", ctx) {
            Some(number) => to_decimal(&number, &DataType::null(), ctx),
            None => Decimal::ZERO,
        },
    }
}

/// Whether a value counts as true; false for NULL.
pub fn to_bool(value: &Value, ty: &DataType, ctx: &mut CastContext<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Int(number) => *number != 0,
        Value::UInt(number) => *number != 0,
        Value::Double(number) => *number != 0.0,
        Value::Decimal(number) => !number.is_zero(),
        Value::Bytes(bytes) if ty.as_fixed().is_some() => bytes.iter().any(|byte| *byte != 0),
        Value::Bytes(_) => to_f64(value, ty, ctx) != 0.0,
        Value::Date(date) => !date.is_zero(),
        Value::Time(time) => time.micros() != 0,
        Value::DateTime(datetime) => !datetime.is_zero(),
        Value::Json(document) => json_truth(JsonRef::new(document)),
    }
}

/// Every JSON value but the number 0 is true.
fn json_truth(value: JsonRef<'_>) -> bool {
    match value.kind() {
        JsonType::Int => value.as_i64() != Some(0),
        JsonType::UInt => value.as_u64() != Some(0),
        JsonType::Double => value.as_f64() != Some(0.0),
        JsonType::Decimal => !value.as_decimal().unwrap_or_default().is_zero(),
        _ => true,
    }
}
