//! Temporal values as text and as numbers.

use super::packed::{Date, DateTime, Time};
use crate::Decimal;

fn two(number: u32, out: &mut Vec<u8>) {
    out.push(b'0' + (number / 10 % 10) as u8);
    out.push(b'0' + (number % 10) as u8);
}

fn fraction(micro: u32, fsp: u8, out: &mut Vec<u8>) {
    if fsp == 0 {
        return;
    }
    out.push(b'.');
    let mut divisor = 100_000;
    for _ in 0..fsp.min(6) {
        out.push(b'0' + (micro / divisor % 10) as u8);
        divisor /= 10;
    }
}

impl Date {
    /// Appends `YYYY-MM-DD`.
    pub fn write_text(self, out: &mut Vec<u8>) {
        two(self.year() / 100, out);
        two(self.year() % 100, out);
        out.push(b'-');
        two(self.month(), out);
        out.push(b'-');
        two(self.day(), out);
    }

    /// `YYYYMMDD`.
    pub const fn to_number(self) -> i64 {
        (self.year() * 10_000 + self.month() * 100 + self.day()) as i64
    }
}

impl Time {
    /// Appends `[-]HH:MM:SS[.ffffff]`.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        if self.is_negative() {
            out.push(b'-');
        }
        let hour = self.hour();
        if hour >= 100 {
            out.push(b'0' + (hour / 100) as u8);
        }
        two(hour % 100, out);
        out.push(b':');
        two(self.minute(), out);
        out.push(b':');
        two(self.second(), out);
        fraction(self.microsecond(), fsp, out);
    }

    /// `HHMMSS` with the sign, the fraction truncated.
    pub const fn to_number(self) -> i64 {
        let number = (self.hour() * 10_000 + self.minute() * 100 + self.second()) as i64;
        if self.is_negative() { -number } else { number }
    }

    /// `HHMMSS.ffffff` with `fsp` digits.
    pub fn to_decimal(self, fsp: u8) -> Decimal {
        let number = self.to_number().unsigned_abs();
        let decimal = with_fraction(number, self.microsecond(), fsp);
        if self.is_negative() { decimal.neg() } else { decimal }
    }
}

impl DateTime {
    /// Appends `YYYY-MM-DD HH:MM:SS[.ffffff]`.
    pub fn write_text(self, fsp: u8, out: &mut Vec<u8>) {
        self.date().write_text(out);
        out.push(b' ');
        two(self.hour(), out);
        out.push(b':');
        two(self.minute(), out);
        out.push(b':');
        two(self.second(), out);
        fraction(self.microsecond(), fsp, out);
    }

    /// `YYYYMMDDHHMMSS`, the fraction truncated.
    pub const fn to_number(self) -> i64 {
        let time = (self.hour() * 10_000 + self.minute() * 100 + self.second()) as i64;
        self.date().to_number() * 1_000_000 + time
    }

    /// `YYYYMMDDHHMMSS.ffffff` with `fsp` digits.
    pub fn to_decimal(self, fsp: u8) -> Decimal {
        with_fraction(self.to_number() as u64, self.microsecond(), fsp)
    }
}

fn with_fraction(number: u64, micro: u32, fsp: u8) -> Decimal {
    let fsp = fsp.min(6);
    let digits = u64::from(micro) / super::fsp_unit(fsp);
    let power = 10i128.pow(u32::from(fsp));
    Decimal::from_i128(i128::from(number) * power + i128::from(digits), fsp)
}
