//! `logging_query`: finished statements as JSON lines or CSV, those that exceed thresholds or match a pattern.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, uint};
use plugin_api::{
    EventSet, GlobalValue, LogSink, Observer, Plugin, PluginInfo, Registrar, StatementEnd,
    StatementEvent,
};
use regex::bytes::Regex;
use serde_json::json;
use sys::log_file::LogFile;
use sys::sync::Mutex;
use types::Value;

use crate::file::{self, Files};
use crate::format::{csv_field, timestamp};

static ENABLE: Definition =
    Definition::global("logging_query_enable", Kind::Bool, "ON", "Whether logging_query writes");
static FILENAME: Definition = Definition::global(
    "logging_query_filename",
    Kind::Text,
    "squall-queries.log",
    "File of logging_query, relative to the data directory",
);
static FORMAT: Definition = Definition::global(
    "logging_query_format",
    Kind::Enum(&["JSON", "CSV"]),
    "JSON",
    "JSON: an object a line. CSV: fields in quotes",
);
static THRESHOLD_SLOW: Definition = Definition::global(
    "logging_query_threshold_slow",
    uint(0, u64::MAX),
    "0",
    "Microseconds that a statement takes at least to be logged",
);
static THRESHOLD_BIG_RESULT: Definition = Definition::global(
    "logging_query_threshold_big_result",
    uint(0, u64::MAX),
    "0",
    "Rows that a statement sends at least to be logged",
);
static THRESHOLD_BIG_EXAMINED: Definition = Definition::global(
    "logging_query_threshold_big_examined",
    uint(0, u64::MAX),
    "0",
    "Rows that a statement reads at least to be logged",
);
static PCRE: Definition = Definition::global(
    "logging_query_pcre",
    Kind::Text,
    "",
    "A regular expression that the text of a statement matches to be logged; empty for all",
);

/// The plugin.
#[derive(Debug)]
pub struct LoggingQuery;

impl Plugin for LoggingQuery {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("logging_query", "Writes statements to a file as JSON lines or CSV.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let mut files = Files::default();
        let log = QueryLog::new(&mut files);
        registrar.variable(&ENABLE, &log.enable);
        registrar.variable(&FILENAME, &log.filename);
        registrar.variable(&FORMAT, &log.format);
        registrar.variable(&THRESHOLD_SLOW, &log.slow_micros);
        registrar.variable(&THRESHOLD_BIG_RESULT, &log.big_result);
        registrar.variable(&THRESHOLD_BIG_EXAMINED, &log.big_examined);
        registrar.checked_variable(&PCRE, &log.pattern, check_pattern);
        let log = Arc::new(log);
        registrar.observer(log.clone());
        registrar.log_sink(log);
        registrar.job(Arc::new(files));
    }
}

/// # Errors
/// 1231 for a text that is no regular expression.
fn check_pattern(value: &Value) -> Result<()> {
    let text = plugin_api::variable::as_text(value);
    compiled(&text).map(drop).map_err(|error| {
        let message = format!("logging_query_pcre is no regular expression: {error}");
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message)
    })
}

fn compiled(text: &str) -> std::result::Result<Option<Regex>, regex::Error> {
    match text.is_empty() {
        true => Ok(None),
        false => Regex::new(text).map(Some),
    }
}

struct QueryLog {
    enable: GlobalValue,
    filename: GlobalValue,
    format: GlobalValue,
    slow_micros: GlobalValue,
    big_result: GlobalValue,
    big_examined: GlobalValue,
    pattern: GlobalValue,
    /// The pattern that was compiled last.
    matcher: Mutex<(String, Option<Regex>)>,
    file: Arc<LogFile>,
}

impl QueryLog {
    fn new(files: &mut Files) -> QueryLog {
        let filename = GlobalValue::default();
        QueryLog {
            enable: GlobalValue::default(),
            format: GlobalValue::default(),
            slow_micros: GlobalValue::default(),
            big_result: GlobalValue::default(),
            big_examined: GlobalValue::default(),
            pattern: GlobalValue::default(),
            matcher: Mutex::default(),
            file: files.add(&filename, String::new),
            filename,
        }
    }

    fn matches(&self, text: &[u8]) -> bool {
        let wanted = self.pattern.text();
        if wanted.is_empty() {
            return true;
        }
        let mut matcher = self.matcher.lock();
        if matcher.0 != wanted {
            // Checked when it was set.
            *matcher = (wanted.clone(), compiled(&wanted).unwrap_or(None));
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

impl Observer for QueryLog {
    fn name(&self) -> &'static str {
        "logging_query"
    }

    fn events(&self) -> EventSet {
        match self.enable.is_on() {
            true => EventSet::AFTER_STATEMENT,
            false => EventSet::NONE,
        }
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        if !self.is_wanted(event, end) {
            return;
        }
        let is_csv = self.format.text().eq_ignore_ascii_case("CSV");
        let mut line = if is_csv { csv_line(event, end) } else { json_line(event, end) };
        line.push('\n');
        self.file.append(event.started_micros, line.as_bytes());
    }
}

impl LogSink for QueryLog {
    fn name(&self) -> &'static str {
        "logging_query"
    }

    fn reopen(&self) -> Result<()> {
        file::reopen(&self.file)
    }
}

fn json_line(event: &StatementEvent<'_>, end: &StatementEnd<'_>) -> String {
    let session = &event.session;
    json!({
        "time": timestamp(event.started_micros),
        "connection_id": session.connection_id,
        "user": session.user,
        "host": session.host,
        "schema": session.schema,
        "command": event.command,
        "query": String::from_utf8_lossy(event.text),
        "digest_text": (event.digest_text)(),
        "error_code": end.error.map_or(0, |error| error.code().0),
        "duration_us": end.elapsed_micros,
        "rows_sent": end.rows_sent,
        "rows_affected": end.rows_affected,
        "rows_examined": end.counts.rows_examined,
        "warnings": end.warnings,
    })
    .to_string()
}

/// The fields in the order of Drizzle's query log, then those that it lacked.
fn csv_line(event: &StatementEvent<'_>, end: &StatementEnd<'_>) -> String {
    let session = &event.session;
    let code = end.error.map_or(0, |error| error.code().0);
    let fields = [
        timestamp(event.started_micros),
        session.connection_id.to_string(),
        session.schema.unwrap_or_default().to_owned(),
        String::from_utf8_lossy(event.text).into_owned(),
        event.command.to_owned(),
        end.elapsed_micros.to_string(),
        end.rows_sent.to_string(),
        end.counts.rows_examined.to_string(),
        end.rows_affected.to_string(),
        end.warnings.to_string(),
        code.to_string(),
        session.user.to_owned(),
        session.host.to_owned(),
    ];
    let mut line = String::new();
    fields.iter().for_each(|field| csv_field(&mut line, field));
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_checked_and_compiled_once() {
        assert!(check_pattern(&Value::text("(")).is_err());
        assert!(check_pattern(&Value::text("^select")).is_ok());
        let log = QueryLog::new(&mut Files::default());
        log.pattern.store(Value::text("(?i)^select"));
        assert!(log.matches(b"SELECT 1") && !log.matches(b"UPDATE t SET a = 1"));
        log.pattern.store(Value::text(""));
        assert!(log.matches(b"UPDATE t SET a = 1"));
    }
}
