//! Units of intervals and amounts of them.

use errors::{Error, ErrorCode, Result};
use plugin_api::{ArgInfo, FunctionContext, kit};
use types::temporal::MICROS_PER_SECOND;
use types::{Decimal, Value};

/// A unit of EXTRACT and of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Microsecond,
    YearMonth,
    DayHour,
    DayMinute,
    DaySecond,
    HourMinute,
    HourSecond,
    MinuteSecond,
    DayMicrosecond,
    HourMicrosecond,
    MinuteMicrosecond,
    SecondMicrosecond,
}

const NAMES: &[(&str, Unit)] = &[
    ("YEAR", Unit::Year),
    ("QUARTER", Unit::Quarter),
    ("MONTH", Unit::Month),
    ("WEEK", Unit::Week),
    ("DAY", Unit::Day),
    ("HOUR", Unit::Hour),
    ("MINUTE", Unit::Minute),
    ("SECOND", Unit::Second),
    ("MICROSECOND", Unit::Microsecond),
    ("YEAR_MONTH", Unit::YearMonth),
    ("DAY_HOUR", Unit::DayHour),
    ("DAY_MINUTE", Unit::DayMinute),
    ("DAY_SECOND", Unit::DaySecond),
    ("HOUR_MINUTE", Unit::HourMinute),
    ("HOUR_SECOND", Unit::HourSecond),
    ("MINUTE_SECOND", Unit::MinuteSecond),
    ("DAY_MICROSECOND", Unit::DayMicrosecond),
    ("HOUR_MICROSECOND", Unit::HourMicrosecond),
    ("MINUTE_MICROSECOND", Unit::MinuteMicrosecond),
    ("SECOND_MICROSECOND", Unit::SecondMicrosecond),
];

/// Months and microseconds to add; one of them is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) months: i64,
    pub(crate) micros: i128,
}

impl Unit {
    /// The unit that the binder passes as a constant text.
    ///
    /// # Errors
    /// 1210 for anything else.
    pub(crate) fn of_argument(arg: &ArgInfo) -> Result<Unit> {
        let name = arg.constant.as_ref().map(kit::text).unwrap_or_default().to_ascii_uppercase();
        let short = name.strip_prefix("SQL_TSI_").unwrap_or(&name);
        let short = if short == "FRAC_SECOND" { "MICROSECOND" } else { short };
        let found = NAMES.iter().find(|(known, _)| *known == short);
        found
            .map(|(_, unit)| *unit)
            .ok_or_else(|| Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"interval"]))
    }

    /// Whether EXTRACT reads it from a date.
    pub(crate) fn is_date_part(self) -> bool {
        use Unit::*;
        matches!(self, Year | Quarter | Month | Week | Day | YearMonth)
    }

    /// Whether adding it changes the time of day.
    pub(crate) fn has_time(self) -> bool {
        !self.is_date_part()
    }

    /// Whether it counts months.
    pub(crate) fn is_months(self) -> bool {
        use Unit::*;
        matches!(self, Year | Quarter | Month | YearMonth)
    }

    /// Whether its last part is microseconds.
    pub(crate) fn has_microseconds(self) -> bool {
        use Unit::*;
        matches!(
            self,
            Microsecond | DayMicrosecond | HourMicrosecond | MinuteMicrosecond | SecondMicrosecond
        )
    }

    /// The length that EXTRACT announces: digits of the largest value and a sign.
    pub(crate) fn extract_length(self) -> u32 {
        use Unit::*;
        match self {
            Year => 5,
            YearMonth => 7,
            Quarter => 2,
            Month | Week | Day | Minute | Second => 3,
            DayHour => 9,
            DayMinute => 11,
            DaySecond => 13,
            Hour => 4,
            HourMinute => 6,
            HourSecond => 8,
            MinuteSecond => 5,
            Microsecond => 7,
            DayMicrosecond => 20,
            HourMicrosecond => 14,
            MinuteMicrosecond => 11,
            SecondMicrosecond => 9,
        }
    }

    /// The length of one unit, in months or in microseconds.
    fn size(self) -> (i64, i64) {
        use Unit::*;
        match self {
            Year => (12, 0),
            Quarter => (3, 0),
            Month | YearMonth => (1, 0),
            Week => (0, 7 * 86_400 * MICROS_PER_SECOND),
            Day => (0, 86_400 * MICROS_PER_SECOND),
            Hour | DayHour => (0, 3_600 * MICROS_PER_SECOND),
            Minute | DayMinute | HourMinute => (0, 60 * MICROS_PER_SECOND),
            Second | DaySecond | HourSecond | MinuteSecond => (0, MICROS_PER_SECOND),
            Microsecond | DayMicrosecond | HourMicrosecond | MinuteMicrosecond
            | SecondMicrosecond => (0, 1),
        }
    }

    /// The simple units of a compound one, largest first; empty for a simple one.
    fn parts(self) -> &'static [Unit] {
        use Unit::*;
        match self {
            YearMonth => &[Year, Month],
            DayHour => &[Day, Hour],
            DayMinute => &[Day, Hour, Minute],
            DaySecond => &[Day, Hour, Minute, Second],
            HourMinute => &[Hour, Minute],
            HourSecond => &[Hour, Minute, Second],
            MinuteSecond => &[Minute, Second],
            DayMicrosecond => &[Day, Hour, Minute, Second, Microsecond],
            HourMicrosecond => &[Hour, Minute, Second, Microsecond],
            MinuteMicrosecond => &[Minute, Second, Microsecond],
            SecondMicrosecond => &[Second, Microsecond],
            Year | Quarter | Month | Week | Day | Hour | Minute | Second | Microsecond => &[],
        }
    }

    /// Reads an amount; `None` when it has too many parts or is out of range for dates.
    pub(crate) fn amount(self, ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Amount> {
        if !self.parts().is_empty() {
            let text = match value {
                Value::Bytes(_) => kit::text(value).into_owned(),
                other => kit::argument_text(other).replace(['(', ')'], ""),
            };
            return self.compound(&text);
        }
        if self == Unit::Second {
            return self.seconds(value);
        }
        let count = match value {
            Value::Bytes(_) => leading_integer(ctx, &kit::text(value)),
            // An unsigned number beyond the signed range wraps as it does in the reference.
            Value::UInt(number) => *number as i64,
            Value::Double(number) => number.round_ties_even() as i64,
            other => kit::integer_i64(other),
        };
        let (months, micros) = self.size();
        Some(Amount {
            months: months.checked_mul(count)?,
            micros: i128::from(micros) * i128::from(count),
        })
    }

    fn seconds(self, value: &Value) -> Option<Amount> {
        let seconds = match value {
            Value::Bytes(text) => Decimal::parse_lenient(text).value,
            Value::UInt(number) => Decimal::from(*number as i64),
            other => kit::decimal(other),
        };
        let (micros, _) = seconds.round(6).rescale(6).as_i128()?;
        Some(Amount { months: 0, micros })
    }

    /// Groups of digits, the last of them the smallest unit.
    fn compound(self, text: &str) -> Option<Amount> {
        let text = text.trim_start();
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let units = self.parts();
        let groups: Vec<&str> = digits
            .split(|c: char| !c.is_ascii_digit())
            .filter(|group| !group.is_empty())
            .take(units.len() + 1)
            .collect();
        if groups.len() > units.len() {
            return None;
        }
        let mut amount = Amount { months: 0, micros: 0 };
        for (unit, group) in units[units.len() - groups.len()..].iter().zip(&groups) {
            let mut count: i64 = group.parse().ok()?;
            if *unit == Unit::Microsecond {
                count = format!("{group:0<6}")
                    .get(..6)
                    .and_then(|micros| micros.parse().ok())
                    .unwrap_or(count);
            }
            let (months, micros) = unit.size();
            amount.months = amount.months.checked_add(months.checked_mul(count)?)?;
            amount.micros += i128::from(micros) * i128::from(count);
        }
        Some(if negative { amount.negated() } else { amount })
    }
}

impl Amount {
    /// The opposite amount.
    pub(crate) fn negated(self) -> Amount {
        Amount { months: self.months.saturating_neg(), micros: -self.micros }
    }
}

/// The integer that a text begins with; a warning when there is more.
fn leading_integer(ctx: &mut FunctionContext<'_>, text: &str) -> i64 {
    let trimmed = text.trim();
    let sign = usize::from(trimmed.starts_with(['-', '+']));
    let digits = trimmed[sign..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || sign + digits < trimmed.len() {
        ctx.warn_truncated("INTEGER", text);
    }
    let number: i128 = trimmed[..sign + digits].trim_start_matches('+').parse().unwrap_or(0);
    number.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}
