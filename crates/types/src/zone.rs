//! Time zones as the rest of the server needs them: rules from UTC to local time and back.
//!
//! Named zones come from a plugin; UTC and fixed offsets are here.

use crate::temporal::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::{Date, DateTime};

/// Rules of a time zone.
pub trait ZoneRules: Send + Sync {
    /// As `@@time_zone` shows it.
    fn name(&self) -> &str;
    /// Local time at an instant, microseconds since 1970 UTC. Instants beyond year 9999 give the zero value.
    fn utc_to_local(&self, unix_micros: i64) -> DateTime;
    /// The instant of a local time; the first one in an overlap, the end of a gap inside it. `None` for dates with zero parts.
    fn local_to_utc(&self, local: DateTime) -> Option<i64>;
}

/// A zone with one offset for ever.
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
        civil_from_micros(unix_micros.saturating_add(offset)).unwrap_or(DateTime::ZERO)
    }

    fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        let offset = i64::from(self.offset_seconds) * MICROS_PER_SECOND;
        Some(micros_from_civil(local)? - offset)
    }
}

/// Days since 1970-01-01 of a proleptic Gregorian date. Algorithm: H. Hinnant, "chrono-compatible low-level date algorithms".
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Microseconds since 1970 of a date and time read as UTC; `None` when the date has zero parts.
pub fn micros_from_civil(local: DateTime) -> Option<i64> {
    if local.date().has_zero_part() {
        return None;
    }
    let days = days_from_civil(local.year().into(), local.month().into(), local.day().into());
    Some(days * MICROS_PER_DAY + local.micros_of_day())
}

/// Date and time in UTC of microseconds since 1970; `None` outside years 0 to 9999.
pub fn civil_from_micros(unix_micros: i64) -> Option<DateTime> {
    let days = unix_micros.div_euclid(MICROS_PER_DAY) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let date = Date::new(u32::try_from(year).ok()?, month as u32, day as u32)?;
    DateTime::from_date_and_micros(date, unix_micros.rem_euclid(MICROS_PER_DAY))
}
