//! Where result rows go: to the client, into memory, into variables, or nowhere.

use std::sync::Arc;

use errors::{Error, Result, bail};
use exec::RowSink;
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState, ValueRow};
use types::{DataType, Value};

/// Rows to the client. The columns go out with the first row, so that a statement that fails earlier has sent nothing.
pub struct ClientRows<'a> {
    sink: &'a mut dyn ResultSink,
    columns: &'a Arc<[ColumnMeta]>,
    begun: bool,
}

impl<'a> ClientRows<'a> {
    /// To a client whose result set has these columns.
    pub fn new(sink: &'a mut dyn ResultSink, columns: &'a Arc<[ColumnMeta]>) -> ClientRows<'a> {
        ClientRows { sink, columns, begun: false }
    }

    fn begin(&mut self) -> Result<()> {
        if !self.begun {
            self.begun = true;
            self.sink.shared_columns(self.columns)?;
        }
        Ok(())
    }

    /// Ends the result set; sends its columns if no row did.
    pub fn finish(mut self, state: &SessionState) -> Result<()> {
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
pub struct CollectedRows {
    /// The rows so far.
    pub rows: Vec<Vec<Value>>,
    bytes: usize,
    limit_bytes: usize,
}

impl CollectedRows {
    /// Keeps at most `limit_bytes`.
    pub fn new(limit_bytes: usize) -> CollectedRows {
        CollectedRows { rows: Vec::new(), bytes: 0, limit_bytes }
    }
}

impl RowSink for CollectedRows {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let values: Vec<Value> =
            (0..row.len()).map(|index| row.value(index)).collect::<Result<_>>()?;
        self.bytes += values.iter().map(|value| 24 + value.heap_bytes()).sum::<usize>();
        if self.bytes > self.limit_bytes {
            bail!(OUT_OF_RESOURCES);
        }
        self.rows.push(values);
        Ok(())
    }
}

/// The one row of SELECT ... INTO @variables.
pub struct SingleRow {
    /// The row, with the types of its values.
    pub row: Option<Vec<(Value, DataType)>>,
    types: Vec<DataType>,
}

impl SingleRow {
    /// For rows of these columns.
    pub fn new(columns: &[ColumnMeta]) -> SingleRow {
        SingleRow { row: None, types: columns.iter().map(|column| column.ty.clone()).collect() }
    }
}

impl RowSink for SingleRow {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        if self.row.is_some() {
            bail!(TOO_MANY_ROWS);
        }
        let cell = |(index, ty): (usize, &DataType)| Ok((row.value(index)?, ty.clone()));
        self.row = Some(self.types.iter().enumerate().map(cell).collect::<Result<_>>()?);
        Ok(())
    }
}

/// Discards rows.
pub struct NoRows;

impl RowSink for NoRows {
    fn row(&mut self, _: &dyn RowSource) -> Result<()> {
        Ok(())
    }
}

/// Sends a result set of values.
pub fn send_rows(
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

/// Receives the results of statements that the server runs for itself, and keeps no row.
#[derive(Default)]
pub struct DiscardSink {
    /// The columns of the last result set.
    pub columns: Vec<ColumnMeta>,
    /// The error that the statement sent.
    pub error: Option<Error>,
}

impl ResultSink for DiscardSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
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
