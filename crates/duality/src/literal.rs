//! Values of documents: when two are equal, and how a statement gets one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use types::json::{self, JsonRef};
use types::{CollationId, DataType, JsonValue, SqlBytes, TypeKind, Value};

/// What precedes the type's number and the bytes of a binary value.
const HEADER: &[u8] = b"base64:type";

/// Bytes that are equal where two values are: numbers by their value, dates and times as the texts that documents show.
pub(crate) fn identity(value: &JsonValue) -> Vec<u8> {
    let mut out = Vec::new();
    let is_time = matches!(value, JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_));
    let document =
        if is_time { JsonValue::String(unquoted(value)).to_binary() } else { value.to_binary() };
    json::write_key(&document, &mut out);
    out
}

pub(crate) fn alike(a: &JsonValue, b: &JsonValue) -> bool {
    identity(a) == identity(b)
}

/// A value as text, a string without its quotes.
pub(crate) fn unquoted(value: &JsonValue) -> Vec<u8> {
    let mut text = Vec::new();
    JsonRef::new(&value.to_binary()).write_unquoted(&mut text);
    text
}

/// The bytes of a text that shows a binary value; `None` of other texts.
pub(crate) fn binary_value(text: &[u8]) -> Option<JsonValue> {
    let rest = text.strip_prefix(HEADER)?;
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let kind = std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
    let bytes = STANDARD.decode(&rest[colon + 1..]).ok()?;
    Some(JsonValue::Opaque(kind, bytes))
}

/// A value and its type; `None` of NULL, which has none.
pub(crate) fn typed(value: &JsonValue) -> Option<(Value, DataType)> {
    Some(match value {
        JsonValue::Null => return None,
        JsonValue::Bool(value) => (Value::Int(i64::from(*value)), DataType::bigint()),
        JsonValue::Int(value) => (Value::Int(*value), DataType::bigint()),
        JsonValue::UInt(value) => (Value::UInt(*value), DataType::bigint_unsigned()),
        JsonValue::Double(value) => (Value::Double(*value), DataType::double()),
        JsonValue::Decimal(value) => {
            let ty = DataType::decimal(value.precision().clamp(1, 65), value.scale().min(30));
            (Value::Decimal(value.clone()), ty)
        }
        JsonValue::Opaque(_, bytes) => text(bytes, CollationId::BINARY),
        JsonValue::String(value) => text(value, CollationId::UTF8MB4_0900_AI_CI),
        JsonValue::Date(_) | JsonValue::Time(_) | JsonValue::DateTime(_) => {
            text(&unquoted(value), CollationId::UTF8MB4_0900_AI_CI)
        }
        JsonValue::Array(_) | JsonValue::Object(_) => {
            text(&value.to_text(), CollationId::UTF8MB4_0900_AI_CI)
        }
    })
}

/// A text, whose type is the same for texts of about one length, so that they share a plan.
fn text(bytes: &[u8], collation: CollationId) -> (Value, DataType) {
    let length = (bytes.len().max(1) as u32).next_power_of_two().max(64);
    let ty = match length {
        0..=16_383 => DataType::varchar(length, collation),
        _ => DataType { collation, ..DataType::new(TypeKind::LongText, u32::MAX, 0) },
    };
    (Value::Bytes(SqlBytes::from(bytes)), ty)
}
