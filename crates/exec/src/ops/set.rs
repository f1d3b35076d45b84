//! UNION, INTERSECT and EXCEPT.

use errors::Result;
use hashbrown::HashMap;
use plan::SetOperation;
use rows::value_key::append_hash_key;
use types::{DataType, Value};

use super::simple::Seen;
use crate::expr::Code;
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;

/// A set operation in a program. The outputs are already in the representation of `columns`.
pub(crate) struct SetNode {
    pub(crate) operation: SetOperation,
    pub(crate) inputs: Vec<(Box<dyn Source>, Vec<Code>)>,
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
    rows: Rows,
    at: usize,
}

/// Bytes of a hash table's entry in addition to the key.
const ENTRY_BYTES: usize = 32;

type Counts = HashMap<Box<[u8]>, u64, foldhash::fast::FixedState>;

impl<'r> SetOperator<'r> {
    pub(crate) fn new(node: &'r SetNode) -> SetOperator<'r> {
        SetOperator {
            node,
            inputs: node.inputs.iter().map(|(input, _)| input.build()).collect(),
            input: 0,
            is_open: false,
            rows: Rows::new(node.columns.len()),
            at: 0,
        }
    }

    fn next_union(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while let Some(input) = self.inputs.get_mut(self.input) {
            if !self.is_open {
                input.open(run)?;
                self.is_open = true;
            }
            if input.next(run)? {
                run.tick()?;
                load_outputs(&self.node.inputs[self.input].1, &self.node.columns, run)?;
                return Ok(true);
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

    /// Left to right: each further input keeps (INTERSECT) or removes (EXCEPT) rows of the result so far.
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
            // The `Distinct` above completes UNION DISTINCT.
            SetOperation::UnionAll | SetOperation::UnionDistinct => self.next_union(run),
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
        self.rows.clear(run);
        self.input = 0;
        self.is_open = false;
        self.at = 0;
    }
}
