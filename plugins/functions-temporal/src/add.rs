//! Adding intervals: DATE_ADD, DATE_SUB, TIMESTAMPADD, and ADDDATE and SUBDATE with a number of days.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, DatetimeText, FunctionContext,
    FunctionRole, OperatorCall, ScalarFunction,
};
use types::{DataType, DateTime, SqlBytes, Time, TypeKind, Value};

use crate::read::{self, Expected, ReadDateTime, Zeros, date_type, datetime_type, time_type};
use crate::units::{Amount, Unit};

/// The announced characters of a datetime as text, as in the reference.
const TEXT_LENGTH: u32 = 29;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "DATE_ADD_INTERVAL",
        Arity::exactly(3),
        "DATE_ADD(date, INTERVAL expr unit)\ndate plus an interval.",
        |ctx, args| {
            let unit = Unit::of_argument(&args[0])?;
            bind(ctx, unit, &args[1], &args[2], Layout { date: 1, amount: 2, sign: Sign::Plus })
        },
    ).role(FunctionRole::DateAdd).datetime_text(DatetimeText::Always),
    scalar(
        "DATE_SUB_INTERVAL",
        Arity::exactly(3),
        "DATE_SUB(date, INTERVAL expr unit)\ndate minus an interval.",
        |ctx, args| {
            let unit = Unit::of_argument(&args[0])?;
            bind(ctx, unit, &args[1], &args[2], Layout { date: 1, amount: 2, sign: Sign::Minus })
        },
    ).role(FunctionRole::DateSubtract).datetime_text(DatetimeText::Always),
    scalar(
        "TIMESTAMPADD",
        Arity::exactly(3),
        "TIMESTAMPADD(unit, interval, date)\ndate plus an interval.",
        |ctx, args| {
            let unit = Unit::of_argument(&args[0])?;
            bind(ctx, unit, &args[2], &args[1], Layout { date: 2, amount: 1, sign: Sign::Plus })
        },
    ).role(FunctionRole::TimestampAdd).datetime_text(DatetimeText::Always),
    scalar(
        "ADDDATE",
        Arity::exactly(2),
        "ADDDATE(date, days)\ndate plus a number of days.",
        |ctx, args| {
            bind(
                ctx,
                Unit::Day,
                &args[0],
                &args[1],
                Layout { date: 0, amount: 1, sign: Sign::Plus },
            )
        },
    ).role(FunctionRole::Operator(OperatorCall::AddDays)).datetime_text(DatetimeText::Always),
    scalar(
        "SUBDATE",
        Arity::exactly(2),
        "SUBDATE(date, days)\ndate minus a number of days.",
        |ctx, args| {
            bind(
                ctx,
                Unit::Day,
                &args[0],
                &args[1],
                Layout { date: 0, amount: 1, sign: Sign::Minus },
            )
        },
    ).role(FunctionRole::Operator(OperatorCall::SubtractDays)).datetime_text(DatetimeText::Always),
    scalar(
        "MOMENT_NUMBER",
        Arity::exactly(1),
        "MOMENT_NUMBER(text)\nThe number of a datetime that a function has given as text, where a calculation uses it.",
        |_, _| {
            Ok(BoundFunction::new(DataType::double(), vec![Coercion::Text], |_, args| {
                Ok(datetime_number(kit::bytes(&args[0])))
            }))
        },
    ).role(FunctionRole::DatetimeNumber),
];

/// `2024-01-31 10:00:00.5` is 20240131100000.5, `-10:00:00` is -100000.
fn datetime_number(text: &[u8]) -> Value {
    let (negative, rest) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let digits: String = rest
        .iter()
        .filter(|byte| byte.is_ascii_digit() || **byte == b'.')
        .map(|byte| char::from(*byte))
        .collect();
    let number: f64 = digits.parse().unwrap_or(0.0);
    Value::Double(if negative { -number } else { number })
}

#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Plus,
    Minus,
}

/// Positions of the arguments.
#[derive(Clone, Copy)]
struct Layout {
    date: usize,
    amount: usize,
    sign: Sign,
}

/// Type of the result.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Date,
    Time,
    DateTime,
    /// Of a text or number: a text.
    Text,
}

fn bind(
    ctx: &BindContext,
    unit: Unit,
    date: &ArgInfo,
    amount: &ArgInfo,
    layout: Layout,
) -> Result<BoundFunction> {
    let shape = match date.ty.kind {
        TypeKind::Date if unit.has_time() => Shape::DateTime,
        TypeKind::Date => Shape::Date,
        TypeKind::Time if unit.has_time() => Shape::Time,
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => Shape::DateTime,
        _ => Shape::Text,
    };
    let digits = read::fraction_digits(date).max(amount_digits(unit, amount));
    let ty = match shape {
        Shape::Date => date_type(),
        Shape::Time => time_type(digits),
        Shape::DateTime => datetime_type(digits),
        Shape::Text => text_result(ctx),
    };
    // The amount of an ENUM is its number, a date its name.
    let mut coercions = vec![Coercion::AsIs; layout.date.max(layout.amount) + 1];
    coercions[layout.date] = kit::named_coercion(&date.ty);
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let Some(amount) = unit.amount(ctx, &args[layout.amount]) else {
            read::warn_out_of_range(ctx, "DATETIME", "date_add", args);
            return Ok(Value::Null);
        };
        let amount = if layout.sign == Sign::Minus { amount.negated() } else { amount };
        if let (Shape::Time, Value::Time(time)) = (shape, &args[layout.date]) {
            return Ok(add_to_time(ctx, *time, amount, args));
        }
        let datetime = read::datetime(ctx, &args[layout.date], Zeros::Mode, Expected::DateTime);
        Ok(datetime
            .map_or(Value::Null, |datetime| add_to_datetime(ctx, datetime, amount, unit, shape)))
    }))
}

/// Fractional digits of the amount of seconds or microseconds.
fn amount_digits(unit: Unit, amount: &ArgInfo) -> u8 {
    match unit {
        _ if unit.has_microseconds() => 6,
        Unit::Second if amount.ty.is_string() => 6,
        Unit::Second => read::fraction_digits(amount),
        _ => 0,
    }
}

fn add_to_time(ctx: &mut FunctionContext<'_>, time: Time, amount: Amount, args: &[Value]) -> Value {
    let sum = i64::try_from(i128::from(time.micros()) + amount.micros).ok();
    match sum.and_then(Time::from_micros) {
        Some(sum) => Value::Time(sum),
        None => {
            read::warn_out_of_range(ctx, "TIME", "date_add", args);
            Value::Null
        }
    }
}

fn add_to_datetime(
    ctx: &mut FunctionContext<'_>,
    datetime: ReadDateTime,
    amount: Amount,
    unit: Unit,
    shape: Shape,
) -> Value {
    if datetime.at.date().has_zero_part() {
        return Value::Null;
    }
    let sum = if unit.is_months() {
        datetime.at.add_months(amount.months)
    } else {
        i64::try_from(amount.micros).ok().and_then(|micros| datetime.at.add_micros(micros))
    };
    let Some(sum) = sum else {
        ctx.diagnostics.warn(ErrorCode::DATETIME_FUNCTION_OVERFLOW, &[&"datetime"]);
        return Value::Null;
    };
    match shape {
        Shape::Date => Value::Date(sum.date()),
        Shape::Time | Shape::DateTime => Value::DateTime(sum),
        Shape::Text => text_value(sum, datetime.date_only && !unit.has_time()),
    }
}

/// A datetime as text, with a fraction only when it is not zero.
pub(crate) fn text_value(at: DateTime, date_only: bool) -> Value {
    let mut out = Vec::with_capacity(26);
    if date_only {
        at.date().write_text(&mut out);
    } else {
        at.write_text(if at.microsecond() > 0 { 6 } else { 0 }, &mut out);
    }
    Value::Bytes(SqlBytes::from(out))
}

/// A duration as text.
pub(crate) fn time_text_value(time: Time) -> Value {
    let mut out = Vec::with_capacity(17);
    time.write_text(if time.microsecond() > 0 { 6 } else { 0 }, &mut out);
    Value::Bytes(SqlBytes::from(out))
}

/// The type of results that are datetimes or durations as text.
pub(crate) fn text_result(ctx: &BindContext) -> DataType {
    let mut ty = kit::text_type(TEXT_LENGTH.into(), ctx.collation_connection);
    if ty.is_text() {
        ty.kind = TypeKind::Char;
    }
    ty
}
