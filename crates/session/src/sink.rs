//! Where result rows go: to the client, into memory, into variables, or nowhere.

use std::sync::Arc;

use errors::{Error, Result, bail};
use exec::RowSink;
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use types::{DataType, Value};

/// Rows to the client. The columns go out with the first row, so that a statement that fails before has sent nothing.
pub(crate) struct ClientRows<'a> {
    sink: &'a mut dyn ResultSink,
    columns: &'a Arc<[ColumnMeta]>,
    begun: bool,
}

impl<'a> ClientRows<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn ResultSink,
        columns: &'a Arc<[ColumnMeta]>,
    ) -> ClientRows<'a> {
        ClientRows { sink, columns, begun: false }
    }

    fn begin(&mut self) -> Result<()> {
        if !self.begun {
            self.begun = true;
            self.sink.shared_columns(self.columns)?;
        }
        Ok(())
    }

    /// The result set ends; its columns go out at the latest now.
    pub(crate) fn finish(mut self, state: &SessionState) -> Result<()> {
        self.begin()?;
        self.sink.end(state)
    }
}

impl RowSink for ClientRows<'_> {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.begin()?;
        self.sink.row(row)
    }
}

/// Rows in memory.
pub(crate) struct CollectedRows {
    pub(crate) rows: Vec<Vec<Value>>,
    types: Vec<DataType>,
    bytes: usize,
    limit_bytes: usize,
}

impl CollectedRows {
    /// Keeps at most `limit_bytes`.
    pub(crate) fn new(columns: &[ColumnMeta], limit_bytes: usize) -> CollectedRows {
        let types = columns.iter().map(|column| column.ty.clone()).collect();
        CollectedRows { rows: Vec::new(), types, bytes: 0, limit_bytes }
    }
}

impl RowSink for CollectedRows {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let values: Vec<Value> = self
            .types
            .iter()
            .enumerate()
            .map(|(index, ty)| row.value(index, ty))
            .collect::<Result<_>>()?;
        self.bytes += values.iter().map(|value| 24 + value.heap_bytes()).sum::<usize>();
        if self.bytes > self.limit_bytes {
            bail!(OUT_OF_RESOURCES);
        }
        self.rows.push(values);
        Ok(())
    }
}

/// The one row of SELECT ... INTO @variables.
pub(crate) struct SingleRow {
    pub(crate) row: Option<Vec<(Value, DataType)>>,
    types: Vec<DataType>,
}

impl SingleRow {
    pub(crate) fn new(columns: &[ColumnMeta]) -> SingleRow {
        SingleRow { row: None, types: columns.iter().map(|column| column.ty.clone()).collect() }
    }
}

impl RowSink for SingleRow {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        if self.row.is_some() {
            bail!(TOO_MANY_ROWS);
        }
        let cell = |(index, ty): (usize, &DataType)| Ok((row.value(index, ty)?, ty.clone()));
        self.row = Some(self.types.iter().enumerate().map(cell).collect::<Result<_>>()?);
        Ok(())
    }
}

/// Rows that nobody wants.
pub(crate) struct NoRows;

impl RowSink for NoRows {
    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }
}

/// A row of values.
pub(crate) struct ValueRow<'a>(pub(crate) &'a [Value]);

impl RowSource for ValueRow<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn write_text(&self, index: usize, ty: &DataType, out: &mut Vec<u8>) -> Result<()> {
        let value = self.0.get(index).unwrap_or(&Value::Null);
        if value.is_null() {
            out.push(0xFB);
            return Ok(());
        }
        let mut text = Vec::new();
        types::text::to_text(value, ty, &mut text);
        write_length(text.len() as u64, out);
        out.extend_from_slice(&text);
        Ok(())
    }

    fn value(&self, index: usize, _: &DataType) -> Result<Value> {
        Ok(self.0.get(index).cloned().unwrap_or(Value::Null))
    }
}

/// A length-encoded integer, as text-protocol cells begin.
fn write_length(length: u64, out: &mut Vec<u8>) {
    match length {
        0..=250 => out.push(length as u8),
        251..=0xFFFF => {
            out.push(0xFC);
            out.extend_from_slice(&(length as u16).to_le_bytes());
        }
        0x1_0000..=0xFF_FFFF => {
            out.push(0xFD);
            out.extend_from_slice(&(length as u32).to_le_bytes()[..3]);
        }
        _ => {
            out.push(0xFE);
            out.extend_from_slice(&length.to_le_bytes());
        }
    }
}

/// Sends a result set of values.
pub(crate) fn send_rows(
    sink: &mut dyn ResultSink,
    columns: &[ColumnMeta],
    rows: &[Vec<Value>],
    state: &SessionState,
) -> Result<()> {
    sink.columns(columns)?;
    for row in rows {
        sink.row(&ValueRow(row))?;
    }
    sink.end(state)
}

/// Takes the results of statements that the server runs for itself.
#[derive(Default)]
pub(crate) struct DiscardSink {
    pub(crate) error: Option<Error>,
}

impl ResultSink for DiscardSink {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(NOT_ALLOWED_COMMAND);
    }
}
