//! `performance_schema.error_log`: the last lines, in memory of bounded size.

use std::collections::VecDeque;

use errors::Result;
use plugin_api::{InfoColumn, InfoFilter, InformationContext, InformationTable, Severity};
use sys::sync::Mutex;
use types::{CollationId, DataType, FixedOffset, TypeKind, Value, ZoneRules as _};

/// Lines that are kept: the oldest give way.
const LINES_MAX: usize = 2_000;
/// Bytes that are kept of a line.
const LINE_BYTES_MAX: usize = 8 << 10;

/// An event.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) at_micros: i64,
    pub(crate) thread: u64,
    pub(crate) severity: Severity,
    /// The part of the server that it came from.
    pub(crate) subsystem: String,
    pub(crate) text: String,
}

/// The reference's word for a severity.
pub(crate) fn priority(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Information | Severity::Debug => "Note",
    }
}

/// The table.
#[derive(Debug)]
pub(crate) struct EventTable {
    columns: Vec<InfoColumn>,
    events: Mutex<VecDeque<Event>>,
}

fn column(name: &'static str, kind: TypeKind, length: u32) -> InfoColumn {
    let mut ty = DataType::new(kind, length, 0);
    if ty.is_text() {
        ty.collation = CollationId::UTF8MB4_0900_AI_CI;
    }
    if kind == TypeKind::DateTime {
        ty.decimals = 6;
    }
    InfoColumn { name, ty }
}

impl Default for EventTable {
    fn default() -> EventTable {
        let mut columns = vec![
            column("LOGGED", TypeKind::DateTime, 26),
            column("THREAD_ID", TypeKind::BigInt, 20),
            column("PRIO", TypeKind::VarChar, 7),
            column("ERROR_CODE", TypeKind::VarChar, 10),
            column("SUBSYSTEM", TypeKind::VarChar, 64),
            column("DATA", TypeKind::Text, 65_535),
        ];
        for required in [0, 2, 5] {
            columns[required].ty.nullable = false;
        }
        columns[1].ty.unsigned = true;
        EventTable { columns, events: Mutex::default() }
    }
}

impl EventTable {
    /// The latest `count` events as lines: priority, subsystem, text.
    pub(crate) fn latest(&self, count: usize) -> Vec<String> {
        let events = self.events.lock();
        let skipped = events.len().saturating_sub(count);
        let line = |event: &Event| {
            format!("{} {} {}", priority(event.severity), event.subsystem, event.text)
        };
        events.iter().skip(skipped).map(line).collect()
    }

    pub(crate) fn push(&self, mut event: Event) {
        if event.text.len() > LINE_BYTES_MAX {
            let end = (0..=LINE_BYTES_MAX).rev().find(|at| event.text.is_char_boundary(*at));
            event.text.truncate(end.unwrap_or(0));
        }
        let mut events = self.events.lock();
        if events.len() == LINES_MAX {
            events.pop_front();
        }
        events.push_back(event);
    }
}

impl InformationTable for EventTable {
    fn schema(&self) -> &'static str {
        "performance_schema"
    }

    fn name(&self) -> &'static str {
        "error_log"
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        // A copy: no lock is held while rows are sent.
        let events: Vec<Event> = self.events.lock().iter().cloned().collect();
        events.iter().try_for_each(|event| {
            emit(&[
                Value::DateTime(FixedOffset::utc().utc_to_local(event.at_micros)),
                Value::UInt(event.thread),
                Value::text(priority(event.severity)),
                Value::Null,
                Value::text(&event.subsystem),
                Value::text(&event.text),
            ])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_events_give_way_and_long_ones_are_cut() {
        let table = EventTable::default();
        for number in 0..LINES_MAX + 3 {
            let text = format!("{number} {}", "é".repeat(LINE_BYTES_MAX));
            let subsystem = "server".to_owned();
            let severity = Severity::Warning;
            table.push(Event { at_micros: 0, thread: 1, severity, subsystem, text });
        }
        let events = table.events.lock();
        assert_eq!(events.len(), LINES_MAX);
        assert!(events[0].text.starts_with("3 é") && events[0].text.len() <= LINE_BYTES_MAX);
    }
}
