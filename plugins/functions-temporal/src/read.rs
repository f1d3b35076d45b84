//! Arguments as dates and times: typed values unchanged, text and numbers parsed with the session's mode, and warnings for
//! other values.

use errors::{Condition, ErrorCode, Level};
use plugin_api::{ArgInfo, Coercion, FunctionContext, kit};
use types::temporal::{
    TemporalMode, datetime_from_decimal, parse_datetime, parse_time, time_from_decimal,
};
use types::{
    DataType, Date, DateTime, Decimal, JsonRef, NOT_FIXED_DECIMALS, SqlBytes, SqlMode, Time,
    TypeKind, Value,
};

/// The dates with zero parts that a function accepts from text.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Zeros {
    /// A zero month or day is accepted.
    Parts,
    /// According to the SQL mode.
    Mode,
}

/// The name of the expected type in a warning.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Expected {
    /// `Truncated incorrect date value`.
    Date,
    /// `Incorrect datetime value`.
    DateTime,
}

pub(crate) fn mode(ctx: &FunctionContext<'_>, zeros: Zeros) -> TemporalMode {
    TemporalMode {
        no_zero_date: ctx.sql_mode.contains(SqlMode::NO_ZERO_DATE),
        no_zero_in_date: zeros == Zeros::Mode && ctx.sql_mode.contains(SqlMode::NO_ZERO_IN_DATE),
        allow_invalid_dates: ctx.sql_mode.contains(SqlMode::ALLOW_INVALID_DATES),
        truncate_fraction: ctx.sql_mode.contains(SqlMode::TIME_TRUNCATE_FRACTIONAL),
    }
}

fn warn(ctx: &mut FunctionContext<'_>, message: String) {
    let code = ErrorCode::TRUNCATED_WRONG_VALUE;
    ctx.diagnostics.push(Condition::new(Level::Warning, code, code.sqlstate(), message));
}

/// `Incorrect datetime value: 'abc'`.
pub(crate) fn warn_incorrect_datetime(ctx: &mut FunctionContext<'_>, shown: &str) {
    warn(ctx, format!("Incorrect datetime value: '{shown}'"));
}

/// Warning 6527: a result beyond its type.
pub(crate) fn warn_out_of_range(
    ctx: &mut FunctionContext<'_>,
    kind: &str,
    name: &str,
    args: &[Value],
) {
    let message = format!("{kind} value is out of range in '{}'", kit::call_text(name, args));
    ctx.diagnostics.push(Condition::new(Level::Warning, ErrorCode(6527), *b"22003", message));
}

fn shown(value: &Value) -> String {
    match value {
        Value::Bytes(_) => kit::text(value).into_owned(),
        other => kit::argument_text(other).replace(['(', ')'], ""),
    }
}

/// A date and time, and whether the source had a time of day.
#[derive(Clone, Copy)]
pub(crate) struct ReadDateTime {
    pub(crate) at: DateTime,
    pub(crate) date_only: bool,
}

/// A number like `31` or `100` where a date may have zero parts: its last digits are a day, in the year 2000.
fn date_without_month(number: &Decimal) -> Option<Date> {
    let (whole, _) = number.truncate(0).as_i128()?;
    let digits = u32::try_from(whole).ok().filter(|digits| (1..=100).contains(digits))?;
    Date::new(2000, digits / 100, digits % 100)
}

/// A JSON scalar that is a date, or a time; `None`, with a warning, for others. A text stays one.
fn json_value(
    ctx: &mut FunctionContext<'_>,
    document: &[u8],
    target: &str,
    mode: TemporalMode,
) -> Option<Value> {
    let Some(value) = types::json_as_temporal(document, target == "TIME", mode) else {
        let args: [&dyn std::fmt::Display; 3] = [&target, &"cast_as_json", &1];
        ctx.diagnostics.warn(ErrorCode::INVALID_JSON_VALUE_FOR_CAST, &args);
        return None;
    };
    let text = JsonRef::new(document).as_bytes().map(|text| Value::Bytes(SqlBytes::from(text)));
    Some(text.unwrap_or(value))
}

/// Reads a DATETIME; returns `None` for NULL and, with a warning, for a value that is not one.
pub(crate) fn datetime(
    ctx: &mut FunctionContext<'_>,
    value: &Value,
    zeros: Zeros,
    expected: Expected,
) -> Option<ReadDateTime> {
    let parsed = match value {
        Value::Null => return None,
        Value::Date(date) => return Some(ReadDateTime { at: date.at_midnight(), date_only: true }),
        Value::DateTime(at) => return Some(ReadDateTime { at: *at, date_only: false }),
        Value::Time(time) => {
            return today_at(ctx, *time).map(|at| ReadDateTime { at, date_only: false });
        }
        Value::Bytes(text) => parse_datetime(text, 6, mode(ctx, zeros)),
        Value::Json(document) => {
            let value = json_value(ctx, document, "DATE", mode(ctx, zeros))?;
            return datetime(ctx, &value, zeros, expected);
        }
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            let (number, mode) = (kit::decimal(value), mode(ctx, zeros));
            if let (Some(date), false) = (date_without_month(&number), mode.no_zero_in_date) {
                return Some(ReadDateTime { at: date.at_midnight(), date_only: true });
            }
            datetime_from_decimal(&number, 6, mode)
        }
    };
    let Some(at) = parsed.value else {
        match (expected, value) {
            (Expected::Date, Value::Bytes(_)) => ctx.warn_truncated("date", &shown(value)),
            _ => warn_incorrect_datetime(ctx, &shown(value)),
        }
        return None;
    };
    if parsed.truncated {
        let kind = if expected == Expected::Date || parsed.date_only { "date" } else { "datetime" };
        ctx.warn_truncated(kind, &shown(value));
    }
    // A zone offset moves the value into the session's zone.
    let at = match parsed.offset {
        Some(seconds) => {
            let utc =
                at.to_unix_micros()? - i64::from(seconds) * types::temporal::MICROS_PER_SECOND;
            ctx.time_zone.utc_to_local(utc)
        }
        None => at,
    };
    Some(ReadDateTime { at, date_only: parsed.date_only })
}

/// Reads a DATE.
pub(crate) fn date(ctx: &mut FunctionContext<'_>, value: &Value, zeros: Zeros) -> Option<Date> {
    Some(datetime(ctx, value, zeros, Expected::Date)?.at.date())
}

/// Reads a date that exists; one with zero parts is NULL.
pub(crate) fn real_date(ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Date> {
    date(ctx, value, Zeros::Mode).filter(|date| !date.has_zero_part())
}

/// The current date plus a duration.
pub(crate) fn today_at(ctx: &FunctionContext<'_>, time: Time) -> Option<DateTime> {
    ctx.now.date().at_midnight().add_micros(time.micros())
}

/// A duration or a datetime.
#[derive(Clone, Copy)]
pub(crate) enum Clock {
    Time(Time),
    DateTime(DateTime),
}

impl Clock {
    /// The time of day, or the duration.
    pub(crate) fn time(self) -> Time {
        match self {
            Clock::Time(time) => time,
            Clock::DateTime(at) => at.time(),
        }
    }
}

/// Numbers from here on are datetimes: `YYMMDDHHMMSS`.
const DATETIME_NUMBER_MIN: types::Decimal = types::Decimal::from_i64(10_000_000_000);

/// Whether a text is a date and time rather than a duration.
fn looks_like_datetime(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let separator = text.get(digits);
    let full = digits >= 12;
    let date = digits > 0 && matches!(separator, Some(b'-' | b'/'));
    full || (date && text.len() >= 12)
}

/// Reads a duration, or a datetime from a text that is one.
pub(crate) fn clock(ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Clock> {
    let parsed = match value {
        Value::Null => return None,
        Value::Time(time) => return Some(Clock::Time(*time)),
        Value::Date(date) => return Some(Clock::DateTime(date.at_midnight())),
        Value::DateTime(at) => return Some(Clock::DateTime(*at)),
        Value::Bytes(text) if looks_like_datetime(text) => {
            let datetime = datetime(ctx, value, Zeros::Mode, Expected::DateTime)?;
            return Some(Clock::DateTime(datetime.at));
        }
        Value::Bytes(text) => parse_time(text, 6, mode(ctx, Zeros::Mode)),
        Value::Json(document) => {
            let value = json_value(ctx, document, "TIME", mode(ctx, Zeros::Mode))?;
            return clock(ctx, &value);
        }
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            let number = kit::decimal(value);
            if number.abs() >= DATETIME_NUMBER_MIN {
                let datetime = datetime(ctx, value, Zeros::Parts, Expected::DateTime)?;
                return Some(Clock::DateTime(datetime.at));
            }
            let parsed = time_from_decimal(&number, 6, mode(ctx, Zeros::Mode));
            if parsed.out_of_range {
                ctx.warn_truncated("time", &shown(value));
                return None;
            }
            parsed
        }
    };
    if parsed.value.is_none() || parsed.truncated || parsed.out_of_range {
        ctx.warn_truncated("time", &shown(value));
    }
    parsed.value.map(Clock::Time)
}

/// Like `clock`, but a date alone counts as a datetime.
pub(crate) fn clock_or_date(ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Clock> {
    if let Value::Bytes(text) = value {
        let dashes = text.iter().skip(1).filter(|byte| **byte == b'-').count();
        let letters = text.first().is_some_and(u8::is_ascii_alphabetic);
        if dashes == 2 || letters {
            let datetime = datetime(ctx, value, Zeros::Mode, Expected::DateTime)?;
            return Some(Clock::DateTime(datetime.at));
        }
    }
    clock(ctx, value)
}

/// Reads a duration; the time of day of a datetime.
pub(crate) fn time(ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Time> {
    clock(ctx, value).map(Clock::time)
}

/// Arguments are read as they are written: ENUM and SET by name.
pub(crate) fn as_written(args: &[ArgInfo]) -> Vec<Coercion> {
    args.iter().map(|arg| kit::named_coercion(&arg.ty)).collect()
}

/// Fractional digits that an argument's value may have.
pub(crate) fn fraction_digits(arg: &ArgInfo) -> u8 {
    match arg.ty.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => arg.ty.decimals.min(6),
        TypeKind::Date | TypeKind::Null | TypeKind::Year | TypeKind::Bit => 0,
        TypeKind::Decimal => arg.ty.decimals.min(6),
        _ if arg.ty.is_integer() => 0,
        _ if arg.ty.is_string() => match &arg.constant {
            Some(value) => text_fraction(kit::bytes(value)),
            None => 6,
        },
        _ => 6,
    }
}

/// Digits after the point of a constant text; 6 when it is not a time at all.
fn text_fraction(text: &[u8]) -> u8 {
    if !text
        .trim_ascii_start()
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'))
    {
        return 6;
    }
    match text.iter().position(|byte| *byte == b'.') {
        Some(at) => {
            text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count().min(6) as u8
        }
        None => 0,
    }
}

fn with_fraction(base: u32, decimals: u8) -> u32 {
    if decimals == 0 { base } else { base + 1 + u32::from(decimals) }
}

pub(crate) fn date_type() -> DataType {
    DataType::new(TypeKind::Date, 10, 0)
}

pub(crate) fn time_type(decimals: u8) -> DataType {
    let decimals = decimals.min(6);
    DataType::new(TypeKind::Time, with_fraction(10, decimals), decimals)
}

pub(crate) fn datetime_type(decimals: u8) -> DataType {
    let decimals = if decimals == NOT_FIXED_DECIMALS { 6 } else { decimals.min(6) };
    DataType::new(TypeKind::DateTime, with_fraction(19, decimals), decimals)
}

pub(crate) fn date_value(date: Option<Date>) -> Value {
    date.map_or(Value::Null, Value::Date)
}

pub(crate) fn time_value(time: Option<Time>) -> Value {
    time.map_or(Value::Null, Value::Time)
}

pub(crate) fn datetime_value(at: Option<DateTime>) -> Value {
    at.map_or(Value::Null, Value::DateTime)
}

pub(crate) fn integer_value(number: Option<i64>) -> Value {
    number.map_or(Value::Null, Value::Int)
}
