//! DECIMAL in events: groups of nine digits, big-endian, the sign in the top bit.

use types::Decimal;

use crate::read::{Malformed, Reader, Result};

/// Bytes of a group of so many digits.
const GROUP_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

fn bytes_of(digits: usize) -> usize {
    digits / 9 * 4 + GROUP_BYTES[digits % 9]
}

/// Appends a number as `DECIMAL(precision, scale)`; beyond it, the number that is nearest.
pub(crate) fn put(number: &Decimal, precision: u8, scale: u8, out: &mut Vec<u8>) {
    let precision = precision.clamp(1, 65);
    let scale = scale.min(30).min(precision);
    let number = number.clamped(u32::from(precision), scale);
    let mut text = Vec::with_capacity(70);
    number.write_text(&mut text);
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    let mut parts = text.split(|byte| *byte == b'.');
    let (whole, fraction) = (parts.next().unwrap_or(b""), parts.next().unwrap_or(b""));
    let (whole_digits, scale) = (usize::from(precision - scale), usize::from(scale));
    let start = out.len();
    let whole = whole.strip_prefix(b"0").filter(|_| whole.len() > whole_digits).unwrap_or(whole);
    let zeros = whole_digits.saturating_sub(whole.len());
    let mut digits = std::iter::repeat_n(b'0', zeros).chain(whole.iter().copied());
    put_group(&mut digits, whole_digits % 9, out);
    (0..whole_digits / 9).for_each(|_| put_group(&mut digits, 9, out));
    let mut digits = fraction.iter().copied().chain(std::iter::repeat(b'0'));
    (0..scale / 9).for_each(|_| put_group(&mut digits, 9, out));
    put_group(&mut digits, scale % 9, out);
    if number.is_negative() {
        out[start..].iter_mut().for_each(|byte| *byte = !*byte);
    }
    if let Some(first) = out.get_mut(start) {
        *first ^= 0x80;
    }
}

fn put_group(digits: &mut impl Iterator<Item = u8>, count: usize, out: &mut Vec<u8>) {
    let number = digits.take(count).fold(0u32, |number, digit| {
        number.wrapping_mul(10).wrapping_add(u32::from(digit.wrapping_sub(b'0')))
    });
    out.extend_from_slice(&number.to_be_bytes()[4 - GROUP_BYTES[count]..]);
}

/// Reads a number of `DECIMAL(precision, scale)`.
pub(crate) fn read(reader: &mut Reader<'_>, precision: u8, scale: u8) -> Result<Decimal> {
    if precision == 0 || precision > 65 || scale > 30 || scale > precision {
        return Err(Malformed("type of a decimal"));
    }
    let (whole_digits, scale) = (usize::from(precision - scale), usize::from(scale));
    let bytes = reader.bytes(bytes_of(whole_digits) + bytes_of(scale))?;
    let mut bits = [0; 40];
    let bits = bits.get_mut(..bytes.len()).ok_or(Malformed("decimal"))?;
    bits.copy_from_slice(bytes);
    bits[0] ^= 0x80;
    let negative = bits[0] & 0x80 != 0;
    if negative {
        bits.iter_mut().for_each(|byte| *byte = !*byte);
    }
    let mut text = Vec::with_capacity(70);
    if negative {
        text.push(b'-');
    }
    let mut reader = Reader::new(bits);
    read_group(&mut reader, whole_digits % 9, &mut text)?;
    for _ in 0..whole_digits / 9 {
        read_group(&mut reader, 9, &mut text)?;
    }
    if scale > 0 {
        text.push(b'.');
    }
    for _ in 0..scale / 9 {
        read_group(&mut reader, 9, &mut text)?;
    }
    read_group(&mut reader, scale % 9, &mut text)?;
    Decimal::parse(&text).ok_or(Malformed("decimal"))
}

fn read_group(reader: &mut Reader<'_>, count: usize, text: &mut Vec<u8>) -> Result<()> {
    let mut number = reader.uint_be(GROUP_BYTES[count])?;
    let start = text.len();
    text.resize(start + count, b'0');
    for digit in text[start..].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    if number != 0 { Err(Malformed("group of digits")) } else { Ok(()) }
}
