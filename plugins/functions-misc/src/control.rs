//! IF, IFNULL, NULLIF, COALESCE, ISNULL, ANY_VALUE, NAME_CONST. (The planner may run the first four without evaluating both sides.)

use std::cmp::Ordering;

use errors::Result;
use plugin_api::kit::{self, any_nullable, coercion_to, common_type, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionRole, OperatorCall,
    ScalarFunction,
};
use types::{TypeKind, Value};

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "IF",
        Arity::exactly(3),
        "IF(expr1, expr2, expr3)\nexpr2 if expr1 is true, else expr3.",
        bind_if,
    )
    .role(FunctionRole::Operator(OperatorCall::If)),
    scalar(
        "IFNULL",
        Arity::exactly(2),
        "IFNULL(expr1, expr2)\nexpr1, or expr2 if that is NULL.",
        bind_coalesce,
    )
    .aliases(&["NVL"])
    .role(FunctionRole::Operator(OperatorCall::IfNull)),
    scalar(
        "COALESCE",
        Arity::at_least(1),
        "COALESCE(value, ...)\nThe first value that is not NULL.",
        bind_coalesce,
    )
    .role(FunctionRole::Operator(OperatorCall::Coalesce)),
    scalar(
        "NULLIF",
        Arity::exactly(2),
        "NULLIF(expr1, expr2)\nNULL if both are equal, else expr1.",
        bind_nullif,
    )
    .role(FunctionRole::Operator(OperatorCall::NullIf)),
    scalar("ISNULL", Arity::exactly(1), "ISNULL(expr)\n1 if expr is NULL, else 0.", bind_isnull)
        .role(FunctionRole::Operator(OperatorCall::IsNull)),
    scalar(
        "ANY_VALUE",
        Arity::exactly(1),
        "ANY_VALUE(arg)\narg, of any row of its group.",
        bind_any_value,
    )
    .role(FunctionRole::AnyValue),
    scalar(
        "NAME_CONST",
        Arity::exactly(2),
        "NAME_CONST(name, value)\nvalue, as a column called name.",
        bind_name_const,
    )
    .role(FunctionRole::Operator(OperatorCall::NameConst)),
];

fn bind_if(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = common_type(ctx, &args[1..]);
    let branch = coercion_to(&ty);
    let coercions = vec![Coercion::Double, branch];
    let bound = BoundFunction::new(ty, coercions, |_, args| {
        let truth = !args[0].is_null() && kit::double(&args[0]) != 0.0;
        Ok(args[if truth { 1 } else { 2 }].clone())
    });
    Ok(bound.with_nulls())
}

fn bind_coalesce(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let mut ty = common_type(ctx, args);
    ty.nullable = args.iter().all(|arg| arg.ty.nullable);
    let coercion = coercion_to(&ty);
    let bound = BoundFunction::new(ty, vec![coercion], |_, args| {
        Ok(args.iter().find(|arg| !arg.is_null()).cloned().unwrap_or(Value::Null))
    });
    Ok(bound.with_nulls())
}

fn bind_nullif(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let mut ty = args[0].ty.clone().with_nullable(true);
    if matches!(ty.kind, TypeKind::Enum | TypeKind::Set) {
        ty = kit::text_type(ty.length.into(), ty.collation);
    }
    let common = common_type(ctx, args);
    let collation = charset::collation_or_binary(common.collation);
    let numbers = common.is_numeric() || (args[0].ty.is_numeric() || args[1].ty.is_numeric());
    let first = if ty.is_string() { Coercion::Text } else { Coercion::AsIs };
    let second = if common.is_string() && !numbers { Coercion::Text } else { Coercion::AsIs };
    let bound = BoundFunction::new(ty, vec![first, second], move |_, args| {
        let equal = match (&args[0], &args[1]) {
            (Value::Null, _) | (_, Value::Null) => false,
            (Value::Bytes(a), Value::Bytes(b)) => collation.compare(a, b) == Ordering::Equal,
            (Value::Bytes(text), number) | (number, Value::Bytes(text)) if numbers => {
                types::Decimal::parse_lenient(text).value.to_f64() == kit::double(number)
            }
            (Value::Date(a), Value::DateTime(b)) | (Value::DateTime(b), Value::Date(a)) => {
                a.at_midnight() == *b
            }
            (Value::Double(_), _) | (_, Value::Double(_)) => {
                kit::double(&args[0]) == kit::double(&args[1])
            }
            (
                Value::Int(_) | Value::UInt(_) | Value::Decimal(_),
                Value::Int(_) | Value::UInt(_) | Value::Decimal(_),
            ) => kit::decimal(&args[0]) == kit::decimal(&args[1]),
            (a, b) => a == b,
        };
        Ok(if equal { Value::Null } else { args[0].clone() })
    });
    Ok(bound.with_nulls())
}

fn bind_isnull(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(1, false);
    let bound =
        BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| Ok(Value::bool(args[0].is_null())));
    Ok(bound.with_nulls())
}

fn bind_any_value(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = args[0].ty.clone().with_nullable(any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| Ok(args[0].clone())))
}

fn bind_name_const(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = args[1].ty.clone();
    let bound = BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| Ok(args[1].clone()));
    Ok(bound.with_nulls())
}
