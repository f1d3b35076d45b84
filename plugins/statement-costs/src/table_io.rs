//! Rows that statements read and write by table and index: `table_io_waits_summary_by_table` and `_by_index_usage`. Counted while the
//! instrument `wait/io/table/sql/handler` is on; times are not measured.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, TableDetail, TableRows};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering};
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;

/// The instrument that switches it.
pub(crate) const INSTRUMENT: &str = "wait/io/table/sql/handler";
/// Tables that are told apart; the work on further ones is not kept.
const TABLES_MAX: usize = 10_000;

/// Rows that were fetched, inserted, updated and deleted.
type Counts = [u64; 4];
type Table = (Arc<str>, Arc<str>);

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct TableIo {
    is_on: AtomicBool,
    tables: Mutex<HashMap<Table, BTreeMap<Option<Arc<str>>, Counts>>>,
}

impl TableIo {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Returns whether that changed anything.
    pub(crate) fn switch(&self, on: bool) -> bool {
        self.is_on.swap(on, Ordering::Relaxed) != on
    }

    /// Adds the work of a statement.
    pub(crate) fn add(&self, rows: &[TableRows]) {
        let mut tables = self.tables.lock();
        for one in rows {
            let key = (one.schema.clone(), one.table.clone());
            if tables.len() >= TABLES_MAX && !tables.contains_key(&key) {
                continue;
            }
            let counts = tables.entry(key).or_default().entry(one.index.clone()).or_default();
            let more = [one.fetched, one.inserted, one.updated, one.deleted];
            counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
    }

    pub(crate) fn clear(&self) {
        self.tables.lock().clear();
    }
}

fn sum(one: Counts, other: &Counts) -> Counts {
    std::array::from_fn(|at| one[at] + other[at])
}

/// The columns from COUNT_STAR on: each count with four times, which are not measured.
fn columns([fetched, inserted, updated, deleted]: Counts) -> impl Iterator<Item = Value> {
    let written = inserted + updated + deleted;
    let counts = [fetched + written, fetched, written, fetched, inserted, updated, deleted];
    counts.into_iter().flat_map(|count| [count, 0, 0, 0, 0]).map(Value::UInt)
}

/// Calls `visit` with the counts of each table that the account sees and that still exists, and with the names of its indexes.
fn visit(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    visit: &mut dyn FnMut(&Table, &BTreeMap<Option<Arc<str>>, Counts>, &[String]) -> Result<()>,
) -> Result<()> {
    let tables = recorder.table_io.tables.lock().clone();
    let tables: BTreeMap<_, _> = tables.into_iter().collect();
    for (name, counts) in &tables {
        ctx.tables(&name.0, Some(&name.1), TableDetail::Definition, &mut |view| {
            let indexes: Vec<String> =
                view.indexes.iter().map(|index| index.name.clone()).collect();
            visit(name, counts, &indexes)
        })?;
    }
    Ok(())
}

/// `table_io_waits_summary_by_table`.
pub(crate) fn by_table(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(recorder, ctx, &mut |(schema, table), counts, _| {
        let mut row = vec![Value::text("TABLE"), Value::text(schema), Value::text(table)];
        row.extend(columns(counts.values().fold(Counts::default(), sum)));
        emit(&row)
    })
}

/// `table_io_waits_summary_by_index_usage`: each index, also those that nobody used, and NULL for scans of the table and for writes.
pub(crate) fn by_index(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(recorder, ctx, &mut |(schema, table), counts, indexes| {
        let names = indexes.iter().map(|name| Some(Arc::from(name.as_str()))).chain([None]);
        for name in names {
            let counts = counts.get(&name).copied().unwrap_or_default();
            let mut row = vec![Value::text("TABLE"), Value::text(schema), Value::text(table)];
            row.push(name.as_deref().map_or(Value::Null, Value::text));
            row.extend(columns(counts));
            emit(&row)?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(table: usize, fetched: u64) -> TableRows {
        let (schema, table, index) = ("s".into(), table.to_string().into(), None);
        TableRows { schema, table, index, fetched, inserted: 1, updated: 0, deleted: 0 }
    }

    #[test]
    fn counts_add_up_and_tables_are_bounded() {
        let io = TableIo::default();
        io.add(&[rows(0, 2), rows(0, 3)]);
        (1..2 * TABLES_MAX).for_each(|table| io.add(&[rows(table, 1)]));
        let tables = io.tables.lock();
        assert_eq!(tables.len(), TABLES_MAX);
        let first = &tables[&("s".into(), "0".into())][&None];
        assert_eq!(*first, [5, 2, 0, 0]);
        let shown: Vec<Value> = columns(*first).step_by(5).collect();
        assert_eq!(shown, [7, 5, 2, 5, 2, 0, 0].map(Value::UInt));
    }
}
