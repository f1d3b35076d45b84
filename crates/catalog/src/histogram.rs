//! The distribution of a column's values, as ANALYZE TABLE .. UPDATE HISTOGRAM found it. It belongs to the column and is dropped with it.
//!
//! Invariants: buckets are in the order of the column's collation or type, they do not overlap, and shares grow up to `1 - nulls`.

use errors::Result;
use types::Value;

use crate::codec::{read_value, write_value};
use crate::fields::{FieldWriter, damaged, nested_fields};

/// See the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// One bucket for each value, not for ranges of values.
    pub singleton: bool,
    /// In order.
    pub buckets: Vec<HistogramBucket>,
    /// Share of the rows that are NULL.
    pub nulls: f64,
    /// `WITH n BUCKETS`.
    pub buckets_max: u32,
    /// AUTO UPDATE: rebuilt by every ANALYZE TABLE.
    pub auto_update: bool,
    /// Microseconds since 1970 UTC.
    pub updated_micros: i64,
    /// Share of the rows that were read for it: 1 unless a document said otherwise.
    pub sampling_rate: f64,
}

/// Values from `lower` to `upper`, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramBucket {
    /// Smallest value.
    pub lower: Value,
    /// Largest value.
    pub upper: Value,
    /// Share of the rows in this bucket and those before it.
    pub cumulative: f64,
    /// Number of distinct values.
    pub distinct: u64,
}

fn put_share(out: &mut FieldWriter, tag: u16, share: f64) {
    out.number(tag, share.to_bits());
}

impl Histogram {
    /// Characters of a text that a histogram keeps and compares: the reference's figure.
    pub const TEXT_CHARS: usize = 42;

    pub(crate) fn writer(&self) -> FieldWriter {
        let mut out = FieldWriter::nested();
        out.flag(1, self.singleton);
        put_share(&mut out, 2, self.nulls);
        out.number(3, u64::from(self.buckets_max));
        out.flag(4, self.auto_update);
        out.number(5, self.updated_micros as u64);
        if self.sampling_rate != 1.0 {
            put_share(&mut out, 7, self.sampling_rate);
        }
        for bucket in &self.buckets {
            let mut nested = FieldWriter::nested();
            nested.bytes(1, &write_value(&bucket.lower));
            if !self.singleton {
                nested.bytes(2, &write_value(&bucket.upper));
            }
            put_share(&mut nested, 3, bucket.cumulative);
            nested.number(4, bucket.distinct);
            out.nest(6, nested);
        }
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Histogram> {
        let mut histogram = Histogram {
            singleton: false,
            buckets: Vec::new(),
            nulls: 0.0,
            buckets_max: 0,
            auto_update: false,
            updated_micros: 0,
            sampling_rate: 1.0,
        };
        for field in nested_fields(bytes)? {
            match field.tag {
                1 => histogram.singleton = field.flag()?,
                2 => histogram.nulls = f64::from_bits(field.number()?),
                3 => histogram.buckets_max = field.narrow()?,
                4 => histogram.auto_update = field.flag()?,
                5 => histogram.updated_micros = field.number()? as i64,
                6 => histogram.buckets.push(read_bucket(field.bytes)?),
                7 => histogram.sampling_rate = f64::from_bits(field.number()?),
                _ => {}
            }
        }
        Ok(histogram)
    }
}

fn read_bucket(bytes: &[u8]) -> Result<HistogramBucket> {
    let (mut lower, mut upper) = (None, None);
    let (mut cumulative, mut distinct) = (0.0, 0);
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => lower = Some(read_value(field.bytes)?),
            2 => upper = Some(read_value(field.bytes)?),
            3 => cumulative = f64::from_bits(field.number()?),
            4 => distinct = field.number()?,
            _ => {}
        }
    }
    let lower = lower.ok_or_else(damaged)?;
    let upper = upper.unwrap_or_else(|| lower.clone());
    Ok(HistogramBucket { lower, upper, cumulative, distinct })
}
