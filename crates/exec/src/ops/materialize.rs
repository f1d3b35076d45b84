//! Inputs that are computed once and read again: derived tables, common table expressions, and recursion.

use std::rc::Rc;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plan::CteId;
use rows::convert::{self, Target};
use types::{DataType, StoreMode, Value};

use super::simple::Seen;
use crate::expr::Code;
use crate::kept_rows::{KeptReader, KeptRows};
use crate::operator::{Operator, Source};
use crate::run::Run;

/// Reads its input once and returns its rows repeatedly.
pub(crate) struct Materialize<'r> {
    id: CteId,
    input: Box<dyn Operator<'r> + 'r>,
    outputs: &'r [Code],
    columns: &'r [usize],
    correlated: bool,
    rows: Rc<KeptRows>,
    reader: KeptReader,
}

fn read_all<'r>(
    input: &mut (dyn Operator<'r> + 'r),
    outputs: &[Code],
    run: &mut Run<'r>,
) -> Result<KeptRows> {
    let mut rows = KeptRows::new(outputs.len());
    input.open(run)?;
    while input.next(run)? {
        run.tick()?;
        rows.push_codes(outputs, run)?;
    }
    input.close(run);
    rows.end(run)?;
    Ok(rows)
}

impl<'r> Materialize<'r> {
    pub(crate) fn new(
        id: CteId,
        input: Box<dyn Operator<'r> + 'r>,
        outputs: &'r [Code],
        columns: &'r [usize],
        correlated: bool,
    ) -> Materialize<'r> {
        let rows = Rc::new(KeptRows::new(columns.len()));
        Materialize { id, input, outputs, columns, correlated, rows, reader: KeptReader::default() }
    }
}

impl<'r> Operator<'r> for Materialize<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.reader = KeptReader::default();
        if self.correlated {
            run.memory.release(self.rows.bytes());
            self.rows = Rc::new(read_all(self.input.as_mut(), self.outputs, run)?);
            return Ok(());
        }
        if let Some(rows) = &run.cte(self.id).result {
            self.rows = rows.clone();
            return Ok(());
        }
        run.counts.temporary_tables += 1;
        self.rows = Rc::new(read_all(self.input.as_mut(), self.outputs, run)?);
        run.cte(self.id).result = Some(self.rows.clone());
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        self.reader.restore_next(&self.rows, self.columns, run)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}

/// Reads a CTE that another operator computes, or computes it at first use.
pub(crate) struct CteScan<'r> {
    id: CteId,
    columns: &'r [usize],
    rows: Rc<KeptRows>,
    reader: KeptReader,
}

impl<'r> CteScan<'r> {
    pub(crate) fn new(id: CteId, columns: &'r [usize]) -> CteScan<'r> {
        CteScan {
            id,
            columns,
            rows: Rc::new(KeptRows::new(columns.len())),
            reader: KeptReader::default(),
        }
    }
}

impl<'r> Operator<'r> for CteScan<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.reader = KeptReader::default();
        let state = run.cte(self.id);
        if let Some(rows) = state.working.as_ref().or(state.result.as_ref()) {
            self.rows = rows.clone();
            return Ok(());
        }
        let body = run.body;
        let Some(cte) = body.ctes.iter().find(|cte| cte.id == self.id) else {
            return Err(Error::internal("a common table expression without a definition"));
        };
        run.counts.temporary_tables += 1;
        let mut input = cte.root.build();
        let rows = read_all(input.as_mut(), &cte.outputs, run);
        input.close(run);
        self.rows = Rc::new(rows?);
        run.cte(self.id).result = Some(self.rows.clone());
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        self.reader.restore_next(&self.rows, self.columns, run)
    }

    fn close(&mut self, _run: &mut Run<'r>) {}
}

/// An output of a seed or step.
pub(crate) struct PartOutput {
    pub(crate) code: Code,
    /// The column's name and the value's type, where a value may not fit the column.
    pub(crate) stored: Option<(Arc<str>, DataType)>,
}

impl PartOutput {
    fn eval(&self, ty: &DataType, run: &mut Run<'_>) -> Result<Value> {
        let value = self.code.eval(run)?;
        let Some((name, from)) = &self.stored else { return Ok(value) };
        let strict = run.function.sql_mode.is_strict();
        let mode = if strict { StoreMode::Strict } else { StoreMode::Lenient };
        // What is not an error is not told, as in the reference.
        let told = std::mem::take(run.function.diagnostics);
        let target = Target { name, ty, row: 1, mode };
        let value = convert::store(&value, from, &target, &mut run.function);
        *run.function.diagnostics = told;
        value
    }
}

/// WITH RECURSIVE in a program.
pub(crate) struct RecursiveNode {
    pub(crate) id: CteId,
    pub(crate) seed: Box<dyn Source>,
    pub(crate) seed_outputs: Vec<PartOutput>,
    pub(crate) step: Box<dyn Source>,
    pub(crate) step_outputs: Vec<PartOutput>,
    pub(crate) distinct: bool,
    pub(crate) columns: Vec<usize>,
    pub(crate) types: Vec<DataType>,
}

/// A running recursion: delivers a round's rows while the next round is computed from them.
pub(crate) struct RecursiveCte<'r> {
    node: &'r RecursiveNode,
    seed: Box<dyn Operator<'r> + 'r>,
    step: Box<dyn Operator<'r> + 'r>,
    seen: Seen,
    round: Rc<KeptRows>,
    reader: KeptReader,
    rounds: u64,
}

impl<'r> RecursiveCte<'r> {
    pub(crate) fn new(node: &'r RecursiveNode) -> RecursiveCte<'r> {
        RecursiveCte {
            node,
            seed: node.seed.build(),
            step: node.step.build(),
            seen: Seen::default(),
            round: Rc::new(KeptRows::new(node.columns.len())),
            reader: KeptReader::default(),
            rounds: 0,
        }
    }

    fn compute_round(&mut self, is_seed: bool, run: &mut Run<'r>) -> Result<()> {
        let node = self.node;
        let (input, outputs) = match is_seed {
            true => (&mut self.seed, &node.seed_outputs),
            false => (&mut self.step, &node.step_outputs),
        };
        let mut rows = KeptRows::new(node.columns.len());
        let mut values = Vec::with_capacity(node.columns.len());
        input.open(run)?;
        while input.next(run)? {
            run.tick()?;
            values.clear();
            for (output, ty) in outputs.iter().zip(&node.types) {
                values.push(output.eval(ty, run)?);
            }
            if !node.distinct
                || self.seen.insert(values.iter().zip(&node.types), &mut run.memory)?
            {
                rows.push_values(&mut values.drain(..), run)?;
            }
        }
        input.close(run);
        rows.end(run)?;
        run.memory.release(self.round.bytes());
        self.round = Rc::new(rows);
        self.reader = KeptReader::default();
        Ok(())
    }
}

impl<'r> Operator<'r> for RecursiveCte<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.seen.clear(run);
        self.rounds = 0;
        run.counts.temporary_tables += 1;
        self.compute_round(true, run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while !self.reader.restore_next(&self.round, &self.node.columns, run)? {
            if self.round.is_empty() {
                return Ok(false);
            }
            self.rounds += 1;
            let limit = run.env.settings.cte_max_recursion_depth;
            if self.rounds > limit {
                return Err(Error::with(ErrorCode::CTE_MAX_RECURSION_DEPTH, &[&self.rounds]));
            }
            let before = run.cte(self.node.id).working.replace(self.round.clone());
            let outcome = self.compute_round(false, run);
            run.cte(self.node.id).working = before;
            outcome?;
        }
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.seed.close(run);
        self.step.close(run);
        self.seen.clear(run);
        run.memory.release(self.round.bytes());
        self.round = Rc::new(KeptRows::new(self.node.columns.len()));
        self.reader = KeptReader::default();
    }
}
