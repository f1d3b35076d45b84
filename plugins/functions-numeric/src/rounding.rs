//! CEILING, FLOOR, ROUND and TRUNCATE.

use errors::Result;
use plugin_api::kit::{self, NumberClass, any_nullable, number_class, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, PartitionUse, ScalarFunction,
};
use types::{DataType, Value};

/// Decimals with this many printed characters before the point stay decimals when truncated to integers: a BIGINT might not hold them.
const INTEGER_CHARACTERS: u32 = 20;
/// Most fractional digits of a decimal.
const SCALE_MAX: i64 = 30;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "CEILING",
        Arity::exactly(1),
        "CEILING(X)\nThe smallest integer not less than X.",
        bind_ceiling,
    )
    .numbers(Arguments::ALL)
    .partitions_by(PartitionUse::Any)
    .aliases(&["CEIL"]),
    scalar(
        "FLOOR",
        Arity::exactly(1),
        "FLOOR(X)\nThe largest integer not greater than X.",
        bind_floor,
    )
    .numbers(Arguments::ALL)
    .partitions_by(PartitionUse::Any),
    scalar(
        "ROUND",
        Arity::between(1, 2),
        "ROUND(X[, D])\nX rounded to D digits after the point; D may be negative.",
        bind_round,
    )
    .numbers(Arguments::ALL),
    scalar(
        "TRUNCATE",
        Arity::exactly(2),
        "TRUNCATE(X, D)\nX cut to D digits after the point; D may be negative.",
        bind_truncate,
    )
    .numbers(Arguments::ALL),
];

/// Direction of CEILING and FLOOR.
#[derive(Clone, Copy)]
enum Towards {
    Up,
    Down,
}

fn bind_ceiling(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(bind_integer(Towards::Up, args))
}

fn bind_floor(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(bind_integer(Towards::Down, args))
}

fn bind_integer(towards: Towards, args: &[ArgInfo]) -> BoundFunction {
    let arg = &args[0].ty;
    let nullable = any_nullable(args);
    match number_class(arg) {
        NumberClass::Integer { unsigned } => {
            let mut ty = kit::integer_type(21, nullable);
            ty.unsigned = unsigned;
            BoundFunction::new(ty, vec![Coercion::Integer], |_, args| Ok(args[0].clone()))
        }
        NumberClass::Decimal => {
            let whole = arg.length.saturating_sub(u32::from(arg.decimals));
            let printed = whole + 1 + u32::from(arg.decimals > 0);
            let stays = printed >= INTEGER_CHARACTERS;
            let ty = if stays {
                DataType::decimal((whole + 1).min(65), 0)
            } else {
                kit::integer_type(21, true)
            };
            BoundFunction::new(
                ty.with_nullable(nullable),
                vec![Coercion::Decimal],
                move |_, args| {
                    let number = kit::decimal(&args[0]);
                    let result = match towards {
                        Towards::Up => number.ceil(),
                        Towards::Down => number.floor(),
                    };
                    Ok(if stays { Value::Decimal(result) } else { Value::Int(result.to_i64().0) })
                },
            )
        }
        NumberClass::Double => {
            let ty = DataType::double().with_nullable(nullable);
            BoundFunction::new(ty, vec![Coercion::Double], move |_, args| {
                let number = kit::double(&args[0]);
                let result = match towards {
                    Towards::Up => number.ceil(),
                    Towards::Down => number.floor(),
                };
                Ok(Value::Double(result))
            })
        }
    }
}

/// Treatment of the dropped digits.
#[derive(Clone, Copy, PartialEq)]
enum Rest {
    Rounded,
    Cut,
}

fn bind_round(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(bind_digits(Rest::Rounded, args))
}

fn bind_truncate(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(bind_digits(Rest::Cut, args))
}

fn digits_of(args: &[Value]) -> i64 {
    args.get(1).map_or(0, kit::integer_i64)
}

fn bind_digits(rest: Rest, args: &[ArgInfo]) -> BoundFunction {
    let arg = &args[0].ty;
    let nullable = any_nullable(args);
    match number_class(arg) {
        NumberClass::Integer { unsigned } => {
            let mut ty = kit::integer_type(21, nullable);
            ty.unsigned = unsigned;
            BoundFunction::new(ty, vec![Coercion::Integer], move |_, args| {
                round_integer(rest, args)
            })
        }
        NumberClass::Decimal => {
            let ty = rounded_decimal_type(rest, args);
            let scale_max = i64::from(ty.decimals);
            let coercions = vec![Coercion::Decimal, Coercion::Integer];
            BoundFunction::new(ty.with_nullable(nullable), coercions, move |_, args| {
                let digits = digits_of(args).clamp(-100, SCALE_MAX.min(scale_max)) as i32;
                let number = kit::decimal(&args[0]);
                let result = match rest {
                    Rest::Rounded => number.round(digits),
                    Rest::Cut => number.truncate(digits),
                };
                Ok(Value::Decimal(result.rescale(scale_max as u8)))
            })
        }
        NumberClass::Double => {
            let ty = DataType::double().with_nullable(nullable);
            BoundFunction::new(ty, vec![Coercion::Double, Coercion::Integer], move |_, args| {
                Ok(Value::Double(round_double(rest, kit::double(&args[0]), digits_of(args))))
            })
        }
    }
}

/// With a constant number of digits the scale shrinks to it; a rounded number may carry into one more digit.
fn rounded_decimal_type(rest: Rest, args: &[ArgInfo]) -> DataType {
    let arg = &args[0].ty;
    let wanted = match args.get(1) {
        None => 0,
        Some(digits) => match &digits.constant {
            Some(value) => kit::integer(value),
            None => return arg.clone(),
        },
    };
    let scale = wanted.clamp(0, SCALE_MAX.into()).min(arg.decimals.into()) as u8;
    let dropped = u32::from(arg.decimals - scale);
    let carry = u32::from(dropped > 0 && rest == Rest::Rounded);
    DataType::decimal((arg.length + carry).saturating_sub(dropped).max(1), scale)
}

fn round_integer(rest: Rest, args: &[Value]) -> Result<Value> {
    let digits = digits_of(args);
    if digits >= 0 {
        return Ok(args[0].clone());
    }
    let number = kit::integer(&args[0]);
    let result =
        match u32::try_from(digits.unsigned_abs()).ok().and_then(|power| 10i128.checked_pow(power))
        {
            None => 0,
            Some(unit) => {
                let cut = number / unit * unit;
                let carry = rest == Rest::Rounded && (number - cut).abs() * 2 >= unit;
                if carry { cut + unit * number.signum() } else { cut }
            }
        };
    match &args[0] {
        Value::UInt(_) => u64::try_from(result)
            .map(Value::UInt)
            .map_err(|_| kit::out_of_range("BIGINT UNSIGNED", "round", args)),
        _ => i64::try_from(result)
            .map(Value::Int)
            .map_err(|_| kit::out_of_range("BIGINT", "round", args)),
    }
}

/// Scales, rounds half to even, and scales back; a scale beyond the range of doubles gives zero or the unchanged number.
fn round_double(rest: Rest, number: f64, digits: i64) -> f64 {
    let unit = 10f64.powi(digits.unsigned_abs().min(400) as i32);
    let step = |scaled: f64| match rest {
        Rest::Rounded => scaled.round_ties_even(),
        Rest::Cut => scaled.trunc(),
    };
    if digits < 0 {
        return if unit.is_infinite() { 0.0 } else { step(number / unit) * unit };
    }
    let scaled = number * unit;
    if scaled.is_infinite() || unit.is_infinite() { number } else { step(scaled) / unit }
}

/// For FORMAT, which rounds as ROUND does.
pub(crate) fn rounded_double(number: f64, digits: i64) -> f64 {
    round_double(Rest::Rounded, number, digits)
}
