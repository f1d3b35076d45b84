//! The log: events of the server become lines with time, level, target, message and fields, or JSON objects.
//!
//! Never writes data sent by a client beyond the fields of the event.

use std::fmt::{self, Write as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::{BackgroundJob, GlobalValue, LogSink, RunningJob, SessionFactory, Severity};
use serde_json::{Map, Value, json};
use sys::log_file::{RotatingFile, Rotation, Target};
use sys::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use types::{FixedOffset, ZoneRules as _};

use crate::table::{self, EventTable, priority};
use crate::{SINK_JSON, services};

/// Before the process's umask is applied.
const FILE_MODE: u32 = 0o666;
/// `--log-error-verbosity` above which events for developers are logged too; the variable ends here.
const VERBOSITY_MAX: u64 = 3;

/// Standard error takes no lock: a line is one write, and servers in one process (tests) do not wait for each other.
enum Output {
    Standard,
    File { file: Mutex<RotatingFile>, path: PathBuf },
}

/// Takes a copy of each line.
type Copy = Box<dyn Fn(Severity, &str) + Send + Sync>;

/// The process's error log.
pub struct ErrorLog {
    output: Output,
    /// What the process was started with.
    started: Level,
    pub(crate) verbosity: GlobalValue,
    pub(crate) services: GlobalValue,
    suppression: GlobalValue,
    pub(crate) table: Arc<EventTable>,
    /// The server, once it has started.
    server: Mutex<Option<Arc<dyn SessionFactory>>>,
    copy: OnceLock<Copy>,
}

impl fmt::Debug for ErrorLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorLog").field("started", &self.started).finish_non_exhaustive()
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warning,
        Level::INFO => Severity::Information,
        _ => Severity::Debug,
    }
}

fn level(verbosity: u64) -> Level {
    match verbosity {
        0 | 1 => Level::ERROR,
        2 => Level::WARN,
        VERBOSITY_MAX => Level::INFO,
        _ => Level::DEBUG,
    }
}

impl ErrorLog {
    /// A log that gets no events, for a look at the plugin's variables before there is a place for a log.
    pub fn unstarted() -> Arc<ErrorLog> {
        Arc::new(ErrorLog::new(Output::Standard, level(VERBOSITY_MAX)))
    }

    fn new(output: Output, started: Level) -> ErrorLog {
        ErrorLog {
            output,
            started,
            verbosity: GlobalValue::default(),
            services: GlobalValue::default(),
            suppression: GlobalValue::default(),
            table: Arc::default(),
            server: Mutex::default(),
            copy: OnceLock::new(),
        }
    }

    /// Sends events to `path`, or to standard error; `verbosity` as `log_error_verbosity`, and 4 for everything.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn start(path: Option<&Path>, verbosity: u8) -> io::Result<Arc<ErrorLog>> {
        let output = match path {
            Some(path) => {
                let mut file = RotatingFile::default();
                file.open(&target(path, Rotation::default()))?;
                Output::File { file: Mutex::new(file), path: path.to_owned() }
            }
            None => Output::Standard,
        };
        let log = Arc::new(ErrorLog::new(output, level(verbosity.into())));
        // A second server in the process (tests) keeps the first one's log.
        let _ = tracing::subscriber::set_global_default(Events(log.clone()));
        Ok(log)
    }

    /// The latest `count` events as lines, from memory.
    pub fn latest(&self, count: usize) -> Vec<String> {
        self.table.latest(count)
    }

    /// Passes each line on to `copy` too. The first call counts.
    pub fn copy_to(&self, copy: impl Fn(Severity, &str) + Send + Sync + 'static) {
        let _ = self.copy.set(Box::new(copy));
    }

    /// Opens the log's file again by its name, which another file may have by now. Standard error stays as it is.
    ///
    /// # Errors
    /// The file cannot be opened: the log goes on in the old one.
    pub fn open_again(&self) -> io::Result<()> {
        match &self.output {
            Output::Standard => Ok(()),
            Output::File { file, path } => file.lock().open(&target(path, self.rotation())),
        }
    }

    pub(crate) fn suppression(&self) -> &GlobalValue {
        &self.suppression
    }

    fn rotation(&self) -> Rotation {
        let server = self.server.lock().clone();
        let Some(server) = server else { return Rotation::default() };
        let keep = server.global_integer("log_rotate_keep");
        Rotation {
            size_bytes: server.global_integer("log_rotate_size"),
            age: Duration::from_secs(server.global_integer("log_rotate_interval")),
            keep: usize::try_from(keep).unwrap_or(usize::MAX),
        }
    }

    /// The level in force: the variable's, unless the process was started with more than it can say.
    fn level(&self) -> Level {
        match self.verbosity.number() {
            0 => self.started,
            VERBOSITY_MAX if self.started > Level::INFO => self.started,
            verbosity => level(verbosity),
        }
    }

    fn is_json(&self) -> bool {
        services(&self.services.text()).any(|name| name == SINK_JSON)
    }

    fn write(&self, line: &str) {
        match &self.output {
            Output::Standard => sys::process::print_error(line),
            Output::File { file, path } => {
                let target = target(path, self.rotation());
                // A failure to write the log cannot be reported anywhere.
                drop(file.lock().append(&target, line.as_bytes()));
            }
        }
    }
}

fn target(path: &Path, rotation: Rotation) -> Target {
    Target { path: path.to_owned(), mode: FILE_MODE, header: String::new(), rotation }
}

impl LogSink for ErrorLog {
    fn name(&self) -> &'static str {
        "error_log"
    }

    fn reopen(&self) -> Result<()> {
        self.open_again().map_err(|error| Error::internal(format!("the error log: {error}")))
    }
}

/// Tells a log where its settings are, from the server's start to its stop.
pub(crate) struct Settings(pub(crate) Arc<ErrorLog>);

impl BackgroundJob for Settings {
    fn name(&self) -> &'static str {
        "error_log"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.0.server.lock() = Some(sessions);
        Ok(Box::new(Settings(self.0.clone())))
    }
}

impl RunningJob for Settings {
    /// The log outlives the server.
    fn stop(self: Box<Self>) {
        *self.0.server.lock() = None;
    }
}

/// Receives the process's events.
struct Events(Arc<ErrorLog>);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.0.level()
    }

    /// The variable may ask for notes at any time; nothing asks for more than the process was started with.
    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        let most = self.0.started.max(Level::INFO);
        Some(tracing::level_filters::LevelFilter::from_level(most))
    }

    /// The level changes while the server runs.
    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let severity = severity(*metadata.level());
        let mut line = Line::default();
        event.record(&mut line);
        let at_micros = i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX);
        let text = line.text();
        self.0.table.push(table::Event {
            at_micros,
            thread: sys::threads::number() as u64,
            severity,
            subsystem: metadata.target().to_owned(),
            text: text.clone(),
        });
        let whole = format!(
            "{} {:<5} {} {text}",
            timestamp(at_micros),
            metadata.level(),
            metadata.target()
        );
        if let Some(copy) = self.0.copy.get() {
            copy(severity, &whole);
        }
        match self.0.is_json() {
            true => self.0.write(&format!("{}\n", line.json(at_micros, metadata))),
            false => self.0.write(&format!("{whole}\n")),
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// `2026-01-31T12:00:00.000000Z`.
fn timestamp(micros: i64) -> String {
    let at = FixedOffset::utc().utc_to_local(micros);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.microsecond()
    )
}

/// An event's message and fields.
#[derive(Default)]
struct Line {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Line {
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    /// Names as the reference's, and the event's fields by their own.
    fn json(&self, at_micros: i64, metadata: &Metadata<'_>) -> Value {
        let severity = severity(*metadata.level());
        let prio = match severity {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::Information => 3,
            Severity::Debug => 4,
        };
        let mut object = Map::new();
        for (name, value) in &self.fields {
            object.insert((*name).to_owned(), json!(value));
        }
        object.insert("time".to_owned(), json!(timestamp(at_micros)));
        object.insert("ts".to_owned(), json!(at_micros / 1000));
        object.insert("prio".to_owned(), json!(prio));
        object.insert("label".to_owned(), json!(priority(severity)));
        object.insert("subsystem".to_owned(), json!(metadata.target()));
        object.insert("thread".to_owned(), json!(sys::threads::number()));
        object.insert("msg".to_owned(), json!(self.message));
        Value::Object(object)
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Control characters would break a line in two.
        let text: String =
            format!("{value:?}").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match field.name() {
            "message" => self.message.push_str(&text),
            name => self.fields.push((name, text)),
        }
    }
}
