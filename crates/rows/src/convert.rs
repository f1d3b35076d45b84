//! Conversions at run time: `types` performs them; this module gives them the session's facts and picks the kind of conversion.

use std::borrow::Cow;
use std::cmp::Ordering;

use errors::{Diagnostics, Error, ErrorCode, Result};
use plan::CastKind;
use plugin_api::{Coercion, FunctionContext};
use types::temporal::{TemporalMode, place_among_dates, place_among_datetimes};
use types::{
    CastContext, DataType, DateTime, Decimal, SqlBytes, StoreMode, TypeKind, Value, ZoneRules,
    to_text,
};

/// The context for `types`, for no column in particular.
pub fn context<'x>(session: &'x mut FunctionContext<'_>) -> CastContext<'x> {
    CastContext {
        sql_mode: session.sql_mode,
        diagnostics: &mut *session.diagnostics,
        time_zone: session.time_zone,
        today: session.now.date(),
        column: "",
        row: 1,
    }
}

/// Three-valued truth of a value.
pub fn truth(
    value: &Value,
    ty: &DataType,
    session: &mut FunctionContext<'_>,
) -> Result<Option<bool>> {
    Ok(match value {
        Value::Null => None,
        Value::Int(number) => Some(*number != 0),
        value => Some(types::to_bool(value, ty, &mut context(session))),
    })
}

/// As a number of double precision.
pub fn to_double(value: &Value, ty: &DataType, session: &mut FunctionContext<'_>) -> Result<f64> {
    Ok(match value {
        Value::Double(number) => *number,
        Value::Int(number) => *number as f64,
        value => types::to_f64(value, ty, &mut context(session)),
    })
}

/// As an exact number.
pub fn to_decimal(
    value: &Value,
    ty: &DataType,
    session: &mut FunctionContext<'_>,
) -> Result<Decimal> {
    Ok(match value {
        Value::Decimal(number) => number.clone(),
        Value::Int(number) => Decimal::from_i64(*number),
        value => types::to_decimal(value, ty, &mut context(session)),
    })
}

/// As an integer that may be signed or not.
pub fn to_i128(value: &Value, ty: &DataType, session: &mut FunctionContext<'_>) -> Result<i128> {
    Ok(match value {
        Value::Int(number) => i128::from(*number),
        Value::UInt(number) => i128::from(*number),
        value => i128::from(types::to_i64(value, ty, &mut context(session))),
    })
}

/// As 64 bits; negative numbers in two's complement.
pub fn to_bits(value: &Value, ty: &DataType, session: &mut FunctionContext<'_>) -> Result<u64> {
    Ok(match value {
        Value::Int(number) => *number as u64,
        Value::UInt(number) => *number,
        Value::Decimal(number) if number.is_negative() => number.to_i64().0 as u64,
        Value::Double(number) if *number < 0.0 => number.round_ties_even() as i64 as u64,
        value => types::to_u64(value, ty, &mut context(session)),
    })
}

/// The text of a value.
pub fn text_bytes<'v>(value: &'v Value, ty: &DataType) -> Cow<'v, [u8]> {
    match value {
        Value::Bytes(bytes) if ty.as_fixed().is_none() => Cow::Borrowed(bytes),
        value => {
            let mut text = Vec::new();
            to_text(value, ty, &mut text);
            Cow::Owned(text)
        }
    }
}

fn text_value(value: Value, ty: &DataType) -> Value {
    match value {
        Value::Null => value,
        Value::Bytes(_) if ty.as_fixed().is_none() => value,
        value => Value::Bytes(SqlBytes::from(text_bytes(&value, ty).into_owned())),
    }
}

/// An argument as its function wants it.
pub fn coerce(
    value: Value,
    from: &DataType,
    coercion: &Coercion,
    session: &mut FunctionContext<'_>,
) -> Result<Value> {
    coerce_in(value, from, coercion, &mut context(session))
}

/// As `coerce`, on any thread.
pub fn coerce_in(
    value: Value,
    from: &DataType,
    coercion: &Coercion,
    ctx: &mut CastContext<'_>,
) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mode = ctx.sql_mode.temporal();
    Ok(match coercion {
        Coercion::AsIs => value,
        Coercion::Integer => match value {
            Value::Int(_) | Value::UInt(_) => value,
            value => Value::Int(types::to_i64(&value, from, ctx)),
        },
        Coercion::Double => match value {
            Value::Double(_) => value,
            Value::Int(number) => Value::Double(number as f64),
            value => Value::Double(types::to_f64(&value, from, ctx)),
        },
        Coercion::Decimal => match value {
            Value::Decimal(_) => value,
            Value::Int(number) => Value::Decimal(Decimal::from_i64(number)),
            value => Value::Decimal(types::to_decimal(&value, from, ctx)),
        },
        Coercion::Text => text_value(value, from),
        Coercion::Bytes => types::cast(&value, from, &DataType::varbinary(u32::MAX), ctx)?,
        Coercion::Date => types::to_date(&value, from, mode, ctx).map_or(Value::Null, Value::Date),
        Coercion::DateTime => {
            types::to_datetime(&value, from, 6, mode, ctx).map_or(Value::Null, Value::DateTime)
        }
        Coercion::Time => {
            types::to_time(&value, from, 6, mode, ctx).map_or(Value::Null, Value::Time)
        }
        Coercion::Json => {
            let ty = DataType::new(TypeKind::Json, u32::MAX, 0);
            types::cast(&value, from, &ty, ctx)?
        }
        Coercion::To(ty) => types::cast(&value, from, ty, ctx)?,
    })
}

/// UTC to the session time zone; the zero date stays.
pub fn to_local(timestamp: DateTime, zone: &dyn ZoneRules) -> DateTime {
    if timestamp.is_zero() {
        return timestamp;
    }
    timestamp.to_unix_micros().map_or(timestamp, |micros| zone.utc_to_local(micros))
}

/// Session time zone to UTC.
fn to_utc(timestamp: DateTime, zone: &dyn ZoneRules) -> Option<DateTime> {
    if timestamp.is_zero() {
        return Some(timestamp);
    }
    DateTime::from_unix_micros(zone.local_to_utc(timestamp)?)
}

/// CAST and the binder's conversions.
pub fn cast(
    value: Value,
    from: &DataType,
    to: &DataType,
    kind: CastKind,
    session: &mut FunctionContext<'_>,
) -> Result<Value> {
    match (kind, &value) {
        (_, Value::Null) => Ok(Value::Null),
        (CastKind::TimestampToLocal, Value::DateTime(timestamp)) => {
            Ok(Value::DateTime(to_local(*timestamp, session.time_zone)))
        }
        (CastKind::TimestampToUtc, _) => {
            let timestamp = types::cast(&value, from, to, &mut context(session))?;
            Ok(match timestamp {
                Value::DateTime(timestamp) => {
                    to_utc(timestamp, session.time_zone).map_or(Value::Null, Value::DateTime)
                }
                other => other,
            })
        }
        (CastKind::Compared(kind), _) => {
            let read = types::cast(&value, from, to, &mut context(session))?;
            if read.is_null() { Err(no_date(&value, kind)) } else { Ok(read) }
        }
        (CastKind::BesideDate, _) => {
            let timestamp = types::cast(&value, from, to, &mut context(session))?;
            Ok(match to.kind {
                _ if !timestamp.is_null() => timestamp,
                types::TypeKind::Time => Value::Time(types::Time::ZERO),
                types::TypeKind::Date => Value::Date(types::Date::ZERO),
                _ => Value::DateTime(DateTime::ZERO),
            })
        }
        (CastKind::NumberBeside(kind), Value::Int(_) | Value::UInt(_)) => {
            Ok(number_beside(&value, from, kind, session))
        }
        (CastKind::NumberBeside(_), _) => types::cast(&value, from, to, &mut context(session)),
        (CastKind::Fitting { placeholder }, Value::Bytes(text)) => {
            let fits = types::must_convert(text, from.collation, to.collation);
            match (fits, placeholder) {
                (Ok(()), _) if from.is_binary() => {
                    let charset = charset::collation_or_binary(to.collation).charset;
                    match charset.keeps_utf8() {
                        true => Ok(value),
                        false => {
                            let decoded = charset.decode(&charset.whole_units(text)).bytes;
                            Ok(Value::Bytes(decoded.into()))
                        }
                    }
                }
                (Ok(()), _) => Ok(value),
                (Err(_), true) => Err(no_conversion(from, to)),
                (Err(error), false) => Err(error),
            }
        }
        (CastKind::Fitting { .. }, _) => types::cast(&value, from, to, &mut context(session)),
        (CastKind::Exact(kind), _) => Ok(Value::Decimal(exact(&value, from, kind, session))),
        (CastKind::BesideYear, _) => {
            Ok(year(types::cast(&value, from, to, &mut context(session))?))
        }
        (CastKind::Explicit | CastKind::Implicit | CastKind::TimestampToLocal, _) => {
            types::cast(&value, from, to, &mut context(session))
        }
    }
}

/// 3988: a client's parameter that the character set it meets cannot take.
#[cold]
fn no_conversion(from: &DataType, to: &DataType) -> Error {
    let name = |ty: &DataType| charset::collation_or_binary(ty.collation).name;
    Error::with(ErrorCode::IMPOSSIBLE_STRING_CONVERSION, &[&name(from), &name(to), &"parameter"])
}

/// 1525: a constant that is compared with a date and is not one.
fn no_date(value: &Value, kind: TypeKind) -> Error {
    let kind = match kind {
        TypeKind::Date => "DATE",
        TypeKind::Timestamp => "TIMESTAMP",
        _ => "DATETIME",
    };
    let mut text = Vec::new();
    value.write_plain_text(&mut text);
    let text = String::from_utf8_lossy(&text);
    Error::with(ErrorCode::WRONG_VALUE, &[&kind, &&*text])
}

/// A constant as an exact number. A text that is not a number warns, as in the reference, of a double beside integers.
fn exact(
    value: &Value,
    from: &DataType,
    kind: TypeKind,
    session: &mut FunctionContext<'_>,
) -> Decimal {
    match value {
        Value::Bytes(text) if kind != TypeKind::Decimal => {
            let parsed = Decimal::parse_lenient(text);
            if parsed.truncated() && !text.trim_ascii().is_empty() {
                context(session).warn_truncated("DOUBLE", text);
            }
            parsed.value
        }
        value => types::to_decimal(value, from, &mut context(session)),
    }
}

/// A number that is compared with dates, or with dates and times: as the date that it represents, or else its position among them.
fn number_beside(
    value: &Value,
    from: &DataType,
    kind: TypeKind,
    session: &mut FunctionContext<'_>,
) -> Value {
    let of_dates = kind == TypeKind::Date;
    // A day that the month lacks keeps its place, and so does the zero date.
    let mode = TemporalMode {
        no_zero_in_date: true,
        allow_invalid_dates: true,
        ..TemporalMode::default()
    };
    let read = types::to_datetime(value, from, 6, mode, &mut context(session));
    let digits = match value {
        Value::UInt(number) => i64::try_from(*number).unwrap_or(i64::MAX),
        Value::Int(number) => *number,
        _ => 0,
    };
    Value::DateTime(match read {
        Some(read) if of_dates => read.date().at_midnight(),
        Some(read) => read,
        None if of_dates => place_among_dates(digits),
        None => place_among_datetimes(digits),
    })
}

/// A number with the century that it has as a year.
fn year(value: Value) -> Value {
    let century = |short: i64| match short {
        1..=69 => 2000,
        70..=99 => 1900,
        _ => 0,
    };
    match value {
        Value::Int(number) => Value::Int(number + century(number)),
        Value::UInt(number) => Value::UInt(number + century(number.min(100) as i64) as u64),
        Value::Double(number) if number.fract() == 0.0 => {
            Value::Double(number + century(number as i64) as f64)
        }
        other => other,
    }
}

/// The same value in the representation of another type; texts are never truncated.
pub fn unify(
    value: Value,
    from: &DataType,
    to: &DataType,
    session: &mut FunctionContext<'_>,
) -> Result<Value> {
    if value.is_null() || to.kind == TypeKind::Null {
        return Ok(value);
    }
    if to.is_string() {
        return Ok(text_value(value, from));
    }
    match (&value, to.kind) {
        (Value::Double(_), TypeKind::Double | TypeKind::Float)
        | (Value::Json(_), TypeKind::Json) => Ok(value),
        _ => types::cast(&value, from, to, &mut context(session)),
    }
}

/// A column that is written.
pub struct Target<'t> {
    /// For messages.
    pub name: &'t str,
    /// Its type.
    pub ty: &'t DataType,
    /// The row that is written, counted from 1, for messages.
    pub row: u64,
    /// Whether a value that does not fit is an error.
    pub mode: StoreMode,
}

/// Converts a value to the type of a column.
pub fn store(
    value: &Value,
    from: &DataType,
    target: &Target<'_>,
    session: &mut FunctionContext<'_>,
) -> Result<Value> {
    let plain = match (value, target.ty.kind) {
        (Value::Null, _) => return Ok(Value::Null),
        (Value::Int(number), TypeKind::BigInt) => !target.ty.unsigned || *number >= 0,
        (Value::UInt(_), TypeKind::BigInt) => target.ty.unsigned,
        _ => false,
    };
    if plain {
        return Ok(match value {
            Value::Int(number) if target.ty.unsigned => Value::UInt(*number as u64),
            value => value.clone(),
        });
    }
    let mut ctx = context(session);
    ctx.column = target.name;
    ctx.row = target.row;
    types::store(value, from, target.ty, &mut ctx, target.mode)
}

/// How a value fits a key column.
pub enum KeyFit {
    /// It is one of the column's values.
    Exact(Value),
    /// The nearest of them. With an order, none of them is between the two, and the value compares like this with it.
    Rounded(Value, Option<Ordering>),
}

/// Whether the value is one of the column's values unchanged: it can be encoded at once.
pub fn is_exact_key(value: &Value, ty: &DataType) -> bool {
    match value {
        Value::Int(number) if !ty.unsigned => match ty.kind {
            TypeKind::BigInt => true,
            TypeKind::Int => i32::try_from(*number).is_ok(),
            TypeKind::MediumInt => (-(1 << 23)..1 << 23).contains(number),
            TypeKind::SmallInt => i16::try_from(*number).is_ok(),
            TypeKind::TinyInt => i8::try_from(*number).is_ok(),
            _ => false,
        },
        Value::UInt(number) if ty.unsigned => match ty.kind {
            TypeKind::BigInt => true,
            TypeKind::Int => u32::try_from(*number).is_ok(),
            TypeKind::MediumInt => *number < 1 << 24,
            TypeKind::SmallInt => u16::try_from(*number).is_ok(),
            TypeKind::TinyInt => u8::try_from(*number).is_ok(),
            _ => false,
        },
        Value::Bytes(_) => ty.is_string(),
        Value::Date(_) => ty.kind == TypeKind::Date,
        Value::DateTime(_) => ty.kind == TypeKind::DateTime,
        Value::Time(_) => ty.kind == TypeKind::Time,
        Value::Double(_) => ty.kind == TypeKind::Double,
        _ => false,
    }
}

/// The year before a number, or the first or last year.
fn nearest_year(number: i64) -> Value {
    match number {
        ..=1900 => Value::UInt(0),
        _ => Value::UInt(number.min(2155) as u64),
    }
}

/// Fits a value that is not NULL to a key column.
pub fn to_key(
    value: Value,
    from: &DataType,
    to: &DataType,
    is_utc: bool,
    session: &mut FunctionContext<'_>,
) -> Result<KeyFit> {
    if to.kind == TypeKind::Timestamp {
        if is_utc {
            return Ok(KeyFit::Exact(value));
        }
        let timestamp = cast(value, from, to, CastKind::TimestampToUtc, session)?;
        return Ok(KeyFit::Exact(timestamp));
    }
    if is_exact_key(&value, to) {
        return Ok(KeyFit::Exact(value));
    }
    if to.as_fixed().is_some() && from.kind == to.kind {
        return Ok(KeyFit::Exact(value));
    }
    let mut silent = Diagnostics::new(0);
    let mut ctx = CastContext { diagnostics: &mut silent, ..context(session) };
    let fitted = match to.kind {
        // A value that is not a year would be stored as the year zero.
        TypeKind::Year => nearest_year(types::to_i64(&value, from, &mut ctx)),
        _ => types::store(&value, from, to, &mut ctx, StoreMode::Lenient)?,
    };
    let order = types::compare::compare(&value, from, &fitted, to);
    Ok(match order {
        Some(Ordering::Equal) => KeyFit::Exact(fitted),
        order => KeyFit::Rounded(fitted, order.filter(|_| to.is_integer())),
    })
}

/// The default where nothing better is allowed: 0, the empty string, the zero date, the first member.
pub fn implicit_default(ty: &DataType) -> Value {
    use TypeKind::*;
    match ty.kind {
        Null => Value::Null,
        TinyInt | SmallInt | MediumInt | Int | BigInt if ty.unsigned => Value::UInt(0),
        TinyInt | SmallInt | MediumInt | Int | BigInt => Value::Int(0),
        Decimal => Value::Decimal(types::Decimal::ZERO.rescale(ty.decimals)),
        Float | Double => Value::Double(0.0),
        Bit | Year | Set => Value::UInt(0),
        Enum => Value::UInt(1),
        Date => Value::Date(types::Date::ZERO),
        Time => Value::Time(types::Time::ZERO),
        DateTime | Timestamp => Value::DateTime(types::DateTime::ZERO),
        Json => types::JsonValue::Null.to_value(),
        Fixed(kind) => Value::Bytes(kind.zero()),
        Char | VarChar | Binary | VarBinary | TinyText | Text | MediumText | LongText
        | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry => {
            Value::Bytes(types::SqlBytes::EMPTY)
        }
    }
}

/// Warnings that are errors when a statement in strict mode changes data.
pub const STRICT_WARNINGS: &[ErrorCode] = &[
    ErrorCode::TRUNCATED_WRONG_VALUE,
    ErrorCode::WRONG_VALUE_FOR_TYPE,
    ErrorCode::WARN_DATA_OUT_OF_RANGE,
    ErrorCode::CUT_VALUE_GROUP_CONCAT,
    ErrorCode::DATETIME_FUNCTION_OVERFLOW,
    ErrorCode::DATA_TRUNCATED,
    ErrorCode::DIVISION_BY_ZERO,
    ErrorCode::INVALID_ARGUMENT_FOR_LOGARITHM,
    ErrorCode::WARN_NULL_TO_NOTNULL,
    ErrorCode::TRUNCATED_WRONG_VALUE_FOR_FIELD,
    ErrorCode::DATA_TOO_LONG,
];
