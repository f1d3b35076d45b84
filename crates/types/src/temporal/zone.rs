//! Time zones: the rules of named ones come from a plugin, UTC and fixed offsets are here.

use std::fmt;
use std::sync::Arc;

use super::packed::{DateTime, MICROS_PER_SECOND};

/// Local time of a zone.
pub trait ZoneRules: Send + Sync {
    /// Local time of a point in time.
    fn utc_to_local(&self, unix_micros: i64) -> DateTime;
    /// Point in time of a local time; `None` when it does not exist in the calendar. In a gap, the end of the gap.
    fn local_to_utc(&self, local: DateTime) -> Option<i64>;
    /// Name as `@@time_zone` shows it.
    fn name(&self) -> &str;
}

/// UTC.
#[derive(Clone, Copy, Debug, Default)]
pub struct Utc;

impl ZoneRules for Utc {
    fn name(&self) -> &str {
        "UTC"
    }

    fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        DateTime::from_unix_micros(unix_micros).unwrap_or(DateTime::ZERO)
    }

    fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        local.to_unix_micros()
    }
}

/// A zone with a single, constant offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedOffset {
    name: String,
    offset_seconds: i32,
}

impl FixedOffset {
    /// UTC.
    pub fn utc() -> FixedOffset {
        FixedOffset { name: "UTC".into(), offset_seconds: 0 }
    }

    /// Parses `+05:30`, `-8:00`; the reference allows -13:59 to +14:00.
    pub fn parse(text: &str) -> Option<FixedOffset> {
        let (sign, rest) = match text.as_bytes().first()? {
            b'+' => (1, &text[1..]),
            b'-' => (-1, &text[1..]),
            _ => return None,
        };
        let (hours, minutes) = rest.split_once(':')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !(1..=2).contains(&hours.len())
            || minutes.len() != 2
            || !digits(hours)
            || !digits(minutes)
        {
            return None;
        }
        let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
        let total_minutes = hours * 60 + minutes;
        let limit = if sign > 0 { 14 * 60 } else { 13 * 60 + 59 };
        if minutes > 59 || total_minutes > limit {
            return None;
        }
        let name = format!("{}{hours:02}:{minutes:02}", if sign > 0 { '+' } else { '-' });
        Some(FixedOffset { name, offset_seconds: sign * total_minutes * 60 })
    }
}

impl ZoneRules for FixedOffset {
    fn name(&self) -> &str {
        &self.name
    }

    fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        let offset = i64::from(self.offset_seconds) * MICROS_PER_SECOND;
        DateTime::from_unix_micros(unix_micros.saturating_add(offset)).unwrap_or(DateTime::ZERO)
    }

    fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        let offset = i64::from(self.offset_seconds) * MICROS_PER_SECOND;
        Some(local.to_unix_micros()? - offset)
    }
}

/// A session's time zone, as an owned value.
#[derive(Clone, Default)]
pub enum TimeZone {
    /// UTC.
    #[default]
    Utc,
    /// Fixed offset.
    Offset(FixedOffset),
    /// Rules from elsewhere.
    Named(Arc<dyn ZoneRules>),
}

impl TimeZone {
    /// The rules.
    pub fn rules(&self) -> &dyn ZoneRules {
        match self {
            TimeZone::Utc => &Utc,
            TimeZone::Offset(offset) => offset,
            TimeZone::Named(rules) => &**rules,
        }
    }

    /// Local time of a point in time; the zero date when the calendar does not reach it.
    pub fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        self.rules().utc_to_local(unix_micros)
    }

    /// Point in time of a local time.
    pub fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        self.rules().local_to_utc(local)
    }
}

impl ZoneRules for TimeZone {
    fn name(&self) -> &str {
        self.rules().name()
    }

    fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        self.rules().utc_to_local(unix_micros)
    }

    fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        self.rules().local_to_utc(local)
    }
}

impl fmt::Debug for TimeZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rules().name())
    }
}
