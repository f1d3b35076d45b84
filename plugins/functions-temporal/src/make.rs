//! MAKEDATE, MAKETIME, FROM_DAYS, SEC_TO_TIME.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::temporal::TIME_MAX_MICROS;
use types::{Date, Time, Value};

use crate::read::{self, date_type, date_value, time_type};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "MAKEDATE",
        Arity::exactly(2),
        "MAKEDATE(year, dayofyear)\nThe date of a day of a year.",
        |_, _| {
            Ok(BoundFunction::new(date_type(), vec![Coercion::Integer], |_, args| {
                Ok(date_value(make_date(kit::integer_i64(&args[0]), kit::integer_i64(&args[1]))))
            }))
        },
    )
    .numbers(Arguments::ALL),
    scalar(
        "MAKETIME",
        Arity::exactly(3),
        "MAKETIME(hour, minute, second)\nA time of its parts.",
        bind_maketime,
    )
    .numbers(Arguments::ALL),
    scalar("FROM_DAYS", Arity::exactly(1), "FROM_DAYS(N)\nThe date of a day number.", |_, _| {
        Ok(BoundFunction::new(date_type(), vec![Coercion::Integer], |ctx, args| {
            let date = Date::from_days(kit::integer_i64(&args[0]));
            if date.is_none() {
                read::warn_out_of_range(ctx, "DATE", "from_days", args);
            }
            Ok(date_value(date))
        }))
    })
    .numbers(Arguments::ALL),
    scalar(
        "SEC_TO_TIME",
        Arity::exactly(1),
        "SEC_TO_TIME(seconds)\nA time of a number of seconds.",
        bind_sec_to_time,
    )
    .numbers(Arguments::ALL),
];

fn make_date(year: i64, day: i64) -> Option<Date> {
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        100..10_000 => year,
        _ => return None,
    };
    if day <= 0 {
        return None;
    }
    let first = Date::new(year as u32, 1, 1)?;
    Date::from_days(first.to_days().checked_add(day - 1)?)
}

fn bind_maketime(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let digits = read::fraction_digits(&ArgInfo { constant: None, ..args[2].clone() });
    let coercions = vec![Coercion::Integer, Coercion::Integer, Coercion::Decimal];
    Ok(BoundFunction::new(time_type(digits), coercions, |ctx, args| {
        let (hour, minute) = (kit::integer(&args[0]), kit::integer(&args[1]));
        let written = kit::decimal(&args[2]);
        let Some((second, _)) = written.round(6).rescale(6).as_i128() else {
            return Ok(Value::Null);
        };
        // Seconds are judged before they are rounded: 59.9999995 begins the next minute.
        let whole = written.truncate(0).to_i64().0;
        if !(0..60).contains(&minute) || !(0..60).contains(&whole) || second < 0 {
            return Ok(Value::Null);
        }
        let magnitude = (hour.abs() * 3600 + minute * 60) * 1_000_000 + second;
        if magnitude > i128::from(TIME_MAX_MICROS) {
            let shown = kit::decimal(&args[2]).to_string();
            let width = if shown.find('.').unwrap_or(shown.len()) < 2 { "0" } else { "" };
            ctx.warn_truncated("time", &format!("{:02}:{minute:02}:{width}{shown}", hour.abs()));
        }
        let magnitude = magnitude.min(i128::from(TIME_MAX_MICROS)) as i64;
        Ok(Value::Time(Time::from_micros_clamped(if hour < 0 { -magnitude } else { magnitude })))
    }))
}

fn bind_sec_to_time(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let digits = read::fraction_digits(&ArgInfo { constant: None, ..args[0].clone() });
    Ok(BoundFunction::new(time_type(digits), vec![Coercion::Decimal], |ctx, args| {
        let seconds = kit::decimal(&args[0]);
        let micros = seconds.round(6).rescale(6).as_i128().map(|(micros, _)| micros);
        let limit = i128::from(TIME_MAX_MICROS);
        let clamped = micros
            .map_or(if seconds.is_negative() { -limit } else { limit }, |m| m.clamp(-limit, limit));
        if micros != Some(clamped) {
            ctx.warn_truncated("time", &seconds.to_string());
        }
        Ok(Value::Time(Time::from_micros_clamped(clamped as i64)))
    }))
}
