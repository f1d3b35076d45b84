//! Named time zones, from the tz database that is compiled in.

use std::sync::Arc;

use jiff::civil;
use jiff::tz::{AmbiguousOffset, TimeZone};
use plugin_api::TimeZones;
use types::{Date, DateTime, ZoneRules};

/// A zone of the tz database.
struct NamedZone {
    name: String,
    zone: TimeZone,
}

/// The tz database as a plugin.
pub(crate) struct TzDatabase;

impl TimeZones for TzDatabase {
    fn named(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        let zone = jiff::tz::db().get(name).ok()?;
        let name = zone.iana_name().unwrap_or(name).to_owned();
        Some(Arc::new(NamedZone { name, zone }))
    }
}

fn from_civil(at: civil::DateTime) -> Option<DateTime> {
    let date = Date::new(u32::try_from(at.year()).ok()?, at.month() as u32, at.day() as u32)?;
    let micro = at.subsec_nanosecond() as u32 / 1000;
    DateTime::new(date, at.hour() as u32, at.minute() as u32, at.second() as u32, micro)
}

fn to_civil(at: DateTime) -> Option<civil::DateTime> {
    let (year, month, day) = (at.year() as i16, at.month() as i8, at.day() as i8);
    let (hour, minute, second) = (at.hour() as i8, at.minute() as i8, at.second() as i8);
    civil::DateTime::new(year, month, day, hour, minute, second, at.microsecond() as i32 * 1000)
        .ok()
}

impl ZoneRules for NamedZone {
    fn name(&self) -> &str {
        &self.name
    }

    fn utc_to_local(&self, unix_micros: i64) -> DateTime {
        let Ok(timestamp) = jiff::Timestamp::from_microsecond(unix_micros) else {
            return DateTime::ZERO;
        };
        from_civil(self.zone.to_datetime(timestamp)).unwrap_or(DateTime::ZERO)
    }

    fn local_to_utc(&self, local: DateTime) -> Option<i64> {
        let civil = to_civil(local)?;
        let timestamp = |offset: jiff::tz::Offset| offset.to_timestamp(civil).ok();
        let timestamp = match self.zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => timestamp(offset)?,
            AmbiguousOffset::Fold { before, .. } => timestamp(before)?,
            AmbiguousOffset::Gap { after, .. } => {
                // Read with the later offset, the time lies before the gap; the end of the gap is the next change.
                let before_gap = timestamp(after)?;
                self.zone.following(before_gap).next()?.timestamp()
            }
        };
        Some(timestamp.as_microsecond())
    }
}
