//! Order-preserving key bytes: comparing two keys byte by byte gives the SQL order of the values.
//!
//! A part begins with 0 for NULL or 1 for a value when its column is nullable. Integers are big-endian with the sign bit flipped, floats
//! in total order, decimals and temporal values likewise, strings their collation's weights with a terminator that no weight
//! contains, so that no part is a prefix of another. DESC parts are complemented.

use crate::{DataType, TypeKind, Value};

/// Longest key of an index, bytes (as the reference's engine).
pub const KEY_BYTES_MAX: usize = 3072;

/// Tag of NULL.
const NULL_TAG: u8 = 0;
/// Tag of a value.
const VALUE_TAG: u8 = 1;

/// Appends one part. The value has already been converted to `ty`.
pub fn encode_part(
    value: &Value,
    ty: &DataType,
    prefix_length: Option<u32>,
    descending: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if ty.nullable {
        out.push(if value.is_null() { NULL_TAG } else { VALUE_TAG });
    }
    if !value.is_null() {
        encode_value(value, ty, prefix_length, out);
    }
    if descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}

/// Appends what every key part beginning with the text `prefix` begins with; only for string types. For `LIKE 'prefix%'`.
pub fn encode_text_prefix(prefix: &[u8], ty: &DataType, out: &mut Vec<u8>) {
    if ty.nullable {
        out.push(VALUE_TAG);
    }
    charset::collation_or_binary(ty.collation).write_key_prefix(prefix, out);
}

/// Appends the start that all non-NULL parts of a nullable column share and NULL does not; nothing when it is not nullable.
pub fn encode_not_null_start(ty: &DataType, descending: bool, out: &mut Vec<u8>) {
    if ty.nullable {
        out.push(if descending { !VALUE_TAG } else { VALUE_TAG });
    }
}

fn encode_value(value: &Value, ty: &DataType, prefix_length: Option<u32>, out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Int(number) => encode_signed(*number, integer_width(ty.kind), out),
        Value::UInt(number) => encode_unsigned(*number, integer_width(ty.kind), out),
        Value::Double(number) => {
            // -0 folds into +0; negative numbers flip all bits, others the sign.
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Value::Decimal(number) => number.write_key(ty.length, ty.decimals, out),
        Value::Date(date) => out.extend_from_slice(&date.packed().to_be_bytes()),
        Value::Time(time) => encode_signed(time.micros(), 8, out),
        Value::DateTime(time) => out.extend_from_slice(&time.packed().to_be_bytes()),
        Value::Bytes(bytes) | Value::Json(bytes) => {
            let collation = charset::collation_or_binary(ty.collation);
            let text: &[u8] = match prefix_length {
                Some(chars) => &bytes[..collation.char_prefix(bytes, chars as usize)],
                None => bytes,
            };
            collation.write_key(text, out);
        }
    }
}

/// Bytes of an integer key.
fn integer_width(kind: TypeKind) -> usize {
    use TypeKind::*;
    match kind {
        TinyInt => 1,
        SmallInt | Year | Enum => 2,
        MediumInt | Int => 4,
        _ => 8,
    }
}

fn encode_signed(number: i64, width: usize, out: &mut Vec<u8>) {
    let shift = 64 - 8 * width as u32;
    let limit = i64::MAX >> shift;
    let clamped = number.clamp(-limit - 1, limit);
    let bytes = ((clamped as u64) ^ (1 << (8 * width - 1))).to_be_bytes();
    out.extend_from_slice(&bytes[8 - width..]);
}

fn encode_unsigned(number: u64, width: usize, out: &mut Vec<u8>) {
    let limit = u64::MAX >> (64 - 8 * width as u32);
    out.extend_from_slice(&number.min(limit).to_be_bytes()[8 - width..]);
}
