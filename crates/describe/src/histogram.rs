//! Histograms as `COLUMN_STATISTICS` shows them.

use catalog::{Histogram, HistogramBucket};
use types::json::{JsonObject, JsonValue};
use types::{CollationId, DataType, DateTime, TypeKind, Value};

/// The type number of texts in JSON.
const JSON_TEXT: u8 = 254;

/// A histogram as `COLUMN_STATISTICS` shows it.
pub(crate) fn shown_histogram(histogram: &Histogram, ty: &DataType) -> Value {
    let share = JsonValue::Double;
    let bucket = |bucket: &HistogramBucket| {
        let lower = shown_value(&bucket.lower);
        JsonValue::Array(if histogram.singleton {
            vec![lower, share(bucket.cumulative)]
        } else {
            let distinct = JsonValue::UInt(bucket.distinct);
            vec![lower, shown_value(&bucket.upper), share(bucket.cumulative), distinct]
        })
    };
    let (data_type, collation) = kind_of(ty);
    let updated = DateTime::from_unix_micros(histogram.updated_micros);
    let text = |text: &str| JsonValue::string(text);
    let members = [
        ("buckets", JsonValue::Array(histogram.buckets.iter().map(bucket).collect())),
        ("data-type", text(data_type)),
        ("auto-update", JsonValue::Bool(histogram.auto_update)),
        ("null-values", share(histogram.nulls)),
        ("collation-id", JsonValue::UInt(u64::from(collation.0))),
        ("last-updated", updated.map_or(JsonValue::Null, JsonValue::DateTime)),
        ("sampling-rate", share(1.0)),
        ("histogram-type", text(if histogram.singleton { "singleton" } else { "equi-height" })),
        ("number-of-buckets-specified", JsonValue::UInt(u64::from(histogram.buckets_max))),
    ];
    let members = members.map(|(name, value)| (name.as_bytes().to_vec(), value)).into();
    JsonValue::Object(JsonObject::from_members(members)).to_value()
}

fn shown_value(value: &Value) -> JsonValue {
    match value {
        Value::Bytes(text) => JsonValue::Opaque(JSON_TEXT, text.to_vec()),
        other => JsonValue::from_sql(other, false),
    }
}

/// The histogram's name and collation of a type.
fn kind_of(ty: &DataType) -> (&'static str, CollationId) {
    let number = CollationId::LATIN1_SWEDISH_CI;
    match ty.kind {
        TypeKind::Enum => ("enum", ty.collation),
        TypeKind::Set => ("set", ty.collation),
        TypeKind::Bit => ("int", CollationId::BINARY),
        TypeKind::Decimal => ("decimal", number),
        TypeKind::Float | TypeKind::Double => ("double", number),
        TypeKind::Date => ("date", number),
        TypeKind::Time => ("time", number),
        TypeKind::DateTime | TypeKind::Timestamp => ("datetime", number),
        _ if ty.is_string() => ("string", ty.collation),
        _ if ty.unsigned && ty.kind != TypeKind::Year => ("uint", number),
        _ => ("int", number),
    }
}
