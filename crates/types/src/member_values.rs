//! Values of ENUM and SET by the names of their members.

use crate::text::to_text;
use crate::{DataType, SqlBytes, TypeKind, Value};

impl DataType {
    /// The value of an ENUM or SET that a text names, whose parts are members; what is no member is the error value. Other values and types stay.
    pub fn member_value(&self, value: Value) -> Value {
        let (Some(members), Value::Bytes(text)) = (&self.members, &value) else { return value };
        let position = |name: &[u8]| members.names().position(|own| own.eq_ignore_ascii_case(name));
        if self.kind == TypeKind::Enum {
            return Value::UInt(position(text.as_slice()).map_or(0, |place| place as u64 + 1));
        }
        let named = text.as_slice().split(|byte| *byte == b',').filter_map(position);
        Value::UInt(
            named.fold(0, |bits, place| bits | 1_u64.checked_shl(place as u32).unwrap_or(0)),
        )
    }

    /// The text of a value of an ENUM or SET; other values and types stay.
    pub fn member_text(&self, value: Value) -> Value {
        if !self.has_members() || !matches!(value, Value::UInt(_)) {
            return value;
        }
        let mut text = Vec::new();
        to_text(&value, self, &mut text);
        Value::Bytes(SqlBytes::from(text))
    }
}
