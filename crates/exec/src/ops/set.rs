//! UNION, INTERSECT, EXCEPT, materialised inputs, and recursion.

use std::rc::Rc;

use errors::{Error, ErrorCode, Result};
use hashbrown::HashMap;
use plan::{CteId, SetOperation};
use types::{DataType, Value};

use super::simple::{ENTRY_BYTES, Seen};
use super::{Node, Operator, Rows, build};
use crate::expr::Code;
use crate::run::Run;
use crate::value_key::append_hash_key;

/// A set operation in a program. The outputs are already in the representation of `columns`.
pub(crate) struct SetNode {
    pub(crate) operation: SetOperation,
    pub(crate) inputs: Vec<(Node, Vec<Code>)>,
    pub(crate) columns: Vec<usize>,
    pub(crate) types: Vec<DataType>,
}

/// A running set operation. UNION streams; the others compute their rows when opened.
pub(crate) struct SetOperator<'r> {
    node: &'r SetNode,
    inputs: Vec<Box<dyn Operator<'r> + 'r>>,
    /// UNION: the input being read.
    input: usize,
    is_open: bool,
    seen: Seen,
    rows: Rows,
    at: usize,
}

type Counts = HashMap<Box<[u8]>, u64, foldhash::fast::FixedState>;

impl<'r> SetOperator<'r> {
    pub(crate) fn new(node: &'r SetNode) -> SetOperator<'r> {
        SetOperator {
            node,
            inputs: node.inputs.iter().map(|(input, _)| build(input)).collect(),
            input: 0,
            is_open: false,
            seen: Seen::default(),
            rows: Rows::new(node.columns.len()),
            at: 0,
        }
    }

    fn next_union(&mut self, distinct: bool, run: &mut Run<'r>) -> Result<bool> {
        while let Some(input) = self.inputs.get_mut(self.input) {
            if !self.is_open {
                input.open(run)?;
                self.is_open = true;
            }
            while input.next(run)? {
                run.tick()?;
                load_outputs(&self.node.inputs[self.input].1, &self.node.columns, run)?;
                if !distinct {
                    return Ok(true);
                }
                let regs = &run.regs;
                let values = self.node.columns.iter().map(|register| &regs[*register]);
                if self.seen.insert(values.zip(&self.node.types), &mut run.memory)? {
                    return Ok(true);
                }
            }
            input.close(run);
            self.is_open = false;
            self.input += 1;
        }
        Ok(false)
    }

    fn read_input(&mut self, at: usize, run: &mut Run<'r>) -> Result<Rows> {
        let mut rows = Rows::new(self.node.columns.len());
        self.inputs[at].open(run)?;
        while self.inputs[at].next(run)? {
            run.tick()?;
            rows.push_codes(&self.node.inputs[at].1, run)?;
        }
        self.inputs[at].close(run);
        Ok(rows)
    }

    fn key(&self, row: &[Value], key: &mut Vec<u8>) {
        key.clear();
        for (value, ty) in row.iter().zip(&self.node.types) {
            append_hash_key(value, ty.collation, key);
        }
    }

    /// Left to right: each further input keeps (INTERSECT) or removes (EXCEPT) rows of what is there.
    fn compute(&mut self, keeps: bool, distinct: bool, run: &mut Run<'r>) -> Result<()> {
        let mut rows = self.read_input(0, run)?;
        let mut key = Vec::new();
        for at in 1..self.inputs.len() {
            let mut right = self.read_input(at, run)?;
            let mut counts = Counts::default();
            let mut bytes = 0;
            for row in 0..right.len() {
                self.key(right.row(row), &mut key);
                bytes += key.len() + ENTRY_BYTES;
                *counts.entry(key.as_slice().into()).or_insert(0) += 1;
            }
            run.memory.charge(bytes)?;
            let mut kept = Rows::new(self.node.columns.len());
            let mut emitted = Seen::default();
            for row in 0..rows.len() {
                run.tick()?;
                let values = rows.row(row);
                self.key(values, &mut key);
                let count = counts.get_mut(key.as_slice());
                let there = count.as_ref().is_some_and(|count| **count > 0);
                if there && !distinct {
                    *count.expect("it is there") -= 1;
                }
                let new = !distinct
                    || emitted.insert(values.iter().zip(&self.node.types), &mut run.memory)?;
                if there == keeps && new {
                    kept.push_values(values.iter().cloned(), run)?;
                }
            }
            emitted.clear(run);
            right.clear(run);
            rows.clear(run);
            run.memory.release(bytes);
            rows = kept;
        }
        self.rows = rows;
        Ok(())
    }
}

/// Evaluates outputs into the operator's registers. All are evaluated before the first is stored: an output may read one of them.
fn load_outputs(outputs: &[Code], columns: &[usize], run: &mut Run<'_>) -> Result<()> {
    if let ([output], [column]) = (outputs, columns) {
        return output.eval_into(run, *column);
    }
    let mut values = Vec::with_capacity(outputs.len());
    for output in outputs {
        values.push(output.eval(run)?);
    }
    for (register, value) in columns.iter().zip(values) {
        run.set(*register, value);
    }
    Ok(())
}

impl<'r> Operator<'r> for SetOperator<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.close(run);
        run.counts.temporary_tables += u64::from(self.node.operation != SetOperation::UnionAll);
        match self.node.operation {
            SetOperation::UnionAll | SetOperation::UnionDistinct => Ok(()),
            SetOperation::IntersectAll => self.compute(true, false, run),
            SetOperation::IntersectDistinct => self.compute(true, true, run),
            SetOperation::ExceptAll => self.compute(false, false, run),
            SetOperation::ExceptDistinct => self.compute(false, true, run),
        }
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        match self.node.operation {
            SetOperation::UnionAll => self.next_union(false, run),
            SetOperation::UnionDistinct => self.next_union(true, run),
            SetOperation::IntersectAll
            | SetOperation::IntersectDistinct
            | SetOperation::ExceptAll
            | SetOperation::ExceptDistinct => {
                if self.at >= self.rows.len() {
                    return Ok(false);
                }
                self.rows.restore(self.at, &self.node.columns, run);
                self.at += 1;
                Ok(true)
            }
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        for input in &mut self.inputs {
            input.close(run);
        }
        self.seen.clear(run);
        self.rows.clear(run);
        self.input = 0;
        self.is_open = false;
        self.at = 0;
    }
}

/// Reads its input once and gives its rows again and again.
pub(crate) struct Materialize<'r> {
    id: CteId,
    input: Box<dyn Operator<'r> + 'r>,
    outputs: &'r [Code],
    columns: &'r [usize],
    correlated: bool,
    rows: Rc<Rows>,
    at: usize,
}

fn read_all<'r>(
    input: &mut (dyn Operator<'r> + 'r),
    outputs: &[Code],
    run: &mut Run<'r>,
) -> Result<Rows> {
    let mut rows = Rows::new(outputs.len());
    input.open(run)?;
    while input.next(run)? {
        run.tick()?;
        rows.push_codes(outputs, run)?;
    }
    input.close(run);
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
        let rows = Rc::new(Rows::new(columns.len()));
        Materialize { id, input, outputs, columns, correlated, rows, at: 0 }
    }
}

impl<'r> Operator<'r> for Materialize<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.at = 0;
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
        if self.at >= self.rows.len() {
            return Ok(false);
        }
        self.rows.restore(self.at, self.columns, run);
        self.at += 1;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}

/// Reads a CTE that something else computes, or computes it at first use.
pub(crate) struct CteScan<'r> {
    id: CteId,
    columns: &'r [usize],
    rows: Rc<Rows>,
    at: usize,
}

impl<'r> CteScan<'r> {
    pub(crate) fn new(id: CteId, columns: &'r [usize]) -> CteScan<'r> {
        CteScan { id, columns, rows: Rc::new(Rows::new(columns.len())), at: 0 }
    }
}

impl<'r> Operator<'r> for CteScan<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.at = 0;
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
        let mut input = build(&cte.root);
        let rows = read_all(input.as_mut(), &cte.outputs, run);
        input.close(run);
        self.rows = Rc::new(rows?);
        run.cte(self.id).result = Some(self.rows.clone());
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if self.at >= self.rows.len() {
            return Ok(false);
        }
        self.rows.restore(self.at, self.columns, run);
        self.at += 1;
        Ok(true)
    }

    fn close(&mut self, _run: &mut Run<'r>) {}
}

/// WITH RECURSIVE in a program.
pub(crate) struct RecursiveNode {
    pub(crate) id: CteId,
    pub(crate) seed: Node,
    pub(crate) seed_outputs: Vec<Code>,
    pub(crate) step: Node,
    pub(crate) step_outputs: Vec<Code>,
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
    round: Rc<Rows>,
    at: usize,
    rounds: u64,
}

impl<'r> RecursiveCte<'r> {
    pub(crate) fn new(node: &'r RecursiveNode) -> RecursiveCte<'r> {
        RecursiveCte {
            node,
            seed: build(&node.seed),
            step: build(&node.step),
            seen: Seen::default(),
            round: Rc::new(Rows::new(node.columns.len())),
            at: 0,
            rounds: 0,
        }
    }

    fn compute_round(&mut self, is_seed: bool, run: &mut Run<'r>) -> Result<()> {
        let node = self.node;
        let (input, outputs) = match is_seed {
            true => (&mut self.seed, &node.seed_outputs),
            false => (&mut self.step, &node.step_outputs),
        };
        let mut rows = Rows::new(node.columns.len());
        let mut values = Vec::with_capacity(outputs.len());
        input.open(run)?;
        while input.next(run)? {
            run.tick()?;
            values.clear();
            for output in outputs {
                values.push(output.eval(run)?);
            }
            if !node.distinct
                || self.seen.insert(values.iter().zip(&node.types), &mut run.memory)?
            {
                rows.push_values(values.drain(..), run)?;
            }
        }
        input.close(run);
        run.memory.release(self.round.bytes());
        self.round = Rc::new(rows);
        self.at = 0;
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
        if self.at >= self.round.len() {
            if self.round.is_empty() {
                return Ok(false);
            }
            self.rounds += 1;
            let limit = run.settings.cte_max_recursion_depth;
            if self.rounds > limit {
                return Err(Error::with(ErrorCode::CTE_MAX_RECURSION_DEPTH, &[&self.rounds]));
            }
            let before = run.cte(self.node.id).working.replace(self.round.clone());
            let outcome = self.compute_round(false, run);
            run.cte(self.node.id).working = before;
            outcome?;
            if self.round.is_empty() {
                return Ok(false);
            }
        }
        self.round.restore(self.at, &self.node.columns, run);
        self.at += 1;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.seed.close(run);
        self.step.close(run);
        self.seen.clear(run);
        run.memory.release(self.round.bytes());
        self.round = Rc::new(Rows::new(self.node.columns.len()));
        self.at = 0;
    }
}
