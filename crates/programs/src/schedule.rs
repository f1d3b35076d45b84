//! When events run: parsing and display of intervals, and the next run of a schedule.

use catalog::{Event, EventSchedule, EventStep};
use errors::{Result, err};
use syntax::ast::IntervalUnit;
use types::ZoneRules;
use types::temporal::MICROS_PER_SECOND;

/// Longest interval, in months or in seconds: the reference's.
const STEP_MAX: u64 = 1_000_000_000;

/// The latest time of a schedule, 3001-01-18 23:59:59 UTC, as in the reference.
pub(crate) const SCHEDULE_TIME_MAX: i64 = 32_536_771_199 * MICROS_PER_SECOND;

/// A unit of intervals.
pub(crate) struct Unit {
    pub(crate) unit: IntervalUnit,
    pub(crate) name: &'static str,
    /// The length of each part of a value, in months or in seconds.
    parts: &'static [u64],
    /// The separators between them.
    separators: &'static str,
}

pub(crate) const UNITS: &[Unit] = &[
    Unit { unit: IntervalUnit::Year, name: "YEAR", parts: &[12], separators: "" },
    Unit { unit: IntervalUnit::Quarter, name: "QUARTER", parts: &[3], separators: "" },
    Unit { unit: IntervalUnit::Month, name: "MONTH", parts: &[1], separators: "" },
    Unit { unit: IntervalUnit::YearMonth, name: "YEAR_MONTH", parts: &[12, 1], separators: "-" },
    Unit { unit: IntervalUnit::Week, name: "WEEK", parts: &[604_800], separators: "" },
    Unit { unit: IntervalUnit::Day, name: "DAY", parts: &[86_400], separators: "" },
    Unit { unit: IntervalUnit::Hour, name: "HOUR", parts: &[3_600], separators: "" },
    Unit { unit: IntervalUnit::Minute, name: "MINUTE", parts: &[60], separators: "" },
    Unit { unit: IntervalUnit::Second, name: "SECOND", parts: &[1], separators: "" },
    Unit {
        unit: IntervalUnit::DayHour,
        name: "DAY_HOUR",
        parts: &[86_400, 3_600],
        separators: " ",
    },
    Unit {
        unit: IntervalUnit::DayMinute,
        name: "DAY_MINUTE",
        parts: &[86_400, 3_600, 60],
        separators: " :",
    },
    Unit {
        unit: IntervalUnit::DaySecond,
        name: "DAY_SECOND",
        parts: &[86_400, 3_600, 60, 1],
        separators: " ::",
    },
    Unit {
        unit: IntervalUnit::HourMinute,
        name: "HOUR_MINUTE",
        parts: &[3_600, 60],
        separators: ":",
    },
    Unit {
        unit: IntervalUnit::HourSecond,
        name: "HOUR_SECOND",
        parts: &[3_600, 60, 1],
        separators: "::",
    },
    Unit {
        unit: IntervalUnit::MinuteSecond,
        name: "MINUTE_SECOND",
        parts: &[60, 1],
        separators: ":",
    },
];

/// Whether a unit counts months.
fn counts_months(unit: IntervalUnit) -> bool {
    use IntervalUnit::*;
    matches!(unit, Year | Quarter | Month | YearMonth)
}

/// Parses the interval `text` in a unit; 1542 when it is invalid.
pub(crate) fn read_step(text: &str, unit: &Unit) -> Result<EventStep> {
    let bad = || err!(EVENT_INTERVAL_NOT_POSITIVE_OR_TOO_BIG);
    let text = text.trim();
    let total = if unit.parts.len() == 1 {
        let number: f64 = text.parse().map_err(|_| bad())?;
        let count = number.round();
        if !(1.0..=STEP_MAX as f64).contains(&count) {
            return Err(bad());
        }
        count as u64 * unit.parts[0]
    } else {
        if text.starts_with('-') {
            return Err(bad());
        }
        let digits = text.split(|letter: char| !letter.is_ascii_digit());
        let numbers = digits.filter(|part| !part.is_empty()).map(str::parse::<u64>);
        let numbers: Vec<u64> =
            numbers.collect::<std::result::Result<_, _>>().map_err(|_| bad())?;
        // Fewer numbers than parts are the last ones.
        let skipped = unit.parts.len().checked_sub(numbers.len()).ok_or_else(bad)?;
        let products = numbers.iter().zip(&unit.parts[skipped..]);
        products.fold(0_u64, |sum, (number, part)| sum.saturating_add(number.saturating_mul(*part)))
    };
    if total == 0 || total > STEP_MAX {
        return Err(bad());
    }
    Ok(match counts_months(unit.unit) {
        true => EventStep::Months(total),
        false => EventStep::Seconds(total),
    })
}

/// An interval as text in its unit.
pub(crate) fn step_text(step: EventStep, name: &str) -> String {
    let (EventStep::Months(total) | EventStep::Seconds(total)) = step;
    let Some(unit) = UNITS.iter().find(|unit| unit.name == name) else { return total.to_string() };
    let mut rest = total;
    let mut text = String::new();
    let mut separators = unit.separators.chars();
    for (at, part) in unit.parts.iter().enumerate() {
        if at > 0 {
            text.extend(separators.next());
        }
        text += &(rest / part).to_string();
        rest %= part;
    }
    if unit.parts.len() > 1 { format!("'{text}'") } else { text }
}

/// The next time at which an enabled event runs; runs before `since` are missed. `None`: never again.
pub(crate) fn next_run(event: &Event, zone: &dyn ZoneRules, since_micros: i64) -> Option<i64> {
    let (step, starts, ends) = match &event.schedule {
        EventSchedule::At(at) => return event.executed_micros.is_none().then_some(*at),
        EventSchedule::Every { step, starts, ends, .. } => (*step, *starts, *ends),
    };
    let second = |micros: i64| micros - micros.rem_euclid(MICROS_PER_SECOND);
    let after = event.executed_micros.map_or(second(event.altered_micros), |last| last + 1);
    let least = after.max(second(since_micros)).max(starts);
    let next = match step {
        EventStep::Seconds(seconds) => {
            let step = seconds as i64 * MICROS_PER_SECOND;
            starts + (least - starts + step - 1) / step * step
        }
        EventStep::Months(months) => next_by_months(starts, months as i64, least, zone)?,
    };
    ends.is_none_or(|ends| next <= ends).then_some(next)
}

fn next_by_months(starts: i64, step: i64, least: i64, zone: &dyn ZoneRules) -> Option<i64> {
    let (first, wanted) = (zone.utc_to_local(starts), zone.utc_to_local(least));
    let months = |at: types::DateTime| {
        let date = at.date();
        i64::from(date.year()) * 12 + i64::from(date.month())
    };
    let mut count = ((months(wanted) - months(first)) / step).max(0);
    loop {
        // Beyond the calendar it never runs again.
        let time = zone.local_to_utc(first.add_months(count * step)?)?;
        if time >= least {
            return Some(time);
        }
        count += 1;
    }
}

#[cfg(test)]
mod tests {
    use catalog::EventStatus;
    use types::Utc;

    use super::*;

    const DAY: i64 = 86_400 * MICROS_PER_SECOND;

    fn every(step: EventStep, starts: i64, ends: Option<i64>, executed: Option<i64>) -> Event {
        Event {
            schema: "s".into(),
            name: "e".into(),
            schedule: EventSchedule::Every { step, unit: "DAY".into(), starts, ends },
            status: EventStatus::Enabled,
            preserve: false,
            comment: "".into(),
            body: "DO 1".into(),
            definer: "root@localhost".into(),
            sql_mode: 0,
            time_zone: "UTC".into(),
            created_micros: 0,
            altered_micros: 0,
            executed_micros: executed,
            charset_client: "utf8mb4".into(),
            collation_connection: "utf8mb4_bin".into(),
            database_collation: types::CollationId::UTF8MB4_0900_AI_CI,
        }
    }

    #[test]
    fn an_event_runs_at_its_start_and_then_step_by_step() {
        let step = EventStep::Seconds(86_400);
        let next = |executed, since| next_run(&every(step, DAY, None, executed), &Utc, since);
        assert_eq!(next(None, 0), Some(DAY));
        assert_eq!(next(Some(DAY), 0), Some(2 * DAY));
        assert_eq!(next(Some(DAY + 5), 0), Some(2 * DAY));
        // Missed runs are not made up for.
        assert_eq!(next(Some(DAY), 10 * DAY + 5 * MICROS_PER_SECOND), Some(11 * DAY));
        let ends = Some(3 * DAY);
        let ending = |executed| next_run(&every(step, DAY, ends, executed), &Utc, 0);
        assert_eq!(ending(Some(2 * DAY)), Some(3 * DAY));
        assert_eq!(ending(Some(3 * DAY)), None);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        // 1970-01-31.
        let event = |executed| every(EventStep::Months(1), 30 * DAY, None, Some(executed));
        assert_eq!(next_run(&event(30 * DAY), &Utc, 0), Some(58 * DAY));
        assert_eq!(next_run(&event(58 * DAY), &Utc, 0), Some(89 * DAY));
        assert_eq!(next_run(&event(100 * DAY), &Utc, 0), Some(119 * DAY));
    }

    #[test]
    fn steps_are_read_and_shown_by_their_units() {
        let unit = |name: &str| UNITS.iter().find(|unit| unit.name == name).expect("known");
        for (text, name, step, shown) in [
            ("2", "DAY", EventStep::Seconds(172_800), "2"),
            ("1.5", "HOUR", EventStep::Seconds(7_200), "2"),
            ("3", "QUARTER", EventStep::Months(9), "3"),
            ("1:30", "MINUTE_SECOND", EventStep::Seconds(90), "'1:30'"),
            ("90", "MINUTE_SECOND", EventStep::Seconds(90), "'1:30'"),
            ("1 2", "DAY_HOUR", EventStep::Seconds(93_600), "'1 2'"),
            ("1-2", "YEAR_MONTH", EventStep::Months(14), "'1-2'"),
            ("1 2:3:4", "DAY_SECOND", EventStep::Seconds(93_784), "'1 2:3:4'"),
        ] {
            assert_eq!(read_step(text, unit(name)).expect("a step"), step, "{text} {name}");
            assert_eq!(step_text(step, name), shown);
        }
        for (text, name) in
            [("0", "DAY"), ("-1", "DAY"), ("x", "DAY"), ("-1:2", "HOUR_MINUTE"), ("1e30", "SECOND")]
        {
            assert!(read_step(text, unit(name)).is_err(), "{text} {name}");
        }
    }
}
