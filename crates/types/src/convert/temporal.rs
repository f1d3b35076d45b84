//! Values as dates and times.

use errors::ErrorCode;

use super::{CastContext, text_for_message};
use crate::json::{JsonRef, JsonType};
use crate::temporal::{
    ParsedTemporal, datetime_from_decimal, datetime_from_number, parse_datetime, parse_time,
    time_from_decimal, time_from_number,
};
use crate::{DataType, Date, DateTime, Decimal, TemporalMode, Time, Value};

/// Warning about a value that is not a DATETIME: its wording differs from those for other types.
fn warn_incorrect(kind: &str, text: &[u8], ctx: &mut CastContext<'_>) {
    let message = format!("Incorrect {kind} value: '{}'", text_for_message(text));
    ctx.warn_message(ErrorCode::TRUNCATED_WRONG_VALUE, message);
}

fn plain_text(value: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    text
}

/// Warnings about delimiters that are still accepted.
pub(super) fn warn_delimiters<T>(
    parsed: &ParsedTemporal<T>,
    text: &[u8],
    ctx: &mut CastContext<'_>,
) {
    if parsed.value.is_none() {
        return;
    }
    let shown = text_for_message(text).into_owned();
    let row = ctx.row;
    if let Some((found, at, wanted)) = parsed.odd_delimiter {
        let (found, wanted) = (char::from(found), char::from(wanted));
        let message = format!(
            "Delimiter '{found}' in position {at} in datetime value '{shown}' at row {row} is \
             deprecated. Prefer the standard '{wanted}'."
        );
        ctx.warn_message(ErrorCode(4095), message);
    } else if let Some(at) = parsed.superfluous_blank {
        let found = char::from(text.get(at).copied().unwrap_or(b' '));
        let message = format!(
            "Delimiter '{found}' in position {at} in datetime value '{shown}' at row {row} is \
             superfluous and is deprecated. Please remove."
        );
        ctx.warn_message(ErrorCode(4096), message);
    }
}

/// Converts a text with an offset to the session's zone.
pub(super) fn apply_offset(
    datetime: DateTime,
    offset: Option<i32>,
    ctx: &CastContext<'_>,
) -> Option<DateTime> {
    let Some(offset) = offset else { return Some(datetime) };
    let utc = datetime.to_unix_micros()? - i64::from(offset) * 1_000_000;
    Some(ctx.time_zone.utc_to_local(utc))
}

/// A duration from midnight of the current day.
pub(super) fn time_on_today(time: Time, fsp: u8, ctx: &CastContext<'_>) -> Option<DateTime> {
    let time = time.round_fsp(fsp);
    ctx.today.at_midnight().add_micros(time.micros())
}

/// A JSON scalar as a time, or as a date: a time is no date, a date no time, and a text that names a time has a colon.
pub fn json_as_temporal(document: &[u8], is_time: bool, mode: TemporalMode) -> Option<Value> {
    let value = JsonRef::new(document);
    match value.kind() {
        JsonType::Time if is_time => value.as_time().map(Value::Time),
        JsonType::Date if !is_time => value.as_date().map(Value::Date),
        JsonType::DateTime if !is_time => value.as_datetime().map(Value::DateTime),
        JsonType::String => {
            let text = value.as_bytes().unwrap_or(b"");
            if !is_time {
                parse_datetime(text, 6, mode).value.map(Value::DateTime)
            } else if text.contains(&b':') {
                parse_time(text, 6, mode).value.map(Value::Time)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// The same with a warning when it is none of that kind.
fn json_temporal(document: &[u8], target: &str, ctx: &mut CastContext<'_>) -> Option<Value> {
    let found = json_as_temporal(document, target == "TIME", ctx.sql_mode.temporal());
    if found.is_none() {
        let column = if ctx.column.is_empty() { "cast_as_json" } else { ctx.column };
        let args: [&dyn std::fmt::Display; 3] = [&target, &column, &ctx.row];
        ctx.diagnostics.warn(ErrorCode::INVALID_JSON_VALUE_FOR_CAST, &args);
    }
    found
}

/// Parses a value as a DATETIME without any warning or error. Numbers and texts only.
pub(super) fn parse_as_datetime(
    value: &Value,
    fsp: u8,
    mode: TemporalMode,
) -> ParsedTemporal<DateTime> {
    match value {
        Value::Int(number) => datetime_from_number(*number, mode),
        Value::UInt(number) => datetime_from_number(i64::try_from(*number).unwrap_or(-1), mode),
        Value::Double(number) => match Decimal::from_f64(*number) {
            Some(decimal) => datetime_from_decimal(&decimal, fsp, mode),
            None => datetime_from_number(-1, mode),
        },
        Value::Decimal(number) => datetime_from_decimal(number, fsp, mode),
        Value::Bytes(text) => parse_datetime(text, fsp, mode),
        _ => datetime_from_number(-1, mode),
    }
}

/// Parses a value as a TIME without any warning or error. Numbers and texts only.
pub(super) fn parse_duration(value: &Value, fsp: u8, mode: TemporalMode) -> ParsedTemporal<Time> {
    match value {
        Value::Int(number) => time_from_number(*number),
        Value::UInt(number) => time_from_number(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Double(number) => {
            let limit = if *number < 0.0 { i64::MIN } else { i64::MAX };
            match Decimal::from_f64(*number) {
                Some(decimal) => time_from_decimal(&decimal, fsp, mode),
                None => time_from_number(limit),
            }
        }
        Value::Decimal(number) => time_from_decimal(number, fsp, mode),
        Value::Bytes(text) => parse_time(text, fsp, mode),
        _ => time_from_number(i64::MAX),
    }
}

/// Whether the mode accepts a DATE value.
fn accepted(date: Date, mode: TemporalMode, ctx: &mut CastContext<'_>) -> bool {
    if crate::temporal::date_is_accepted(date, mode) {
        return true;
    }
    let mut text = Vec::new();
    date.write_text(&mut text);
    warn_incorrect("datetime", &text, ctx);
    false
}

/// Converts to a DATETIME with `fsp` digits; `None` for NULL and, with a warning, for a value that is not one.
pub fn to_datetime(
    value: &Value,
    _ty: &DataType,
    fsp: u8,
    mode: TemporalMode,
    ctx: &mut CastContext<'_>,
) -> Option<DateTime> {
    let fit = |datetime: DateTime| {
        if mode.truncate_fraction {
            Some(datetime.truncate_fsp(fsp))
        } else {
            datetime.round_fsp(fsp)
        }
    };
    match value {
        Value::Null => None,
        Value::DateTime(datetime) => {
            if !accepted(datetime.date(), mode, ctx) {
                return None;
            }
            let fitted = fit(*datetime);
            if fitted.is_none() {
                ctx.diagnostics.warn(ErrorCode::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
            }
            fitted
        }
        Value::Date(date) => accepted(*date, mode, ctx).then(|| date.at_midnight()),
        Value::Time(time) => time_on_today(*time, fsp, ctx),
        Value::Json(document) => match json_temporal(document, "DATETIME/TIMESTAMP", ctx)? {
            Value::DateTime(datetime) => fit(datetime),
            Value::Date(date) => Some(date.at_midnight()),
            _ => None,
        },
        Value::Bytes(text) => {
            let parsed = parse_datetime(text, fsp, mode);
            let datetime =
                parsed.value.and_then(|datetime| apply_offset(datetime, parsed.offset, ctx));
            if datetime.is_none() {
                if parsed.out_of_range {
                    ctx.diagnostics.warn(ErrorCode::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
                } else {
                    warn_incorrect("datetime", text, ctx);
                }
            } else if parsed.truncated {
                ctx.warn_truncated(if parsed.date_only { "date" } else { "datetime" }, text);
            }
            warn_delimiters(&parsed, text, ctx);
            datetime
        }
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            let parsed = parse_as_datetime(value, fsp, mode);
            if parsed.value.is_none() {
                warn_incorrect("datetime", &plain_text(value), ctx);
            }
            parsed.value
        }
    }
}

/// Converts to a DATE; `None` for NULL and, with a warning, for a value that is not one.
pub fn to_date(
    value: &Value,
    _ty: &DataType,
    mode: TemporalMode,
    ctx: &mut CastContext<'_>,
) -> Option<Date> {
    let cut = TemporalMode { truncate_fraction: true, ..mode };
    match value {
        Value::Null => None,
        Value::Date(date) => accepted(*date, mode, ctx).then_some(*date),
        Value::DateTime(datetime) => accepted(datetime.date(), mode, ctx).then(|| datetime.date()),
        Value::Time(time) => time_on_today(*time, 6, ctx).map(DateTime::date),
        Value::Json(document) => match json_temporal(document, "DATE", ctx)? {
            Value::DateTime(datetime) => Some(datetime.date()),
            Value::Date(date) => Some(date),
            _ => None,
        },
        Value::Bytes(text) => {
            let parsed = parse_datetime(text, 6, cut);
            let datetime =
                parsed.value.and_then(|datetime| apply_offset(datetime, parsed.offset, ctx));
            if datetime.is_none() || parsed.truncated {
                ctx.warn_truncated("date", text);
            }
            warn_delimiters(&parsed, text, ctx);
            datetime.map(DateTime::date)
        }
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            let parsed = parse_as_datetime(value, 6, cut);
            if parsed.value.is_none() {
                let small = match value {
                    Value::Double(number) => number.abs() < 9e18,
                    Value::Decimal(_) => false,
                    _ => true,
                };
                if small {
                    warn_incorrect("datetime", &plain_text(value), ctx);
                } else {
                    ctx.warn_truncated("date", &plain_text(value));
                }
            }
            parsed.value.map(DateTime::date)
        }
    }
}

/// Converts to a TIME with `fsp` digits; `None` for NULL and, with a warning, for a value that is not one.
pub fn to_time(
    value: &Value,
    _ty: &DataType,
    fsp: u8,
    mode: TemporalMode,
    ctx: &mut CastContext<'_>,
) -> Option<Time> {
    let fit = |time: Time| {
        if mode.truncate_fraction { time.truncate_fsp(fsp) } else { time.round_fsp(fsp) }
    };
    match value {
        Value::Null => None,
        Value::Time(time) => Some(fit(*time)),
        Value::DateTime(datetime) => Some(fit(datetime.time())),
        Value::Date(_) => Some(Time::ZERO),
        Value::Json(document) => match json_temporal(document, "TIME", ctx)? {
            Value::Time(time) => Some(fit(time)),
            _ => None,
        },
        Value::Bytes(text) => {
            let parsed = parse_time(text, fsp, mode);
            if parsed.value.is_none() || parsed.truncated || parsed.out_of_range {
                ctx.warn_truncated("time", text);
            }
            warn_delimiters(&parsed, text, ctx);
            parsed.value
        }
        Value::Int(_) | Value::UInt(_) | Value::Double(_) | Value::Decimal(_) => {
            // Unsigned numbers wrap here.
            let signed = match value {
                Value::UInt(number) => Value::Int(*number as i64),
                other => other.clone(),
            };
            let parsed = parse_duration(&signed, fsp, mode);
            if parsed.value.is_none() || parsed.out_of_range {
                ctx.warn_truncated("time", &plain_text(value));
                return None;
            }
            parsed.value
        }
    }
}
