//! User-level locks.

use errors::{Error, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::{DataType, Value};

/// Characters of a lock name.
const NAME_LENGTH_MAX: usize = 64;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "GET_LOCK",
        Arity::exactly(2),
        "GET_LOCK(str, timeout)\nTakes a named lock: 1 when granted, 0 after timeout seconds.",
        |_, _| {
            Ok(bind(kit::integer_type(1, true), |ctx, args| {
                let name = lock_name(&args[0])?;
                let timeout = if args[1].is_null() { -1.0 } else { kit::double(&args[1]) };
                Ok(Value::bool(ctx.session.get_user_lock(&name, timeout)?))
            }))
        },
    )
    .volatile()
    .not_in_definitions(),
    scalar(
        "RELEASE_LOCK",
        Arity::exactly(1),
        "RELEASE_LOCK(str)\nReleases a named lock.",
        |_, _| {
            Ok(bind(kit::integer_type(1, true), |ctx, args| {
                let name = lock_name(&args[0])?;
                Ok(ctx.session.release_user_lock(&name).map_or(Value::Null, Value::bool))
            }))
        },
    )
    .volatile()
    .not_in_definitions(),
    scalar(
        "RELEASE_ALL_LOCKS",
        Arity::exactly(0),
        "RELEASE_ALL_LOCKS()\nReleases all named locks of the session and counts them.",
        bind_release_all,
    )
    .volatile()
    .not_in_definitions(),
    scalar(
        "IS_FREE_LOCK",
        Arity::exactly(1),
        "IS_FREE_LOCK(str)\nWhether a named lock is free.",
        |_, _| {
            Ok(bind(kit::integer_type(1, true), |ctx, args| {
                let name = lock_name(&args[0])?;
                Ok(Value::bool(ctx.session.user_lock_holder(&name).is_none()))
            }))
        },
    )
    .volatile()
    .not_in_definitions(),
    scalar(
        "IS_USED_LOCK",
        Arity::exactly(1),
        "IS_USED_LOCK(str)\nThe connection that holds a named lock.",
        |_, _| {
            Ok(bind(DataType::bigint_unsigned(), |ctx, args| {
                let name = lock_name(&args[0])?;
                Ok(ctx.session.user_lock_holder(&name).map_or(Value::Null, Value::UInt))
            }))
        },
    )
    .volatile()
    .not_in_definitions(),
];

type LockKernel = fn(&mut FunctionContext<'_>, &[Value]) -> Result<Value>;

fn bind(ty: DataType, kernel: LockKernel) -> BoundFunction {
    BoundFunction::new(ty, vec![Coercion::Text, Coercion::Double], kernel).with_nulls()
}

/// Names are the same in any case.
fn lock_name(value: &Value) -> Result<String> {
    let name = if value.is_null() { "NULL".into() } else { kit::text(value).to_lowercase() };
    if value.is_null() || name.is_empty() || name.chars().count() > NAME_LENGTH_MAX {
        return Err(Error::with(errors::ErrorCode(3057), &[&name]));
    }
    Ok(name)
}

fn bind_release_all(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::bigint_unsigned().with_nullable(false);
    Ok(BoundFunction::new(ty, vec![], |ctx, _| {
        Ok(Value::UInt(ctx.session.release_all_user_locks()))
    }))
}
