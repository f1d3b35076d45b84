//! Statements on this server: a session of the server itself, and what it answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, CommitHandle};
use errors::{Error, Result, bail};
use plugin_api::{
    ColumnMeta, ExecuteRequest, LocalFile, OkInfo, ReplicationSession, ResultSink, RowSource,
    SessionFactory, SessionHandle, SessionState,
};
use sys::sync::Mutex;
use types::Value;

/// Most prepared statements that are kept.
const PREPARED_MAX: usize = 500;

/// What a statement answered.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) rows: Vec<Vec<Value>>,
    /// Rows that an UPDATE or DELETE found.
    pub(crate) affected: u64,
    error: Option<Error>,
    commit: Option<CommitHandle>,
}

impl ResultSink for Answer {
    fn columns(&mut self, _: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        self.rows.push((0..row.len()).map(|index| row.value(index)).collect::<Result<_>>()?);
        Ok(())
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.affected = ok.affected_rows;
        self.commit.clone_from(&ok.commit);
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}

impl Answer {
    /// Waits until what the statement committed is durable; until then other sessions do not see it. Transactions of the source do not wait for
    /// their own: what a crash takes, it takes together with the position that says that it is here.
    pub(crate) fn durable(self) -> Result<()> {
        match &self.commit {
            Some(commit) => commit.wait().map_err(|error| error.into_error(&CancelToken::new())),
            None => Ok(()),
        }
    }
}

/// Runs statements with parameters on this server.
pub(crate) trait Run {
    /// Runs a statement.
    ///
    /// # Errors
    /// Those of the statement.
    fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer>;
}

/// The session of a statement, whose transaction goes on.
pub(crate) struct Present<'s>(pub(crate) &'s mut dyn ReplicationSession);

impl Run for Present<'_> {
    fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer> {
        let mut answer = Answer::default();
        self.0.repeat(sql, parameters, &mut answer)?;
        match answer.error {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }
}

/// A session on this server.
pub(crate) struct Local {
    session: Box<dyn SessionHandle>,
    prepared: HashMap<String, u32>,
    pub(crate) pending: Arc<Pending>,
}

// Who opens a session next sees all that this one did.
impl Drop for Local {
    fn drop(&mut self) {
        self.pending.settle();
    }
}

/// What was committed and is not durable: other sessions do not see it yet.
#[derive(Default)]
pub(crate) struct Pending {
    /// The last commit, and since when one waits.
    commit: Mutex<Option<(CommitHandle, Duration)>>,
}

impl Pending {
    fn put(&self, commit: &CommitHandle) {
        let mut pending = self.commit.lock();
        let since = pending.as_ref().map(|(_, since)| *since);
        *pending = Some((commit.clone(), since.unwrap_or_else(sys::clock::monotonic)));
    }

    /// Makes all of it durable, also what another thread is making durable now. False when the log cannot be written.
    pub(crate) fn settle(&self) -> bool {
        let commit = self.commit.lock().as_ref().map(|(commit, _)| commit.clone());
        let Some(commit) = commit else { return true };
        let is_durable = commit.wait().is_ok();
        if !is_durable {
            tracing::error!("the log cannot be written: transactions of the source may be missing");
        }
        let mut pending = self.commit.lock();
        if pending.as_ref().is_some_and(|(last, _)| last.is_durable()) {
            *pending = None;
        }
        is_durable
    }

    /// Makes it durable if it waits for so long.
    pub(crate) fn settle_after(&self, age: Duration) {
        let since = self.commit.lock().as_ref().map(|(_, since)| *since);
        if since.is_some_and(|since| sys::clock::monotonic() - since > age) {
            self.settle();
        }
    }
}

impl Local {
    /// Commits of the session wait with those of others that share `pending`, in the order in which they are made.
    pub(crate) fn open(
        sessions: &dyn SessionFactory,
        cancel: CancelToken,
        pending: Arc<Pending>,
    ) -> Result<Local> {
        let session = sessions.open_applier(cancel)?;
        Ok(Local { session, prepared: HashMap::new(), pending })
    }

    /// Runs a statement.
    pub(crate) fn run(&mut self, sql: &[u8]) -> Result<Answer> {
        let mut answer = Answer::default();
        self.session.query(sql, &[], &mut answer)?;
        self.checked(answer)
    }

    /// Runs a statement with parameters, which is prepared at its first use.
    pub(crate) fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer> {
        let statement_id = match self.prepared.get(sql) {
            Some(id) => *id,
            None => {
                if self.prepared.len() >= PREPARED_MAX {
                    self.forget();
                }
                let id = self.session.prepare(sql.as_bytes())?.statement_id;
                self.prepared.insert(sql.to_owned(), id);
                id
            }
        };
        let mut answer = Answer::default();
        let request = ExecuteRequest { statement_id, parameters, attributes: &[], cursor: false };
        self.session.execute(&request, &mut answer)?;
        self.checked(answer)
    }

    fn checked(&mut self, answer: Answer) -> Result<Answer> {
        if let Some(error) = answer.error {
            return Err(error);
        }
        if let Some(commit) = &answer.commit {
            self.pending.put(commit);
        }
        Ok(answer)
    }

    /// Sets the current schema.
    pub(crate) fn use_schema(&mut self, schema: &str) -> Result<()> {
        self.session.init_db(schema).map(drop)
    }

    /// Closes the prepared statements.
    pub(crate) fn forget(&mut self) {
        for (_, id) in self.prepared.drain() {
            self.session.close_statement(id);
        }
    }
}

impl Run for Local {
    fn execute(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer> {
        Local::execute(self, sql, parameters)
    }
}

/// A name in backquotes.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a literal: hexadecimal, so that no SQL mode changes what it says.
pub(crate) fn quoted_text(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 X'{digits}'")
}

/// A value as text; empty for NULL.
pub(crate) fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(Value::UInt(number)) => number.to_string(),
        Some(Value::Int(number)) => number.to_string(),
        Some(_) | None => String::new(),
    }
}
