//! The general log and the slow query log, to files in the reference's formats or to tables of `mysql`.

use std::sync::Arc;

use errors::Result;
use plugin_api::variable::{Definition, Kind, as_u64, uint};
use plugin_api::{
    ConnectionEvent, EventSet, GlobalValue, LogSink, LoginFailure, Observer, SessionServices,
    StatementEnd, StatementEvent,
};
use sys::log_file::LogFile;
use sys::sync::atomic::{AtomicU32, Ordering};
use types::Value;

use crate::entry::{GeneralEntry, SlowEntry, header};
use crate::file::{self, Files};
use crate::sampling::Sampling;
use crate::tables::LogTable;
use crate::verbosity::Verbosity;

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
pub(crate) static LOG_SLOW_VERBOSITY: Definition = Definition::global(
    "log_slow_verbosity",
    Kind::Set(&["query_plan", "innodb", "full"]),
    "",
    "Lines that entries of the slow query log in files have besides: query_plan for scans, joins, temporary tables and sorts, innodb for pages, lock waits and time on the processor, full for both",
);
pub(crate) static QUERY_LOG_FORMAT: Definition = Definition::global(
    "query_log_format",
    Kind::Enum(&["TEXT", "JSON"]),
    "TEXT",
    "TEXT: the files of both logs have the reference's format. JSON: an object a line",
);
pub(crate) static LOG_SLOW_RATE_LIMIT: Definition = Definition::global(
    "log_slow_rate_limit",
    uint(1, 1_000_000),
    "1",
    "The slow query log takes one in so many sessions or statements, as log_slow_rate_type says",
);
pub(crate) static LOG_SLOW_RATE_TYPE: Definition = Definition::global(
    "log_slow_rate_type",
    Kind::Enum(&["session", "query"]),
    "session",
    "What log_slow_rate_limit counts",
);
pub(crate) static LOG_ROTATE_SIZE: Definition = Definition::global(
    "log_rotate_size",
    uint(0, u64::MAX),
    "0",
    "Bytes of a log file before it is renamed and a new one begins; 0 for no limit",
);
pub(crate) static LOG_ROTATE_INTERVAL: Definition = Definition::global(
    "log_rotate_interval",
    uint(0, 365 * 24 * 3600),
    "0",
    "Seconds after which a log file is renamed and a new one begins; 0 for never",
);
pub(crate) static LOG_ROTATE_KEEP: Definition = Definition::global(
    "log_rotate_keep",
    uint(0, 1000),
    "10",
    "Renamed files of a log that are kept: NAME.1 is the newest",
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
    pub(crate) verbosity: GlobalValue,
    pub(crate) format: GlobalValue,
    pub(crate) rate_limit: GlobalValue,
    pub(crate) rate_type: GlobalValue,
}

/// Bits of `ServerLogs::ways`.
const FILE: u32 = 1;
const TABLE: u32 = 2;
const JSON: u32 = 4;

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

fn is_json(format: &GlobalValue) -> bool {
    format.text().eq_ignore_ascii_case("JSON")
}

/// Both logs.
pub(crate) struct ServerLogs {
    variables: LogVariables,
    /// `log_output` and `query_log_format` as `ways_of` puts them, since the last change of a global variable: statements read no texts.
    ways: AtomicU32,
    general_file: Arc<LogFile>,
    slow_file: Arc<LogFile>,
    general_table: Arc<LogTable>,
    slow_table: Arc<LogTable>,
    sampling: Sampling,
}

impl ServerLogs {
    pub(crate) fn new(
        variables: LogVariables,
        files: &mut Files,
        general_table: Arc<LogTable>,
        slow_table: Arc<LogTable>,
    ) -> ServerLogs {
        let format = variables.format.clone();
        // Lines of JSON need no header.
        let header = move || if is_json(&format) { String::new() } else { header() };
        ServerLogs {
            general_file: files.add(&variables.general_file, header.clone()),
            slow_file: files.add(&variables.slow_file, header),
            ways: AtomicU32::new(0),
            variables,
            general_table,
            slow_table,
            sampling: Sampling::default(),
        }
    }

    /// Entries that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.general_file.lost() + self.slow_file.lost()
    }

    fn output(&self) -> Output {
        let ways = self.ways.load(Ordering::Relaxed);
        Output { file: ways & FILE != 0, table: ways & TABLE != 0 }
    }

    /// Reads the variables again.
    fn renew_ways(&self) {
        let output = Output::of(&self.variables.output.text());
        let bit = |is_set: bool, bit: u32| if is_set { bit } else { 0 };
        let json = bit(is_json(&self.variables.format), JSON);
        let ways = bit(output.file, FILE) | bit(output.table, TABLE) | json;
        self.ways.store(ways, Ordering::Relaxed);
    }

    fn verbosity(&self) -> Verbosity {
        Verbosity::of(&self.variables.verbosity.text())
    }

    fn is_json(&self) -> bool {
        self.ways.load(Ordering::Relaxed) & JSON != 0
    }

    fn log_general(&self, entry: &GeneralEntry<'_>) {
        let output = self.output();
        if output.file {
            match self.is_json() {
                true => self.general_file.append(entry.at_micros, &entry.json_line()),
                false => {
                    self.general_file.append_with(entry.at_micros, |out| entry.push_line(out));
                }
            }
        }
        if output.table {
            self.general_table.push(entry.row());
        }
    }
}

impl Observer for ServerLogs {
    fn name(&self) -> &'static str {
        "query_logs"
    }

    fn events(&self) -> EventSet {
        self.renew_ways();
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
            // Quick statements too: the log asks how they read their tables.
            true if self.variables.without_index.is_on() => EventSet::AFTER_STATEMENT,
            true => EventSet::AFTER_SLOW_STATEMENT,
            false => EventSet::NONE,
        };
        let slow = match slow != EventSet::NONE && self.verbosity().engine {
            true => slow | EventSet::COST,
            false => slow,
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
            user: session.user,
            account: session.account,
            host: session.host,
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
        let entry = SlowEntry {
            event,
            end,
            has_extra: self.variables.extra.is_on(),
            verbosity: self.verbosity(),
        };
        if output.file {
            let text = if self.is_json() { entry.json_line() } else { entry.text() };
            self.slow_file.append(entry.ended_micros(), &text);
        }
        if output.table {
            self.slow_table.push(entry.row());
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
            user: session.user,
            account: session.account,
            host: session.host,
            command: "Connect",
            argument: argument.as_bytes(),
        });
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        let session = &event.session;
        self.log_general(&GeneralEntry {
            at_micros: event.at_micros,
            connection: session.connection_id,
            user: session.user,
            account: session.account,
            host: session.host,
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
            user: failure.user,
            account: failure.user,
            host: failure.host,
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
        let general = file::reopen(&self.general_file);
        let slow = file::reopen(&self.slow_file);
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
        let without_index = end.counts.used_no_index() && self.variables.without_index.is_on();
        if end.elapsed_micros as f64 <= limit_micros && !without_index {
            return false;
        }
        if (end.counts.rows_examined as f64) < number(event.services, "min_examined_row_limit") {
            return false;
        }
        if !self.variables.admin.is_on() && ADMIN.contains(&event.verb().as_str()) {
            return false;
        }
        let one_in = self.variables.rate_limit.number();
        match self.variables.rate_type.text().eq_ignore_ascii_case("query") {
            true => self.sampling.takes_next(one_in),
            false => Sampling::takes_session(event.session.connection_id, one_in),
        }
    }
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
}
