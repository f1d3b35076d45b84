//! The slot for observers: plugins that are told what sessions do, and may refuse it before it is done.
//!
//! An event that no loaded observer wants costs the test of one word for each statement.

use std::ops::BitOr;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use types::Value;

use crate::change::RowEvent;
use crate::cost::{SessionCounts, StatementCost, StatementCounts, StatementStep};
use crate::function::SessionServices;
use crate::session::QueryAttribute;

/// The name under which clients send their place in a trace.
const TRACE_PARENT: &str = "traceparent";

/// A set of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSet(u32);

impl EventSet {
    /// No event.
    pub const NONE: EventSet = EventSet(0);
    /// Before a statement.
    pub const BEFORE_STATEMENT: EventSet = EventSet(1);
    /// After a statement.
    pub const AFTER_STATEMENT: EventSet = EventSet(1 << 1);
    /// Before a schema or table is created, altered, renamed or dropped.
    pub const BEFORE_SCHEMA_CHANGE: EventSet = EventSet(1 << 2);
    /// After that.
    pub const AFTER_SCHEMA_CHANGE: EventSet = EventSet(1 << 3);
    /// A client has logged in.
    pub const CONNECT: EventSet = EventSet(1 << 4);
    /// A session ends.
    pub const DISCONNECT: EventSet = EventSet(1 << 5);
    /// A log-in was refused.
    pub const LOGIN_FAILURE: EventSet = EventSet(1 << 6);
    /// Before a row is inserted, updated or deleted.
    pub const BEFORE_ROW: EventSet = EventSet(1 << 7);
    /// After that.
    pub const AFTER_ROW: EventSet = EventSet(1 << 8);
    /// No event by itself: the observer wants to know what statements cost.
    pub const COST: EventSet = EventSet(1 << 9);
    /// No event by itself: the observer wants `StatementEvent::digest_hash`.
    pub const DIGEST: EventSet = EventSet(1 << 10);
    /// After a statement of a session whose `statement_cost` is ON, in addition to those that `AFTER_STATEMENT` tells of.
    pub const SESSION_COST: EventSet = EventSet(1 << 11);
    /// A SET of a session's variable.
    pub const SESSION_VARIABLE: EventSet = EventSet(1 << 12);
    /// After a statement of a session whose `profiling` is ON, in addition to those that `AFTER_STATEMENT` tells of.
    pub const SESSION_STEPS: EventSet = EventSet(1 << 13);
    /// No event by itself: the observer wants the steps of statements.
    pub const STEPS: EventSet = EventSet(1 << 14);
    /// No event by itself: the observer wants to know which rows of which tables statements read and write.
    pub const TABLES: EventSet = EventSet(1 << 15);
    /// After a statement that took longer than its session's `long_query_time`.
    pub const AFTER_SLOW_STATEMENT: EventSet = EventSet(1 << 16);
    /// The answer to a log-in is due.
    pub const LOGIN_ANSWER: EventSet = EventSet(1 << 17);
    /// Before and after statements.
    pub const STATEMENTS: EventSet = EventSet(0b11);
    /// For any of which a statement is watched.
    pub const OF_STATEMENTS: EventSet = EventSet(0b11 | 1 << 16);
    /// Before and after changes of schemas and tables.
    pub const SCHEMA_CHANGES: EventSet = EventSet(0b1100);
    /// Before and after changes of rows.
    pub const ROWS: EventSet = EventSet(0b1_1000_0000);

    /// The events with their names in `data_dictionary.EVENT_OBSERVERS`.
    const NAMES: [(EventSet, &'static str); 14] = [
        (EventSet::BEFORE_STATEMENT, "BEFORE STATEMENT"),
        (EventSet::AFTER_STATEMENT, "AFTER STATEMENT"),
        (EventSet::AFTER_SLOW_STATEMENT, "AFTER SLOW STATEMENT"),
        (EventSet::BEFORE_SCHEMA_CHANGE, "BEFORE SCHEMA CHANGE"),
        (EventSet::AFTER_SCHEMA_CHANGE, "AFTER SCHEMA CHANGE"),
        (EventSet::CONNECT, "CONNECT"),
        (EventSet::DISCONNECT, "DISCONNECT"),
        (EventSet::LOGIN_ANSWER, "LOGIN ANSWER"),
        (EventSet::LOGIN_FAILURE, "LOGIN FAILURE"),
        (EventSet::BEFORE_ROW, "BEFORE ROW"),
        (EventSet::AFTER_ROW, "AFTER ROW"),
        (EventSet::SESSION_COST, "AFTER MEASURED STATEMENT"),
        (EventSet::SESSION_VARIABLE, "SESSION VARIABLE"),
        (EventSet::SESSION_STEPS, "AFTER PROFILED STATEMENT"),
    ];

    /// Whether the two sets share an event.
    pub const fn meets(self, other: EventSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The set as a number, for a word that is read by many threads.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The names of its events.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        EventSet::NAMES.into_iter().filter(move |(set, _)| self.meets(*set)).map(|(_, name)| name)
    }
}

impl BitOr for EventSet {
    type Output = EventSet;

    fn bitor(self, other: EventSet) -> EventSet {
        EventSet(self.0 | other.0)
    }
}

/// The session that does something.
#[derive(Clone, Copy, Debug)]
pub struct SessionFacts<'a> {
    /// `CONNECTION_ID()`.
    pub connection_id: u64,
    /// The user's name as the client gave it.
    pub user: &'a str,
    /// The client's host.
    pub host: &'a str,
    /// `user@host` of the account.
    pub account: &'a str,
    /// The current schema.
    pub schema: Option<&'a str>,
}

/// A statement that begins.
pub struct StatementEvent<'a> {
    /// Whose it is.
    pub session: SessionFacts<'a>,
    /// The client's command: `Query`, `Prepare`, `Execute`, ...
    pub command: &'static str,
    /// Its text, in which `<secret>` stands for passwords.
    pub text: &'a [u8],
    /// The text with its literals replaced by `?`.
    pub digest_text: &'a dyn Fn() -> String,
    /// For observers that ask for `EventSet::DIGEST`: a hash of the text without most of its literals. Texts with the same hash have the same digest text;
    /// it differs in each run of the server.
    pub digest_hash: Option<u128>,
    /// Attributes that the client sent when it logged in: names and values.
    pub connection_attributes: &'a dyn Fn() -> std::sync::Arc<[(String, String)]>,
    /// When it began, microseconds since 1970 UTC.
    pub started_micros: i64,
    /// Variables of the session.
    pub services: &'a dyn SessionServices,
    /// Attributes that the client sent with it.
    pub attributes: &'a [QueryAttribute],
}

impl StatementEvent<'_> {
    /// The client's place in a trace (W3C Trace Context): the attribute `traceparent`, or the user variable of that name.
    pub fn trace_parent(&self) -> Option<String> {
        let attribute = self.attributes.iter().find(|attribute| attribute.name == TRACE_PARENT);
        let value = match attribute {
            Some(attribute) => attribute.value.clone(),
            None => self.services.user_variable(TRACE_PARENT)?.0,
        };
        match value {
            Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Value::Null
            | Value::Int(_)
            | Value::UInt(_)
            | Value::Double(_)
            | Value::Decimal(_)
            | Value::Date(_)
            | Value::Time(_)
            | Value::DateTime(_)
            | Value::Json(_) => None,
        }
    }

    /// The statement's first word in capitals.
    pub fn verb(&self) -> String {
        String::from_utf8_lossy(first_word(self.text)).to_ascii_uppercase()
    }
}

/// The first word of a statement, after blanks, comments and parentheses.
pub fn first_word(text: &[u8]) -> &[u8] {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        if let Some(comment) = rest.strip_prefix(b"/*") {
            // `/*!` opens a comment whose contents run.
            if let Some(runs) = comment.strip_prefix(b"!") {
                let digits = runs.iter().take_while(|byte| byte.is_ascii_digit()).count();
                rest = &runs[digits..];
                continue;
            }
            let end = comment.windows(2).position(|two| two == b"*/");
            rest = end.map_or(&[], |at| &comment[at + 2..]);
        } else if rest.starts_with(b"#") || rest.starts_with(b"-- ") {
            let end = rest.iter().position(|byte| *byte == b'\n');
            rest = end.map_or(&[], |at| &rest[at..]);
        } else if let Some(inside) = rest.strip_prefix(b"(") {
            rest = inside;
        } else {
            break;
        }
    }
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let length = rest.iter().take_while(|byte| is_word(byte)).count();
    &rest[..length]
}

/// Rows of a table that a statement read by an index, or wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRows {
    /// Name of the schema.
    pub schema: Arc<str>,
    /// Name of the table.
    pub table: Arc<str>,
    /// The index that they were found by; `None` for a table that was read whole, and for writes.
    pub index: Option<Arc<str>>,
    /// Rows that were read.
    pub fetched: u64,
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows that were updated.
    pub updated: u64,
    /// Rows that were deleted.
    pub deleted: u64,
}

/// How a statement ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct StatementEnd<'a> {
    /// Its error.
    pub error: Option<&'a Error>,
    /// Rows sent to the client.
    pub rows_sent: u64,
    /// Rows changed.
    pub rows_affected: u64,
    /// What it did.
    pub counts: StatementCounts,
    /// What it cost, if an observer asked for `EventSet::COST` or its session has `statement_cost` ON.
    pub cost: Option<&'a StatementCost>,
    /// Its steps in their order, if its session has `profiling` ON or an observer asked for `EventSet::STEPS`.
    pub steps: &'a [StatementStep],
    /// Rows that it read and wrote, if an observer asked for `EventSet::TABLES`.
    pub tables: &'a [TableRows],
    /// Microseconds that it waited for locks.
    pub lock_micros: u64,
    /// Warnings and notes.
    pub warnings: u32,
    /// Microseconds that it took.
    pub elapsed_micros: u64,
    /// `LAST_INSERT_ID()` after it.
    pub last_insert_id: u64,
}

/// What happens to a schema or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaChangeKind {
    /// CREATE DATABASE.
    CreateDatabase,
    /// ALTER DATABASE.
    AlterDatabase,
    /// DROP DATABASE.
    DropDatabase,
    /// CREATE TABLE, CREATE VIEW.
    CreateTable,
    /// ALTER TABLE, CREATE INDEX, DROP INDEX.
    AlterTable,
    /// DROP TABLE, DROP VIEW.
    DropTable,
    /// RENAME TABLE.
    RenameTable,
    /// TRUNCATE TABLE.
    TruncateTable,
}

impl SchemaChangeKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SchemaChangeKind::CreateDatabase => "CREATE DATABASE",
            SchemaChangeKind::AlterDatabase => "ALTER DATABASE",
            SchemaChangeKind::DropDatabase => "DROP DATABASE",
            SchemaChangeKind::CreateTable => "CREATE TABLE",
            SchemaChangeKind::AlterTable => "ALTER TABLE",
            SchemaChangeKind::DropTable => "DROP TABLE",
            SchemaChangeKind::RenameTable => "RENAME TABLE",
            SchemaChangeKind::TruncateTable => "TRUNCATE TABLE",
        }
    }
}

/// A change of a schema or table.
#[derive(Clone, Copy, Debug)]
pub struct SchemaChange<'a> {
    /// Who changes it.
    pub session: SessionFacts<'a>,
    /// What happens.
    pub kind: SchemaChangeKind,
    /// The schema; empty when the statement names none and there is no current one.
    pub schema: &'a str,
    /// The table or view.
    pub table: Option<&'a str>,
    /// Schema and name after a RENAME.
    pub renamed: Option<(&'a str, &'a str)>,
}

/// A session that begins or ends.
#[derive(Clone, Copy)]
pub struct ConnectionEvent<'a> {
    /// The session.
    pub session: SessionFacts<'a>,
    /// `TCP/IP`, `SSL/TLS` or `Socket`.
    pub channel: &'static str,
    /// When, microseconds since 1970 UTC.
    pub at_micros: i64,
    /// What it has counted so far.
    pub counts: &'a dyn Fn() -> SessionCounts,
}

/// A log-in that was refused.
#[derive(Clone, Copy, Debug)]
pub struct LoginFailure<'a> {
    /// The name that the client gave.
    pub user: &'a str,
    /// Its host.
    pub host: &'a str,
    /// The account that it meant, as `'user'@'host'`; none for an unknown user.
    pub account: Option<&'a str>,
    /// The reason; none for a wrong password and an unknown user.
    pub error: Option<&'a Error>,
    /// When, microseconds since 1970 UTC.
    pub at_micros: i64,
}

/// A log-in whose answer is known, but not yet sent.
#[derive(Clone, Copy, Debug)]
pub struct LoginAttempt<'a> {
    /// The name that the client gave.
    pub user: &'a str,
    /// Its host.
    pub host: &'a str,
    /// The account that it means, as `'user'@'host'`; none for an unknown user.
    pub account: Option<&'a str>,
}

/// Is told of events. It must be quick: the session waits for it.
pub trait Observer: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;

    /// The events that it wants as things are. Asked when the plugin is loaded and after a change of a global variable.
    fn events(&self) -> EventSet;

    /// Whether it wants to know what the next statement costs: asked only of an observer that wants [`EventSet::COST`].
    fn measures_next(&self) -> bool {
        true
    }

    /// A statement begins.
    ///
    /// # Errors
    /// Refuses the statement.
    fn before_statement(&self, _statement: &StatementEvent<'_>) -> Result<()> {
        Ok(())
    }

    /// A statement ended; its result has been written.
    fn after_statement(&self, _statement: &StatementEvent<'_>, _end: &StatementEnd<'_>) {}

    /// A schema or table is about to change.
    ///
    /// # Errors
    /// Refuses the statement.
    fn before_schema_change(&self, _change: &SchemaChange<'_>) -> Result<()> {
        Ok(())
    }

    /// A schema or table was changed, or could not be.
    fn after_schema_change(&self, _change: &SchemaChange<'_>, _error: Option<&Error>) {}

    /// Whether it wants the rows of a table, when it wants row events.
    fn wants_rows_of(&self, _schema: &str, _table: &str) -> bool {
        true
    }

    /// A row is about to be written as it is now: after triggers, defaults and checks. It may turn out to be a duplicate.
    ///
    /// # Errors
    /// Refuses the statement, which then has changed nothing.
    fn before_row(&self, _event: &RowEvent<'_>) -> Result<()> {
        Ok(())
    }

    /// A row was written. Its statement or transaction may still be rolled back: a [`crate::ChangeSink`] is told of what was committed.
    fn after_row(&self, _event: &RowEvent<'_>) {}

    /// A session has set one of its variables.
    fn variable_set(&self, _connection_id: u64, _name: &str, _value: &Value) {}

    /// A session's variables have their global values again.
    fn variables_reset(&self, _connection_id: u64) {}

    /// A client has logged in.
    fn connected(&self, _connection: &ConnectionEvent<'_>) {}

    /// A session ends.
    fn disconnected(&self, _connection: &ConnectionEvent<'_>) {}

    /// How long the answer to a log-in is held back, whatever it is: guesses cost time. The connection waits, and no thread does.
    fn login_delay(&self, _attempt: &LoginAttempt<'_>) -> Duration {
        Duration::ZERO
    }

    /// A log-in was refused.
    fn login_failed(&self, _failure: &LoginFailure<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_comes_after_comments_and_parentheses() {
        for text in
            ["select 1", " /* c */ SELECT 1", "-- a\nSelect", "((select 1))", "/*!40101 select */"]
        {
            assert_eq!(first_word(text.as_bytes()).to_ascii_uppercase(), b"SELECT", "{text}");
        }
        assert_eq!(first_word(b"/* open"), b"");
    }

    #[test]
    fn names_of_a_set_are_those_of_its_events() {
        let set = EventSet::STATEMENTS | EventSet::CONNECT;
        let names: Vec<&str> = set.names().collect();
        assert_eq!(names, ["BEFORE STATEMENT", "AFTER STATEMENT", "CONNECT"]);
        assert!(!set.meets(EventSet::SCHEMA_CHANGES) && !EventSet::NONE.meets(set));
    }
}
