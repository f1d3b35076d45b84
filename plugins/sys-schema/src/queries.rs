//! The functions of `sys` that ask `performance_schema` or `sys.sys_config`: a statement each.

use errors::{Result, bail};
use plugin_api::kit::{self, scalar};
use plugin_api::{Arity, BoundFunction, Coercion, ScalarFunction, Statements};
use types::{DataType, Value};

use crate::functions::{long_text, short_text};

/// Characters of a value of `sys_config`.
const VALUE_LENGTH: u64 = 128;
/// Characters of YES, NO and UNKNOWN.
const ANSWER_LENGTH: u64 = 7;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "SYS.PS_IS_ACCOUNT_ENABLED",
        Arity::exactly(2),
        "sys.ps_is_account_enabled(host, user)\nWhether threads of an account are instrumented.",
        |_, _| {
            Ok(of_query(
                short_text(ANSWER_LENGTH),
                "SELECT IF(COUNT(*) > 0, 'YES', 'NO') FROM performance_schema.setup_actors \
                 WHERE (host = '%' OR ? LIKE host) AND (user = '%' OR user = ?) AND enabled = 'YES'",
            ))
        },
    )
    .runs_statements(),
    scalar(
        "SYS.PS_IS_CONSUMER_ENABLED",
        Arity::exactly(1),
        "sys.ps_is_consumer_enabled(consumer)\nWhether a consumer and those that it depends on are on.",
        |_, _| {
            let ty = short_text(ANSWER_LENGTH);
            Ok(BoundFunction::with_statements(ty, vec![Coercion::Text], |_, statements, args| {
                is_consumer_enabled(statements, &kit::text(&args[0]))
            }))
        },
    )
    .runs_statements(),
    scalar(
        "SYS.PS_IS_THREAD_INSTRUMENTED",
        Arity::exactly(1),
        "sys.ps_is_thread_instrumented(connection_id)\nWhether the thread of a connection is instrumented; UNKNOWN where there is no such thread.",
        |_, _| {
            Ok(BoundFunction::with_statements(
                short_text(ANSWER_LENGTH),
                vec![Coercion::Integer],
                |_, statements, args| {
                    let query = "SELECT instrumented FROM performance_schema.threads WHERE processlist_id = ?";
                    Ok(first_value(statements, query, args)?.unwrap_or_else(|| Value::from("UNKNOWN")))
                },
            ))
        },
    )
    .runs_statements(),
    scalar(
        "SYS.PS_THREAD_ACCOUNT",
        Arity::exactly(1),
        "sys.ps_thread_account(thread_id)\nThe account of a thread.",
        |_, _| {
            let query = "SELECT IF(type = 'FOREGROUND', CONCAT(processlist_user, '@', processlist_host), type) \
                         FROM performance_schema.threads WHERE thread_id = ?";
            Ok(BoundFunction::with_statements(long_text(), vec![Coercion::Integer], move |_, statements, args| {
                Ok(first_value(statements, query, args)?.unwrap_or(Value::Null))
            }))
        },
    )
    .runs_statements(),
    scalar(
        "SYS.PS_THREAD_ID",
        Arity::exactly(1),
        "sys.ps_thread_id(connection_id)\nThe thread of a connection; of this one for NULL.",
        |_, _| {
            let ty = DataType::bigint_unsigned();
            let bound = BoundFunction::with_statements(ty, vec![Coercion::Integer], |ctx, statements, args| {
                let own = Value::UInt(ctx.session.connection_id());
                let wanted = if args[0].is_null() { own } else { args[0].clone() };
                let query = "SELECT thread_id FROM performance_schema.threads WHERE processlist_id = ?";
                Ok(first_value(statements, query, &[wanted])?.unwrap_or(Value::Null))
            });
            Ok(bound.with_nulls())
        },
    )
    .runs_statements(),
    scalar(
        "SYS.SYS_GET_CONFIG",
        Arity::exactly(2),
        "sys.sys_get_config(name, default)\nThe value of a row of sys.sys_config, or the default where there is none.",
        |_, _| {
            let ty = short_text(VALUE_LENGTH);
            let query = "SELECT value FROM sys.sys_config WHERE variable = ?";
            let bound = BoundFunction::with_statements(ty, vec![Coercion::Text], move |_, statements, args| {
                let found = first_value(statements, query, &args[..1])?;
                Ok(found.filter(|value| !value.is_null()).unwrap_or_else(|| args[1].clone()))
            });
            Ok(bound.with_nulls())
        },
    )
    .runs_statements(),
];

/// A function whose value a query finds.
fn of_query(ty: DataType, query: &'static str) -> BoundFunction {
    let bound =
        BoundFunction::with_statements(ty, vec![Coercion::Text], move |_, statements, args| {
            Ok(first_value(statements, query, args)?.unwrap_or(Value::Null))
        });
    bound.with_nulls()
}

/// The first value of a query's first row.
fn first_value(
    statements: &mut dyn Statements,
    query: &str,
    parameters: &[Value],
) -> Result<Option<Value>> {
    let result = statements.run(query, parameters)?;
    Ok(result.rows.into_iter().next().and_then(|row| row.into_iter().next()))
}

/// Consumers that get nothing while another one is off, with that one.
const DEPENDENCIES: [(&str, &str); 7] = [
    ("_history_long", "_current"),
    ("_history", "_current"),
    ("_current", "thread_instrumentation"),
    ("thread_instrumentation", "global_instrumentation"),
    ("statements_digest", "global_instrumentation"),
    ("_cpu", "global_instrumentation"),
    ("global_instrumentation", ""),
];

fn is_consumer_enabled(statements: &mut dyn Statements, consumer: &str) -> Result<Value> {
    let mut name = consumer.to_owned();
    while !name.is_empty() {
        let query = "SELECT enabled FROM performance_schema.setup_consumers WHERE name = ?";
        let found = first_value(statements, query, &[Value::from(name.as_str())])?;
        let Some(enabled) = found else {
            bail!(STD_INVALID_ARGUMENT, consumer, "sys.ps_is_consumer_enabled");
        };
        if kit::bytes(&enabled) != b"YES" {
            return Ok(enabled);
        }
        name = needed_by(&name);
    }
    Ok(Value::from("YES"))
}

/// The consumer that this one depends on; empty for none.
fn needed_by(consumer: &str) -> String {
    let found =
        DEPENDENCIES.iter().find_map(|(end, needed)| consumer.strip_suffix(end).zip(Some(*needed)));
    match found {
        Some((kind, needed)) if needed.starts_with('_') => format!("{kind}{needed}"),
        Some((_, needed)) => needed.to_owned(),
        None => String::new(),
    }
}
