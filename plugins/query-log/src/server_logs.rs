//! The general log and the slow query log, to files in the reference's formats or to tables of `mysql`.

use std::fmt::Write as _;
use std::sync::Arc;

use errors::Result;
use plugin_api::variable::{Definition, Kind, as_u64};
use plugin_api::{
    ConnectionEvent, EventSet, GlobalValue, LogSink, LoginFailure, Observer, SessionServices,
    StatementEnd, StatementEvent,
};
use types::{Time, Value};

use crate::file::{DataDirectory, LogFile};
use crate::format::{timestamp, utc};
use crate::tables::LogTable;

pub(crate) static GENERAL_LOG: Definition =
    Definition::global("general_log", Kind::Bool, "OFF", "Whether every statement is logged");
pub(crate) static GENERAL_LOG_FILE: Definition = Definition::global(
    "general_log_file",
    Kind::Text,
    "squall.log",
    "File of the general log, relative to the data directory",
);
pub(crate) static SLOW_QUERY_LOG: Definition = Definition::global(
    "slow_query_log",
    Kind::Bool,
    "OFF",
    "Whether statements that take longer than long_query_time are logged",
);
pub(crate) static SLOW_QUERY_LOG_FILE: Definition = Definition::global(
    "slow_query_log_file",
    Kind::Text,
    "squall-slow.log",
    "File of the slow query log, relative to the data directory",
);
pub(crate) static LOG_OUTPUT: Definition = Definition::global(
    "log_output",
    Kind::Set(&["NONE", "FILE", "TABLE"]),
    "FILE",
    "Where the general log and the slow query log go",
);
pub(crate) static LOG_QUERIES_NOT_USING_INDEXES: Definition = Definition::global(
    "log_queries_not_using_indexes",
    Kind::Bool,
    "OFF",
    "Whether the slow query log takes statements that read a whole table, however fast",
);
pub(crate) static LOG_SLOW_ADMIN_STATEMENTS: Definition = Definition::global(
    "log_slow_admin_statements",
    Kind::Bool,
    "OFF",
    "Whether the slow query log takes ALTER TABLE, ANALYZE, CHECK, OPTIMIZE, REPAIR and index statements",
);
pub(crate) static LOG_SLOW_EXTRA: Definition = Definition::global(
    "log_slow_extra",
    Kind::Bool,
    "OFF",
    "Whether entries of the slow query log in files have further fields",
);

/// The variables of both logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogVariables {
    pub(crate) general: GlobalValue,
    pub(crate) general_file: GlobalValue,
    pub(crate) slow: GlobalValue,
    pub(crate) slow_file: GlobalValue,
    pub(crate) output: GlobalValue,
    pub(crate) without_index: GlobalValue,
    pub(crate) admin: GlobalValue,
    pub(crate) extra: GlobalValue,
}

/// Where `log_output` sends entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Output {
    file: bool,
    table: bool,
}

impl Output {
    /// NONE wins over the others, as in the reference.
    fn of(text: &str) -> Output {
        let has = |word: &str| text.split(',').any(|part| part.eq_ignore_ascii_case(word));
        let none = has("NONE");
        Output { file: !none && has("FILE"), table: !none && has("TABLE") }
    }

    fn is_none(self) -> bool {
        !self.file && !self.table
    }
}

/// Both logs.
pub(crate) struct ServerLogs {
    variables: LogVariables,
    general_file: LogFile,
    slow_file: LogFile,
    general_table: Arc<LogTable>,
    slow_table: Arc<LogTable>,
}

impl ServerLogs {
    pub(crate) fn new(
        variables: LogVariables,
        directory: Arc<DataDirectory>,
        general_table: Arc<LogTable>,
        slow_table: Arc<LogTable>,
    ) -> ServerLogs {
        ServerLogs {
            variables,
            general_file: LogFile::new(directory.clone()),
            slow_file: LogFile::new(directory),
            general_table,
            slow_table,
        }
    }

    fn output(&self) -> Output {
        Output::of(&self.variables.output.text())
    }

    fn log_general(&self, entry: &GeneralEntry<'_>) {
        let output = self.output();
        if output.file {
            let name = self.variables.general_file.text();
            self.general_file.append(&name, &header(), &entry.line());
        }
        if output.table {
            self.general_table.push(entry.row());
        }
    }
}

/// An entry of the general log.
struct GeneralEntry<'a> {
    at_micros: i64,
    connection: u64,
    user_host: &'a str,
    command: &'a str,
    argument: &'a [u8],
}

impl GeneralEntry<'_> {
    fn line(&self) -> Vec<u8> {
        let start =
            format!("{}\t{:5} {}\t", timestamp(self.at_micros), self.connection, self.command);
        let mut line = start.into_bytes();
        line.extend_from_slice(self.argument);
        line.push(b'\n');
        line
    }

    fn row(&self) -> Vec<Value> {
        vec![
            Value::DateTime(utc(self.at_micros)),
            Value::text(self.user_host),
            Value::UInt(self.connection),
            Value::UInt(0),
            Value::text(self.command),
            Value::Bytes(self.argument.into()),
        ]
    }
}

/// The first lines of a log file.
fn header() -> String {
    format!(
        "squalld, Version: {}. started with:\nTime                 Id Command    Argument\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// `user[user] @ host []`.
fn user_host(user: &str, account: &str, host: &str) -> String {
    let account_user = account.rsplit_once('@').map_or(account, |(user, _)| user);
    format!("{account_user}[{user}] @ {host} []")
}

impl Observer for ServerLogs {
    fn name(&self) -> &'static str {
        "query_logs"
    }

    fn events(&self) -> EventSet {
        if self.output().is_none() {
            return EventSet::NONE;
        }
        let general = match self.variables.general.is_on() {
            true => {
                EventSet::BEFORE_STATEMENT
                    | EventSet::CONNECT
                    | EventSet::DISCONNECT
                    | EventSet::LOGIN_FAILURE
            }
            false => EventSet::NONE,
        };
        let slow = match self.variables.slow.is_on() {
            true => EventSet::AFTER_STATEMENT,
            false => EventSet::NONE,
        };
        general | slow
    }

    fn before_statement(&self, event: &StatementEvent<'_>) -> Result<()> {
        if number(event.services, "sql_log_off") != 0.0 {
            return Ok(());
        }
        let session = &event.session;
        self.log_general(&GeneralEntry {
            at_micros: event.started_micros,
            connection: session.connection_id,
            user_host: &user_host(session.user, session.account, session.host),
            command: event.command,
            argument: event.text,
        });
        Ok(())
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        if !self.is_slow(event, end) {
            return;
        }
        let output = self.output();
        if output.file {
            let name = self.variables.slow_file.text();
            let entry = slow_entry(event, end, self.variables.extra.is_on());
            self.slow_file.append(&name, &header(), &entry);
        }
        if output.table {
            self.slow_table.push(slow_row(event, end));
        }
    }

    fn connected(&self, event: &ConnectionEvent<'_>) {
        let session = &event.session;
        let schema = session.schema.unwrap_or_default();
        let argument =
            format!("{}@{} on {schema} using {}", session.user, session.host, event.channel);
        self.log_general(&GeneralEntry {
            at_micros: event.at_micros,
            connection: session.connection_id,
            user_host: &user_host(session.user, session.account, session.host),
            command: "Connect",
            argument: argument.as_bytes(),
        });
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        let session = &event.session;
        self.log_general(&GeneralEntry {
            at_micros: event.at_micros,
            connection: session.connection_id,
            user_host: &user_host(session.user, session.account, session.host),
            command: "Quit",
            argument: b"",
        });
    }

    fn login_failed(&self, failure: &LoginFailure<'_>) {
        let argument = match failure.error {
            Some(error) => error.to_string(),
            None => format!("Access denied for user '{}'@'{}'", failure.user, failure.host),
        };
        self.log_general(&GeneralEntry {
            at_micros: failure.at_micros,
            connection: 0,
            user_host: &user_host(failure.user, failure.user, failure.host),
            command: "Connect",
            argument: argument.as_bytes(),
        });
    }
}

impl LogSink for ServerLogs {
    fn name(&self) -> &'static str {
        "query_logs"
    }

    fn reopen(&self) -> Result<()> {
        let general = self.general_file.reopen(&self.variables.general_file.text(), &header());
        let slow = self.slow_file.reopen(&self.variables.slow_file.text(), &header());
        general.and(slow)
    }
}

/// A variable of the session as a number.
fn number(services: &dyn SessionServices, name: &str) -> f64 {
    let value = services.system_variable(name).unwrap_or(Value::Null);
    if let Value::Double(number) = value {
        return number;
    }
    as_u64(&value) as f64
}

/// First words of the statements that `log_slow_admin_statements` is about.
const ADMIN: [&str; 6] = ["ALTER", "ANALYZE", "CHECK", "OPTIMIZE", "REPAIR", "CREATE INDEX"];

impl ServerLogs {
    fn is_slow(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) -> bool {
        let limit_micros = number(event.services, "long_query_time") * 1e6;
        let without_index = end.used_no_index && self.variables.without_index.is_on();
        if end.elapsed_micros as f64 <= limit_micros && !without_index {
            return false;
        }
        if (end.rows_examined as f64) < number(event.services, "min_examined_row_limit") {
            return false;
        }
        self.variables.admin.is_on() || !ADMIN.contains(&event.verb().as_str())
    }
}

/// An entry of the slow log's file.
fn slow_entry(event: &StatementEvent<'_>, end: &StatementEnd<'_>, extra: bool) -> Vec<u8> {
    let session = &event.session;
    let ended = event.started_micros + end.elapsed_micros as i64;
    let mut text = format!("# Time: {}\n# User@Host: ", timestamp(ended));
    text.push_str(&user_host(session.user, session.account, session.host));
    let _ = write!(
        text,
        "  Id: {:5}\n# Query_time: {:.6}  Lock_time: 0.000000 Rows_sent: {}  Rows_examined: {}",
        session.connection_id,
        end.elapsed_micros as f64 / 1e6,
        end.rows_sent,
        end.rows_examined
    );
    if extra {
        let code = end.error.map_or(0, |error| error.code().0);
        let start = timestamp(event.started_micros);
        let _ = write!(
            text,
            " Thread_id: {} Errno: {code} Rows_affected: {} Start: {start} End: {}",
            session.connection_id,
            end.rows_affected,
            timestamp(ended)
        );
    }
    text.push('\n');
    if let Some(schema) = session.schema {
        let _ = writeln!(text, "use {schema};");
    }
    let _ = writeln!(text, "SET timestamp={};", event.started_micros.div_euclid(1_000_000));
    let mut entry = text.into_bytes();
    match event.command {
        "Query" | "Execute" => entry.extend_from_slice(event.text),
        other => entry.extend_from_slice(format!("# administrator command: {other}").as_bytes()),
    }
    entry.extend_from_slice(b";\n");
    entry
}

/// A row of `mysql.slow_log`.
fn slow_row(event: &StatementEvent<'_>, end: &StatementEnd<'_>) -> Vec<Value> {
    let session = &event.session;
    let elapsed = i64::try_from(end.elapsed_micros).unwrap_or(i64::MAX);
    vec![
        Value::DateTime(utc(event.started_micros)),
        Value::text(&user_host(session.user, session.account, session.host)),
        Value::Time(Time::from_micros_clamped(elapsed)),
        Value::Time(Time::from_micros_clamped(0)),
        Value::Int(i64::try_from(end.rows_sent).unwrap_or(i64::MAX)),
        Value::Int(i64::try_from(end.rows_examined).unwrap_or(i64::MAX)),
        Value::text(session.schema.unwrap_or_default()),
        Value::Int(i64::try_from(end.last_insert_id).unwrap_or(i64::MAX)),
        Value::Int(0),
        Value::UInt(0),
        Value::Bytes(event.text.into()),
        Value::UInt(session.connection_id),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_wins_over_other_outputs() {
        assert!(Output::of("NONE,FILE").is_none());
        assert!(Output::of("").is_none());
        assert_eq!(Output::of("FILE,TABLE"), Output { file: true, table: true });
    }

    #[test]
    fn a_general_entry_is_a_line_as_in_the_reference() {
        let entry = GeneralEntry {
            at_micros: 1_000_000,
            connection: 8,
            user_host: "root[root] @ localhost []",
            command: "Query",
            argument: b"SELECT 1",
        };
        let expected = b"1970-01-01T00:00:01.000000Z\t    8 Query\tSELECT 1\n";
        assert_eq!(entry.line(), expected);
    }
}
