//! What a user variable keeps of a value.

use types::{CollationId, DataType, TypeKind, Value};

/// A value as a user variable keeps it, with its type: whole numbers and floats have the widest type of their kind, BIT and YEAR are
/// numbers, dates, times and JSON become texts.
pub fn kept_by_user(value: Value, ty: DataType) -> (Value, DataType) {
    let is_json = ty.kind == TypeKind::Json;
    if !is_json && !ty.is_temporal() && ty.as_fixed().is_none() {
        return widest_number(value, ty);
    }
    let text = match &value {
        Value::Null => Value::Null,
        value => {
            let mut text = Vec::new();
            types::to_text(value, &ty, &mut text);
            Value::Bytes(text.as_slice().into())
        }
    };
    let length = match &text {
        Value::Bytes(bytes) => bytes.len() as u32,
        _ => 0,
    };
    let ty = if is_json {
        let collation = CollationId::UTF8MB4_BIN;
        DataType { collation, ..DataType::new(TypeKind::LongText, u32::MAX, 0) }
    } else {
        DataType::varchar(length, CollationId::LATIN1_SWEDISH_CI)
    };
    (text, ty)
}

/// A number as a user variable keeps it; other values unchanged.
fn widest_number(value: Value, ty: DataType) -> (Value, DataType) {
    use TypeKind::{BigInt, Bit, Double, Float, Int, MediumInt, SmallInt, TinyInt, Year};
    if matches!(ty.kind, TinyInt | SmallInt | MediumInt | Int | BigInt) {
        let wide = if ty.unsigned { DataType::bigint_unsigned() } else { DataType::bigint() };
        return (value, wide);
    }
    if matches!(ty.kind, Bit | Year) {
        let number =
            if let Value::Int(number) = value { Value::UInt(number.unsigned_abs()) } else { value };
        return (number, DataType::bigint_unsigned());
    }
    if matches!(ty.kind, Float | Double) {
        return (value, DataType::double());
    }
    (value, ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_wide_and_dates_are_texts() {
        let (value, ty) = kept_by_user(Value::Int(2020), DataType::new(TypeKind::Year, 4, 0));
        assert_eq!((value, ty), (Value::UInt(2020), DataType::bigint_unsigned()));
        let (value, ty) = kept_by_user(Value::UInt(5), DataType::new(TypeKind::Bit, 3, 0));
        assert_eq!((value, ty), (Value::UInt(5), DataType::bigint_unsigned()));
        let (_, ty) = kept_by_user(Value::Int(-1), DataType::new(TypeKind::TinyInt, 4, 0));
        assert_eq!(ty, DataType::bigint());
        let (value, ty) = kept_by_user(Value::Null, DataType::new(TypeKind::Date, 10, 0));
        assert!(value.is_null() && ty.is_text());
        let text = DataType::varchar(7, CollationId::UTF8MB4_BIN);
        assert_eq!(kept_by_user(Value::text("x"), text.clone()), (Value::text("x"), text));
    }
}
