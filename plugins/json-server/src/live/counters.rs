//! Reads the counters: status variables, the engine's, the process's, waits, and the latency of statements.

use std::collections::HashMap;

use errors::Result;
use plugin_api::{InfoColumn, SessionFactory};
use sys::waits::Wait;
use types::Value;

/// The status variables that are sampled.
const STATUS: &[&str] = &[
    "Queries",
    "Questions",
    "Slow_queries",
    "Com_select",
    "Com_insert",
    "Com_update",
    "Com_delete",
    "Com_replace",
    "Com_commit",
    "Com_rollback",
    "Com_stmt_execute",
    "Handler_read_key",
    "Handler_read_next",
    "Handler_read_rnd_next",
    "Handler_write",
    "Handler_update",
    "Handler_delete",
    "Created_tmp_tables",
    "Created_tmp_disk_tables",
    "Sort_rows",
    "Sort_merge_passes",
    "Plan_cache_hits",
    "Plan_cache_misses",
    "Connections",
    "Threads_connected",
    "Threads_running",
    "Bytes_received",
    "Bytes_sent",
    "Open_tables",
    "Prepared_stmt_count",
    "Uptime",
    "Datadir_free_bytes",
    "Datadir_total_bytes",
];

/// Counters of the process, which are no status variables.
const PROCESS: &[(&str, fn() -> u64)] = &[
    ("Resident_bytes", sys::process::resident_bytes),
    ("Cpu_microseconds", sys::process::cpu_micros),
];

/// Time that threads waited, by the kind of the wait. It falls when a thread ends.
const WAITS: &[(&str, Wait)] = &[
    ("Wait_mutex_microseconds", Wait::Mutex),
    ("Wait_latch_microseconds", Wait::Latch),
    ("Wait_row_lock_microseconds", Wait::RowLock),
    ("Wait_metadata_lock_microseconds", Wait::MetadataLock),
    ("Wait_log_flush_microseconds", Wait::LogFlush),
    ("Wait_read_microseconds", Wait::Read),
    ("Wait_write_microseconds", Wait::Write),
    ("Wait_sync_microseconds", Wait::Sync),
    ("Wait_network_microseconds", Wait::Network),
];

/// Lines of `data_dictionary.ENGINE_STATUS` that are sampled, of the engine that writes a log.
const ENGINE: &[&str] = &[
    "log.written_bytes",
    "log.syncs_total",
    "log.flush_p50_microseconds",
    "log.flush_p99_microseconds",
    "log.brake_microseconds",
    "pool.pages_total",
    "pool.pages_data",
    "pool.pages_dirty",
    "pool.pages_read_total",
    "pool.pages_written_total",
    "pool.evictions_total",
    "pool.page_read_p50_microseconds",
    "pool.page_read_p99_microseconds",
    "locks.row_locks",
    "locks.waits_total",
    "locks.deadlocks_total",
    "locks.wait_p50_microseconds",
    "locks.wait_p99_microseconds",
    "transactions.active_writers",
    "transactions.undo_bytes",
    "purge.transactions_waiting_for_purge",
];

/// Shares of the statements since the sample before, and the names of the time that they did not exceed.
const QUANTILES: &[(&str, u64)] = &[
    ("Statement_p50_microseconds", 50),
    ("Statement_p95_microseconds", 95),
    ("Statement_p99_microseconds", 99),
];

const PICOSECONDS_PER_MICROSECOND: u64 = 1_000_000;

/// The names of the counters in the order of `Counters::read`.
pub fn names() -> impl Iterator<Item = &'static str> {
    let status = STATUS.iter().copied();
    let process = PROCESS.iter().map(|(name, _)| *name);
    let waits = WAITS.iter().map(|(name, _)| *name);
    let engine = ENGINE.iter().copied();
    let quantiles = QUANTILES.iter().map(|(name, _)| *name);
    status.chain(process).chain(waits).chain(engine).chain(quantiles)
}

/// Reads counters; remembers what the next differences need.
#[derive(Default)]
pub struct Counters {
    /// Statements by the upper bound of their time in picoseconds, when they were last read.
    histogram: HashMap<u64, u64>,
}

impl Counters {
    /// The counters now.
    pub fn read(&mut self, sessions: &dyn SessionFactory) -> Vec<u64> {
        let status: HashMap<String, String> = sessions.status().into_iter().collect();
        let mut values: Vec<u64> = STATUS.iter().map(|name| number(status.get(*name))).collect();
        values.extend(PROCESS.iter().map(|(_, read)| read()));
        let threads = sys::waits::threads();
        values.extend(WAITS.iter().map(|(_, wait)| {
            let waited: u64 = threads.iter().map(|thread| thread.totals.of(*wait).nanos).sum();
            waited / 1000
        }));
        let engine = engine(sessions);
        values.extend(ENGINE.iter().map(|name| engine.get(*name).copied().unwrap_or(0)));
        let now = histogram(sessions);
        values.extend(QUANTILES.iter().map(|(_, share)| quantile(&self.histogram, &now, *share)));
        self.histogram = now;
        values
    }
}

fn number(text: Option<&String>) -> u64 {
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Calls `row` with the values of two columns of an information table; none where the table is missing.
fn read_columns(
    sessions: &dyn SessionFactory,
    (schema, table): (&str, &str),
    wanted: [&str; 2],
    mut row: impl FnMut(&Value, &Value),
) {
    let mut places: Option<[usize; 2]> = None;
    let mut emit = |columns: &[InfoColumn], values: &[Value]| -> Result<()> {
        let place = |name: &str| columns.iter().position(|column| column.name == name);
        if places.is_none() {
            places = place(wanted[0]).zip(place(wanted[1])).map(|(left, right)| [left, right]);
        }
        if let Some([left, right]) = places {
            row(&values[left], &values[right]);
        }
        Ok(())
    };
    // A plugin that is not loaded has no table: the counters stay 0.
    let _ = sessions.read_information(schema, table, &mut emit);
}

/// The lines `name number` of the engine that writes a log.
fn engine(sessions: &dyn SessionFactory) -> HashMap<String, u64> {
    let mut lines = HashMap::new();
    let table = ("data_dictionary", "ENGINE_STATUS");
    read_columns(sessions, table, ["ENGINE", "STATUS"], |_, status| {
        let Some(text) = changes::text(status) else { return };
        if text.contains("\nlog.written_bytes ") {
            let pairs = text.lines().filter_map(|line| line.split_once(' '));
            lines.extend(
                pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))),
            );
        }
    });
    lines
}

fn histogram(sessions: &dyn SessionFactory) -> HashMap<u64, u64> {
    let mut counts = HashMap::new();
    let table = ("performance_schema", "events_statements_histogram_global");
    read_columns(sessions, table, ["BUCKET_TIMER_HIGH", "COUNT_BUCKET"], |bound, count| {
        if let (Value::UInt(bound), Value::UInt(count @ 1..)) = (bound, count) {
            counts.insert(*bound, *count);
        }
    });
    counts
}

/// The time in microseconds that `share` percent of the statements between two readings did not exceed; 0 without statements.
fn quantile(before: &HashMap<u64, u64>, now: &HashMap<u64, u64>, share: u64) -> u64 {
    let new = |(bound, count): (&u64, &u64)| {
        // Fewer than before: somebody emptied the table.
        let earlier = before.get(bound).copied().unwrap_or(0);
        (*bound, count.checked_sub(earlier).unwrap_or(*count))
    };
    let mut buckets: Vec<(u64, u64)> =
        now.iter().map(new).filter(|(_, count)| *count > 0).collect();
    buckets.sort_unstable();
    let total: u64 = buckets.iter().map(|(_, count)| count).sum();
    let wanted = (total * share).div_ceil(100);
    let mut seen = 0;
    let found = buckets.iter().find(|(_, count)| {
        seen += count;
        seen >= wanted
    });
    found.map_or(0, |(bound, _)| bound / PICOSECONDS_PER_MICROSECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_new_statements() {
        let of = |pairs: &[(u64, u64)]| -> HashMap<u64, u64> {
            pairs.iter().map(|(micros, count)| (micros * 1_000_000, *count)).collect()
        };
        let before = of(&[(10, 1000), (50, 3)]);
        assert_eq!(quantile(&before, &before, 50), 0);
        let now = of(&[(10, 1050), (50, 48), (900, 5)]);
        assert_eq!(quantile(&before, &now, 50), 10);
        assert_eq!(quantile(&before, &now, 95), 50);
        assert_eq!(quantile(&before, &now, 99), 900);
        assert_eq!(quantile(&now, &of(&[(70, 2)]), 50), 70, "the table was emptied");
    }
}
