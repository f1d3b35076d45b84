//! ADDTIME, SUBTIME, TIMEDIFF, PERIOD_ADD, PERIOD_DIFF.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, DatetimeText, ScalarFunction,
};
use types::temporal::TIME_MAX_MICROS;
use types::{Time, TypeKind, Value};

use crate::add::{text_result, text_value, time_text_value};
use crate::read::{self, Clock, datetime_type, time_type};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "ADDTIME",
        Arity::exactly(2),
        "ADDTIME(expr1, expr2)\nexpr1 plus the time expr2.",
        |ctx, args| bind_addtime(ctx, args, "addtime", 1),
    )
    .datetime_text(DatetimeText::Always),
    scalar(
        "SUBTIME",
        Arity::exactly(2),
        "SUBTIME(expr1, expr2)\nexpr1 minus the time expr2.",
        |ctx, args| bind_addtime(ctx, args, "subtime", -1),
    )
    .datetime_text(DatetimeText::Always),
    scalar(
        "TIMEDIFF",
        Arity::exactly(2),
        "TIMEDIFF(expr1, expr2)\nThe time between two times or datetimes.",
        bind_timediff,
    ),
    scalar(
        "PERIOD_ADD",
        Arity::exactly(2),
        "PERIOD_ADD(P, N)\nThe period P (YYYYMM) plus N months.",
        |_, args| {
            bind_period(args, "period_add", |period, months| {
                Some(from_months(to_months(period)?.checked_add(months)?))
            })
        },
    ),
    scalar(
        "PERIOD_DIFF",
        Arity::exactly(2),
        "PERIOD_DIFF(P1, P2)\nMonths between two periods.",
        |_, args| {
            bind_period(args, "period_diff", |left, right| {
                Some(to_months(left)? - to_months(right)?)
            })
        },
    ),
];

fn bind_addtime(
    ctx: &BindContext,
    args: &[ArgInfo],
    name: &'static str,
    sign: i64,
) -> Result<BoundFunction> {
    let digits = args.iter().map(read::fraction_digits).max().unwrap_or(0);
    let ty = match args[0].ty.kind {
        TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp => datetime_type(digits),
        TypeKind::Time => time_type(digits),
        _ => text_result(ctx),
    };
    let as_text = ty.is_string();
    Ok(BoundFunction::new(ty, read::as_written(args), move |ctx, args| {
        let Some(base) = read::clock_or_date(ctx, &args[0]) else { return Ok(Value::Null) };
        let Some(added) = read::clock(ctx, &args[1]) else { return Ok(Value::Null) };
        let micros = sign * added.time().micros();
        Ok(match base {
            Clock::DateTime(at) => match at.add_micros(micros) {
                Some(sum) if as_text => text_value(sum, false),
                Some(sum) => Value::DateTime(sum),
                None => {
                    read::warn_out_of_range(ctx, "DATETIME", name, args);
                    Value::Null
                }
            },
            Clock::Time(time) => {
                let total = time.micros() + micros;
                if total.abs() > TIME_MAX_MICROS {
                    read::warn_out_of_range(ctx, "TIME", name, args);
                    if !as_text {
                        return Ok(Value::Null);
                    }
                }
                let sum = Time::from_micros_clamped(total);
                if as_text { time_text_value(sum) } else { Value::Time(sum) }
            }
        })
    }))
}

fn bind_timediff(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let digits = args.iter().map(read::fraction_digits).max().unwrap_or(0);
    Ok(BoundFunction::new(time_type(digits), read::as_written(args), |ctx, args| {
        let (Some(left), Some(right)) =
            (read::clock_or_date(ctx, &args[0]), read::clock_or_date(ctx, &args[1]))
        else {
            return Ok(Value::Null);
        };
        let micros = match (left, right) {
            (Clock::DateTime(left), Clock::DateTime(right)) => left.micros_since(right),
            (Clock::Time(left), Clock::Time(right)) => left.micros() - right.micros(),
            _ => return Ok(Value::Null),
        };
        if micros.abs() > TIME_MAX_MICROS {
            let seconds = micros.unsigned_abs() / 1_000_000;
            let sign = if micros < 0 { "-" } else { "" };
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            ctx.warn_truncated(
                "time",
                &format!("{sign}{hours:02}:{minutes:02}:{:02}", seconds % 60),
            );
        }
        Ok(Value::Time(Time::from_micros_clamped(micros)))
    }))
}

type Period = fn(i64, i64) -> Option<i64>;

fn bind_period(args: &[ArgInfo], name: &'static str, compute: Period) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Integer], move |_, args| {
        let result = compute(kit::integer_i64(&args[0]), kit::integer_i64(&args[1]));
        result.map(Value::Int).ok_or_else(|| Error::with(ErrorCode::WRONG_ARGUMENTS, &[&name]))
    }))
}

/// Months since the year 0 of `YYYYMM` or `YYMM`.
fn to_months(period: i64) -> Option<i64> {
    let (year, month) = (period / 100, period % 100);
    if period < 0 || !(1..=12).contains(&month) {
        return None;
    }
    let year = match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    };
    year.checked_mul(12)?.checked_add(month - 1)
}

fn from_months(months: i64) -> i64 {
    let year = match months / 12 {
        year @ 0..70 => year + 2000,
        year @ 70..100 => year + 1900,
        year => year,
    };
    year.saturating_mul(100).saturating_add(months % 12 + 1)
}
