//! Column definitions (the 4.1 form), and how the server's types appear in them.

use types::{DataType, NOT_FIXED_DECIMALS, TypeKind};

use crate::{ColumnFlags, ColumnType, Malformed, Reader, put_lenenc_bytes, put_lenenc_int};

/// Collation number of binary strings, numbers and temporal values.
const BINARY_COLLATION: u16 = 63;
/// Length of the fixed part: collation 2, length 4, type 1, flags 2, decimals 1, filler 2.
const FIXED_PART_BYTES: u64 = 12;

/// Metadata of a column as it travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnDefinition<'a> {
    /// Schema.
    pub schema: &'a [u8],
    /// Table alias.
    pub table: &'a [u8],
    /// Table.
    pub org_table: &'a [u8],
    /// Column alias.
    pub name: &'a [u8],
    /// Column.
    pub org_name: &'a [u8],
    /// Type and everything numeric.
    pub ty: TypeOnWire,
}

/// The numeric part of a column definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeOnWire {
    /// Type.
    pub ty: ColumnType,
    /// Collation number of the bytes that are sent.
    pub collation: u16,
    /// Longest value in bytes.
    pub length: u32,
    /// Flags.
    pub flags: ColumnFlags,
    /// Decimals.
    pub decimals: u8,
}

/// Whether a result column is a table's column or an expression; the reference sets flags accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnOrigin {
    /// A column of a table, or of a temporary one.
    Table,
    /// Anything else.
    Expression,
    /// The result of a function or a cast.
    Call,
}

/// The announced maximum number of characters of a text that an expression computes.
const EXPRESSION_CHARACTERS_MAX: u32 = 1 << 24;
/// Bytes that the reference counts for a character of a long computed text, for each byte of its encoding.
const LONG_TEXT_FACTOR: u32 = 4;

impl<'a> ColumnDefinition<'a> {
    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        put_lenenc_bytes(out, b"def");
        for text in [self.schema, self.table, self.org_table, self.name, self.org_name] {
            put_lenenc_bytes(out, text);
        }
        put_lenenc_int(out, FIXED_PART_BYTES);
        out.extend_from_slice(&self.ty.collation.to_le_bytes());
        out.extend_from_slice(&self.ty.length.to_le_bytes());
        out.push(self.ty.ty as u8);
        out.extend_from_slice(&self.ty.flags.0.to_le_bytes());
        out.extend_from_slice(&[self.ty.decimals, 0, 0]);
    }

    /// Reads the payload.
    ///
    /// # Errors
    /// Cut short, or an unknown type.
    pub fn decode(payload: &'a [u8]) -> Result<ColumnDefinition<'a>, Malformed> {
        let mut reader = Reader::new(payload);
        reader.lenenc_bytes()?;
        let schema = reader.lenenc_bytes()?;
        let table = reader.lenenc_bytes()?;
        let org_table = reader.lenenc_bytes()?;
        let name = reader.lenenc_bytes()?;
        let org_name = reader.lenenc_bytes()?;
        if reader.lenenc_int()? < FIXED_PART_BYTES {
            return Err(Malformed);
        }
        let collation = reader.u16()?;
        let length = reader.u32()?;
        let ty = ColumnType::from_u8(reader.u8()?).ok_or(Malformed)?;
        let flags = ColumnFlags(reader.u16()?);
        let decimals = reader.u8()?;
        let ty = TypeOnWire { ty, collation, length, flags, decimals };
        Ok(ColumnDefinition { schema, table, org_table, name, org_name, ty })
    }
}

impl TypeOnWire {
    /// How `ty` is announced to a client that gets text in `collation`, whose characters have up to
    /// `char_bytes_max` bytes.
    pub fn of(
        ty: &DataType,
        origin: ColumnOrigin,
        collation: u16,
        char_bytes_max: u32,
    ) -> TypeOnWire {
        let has_text = ty.is_text() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set);
        let is_text = has_text && ty.collation.0 != BINARY_COLLATION || ty.as_fixed().is_some();
        let is_made = origin != ColumnOrigin::Table;
        let made_json = is_made && ty.kind == TypeKind::Json;
        let length = match (made_json, is_made && is_text && ty.is_blob()) {
            (true, _) => u32::MAX - 3,
            (_, true) => made_text_length(ty, origin, char_bytes_max),
            _ => byte_length(ty, if is_text { char_bytes_max } else { 1 }),
        };
        TypeOnWire {
            ty: made_type(ty, origin).unwrap_or_else(|| column_type(ty.kind)),
            collation: if is_text || made_json { collation } else { BINARY_COLLATION },
            length,
            flags: type_flags(ty, origin, is_text),
            decimals: decimals(ty, origin),
        }
    }
}

/// Long computed strings have the types of their lengths; those of columns are all BLOBs.
fn made_type(ty: &DataType, origin: ColumnOrigin) -> Option<ColumnType> {
    match (ty.kind, origin) {
        (TypeKind::MediumText | TypeKind::MediumBlob, ColumnOrigin::Call) => {
            Some(ColumnType::MediumBlob)
        }
        (TypeKind::LongText | TypeKind::LongBlob, ColumnOrigin::Call) => Some(ColumnType::LongBlob),
        (TypeKind::LongText | TypeKind::LongBlob, ColumnOrigin::Expression)
            if ty.length < u32::MAX =>
        {
            Some(ColumnType::LongBlob)
        }
        _ => None,
    }
}

/// Bytes of a long text that was made.
fn made_text_length(ty: &DataType, origin: ColumnOrigin, char_bytes_max: u32) -> u32 {
    if ty.kind == TypeKind::LongText && origin == ColumnOrigin::Expression {
        return byte_length(ty, char_bytes_max);
    }
    let characters = match origin {
        ColumnOrigin::Call => ty.length.min(EXPRESSION_CHARACTERS_MAX),
        ColumnOrigin::Expression | ColumnOrigin::Table => ty.length,
    };
    characters.saturating_mul(char_bytes_max).saturating_mul(LONG_TEXT_FACTOR)
}

fn column_type(kind: TypeKind) -> ColumnType {
    match kind {
        TypeKind::Null => ColumnType::Null,
        TypeKind::TinyInt => ColumnType::Tiny,
        TypeKind::SmallInt => ColumnType::Short,
        TypeKind::MediumInt => ColumnType::Int24,
        TypeKind::Int => ColumnType::Long,
        TypeKind::BigInt => ColumnType::LongLong,
        TypeKind::Decimal => ColumnType::NewDecimal,
        TypeKind::Float => ColumnType::Float,
        TypeKind::Double => ColumnType::Double,
        TypeKind::Bit => ColumnType::Bit,
        TypeKind::Year => ColumnType::Year,
        TypeKind::Date => ColumnType::Date,
        TypeKind::Time => ColumnType::Time,
        TypeKind::DateTime => ColumnType::DateTime,
        TypeKind::Timestamp => ColumnType::Timestamp,
        TypeKind::VarChar | TypeKind::VarBinary => ColumnType::VarString,
        TypeKind::Char | TypeKind::Binary | TypeKind::Enum | TypeKind::Set | TypeKind::Fixed(_) => {
            ColumnType::String
        }
        TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText
        | TypeKind::TinyBlob
        | TypeKind::Blob
        | TypeKind::MediumBlob
        | TypeKind::LongBlob => ColumnType::Blob,
        TypeKind::Json => ColumnType::Json,
        TypeKind::Vector => ColumnType::Vector,
        TypeKind::Geometry => ColumnType::Geometry,
    }
}

fn byte_length(ty: &DataType, char_bytes_max: u32) -> u32 {
    let fraction = match ty.decimals {
        0 | NOT_FIXED_DECIMALS => 0,
        digits => 1 + u32::from(digits),
    };
    match ty.kind {
        TypeKind::Null => 0,
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
        | TypeKind::Float
        | TypeKind::Double
        | TypeKind::Bit => ty.length,
        TypeKind::Decimal => {
            ty.length.saturating_add(u32::from(ty.decimals > 0) + u32::from(!ty.unsigned))
        }
        TypeKind::Year => 4,
        TypeKind::Date => 10,
        TypeKind::Time => 10 + fraction,
        TypeKind::DateTime | TypeKind::Timestamp => 19 + fraction,
        TypeKind::Json | TypeKind::Geometry => u32::MAX,
        TypeKind::Vector => ty.length.saturating_mul(4),
        TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText
        | TypeKind::Enum
        | TypeKind::Set
        | TypeKind::Binary
        | TypeKind::VarBinary
        | TypeKind::TinyBlob
        | TypeKind::Blob
        | TypeKind::MediumBlob
        | TypeKind::LongBlob
        | TypeKind::Fixed(_) => ty.length.saturating_mul(char_bytes_max),
    }
}

fn decimals(ty: &DataType, origin: ColumnOrigin) -> u8 {
    let string = ty.is_string() || ty.kind == TypeKind::Json;
    match origin {
        ColumnOrigin::Expression | ColumnOrigin::Call if string => NOT_FIXED_DECIMALS,
        ColumnOrigin::Table if string => 0,
        ColumnOrigin::Expression | ColumnOrigin::Call | ColumnOrigin::Table => ty.decimals,
    }
}

fn type_flags(ty: &DataType, origin: ColumnOrigin, is_text: bool) -> ColumnFlags {
    use ColumnFlags as F;
    let year_column = ty.kind == TypeKind::Year && origin == ColumnOrigin::Table;
    let unsigned = ty.unsigned || year_column || ty.kind == TypeKind::Bit;
    // The reference marks numbers of expressions as binary, but not those of tables.
    let binary = match origin {
        ColumnOrigin::Expression | ColumnOrigin::Call => !is_text,
        ColumnOrigin::Table => {
            let number = ty.is_numeric();
            let text_by_bytes = is_text && is_binary_collation(ty.collation.0);
            (!is_text && !number) || text_by_bytes
        }
    };
    F::default()
        .with_if(F::NOT_NULL, !ty.nullable)
        .with_if(F::BLOB, ty.is_blob() && origin == ColumnOrigin::Table)
        .with_if(F::UNSIGNED, unsigned)
        .with_if(F::ZEROFILL, ty.zerofill || year_column)
        .with_if(F::BINARY, binary)
        .with_if(F::ENUM, ty.kind == TypeKind::Enum)
        .with_if(F::SET, ty.kind == TypeKind::Set)
}

/// Collations that compare bytes or code points.
fn is_binary_collation(id: u16) -> bool {
    matches!(id, 46 | 47 | 63 | 65 | 83 | 309)
}
