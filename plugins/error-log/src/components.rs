//! The components `log_filter_dragnet` and `log_sink_syseventlog`: services of the error log while they are installed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    BackgroundJob, GlobalValue, Plugin, PluginInfo, Registrar, RunningJob, SessionFactory, Severity,
};
use sys::datagram::Datagrams;
use sys::sync::Mutex;

use crate::dragnet::Rules;
use crate::log::ErrorLog;
use crate::record::Record;

/// The name of the filter's service and component.
pub(crate) const DRAGNET: &str = "log_filter_dragnet";
/// The name of the sink's.
pub(crate) const SYSTEM: &str = "log_sink_syseventlog";

static RULES: Definition = Definition::global(
    "dragnet.log_error_filter_rules",
    Kind::Text,
    "IF prio>=INFORMATION THEN drop. IF EXISTS source_line THEN unset source_line.",
    "Which events of the error log are dropped, thinned out or changed: IF condition THEN action.",
);
static FACILITY: Definition = Definition::global(
    "syseventlog.facility",
    Kind::Text,
    "daemon",
    "Facility of the messages that log_sink_syseventlog sends to the system's log",
);
static INCLUDE_PID: Definition = Definition::global(
    "syseventlog.include_pid",
    Kind::Bool,
    "ON",
    "Whether messages to the system's log have the number of the process",
);
static TAG: Definition = Definition::global(
    "syseventlog.tag",
    Kind::Text,
    "",
    "What follows the name of the program in messages to the system's log",
);

/// Whether a component is installed: its job runs from INSTALL to UNINSTALL.
#[derive(Clone, Default)]
pub(crate) struct Installed(Arc<Mutex<bool>>);

impl Installed {
    pub(crate) fn is_installed(&self) -> bool {
        *self.0.lock()
    }
}

impl BackgroundJob for Installed {
    fn name(&self) -> &'static str {
        "error_log_component"
    }

    fn start(&self, _: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        *self.0.lock() = true;
        Ok(Box::new(self.clone()))
    }
}

impl RunningJob for Installed {
    fn stop(self: Box<Self>) {
        *self.0.lock() = false;
    }
}

/// The filter.
#[derive(Default)]
pub(crate) struct Dragnet {
    pub(crate) installed: Installed,
    text: GlobalValue,
    /// The rules of the text that was read last.
    rules: Mutex<(String, Rules)>,
}

impl Dragnet {
    /// Applies the rules; false for an event that they drop.
    pub(crate) fn keep(&self, record: &mut Record) -> bool {
        let text = self.text.text();
        let mut known = self.rules.lock();
        if known.0 != text {
            // It was checked when it was set.
            *known = (text.clone(), Rules::parse(&text).unwrap_or_default());
        }
        known.1.keep(record, sys::clock::monotonic())
    }

    /// The rules as they were understood.
    fn shown(&self) -> String {
        Rules::parse(&self.text.text()).unwrap_or_default().to_string()
    }
}

/// # Errors
/// 1231 for a text that is no rule; it says where.
fn check_rules(text: &str) -> Result<()> {
    Rules::parse(text).map(drop).map_err(|mistake| {
        let name = RULES.name;
        let message = format!(
            "Variable '{name}' can't be set to the value of '{text}': got confused at \"{}\" (state: {})",
            mistake.at, mistake.state
        );
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message)
    })
}

/// The plugin of the filter.
#[derive(Debug)]
pub struct DragnetPlugin(pub Arc<ErrorLog>);

impl Plugin for DragnetPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(DRAGNET, "Rules that drop, thin out and change events of the error log.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let log = self.0.clone();
        let dragnet = &log.dragnet;
        registrar.checked_variable(&RULES, &dragnet.text, |value| check_rules(&as_text(value)));
        registrar.job(Arc::new(dragnet.installed.clone()));
        let shown = log.clone();
        registrar.status("dragnet.Status", move || shown.dragnet.shown());
    }
}

/// Facilities by number.
const FACILITIES: [(&str, u8); 20] = [
    ("kern", 0),
    ("user", 1),
    ("mail", 2),
    ("daemon", 3),
    ("auth", 4),
    ("syslog", 5),
    ("lpr", 6),
    ("news", 7),
    ("uucp", 8),
    ("cron", 9),
    ("authpriv", 10),
    ("ftp", 11),
    ("local0", 16),
    ("local1", 17),
    ("local2", 18),
    ("local3", 19),
    ("local4", 20),
    ("local5", 21),
    ("local6", 22),
    ("local7", 23),
];

/// The number of a facility, whose name may begin with `LOG_`.
fn facility(name: &str) -> Option<u8> {
    let lower = name.to_ascii_lowercase();
    let name = lower.strip_prefix("log_").unwrap_or(&lower);
    FACILITIES.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

fn wrong(variable: &Definition, value: &str) -> Error {
    let message = format!("Variable '{}' can't be set to the value of '{value}'", variable.name);
    Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, message)
}

/// Where system logs listen.
const SOCKET: &str = "/dev/log";
/// Bytes of a message, what system logs take by default.
const MESSAGE_BYTES_MAX: usize = 8192;
/// A socket that could not be opened is tried again after this.
const RETRY: Duration = Duration::from_secs(1);

/// The sink. A message that the system's log does not take at once is dropped.
#[derive(Default)]
pub(crate) struct SystemLog {
    pub(crate) installed: Installed,
    facility: GlobalValue,
    include_pid: GlobalValue,
    tag: GlobalValue,
    socket: Mutex<(Option<Arc<Datagrams>>, Option<Duration>)>,
}

impl SystemLog {
    pub(crate) fn write(&self, record: &Record) {
        let message = self.message(record);
        let Some(socket) = self.socket() else { return };
        if let Err(error) = socket.send(&message)
            && error.kind() != std::io::ErrorKind::WouldBlock
        {
            // Another may listen at the same place by now.
            self.socket.lock().0 = None;
            if let Some(socket) = self.socket() {
                drop(socket.send(&message));
            }
        }
    }

    fn socket(&self) -> Option<Arc<Datagrams>> {
        let mut known = self.socket.lock();
        if let (Some(socket), _) = &*known {
            return Some(socket.clone());
        }
        let now = sys::clock::monotonic();
        if known.1.is_some_and(|failed| now.saturating_sub(failed) < RETRY) {
            return None;
        }
        let opened = Datagrams::to(Path::new(SOCKET)).ok().map(Arc::new);
        *known = (opened.clone(), opened.is_none().then_some(now));
        opened
    }

    /// `<30>squalld-tag[7]: subsystem text`; the system's log adds the time.
    fn message(&self, record: &Record) -> Vec<u8> {
        let facility = facility(&self.facility.text()).unwrap_or(3);
        let severity = match record.severity {
            Severity::Error => 3,
            Severity::Warning => 4,
            Severity::Information => 6,
            Severity::Debug => 7,
        };
        let tag = self.tag.text();
        let dash = if tag.is_empty() { "" } else { "-" };
        let process = match self.include_pid.is_on() {
            true => format!("[{}]", sys::process::id()),
            false => String::new(),
        };
        let text = format!(
            "<{}>squalld{dash}{tag}{process}: {} {}",
            facility * 8 + severity,
            record.subsystem,
            record.text()
        );
        let mut end = text.len().min(MESSAGE_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].replace(char::is_control, " ").into_bytes()
    }
}

/// The plugin of the sink.
#[derive(Debug)]
pub struct SystemLogPlugin(pub Arc<ErrorLog>);

impl Plugin for SystemLogPlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(SYSTEM, "The error log in the system's log.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let sink = &self.0.system;
        registrar.checked_variable(&FACILITY, &sink.facility, |value| {
            let name = as_text(value);
            facility(&name).map(drop).ok_or_else(|| wrong(&FACILITY, &name))
        });
        registrar.variable(&INCLUDE_PID, &sink.include_pid);
        registrar.checked_variable(&TAG, &sink.tag, |value| {
            let tag = as_text(value);
            if tag.contains('/') { Err(wrong(&TAG, &tag)) } else { Ok(()) }
        });
        registrar.job(Arc::new(sink.installed.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_facility_tag_and_process() {
        let sink = SystemLog::default();
        sink.facility.store(types::Value::text("LOG_LOCAL1"));
        sink.tag.store(types::Value::text("two"));
        sink.include_pid.store(types::Value::Int(0));
        let record = Record::new(Severity::Warning, "server", "a\nmessage".into());
        assert_eq!(sink.message(&record), b"<140>squalld-two: server a message");
        assert_eq!((facility("daemon"), facility("nosuch")), (Some(3), None));
    }
}
