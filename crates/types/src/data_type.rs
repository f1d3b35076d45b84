//! The static type of a column or an expression.

use std::sync::Arc;

use charset::CollationId;

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
}

/// The strings of an ENUM or SET type.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Members {
    /// In declaration order, in utf8mb4 (or raw bytes for a binary collation).
    pub names: Vec<Box<[u8]>>,
}

/// A full type. Lengths count what the reference counts: characters for strings, bytes for binary strings,
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
    /// Collation of a string; `CollationId::BINARY` for all else.
    pub collation: CollationId,
    /// Members of an ENUM or SET.
    pub members: Option<Arc<Members>>,
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

    /// What a predicate returns: an `INT(1)`-like BIGINT.
    pub const fn boolean() -> DataType {
        DataType::new(TypeKind::BigInt, 1, 0)
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
    pub fn with_nullable(mut self, nullable: bool) -> DataType {
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

    /// TEXT and BLOB family: stored with a length of their own, needs a prefix in an index.
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

    /// DATE, TIME, DATETIME, TIMESTAMP.
    pub fn is_temporal(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Date | Time | DateTime | Timestamp)
    }
}
