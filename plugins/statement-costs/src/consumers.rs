//! What is recorded: `performance_schema.setup_consumers`.

use errors::{Error, ErrorCode, Result};
use plugin_api::TableEditor;
use sys::sync::atomic::{AtomicU32, Ordering};
use types::Value;

/// A consumer of records of statements: its place in `NAMES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Consumer(usize);

impl Consumer {
    pub(crate) const STAGES_CURRENT: Consumer = Consumer(0);
    pub(crate) const STAGES_HISTORY: Consumer = Consumer(1);
    pub(crate) const STAGES_HISTORY_LONG: Consumer = Consumer(2);
    /// Processor time and all else that has to be asked of the kernel.
    pub(crate) const CPU: Consumer = Consumer(3);
    pub(crate) const CURRENT: Consumer = Consumer(4);
    pub(crate) const HISTORY: Consumer = Consumer(5);
    pub(crate) const HISTORY_LONG: Consumer = Consumer(6);
    const GLOBAL: Consumer = Consumer(13);
    const THREAD: Consumer = Consumer(14);
    pub(crate) const DIGEST: Consumer = Consumer(15);
}

pub(crate) const NAMES: [&str; 16] = [
    "events_stages_current",
    "events_stages_history",
    "events_stages_history_long",
    "events_statements_cpu",
    "events_statements_current",
    "events_statements_history",
    "events_statements_history_long",
    "events_transactions_current",
    "events_transactions_history",
    "events_transactions_history_long",
    "events_waits_current",
    "events_waits_history",
    "events_waits_history_long",
    "global_instrumentation",
    "thread_instrumentation",
    "statements_digest",
];

/// Nothing but running statements, which cost nothing to show.
const DEFAULT: u32 = bit(Consumer::CURRENT) | bit(Consumer::GLOBAL) | bit(Consumer::THREAD);

const fn bit(consumer: Consumer) -> u32 {
    1 << consumer.0
}

/// The switches.
#[derive(Debug)]
pub(crate) struct Consumers(AtomicU32);

impl Default for Consumers {
    fn default() -> Consumers {
        Consumers(AtomicU32::new(DEFAULT))
    }
}

impl Consumers {
    /// Whether this is recorded. Without `global_instrumentation` nothing is, without `thread_instrumentation` nothing by thread.
    pub(crate) fn has(&self, consumer: Consumer) -> bool {
        let by_thread = match consumer {
            Consumer::CURRENT
            | Consumer::HISTORY
            | Consumer::STAGES_CURRENT
            | Consumer::STAGES_HISTORY => bit(Consumer::THREAD),
            _ => 0,
        };
        let needed = bit(consumer) | bit(Consumer::GLOBAL) | by_thread;
        self.0.load(Ordering::Relaxed) & needed == needed
    }

    /// Whether statements are recorded at all.
    pub(crate) fn record(&self) -> bool {
        [Consumer::DIGEST, Consumer::HISTORY, Consumer::HISTORY_LONG]
            .into_iter()
            .any(|consumer| self.has(consumer))
    }

    /// Whether stages are recorded.
    pub(crate) fn record_stages(&self) -> bool {
        [Consumer::STAGES_CURRENT, Consumer::STAGES_HISTORY, Consumer::STAGES_HISTORY_LONG]
            .into_iter()
            .any(|consumer| self.has(consumer))
    }

    pub(crate) fn rows(&self) -> Vec<Vec<Value>> {
        let bits = self.0.load(Ordering::Relaxed);
        let word = |at: usize| if bits & 1 << at != 0 { "YES" } else { "NO" };
        let row = |(at, name): (usize, &&str)| vec![Value::text(name), Value::text(word(at))];
        NAMES.iter().enumerate().map(row).collect()
    }
}

impl TableEditor for Consumers {
    fn update(&self, row: &[Value], assigned: &[(usize, Value)], number: u64) -> Result<bool> {
        let name = row.first().map(plugin_api::kit::text).unwrap_or_default();
        let at = NAMES.iter().position(|known| *known == name);
        let (Some(at), [(1, value)]) = (at, assigned) else {
            return Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]));
        };
        let on = match plugin_api::kit::text(value).to_ascii_uppercase().as_str() {
            "YES" => true,
            "NO" => false,
            _ => return Err(Error::with(ErrorCode::DATA_TRUNCATED, &[&"ENABLED", &number])),
        };
        let is_ours = at >= Consumer::GLOBAL.0 || at <= Consumer::HISTORY_LONG.0;
        if on && !is_ours {
            return Err(Error::not_supported(format!("the consumer {name}")));
        }
        let before = match on {
            true => self.0.fetch_or(1 << at, Ordering::Relaxed),
            false => self.0.fetch_and(!(1 << at), Ordering::Relaxed),
        };
        Ok((before & 1 << at != 0) != on)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(consumers: &Consumers, at: usize, word: &str) -> Result<bool> {
        consumers.update(&consumers.rows()[at], &[(1, Value::text(word))], 1)
    }

    #[test]
    fn nothing_is_recorded_until_a_consumer_is_on() {
        let consumers = Consumers::default();
        assert!(!consumers.record());
        assert_eq!(set(&consumers, Consumer::DIGEST.0, "yes").ok(), Some(true));
        assert_eq!(set(&consumers, Consumer::DIGEST.0, "YES").ok(), Some(false));
        assert!(consumers.record() && consumers.has(Consumer::DIGEST));
        assert!(set(&consumers, Consumer::GLOBAL.0, "NO").is_ok());
        assert!(!consumers.record());
    }

    #[test]
    fn other_words_columns_and_consumers_are_refused() {
        let consumers = Consumers::default();
        let code = |result: Result<bool>| result.err().map(|error| error.code());
        let wrong = set(&consumers, Consumer::DIGEST.0, "maybe");
        assert_eq!(code(wrong), Some(ErrorCode::DATA_TRUNCATED));
        assert!(set(&consumers, 7, "YES").is_err() && set(&consumers, 7, "NO").is_ok());
        let name = consumers.update(&consumers.rows()[3], &[(0, Value::text("x"))], 1);
        assert_eq!(code(name), Some(ErrorCode::WRONG_PERFSCHEMA_USAGE));
    }
}
