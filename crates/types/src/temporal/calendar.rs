//! Day numbers and date arithmetic.

use super::packed::{Date, DateTime, MICROS_PER_DAY, MICROS_PER_SECOND};

/// Day number of 1970-01-01.
pub const UNIX_EPOCH_DAY: i64 = 719_528;
/// Day number of 9999-12-31.
pub const MAX_DAY: i64 = 3_652_424;

/// Gregorian leap year; the year 0 has no 29 February.
pub const fn is_leap_year(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400) && year != 0)
}

/// Days of a month, 31 for a month that does not exist.
pub const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + is_leap_year(year) as u32,
        _ => 31,
    }
}

/// Day number as `TO_DAYS()` counts, 0 for year 0 month 0. Dates with zero parts have one too.
pub const fn to_days(date: Date) -> i64 {
    let (mut year, month, day) = (date.year() as i64, date.month() as i64, date.day() as i64);
    if year == 0 && month == 0 {
        return 0;
    }
    let mut days = 365 * year + 31 * (month - 1) + day;
    if month <= 2 {
        year -= 1;
    } else {
        days -= (month * 4 + 23) / 10;
    }
    let century_days = (year.div_euclid(100) + 1) * 3 / 4;
    days + year.div_euclid(4) + if year < 0 { 1 } else { 0 } - century_days
}

/// The date of a day number of the years 0001 to 9999 (`None` outside; 1..=365 give dates of year 0).
pub fn from_days(days: i64) -> Option<Date> {
    if !(1..=MAX_DAY).contains(&days) {
        return None;
    }
    if days <= 365 {
        let mut left = days as u32;
        let mut month = 1;
        while left > days_in_month(0, month) {
            left -= days_in_month(0, month);
            month += 1;
        }
        return Date::new(0, month, left);
    }
    // Years counted from 1 March of year 0, day 60, so that leap days fall at their ends.
    let shifted = days - 60;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Date::new(year as u32, month as u32, day as u32)
}

impl Date {
    /// Day number, see `to_days`.
    pub const fn to_days(self) -> i64 {
        to_days(self)
    }

    /// Date of a day number.
    pub fn from_days(days: i64) -> Option<Date> {
        from_days(days)
    }

    /// 0 for Monday.
    pub const fn weekday(self) -> u32 {
        (self.to_days() + 5).rem_euclid(7) as u32
    }

    /// 1..=366.
    pub fn day_of_year(self) -> u32 {
        let first = Date::new(self.year(), 1, 1).map_or(0, to_days);
        (self.to_days() - first + 1).max(0) as u32
    }

    /// Whether month and day exist.
    pub const fn exists(self) -> bool {
        !self.has_zero_part() && self.day() <= days_in_month(self.year(), self.month())
    }

    /// Months later (earlier when negative); the day shrinks to the end of the month.
    pub fn add_months(self, months: i64) -> Option<Date> {
        let total =
            (i64::from(self.year()) * 12 + i64::from(self.month()) - 1).checked_add(months)?;
        if !(0..120_000).contains(&total) {
            return None;
        }
        let (year, month) = ((total / 12) as u32, (total % 12) as u32 + 1);
        Date::new(year, month, self.day().min(days_in_month(year, month)))
    }

    /// Days later (earlier when negative).
    pub fn add_days(self, days: i64) -> Option<Date> {
        from_days(self.to_days().checked_add(days)?)
    }

    /// Last day of the month.
    pub fn last_day(self) -> Option<Date> {
        Date::new(self.year(), self.month(), days_in_month(self.year(), self.month()))
    }
}

impl DateTime {
    /// Microseconds since day 0.
    pub const fn to_day_micros(self) -> i64 {
        self.date().to_days() * MICROS_PER_DAY + self.micros_of_day()
    }

    /// From microseconds since day 0.
    pub fn from_day_micros(micros: i64) -> Option<DateTime> {
        let date = from_days(micros.div_euclid(MICROS_PER_DAY))?;
        DateTime::from_date_and_micros(date, micros.rem_euclid(MICROS_PER_DAY))
    }

    /// Months later; the day shrinks to the end of the month.
    pub fn add_months(self, months: i64) -> Option<DateTime> {
        DateTime::from_date_and_micros(self.date().add_months(months)?, self.micros_of_day())
    }

    /// Microseconds later (earlier when negative).
    pub fn add_micros(self, micros: i64) -> Option<DateTime> {
        DateTime::from_day_micros(self.to_day_micros().checked_add(micros)?)
    }

    /// `self - other` in microseconds.
    pub const fn micros_since(self, other: DateTime) -> i64 {
        self.to_day_micros() - other.to_day_micros()
    }

    /// Microseconds since 1970 when this is UTC; `None` for dates that do not exist.
    pub fn to_unix_micros(self) -> Option<i64> {
        if !self.date().exists() {
            return None;
        }
        Some(self.to_day_micros() - UNIX_EPOCH_DAY * MICROS_PER_DAY)
    }

    /// UTC of microseconds since 1970.
    pub fn from_unix_micros(micros: i64) -> Option<DateTime> {
        DateTime::from_day_micros(micros.checked_add(UNIX_EPOCH_DAY * MICROS_PER_DAY)?)
    }

    /// Truncated to whole units of `fsp` digits.
    pub const fn truncate_fsp(self, fsp: u8) -> DateTime {
        let unit = fsp_unit(fsp);
        let micro = self.packed() & 0xf_ffff;
        match DateTime::from_packed(self.packed() - micro % unit) {
            Some(cut) => cut,
            None => self,
        }
    }

    /// Rounded half up to `fsp` digits; `None` past the year 9999. Zero dates round within the day.
    pub fn round_fsp(self, fsp: u8) -> Option<DateTime> {
        let unit = fsp_unit(fsp) as i64;
        let micros = self.micros_of_day();
        let rounded = (micros + unit / 2) / unit * unit;
        if rounded < MICROS_PER_DAY {
            return DateTime::from_date_and_micros(self.date(), rounded);
        }
        Some(self.date().add_days(1)?.at_midnight())
    }
}

/// Microseconds of the last digit that `fsp` keeps.
pub const fn fsp_unit(fsp: u8) -> u64 {
    match fsp {
        0 => MICROS_PER_SECOND as u64,
        1 => 100_000,
        2 => 10_000,
        3 => 1_000,
        4 => 100,
        5 => 10,
        _ => 1,
    }
}

impl super::Time {
    /// Truncated towards zero to `fsp` digits.
    pub const fn truncate_fsp(self, fsp: u8) -> super::Time {
        let unit = fsp_unit(fsp) as i64;
        super::Time::from_micros_clamped(self.micros() / unit * unit)
    }

    /// Rounded half away from zero to `fsp` digits, clamped.
    pub const fn round_fsp(self, fsp: u8) -> super::Time {
        let unit = fsp_unit(fsp) as i64;
        let half = if self.micros() < 0 { -(unit / 2) } else { unit / 2 };
        super::Time::from_micros_clamped((self.micros() + half) / unit * unit)
    }
}
