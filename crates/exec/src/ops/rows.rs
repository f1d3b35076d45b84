//! Rows that an operator keeps: values side by side, charged to the statement.

use errors::Result;
use types::Value;

use crate::expr::Code;
use crate::run::Run;

/// Rows of equal width.
pub(crate) struct Rows {
    values: Vec<Value>,
    width: usize,
    count: usize,
    bytes: usize,
}

impl Rows {
    pub(crate) fn new(width: usize) -> Rows {
        Rows { values: Vec::new(), width, count: 0, bytes: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn row(&self, index: usize) -> &[Value] {
        &self.values[index * self.width..(index + 1) * self.width]
    }

    fn charge_last(&mut self, run: &mut Run<'_>) -> Result<()> {
        self.count += 1;
        let last = &self.values[self.values.len() - self.width..];
        let heap: usize = last.iter().map(Value::heap_bytes).sum();
        let bytes = self.width * size_of::<Value>() + heap;
        self.bytes += bytes;
        run.memory.charge(bytes)
    }

    /// Keeps the values of some registers.
    pub(crate) fn push_registers(&mut self, registers: &[usize], run: &mut Run<'_>) -> Result<()> {
        self.values.extend(registers.iter().map(|register| run.regs[*register].clone()));
        self.charge_last(run)
    }

    /// Keeps the values of expressions.
    pub(crate) fn push_codes(&mut self, codes: &[Code], run: &mut Run<'_>) -> Result<()> {
        let start = self.values.len();
        for code in codes {
            match code.eval(run) {
                Ok(value) => self.values.push(value),
                Err(error) => {
                    self.values.truncate(start);
                    return Err(error);
                }
            }
        }
        self.charge_last(run)
    }

    /// Keeps values.
    pub(crate) fn push_values(
        &mut self,
        values: impl Iterator<Item = Value>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        self.values.extend(values);
        self.charge_last(run)
    }

    /// Puts a row back into registers.
    pub(crate) fn restore(&self, index: usize, registers: &[usize], run: &mut Run<'_>) {
        for (register, value) in registers.iter().zip(self.row(index)) {
            run.regs[*register].clone_from(value);
        }
    }

    /// Moves a row into registers; it is not asked for again.
    pub(crate) fn release(&mut self, index: usize, registers: &[usize], run: &mut Run<'_>) {
        let row = &mut self.values[index * self.width..(index + 1) * self.width];
        for (register, value) in registers.iter().zip(row) {
            run.regs[*register] = std::mem::replace(value, Value::Null);
        }
    }

    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        run.memory.release(self.bytes);
        self.values.clear();
        self.count = 0;
        self.bytes = 0;
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
