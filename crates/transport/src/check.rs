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
        let wide = types.iter().map(|ty| widest(ty)).collect();
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
    match ty.kind {
        TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText => {
            DataType::varchar(u32::MAX / 4, types::CollationId::UTF8MB4_0900_AI_CI)
        }
        _ => ty.clone(),
    }
}

fn fits(value: &Value, ty: &DataType, wide: &DataType) -> bool {
    if value.is_null() {
        return ty.nullable;
    }
    let members = ty.member_count() as u64;
    match (ty.kind, value) {
        // 0 is what a value became that was no member.
        (TypeKind::Enum, Value::UInt(index)) => return *index <= members,
        (TypeKind::Set, Value::UInt(bits)) => return members >= 64 || bits >> members == 0,
        (TypeKind::Bit, Value::UInt(bits)) => return ty.length >= 64 || bits >> ty.length == 0,
        (TypeKind::Json, Value::Json(document)) => {
            let read = JsonValue::from_ref(JsonRef::new(document));
            return *read.to_binary() == **document;
        }
        (TypeKind::Geometry, Value::Bytes(bytes)) => {
            if Geometry::read(bytes).is_ok_and(|read| *read.to_bytes() != **bytes) {
                return false;
            }
        }
        _ if wide.is_text() => {
            let Value::Bytes(text) = value else { return false };
            if std::str::from_utf8(text).is_err() {
                return false;
            }
        }
        _ => {}
    }
    let mut silent = Diagnostics::new(1);
    let mode = SqlMode(SqlMode::ALLOW_INVALID_DATES.0);
    let mut context = CastContext::new(mode, &mut silent);
    let stored = store(value, wide, ty, &mut context, StoreMode::Strict);
    stored.is_ok_and(|stored| stored == *value)
}
