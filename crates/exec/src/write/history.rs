//! Rows of tables that keep history: a row that is inserted is current from now on, and one that is changed or deleted was current until now.
//!
//! The time is that of the statement, but a row never ends before it began: a statement that waited for another one's row takes that
//! row's time. A row that was current for no time at all is not kept, except that a DELETE keeps it if its keys are free.

use errors::{Error, ErrorCode, Result};
use plan::HistoryWrite;
use rows::times::{self, Successor, is_before};
use types::{DateTime, Value};

use super::Written;
use super::system_partitions;
use super::table::WriteTable;
use super::watched::{delete_row, insert_row, update_row};
use crate::run::Run;

fn now(run: &Run<'_>) -> Value {
    DateTime::from_unix_micros(run.function.now_micros).map_or(Value::Null, Value::DateTime)
}

/// The new row in the registers is current, unless the statement says from when to when it was. `targets`: the columns with values.
pub(crate) fn begin(table: &WriteTable, targets: &[usize], run: &mut Run<'_>) {
    let Some(history) = &table.history else { return };
    let times = [(history.start, now(run)), (history.end, history.never.clone())];
    for (at, time) in times.into_iter().filter(|(at, _)| !targets.contains(at)) {
        run.regs[table.columns[at].register] = time;
    }
}

/// Gives the changed row in the registers its time.
pub(crate) fn stamp(table: &WriteTable, old: &[Value], run: &mut Run<'_>) {
    let Some(history) = &table.history else { return };
    let differs = |at: &usize| run.regs[table.columns[*at].register] != old[*at];
    let is_changed = history.kept.iter().any(differs);
    run.regs[table.columns[history.start].register] =
        times::began(&old[history.start], now(run), is_changed);
}

/// As `stamp`, for a row that is not in the registers.
pub(crate) fn stamp_apart(table: &WriteTable, old: &[Value], new: &mut [Value], run: &Run<'_>) {
    let Some(history) = &table.history else { return };
    let is_changed = history.kept.iter().any(|at| new[*at] != old[*at]);
    new[history.start] = times::began(&old[history.start], now(run), is_changed);
}

/// Keeps what a row was before it was changed.
pub(crate) fn keep(
    table: &WriteTable,
    old: &[Value],
    new: &[Value],
    run: &mut Run<'_>,
) -> Result<()> {
    let Some(history) = &table.history else { return Ok(()) };
    if !is_before(&old[history.start], &new[history.start]) {
        return Ok(());
    }
    let end = new[history.start].clone();
    close(table, history, (old, end), run, &mut |record, run| {
        insert_row(table, record, |transaction| transaction.insert(table.id, record), run)
    })
}

/// Writes a row that ends, a moment later where another row with its unique key ended at the same time.
fn close(
    table: &WriteTable,
    history: &HistoryWrite,
    (old, mut end): (&[Value], Value),
    run: &mut Run<'_>,
    write: &mut dyn FnMut(&[u8], &mut Run<'_>) -> Result<Written>,
) -> Result<()> {
    /// Rows with the same key that ended at the same moment, at most.
    const ENDS_MAX: usize = 1000;
    let (mut row, mut record) = (old.to_vec(), Vec::new());
    for _ in 0..ENDS_MAX {
        row[history.end] = end.clone();
        if let Some(of) = &table.partitions {
            row[of.number] =
                system_partitions::number((of, table.engine), (&end, &row[of.number]), run)?;
        }
        record.clear();
        table.layout.encode(&row, &mut record)?;
        if let Written::Done = write(&record, run)? {
            return Ok(());
        }
        if let Value::DateTime(time) = end {
            end = Value::DateTime(time.add_micros(1).unwrap_or(time));
        }
    }
    Err(Error::with(ErrorCode::DUP_KEY, &[&""]))
}

/// Removes the row at `locator` from the current ones; false when it does not exist. `old` are its values, if the table keeps history.
pub(crate) fn remove_row(
    table: &WriteTable,
    locator: &[u8],
    old: &[Value],
    successor: Successor,
    run: &mut Run<'_>,
) -> Result<bool> {
    let Some(history) = &table.history else { return delete_row(table, locator, run) };
    let (start, end) = (&old[history.start], now(run));
    let is_kept = is_before(start, &end) || successor == Successor::None && *start == end;
    if old[history.end] != history.never || !is_kept {
        return delete_row(table, locator, run);
    }
    let has_lasted = is_before(start, &end);
    close(table, history, (old, end), run, &mut |record, run| match update_row(
        table, locator, record, run,
    )? {
        Written::Duplicate { .. } if !has_lasted => {
            delete_row(table, locator, run).map(|_| Written::Done)
        }
        written => Ok(written),
    })?;
    Ok(true)
}
