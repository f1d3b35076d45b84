//! Result rows on their way to the sink.

use errors::Result;
use plugin_api::RowSource;
use rows::convert;
use rows::layout::Layout;
use types::{ResultCell, Value, ZoneRules};

use crate::expr::Code;
use crate::run::Run;

/// A column of the result.
pub(crate) enum Output {
    /// A register as it is.
    Register(usize),
    /// Computed into the list of cells.
    Computed(Code),
}

impl Output {
    pub(crate) fn new(code: Code) -> Output {
        match code {
            Code::Register(register) => Output::Register(register),
            code => Output::Computed(code),
        }
    }
}

/// Computes the output values of a row.
pub(crate) fn compute(outputs: &[Output], cells: &mut Vec<Value>, run: &mut Run<'_>) -> Result<()> {
    cells.clear();
    for output in outputs {
        if let Output::Computed(code) = output {
            cells.push(code.eval(run)?);
        }
    }
    Ok(())
}

/// A row of registers and computed cells.
pub(crate) struct ComputedRow<'a> {
    outputs: &'a [Output],
    regs: &'a [Value],
    cells: &'a [Value],
}

impl<'a> ComputedRow<'a> {
    pub(crate) fn new(
        outputs: &'a [Output],
        regs: &'a [Value],
        cells: &'a [Value],
    ) -> ComputedRow<'a> {
        ComputedRow { outputs, regs, cells }
    }

    fn value_of(&self, index: usize) -> &Value {
        match &self.outputs[index] {
            Output::Register(register) => &self.regs[*register],
            Output::Computed(_) => {
                let before = self.outputs[..index].iter();
                let at = before.filter(|output| matches!(output, Output::Computed(_))).count();
                &self.cells[at]
            }
        }
    }
}

impl RowSource for ComputedRow<'_> {
    fn len(&self) -> usize {
        self.outputs.len()
    }

    fn cell(&self, index: usize) -> Result<ResultCell<'_>> {
        Ok(ResultCell::from(self.value_of(index)))
    }
}

/// A result column that is a plain column of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordCell {
    pub(crate) column: usize,
    /// TIMESTAMP: shown in the session time zone.
    pub(crate) to_local: bool,
}

/// A row whose cells are in a record.
pub(crate) struct RecordRow<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) record: &'a [u8],
    pub(crate) cells: &'a [RecordCell],
    pub(crate) time_zone: &'a dyn ZoneRules,
}

impl RecordRow<'_> {
    /// A TIMESTAMP in the session time zone.
    fn local_cell(&self, column: usize) -> Result<ResultCell<'_>> {
        Ok(match self.layout.decode(self.record, column)? {
            Value::DateTime(utc) => {
                ResultCell::Computed(Value::DateTime(convert::to_local(utc, self.time_zone)))
            }
            value => value.into(),
        })
    }
}

impl RowSource for RecordRow<'_> {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn cell(&self, index: usize) -> Result<ResultCell<'_>> {
        let cell = self.cells[index];
        if cell.to_local {
            return self.local_cell(cell.column);
        }
        self.layout.result_cell(self.record, cell.column)
    }
}
