//! Sinks in front of other sinks: they pass on everything that they do not change.

use std::sync::Arc;

use errors::{Error, Result};

use crate::result::{ColumnMeta, LocalFile, Next, OkInfo, ResultSink, RowSource, SessionState};

/// A [`ResultSink`] that passes everything on to another one, except for the methods that it overrides. They mean what the methods of
/// the same names mean there.
#[expect(clippy::missing_errors_doc, reason = "they are ResultSink's")]
pub trait ForwardingSink {
    /// Where everything goes.
    fn target(&mut self) -> &mut dyn ResultSink;
    /// See [`ResultSink::columns`].
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.target().columns(columns)
    }
    /// See [`ResultSink::shared_columns`].
    fn shared_columns(&mut self, columns: &Arc<[ColumnMeta]>) -> Result<()> {
        self.target().shared_columns(columns)
    }
    /// See [`ResultSink::followed_by`].
    fn followed_by(&mut self, next: Next) {
        self.target().followed_by(next);
    }
    /// See [`ResultSink::row`].
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.target().row(row)
    }
    /// See [`ResultSink::out_parameters`].
    fn out_parameters(
        &mut self,
        parameters: &[usize],
        columns: &[ColumnMeta],
        row: &dyn RowSource,
        state: &SessionState,
    ) -> Result<()> {
        self.target().out_parameters(parameters, columns, row, state)
    }
    /// See [`ResultSink::end`].
    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.target().end(state)
    }
    /// See [`ResultSink::ok`].
    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.target().ok(ok)
    }
    /// See [`ResultSink::error`].
    fn error(&mut self, error: &Error) -> Result<()> {
        self.target().error(error)
    }
    /// See [`ResultSink::bytes_written`].
    fn bytes_written(&mut self) -> u64 {
        self.target().bytes_written()
    }
    /// See [`ResultSink::local_file`].
    fn local_file(&mut self, name: &str) -> Result<Box<dyn LocalFile + '_>> {
        self.target().local_file(name)
    }
}

impl<S: ForwardingSink> ResultSink for S {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        ForwardingSink::columns(self, columns)
    }

    fn shared_columns(&mut self, columns: &Arc<[ColumnMeta]>) -> Result<()> {
        ForwardingSink::shared_columns(self, columns)
    }

    fn followed_by(&mut self, next: Next) {
        ForwardingSink::followed_by(self, next);
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        ForwardingSink::row(self, row)
    }

    fn out_parameters(
        &mut self,
        parameters: &[usize],
        columns: &[ColumnMeta],
        row: &dyn RowSource,
        state: &SessionState,
    ) -> Result<()> {
        ForwardingSink::out_parameters(self, parameters, columns, row, state)
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        ForwardingSink::end(self, state)
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        ForwardingSink::ok(self, ok)
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        ForwardingSink::error(self, error)
    }

    fn bytes_written(&mut self) -> u64 {
        ForwardingSink::bytes_written(self)
    }

    fn local_file(&mut self, name: &str) -> Result<Box<dyn LocalFile + '_>> {
        ForwardingSink::local_file(self, name)
    }
}
