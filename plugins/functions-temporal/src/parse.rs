//! STR_TO_DATE.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::temporal::{MICROS_PER_DAY, date_is_accepted};
use types::{DataType, Date, DateTime, SqlMode, Time, Value};

use crate::read::{self, Zeros, date_type, datetime_type, time_type};

/// Names of days for reading, in English.
const DAY_NAMES: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// Months, likewise.
const MONTH_NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[scalar(
    "STR_TO_DATE",
    Arity::exactly(2),
    "STR_TO_DATE(str, format)\nThe date or time that str is in a format.",
    bind,
)];

/// The parts in a format.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Date,
    Time,
    DateTime,
}

fn bind(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let (shape, ty) = match &args[1].constant {
        Some(format) if !format.is_null() => constant_shape(&kit::text(format)),
        _ => (Shape::DateTime, datetime_type(6)),
    };
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |ctx, args| {
        let (text, format) = (kit::text(&args[0]), kit::text(&args[1]));
        match parse(&text, &format).and_then(|fields| fields.finish(ctx, shape)) {
            Some((value, rest)) => {
                if rest {
                    let kind = match shape {
                        Shape::Date => "date",
                        Shape::Time => "time",
                        Shape::DateTime => "datetime",
                    };
                    ctx.warn_truncated(kind, &text);
                }
                Ok(value)
            }
            None => {
                let code = ErrorCode::WRONG_VALUE_FOR_TYPE;
                ctx.diagnostics.warn(code, &[&"datetime", &text, &"str_to_date"]);
                Ok(Value::Null)
            }
        }
    }))
}

fn constant_shape(format: &str) -> (Shape, DataType) {
    let (mut date, mut time, mut fraction) = (false, false, false);
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match if c == '%' { rest.next() } else { None } {
            Some('f') => (time, fraction) = (true, true),
            Some('H' | 'I' | 'S' | 'T' | 'h' | 'i' | 'k' | 'l' | 'p' | 'r' | 's') => time = true,
            Some(
                'M' | 'U' | 'V' | 'W' | 'X' | 'Y' | 'a' | 'b' | 'c' | 'D' | 'd' | 'e' | 'j' | 'm'
                | 'u' | 'v' | 'w' | 'x' | 'y',
            ) => {
                date = true;
            }
            _ => {}
        }
    }
    let digits = if fraction { 6 } else { 0 };
    match (date, time) {
        (true, true) => (Shape::DateTime, datetime_type(digits)),
        (false, true) => (Shape::Time, time_type(digits)),
        _ => (Shape::Date, date_type()),
    }
}

/// Which days begin a week and which week is the first.
#[derive(Clone, Copy)]
struct WeekRule {
    monday: bool,
    whole: bool,
}

#[derive(Default)]
struct Fields {
    year: u32,
    month: u32,
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
    micro: u32,
    twelve_hours: bool,
    afternoon: Option<bool>,
    day_of_year: Option<u32>,
    /// 1 for Monday, 7 for Sunday.
    weekday: Option<u32>,
    week: Option<(u32, WeekRule)>,
    week_year: Option<u32>,
    rest: bool,
}

struct Input<'a>(&'a str);

impl Input<'_> {
    fn skip_spaces(&mut self) {
        self.0 = self.0.trim_start();
    }

    /// At most `width` digits.
    fn number(&mut self, width: usize) -> Option<u32> {
        let digits = self.0.bytes().take(width).take_while(u8::is_ascii_digit).count();
        let number = self.0[..digits].parse().ok()?;
        self.0 = &self.0[digits..];
        Some(number)
    }

    /// Position of the name, full or by its first three letters.
    fn name(&mut self, names: &[&str]) -> Option<u32> {
        for (full, length) in [(true, 0), (false, 3)] {
            for (index, name) in names.iter().enumerate() {
                let name = if full { name } else { &name[..length] };
                let matches =
                    self.0.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
                if matches {
                    self.0 = &self.0[name.len()..];
                    return Some(index as u32 + 1);
                }
            }
        }
        None
    }

    fn skip(&mut self, matches: fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(matches);
    }
}

fn parse(text: &str, format: &str) -> Option<Fields> {
    let mut fields = Fields::default();
    let mut input = Input(text);
    if format.is_empty() || text.is_empty() {
        return None;
    }
    parse_into(&mut fields, &mut input, format)?;
    fields.rest = !input.0.trim_start().is_empty();
    Some(fields)
}

fn parse_into(fields: &mut Fields, input: &mut Input<'_>, format: &str) -> Option<()> {
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        input.skip_spaces();
        if input.0.is_empty() {
            return Some(());
        }
        match if c == '%' { rest.next() } else { None } {
            Some('%') => input.0 = input.0.strip_prefix('%')?,
            Some(specifier) => parse_part(fields, input, specifier)?,
            None if c.is_whitespace() => {}
            None => input.0 = input.0.strip_prefix(c)?,
        }
    }
    Some(())
}

fn parse_part(fields: &mut Fields, input: &mut Input<'_>, specifier: char) -> Option<()> {
    match specifier {
        'Y' => {
            let before = input.0.len();
            fields.year = input.number(4)?;
            if before - input.0.len() <= 2 {
                fields.year += if fields.year < 70 { 2000 } else { 1900 };
            }
        }
        'y' => {
            fields.year = input.number(2)?;
            fields.year += if fields.year < 70 { 2000 } else { 1900 };
        }
        'm' | 'c' => fields.month = input.number(2)?,
        'M' | 'b' => fields.month = input.name(&MONTH_NAMES)?,
        'd' | 'e' => fields.day = input.number(2)?,
        'D' => {
            fields.day = input.number(2)?;
            input.0 = input.0.get(2.min(input.0.len())..)?;
        }
        'h' | 'I' | 'l' => {
            fields.twelve_hours = true;
            fields.hour = input.number(2)?;
        }
        'H' | 'k' => fields.hour = input.number(2)?,
        'i' => fields.minute = input.number(2)?,
        's' | 'S' => fields.second = input.number(2)?,
        'f' => {
            let before = input.0.len();
            let number = input.number(6)?;
            fields.micro = number * 10u32.pow(6 - (before - input.0.len()) as u32);
        }
        'p' => {
            // Only valid after a 12-hour field.
            if !fields.twelve_hours {
                return None;
            }
            let half = input.0.get(..2)?;
            fields.afternoon = Some(match half {
                _ if half.eq_ignore_ascii_case("AM") => false,
                _ if half.eq_ignore_ascii_case("PM") => true,
                _ => return None,
            });
            input.0 = &input.0[2..];
        }
        'W' | 'a' => fields.weekday = Some(input.name(&DAY_NAMES)?),
        'w' => {
            let number = input.number(1).filter(|number| *number < 7)?;
            fields.weekday = Some(if number == 0 { 7 } else { number });
        }
        'j' => fields.day_of_year = Some(input.number(3).filter(|day| (1..=366).contains(day))?),
        'U' | 'V' | 'u' | 'v' => {
            let rule = WeekRule {
                monday: specifier.is_lowercase(),
                whole: matches!(specifier, 'V' | 'v'),
            };
            fields.week = Some((input.number(2).filter(|week| *week <= 53)?, rule));
        }
        'X' | 'x' => fields.week_year = Some(input.number(4)?),
        'r' => {
            fields.twelve_hours = true;
            parse_into(fields, input, "%I:%i:%S %p")?;
        }
        'T' => parse_into(fields, input, "%H:%i:%S")?,
        '.' => input.skip(|c| c.is_ascii_punctuation()),
        '@' => input.skip(char::is_alphabetic),
        '#' => input.skip(|c| c.is_ascii_digit()),
        _ => return None,
    }
    Some(())
}

impl Fields {
    /// The value, and whether text is left over.
    fn finish(mut self, ctx: &FunctionContext<'_>, shape: Shape) -> Option<(Value, bool)> {
        if self.twelve_hours {
            if self.hour > 12 || self.hour < 1 {
                return None;
            }
            self.hour = self.hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 };
        }
        if self.hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        self.resolve_day()?;
        let time = Time::new(false, self.hour, self.minute, self.second, self.micro)?;
        let value = match shape {
            Shape::Time => {
                let days = i64::from(self.day) * MICROS_PER_DAY;
                Value::Time(Time::from_micros_clamped(time.micros() + days))
            }
            Shape::Date => Value::Date(self.date(ctx)?),
            Shape::DateTime => {
                Value::DateTime(DateTime::from_date_and_micros(self.date(ctx)?, time.micros())?)
            }
        };
        Some((value, self.rest))
    }

    fn date(&self, ctx: &FunctionContext<'_>) -> Option<Date> {
        let date = Date::new(self.year, self.month, self.day)?;
        let no_year =
            self.year == 0 && !date.is_zero() && ctx.sql_mode.contains(SqlMode::NO_ZERO_IN_DATE);
        (date_is_accepted(date, read::mode(ctx, Zeros::Mode)) && !no_year).then_some(date)
    }

    /// A day of the year, or a week and a weekday, decide the date.
    fn resolve_day(&mut self) -> Option<()> {
        let date = if let Some(day) = self.day_of_year.filter(|_| self.year > 0) {
            Date::from_days(Date::new(self.year, 1, 1)?.to_days() + i64::from(day) - 1)?
        } else if let (Some((week, rule)), Some(weekday)) = (self.week, self.weekday) {
            // %V goes with %X and %v with %x; %U and %u go with %Y.
            let year = if rule.whole { self.week_year? } else { self.year };
            if week == 0 && rule.whole || self.week_year.is_some() != rule.whole {
                return None;
            }
            week_date(year, week, rule, weekday)?
        } else {
            return Some(());
        };
        (self.year, self.month, self.day) = (date.year(), date.month(), date.day());
        Some(())
    }
}

/// Week 1 has the first Sunday of the year, or four days of it when weeks begin on Monday.
fn week_date(year: u32, week: u32, rule: WeekRule, weekday: u32) -> Option<Date> {
    let first = Date::new(year, 1, 1)?.to_days();
    let day = if rule.monday {
        let start = (first + 5).rem_euclid(7);
        let monday = if start <= 3 { first - start } else { first + 7 - start };
        monday + i64::from(week) * 7 - 7 + i64::from(weekday) - 1
    } else {
        let start = (first + 6).rem_euclid(7);
        let sunday = if start == 0 { first } else { first + 7 - start };
        sunday + i64::from(week) * 7 - 7 + i64::from(weekday % 7)
    };
    Date::from_days(day)
}
