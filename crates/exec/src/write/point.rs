//! A change of one row that is found by its whole clustered key: it is read without a lock, and written if no transaction has changed or
//! locked it since.
//!
//! For UPDATE and DELETE that need no more than this, and a log that is told of the row first. Every other case (no such row, a
//! conflicting transaction, an error, a warning, nothing to change) leaves no trace, and the statement runs through operators, which lock before they read.

use engine_api::{EngineError, IndexId, RowLock};
use errors::Result;
use plan::writing::{filter_may_repeat, is_alone, may_repeat};
use plan::{Expr, Physical, TableWrite};
use types::Value;

use super::row::Strictness;
use super::table::WriteTable;
use super::target_rows::TargetRows;
use super::update::{AssignmentCode, assign_values};
use super::watched;
use crate::buffers::{PointBuffers, RecordBuffers};
use crate::ops::{AccessNode, Node, ScanNode};
use crate::run::Run;

/// How much a statement reads of the one row that it may change.
pub(crate) enum PointRow {
    /// Some columns (index in the record, register): the new record copies the others from the old one.
    Columns(Vec<(usize, usize)>),
    /// The whole row: an expression or a check reads all of it.
    Whole,
}

/// The scan that finds one row by its whole clustered key, when `root` is one that is not measured.
fn point_scan(target_rows: &TargetRows) -> Option<&ScanNode> {
    let Node::Scan(scan) = &target_rows.root else { return None };
    let is_point = matches!(scan.access, AccessNode::Unique { index: IndexId::CLUSTERED, .. });
    let is_plain = scan.measured.is_none() && target_rows.limit.is_none() && !target_rows.buffered;
    (is_point && is_plain && scan.table.lock == RowLock::Exclusive).then_some(scan)
}

impl PointRow {
    /// For an UPDATE of one table; `None` when it has to run through operators.
    pub(crate) fn of_update(
        (root, target_rows): (&Physical, &TargetRows),
        (plan, table): (&TableWrite, &WriteTable),
        changes: &[plan::Assignment],
    ) -> Option<PointRow> {
        let scan = point_scan(target_rows).filter(|scan| scan.table.table == table.id)?;
        let assigns = |column| changes.iter().any(|change| change.column == column);
        let writes = |column: usize| {
            let column_plan = &plan.columns[column];
            assigns(column)
                || column_plan.on_update_now.is_some()
                || column_plan.generated.is_some()
        };
        let mut values = changes.iter().filter_map(|change| change.value.as_ref());
        let defaults = plan.columns.iter().filter_map(|column| column.default.as_ref());
        let may_repeat_all = is_alone(plan, writes)
            && values.all(may_repeat)
            && defaults.into_iter().all(may_repeat)
            && filter_may_repeat(root)
            && !table.auto_increment.is_some_and(assigns);
        may_repeat_all.then(|| columns_of_update(scan, (plan, table), changes))
    }

    /// As `of_update`, for a DELETE that returns nothing.
    pub(crate) fn of_delete(
        (root, target_rows): (&Physical, &TargetRows),
        (plan, table): (&TableWrite, &WriteTable),
    ) -> Option<PointRow> {
        point_scan(target_rows).filter(|scan| scan.table.table == table.id)?;
        let is_alone =
            plan.triggers.is_none() && plan.fulltext.is_empty() && plan.history.is_none();
        let is_alone = is_alone && plan.children.is_empty() && filter_may_repeat(root);
        is_alone.then(|| PointRow::Columns(Vec::new()))
    }

    /// Finds the row and loads it. Its record is in `buffers.old`.
    fn read(
        &self,
        target_rows: &TargetRows,
        buffers: &mut PointBuffers,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let Some(scan) = point_scan(target_rows) else { return Ok(false) };
        let AccessNode::Unique { key, .. } = &scan.access else { return Ok(false) };
        buffers.key.clear();
        for part in key {
            if !part.append(run, &mut buffers.key)? {
                return Ok(false);
            }
        }
        let table = &scan.table;
        let txn = run.transaction(table.engine)?;
        let read = txn.read_unlocked(table.table, &buffers.key, &mut buffers.old);
        if !read.is_ok_and(|is_there| is_there) {
            return Ok(false);
        }
        table.load(&table.first, &buffers.old, run)?;
        if let Some(filter) = &scan.filter
            && !filter.holds(run)?
        {
            return Ok(false);
        }
        let columns = if let PointRow::Columns(columns) = self { columns } else { &table.rest };
        table.load(columns, &buffers.old, run).map(|()| true)
    }

    /// Makes the row's new record. False: nothing is to be changed.
    fn make(
        &self,
        (table, assignments): (&WriteTable, &[AssignmentCode]),
        strictness: Strictness,
        (old, buffers): (&[u8], &mut RecordBuffers),
        run: &mut Run<'_>,
    ) -> Result<bool> {
        if !assign_values(table, assignments, 1, strictness, buffers, run)? {
            return Ok(false);
        }
        if let PointRow::Columns(_) = self {
            let value_of = |at: usize| {
                let is_written = assignments.iter().any(|assignment| assignment.column == at)
                    || table.columns[at].on_update_now.is_some();
                is_written.then(|| &run.regs[table.columns[at].register])
            };
            return table.layout.encode_over(old, value_of, &mut buffers.record);
        }
        table.encode(&mut buffers.new, &mut buffers.record, run)?;
        Ok(true)
    }

    /// Updates the row. False: the statement has yet to run.
    pub(crate) fn update(
        &self,
        target_rows: &TargetRows,
        target: (&WriteTable, &[AssignmentCode]),
        (strictness, is_logged): (Strictness, bool),
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let (mut buffers, mut records) =
            (std::mem::take(&mut run.buffers.point), std::mem::take(&mut run.buffers.records));
        let made = match self.read(target_rows, &mut buffers, run) {
            Ok(true) => self.make(target, strictness, (&buffers.old, &mut records), run),
            other => other,
        };
        let (table, record) = (target.0, Some(&records.record[..]));
        let written = self.write((made, table), &buffers, record, is_logged, run);
        if matches!(written, Ok(true)) {
            run.count_updated(table.id);
        }
        (run.buffers.point, run.buffers.records) = (buffers, records);
        written
    }

    /// Deletes the row. False: the statement has yet to run.
    pub(crate) fn delete(
        &self,
        target_rows: &TargetRows,
        table: &WriteTable,
        is_logged: bool,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let mut buffers = std::mem::take(&mut run.buffers.point);
        let found = self.read(target_rows, &mut buffers, run);
        let written = self.write((found, table), &buffers, None, is_logged, run);
        if matches!(written, Ok(true)) {
            run.count_deleted(table.id);
        }
        run.buffers.point = buffers;
        written
    }

    /// Writes the new record, if everything has succeeded so far.
    fn write(
        &self,
        (made, table): (Result<bool>, &WriteTable),
        buffers: &PointBuffers,
        record: Option<&[u8]>,
        is_logged: bool,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        // An error, or a warning that may become one, occurs again when the statement runs.
        if matches!(made, Ok(true)) && run.function.diagnostics.is_empty() {
            let mark = match is_logged {
                true => Some(watched::log_row(table, (&buffers.old, record), run)?),
                false => None,
            };
            let transaction = run.transaction(table.engine)?;
            match transaction.write_if_unchanged(table.id, &buffers.key, record) {
                Ok(true) => {
                    run.counts.examined += 1;
                    run.counts.read_key += 1;
                    if let Some(work) = &run.tables {
                        work.fetched(table.id, Some(IndexId::CLUSTERED), 1);
                    }
                    return Ok(true);
                }
                Ok(false) | Err(EngineError::DuplicateKey { .. }) => watched::undo_to(mark, run),
                Err(error) => {
                    watched::undo_to(mark, run);
                    return Err(run.engine_error(error));
                }
            }
        }
        // State that the attempt has left in the statement.
        run.function.diagnostics.clear();
        run.regs.fill(Value::Null);
        run.memo.once.fill(None);
        Ok(false)
    }
}

/// The columns that an UPDATE has to load in addition to those of its filter.
fn columns_of_update(
    scan: &ScanNode,
    (plan, table): (&TableWrite, &WriteTable),
    changes: &[plan::Assignment],
) -> PointRow {
    let asks_row = table.has_generated
        || !table.virtuals.is_empty()
        || !table.checks.is_empty()
        || !table.view_checks.is_empty()
        || table.selected.is_some()
        || plan.columns.iter().any(|column| {
            let is_simple =
                |expr: &Expr| !expr.any(&mut |part| matches!(part, Expr::Column { .. }));
            !column.default.as_ref().is_none_or(is_simple)
        });
    if asks_row {
        return PointRow::Whole;
    }
    let mut read = plan::RegisterSet::new();
    for change in changes {
        read.insert(plan.columns[change.column].register);
        if let Some(value) = &change.value {
            value.add_registers(&|_| &[], &mut read);
        }
    }
    let is_read =
        |(_, register): &&(usize, usize)| read.iter().any(|known| known.0 as usize == *register);
    PointRow::Columns(scan.table.rest.iter().filter(is_read).copied().collect())
}
