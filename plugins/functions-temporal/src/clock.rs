//! NOW, CURDATE, CURTIME, SYSDATE and their UTC forms.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, FunctionRole, ScalarFunction,
};
use types::temporal::MICROS_PER_SECOND;
use types::{DataType, DateTime, TypeKind, Value};

use crate::read::{date_type, datetime_type};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("NOW", Arity::between(0, 1), "NOW([fsp])\nWhen the statement began.", |_, args| {
        timestamp(args, "now", |ctx| ctx.now)
    })
    .role(FunctionRole::Now)
    .aliases(&["CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"])
    .stable(),
    scalar("SYSDATE", Arity::between(0, 1), "SYSDATE([fsp])\nThe time of the call.", |_, args| {
        timestamp(args, "sysdate", |ctx| ctx.time_zone.utc_to_local(clock_micros()))
    })
    .volatile(),
    scalar(
        "UTC_TIMESTAMP",
        Arity::between(0, 1),
        "UTC_TIMESTAMP([fsp])\nWhen the statement began, in UTC.",
        |_, args| timestamp(args, "utc_timestamp", utc),
    )
    .stable(),
    scalar("CURDATE", Arity::exactly(0), "CURDATE()\nThe current date.", |_, _| {
        Ok(BoundFunction::new(date_type().with_nullable(false), vec![], |ctx, _| {
            Ok(Value::Date(ctx.now.date()))
        }))
    })
    .aliases(&["CURRENT_DATE"])
    .stable(),
    scalar("UTC_DATE", Arity::exactly(0), "UTC_DATE()\nThe current date in UTC.", |_, _| {
        Ok(BoundFunction::new(date_type().with_nullable(false), vec![], |ctx, _| {
            Ok(Value::Date(utc(ctx).date()))
        }))
    })
    .stable(),
    scalar(
        "CURTIME",
        Arity::between(0, 1),
        "CURTIME([fsp])\nThe current time of day.",
        |_, args| time_of_day(args, "curtime", |ctx| ctx.now),
    )
    .aliases(&["CURRENT_TIME"])
    .stable(),
    scalar(
        "UTC_TIME",
        Arity::between(0, 1),
        "UTC_TIME([fsp])\nThe current time of day in UTC.",
        |_, args| time_of_day(args, "utc_time", utc),
    )
    .stable(),
];

fn utc(ctx: &FunctionContext<'_>) -> DateTime {
    DateTime::from_unix_micros(ctx.now_micros).unwrap_or(DateTime::ZERO)
}

/// Microseconds since 1970 by the system's clock; only SYSDATE reads it.
fn clock_micros() -> i64 {
    i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX)
}

/// The constant number of fractional digits.
fn digits(args: &[ArgInfo], name: &str) -> Result<u8> {
    let digits = args.first().and_then(|arg| arg.constant.as_ref()).map_or(0, kit::integer);
    if digits > 6 {
        return Err(Error::with(ErrorCode::TOO_BIG_PRECISION, &[&digits, &name, &6]));
    }
    Ok(digits.clamp(0, 6) as u8)
}

type Source = fn(&FunctionContext<'_>) -> DateTime;

fn timestamp(args: &[ArgInfo], name: &str, source: Source) -> Result<BoundFunction> {
    let digits = digits(args, name)?;
    let ty = datetime_type(digits).with_nullable(false);
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], move |ctx, _| {
        Ok(Value::DateTime(source(ctx).truncate_fsp(digits)))
    }))
}

fn time_of_day(args: &[ArgInfo], name: &str, source: Source) -> Result<BoundFunction> {
    let digits = digits(args, name)?;
    let length = if digits == 0 { 8 } else { 9 + u32::from(digits) };
    let ty = DataType::new(TypeKind::Time, length, digits).with_nullable(false);
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], move |ctx, _| {
        Ok(Value::Time(source(ctx).truncate_fsp(digits).time()))
    }))
}

/// Whole seconds since 1970 at the start of the statement.
pub(crate) fn unix_seconds(ctx: &FunctionContext<'_>) -> i64 {
    ctx.now_micros.div_euclid(MICROS_PER_SECOND)
}
