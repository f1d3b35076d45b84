//! `syslog`: lines of the error log, and finished statements that a filter chooses, as messages to the system's log.
//!
//! Nothing here waits: a message that the system's log does not take at once is dropped and counted. Nothing here writes to the error log, whose
//! lines would come back.

mod message;
mod outlet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text, uint};
use plugin_api::{
    EventSet, GlobalValue, LogSink, Observer, Plugin, PluginInfo, Registrar, Severity,
    StatementEnd, StatementEvent,
};
use regex::bytes::Regex;
use sys::sync::Mutex;
use types::Value;

use message::{FACILITIES, Form, Header};
use outlet::Outlet;

static PATH: Definition =
    Definition::global("syslog_path", Kind::Text, "/dev/log", "Socket of the system's log");
static FORMAT: Definition = Definition::global(
    "syslog_format",
    Kind::Enum(&["RFC3164", "RFC5424"]),
    "RFC3164",
    "RFC3164: what local system logs expect, without a time of our own; RFC5424: with UTC time and host",
);
static FACILITY: Definition =
    Definition::global("syslog_facility", Kind::Enum(FACILITIES), "DAEMON", "Facility of messages");
static IDENT: Definition =
    Definition::global("syslog_ident", Kind::Text, "squalld", "Name of the program in messages");
static ERROR_LOG: Definition = Definition::global(
    "syslog_error_log",
    Kind::Bool,
    "ON",
    "Whether lines of the error log are sent",
);
static STATEMENTS: Definition = Definition::global(
    "syslog_statements",
    Kind::Bool,
    "OFF",
    "Whether finished statements are sent, those that the thresholds and the pattern choose",
);
static THRESHOLD_SLOW: Definition = Definition::global(
    "syslog_threshold_slow",
    uint(0, u64::MAX),
    "0",
    "Microseconds that a statement takes at least to be sent",
);
static THRESHOLD_BIG_RESULT: Definition = Definition::global(
    "syslog_threshold_big_result",
    uint(0, u64::MAX),
    "0",
    "Rows that a statement sends at least to be sent to the system's log",
);
static THRESHOLD_BIG_EXAMINED: Definition = Definition::global(
    "syslog_threshold_big_examined",
    uint(0, u64::MAX),
    "0",
    "Rows that a statement reads at least to be sent",
);
static PCRE: Definition = Definition::global(
    "syslog_pcre",
    Kind::Text,
    "",
    "A regular expression that the text of a statement matches to be sent; empty for all",
);

/// The plugin.
#[derive(Debug)]
pub struct Syslog;

impl Plugin for Syslog {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("syslog", "Sends the error log and chosen statements to the system's log.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let sender = Arc::new(Sender::default());
        let plain: [(&'static Definition, &GlobalValue); 9] = [
            (&PATH, &sender.path),
            (&FORMAT, &sender.format),
            (&FACILITY, &sender.facility),
            (&ERROR_LOG, &sender.error_log),
            (&STATEMENTS, &sender.statements),
            (&THRESHOLD_SLOW, &sender.slow_micros),
            (&THRESHOLD_BIG_RESULT, &sender.big_result),
            (&THRESHOLD_BIG_EXAMINED, &sender.big_examined),
            (&IDENT, &sender.ident),
        ];
        for (definition, value) in plain {
            registrar.variable(definition, value);
        }
        registrar.checked_variable(&PCRE, &sender.pattern, check_pattern);
        let (sent, dropped) = (sender.clone(), sender.clone());
        registrar.status("Syslog_messages", move || sent.outlet.counts().sent.to_string());
        registrar.status("Syslog_dropped", move || dropped.outlet.counts().dropped.to_string());
        registrar.observer(sender.clone());
        registrar.log_sink(sender);
    }
}

/// # Errors
/// 1231 for a text that is no regular expression.
fn check_pattern(value: &Value) -> Result<()> {
    Regex::new(&as_text(value)).map(drop).map_err(|error| {
        let message = format!("syslog_pcre is no regular expression: {error}");
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message)
    })
}

#[derive(Default)]
struct Sender {
    path: GlobalValue,
    format: GlobalValue,
    facility: GlobalValue,
    ident: GlobalValue,
    error_log: GlobalValue,
    statements: GlobalValue,
    slow_micros: GlobalValue,
    big_result: GlobalValue,
    big_examined: GlobalValue,
    pattern: GlobalValue,
    /// The pattern that was compiled last.
    matcher: Mutex<(String, Option<Regex>)>,
    outlet: Outlet,
}

impl Sender {
    fn send(&self, severity: Severity, kind: &str, text: &str) {
        let ident = self.ident.text();
        let header = Header {
            form: Form::of(&self.format.text()),
            facility: &self.facility.text(),
            severity,
            ident: &ident,
            kind,
        };
        self.outlet.send(&self.path.text(), &header.message(text));
    }

    fn matches(&self, text: &[u8]) -> bool {
        let wanted = self.pattern.text();
        if wanted.is_empty() {
            return true;
        }
        let mut matcher = self.matcher.lock();
        if matcher.0 != wanted {
            // Checked when it was set.
            *matcher = (wanted.clone(), Regex::new(&wanted).ok());
        }
        let regex = matcher.1.clone();
        drop(matcher);
        regex.is_none_or(|regex| regex.is_match(text))
    }

    fn is_wanted(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) -> bool {
        end.elapsed_micros >= self.slow_micros.number()
            && end.rows_sent >= self.big_result.number()
            && end.counts.rows_examined >= self.big_examined.number()
            && self.matches(event.text)
    }
}

impl Observer for Sender {
    fn name(&self) -> &'static str {
        "syslog"
    }

    fn events(&self) -> EventSet {
        match self.statements.is_on() {
            true => EventSet::AFTER_STATEMENT,
            false => EventSet::NONE,
        }
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        if !self.is_wanted(event, end) {
            return;
        }
        let session = &event.session;
        let text = format!(
            "connection={} user={} host={} schema={} command={} error={} duration_us={} rows_sent={} rows_examined={} rows_affected={} query={}",
            session.connection_id,
            session.user,
            session.host,
            session.schema.unwrap_or_default(),
            event.command,
            end.error.map_or(0, |error| error.code().0),
            end.elapsed_micros,
            end.rows_sent,
            end.counts.rows_examined,
            end.rows_affected,
            String::from_utf8_lossy(event.text),
        );
        self.send(Severity::Information, "statement", &text);
    }
}

impl LogSink for Sender {
    fn name(&self) -> &'static str {
        "syslog"
    }

    fn error_line(&self, severity: Severity, line: &str) {
        if self.error_log.is_on() {
            self.send(severity, "error_log", line);
        }
    }

    fn reopen(&self) -> Result<()> {
        self.outlet.close();
        Ok(())
    }
}
