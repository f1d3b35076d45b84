//! Column types: from syntax to `types::DataType`, with the reference's limits and errors.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use charset::Collation;
use errors::{Error, ErrorCode, Result, bail, err};
use syntax::ast::{self, TypeName};
use types::geometry::GeometryKind;
use types::{CollationId, DataType, Fixed, Members, NOT_FIXED_DECIMALS, SqlMode, TypeKind};

use crate::charsets::stored_collation;

/// Maximum number of characters of CHAR and BINARY.
const CHAR_LENGTH_MAX: u64 = 255;
/// Maximum number of bytes of VARCHAR and VARBINARY.
const VARCHAR_BYTES_MAX: u64 = 65_535;
/// Maximum number of ENUM members when `enum_max_values` is 0: the largest number in three bytes.
const ENUM_MEMBERS_MAX: usize = (1 << 24) - 1;
/// Maximum number of members of a SET.
const SET_MEMBERS_MAX: usize = 64;
/// Maximum number of characters of a member.
const MEMBER_LENGTH_MAX: usize = 255;
/// Dimensions of VECTOR: default and maximum.
const VECTOR_DEFAULT: u64 = 2048;
const VECTOR_MAX: u64 = 16_383;

/// The settings that the type of a column depends on besides its text.
pub struct TypeContext<'a> {
    /// Collation that the table is declared in.
    pub table_collation: CollationId,
    /// COLLATE attribute of the column.
    pub collate: Option<&'a str>,
    /// SQL mode.
    pub sql_mode: SqlMode,
    /// `enum_max_values`; 0 for the storage limit.
    pub enum_members_max: usize,
    /// Column name, for messages.
    pub column: &'a str,
}

/// The type of a column.
///
/// # Errors
/// 1074, 1115, 1253, 1273, 1291, 1425, 1426, 1427, 1439, 3505, 1097, 1235.
pub fn column_type(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let mut ty = match written.name {
        TypeName::TinyInt | TypeName::Bool => integer(written, TypeKind::TinyInt, 4, ctx)?,
        TypeName::SmallInt => integer(written, TypeKind::SmallInt, 6, ctx)?,
        TypeName::MediumInt => integer(written, TypeKind::MediumInt, 9, ctx)?,
        TypeName::Int | TypeName::Signed => integer(written, TypeKind::Int, 11, ctx)?,
        TypeName::BigInt | TypeName::Unsigned => integer(written, TypeKind::BigInt, 20, ctx)?,
        TypeName::Serial => {
            let mut ty = DataType::new(TypeKind::BigInt, 20, 0);
            ty.unsigned = true;
            ty
        }
        TypeName::Bit => bit(written, ctx)?,
        TypeName::Decimal => decimal(written, ctx)?,
        TypeName::Float | TypeName::Double => float(written, ctx)?,
        TypeName::Date => DataType::new(TypeKind::Date, 10, 0),
        TypeName::Time => temporal(written, TypeKind::Time, 10, ctx)?,
        TypeName::Datetime => temporal(written, TypeKind::DateTime, 19, ctx)?,
        TypeName::Timestamp => temporal(written, TypeKind::Timestamp, 19, ctx)?,
        TypeName::Year => year(written)?,
        TypeName::Char
        | TypeName::Varchar
        | TypeName::TinyText
        | TypeName::Text
        | TypeName::MediumText
        | TypeName::LongText => text(written, ctx)?,
        TypeName::Binary
        | TypeName::Varbinary
        | TypeName::TinyBlob
        | TypeName::Blob
        | TypeName::MediumBlob
        | TypeName::LongBlob => binary(written, ctx)?,
        TypeName::Enum | TypeName::Set => members(written, ctx)?,
        TypeName::Json => DataType::new(TypeKind::Json, u32::MAX, 0),
        TypeName::Vector => vector(written, ctx)?,
        TypeName::Geometry
        | TypeName::Point
        | TypeName::LineString
        | TypeName::Polygon
        | TypeName::MultiPoint
        | TypeName::MultiLineString
        | TypeName::MultiPolygon
        | TypeName::GeometryCollection => geometry(written.name),
        TypeName::Uuid => DataType::fixed(Fixed::Uuid),
        TypeName::Inet4 => DataType::fixed(Fixed::Inet4),
        TypeName::Inet6 => DataType::fixed(Fixed::Inet6),
    };
    if written.unsigned || written.zerofill {
        ty.unsigned = true;
        ty.zerofill = written.zerofill;
    }
    let has_text = ty.is_text() || matches!(ty.kind, TypeKind::Enum | TypeKind::Set);
    if let (Some(name), false) = (ctx.collate, has_text) {
        let collation = find_collation(name)?;
        if collation.id != CollationId::BINARY {
            bail!(COLLATION_CHARSET_MISMATCH, collation.name, "binary");
        }
    }
    Ok(ty)
}

fn integer(
    written: &ast::DataType,
    kind: TypeKind,
    signed_width: u32,
    ctx: &TypeContext<'_>,
) -> Result<DataType> {
    let unsigned_width = if kind == TypeKind::BigInt { signed_width } else { signed_width - 1 };
    let unsigned = written.unsigned || written.zerofill;
    let natural = if unsigned { unsigned_width } else { signed_width };
    let width = match (written.name, written.length) {
        (TypeName::Bool, _) => 1,
        (_, Some(width)) if width > 255 => {
            bail!(TOO_BIG_DISPLAYWIDTH, ctx.column, 255);
        }
        // Only TINYINT(1) and ZEROFILL show their width, but results are described with it.
        (_, Some(width)) if width > 0 => width as u32,
        _ => natural,
    };
    Ok(DataType::new(kind, width, 0))
}

fn bit(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    match written.length.unwrap_or(1) {
        0 => Err(err!(INVALID_FIELD_SIZE, ctx.column)),
        bits @ 1..=64 => Ok(DataType::new(TypeKind::Bit, bits as u32, 0)),
        _ => Err(err!(TOO_BIG_DISPLAYWIDTH, ctx.column, 64)),
    }
}

fn decimal(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let scale = written.decimals.unwrap_or(0);
    if scale > 30 {
        bail!(TOO_BIG_SCALE, scale, ctx.column, 30);
    }
    let precision = match written.length {
        Some(0) if scale > 0 => bail!(M_BIGGER_THAN_D, ctx.column),
        None | Some(0) => 10,
        Some(precision) if precision > 65 => bail!(TOO_BIG_PRECISION, precision, ctx.column, 65),
        Some(precision) => precision as u32,
    };
    if scale > precision {
        bail!(M_BIGGER_THAN_D, ctx.column);
    }
    Ok(DataType::decimal(precision, scale as u8))
}

fn float(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let mut double = written.name == TypeName::Double;
    match (written.length, written.decimals) {
        (Some(digits), Some(scale)) => {
            if scale > 30 {
                bail!(TOO_BIG_SCALE, scale, ctx.column, 30);
            }
            if digits > 255 {
                bail!(TOO_BIG_DISPLAYWIDTH, ctx.column, 255);
            }
            if u64::from(scale) > digits {
                bail!(M_BIGGER_THAN_D, ctx.column);
            }
            let kind = if double { TypeKind::Double } else { TypeKind::Float };
            return Ok(DataType::new(kind, digits as u32, scale as u8));
        }
        // FLOAT(p) chooses the width by bits of precision.
        (Some(bits), None) => {
            if bits > 53 {
                bail!(WRONG_FIELD_SPEC, ctx.column);
            }
            double |= bits > 24;
        }
        (None, _) => {}
    }
    Ok(if double {
        DataType::new(TypeKind::Double, 22, NOT_FIXED_DECIMALS)
    } else {
        DataType::new(TypeKind::Float, 12, NOT_FIXED_DECIMALS)
    })
}

fn temporal(
    written: &ast::DataType,
    kind: TypeKind,
    width: u32,
    ctx: &TypeContext<'_>,
) -> Result<DataType> {
    let digits = written.length.unwrap_or(0);
    if digits > 6 {
        bail!(TOO_BIG_PRECISION, digits, ctx.column, 6);
    }
    let digits = digits as u8;
    let width = if digits > 0 { width + 1 + u32::from(digits) } else { width };
    Ok(DataType::new(kind, width, digits))
}

fn year(written: &ast::DataType) -> Result<DataType> {
    match written.length {
        None | Some(4) => {
            let mut ty = DataType::new(TypeKind::Year, 4, 0);
            ty.unsigned = true;
            Ok(ty)
        }
        Some(_) => Err(err!(INVALID_YEAR_COLUMN_LENGTH)),
    }
}

/// The collation of a text column: COLLATE, else the character set's default, else the table's.
fn text_collation(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<&'static Collation> {
    declared_collation(written, ctx).map(stored_collation)
}

/// The declared collation, explicit or from its surroundings.
fn declared_collation(
    written: &ast::DataType,
    ctx: &TypeContext<'_>,
) -> Result<&'static Collation> {
    let charset = match &written.charset {
        Some(name) => Some(find_charset(&name.text)?),
        None => None,
    };
    let collate = ctx.collate.or(written.collation.as_ref().map(|name| &*name.text));
    let table = charset::collation_or_binary(ctx.table_collation);
    if let Some(name) = collate {
        let collation = find_collation(name)?;
        if let Some(charset) = charset
            && collation.charset.name != charset.name
        {
            bail!(COLLATION_CHARSET_MISMATCH, collation.name, charset.name);
        }
        return Ok(collation);
    }
    let base = match charset {
        // A column that names the table's character set takes that set's default, as the reference does.
        Some(charset) => charset::collation_or_binary(charset.default_collation),
        None => table,
    };
    if written.binary {
        return bin_collation(base.charset.name);
    }
    Ok(base)
}

/// The `_bin` collation of a character set.
fn bin_collation(charset: &str) -> Result<&'static Collation> {
    if charset == "binary" {
        return Ok(charset::collation_or_binary(CollationId::BINARY));
    }
    find_collation(&format!("{charset}_bin"))
}

/// 1115 or the character set.
pub fn find_charset(name: &str) -> Result<&'static charset::Charset> {
    charset::charset_by_name(name).ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, name))
}

/// 1273 or the collation.
pub fn find_collation(name: &str) -> Result<&'static Collation> {
    charset::collation_by_name(name).ok_or_else(|| err!(UNKNOWN_COLLATION, name))
}

fn text(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let collation = text_collation(written, ctx)?;
    if collation.id == CollationId::BINARY {
        return binary(written, ctx);
    }
    let char_bytes = u64::from(collation.charset.max_length).max(1);
    let typed = |kind, length: u64| {
        let mut ty = DataType::new(kind, u32::try_from(length).unwrap_or(u32::MAX), 0);
        ty.collation = collation.id;
        ty
    };
    match written.name {
        TypeName::Char => match written.length.unwrap_or(1) {
            length if length > CHAR_LENGTH_MAX => {
                Err(err!(TOO_BIG_FIELDLENGTH, ctx.column, CHAR_LENGTH_MAX))
            }
            length => Ok(typed(TypeKind::Char, length)),
        },
        TypeName::Varchar => {
            let length = written.length.unwrap_or(0);
            let most = VARCHAR_BYTES_MAX / char_bytes;
            if length <= most {
                return Ok(typed(TypeKind::VarChar, length));
            }
            // Without strict mode a VARCHAR that is too long becomes a TEXT.
            if ctx.sql_mode.is_strict() {
                bail!(TOO_BIG_FIELDLENGTH, ctx.column, most);
            }
            Ok(sized_text(length.saturating_mul(char_bytes), typed))
        }
        TypeName::TinyText => Ok(typed(TypeKind::TinyText, 255)),
        TypeName::MediumText => Ok(typed(TypeKind::MediumText, (1 << 24) - 1)),
        TypeName::LongText => Ok(typed(TypeKind::LongText, u64::from(u32::MAX))),
        _ => match written.length {
            None | Some(0) => Ok(typed(TypeKind::Text, 65_535)),
            Some(length) if length > u64::from(u32::MAX) => {
                Err(err!(TOO_BIG_DISPLAYWIDTH, ctx.column, u32::MAX))
            }
            Some(length) => Ok(sized_text(length.saturating_mul(char_bytes), typed)),
        },
    }
}

/// The smallest TEXT type that holds `bytes` bytes.
fn sized_text(bytes: u64, typed: impl Fn(TypeKind, u64) -> DataType) -> DataType {
    match bytes {
        0..=255 => typed(TypeKind::TinyText, 255),
        256..=65_535 => typed(TypeKind::Text, 65_535),
        65_536..=16_777_215 => typed(TypeKind::MediumText, (1 << 24) - 1),
        _ => typed(TypeKind::LongText, u64::from(u32::MAX)),
    }
}

/// The type of a text column after conversion to another collation: the same number of characters must fit.
///
/// # Errors
/// 1074.
pub(crate) fn converted(ty: &DataType, collation: &Collation, column: &str) -> Result<DataType> {
    let char_bytes = |of: &Collation| u64::from(of.charset.max_length).max(1);
    let (before, after) =
        (char_bytes(charset::collation_or_binary(ty.collation)), char_bytes(collation));
    let length = u64::from(ty.length);
    let same = DataType { collation: collation.id, ..ty.clone() };
    if ty.kind == TypeKind::VarChar && length * after > VARCHAR_BYTES_MAX {
        bail!(TOO_BIG_FIELDLENGTH, column, VARCHAR_BYTES_MAX / after);
    }
    if !ty.is_blob() || before >= after {
        return Ok(same);
    }
    let resized = |kind, length: u64| DataType {
        kind,
        length: u32::try_from(length).unwrap_or(u32::MAX),
        ..same.clone()
    };
    Ok(sized_text(length / before * after, resized))
}

fn binary(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let typed =
        |kind, length: u64| DataType::new(kind, u32::try_from(length).unwrap_or(u32::MAX), 0);
    let blob = |bytes: u64| match bytes {
        0..=255 => typed(TypeKind::TinyBlob, 255),
        256..=65_535 => typed(TypeKind::Blob, 65_535),
        65_536..=16_777_215 => typed(TypeKind::MediumBlob, (1 << 24) - 1),
        _ => typed(TypeKind::LongBlob, u64::from(u32::MAX)),
    };
    match written.name {
        TypeName::Binary | TypeName::Char => match written.length.unwrap_or(1) {
            length if length > CHAR_LENGTH_MAX => {
                Err(err!(TOO_BIG_FIELDLENGTH, ctx.column, CHAR_LENGTH_MAX))
            }
            length => Ok(typed(TypeKind::Binary, length)),
        },
        TypeName::Varbinary | TypeName::Varchar => match written.length.unwrap_or(0) {
            length if length <= VARCHAR_BYTES_MAX => Ok(typed(TypeKind::VarBinary, length)),
            _ if ctx.sql_mode.is_strict() => {
                Err(err!(TOO_BIG_FIELDLENGTH, ctx.column, VARCHAR_BYTES_MAX))
            }
            length => Ok(blob(length)),
        },
        TypeName::TinyBlob | TypeName::TinyText => Ok(blob(1)),
        TypeName::MediumBlob | TypeName::MediumText => Ok(blob(65_536)),
        TypeName::LongBlob | TypeName::LongText => Ok(blob(u64::MAX)),
        _ => match written.length {
            None | Some(0) => Ok(blob(65_535)),
            Some(length) if length > u64::from(u32::MAX) => {
                Err(err!(TOO_BIG_DISPLAYWIDTH, ctx.column, u32::MAX))
            }
            Some(length) => Ok(blob(length)),
        },
    }
}

fn members(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    let collation = text_collation(written, ctx)?;
    let is_set = written.name == TypeName::Set;
    let (kind, most) = match (is_set, ctx.enum_members_max) {
        (true, _) => (TypeKind::Set, SET_MEMBERS_MAX),
        (false, 0) => (TypeKind::Enum, ENUM_MEMBERS_MAX),
        (false, most) => (TypeKind::Enum, most),
    };
    if written.values.len() > most {
        return Err(match is_set {
            true => err!(TOO_BIG_SET, ctx.column),
            false => err!(TOO_BIG_ENUM, ctx.column),
        });
    }
    let mut names: Vec<Cow<'_, [u8]>> = Vec::with_capacity(written.values.len());
    let mut seen: HashSet<Vec<u8>> = HashSet::with_capacity(written.values.len());
    let mut widest = 0;
    let mut total = 0;
    for value in &written.values {
        // Trailing spaces are not part of a member, except in binary strings.
        let trimmed: &[u8] = match collation.id {
            CollationId::BINARY => value,
            _ => value.trim_ascii_end_spaces(),
        };
        // A character that the column cannot have is a question mark from here on.
        let encoded = collation.charset.encode(trimmed);
        let known = match encoded.first_bad {
            None => Cow::Borrowed(trimmed),
            Some(_) => Cow::Owned(collation.charset.decode(&encoded.bytes).bytes),
        };
        let chars = collation.char_length(&known);
        if chars > MEMBER_LENGTH_MAX {
            bail!(TOO_LONG_SET_ENUM_VALUE, ctx.column);
        }
        if is_set && known.contains(&b',') {
            bail!(ILLEGAL_VALUE_FOR_TYPE, "set", String::from_utf8_lossy(&known));
        }
        let mut key = Vec::new();
        collation.sort_key(&known, &mut key);
        if !seen.insert(key) && ctx.sql_mode.is_strict() {
            let word = if is_set { "SET" } else { "ENUM" };
            bail!(DUPLICATED_VALUE_IN_TYPE, ctx.column, String::from_utf8_lossy(&known), word);
        }
        widest = widest.max(chars);
        total += chars + 1;
        names.push(known);
    }
    let length = if is_set { total.saturating_sub(1) } else { widest };
    let mut ty = DataType::new(kind, length as u32, 0);
    ty.collation = collation.id;
    ty.members = Some(Arc::new(Members::new(names)));
    Ok(ty)
}

trait TrimSpaces {
    fn trim_ascii_end_spaces(&self) -> &[u8];
}

impl TrimSpaces for [u8] {
    fn trim_ascii_end_spaces(&self) -> &[u8] {
        let end = self.iter().rposition(|byte| *byte != b' ').map_or(0, |at| at + 1);
        &self[..end]
    }
}

fn vector(written: &ast::DataType, ctx: &TypeContext<'_>) -> Result<DataType> {
    match written.length.unwrap_or(VECTOR_DEFAULT) {
        0 => Err(err!(INVALID_FIELD_SIZE, ctx.column)),
        dimensions if dimensions > VECTOR_MAX => {
            Err(Error::with(ErrorCode::TOO_BIG_FIELDLENGTH, &[&ctx.column, &VECTOR_MAX]))
        }
        dimensions => Ok(DataType::new(TypeKind::Vector, dimensions as u32, 0)),
    }
}

fn geometry(name: TypeName) -> DataType {
    let mut ty = DataType::geometry();
    ty.spatial.kind = match name {
        TypeName::Point => GeometryKind::Point,
        TypeName::LineString => GeometryKind::LineString,
        TypeName::Polygon => GeometryKind::Polygon,
        TypeName::MultiPoint => GeometryKind::MultiPoint,
        TypeName::MultiLineString => GeometryKind::MultiLineString,
        TypeName::MultiPolygon => GeometryKind::MultiPolygon,
        TypeName::GeometryCollection => GeometryKind::GeometryCollection,
        _ => GeometryKind::Geometry,
    };
    ty
}

/// The text of `COLUMN_TYPE` in the information schema, which SHOW CREATE TABLE prints before the attributes.
pub fn type_text(ty: &DataType) -> String {
    let mut text = base_text(ty);
    if ty.unsigned && ty.kind != TypeKind::Year && ty.kind != TypeKind::Bit {
        text.push_str(" unsigned");
    }
    if ty.zerofill {
        text.push_str(" zerofill");
    }
    text
}

fn base_text(ty: &DataType) -> String {
    let integer = |name: &str| {
        if ty.zerofill { format!("{name}({})", ty.length) } else { name.to_owned() }
    };
    let digits = |name: &str| match ty.decimals {
        0 => name.to_owned(),
        digits => format!("{name}({digits})"),
    };
    let float = |name: &str| match ty.decimals {
        NOT_FIXED_DECIMALS => name.to_owned(),
        scale => format!("{name}({},{scale})", ty.length),
    };
    match ty.kind {
        TypeKind::Null => "null".into(),
        TypeKind::TinyInt if ty.length == 1 && !ty.unsigned => "tinyint(1)".into(),
        TypeKind::TinyInt => integer("tinyint"),
        TypeKind::SmallInt => integer("smallint"),
        TypeKind::MediumInt => integer("mediumint"),
        TypeKind::Int => integer("int"),
        TypeKind::BigInt => integer("bigint"),
        TypeKind::Decimal => format!("decimal({},{})", ty.length, ty.decimals),
        TypeKind::Float => float("float"),
        TypeKind::Double => float("double"),
        TypeKind::Bit => format!("bit({})", ty.length),
        TypeKind::Year => "year".into(),
        TypeKind::Date => "date".into(),
        TypeKind::Time => digits("time"),
        TypeKind::DateTime => digits("datetime"),
        TypeKind::Timestamp => digits("timestamp"),
        TypeKind::Char => format!("char({})", ty.length),
        TypeKind::VarChar => format!("varchar({})", ty.length),
        TypeKind::Binary => format!("binary({})", ty.length),
        TypeKind::VarBinary => format!("varbinary({})", ty.length),
        TypeKind::TinyText => "tinytext".into(),
        TypeKind::Text => "text".into(),
        TypeKind::MediumText => "mediumtext".into(),
        TypeKind::LongText => "longtext".into(),
        TypeKind::TinyBlob => "tinyblob".into(),
        TypeKind::Blob => "blob".into(),
        TypeKind::MediumBlob => "mediumblob".into(),
        TypeKind::LongBlob => "longblob".into(),
        TypeKind::Enum => format!("enum({})", member_list(ty)),
        TypeKind::Set => format!("set({})", member_list(ty)),
        TypeKind::Json => "json".into(),
        TypeKind::Vector => format!("vector({})", ty.length),
        TypeKind::Geometry => ty.spatial.kind.name().to_ascii_lowercase(),
        TypeKind::Fixed(kind) => kind.name().into(),
    }
}

fn member_list(ty: &DataType) -> String {
    let names = ty.members.iter().flat_map(|members| members.names());
    let quoted: Vec<String> = names
        .map(|name| format!("'{}'", String::from_utf8_lossy(name).replace('\'', "''")))
        .collect();
    quoted.join(",")
}
