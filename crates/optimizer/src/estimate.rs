//! Histogram estimates for predicates: the share of a table's rows that `column op constant` keeps.
//!
//! A predicate without a histogram gets a guess (`predicate::selectivity`).

use std::cmp::Ordering;

use catalog::{Histogram, HistogramBucket};
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use types::{CollationId, ComparisonKind, DataType, TemporalMode, TypeKind, Value, compare_values};

use crate::Planner;
use crate::cost::HISTOGRAM_SHARE_MIN;
use crate::predicate::selectivity;

/// Bytes of sort keys, after the common prefix of a bucket's two ends, that locate a text between them.
const KEY_BYTES: usize = 8;

/// A column with its histogram, as one predicate compares it.
struct Spread<'h> {
    histogram: &'h Histogram,
    ty: &'h DataType,
    /// Collation of the comparison; texts of another than the column's are not in the histogram's order.
    collation: Option<CollationId>,
}

/// The value that a comparison compares a column with.
enum Constant {
    Known(Value, ComparisonKind),
    Parameter,
}

impl Planner<'_> {
    /// The share of rows that a predicate keeps. `wanted_literal` is set when a histogram would help if a parameter's value were known.
    pub(crate) fn selectivity(&self, predicate: &Expr, wanted_literal: &mut bool) -> f64 {
        if !self.has_histograms {
            return selectivity(predicate);
        }
        let known = self.known_share(predicate, wanted_literal);
        known.map_or_else(|| selectivity(predicate), |share| share.clamp(HISTOGRAM_SHARE_MIN, 1.0))
    }

    /// The same, when a histogram applies.
    fn known_share(&self, predicate: &Expr, wanted: &mut bool) -> Option<f64> {
        match predicate {
            Expr::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right, .. } => {
                let (a, b) = (self.known_share(left, wanted), self.known_share(right, wanted));
                if a.is_none() && b.is_none() {
                    return None;
                }
                let (a, b) = (
                    a.unwrap_or_else(|| selectivity(left)),
                    b.unwrap_or_else(|| selectivity(right)),
                );
                Some(if *op == BinaryOp::And { a * b } else { a + b - a * b })
            }
            Expr::Binary { op, left, right, collation, .. } => {
                let (spread, other, op) = match self.spread(left, Some(*collation)) {
                    Some(spread) => (spread, right, *op),
                    None => {
                        (self.spread(right, Some(*collation))?, left, crate::sargable::mirror(*op))
                    }
                };
                spread.compared(op, other, wanted)
            }
            Expr::Between { operand, low, high, negated, collation } => {
                let spread = self.spread(operand, Some(*collation))?;
                let low = spread.constant(low, wanted)?;
                let high = spread.constant(high, wanted)?;
                let share = (spread.below(&high, true)? - spread.below(&low, false)?).max(0.0);
                Some(spread.negated(share, *negated))
            }
            Expr::InList { operand, list, negated, collation } => {
                let spread = self.spread(operand, Some(*collation))?;
                let mut share = 0.0;
                for item in list {
                    let constant = spread.constant(item, wanted)?;
                    share += spread.equal(&constant)?;
                }
                Some(spread.negated(share.min(1.0), *negated))
            }
            Expr::Unary { op: UnaryOp::Not, operand, .. } => {
                let Expr::Binary { op, left, right, collation, ty } = &**operand else {
                    return None;
                };
                let (left, right, op) = (left.clone(), right.clone(), opposite(*op)?);
                let turned =
                    Expr::Binary { op, left, right, collation: *collation, ty: ty.clone() };
                self.known_share(&turned, wanted)
            }
            Expr::Unary { op: UnaryOp::IsNull, operand, .. } => {
                Some(self.spread(operand, None)?.histogram.nulls)
            }
            Expr::Unary { op: UnaryOp::IsNotNull, operand, .. } => {
                Some(1.0 - self.spread(operand, None)?.histogram.nulls)
            }
            _ => None,
        }
    }

    /// The histogram of the column that an expression reads.
    fn spread(&self, expr: &Expr, collation: Option<CollationId>) -> Option<Spread<'_>> {
        let register = match expr {
            // Its number identifies it as well as its text.
            Expr::Cast { operand, kind: CastKind::Implicit, .. }
                if operand.ty().is_enum_or_set() =>
            {
                operand.as_column()?
            }
            _ => expr.as_column()?,
        };
        let (instance, at) = self
            .instances
            .iter()
            .find_map(|instance| Some((instance, instance.column_of(register)?)))?;
        let column = self.input.tables.get(instance.table)?.columns.get(at)?;
        let histogram = column.histogram.as_deref()?;
        Some(Spread { histogram, ty: &column.ty, collation })
    }
}

impl Spread<'_> {
    fn compared(&self, op: BinaryOp, other: &Expr, wanted: &mut bool) -> Option<f64> {
        if op == BinaryOp::NullSafeEqual && is_null(other) {
            return Some(self.histogram.nulls);
        }
        let value = match op {
            BinaryOp::Equal
            | BinaryOp::NullSafeEqual
            | BinaryOp::NotEqual
            | BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual => self.constant(other, wanted)?,
            _ => return None,
        };
        let filled = 1.0 - self.histogram.nulls;
        Some(match op {
            BinaryOp::NotEqual => filled - self.equal(&value)?,
            BinaryOp::Less => self.below(&value, false)?,
            BinaryOp::LessOrEqual => self.below(&value, true)?,
            BinaryOp::Greater => filled - self.below(&value, true)?,
            BinaryOp::GreaterOrEqual => filled - self.below(&value, false)?,
            _ => self.equal(&value)?,
        })
    }

    fn negated(&self, share: f64, negated: bool) -> f64 {
        if negated { 1.0 - self.histogram.nulls - share } else { share }
    }

    /// A constant in the form in which the histogram's values are compared.
    fn constant(&self, expr: &Expr, wanted: &mut bool) -> Option<(Value, ComparisonKind)> {
        match constant(expr, self.ty)? {
            Constant::Parameter => {
                *wanted = true;
                None
            }
            Constant::Known(value, kind) => match kind {
                _ if value.is_null() => None,
                ComparisonKind::String(_) if self.ty.is_enum_or_set() => {
                    let number = match &value {
                        Value::UInt(number) => *number,
                        Value::Bytes(name) => self.member(name)?,
                        _ => return None,
                    };
                    Some((Value::UInt(number), ComparisonKind::Integer))
                }
                ComparisonKind::String(_) if self.ty.as_fixed().is_some() => {
                    let fits = self.ty.as_fixed().map(types::Fixed::bytes);
                    let Value::Bytes(bytes) = &value else { return None };
                    let kind = ComparisonKind::String(CollationId::BINARY);
                    (Some(bytes.len()) == fits).then_some((value, kind))
                }
                ComparisonKind::String(_) => {
                    if self.collation != Some(self.ty.collation) {
                        return None;
                    }
                    let Value::Bytes(text) = &value else { return None };
                    let collation = charset::collation_or_binary(self.ty.collation);
                    let kept = collation.char_prefix(text, Histogram::TEXT_CHARS);
                    let text = Value::Bytes(types::SqlBytes::from(&text[..kept]));
                    Some((text, ComparisonKind::String(self.ty.collation)))
                }
                ComparisonKind::Json => None,
                _ => Some((value, kind)),
            },
        }
    }

    /// The number of a member of an ENUM or of a SET.
    fn member(&self, name: &[u8]) -> Option<u64> {
        let collation = charset::collation_or_binary(self.ty.collation);
        let mut names = self.ty.members.as_ref()?.names();
        let at = names.position(|known| collation.equal(known, name))?;
        Some(if self.ty.kind == TypeKind::Set { 1 << at } else { at as u64 + 1 })
    }

    /// The bucket that may contain the value, with the share of the buckets before it.
    fn bucket(&self, value: &(Value, ComparisonKind)) -> (f64, Option<&HistogramBucket>) {
        let (value, kind) = value;
        let buckets = &self.histogram.buckets;
        let is_before = |bucket: &HistogramBucket| {
            compare_values(*kind, &bucket.upper, value) == Some(Ordering::Less)
        };
        let at = buckets.partition_point(is_before);
        let before = at.checked_sub(1).map_or(0.0, |last| buckets[last].cumulative);
        let holds = |bucket: &&HistogramBucket| {
            compare_values(*kind, &bucket.lower, value) != Some(Ordering::Greater)
        };
        (before, buckets.get(at).filter(holds))
    }

    /// The share of the rows that have a value.
    fn equal(&self, value: &(Value, ComparisonKind)) -> Option<f64> {
        let (before, bucket) = self.bucket(value);
        Some(
            bucket
                .map_or(0.0, |bucket| (bucket.cumulative - before) / bucket.distinct.max(1) as f64),
        )
    }

    /// The share of the rows below a value; `or_equal`: including those that have it.
    fn below(&self, value: &(Value, ComparisonKind), or_equal: bool) -> Option<f64> {
        if self.ty.is_enum_or_set() {
            // Their texts are ordered by the alphabet, the histogram by their numbers.
            return None;
        }
        let (before, bucket) = self.bucket(value);
        let Some(bucket) = bucket else { return Some(before) };
        let share = bucket.cumulative - before;
        let inside = if self.histogram.singleton {
            0.0
        } else {
            share * self.distance(bucket, value).clamp(0.0, 1.0)
        };
        let own = if or_equal { share / bucket.distinct.max(1) as f64 } else { 0.0 };
        Some((before + inside + own).min(bucket.cumulative))
    }

    /// How far into a bucket a value is, assuming evenly distributed values.
    fn distance(&self, bucket: &HistogramBucket, (value, kind): &(Value, ComparisonKind)) -> f64 {
        if let ComparisonKind::String(collation) = kind {
            return text_distance(*collation, bucket, value);
        }
        let number = |value: &Value| place(value, *kind);
        let (Some(lower), Some(upper), Some(value)) =
            (number(&bucket.lower), number(&bucket.upper), number(value))
        else {
            return 0.5;
        };
        // Whole numbers and days fill their buckets up to the last.
        let step = match self.ty.kind {
            TypeKind::Date => DAY_MICROS,
            _ if self.ty.is_integer() => 1.0,
            _ => 0.0,
        };
        let width = upper - lower + step;
        if width > 0.0 { (value - lower) / width } else { 0.0 }
    }
}

const DAY_MICROS: f64 = 86_400_000_000.0;

/// A value as a number, for distances.
fn place(value: &Value, kind: ComparisonKind) -> Option<f64> {
    let days = |date: types::Date| date.to_days() as f64 * DAY_MICROS;
    Some(match value {
        Value::Int(number) => *number as f64,
        Value::UInt(number) => *number as f64,
        Value::Double(number) => *number,
        Value::Decimal(number) => number.to_f64(),
        Value::Date(date) => days(*date),
        Value::DateTime(datetime) => days(datetime.date()) + datetime.time().micros() as f64,
        Value::Time(time) => time.micros() as f64,
        Value::Bytes(text) => match kind {
            ComparisonKind::DateTime => {
                let parsed = types::temporal::parse_datetime(text, 6, TemporalMode::default());
                return parsed.value.and_then(|datetime| place(&Value::DateTime(datetime), kind));
            }
            ComparisonKind::Time => {
                let parsed = types::temporal::parse_time(text, 6, TemporalMode::default());
                return parsed.value.and_then(|time| place(&Value::Time(time), kind));
            }
            _ => std::str::from_utf8(text).ok()?.trim().parse().ok()?,
        },
        Value::Null | Value::Json(_) => return None,
    })
}

fn text_distance(collation: CollationId, bucket: &HistogramBucket, value: &Value) -> f64 {
    let collation = charset::collation_or_binary(collation);
    let key = |value: &Value| {
        let mut out = Vec::new();
        if let Value::Bytes(text) = value {
            collation.sort_key(text, &mut out);
        }
        out
    };
    let (lower, upper, value) = (key(&bucket.lower), key(&bucket.upper), key(value));
    let shared = lower.iter().zip(&upper).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let rest = key.iter().skip(shared).copied().chain(std::iter::repeat(0));
        rest.take(KEY_BYTES).fold(0.0, |number, byte| number * 256.0 + f64::from(byte))
    };
    let width = number(&upper) - number(&lower);
    if width > 0.0 { (number(&value) - number(&lower)) / width } else { 0.0 }
}

/// The operator that holds for the values for which a comparison is false.
fn opposite(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterOrEqual,
        BinaryOp::LessOrEqual => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::LessOrEqual,
        BinaryOp::GreaterOrEqual => BinaryOp::Less,
        _ => return None,
    })
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { value: Value::Null, .. })
}

/// The constant that an expression is, below conversions to the type it is compared with.
fn constant(expr: &Expr, column: &DataType) -> Option<Constant> {
    match expr {
        Expr::Literal { value, ty } => {
            let kind = ComparisonKind::for_column_and_constant(column, ty);
            Some(Constant::Known(value.clone(), kind))
        }
        Expr::Parameter { .. } => Some(Constant::Parameter),
        // A histogram is in UTC, and planning knows no time zone.
        Expr::Cast { kind: CastKind::Explicit | CastKind::TimestampToUtc, .. } => None,
        Expr::Cast { operand, .. } | Expr::Collate { operand, .. } => constant(operand, column),
        _ => None,
    }
}
