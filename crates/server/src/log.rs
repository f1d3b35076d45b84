//! The error log: one line for each event with time, level, target, message and fields.
//!
//! Never writes data sent by a client beyond the fields of the event.

use std::fmt::{self, Write as _};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use plugin_api::Severity;
use sys::files::{Existing, File};
use sys::sync::Mutex;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use types::{FixedOffset, ZoneRules};

/// Before the process's umask is applied.
const FILE_MODE: u32 = 0o666;

/// Standard error takes no lock: a line is one write, and servers in one process (tests) do not wait for each other.
enum Output {
    Standard,
    File { file: Mutex<File>, path: PathBuf },
}

struct Log {
    level: Level,
}

/// Where the process's only log goes; set with it.
static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Takes a copy of each line.
type Copy = Box<dyn Fn(Severity, &str) + Send + Sync>;
static COPY: OnceLock<Copy> = OnceLock::new();

/// Passes each line on to `copy` too. The first call of the process counts.
pub(crate) fn copy_to(copy: Copy) {
    let _ = COPY.set(copy);
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warning,
        Level::INFO => Severity::Information,
        _ => Severity::Debug,
    }
}

/// Sends events to `path`, or to standard error; `verbosity` as `log_error_verbosity`.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn start(path: Option<&Path>, verbosity: u8) -> io::Result<()> {
    let output = match path {
        Some(path) => Output::File { file: Mutex::new(open(path)?), path: path.to_owned() },
        None => Output::Standard,
    };
    let level = match verbosity {
        0 | 1 => Level::ERROR,
        2 => Level::WARN,
        3 => Level::INFO,
        _ => Level::DEBUG,
    };
    // A second server in the process (tests) keeps the first one's log.
    let _ = OUTPUT.set(output);
    let _ = tracing::subscriber::set_global_default(Log { level });
    Ok(())
}

fn open(path: &Path) -> io::Result<File> {
    File::create(path, FILE_MODE, Existing::Append)
}

/// Opens the log's file again by its name, which another file may have by now. Standard error stays as it is.
///
/// # Errors
/// The file cannot be opened: the log goes on in the old one.
pub(crate) fn reopen() -> io::Result<()> {
    if let Some(Output::File { file, path }) = OUTPUT.get() {
        *file.lock() = open(path)?;
    }
    Ok(())
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::from_level(self.level))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let metadata = event.metadata();
        let text = format!(
            "{} {:<5} {} {}{}\n",
            now(),
            metadata.level(),
            metadata.target(),
            line.message,
            line.fields
        );
        if let Some(copy) = COPY.get() {
            copy(severity(*metadata.level()), text.trim_end());
        }
        match OUTPUT.get() {
            None => {}
            Some(Output::Standard) => sys::process::print_error(&text),
            // A failure to write the log cannot be reported anywhere.
            Some(Output::File { file, .. }) => drop(file.lock().write_all(text.as_bytes())),
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// `2026-01-31T12:00:00.000000Z`.
fn now() -> String {
    let since_1970 = sys::clock::wall();
    let micros = i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX);
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

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let target = if field.name() == "message" { &mut self.message } else { &mut self.fields };
        let separator = if field.name() == "message" { "" } else { " " };
        let name = if field.name() == "message" { "" } else { field.name() };
        let equals = if name.is_empty() { "" } else { "=" };
        // Control characters would break a line in two.
        let text: String =
            format!("{value:?}").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let _ = write!(target, "{separator}{name}{equals}{text}");
    }
}
