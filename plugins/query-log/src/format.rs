//! Times and fields of log lines.

use types::{DateTime, FixedOffset, ZoneRules as _};

/// A time in UTC.
pub(crate) fn utc(micros: i64) -> DateTime {
    FixedOffset::utc().utc_to_local(micros)
}

/// `2026-01-31T12:00:00.000000Z`.
pub(crate) fn timestamp(micros: i64) -> String {
    let mut text = Vec::new();
    push_timestamp(&mut text, micros);
    String::from_utf8_lossy(&text).into_owned()
}

/// Appends the same. Every statement of the general log has one: `format!` would take more instructions than a point SELECT has for its parts.
pub(crate) fn push_timestamp(out: &mut Vec<u8>, micros: i64) {
    let at = utc(micros);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    let parts: [(u32, std::ops::Range<usize>); 7] = [
        (at.year(), 0..4),
        (at.month(), 5..7),
        (at.day(), 8..10),
        (at.hour(), 11..13),
        (at.minute(), 14..16),
        (at.second(), 17..19),
        (at.microsecond(), 20..26),
    ];
    for (mut number, place) in parts {
        for digit in text[place].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
    out.extend_from_slice(&text);
}

/// Appends a number, with spaces before it where it has less than five digits.
pub(crate) fn push_padded(out: &mut Vec<u8>, mut number: u64) {
    const WIDTH: usize = 5;
    // The longest number has 20 digits.
    let mut text = [b' '; 20];
    let mut at = text.len();
    loop {
        at -= 1;
        text[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&text[at.min(text.len() - WIDTH)..]);
}

/// Appends a field of CSV in quotes; quotes in it are doubled.
pub(crate) fn csv_field(line: &mut String, field: &str) {
    if !line.is_empty() {
        line.push(',');
    }
    line.push('"');
    line.push_str(&field.replace('"', "\"\""));
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_with_microseconds() {
        assert_eq!(timestamp(1_000_001), "1970-01-01T00:00:01.000001Z");
    }

    #[test]
    fn numbers_are_padded_and_never_cut() {
        let padded = |number| {
            let mut out = Vec::new();
            push_padded(&mut out, number);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            [padded(0), padded(12345), padded(u64::MAX)],
            ["    0", "12345", "18446744073709551615"]
        );
    }

    #[test]
    fn quotes_of_csv_are_doubled() {
        let mut line = String::new();
        csv_field(&mut line, "a");
        csv_field(&mut line, "say \"x\",\ny");
        assert_eq!(line, "\"a\",\"say \"\"x\"\",\ny\"");
    }
}
