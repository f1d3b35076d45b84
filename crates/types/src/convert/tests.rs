//! Conversions: a few of each kind, and that nothing panics.

use std::sync::Arc;

use errors::Diagnostics;
use proptest::prelude::*;

use super::*;
use crate::{
    CollationId, DataType, DateTime, Decimal, Members, SqlBytes, Time, TypeKind, Value, to_text,
};

fn all_types() -> Vec<DataType> {
    use TypeKind::*;
    let mut types = Vec::new();
    for kind in [
        Null, TinyInt, SmallInt, MediumInt, Int, BigInt, Decimal, Float, Double, Bit, Year, Date,
        Time, DateTime, Timestamp, Char, VarChar, Binary, VarBinary, TinyText, Text, TinyBlob,
        Blob, Enum, Set, Json,
    ] {
        let mut ty = DataType::new(kind, 7, if kind == Float { 31 } else { 2 });
        if ty.is_text() || ty.is_enum_or_set() {
            ty.collation = CollationId::UTF8MB4_0900_AI_CI;
        }
        if ty.is_enum_or_set() {
            ty.members = Some(Arc::new(Members::new(["a", "b", "c"])));
        }
        types.push(ty.clone().with_unsigned());
        types.push(ty);
    }
    types
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        (-3i64..3000).prop_map(Value::Int),
        any::<u64>().prop_map(Value::UInt),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Value::Double),
        (-3.0f64..300.0).prop_map(Value::Double),
        (any::<i128>(), 0u8..31).prop_map(|(n, s)| Value::Decimal(Decimal::from_i128(n, s))),
        "[-+0-9:. eabc,]{0,24}".prop_map(|text| Value::text(&text)),
        proptest::collection::vec(any::<u8>(), 0..12).prop_map(|b| Value::Bytes(SqlBytes::from(b))),
        (0u32..6_000_000).prop_filter_map("date", |p| crate::Date::from_packed(p).map(Value::Date)),
        any::<u64>()
            .prop_filter_map("datetime", |p| DateTime::from_packed(p >> 4).map(Value::DateTime)),
        any::<i64>().prop_map(|m| Value::Time(Time::from_micros_clamped(m >> 20))),
        "[0-9\\[\\]{}\":,. ]{0,12}".prop_filter_map("json", |text| {
            crate::json::parse(text.as_bytes()).ok().map(|tree| tree.to_value())
        }),
    ]
}

fn text_of(value: &Value, ty: &DataType) -> String {
    let mut out = Vec::new();
    to_text(value, ty, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn casts_and_warnings() {
    let mut diagnostics = Diagnostics::default();
    let text = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
    let mut ctx = CastContext::new(SqlMode::DEFAULT, &mut diagnostics);
    let to = DataType::bigint();
    assert_eq!(cast(&"12abc".into(), &text, &to, &mut ctx).unwrap(), Value::Int(12));
    assert_eq!(
        ctx.diagnostics.conditions()[0].message,
        "Truncated incorrect INTEGER value: '12abc'"
    );
    let to = DataType::decimal(5, 2);
    let value = cast(&Value::Int(12345), &DataType::bigint(), &to, &mut ctx).unwrap();
    assert_eq!(text_of(&value, &to), "999.99");
    let value = cast(&"2024-02-30".into(), &text, &DataType::date(), &mut ctx).unwrap();
    assert_eq!(value, Value::Null);
    assert_eq!(ctx.diagnostics.warning_count(), 3);
}

#[test]
fn assignments() {
    let mut diagnostics = Diagnostics::default();
    let mut ctx = CastContext::new(SqlMode::DEFAULT, &mut diagnostics);
    ctx.column = "c";
    let text = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
    let tiny = DataType::new(TypeKind::TinyInt, 4, 0);
    let error = store(&"abc".into(), &text, &tiny, &mut ctx, StoreMode::Strict).unwrap_err();
    assert_eq!(error.message(), "Incorrect integer value: 'abc' for column 'c' at row 1");
    let error = store(&"300".into(), &text, &tiny, &mut ctx, StoreMode::Strict).unwrap_err();
    assert_eq!(error.code().0, 1264);
    let clamped = store(&"300".into(), &text, &tiny, &mut ctx, StoreMode::Lenient).unwrap();
    assert_eq!(clamped, Value::Int(127));
    let short = DataType::varchar(3, CollationId::UTF8MB4_0900_AI_CI);
    let error = store(&"abcd".into(), &text, &short, &mut ctx, StoreMode::Strict).unwrap_err();
    assert_eq!(error.code().0, 1406);
    let zone = crate::FixedOffset::parse("+02:00").unwrap();
    ctx.time_zone = &zone;
    let stamp = DataType::new(TypeKind::Timestamp, 19, 0);
    let value =
        store(&"2024-01-02 03:04:05".into(), &text, &stamp, &mut ctx, StoreMode::Strict).unwrap();
    assert_eq!(text_of(&value, &stamp), "2024-01-02 01:04:05");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Every conversion ends; what a column accepts fits its record and its key, and is stored again unchanged.
    #[test]
    fn total_and_idempotent(value in values()) {
        let from = DataType::varchar(40, CollationId::UTF8MB4_BIN);
        for to in all_types() {
            let mut diagnostics = Diagnostics::default();
            let mut ctx = CastContext::new(SqlMode::EMPTY, &mut diagnostics);
            ctx.today = crate::Date::new(2024, 1, 2).unwrap();
            let _ = cast(&value, &from, &to, &mut ctx);
            if let Ok(stored) = store(&value, &from, &to, &mut ctx, StoreMode::Lenient) {
                let layout = crate::RecordLayout::new(std::slice::from_ref(&to));
                let mut record = Vec::new();
                prop_assert!(layout.encode(std::slice::from_ref(&stored), &mut record).is_ok(), "{:?} {:?}", stored, to);
                let read = layout.decode_column(&record, 0).unwrap().unwrap();
                prop_assert_eq!(text_of(&read, &to), text_of(&stored, &to));
                let mut key = Vec::new();
                crate::key::encode_part(&stored, &to, None, false, &mut key);
                if crate::key::is_reversible(&to) && !stored.is_null() {
                    let back = crate::key::KeyReader::new(&key).read(&to, false);
                    prop_assert_eq!(back.map(|v| text_of(&v, &to)), Some(text_of(&stored, &to)));
                }
                let before = ctx.diagnostics.warning_count();
                if !matches!(to.kind, TypeKind::Timestamp | TypeKind::Json) {
                    let again = store(&stored, &to, &to, &mut ctx, StoreMode::Lenient).unwrap();
                    prop_assert_eq!(text_of(&again, &to), text_of(&stored, &to));
                }
                let _ = before;
            }
        }
    }
}
