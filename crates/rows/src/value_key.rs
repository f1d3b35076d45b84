//! Values as bytes: for hashing (equal values, equal bytes) and for sorting (ordered values, ordered bytes).

use errors::Result;
use plugin_api::FunctionContext;
use types::{CollationId, Comparator, ComparisonKind, DataType, Decimal, TypeKind, Value};

use crate::convert;

/// The comparison by which values of two types are equal as bytes.
pub struct Domain {
    comparator: Comparator,
}

impl Domain {
    /// For values of these types; texts under `collation`.
    pub fn new(left: &DataType, right: &DataType, collation: CollationId) -> Domain {
        let kind = ComparisonKind::for_types(left, right).with_collation(collation);
        Domain { comparator: Comparator::with_kind(kind, left, right) }
    }

    /// The comparator of the values themselves.
    pub fn comparator(&self) -> &Comparator {
        &self.comparator
    }

    /// Whether no value needs a conversion.
    pub fn is_direct(&self) -> bool {
        self.comparator.is_direct()
    }

    /// Appends the key of a left value that needs no conversion; false for NULL.
    pub fn append_direct(&self, value: &Value, out: &mut Vec<u8>) -> bool {
        append_kind_key(self.comparator.kind(), value, out)
    }

    /// Appends the key of a left or right value; false for NULL.
    ///
    /// # Errors
    /// The conversion fails.
    pub fn append(
        &self,
        value: &Value,
        side: Side,
        session: &mut FunctionContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if self.is_direct() {
            return Ok(self.append_direct(value, out));
        }
        let mut ctx = convert::context(session);
        let value = match side {
            Side::Left => self.comparator.left(value, &mut ctx)?,
            Side::Right => self.comparator.right(value, &mut ctx)?,
        };
        Ok(append_kind_key(self.comparator.kind(), &value, out))
    }
}

/// A side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Left,
    Right,
}

/// Appends the key of a value of a kind; false for NULL.
fn append_kind_key(kind: ComparisonKind, value: &Value, out: &mut Vec<u8>) -> bool {
    match (kind, value) {
        (_, Value::Null) => return false,
        (ComparisonKind::String(collation), Value::Bytes(bytes)) => {
            charset::collation_or_binary(collation).write_key(bytes, out);
        }
        (ComparisonKind::DateTime, Value::Date(date)) => {
            append_hash_key(&Value::DateTime(date.at_midnight()), CollationId::BINARY, out);
        }
        _ => append_hash_key(value, CollationId::BINARY, out),
    }
    true
}

fn decimal_key(number: &Decimal, out: &mut Vec<u8>) {
    let start = out.len();
    number.without_trailing_zeros().write_text(out);
    out.push(0);
    debug_assert!(out.len() > start);
}

/// Appends bytes that are equal exactly for equal values of one type; text under `collation`.
pub fn append_hash_key(value: &Value, collation: CollationId, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(number) => {
            // Negative numbers have their own tag, so that they never meet a large unsigned one.
            out.push(if *number < 0 { 2 } else { 1 });
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::UInt(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Double(number) => {
            out.push(3);
            out.extend_from_slice(&(number + 0.0).to_bits().to_be_bytes());
        }
        Value::Decimal(number) => {
            out.push(4);
            decimal_key(number, out);
        }
        Value::Bytes(bytes) => {
            out.push(5);
            charset::collation_or_binary(collation).write_key(bytes, out);
        }
        Value::Date(date) => {
            out.push(6);
            out.extend_from_slice(&date.packed().to_be_bytes());
        }
        Value::Time(time) => {
            out.push(7);
            out.extend_from_slice(&time.micros().to_be_bytes());
        }
        Value::DateTime(time) => {
            out.push(8);
            out.extend_from_slice(&time.packed().to_be_bytes());
        }
        Value::Json(_) => {
            out.push(9);
            let ty = DataType::new(TypeKind::Json, 0, 0).with_nullable(false);
            types::key::encode_part(value, &ty, None, false, out);
        }
    }
}

/// Appends bytes that order as ORDER BY does: NULL first, DESC complemented.
pub fn append_sort_key(value: &Value, collation: CollationId, descending: bool, out: &mut Vec<u8>) {
    if let Value::Bytes(bytes) = value {
        return append_text_sort_key(bytes, collation, descending, out);
    }
    let start = out.len();
    out.push(u8::from(!value.is_null()));
    match value {
        Value::Null => {}
        Value::Int(number) => {
            out.push(u8::from(*number >= 0));
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::UInt(number) => {
            out.push(1);
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Double(number) => {
            let bits = (number + 0.0).to_bits();
            let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            out.extend_from_slice(&ordered.to_be_bytes());
        }
        Value::Decimal(number) => {
            number.write_key(types::decimal::MAX_PRECISION, types::decimal::MAX_SCALE, out);
        }
        Value::Bytes(_) => {}
        Value::Date(date) => out.extend_from_slice(&date.packed().to_be_bytes()),
        Value::Time(time) => {
            out.extend_from_slice(&((time.micros() as u64) ^ 1 << 63).to_be_bytes());
        }
        Value::DateTime(time) => out.extend_from_slice(&time.packed().to_be_bytes()),
        Value::Json(_) => {
            let ty = DataType::new(TypeKind::Json, 0, 0).with_nullable(false);
            types::key::encode_part(value, &ty, None, false, out);
        }
    }
    complement_if(descending, &mut out[start..]);
}

/// As `append_sort_key`, of a text.
pub fn append_text_sort_key(
    text: &[u8],
    collation: CollationId,
    descending: bool,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    out.push(1);
    charset::collation_or_binary(collation).write_key(text, out);
    complement_if(descending, &mut out[start..]);
}

fn complement_if(descending: bool, key: &mut [u8]) {
    if descending {
        key.iter_mut().for_each(|byte| *byte = !*byte);
    }
}
