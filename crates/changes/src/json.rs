//! SQL values as JSON and back: the rules of docs/json-server.md, "Values".

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use errors::{Result, bail};
use plugin_api::{ColumnMeta, RowSource};
use serde_json::Value as Json;
use types::{CollationId, DataType, ResultCell, TypeKind, Value};

/// Largest integer that every reader of JSON keeps exactly: 2^53 - 1.
const EXACT_MAX: u64 = (1 << 53) - 1;

/// The form of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number, or a string when it is beyond `EXACT_MAX`.
    Integer,
    /// A number.
    Float,
    /// A JSON document.
    Document,
    /// Text.
    Text,
    /// Bytes in base64.
    Bytes,
    /// As text whatever the type: version 0.3.
    Everything,
}

/// The form of a type's values.
pub fn form_of(ty: &DataType) -> Form {
    use TypeKind::*;
    match ty.kind {
        TinyInt | SmallInt | MediumInt | Int | BigInt | Year => Form::Integer,
        Float | Double => Form::Float,
        Json => Form::Document,
        Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob | Vector | Geometry | Bit => {
            Form::Bytes
        }
        Char | VarChar | TinyText | Text | MediumText | LongText => {
            if ty.collation == CollationId::BINARY { Form::Bytes } else { Form::Text }
        }
        Null | Decimal | Date | Time | DateTime | Timestamp | Enum | Set | Fixed(_) => Form::Text,
    }
}

/// Appends a cell; `scratch` is a buffer of the caller.
///
/// # Errors
/// A damaged record.
pub fn write_cell(
    cell: &ResultCell<'_>,
    ty: &DataType,
    form: Form,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    scratch.clear();
    if !cell.write_text(ty, scratch)? {
        out.extend_from_slice(b"null");
        return Ok(());
    }
    match form {
        Form::Integer if is_exact(scratch) => out.extend_from_slice(without_zeros(scratch)),
        Form::Float | Form::Document => out.extend_from_slice(scratch),
        Form::Integer | Form::Text => write_string(scratch, out),
        Form::Bytes => write_base64(scratch, out),
        Form::Everything => match std::str::from_utf8(scratch) {
            Ok(_) => write_string(scratch, out),
            Err(_) => write_base64(scratch, out),
        },
    }
    Ok(())
}

/// Appends a row as a JSON array.
///
/// # Errors
/// A damaged record.
pub fn write_row(
    row: &dyn RowSource,
    columns: &[(DataType, Form)],
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<()> {
    out.push(b'[');
    for (index, (ty, form)) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_cell(&row.cell(index)?, ty, *form, scratch, out)?;
    }
    out.push(b']');
    Ok(())
}

fn is_exact(digits: &[u8]) -> bool {
    let digits = digits.strip_prefix(b"-").unwrap_or(digits);
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u64>().ok());
    number.is_some_and(|number| number <= EXACT_MAX)
}

/// ZEROFILL writes zeros that JSON forbids.
fn without_zeros(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros.min(digits.len() - 1)..]
}

fn write_base64(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend_from_slice(STANDARD.encode(bytes).as_bytes());
    out.push(b'"');
}

/// Appends a JSON string; bytes that are not UTF-8 become U+FFFD.
pub fn write_string(bytes: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let text = String::from_utf8_lossy(bytes);
    out.push(b'"');
    let mut rest = text.as_bytes();
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    while let Some(at) = rest.iter().position(is_special) {
        out.extend_from_slice(&rest[..at]);
        match rest[at] {
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            byte @ 0..0x20 => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            byte => out.extend_from_slice(&[b'\\', byte]),
        }
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends the descriptions of result columns, as a JSON array.
pub fn write_columns(columns: &[ColumnMeta], out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_column(column, out);
    }
    out.push(b']');
}

/// The descriptions of result columns, as the text of a JSON array.
pub fn columns(columns: &[ColumnMeta]) -> String {
    let mut out = Vec::new();
    write_columns(columns, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn write_column(column: &ColumnMeta, out: &mut Vec<u8>) {
    let ty = &column.ty;
    out.extend_from_slice(b"{\"name\":");
    write_string(column.name.as_bytes(), out);
    out.extend_from_slice(b",\"type\":\"");
    out.extend_from_slice(ty.kind.name().as_bytes());
    out.extend_from_slice(b"\",\"schema\":");
    write_string(column.schema.as_bytes(), out);
    out.extend_from_slice(b",\"table\":");
    write_string(column.org_table.as_bytes(), out);
    let DataType { nullable, unsigned, length, decimals, .. } = ty;
    // Writing to memory does not fail.
    let _ = write!(
        out,
        ",\"nullable\":{nullable},\"unsigned\":{unsigned},\"length\":{length},\"decimals\":{decimals}"
    );
    if form_of(ty) == Form::Text && ty.collation != CollationId::BINARY {
        out.extend_from_slice(b",\"collation\":");
        write_string(charset::collation_or_binary(ty.collation).name.as_bytes(), out);
    }
    if form_of(ty) == Form::Bytes {
        out.extend_from_slice(b",\"encoding\":\"base64\"");
    }
    out.push(b'}');
}

/// A statement's parameter from JSON: an array or object becomes the text of a document, `{"base64": ".."}` bytes.
///
/// # Errors
/// 1210 for base64 that is not.
pub fn parameter(json: &Json) -> Result<Value> {
    Ok(match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::bool(*truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => Value::Int(number),
            (None, Some(number), _) => Value::UInt(number),
            (None, None, Some(number)) => Value::Double(number),
            (None, None, None) => Value::text(&number.to_string()),
        },
        Json::String(text) => Value::text(text),
        Json::Object(object) if object.len() == 1 && object.contains_key("base64") => {
            let bytes = object["base64"].as_str().and_then(|text| STANDARD.decode(text).ok());
            match bytes {
                Some(bytes) => Value::Bytes(types::SqlBytes::from(bytes)),
                None => bail!(WRONG_ARGUMENTS, "base64"),
            }
        }
        Json::Array(_) | Json::Object(_) => Value::text(&json.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(value: &Value, kind: TypeKind) -> String {
        let ty = DataType::new(kind, 20, 0);
        let mut out = Vec::new();
        let cell = ResultCell::from(value);
        write_cell(&cell, &ty, form_of(&ty), &mut Vec::new(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_keep_their_precision() {
        assert_eq!(written(&Value::Int(-5), TypeKind::Int), "-5");
        assert_eq!(
            written(&Value::Int(9_007_199_254_740_991), TypeKind::BigInt),
            "9007199254740991"
        );
        let large = written(&Value::Int(9_007_199_254_740_992), TypeKind::BigInt);
        assert_eq!(large, "\"9007199254740992\"");
        assert_eq!(written(&Value::Int(i64::MIN), TypeKind::BigInt), "\"-9223372036854775808\"");
        assert_eq!(written(&Value::Null, TypeKind::Int), "null");
        assert_eq!(written(&Value::text("a"), TypeKind::Blob), "\"YQ==\"");
        assert_eq!(without_zeros(b"0005"), b"5");
        assert_eq!(without_zeros(b"000"), b"0");
    }

    #[test]
    fn strings_are_escaped() {
        let mut out = Vec::new();
        write_string("a\"\\\n\u{1}é\u{2028}".as_bytes(), &mut out);
        assert_eq!(out, "\"a\\\"\\\\\\n\\u0001é\u{2028}\"".as_bytes());
        let back: String = serde_json::from_slice(&out).unwrap();
        assert_eq!(back, "a\"\\\n\u{1}é\u{2028}");
    }

    #[test]
    fn parameters_have_types() {
        let value = |text: &str| parameter(&serde_json::from_str(text).unwrap());
        assert_eq!(value("null").unwrap(), Value::Null);
        assert_eq!(value("true").unwrap(), Value::Int(1));
        assert_eq!(value("-3").unwrap(), Value::Int(-3));
        assert_eq!(value("18446744073709551615").unwrap(), Value::UInt(u64::MAX));
        assert_eq!(value("1.5").unwrap(), Value::Double(1.5));
        assert_eq!(value("[1,2]").unwrap(), Value::text("[1,2]"));
        assert_eq!(value(r#"{"base64":"YQ=="}"#).unwrap(), Value::text("a"));
        assert!(value(r#"{"base64":"*"}"#).is_err());
    }
}
