//! The elements of a JSON array as values of one SQL type: the entries of a multi-valued index (docs/format/key.md), and those of a spatial
//! one.

use errors::{Diagnostics, Level};

use crate::geometry::cells::row_cells;
use crate::json::{JsonRef, JsonType, JsonValue};
use crate::key::encode_part;
use crate::{CastContext, DataType, Decimal, SqlMode, TypeKind, Value};

/// Codes of warnings about the delimiters of dates and times.
const DEPRECATED_DELIMITERS: [u16; 2] = [4095, 4096];

/// Why a document has no such array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementFault {
    /// The document is of a type that no element has.
    Refused(JsonType),
    /// An element is an array or an object.
    Nested,
    /// An element is `null`, or says nothing of the type.
    Invalid,
    /// A number that no integer can be.
    NoInteger,
    /// A number that the type does not hold.
    OutOfRange,
    /// A text that is not a date or time.
    Truncated,
    /// A text that is longer than the type allows.
    TooLong,
}

/// The document's elements as values of type `ty`, each once, in the order of their keys. A scalar is its own only element.
///
/// # Errors
/// An element that the type does not hold.
pub fn array_of(
    document: JsonRef<'_>,
    ty: &DataType,
    sql_mode: SqlMode,
) -> Result<JsonValue, ElementFault> {
    let mut elements: Vec<(Vec<u8>, JsonValue)> = Vec::new();
    let mut add = |element: JsonRef<'_>| {
        let value = convert(element, ty, sql_mode)?;
        let mut key = Vec::new();
        encode_part(&value, ty, None, false, &mut key);
        elements.push((key, shown(&value, ty)));
        Ok(())
    };
    let kind = document.kind();
    if matches!(kind, JsonType::Object | JsonType::Bool | JsonType::Opaque(_)) {
        return Err(ElementFault::Refused(kind));
    }
    if kind == JsonType::Array {
        document.elements().try_for_each(add)?;
    } else {
        add(document)?;
    }
    elements.sort_by(|(one, _), (other, _)| one.cmp(other));
    elements.dedup_by(|(one, _), (other, _)| one == other);
    Ok(JsonValue::Array(elements.into_iter().map(|(_, value)| value).collect()))
}

/// What a column has entries for, where a row may have several: the elements of its array, the cells of its geometry, or NULL.
pub fn entry_values(value: &Value, ty: &DataType) -> Vec<Value> {
    let document = match value {
        Value::Json(document) => document,
        Value::Bytes(geometry) => {
            return row_cells(geometry).into_iter().map(Value::UInt).collect();
        }
        Value::Null
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_) => return vec![Value::Null],
    };
    JsonRef::new(document).elements().map(|element| element_value(element, ty)).collect()
}

/// An element of an array that `array_of` made, as a value of the type; NULL for any other.
pub fn element_value(element: JsonRef<'_>, ty: &DataType) -> Value {
    let found = match element.kind() {
        JsonType::Int => element.as_i64().map(|number| integer(i128::from(number), ty)),
        JsonType::UInt => element.as_u64().map(|number| integer(i128::from(number), ty)),
        JsonType::Decimal => element.as_decimal().map(Value::Decimal),
        JsonType::Date => element.as_date().map(Value::Date),
        JsonType::Time => element.as_time().map(Value::Time),
        JsonType::DateTime => element.as_datetime().map(Value::DateTime),
        JsonType::String | JsonType::Opaque(_) => element.as_bytes().and_then(|bytes| {
            let bytes = match ty.as_fixed() {
                Some(kind) => kind.parse(bytes)?,
                None => bytes.to_vec().into(),
            };
            Some(Value::Bytes(bytes))
        }),
        JsonType::Null | JsonType::Bool | JsonType::Double | JsonType::Array | JsonType::Object => {
            None
        }
    };
    found.unwrap_or(Value::Null)
}

/// A value as an element of an array: a UUID or an address as its text.
pub fn shown(value: &Value, ty: &DataType) -> JsonValue {
    if let (Some(kind), Value::Bytes(bytes)) = (ty.as_fixed(), value) {
        let mut text = Vec::new();
        kind.write_text(bytes, &mut text);
        return JsonValue::string(&text);
    }
    JsonValue::from_sql(value, is_binary(ty))
}

fn is_binary(ty: &DataType) -> bool {
    ty.is_string() && ty.is_binary()
}

fn integer(number: i128, ty: &DataType) -> Value {
    match ty.unsigned {
        true => Value::UInt(number.clamp(0, i128::from(u64::MAX)) as u64),
        false => Value::Int(number.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64),
    }
}

fn convert(element: JsonRef<'_>, ty: &DataType, sql_mode: SqlMode) -> Result<Value, ElementFault> {
    if !element.kind().is_scalar() {
        return Err(ElementFault::Nested);
    }
    if element.kind() == JsonType::Null {
        return Err(ElementFault::Invalid);
    }
    if ty.kind == TypeKind::BigInt {
        to_integer(element, ty)
    } else if ty.kind == TypeKind::Decimal {
        to_exact(element, ty)
    } else if ty.is_temporal() {
        to_temporal(element, ty, sql_mode)
    } else if let Some(kind) = ty.as_fixed() {
        let text = element.as_bytes().filter(|_| element.kind() == JsonType::String);
        let value = text.and_then(|text| kind.parse(text)).map(Value::Bytes);
        value.ok_or(ElementFault::Truncated)
    } else {
        to_string(element, ty)
    }
}

fn to_integer(element: JsonRef<'_>, ty: &DataType) -> Result<Value, ElementFault> {
    let number = match element.kind() {
        JsonType::Bool => i128::from(element.as_bool().unwrap_or(false)),
        JsonType::Int => i128::from(element.as_i64().unwrap_or(0)),
        JsonType::UInt => i128::from(element.as_u64().unwrap_or(0)),
        JsonType::Double => {
            let number = element.as_f64().unwrap_or(0.0).round_ties_even();
            // 2^64, the first number that no integer can be.
            if number.abs() >= 18_446_744_073_709_551_616.0 {
                return Err(ElementFault::NoInteger);
            }
            number as i128
        }
        JsonType::Decimal => {
            let number = element.as_decimal().ok_or(ElementFault::Invalid)?.round(0);
            number.as_i128().map(|(number, _)| number).ok_or(ElementFault::NoInteger)?
        }
        JsonType::String => {
            let text = element.as_bytes().and_then(|text| std::str::from_utf8(text).ok());
            // Blanks may come before a number, not after it.
            let digits = text.ok_or(ElementFault::Invalid)?.trim_ascii_start();
            let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
            if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(ElementFault::Invalid);
            }
            digits.parse().map_err(|_| ElementFault::NoInteger)?
        }
        JsonType::Null
        | JsonType::Date
        | JsonType::Time
        | JsonType::DateTime
        | JsonType::Opaque(_)
        | JsonType::Array
        | JsonType::Object => return Err(ElementFault::Invalid),
    };
    let fits = match ty.unsigned {
        true => u64::try_from(number).is_ok(),
        false => i64::try_from(number).is_ok(),
    };
    if fits { Ok(integer(number, ty)) } else { Err(ElementFault::OutOfRange) }
}

fn to_exact(element: JsonRef<'_>, ty: &DataType) -> Result<Value, ElementFault> {
    let number = match element.kind() {
        JsonType::Bool => Some(Decimal::from_i64(i64::from(element.as_bool().unwrap_or(false)))),
        JsonType::Int => element.as_i64().map(Decimal::from_i64),
        JsonType::UInt => element.as_u64().map(Decimal::from_u64),
        JsonType::Double => match element.as_f64().map(Decimal::from_f64) {
            Some(None) => return Err(ElementFault::OutOfRange),
            number => number.flatten(),
        },
        JsonType::Decimal => element.as_decimal(),
        JsonType::String => element.as_bytes().and_then(Decimal::parse),
        JsonType::Null
        | JsonType::Date
        | JsonType::Time
        | JsonType::DateTime
        | JsonType::Opaque(_)
        | JsonType::Array
        | JsonType::Object => None,
    };
    let number = number.ok_or(ElementFault::Invalid)?.rescale(ty.decimals);
    if number.integer_digits() > ty.length.saturating_sub(u32::from(ty.decimals)) {
        return Err(ElementFault::OutOfRange);
    }
    Ok(Value::Decimal(number))
}

fn to_temporal(
    element: JsonRef<'_>,
    ty: &DataType,
    sql_mode: SqlMode,
) -> Result<Value, ElementFault> {
    let value = match element.kind() {
        JsonType::Int => element.as_i64().map(Value::Int),
        JsonType::UInt => element.as_u64().map(Value::UInt),
        JsonType::Double => element.as_f64().map(Value::Double),
        JsonType::Decimal => element.as_decimal().map(Value::Decimal),
        JsonType::Date => element.as_date().map(Value::Date),
        JsonType::Time => element.as_time().map(Value::Time),
        JsonType::DateTime => element.as_datetime().map(Value::DateTime),
        JsonType::String => element.as_bytes().map(|text| Value::Bytes(text.to_vec().into())),
        JsonType::Null
        | JsonType::Bool
        | JsonType::Opaque(_)
        | JsonType::Array
        | JsonType::Object => None,
    };
    let value = value.ok_or(ElementFault::Truncated)?;
    let mut conditions = Diagnostics::new(16);
    let mut ctx = CastContext::new(sql_mode, &mut conditions);
    let (mode, from) = (sql_mode.temporal(), DataType::null());
    let made = if ty.kind == TypeKind::Date {
        crate::to_date(&value, &from, mode, &mut ctx).map(Value::Date)
    } else if ty.kind == TypeKind::Time {
        crate::to_time(&value, &from, ty.decimals, mode, &mut ctx).map(Value::Time)
    } else {
        crate::to_datetime(&value, &from, ty.decimals, mode, &mut ctx).map(Value::DateTime)
    };
    // That a delimiter is deprecated says nothing of the value.
    let warned = conditions
        .conditions()
        .iter()
        .any(|one| one.level != Level::Note && !DEPRECATED_DELIMITERS.contains(&one.code.0));
    made.filter(|_| !warned).ok_or(ElementFault::Truncated)
}

fn to_string(element: JsonRef<'_>, ty: &DataType) -> Result<Value, ElementFault> {
    let mut text = Vec::new();
    if matches!(element.kind(), JsonType::String | JsonType::Opaque(_)) {
        text.extend_from_slice(element.as_bytes().unwrap_or_default());
    } else {
        element.write_text(&mut text);
        // Dates and times have quotes around them.
        if text.len() >= 2 && text.starts_with(b"\"") {
            text.pop();
            text.remove(0);
        }
    }
    let length = match is_binary(ty) {
        true => text.len(),
        false => String::from_utf8_lossy(&text).chars().count(),
    };
    match length <= ty.length as usize {
        true => Ok(Value::Bytes(text.into())),
        false => Err(ElementFault::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    fn array(text: &str, ty: &DataType) -> Result<String, ElementFault> {
        let document = parse(text.as_bytes()).unwrap().to_binary();
        let made = array_of(JsonRef::new(&document), ty, SqlMode::default())?;
        // What an index reads back is what was put there.
        let stored = made.to_binary();
        for element in JsonRef::new(&stored).elements() {
            assert!(!element_value(element, ty).is_null(), "{text}");
        }
        Ok(String::from_utf8(made.to_text()).unwrap())
    }

    #[test]
    fn elements_are_sorted_distinct_values_of_the_type() {
        let unsigned = DataType::bigint_unsigned();
        assert_eq!(array("[3, 1, 2, 1, \"2\", 1.5]", &unsigned).unwrap(), "[1, 2, 3]");
        assert_eq!(array("18446744073709551615", &unsigned).unwrap(), "[18446744073709551615]");
        assert_eq!(array("[]", &unsigned).unwrap(), "[]");
        assert_eq!(array("[-1, -10, 5]", &DataType::bigint()).unwrap(), "[-10, -1, 5]");
        let decimal = DataType::new(TypeKind::Decimal, 6, 2);
        assert_eq!(array("[1, 1.005, \" 7 \"]", &decimal).unwrap(), "[1.00, 1.01, 7.00]");
        let date = DataType::new(TypeKind::Date, 10, 0);
        assert_eq!(
            array("[\"2020-01-02\", 20190304]", &date).unwrap(),
            "[\"2019-03-04\", \"2020-01-02\"]"
        );
    }

    #[test]
    fn other_elements_are_refused() {
        let unsigned = DataType::bigint_unsigned();
        for (text, fault) in [
            ("{}", ElementFault::Refused(JsonType::Object)),
            ("true", ElementFault::Refused(JsonType::Bool)),
            ("[[1]]", ElementFault::Nested),
            ("[null]", ElementFault::Invalid),
            ("[\"1 \"]", ElementFault::Invalid),
            ("[1e30]", ElementFault::NoInteger),
            ("[-1]", ElementFault::OutOfRange),
        ] {
            assert_eq!(array(text, &unsigned), Err(fault), "{text}");
        }
        let time = DataType::new(TypeKind::Time, 10, 0);
        assert_eq!(array("[\"x\"]", &time), Err(ElementFault::Truncated));
        let mut text = DataType::new(TypeKind::VarChar, 2, 0);
        text.collation = crate::CollationId::UTF8MB4_0900_BIN;
        assert_eq!(array("[\"abc\"]", &text), Err(ElementFault::TooLong));
        assert_eq!(array("[\"éa\", 1]", &text).unwrap(), "[\"1\", \"éa\"]");
    }
}
