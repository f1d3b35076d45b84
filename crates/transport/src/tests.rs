//! Files that are written and read again, damaged ones, and names.

use std::io::Cursor;

use types::{CollationId, DataType, RecordLayout, SqlBytes, TypeKind, Value};

use crate::check::RowCheck;
use crate::definition::{Definition, FileColumn};
use crate::file_names::{file_of, matching};
use crate::format::BLOCK_BYTES_MAX;
use crate::reader::{FileError, Reader};
use crate::writer::Writer;

/// Of a table of two columns.
pub(crate) fn definition() -> Definition {
    let column = |name: &str, type_text: &str, collation: &str, nullable| FileColumn {
        name: name.into(),
        type_text: type_text.into(),
        collation: collation.into(),
        nullable,
    };
    Definition {
        schema: "shop".into(),
        name: "orders".into(),
        partition: String::new(),
        statement: "CREATE TABLE `orders` (`a` int NOT NULL, `b` varchar(20), PRIMARY KEY (`a`))"
            .into(),
        next: 0,
        columns: vec![
            column("a", "int", "", false),
            column("b", "varchar(20)", "utf8mb4_0900_ai_ci", true),
        ],
    }
}

fn types() -> [DataType; 2] {
    let text = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
    [DataType::new(TypeKind::Int, 11, 0).with_nullable(false), text.with_nullable(true)]
}

fn record(a: i64, b: Option<&[u8]>) -> Vec<u8> {
    let b = b.map_or(Value::Null, |b| Value::Bytes(SqlBytes::new(b)));
    let mut out = Vec::new();
    RecordLayout::new(&types()).encode(&[Value::Int(a), b], &mut out).expect("a row");
    out
}

fn written(rows: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::begin(Vec::new(), &definition()).expect("memory");
    for row in rows {
        writer.row(row).expect("memory");
    }
    writer.finish().expect("memory")
}

fn read(file: &[u8]) -> Result<Vec<Vec<u8>>, FileError> {
    let mut reader = Reader::open(Cursor::new(file))?;
    let (mut rows, mut row) = (Vec::new(), Vec::new());
    while reader.next_row(&mut row)? {
        rows.push(row.clone());
    }
    Ok(rows)
}

#[test]
fn rows_come_back() {
    let rows = [record(1, Some(b"one")), record(-2, None), record(3, Some("dreißig".as_bytes()))];
    let file = written(&rows);
    assert_eq!(read(&file).expect("a sound file"), rows);
    assert_eq!(Reader::open(&file[..]).expect("a sound file").definition(), &definition());
    assert!(read(&written(&[])).expect("a sound file").is_empty());
}

/// A value larger than a block passes in pieces.
#[test]
fn long_rows_go_over_blocks() {
    let rows = [vec![7; 3 * BLOCK_BYTES_MAX + 5], vec![8; BLOCK_BYTES_MAX - 4], vec![9; 1]];
    let file = written(&rows);
    assert_eq!(read(&file).expect("a sound file"), rows);
}

/// The file of tests/format: version 1 does not change.
#[test]
fn golden_file() {
    let golden = include_bytes!("../../../tests/format/table-1.squall");
    let rows = [record(1, Some(b"one")), record(-2, None), record(3, Some("dreißig".as_bytes()))];
    assert_eq!(written(&rows), golden);
    assert_eq!(read(golden).expect("a sound file"), rows);
}

/// Whatever byte changes, and wherever the file ends, it is known.
#[test]
fn damage_is_known() {
    let rows = [record(1, Some(b"one")), record(2, None)];
    let file = written(&rows);
    for at in 0..file.len() {
        let mut other = file.clone();
        other[at] ^= 0x10;
        assert!(read(&other).is_err(), "byte {at}");
        assert!(matches!(read(&file[..at]), Err(FileError::Damaged(_))), "cut at {at}");
    }
    let longer = [&file[..], b"x"].concat();
    assert!(read(&longer).is_err());
}

#[test]
fn values_fit_their_types() {
    let check = RowCheck::new(&types());
    assert_eq!(check.fault(&record(1, Some(b"one"))), None);
    assert_eq!(check.fault(&record(1, None)), None);
    assert_eq!(check.fault(&record(1, Some(&[b'x'; 21]))), Some(1), "too long");
    assert_eq!(check.fault(&record(1, Some(b"\xff"))), Some(1), "no UTF-8");
    let mut null = Vec::new();
    let layout = RecordLayout::new(&types());
    layout.encode(&[Value::Null, Value::Null], &mut null).expect("a row");
    assert_eq!(check.fault(&null), Some(0), "NOT NULL");
    let mut short = Vec::new();
    layout.encode(&[Value::Int(1)], &mut short).expect("a row");
    assert_eq!(check.fault(&short), Some(2), "a column is missing");
    assert_eq!(check.fault(b""), Some(2));
}

#[test]
fn names_are_safe() {
    let path = |table: &str| file_of("x".as_ref(), "a.b", table, "").display().to_string();
    assert_eq!(path("orders"), "x/a@002eb/orders.squall");
    assert_eq!(path("../etc"), "x/a@002eb/@002e@002e@002fetc.squall");
    assert_eq!(path("straße#p#1"), "x/a@002eb/straße@0023p@00231.squall");
}

#[test]
fn patterns() {
    for (pattern, name, fits) in [
        ("*.squall", "t.squall", true),
        ("t*.squall", "t#p#p0.squall", true),
        ("t?.squall", "t1.squall", true),
        ("t?.squall", "t.squall", false),
        ("*a*b", "xaxbxb", true),
        ("*a*b", "xaxbx", false),
        ("", "", true),
        ("t", "tt", false),
    ] {
        assert_eq!(matching(pattern, name), fits, "{pattern} {name}");
    }
}
