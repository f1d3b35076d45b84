//! Laws that relate comparison, hashes, keys and records, over random values of every type.

use std::cmp::Ordering;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::sync::Arc;

use errors::Diagnostics;
use proptest::prelude::*;
use types::compare::compare_for_sort;
use types::key::{KeyReader, encode_part, is_reversible};
use types::record::{Cell, is_stored_as_text, write_stored_text};
use types::{
    CastContext, CollationId, ComparisonKind, DataType, Members, RecordLayout, ResultCell, SqlMode,
    StoreMode, TypeKind, Value, hash_value, store, to_text,
};

fn types() -> Vec<DataType> {
    use TypeKind::*;
    let mut all = Vec::new();
    for kind in [
        TinyInt, SmallInt, MediumInt, Int, BigInt, Decimal, Float, Double, Bit, Year, Date, Time,
        DateTime, Char, VarChar, Binary, VarBinary, Text, Blob, Enum, Set, Json,
    ] {
        let float = matches!(kind, Float | Double);
        let mut ty = DataType::new(kind, 12, if float { 31 } else { 3 });
        if ty.is_text() || ty.is_enum_or_set() {
            ty.collation = CollationId::UTF8MB4_0900_AI_CI;
        }
        if ty.is_enum_or_set() {
            ty.members = Some(Arc::new(Members::new(["a", "b", "c"])));
        }
        if kind == VarChar {
            for collation in [
                CollationId::UTF8MB4_GENERAL_CI,
                CollationId::UTF8MB4_BIN,
                CollationId::UTF8MB4_0900_AS_CS,
                CollationId::UTF8MB4_UNICODE_CI,
                CollationId::LATIN1_SWEDISH_CI,
            ] {
                all.push(DataType::varchar(12, collation));
            }
        }
        if ty.is_numeric() && kind != Decimal {
            all.push(ty.clone().with_unsigned());
        }
        all.push(ty);
    }
    all
}

fn raw() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        3 => (-300i64..300).prop_map(Value::Int),
        2 => any::<i64>().prop_map(Value::Int),
        2 => any::<u64>().prop_map(Value::UInt),
        2 => (-1e5f64..1e5).prop_map(Value::Double),
        3 => "[aAbBéÉß \t]{0,6} {0,2}".prop_map(|text| Value::text(&text)),
        2 => "20[0-2][0-9]-0[1-9]-[12][0-9] [01][0-9]:[0-5][0-9]:11\\.[0-9]{0,6}"
            .prop_map(|text| Value::text(&text)),
        1 => "\\[[0-9]{1,3}, \"[a-c]{0,3}\"\\]".prop_map(|text| Value::text(&text)),
        1 => proptest::collection::vec(any::<u8>(), 0..8).prop_map(|b| Value::Bytes(b.into())),
    ]
}

fn stored(value: &Value, ty: &DataType) -> Value {
    let from = DataType::varchar(40, CollationId::UTF8MB4_BIN);
    let mut diagnostics = Diagnostics::new(0);
    let mut ctx = CastContext::new(SqlMode::EMPTY, &mut diagnostics);
    store(value, &from, ty, &mut ctx, StoreMode::Lenient).unwrap_or(Value::Null)
}

fn hash(kind: ComparisonKind, value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(kind, value, &mut hasher);
    hasher.finish()
}

fn key(value: &Value, ty: &DataType, descending: bool) -> Vec<u8> {
    let mut out = Vec::new();
    encode_part(value, ty, None, descending, &mut out);
    out
}

fn text(value: &Value, ty: &DataType) -> Vec<u8> {
    let mut out = Vec::new();
    to_text(value, ty, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(700) })]

    #[test]
    fn keys_and_hashes_follow_comparison(a in raw(), b in raw()) {
        for ty in types() {
            let (x, y) = (stored(&a, &ty), stored(&b, &ty));
            let kind = ComparisonKind::for_sort(&ty);
            let order = compare_for_sort(kind, &x, &y);
            let (k, l) = (key(&x, &ty, false), key(&y, &ty, false));
            prop_assert_eq!(k.cmp(&l), order, "{:?} {:?} {:?}", ty, x, y);
            prop_assert!(k == l || !k.starts_with(&l), "{:?} {:?} {:?}", ty, x, y);
            let (m, n) = (key(&x, &ty, true), key(&y, &ty, true));
            prop_assert_eq!(m.cmp(&n), order.reverse());
            if order == Ordering::Equal {
                prop_assert_eq!(hash(kind, &x), hash(kind, &y), "{:?} {:?} {:?}", ty, x, y);
            }
            if is_reversible(&ty) {
                let back = KeyReader::new(&m).read(&ty, true).unwrap();
                prop_assert_eq!(text(&back, &ty), text(&x, &ty));
            }
        }
    }

    #[test]
    fn a_record_made_over_another_is_the_one_made_of_all_values(
        values in proptest::collection::vec((raw(), raw(), any::<bool>()), 40),
        long in 0usize..70_000,
    ) {
        let types = types();
        let row = |pick: fn(&(Value, Value, bool)) -> &Value, long: usize| -> Vec<Value> {
            let values = types.iter().zip(&values);
            let value = values.map(|(ty, value)| match ty.kind {
                TypeKind::Text => Value::Bytes(vec![b'x'; long].into()),
                _ => stored(pick(value), ty),
            });
            value.collect()
        };
        let (old, mut new) = (row(|(old, _, _)| old, 9), row(|(_, new, _)| new, long));
        let is_new = |at: usize| values[at].2;
        for at in (0..new.len()).filter(|at| !is_new(*at)) {
            new[at] = old[at].clone();
        }
        let layout = RecordLayout::new(&types);
        let (mut before, mut whole, mut over) = (Vec::new(), Vec::new(), vec![7]);
        layout.encode(&old, &mut before).unwrap();
        layout.encode(&new, &mut whole).unwrap();
        let made = layout.encode_over(&before, |at| is_new(at).then(|| &new[at]), &mut over).unwrap();
        // Records of more than 64 KiB of texts have other offsets.
        prop_assert_eq!(made, whole[0] == before[0]);
        prop_assert_eq!(&over[..1], &[7]);
        if made {
            prop_assert_eq!(&over[1..], &whole[..]);
        }
        prop_assert!(!layout.encode_over(&before[..3], |_| None, &mut over).unwrap());
    }

    #[test]
    fn records_round_trip(values in proptest::collection::vec(raw(), 40), count in 0usize..40, long in 0usize..70_000) {
        let types = types();
        let row: Vec<Value> = types
            .iter()
            .zip(&values)
            .map(|(ty, value)| match ty.kind {
                TypeKind::Text => Value::Bytes(vec![b'x'; long].into()),
                _ => stored(value, ty),
            })
            .collect();
        let count = count.min(row.len());
        let layout = RecordLayout::new(&types);
        let mut record = Vec::new();
        layout.encode(&row[..count], &mut record).unwrap();
        let mut read = Vec::new();
        prop_assert_eq!(layout.decode_all(&record, &mut read).unwrap(), count);
        for (column, ty) in types.iter().enumerate() {
            let cell = layout.cell(&record, column).unwrap();
            if column >= count {
                prop_assert_eq!(cell, Cell::Missing);
                continue;
            }
            prop_assert_eq!(cell == Cell::Null, row[column].is_null());
            let mut out = Vec::new();
            if let Cell::Bytes(bytes) = cell {
                write_stored_text(bytes, ty, &mut out).unwrap();
                let stored = ResultCell::Stored { bytes, ty };
                prop_assert_eq!(&stored.into_value().unwrap(), &read[column]);
            }
            prop_assert_eq!(&out, &text(&row[column], ty), "{:?}", ty);
            if is_stored_as_text(ty.kind) && !row[column].is_null() {
                prop_assert_eq!(cell, Cell::Bytes(&out));
            }
            prop_assert_eq!(text(&read[column], ty), out);
        }
    }

    #[test]
    fn garbage_is_no_record(bytes in proptest::collection::vec(any::<u8>(), 0..120), cut in 0usize..100, row in proptest::collection::vec(raw(), 40)) {
        let types = types();
        let layout = RecordLayout::new(&types);
        let values: Vec<Value> = types.iter().zip(&row).map(|(ty, v)| stored(v, ty)).collect();
        let mut record = Vec::new();
        layout.encode(&values, &mut record).unwrap();
        record.truncate(cut);
        let mut like = vec![1, 0, 27, 0];
        like.extend_from_slice(&bytes);
        for record in [&bytes, &record, &like] {
            let mut out = Vec::new();
            let _ = layout.decode_all(record, &mut out);
            for (column, ty) in types.iter().enumerate() {
                if ty.kind != TypeKind::Json
                    && let Ok(Cell::Bytes(bytes)) = layout.cell(record, column)
                {
                    let _ = write_stored_text(bytes, ty, &mut Vec::new());
                }
            }
            let mut reader = KeyReader::new(record);
            types.iter().for_each(|ty| {
                reader.read(ty, false);
            });
        }
    }
}

#[test]
fn a_value_is_small() {
    assert!(size_of::<Value>() <= 32);
}
