//! Times of commits: microseconds since 1970 and their texts in UTC.

use types::temporal::parse_datetime;
use types::{DateTime, SqlMode};

/// Reads `YYYY-MM-DD hh:mm:ss[.ffffff]` (UTC).
///
/// # Errors
/// The text is no such time.
pub(super) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is no time like '2026-11-22 03:14:00'");
    let parsed = parse_datetime(text.as_bytes(), 6, SqlMode(0).temporal());
    let micros = parsed.value.and_then(DateTime::to_unix_micros);
    micros.and_then(|micros| u64::try_from(micros).ok()).ok_or_else(wrong)
}

/// The text of a time.
pub(super) fn text(micros: u64) -> String {
    let at = i64::try_from(micros).ok().and_then(DateTime::from_unix_micros);
    let mut out = Vec::new();
    at.unwrap_or(DateTime::ZERO).write_text(6, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
