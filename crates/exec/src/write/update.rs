//! UPDATE, and the update half of INSERT ... ON DUPLICATE KEY UPDATE.

use engine_api::{EngineIndex, RowLock};
use errors::Result;
use plan::writing::{edits, has_join};
use plan::{Assignment, RegisterSet, UpdatePlan};
use rows::times::is_before;
use types::Value;

use super::insert::raise_counter;
use super::point::PointRow;
use super::portion::{self, PortionCode};
use super::row::{Strictness, default_value, evaluate, not_null};
use super::table::{StoreCode, TableCompiler, WriteColumn, WriteTable, engines, store_code};
use super::target_rows::{TargetRows, VisitedRows, changes_alone};
use super::twins::WrittenRows;
use super::watched::{update_row, wish};
use super::{Written, atomically, foreign, history, ignored};
use crate::buffers::RecordBuffers;
use crate::context::{ExecContext, Outcome, RowSink};
use crate::ops::NodeCompiler;
use crate::output::{self, ComputedRow, Output};
use crate::run::{Body, Run};
use crate::watch::RowWish;

/// What a column becomes.
pub(crate) enum NewValue {
    Default,
    Computed(StoreCode),
    Known(Value),
    /// It stays, unless it is earlier.
    NotBefore(StoreCode),
    /// It stays, unless it is later.
    NotAfter(StoreCode),
}

/// A compiled assignment.
pub(crate) struct AssignmentCode {
    pub(crate) column: usize,
    pub(crate) value: NewValue,
}

pub(crate) fn assignments(
    plan: &[Assignment],
    compiler: &mut NodeCompiler<'_>,
) -> Result<Vec<AssignmentCode>> {
    plan.iter()
        .map(|assignment| {
            let value = assignment.value.as_ref();
            let value = match value {
                Some(value) => NewValue::Computed(store_code(value, compiler)?),
                None => NewValue::Default,
            };
            Ok(AssignmentCode { column: assignment.column, value })
        })
        .collect()
}

/// Assigns to the row in the registers. Returns whether it changed; then `buffers` holds the record, and for foreign keys the old and
/// new values.
pub(crate) fn assign(
    table: &WriteTable,
    assignments: &[AssignmentCode],
    row: u64,
    strictness: Strictness,
    buffers: &mut RecordBuffers,
    run: &mut Run<'_>,
) -> Result<bool> {
    if !assign_values(table, assignments, row, strictness, buffers, run)? {
        return Ok(false);
    }
    table.encode(&mut buffers.new, &mut buffers.record, run)?;
    Ok(true)
}

/// As `assign`, without building the record.
pub(crate) fn assign_values(
    table: &WriteTable,
    assignments: &[AssignmentCode],
    row: u64,
    strictness: Strictness,
    buffers: &mut RecordBuffers,
    run: &mut Run<'_>,
) -> Result<bool> {
    let triggers = table.triggers.as_deref();
    buffers.old.clear();
    if triggers.is_some() || table.needs_values() {
        buffers.old.extend(table.columns.iter().map(|column| run.regs[column.register].clone()));
    } else {
        // Only values that may change are checked again.
        buffers.old.resize(table.columns.len(), Value::Null);
        for AssignmentCode { column, .. } in assignments {
            buffers.old[*column].clone_from(&run.regs[table.columns[*column].register]);
        }
    }
    if triggers.is_some() {
        table.row(row, &mut buffers.old_row, run)?;
    }
    let before = triggers.map_or(&[][..], |triggers| &triggers.before_update);
    for assignment in assignments {
        let column = &table.columns[assignment.column];
        let value = match &assignment.value {
            NewValue::Computed(code) => evaluate(code, column, row, strictness.mode, run)?,
            NewValue::Default => default_value(column, row, strictness, run)?,
            NewValue::Known(value) => value.clone(),
            NewValue::NotBefore(code) | NewValue::NotAfter(code) => {
                let is_late = matches!(assignment.value, NewValue::NotAfter(_));
                let bound = evaluate(code, column, row, strictness.mode, run)?;
                let known = run.regs[column.register].clone();
                let goes = match is_late {
                    true => is_before(&bound, &known),
                    false => is_before(&known, &bound),
                };
                if goes { bound } else { known }
            }
        };
        // Triggers may still replace NULL by another value.
        run.regs[column.register] = match before.is_empty() {
            true => not_null(value, column, strictness, run)?,
            false => value,
        };
    }
    let changed = assignments.iter().any(|assignment| {
        run.regs[table.columns[assignment.column].register] != buffers.old[assignment.column]
    });
    if !changed && before.is_empty() {
        return Ok(false);
    }
    for (at, column) in table.columns.iter().enumerate() {
        if let Some(now) = &column.on_update_now
            && changed
            && !assignments.iter().any(|assignment| assignment.column == at)
        {
            run.regs[column.register] = evaluate(now, column, row, strictness.mode, run)?;
        }
    }
    if !before.is_empty() {
        table.row_before(row, &mut buffers.new_row, run)?;
        run.fire(before, &buffers.old_row, &mut buffers.new_row)?;
        table.take_row(&mut buffers.new_row, run);
        table.check_nulls(strictness, run)?;
        let differs = |(column, old): (&WriteColumn, &Value)| run.regs[column.register] != *old;
        if !table.columns.iter().zip(&buffers.old).any(differs) {
            return Ok(false);
        }
    }
    history::stamp(table, &buffers.old, run);
    table.generate(row, strictness, run)?;
    table.check(run)?;
    Ok(true)
}

/// AFTER UPDATE, even without a change: the row is in the registers, and `assign` has left the old one in `buffers`.
pub(crate) fn fire_after(
    table: &WriteTable,
    row: u64,
    buffers: &mut RecordBuffers,
    run: &mut Run<'_>,
) -> Result<()> {
    let after = table.triggers.as_deref().map_or(&[][..], |triggers| &triggers.after_update);
    if after.is_empty() {
        return Ok(());
    }
    table.row(row, &mut buffers.new_row, run)?;
    run.fire(after, &buffers.old_row, &mut buffers.new_row)
}

/// Writes the changed row: foreign keys, then the engine.
pub(crate) fn replace_row(
    table: &WriteTable,
    related: &[WriteTable],
    locator: &[u8],
    buffers: &RecordBuffers,
    run: &mut Run<'_>,
) -> Result<()> {
    foreign::check_parents(table, related, Some(&buffers.old), &buffers.new, run)?;
    let path = foreign::Path::new(table, locator);
    let fate = foreign::Fate::Updated(&buffers.new);
    foreign::handle_children(table, related, &path, &buffers.old, fate, run)?;
    run.count_updated(table.id);
    match update_row(table, locator, &buffers.record, run)? {
        Written::Done => history::keep(table, &buffers.old, &buffers.new, run),
        Written::Duplicate { index, .. } => Err(table.duplicate(index, run)),
    }
}

/// A table with its locator register and assignments.
pub(crate) struct UpdateTarget {
    pub(crate) table: WriteTable,
    locator: usize,
    pub(crate) assignments: Vec<AssignmentCode>,
    portion: Option<Box<PortionCode>>,
}

/// The columns that become what functions make of the documents in them.
fn edited(table: &WriteTable, changes: &[Assignment]) -> Box<[usize]> {
    let is_edited = |change: &&Assignment| {
        let value = change.value.as_ref();
        value.is_some_and(|value| edits(value, table.columns[change.column].register))
    };
    changes.iter().filter(is_edited).map(|change| change.column).collect()
}

/// A compiled UPDATE.
pub(crate) struct UpdateProgram {
    pub(crate) body: Body,
    target_rows: TargetRows,
    targets: Vec<UpdateTarget>,
    related: Vec<WriteTable>,
    engines: Vec<EngineIndex>,
    ignore: bool,
    returning: Vec<Output>,
    /// Registers of values, each with the register that keeps for RETURNING what was there before.
    old: Vec<(usize, usize)>,
    /// Set when the statement only changes one row found by its whole key.
    point: Option<PointRow>,
}

impl UpdateProgram {
    pub(crate) fn compile(
        plan: &UpdatePlan,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<UpdateProgram> {
        let tables = TableCompiler::new(plan.targets.iter().map(|(table, _, _)| table));
        let subqueries = compiler.exprs.subqueries;
        let mut kept = RegisterSet::new();
        let mut targets = Vec::with_capacity(plan.targets.len());
        for (table, locator, changes) in &plan.targets {
            kept.insert(*locator);
            table.columns.iter().for_each(|column| _ = kept.insert(column.register));
            for expr in changes.iter().filter_map(|change| change.value.as_ref()) {
                expr.add_registers(
                    &|id| subqueries.get(id.0 as usize).map_or(&[], |query| query.outer.as_slice()),
                    &mut kept,
                );
            }
            let mut written = tables.table(table, compiler)?;
            if plan.targets.len() == 1 {
                written.edited = edited(&written, changes);
            }
            let mut all = portion::cuts(table.portion.as_deref(), compiler)?;
            all.extend(assignments(changes, compiler)?);
            targets.push(UpdateTarget {
                table: written,
                locator: locator.0 as usize,
                assignments: all,
                portion: PortionCode::compile(table, compiler)?,
            });
        }
        for output in &plan.returning {
            output.expr.add_registers(
                &|id| subqueries.get(id.0 as usize).map_or(&[], |query| query.outer.as_slice()),
                &mut kept,
            );
        }
        plan.old.iter().for_each(|(_, before)| kept.remove(*before));
        let related = tables.related(compiler)?;
        let returning = plan.returning.iter();
        let returning = returning
            .map(|output| Ok(Output::new(compiler.exprs.expr(&output.expr)?)))
            .collect::<Result<_>>()?;
        let all = targets.iter().map(|target| &target.table).chain(&related);
        compiler.all_read =
            plan.limit.is_none() && plan.targets.iter().all(|(table, ..)| changes_alone(table));
        let target_rows = TargetRows {
            root: compiler.node(&plan.root)?,
            limit: compiler.exprs.option(plan.limit.as_ref())?,
            buffered: plan.buffered || plan.targets.len() > 1,
            kept: kept.iter().map(|register| register.0 as usize).collect(),
            may_repeat: has_join(&plan.root),
        };
        let point = match (&plan.targets[..], &targets[..]) {
            ([(written, _, changes)], [target]) if plan.returning.is_empty() => {
                let (found, written) = ((&plan.root, &target_rows), (written, &target.table));
                PointRow::of_update(found, written, changes)
            }
            _ => None,
        };
        Ok(UpdateProgram {
            engines: engines(all),
            target_rows,
            point,
            ignore: plan.ignore,
            returning,
            old: plan.old.iter().map(|(new, old)| (new.0 as usize, old.0 as usize)).collect(),
            body: Body::default(),
            targets,
            related,
        })
    }

    pub(crate) fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        let mut run = Run::new(&self.body, ctx);
        run.is_strict_write = !self.ignore;
        run.match_lock = RowLock::Shared;
        let mut outcome = Outcome::default();
        let result = match self.update_point(&mut outcome, &mut run) {
            Ok(false) => {
                atomically(&self.engines, &mut run, |run| self.update(&mut outcome, sink, run))
            }
            done => done.map(drop),
        };
        let warnings = run.function.diagnostics.warning_count();
        run.finish().give_back(ctx.scratch);
        result?;
        outcome.affected = outcome.changed;
        let inserts = self.targets.iter().any(|target| target.portion.is_some());
        outcome.info = info(&outcome, inserts, warnings as u64);
        Ok(outcome)
    }

    /// Updates the one row, if the statement needs nothing else. False: nothing has been done.
    fn update_point(&self, outcome: &mut Outcome, run: &mut Run<'_>) -> Result<bool> {
        let (Some(point), [target]) = (&self.point, &self.targets[..]) else { return Ok(false) };
        let wish = wish(&target.table, run);
        if !run.function.diagnostics.is_empty() || wish == RowWish::Told {
            return Ok(false);
        }
        let how = (Strictness::of(run, self.ignore), wish == RowWish::Logged);
        let row = (&target.table, &target.assignments[..]);
        let is_updated = point.update(&self.target_rows, row, how, run)?;
        if is_updated {
            (outcome.matched, outcome.changed) = (1, 1);
        }
        Ok(is_updated)
    }

    fn update<'r>(
        &'r self,
        outcome: &mut Outcome,
        sink: &mut dyn RowSink,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let mut state = UpdateState {
            program: self,
            outcome,
            sink,
            cells: Vec::new(),
            buffers: std::mem::take(&mut run.buffers.records),
            visited: VisitedRows::new(&self.target_rows, self.targets.len()),
            written: WrittenRows::of(self.targets.iter().map(|target| target.table.id)),
        };
        let written = self.target_rows.each(run, &mut |run| state.row(run));
        run.buffers.records = state.buffers;
        state.written.release(run);
        written
    }
}

/// The message that follows the count. Each statement pays for it: `format!` costs a point update three hundredths of its time.
fn info(outcome: &Outcome, inserts: bool, warnings: u64) -> String {
    let mut info = String::with_capacity(64);
    let counts = [
        ("Rows matched: ", outcome.matched),
        ("  Changed: ", outcome.changed),
        ("  Inserted: ", outcome.records),
        ("  Warnings: ", warnings),
    ];
    for (at, (name, count)) in counts.into_iter().enumerate() {
        if at == 2 && !inserts {
            continue;
        }
        info.push_str(name);
        info.push_str(itoa::Buffer::new().format(count));
    }
    info
}

struct UpdateState<'p, 'o> {
    program: &'p UpdateProgram,
    outcome: &'o mut Outcome,
    sink: &'o mut dyn RowSink,
    cells: Vec<Value>,
    buffers: RecordBuffers,
    visited: VisitedRows,
    written: WrittenRows,
}

impl UpdateState<'_, '_> {
    /// Updates every target of the row in the registers.
    fn row(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        for (at, target) in program.targets.iter().enumerate() {
            // NULL: the outer side of a join without a match.
            let Value::Bytes(locator) = run.regs[target.locator].clone() else { continue };
            if !self.visited.is_first(at, &locator, run)? {
                continue;
            }
            self.outcome.matched += 1;
            for (new, old) in &program.old {
                run.regs[*old] = run.regs[*new].clone();
            }
            let strictness = Strictness::of(run, program.ignore);
            let changed = match &target.portion {
                None => self.target(target, &locator, strictness, run),
                Some(_) => portion::whole(&target.table, run, |run| {
                    self.target(target, &locator, strictness, run)
                }),
            };
            match changed {
                Ok(changed) => self.outcome.changed += u64::from(changed),
                Err(error) if program.ignore && ignored(&error, run) => continue,
                Err(error) => return Err(error),
            }
            if !program.returning.is_empty() {
                output::compute(&program.returning, &mut self.cells, run)?;
                self.sink.row(&ComputedRow::new(&program.returning, &run.regs, &self.cells))?;
                self.outcome.rows_sent += 1;
            }
        }
        Ok(())
    }

    fn target(
        &mut self,
        target: &UpdateTarget,
        locator: &[u8],
        strictness: Strictness,
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let row = self.outcome.matched;
        let buffers = &mut self.buffers;
        let known = self.written.catch_up(target, locator, row, strictness, run)?;
        let assignments = known.as_ref().unwrap_or(&target.assignments);
        if !assign(&target.table, assignments, row, strictness, buffers, run)? {
            fire_after(&target.table, row, buffers, run)?;
            return Ok(false);
        }
        replace_row(&target.table, &self.program.related, locator, buffers, run)?;
        self.written.keep(target.table.id, locator, &buffers.record, run)?;
        if assignments.iter().any(|change| target.table.auto_increment == Some(change.column)) {
            raise_counter(&target.table, run)?;
        }
        if let Some(portion) = &target.portion {
            let kept = portion.keep_rest(&target.table, &self.buffers.old, run)?;
            self.outcome.records += kept;
        }
        let buffers = &mut self.buffers;
        fire_after(&target.table, row, buffers, run)?;
        Ok(true)
    }
}
