//! Comparison: the kind as which two types are compared, and comparing and hashing values of that kind.

use std::cmp::Ordering;
use std::hash::Hasher;

use charset::collation_or_binary;
use errors::{Diagnostics, Error, ErrorCode, Result};

use crate::convert::{CastContext, to_decimal, to_f64, to_i64, to_time};
use crate::temporal::parse_datetime;
use crate::{
    CollationId, DataType, SqlBytes, SqlMode, TemporalMode, TypeKind, Value, json, to_text,
};

/// The kind as which two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComparisonKind {
    /// Texts in a collation; bytes when it is `binary`.
    String(CollationId),
    /// Integers, signed and unsigned.
    Integer,
    /// Exact numbers.
    Decimal,
    /// Doubles.
    Double,
    /// Durations.
    Time,
    /// Dates and datetimes; a date is its midnight.
    DateTime,
    /// JSON values.
    Json,
}

/// The family in which a type is compared with its own kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Null,
    String,
    Integer,
    Decimal,
    Double,
    Time,
    Date,
    Json,
}

fn family(ty: &DataType) -> Family {
    use TypeKind::*;
    match ty.kind {
        Null => Family::Null,
        TinyInt | SmallInt | MediumInt | Int | BigInt | Bit | Year => Family::Integer,
        Decimal => Family::Decimal,
        Float | Double => Family::Double,
        Date | DateTime | Timestamp => Family::Date,
        Time => Family::Time,
        Json => Family::Json,
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Enum | Set | Vector | Geometry | Fixed(_) => {
            Family::String
        }
    }
}

/// As a number, for types that are not numbers.
fn number_family(ty: &DataType) -> Family {
    match family(ty) {
        // Index and bits.
        Family::String if ty.is_enum_or_set() => Family::Integer,
        Family::String => Family::Double,
        Family::Date | Family::Time if ty.decimals > 0 => Family::Decimal,
        Family::Date | Family::Time => Family::Integer,
        other => other,
    }
}

impl ComparisonKind {
    /// The kind for comparing two types. The collation of texts is that of the left side, unless only the right has one or
    /// one is `binary`; the binder derives the collation better and sets it with `with_collation`.
    pub fn for_types(a: &DataType, b: &DataType) -> ComparisonKind {
        use Family::*;
        match (family(a), family(b)) {
            (Null, Null) => ComparisonKind::String(CollationId::BINARY),
            (Null, _) => ComparisonKind::for_types(b, b),
            (_, Null) => ComparisonKind::for_types(a, a),
            (Json, _) | (_, Json) => ComparisonKind::Json,
            (String, String) => ComparisonKind::String(common_collation(a, b)),
            (Date, Date | Time | String) | (Time | String, Date) => ComparisonKind::DateTime,
            (Time, Time) => ComparisonKind::Time,
            (Time, String) => ComparisonKind::String(b.collation),
            (String, Time) => ComparisonKind::String(a.collation),
            _ => match (number_family(a), number_family(b)) {
                (Integer, Integer) => ComparisonKind::Integer,
                (Integer | Decimal, Integer | Decimal) => ComparisonKind::Decimal,
                _ => ComparisonKind::Double,
            },
        }
    }

    /// The kind for comparing a column with a constant: a constant text compared with a TIME column is a time.
    pub fn for_column_and_constant(column: &DataType, constant: &DataType) -> ComparisonKind {
        match (family(column), family(constant)) {
            (Family::Time, Family::String) => ComparisonKind::Time,
            _ => ComparisonKind::for_types(column, constant),
        }
    }

    /// The same with another collation, if it is one of texts.
    pub fn with_collation(self, collation: CollationId) -> ComparisonKind {
        match self {
            ComparisonKind::String(_) => ComparisonKind::String(collation),
            other => other,
        }
    }
}

fn common_collation(a: &DataType, b: &DataType) -> CollationId {
    let textual = |ty: &DataType| ty.is_text() || ty.is_enum_or_set();
    match (textual(a), textual(b)) {
        (true, true) => a.collation,
        _ => CollationId::BINARY,
    }
}

/// Order of two numbers that may be signed or not.
fn compare_integers(a: &Value, b: &Value) -> Option<Ordering> {
    Some(match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Int(a), Value::UInt(b)) => i128::from(*a).cmp(&i128::from(*b)),
        (Value::UInt(a), Value::Int(b)) => i128::from(*a).cmp(&i128::from(*b)),
        _ => return None,
    })
}

fn compare_doubles(a: f64, b: f64) -> Ordering {
    // No NaN exists; -0 equals 0.
    a.partial_cmp(&b).unwrap_or(Ordering::Equal)
}

/// Order of two values of a kind; `None` when either is NULL. Values of other types are converted without warnings: use a
/// `Comparator` where warnings matter or a type has members.
pub fn compare_values(kind: ComparisonKind, a: &Value, b: &Value) -> Option<Ordering> {
    if a.is_null() || b.is_null() {
        return None;
    }
    match (kind, a, b) {
        (ComparisonKind::String(collation), Value::Bytes(a), Value::Bytes(b)) => {
            return Some(collation_or_binary(collation).compare(a, b));
        }
        (
            ComparisonKind::Integer,
            Value::Int(_) | Value::UInt(_),
            Value::Int(_) | Value::UInt(_),
        ) => {
            return compare_integers(a, b);
        }
        (ComparisonKind::Decimal, Value::Decimal(a), Value::Decimal(b)) => return Some(a.cmp(b)),
        (ComparisonKind::Double, Value::Double(a), Value::Double(b)) => {
            return Some(compare_doubles(*a, *b));
        }
        (ComparisonKind::DateTime, Value::DateTime(a), Value::DateTime(b)) => {
            return Some(a.cmp(b));
        }
        (ComparisonKind::DateTime, Value::Date(a), Value::Date(b)) => return Some(a.cmp(b)),
        (ComparisonKind::Time, Value::Time(a), Value::Time(b)) => return Some(a.cmp(b)),
        (ComparisonKind::Json, Value::Json(a), Value::Json(b)) => return Some(json::compare(a, b)),
        _ => {}
    }
    let (a, b) = (plain(kind, a)?, plain(kind, b)?);
    compare_plain(kind, &a, &b)
}

/// Both sides are already of the kind.
fn compare_plain(kind: ComparisonKind, a: &Value, b: &Value) -> Option<Ordering> {
    match (kind, a, b) {
        (_, Value::Int(_) | Value::UInt(_), Value::Int(_) | Value::UInt(_)) => {
            compare_integers(a, b)
        }
        (_, Value::Decimal(a), Value::Decimal(b)) => Some(a.cmp(b)),
        (_, Value::Double(a), Value::Double(b)) => Some(compare_doubles(*a, *b)),
        (_, Value::DateTime(a), Value::DateTime(b)) => Some(a.cmp(b)),
        (_, Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        (_, Value::Json(a), Value::Json(b)) => Some(json::compare(a, b)),
        (ComparisonKind::String(collation), Value::Bytes(a), Value::Bytes(b)) => {
            Some(collation_or_binary(collation).compare(a, b))
        }
        _ => None,
    }
}

/// A value converted to a kind, without warnings and without a type; `None` for a value that cannot be.
fn plain(kind: ComparisonKind, value: &Value) -> Option<Value> {
    let ty = DataType::null();
    let mut silent = Diagnostics::new(0);
    let mut ctx = CastContext::new(SqlMode::EMPTY, &mut silent);
    convert(kind, value, &ty, &mut ctx).ok()
}

/// A value as its kind.
fn convert(
    kind: ComparisonKind,
    value: &Value,
    ty: &DataType,
    ctx: &mut CastContext<'_>,
) -> Result<Value> {
    Ok(match (kind, value) {
        (_, Value::Null) => Value::Null,
        (ComparisonKind::String(_), Value::Bytes(_)) if ty.as_fixed().is_none() => value.clone(),
        (ComparisonKind::String(_), _) => {
            let mut text = Vec::new();
            if let Value::Double(number) = value {
                crate::text::write_float_within(*number, ty, usize::MAX, &mut text);
            } else if ty.kind == TypeKind::Null {
                value.write_plain_text(&mut text);
            } else {
                to_text(value, ty, &mut text);
            }
            Value::Bytes(SqlBytes::from(text))
        }
        (ComparisonKind::Integer, Value::Int(_) | Value::UInt(_)) => value.clone(),
        (ComparisonKind::Integer, _) => Value::Int(to_i64(value, ty, ctx)),
        (ComparisonKind::Decimal, _) => Value::Decimal(to_decimal(value, ty, ctx)),
        (ComparisonKind::Double, _) => Value::Double(to_f64(value, ty, ctx)),
        (ComparisonKind::Time, Value::Time(_)) => value.clone(),
        (ComparisonKind::Time, Value::Bytes(text)) => return time_of_text(text),
        (ComparisonKind::Time, _) => {
            to_time(value, ty, 6, TemporalMode::default(), ctx).map_or(Value::Null, Value::Time)
        }
        (ComparisonKind::DateTime, _) => return datetime_of(value, ty, ctx),
        (ComparisonKind::Json, Value::Json(_)) => value.clone(),
        // A truth value is not a JSON number.
        (ComparisonKind::Json, Value::Int(number)) if ty.is_truth() => {
            json::JsonValue::Bool(*number != 0).to_value()
        }
        (ComparisonKind::Json, _) => {
            let binary = ty.is_binary();
            json::JsonValue::from_sql(value, binary).to_value()
        }
    })
}

fn wrong_value(kind: &str, text: &[u8]) -> Error {
    let shown = crate::convert::text_for_message(text).into_owned();
    Error::with(ErrorCode::WRONG_VALUE, &[&kind, &shown])
}

fn time_of_text(text: &[u8]) -> Result<Value> {
    match crate::temporal::parse_time(text, 6, TemporalMode::default()).value {
        Some(time) => Ok(Value::Time(time)),
        None => Err(wrong_value("TIME", text)),
    }
}

fn datetime_of(value: &Value, ty: &DataType, ctx: &mut CastContext<'_>) -> Result<Value> {
    let datetime = match value {
        Value::DateTime(datetime) => Some(*datetime),
        Value::Date(date) => Some(date.at_midnight()),
        Value::Time(time) => ctx.today.at_midnight().add_micros(time.micros()),
        Value::Bytes(text) => match parse_datetime(text, 6, ctx.sql_mode.temporal()).value {
            Some(datetime) => Some(datetime),
            None => return Err(wrong_value("DATETIME", text)),
        },
        _ => crate::convert::to_datetime(value, ty, 6, TemporalMode::default(), ctx),
    };
    Ok(datetime.map_or(Value::Null, Value::DateTime))
}

/// Feeds a hasher so that values that compare equal under a kind hash alike.
pub fn hash_value<H: Hasher>(kind: ComparisonKind, value: &Value, state: &mut H) {
    if value.is_null() {
        state.write_u8(0);
        return;
    }
    match (kind, value) {
        (ComparisonKind::String(collation), Value::Bytes(text)) => {
            collation_or_binary(collation).hash(text, state);
        }
        (ComparisonKind::Integer, Value::Int(number)) => state.write_i64(*number),
        // Above the signed range no signed value is equal.
        (ComparisonKind::Integer, Value::UInt(number)) => state.write_i64(*number as i64),
        (ComparisonKind::Double, Value::Double(number)) => {
            state.write_u64(if *number == 0.0 { 0 } else { number.to_bits() });
        }
        (ComparisonKind::Decimal, Value::Decimal(number)) => {
            std::hash::Hash::hash(number, state);
        }
        (ComparisonKind::DateTime, Value::DateTime(datetime)) => state.write_u64(datetime.packed()),
        (ComparisonKind::DateTime, Value::Date(date)) => {
            state.write_u64(date.at_midnight().packed());
        }
        (ComparisonKind::Time, Value::Time(time)) => state.write_i64(time.micros()),
        (ComparisonKind::Json, Value::Json(document)) => json::hash(document, state),
        _ => match plain(kind, value) {
            Some(Value::Null) | None => state.write_u8(1),
            Some(converted) => hash_value(kind, &converted, state),
        },
    }
}

/// Compares values of two static types.
#[derive(Clone, Debug)]
pub struct Comparator {
    kind: ComparisonKind,
    left: DataType,
    right: DataType,
    direct: bool,
}

impl Comparator {
    /// For values of these types.
    pub fn new(left: &DataType, right: &DataType) -> Comparator {
        Comparator::with_kind(ComparisonKind::for_types(left, right), left, right)
    }

    /// For values of these types, compared as `kind`.
    pub fn with_kind(kind: ComparisonKind, left: &DataType, right: &DataType) -> Comparator {
        // A text beside a UUID or an address is compared with its text.
        let alike = left.as_fixed() == right.as_fixed();
        let direct = alike && is_direct(kind, left) && is_direct(kind, right);
        Comparator { kind, left: left.clone(), right: right.clone(), direct }
    }

    /// The kind as which the values are compared.
    pub fn kind(&self) -> ComparisonKind {
        self.kind
    }

    /// Whether neither side needs a conversion.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Order; `None` when either side is NULL. Fails for a text that is not a date when compared with a date.
    pub fn compare(
        &self,
        a: &Value,
        b: &Value,
        ctx: &mut CastContext<'_>,
    ) -> Result<Option<Ordering>> {
        if self.direct {
            return Ok(compare_values(self.kind, a, b));
        }
        if a.is_null() || b.is_null() {
            return Ok(None);
        }
        let a = self.left(a, ctx)?;
        let b = self.right(b, ctx)?;
        Ok(compare_plain(self.kind, &a, &b))
    }

    /// A value of the left side converted to the kind: the key that a hash join keeps.
    pub fn left(&self, value: &Value, ctx: &mut CastContext<'_>) -> Result<Value> {
        self.side(value, &self.left, &self.right, ctx)
    }

    /// A value of the right side converted to the kind.
    pub fn right(&self, value: &Value, ctx: &mut CastContext<'_>) -> Result<Value> {
        self.side(value, &self.right, &self.left, ctx)
    }

    fn side(
        &self,
        value: &Value,
        ty: &DataType,
        other: &DataType,
        ctx: &mut CastContext<'_>,
    ) -> Result<Value> {
        let converted = convert(self.kind, value, ty, ctx);
        match (converted, value) {
            // The message names the type of the other side.
            (Err(_), Value::Bytes(text)) if other.kind == TypeKind::Date => {
                Err(wrong_value("DATE", text))
            }
            (Err(_), Value::Bytes(text)) if other.kind == TypeKind::Timestamp => {
                Err(wrong_value("TIMESTAMP", text))
            }
            (result, _) => result,
        }
    }
}

/// Whether values of a type already are of the kind.
fn is_direct(kind: ComparisonKind, ty: &DataType) -> bool {
    match kind {
        ComparisonKind::String(_) => ty.is_string() || ty.as_fixed().is_some(),
        ComparisonKind::Integer => {
            ty.is_integer() || matches!(ty.kind, TypeKind::Bit | TypeKind::Year)
        }
        ComparisonKind::Decimal => ty.kind == TypeKind::Decimal,
        ComparisonKind::Double => matches!(ty.kind, TypeKind::Float | TypeKind::Double),
        ComparisonKind::Time => ty.kind == TypeKind::Time,
        ComparisonKind::DateTime => ty.has_date(),
        ComparisonKind::Json => ty.kind == TypeKind::Json,
    }
}

/// Order of two values of static types, `None` when either is NULL or cannot be compared. Warnings are dropped.
pub fn compare(a: &Value, ta: &DataType, b: &Value, tb: &DataType) -> Option<Ordering> {
    let mut silent = Diagnostics::new(0);
    let mut ctx = CastContext::new(SqlMode::EMPTY, &mut silent);
    Comparator::new(ta, tb).compare(a, b, &mut ctx).ok().flatten()
}

/// Order for ORDER BY and keys: NULL first, values of one type by that type.
pub fn compare_for_sort(kind: ComparisonKind, a: &Value, b: &Value) -> Ordering {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ordering::Equal,
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => compare_values(kind, a, b).unwrap_or(Ordering::Equal),
    }
}

impl ComparisonKind {
    /// The kind for sorting and grouping values of one type: ENUM and SET by number.
    pub fn for_sort(ty: &DataType) -> ComparisonKind {
        if ty.is_enum_or_set() {
            return ComparisonKind::Integer;
        }
        ComparisonKind::for_types(ty, ty)
    }
}
