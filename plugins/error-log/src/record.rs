//! An event of the log with its fields, which filters may change before sinks write it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use plugin_api::Severity;
use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use types::{FixedOffset, ZoneRules as _};

use crate::table::priority;

/// `prio`, as rules and JSON number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    System,
    Error,
    Warning,
    Information,
}

/// In the order of their numbers.
const PRIORITIES: [(Priority, &str); 4] = [
    (Priority::System, "SYSTEM"),
    (Priority::Error, "ERROR"),
    (Priority::Warning, "WARNING"),
    (Priority::Information, "INFORMATION"),
];

impl Priority {
    pub(crate) fn word(self) -> &'static str {
        let found = PRIORITIES.iter().find(|(priority, _)| *priority == self);
        found.map_or("", |(_, word)| word)
    }

    pub(crate) fn number(self) -> i64 {
        PRIORITIES.iter().take_while(|(priority, _)| *priority != self).count() as i64
    }

    pub(crate) fn of_number(number: i64) -> Option<Priority> {
        PRIORITIES.get(usize::try_from(number).ok()?).map(|(priority, _)| *priority)
    }

    /// The priority of this name; a note is information.
    pub(crate) fn named(word: &str) -> Option<Priority> {
        if word.eq_ignore_ascii_case("NOTE") {
            return Some(Priority::Information);
        }
        let found = PRIORITIES.iter().find(|(_, known)| known.eq_ignore_ascii_case(word));
        found.map(|(priority, _)| *priority)
    }
}

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) at_micros: i64,
    pub(crate) thread: u64,
    pub(crate) severity: Severity,
    /// In place of the word for the severity.
    label: Option<String>,
    /// The part of the server that it came from.
    pub(crate) subsystem: String,
    pub(crate) message: String,
    fields: Vec<(Cow<'static, str>, String)>,
}

impl Record {
    /// An event that comes now.
    pub(crate) fn new(severity: Severity, subsystem: &str, message: String) -> Record {
        Record {
            at_micros: i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX),
            thread: sys::threads::number() as u64,
            severity,
            label: None,
            subsystem: subsystem.to_owned(),
            message,
            fields: Vec::new(),
        }
    }

    fn number(&self) -> i64 {
        match self.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::Information => 3,
            Severity::Debug => 4,
        }
    }

    /// A field as text; `None` where the event has no such field.
    pub(crate) fn get(&self, field: &str) -> Option<String> {
        match field {
            "prio" => Some(self.number().to_string()),
            "label" => Some(self.label.clone().unwrap_or_else(|| priority(self.severity).into())),
            "subsystem" => Some(self.subsystem.clone()),
            "msg" => Some(self.message.clone()),
            "thread" => Some(self.thread.to_string()),
            "time" => Some(timestamp(self.at_micros)),
            "ts" => Some((self.at_micros / 1000).to_string()),
            field => {
                let found = self.fields.iter().find(|(name, _)| name == field);
                found.map(|(_, value)| value.clone())
            }
        }
    }

    pub(crate) fn set_priority(&mut self, priority: Priority) {
        self.severity = match priority {
            Priority::System | Priority::Information => Severity::Information,
            Priority::Error => Severity::Error,
            Priority::Warning => Severity::Warning,
        };
    }

    /// Gives a field a value. When an event came is not changed.
    pub(crate) fn set(&mut self, field: &str, value: String) {
        match field {
            "prio" | "thread" | "time" | "ts" => {}
            "label" => self.label = Some(value),
            "subsystem" => self.subsystem = value,
            "msg" => self.message = value,
            field => {
                self.unset(field);
                self.fields.push((Cow::Owned(field.to_owned()), value));
            }
        }
    }

    /// Takes a field away. Each event has a priority and a time.
    pub(crate) fn unset(&mut self, field: &str) {
        match field {
            "label" => self.label = None,
            "subsystem" => self.subsystem.clear(),
            "msg" => self.message.clear(),
            field => self.fields.retain(|(name, _)| name != field),
        }
    }

    /// Message and fields.
    pub(crate) fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let _ = write!(text, " {name}={value}");
        }
        text
    }

    /// As a line of text.
    pub(crate) fn line(&self) -> String {
        let word = match self.severity {
            Severity::Error => "ERROR",
            Severity::Warning => "WARN",
            Severity::Information => "INFO",
            Severity::Debug => "DEBUG",
        };
        let word = self.label.as_deref().unwrap_or(word);
        format!("{} {word:<5} {} {}", timestamp(self.at_micros), self.subsystem, self.text())
    }

    /// Names as the reference's, and the event's fields by their own.
    pub(crate) fn json(&self) -> Value {
        let mut object = Map::new();
        for (name, value) in &self.fields {
            object.insert(name.to_string(), json!(value));
        }
        let label = self.label.as_deref().unwrap_or(priority(self.severity));
        object.insert("time".to_owned(), json!(timestamp(self.at_micros)));
        object.insert("ts".to_owned(), json!(self.at_micros / 1000));
        object.insert("prio".to_owned(), json!(self.number()));
        object.insert("label".to_owned(), json!(label));
        object.insert("subsystem".to_owned(), json!(self.subsystem));
        object.insert("thread".to_owned(), json!(self.thread));
        object.insert("msg".to_owned(), json!(self.message));
        Value::Object(object)
    }
}

impl Visit for Record {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Control characters would break a line in two.
        let text: String =
            format!("{value:?}").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        match field.name() {
            "message" => self.message.push_str(&text),
            name => self.fields.push((Cow::Borrowed(name), text)),
        }
    }
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
