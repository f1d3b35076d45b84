//! Values as the text sent to clients.

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

/// Places of the point, counted from the first digit, at which a float is written without `e`.
const PLAIN_POINT: std::ops::RangeInclusive<i32> = -14..=15;
/// Most characters of a DOUBLE converted to a string.
const DOUBLE_WIDTH: usize = 22;
/// Most characters of a FLOAT converted to a string.
const FLOAT_WIDTH: usize = 12;

/// Appends a double: the shortest digits that read back the same.
pub fn write_f64(number: f64, out: &mut Vec<u8>) {
    if number == number.trunc() && number.abs() < 1e15 {
        if number == 0.0 && number.is_sign_negative() {
            out.push(b'-');
        }
        return write_i64(number as i64, out);
    }
    Digits::shortest(number).write(out);
}

/// Appends a FLOAT: six significant digits.
pub fn write_f32(number: f64, out: &mut Vec<u8>) {
    if number == 0.0 {
        return write_f64(number, out);
    }
    Digits::rounded(number, 6).write(out);
}

/// The decimal digits of a float.
struct Digits {
    negative: bool,
    digits: [u8; 40],
    count: usize,
    /// Digits before the point; 0 or less for zeros after it.
    point: i32,
}

impl Digits {
    fn shortest(number: f64) -> Digits {
        Digits::read(ryu::Buffer::new().format(number).as_bytes())
    }

    fn rounded(number: f64, count: usize) -> Digits {
        Digits::read(format!("{number:.*e}", count.max(1) - 1).as_bytes())
    }

    /// Reads a number such as `-1.25e-7` or `0.5`.
    fn read(text: &[u8]) -> Digits {
        let (negative, text) = match text.split_first() {
            Some((b'-', rest)) => (true, rest),
            _ => (false, text),
        };
        let (mantissa, exponent) = match text.iter().position(|&c| c == b'e') {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])),
            None => (text, 0),
        };
        let mut found = Digits { negative, digits: [0; 40], count: 0, point: exponent };
        let mut seen_point = false;
        for &c in mantissa {
            if c == b'.' {
                seen_point = true;
                continue;
            }
            found.point += i32::from(!seen_point);
            if found.count == 0 && c == b'0' {
                found.point -= 1;
            } else if found.count < found.digits.len() {
                found.digits[found.count] = c;
                found.count += 1;
            }
        }
        let kept = found.digits[..found.count].iter().rposition(|&c| c != b'0');
        found.count = kept.map_or(0, |last| last + 1);
        found
    }

    /// Whether it is written without `e` where there is room.
    fn is_plain(&self) -> bool {
        PLAIN_POINT.contains(&self.point) || self.point > 0 && (self.point as usize) < self.count
    }

    fn plain_length(&self) -> usize {
        let sign = usize::from(self.negative);
        let distance = self.point.unsigned_abs() as usize;
        sign + match self.point {
            ..=0 => 2 + distance + self.count,
            _ if distance >= self.count => distance,
            _ => self.count + 1,
        }
    }

    /// Characters of the exponent, `e` included.
    fn exponent_length(&self) -> usize {
        let exponent = self.point - 1;
        let digits = match exponent.unsigned_abs() {
            0..=9 => 1,
            10..=99 => 2,
            _ => 3,
        };
        1 + usize::from(exponent < 0) + digits
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.is_plain() { self.write_plain(out) } else { self.write_exponent(out) }
    }

    fn write_plain(&self, out: &mut Vec<u8>) {
        let digits = &self.digits[..self.count];
        if self.negative {
            out.push(b'-');
        }
        if digits.is_empty() {
            out.push(b'0');
        } else if self.point <= 0 {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + self.point.unsigned_abs() as usize, b'0');
            out.extend_from_slice(digits);
        } else if digits.len() <= self.point as usize {
            out.extend_from_slice(digits);
            out.resize(out.len() + self.point as usize - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..self.point as usize]);
            out.push(b'.');
            out.extend_from_slice(&digits[self.point as usize..]);
        }
    }

    fn write_exponent(&self, out: &mut Vec<u8>) {
        let digits = &self.digits[..self.count];
        if self.negative {
            out.push(b'-');
        }
        out.extend_from_slice(digits.get(..1).unwrap_or(b"0"));
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        write_i64(i64::from(self.point - 1), out);
    }
}

fn parse_exponent(text: &[u8]) -> i32 {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Appends a float converted to a string: at most `width` characters (and 22, 12 for a FLOAT), with as many digits as
/// fit. False when even one digit is too many; the text is then truncated.
pub fn write_float_within(number: f64, ty: &DataType, width: usize, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    if ty.decimals < NOT_FIXED_DECIMALS {
        write_float(number, ty, out);
        return out.len() - start <= width;
    }
    let single = ty.kind == TypeKind::Float;
    let width = width.min(if single { FLOAT_WIDTH } else { DOUBLE_WIDTH });
    let has_room = if number == 0.0 {
        write_f64(number, out);
        true
    } else {
        let full = if single { Digits::rounded(number, 6) } else { Digits::shortest(number) };
        write_digits_within(number, &full, width, out)
    };
    let fits = has_room && out.len() - start <= width;
    out.truncate(start + width);
    fits
}

/// False when an exponent leaves room for only one of several digits, without a point.
fn write_digits_within(number: f64, full: &Digits, width: usize, out: &mut Vec<u8>) -> bool {
    if full.is_plain() && full.plain_length() <= width {
        full.write_plain(out);
        return true;
    }
    let room = width.saturating_sub(usize::from(full.negative));
    let mantissa = room.saturating_sub(full.exponent_length());
    let exponent_digits = if mantissa > 2 { mantissa - 1 } else { mantissa.min(1) };
    let whole = full.point.max(0) as usize;
    if full.is_plain() && whole <= room {
        // A number below 1 has a zero and zeros after its point, which are not significant.
        let fraction = room.saturating_sub(whole.max(1) + 1);
        let empty = full.point.min(0).unsigned_abs() as usize;
        let held = whole + fraction.saturating_sub(empty);
        if held > 0 && held >= exponent_digits.min(full.count) {
            Digits::read(format!("{number:.fraction$}").as_bytes()).write_plain(out);
            return true;
        }
    }
    if full.count <= exponent_digits {
        full.write_exponent(out);
    } else {
        Digits::rounded(number, exponent_digits).write_exponent(out);
    }
    full.count == 1 || mantissa > 1
}

/// Appends a float in the format of its type.
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

/// Inserts zeros before the text appended since `start`, up to the display width.
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

/// Appends the meaning of a `UInt` in an ENUM, SET, BIT or YEAR; false for other types.
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
    for (index, name) in members.names().enumerate().take(64) {
        if bits >> index & 1 == 1 {
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(name);
        }
    }
}

/// Appends the text of a value of type `ty`; empty for NULL.
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
        Value::Bytes(bytes) => match ty.as_fixed() {
            Some(kind) => kind.write_text(bytes, out),
            None => out.extend_from_slice(bytes),
        },
        Value::Date(date) => date.write_text(out),
        Value::Time(time) => time.write_text(fsp_of(ty), out),
        Value::DateTime(datetime) => datetime.write_text(fsp_of(ty), out),
        Value::Json(document) => json::write_text(document, out),
    }
}

/// Fraction digits of a temporal type; six when the type has none.
pub(crate) fn fsp_of(ty: &DataType) -> u8 {
    if ty.is_temporal() { ty.decimals.min(6) } else { 6 }
}

impl Value {
    /// The text of the value, independent of a column's type.
    pub fn write_plain_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Double(number) => write_f64(*number, out),
            Value::Decimal(number) => number.write_text(out),
            Value::Time(time) => {
                time.write_text(if time.microsecond() == 0 { 0 } else { 6 }, out);
            }
            Value::DateTime(datetime) => {
                datetime.write_text(if datetime.microsecond() == 0 { 0 } else { 6 }, out);
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
