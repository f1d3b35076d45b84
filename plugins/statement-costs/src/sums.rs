//! Sums over statements.

use std::collections::BTreeMap;

use plugin_api::{StatementCost, StatementCounts, StatementEnd};
use types::Value;

/// Picoseconds of a microsecond and of a nanosecond: the unit of `performance_schema`.
pub(crate) const MICROSECOND: u64 = 1_000_000;
pub(crate) const NANOSECOND: u64 = 1_000;

/// What some statements did and cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sums {
    pub(crate) statements: u64,
    pub(crate) micros: u64,
    micros_min: u64,
    micros_max: u64,
    lock_micros: u64,
    errors: u64,
    warnings: u64,
    affected: u64,
    pub(crate) sent: u64,
    without_index: u64,
    pub(crate) counts: StatementCounts,
    /// Statements of these that were measured: `cost` is theirs.
    pub(crate) measured: u64,
    pub(crate) cost: StatementCost,
}

impl Sums {
    /// Those of one statement.
    pub(crate) fn of(end: &StatementEnd<'_>) -> Sums {
        Sums {
            statements: 1,
            micros: end.elapsed_micros,
            micros_min: end.elapsed_micros,
            micros_max: end.elapsed_micros,
            lock_micros: end.lock_micros,
            errors: u64::from(end.error.is_some()),
            warnings: u64::from(end.warnings),
            affected: end.rows_affected,
            sent: end.rows_sent,
            without_index: u64::from(end.counts.used_no_index()),
            counts: end.counts,
            measured: u64::from(end.cost.is_some()),
            cost: end.cost.copied().unwrap_or_default(),
        }
    }

    /// Adds others.
    pub(crate) fn add(&mut self, other: &Sums) {
        self.micros_min = match self.statements {
            0 => other.micros_min,
            _ => self.micros_min.min(other.micros_min),
        };
        self.micros_max = self.micros_max.max(other.micros_max);
        self.statements += other.statements;
        self.micros += other.micros;
        self.lock_micros += other.lock_micros;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.affected += other.affected;
        self.sent += other.sent;
        self.without_index += other.without_index;
        self.counts.add(&other.counts);
        self.measured += other.measured;
        self.cost.add(&other.cost);
    }

    /// The columns from COUNT_STAR to COUNT_SECONDARY. Memory is not measured by statement, and no statement runs in another engine.
    pub(crate) fn columns(&self) -> Vec<Value> {
        let counts = &self.counts;
        let average = self.micros.saturating_mul(MICROSECOND).checked_div(self.statements);
        let numbers = [
            self.statements,
            self.micros.saturating_mul(MICROSECOND),
            self.micros_min.saturating_mul(MICROSECOND),
            average.unwrap_or(0),
            self.micros_max.saturating_mul(MICROSECOND),
            self.lock_micros.saturating_mul(MICROSECOND),
            self.errors,
            self.warnings,
            self.affected,
            self.sent,
            counts.rows_examined,
            counts.temporary_disk_tables,
            counts.temporary_tables,
            counts.full_joins,
            counts.full_range_joins,
            counts.ranges,
            0,
            counts.scans,
            counts.sort_merge_passes,
            counts.sort_ranges,
            counts.sort_rows,
            counts.sort_scans,
            self.without_index,
            0,
            self.cost.cpu_nanos.saturating_mul(NANOSECOND),
            0,
            0,
            0,
        ];
        numbers.into_iter().map(Value::UInt).collect()
    }
}

/// Buckets of a histogram of times.
pub(crate) const BUCKETS: u16 = 450;
/// The upper bound of the first bucket in picoseconds, and the factor between bounds: fifty make ten.
const FIRST_BOUND: f64 = 1e7;
const FACTOR: f64 = 1.047_128_548_050_899_6;

/// The upper bounds of the buckets in picoseconds; the last one has none.
static BOUNDS: [u64; BUCKETS as usize] = bounds();

const fn bounds() -> [u64; BUCKETS as usize] {
    let mut bounds = [u64::MAX; BUCKETS as usize];
    let (mut at, mut next) = (0, FIRST_BOUND);
    while at + 1 < bounds.len() {
        bounds[at] = next as u64;
        next *= FACTOR;
        at += 1;
    }
    bounds
}

/// How many statements took how long. Only buckets in use take memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram(BTreeMap<u16, u64>);

impl Histogram {
    pub(crate) fn add(&mut self, micros: u64) {
        *self.0.entry(bucket_of(micros)).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in &other.0 {
            *self.0.entry(*bucket).or_default() += count;
        }
    }

    fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The time in picoseconds that this share of the statements did not exceed: a bound of a bucket.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let wanted = (self.total() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (bucket, count) in &self.0 {
            seen += count;
            if seen >= wanted {
                return bound(*bucket);
            }
        }
        0
    }

    /// The columns from BUCKET_NUMBER to BUCKET_QUANTILE of every bucket.
    pub(crate) fn rows(&self) -> Vec<Vec<Value>> {
        let total = self.total();
        let mut below = 0;
        let row = |bucket: u16| {
            let count = self.0.get(&bucket).copied().unwrap_or(0);
            below += count;
            let low = bucket.checked_sub(1).map_or(0, bound);
            let share = if total == 0 { 0.0 } else { below as f64 / total as f64 };
            vec![
                Value::UInt(bucket.into()),
                Value::UInt(low),
                Value::UInt(bound(bucket)),
                Value::UInt(count),
                Value::UInt(below),
                Value::Double(share),
            ]
        };
        (0..BUCKETS).map(row).collect()
    }
}

/// The upper bound of a bucket in picoseconds.
fn bound(bucket: u16) -> u64 {
    BOUNDS.get(usize::from(bucket)).copied().unwrap_or(u64::MAX)
}

fn bucket_of(micros: u64) -> u16 {
    let time = micros.saturating_mul(MICROSECOND);
    (BOUNDS.partition_point(|bound| *bound <= time) as u16).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_below_the_bound_of_its_bucket_and_not_below_the_one_before() {
        assert_eq!((bound(0), bound(1), bound(50)), (10_000_000, 10_471_285, 100_000_000));
        assert_eq!((bound(448), bound(449)), (9_120_108_393_559_408, u64::MAX));
        for micros in [0, 1, 9, 10, 11, 99, 100, 101, 12_345, 7_000_000, 1 << 40] {
            let (bucket, time) = (bucket_of(micros), micros * MICROSECOND);
            assert!(time < bound(bucket), "{micros}");
            assert!(bucket == 0 || time >= bound(bucket - 1), "{micros}");
        }
    }

    #[test]
    fn quantiles_are_bounds_of_buckets() {
        let mut histogram = Histogram::default();
        (0..99).for_each(|_| histogram.add(5));
        histogram.add(1_000);
        assert_eq!(histogram.quantile(0.95), 10_000_000);
        assert_eq!(histogram.quantile(0.999), bound(bucket_of(1_000)));
        assert_eq!(histogram.rows().len(), usize::from(BUCKETS));
        assert_eq!(histogram.rows()[449][4], Value::UInt(100));
    }

    #[test]
    fn sums_keep_the_shortest_and_the_longest() {
        let one = |micros| Sums {
            statements: 1,
            micros,
            micros_min: micros,
            micros_max: micros,
            ..Sums::default()
        };
        let mut sums = Sums::default();
        [30, 10, 20].into_iter().for_each(|micros| sums.add(&one(micros)));
        let number = |millions: u64| Value::UInt(millions * MICROSECOND);
        assert_eq!(
            sums.columns()[..5],
            [Value::UInt(3), number(60), number(10), number(20), number(30)]
        );
        assert_eq!(sums.columns().len(), 28);
    }
}
