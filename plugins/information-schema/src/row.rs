//! Small helpers that turn facts into cells.

use errors::Result;
use types::{DateTime, Value};

/// Takes rows.
pub type Emit<'a> = dyn FnMut(&[Value]) -> Result<()> + 'a;

/// Text, or NULL.
pub fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::text)
}

/// A number, or NULL.
pub fn optional_number(number: Option<u64>) -> Value {
    number.map_or(Value::Null, Value::UInt)
}

/// `YES` or `NO`.
pub fn yes_no(truth: bool) -> Value {
    Value::text(if truth { "YES" } else { "NO" })
}

/// A time in UTC; NULL when it is not known. Whole seconds: the columns have no fraction.
pub fn time(unix_micros: i64) -> Value {
    if unix_micros == 0 {
        return Value::Null;
    }
    let seconds = unix_micros - unix_micros.rem_euclid(1_000_000);
    Value::DateTime(DateTime::from_unix_micros(seconds).unwrap_or(DateTime::ZERO))
}

/// The same with its microseconds.
pub fn exact_time(unix_micros: i64) -> Value {
    Value::DateTime(DateTime::from_unix_micros(unix_micros).unwrap_or(DateTime::ZERO))
}

/// The catalog's name, as every table of `information_schema` shows it.
pub fn catalog() -> Value {
    Value::text("def")
}
