//! The stored form of a table's definition. Tags never change their meaning.

use std::sync::Arc;

use btree::Tree;
use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use page::PageNo;
use stdx::bytes::{Reader, put_blob, put_u16, put_u32, put_u64};
use types::record::RecordLayout;
use types::{CollationId, DataType, Fixed, Members, TypeKind, Value};

use crate::table::StoredTree;

const FORMAT: u8 = 1;
/// Flags of a part of an index.
const DESCENDING: u8 = 1;
/// The type of the elements follows.
const ELEMENTS: u8 = 2;

/// Position in this list is the stored tag.
const KINDS: [TypeKind; 31] = [
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
];
/// The tags after the list, whose end was once that of the types.
const LATER_KINDS: [(TypeKind, u8); 4] = [
    (TypeKind::Geometry, 31),
    (TypeKind::Fixed(Fixed::Uuid), 32),
    (TypeKind::Fixed(Fixed::Inet4), 33),
    (TypeKind::Fixed(Fixed::Inet6), 34),
];

fn tag_of(kind: TypeKind) -> u8 {
    let later = || LATER_KINDS.iter().find(|(later, _)| *later == kind).map_or(0, |(_, tag)| *tag);
    KINDS.iter().position(|known| *known == kind).map_or_else(later, |at| at as u8)
}

fn kind_of(tag: u8) -> Option<TypeKind> {
    let later = || LATER_KINDS.iter().find(|(_, later)| *later == tag).map(|(kind, _)| *kind);
    KINDS.get(usize::from(tag)).copied().or_else(later)
}

fn put_type(out: &mut Vec<u8>, ty: &DataType) {
    let tag = tag_of(ty.kind);
    let flags = u8::from(ty.unsigned) | u8::from(ty.zerofill) << 1 | u8::from(ty.nullable) << 2;
    out.extend_from_slice(&[tag, flags, ty.decimals]);
    put_u32(out, ty.length);
    put_u16(out, ty.collation.0);
    // Their number decides about bytes; what they are called is the catalog's.
    let count = ty.member_count();
    put_u32(out, count as u32);
    (0..count).for_each(|_| put_blob(out, &[]));
}

fn read_type(reader: &mut Reader<'_>) -> Option<DataType> {
    let (tag, flags, decimals) = (reader.u8()?, reader.u8()?, reader.u8()?);
    let mut ty = DataType::new(kind_of(tag)?, reader.u32()?, decimals);
    ty.collation = CollationId(reader.u16()?);
    ty.unsigned = flags & 1 != 0;
    ty.zerofill = flags & 2 != 0;
    ty.nullable = flags & 4 != 0;
    let count = reader.u32()?;
    for _ in 0..count {
        reader.blob()?;
    }
    ty.members = (count > 0).then(|| Arc::new(Members::unnamed(count as usize)));
    Some(ty)
}

/// A value is stored as a record of one column.
fn put_value(out: &mut Vec<u8>, ty: &DataType, value: Option<&Value>) {
    let mut record = Vec::new();
    if let Some(value) = value {
        // A default that does not fit its own column was refused by the catalog; NULL is then the safe reading.
        if RecordLayout::new(std::slice::from_ref(ty))
            .encode(std::slice::from_ref(value), &mut record)
            .is_err()
        {
            record.clear();
        }
    }
    put_blob(out, &record);
}

fn read_value(reader: &mut Reader<'_>, ty: &DataType) -> Option<Option<Value>> {
    let record = reader.blob()?;
    if record.is_empty() {
        return Some(None);
    }
    RecordLayout::new(std::slice::from_ref(ty)).decode_column(record, 0).ok()
}

/// The stored form.
pub(crate) fn encode(def: &TableDef, trees: &[StoredTree]) -> Vec<u8> {
    let mut out = vec![FORMAT];
    put_u64(&mut out, def.id.0);
    put_blob(&mut out, def.name.as_bytes());
    put_u32(&mut out, def.columns.len() as u32);
    for column in &def.columns {
        put_blob(&mut out, column.name.as_bytes());
        put_type(&mut out, &column.ty);
        put_value(&mut out, &column.ty, column.instant_default.as_ref());
    }
    put_u32(&mut out, def.indexes.len() as u32);
    for index in &def.indexes {
        put_u32(&mut out, index.id.0);
        put_blob(&mut out, index.name.as_bytes());
        out.push(u8::from(index.unique));
        put_u32(&mut out, index.parts.len() as u32);
        for part in &index.parts {
            put_u32(&mut out, part.column as u32);
            put_u32(&mut out, part.prefix_length.map_or(u32::MAX, |length| length));
            let elements = if part.elements.is_some() { ELEMENTS } else { 0 };
            out.push(u8::from(part.descending) | elements);
            part.elements.iter().for_each(|ty| put_type(&mut out, ty));
        }
    }
    put_u32(&mut out, trees.len() as u32);
    for stored in trees {
        put_u32(&mut out, stored.index.0);
        put_u32(&mut out, stored.tree.root.0);
        put_u64(&mut out, stored.tree.id);
    }
    out
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

/// Reads the stored form; `None` when it is damaged or of a later version.
pub(crate) fn decode(bytes: &[u8]) -> Option<(TableDef, Vec<StoredTree>)> {
    let mut reader = Reader::new(bytes);
    if reader.u8()? != FORMAT {
        return None;
    }
    let (id, name) = (TableId(reader.u64()?), text(reader.blob()?)?);
    let mut columns = Vec::new();
    for _ in 0..reader.u32()? {
        let (name, ty) = (text(reader.blob()?)?, read_type(&mut reader)?);
        let instant_default = read_value(&mut reader, &ty)?;
        columns.push(ColumnDef { name, ty, instant_default });
    }
    let mut indexes = Vec::new();
    for _ in 0..reader.u32()? {
        let (id, name) = (IndexId(reader.u32()?), text(reader.blob()?)?);
        let unique = reader.u8()? != 0;
        let mut parts = Vec::new();
        for _ in 0..reader.u32()? {
            let column = reader.u32()? as usize;
            let prefix_length = Some(reader.u32()?).filter(|length| *length != u32::MAX);
            let flags = reader.u8()?;
            let elements = match flags & ELEMENTS {
                0 => None,
                _ => Some(read_type(&mut reader)?),
            };
            let descending = flags & DESCENDING != 0;
            parts.push(KeyPart { column, prefix_length, descending, elements });
        }
        indexes.push(IndexDef { id, name, unique, parts });
    }
    let mut trees = Vec::new();
    for _ in 0..reader.u32()? {
        let index = IndexId(reader.u32()?);
        let tree = Tree { root: PageNo(reader.u32()?), id: reader.u64()? };
        trees.push(StoredTree { index, tree });
    }
    Some((TableDef { id, name, columns, indexes }, trees))
}
