//! The values of a statement of our own.

use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result, bail};
use plugin_api::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};
use types::Value;

/// A text or an integer as text, for answers to statements of our own.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Null
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => None,
    }
}

/// The values of one statement, for calls that build their answer from them.
#[derive(Debug, Default)]
pub struct Answer {
    /// Columns; empty for a statement without a result set.
    pub columns: Vec<ColumnMeta>,
    /// Rows.
    pub rows: Vec<Vec<Value>>,
    /// Affected rows.
    pub affected_rows: u64,
    /// Generated id.
    pub last_insert_id: u64,
    /// Rows that a call may hold in memory.
    pub rows_max: usize,
    error: Option<Error>,
    commits: Vec<CommitHandle>,
}

impl Answer {
    /// An answer that takes up to `rows_max` rows.
    pub fn new(rows_max: usize) -> Answer {
        Answer { rows_max, ..Answer::default() }
    }

    /// Waits for durability, and gives the error of the statement.
    ///
    /// # Errors
    /// The statement's.
    pub fn finish(mut self) -> Result<Answer> {
        for commit in self.commits.drain(..) {
            commit.wait().map_err(|error| error.into_error(&CancelToken::new()))?;
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(self),
        }
    }
}

impl ResultSink for Answer {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
        self.rows.clear();
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        if self.rows.len() == self.rows_max {
            bail!(NET_PACKET_TOO_LARGE);
        }
        let values = (0..row.len()).map(|index| row.value(index)).collect::<Result<_>>()?;
        self.rows.push(values);
        Ok(())
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.commits.extend(state.commit.clone());
        Ok(())
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.commits.extend(ok.commit.clone());
        (self.affected_rows, self.last_insert_id) = (ok.affected_rows, ok.last_insert_id);
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
