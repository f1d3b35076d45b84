//! Order of JSON values, and key bytes and hashes that agree with it.

use std::cmp::Ordering;
use std::hash::Hasher;

use super::binary::JsonRef;
use super::{JsonType, MAX_DEPTH, opaque};
use crate::Decimal;

/// Place of a type in the order of types.
fn rank(kind: JsonType) -> u8 {
    match kind {
        JsonType::Null => 0,
        JsonType::Int | JsonType::UInt | JsonType::Double | JsonType::Decimal => 1,
        JsonType::String => 2,
        JsonType::Object => 3,
        JsonType::Array => 4,
        JsonType::Bool => 5,
        JsonType::Date => 6,
        JsonType::Time => 7,
        JsonType::DateTime => 8,
        JsonType::Opaque(opaque::BIT) => 10,
        JsonType::Opaque(249..=252 | 15 | 253 | 254) => 11,
        JsonType::Opaque(_) => 9,
    }
}

/// A number as a double, and exactly where that is possible.
fn number(value: JsonRef<'_>) -> (f64, Decimal) {
    match value.kind() {
        JsonType::Int => {
            let number = value.as_i64().unwrap_or(0);
            (number as f64, Decimal::from_i64(number))
        }
        JsonType::UInt => {
            let number = value.as_u64().unwrap_or(0);
            (number as f64, Decimal::from_u64(number))
        }
        JsonType::Decimal => {
            let number = value.as_decimal().unwrap_or_default();
            (number.to_f64(), number)
        }
        _ => {
            let number = value.as_f64().unwrap_or(0.0);
            (number + 0.0, Decimal::from_f64(number).unwrap_or_default())
        }
    }
}

/// Opaque values of different types differ, whatever their bytes.
fn opaque_kind(kind: JsonType) -> u8 {
    if let JsonType::Opaque(kind) = kind { kind } else { 0 }
}

/// Order of two documents.
pub fn compare(a: &[u8], b: &[u8]) -> Ordering {
    compare_values(JsonRef::new(a), JsonRef::new(b), 0)
}

impl JsonRef<'_> {
    /// Order of two values.
    pub fn compare(self, other: JsonRef<'_>) -> Ordering {
        compare_values(self, other, 0)
    }
}

fn compare_values(a: JsonRef<'_>, b: JsonRef<'_>, depth: usize) -> Ordering {
    let (kind, other) = (a.kind(), b.kind());
    if rank(kind) != rank(other) || depth > MAX_DEPTH {
        return rank(kind).cmp(&rank(other));
    }
    match kind {
        JsonType::Null => Ordering::Equal,
        JsonType::Int if other == JsonType::Int => a.as_i64().cmp(&b.as_i64()),
        JsonType::Int | JsonType::UInt | JsonType::Double | JsonType::Decimal => {
            let (x, y) = (number(a), number(b));
            x.0.total_cmp(&y.0).then_with(|| x.1.cmp(&y.1))
        }
        JsonType::String => a.as_bytes().cmp(&b.as_bytes()),
        JsonType::Opaque(_) => {
            (opaque_kind(kind), a.as_bytes()).cmp(&(opaque_kind(other), b.as_bytes()))
        }
        JsonType::Bool => a.as_bool().cmp(&b.as_bool()),
        JsonType::Date => a.as_date().cmp(&b.as_date()),
        JsonType::Time => a.as_time().cmp(&b.as_time()),
        JsonType::DateTime => a.as_datetime().cmp(&b.as_datetime()),
        JsonType::Array => {
            for (x, y) in a.elements().zip(b.elements()) {
                let order = compare_values(x, y, depth + 1);
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        JsonType::Object => {
            if a.len() != b.len() {
                return a.len().cmp(&b.len());
            }
            for ((name, x), (other, y)) in a.members().zip(b.members()) {
                let order = (name.len(), name)
                    .cmp(&(other.len(), other))
                    .then_with(|| compare_values(x, y, depth + 1));
                if order.is_ne() {
                    return order;
                }
            }
            Ordering::Equal
        }
    }
}

/// Appends bytes whose byte order is the order of documents.
pub fn write_key(document: &[u8], out: &mut Vec<u8>) {
    write_value_key(JsonRef::new(document), 0, out);
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    charset::collation_or_binary(charset::CollationId::BINARY).write_key(bytes, out);
}

fn write_value_key(value: JsonRef<'_>, depth: usize, out: &mut Vec<u8>) {
    let kind = value.kind();
    // 0 is left free to end an array.
    out.push(rank(kind) + 1);
    if depth > MAX_DEPTH {
        return;
    }
    match kind {
        JsonType::Null => {}
        JsonType::Int | JsonType::UInt | JsonType::Double | JsonType::Decimal => {
            let (double, exact) = number(value);
            let bits = double.to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
            exact.write_key(65, 30, out);
        }
        JsonType::String => write_bytes(value.as_bytes().unwrap_or(b""), out),
        JsonType::Opaque(kind) => {
            out.push(kind);
            write_bytes(value.as_bytes().unwrap_or(b""), out);
        }
        JsonType::Bool => out.push(u8::from(value.as_bool() == Some(true))),
        JsonType::Date => {
            let packed = value.as_date().unwrap_or_default().packed();
            out.extend_from_slice(&packed.to_be_bytes());
        }
        JsonType::Time => {
            let micros = value.as_time().unwrap_or_default().micros() as u64 ^ 1 << 63;
            out.extend_from_slice(&micros.to_be_bytes());
        }
        JsonType::DateTime => {
            let packed = value.as_datetime().unwrap_or_default().packed();
            out.extend_from_slice(&packed.to_be_bytes());
        }
        JsonType::Array => {
            value.elements().for_each(|element| write_value_key(element, depth + 1, out));
            out.push(0);
        }
        JsonType::Object => {
            out.extend_from_slice(&(value.len() as u32).to_be_bytes());
            for (name, member) in value.members() {
                out.extend_from_slice(&(name.len() as u16).to_be_bytes());
                out.extend_from_slice(name);
                write_value_key(member, depth + 1, out);
            }
        }
    }
}

/// Feeds a hasher so that equal documents hash alike.
pub fn hash<H: Hasher>(document: &[u8], state: &mut H) {
    let mut key = Vec::with_capacity(document.len() + 16);
    write_key(document, &mut key);
    state.write(&key);
}
