//! Statements on this server: a session of the server itself, and what it answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, CommitHandle};
use errors::Result;
use plugin_api::{
    Answer, ExecuteRequest, RepeatedTransaction, ReplicationSession, SessionFactory, SessionHandle,
};
use sys::sync::Mutex;
use types::Value;

/// Most prepared statements that are kept.
const PREPARED_MAX: usize = 500;

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
        let mut answer = Answer::new(usize::MAX);
        self.0.repeat(sql, parameters, &mut answer)?;
        answer.checked()
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
        let mut answer = Answer::new(usize::MAX);
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
        let mut answer = Answer::new(usize::MAX);
        let request = ExecuteRequest { statement_id, parameters, attributes: &[], cursor: false };
        self.session.execute(&request, &mut answer)?;
        self.checked(answer)
    }

    fn checked(&mut self, answer: Answer) -> Result<Answer> {
        let answer = answer.checked()?;
        // Transactions of the source do not wait for their own durability: what a crash takes, it takes with the position that says that
        // it is here.
        answer.commits().iter().for_each(|commit| self.pending.put(commit));
        Ok(answer)
    }

    /// What the next transaction is in the binary log.
    pub(crate) fn repeat_transaction(&mut self, next: &RepeatedTransaction<'_>) -> Result<()> {
        self.session.repeat_transaction(next)
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
