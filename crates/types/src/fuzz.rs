//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use crate::geometry::Geometry;
use crate::json::{self, JsonRef};
use crate::key::{KeyReader, encode_part};
use crate::temporal::{TemporalMode, parse_date, parse_datetime, parse_time};
use crate::{
    CollationId, DataType, Decimal, Fixed, Gtid, GtidSet, JsonPath, JsonValue, RecordLayout,
    TypeKind, Uuid, Value,
};

/// A type of each kind.
fn types() -> Vec<DataType> {
    let of = |kind, length| DataType::new(kind, length, 0);
    let mut types = vec![
        of(TypeKind::TinyInt, 4),
        of(TypeKind::SmallInt, 6).with_unsigned(),
        of(TypeKind::MediumInt, 9),
        of(TypeKind::Int, 11),
        of(TypeKind::BigInt, 20).with_unsigned(),
        DataType::decimal(30, 7),
        of(TypeKind::Float, 12),
        DataType::double(),
        of(TypeKind::Bit, 13),
        of(TypeKind::Year, 4),
        of(TypeKind::Date, 10),
        DataType::time(3),
        DataType::datetime(6),
        of(TypeKind::Timestamp, 19),
        DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI),
        of(TypeKind::Binary, 5),
        DataType::varbinary(20),
        of(TypeKind::LongText, u32::MAX),
        of(TypeKind::Enum, 1),
        of(TypeKind::Set, 1),
        DataType::json(),
        of(TypeKind::Vector, 3),
        DataType::geometry(),
        DataType::fixed(Fixed::Uuid),
        DataType::fixed(Fixed::Inet4),
        DataType::fixed(Fixed::Inet6),
    ];
    for (at, ty) in types.iter_mut().enumerate() {
        ty.nullable = at % 2 == 0;
    }
    types
}

/// JSON as text.
#[test]
fn json_texts() {
    bolero::check!().with_iterations(1_000).for_each(|text: &[u8]| {
        let parsed = json::parse(text);
        assert_eq!(json::check(text).is_ok(), parsed.is_ok());
        let Ok(value) = parsed else { return };
        let document = value.to_binary();
        assert!(document.len() <= 64 + text.len() * 32, "{} of {}", document.len(), text.len());
        let mut out = Vec::new();
        json::write_text(&document, &mut out);
        let again = json::parse(&out).expect("a written text");
        assert_eq!(again.to_binary(), document);
        json::write_pretty(&document, &mut out);
        assert_eq!(value.depth(), JsonRef::new(&document).depth());
    });
}

/// JSON as it is stored.
#[test]
fn json_documents() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let document = JsonRef::new(bytes);
        let _ = document.kind();
        let _ = (document.len(), document.get(b"a"), document.at(1));
        let _ = document.depth();
        let mut out = Vec::new();
        json::write_text(bytes, &mut out);
        let value = JsonValue::from_ref(document);
        // What is read from damage is sound once it is written.
        let sound = value.to_binary();
        let _ = JsonValue::from_ref(JsonRef::new(&sound)).to_text();
    });
}

/// Paths, and what they find.
#[test]
fn json_paths() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Ok(path) = JsonPath::parse(bytes) else { return };
        let mut text = Vec::new();
        path.write_text(&mut text);
        assert_eq!(
            JsonPath::parse(&text).as_ref(),
            Ok(&path),
            "{}",
            String::from_utf8_lossy(&text)
        );
        let document =
            json::parse(br#"{"a":[1,{"b":2,"a":[3]},[]],"b":{"a":{"a":null}}}"#).expect("JSON");
        let bytes = document.to_binary();
        let mut found = Vec::new();
        path.select(JsonRef::new(&bytes), &mut found);
        assert_eq!(path.first(JsonRef::new(&bytes)).is_some(), !found.is_empty());
        let _ = json::parse_at(br#"{"a":[1,{"b":2}],"b":null}"#, &path);
        document.clone().remove_path(&path);
    });
}

/// Geometries as they are stored.
#[test]
fn geometries() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Ok(read) = Geometry::read(bytes) else { return };
        let stored = read.to_bytes();
        assert!(stored.len() <= bytes.len() + 64);
        let again = Geometry::read(&stored).expect("a written geometry");
        assert_eq!(again.to_bytes(), stored);
        let _ = (read.shape.bounds(), read.shape.depth(), read.shape.is_empty());
        let _ = json::of_geometry(bytes).to_text();
    });
}

/// Rows as they are stored.
#[test]
fn records() {
    let layout = RecordLayout::new(&types());
    bolero::check!().with_iterations(1_000).for_each(|record: &[u8]| {
        let mut values = Vec::new();
        let read = layout.decode_all(record, &mut values);
        for column in 0..layout.column_count() {
            let _ = layout.column_bytes(record, column);
            let _ = layout.cell(record, column);
            let _ = layout.decode_column(record, column);
            let _ = layout.cell_at(record, &layout.place(column));
        }
        if read.is_err() {
            return;
        }
        let mut out = Vec::new();
        let Ok(()) = layout.encode(&values, &mut out) else { return };
        // Damage may be a number beyond its type; what is written is not.
        let (mut again, mut stored) = (Vec::new(), Vec::new());
        layout.decode_all(&out, &mut again).expect("a written record");
        layout.encode(&again, &mut stored).expect("values of a record");
        assert_eq!(stored, out);
    });
}

/// Keys: a byte says the type and the order.
#[test]
fn keys() {
    let types = types();
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((&head, key)) = bytes.split_first() else { return };
        let (ty, descending) = (&types[usize::from(head >> 1) % types.len()], head & 1 != 0);
        let mut reader = KeyReader::new(key);
        while let Some(value) = reader.read(ty, descending) {
            let mut out = Vec::new();
            encode_part(&value, ty, None, descending, &mut out);
            // Damage may be a number beyond its type; what is written is not.
            let again = KeyReader::new(&out).read(ty, descending).expect("a written key");
            let mut stored = Vec::new();
            encode_part(&again, ty, None, descending, &mut stored);
            assert_eq!(stored, out, "{ty:?}");
            if key.is_empty() || out.is_empty() {
                break;
            }
        }
        let _ = crate::key::split_key_record(key);
    });
}

/// Numbers and times as text, and decimals of keys.
#[test]
fn scalars() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((&bits, text)) = bytes.split_first() else { return };
        let is_set = |bit: u8| bits >> bit & 1 != 0;
        let mode = TemporalMode {
            no_zero_date: is_set(0),
            no_zero_in_date: is_set(1),
            allow_invalid_dates: is_set(2),
            truncate_fraction: is_set(3),
        };
        let fsp = (bits >> 4) % 7;
        let _ =
            (parse_datetime(text, fsp, mode), parse_date(text, mode), parse_time(text, fsp, mode));
        let _ = Decimal::parse_lenient(text);
        for number in [Decimal::parse(text), Decimal::read_key(text, 30, 7)].into_iter().flatten() {
            let mut out = Vec::new();
            number.write_text(&mut out);
            assert_eq!(Decimal::parse(&out), Some(number.clone()), "{number}");
            let _ = (number.to_f64(), number.to_i64(), number.to_u64());
            let mut key = Vec::new();
            let number = number.clamped(30, 7);
            number.write_key(30, 7, &mut key);
            let again = Decimal::read_key(&key, 30, 7).expect("a written key");
            assert_eq!(Value::Decimal(again), Value::Decimal(number));
        }
        let Ok(text) = std::str::from_utf8(text) else { return };
        let _ = Uuid::parse(text);
        if let Some(gtid) = Gtid::parse(text) {
            assert_eq!(Gtid::parse(&gtid.to_string()), Some(gtid));
        }
        if let Some(set) = GtidSet::parse(text) {
            assert_eq!(GtidSet::parse(&set.to_string()), Some(set));
        }
    });
}
