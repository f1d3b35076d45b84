//! DATE_FORMAT, TIME_FORMAT, GET_FORMAT.

use std::fmt::Write;

use errors::Result;
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    ScalarFunction,
};
use types::{DataType, Date, DateTime, Time, Value};

use crate::language::{ENGLISH, Language};
use crate::read::{self, Expected, Zeros};
use crate::week::year_and_week;

/// Length of a result whose format is not constant, per character of the format.
const VARIABLE_FACTOR: u64 = 10;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "DATE_FORMAT",
        Arity::exactly(2),
        "DATE_FORMAT(date, format)\ndate as text in a format.",
        |ctx, args| {
            let ty = result_type(ctx, &args[1]);
            Ok(BoundFunction::new(
                ty,
                vec![kit::named_coercion(&args[0].ty), Coercion::Text],
                |ctx, args| match read::datetime(ctx, &args[0], Zeros::Parts, Expected::DateTime) {
                    Some(datetime) => format_datetime(ctx, datetime.at, &args[1]),
                    None => Ok(Value::Null),
                },
            ))
        },
    ),
    scalar(
        "TIME_FORMAT",
        Arity::exactly(2),
        "TIME_FORMAT(time, format)\ntime as text in a format.",
        |ctx, args| {
            let ty = result_type(ctx, &args[1]);
            Ok(BoundFunction::new(
                ty,
                vec![kit::named_coercion(&args[0].ty), Coercion::Text],
                |ctx, args| match read::clock_or_date(ctx, &args[0]) {
                    Some(clock) => finish(ctx, Date::ZERO, clock.time(), &args[1]),
                    None => Ok(Value::Null),
                },
            ))
        },
    ),
    scalar(
        "GET_FORMAT",
        Arity::exactly(2),
        "GET_FORMAT({DATE|TIME|DATETIME}, standard)\nThe format of a standard.",
        bind_get_format,
    )
    .role(FunctionRole::GetFormat),
];

/// The type of a formatted text.
pub(crate) fn result_type(ctx: &BindContext, format: &ArgInfo) -> DataType {
    let length = match &format.constant {
        Some(constant) => format_length(&kit::text(constant)),
        None => kit::text_length(&format.ty).saturating_mul(VARIABLE_FACTOR),
    };
    text_type(length, ctx.collation_connection)
}

fn format_length(format: &str) -> u64 {
    let mut length = 0;
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        let specifier = if c == '%' { rest.next() } else { None };
        length += match specifier {
            None => 1,
            Some('M' | 'W') => 64,
            Some('D' | 'Y' | 'x' | 'X') => 4,
            Some('a' | 'b') => 32,
            Some('j') => 3,
            Some(
                'u' | 'U' | 'v' | 'V' | 'y' | 'm' | 'd' | 'h' | 'i' | 'I' | 'l' | 'p' | 'S' | 's'
                | 'c' | 'e',
            ) => 2,
            Some('k' | 'H') => 7,
            Some('r') => 11,
            Some('T') => 8,
            Some('f') => 6,
            Some(_) => 1,
        };
    }
    length
}

/// A datetime in a format.
pub(crate) fn format_datetime(
    ctx: &mut FunctionContext<'_>,
    at: DateTime,
    format: &Value,
) -> Result<Value> {
    finish(ctx, at.date(), at.time(), format)
}

/// An empty format gives NULL.
fn finish(ctx: &mut FunctionContext<'_>, date: Date, time: Time, format: &Value) -> Result<Value> {
    let format = kit::text(format);
    if format.is_empty() {
        return Ok(Value::Null);
    }
    // No specifier writes more than 11 bytes.
    if !ctx.fits_packet("date_format", format.len() as u64) {
        return Ok(Value::Null);
    }
    let named = ["%M", "%b", "%W", "%a"].iter().any(|names| format.contains(names));
    let language = if named { Language::of(ctx) } else { &ENGLISH };
    Ok(formatted(date, time, &format, language)
        .map_or(Value::Null, |text| Value::from(text.as_str())))
}

fn formatted(date: Date, time: Time, format: &str, language: &Language) -> Option<String> {
    let mut out = String::with_capacity(format.len() * 2);
    if time.is_negative() {
        out.push('-');
    }
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        match if c == '%' { rest.next() } else { None } {
            Some(specifier) => write_part(&mut out, specifier, date, time, language)?,
            None => out.push(c),
        }
    }
    Some(out)
}

fn suffix(day: u32) -> &'static str {
    match (day % 100, day % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

/// `None` when the part does not exist.
fn write_part(
    out: &mut String,
    specifier: char,
    date: Date,
    time: Time,
    language: &Language,
) -> Option<()> {
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    let hour12 = (hour % 24 + 11) % 12 + 1;
    let half = if hour % 24 < 12 { "AM" } else { "PM" };
    let exists = !date.has_zero_part();
    let week = |mode| exists.then(|| year_and_week(date, mode));
    // Writing to a string does not fail.
    let _ = match specifier {
        'M' => write!(out, "{}", language.month(date)?),
        'b' => write!(out, "{}", language.short_month(date)?),
        'W' if exists => write!(out, "{}", language.day(date)?),
        'a' if exists => write!(out, "{}", language.short_day(date)?),
        'W' | 'a' => return None,
        'D' => write!(out, "{}{}", date.day(), suffix(date.day())),
        'Y' => write!(out, "{:04}", date.year()),
        'y' => write!(out, "{:02}", date.year() % 100),
        'm' => write!(out, "{:02}", date.month()),
        'c' => write!(out, "{}", date.month()),
        'd' => write!(out, "{:02}", date.day()),
        'e' => write!(out, "{}", date.day()),
        'j' => write!(out, "{:03}", exists.then(|| date.day_of_year())?),
        'H' => write!(out, "{hour:02}"),
        'k' => write!(out, "{hour}"),
        'h' | 'I' => write!(out, "{hour12:02}"),
        'l' => write!(out, "{hour12}"),
        'i' => write!(out, "{minute:02}"),
        's' | 'S' => write!(out, "{second:02}"),
        'f' => write!(out, "{:06}", time.microsecond()),
        'p' => write!(out, "{half}"),
        'r' => write!(out, "{hour12:02}:{minute:02}:{second:02} {half}"),
        'T' => write!(out, "{hour:02}:{minute:02}:{second:02}"),
        'U' => write!(out, "{:02}", week(0)?.1),
        'u' => write!(out, "{:02}", week(1)?.1),
        'V' => write!(out, "{:02}", week(2)?.1),
        'v' => write!(out, "{:02}", week(3)?.1),
        'X' => write!(out, "{:04}", week(2)?.0),
        'x' => write!(out, "{:04}", week(3)?.0),
        'w' => write!(out, "{}", exists.then(|| (date.weekday() + 1) % 7)?),
        other => write!(out, "{other}"),
    };
    Some(())
}

/// Formats for DATE, TIME and DATETIME.
const STANDARDS: &[(&str, [&str; 3])] = &[
    ("USA", ["%m.%d.%Y", "%h:%i:%s %p", "%Y-%m-%d %H.%i.%s"]),
    ("JIS", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
    ("ISO", ["%Y-%m-%d", "%H:%i:%s", "%Y-%m-%d %H:%i:%s"]),
    ("EUR", ["%d.%m.%Y", "%H.%i.%s", "%Y-%m-%d %H.%i.%s"]),
    ("INTERNAL", ["%Y%m%d", "%H%i%s", "%Y%m%d%H%i%s"]),
];

fn bind_get_format(ctx: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(17, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        let kind = match kit::text(&args[0]).to_ascii_uppercase().as_str() {
            "DATE" => 0,
            "TIME" => 1,
            _ => 2,
        };
        let wanted = kit::text(&args[1]);
        let found = STANDARDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&wanted));
        Ok(found.map_or(Value::Null, |(_, formats)| Value::text(formats[kind])))
    }))
}
