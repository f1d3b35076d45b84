//! Files on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use types::{CollationId, DataType, Fixed, TypeKind};

use crate::check::RowCheck;
use crate::definition::Definition;
use crate::format::{Kind, MAGIC, VERSION, checksum};
use crate::reader::Reader;
use crate::tests::definition;

/// Reads a file to its end, or to where it is damaged.
fn read_all(bytes: &[u8]) {
    let Ok(mut reader) = Reader::open(bytes) else { return };
    let mut row = Vec::new();
    let mut rows = 0;
    while let Ok(true) = reader.next_row(&mut row) {
        rows += 1;
        assert!(row.len() <= bytes.len(), "a row is part of the file");
    }
    assert!(rows <= bytes.len());
}

/// Files as they are.
#[test]
fn files() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| read_all(bytes));
}

/// Blocks whose checksums are right, whatever they hold: the first byte of each piece says its kind and size.
#[test]
fn blocks() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let version = VERSION.to_le_bytes();
        let mut file = [&MAGIC[..], &version].concat();
        file.extend(checksum(&[&MAGIC, &version]).to_le_bytes());
        let mut put = |kind: u8, content: &[u8]| {
            let length = (content.len() as u32).to_le_bytes();
            file.push(kind);
            file.extend(length);
            file.extend(checksum(&[&[kind], &length, content]).to_le_bytes());
            file.extend(content);
        };
        put(Kind::Definition.byte(), &definition().to_bytes());
        let mut rest = bytes;
        while let Some((first, behind)) = rest.split_first() {
            let (now, later) = behind.split_at(behind.len().min(usize::from(first >> 2)));
            put(first & 3, now);
            rest = later;
        }
        read_all(&file);
    });
}

/// What is read as a definition is written as the same bytes.
#[test]
fn definitions() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        if let Some(read) = Definition::read(bytes) {
            assert_eq!(read.to_bytes(), bytes);
        }
    });
}

/// Records of columns of all kinds.
#[test]
fn rows() {
    let of = |kind, length| DataType::new(kind, length, 0);
    let types = [
        of(TypeKind::TinyInt, 4),
        of(TypeKind::BigInt, 20).with_unsigned(),
        DataType::decimal(30, 7),
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
    ];
    let check = RowCheck::new(&types);
    bolero::check!().with_iterations(1_000).for_each(|record: &[u8]| {
        let _ = check.fault(record);
    });
}
