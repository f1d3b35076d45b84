//! Times and fields of log lines.

use types::{DateTime, FixedOffset, ZoneRules as _};

/// A time in UTC.
pub(crate) fn utc(micros: i64) -> DateTime {
    FixedOffset::utc().utc_to_local(micros)
}

/// `2026-01-31T12:00:00.000000Z`.
pub(crate) fn timestamp(micros: i64) -> String {
    let at = utc(micros);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.microsecond()
    )
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
    fn quotes_of_csv_are_doubled() {
        let mut line = String::new();
        csv_field(&mut line, "a");
        csv_field(&mut line, "say \"x\",\ny");
        assert_eq!(line, "\"a\",\"say \"\"x\"\",\ny\"");
    }
}
