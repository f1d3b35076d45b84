//! Facts of the session and the server.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, any_nullable, scalar, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
    SessionServices,
};
use types::{CollationId, DataType, Value};

/// Characters of a schema name.
const NAME_LENGTH: u64 = 64;
/// Characters of `user@host`: 32 + 1 + 255.
const ACCOUNT_LENGTH: u64 = 288;

/// No code of ICU is here: it is the version that the reference answers, and whose syntax the regular expressions were compared with.
const ICU_VERSION: &str = "78.3";

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("DATABASE", Arity::exactly(0), "DATABASE()\nThe default schema; NULL without one.", bind_database).system_text()
        .aliases(&["SCHEMA"])
        .stable(),
    scalar("USER", Arity::exactly(0), "USER()\nThe user and host as the client gave them.", |_, _| {
        Ok(account(|session| session.user()))
    }).system_text()
    .aliases(&["SESSION_USER", "SYSTEM_USER"])
    .stable(),
    scalar("CURRENT_USER", Arity::exactly(0), "CURRENT_USER()\nThe account that the session runs as.", |_, _| {
        Ok(account(|session| session.current_user()))
    }).system_text()
    .stable(),
    scalar("CURRENT_ROLE", Arity::exactly(0), "CURRENT_ROLE()\nThe roles that are active.", bind_current_role).stable(),
    scalar("VERSION", Arity::exactly(0), "VERSION()\nThe version of the server.", bind_version).system_text().stable()
    .not_in_definitions(),
    scalar("ICU_VERSION", Arity::exactly(0), "ICU_VERSION()\nThe version of the ICU library whose regular expressions those of this server follow.", |_, _| {
        let ty = kit::text_type(ICU_VERSION.len() as u64, CollationId::UTF8MB3_GENERAL_CI).with_nullable(false);
        Ok(BoundFunction::new(ty, vec![], |_, _| Ok(Value::text(ICU_VERSION))))
    }).system_text()
    .not_in_definitions(),
    scalar("CONNECTION_ID", Arity::exactly(0), "CONNECTION_ID()\nThe number of the connection.", |_, _| {
        Ok(BoundFunction::new(unsigned(), vec![], |ctx, _| Ok(Value::UInt(ctx.session.connection_id()))))
    })
    .stable(),
    scalar(
        "LAST_INSERT_ID",
        Arity::between(0, 1),
        "LAST_INSERT_ID([expr])\nThe last automatic number of the session, or expr, which takes its place.",
        bind_last_insert_id,
    )
    .volatile()
    .not_in_definitions(),
    scalar("ROW_COUNT", Arity::exactly(0), "ROW_COUNT()\nRows that the last statement changed.", |_, _| {
        let ty = kit::integer_type(21, false);
        Ok(BoundFunction::new(ty, vec![], |ctx, _| Ok(Value::Int(ctx.session.row_count()))))
    })
    .stable()
    .not_in_definitions(),
    scalar("FOUND_ROWS", Arity::exactly(0), "FOUND_ROWS()\nRows that the last query found without its LIMIT.", |_, _| {
        let ty = kit::integer_type(21, false);
        Ok(BoundFunction::new(ty, vec![], |ctx, _| Ok(Value::Int(ctx.session.found_rows() as i64))))
    }).deprecated("FOUND_ROWS", "FOUND_ROWS() is deprecated and will be removed in a future release. Consider using COUNT(*) instead.")
    .stable()
    .not_in_definitions(),
    scalar("SLEEP", Arity::exactly(1), "SLEEP(duration)\nWaits this many seconds; 1 when interrupted.", bind_sleep)
        .volatile()
    .not_in_definitions(),
    scalar("BENCHMARK", Arity::exactly(2), "BENCHMARK(count, expr)\nEvaluates the expression count times; always 0.", bind_benchmark).volatile()
    .not_in_definitions(),
    scalar("PS_CURRENT_THREAD_ID", Arity::exactly(0), "PS_CURRENT_THREAD_ID()\nThe session's thread number.", |_, _| {
        Ok(BoundFunction::new(unsigned(), vec![], |ctx, _| Ok(Value::UInt(ctx.session.connection_id()))))
    })
    .stable()
    .in_definitions(),
    scalar("PS_THREAD_ID", Arity::exactly(1), "PS_THREAD_ID(connection_id)\nThe thread number of a connection.", |_, _| {
        let ty = unsigned().with_nullable(true);
        Ok(BoundFunction::new(ty, vec![Coercion::Integer], |ctx, args| {
            let own = ctx.session.connection_id();
            Ok(if kit::integer(&args[0]) == i128::from(own) { Value::UInt(own) } else { Value::Null })
        }))
    })
    .stable()
    .in_definitions(),
];

fn unsigned() -> DataType {
    DataType::bigint_unsigned().with_nullable(false)
}

fn account(read: fn(&dyn SessionServices) -> String) -> BoundFunction {
    let ty = text_type(ACCOUNT_LENGTH, CollationId::UTF8MB3_GENERAL_CI);
    BoundFunction::new(ty, vec![], move |ctx, _| Ok(Value::from(read(ctx.session).as_str())))
}

fn bind_database(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(NAME_LENGTH, CollationId::UTF8MB3_GENERAL_CI);
    Ok(BoundFunction::new(ty, vec![], |ctx, _| {
        Ok(ctx.session.database().map_or(Value::Null, |name| Value::from(name.as_str())))
    }))
}

fn bind_current_role(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(kit::UNBOUNDED_CHARACTERS, CollationId::UTF8MB3_GENERAL_CI);
    Ok(BoundFunction::new(ty, vec![], |ctx, _| {
        Ok(Value::from(ctx.session.current_role().as_str()))
    }))
}

fn bind_version(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(NAME_LENGTH, CollationId::UTF8MB3_GENERAL_CI).with_nullable(false);
    Ok(BoundFunction::new(ty, vec![], |ctx, _| Ok(Value::text(ctx.session.version()))))
}

fn bind_last_insert_id(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    if args.is_empty() {
        return Ok(BoundFunction::new(unsigned(), vec![], |ctx, _| {
            Ok(Value::UInt(ctx.session.last_insert_id()))
        }));
    }
    let ty = unsigned().with_nullable(any_nullable(args));
    let bound = BoundFunction::new(ty, vec![Coercion::Integer], |ctx, args| {
        let number = kit::integer(&args[0]) as u64;
        ctx.session.set_last_insert_id(number);
        Ok(if args[0].is_null() { Value::Null } else { Value::UInt(number) })
    });
    Ok(bound.with_nulls())
}

/// Longest wait, about 100 years; a duration must not overflow.
const SLEEP_SECONDS_MAX: f64 = 3.2e9;

fn bind_sleep(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, false);
    let bound = BoundFunction::new(ty, vec![Coercion::Double], |ctx, args| {
        let seconds = kit::double(&args[0]);
        if args[0].is_null() || seconds.is_nan() || seconds < 0.0 {
            return wrong_sleep(ctx);
        }
        let duration = std::time::Duration::from_secs_f64(seconds.min(SLEEP_SECONDS_MAX));
        // An interrupted sleep is a result, not an error; the next call of a cancelled statement is an error.
        ctx.session.check_cancelled()?;
        let is_stopped = !duration.is_zero() && !ctx.session.sleep(duration);
        if is_stopped && let Err(error) = ctx.session.check_cancelled() {
            // `max_statement_time` ends whatever runs.
            if error.code() == ErrorCode::STATEMENT_TIMEOUT {
                return Err(error);
            }
        }
        Ok(Value::bool(is_stopped))
    });
    Ok(bound.with_nulls())
}

fn wrong_sleep(ctx: &mut FunctionContext<'_>) -> Result<Value> {
    let error = Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"sleep."]);
    if ctx.sql_mode.is_strict() {
        return Err(error);
    }
    ctx.diagnostics.push_error(errors::Level::Warning, &error);
    Ok(Value::Int(0))
}

fn bind_benchmark(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(1, true);
    let bound = BoundFunction::new(ty, vec![Coercion::Integer, Coercion::AsIs], |ctx, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let count = kit::integer(&args[0]);
        if count < 0 {
            ctx.diagnostics
                .warn(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&"count", &count, &"benchmark"]);
            return Ok(Value::Null);
        }
        Ok(Value::Int(0))
    });
    Ok(bound.with_nulls().repeating())
}
