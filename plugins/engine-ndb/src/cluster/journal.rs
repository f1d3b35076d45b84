//! Changes with their steps, in tables of this server: they are there before the first step acts, and tell how far it is.

use std::collections::HashMap;

use engine_api::CancelToken;
use errors::{Error, Result, err};
use plugin_api::{Answer, SessionFactory, SessionHandle};
use sys::sync::{Arc, Mutex};
use types::Value;

use super::plan::{Action, Step};

const CREATE: [&str; 3] = [
    "CREATE DATABASE IF NOT EXISTS squall_cluster",
    "CREATE TABLE IF NOT EXISTS squall_cluster.changes (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, \
     statement TEXT NOT NULL, state VARCHAR(16) NOT NULL, began BIGINT UNSIGNED NOT NULL, ended BIGINT UNSIGNED, \
     error TEXT) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
    "CREATE TABLE IF NOT EXISTS squall_cluster.steps (change_id BIGINT UNSIGNED NOT NULL, step INT UNSIGNED NOT NULL, \
     node INT NOT NULL, word VARCHAR(32) NOT NULL, arguments TEXT NOT NULL, action TEXT NOT NULL, online VARCHAR(3) NOT NULL, \
     estimated_seconds DOUBLE NOT NULL, state VARCHAR(16) NOT NULL, began BIGINT UNSIGNED, ended BIGINT UNSIGNED, \
     PRIMARY KEY (change_id, step)) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
];
const EXISTS: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'squall_cluster' AND TABLE_NAME = 'steps'";

/// A change that was begun.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) statement: String,
    pub(super) steps: Vec<StoredStep>,
}

#[derive(Clone, Debug)]
pub(super) struct StoredStep {
    pub(super) action: Action,
    /// When it was begun, if it was.
    pub(super) began: Option<u64>,
    pub(super) is_done: bool,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done,
    Failed,
    Undone,
}

/// The tables.
#[derive(Default)]
pub(super) struct Journal(Mutex<Option<Arc<dyn SessionFactory>>>);

fn text_of(value: Option<&Value>) -> String {
    match value {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Some(_) | None => String::new(),
    }
}

/// A literal that no SQL mode reads in another way.
fn quoted(text: &str) -> String {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("_utf8mb4 X'{digits}'")
}

/// A session of the server itself.
struct Local(Box<dyn SessionHandle>);

impl Local {
    /// Runs a statement; what it committed is durable.
    fn run(&mut self, sql: &str) -> Result<Answer> {
        let mut answer = Answer::new(usize::MAX);
        self.0.query(sql.as_bytes(), &[], &mut answer)?;
        answer.finish()
    }
}

impl Journal {
    pub(super) fn set_sessions(&self, sessions: Option<Arc<dyn SessionFactory>>) {
        *self.0.lock() = sessions;
    }

    fn local(&self) -> Result<Local> {
        let sessions = self.0.lock().clone();
        let sessions = sessions.ok_or_else(|| err!(SERVER_ISNT_AVAILABLE))?;
        let mut local = Local(sessions.open_applier(CancelToken::new())?);
        // It is nothing to other servers.
        local.run("SET SESSION sql_log_bin = 0")?;
        Ok(local)
    }

    fn has_tables(local: &mut Local) -> Result<bool> {
        let answer = local.run(&format!("SELECT CAST(({EXISTS}) AS CHAR)"))?;
        Ok(text_of(answer.rows.first().and_then(|row| row.first())) == "1")
    }

    /// Stores a change with its steps, before anything is done.
    pub(super) fn store(&self, statement: &str, steps: &[Step], now: u64) -> Result<Stored> {
        let mut local = self.local()?;
        for statement in CREATE {
            local.run(statement)?;
        }
        local.run("START TRANSACTION")?;
        let insert = format!(
            "INSERT INTO squall_cluster.changes (statement, state, began) VALUES ({}, 'running', {now})",
            quoted(statement)
        );
        let id = local.run(&insert)?.last_insert_id;
        for (step, number) in steps.iter().zip(1..) {
            let action = &step.action;
            let (node, online) = (action.node(), if step.is_online { "YES" } else { "NO" });
            local.run(&format!(
                "INSERT INTO squall_cluster.steps (change_id, step, node, word, arguments, action, online, estimated_seconds, state) \
                 VALUES ({id}, {number}, {node}, {}, {}, {}, '{online}', {:.1}, 'waiting')",
                quoted(action.word()),
                quoted(&action.arguments()),
                quoted(&action.shown()),
                step.seconds,
            ))?;
        }
        local.run("COMMIT")?;
        let stored =
            |step: &Step| StoredStep { action: step.action.clone(), began: None, is_done: false };
        Ok(Stored {
            id,
            statement: statement.to_owned(),
            steps: steps.iter().map(stored).collect(),
        })
    }

    /// The change that was begun and not ended, if there is one.
    pub(super) fn unfinished(&self) -> Result<Option<Stored>> {
        let mut local = self.local()?;
        if !Self::has_tables(&mut local)? {
            return Ok(None);
        }
        let rows = local.run(
            "SELECT CAST(id AS CHAR), statement FROM squall_cluster.changes WHERE state = 'running' ORDER BY id LIMIT 1",
        )?;
        let Some(row) = rows.rows.first() else { return Ok(None) };
        let id = text_of(row.first()).parse().unwrap_or(0);
        let statement = text_of(row.get(1));
        let rows = local.run(&format!(
            "SELECT word, arguments, state, CAST(began AS CHAR) FROM squall_cluster.steps WHERE change_id = {id} ORDER BY step"
        ))?;
        let step = |row: &Vec<Value>| {
            let (word, arguments) = (text_of(row.first()), text_of(row.get(1)));
            let action = Action::stored(&word, &arguments)
                .ok_or_else(|| Error::internal(format!("a step of a cluster's change: {word}")))?;
            let is_done = text_of(row.get(2)) == "done";
            Ok(StoredStep { action, began: text_of(row.get(3)).parse().ok(), is_done })
        };
        let steps = rows.rows.iter().map(step).collect::<Result<_>>()?;
        Ok(Some(Stored { id, statement, steps }))
    }

    fn change_step(&self, id: u64, step: usize, values: &str) -> Result<()> {
        let sql = format!(
            "UPDATE squall_cluster.steps SET {values} WHERE change_id = {id} AND step = {}",
            step + 1
        );
        self.local()?.run(&sql).map(drop)
    }

    pub(super) fn begin(&self, id: u64, step: usize, now: u64) -> Result<()> {
        self.change_step(id, step, &format!("state = 'running', began = {now}"))
    }

    pub(super) fn finish(&self, id: u64, step: usize, now: u64) -> Result<()> {
        self.change_step(id, step, &format!("state = 'done', ended = {now}"))
    }

    /// The change is over.
    pub(super) fn end(
        &self,
        id: u64,
        ending: Ending,
        error: Option<&Error>,
        now: u64,
    ) -> Result<()> {
        let state = match ending {
            Ending::Done => "done",
            Ending::Failed => "failed",
            Ending::Undone => "undone",
        };
        let error = error.map_or("NULL".to_owned(), |error| quoted(&error.to_string()));
        let mut local = self.local()?;
        local.run("START TRANSACTION")?;
        if ending != Ending::Done {
            local.run(&format!(
                "UPDATE squall_cluster.steps SET state = IF(state = 'running', '{state}', 'left out') \
                 WHERE change_id = {id} AND state <> 'done'"
            ))?;
        }
        local.run(&format!(
            "UPDATE squall_cluster.changes SET state = '{state}', ended = {now}, error = {error} WHERE id = {id}"
        ))?;
        local.run("COMMIT").map(drop)
    }

    /// How long steps took when they were done last: by node and word.
    pub(super) fn history(&self) -> Result<HashMap<(i32, String), f64>> {
        let mut local = self.local()?;
        if !Self::has_tables(&mut local)? {
            return Ok(HashMap::new());
        }
        let rows = local.run(
            "SELECT CAST(node AS CHAR), word, CAST(ended - began AS CHAR) FROM squall_cluster.steps WHERE state = 'done' \
             AND change_id + 100 > (SELECT MAX(id) FROM squall_cluster.changes) ORDER BY change_id, step",
        )?;
        let known = |row: &Vec<Value>| {
            let node = text_of(row.first()).parse().ok()?;
            Some(((node, text_of(row.get(1))), text_of(row.get(2)).parse().ok()?))
        };
        Ok(rows.rows.iter().filter_map(known).collect())
    }
}
