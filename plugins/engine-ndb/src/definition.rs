//! The form in which a table's definition is kept in the cluster. Tags never change their meaning.

use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use stdx::bytes::{Reader, put_blob, put_u16, put_u32, put_u64};
use sys::sync::Arc;
use types::record::RecordLayout;
use types::{CollationId, DataType, Fixed, Members, TypeKind, Value};

const FORMAT: u8 = 1;

const UNIQUE: u8 = 1;
const DESCENDING: u8 = 1;

const UNSIGNED: u8 = 1;
const ZEROFILL: u8 = 2;
const NULLABLE: u8 = 4;

/// The position in this list is the stored tag.
const KINDS: [TypeKind; 35] = [
    TypeKind::Null,
    TypeKind::TinyInt,
    TypeKind::SmallInt,
    TypeKind::MediumInt,
    TypeKind::Int,
    TypeKind::BigInt,
    TypeKind::Decimal,
    TypeKind::Float,
    TypeKind::Double,
    TypeKind::Bit,
    TypeKind::Year,
    TypeKind::Date,
    TypeKind::Time,
    TypeKind::DateTime,
    TypeKind::Timestamp,
    TypeKind::Char,
    TypeKind::VarChar,
    TypeKind::Binary,
    TypeKind::VarBinary,
    TypeKind::TinyText,
    TypeKind::Text,
    TypeKind::MediumText,
    TypeKind::LongText,
    TypeKind::TinyBlob,
    TypeKind::Blob,
    TypeKind::MediumBlob,
    TypeKind::LongBlob,
    TypeKind::Enum,
    TypeKind::Set,
    TypeKind::Json,
    TypeKind::Vector,
    TypeKind::Geometry,
    TypeKind::Fixed(Fixed::Uuid),
    TypeKind::Fixed(Fixed::Inet4),
    TypeKind::Fixed(Fixed::Inet6),
];

fn put_type(out: &mut Vec<u8>, ty: &DataType) {
    let tag = KINDS.iter().position(|kind| *kind == ty.kind).unwrap_or_default() as u8;
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags =
        flag(ty.unsigned, UNSIGNED) | flag(ty.zerofill, ZEROFILL) | flag(ty.nullable, NULLABLE);
    out.extend_from_slice(&[tag, flags, ty.decimals]);
    put_u32(out, ty.length);
    put_u16(out, ty.collation.0);
    put_u32(out, ty.member_count() as u32);
    for name in ty.members.iter().flat_map(|members| members.names()) {
        put_blob(out, name);
    }
}

fn read_type(reader: &mut Reader<'_>) -> Option<DataType> {
    let kind = *KINDS.get(usize::from(reader.u8()?))?;
    let (flags, decimals) = (reader.u8()?, reader.u8()?);
    let mut ty = DataType::new(kind, reader.u32()?, decimals);
    ty.collation = CollationId(reader.u16()?);
    ty.unsigned = flags & UNSIGNED != 0;
    ty.zerofill = flags & ZEROFILL != 0;
    ty.nullable = flags & NULLABLE != 0;
    let count = reader.u32()?;
    let mut names: Vec<&[u8]> = Vec::new();
    for _ in 0..count {
        names.push(reader.blob()?);
    }
    ty.members = (count > 0).then(|| Arc::new(Members::new(names)));
    Some(ty)
}

/// A default is a record of one column; without one it is empty.
fn put_default(out: &mut Vec<u8>, column: &ColumnDef) {
    let mut record = Vec::new();
    if let Some(value) = &column.instant_default {
        let layout = RecordLayout::new(std::slice::from_ref(&column.ty));
        if layout.encode(std::slice::from_ref(value), &mut record).is_err() {
            record.clear();
        }
    }
    put_blob(out, &record);
}

fn read_default(reader: &mut Reader<'_>, ty: &DataType) -> Option<Option<Value>> {
    match reader.blob()? {
        [] => Some(None),
        record => RecordLayout::new(std::slice::from_ref(ty)).decode_column(record, 0).ok(),
    }
}

/// The stored form.
pub(crate) fn encode(def: &TableDef) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_u64(&mut out, def.id.0);
    put_blob(&mut out, def.name.as_bytes());
    put_u32(&mut out, def.columns.len() as u32);
    for column in &def.columns {
        put_blob(&mut out, column.name.as_bytes());
        put_type(&mut out, &column.ty);
        put_default(&mut out, column);
    }
    put_u32(&mut out, def.indexes.len() as u32);
    for index in &def.indexes {
        put_u32(&mut out, index.id.0);
        put_blob(&mut out, index.name.as_bytes());
        out.push(if index.unique { UNIQUE } else { 0 });
        put_u32(&mut out, index.parts.len() as u32);
        for part in &index.parts {
            put_u32(&mut out, part.column as u32);
            put_u32(&mut out, part.prefix_length.unwrap_or(u32::MAX));
            out.push(if part.descending { DESCENDING } else { 0 });
        }
    }
    out
}

fn read_text(reader: &mut Reader<'_>) -> Option<String> {
    String::from_utf8(reader.blob()?.to_vec()).ok()
}

fn read_index(reader: &mut Reader<'_>) -> Option<IndexDef> {
    let (id, name) = (IndexId(reader.u32()?), read_text(reader)?);
    let unique = reader.u8()? & UNIQUE != 0;
    let mut parts = Vec::new();
    for _ in 0..reader.u32()? {
        let column = reader.u32()? as usize;
        let prefix_length = Some(reader.u32()?).filter(|length| *length != u32::MAX);
        let descending = reader.u8()? & DESCENDING != 0;
        parts.push(KeyPart { column, prefix_length, descending, elements: None });
    }
    Some(IndexDef { id, name, unique, parts })
}

/// Reads the stored form; `None` when it is damaged or of a later version.
pub(crate) fn decode(bytes: &[u8]) -> Option<TableDef> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != FORMAT {
        return None;
    }
    let (id, name) = (TableId(reader.u64()?), read_text(&mut reader)?);
    let mut columns = Vec::new();
    for _ in 0..reader.u32()? {
        let (name, ty) = (read_text(&mut reader)?, read_type(&mut reader)?);
        let instant_default = read_default(&mut reader, &ty)?;
        columns.push(ColumnDef { name, ty, instant_default });
    }
    let mut indexes = Vec::new();
    for _ in 0..reader.u32()? {
        indexes.push(read_index(&mut reader)?);
    }
    Some(TableDef { id, name, columns, indexes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_comes_back() {
        let mut members = DataType::new(TypeKind::Enum, 2, 0);
        members.members = Some(Arc::new(Members::new(["a", "b"])));
        let column = |name: &str, ty: DataType, instant_default| ColumnDef {
            name: name.into(),
            ty,
            instant_default,
        };
        let part = |column, prefix_length, descending| KeyPart {
            column,
            prefix_length,
            descending,
            elements: None,
        };
        let def = TableDef {
            id: TableId(2077),
            name: "test.t".into(),
            columns: vec![
                column("a", DataType::bigint().with_nullable(false), None),
                column("b", DataType::varchar(40, CollationId::BINARY), Some(Value::text("x"))),
                column("c", members, None),
            ],
            indexes: vec![
                IndexDef {
                    id: IndexId::CLUSTERED,
                    name: "PRIMARY".into(),
                    unique: true,
                    parts: vec![part(0, None, false)],
                },
                IndexDef {
                    id: IndexId(3),
                    name: "b".into(),
                    unique: false,
                    parts: vec![part(1, Some(3), true), part(0, None, false)],
                },
            ],
        };
        let stored = encode(&def);
        assert_eq!(decode(&stored), Some(def));
        for end in 0..stored.len() {
            assert_eq!(decode(&stored[..end]), None, "cut at {end}");
        }
    }
}
