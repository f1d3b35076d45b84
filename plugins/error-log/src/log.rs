//! The log: events of the server become lines with time, level, target, message and fields, or JSON objects.
//!
//! Never writes data sent by a client beyond the fields of the event.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::{BackgroundJob, GlobalValue, LogSink, RunningJob, SessionFactory, Severity};
use sys::log_file::{RotatingFile, Rotation, Target};
use sys::sync::Mutex;
use tracing::span::{self, Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::components::{DRAGNET, Dragnet, SYSTEM, SystemLog};
use crate::record::Record;
use crate::table::{self, EventTable};
use crate::{FILTER, SINK_JSON, SINK_TEXT, services};

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
    pub(crate) dragnet: Dragnet,
    pub(crate) system: SystemLog,
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
            dragnet: Dragnet::default(),
            system: SystemLog::default(),
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

    /// An event goes through the services in their order: filters change or drop it, sinks write it as it is then. Those who listen, and the table, see
    /// what the first sink sees.
    fn take(&self, mut record: Record) {
        let text = self.services.text();
        let (mut is_told, mut services) = (false, services(&text).peekable());
        // Before the server has read its settings.
        let first = services.peek().is_none().then_some(SINK_TEXT);
        for name in services.chain(first) {
            match name {
                DRAGNET if self.dragnet.installed.is_installed() => {
                    if !self.dragnet.keep(&mut record) {
                        return;
                    }
                    continue;
                }
                FILTER | DRAGNET => continue,
                _ => {}
            }
            if !std::mem::replace(&mut is_told, true) {
                self.tell(&record);
            }
            match name {
                SINK_JSON => self.write(&format!("{}\n", record.json())),
                SYSTEM if self.system.installed.is_installed() => self.system.write(&record),
                SYSTEM => {}
                _ => self.write(&format!("{}\n", record.line())),
            }
        }
    }

    fn tell(&self, record: &Record) {
        self.table.push(table::Event {
            at_micros: record.at_micros,
            thread: record.thread,
            severity: record.severity,
            subsystem: record.subsystem.clone(),
            text: record.text(),
        });
        if let Some(copy) = self.copy.get() {
            copy(record.severity, &record.line());
        }
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

    fn record(&self, _: &Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut record = Record::new(severity(*metadata.level()), metadata.target(), String::new());
        event.record(&mut record);
        self.0.take(record);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
