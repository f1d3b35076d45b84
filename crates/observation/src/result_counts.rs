//! Counts what a statement sends to its client, for observers.

use errors::{Error, Result};
use plugin_api::{ColumnMeta, ForwardingSink, OkInfo, ResultSink, RowSource, SessionState};

/// What a statement sent to its client.
#[derive(Debug, Default)]
pub struct ResultCounts {
    pub sent: u64,
    pub affected: u64,
    pub last_insert_id: u64,
    pub error: Option<Error>,
}

/// Counts what passes to another sink.
pub struct CountingSink<'s> {
    pub target: &'s mut dyn ResultSink,
    pub counts: ResultCounts,
}

impl ForwardingSink for CountingSink<'_> {
    fn target(&mut self) -> &mut dyn ResultSink {
        self.target
    }

    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.target.columns(columns)
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.counts.sent += 1;
        self.target.row(row)
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.target.end(state)
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.counts.affected += ok.affected_rows;
        self.counts.last_insert_id = ok.last_insert_id;
        self.target.ok(ok)
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.counts.error = Some(error.clone());
        self.target.error(error)
    }
}
