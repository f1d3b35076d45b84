//! The log: events become lines, lines wait in a queue of bounded size for the thread that writes them.

use std::collections::VecDeque;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::variable::{Definition, Kind};
use plugin_api::{
    BackgroundJob, ConnectionEvent, EventSet, GlobalValue, LogSink, LoginFailure, Observer,
    RowChangeKind, RowEvent, RunningJob, SchemaChange, SessionFactory, SessionFacts,
    SessionServices, StatementEnd, StatementEvent,
};
use serde_json::{Map, Value, json};
use sys::files::{Existing, File};
use sys::sync::atomic::{AtomicU64, Ordering};
use sys::sync::{Condvar, Mutex};
use sys::threads::Thread;
use types::{FixedOffset, ZoneRules as _};

use crate::Current;
use crate::filter::{Facts, Filter};

pub(crate) static FILE: Definition = Definition::global(
    "audit_log_file",
    Kind::Text,
    "squall-audit.log",
    "File of the audit log, relative to the data directory",
);
pub(crate) static STRATEGY: Definition = Definition::global(
    "audit_log_strategy",
    Kind::Enum(&["ASYNCHRONOUS", "SYNCHRONOUS"]),
    "ASYNCHRONOUS",
    "SYNCHRONOUS: a statement waits until its event is written. ASYNCHRONOUS: a thread writes it",
);
pub(crate) static FILTER: Definition = Definition::global(
    "audit_log_filter",
    Kind::Text,
    "",
    "A JSON document of rules by user, host, schema, event and command; empty for all events",
);

const FILE_MODE: u32 = 0o640;
/// Lines that may wait for the writer, and their bytes.
const LINES_MAX: usize = 65_536;
const BYTES_MAX: usize = 64 << 20;
/// Lines that are kept to be shown, and their bytes.
const RECENT_LINES_MAX: usize = 200;
const RECENT_BYTES_MAX: usize = 1 << 20;
/// How long the writer sleeps when nobody wakes it.
const PAUSE: Duration = Duration::from_millis(200);

/// Counts of events.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    written: AtomicU64,
    lost: AtomicU64,
    failed: AtomicU64,
}

impl Counts {
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The lines that were written last.
#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Recent {
    fn push(&mut self, line: &str) {
        if line.len() > RECENT_BYTES_MAX {
            return;
        }
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.lines.len() > RECENT_LINES_MAX || self.bytes > RECENT_BYTES_MAX {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
        }
    }
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<String>,
    bytes: usize,
    stops: bool,
}

/// The audit log.
#[derive(Debug, Default)]
pub(crate) struct AuditLog {
    pub(crate) file_name: GlobalValue,
    pub(crate) strategy: GlobalValue,
    pub(crate) filter_text: GlobalValue,
    pub(crate) counts: Counts,
    /// The filter of the text that was read last.
    filter: Mutex<(String, Arc<Filter>)>,
    directory: Mutex<PathBuf>,
    queue: Mutex<Queue>,
    has_lines: Condvar,
    file: Mutex<Option<(String, File)>>,
    recent: Mutex<Recent>,
}

fn now_micros() -> i64 {
    i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX)
}

fn timestamp(micros: i64) -> String {
    let at = FixedOffset::utc().utc_to_local(micros);
    let mut text = Vec::new();
    at.write_text(6, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// The fields that events of sessions share.
fn base(event: &'static str, at_micros: i64, session: &SessionFacts<'_>) -> Value {
    json!({
        "time": timestamp(at_micros),
        "event": event,
        "connection_id": session.connection_id,
        "user": session.user,
        "host": session.host,
        "account": session.account,
        "schema": session.schema,
    })
}

impl AuditLog {
    fn filter(&self) -> Arc<Filter> {
        let text = self.filter_text.text();
        let mut known = self.filter.lock();
        if known.0 != text {
            // It was checked when it was set.
            *known = (text.clone(), Arc::new(Filter::parse(&text).unwrap_or_default()));
        }
        known.1.clone()
    }

    fn is_synchronous(&self) -> bool {
        self.strategy.text().eq_ignore_ascii_case("SYNCHRONOUS") || self.strategy.number() == 1
    }

    /// Takes an event, if the filter does.
    fn take<L: std::fmt::Display>(&self, facts: &Facts<'_>, line: impl FnOnce() -> L) {
        if !self.filter().takes(facts) {
            return;
        }
        let line = format!("{}\n", line());
        if self.is_synchronous() {
            self.write(std::slice::from_ref(&line));
            return;
        }
        let mut queue = self.queue.lock();
        if queue.lines.len() >= LINES_MAX || queue.bytes + line.len() > BYTES_MAX {
            drop(queue);
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line);
        drop(queue);
        self.has_lines.notify_one();
    }

    /// A message of an application: component, producer, text, and values by their names.
    pub(crate) fn message(
        &self,
        texts: [Value; 3],
        pairs: Map<String, Value>,
        session: &dyn SessionServices,
    ) {
        let (client, account, schema) =
            (session.user(), session.current_user(), session.database());
        let (user, host) = client.rsplit_once('@').unwrap_or((&client, ""));
        let session = SessionFacts {
            connection_id: session.connection_id(),
            user,
            host,
            account: &account,
            schema: schema.as_deref(),
        };
        let [component, producer, text] = texts;
        self.take(&facts("message", &session, ""), || {
            let mut line = base("message", now_micros(), &session);
            line["component"] = component;
            line["producer"] = producer;
            line["message"] = text;
            line["map"] = Value::Object(pairs);
            line
        });
    }

    /// The lines that were written last, the newest at the end.
    pub(crate) fn recent(&self) -> Vec<String> {
        self.recent.lock().lines.iter().cloned().collect()
    }

    /// Writes lines to the file.
    fn write(&self, lines: &[String]) {
        let text: String = lines.concat();
        let mut file = self.file.lock();
        match self.write_to(&mut file, text.as_bytes()) {
            Ok(()) => {
                drop(file);
                self.counts.written.fetch_add(lines.len() as u64, Ordering::Relaxed);
                let mut recent = self.recent.lock();
                let newest = &lines[lines.len().saturating_sub(RECENT_LINES_MAX)..];
                newest.iter().for_each(|line| recent.push(line));
            }
            Err(error) => {
                *file = None;
                drop(file);
                self.counts.lost.fetch_add(lines.len() as u64, Ordering::Relaxed);
                if self.counts.failed.fetch_add(1, Ordering::Relaxed) == 0 {
                    tracing::error!("the audit log cannot be written: {error}");
                }
            }
        }
    }

    fn write_to(&self, file: &mut Option<(String, File)>, text: &[u8]) -> std::io::Result<()> {
        let name = self.file_name.text();
        if file.as_ref().is_none_or(|(open, _)| *open != name) {
            let path = self.directory.lock().join(&name);
            *file = Some((name, File::create(&path, FILE_MODE, Existing::Append)?));
        }
        match file {
            Some((_, file)) => file.write_all(text),
            None => Ok(()),
        }
    }

    /// The writer's thread.
    fn run(&self) {
        loop {
            let mut queue = self.queue.lock();
            if queue.lines.is_empty() && !queue.stops {
                queue = self.has_lines.wait_for(queue, PAUSE);
            }
            let lines: Vec<String> = queue.lines.drain(..).collect();
            queue.bytes = 0;
            let stops = queue.stops;
            drop(queue);
            if !lines.is_empty() {
                self.write(&lines);
            } else if stops {
                return;
            }
        }
    }
}

fn facts<'a>(event: &'static str, session: &SessionFacts<'a>, command: &'a str) -> Facts<'a> {
    let schema = session.schema.unwrap_or_default();
    Facts { event, user: session.user, host: session.host, schema, table: "", command }
}

impl Observer for AuditLog {
    fn name(&self) -> &'static str {
        "audit_log"
    }

    /// Those that the filter may take.
    fn events(&self) -> EventSet {
        let filter = self.filter();
        let events = [
            ("statement", EventSet::AFTER_STATEMENT),
            ("schema_change", EventSet::AFTER_SCHEMA_CHANGE),
            ("connect", EventSet::CONNECT),
            ("disconnect", EventSet::DISCONNECT),
            ("login_failure", EventSet::LOGIN_FAILURE),
            ("row", EventSet::AFTER_ROW),
        ];
        let wanted = events.into_iter().filter(|(name, _)| filter.may_take(name));
        wanted.fold(EventSet::NONE, |all, (_, event)| all | event)
    }

    fn wants_rows_of(&self, schema: &str, table: &str) -> bool {
        self.filter().may_take_rows(schema, table)
    }

    fn after_row(&self, event: &RowEvent<'_>) {
        let RowEvent { session, change } = event;
        let command = match change.kind() {
            RowChangeKind::Insert => "INSERT",
            RowChangeKind::Update => "UPDATE",
            RowChangeKind::Delete => "DELETE",
        };
        let facts = Facts {
            event: "row",
            user: session.user,
            host: session.host,
            schema: change.schema,
            table: change.table,
            command,
        };
        let row = |row: Option<&[types::Value]>| {
            let text = row.and_then(|row| change.json(row).ok());
            text.unwrap_or_else(|| "null".to_owned())
        };
        self.take(&facts, || {
            let mut line = base("row", now_micros(), session);
            line["command"] = json!(command);
            line["schema"] = json!(change.schema);
            line["table"] = json!(change.table);
            // As texts, so that every digit of a number stays.
            let mut text = line.to_string();
            text.pop();
            format!("{text},\"old\":{},\"new\":{}}}", row(change.old), row(change.new))
        });
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let verb = event.verb();
        self.take(&facts("statement", &event.session, &verb), || {
            let mut line = base("statement", event.started_micros, &event.session);
            line["command"] = json!(verb);
            line["protocol_command"] = json!(event.command);
            line["query"] = json!(String::from_utf8_lossy(event.text));
            line["error_code"] = json!(end.error.map_or(0, |error| error.code().0));
            line["duration_us"] = json!(end.elapsed_micros);
            line["rows_sent"] = json!(end.rows_sent);
            line["rows_affected"] = json!(end.rows_affected);
            line["rows_examined"] = json!(end.counts.rows_examined);
            line
        });
    }

    fn after_schema_change(&self, change: &SchemaChange<'_>, error: Option<&Error>) {
        let command = change.kind.name();
        let facts = Facts {
            event: "schema_change",
            user: change.session.user,
            host: change.session.host,
            schema: change.schema,
            table: change.table.unwrap_or_default(),
            command,
        };
        self.take(&facts, || {
            let mut line = base("schema_change", now_micros(), &change.session);
            line["command"] = json!(command);
            line["schema"] = json!(change.schema);
            line["table"] = json!(change.table);
            if let Some((schema, table)) = change.renamed {
                line["renamed_to"] = json!(format!("{schema}.{table}"));
            }
            line["error_code"] = json!(error.map_or(0, |error| error.code().0));
            line
        });
    }

    fn connected(&self, event: &ConnectionEvent<'_>) {
        self.take(&facts("connect", &event.session, ""), || {
            let mut line = base("connect", event.at_micros, &event.session);
            line["channel"] = json!(event.channel);
            line
        });
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        self.take(&facts("disconnect", &event.session, ""), || {
            base("disconnect", event.at_micros, &event.session)
        });
    }

    fn login_failed(&self, failure: &LoginFailure<'_>) {
        let LoginFailure { user, host, error, at_micros, .. } = *failure;
        let facts =
            Facts { event: "login_failure", user, host, schema: "", table: "", command: "" };
        /// ER_ACCESS_DENIED_ERROR.
        const ACCESS_DENIED: u16 = 1045;
        self.take(&facts, || {
            json!({
                "time": timestamp(at_micros),
                "event": "login_failure",
                "user": user,
                "host": host,
                "error_code": error.map_or(ACCESS_DENIED, |error| error.code().0),
            })
        });
    }
}

impl LogSink for AuditLog {
    fn name(&self) -> &'static str {
        "audit_log"
    }

    /// The next line opens the file again.
    fn reopen(&self) -> Result<()> {
        *self.file.lock() = None;
        Ok(())
    }
}

/// The writer of a log.
pub(crate) struct AuditJob(pub(crate) Arc<AuditLog>, pub(crate) Current);

impl BackgroundJob for AuditJob {
    fn name(&self) -> &'static str {
        "audit_log"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let log = self.0.clone();
        *log.directory.lock() = PathBuf::from(sessions.global_text("datadir"));
        log.queue.lock().stops = false;
        let writing = log.clone();
        let thread = sys::threads::spawn("audit log", move || writing.run());
        let thread = thread.map_err(|error| Error::internal(format!("audit log: {error}")))?;
        self.1.set(Some(log.clone()));
        Ok(Box::new(Writer { log, thread, current: self.1.clone() }))
    }
}

struct Writer {
    log: Arc<AuditLog>,
    thread: Thread,
    current: Current,
}

impl RunningJob for Writer {
    /// What is queued is written first.
    fn stop(self: Box<Self>) {
        self.current.set(None);
        self.log.queue.lock().stops = true;
        self.log.has_lines.notify_all();
        self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_to_be_shown_are_bounded() {
        let mut recent = Recent::default();
        (0..500).for_each(|number| recent.push(&number.to_string()));
        assert_eq!(recent.lines.len(), RECENT_LINES_MAX);
        assert_eq!(recent.lines.back().map(String::as_str), Some("499"));
        let large = "x".repeat(RECENT_BYTES_MAX - 1);
        recent.push(&large);
        recent.push(&format!("{large}yy"));
        assert_eq!(recent.lines.len(), 1);
        assert_eq!(recent.bytes, large.len());
    }

    #[test]
    fn a_full_queue_counts_what_it_cannot_take() {
        let log = AuditLog::default();
        let facts =
            Facts { event: "connect", user: "u", host: "h", schema: "", table: "", command: "" };
        for _ in 0..LINES_MAX + 3 {
            log.take(&facts, || json!({}));
        }
        assert_eq!(log.counts.lost(), 3);
        assert_eq!(log.queue.lock().lines.len(), LINES_MAX);
    }
}
