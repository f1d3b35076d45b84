//! The rows that triggers see, and the changes that triggers make to them.

use errors::Result;
use types::{StoreMode, Value};

use super::foreign::with_row;
use super::row::{Strictness, computed};
use super::table::WriteTable;
use crate::run::Run;

impl WriteTable {
    /// The row in the registers as triggers see it: the columns, then those that are computed when read.
    pub(crate) fn row(&self, number: u64, into: &mut Vec<Value>, run: &mut Run<'_>) -> Result<()> {
        into.clear();
        into.extend(self.columns.iter().map(|column| run.regs[column.register].clone()));
        for column in &self.virtuals {
            into.push(match &column.generated {
                Some(generated) => computed(generated, column, number, StoreMode::Lenient, run)?,
                None => Value::Null,
            });
        }
        Ok(())
    }

    /// A stored row as triggers see it; the statement's registers stay unchanged.
    pub(crate) fn row_apart(
        &self,
        values: Vec<Value>,
        number: u64,
        run: &mut Run<'_>,
    ) -> Result<Vec<Value>> {
        if self.virtuals.is_empty() {
            return Ok(values);
        }
        let mut row = Vec::with_capacity(values.len() + self.virtuals.len());
        with_row(self, &values, run, |run| self.row(number, &mut row, run))?;
        Ok(row)
    }

    /// The row in the registers as BEFORE triggers see it, generated columns computed as far as possible.
    pub(crate) fn row_before(
        &self,
        number: u64,
        into: &mut Vec<Value>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        if self.has_generated {
            for column in &self.columns {
                if let Some(generated) = &column.generated {
                    let mode = StoreMode::Lenient;
                    run.regs[column.register] = computed(generated, column, number, mode, run)?;
                }
            }
        }
        self.row(number, into, run)
    }

    /// Copies a row back from triggers, except generated columns.
    pub(crate) fn take_row(&self, row: &mut [Value], run: &mut Run<'_>) {
        for (column, value) in self.columns.iter().zip(row) {
            if column.generated.is_none() {
                run.regs[column.register] = std::mem::replace(value, Value::Null);
            }
        }
    }

    /// NOT NULL, of a row that triggers have seen.
    pub(crate) fn check_nulls(&self, strictness: Strictness, run: &mut Run<'_>) -> Result<()> {
        for column in self.columns.iter().filter(|column| column.generated.is_none()) {
            let value = std::mem::replace(&mut run.regs[column.register], Value::Null);
            run.regs[column.register] = super::row::not_null(value, column, strictness, run)?;
        }
        Ok(())
    }
}
