//! Rows kept in the order in which they came: in memory, and behind that in a file without a name. They are read from the front.

use errors::Result;
use types::Value;

use super::Rows;
use crate::expr::Code;
use crate::run::Run;
use crate::spill::{Extent, RowReader, RowWriter};

/// Rows of equal width. Pushed first, then `end`ed, then read.
pub(crate) struct KeptRows {
    /// The first rows.
    memory: Rows,
    /// The others; where they lie once they are complete.
    file: Option<RowWriter>,
    extent: Option<Extent>,
    /// Rows in memory and in the file.
    count: u64,
}

impl KeptRows {
    pub(crate) fn new(width: usize) -> KeptRows {
        KeptRows { memory: Rows::new(width), file: None, extent: None, count: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Bytes charged to the statement.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.bytes()
    }

    fn fits(&self, run: &Run<'_>) -> bool {
        self.file.is_none() && self.memory.bytes() <= run.settings.operator_memory_bytes
    }

    fn append<'v>(&mut self, values: impl Iterator<Item = &'v Value>, run: &Run<'_>) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(RowWriter::create(run)?),
        };
        file.push(&[], values)
    }

    /// Keeps the values of some registers.
    pub(crate) fn push_registers(&mut self, registers: &[usize], run: &mut Run<'_>) -> Result<()> {
        self.count += 1;
        if self.fits(run) {
            return self.memory.push_registers(registers, run);
        }
        self.append(registers.iter().map(|register| &run.regs[*register]), run)
    }

    /// Keeps the values of expressions.
    pub(crate) fn push_codes(&mut self, codes: &[Code], run: &mut Run<'_>) -> Result<()> {
        if self.fits(run) {
            self.count += 1;
            return self.memory.push_codes(codes, run);
        }
        let values: Vec<Value> = codes.iter().map(|code| code.eval(run)).collect::<Result<_>>()?;
        self.push_values(&mut values.into_iter(), run)
    }

    /// Keeps values.
    pub(crate) fn push_values(
        &mut self,
        values: &mut dyn Iterator<Item = Value>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        self.count += 1;
        if self.fits(run) {
            return self.memory.push_values(values, run);
        }
        let values: Vec<Value> = values.collect();
        self.append(values.iter(), run)
    }

    /// No more rows will come.
    pub(crate) fn end(&mut self, run: &mut Run<'_>) -> Result<()> {
        if let Some(file) = &mut self.file {
            run.counts.disk_tables += 1;
            self.extent = Some(file.end_sequence()?);
        }
        Ok(())
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self, run: &mut Run<'_>) {
        self.memory.clear(run);
        (self.file, self.extent, self.count) = (None, None, 0);
    }
}

/// A place in kept rows; a new one is before the first.
#[derive(Default)]
pub(crate) struct KeptReader {
    at: usize,
    file: Option<RowReader>,
    key: Vec<u8>,
    /// The last row that was read from the file.
    values: Vec<Value>,
}

impl KeptReader {
    /// The next row; `None` behind the last.
    pub(crate) fn next<'a>(&'a mut self, rows: &'a KeptRows) -> Result<Option<&'a [Value]>> {
        if self.at < rows.memory.len() {
            self.at += 1;
            return Ok(Some(rows.memory.row(self.at - 1)));
        }
        let (Some(file), Some(extent)) = (&rows.file, rows.extent) else { return Ok(None) };
        let reader = self.file.get_or_insert_with(|| file.reader(extent));
        let found = reader.next(&mut self.key, &mut self.values)?;
        Ok(found.then_some(self.values.as_slice()))
    }

    /// Puts the next row into registers; false behind the last.
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
