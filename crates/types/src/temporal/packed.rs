//! DATE, TIME and DATETIME as packed integers, whose order is chronological.

use std::fmt;

/// Largest `TIME` in microseconds: 838:59:59.
pub const TIME_MAX_MICROS: i64 = (838 * 3600 + 59 * 60 + 59) * 1_000_000;
/// Microseconds in a day.
pub const MICROS_PER_DAY: i64 = 86_400_000_000;
/// Microseconds in a second.
pub const MICROS_PER_SECOND: i64 = 1_000_000;

/// A calendar date: `year << 9 | month << 5 | day`. Parts may be zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Date(u32);

impl Date {
    /// `0000-00-00`.
    pub const ZERO: Date = Date(0);
    /// `9999-12-31`.
    pub const MAX: Date = Date(9999 << 9 | 12 << 5 | 31);

    /// Year 0..=9999, month 0..=12, day 0..=31; does not check the length of the month.
    pub const fn new(year: u32, month: u32, day: u32) -> Option<Date> {
        if year > 9999 || month > 12 || day > 31 {
            return None;
        }
        Some(Date(year << 9 | month << 5 | day))
    }

    /// The packed integer.
    pub const fn packed(self) -> u32 {
        self.0
    }

    /// From `packed()`; `None` for bits that are not a date.
    pub const fn from_packed(packed: u32) -> Option<Date> {
        Date::new(packed >> 9, packed >> 5 & 15, packed & 31)
    }

    /// 0..=9999.
    pub const fn year(self) -> u32 {
        self.0 >> 9
    }

    /// 0..=12.
    pub const fn month(self) -> u32 {
        self.0 >> 5 & 15
    }

    /// 0..=31.
    pub const fn day(self) -> u32 {
        self.0 & 31
    }

    /// `0000-00-00`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the month or the day is zero.
    pub const fn has_zero_part(self) -> bool {
        self.month() == 0 || self.day() == 0
    }

    /// Midnight of this date.
    pub const fn at_midnight(self) -> DateTime {
        DateTime((self.0 as u64) << 37)
    }
}

/// A signed duration in microseconds, at most 838:59:59 either way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time(i64);

impl Time {
    /// `00:00:00`.
    pub const ZERO: Time = Time(0);
    /// `838:59:59`.
    pub const MAX: Time = Time(TIME_MAX_MICROS);
    /// `-838:59:59`.
    pub const MIN: Time = Time(-TIME_MAX_MICROS);

    /// From microseconds; `None` when out of range.
    pub const fn from_micros(micros: i64) -> Option<Time> {
        if micros > TIME_MAX_MICROS || micros < -TIME_MAX_MICROS {
            None
        } else {
            Some(Time(micros))
        }
    }

    /// From microseconds, clamped to the range.
    pub const fn from_micros_clamped(micros: i64) -> Time {
        if micros > TIME_MAX_MICROS {
            Time::MAX
        } else if micros < -TIME_MAX_MICROS {
            Time::MIN
        } else {
            Time(micros)
        }
    }

    /// From parts; `None` when out of range.
    pub const fn new(
        negative: bool,
        hour: u32,
        minute: u32,
        second: u32,
        micro: u32,
    ) -> Option<Time> {
        if minute > 59 || second > 59 || micro > 999_999 {
            return None;
        }
        let seconds = hour as i64 * 3600 + minute as i64 * 60 + second as i64;
        let micros = seconds * MICROS_PER_SECOND + micro as i64;
        Time::from_micros(if negative { -micros } else { micros })
    }

    /// Signed microseconds.
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Less than zero.
    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// Hours of the absolute value, 0..=838.
    pub const fn hour(self) -> u32 {
        (self.0.unsigned_abs() / 3_600_000_000) as u32
    }

    /// 0..=59.
    pub const fn minute(self) -> u32 {
        (self.0.unsigned_abs() / 60_000_000 % 60) as u32
    }

    /// 0..=59.
    pub const fn second(self) -> u32 {
        (self.0.unsigned_abs() / 1_000_000 % 60) as u32
    }

    /// 0..=999999.
    pub const fn microsecond(self) -> u32 {
        (self.0.unsigned_abs() % 1_000_000) as u32
    }
}

/// A date and a time of day: date in the high 27 bits, then hour, minute, second and microsecond.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct DateTime(u64);

impl DateTime {
    /// `0000-00-00 00:00:00`.
    pub const ZERO: DateTime = DateTime(0);
    /// `9999-12-31 23:59:59.999999`.
    pub const MAX: DateTime =
        DateTime((Date::MAX.0 as u64) << 37 | 23 << 32 | 59 << 26 | 59 << 20 | 999_999);

    /// From a date and parts of a time of day.
    pub const fn new(
        date: Date,
        hour: u32,
        minute: u32,
        second: u32,
        micro: u32,
    ) -> Option<DateTime> {
        if hour > 23 || minute > 59 || second > 59 || micro > 999_999 {
            return None;
        }
        let time =
            (hour as u64) << 32 | (minute as u64) << 26 | (second as u64) << 20 | micro as u64;
        Some(DateTime((date.0 as u64) << 37 | time))
    }

    /// From a date and microseconds since midnight.
    pub const fn from_date_and_micros(date: Date, micros: i64) -> Option<DateTime> {
        if micros < 0 || micros >= MICROS_PER_DAY {
            return None;
        }
        let seconds = (micros / MICROS_PER_SECOND) as u32;
        let micro = (micros % MICROS_PER_SECOND) as u32;
        DateTime::new(date, seconds / 3600, seconds / 60 % 60, seconds % 60, micro)
    }

    /// The packed integer.
    pub const fn packed(self) -> u64 {
        self.0
    }

    /// From `packed()`; `None` for bits that are not a date and time.
    pub const fn from_packed(packed: u64) -> Option<DateTime> {
        if packed >> 37 > u32::MAX as u64 {
            return None;
        }
        match Date::from_packed((packed >> 37) as u32) {
            Some(date) => DateTime::new(
                date,
                (packed >> 32 & 31) as u32,
                (packed >> 26 & 63) as u32,
                (packed >> 20 & 63) as u32,
                (packed & 0xf_ffff) as u32,
            ),
            None => None,
        }
    }

    /// The date part.
    pub const fn date(self) -> Date {
        Date((self.0 >> 37) as u32)
    }

    /// 0..=9999.
    pub const fn year(self) -> u32 {
        self.date().year()
    }

    /// 0..=12.
    pub const fn month(self) -> u32 {
        self.date().month()
    }

    /// 0..=31.
    pub const fn day(self) -> u32 {
        self.date().day()
    }

    /// 0..=23.
    pub const fn hour(self) -> u32 {
        (self.0 >> 32 & 31) as u32
    }

    /// 0..=59.
    pub const fn minute(self) -> u32 {
        (self.0 >> 26 & 63) as u32
    }

    /// 0..=59.
    pub const fn second(self) -> u32 {
        (self.0 >> 20 & 63) as u32
    }

    /// 0..=999999.
    pub const fn microsecond(self) -> u32 {
        (self.0 & 0xf_ffff) as u32
    }

    /// The same second with other microseconds, below a million.
    #[must_use]
    pub const fn with_microsecond(self, micros: u32) -> DateTime {
        DateTime((self.0 & !0xf_ffff) | micros as u64 & 0xf_ffff)
    }

    /// Microseconds since midnight.
    pub const fn micros_of_day(self) -> i64 {
        let seconds = self.hour() as i64 * 3600 + self.minute() as i64 * 60 + self.second() as i64;
        seconds * MICROS_PER_SECOND + self.microsecond() as i64
    }

    /// The time of day.
    pub const fn time(self) -> Time {
        Time(self.micros_of_day())
    }

    /// `0000-00-00 00:00:00`.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Debug for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year(), self.month(), self.day())
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative() { "-" } else { "" };
        let (h, m, s) = (self.hour(), self.minute(), self.second());
        write!(f, "{sign}{h:02}:{m:02}:{s:02}.{:06}", self.microsecond())
    }
}

impl fmt::Debug for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (h, m, s) = (self.hour(), self.minute(), self.second());
        write!(f, "{:?} {h:02}:{m:02}:{s:02}.{:06}", self.date(), self.microsecond())
    }
}
