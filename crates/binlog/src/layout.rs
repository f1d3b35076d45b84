//! How the values of a column are written in rows of events.

use charset::Charset;
use types::{CollationId, DataType, Fixed, TypeKind};

/// The form of a column's values.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Little-endian, of so many bytes.
    Int {
        width: u8,
        unsigned: bool,
    },
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: u8,
    },
    Bit {
        bytes: u8,
    },
    Year,
    Date,
    Time {
        fsp: u8,
    },
    DateTime {
        fsp: u8,
    },
    Timestamp {
        fsp: u8,
    },
    /// TIME, DATETIME or TIMESTAMP as MariaDB writes it with `mysql56_temporal_format = OFF`; the digits of a second are not in the event.
    Old {
        kind: OldTemporal,
        fsp: u8,
    },
    /// Text in its character set (`None`: bytes) after a length of `prefix` bytes. `padded` bytes: what BINARY(n) is filled to.
    Text {
        prefix: u8,
        charset: Option<&'static Charset>,
        padded: u8,
    },
    /// ENUM and SET: the number.
    Member {
        width: u8,
    },
    Json,
    /// UUID, INET4 and INET6, as BINARY: their usual bytes.
    Fixed(Fixed),
}

/// What [`Shape::Old`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldTemporal {
    Time,
    DateTime,
    Timestamp,
}

impl Shape {
    /// The form of a type's values.
    pub(crate) fn of(ty: &DataType) -> Shape {
        let fsp = ty.decimals.min(6);
        let int = |width| Shape::Int { width, unsigned: ty.unsigned };
        let bytes = |prefix| Shape::Text { prefix, charset: None, padded: 0 };
        let text = |prefix| Shape::Text { prefix, charset: converted(ty.collation), padded: 0 };
        let prefix = if byte_length(ty) > 255 { 2 } else { 1 };
        match ty.kind {
            // No column has this type.
            TypeKind::Null => bytes(1),
            TypeKind::TinyInt => int(1),
            TypeKind::SmallInt => int(2),
            TypeKind::MediumInt => int(3),
            TypeKind::Int => int(4),
            TypeKind::BigInt => int(8),
            TypeKind::Decimal => {
                Shape::Decimal { precision: ty.length.clamp(1, 65) as u8, scale: ty.decimals }
            }
            TypeKind::Float => Shape::Float,
            TypeKind::Double => Shape::Double,
            TypeKind::Bit => Shape::Bit { bytes: ty.length.clamp(1, 64).div_ceil(8) as u8 },
            TypeKind::Year => Shape::Year,
            TypeKind::Date => Shape::Date,
            TypeKind::Time => Shape::Time { fsp },
            TypeKind::DateTime => Shape::DateTime { fsp },
            TypeKind::Timestamp => Shape::Timestamp { fsp },
            TypeKind::Char | TypeKind::VarChar => text(prefix),
            TypeKind::Binary => {
                Shape::Text { prefix, charset: None, padded: ty.length.min(255) as u8 }
            }
            TypeKind::VarBinary => bytes(prefix),
            TypeKind::TinyText => text(1),
            TypeKind::Text => text(2),
            TypeKind::MediumText => text(3),
            TypeKind::LongText => text(4),
            TypeKind::TinyBlob => bytes(1),
            TypeKind::Blob => bytes(2),
            TypeKind::MediumBlob => bytes(3),
            TypeKind::LongBlob | TypeKind::Geometry | TypeKind::Vector => bytes(4),
            TypeKind::Enum => Shape::Member { width: enum_width(ty.member_count()) },
            TypeKind::Set => Shape::Member { width: set_width(ty.member_count()) },
            TypeKind::Json => Shape::Json,
            TypeKind::Fixed(kind) => Shape::Fixed(kind),
        }
    }
}

/// Bytes of an ENUM's number.
pub(crate) fn enum_width(members: usize) -> u8 {
    if members > 255 { 2 } else { 1 }
}

/// Bytes of a SET's bits.
pub(crate) fn set_width(members: usize) -> u8 {
    match members.div_ceil(8) {
        0 => 1,
        bytes @ 1..=4 => bytes as u8,
        _ => 8,
    }
}

/// The character set of a collation, when its bytes are not those of UTF-8.
pub(crate) fn converted(collation: CollationId) -> Option<&'static Charset> {
    let collation = charset::collation_or_binary(collation);
    let same = collation.is_binary() || collation.charset.is_utf8();
    (!same).then_some(collation.charset)
}

/// Most bytes of a string's value.
pub(crate) fn byte_length(ty: &DataType) -> u32 {
    let per_character = if matches!(ty.kind, TypeKind::Char | TypeKind::VarChar) {
        u32::from(charset::collation_or_binary(ty.collation).charset.max_length)
    } else {
        1
    };
    ty.length.saturating_mul(per_character)
}

/// The forms of a table's columns: what rows are written with. Made once for a version of a table.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) shapes: Vec<Shape>,
}

impl Layout {
    /// The layout of columns with these types, in their order.
    pub fn new<'t>(types: impl IntoIterator<Item = &'t DataType>) -> Layout {
        Layout { shapes: types.into_iter().map(Shape::of).collect() }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether it has no columns.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }
}
