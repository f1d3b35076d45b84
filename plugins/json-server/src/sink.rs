//! Takes the results of statements and writes them as JSON while rows come.

use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result, bail};
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use serde_json::json;
use types::DataType;

use crate::json::{self, Form};

/// Results as the elements of a JSON array.
pub struct JsonSink {
    /// The elements so far, without the brackets.
    pub out: Vec<u8>,
    /// The error that ended the statements.
    pub error: Option<Error>,
    /// Warnings of the last statement.
    pub warnings: u16,
    rows_max: u64,
    bytes_max: usize,
    everything_as_text: bool,
    columns: Vec<(DataType, Form)>,
    /// Length of `out` up to the end of the last result.
    whole: usize,
    rows: u64,
    shown: u64,
    scratch: Vec<u8>,
    commits: Vec<CommitHandle>,
}

/// What a sink keeps of each result.
pub struct Limits {
    /// Rows of one result; others are counted only.
    pub rows_max: u64,
    /// Bytes of all results: more is an error.
    pub bytes_max: usize,
}

impl JsonSink {
    /// A sink for typed values.
    pub fn new(limits: &Limits) -> JsonSink {
        JsonSink {
            out: Vec::new(),
            error: None,
            warnings: 0,
            rows_max: limits.rows_max,
            bytes_max: limits.bytes_max,
            everything_as_text: false,
            columns: Vec::new(),
            whole: 0,
            rows: 0,
            shown: 0,
            scratch: Vec::new(),
            commits: Vec::new(),
        }
    }

    /// A sink for version 0.3: only the rows of the last result, all values as strings.
    pub fn of_strings(limits: &Limits) -> JsonSink {
        JsonSink { everything_as_text: true, ..JsonSink::new(limits) }
    }

    /// Waits until what the statements committed is durable: before that no answer may go out.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn wait_for_commits(&mut self) -> Result<()> {
        for commit in self.commits.drain(..) {
            if !commit.is_durable() {
                commit.wait().map_err(|error| error.into_error(&CancelToken::new()))?;
            }
        }
        Ok(())
    }

    /// The results that have their end.
    pub fn whole_results(&self) -> &[u8] {
        &self.out[..self.whole]
    }

    fn note_commit(&mut self, state: &OkInfo) {
        if let Some(commit) = state.commit.as_ref().filter(|commit| !commit.is_durable()) {
            self.commits.push(commit.clone());
        }
        self.warnings = state.warnings;
    }

    fn separate(&mut self) {
        if !self.out.is_empty() {
            self.out.push(b',');
        }
    }

    /// The form of the values of a column.
    fn form(&self, ty: &DataType) -> Form {
        if self.everything_as_text { Form::Everything } else { json::form_of(ty) }
    }
}

impl ResultSink for JsonSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns =
            columns.iter().map(|column| (column.ty.clone(), self.form(&column.ty))).collect();
        (self.rows, self.shown) = (0, 0);
        if self.everything_as_text {
            self.out.clear();
            return Ok(());
        }
        self.separate();
        self.out.extend_from_slice(b"{\"columns\":");
        json::write_columns(columns, &mut self.out);
        self.out.extend_from_slice(b",\"rows\":[");
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.rows += 1;
        if self.rows > self.rows_max {
            return Ok(());
        }
        if self.out.len() > self.bytes_max {
            bail!(NET_PACKET_TOO_LARGE);
        }
        if self.shown > 0 {
            self.out.push(b',');
        }
        self.shown += 1;
        json::write_row(row, &self.columns, &mut self.scratch, &mut self.out)
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.note_commit(state);
        if !self.everything_as_text {
            let end = format!(
                "],\"row_count\":{},\"truncated\":{},\"warnings\":{}}}",
                self.rows,
                self.rows > self.shown,
                state.warnings
            );
            self.out.extend_from_slice(end.as_bytes());
        }
        self.whole = self.out.len();
        Ok(())
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.note_commit(ok);
        if self.everything_as_text {
            self.out.clear();
            return Ok(());
        }
        self.separate();
        let result = json!({
            "affected_rows": ok.affected_rows,
            "last_insert_id": ok.last_insert_id,
            "info": ok.info,
            "warnings": ok.warnings,
        });
        self.out.extend_from_slice(result.to_string().as_bytes());
        self.whole = self.out.len();
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        // Rows of a result without an end are no result.
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
