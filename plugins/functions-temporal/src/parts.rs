//! Parts of dates and times: YEAR, MONTH, DAYNAME, WEEK, HOUR, EXTRACT and similar functions; DATE, TIME, TIMESTAMP.

use errors::Result;
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole, Growth,
    PartitionUse, ScalarFunction,
};
use types::{DataType, Date, Time, TypeKind, Value};

use crate::language::Language;
use crate::read::{
    self, Clock, Expected, Zeros, date_type, datetime_type, datetime_value, integer_value,
    time_type,
};
use crate::units::Unit;
use crate::week::year_and_week;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("DATE", Arity::exactly(1), "DATE(expr)\nThe date part of expr.", |_, args| {
        Ok(BoundFunction::new(date_type(), read::as_written(args), |ctx, args| {
            Ok(read::date_value(read::date(ctx, &args[0], Zeros::Mode)))
        }))
    }),
    scalar("TIME", Arity::exactly(1), "TIME(expr)\nThe time part of expr.", |_, args| {
        Ok(BoundFunction::new(
            time_type(read::fraction_digits(&args[0])),
            read::as_written(args),
            |ctx, args| {
                Ok(read::time_value(match &args[0] {
                    Value::Int(_)
                    | Value::UInt(_)
                    | Value::Decimal(_)
                    | Value::Bytes(_)
                    | Value::Double(_) => read::time(ctx, &args[0]),
                    other => read::time(ctx, other),
                }))
            },
        ))
    }),
    scalar(
        "TIMESTAMP",
        Arity::between(1, 2),
        "TIMESTAMP(expr1[, expr2])\nexpr1 as a date and time, plus the time expr2.",
        bind_timestamp,
    ),
    scalar("YEAR", Arity::exactly(1), "YEAR(date)\nThe year.", |_, args| {
        let mut ty = DataType::new(TypeKind::Year, 4, 0);
        ty.unsigned = true;
        Ok(BoundFunction::new(ty, read::as_written(args), |ctx, args| {
            let date = read::date(ctx, &args[0], Zeros::Parts);
            Ok(date.map_or(Value::Null, |date| Value::UInt(date.year().into())))
        }))
    })
    .growing(Growth::Growing)
    .partitions_by(PartitionUse::Date),
    scalar("MONTH", Arity::exactly(1), "MONTH(date)\nThe month, 1 to 12.", |_, args| {
        loose(args, 3, |date| date.month())
    })
    .partitions_by(PartitionUse::Date),
    scalar(
        "DAYOFMONTH",
        Arity::exactly(1),
        "DAYOFMONTH(date)\nThe day of the month.",
        |_, args| loose(args, 3, |date| date.day()),
    )
    .partitions_by(PartitionUse::Date)
    .aliases(&["DAY"]),
    scalar("QUARTER", Arity::exactly(1), "QUARTER(date)\nThe quarter, 1 to 4.", |_, args| {
        loose(args, 2, |date| date.month().div_ceil(3))
    })
    .partitions_by(PartitionUse::Date),
    scalar(
        "DAYOFYEAR",
        Arity::exactly(1),
        "DAYOFYEAR(date)\nThe day of the year, 1 to 366.",
        |_, args| strict(args, 4, |date| date.day_of_year().into()),
    )
    .partitions_by(PartitionUse::Date),
    scalar(
        "DAYOFWEEK",
        Arity::exactly(1),
        "DAYOFWEEK(date)\nThe day of the week, 1 for Sunday.",
        |_, args| strict(args, 2, |date| i64::from((date.weekday() + 1) % 7 + 1)),
    )
    .partitions_by(PartitionUse::Date),
    scalar(
        "WEEKDAY",
        Arity::exactly(1),
        "WEEKDAY(date)\nThe day of the week, 0 for Monday.",
        |_, args| strict(args, 2, |date| date.weekday().into()),
    )
    .partitions_by(PartitionUse::Date),
    scalar("TO_DAYS", Arity::exactly(1), "TO_DAYS(date)\nDays since the year 0.", |_, args| {
        strict(args, 8, Date::to_days)
    })
    .growing(Growth::GrowingOrNull)
    .partitions_by(PartitionUse::Date),
    scalar("WEEK", Arity::between(1, 2), "WEEK(date[, mode])\nThe week of the year.", bind_week)
        .role(FunctionRole::Week),
    scalar(
        "WEEKOFYEAR",
        Arity::exactly(1),
        "WEEKOFYEAR(date)\nThe ISO week of the year.",
        |_, args| strict(args, 3, |date| year_and_week(date, 3).1),
    ),
    scalar(
        "YEARWEEK",
        Arity::between(1, 2),
        "YEARWEEK(date[, mode])\nYear and week.",
        bind_yearweek,
    )
    .partitions_by(PartitionUse::Date),
    scalar(
        "DAYNAME",
        Arity::exactly(1),
        "DAYNAME(date)\nThe name of the day of the week.",
        |ctx, args| name(ctx, args, Language::day, false),
    ),
    scalar(
        "MONTHNAME",
        Arity::exactly(1),
        "MONTHNAME(date)\nThe name of the month.",
        |ctx, args| name(ctx, args, Language::month, true),
    ),
    scalar(
        "LAST_DAY",
        Arity::exactly(1),
        "LAST_DAY(date)\nThe last day of the month.",
        |_, args| {
            Ok(BoundFunction::new(date_type(), read::as_written(args), |ctx, args| {
                let date = read::date(ctx, &args[0], Zeros::Parts).filter(|date| date.month() > 0);
                Ok(read::date_value(date.and_then(Date::last_day)))
            }))
        },
    ),
    scalar(
        "TO_SECONDS",
        Arity::exactly(1),
        "TO_SECONDS(expr)\nSeconds since the year 0.",
        |_, args| {
            Ok(BoundFunction::new(
                kit::integer_type(21, true),
                read::as_written(args),
                |ctx, args| {
                    let datetime = read::datetime(ctx, &args[0], Zeros::Mode, Expected::DateTime);
                    let at = datetime
                        .map(|datetime| datetime.at)
                        .filter(|at| !at.date().has_zero_part());
                    Ok(integer_value(at.map(|at| at.to_day_micros().div_euclid(1_000_000))))
                },
            ))
        },
    )
    .growing(Growth::GrowingOrNull)
    .partitions_by(PartitionUse::Date),
    scalar("HOUR", Arity::exactly(1), "HOUR(time)\nThe hour.", |_, args| {
        clock_part(args, 4, |time| time.hour())
    })
    .partitions_by(PartitionUse::Time),
    scalar("MINUTE", Arity::exactly(1), "MINUTE(time)\nThe minute.", |_, args| {
        clock_part(args, 3, |time| time.minute())
    })
    .partitions_by(PartitionUse::Time),
    scalar("SECOND", Arity::exactly(1), "SECOND(time)\nThe second.", |_, args| {
        clock_part(args, 3, |time| time.second())
    })
    .partitions_by(PartitionUse::Time),
    scalar("MICROSECOND", Arity::exactly(1), "MICROSECOND(expr)\nThe microsecond.", |_, args| {
        clock_part(args, 21, |time| time.microsecond())
    })
    .partitions_by(PartitionUse::Time),
    scalar(
        "TIME_TO_SEC",
        Arity::exactly(1),
        "TIME_TO_SEC(time)\nThe time in seconds.",
        |_, args| {
            Ok(BoundFunction::new(
                kit::integer_type(10, true),
                read::as_written(args),
                |ctx, args| {
                    Ok(integer_value(
                        read::time(ctx, &args[0]).map(|time| time.micros() / 1_000_000),
                    ))
                },
            ))
        },
    )
    .partitions_by(PartitionUse::Time),
    scalar(
        "EXTRACT",
        Arity::between(2, 3),
        "EXTRACT(unit FROM date)\nA part of a date or time.",
        bind_extract,
    )
    .role(FunctionRole::Extract)
    .partitions_by(PartitionUse::ByUnit),
];

fn loose(args: &[ArgInfo], length: u32, part: fn(Date) -> u32) -> Result<BoundFunction> {
    Ok(BoundFunction::new(
        kit::integer_type(length, true),
        read::as_written(args),
        move |ctx, args| {
            Ok(integer_value(read::date(ctx, &args[0], Zeros::Parts).map(|date| part(date).into())))
        },
    ))
}

fn strict(args: &[ArgInfo], length: u32, part: fn(Date) -> i64) -> Result<BoundFunction> {
    Ok(BoundFunction::new(
        kit::integer_type(length, true),
        read::as_written(args),
        move |ctx, args| Ok(integer_value(read::real_date(ctx, &args[0]).map(part))),
    ))
}

fn clock_part(args: &[ArgInfo], length: u32, part: fn(Time) -> u32) -> Result<BoundFunction> {
    Ok(BoundFunction::new(
        kit::integer_type(length, true),
        read::as_written(args),
        move |ctx, args| Ok(integer_value(read::time(ctx, &args[0]).map(|time| part(time).into()))),
    ))
}

/// Names have at most nine letters.
fn name(
    ctx: &BindContext,
    args: &[ArgInfo],
    part: fn(&Language, Date) -> Option<&'static str>,
    zero_day: bool,
) -> Result<BoundFunction> {
    let ty = text_type(9, ctx.collation_connection);
    Ok(BoundFunction::new(ty, read::as_written(args), move |ctx, args| {
        let date = if zero_day {
            read::date(ctx, &args[0], Zeros::Parts)
        } else {
            read::real_date(ctx, &args[0])
        };
        let Some(date) = date else { return Ok(Value::Null) };
        Ok(part(Language::of(ctx), date).map_or(Value::Null, Value::text))
    }))
}

fn bind_timestamp(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let digits = args.iter().map(read::fraction_digits).max().unwrap_or(0);
    Ok(BoundFunction::new(datetime_type(digits), read::as_written(args), |ctx, args| {
        let Some(datetime) = read::datetime(ctx, &args[0], Zeros::Mode, Expected::DateTime) else {
            return Ok(Value::Null);
        };
        let Some(added) = args.get(1) else {
            return Ok(Value::DateTime(datetime.at));
        };
        let added = match read::clock(ctx, added) {
            Some(Clock::Time(time)) => time,
            _ => return Ok(Value::Null),
        };
        let sum = datetime.at.add_micros(added.micros());
        if sum.is_none() {
            read::warn_out_of_range(ctx, "DATETIME", "timestamp", args);
        }
        Ok(datetime_value(sum))
    }))
}

fn bind_week(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(3, true);
    let bound = BoundFunction::new(
        ty,
        vec![kit::named_coercion(&args[0].ty), Coercion::Integer],
        |ctx, args| {
            let mode = args.get(1).map_or(0, |mode| kit::integer(mode) as u32);
            Ok(integer_value(
                read::real_date(ctx, &args[0]).map(|date| year_and_week(date, mode & 7).1),
            ))
        },
    );
    Ok(bound.with_nulls())
}

fn bind_yearweek(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(7, true);
    let bound = BoundFunction::new(
        ty,
        vec![kit::named_coercion(&args[0].ty), Coercion::Integer],
        |ctx, args| {
            let mode = args.get(1).map_or(0, |mode| kit::integer(mode) as u32);
            Ok(integer_value(read::real_date(ctx, &args[0]).map(|date| {
                let (year, week) = year_and_week(date, mode & 7 | 2);
                year * 100 + week
            })))
        },
    );
    Ok(bound.with_nulls())
}

fn bind_extract(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let unit = Unit::of_argument(&args[0])?;
    let ty = kit::integer_type(unit.extract_length(), true);
    let coercions = vec![Coercion::AsIs, kit::named_coercion(&args[1].ty), Coercion::Integer];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        if unit.is_date_part() {
            let zeros = if unit == Unit::Week { Zeros::Mode } else { Zeros::Parts };
            let datetime = read::datetime(ctx, &args[1], zeros, Expected::DateTime);
            // The mode of a week.
            let mode = args.get(2).map_or(0, |mode| kit::integer(mode) as u32);
            return Ok(integer_value(
                datetime.and_then(|datetime| date_part(unit, datetime.at.date(), mode)),
            ));
        }
        Ok(integer_value(match extract_clock(ctx, &args[1]) {
            None => None,
            Some(Clock::Time(time)) => Some(time_part(unit, 0, time)),
            Some(Clock::DateTime(at)) => Some(time_part(unit, at.day().into(), at.time())),
        }))
    }))
}

/// A text of a date alone is midnight of that date.
fn extract_clock(ctx: &mut FunctionContext<'_>, value: &Value) -> Option<Clock> {
    if let Value::Bytes(text) = value {
        let dashes = text.iter().skip(1).filter(|byte| **byte == b'-').count();
        if dashes == 2 {
            return read::datetime(ctx, value, Zeros::Parts, Expected::DateTime)
                .map(|datetime| Clock::DateTime(datetime.at));
        }
    }
    if kit::is_number(value) {
        let datetime = read::datetime(ctx, value, Zeros::Parts, Expected::DateTime);
        return datetime.map(|datetime| Clock::DateTime(datetime.at));
    }
    read::clock(ctx, value)
}

fn date_part(unit: Unit, date: Date, week_mode: u32) -> Option<i64> {
    let (year, month, day) =
        (i64::from(date.year()), i64::from(date.month()), i64::from(date.day()));
    Some(match unit {
        Unit::Year => year,
        Unit::YearMonth => year * 100 + month,
        Unit::Quarter => (month + 2) / 3,
        Unit::Month => month,
        Unit::Week if date.has_zero_part() => return None,
        Unit::Week => year_and_week(date, week_mode & 7).1,
        _ => day,
    })
}

fn time_part(unit: Unit, day: i64, time: Time) -> i64 {
    let (hour, minute) = (i64::from(time.hour()), i64::from(time.minute()));
    let (second, micro) = (i64::from(time.second()), i64::from(time.microsecond()));
    let day_hour = day * 100 + hour;
    let magnitude = match unit {
        Unit::DayHour => day_hour,
        Unit::DayMinute => day_hour * 100 + minute,
        Unit::DaySecond => (day_hour * 100 + minute) * 100 + second,
        Unit::DayMicrosecond => ((day_hour * 100 + minute) * 100 + second) * 1_000_000 + micro,
        Unit::Hour => hour,
        Unit::HourMinute => hour * 100 + minute,
        Unit::HourSecond => (hour * 100 + minute) * 100 + second,
        Unit::HourMicrosecond => ((hour * 100 + minute) * 100 + second) * 1_000_000 + micro,
        Unit::Minute => minute,
        Unit::MinuteSecond => minute * 100 + second,
        Unit::MinuteMicrosecond => (minute * 100 + second) * 1_000_000 + micro,
        Unit::Second => second,
        Unit::SecondMicrosecond => second * 1_000_000 + micro,
        Unit::Microsecond => micro,
        Unit::Year | Unit::YearMonth | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day => 0,
    };
    if time.is_negative() { -magnitude } else { magnitude }
}
