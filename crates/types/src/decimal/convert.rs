//! Decimals from and to text, integers, floats and key bytes.

use std::fmt;

use super::big::{self, Limbs};
use super::{Decimal, GROUP, MAX_DIGITS, MAX_PRECISION};

/// Result of the lenient parsing of a text.
#[derive(Clone, Debug)]
pub struct ParsedDecimal {
    /// The number; zero when the text has none.
    pub value: Decimal,
    /// Bytes read, leading blanks included.
    pub consumed: usize,
    /// No digits at all.
    pub empty: bool,
    /// More than 81 digits before the point: `value` is the largest number.
    pub overflow: bool,
    /// Digits after the point were dropped.
    pub inexact: bool,
    /// Something other than blanks follows the number.
    pub garbage: bool,
}

impl ParsedDecimal {
    /// Whether the text was not wholly a number.
    pub fn truncated(&self) -> bool {
        self.empty || self.garbage || self.overflow
    }
}

/// Digits of a number while it is read.
struct Digits {
    magnitude: Limbs,
    count: usize,
    lost: bool,
}

impl Digits {
    fn push(&mut self, digit: u8) {
        // One digit more than is kept, so that rounding sees it; the rest only counts.
        if self.count >= MAX_DIGITS + GROUP {
            self.lost = true;
            return;
        }
        if self.count > 0 || digit != 0 {
            let ten = big::mul_power(&self.magnitude, 1);
            self.magnitude = big::add(&ten, &big::from_u128(u128::from(digit)));
            self.count += 1;
        }
    }
}

fn skip_blanks(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(|c| matches!(c, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')) {
        at += 1;
    }
    at
}

/// Reads `e[+-]digits` at `at`; returns the exponent, clamped, and where it ends.
fn read_exponent(text: &[u8], at: usize) -> (i64, usize) {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return (0, at);
    }
    let mut end = at + 1;
    let negative = text.get(end) == Some(&b'-');
    if matches!(text.get(end), Some(b'+' | b'-')) {
        end += 1;
    }
    let start = end;
    let mut exponent = 0i64;
    while let Some(digit) = text.get(end).filter(|c| c.is_ascii_digit()) {
        exponent = (exponent * 10 + i64::from(digit - b'0')).min(1_000_000);
        end += 1;
    }
    if end == start {
        return (0, at);
    }
    (if negative { -exponent } else { exponent }, end)
}

impl Decimal {
    /// Parses a whole text as a number: blanks around it, an exponent allowed. `None` for anything else or overflow.
    pub fn parse(text: &[u8]) -> Option<Decimal> {
        let parsed = Decimal::parse_lenient(text);
        if parsed.truncated() { None } else { Some(parsed.value) }
    }

    /// Parses the longest prefix that is a number.
    pub fn parse_lenient(text: &[u8]) -> ParsedDecimal {
        if let Some(parsed) = parse_short(text) {
            return parsed;
        }
        let mut at = skip_blanks(text, 0);
        let negative = text.get(at) == Some(&b'-');
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        let mut digits = Digits { magnitude: big::ZERO, count: 0, lost: false };
        // Digits that no longer fit still count for the scale.
        let (mut seen, mut scale) = (0usize, 0i64);
        while let Some(digit) = text.get(at).filter(|c| c.is_ascii_digit()) {
            if digits.count >= MAX_DIGITS + GROUP {
                scale -= 1;
            }
            digits.push(digit - b'0');
            seen += 1;
            at += 1;
        }
        if text.get(at) == Some(&b'.') {
            let point = at;
            at += 1;
            while let Some(digit) = text.get(at).filter(|c| c.is_ascii_digit()) {
                if digits.count < MAX_DIGITS + GROUP && scale < 400 {
                    digits.push(digit - b'0');
                    scale += 1;
                }
                seen += 1;
                at += 1;
            }
            if seen == 0 {
                at = point;
            }
        }
        if seen == 0 {
            return ParsedDecimal {
                value: Decimal::ZERO,
                consumed: 0,
                empty: true,
                overflow: false,
                inexact: false,
                garbage: !text.is_empty(),
            };
        }
        let (exponent, end) = read_exponent(text, at);
        let garbage = skip_blanks(text, end) < text.len();
        let (value, overflow, inexact) = assemble(negative, digits, scale - exponent);
        ParsedDecimal { value, consumed: end, empty: false, overflow, inexact, garbage }
    }

    /// The shortest decimal that reads back as this double; `None` above 81 digits.
    pub fn from_f64(number: f64) -> Option<Decimal> {
        if !number.is_finite() {
            return None;
        }
        let mut buffer = ryu::Buffer::new();
        let parsed = Decimal::parse_lenient(buffer.format_finite(number).as_bytes());
        if parsed.overflow {
            return None;
        }
        let value = parsed.value.without_trailing_zeros();
        Some(value)
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        const POWERS: [f64; 23] = [
            1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
            1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
        ];
        if let Some((number, scale)) = self.as_i128()
            && number.unsigned_abs() < 1 << 53
            && let Some(power) = POWERS.get(scale as usize)
        {
            // Both are exact, so the single division rounds correctly.
            return number as f64 / power;
        }
        let mut text = Vec::with_capacity(90);
        self.write_text(&mut text);
        std::str::from_utf8(&text).ok().and_then(|t| t.parse().ok()).unwrap_or(0.0)
    }

    /// Rounded to an integer and clamped; true when it was clamped.
    pub fn to_i64(&self) -> (i64, bool) {
        match self.round(0).as_i128() {
            Some((number, _)) => match i64::try_from(number) {
                Ok(number) => (number, false),
                Err(_) => (if number < 0 { i64::MIN } else { i64::MAX }, true),
            },
            None => (if self.is_negative() { i64::MIN } else { i64::MAX }, true),
        }
    }

    /// Rounded to an unsigned integer and clamped (0 below zero); true when it was clamped.
    pub fn to_u64(&self) -> (u64, bool) {
        match self.round(0).as_i128() {
            Some((number, _)) => match u64::try_from(number) {
                Ok(number) => (number, false),
                Err(_) => (if number < 0 { 0 } else { u64::MAX }, true),
            },
            None => (if self.is_negative() { 0 } else { u64::MAX }, true),
        }
    }

    /// Appends the digits, with the scale's number of digits after the point.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        if let Some((number, scale)) = self.as_i128() {
            write_small(number, scale as usize, out);
            return;
        }
        let parts = self.parts();
        let mut reversed = [0u8; 180];
        let (mut rest, mut count) = (parts.magnitude, 0);
        while !big::is_zero(&rest) && count + 19 <= reversed.len() {
            let mut chunk = big::div_small(&mut rest, 10_000_000_000_000_000_000);
            for _ in 0..19 {
                reversed[count] = b'0' + (chunk % 10) as u8;
                chunk /= 10;
                count += 1;
            }
        }
        while count > 0 && reversed[count - 1] == b'0' {
            count -= 1;
        }
        let digits = &mut reversed[..count];
        digits.reverse();
        write_digits(parts.negative, digits, parts.scale, out);
    }

    /// Bytes of a key of `DECIMAL(precision, scale)`: fixed length, plain order is numeric order. Values beyond
    /// the type are clamped.
    pub fn write_key(&self, precision: u32, scale: u8, out: &mut Vec<u8>) {
        let length = Decimal::key_length(precision);
        let fitted = self.clamped(precision, scale);
        if length <= 16
            && let Some((number, _)) = fitted.as_i128()
        {
            // One's complement below zero, so that the bytes of a number and its negation are complements.
            let bits = if number < 0 { !number.unsigned_abs() } else { number as u128 };
            let start = out.len();
            out.extend_from_slice(&bits.to_be_bytes()[16 - length..]);
            out[start] ^= 0x80;
            return;
        }
        let flip = if fitted.is_negative() { 0xff } else { 0 };
        let parts = fitted.parts();
        let start = out.len();
        for index in (0..length).rev() {
            let byte = (parts.magnitude[index / 8] >> (index % 8 * 8)) as u8;
            out.push(byte ^ flip);
        }
        // The top bit is free by the choice of length: it holds the sign.
        out[start] ^= 0x80;
    }

    /// Reads the bytes of `write_key`; `None` when there are too few bytes.
    pub fn read_key(bytes: &[u8], precision: u32, scale: u8) -> Option<Decimal> {
        let bytes = bytes.get(..Decimal::key_length(precision))?;
        if bytes.len() <= 16 {
            let bits = bytes.iter().fold(0u128, |bits, &byte| bits << 8 | u128::from(byte));
            let sign = 1u128 << (8 * bytes.len() - 1);
            if bits & sign != 0 {
                return Some(Decimal::from_i128((bits ^ sign) as i128, scale));
            }
            let magnitude = (bits ^ (sign - 1)) as i128;
            return Some(Decimal::from_i128(-magnitude, scale));
        }
        let negative = bytes.first()? & 0x80 == 0;
        let mut magnitude = big::ZERO;
        for (index, &byte) in bytes.iter().rev().enumerate() {
            let mut byte = if negative { !byte } else { byte };
            if index + 1 == bytes.len() {
                byte &= 0x7f;
            }
            magnitude[index / 8] |= u64::from(byte) << (index % 8 * 8);
        }
        if big::digits(&magnitude) > MAX_DIGITS {
            return None;
        }
        Some(Decimal::from_parts(negative, magnitude, scale as usize))
    }

    /// Bytes that `write_key` writes for a precision.
    pub const fn key_length(precision: u32) -> usize {
        let precision = if precision > MAX_PRECISION { MAX_PRECISION } else { precision };
        // log2(10) < 3.3220; one bit for the sign.
        ((precision as usize * 3322).div_ceil(1000) + 1).div_ceil(8)
    }

    /// Rounded to the scale and clamped to the range of `DECIMAL(precision, scale)`.
    pub fn clamped(&self, precision: u32, scale: u8) -> Decimal {
        let rounded = self.rescale(scale);
        if rounded.scale() != scale || rounded.precision() > precision {
            return Decimal::largest(precision, scale, self.is_negative());
        }
        rounded
    }
}

/// The common case: an optional sign and up to 18 digits with an optional point, nothing else.
fn parse_short(text: &[u8]) -> Option<ParsedDecimal> {
    let (negative, body) = match text.first()? {
        b'-' => (true, &text[1..]),
        _ => (false, text),
    };
    if body.is_empty() || body.len() > 19 {
        return None;
    }
    let (mut number, mut scale, mut point) = (0i64, 0u8, false);
    let mut count = 0;
    for &c in body {
        match c {
            b'0'..=b'9' if count < 18 => {
                number = number * 10 + i64::from(c - b'0');
                scale += u8::from(point);
                count += 1;
            }
            b'.' if !point => point = true,
            _ => return None,
        }
    }
    if count == 0 {
        return None;
    }
    let value = Decimal::from_i128(i128::from(if negative { -number } else { number }), scale);
    let consumed = text.len();
    Some(ParsedDecimal {
        value,
        consumed,
        empty: false,
        overflow: false,
        inexact: false,
        garbage: false,
    })
}

/// Number from digits and a scale of any size; also whether it overflowed and whether digits were dropped.
fn assemble(negative: bool, digits: Digits, scale: i64) -> (Decimal, bool, bool) {
    let lost = digits.lost;
    if digits.count == 0 {
        let scale = scale.clamp(0, MAX_DIGITS as i64) as usize;
        return (Decimal::from_parts(false, big::ZERO, scale), false, false);
    }
    let integer = digits.count as i64 - scale;
    if integer > MAX_DIGITS as i64 {
        return (Decimal::largest(MAX_DIGITS as u32, 0, negative), true, false);
    }
    if scale <= 0 {
        let magnitude = big::mul_power(&digits.magnitude, scale.unsigned_abs() as usize);
        return (Decimal::from_parts(negative, magnitude, 0), false, lost);
    }
    let groups = (integer.max(0) as usize).div_ceil(GROUP);
    let room = (MAX_DIGITS - groups * GROUP) as i64;
    if scale > room {
        let drop = (scale - room).min(big::MAX_POWER as i64 + 1) as usize;
        let cut = big::div_power(&digits.magnitude, drop, false);
        return (Decimal::from_parts(negative, cut, room as usize), false, true);
    }
    (Decimal::from_parts(negative, digits.magnitude, scale as usize), false, lost)
}

fn write_small(number: i128, scale: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let magnitude = number.unsigned_abs();
    let digits = match u64::try_from(magnitude) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(magnitude),
    };
    write_digits(number < 0, digits.as_bytes(), scale, out);
}

fn write_digits(negative: bool, digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::with_capacity(40);
        self.write_text(&mut text);
        f.write_str(std::str::from_utf8(&text).unwrap_or(""))
    }
}

impl fmt::Debug for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
