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
        "SYS.PS_THREAD_STACK",
        Arity::exactly(2),
        "sys.ps_thread_stack(thread_id, debug)\nThe statements and stages of a thread that the consumers `events_statements_history_long` and `events_stages_history_long` kept, as JSON.",
        |_, _| {
            let types = vec![Coercion::Integer, Coercion::Integer];
            Ok(BoundFunction::with_statements(json_text(), types, |_, statements, args| {
                thread_stack(statements, &args[0])
            })
            .with_nulls())
        },
    )
    .runs_statements(),
    scalar(
        "SYS.PS_THREAD_TRX_INFO",
        Arity::exactly(1),
        "sys.ps_thread_trx_info(thread_id)\nThe transaction of a thread and the statements that the consumer `events_statements_history` kept of it, as JSON; NULL without a transaction.",
        |_, _| {
            let types = vec![Coercion::Integer];
            Ok(BoundFunction::with_statements(json_text(), types, |_, statements, args| {
                Ok(first_value(statements, TRANSACTION, &[args[0].clone(), args[0].clone()])?
                    .unwrap_or(Value::Null))
            }))
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

/// A JSON document as text.
fn json_text() -> DataType {
    let mut ty = DataType::new(types::TypeKind::LongText, u32::MAX / 4, 0);
    ty.collation = types::CollationId::UTF8MB4_0900_AI_CI;
    ty
}

/// The transaction of a thread, and its statements.
const TRANSACTION: &str = "SELECT JSON_PRETTY(JSON_ARRAY(JSON_OBJECT( \
    'time', format_pico_time(TIMESTAMPDIFF(MICROSECOND, x.trx_started, NOW(6)) * 1000000), \
    'state', 'ACTIVE', \
    'mode', IF(x.trx_is_read_only, 'READ ONLY', 'READ WRITE'), \
    'autocommitted', IF(x.trx_autocommit_non_locking, 'YES', 'NO'), \
    'gtid', 'AUTOMATIC', \
    'isolation', x.trx_isolation_level, \
    'statements_executed', IFNULL((SELECT JSON_ARRAYAGG(JSON_OBJECT( \
        'sql_text', h.sql_text, 'time', format_pico_time(h.timer_wait), 'schema', h.current_schema, \
        'rows_examined', h.rows_examined, 'rows_affected', h.rows_affected, 'rows_sent', h.rows_sent, \
        'tmp_tables', h.created_tmp_tables, 'tmp_disk_tables', h.created_tmp_disk_tables, \
        'sort_rows', h.sort_rows, 'sort_merge_passes', h.sort_merge_passes)) \
        FROM performance_schema.events_statements_history AS h \
        WHERE h.thread_id = ? AND h.timer_start >= IFNULL((SELECT MAX(b.timer_start) FROM performance_schema.events_statements_history AS b \
            WHERE b.thread_id = h.thread_id AND b.event_name = 'statement/sql/begin'), 0)), JSON_ARRAY())))) \
    FROM performance_schema.threads AS t JOIN information_schema.innodb_trx AS x ON x.trx_mysql_thread_id = t.processlist_id \
    WHERE t.thread_id = ?";

/// Statements and stages of a thread in their order.
const EVENTS: &str = "SELECT CAST(JSON_ARRAYAGG(JSON_OBJECT( \
    'nesting_event_id', '0', 'event_id', CAST(e.event_id AS CHAR), 'timer_wait', ROUND(e.timer_wait / 1000000, 2), \
    'event_info', e.name, 'wait_info', e.info)) AS CHAR) \
    FROM (SELECT s.event_id AS event_id, s.timer_start AS timer_start, s.timer_wait AS timer_wait, \
            SUBSTRING_INDEX(s.event_name, '/', -2) AS name, \
            CONCAT(s.sql_text, '\\nerrors: ', s.errors, '\\nwarnings: ', s.warnings, '\\nlock time: ', format_pico_time(s.lock_time), \
                '\\nrows affected: ', s.rows_affected, '\\nrows sent: ', s.rows_sent, '\\nrows examined: ', s.rows_examined, \
                '\\ntmp tables: ', s.created_tmp_tables, '\\ntmp disk tables: ', s.created_tmp_disk_tables) AS info \
        FROM performance_schema.events_statements_history_long AS s WHERE s.thread_id = ? \
        UNION ALL \
        SELECT g.event_id, g.timer_start, g.timer_wait, SUBSTRING_INDEX(g.event_name, '/', -2), '' \
        FROM performance_schema.events_stages_history_long AS g WHERE g.thread_id = ? \
        ORDER BY timer_start, event_id) AS e";

fn thread_stack(statements: &mut dyn Statements, thread: &Value) -> Result<Value> {
    let events = first_value(statements, EVENTS, &[thread.clone(), thread.clone()])?;
    let events = events.filter(|events| !events.is_null()).unwrap_or_else(|| Value::from("[]"));
    let head = "SELECT CAST(JSON_OBJECT('rankdir', 'LR', 'nodesep', '0.10', 'stack_created', CAST(NOW() AS CHAR), \
        'mysql_version', VERSION(), 'mysql_user', CURRENT_USER(), 'events', CAST(? AS JSON)) AS CHAR)";
    Ok(first_value(statements, head, &[events])?.unwrap_or(Value::Null))
}

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
    let value = result.rows.first().and_then(|row| row.first()).cloned();
    // A function returns a member by its name.
    let named = |value: Value| match result.columns.first() {
        Some(column) => column.ty.member_text(value),
        None => value,
    };
    Ok(value.map(named))
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
