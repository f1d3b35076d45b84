//! Records and keys byte by byte: existing files must stay readable.

use std::sync::Arc;

use types::key::encode_part;
use types::{CollationId, DataType, Members, RecordLayout, TypeKind, Value};

/// A column of every kind, with a value.
fn row() -> Vec<(DataType, Value)> {
    use TypeKind::*;
    let date = types::Date::new(2024, 2, 29).expect("a date");
    let datetime = types::DateTime::new(date, 1, 2, 3, 450_000).expect("a time");
    let whole = types::DateTime::new(date, 1, 2, 3, 0).expect("a time");
    let text = CollationId::UTF8MB4_0900_AI_CI;
    let mut choice = DataType::new(Enum, 1, 0);
    let names = ["a", "b", "c"];
    choice.members = Some(Arc::new(Members::new(names)));
    let mut set = DataType::new(Set, 5, 0);
    set.members = Some(Arc::new(Members::new(names)));
    let mut wide = DataType::new(Enum, 6, 0);
    let names = (0..70_000).map(|n| format!("{n:06}"));
    wide.members = Some(Arc::new(Members::new(names)));
    vec![
        (DataType::new(TinyInt, 4, 0), Value::Int(-2)),
        (DataType::new(SmallInt, 6, 0), Value::Int(-300)),
        (DataType::new(MediumInt, 9, 0), Value::Int(70_000)),
        (DataType::new(Int, 11, 0), Value::Int(-70_000)),
        (DataType::bigint_unsigned(), Value::UInt(u64::MAX - 1)),
        (
            DataType::decimal(10, 2),
            Value::Decimal(types::Decimal::parse(b"-1234.56").expect("a number")),
        ),
        (DataType::double(), Value::Double(-1.5)),
        (DataType::new(Bit, 10, 0), Value::UInt(0x2A5)),
        (DataType::new(Year, 4, 0), Value::UInt(2024)),
        (DataType::date(), Value::Date(date)),
        (DataType::new(DateTime, 19, 0), Value::DateTime(whole)),
        (DataType::new(DateTime, 26, 6), Value::DateTime(datetime)),
        (
            DataType::new(Time, 10, 0),
            Value::Time(types::Time::new(true, 800, 2, 3, 0).expect("a time")),
        ),
        (choice, Value::UInt(3)),
        (wide, Value::UInt(70_000)),
        (set, Value::UInt(5)),
        (DataType::varchar(20, text), Value::text("h\u{e9}llo")),
        (DataType::varchar(20, text), Value::Null),
        (DataType::new(Blob, 65_535, 0), Value::Bytes([0_u8, 255, 7].as_slice().into())),
    ]
}

#[test]
fn a_record_has_its_golden_bytes() {
    const GOLDEN: &str = include_str!("golden/record.hex");
    let (types, values): (Vec<DataType>, Vec<Value>) = row().into_iter().unzip();
    let layout = RecordLayout::new(&types);
    let mut record = Vec::new();
    layout.encode(&values, &mut record).expect("a record");
    golden::check("record.hex", &record, GOLDEN);
    let mut read = Vec::new();
    layout.decode_all(&golden::bytes(GOLDEN), &mut read).expect("readable");
    assert_eq!(read, values);
}

#[test]
fn keys_have_their_golden_bytes() {
    const GOLDEN: &str = include_str!("golden/keys.hex");
    let mut keys = Vec::new();
    for descending in [false, true] {
        for (ty, value) in row() {
            if ty.kind != TypeKind::Blob {
                encode_part(&value, &ty, None, descending, &mut keys);
            }
        }
    }
    golden::check("keys.hex", &keys, GOLDEN);
}
