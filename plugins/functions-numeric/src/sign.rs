//! ABS, SIGN and MOD: functions that keep the class of their argument.

use errors::{ErrorCode, Result};
use plugin_api::kit::{self, NumberClass, any_nullable, number_class, scalar};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionContext, FunctionRole,
    OperatorCall, PartitionUse, ScalarFunction,
};
use types::{DataType, Decimal, TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("ABS", Arity::exactly(1), "ABS(X)\nThe absolute value of X.", bind_abs)
        .numbers(Arguments::ALL)
        .partitions_by(PartitionUse::Any),
    scalar(
        "SIGN",
        Arity::exactly(1),
        "SIGN(X)\n-1, 0 or 1 as X is negative, zero or positive.",
        bind_sign,
    )
    .numbers(Arguments::ALL),
    scalar(
        "MOD",
        Arity::exactly(2),
        "MOD(N, M)\nThe remainder of N divided by M, with the sign of N.",
        bind_mod,
    )
    .role(FunctionRole::Operator(OperatorCall::Modulo)),
];

fn bind_abs(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let arg = &args[0].ty;
    let nullable = any_nullable(args);
    Ok(match number_class(arg) {
        NumberClass::Integer { unsigned: true } => {
            let mut ty = kit::integer_type(arg.length, nullable);
            ty.unsigned = true;
            BoundFunction::new(ty, vec![Coercion::Integer], |_, args| Ok(args[0].clone()))
        }
        NumberClass::Integer { unsigned: false } => {
            let ty = kit::integer_type(arg.length, nullable);
            BoundFunction::new(ty, vec![Coercion::Integer], |_, args| match &args[0] {
                Value::Int(number) => number
                    .checked_abs()
                    .map(Value::Int)
                    .ok_or_else(|| kit::out_of_range("BIGINT", "abs", args)),
                other => Ok(other.clone()),
            })
        }
        NumberClass::Decimal => {
            let ty = arg.clone().with_nullable(nullable);
            BoundFunction::new(ty, vec![Coercion::Decimal], |_, args| {
                Ok(Value::Decimal(kit::decimal(&args[0]).abs()))
            })
        }
        NumberClass::Double => {
            let digits = arg.decimals.min(6);
            let ty = if arg.is_temporal() || arg.kind == TypeKind::Null {
                DataType::new(TypeKind::Double, 17 + u32::from(digits), digits)
            } else {
                kit::double_type_like(arg)
            };
            let ty = ty.with_nullable(nullable);
            BoundFunction::new(ty, vec![Coercion::Double], |_, args| {
                Ok(Value::Double(kit::double(&args[0]).abs()))
            })
        }
    })
}

fn bind_sign(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, any_nullable(args));
    let coercion = match number_class(&args[0].ty) {
        NumberClass::Integer { .. } => Coercion::Integer,
        NumberClass::Decimal => Coercion::Decimal,
        NumberClass::Double => Coercion::Double,
    };
    Ok(BoundFunction::new(ty, vec![coercion], |_, args| {
        Ok(Value::Int(match &args[0] {
            Value::Int(number) => number.signum(),
            Value::UInt(number) => i64::from(*number > 0),
            Value::Decimal(number) => i64::from(number.sign()),
            other => {
                let number = kit::double(other);
                if number > 0.0 { 1 } else { -i64::from(number < 0.0) }
            }
        }))
    }))
}

fn bind_mod(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let (left, right) = (&args[0].ty, &args[1].ty);
    match (number_class(left), number_class(right)) {
        (NumberClass::Integer { unsigned }, NumberClass::Integer { .. }) => {
            let sign = u32::from(unsigned);
            let mut ty = kit::integer_type(left.length.max(right.length) + sign, true);
            ty.unsigned = unsigned;
            Ok(BoundFunction::new(ty, vec![Coercion::Integer], integer_remainder))
        }
        (NumberClass::Double, _) | (_, NumberClass::Double) => {
            let ty = DataType::double();
            Ok(BoundFunction::new(ty, vec![Coercion::Double], |ctx, args| {
                let divisor = kit::double(&args[1]);
                if divisor == 0.0 {
                    return Ok(division_by_zero(ctx));
                }
                kit::finite(kit::double(&args[0]) % divisor, "mod", args)
            }))
        }
        _ => {
            let scale = left.decimals.max(right.decimals);
            let digits = |ty: &DataType| match ty.kind {
                TypeKind::Decimal => ty.length,
                _ => kit::whole_digits(ty),
            };
            let ty = DataType::decimal(digits(left).max(digits(right)), scale);
            Ok(BoundFunction::new(ty, vec![Coercion::Decimal], |ctx, args| {
                let divisor = kit::decimal(&args[1]);
                match kit::decimal(&args[0]).rem(&divisor) {
                    Some(remainder) => Ok(Value::Decimal(remainder)),
                    None if divisor == Decimal::ZERO => Ok(division_by_zero(ctx)),
                    None => Err(kit::out_of_range("DECIMAL", "mod", args)),
                }
            }))
        }
    }
}

fn integer_remainder(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let divisor = kit::integer(&args[1]);
    if divisor == 0 {
        return Ok(division_by_zero(ctx));
    }
    let remainder = kit::integer(&args[0]) % divisor;
    Ok(match args[0] {
        Value::UInt(_) => Value::UInt(remainder as u64),
        _ => Value::Int(remainder as i64),
    })
}

fn division_by_zero(ctx: &mut FunctionContext<'_>) -> Value {
    if ctx.sql_mode.contains(types::SqlMode::ERROR_FOR_DIVISION_BY_ZERO) {
        ctx.diagnostics.warn(ErrorCode::DIVISION_BY_ZERO, &[]);
    }
    Value::Null
}
