//! Time zones: the rules come from outside, UTC and fixed offsets are here.

use std::fmt;
use std::sync::Arc;

use super::packed::{DateTime, MICROS_PER_SECOND};

/// Local time of a zone.
pub trait ZoneRules: Send + Sync {
    /// Local time at a moment.
    fn utc_to_local(&self, unix_micros: i64) -> DateTime;
    /// Moment of a local time; `None` when it does not exist in the calendar. In a gap, the end of the gap.
    fn local_to_utc(&self, local: DateTime) -> Option<i64>;
    /// Name as `@@time_zone` shows it.
    fn name(&self) -> &str;
}

/// A session's time zone.
#[derive(Clone, Default)]
pub enum TimeZone {
    /// UTC.
    #[default]
    Utc,
    /// Fixed offset in seconds, at most 14 hours.
    Offset(i32),
    /// Rules with a name.
    Named(Arc<dyn ZoneRules>),
}

impl TimeZone {
    /// `+HH:MM` or `-HH:MM` from -13:59 to +14:00.
    pub fn parse_offset(text: &str) -> Option<TimeZone> {
        let negative = match text.as_bytes().first()? {
            b'+' => false,
            b'-' => true,
            _ => return None,
        };
        let (hours, minutes) = text[1..].split_once(':')?;
        let digits = |part: &str| part.bytes().all(|c| c.is_ascii_digit());
        if hours.is_empty() || hours.len() > 2 || minutes.len() != 2 {
            return None;
        }
        if !digits(hours) || !digits(minutes) {
            return None;
        }
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let total = hours * 60 + minutes;
        if minutes > 59 || total > if negative { 13 * 60 + 59 } else { 14 * 60 } {
            return None;
        }
        Some(TimeZone::Offset(if negative { -total } else { total } * 60))
    }

    /// Local time at a moment; the zero date when the calendar does not reach it.
    pub fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        match self {
            TimeZone::Utc => DateTime::from_unix_micros(unix_micros).unwrap_or(DateTime::ZERO),
            TimeZone::Offset(seconds) => unix_micros
                .checked_add(i64::from(*seconds) * MICROS_PER_SECOND)
                .and_then(DateTime::from_unix_micros)
                .unwrap_or(DateTime::ZERO),
            TimeZone::Named(rules) => rules.utc_to_local(unix_micros),
        }
    }

    /// Moment of a local time.
    pub fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        match self {
            TimeZone::Utc => local.to_unix_micros(),
            TimeZone::Offset(seconds) => {
                Some(local.to_unix_micros()? - i64::from(*seconds) * MICROS_PER_SECOND)
            }
            TimeZone::Named(rules) => rules.local_to_utc(local),
        }
    }

    /// Name as `@@time_zone` shows it.
    pub fn name(&self) -> String {
        match self {
            TimeZone::Utc => "UTC".into(),
            TimeZone::Offset(seconds) => {
                let sign = if *seconds < 0 { '-' } else { '+' };
                let minutes = seconds.unsigned_abs() / 60;
                format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
            }
            TimeZone::Named(rules) => rules.name().to_owned(),
        }
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
