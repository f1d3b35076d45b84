//! Latencies of statements by kind.

use std::sync::atomic::{AtomicU64, Ordering};

use plugin_api::variable::GlobalValue;
use plugin_api::{EventSet, Observer, StatementEnd, StatementEvent, first_word};

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

/// How often threads that count at the same time share a line of memory: threads are spread over so many copies.
const COPIES: usize = 32;

/// All kinds, as some threads counted them. Two lines of memory: processors fetch them in pairs.
#[derive(Default)]
#[repr(align(128))]
struct Copy([Times; KINDS.len()]);

/// All kinds.
pub struct StatementTimes {
    is_on: GlobalValue,
    copies: Box<[Copy]>,
}

/// The sum of the copies of one kind.
struct Sums {
    kind: String,
    counts: Vec<u64>,
    micros: u64,
    errors: u64,
    rows_sent: u64,
    rows_examined: u64,
}

impl StatementTimes {
    /// Nothing yet; counts while `is_on` is.
    pub fn new(is_on: GlobalValue) -> StatementTimes {
        StatementTimes { is_on, copies: (0..COPIES).map(|_| Copy::default()).collect() }
    }

    fn of(&self, verb: &[u8]) -> &Times {
        let known = KINDS.iter().position(|kind| verb.eq_ignore_ascii_case(kind.as_bytes()));
        let copy = &self.copies[sys::threads::number() % COPIES];
        &copy.0[known.unwrap_or(KINDS.len() - 1)]
    }

    fn sums(&self, at: usize) -> Sums {
        let sum = |field: fn(&Times) -> &AtomicU64| {
            self.copies.iter().map(|copy| field(&copy.0[at]).load(Ordering::Relaxed)).sum()
        };
        let count = |bound: usize| {
            let counts = self.copies.iter().map(|copy| &copy.0[at].counts[bound]);
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        Sums {
            kind: KINDS[at].to_ascii_lowercase(),
            counts: (0..=BOUNDS.len()).map(count).collect(),
            micros: sum(|times| &times.sum_micros),
            errors: sum(|times| &times.errors),
            rows_sent: sum(|times| &times.rows_sent),
            rows_examined: sum(|times| &times.rows_examined),
        }
    }

    /// Counts a statement.
    pub fn count(&self, verb: &[u8], end: &StatementEnd<'_>) {
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
        let all = (0..KINDS.len()).map(|at| self.sums(at));
        let kinds: Vec<Sums> =
            all.filter(|sums| sums.counts.iter().any(|count| *count > 0)).collect();
        writer.family("statement_seconds", Type::Histogram, "Duration of statements by kind.");
        let bounds = BOUNDS.map(|bound| bound as f64 / 1e6);
        for sums in &kinds {
            let seconds = sums.micros as f64 / 1e6;
            writer.histogram(&[("kind", &sums.kind)], &bounds, &sums.counts, seconds);
        }
        let families: [(&str, &str, fn(&Sums) -> u64); 3] = [
            ("statement_errors", "Statements that failed, by kind.", |sums| sums.errors),
            ("statement_rows_sent", "Rows sent to clients, by kind of statement.", |sums| {
                sums.rows_sent
            }),
            ("statement_rows_examined", "Rows read, by kind of statement.", |sums| {
                sums.rows_examined
            }),
        ];
        for (name, help, field) in families {
            writer.family(name, Type::Counter, help);
            for sums in &kinds {
                writer.sample(&[("kind", &sums.kind)], field(sums));
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
            self.count(first_word(event.text), end);
        }
    }
}
