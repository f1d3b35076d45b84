//! Moves values between kept rows and the registers of a run: computed values go into rows, and kept rows are restored.

use errors::Result;
use types::Value;

use crate::expr::Code;
use crate::kept_rows::{KeptReader, KeptRows, Rows};
use crate::run::Run;
use crate::spill::RowReader;

impl Rows {
    /// Keeps the values of some registers.
    pub(crate) fn push_registers(&mut self, registers: &[usize], run: &mut Run<'_>) -> Result<()> {
        let values = registers.iter().map(|register| run.regs[*register].clone());
        self.push(values, &mut run.memory)
    }

    /// Keeps the values of expressions.
    pub(crate) fn push_codes(&mut self, codes: &[Code], run: &mut Run<'_>) -> Result<()> {
        for code in codes {
            match code.eval(run) {
                Ok(value) => self.begin(value),
                Err(error) => {
                    self.abandon();
                    return Err(error);
                }
            }
        }
        self.push(std::iter::empty(), &mut run.memory)
    }

    /// Keeps values.
    pub(crate) fn push_values(
        &mut self,
        values: impl Iterator<Item = Value>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        self.push(values, &mut run.memory)
    }

    /// Puts a row back into registers.
    pub(crate) fn restore(&self, index: usize, registers: &[usize], run: &mut Run<'_>) {
        for (register, value) in registers.iter().zip(self.row(index)) {
            run.regs[*register].clone_from(value);
        }
    }

    /// Moves a row into registers; it is not read again.
    pub(crate) fn release(&mut self, index: usize, registers: &[usize], run: &mut Run<'_>) {
        for (register, value) in registers.iter().zip(self.row_mut(index)) {
            run.regs[*register] = std::mem::replace(value, Value::Null);
        }
    }

    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        self.free(&mut run.memory);
    }
}

impl KeptRows {
    /// Keeps the values of some registers.
    pub(crate) fn push_registers(&mut self, registers: &[usize], run: &mut Run<'_>) -> Result<()> {
        if let Some(rows) = self.in_memory(run.operator_bytes()) {
            rows.push_registers(registers, run)?;
            self.count_row();
            return Ok(());
        }
        self.append(registers.iter().map(|register| &run.regs[*register]), run.env.settings)
    }

    /// Keeps the values of expressions.
    pub(crate) fn push_codes(&mut self, codes: &[Code], run: &mut Run<'_>) -> Result<()> {
        if let Some(rows) = self.in_memory(run.operator_bytes()) {
            rows.push_codes(codes, run)?;
            self.count_row();
            return Ok(());
        }
        let values: Vec<Value> = codes.iter().map(|code| code.eval(run)).collect::<Result<_>>()?;
        self.append(values.iter(), run.env.settings)
    }

    /// Keeps values.
    pub(crate) fn push_values(
        &mut self,
        values: &mut dyn Iterator<Item = Value>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        if let Some(rows) = self.in_memory(run.operator_bytes()) {
            rows.push_values(values, run)?;
            self.count_row();
            return Ok(());
        }
        let values: Vec<Value> = values.collect();
        self.append(values.iter(), run.env.settings)
    }

    /// No more rows will be added.
    pub(crate) fn end(&mut self, run: &mut Run<'_>) -> Result<()> {
        run.counts.disk_tables += u64::from(self.end_file()?);
        Ok(())
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        self.free(&mut run.memory);
    }
}

impl KeptReader {
    /// Restores the next row to registers; false after the last.
    pub(crate) fn restore_next(
        &mut self,
        rows: &KeptRows,
        registers: &[usize],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let Some(row) = self.next(rows)? else { return Ok(false) };
        for (register, value) in registers.iter().zip(row) {
            run.regs[*register].clone_from(value);
        }
        Ok(true)
    }
}

impl RowReader {
    /// The next row's key into `key` and its values into registers; false at the end.
    pub(crate) fn next_into(
        &mut self,
        key: &mut Vec<u8>,
        registers: &[usize],
        run: &mut Run<'_>,
    ) -> Result<bool> {
        let mut values = Vec::with_capacity(registers.len());
        if !self.next(key, &mut values)? {
            return Ok(false);
        }
        for (register, value) in registers.iter().zip(values) {
            run.regs[*register] = value;
        }
        Ok(true)
    }
}
