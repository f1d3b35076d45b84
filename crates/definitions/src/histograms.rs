//! Builds histograms: values with their numbers of rows become buckets of about as many rows.

use catalog::{Histogram, HistogramBucket};
use types::{DataType, TypeKind, Value};

use crate::column_values::kept_value;

/// Distinct values that are handled one by one; beyond that, neighbours are merged.
const SPANS_MAX: usize = 32 * 1024;

/// Neighbouring values.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    lower: Value,
    upper: Value,
    rows: u64,
    distinct: u64,
}

/// The values of a column so far, in order.
pub struct HistogramBuilder<'t> {
    column: &'t DataType,
    spans: Vec<Span>,
    rows: u64,
    nulls: u64,
}

impl<'t> HistogramBuilder<'t> {
    /// Nothing yet of a column of this type.
    pub fn new(column: &'t DataType) -> HistogramBuilder<'t> {
        HistogramBuilder { column, spans: Vec::new(), rows: 0, nulls: 0 }
    }

    /// Adds the next value, which `count` rows have.
    pub fn add(&mut self, value: Value, count: u64) {
        self.rows += count;
        if value.is_null() {
            self.nulls += count;
            return;
        }
        let value = kept_value(value, self.column);
        self.spans.push(Span { lower: value.clone(), upper: value, rows: count, distinct: 1 });
        if self.spans.len() >= SPANS_MAX {
            self.spans = joined(std::mem::take(&mut self.spans));
        }
    }

    /// The histogram with at most `buckets_max` buckets.
    pub fn finish(self, buckets_max: u32, auto_update: bool, updated_micros: i64) -> Histogram {
        let most = buckets_max as usize;
        let filled: u64 = self.spans.iter().map(|span| span.rows).sum();
        debug_assert_eq!(filled + self.nulls, self.rows, "each row is counted once");
        let singleton = self.spans.len() <= most;
        let total = self.rows.max(1) as f64;
        let spans = if singleton { self.spans } else { equal_height(self.spans, most) };
        let mut below = 0;
        let bucket = |span: Span| {
            below += span.rows;
            let cumulative = below as f64 / total;
            let Span { lower, upper, distinct, .. } = span;
            HistogramBucket { lower, upper, cumulative, distinct }
        };
        Histogram {
            singleton,
            buckets: spans.into_iter().map(bucket).collect(),
            nulls: self.nulls as f64 / total,
            buckets_max,
            auto_update,
            updated_micros,
            sampling_rate: 1.0,
        }
    }
}

/// Whether a histogram can be built from values of this type.
pub fn has_order(ty: &DataType) -> bool {
    !matches!(ty.kind, TypeKind::Json | TypeKind::Geometry | TypeKind::Vector | TypeKind::Null)
}

/// Merges pairs of neighbours, except for those with many rows, which are less than half: about half as many spans remain.
fn joined(spans: Vec<Span>) -> Vec<Span> {
    let rows: u64 = spans.iter().map(|span| span.rows).sum();
    let rows_max = 4 * rows / spans.len().max(1) as u64;
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    let mut may_join = false;
    for span in spans {
        match out.last_mut() {
            Some(last) if may_join && last.rows + span.rows <= rows_max => {
                last.upper = span.upper;
                last.rows += span.rows;
                last.distinct += span.distinct;
                may_join = false;
            }
            _ => {
                out.push(span);
                may_join = true;
            }
        }
    }
    out
}

/// The number of buckets needed when none, except for single spans, has more than `rows_max` rows.
fn buckets_needed(spans: &[Span], rows_max: u64) -> usize {
    let (mut buckets, mut rows) = (0, 0);
    for span in spans {
        if buckets == 0 || rows + span.rows > rows_max {
            buckets += 1;
            rows = 0;
        }
        rows += span.rows;
    }
    buckets
}

/// The smallest size of buckets for which `buckets_max` are enough.
fn rows_of_bucket(spans: &[Span], buckets_max: usize) -> u64 {
    let (mut low, mut high) = (1, spans.iter().map(|span| span.rows).sum::<u64>().max(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if buckets_needed(spans, middle) <= buckets_max {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    high
}

/// Combines spans to at most `buckets_max` buckets of about as many rows. No bucket stays unused where values are left for it.
fn equal_height(spans: Vec<Span>, buckets_max: usize) -> Vec<Span> {
    let rows_max = rows_of_bucket(&spans, buckets_max);
    let mut buckets: Vec<Span> = Vec::with_capacity(buckets_max);
    let count = spans.len();
    for (at, span) in spans.into_iter().enumerate() {
        let free = buckets_max - buckets.len();
        match buckets.last_mut() {
            Some(last) if last.rows + span.rows <= rows_max && count - at > free => {
                last.upper = span.upper;
                last.rows += span.rows;
                last.distinct += span.distinct;
            }
            _ => buckets.push(span),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(rows: &[u64]) -> Vec<Span> {
        let span = |(at, rows): (usize, &u64)| {
            let value = Value::UInt(at as u64);
            Span { lower: value.clone(), upper: value, rows: *rows, distinct: 1 }
        };
        rows.iter().enumerate().map(span).collect()
    }

    fn distinct(buckets: &[Span]) -> Vec<u64> {
        buckets.iter().map(|bucket| bucket.distinct).collect()
    }

    #[test]
    fn buckets_are_about_as_high_and_none_stays_unused() {
        // Figures of the reference.
        let odd: Vec<u64> = (1..31).map(|root| 2 * root + 1).chain([40]).collect();
        assert_eq!(distinct(&equal_height(spans(&odd), 8)), [11, 5, 3, 3, 3, 2, 2, 2]);
        let waves = [50, 100, 50, 100, 50, 100, 50, 100, 50, 100];
        assert_eq!(distinct(&equal_height(spans(&waves), 8)), [2, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!(distinct(&equal_height(spans(&[1, 900, 1, 1]), 3)), [1, 1, 2]);
    }

    #[test]
    fn neighbours_are_joined_but_heavy_ones() {
        let mut rows = vec![1; 64];
        rows[20] = 1000;
        let spans = joined(spans(&rows));
        assert!(spans.len() < 40 && spans.iter().any(|span| span.rows == 1000));
        assert_eq!(spans.iter().map(|span| span.distinct).sum::<u64>(), 64);
    }
}
