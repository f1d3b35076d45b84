//! The steps of the last statements of sessions whose `profiling` is ON, for SHOW PROFILES and SHOW PROFILE.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use plugin_api::variable::as_u64;
use plugin_api::{
    ConnectionEvent, EventSet, InformationTable, Observer, SessionTable, StatementEnd,
    StatementEvent, StatementStep, TableDefinition, table_definitions,
};
use sys::sync::Mutex;
use types::{Decimal, Value};

const DEFINITIONS: &str = include_str!("steps.txt");
/// The table of statements; the others show steps.
const STATEMENTS: &str = "STATEMENT_PROFILES";
/// Characters of a statement that are kept.
const TEXT_CHARS_MAX: usize = 300;
const NANOS_PER_MICRO: u64 = 1_000;

/// A statement that ended.
#[derive(Clone, Debug)]
struct Profiled {
    /// Its number in its session.
    number: u64,
    text: String,
    steps: Vec<StatementStep>,
}

/// The last statements of a session, the oldest first.
#[derive(Debug, Default)]
struct Kept {
    numbered: u64,
    statements: VecDeque<Profiled>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    sessions: Mutex<HashMap<u64, Kept>>,
}

impl Steps {
    fn keep(&self, session: u64, text: String, steps: Vec<StatementStep>, count_max: usize) {
        let mut sessions = self.sessions.lock();
        let kept = sessions.entry(session).or_default();
        kept.numbered += 1;
        kept.statements.push_back(Profiled { number: kept.numbered, text, steps });
        while kept.statements.len() > count_max {
            kept.statements.pop_front();
        }
    }

    fn of(&self, session: u64) -> Vec<Profiled> {
        let sessions = self.sessions.lock();
        sessions
            .get(&session)
            .map_or_else(Vec::new, |kept| kept.statements.iter().cloned().collect())
    }
}

/// Whether the statement asks for profiles.
fn asks_for_profiles(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace().map(str::to_ascii_uppercase);
    words.next().as_deref() == Some("SHOW")
        && words.next().is_some_and(|word| word.starts_with("PROFILE"))
}

impl Observer for Steps {
    fn name(&self) -> &'static str {
        "statement_profiles"
    }

    fn events(&self) -> EventSet {
        EventSet::SESSION_STEPS | EventSet::DISCONNECT
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let text = String::from_utf8_lossy(event.text);
        if asks_for_profiles(&text) {
            return;
        }
        let text = text.chars().take(TEXT_CHARS_MAX).collect();
        let size = event.services.system_variable("profiling_history_size");
        let count_max = size.map_or(0, |value| as_u64(&value) as usize);
        self.keep(event.session.connection_id, text, end.steps.to_vec(), count_max);
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        self.sessions.lock().remove(&event.session.connection_id);
    }
}

/// `information_schema.PROFILING`, and the tables that SHOW reads.
pub(crate) fn tables(steps: &Arc<Steps>) -> Vec<Arc<dyn InformationTable>> {
    let table = |definition: TableDefinition| -> Arc<dyn InformationTable> {
        let (steps, has_statements) = (steps.clone(), definition.name == STATEMENTS);
        Arc::new(SessionTable::new(definition, move |session| {
            let statements = steps.of(session.connection_id());
            match has_statements {
                true => statements.iter().map(statement_row).collect(),
                false => statements.iter().flat_map(step_rows).collect(),
            }
        }))
    };
    table_definitions(DEFINITIONS).into_iter().map(table).collect()
}

fn statement_row(statement: &Profiled) -> Vec<Value> {
    let nanos: u64 = statement.steps.iter().map(|step| step.nanos).sum();
    vec![
        Value::UInt(statement.number),
        Value::Double(nanos as f64 / 1e9),
        Value::text(&statement.text),
    ]
}

fn step_rows(statement: &Profiled) -> impl Iterator<Item = Vec<Value>> + '_ {
    let seconds = |micros: u64| Value::Decimal(Decimal::from_i128(i128::from(micros), 6));
    let step_row = move |(at, step): (usize, &StatementStep)| {
        vec![
            Value::UInt(statement.number),
            Value::UInt(at as u64 + 1),
            Value::text(step.name),
            seconds(step.nanos / NANOS_PER_MICRO),
            seconds(step.user_micros),
            seconds(step.system_micros),
            Value::UInt(step.voluntary_switches),
            Value::UInt(step.involuntary_switches),
            Value::UInt(step.block_reads),
            Value::UInt(step.block_writes),
            // As in the reference, no platform counts messages and swaps.
            Value::UInt(0),
            Value::UInt(0),
            Value::UInt(step.major_faults),
            Value::UInt(step.minor_faults),
            Value::UInt(0),
            Value::Null,
            Value::Null,
            Value::Null,
        ]
    };
    statement.steps.iter().enumerate().map(step_row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &'static str, nanos: u64) -> StatementStep {
        StatementStep { name, nanos, ..StatementStep::default() }
    }

    #[test]
    fn the_oldest_statements_give_way_and_keep_their_numbers() {
        let steps = Steps::default();
        for text in ["one", "two", "three"] {
            steps.keep(7, text.into(), vec![step("executing", 5)], 2);
        }
        let kept: Vec<_> = steps.of(7).into_iter().map(|kept| (kept.number, kept.text)).collect();
        assert_eq!(kept, [(2, "two".to_owned()), (3, "three".to_owned())]);
        assert!(steps.of(8).is_empty());
        steps.keep(7, "four".into(), Vec::new(), 0);
        assert!(steps.of(7).is_empty());
    }

    #[test]
    fn statements_that_ask_for_profiles_are_told_from_others() {
        assert!(
            asks_for_profiles("show  profile all for query 1")
                && asks_for_profiles("SHOW PROFILES")
        );
        assert!(!asks_for_profiles("SHOW TABLES") && !asks_for_profiles("PROFILE SELECT 1"));
    }
}
