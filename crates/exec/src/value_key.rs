//! Values as bytes: for hashing (equal values, equal bytes) and for sorting (ordered values, ordered bytes).

use types::{CollationId, DataType, Decimal, TypeKind, Value};

/// In what terms values of two types are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Integer,
    Decimal,
    Double,
    Text(CollationId),
    /// Dates and datetimes, as datetimes.
    DateTime,
    /// Values of one kind.
    Same,
}

fn is_integer_like(ty: &DataType) -> bool {
    ty.is_integer() || matches!(ty.kind, TypeKind::Bit | TypeKind::Year | TypeKind::Enum | TypeKind::Set)
}

impl Domain {
    /// The domain in which `left` and `right` are compared; `None` when it takes the general comparison.
    pub(crate) fn of(left: &DataType, right: &DataType, collation: CollationId) -> Option<Domain> {
        use TypeKind::{Date, DateTime, Decimal, Double, Float, Json, Timestamp};
        let is = |ty: &DataType, kinds: &[TypeKind]| kinds.contains(&ty.kind);
        if is_integer_like(left) && is_integer_like(right) {
            return Some(Domain::Integer);
        }
        if left.is_string() && right.is_string() {
            return Some(Domain::Text(collation));
        }
        if is(left, &[Json]) || is(right, &[Json]) {
            return None;
        }
        let moments = [Date, DateTime, Timestamp];
        if left.kind == right.kind && left.is_temporal() {
            return Some(Domain::Same);
        }
        if is(left, &moments) && is(right, &moments) {
            return Some(Domain::DateTime);
        }
        let numeric = |ty: &DataType| is_integer_like(ty) || is(ty, &[Decimal, Double, Float]);
        if !(numeric(left) && numeric(right)) {
            return None;
        }
        if is(left, &[Double, Float]) || is(right, &[Double, Float]) {
            return Some(Domain::Double);
        }
        Some(Domain::Decimal)
    }

    /// Appends the key of a value whose type belongs to the domain; false for NULL.
    pub(crate) fn append(self, value: &Value, out: &mut Vec<u8>) -> bool {
        match (self, value) {
            (_, Value::Null) => return false,
            (Domain::Text(collation), Value::Bytes(bytes)) => {
                charset::collation_or_binary(collation).write_key(bytes, out);
            }
            (Domain::Double, _) => {
                let number = plugin_api::kit::double(value);
                out.extend_from_slice(&(number + 0.0).to_bits().to_be_bytes());
            }
            (Domain::Decimal, _) => decimal_key(&plugin_api::kit::decimal(value), out),
            (Domain::DateTime, Value::Date(date)) => {
                out.extend_from_slice(&date.at_midnight().packed().to_be_bytes());
            }
            _ => append_hash_key(value, CollationId::BINARY, out),
        }
        true
    }
}

fn decimal_key(number: &Decimal, out: &mut Vec<u8>) {
    let start = out.len();
    number.without_trailing_zeros().write_text(out);
    out.push(0);
    debug_assert!(out.len() > start);
}

/// Appends bytes that are equal exactly for equal values of one type; text under `collation`.
pub(crate) fn append_hash_key(value: &Value, collation: CollationId, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(0),
        Value::Int(number) => {
            // Negative numbers have a tag of their own, so that they never meet a large unsigned one.
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
        Value::Json(bytes) => {
            out.push(9);
            out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
            out.extend_from_slice(bytes);
        }
    }
}

/// Appends bytes that order as ORDER BY does: NULL first, DESC complemented.
pub(crate) fn append_sort_key(
    value: &Value,
    collation: CollationId,
    descending: bool,
    out: &mut Vec<u8>,
) {
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
        Value::Bytes(bytes) => charset::collation_or_binary(collation).write_key(bytes, out),
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
    if descending {
        for byte in &mut out[start..] {
            *byte = !*byte;
        }
    }
}
