//! Rows of a table without a key are found by what is in them: the changes of a statement are kept in a hash table by the rows before the change, and one UPDATE or
//! DELETE reads the table once and asks two functions about each row: whether it is one of them, and what becomes of it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use binlog::{Row, RowsKind};
use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use sys::sync::Mutex;
use types::Value;

use crate::local::Run;
use crate::target::{Change, HashStatement};

/// Under which the functions find the rows.
pub(crate) const STATE: &str = "replica.rows";
/// Whether a row is one that is to be changed.
pub(crate) const FIND: &str = "SQUALL_REPLICATION.FIND_ROW";
/// What becomes of a column.
pub(crate) const TAKE: &str = "SQUALL_REPLICATION.ROW_VALUE";
/// Most bytes of the events whose rows are kept.
pub(crate) const BYTES_MAX: usize = 16 << 20;

/// Rows that are the same before the change.
#[derive(Debug, Default)]
struct Alike {
    /// How many of them were not found yet.
    missing: usize,
    /// The numbers of those whose change was not made.
    waiting: VecDeque<usize>,
}

/// The changes that a session makes.
#[derive(Debug)]
struct Changes {
    by_row: HashMap<Vec<u8>, Alike>,
    rows: Vec<Row>,
    /// The row whose values are asked for.
    present: Option<usize>,
}

/// The changes of all sessions that apply, by the numbers of their connections.
#[derive(Debug, Default)]
pub(crate) struct HashedRows {
    sessions: Mutex<HashMap<u64, Arc<Mutex<Changes>>>>,
}

impl HashedRows {
    fn of(&self, session: u64) -> Option<Arc<Mutex<Changes>>> {
        self.sessions.lock().get(&session).cloned()
    }

    /// Makes changes of rows in the open transaction by one statement. Those are returned whose row it did not find.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn change(
        &self,
        local: &mut dyn Run,
        session: u64,
        statement: &HashStatement,
        rows: Vec<Row>,
    ) -> Result<Vec<Row>> {
        let mut by_row: HashMap<Vec<u8>, Alike> = HashMap::with_capacity(rows.len());
        for (number, row) in rows.iter().enumerate() {
            let mut name = Vec::new();
            for at in &statement.read {
                put(
                    row.before.get(*at).and_then(Option::as_ref).unwrap_or(&Value::Null),
                    &mut name,
                );
            }
            let alike = by_row.entry(name).or_default();
            alike.missing += 1;
            alike.waiting.push_back(number);
        }
        let count = rows.len() as u64;
        let changes = Arc::new(Mutex::new(Changes { by_row, rows, present: None }));
        self.sessions.lock().insert(session, changes.clone());
        let done = local.execute(&statement.sql, &[Value::UInt(count)]);
        self.sessions.lock().remove(&session);
        let deleted = done?.affected_rows as usize;
        let mut changes = changes.lock();
        if statement.kind == RowsKind::Delete {
            let found: usize =
                changes.by_row.values().map(|alike| alike.waiting.len() - alike.missing).sum();
            if found != deleted {
                // Whether a row was deleted that was found is not known: the transaction begins anew.
                let text = format!("{found} rows were found, and {deleted} deleted");
                return Err(Error::new(ErrorCode::LOCK_DEADLOCK, text));
            }
            for alike in changes.by_row.values_mut() {
                alike.waiting.truncate(alike.missing);
            }
        }
        let mut left: Vec<usize> =
            changes.by_row.values().flat_map(|alike| alike.waiting.iter().copied()).collect();
        left.sort_unstable();
        Ok(left.iter().map(|number| std::mem::take(&mut changes.rows[*number])).collect())
    }
}

/// Makes the changes of rows one by one.
///
/// # Errors
/// Those of the statements; 1032 when a row is not there.
pub(crate) fn one_by_one(local: &mut dyn Run, change: &Change, rows: &[Row]) -> Result<()> {
    if change.is_empty() {
        return Ok(());
    }
    rows.iter().try_for_each(|row| change.run(local, &row.before, &row.after))
}

/// Appends a value so that the same values are the same bytes.
fn put(value: &Value, out: &mut Vec<u8>) {
    let mut put_text = |tag: u8, text: &[u8]| {
        out.push(tag);
        out.extend_from_slice(&(text.len() as u64).to_le_bytes());
        out.extend_from_slice(text);
    };
    match value {
        Value::Null => out.push(0),
        Value::Int(number) => put_text(1, &i128::from(*number).to_le_bytes()),
        Value::UInt(number) => put_text(1, &i128::from(*number).to_le_bytes()),
        // 0.0 and -0.0 are the same.
        Value::Double(number) => put_text(2, &(number + 0.0).to_le_bytes()),
        Value::Decimal(number) => put_text(3, number.to_string().as_bytes()),
        Value::Bytes(bytes) => put_text(4, bytes),
        Value::Date(date) => put_text(5, &date.packed().to_le_bytes()),
        Value::Time(time) => {
            let seconds = (time.hour() * 60 + time.minute()) * 60 + time.second();
            let sign = if time.is_negative() { -1 } else { 1 };
            let micros = i64::from(seconds) * 1_000_000 + i64::from(time.microsecond());
            put_text(6, &(sign * micros).to_le_bytes());
        }
        Value::DateTime(at) => {
            let parts = [at.year(), at.month(), at.day(), at.hour(), at.minute(), at.second()];
            let parts: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
            put_text(7, &[&parts[..], &at.microsecond().to_le_bytes()].concat());
        }
        Value::Json(document) => put_text(8, document),
    }
}

/// The functions. They know the rows of the session alone that applies them: to others every row is another one.
pub(crate) fn functions() -> [ScalarFunction; 2] {
    let find = "squall_replication.find_row(column, ..)\nFor replicas: whether the row is one that the source changed, where the table has no key.";
    let take = "squall_replication.row_value(number, column [, column ..])\nFor replicas: the value that a column of the row gets; with columns, of the row that they are of.";
    [
        scalar(FIND, Arity::at_least(1), find, bind_find).volatile(),
        scalar(TAKE, Arity::at_least(2), take, bind_take).volatile(),
    ]
}

fn changes_of(ctx: &FunctionContext<'_>) -> Option<Arc<Mutex<Changes>>> {
    let state = ctx.session.shared_state(STATE)?;
    let rows = state.downcast::<HashedRows>().ok()?;
    rows.of(ctx.session.connection_id())
}

fn name_of(values: &[Value]) -> Vec<u8> {
    let mut name = Vec::new();
    values.iter().for_each(|value| put(value, &mut name));
    name
}

fn bind_find(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::AsIs; args.len()];
    Ok(BoundFunction::new(kit::integer_type(1, false), coercions, find).with_nulls())
}

fn find(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let Some(changes) = changes_of(ctx) else { return Ok(Value::Int(0)) };
    let mut changes = changes.lock();
    let found = changes.by_row.get_mut(&name_of(args)).filter(|alike| alike.missing > 0);
    let Some(alike) = found else { return Ok(Value::Int(0)) };
    alike.missing -= 1;
    Ok(Value::Int(1))
}

fn bind_take(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = args[1].ty.clone().with_nullable(true);
    let mut coercions = vec![Coercion::AsIs; args.len()];
    coercions[0] = Coercion::Integer;
    Ok(BoundFunction::new(ty, coercions, take).with_nulls())
}

/// Without such a row the column keeps its value.
fn take(ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<Value> {
    let as_it_was = || Ok(args[1].clone());
    let Some(changes) = changes_of(ctx) else { return as_it_was() };
    let mut changes = changes.lock();
    if args.len() > 2 {
        let alike = changes.by_row.get_mut(&name_of(&args[2..]));
        changes.present = alike.and_then(|alike| alike.waiting.pop_front());
    }
    let Ok(at) = usize::try_from(kit::integer(&args[0])) else { return as_it_was() };
    match changes.present.and_then(|number| changes.rows.get(number)?.after.get(at)?.clone()) {
        Some(value) => Ok(value),
        None => as_it_was(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_values_are_the_same_bytes() {
        assert_eq!(name_of(&[Value::Int(7)]), name_of(&[Value::UInt(7)]));
        assert_eq!(name_of(&[Value::Double(0.0)]), name_of(&[Value::Double(-0.0)]));
        let different = [
            vec![Value::Null],
            vec![Value::text("")],
            vec![Value::text("a"), Value::text("b")],
            vec![Value::text("ab")],
            vec![Value::Int(-1)],
            vec![Value::UInt(u64::MAX)],
        ];
        for (at, one) in different.iter().enumerate() {
            for other in &different[at + 1..] {
                assert_ne!(name_of(one), name_of(other), "{one:?} and {other:?}");
            }
        }
    }
}
