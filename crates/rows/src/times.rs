//! From when to when rows of tables that keep history were current.

use types::Value;

/// What takes a row's place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Successor {
    /// It was deleted.
    None,
    /// REPLACE puts another one there.
    Another,
}

/// Whether a time is before another. Of dates too.
pub fn is_before(one: &Value, other: &Value) -> bool {
    matches!((one, other), (Value::DateTime(one), Value::DateTime(other)) if one < other)
        || matches!((one, other), (Value::Date(one), Value::Date(other)) if one < other)
}

/// When a changed row begins to be current, which did at `start`: as before if nothing changed that is kept, and never earlier.
pub fn began(start: &Value, now: Value, is_changed: bool) -> Value {
    if is_changed && is_before(start, &now) { now } else { start.clone() }
}
