//! Dates, times and durations: packing, parsing, formatting, calendar arithmetic. Independent of sessions.

mod calendar;
mod format;
mod packed;
mod parse;
#[cfg(test)]
mod tests;
mod zone;

pub use calendar::{
    MAX_DAY, UNIX_EPOCH_DAY, days_in_month, from_days, fsp_unit, is_leap_year, to_days,
};
pub use packed::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND, TIME_MAX_MICROS, Time};
pub use parse::{
    ParsedTemporal, TemporalMode, date_is_accepted, datetime_from_decimal, datetime_from_number,
    parse_date, parse_datetime, parse_time, place_among_dates, place_among_datetimes,
    time_from_decimal, time_from_number,
};
pub use zone::{FixedOffset, TimeZone, Utc, ZoneRules};
