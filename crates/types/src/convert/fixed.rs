//! Conversion to and from UUID, INET4 and INET6.

use errors::{Error, ErrorCode, Result};

use super::assign::{StoreMode, Target};
use super::cast::string_of;
use super::{CastContext, text_for_message};
use crate::json::JsonRef;
use crate::{CollationId, DataType, Fixed, SqlBytes, TypeKind, Value};

/// A value of one of these types as what other types convert from: bytes for a binary string, text for all others. `None` for a value that is one of
/// the target's type already.
pub(super) fn plain(value: &Value, kind: Fixed, to: &DataType) -> Option<(Value, DataType)> {
    let Value::Bytes(bytes) = value else { return None };
    if to.as_fixed() == Some(kind) {
        return None;
    }
    if to.is_binary() {
        return Some((Value::Bytes(kind.native(bytes)), DataType::varbinary(kind.bytes() as u32)));
    }
    let mut text = Vec::with_capacity(kind.characters() as usize);
    kind.write_text(bytes, &mut text);
    let ty = DataType::varchar(kind.characters(), CollationId::UTF8MB4_0900_BIN);
    Some((Value::Bytes(SqlBytes::from(text)), ty))
}

/// The value of another type's value; what it is in a message when it is none.
fn converted(value: &Value, from: &DataType, kind: Fixed) -> std::result::Result<Value, SqlBytes> {
    let found = if let Value::Bytes(bytes) = value {
        match from.as_fixed() {
            Some(own) if own == kind => return Ok(value.clone()),
            Some(_) => kind.parse(&string_of(value, from)),
            // Bytes are never taken as text.
            None if from.is_binary() => kind.of_native(bytes),
            None => kind.parse(bytes),
        }
    } else if let Value::Json(document) = value {
        JsonRef::new(document).as_bytes().and_then(|text| kind.parse(text))
    } else {
        kind.parse(&string_of(value, from))
    };
    found.map(Value::Bytes).ok_or_else(|| string_of(value, from))
}

/// 1292 in the wording of these types.
fn incorrect(kind: Fixed, shown: &[u8], place: &str) -> Error {
    let shown = text_for_message(shown);
    let message = format!("Incorrect {} value: '{shown}'{place}", kind.name());
    Error::new(ErrorCode::TRUNCATED_WRONG_VALUE, message)
}

/// NULL with a warning for a value that is none of the type.
pub(super) fn cast(
    value: &Value,
    from: &DataType,
    kind: Fixed,
    ctx: &mut CastContext<'_>,
) -> Value {
    converted(value, from, kind).unwrap_or_else(|shown| {
        let error = incorrect(kind, &shown, "");
        ctx.diagnostics.push_error(errors::Level::Warning, &error);
        Value::Null
    })
}

impl Target<'_, '_, '_> {
    /// A value of one of these types for a column of another type: see [`plain`]. Numbers, dates and the other types of this file take none.
    ///
    /// # Errors
    /// 4078 when strict.
    pub(super) fn plain(
        &mut self,
        value: &Value,
        kind: Fixed,
    ) -> Result<Option<(Value, DataType)>> {
        let plain = plain(value, kind, self.to);
        let to = self.to;
        let takes = to.is_string() || to.has_members() || to.kind == TypeKind::Json;
        if plain.is_some() && !takes && self.mode == StoreMode::Strict {
            return Err(self.no_cast(kind.name(), self.to.kind.name()));
        }
        Ok(plain)
    }

    fn no_cast(&self, from: &str, to: &str) -> Error {
        let column = self.ctx.column;
        let message = format!("Cannot cast '{from}' as '{to}' in assignment of `{column}`");
        Error::new(ErrorCode::ILLEGAL_PARAMETER_DATA_TYPES, message)
    }

    /// A value for a column of the type. A wrong one becomes NULL, or zero in a column that cannot have NULL, when not strict.
    pub(super) fn fixed(&mut self, value: &Value, from: &DataType, kind: Fixed) -> Result<Value> {
        let shown = match converted(value, from, kind) {
            Ok(value) => return Ok(value),
            Err(shown) => shown,
        };
        let takes = from.is_string() || from.has_members() || matches!(value, Value::Json(_));
        if !takes && self.mode == StoreMode::Strict {
            return Err(self.no_cast(from.kind.name(), kind.name()));
        }
        let (column, row) = (self.ctx.column, self.ctx.row);
        let error = incorrect(kind, &shown, &format!(" for column '{column}' at row {row}"));
        self.fail(error)?;
        Ok(if self.to.nullable { Value::Null } else { Value::Bytes(kind.zero()) })
    }
}
