//! Result rows on their way to the sink.

use errors::Result;
use plugin_api::RowSource;
use types::{DataType, Value, ZoneRules, to_text};

use crate::convert;
use crate::expr::Code;
use crate::layout::Layout;
use crate::run::Run;

/// First byte of a NULL in the text protocol.
const NULL_CELL: u8 = 0xFB;

/// Appends `body`'s bytes behind their length.
fn write_cell(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.push(0);
    body(out);
    let length = out.len() - start - 1;
    if length <= 250 {
        out[start] = length as u8;
        return;
    }
    let (tag, width): (u8, usize) = match length {
        0..=0xFFFF => (0xFC, 2),
        0x1_0000..=0xFF_FFFF => (0xFD, 3),
        _ => (0xFE, 8),
    };
    out[start] = tag;
    let bytes = (length as u64).to_le_bytes();
    out.splice(start + 1..start + 1, bytes[..width].iter().copied());
}

/// Appends a value as a text-protocol cell.
pub(crate) fn write_value(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(NULL_CELL),
        Value::Bytes(bytes) if bytes.len() <= 250 => {
            out.push(bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
        value => write_cell(out, |out| to_text(value, ty, out)),
    }
}

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

/// Computes what has to be computed of a row.
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

    fn cell(&self, index: usize) -> &Value {
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

    fn write_text(&self, index: usize, ty: &DataType, out: &mut Vec<u8>) -> Result<()> {
        write_value(self.cell(index), ty, out);
        Ok(())
    }

    fn value(&self, index: usize, _ty: &DataType) -> Result<Value> {
        Ok(self.cell(index).clone())
    }
}

/// A row of plain values.
pub(crate) struct ValueRow<'a>(pub(crate) &'a [Value]);

impl RowSource for ValueRow<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn write_text(&self, index: usize, ty: &DataType, out: &mut Vec<u8>) -> Result<()> {
        write_value(&self.0[index], ty, out);
        Ok(())
    }

    fn value(&self, index: usize, _ty: &DataType) -> Result<Value> {
        Ok(self.0[index].clone())
    }
}

/// A result column that is a plain column of a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordCell {
    pub(crate) column: usize,
    /// TIMESTAMP: shown in the session time zone.
    pub(crate) to_local: bool,
}

/// A row whose cells are written straight from a record.
pub(crate) struct RecordRow<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) record: &'a [u8],
    pub(crate) cells: &'a [RecordCell],
    pub(crate) time_zone: &'a dyn ZoneRules,
}

impl RecordRow<'_> {
    fn local_value(&self, cell: RecordCell) -> Result<Value> {
        let value = self.layout.decode(self.record, cell.column)?;
        Ok(match value {
            Value::DateTime(moment) if cell.to_local => {
                Value::DateTime(convert::to_local(moment, self.time_zone))
            }
            value => value,
        })
    }
}

impl RowSource for RecordRow<'_> {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn write_text(&self, index: usize, ty: &DataType, out: &mut Vec<u8>) -> Result<()> {
        let cell = self.cells[index];
        if cell.to_local {
            write_value(&self.local_value(cell)?, ty, out);
            return Ok(());
        }
        let start = out.len();
        let mut outcome = Ok(None);
        write_cell(out, |out| {
            outcome = self.layout.write_text(self.record, cell.column, out);
        });
        match outcome? {
            Some(true) => {}
            Some(false) => {
                out.truncate(start);
                out.push(NULL_CELL);
            }
            None => {
                out.truncate(start);
                write_value(&self.local_value(cell)?, ty, out);
            }
        }
        Ok(())
    }

    fn value(&self, index: usize, _ty: &DataType) -> Result<Value> {
        self.local_value(self.cells[index])
    }
}
