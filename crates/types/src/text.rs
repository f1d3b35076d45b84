//! Values as the text that clients see.

use crate::{DataType, NOT_FIXED_DECIMALS, TypeKind, Value, json};

/// Appends a signed integer.
#[inline]
pub fn write_i64(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends an unsigned integer.
#[inline]
pub fn write_u64(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Exponents within which a float is written without `e`.
const PLAIN_POINT: std::ops::RangeInclusive<i32> = -14..=15;

/// Appends a double: the shortest digits that read back the same.
pub fn write_f64(number: f64, out: &mut Vec<u8>) {
    if number == number.trunc() && number.abs() < 1e15 {
        if number == 0.0 && number.is_sign_negative() {
            out.push(b'-');
        }
        return write_i64(number as i64, out);
    }
    let mut buffer = ryu::Buffer::new();
    write_scientific(buffer.format(number).as_bytes(), out);
}

/// Appends a FLOAT: six significant digits.
pub fn write_f32(number: f64, out: &mut Vec<u8>) {
    if number == 0.0 {
        return write_f64(number, out);
    }
    write_scientific(format!("{number:.5e}").as_bytes(), out);
}

/// Rewrites a number such as `-1.25e-7` or `0.5` in the reference's form.
fn write_scientific(text: &[u8], out: &mut Vec<u8>) {
    let (negative, text) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, text),
    };
    let (mantissa, exponent) = match text.iter().position(|&c| c == b'e') {
        Some(at) => (&text[..at], parse_exponent(&text[at + 1..])),
        None => (text, 0),
    };
    let mut digits = [0u8; 40];
    let (mut count, mut point, mut seen_point) = (0, 0i32, false);
    for &c in mantissa {
        if c == b'.' {
            seen_point = true;
            continue;
        }
        point += i32::from(!seen_point);
        if count == 0 && c == b'0' {
            point -= 1;
        } else if count < digits.len() {
            digits[count] = c;
            count += 1;
        }
    }
    let digits = &digits[..count];
    let kept = digits.iter().rposition(|&c| c != b'0').map_or(0, |last| last + 1);
    let digits = &digits[..kept];
    if negative {
        out.push(b'-');
    }
    if digits.is_empty() {
        out.push(b'0');
        return;
    }
    write_placed(digits, point + exponent, out);
}

fn parse_exponent(text: &[u8]) -> i32 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// `digits` with the point before position `point`.
fn write_placed(digits: &[u8], point: i32, out: &mut Vec<u8>) {
    if !PLAIN_POINT.contains(&point) {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        write_i64(i64::from(point - 1), out);
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + point.unsigned_abs() as usize, b'0');
        out.extend_from_slice(digits);
    } else if digits.len() <= point as usize {
        out.extend_from_slice(digits);
        out.resize(out.len() + point as usize - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..point as usize]);
        out.push(b'.');
        out.extend_from_slice(&digits[point as usize..]);
    }
}

/// Appends a float as its type says.
pub fn write_float(number: f64, ty: &DataType, out: &mut Vec<u8>) {
    if ty.decimals < NOT_FIXED_DECIMALS {
        let text = format!("{:.*}", ty.decimals as usize, number);
        out.extend_from_slice(text.as_bytes());
    } else if ty.kind == TypeKind::Float {
        write_f32(number, out);
    } else {
        write_f64(number, out);
    }
}

/// Puts zeros before what was appended since `start`, up to the display width.
fn zerofill(ty: &DataType, start: usize, out: &mut Vec<u8>) {
    if !ty.zerofill {
        return;
    }
    let width = ty.length as usize;
    let written = out.len() - start;
    if written < width.min(255) {
        out.splice(start..start, std::iter::repeat_n(b'0', width.min(255) - written));
    }
}

/// Appends what `UInt` means in an ENUM, SET, BIT or YEAR; false for other types.
fn write_special(number: u64, ty: &DataType, out: &mut Vec<u8>) -> bool {
    match ty.kind {
        TypeKind::Enum => {
            if let Some(name) = ty.member(number) {
                out.extend_from_slice(name);
            }
        }
        TypeKind::Set => write_set(number, ty, out),
        TypeKind::Bit => {
            let bytes = (ty.length.div_ceil(8) as usize).clamp(1, 8);
            out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
        }
        TypeKind::Year => {
            let year = (number % 10_000) as u16;
            for divisor in [1000, 100, 10, 1] {
                out.push(b'0' + (year / divisor % 10) as u8);
            }
        }
        _ => return false,
    }
    true
}

fn write_set(bits: u64, ty: &DataType, out: &mut Vec<u8>) {
    let Some(members) = &ty.members else { return };
    let start = out.len();
    for (index, name) in members.names.iter().enumerate().take(64) {
        if bits >> index & 1 == 1 {
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(name);
        }
    }
}

/// Appends the text of a value of type `ty`; nothing for NULL.
pub fn to_text(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let start = out.len();
    match value {
        Value::Null => {}
        Value::Int(number) => {
            write_i64(*number, out);
            zerofill(ty, start, out);
        }
        Value::UInt(number) => {
            if !write_special(*number, ty, out) {
                write_u64(*number, out);
                zerofill(ty, start, out);
            }
        }
        Value::Double(number) => {
            write_float(*number, ty, out);
            zerofill(ty, start, out);
        }
        Value::Decimal(number) => {
            if ty.kind == TypeKind::Decimal && number.scale() != ty.decimals {
                number.rescale(ty.decimals).write_text(out);
            } else {
                number.write_text(out);
            }
            zerofill(ty, start, out);
        }
        Value::Bytes(bytes) => out.extend_from_slice(bytes),
        Value::Date(date) => date.write_text(out),
        Value::Time(time) => time.write_text(fsp_of(ty), out),
        Value::DateTime(moment) => moment.write_text(fsp_of(ty), out),
        Value::Json(document) => json::write_text(document, out),
    }
}

/// Fraction digits of a temporal type; six where the type does not say.
pub(crate) fn fsp_of(ty: &DataType) -> u8 {
    if ty.is_temporal() { ty.decimals.min(6) } else { 6 }
}

impl Value {
    /// The text of the value as a type of its own would print it.
    pub fn write_plain_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Double(number) => write_f64(*number, out),
            Value::Decimal(number) => number.write_text(out),
            Value::Time(time) => {
                time.write_text(if time.microsecond() == 0 { 0 } else { 6 }, out);
            }
            Value::DateTime(moment) => {
                moment.write_text(if moment.microsecond() == 0 { 0 } else { 6 }, out);
            }
            other => to_text(other, &DataType::null(), out),
        }
    }

    /// Heap bytes that this value keeps alive.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Bytes(bytes) | Value::Json(bytes) => bytes.heap_bytes(),
            Value::Decimal(number) => number.heap_bytes(),
            _ => 0,
        }
    }
}
