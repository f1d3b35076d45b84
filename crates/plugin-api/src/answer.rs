//! What a statement answers that a plugin runs in a session.

use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result, bail};
use types::Value;

use crate::{ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionState};

/// What a statement answers whose values a plugin uses itself.
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
    /// Rows that it may hold in memory.
    pub rows_max: usize,
    error: Option<Error>,
    commits: Vec<CommitHandle>,
}

impl Answer {
    /// An answer that takes up to `rows_max` rows.
    pub fn new(rows_max: usize) -> Answer {
        Answer { rows_max, ..Answer::default() }
    }

    /// What the statement committed, which may not be durable yet.
    pub fn commits(&self) -> &[CommitHandle] {
        &self.commits
    }

    /// Waits until what the statement committed is durable; until then other sessions do not see it.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn durable(&self) -> Result<()> {
        let mut commits = self.commits.iter();
        commits.try_for_each(|commit| {
            commit.wait().map_err(|error| error.into_error(&CancelToken::new()))
        })
    }

    /// The answer of a statement that has not failed.
    ///
    /// # Errors
    /// The statement's.
    pub fn checked(mut self) -> Result<Answer> {
        self.error.take().map_or(Ok(self), Err)
    }

    /// Waits for durability, and gives the error of the statement.
    ///
    /// # Errors
    /// The statement's.
    pub fn finish(self) -> Result<Answer> {
        self.durable()?;
        self.checked()
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
