//! DELETE.

use engine_api::{EngineIndex, RowLock};
use errors::Result;
use plan::writing::has_join;
use plan::{DeletePlan, RegisterSet};
use rows::times::Successor;
use types::Value;

use super::foreign::{self, Fate};
use super::history::remove_row;
use super::point::PointRow;
use super::portion::{self, PortionCode};
use super::table::{TableCompiler, WriteTable, engines};
use super::target_rows::{TargetRows, VisitedRows, changes_alone};
use super::watched::wish;
use super::{atomically, ignored};
use crate::context::{ExecContext, Outcome, RowSink};
use crate::ops::NodeCompiler;
use crate::output::{self, ComputedRow, Output};
use crate::run::{Body, Run};
use crate::watch::RowWish;

/// A compiled DELETE.
pub(crate) struct DeleteProgram {
    pub(crate) body: Body,
    target_rows: TargetRows,
    targets: Vec<(WriteTable, usize)>,
    /// FOR PORTION OF, of the only target.
    portion: Option<Box<PortionCode>>,
    related: Vec<WriteTable>,
    engines: Vec<EngineIndex>,
    ignore: bool,
    returning: Vec<Output>,
    /// Set when the statement only deletes one row found by its whole key.
    point: Option<PointRow>,
}

impl DeleteProgram {
    pub(crate) fn compile(
        plan: &DeletePlan,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<DeleteProgram> {
        let tables = TableCompiler::new(plan.targets.iter().map(|(table, _)| table));
        let subqueries = compiler.exprs.subqueries;
        let mut kept = RegisterSet::new();
        let mut targets = Vec::with_capacity(plan.targets.len());
        for (table, locator) in &plan.targets {
            kept.insert(*locator);
            table.columns.iter().for_each(|column| _ = kept.insert(column.register));
            targets.push((tables.table(table, compiler)?, locator.0 as usize));
        }
        for output in &plan.returning {
            output.expr.add_registers(
                &|id| subqueries.get(id.0 as usize).map_or(&[], |query| query.outer.as_slice()),
                &mut kept,
            );
        }
        let related = tables.related(compiler)?;
        let portion = match &plan.targets[..] {
            [(table, _)] => PortionCode::compile(table, compiler)?,
            _ => None,
        };
        let returning = plan
            .returning
            .iter()
            .map(|output| Ok(Output::new(compiler.exprs.expr(&output.expr)?)))
            .collect::<Result<_>>()?;
        compiler.all_read =
            plan.limit.is_none() && plan.targets.iter().all(|(table, _)| changes_alone(table));
        let target_rows = TargetRows {
            root: compiler.node(&plan.root)?,
            limit: compiler.exprs.option(plan.limit.as_ref())?,
            buffered: plan.buffered || plan.targets.len() > 1,
            kept: kept.iter().map(|register| register.0 as usize).collect(),
            may_repeat: has_join(&plan.root),
        };
        let point = match (&plan.targets[..], &targets[..]) {
            ([(written, _)], [(table, _)]) if plan.returning.is_empty() => {
                let found = (&plan.root, &target_rows);
                PointRow::of_delete(found, (written, table))
            }
            _ => None,
        };
        Ok(DeleteProgram {
            engines: engines(targets.iter().map(|(table, _)| table).chain(&related)),
            target_rows,
            point,
            ignore: plan.ignore,
            body: Body::default(),
            returning,
            targets,
            portion,
            related,
        })
    }

    pub(crate) fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        let mut run = Run::new(&self.body, ctx);
        run.is_strict_write = !self.ignore;
        run.match_lock = RowLock::Shared;
        let mut outcome = Outcome::default();
        let result = match self.delete_point(&mut outcome, &mut run) {
            Ok(false) => {
                atomically(&self.engines, &mut run, |run| self.delete(&mut outcome, sink, run))
            }
            done => done.map(drop),
        };
        run.finish().give_back(ctx.scratch);
        result?;
        Ok(outcome)
    }

    /// Deletes the one row, if the statement needs nothing else. False: nothing has been done.
    fn delete_point(&self, outcome: &mut Outcome, run: &mut Run<'_>) -> Result<bool> {
        let (Some(point), [(table, _)]) = (&self.point, &self.targets[..]) else {
            return Ok(false);
        };
        let wish = wish(table, run);
        if !run.function.diagnostics.is_empty() || wish == RowWish::Told {
            return Ok(false);
        }
        let is_deleted = point.delete(&self.target_rows, table, wish == RowWish::Logged, run)?;
        outcome.affected = u64::from(is_deleted);
        Ok(is_deleted)
    }

    fn delete<'r>(
        &'r self,
        outcome: &mut Outcome,
        sink: &mut dyn RowSink,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let mut state = DeleteState {
            program: self,
            outcome,
            sink,
            visited: VisitedRows::new(&self.target_rows, self.targets.len()),
            cells: Vec::new(),
            values: Vec::new(),
            old: Vec::new(),
        };
        self.target_rows.each(run, &mut |run| state.row(run))
    }
}

struct DeleteState<'p, 'o> {
    program: &'p DeleteProgram,
    outcome: &'o mut Outcome,
    sink: &'o mut dyn RowSink,
    visited: VisitedRows,
    cells: Vec<Value>,
    values: Vec<Value>,
    /// The row as triggers see it.
    old: Vec<Value>,
}

impl DeleteState<'_, '_> {
    fn row(&mut self, run: &mut Run<'_>) -> Result<()> {
        let program = self.program;
        for (at, (table, register)) in program.targets.iter().enumerate() {
            let Value::Bytes(locator) = run.regs[*register].clone() else { continue };
            if !self.visited.is_first(at, &locator, run)? {
                continue;
            }
            let deleted = match &program.portion {
                None => self.target(table, &locator, run),
                Some(_) => portion::whole(table, run, |run| self.target(table, &locator, run)),
            };
            match deleted {
                Ok(deleted) => self.outcome.affected += u64::from(deleted),
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

    fn target(&mut self, table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<bool> {
        let Some(triggers) = &table.triggers else { return self.remove(table, locator, run) };
        table.row(1, &mut self.old, run)?;
        run.fire(&triggers.before_delete, &self.old, &mut [])?;
        let deleted = self.remove(table, locator, run)?;
        if deleted {
            run.fire(&triggers.after_delete, &self.old, &mut [])?;
        }
        Ok(deleted)
    }

    fn remove(&mut self, table: &WriteTable, locator: &[u8], run: &mut Run<'_>) -> Result<bool> {
        if !table.children.is_empty() || table.history.is_some() {
            table.values_for_keys(&mut self.values, run);
            let related = &self.program.related;
            let path = foreign::Path::new(table, locator);
            foreign::handle_children(table, related, &path, &self.values, Fate::Deleted, run)?;
        }
        run.count_deleted(table.id);
        let Some(portion) = &self.program.portion else {
            // False: a cascade of this statement has handled it already.
            return remove_row(table, locator, &self.values, Successor::None, run);
        };
        let old: Vec<Value> =
            table.columns.iter().map(|column| run.regs[column.register].clone()).collect();
        let removed = remove_row(table, locator, &self.values, Successor::None, run)?;
        if removed {
            portion.keep_rest(table, &old, run)?;
        }
        Ok(removed)
    }
}
