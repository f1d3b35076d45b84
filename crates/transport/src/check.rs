//! Whether a record of a file is a row of its columns: the values are taken as a statement's would be, and must come out unchanged.

use errors::Diagnostics;
use types::convert::{CastContext, StoreMode, store};
use types::geometry::Geometry;
use types::json::{JsonRef, JsonValue};
use types::{DataType, RecordLayout, SqlMode, TypeKind, Value};

/// The checks of one table's rows.
pub(crate) struct RowCheck {
    layout: RecordLayout,
    /// Types that values of each column may come from without loss of what is to be checked.
    wide: Vec<DataType>,
}

impl RowCheck {
    pub(crate) fn new(types: &[DataType]) -> RowCheck {
        let wide = types.iter().map(widest).collect();
        RowCheck { layout: RecordLayout::new(types), wide }
    }

    /// The column whose value cannot be one of its type; the number of columns when the record itself is damaged.
    pub(crate) fn fault(&self, record: &[u8]) -> Option<usize> {
        let types = self.layout.types();
        if RecordLayout::columns_of(record) != Some(types.len()) {
            return Some(types.len());
        }
        let is_sound = |at: &usize| match self.layout.decode_column(record, *at) {
            Ok(Some(value)) => fits(&value, &types[*at], &self.wide[*at]),
            Ok(None) | Err(_) => false,
        };
        (0..types.len()).find(|at| !is_sound(at))
    }
}

/// The widest type with values of the same kind.
fn widest(ty: &DataType) -> DataType {
    if !ty.is_text() {
        return ty.clone();
    }
    DataType::varchar(u32::MAX / 4, types::CollationId::UTF8MB4_0900_AI_CI)
}

fn fits(value: &Value, ty: &DataType, wide: &DataType) -> bool {
    if value.is_null() {
        return ty.nullable;
    }
    let members = ty.member_count() as u64;
    if let Value::UInt(number) = value {
        let bits = match ty.kind {
            // 0 is what a value became that was no member.
            TypeKind::Enum => return *number <= members,
            TypeKind::Set => Some(members),
            kind => (kind == TypeKind::Bit).then_some(u64::from(ty.length)),
        };
        if let Some(bits) = bits {
            return bits >= 64 || number >> bits == 0;
        }
    }
    if let Value::Json(document) = value {
        let read = JsonValue::from_ref(JsonRef::new(document));
        return ty.kind == TypeKind::Json && *read.to_binary() == **document;
    }
    if let Value::Bytes(bytes) = value {
        let is_changed = |read: Geometry| *read.to_bytes() != **bytes;
        let is_odd = ty.kind == TypeKind::Geometry && Geometry::read(bytes).is_ok_and(is_changed);
        if is_odd || ty.is_text() && std::str::from_utf8(bytes).is_err() {
            return false;
        }
    }
    let mut silent = Diagnostics::new(1);
    let mode = SqlMode(SqlMode::ALLOW_INVALID_DATES.0);
    let mut context = CastContext::new(mode, &mut silent);
    let stored = store(value, wide, ty, &mut context, StoreMode::Strict);
    stored.is_ok_and(|stored| stored == *value)
}
