//! Latencies of statements by kind.

use std::sync::atomic::{AtomicU64, Ordering};

use plugin_api::variable::GlobalValue;
use plugin_api::{EventSet, Observer, StatementEnd, StatementEvent};

use crate::exposition::{Type, Writer};

/// The kinds that are told apart, by first word; the last one is everything else.
const KINDS: [&str; 20] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "CALL", "SET", "SHOW", "USE", "BEGIN",
    "START", "COMMIT", "ROLLBACK", "CREATE", "ALTER", "DROP", "TRUNCATE", "LOAD", "WITH", "OTHER",
];
/// Upper bounds in microseconds; one more count is for what takes longer.
const BOUNDS: [u64; 18] = [
    20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 5_000_000, 20_000_000, 60_000_000,
];

/// One kind.
#[derive(Default)]
struct Times {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_micros: AtomicU64,
    errors: AtomicU64,
    rows_sent: AtomicU64,
    rows_examined: AtomicU64,
}

/// All kinds.
pub struct StatementTimes {
    is_on: GlobalValue,
    kinds: [Times; KINDS.len()],
}

impl StatementTimes {
    /// Nothing yet; counts while `is_on` is.
    pub fn new(is_on: GlobalValue) -> StatementTimes {
        StatementTimes { is_on, kinds: Default::default() }
    }

    fn of(&self, verb: &str) -> &Times {
        let known = KINDS.iter().position(|kind| *kind == verb);
        &self.kinds[known.unwrap_or(KINDS.len() - 1)]
    }

    /// Counts a statement.
    pub fn count(&self, verb: &str, end: &StatementEnd<'_>) {
        let times = self.of(verb);
        let at = BOUNDS.iter().position(|bound| end.elapsed_micros <= *bound);
        let add = |count: &AtomicU64, amount: u64| count.fetch_add(amount, Ordering::Relaxed);
        add(&times.counts[at.unwrap_or(BOUNDS.len())], 1);
        add(&times.sum_micros, end.elapsed_micros);
        add(&times.errors, u64::from(end.error.is_some()));
        add(&times.rows_sent, end.rows_sent);
        add(&times.rows_examined, end.counts.rows_examined);
    }

    /// Writes the kinds that occurred.
    pub fn write(&self, writer: &mut Writer) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let kinds = KINDS.iter().zip(&self.kinds);
        let kinds: Vec<_> = kinds
            .filter(|(_, times)| times.counts.iter().any(|count| read(count) > 0))
            .map(|(kind, times)| (kind.to_ascii_lowercase(), times))
            .collect();
        writer.family("statement_seconds", Type::Histogram, "Duration of statements by kind.");
        let bounds = BOUNDS.map(|bound| bound as f64 / 1e6);
        for (kind, times) in &kinds {
            let counts: Vec<u64> = times.counts.iter().map(read).collect();
            let sum = read(&times.sum_micros) as f64 / 1e6;
            writer.histogram(&[("kind", kind)], &bounds, &counts, sum);
        }
        let sums: [(&str, &str, fn(&Times) -> &AtomicU64); 3] = [
            ("statement_errors", "Statements that failed, by kind.", |times| &times.errors),
            ("statement_rows_sent", "Rows sent to clients, by kind of statement.", |times| {
                &times.rows_sent
            }),
            ("statement_rows_examined", "Rows read, by kind of statement.", |times| {
                &times.rows_examined
            }),
        ];
        for (name, help, field) in sums {
            writer.family(name, Type::Counter, help);
            for (kind, times) in &kinds {
                writer.sample(&[("kind", kind)], read(field(times)));
            }
        }
    }
}

impl Observer for StatementTimes {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn events(&self) -> EventSet {
        match self.is_on.is_on() {
            true => EventSet::AFTER_STATEMENT,
            false => EventSet::NONE,
        }
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        if event.command != "Prepare" {
            self.count(&event.verb(), end);
        }
    }
}
