//! Stored form of the catalog's objects. Documented in docs/format/dictionary.md; tags never change their meaning.

use std::collections::HashMap;
use std::sync::Arc;

use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use errors::Result;
use types::fulltext::WordParser;
use types::geometry::{GeometryKind, SpatialType};
use types::{
    CollationId, DataType, Date, DateTime, Decimal, Fixed, Members, SqlBytes, Time, TypeKind, Value,
};

use crate::fields::{
    FORMAT, FORMAT_CELLS, FORMAT_DISCARDED, FORMAT_ELEMENTS, FORMAT_ENTRIES, FORMAT_FIXED,
    FORMAT_GEOMETRIES, FORMAT_GRAMS, FORMAT_HISTORY, FORMAT_PERIOD, Field, FieldWriter, damaged,
    nested_fields, object_fields,
};
use crate::partitions::{partitioning_writer, read_partitioning};
use crate::{
    Check, Column, ColumnDefault, ColumnHistory, ForeignKey, FulltextIndex, Generated, Index,
    IndexMethod, IndexPart, Medium, Period, PersistedVariable, Placement, PluginChoice,
    RecordFormat, ReferenceAction, Schema, SchemaOptions, Table, View,
};

/// Numbers of the types. Never reused.
const KINDS: &[(TypeKind, u64)] = &[
    (TypeKind::Null, 0),
    (TypeKind::TinyInt, 1),
    (TypeKind::SmallInt, 2),
    (TypeKind::MediumInt, 3),
    (TypeKind::Int, 4),
    (TypeKind::BigInt, 5),
    (TypeKind::Decimal, 6),
    (TypeKind::Float, 7),
    (TypeKind::Double, 8),
    (TypeKind::Bit, 9),
    (TypeKind::Year, 10),
    (TypeKind::Date, 11),
    (TypeKind::Time, 12),
    (TypeKind::DateTime, 13),
    (TypeKind::Timestamp, 14),
    (TypeKind::Char, 15),
    (TypeKind::VarChar, 16),
    (TypeKind::Binary, 17),
    (TypeKind::VarBinary, 18),
    (TypeKind::TinyText, 19),
    (TypeKind::Text, 20),
    (TypeKind::MediumText, 21),
    (TypeKind::LongText, 22),
    (TypeKind::TinyBlob, 23),
    (TypeKind::Blob, 24),
    (TypeKind::MediumBlob, 25),
    (TypeKind::LongBlob, 26),
    (TypeKind::Enum, 27),
    (TypeKind::Set, 28),
    (TypeKind::Json, 29),
    (TypeKind::Vector, 30),
    (TypeKind::Geometry, 31),
    (TypeKind::Fixed(Fixed::Uuid), 32),
    (TypeKind::Fixed(Fixed::Inet4), 33),
    (TypeKind::Fixed(Fixed::Inet6), 34),
];

pub(crate) fn type_writer(ty: &DataType) -> FieldWriter {
    let mut out = FieldWriter::nested();
    let number = KINDS.iter().find(|(kind, _)| *kind == ty.kind).map_or(0, |(_, number)| *number);
    out.number(1, number);
    out.flag(2, ty.unsigned);
    out.flag(3, ty.zerofill);
    out.flag(4, ty.nullable);
    out.number(5, u64::from(ty.length));
    out.number(6, u64::from(ty.decimals));
    out.number(7, u64::from(ty.collation.0));
    if let Some(members) = &ty.members {
        for name in members.names() {
            out.bytes(8, name);
        }
    }
    out.number(9, u64::from(ty.spatial.kind.number()));
    out.number(10, ty.spatial.srid.map_or(0, |srid| u64::from(srid) + 1));
    out
}

pub(crate) fn read_type(bytes: &[u8]) -> Result<DataType> {
    let mut ty = DataType::null().with_nullable(false);
    let mut names: Vec<&[u8]> = Vec::new();
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => {
                let number = field.number()?;
                let known = KINDS.iter().find(|(_, known)| *known == number).ok_or_else(damaged)?;
                ty.kind = known.0;
            }
            2 => ty.unsigned = field.flag()?,
            3 => ty.zerofill = field.flag()?,
            4 => ty.nullable = field.flag()?,
            5 => ty.length = field.narrow()?,
            6 => ty.decimals = field.narrow()?,
            7 => ty.collation = CollationId(field.narrow()?),
            8 => names.push(field.bytes),
            9 => {
                let kind = GeometryKind::from_number(field.narrow()?);
                ty.spatial.kind = kind.ok_or_else(damaged)?;
            }
            10 => {
                let srid = field.number()?.checked_sub(1).and_then(|srid| srid.try_into().ok());
                ty.spatial.srid = Some(srid.ok_or_else(damaged)?);
            }
            _ => {}
        }
    }
    if matches!(ty.kind, TypeKind::Enum | TypeKind::Set) {
        ty.members = Some(Arc::new(Members::new(names)));
    }
    Ok(ty)
}

pub(crate) fn write_value(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut number = |kind: u8, bytes: [u8; 8]| {
        out.push(kind);
        out.extend_from_slice(&bytes);
    };
    match value {
        Value::Null => out.push(0),
        Value::Int(value) => number(1, value.to_le_bytes()),
        Value::UInt(value) => number(2, value.to_le_bytes()),
        Value::Double(value) => number(3, value.to_bits().to_le_bytes()),
        Value::Decimal(value) => {
            out.push(4);
            value.write_text(&mut out);
        }
        Value::Bytes(value) => {
            out.push(5);
            out.extend_from_slice(value);
        }
        Value::Date(value) => number(6, u64::from(value.packed()).to_le_bytes()),
        Value::Time(value) => number(7, value.micros().to_le_bytes()),
        Value::DateTime(value) => number(8, value.packed().to_le_bytes()),
        Value::Json(value) => {
            out.push(9);
            out.extend_from_slice(value);
        }
    }
    out
}

pub(crate) fn read_value(bytes: &[u8]) -> Result<Value> {
    let (kind, rest) = bytes.split_first().ok_or_else(damaged)?;
    let number = || <[u8; 8]>::try_from(rest).map_err(|_| damaged());
    Ok(match kind {
        0 => Value::Null,
        1 => Value::Int(i64::from_le_bytes(number()?)),
        2 => Value::UInt(u64::from_le_bytes(number()?)),
        3 => Value::Double(f64::from_bits(u64::from_le_bytes(number()?))),
        4 => Value::Decimal(Decimal::parse(rest).ok_or_else(damaged)?),
        5 => Value::Bytes(SqlBytes::from(rest)),
        6 => {
            let packed = u32::try_from(u64::from_le_bytes(number()?)).map_err(|_| damaged())?;
            Value::Date(Date::from_packed(packed).ok_or_else(damaged)?)
        }
        7 => Value::Time(Time::from_micros(i64::from_le_bytes(number()?)).ok_or_else(damaged)?),
        8 => {
            let packed = u64::from_le_bytes(number()?);
            Value::DateTime(DateTime::from_packed(packed).ok_or_else(damaged)?)
        }
        9 => Value::Json(SqlBytes::from(rest)),
        _ => return Err(damaged()),
    })
}

/// A schema without its relations: name 1, collation 2, default encryption 3 and READ ONLY 4 (each left out when it is not set).
pub(crate) fn write_schema(schema: &Schema) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &schema.name);
    out.number(2, u64::from(schema.options.collation.0));
    if schema.options.is_encrypted {
        out.number(3, 1);
    }
    if schema.options.is_read_only {
        out.number(4, 1);
    }
    out.finish()
}

pub(crate) fn read_schema(bytes: &[u8]) -> Result<Schema> {
    let mut schema = Schema {
        name: Arc::from(""),
        options: SchemaOptions::of_collation(CollationId::UTF8MB4_0900_AI_CI),
        relations: Default::default(),
        routines: Default::default(),
        triggers: Default::default(),
        events: Default::default(),
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => schema.name = field.text()?.into(),
            2 => schema.options.collation = CollationId(field.narrow()?),
            3 => schema.options.is_encrypted = field.narrow::<u8>()? != 0,
            4 => schema.options.is_read_only = field.narrow::<u8>()? != 0,
            _ => {}
        }
    }
    Ok(schema)
}

/// A table: schema 1, name 2, engine 3, column 4, index 5, foreign key 6, check 7, collation 8, comment 9, option 10,
/// created 11, id 12, engine column 13, engine index 14, engine name 15, partitioning 16, FULLTEXT index 17, period 18.
pub(crate) fn write_table(table: &Table) -> Vec<u8> {
    // A version without FULLTEXT indexes must not write rows without their entries, and one that does not check which
    // geometries a column accepts must not write others.
    let restricts = |column: &Column| column.ty.spatial != SpatialType::default();
    let has_grams = |index: &FulltextIndex| index.parser != WordParser::Separated;
    let format = if table.is_discarded() {
        FORMAT_DISCARDED
    } else if table.period.is_some() {
        FORMAT_PERIOD
    } else if table.row_times().is_some() {
        FORMAT_HISTORY
    } else if table.columns.iter().any(|column| column.ty.as_fixed().is_some()) {
        FORMAT_FIXED
    } else if table.fulltext.iter().any(has_grams) {
        FORMAT_GRAMS
    } else if table.indexes.iter().any(|index| table.spatial_column(index).is_some()) {
        FORMAT_CELLS
    } else if table.columns.iter().any(|column| column.elements().is_some()) {
        FORMAT_ELEMENTS
    } else if table.columns.iter().any(restricts) {
        FORMAT_GEOMETRIES
    } else if !table.fulltext.is_empty() {
        FORMAT_ENTRIES
    } else {
        FORMAT
    };
    let mut out = FieldWriter::of_format(format);
    out.text(1, &table.schema);
    out.text(2, &table.name);
    out.text(3, &table.engine);
    for column in &table.columns {
        out.nest(4, column_writer(column));
    }
    for index in &table.indexes {
        out.nest(5, index_writer(index));
    }
    for key in &table.foreign_keys {
        out.nest(6, foreign_key_writer(key));
    }
    for check in &table.checks {
        let mut nested = FieldWriter::nested();
        nested.text(1, &check.name);
        nested.text(2, &check.expression);
        nested.flag(3, check.enforced);
        out.nest(7, nested);
    }
    out.number(8, u64::from(table.collation.0));
    out.text(9, &table.comment);
    for (name, value) in &table.options {
        out.nest(10, write_pair(name, value));
    }
    out.number(11, table.created_micros as u64);
    out.number(12, table.id.0);
    let known = stored_members(&table.columns);
    for (at, column) in table.definition.columns.iter().enumerate() {
        let mut nested = FieldWriter::nested();
        nested.text(1, &column.name);
        let is_known =
            column.ty.members.is_some() && column.ty.members.as_ref() == known.get(&at).copied();
        nested.nest(
            2,
            match is_known {
                // Their names are in the entry already.
                true => {
                    let unnamed = Arc::new(Members::unnamed(column.ty.member_count()));
                    type_writer(&DataType { members: Some(unnamed), ..column.ty.clone() })
                }
                false => type_writer(&column.ty),
            },
        );
        if let Some(value) = &column.instant_default {
            nested.bytes(3, &write_value(value));
        }
        out.nest(13, nested);
    }
    for index in &table.definition.indexes {
        out.nest(14, engine_index_writer(index));
    }
    for index in &table.fulltext {
        out.nest(17, fulltext_writer(index));
    }
    out.text(15, &table.definition.name);
    if let Some(partitioning) = &table.partitioning {
        out.nest(16, partitioning_writer(partitioning));
    }
    if let Some(period) = &table.period {
        out.nest(18, period_writer(period));
    }
    out.finish()
}

/// Members of the columns' types, by the places of the columns in the record.
fn stored_members(columns: &[Column]) -> HashMap<usize, &Arc<Members>> {
    columns
        .iter()
        .filter_map(|column| Some((column.stored?, column.ty.members.as_ref()?)))
        .collect()
}

/// The columns given to the engine have their members from those of the table: there may be megabytes of them.
fn share_members(table: &mut Table) {
    let known = stored_members(&table.columns);
    for (at, column) in table.definition.columns.iter_mut().enumerate() {
        let (Some(own), Some(known)) = (&mut column.ty.members, known.get(&at)) else { continue };
        if own.is_unnamed() && own.len() == known.len() || own == *known {
            *own = Arc::clone(known);
        }
    }
}

pub(crate) fn read_table(bytes: &[u8]) -> Result<Table> {
    let mut table = Table {
        id: TableId(0),
        schema: Arc::from(""),
        name: Arc::from(""),
        engine: Arc::from(""),
        temporary: false,
        columns: Vec::new(),
        indexes: Vec::new(),
        fulltext: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: CollationId::BINARY,
        comment: String::new(),
        options: Vec::new(),
        partitioning: None,
        period: None,
        created_micros: 0,
        definition: TableDef {
            id: TableId(0),
            name: String::new(),
            columns: Vec::new(),
            indexes: Vec::new(),
        },
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => table.schema = field.text()?.into(),
            2 => table.name = field.text()?.into(),
            3 => table.engine = field.text()?.into(),
            4 => table.columns.push(read_column(field.bytes)?),
            5 => table.indexes.push(read_index(field.bytes)?),
            6 => table.foreign_keys.push(read_foreign_key(field.bytes)?),
            7 => table.checks.push(read_check(field.bytes)?),
            8 => table.collation = CollationId(field.narrow()?),
            9 => table.comment = field.text()?.into(),
            10 => table.options.push(read_pair(field.bytes)?),
            11 => table.created_micros = field.number()? as i64,
            12 => table.id = TableId(field.number()?),
            13 => table.definition.columns.push(read_engine_column(field.bytes)?),
            14 => table.definition.indexes.push(read_engine_index(field.bytes)?),
            15 => table.definition.name = field.text()?.into(),
            16 => table.partitioning = Some(Arc::new(read_partitioning(field.bytes)?)),
            17 => table.fulltext.push(read_fulltext(field.bytes)?),
            18 => table.period = Some(read_period(field.bytes)?),
            _ => {}
        }
    }
    table.definition.id = table.id;
    share_members(&mut table);
    table.mark_elements();
    // Older entries store them in order of declaration.
    table.sort_constraints();
    Ok(table)
}

/// A column: name 1, type 2, stored position + 1 3, default kind 4, default value or text 5, on update digits + 1 6,
/// auto increment 7, generated text 8, generated stored 9, generated hidden 10, invisible 11, comment 12,
/// collation written 13, histogram 14, type of the elements of a multi-valued part 15, history 16,
/// STORAGE 17, COLUMN_FORMAT 18.
fn column_writer(column: &Column) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.text(1, &column.name);
    out.nest(2, type_writer(&column.ty));
    out.number(3, column.stored.map_or(0, |position| position as u64 + 1));
    match &column.default {
        ColumnDefault::None => {}
        ColumnDefault::Constant(value) => {
            out.number(4, 1);
            out.bytes(5, &write_value(value));
        }
        ColumnDefault::Now(digits) => {
            out.number(4, 2);
            out.bytes(5, &[*digits]);
        }
        ColumnDefault::Expression(text) => {
            out.number(4, 3);
            out.bytes(5, text.as_bytes());
        }
    }
    out.number(6, column.on_update_now.map_or(0, |digits| u64::from(digits) + 1));
    out.flag(7, column.auto_increment);
    if let Some(generated) = &column.generated {
        out.text(8, &generated.expression);
        out.flag(9, generated.stored);
        out.flag(10, generated.hidden);
        if let Some(elements) = &generated.elements {
            out.nest(15, type_writer(elements));
        }
    }
    out.flag(11, column.invisible);
    out.text(12, &column.comment);
    out.flag(13, column.collation_written);
    if let Some(histogram) = &column.histogram {
        out.nest(14, histogram.writer());
    }
    out.number(16, column.history.number());
    out.number(
        17,
        match column.placement.medium {
            None => 0,
            Some(Medium::Disk) => 1,
            Some(Medium::Memory) => 2,
        },
    );
    out.number(
        18,
        match column.placement.format {
            None => 0,
            Some(RecordFormat::Fixed) => 1,
            Some(RecordFormat::Dynamic) => 2,
        },
    );
    out
}

fn read_column(bytes: &[u8]) -> Result<Column> {
    let mut column = Column {
        name: Arc::from(""),
        ty: DataType::null(),
        stored: None,
        default: ColumnDefault::None,
        on_update_now: None,
        auto_increment: false,
        generated: None,
        invisible: false,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: Placement::default(),
        history: ColumnHistory::Kept,
    };
    let mut default_kind = 0;
    let (mut stored, mut hidden, mut elements) = (false, false, None);
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => column.name = field.text()?.into(),
            2 => column.ty = read_type(field.bytes)?,
            3 => column.stored = field.count()?.checked_sub(1),
            4 => default_kind = field.number()?,
            5 => column.default = read_default(default_kind, &field)?,
            6 => column.on_update_now = field.narrow::<u8>()?.checked_sub(1),
            7 => column.auto_increment = field.flag()?,
            8 => {
                let expression = field.text()?.into();
                let generated =
                    Generated { expression, stored: false, hidden: false, elements: None };
                column.generated = Some(generated);
            }
            9 => stored = field.flag()?,
            10 => hidden = field.flag()?,
            11 => column.invisible = field.flag()?,
            12 => column.comment = field.text()?.into(),
            13 => column.collation_written = field.flag()?,
            14 => column.histogram = Some(Arc::new(crate::Histogram::read(field.bytes)?)),
            15 => elements = Some(read_type(field.bytes)?),
            16 => {
                let known = ColumnHistory::numbered(field.number()?);
                column.history = known.ok_or_else(damaged)?;
            }
            17 => {
                column.placement.medium = match field.number()? {
                    1 => Some(Medium::Disk),
                    2 => Some(Medium::Memory),
                    _ => None,
                };
            }
            18 => {
                column.placement.format = match field.number()? {
                    1 => Some(RecordFormat::Fixed),
                    2 => Some(RecordFormat::Dynamic),
                    _ => None,
                };
            }
            _ => {}
        }
    }
    if let Some(generated) = &mut column.generated {
        generated.elements = elements;
        generated.stored = stored;
        generated.hidden = hidden;
    }
    Ok(column)
}

fn read_default(kind: u64, field: &Field<'_>) -> Result<ColumnDefault> {
    Ok(match kind {
        1 => ColumnDefault::Constant(read_value(field.bytes)?),
        2 => ColumnDefault::Now(*field.bytes.first().ok_or_else(damaged)?),
        3 => ColumnDefault::Expression(field.text()?.into()),
        _ => return Err(damaged()),
    })
}

/// An index: id 1, name 2, unique 3, part 4, invisible 5, comment 6, for a foreign key 7, using btree 8, without overlaps 9, using hash 10.
fn index_writer(index: &Index) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.number(1, u64::from(index.id.0));
    out.text(2, &index.name);
    out.flag(3, index.unique);
    for part in &index.parts {
        out.nest(4, part_writer(part.column, part.prefix_length, part.descending));
    }
    out.flag(5, !index.visible);
    out.text(6, &index.comment);
    out.flag(7, index.for_foreign_key);
    out.flag(8, index.method == Some(IndexMethod::BTree));
    out.flag(9, index.without_overlaps);
    out.flag(10, index.method == Some(IndexMethod::Hash));
    out
}

/// A period: name 1, column of the start 2, of the end 3.
fn period_writer(period: &Period) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.text(1, &period.name);
    out.number(2, period.start as u64);
    out.number(3, period.end as u64);
    out
}

fn read_period(bytes: &[u8]) -> Result<Period> {
    let mut period = Period { name: Arc::from(""), start: 0, end: 0 };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => period.name = field.text()?.into(),
            2 => period.start = field.count()?,
            3 => period.end = field.count()?,
            _ => {}
        }
    }
    Ok(period)
}

/// A part: column 1, prefix length 2, descending 3.
fn part_writer(column: usize, prefix_length: Option<u32>, descending: bool) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.number(1, column as u64);
    out.number(2, prefix_length.map_or(0, u64::from));
    out.flag(3, descending);
    out
}

fn read_part(bytes: &[u8]) -> Result<(usize, Option<u32>, bool)> {
    let (mut column, mut prefix, mut descending) = (0, None, false);
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => column = field.count()?,
            2 => prefix = Some(field.narrow()?),
            3 => descending = field.flag()?,
            _ => {}
        }
    }
    Ok((column, prefix, descending))
}

fn read_index(bytes: &[u8]) -> Result<Index> {
    let mut index = Index {
        id: IndexId(0),
        name: Arc::from(""),
        unique: false,
        parts: Vec::new(),
        visible: true,
        comment: String::new(),
        for_foreign_key: false,
        method: None,
        without_overlaps: false,
    };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => index.id = IndexId(field.narrow()?),
            2 => index.name = field.text()?.into(),
            3 => index.unique = field.flag()?,
            4 => {
                let (column, prefix_length, descending) = read_part(field.bytes)?;
                index.parts.push(IndexPart { column, prefix_length, descending });
            }
            5 => index.visible = !field.flag()?,
            6 => index.comment = field.text()?.into(),
            7 => index.for_foreign_key = field.flag()?,
            8 if field.flag()? => index.method = Some(IndexMethod::BTree),
            9 => index.without_overlaps = field.flag()?,
            10 if field.flag()? => index.method = Some(IndexMethod::Hash),
            _ => {}
        }
    }
    Ok(index)
}

/// A FULLTEXT index: table of its entries 1, name 2, column 3, invisible 4, comment 5, characters of a gram 6.
fn fulltext_writer(index: &FulltextIndex) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.number(1, index.entries.0);
    out.text(2, &index.name);
    for column in &index.columns {
        out.bytes(3, &(*column as u64).to_le_bytes());
    }
    out.flag(4, !index.visible);
    out.text(5, &index.comment);
    if let WordParser::Grams(size) = index.parser {
        out.number(6, u64::from(size));
    }
    out
}

fn read_fulltext(bytes: &[u8]) -> Result<FulltextIndex> {
    let mut index = FulltextIndex {
        entries: TableId(0),
        name: Arc::from(""),
        columns: Vec::new(),
        visible: true,
        comment: String::new(),
        parser: WordParser::Separated,
    };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => index.entries = TableId(field.number()?),
            2 => index.name = field.text()?.into(),
            3 => index.columns.push(field.count()?),
            4 => index.visible = !field.flag()?,
            5 => index.comment = field.text()?.into(),
            6 => index.parser = WordParser::Grams(field.narrow()?),
            _ => {}
        }
    }
    Ok(index)
}

/// As an index: id 1, name 2, unique 3, part 4.
fn engine_index_writer(index: &IndexDef) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.number(1, u64::from(index.id.0));
    out.text(2, &index.name);
    out.flag(3, index.unique);
    for part in &index.parts {
        out.nest(4, part_writer(part.column, part.prefix_length, part.descending));
    }
    out
}

fn read_engine_index(bytes: &[u8]) -> Result<IndexDef> {
    let index = read_index(bytes)?;
    let part = |part: IndexPart| KeyPart {
        column: part.column,
        prefix_length: part.prefix_length,
        descending: part.descending,
        // Its column knows it, see `read_table`.
        elements: None,
    };
    Ok(IndexDef {
        id: index.id,
        name: index.name.to_string(),
        unique: index.unique,
        parts: index.parts.into_iter().map(part).collect(),
    })
}

fn read_engine_column(bytes: &[u8]) -> Result<ColumnDef> {
    let mut column = ColumnDef { name: String::new(), ty: DataType::null(), instant_default: None };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => column.name = field.text()?.into(),
            2 => column.ty = read_type(field.bytes)?,
            3 => column.instant_default = Some(read_value(field.bytes)?),
            _ => {}
        }
    }
    Ok(column)
}

/// Numbers of the actions.
const ACTIONS: &[(ReferenceAction, u64)] = &[
    (ReferenceAction::NoAction, 0),
    (ReferenceAction::Restrict, 1),
    (ReferenceAction::Cascade, 2),
    (ReferenceAction::SetNull, 3),
    (ReferenceAction::SetDefault, 4),
];

fn action_number(action: ReferenceAction) -> u64 {
    ACTIONS.iter().find(|(known, _)| *known == action).map_or(0, |(_, number)| *number)
}

fn read_action(field: &Field<'_>) -> Result<ReferenceAction> {
    let number = field.number()?;
    let known = ACTIONS.iter().find(|(_, known)| *known == number);
    known.map(|(action, _)| *action).ok_or_else(damaged)
}

/// A foreign key: name 1, column 2, referenced schema 3, table 4, column 5, on update 6, on delete 7.
fn foreign_key_writer(key: &ForeignKey) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.text(1, &key.name);
    for column in &key.columns {
        out.bytes(2, &(*column as u64).to_le_bytes());
    }
    out.text(3, &key.referenced_schema);
    out.text(4, &key.referenced_table);
    for column in &key.referenced_columns {
        out.text(5, column);
    }
    out.number(6, action_number(key.on_update));
    out.number(7, action_number(key.on_delete));
    out
}

fn read_foreign_key(bytes: &[u8]) -> Result<ForeignKey> {
    let mut key = ForeignKey {
        name: Arc::from(""),
        columns: Vec::new(),
        referenced_schema: Arc::from(""),
        referenced_table: Arc::from(""),
        referenced_columns: Vec::new(),
        on_update: ReferenceAction::NoAction,
        on_delete: ReferenceAction::NoAction,
    };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => key.name = field.text()?.into(),
            2 => key.columns.push(field.count()?),
            3 => key.referenced_schema = field.text()?.into(),
            4 => key.referenced_table = field.text()?.into(),
            5 => key.referenced_columns.push(field.text()?.into()),
            6 => key.on_update = read_action(&field)?,
            7 => key.on_delete = read_action(&field)?,
            _ => {}
        }
    }
    Ok(key)
}

fn read_check(bytes: &[u8]) -> Result<Check> {
    let mut check = Check { name: Arc::from(""), expression: Arc::from(""), enforced: false };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => check.name = field.text()?.into(),
            2 => check.expression = field.text()?.into(),
            3 => check.enforced = field.flag()?,
            _ => {}
        }
    }
    Ok(check)
}

/// Two texts, tags 1 and 2.
pub(crate) fn write_pair(first: &str, second: &str) -> FieldWriter {
    let mut out = FieldWriter::nested();
    out.text(1, first);
    out.text(2, second);
    out
}

pub(crate) fn read_pair(bytes: &[u8]) -> Result<(String, String)> {
    let mut pair = (String::new(), String::new());
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => pair.0 = field.text()?.into(),
            2 => pair.1 = field.text()?.into(),
            _ => {}
        }
    }
    Ok(pair)
}

/// A view: schema 1, name 2, definition 3, column 4, definer 5, invoker 6, algorithm 7, check option 8, character set of
/// the client 9, collation of the connection 10, JSON duality view 11.
pub(crate) fn write_view(view: &View) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &view.schema);
    out.text(2, &view.name);
    out.text(3, &view.definition);
    for column in &view.columns {
        out.bytes(4, column.as_bytes());
    }
    out.text(5, &view.definer);
    out.flag(6, view.invoker);
    out.text(7, &view.algorithm);
    out.text(8, &view.check_option);
    out.text(9, &view.charset_client);
    out.text(10, &view.collation_connection);
    if view.is_duality {
        out.flag(11, true);
    }
    out.finish()
}

pub(crate) fn read_view(bytes: &[u8]) -> Result<View> {
    let none: Arc<str> = Arc::from("");
    let mut view = View {
        schema: none.clone(),
        name: none.clone(),
        definition: none.clone(),
        columns: Vec::new(),
        definer: none.clone(),
        invoker: false,
        algorithm: none.clone(),
        check_option: none,
        charset_client: Arc::from("utf8mb4"),
        collation_connection: Arc::from("utf8mb4_0900_ai_ci"),
        is_duality: false,
    };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => view.schema = field.text()?.into(),
            2 => view.name = field.text()?.into(),
            3 => view.definition = field.text()?.into(),
            4 => view.columns.push(field.text()?.into()),
            5 => view.definer = field.text()?.into(),
            6 => view.invoker = field.flag()?,
            7 => view.algorithm = field.text()?.into(),
            8 => view.check_option = field.text()?.into(),
            9 => view.charset_client = field.text()?.into(),
            10 => view.collation_connection = field.text()?.into(),
            11 => view.is_duality = field.flag()?,
            _ => {}
        }
    }
    Ok(view)
}

/// A persisted variable: name 1, value 2, when it was set 3, by which user 4, from which host 5.
pub(crate) fn write_variable(name: &str, kept: &PersistedVariable) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, name);
    out.text(2, &kept.value);
    out.number(3, kept.set_micros as u64);
    out.text(4, &kept.user);
    out.text(5, &kept.host);
    out.finish()
}

pub(crate) fn read_variable(bytes: &[u8]) -> Result<(Box<str>, PersistedVariable)> {
    let (mut name, mut kept) = (Box::from(""), PersistedVariable::default());
    for field in object_fields(bytes)? {
        match field.tag {
            1 => name = field.text()?.into(),
            2 => kept.value = field.text()?.into(),
            3 => kept.set_micros = field.number()? as i64,
            4 => kept.user = field.text()?.into(),
            5 => kept.host = field.text()?.into(),
            _ => {}
        }
    }
    Ok((name, kept))
}

/// A choice for a plugin: name 1, loaded 2, file 3.
pub(crate) fn write_plugin(name: &str, choice: &PluginChoice) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, name);
    out.flag(2, choice.is_loaded);
    if let Some(library) = &choice.library {
        out.text(3, library);
    }
    out.finish()
}

pub(crate) fn read_plugin(bytes: &[u8]) -> Result<(Box<str>, PluginChoice)> {
    let mut name = Box::from("");
    let mut choice = PluginChoice { is_loaded: false, library: None };
    for field in object_fields(bytes)? {
        match field.tag {
            1 => name = field.text()?.into(),
            2 => choice.is_loaded = field.flag()?,
            3 => choice.library = Some(field.text()?.into()),
            _ => {}
        }
    }
    Ok((name, choice))
}

/// A counter: value 1.
pub(crate) fn write_counter(value: u64) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.number(1, value);
    out.finish()
}

pub(crate) fn read_counter(bytes: &[u8]) -> Result<u64> {
    let mut value = 0;
    for field in object_fields(bytes)? {
        if field.tag == 1 {
            value = field.number()?;
        }
    }
    Ok(value)
}
