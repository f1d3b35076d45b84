//! Powers, logarithms and trigonometry, all on doubles.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext,
    ScalarFunction,
};
use types::{DataType, TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("POW", Arity::exactly(2), "POW(X, Y)\nX raised to the power of Y.", bind_pow)
        .numbers(Arguments::ALL)
        .aliases(&["POWER"]),
    scalar(
        "SQRT",
        Arity::exactly(1),
        "SQRT(X)\nThe square root of X; NULL when X is negative.",
        |_, args| partial(args, |x| (x >= 0.0).then(|| x.sqrt())),
    )
    .numbers(Arguments::ALL),
    scalar("EXP", Arity::exactly(1), "EXP(X)\ne raised to the power of X.", |_, args| {
        checked(args, "exp", f64::exp)
    })
    .numbers(Arguments::ALL),
    scalar(
        "LN",
        Arity::exactly(1),
        "LN(X)\nThe natural logarithm of X; NULL when X is not positive.",
        |_, args| logarithm(args, f64::ln),
    )
    .numbers(Arguments::ALL),
    scalar(
        "LOG",
        Arity::between(1, 2),
        "LOG([B,] X)\nThe logarithm of X to the base B, or the natural logarithm.",
        bind_log,
    )
    .numbers(Arguments::ALL),
    scalar("LOG2", Arity::exactly(1), "LOG2(X)\nThe logarithm of X to the base 2.", |_, args| {
        logarithm(args, f64::log2)
    })
    .numbers(Arguments::ALL),
    scalar(
        "LOG10",
        Arity::exactly(1),
        "LOG10(X)\nThe logarithm of X to the base 10.",
        |_, args| logarithm(args, f64::log10),
    )
    .numbers(Arguments::ALL),
    scalar("SIN", Arity::exactly(1), "SIN(X)\nThe sine of X, in radians.", |_, args| {
        checked(args, "sin", f64::sin)
    })
    .numbers(Arguments::ALL),
    scalar("COS", Arity::exactly(1), "COS(X)\nThe cosine of X, in radians.", |_, args| {
        checked(args, "cos", f64::cos)
    })
    .numbers(Arguments::ALL),
    scalar("TAN", Arity::exactly(1), "TAN(X)\nThe tangent of X, in radians.", |_, args| {
        checked(args, "tan", f64::tan)
    })
    .numbers(Arguments::ALL),
    scalar("COT", Arity::exactly(1), "COT(X)\nThe cotangent of X, in radians.", |_, args| {
        checked(args, "cot", |x| 1.0 / x.tan())
    })
    .numbers(Arguments::ALL),
    scalar(
        "ASIN",
        Arity::exactly(1),
        "ASIN(X)\nThe arc sine of X; NULL outside -1 to 1.",
        |_, args| partial(args, |x| (-1.0..=1.0).contains(&x).then(|| x.asin())),
    )
    .numbers(Arguments::ALL),
    scalar(
        "ACOS",
        Arity::exactly(1),
        "ACOS(X)\nThe arc cosine of X; NULL outside -1 to 1.",
        |_, args| partial(args, |x| (-1.0..=1.0).contains(&x).then(|| x.acos())),
    )
    .numbers(Arguments::ALL),
    scalar(
        "ATAN",
        Arity::between(1, 2),
        "ATAN(Y[, X])\nThe arc tangent of Y, or of Y / X.",
        bind_atan,
    )
    .numbers(Arguments::ALL)
    .aliases(&["ATAN2"]),
    scalar(
        "PI",
        Arity::exactly(0),
        "PI()\nThe ratio of a circle's circumference to its diameter.",
        bind_pi,
    ),
    scalar(
        "RADIANS",
        Arity::exactly(1),
        "RADIANS(X)\nX converted from degrees to radians.",
        |_, args| converted(args, "radians", |x| x * (std::f64::consts::PI / 180.0)),
    )
    .numbers(Arguments::ALL),
    scalar(
        "DEGREES",
        Arity::exactly(1),
        "DEGREES(X)\nX converted from radians to degrees.",
        |_, args| converted(args, "degrees", |x| x * (180.0 / std::f64::consts::PI)),
    )
    .numbers(Arguments::ALL),
];

/// A function that may leave the range of doubles.
fn checked(_: &[ArgInfo], name: &'static str, function: fn(f64) -> f64) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], move |_, args| {
        kit::finite(function(kit::double(&args[0])), name, args)
    }))
}

/// The same, NULL only for NULL.
fn converted(
    args: &[ArgInfo],
    name: &'static str,
    function: fn(f64) -> f64,
) -> Result<BoundFunction> {
    let mut bound = checked(args, name, function)?;
    bound.ty.nullable = any_nullable(args);
    Ok(bound)
}

/// A function that is NULL outside its domain.
fn partial(_: &[ArgInfo], function: fn(f64) -> Option<f64>) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], move |_, args| {
        Ok(function(kit::double(&args[0])).map_or(Value::Null, Value::Double))
    }))
}

/// A logarithm: NULL with warning 3020 for a number that is not positive.
fn logarithm(_: &[ArgInfo], function: fn(f64) -> f64) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], move |ctx, args| {
        let number = kit::double(&args[0]);
        if number <= 0.0 {
            return Ok(bad_logarithm(ctx));
        }
        Ok(Value::Double(function(number)))
    }))
}

fn bad_logarithm(ctx: &mut FunctionContext<'_>) -> Value {
    ctx.diagnostics.warn(ErrorCode::INVALID_ARGUMENT_FOR_LOGARITHM, &[]);
    Value::Null
}

fn bind_log(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if args.len() == 1 {
        return logarithm(args, f64::ln);
    }
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], |ctx, args| {
        let (base, number) = (kit::double(&args[0]), kit::double(&args[1]));
        if base <= 0.0 || number <= 0.0 || base == 1.0 {
            return Ok(bad_logarithm(ctx));
        }
        kit::finite(number.ln() / base.ln(), "log", args)
    }))
}

fn bind_pow(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], |_, args| {
        kit::finite(kit::double(&args[0]).powf(kit::double(&args[1])), "pow", args)
    }))
}

fn bind_atan(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], |_, args| {
        let y = kit::double(&args[0]);
        Ok(Value::Double(match args.get(1) {
            None => y.atan(),
            Some(x) => y.atan2(kit::double(x)),
        }))
    }))
}

fn bind_pi(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::new(TypeKind::Double, 8, 6).with_nullable(false);
    Ok(BoundFunction::new(ty, vec![], |_, _| Ok(Value::Double(std::f64::consts::PI))))
}
