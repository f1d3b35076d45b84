//! How the server's own queries read the values of columns: for histograms and checksums.

use catalog::Column;
use types::temporal::MICROS_PER_SECOND;
use types::{DataType, DateTime, TypeKind, Value};
use unparse::quote_ident;

/// The expression whose values [`kept_value`] makes values of the column.
pub fn selected(column: &Column) -> String {
    let name = match &column.generated {
        Some(generated) if generated.hidden => format!("({})", generated.expression),
        _ => quote_ident(&column.name),
    };
    match column.ty.kind {
        TypeKind::Enum | TypeKind::Set | TypeKind::Bit => format!("CAST({name} AS UNSIGNED)"),
        // In UTC, independent of the session's time zone.
        TypeKind::Timestamp => format!("UNIX_TIMESTAMP({name})"),
        _ => name,
    }
}

/// A value of the query as the column's own.
pub fn kept_value(value: Value, column: &DataType) -> Value {
    if column.kind != TypeKind::Timestamp {
        return value;
    }
    let micros = match &value {
        Value::Int(seconds) => seconds.checked_mul(MICROS_PER_SECOND),
        Value::Decimal(seconds) => {
            Some((seconds.to_f64() * MICROS_PER_SECOND as f64).round() as i64)
        }
        _ => None,
    };
    micros.and_then(DateTime::from_unix_micros).map_or(value, Value::DateTime)
}
