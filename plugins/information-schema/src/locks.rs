//! Row locks, lock waits and transactions, as engines report them.

use std::collections::{HashMap, HashSet};

use engine_api::{IsolationLevel, TransactionView};
use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use types::Value;

use crate::row::{Emit, optional, time};

/// Schema and name of a table.
fn split(table: &str) -> (Option<&str>, Option<&str>) {
    match table.split_once('.') {
        Some((schema, name)) => (Some(schema), Some(name)),
        None => (None, None),
    }
}

/// A connection's id; NULL without a connection.
fn thread(session: u64) -> Value {
    if session == 0 { Value::Null } else { Value::UInt(session) }
}

/// `performance_schema.data_locks`: explicit locks; a row that a transaction has written has none until another transaction waits for it.
pub fn data_locks(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for (engine, report) in ctx.engine_locks() {
        for lock in &report.locks {
            let (schema, name) = split(&lock.table);
            emit(&[
                Value::text(&engine),
                Value::text(&lock.id),
                Value::UInt(lock.transaction),
                thread(lock.session),
                Value::Null,
                optional(schema),
                optional(name),
                Value::Null,
                Value::Null,
                Value::text(lock.index_name()),
                Value::UInt(0),
                Value::text("RECORD"),
                Value::text(lock.mode()),
                Value::text(if lock.is_waiting { "WAITING" } else { "GRANTED" }),
                Value::text(lock.data_text()),
            ])?;
        }
    }
    Ok(())
}

/// `performance_schema.data_lock_waits`.
pub fn data_lock_waits(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (engine, report) in ctx.engine_locks() {
        for (wants, has) in &report.waits {
            let mut row = vec![Value::text(&engine)];
            for lock in [&report.locks[*wants], &report.locks[*has]] {
                let id = Value::UInt(lock.transaction);
                row.extend([Value::text(&lock.id), id, thread(lock.session)]);
                row.extend([Value::Null, Value::UInt(0)]);
            }
            emit(&row)?;
        }
    }
    Ok(())
}

/// Statements that sessions run.
fn statements(ctx: &dyn InformationContext) -> HashMap<u64, String> {
    let processes = ctx.processes().into_iter();
    processes.filter_map(|process| Some((process.id, process.info?))).collect()
}

/// The beginning of a text, in characters.
fn beginning(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

fn level_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

/// `information_schema.INNODB_TRX`: transactions that have changed or locked something, or hold a snapshot.
pub fn transactions(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let statements = statements(ctx);
    for (_, report) in ctx.engine_locks() {
        let mut requested: HashMap<u64, &str> = HashMap::new();
        let mut tables: HashMap<u64, HashSet<&str>> = HashMap::new();
        for lock in &report.locks {
            tables.entry(lock.transaction).or_default().insert(&lock.table);
            if lock.is_waiting {
                requested.insert(lock.transaction, &lock.id);
            }
        }
        for one in &report.transactions {
            let wanted = requested.get(&one.id).copied();
            let table_count = tables.get(&one.id).map_or(0, HashSet::len) as u64;
            emit(&transaction_row(one, wanted, table_count, statements.get(&one.session)))?;
        }
    }
    Ok(())
}

fn transaction_row(
    one: &TransactionView,
    requested: Option<&str>,
    table_count: u64,
    statement: Option<&String>,
) -> Vec<Value> {
    const QUERY_CHARACTERS: usize = 1024;
    let waits = one.waits_since_micros;
    vec![
        Value::UInt(one.id),
        Value::text(if waits.is_some() { "LOCK WAIT" } else { "RUNNING" }),
        time(one.started_micros as i64),
        optional(requested.filter(|_| waits.is_some())),
        waits.map_or(Value::Null, |since| time(since as i64)),
        Value::UInt(one.lock_count + one.rows_changed),
        Value::UInt(one.session),
        optional(statement.map(|text| beginning(text, QUERY_CHARACTERS))),
        Value::Null,
        // Tables in use are not known here, memory is not counted by transaction.
        Value::UInt(0),
        Value::UInt(table_count),
        Value::UInt(one.lock_count),
        Value::UInt(0),
        Value::UInt(one.rows_locked),
        Value::UInt(one.rows_changed),
        Value::UInt(0),
        Value::text(level_name(one.isolation)),
        Value::Int(1),
        Value::Int(1),
        Value::Null,
        Value::Int(0),
        Value::UInt(0),
        Value::Int(0),
        Value::Int(0),
        Value::Null,
    ]
}

#[cfg(test)]
mod tests {
    use engine_api::{LockKind, LockReport, LockView};

    #[test]
    fn a_report_of_some_sessions_has_the_waits_among_them() {
        let lock = |session: u64| LockView {
            id: session.to_string(),
            transaction: session,
            session,
            table: "test.t".into(),
            index: None,
            kind: LockKind::Record,
            is_shared: false,
            is_waiting: false,
            data: None,
        };
        let waits = vec![(1, 0), (2, 1), (2, 0)];
        let locks = [5, 6, 7].map(lock).to_vec();
        let mut report = LockReport { transactions: Vec::new(), locks, waits };
        report.retain(|session| session != 6);
        assert_eq!((report.locks.len(), report.waits), (2, vec![(1, 0)]));
    }
}
