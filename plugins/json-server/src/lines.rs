//! Results as NDJSON: one JSON value a line, sent while rows come.

use errors::{Error, Result, bail};
use hyper::StatusCode;
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use serde_json::{Value as Json, json};
use types::DataType;

use crate::call::Incoming;
use crate::json::{self, Form};
use crate::pipe::Pipe;
use crate::reply::{Reply, error_json, status_of};

/// The media type.
pub const MEDIA_TYPE: &str = "application/x-ndjson";

/// Writes `{"columns":[..]}`, a line for each row, and `{"end":{..}}` for each result; `{"error":{..}}` ends the answer.
pub struct LineSink<'a> {
    pipe: Pipe<'a>,
    rows_max: u64,
    rows: u64,
    columns: Vec<(DataType, Form)>,
    scratch: Vec<u8>,
    error: Option<Error>,
}

impl<'a> LineSink<'a> {
    /// A sink for the answer to a request; rows of a result beyond `rows_max` are counted only.
    pub fn new(request: &'a Incoming, rows_max: u64) -> LineSink<'a> {
        LineSink {
            pipe: Pipe::new(request, MEDIA_TYPE),
            rows_max,
            rows: 0,
            columns: Vec::new(),
            scratch: Vec::new(),
            error: None,
        }
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// The client is gone.
    pub fn finish(mut self) -> Result<Reply> {
        let Some(error) = self.error.take() else { return self.pipe.finish(StatusCode::OK) };
        if self.pipe.out.is_empty() && !self.pipe.has_begun() {
            return Ok(Reply::sql_error(&error));
        }
        self.line(&json!({ "error": error_json(&error) }));
        self.pipe.finish(status_of(error.code()))
    }

    fn line(&mut self, json: &Json) {
        self.pipe.out.extend_from_slice(json.to_string().as_bytes());
        self.pipe.out.push(b'\n');
    }
}

impl ResultSink for LineSink<'_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        let form = |column: &ColumnMeta| (column.ty.clone(), json::form_of(&column.ty));
        self.columns = columns.iter().map(form).collect();
        self.rows = 0;
        let out = &mut self.pipe.out;
        out.extend_from_slice(b"{\"columns\":");
        json::write_columns(columns, out);
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.rows += 1;
        if self.rows > self.rows_max {
            return Ok(());
        }
        json::write_row(row, &self.columns, &mut self.scratch, &mut self.pipe.out)?;
        self.pipe.out.push(b'\n');
        self.pipe.send_if_full()
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.pipe.note_commit(state);
        let end = json!({
            "row_count": self.rows,
            "truncated": self.rows > self.rows_max,
            "warnings": state.warnings,
        });
        self.line(&json!({ "end": end }));
        self.pipe.send_if_full()
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.pipe.note_commit(ok);
        let end = json!({
            "affected_rows": ok.affected_rows,
            "last_insert_id": ok.last_insert_id,
            "info": ok.info,
            "warnings": ok.warnings,
        });
        self.line(&json!({ "end": end }));
        self.pipe.send_if_full()
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
