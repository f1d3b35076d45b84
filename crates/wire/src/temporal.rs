//! Binary forms of dates and times: a length byte, then as many parts as are not zero at the end.

use types::{Date, DateTime, Time};

use crate::{Malformed, Reader};

/// Appends a DATE.
pub fn put_binary_date(out: &mut Vec<u8>, date: Date) {
    if date.is_zero() {
        out.push(0);
        return;
    }
    out.push(4);
    put_date_parts(out, date);
}

fn put_date_parts(out: &mut Vec<u8>, date: Date) {
    let [low, high] = (date.year() as u16).to_le_bytes();
    out.extend_from_slice(&[low, high, date.month() as u8, date.day() as u8]);
}

/// Appends a DATETIME or TIMESTAMP.
pub fn put_binary_datetime(out: &mut Vec<u8>, at: DateTime) {
    let clock = [at.hour() as u8, at.minute() as u8, at.second() as u8];
    let len = if at.microsecond() != 0 {
        11
    } else if clock != [0; 3] {
        7
    } else if !at.is_zero() {
        4
    } else {
        0
    };
    out.push(len);
    if len >= 4 {
        put_date_parts(out, at.date());
    }
    if len >= 7 {
        out.extend_from_slice(&clock);
    }
    if len == 11 {
        out.extend_from_slice(&at.microsecond().to_le_bytes());
    }
}

/// Appends a TIME.
pub fn put_binary_time(out: &mut Vec<u8>, time: Time) {
    let micros = time.microsecond();
    let len = match (time == Time::ZERO, micros) {
        (true, _) => 0,
        (false, 0) => 8,
        (false, _) => 12,
    };
    out.push(len);
    if len == 0 {
        return;
    }
    let hours = time.hour();
    out.push(u8::from(time.is_negative()));
    out.extend_from_slice(&(hours / 24).to_le_bytes());
    out.extend_from_slice(&[(hours % 24) as u8, time.minute() as u8, time.second() as u8]);
    if len == 12 {
        out.extend_from_slice(&micros.to_le_bytes());
    }
}

/// Reads a DATE, DATETIME or TIMESTAMP. Parts out of range give the zero value.
///
/// # Errors
/// Cut short, or an impossible length.
pub fn decode_binary_datetime(reader: &mut Reader<'_>) -> Result<DateTime, Malformed> {
    let len = reader.u8()?;
    if !matches!(len, 0 | 4 | 7 | 11 | 13) {
        return Err(Malformed);
    }
    let mut parts = Reader::new(reader.bytes(usize::from(len))?);
    let mut clock = [0u32; 4];
    let mut date = Some(Date::ZERO);
    if len >= 4 {
        let year = u32::from(parts.u16()?);
        let (month, day) = (u32::from(parts.u8()?), u32::from(parts.u8()?));
        date = Date::new(year, month, day);
    }
    if len >= 7 {
        for part in &mut clock[..3] {
            *part = u32::from(parts.u8()?);
        }
    }
    if len >= 11 {
        clock[3] = parts.u32()?;
    }
    let [hour, minute, second, micro] = clock;
    let value = date.and_then(|date| DateTime::new(date, hour, minute, second, micro));
    Ok(value.unwrap_or(DateTime::ZERO))
}

/// Reads a TIME, clamped to its range. Minutes, seconds or microseconds out of range give zero.
///
/// # Errors
/// Cut short, or an impossible length.
pub fn decode_binary_time(reader: &mut Reader<'_>) -> Result<Time, Malformed> {
    let len = reader.u8()?;
    if !matches!(len, 0 | 8 | 12) {
        return Err(Malformed);
    }
    let mut parts = Reader::new(reader.bytes(usize::from(len))?);
    if len == 0 {
        return Ok(Time::ZERO);
    }
    let negative = parts.u8()? != 0;
    let days = i64::from(parts.u32()?);
    let (hour, minute, second) =
        (i64::from(parts.u8()?), i64::from(parts.u8()?), i64::from(parts.u8()?));
    let micro = if len == 12 { i64::from(parts.u32()?) } else { 0 };
    if minute > 59 || second > 59 || micro > 999_999 {
        return Ok(Time::ZERO);
    }
    let seconds = (days * 24 + hour) * 3600 + minute * 60 + second;
    // Days may be any number.
    let micros = seconds.saturating_mul(1_000_000).saturating_add(micro);
    Ok(Time::from_micros_clamped(if negative { -micros } else { micros }))
}
