//! The event that says which table and which columns the following rows belong to.

use std::sync::Arc;

use types::geometry::GeometryKind;
use types::{CollationId, DataType, Members, TypeKind};

use crate::layout::{Layout, OldTemporal, Shape, byte_length, converted, enum_width, set_width};
use crate::mariadb;
use crate::read::{Malformed, Reader, Result, put_lenenc, put_lenenc_bytes, put_uint};

/// Types of columns in events.
mod wire {
    pub(super) const TINY: u8 = 1;
    pub(super) const SHORT: u8 = 2;
    pub(super) const LONG: u8 = 3;
    pub(super) const FLOAT: u8 = 4;
    pub(super) const DOUBLE: u8 = 5;
    pub(super) const TIMESTAMP: u8 = 7;
    pub(super) const LONGLONG: u8 = 8;
    pub(super) const INT24: u8 = 9;
    pub(super) const DATE: u8 = 10;
    pub(super) const TIME: u8 = 11;
    pub(super) const DATETIME: u8 = 12;
    pub(super) const YEAR: u8 = 13;
    pub(super) const VARCHAR: u8 = 15;
    pub(super) const BIT: u8 = 16;
    pub(super) const TIMESTAMP2: u8 = 17;
    pub(super) const DATETIME2: u8 = 18;
    pub(super) const TIME2: u8 = 19;
    /// Of MariaDB.
    pub(super) const BLOB_COMPRESSED: u8 = 140;
    pub(super) const VARCHAR_COMPRESSED: u8 = 141;
    pub(super) const VECTOR: u8 = 242;
    pub(super) const JSON: u8 = 245;
    pub(super) const DECIMAL: u8 = 246;
    pub(super) const ENUM: u8 = 247;
    pub(super) const SET: u8 = 248;
    pub(super) const BLOB: u8 = 252;
    pub(super) const STRING: u8 = 254;
    pub(super) const GEOMETRY: u8 = 255;
}

/// Fields after the columns' types.
mod field {
    pub(super) const SIGNEDNESS: u8 = 1;
    pub(super) const DEFAULT_CHARSET: u8 = 2;
    pub(super) const COLUMN_CHARSET: u8 = 3;
    pub(super) const NAMES: u8 = 4;
    pub(super) const SET_MEMBERS: u8 = 5;
    pub(super) const ENUM_MEMBERS: u8 = 6;
    pub(super) const GEOMETRY_KINDS: u8 = 7;
    pub(super) const PRIMARY_KEY: u8 = 8;
    pub(super) const PRIMARY_KEY_PREFIXES: u8 = 9;
    pub(super) const MEMBERS_DEFAULT_CHARSET: u8 = 10;
    pub(super) const MEMBERS_CHARSET: u8 = 11;
    pub(super) const VISIBILITY: u8 = 12;
    pub(super) const DIMENSIONS: u8 = 13;
}

/// The flags of the event that the reference sets: the width of the table's id is that of the version.
const FLAGS: u16 = 1;
/// Most columns of a table.
const COLUMNS_MAX: usize = 4096;

/// How much is written of the columns (`binlog_row_metadata`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowMetadata {
    /// What is needed to read values.
    Minimal,
    /// Names, members, the primary key and visibility too.
    Full,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct Column<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type; `nullable` counts.
    pub ty: &'a DataType,
    /// Whether `SELECT *` shows it.
    pub visible: bool,
}

/// A part of a primary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Position of the column.
    pub column: usize,
    /// Characters (bytes of a binary string) that the key has of it; 0 for all.
    pub prefix: u32,
}

impl From<usize> for KeyPart {
    fn from(column: usize) -> KeyPart {
        KeyPart { column, prefix: 0 }
    }
}

/// Appends the body of a table map event.
pub fn write_table_map(
    out: &mut Vec<u8>,
    table_id: u64,
    schema: &str,
    table: &str,
    columns: &[Column<'_>],
    primary_key: &[KeyPart],
    metadata: RowMetadata,
) {
    put_uint(table_id, 6, out);
    out.extend_from_slice(&FLAGS.to_le_bytes());
    for name in [schema, table] {
        put_lenenc_bytes(name.as_bytes(), out);
        out.push(0);
    }
    put_lenenc(columns.len() as u64, out);
    let mut details = Vec::with_capacity(columns.len());
    for column in columns {
        let kind = put_details(column.ty, &mut details);
        out.push(kind);
    }
    put_lenenc_bytes(&details, out);
    let start = out.len();
    out.resize(start + columns.len().div_ceil(8), 0);
    for (at, _) in columns.iter().enumerate().filter(|(_, column)| column.ty.nullable) {
        out[start + at / 8] |= 1 << (at % 8);
    }
    put_fields(columns, primary_key, metadata, out);
}

/// Appends what a type has beside its number, which is returned.
fn put_details(ty: &DataType, out: &mut Vec<u8>) -> u8 {
    let mut detail = |kind: u8, byte: u8| {
        out.push(byte);
        kind
    };
    let fsp = ty.decimals.min(6);
    match ty.kind {
        TypeKind::TinyInt => wire::TINY,
        TypeKind::SmallInt => wire::SHORT,
        TypeKind::MediumInt => wire::INT24,
        TypeKind::Int => wire::LONG,
        TypeKind::BigInt => wire::LONGLONG,
        TypeKind::Year => wire::YEAR,
        TypeKind::Date => wire::DATE,
        TypeKind::Float => detail(wire::FLOAT, 4),
        TypeKind::Double => detail(wire::DOUBLE, 8),
        TypeKind::Time => detail(wire::TIME2, fsp),
        TypeKind::DateTime => detail(wire::DATETIME2, fsp),
        TypeKind::Timestamp => detail(wire::TIMESTAMP2, fsp),
        TypeKind::TinyText | TypeKind::TinyBlob => detail(wire::BLOB, 1),
        TypeKind::Text | TypeKind::Blob => detail(wire::BLOB, 2),
        TypeKind::MediumText | TypeKind::MediumBlob => detail(wire::BLOB, 3),
        TypeKind::LongText | TypeKind::LongBlob => detail(wire::BLOB, 4),
        TypeKind::Json => detail(wire::JSON, 4),
        TypeKind::Geometry => detail(wire::GEOMETRY, 4),
        TypeKind::Vector => detail(wire::VECTOR, 4),
        TypeKind::Decimal => {
            out.extend_from_slice(&[ty.length.clamp(1, 65) as u8, ty.decimals]);
            wire::DECIMAL
        }
        TypeKind::Bit => {
            let bits = ty.length.clamp(1, 64) as u8;
            out.extend_from_slice(&[bits % 8, bits / 8]);
            wire::BIT
        }
        TypeKind::Null | TypeKind::VarChar | TypeKind::VarBinary => {
            let length = byte_length(ty).min(u32::from(u16::MAX));
            put_uint(u64::from(length), 2, out);
            wire::VARCHAR
        }
        TypeKind::Char | TypeKind::Binary => {
            let length = byte_length(ty).min(1023);
            // Two bits of the length are in the type's number, inverted.
            out.extend_from_slice(&[wire::STRING ^ ((length & 0x300) >> 4) as u8, length as u8]);
            wire::STRING
        }
        TypeKind::Fixed(kind) => {
            out.extend_from_slice(&[wire::STRING, kind.bytes() as u8]);
            wire::STRING
        }
        TypeKind::Enum => {
            out.extend_from_slice(&[wire::ENUM, enum_width(ty.member_count())]);
            wire::STRING
        }
        TypeKind::Set => {
            out.extend_from_slice(&[wire::SET, set_width(ty.member_count())]);
            wire::STRING
        }
    }
}

/// Whether the column has a bit in the field of signs.
fn has_sign(ty: &DataType) -> bool {
    ty.is_numeric() && ty.kind != TypeKind::Bit
}

/// Whether the column has a collation in the fields of character sets.
fn has_charset(ty: &DataType) -> bool {
    ty.is_string() || ty.kind == TypeKind::Vector || ty.as_fixed().is_some()
}

fn put_field(number: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut content = Vec::new();
    write(&mut content);
    if !content.is_empty() {
        out.push(number);
        put_lenenc_bytes(&content, out);
    }
}

/// Appends bits, the first one in the top bit of the first byte.
fn put_bits(bits: impl Iterator<Item = bool>, out: &mut Vec<u8>) {
    let start = out.len();
    for (at, bit) in bits.enumerate() {
        if at % 8 == 0 {
            out.push(0);
        }
        out[start + at / 8] |= u8::from(bit) << (7 - at % 8);
    }
}

fn put_fields(
    columns: &[Column<'_>],
    primary_key: &[KeyPart],
    metadata: RowMetadata,
    out: &mut Vec<u8>,
) {
    let types = || columns.iter().map(|column| column.ty);
    put_field(field::SIGNEDNESS, out, |out| {
        let unsigned = |ty: &DataType| ty.unsigned || ty.kind == TypeKind::Year;
        put_bits(types().filter(|ty| has_sign(ty)).map(unsigned), out);
    });
    let collations: Vec<_> = types().filter(|ty| has_charset(ty)).map(|ty| ty.collation).collect();
    put_collations(field::DEFAULT_CHARSET, field::COLUMN_CHARSET, &collations, out);
    put_field(field::GEOMETRY_KINDS, out, |out| {
        let geometries = types().filter(|ty| ty.kind == TypeKind::Geometry);
        geometries.for_each(|ty| put_lenenc(u64::from(ty.spatial.kind.number()), out));
    });
    put_field(field::DIMENSIONS, out, |out| {
        let vectors = types().filter(|ty| ty.kind == TypeKind::Vector);
        vectors.for_each(|ty| put_lenenc(u64::from(ty.length), out));
    });
    if metadata == RowMetadata::Minimal {
        return;
    }
    put_field(field::NAMES, out, |out| {
        columns.iter().for_each(|column| put_lenenc_bytes(column.name.as_bytes(), out));
    });
    let collations: Vec<_> = types().filter(|ty| ty.has_members()).map(|ty| ty.collation).collect();
    put_collations(field::MEMBERS_DEFAULT_CHARSET, field::MEMBERS_CHARSET, &collations, out);
    for (number, kind) in
        [(field::SET_MEMBERS, TypeKind::Set), (field::ENUM_MEMBERS, TypeKind::Enum)]
    {
        put_field(number, out, |out| {
            types().filter(|ty| ty.kind == kind).for_each(|ty| put_members(ty, out));
        });
    }
    let has_prefixes = primary_key.iter().any(|part| part.prefix > 0);
    let number = if has_prefixes { field::PRIMARY_KEY_PREFIXES } else { field::PRIMARY_KEY };
    put_field(number, out, |out| {
        for part in primary_key {
            put_lenenc(part.column as u64, out);
            if has_prefixes {
                put_lenenc(u64::from(part.prefix), out);
            }
        }
    });
    put_field(field::VISIBILITY, out, |out| {
        put_bits(columns.iter().map(|column| column.visible), out);
    });
}

fn put_members(ty: &DataType, out: &mut Vec<u8>) {
    put_lenenc(ty.member_count() as u64, out);
    for name in ty.members.iter().flat_map(|members| members.names()) {
        match converted(ty.collation) {
            Some(charset) => put_lenenc_bytes(&charset.encode(name).bytes, out),
            None => put_lenenc_bytes(name, out),
        }
    }
}

/// As one collation and the exceptions to it when that takes fewer numbers, else one by one.
fn put_collations(by_default: u8, by_column: u8, collations: &[CollationId], out: &mut Vec<u8>) {
    let count = |of: CollationId| collations.iter().filter(|id| **id == of).count();
    let Some(default) = collations.iter().copied().max_by_key(|id| count(*id)) else { return };
    let others = collations.len() - count(default);
    if others * 2 < collations.len() {
        put_field(by_default, out, |out| {
            put_lenenc(u64::from(default.0), out);
            for (at, id) in collations.iter().enumerate().filter(|(_, id)| **id != default) {
                put_lenenc(at as u64, out);
                put_lenenc(u64::from(id.0), out);
            }
        });
    } else {
        put_field(by_column, out, |out| {
            collations.iter().for_each(|id| put_lenenc(u64::from(id.0), out));
        });
    }
}

/// A column as a table map describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct MappedColumn {
    /// Its name, when the event has names.
    pub name: Option<Box<str>>,
    /// Its type. Without its field, a number is signed, a text binary and an ENUM or SET without members.
    pub ty: DataType,
    /// Whether `SELECT *` shows it.
    pub visible: bool,
}

/// What a table map says.
#[derive(Clone, Debug)]
pub struct TableMap {
    /// What rows refer to.
    pub table_id: u64,
    /// Name of the schema.
    pub schema: Box<str>,
    /// Name of the table.
    pub table: Box<str>,
    /// The columns in order.
    pub columns: Vec<MappedColumn>,
    /// The primary key; empty when there is none or the event has no such field.
    pub primary_key: Vec<KeyPart>,
    /// Whether signs and character sets of all columns are known.
    is_complete: bool,
    /// Whether the event says them.
    has_fields: bool,
    pub(crate) layout: Layout,
}

/// What a reader's own table knows of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownColumn {
    /// Whether its numbers are unsigned.
    pub unsigned: bool,
    /// The collation of a text.
    pub collation: Option<CollationId>,
    /// Digits of a second.
    pub fsp: u8,
}

impl TableMap {
    /// Whether signs and character sets of all columns are known.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes from a reader's own table what the event does not say, as MariaDB's does not by default (`binlog_row_metadata = NO_LOG`): signs and character
    /// sets, and of times in the old form the digits of a second.
    pub fn complete(&mut self, known: &[KnownColumn]) {
        for (shape, known) in self.layout.shapes.iter_mut().zip(known) {
            if let Shape::Old { fsp, .. } = shape {
                *fsp = known.fsp.min(6);
            }
            if self.has_fields {
                continue;
            }
            if let Shape::Int { unsigned, .. } = shape {
                *unsigned = known.unsigned;
            } else if let Shape::Text { charset, padded, .. } = shape
                && let Some(collation) = known.collation
            {
                (*charset, *padded) = (converted(collation), 0);
            }
        }
        self.is_complete = true;
    }

    /// Reads the body of a table map event.
    pub(crate) fn read(body: &[u8]) -> Result<TableMap> {
        let mut reader = Reader::new(body);
        let table_id = reader.uint(6)?;
        let _flags = reader.u16()?;
        let schema = read_name(&mut reader)?;
        reader.u8()?;
        let table = read_name(&mut reader)?;
        reader.u8()?;
        let count = reader.lenenc_usize()?;
        if count > COLUMNS_MAX {
            return Err(Malformed("number of columns"));
        }
        let kinds = reader.bytes(count)?;
        let mut details = Reader::new(reader.lenenc_bytes()?);
        let nullable = reader.bytes(count.div_ceil(8))?;
        let mut columns = Vec::with_capacity(count);
        let mut widths = Vec::new();
        let mut old = Vec::new();
        for (at, kind) in kinds.iter().enumerate() {
            let (mut ty, width) = read_type(*kind, &mut details)?;
            ty.nullable = nullable[at / 8] >> (at % 8) & 1 == 1;
            widths.push(width);
            old.push(old_temporal(*kind));
            columns.push(MappedColumn { name: None, ty, visible: true });
        }
        let mut primary_key = Vec::new();
        let has_fields = !reader.is_empty();
        let is_complete = has_fields && old.iter().all(Option::is_none);
        read_fields(&mut reader, &mut columns, &mut primary_key)?;
        columns.iter_mut().for_each(|column| settle_text(&mut column.ty));
        let mut layout = Layout::new(columns.iter().map(|column| &column.ty));
        // The number of members may be unknown; the width never is.
        for (shape, width) in layout.shapes.iter_mut().zip(widths) {
            if let Shape::Member { width: of } = shape {
                *of = width;
            }
        }
        for (shape, kind) in layout.shapes.iter_mut().zip(old) {
            if let Some(kind) = kind {
                *shape = Shape::Old { kind, fsp: 0 };
            }
        }
        Ok(TableMap {
            table_id,
            schema,
            table,
            columns,
            primary_key,
            is_complete,
            has_fields,
            layout,
        })
    }

    /// The forms of its columns.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

fn read_name(reader: &mut Reader<'_>) -> Result<Box<str>> {
    text(reader.lenenc_bytes()?)
}

fn text(bytes: &[u8]) -> Result<Box<str>> {
    Ok(std::str::from_utf8(bytes).map_err(|_| Malformed("name"))?.into())
}

/// A column's type, and the bytes of an ENUM or SET. Strings are binary and have their length in bytes.
fn read_type(kind: u8, details: &mut Reader<'_>) -> Result<(DataType, u8)> {
    let plain = |kind, length| Ok((DataType::new(kind, length, 0), 0));
    match kind {
        wire::TINY => plain(TypeKind::TinyInt, 4),
        wire::SHORT => plain(TypeKind::SmallInt, 6),
        wire::INT24 => plain(TypeKind::MediumInt, 9),
        wire::LONG => plain(TypeKind::Int, 11),
        wire::LONGLONG => plain(TypeKind::BigInt, 20),
        wire::YEAR => plain(TypeKind::Year, 4),
        wire::DATE => plain(TypeKind::Date, 10),
        wire::FLOAT | wire::DOUBLE => {
            let float = details.u8()? == 4;
            let (kind, length) = if float { (TypeKind::Float, 12) } else { (TypeKind::Double, 22) };
            Ok((DataType::new(kind, length, types::NOT_FIXED_DECIMALS), 0))
        }
        wire::TIME2 | wire::DATETIME2 | wire::TIMESTAMP2 => {
            let fsp = details.u8()?;
            if fsp > 6 {
                return Err(Malformed("digits of a second"));
            }
            let mut ty =
                if kind == wire::TIME2 { DataType::time(fsp) } else { DataType::datetime(fsp) };
            if kind == wire::TIMESTAMP2 {
                ty.kind = TypeKind::Timestamp;
            }
            Ok((ty, 0))
        }
        wire::DECIMAL => {
            let (precision, scale) = (details.u8()?, details.u8()?);
            Ok((DataType::decimal(u32::from(precision), scale), 0))
        }
        wire::BIT => {
            let (bits, bytes) = (details.u8()?, details.u8()?);
            plain(TypeKind::Bit, u32::from(bytes) * 8 + u32::from(bits))
        }
        wire::VARCHAR => plain(TypeKind::VarBinary, u32::from(details.u16()?)),
        wire::BLOB => match details.u8()? {
            1 => plain(TypeKind::TinyBlob, 255),
            2 => plain(TypeKind::Blob, 65_535),
            3 => plain(TypeKind::MediumBlob, 0xff_ffff),
            4 => plain(TypeKind::LongBlob, u32::MAX),
            _ => Err(Malformed("length of a BLOB")),
        },
        wire::JSON | wire::GEOMETRY | wire::VECTOR => {
            if details.u8()? != 4 {
                return Err(Malformed("length of a document"));
            }
            match kind {
                wire::JSON => Ok((DataType::json(), 0)),
                wire::GEOMETRY => Ok((DataType::geometry(), 0)),
                _ => plain(TypeKind::Vector, 0),
            }
        }
        wire::STRING => {
            let (kind, length) = (details.u8()?, details.u8()?);
            match kind {
                wire::ENUM if length <= 2 => {
                    Ok((DataType::new(TypeKind::Enum, 0, 0), length.max(1)))
                }
                wire::SET if length <= 8 => Ok((DataType::new(TypeKind::Set, 0, 0), length.max(1))),
                wire::ENUM | wire::SET => Err(Malformed("members of a column")),
                kind => {
                    let high = u32::from(!kind & 0x30) << 4;
                    plain(TypeKind::Binary, high | u32::from(length))
                }
            }
        }
        wire::TIME => Ok((DataType::time(0), 0)),
        wire::DATETIME => Ok((DataType::datetime(0), 0)),
        wire::TIMESTAMP => {
            let mut ty = DataType::datetime(0);
            ty.kind = TypeKind::Timestamp;
            Ok((ty, 0))
        }
        wire::BLOB_COMPRESSED | wire::VARCHAR_COMPRESSED => {
            Err(Malformed("column that MariaDB compresses (COMPRESSED)"))
        }
        _ => Err(Malformed("type of a column")),
    }
}

/// Whether a type is one whose values have the form that MariaDB uses with `mysql56_temporal_format = OFF`.
fn old_temporal(kind: u8) -> Option<OldTemporal> {
    let kinds = [
        (wire::TIME, OldTemporal::Time),
        (wire::DATETIME, OldTemporal::DateTime),
        (wire::TIMESTAMP, OldTemporal::Timestamp),
    ];
    kinds.iter().find(|(number, _)| *number == kind).map(|(_, old)| *old)
}

/// A binary string whose collation says otherwise becomes a text.
fn settle_text(ty: &mut DataType) {
    let collation = charset::collation_or_binary(ty.collation);
    if collation.is_binary() {
        return;
    }
    let per_character = u32::from(collation.charset.max_length).max(1);
    ty.kind = match ty.kind {
        TypeKind::Binary => TypeKind::Char,
        TypeKind::VarBinary => TypeKind::VarChar,
        TypeKind::TinyBlob => TypeKind::TinyText,
        TypeKind::Blob => TypeKind::Text,
        TypeKind::MediumBlob => TypeKind::MediumText,
        TypeKind::LongBlob => TypeKind::LongText,
        other => other,
    };
    if matches!(ty.kind, TypeKind::Char | TypeKind::VarChar) {
        ty.length = ty.length.div_ceil(per_character);
    }
}

fn read_fields(
    reader: &mut Reader<'_>,
    columns: &mut [MappedColumn],
    primary_key: &mut Vec<KeyPart>,
) -> Result<()> {
    while !reader.is_empty() {
        let number = reader.u8()?;
        let mut content = Reader::new(reader.lenenc_bytes()?);
        match number {
            field::SIGNEDNESS => {
                let bits = content.rest();
                for (at, ty) in types_of(columns, has_sign).enumerate() {
                    let byte = bits.get(at / 8).ok_or(Malformed("signs"))?;
                    ty.unsigned = byte >> (7 - at % 8) & 1 == 1;
                }
            }
            field::DEFAULT_CHARSET => read_default(&mut content, types_of(columns, has_charset))?,
            field::MEMBERS_DEFAULT_CHARSET => {
                read_default(&mut content, types_of(columns, DataType::has_members))?;
            }
            field::COLUMN_CHARSET => read_each(&mut content, types_of(columns, has_charset))?,
            field::MEMBERS_CHARSET => {
                read_each(&mut content, types_of(columns, DataType::has_members))?
            }
            field::NAMES => {
                for column in columns.iter_mut() {
                    column.name = Some(read_name(&mut content)?);
                }
            }
            field::SET_MEMBERS => {
                read_members(&mut content, types_of(columns, |ty| ty.kind == TypeKind::Set))?;
            }
            field::ENUM_MEMBERS => {
                read_members(&mut content, types_of(columns, |ty| ty.kind == TypeKind::Enum))?;
            }
            field::GEOMETRY_KINDS => {
                for ty in types_of(columns, |ty| ty.kind == TypeKind::Geometry) {
                    let kind = u32::try_from(content.lenenc()?).ok();
                    ty.spatial.kind = kind
                        .and_then(GeometryKind::from_number)
                        .ok_or(Malformed("kind of a geometry"))?;
                }
            }
            field::DIMENSIONS => {
                for ty in types_of(columns, |ty| ty.kind == TypeKind::Vector) {
                    ty.length = content.lenenc()? as u32;
                }
            }
            field::PRIMARY_KEY | field::PRIMARY_KEY_PREFIXES => {
                let prefixes = number == field::PRIMARY_KEY_PREFIXES;
                primary_key.clear();
                while !content.is_empty() {
                    let column = content.lenenc_usize()?;
                    let prefix = if prefixes { content.lenenc()? as u32 } else { 0 };
                    if column >= columns.len() {
                        return Err(Malformed("primary key"));
                    }
                    primary_key.push(KeyPart { column, prefix });
                }
            }
            field::VISIBILITY => {
                let bits = content.rest();
                for (at, column) in columns.iter_mut().enumerate() {
                    let byte = bits.get(at / 8).ok_or(Malformed("visibility"))?;
                    column.visible = byte >> (7 - at % 8) & 1 == 1;
                }
            }
            // Of a newer server.
            _ => {}
        }
    }
    Ok(())
}

fn types_of(
    columns: &mut [MappedColumn],
    wanted: fn(&DataType) -> bool,
) -> impl Iterator<Item = &mut DataType> {
    columns.iter_mut().map(|column| &mut column.ty).filter(move |ty| wanted(ty))
}

fn read_collation(content: &mut Reader<'_>) -> Result<CollationId> {
    let id = u16::try_from(content.lenenc()?).map_err(|_| Malformed("collation"))?;
    mariadb::collation(id).ok_or(Malformed("collation"))
}

fn read_default<'t>(
    content: &mut Reader<'_>,
    types: impl Iterator<Item = &'t mut DataType>,
) -> Result<()> {
    let mut types: Vec<_> = types.collect();
    let default = read_collation(content)?;
    types.iter_mut().for_each(|ty| ty.collation = default);
    while !content.is_empty() {
        let at = content.lenenc_usize()?;
        let ty = types.get_mut(at).ok_or(Malformed("collations"))?;
        ty.collation = read_collation(content)?;
    }
    Ok(())
}

fn read_each<'t>(
    content: &mut Reader<'_>,
    types: impl Iterator<Item = &'t mut DataType>,
) -> Result<()> {
    for ty in types {
        ty.collation = read_collation(content)?;
    }
    Ok(())
}

fn read_members<'t>(
    content: &mut Reader<'_>,
    types: impl Iterator<Item = &'t mut DataType>,
) -> Result<()> {
    for ty in types {
        let count = content.lenenc_usize()?;
        let mut names = Vec::new();
        for _ in 0..count {
            let name = content.lenenc_bytes()?;
            names.push(match converted(ty.collation) {
                Some(charset) => charset.decode(name).bytes.into_boxed_slice(),
                None => name.into(),
            });
        }
        ty.members = Some(Arc::new(Members::new(names)));
    }
    Ok(())
}
