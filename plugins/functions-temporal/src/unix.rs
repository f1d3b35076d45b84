//! Seconds since 1970 and time zones: UNIX_TIMESTAMP, FROM_UNIXTIME, CONVERT_TZ.

use std::sync::Arc;

use errors::Result;
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    PartitionUse, ScalarFunction,
};
use types::temporal::MICROS_PER_SECOND;
use types::{DataType, DateTime, Decimal, FixedOffset, Value, ZoneRules};

use crate::clock::unix_seconds;
use crate::format::{self, format_datetime};
use crate::read::{self, Expected, Zeros, datetime_type, datetime_value};

/// The last second that timestamps reach: 3001-01-18 23:59:59 UTC.
const UNIX_SECONDS_MAX: i64 = 32_536_771_199;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "UNIX_TIMESTAMP",
        Arity::between(0, 1),
        "UNIX_TIMESTAMP([date])\nSeconds since 1970 in UTC.",
        bind_unix_timestamp,
    )
    .role(FunctionRole::UnixTimestamp)
    .partitions_by(PartitionUse::Timestamp)
    .stable(),
    scalar(
        "FROM_UNIXTIME",
        Arity::between(1, 2),
        "FROM_UNIXTIME(seconds[, format])\nThe date and time of a number of seconds since 1970.",
        bind_from_unixtime,
    )
    .numbers(Arguments::ALL)
    .stable()
    .in_definitions(),
    scalar(
        "CONVERT_TZ",
        Arity::exactly(3),
        "CONVERT_TZ(dt, from_tz, to_tz)\ndt in another time zone.",
        bind_convert_tz,
    )
    .stable()
    .in_definitions(),
];

fn bind_unix_timestamp(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let Some(arg) = args.first() else {
        let ty = kit::integer_type(21, false);
        return Ok(BoundFunction::new(ty, vec![], |ctx, _| Ok(Value::Int(unix_seconds(ctx)))));
    };
    let digits = read::fraction_digits(arg);
    let ty = match digits {
        0 => kit::integer_type(21, true),
        digits => DataType::decimal(11 + u32::from(digits), digits),
    };
    let ty = ty.with_nullable(any_nullable(args));
    Ok(BoundFunction::new(ty, read::as_written(args), move |ctx, args| {
        let micros = unix_micros(ctx, &args[0]);
        Ok(match digits {
            0 => Value::Int(micros / MICROS_PER_SECOND),
            digits => Value::Decimal(
                Decimal::from_i128(micros.into(), 6).truncate(digits.into()).rescale(digits),
            ),
        })
    }))
}

/// 0 for a value that is not a datetime or lies beyond the range of timestamps.
fn unix_micros(ctx: &mut FunctionContext<'_>, value: &Value) -> i64 {
    let datetime = read::datetime(ctx, value, Zeros::Mode, Expected::DateTime);
    let micros = datetime.and_then(|datetime| ctx.time_zone.local_to_utc(datetime.at)).unwrap_or(0);
    let last = UNIX_SECONDS_MAX * MICROS_PER_SECOND + MICROS_PER_SECOND - 1;
    if (0..=last).contains(&micros) { micros } else { 0 }
}

fn bind_from_unixtime(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let digits = read::fraction_digits(&ArgInfo { constant: None, ..args[0].clone() });
    let ty = match args.get(1) {
        Some(format) => format::result_type(ctx, format),
        None => datetime_type(digits),
    };
    let coercions = vec![Coercion::Decimal, Coercion::Text];
    Ok(BoundFunction::new(ty, coercions, |ctx, args| {
        let micros =
            kit::decimal(&args[0]).round(6).rescale(6).as_i128().map_or(-1, |(micros, _)| micros);
        let last = i128::from(UNIX_SECONDS_MAX) * 1_000_000 + 999_999;
        if !(0..=last).contains(&micros) {
            return Ok(Value::Null);
        }
        let at = ctx.time_zone.utc_to_local(micros as i64);
        match args.get(1) {
            Some(format) => format_datetime(ctx, at, format),
            None => Ok(Value::DateTime(at)),
        }
    }))
}

fn bind_convert_tz(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = datetime_type(read::fraction_digits(&args[0]));
    let coercions = vec![kit::named_coercion(&args[0].ty), Coercion::Text, Coercion::Text];
    Ok(BoundFunction::new(ty, coercions, |ctx, args| {
        let Some(datetime) = read::datetime(ctx, &args[0], Zeros::Mode, Expected::DateTime) else {
            return Ok(Value::Null);
        };
        let (from, to) = (zone(ctx, &kit::text(&args[1])), zone(ctx, &kit::text(&args[2])));
        let (Some(from), Some(to)) = (from, to) else { return Ok(Value::Null) };
        Ok(datetime_value(convert(datetime.at, from.as_ref(), to.as_ref())))
    }))
}

/// A datetime outside the range of timestamps stays unchanged.
fn convert(at: DateTime, from: &dyn ZoneRules, to: &dyn ZoneRules) -> Option<DateTime> {
    let micros = from.local_to_utc(at)?;
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    if !(1..=UNIX_SECONDS_MAX).contains(&seconds) {
        return Some(at);
    }
    Some(to.utc_to_local(micros))
}

fn zone(ctx: &FunctionContext<'_>, name: &str) -> Option<Arc<dyn ZoneRules>> {
    if let Some(offset) = FixedOffset::parse(name) {
        return Some(Arc::new(offset));
    }
    ctx.session.time_zone(name)
}
