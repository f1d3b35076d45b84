//! DATEDIFF and TIMESTAMPDIFF.

use errors::Result;
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, FunctionRole, PartitionUse, ScalarFunction,
};
use types::DateTime;

use crate::read::{self, Expected, Zeros, integer_value};
use crate::units::Unit;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "DATEDIFF",
        Arity::exactly(2),
        "DATEDIFF(expr1, expr2)\nDays from expr2 to expr1.",
        |_, args| {
            Ok(BoundFunction::new(
                kit::integer_type(9, true),
                read::as_written(args),
                |ctx, args| {
                    let (left, right) =
                        (read::real_date(ctx, &args[0]), read::real_date(ctx, &args[1]));
                    Ok(integer_value(
                        left.zip(right).map(|(left, right)| left.to_days() - right.to_days()),
                    ))
                },
            ))
        },
    )
    .partitions_by(PartitionUse::DateOnly),
    scalar(
        "TIMESTAMPDIFF",
        Arity::exactly(3),
        "TIMESTAMPDIFF(unit, expr1, expr2)\nWhole units from expr1 to expr2.",
        bind_timestampdiff,
    )
    .role(FunctionRole::TimestampDiff),
];

fn bind_timestampdiff(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let unit = Unit::of_argument(&args[0])?;
    Ok(BoundFunction::new(kit::integer_type(21, true), read::as_written(args), move |ctx, args| {
        let from = read::datetime(ctx, &args[1], Zeros::Mode, Expected::DateTime);
        let to = read::datetime(ctx, &args[2], Zeros::Mode, Expected::DateTime);
        Ok(integer_value(from.zip(to).map(|(from, to)| difference(unit, from.at, to.at))))
    }))
}

fn difference(unit: Unit, from: DateTime, to: DateTime) -> i64 {
    let micros = to.micros_since(from);
    let seconds = micros / 1_000_000;
    match unit {
        Unit::Year => months(from, to) / 12,
        Unit::Quarter => months(from, to) / 3,
        Unit::Month | Unit::YearMonth => months(from, to),
        Unit::Week => seconds / (7 * 86_400),
        Unit::Day => seconds / 86_400,
        Unit::Hour => seconds / 3_600,
        Unit::Minute => seconds / 60,
        Unit::Second => seconds,
        _ => micros,
    }
}

/// Whole months: a month counts once its day and time of day are reached.
fn months(from: DateTime, to: DateTime) -> i64 {
    if to < from {
        return -months(to, from);
    }
    let count = |at: DateTime| i64::from(at.year()) * 12 + i64::from(at.month());
    let within = |at: DateTime| (at.day(), at.micros_of_day());
    count(to) - count(from) - i64::from(within(to) < within(from))
}
