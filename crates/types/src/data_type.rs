//! The static type of a column or an expression.

use std::sync::Arc;

use charset::CollationId;

use crate::fixed::Fixed;
use crate::geometry::{GeometryKind, SpatialType};

/// `DataType::decimals` of a floating-point type without a fixed number of decimals.
pub const NOT_FIXED_DECIMALS: u8 = 31;

/// The family of a type, one for each type that a column can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TypeKind {
    /// The type of the literal `NULL`.
    Null,
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    /// `BIT(n)`: the value is `Value::UInt`.
    Bit,
    Year,
    Date,
    Time,
    DateTime,
    /// Stored in UTC; expressions see local `Value::DateTime` after `plan::Expr::TimestampToLocal`.
    Timestamp,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    /// The value is `Value::UInt(index)`, 1-based; 0 is the error value `''`.
    Enum,
    /// The value is `Value::UInt(bits)`, bit 0 for the first member.
    Set,
    /// Binary JSON in `Value::Json`.
    Json,
    /// `VECTOR(n)`: little-endian f32s in `Value::Bytes`.
    Vector,
    /// SRID and WKB in `Value::Bytes`.
    Geometry,
    /// UUID, INET4 and INET6: their bytes in the order of their values in `Value::Bytes`.
    Fixed(Fixed),
}

impl TypeKind {
    /// A number for each, to be told apart by; it is stored nowhere.
    pub const fn number(self) -> u8 {
        use TypeKind::*;
        match self {
            Null => 0,
            TinyInt => 1,
            SmallInt => 2,
            MediumInt => 3,
            Int => 4,
            BigInt => 5,
            Decimal => 6,
            Float => 7,
            Double => 8,
            Bit => 9,
            Year => 10,
            Date => 11,
            Time => 12,
            DateTime => 13,
            Timestamp => 14,
            Char => 15,
            VarChar => 16,
            Binary => 17,
            VarBinary => 18,
            TinyText => 19,
            Text => 20,
            MediumText => 21,
            LongText => 22,
            TinyBlob => 23,
            Blob => 24,
            MediumBlob => 25,
            LongBlob => 26,
            Enum => 27,
            Set => 28,
            Json => 29,
            Vector => 30,
            Geometry => 31,
            Fixed(kind) => 32 + kind as u8,
        }
    }

    /// The name of the family in lower case.
    pub const fn name(self) -> &'static str {
        use TypeKind::*;
        match self {
            Null => "null",
            TinyInt => "tinyint",
            SmallInt => "smallint",
            MediumInt => "mediumint",
            Int => "int",
            BigInt => "bigint",
            Decimal => "decimal",
            Float => "float",
            Double => "double",
            Bit => "bit",
            Year => "year",
            Date => "date",
            Time => "time",
            DateTime => "datetime",
            Timestamp => "timestamp",
            Char => "char",
            VarChar => "varchar",
            Binary => "binary",
            VarBinary => "varbinary",
            TinyText => "tinytext",
            Text => "text",
            MediumText => "mediumtext",
            LongText => "longtext",
            TinyBlob => "tinyblob",
            Blob => "blob",
            MediumBlob => "mediumblob",
            LongBlob => "longblob",
            Enum => "enum",
            Set => "set",
            Json => "json",
            Vector => "vector",
            Geometry => "geometry",
            Fixed(kind) => kind.name(),
        }
    }
}

/// The strings of an ENUM or SET type in declaration order, in utf8mb4 (or raw bytes for a binary collation). One behind the other, because there may be
/// many short ones.
#[derive(Debug, Default, PartialEq, Eq, Hash)]
pub struct Members {
    bytes: Box<[u8]>,
    /// Where each one ends in `bytes`.
    ends: Box<[u32]>,
}

impl Members {
    /// These. They are in a statement or an entry of the dictionary, which are below 4 GiB.
    pub fn new(names: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Members {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for name in names {
            bytes.extend_from_slice(name.as_ref());
            assert!(bytes.len() <= u32::MAX as usize, "the members of a type are below 4 GiB");
            ends.push(bytes.len() as u32);
        }
        Members { bytes: bytes.into(), ends: ends.into() }
    }

    /// That many members without their names, for who only needs the numbers.
    pub fn unnamed(count: usize) -> Members {
        Members { bytes: Box::default(), ends: vec![0; count].into() }
    }

    /// Whether there are members, and none has a name.
    pub fn is_unnamed(&self) -> bool {
        self.bytes.is_empty() && !self.ends.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The name at a position from 0.
    pub fn get(&self, position: usize) -> Option<&[u8]> {
        let end = *self.ends.get(position)? as usize;
        let start = position.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        self.bytes.get(start..end)
    }

    /// The names.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|position| self.get(position).unwrap_or_default())
    }

    /// Whether `self` begins with all members of `other`.
    pub fn starts_with(&self, other: &Members) -> bool {
        self.ends.starts_with(&other.ends) && self.bytes.starts_with(&other.bytes)
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Members>() + self.bytes.len() + size_of_val(&*self.ends)
    }
}

/// A full type. Lengths have the reference's units: characters for strings, bytes for binary strings,
/// digits for decimals, bits for BIT, display width for integers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DataType {
    /// The family.
    pub kind: TypeKind,
    /// `UNSIGNED`; only numbers.
    pub unsigned: bool,
    /// `ZEROFILL`; only numbers, implies `unsigned`.
    pub zerofill: bool,
    /// May be NULL.
    pub nullable: bool,
    /// See the type's comment.
    pub length: u32,
    /// Scale of a decimal, fractional-second digits of a temporal type, `NOT_FIXED_DECIMALS` of a float.
    pub decimals: u8,
    /// Collation of a string; `CollationId::BINARY` for all other types.
    pub collation: CollationId,
    /// Members of an ENUM or SET.
    pub members: Option<Arc<Members>>,
    /// The restriction of a GEOMETRY; empty for all other types.
    pub spatial: SpatialType,
}

impl DataType {
    /// A type of `kind` with `length` and `decimals`; signed, nullable, binary collation.
    pub const fn new(kind: TypeKind, length: u32, decimals: u8) -> DataType {
        DataType {
            kind,
            unsigned: false,
            zerofill: false,
            nullable: true,
            length,
            decimals,
            collation: CollationId::BINARY,
            members: None,
            spatial: SpatialType { kind: GeometryKind::Geometry, srid: None },
        }
    }

    /// Type of the literal NULL.
    pub const fn null() -> DataType {
        DataType::new(TypeKind::Null, 0, 0)
    }

    /// Signed 64-bit integer.
    pub const fn bigint() -> DataType {
        DataType::new(TypeKind::BigInt, 21, 0)
    }

    /// Unsigned 64-bit integer.
    pub const fn bigint_unsigned() -> DataType {
        let mut ty = DataType::new(TypeKind::BigInt, 21, 0);
        ty.unsigned = true;
        ty
    }

    /// The type of a predicate: an `INT(1)`-like BIGINT.
    pub const fn boolean() -> DataType {
        DataType::new(TypeKind::BigInt, 1, 0)
    }

    /// Whether it is the type of a predicate: true and false in JSON, not numbers.
    pub fn is_truth(&self) -> bool {
        self.kind == TypeKind::BigInt && self.length == 1
    }

    /// Double without fixed decimals.
    pub const fn double() -> DataType {
        DataType::new(TypeKind::Double, 23, NOT_FIXED_DECIMALS)
    }

    /// `DECIMAL(precision, scale)`.
    pub const fn decimal(precision: u32, scale: u8) -> DataType {
        DataType::new(TypeKind::Decimal, precision, scale)
    }

    /// `VARCHAR(length)` in `collation`.
    pub const fn varchar(length: u32, collation: CollationId) -> DataType {
        let mut ty = DataType::new(TypeKind::VarChar, length, 0);
        ty.collation = collation;
        ty
    }

    /// `VARBINARY(length)`.
    pub const fn varbinary(length: u32) -> DataType {
        DataType::new(TypeKind::VarBinary, length, 0)
    }

    /// Same type, nullable or not.
    pub const fn with_nullable(mut self, nullable: bool) -> DataType {
        self.nullable = nullable;
        self
    }

    /// Integer types, BIT and YEAR excluded.
    pub fn is_integer(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, TinyInt | SmallInt | MediumInt | Int | BigInt)
    }

    /// Every type whose values are numbers in a numeric context without conversion.
    pub fn is_numeric(&self) -> bool {
        use TypeKind::*;
        self.is_integer() || matches!(self.kind, Decimal | Float | Double | Bit | Year)
    }

    /// CHAR, VARCHAR and TEXT family, with a character set.
    pub fn is_text(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Char | VarChar | TinyText | Text | MediumText | LongText)
    }

    /// BINARY, VARBINARY and BLOB family.
    pub fn is_binary(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Binary | VarBinary | TinyBlob | Blob | MediumBlob | LongBlob)
    }

    /// TEXT and BLOB family: stored with its own length, needs a prefix in an index.
    pub fn is_blob(&self) -> bool {
        use TypeKind::*;
        matches!(
            self.kind,
            TinyText
                | Text
                | MediumText
                | LongText
                | TinyBlob
                | Blob
                | MediumBlob
                | LongBlob
                | Json
                | Geometry
                | Vector
        )
    }

    /// Text or binary string.
    pub fn is_string(&self) -> bool {
        self.is_text() || self.is_binary()
    }

    /// Whether it is ENUM or SET, whose values are numbers that represent texts.
    pub fn has_members(&self) -> bool {
        matches!(self.kind, TypeKind::Enum | TypeKind::Set)
    }

    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Date | Time | DateTime | Timestamp)
    }
}

impl DataType {
    /// Name of a member of an ENUM by its 1-based index.
    pub fn member(&self, index: u64) -> Option<&[u8]> {
        let position = usize::try_from(index.checked_sub(1)?).ok()?;
        self.members.as_ref()?.get(position)
    }

    /// Number of members of an ENUM or SET.
    pub fn member_count(&self) -> usize {
        self.members.as_ref().map_or(0, |members| members.len())
    }

    /// `CHAR(length)` in `collation`.
    pub const fn char(length: u32, collation: CollationId) -> DataType {
        let mut ty = DataType::new(TypeKind::Char, length, 0);
        ty.collation = collation;
        ty
    }

    /// `DATE`.
    pub const fn date() -> DataType {
        DataType::new(TypeKind::Date, 10, 0)
    }

    /// `TIME(fsp)`.
    pub const fn time(fsp: u8) -> DataType {
        DataType::new(TypeKind::Time, if fsp == 0 { 10 } else { 11 + fsp as u32 }, fsp)
    }

    /// `DATETIME(fsp)`.
    pub const fn datetime(fsp: u8) -> DataType {
        DataType::new(TypeKind::DateTime, if fsp == 0 { 19 } else { 20 + fsp as u32 }, fsp)
    }

    /// `JSON`.
    pub const fn json() -> DataType {
        DataType::new(TypeKind::Json, u32::MAX, 0)
    }

    /// `GEOMETRY`.
    pub const fn geometry() -> DataType {
        DataType::new(TypeKind::Geometry, u32::MAX, 0)
    }

    /// `UUID`, `INET4` or `INET6`.
    pub const fn fixed(kind: Fixed) -> DataType {
        DataType::new(TypeKind::Fixed(kind), kind.characters(), 0)
    }

    /// Same type, unsigned.
    pub const fn with_unsigned(mut self) -> DataType {
        self.unsigned = true;
        self
    }

    /// Which of UUID, INET4 and INET6 it is.
    pub fn as_fixed(&self) -> Option<Fixed> {
        if let TypeKind::Fixed(kind) = self.kind { Some(kind) } else { None }
    }

    /// ENUM and SET.
    pub fn is_enum_or_set(&self) -> bool {
        matches!(self.kind, TypeKind::Enum | TypeKind::Set)
    }

    /// Types with a date in them.
    pub fn has_date(&self) -> bool {
        matches!(self.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp)
    }

    /// Least and greatest value of an integer type.
    pub fn integer_range(&self) -> Option<(i64, u64)> {
        let bits = match self.kind {
            TypeKind::TinyInt => 8,
            TypeKind::SmallInt => 16,
            TypeKind::MediumInt => 24,
            TypeKind::Int => 32,
            TypeKind::BigInt => 64,
            _ => return None,
        };
        if self.unsigned {
            Some((0, u64::MAX >> (64 - bits)))
        } else {
            Some((i64::MIN >> (64 - bits), (u64::MAX >> 1) >> (64 - bits)))
        }
    }
}
