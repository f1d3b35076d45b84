//! A value at run time. Its meaning depends on the static `DataType` that accompanies it.

use crate::{Date, DateTime, Decimal, SqlBytes, Time};

/// One SQL value. ENUM, SET, BIT and YEAR are `UInt`; FLOAT is `Double`; strings of all kinds are `Bytes`.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Signed integer.
    Int(i64),
    /// Unsigned integer, enum index, set bits, bit string or year.
    UInt(u64),
    /// FLOAT and DOUBLE. Never NaN or infinite.
    Double(f64),
    /// Exact number.
    Decimal(Decimal),
    /// Text in utf8mb4, or binary.
    Bytes(SqlBytes),
    /// DATE.
    Date(Date),
    /// TIME, a signed duration.
    Time(Time),
    /// DATETIME and TIMESTAMP.
    DateTime(DateTime),
    /// Binary JSON document.
    Json(SqlBytes),
}

impl Value {
    /// Whether this is SQL NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A text value.
    pub fn text(text: &str) -> Value {
        Value::Bytes(SqlBytes::from(text))
    }

    /// 1 or 0.
    pub fn bool(truth: bool) -> Value {
        Value::Int(i64::from(truth))
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::UInt(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::text(text)
    }
}
