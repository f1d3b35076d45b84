//! FOR PORTION OF: a row is cut to the portion of its period that the statement is about, or deleted, and what it was before and after is inserted.

use errors::Result;
use plan::{PortionWrite, TableWrite};
use rows::times::is_before;
use types::{StoreMode, Value};

use super::insert::InsertProgram;
use super::row::evaluate;
use super::table::{StoreCode, WriteTable, store_code};
use super::update::{AssignmentCode, NewValue};
use super::watched;
use crate::ops::NodeCompiler;
use crate::run::Run;

/// A compiled FOR PORTION OF.
pub(crate) struct PortionCode {
    start: usize,
    end: usize,
    from: StoreCode,
    to: StoreCode,
    /// Registers of the row that is inserted.
    given: Vec<usize>,
    rest: InsertProgram,
}

impl PortionCode {
    pub(crate) fn compile(
        table: &TableWrite,
        compiler: &mut NodeCompiler<'_>,
    ) -> Result<Option<Box<PortionCode>>> {
        let Some(portion) = &table.portion else { return Ok(None) };
        let given: Vec<usize> = portion.given.iter().map(|register| register.0 as usize).collect();
        let last = given.iter().max().map_or(0, |register| register + 1);
        compiler.exprs.registers = compiler.exprs.registers.max(last);
        Ok(Some(Box::new(PortionCode {
            start: portion.start,
            end: portion.end,
            from: store_code(&portion.from, compiler)?,
            to: store_code(&portion.to, compiler)?,
            given,
            rest: InsertProgram::compile(&portion.rest, compiler)?,
        })))
    }

    /// Inserts what a row was outside the portion. Returns the number of rows.
    pub(crate) fn keep_rest(
        &self,
        table: &WriteTable,
        old: &[Value],
        run: &mut Run<'_>,
    ) -> Result<u64> {
        let bound = |code: &StoreCode, at: usize, run: &mut Run<'_>| {
            evaluate(code, &table.columns[at], 1, StoreMode::Lenient, run)
        };
        let from = bound(&self.from, self.start, run)?;
        let to = bound(&self.to, self.end, run)?;
        let mut kept = 0;
        if is_before(&old[self.start], &from) {
            self.insert(old, (self.end, from), run)?;
            kept += 1;
        }
        if is_before(&to, &old[self.end]) {
            self.insert(old, (self.start, to), run)?;
            kept += 1;
        }
        Ok(kept)
    }

    /// Inserts the old row with another start or end.
    fn insert(&self, old: &[Value], (at, bound): (usize, Value), run: &mut Run<'_>) -> Result<()> {
        for (register, value) in self.given.iter().zip(old) {
            run.set(*register, value.clone());
        }
        run.set(self.given[at], bound);
        self.rest.insert_once(run)
    }
}

/// The assignments that cut a row to the portion. They come first: others see the row as it will be.
pub(crate) fn cuts(
    portion: Option<&PortionWrite>,
    compiler: &mut NodeCompiler<'_>,
) -> Result<Vec<AssignmentCode>> {
    let Some(portion) = portion else { return Ok(Vec::new()) };
    let (from, to) = (store_code(&portion.from, compiler)?, store_code(&portion.to, compiler)?);
    Ok(vec![
        AssignmentCode { column: portion.start, value: NewValue::NotBefore(from) },
        AssignmentCode { column: portion.end, value: NewValue::NotAfter(to) },
    ])
}

/// Does all that a statement has to do to one row, or nothing.
pub(crate) fn whole<'r, T>(
    table: &WriteTable,
    run: &mut Run<'r>,
    work: impl FnOnce(&mut Run<'r>) -> Result<T>,
) -> Result<T> {
    let savepoint = run.transaction(table.engine)?.savepoint();
    let mark = watched::mark(run);
    let done = work(run);
    if done.as_ref().is_err_and(|error| !error.ends_transaction()) {
        let undone = run.transaction(table.engine)?.rollback_to(savepoint);
        run.engine(undone)?;
        watched::undo_to(mark, run);
    }
    done
}
