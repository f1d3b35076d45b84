//! Changes of rows as statements.

use std::collections::HashMap;
use std::sync::Arc;

use binlog::rows::RowImage;
use binlog::{JsonChange, JsonChanges, JsonOperation, Row, RowsKind, TableMap};
use types::json::PathLeg;
use types::{DataType, TypeKind, Value};

use crate::import::server::{Server, quoted_name, quoted_text};

/// How a column's values are written and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Text,
    /// Strings of bytes, geometries and vectors.
    Binary,
    Json,
}

#[derive(Debug)]
struct Column {
    /// In backquotes.
    name: String,
    is_generated: bool,
    kind: Kind,
}

/// A table as statements need it.
#[derive(Debug)]
pub(super) struct Target {
    /// Schema and name, in backquotes.
    pub(super) name: String,
    columns: Vec<Column>,
    /// Positions of the columns that identify a row; empty when only the whole row does.
    key: Vec<usize>,
}

/// Finds tables: on a server, or as the log describes them.
#[derive(Default)]
pub(super) struct Targets {
    pub(super) server: Option<Server>,
    known: HashMap<String, Arc<Target>>,
}

impl Targets {
    pub(super) fn new(server: Option<Server>) -> Targets {
        Targets { server, known: HashMap::new() }
    }

    /// Definitions have changed.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// The table of a map.
    ///
    /// # Errors
    /// The log has no names of columns and there is no server to ask; the server lacks the table, or has triggers on it.
    pub(super) fn find(&mut self, map: &TableMap) -> Result<Arc<Target>, String> {
        let path = format!("{}\0{}", map.schema, map.table);
        if let Some(known) = self.known.get(&path) {
            return Ok(known.clone());
        }
        let target = Arc::new(match &mut self.server {
            Some(server) => asked(server, map)?,
            None => described(map)?,
        });
        self.known.insert(path, target.clone());
        Ok(target)
    }
}

fn kind_of(ty: &DataType) -> Kind {
    match ty.kind {
        TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText => Kind::Text,
        TypeKind::Json => Kind::Json,
        _ if ty.is_string() || matches!(ty.kind, TypeKind::Geometry | TypeKind::Vector) => {
            Kind::Binary
        }
        _ => Kind::Plain,
    }
}

fn path_of(map: &TableMap) -> String {
    format!("{}.{}", quoted_name(&map.schema), quoted_name(&map.table))
}

/// From the log: which columns are generated is not in it.
fn described(map: &TableMap) -> Result<Target, String> {
    let name = path_of(map);
    let mut columns = Vec::with_capacity(map.columns.len());
    for column in &map.columns {
        let Some(own) = &column.name else {
            return Err(format!(
                "the log has no names of the columns of {name} (binlog_row_metadata was MINIMAL): name a server that has the table with --names"
            ));
        };
        let kind = kind_of(&column.ty);
        columns.push(Column { name: quoted_name(own), is_generated: false, kind });
    }
    let is_whole = map.primary_key.iter().all(|part| part.prefix == 0);
    let key = map.primary_key.iter().filter(|_| is_whole).map(|part| part.column).collect();
    Ok(Target { name, columns, key })
}

fn asked(server: &mut Server, map: &TableMap) -> Result<Target, String> {
    let name = path_of(map);
    let place = format!(
        "TABLE_SCHEMA = {} AND TABLE_NAME = {}",
        quoted_text(&map.schema),
        quoted_text(&map.table)
    );
    let columns = server.rows(&format!(
        "SELECT COLUMN_NAME, GENERATION_EXPRESSION FROM information_schema.COLUMNS WHERE {place} ORDER BY ORDINAL_POSITION"
    ))?;
    if columns.len() != map.columns.len() {
        return Err(format!(
            "{name} has {} columns in the log and {} in the server",
            map.columns.len(),
            columns.len()
        ));
    }
    let triggers = server.cell(&format!(
        "SELECT COUNT(*) FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = {} AND EVENT_OBJECT_TABLE = {}",
        quoted_text(&map.schema),
        quoted_text(&map.table)
    ))?;
    if triggers != "0" {
        return Err(format!(
            "{name} has triggers, which statements would fire although the log has their changes too: drop them first, and create them afterwards"
        ));
    }
    let key = server.rows(&format!(
        "SELECT COLUMN_NAME, SUB_PART FROM information_schema.STATISTICS WHERE {place} AND INDEX_NAME = 'PRIMARY' ORDER BY SEQ_IN_INDEX"
    ))?;
    let position = |part: &Vec<String>| {
        columns.iter().position(|column| column[0] == part[0] && part[1].is_empty())
    };
    let key = key.iter().map(position).collect::<Option<Vec<_>>>().unwrap_or_default();
    let columns = columns.iter().zip(&map.columns).map(|(column, mapped)| Column {
        name: quoted_name(&column[0]),
        is_generated: !column[1].is_empty(),
        kind: kind_of(&mapped.ty),
    });
    Ok(Target { columns: columns.collect(), name, key })
}

fn value(image: &RowImage, at: usize) -> Option<&Value> {
    image.get(at).and_then(Option::as_ref)
}

impl Target {
    /// The statement that makes the change of one row.
    ///
    /// # Errors
    /// The images lack the columns that identify the row.
    pub(super) fn change(
        &self,
        map: &TableMap,
        kind: RowsKind,
        row: &Row,
    ) -> Result<Vec<u8>, String> {
        let mut sql = Vec::new();
        match kind {
            RowsKind::Insert => {
                sql = self.insert_head(&row.after);
                self.put_row(map, &row.after, &mut sql);
            }
            RowsKind::Update => {
                let before = sql.len();
                sql.extend_from_slice(format!("UPDATE {} SET ", self.name).as_bytes());
                let start = sql.len();
                for at in self.written(&row.after) {
                    separate(&mut sql, start, b", ");
                    sql.extend_from_slice(format!("{} = ", self.columns[at].name).as_bytes());
                    put_cell(value(&row.after, at), &map.columns[at].ty, &mut sql);
                }
                for changes in &row.changes {
                    separate(&mut sql, start, b", ");
                    let name = self.columns.get(changes.column).map_or("", |column| &column.name);
                    sql.extend_from_slice(format!("{name} = ").as_bytes());
                    put_changes(changes, name, &mut sql)?;
                }
                if sql.len() == start {
                    // Only generated columns were written.
                    sql.truncate(before);
                    return Ok(sql);
                }
                self.put_condition(map, &row.before, &mut sql)?;
            }
            RowsKind::Delete => {
                sql.extend_from_slice(format!("DELETE FROM {}", self.name).as_bytes());
                self.put_condition(map, &row.before, &mut sql)?;
            }
        }
        Ok(sql)
    }

    fn written<'a>(&'a self, image: &'a RowImage) -> impl Iterator<Item = usize> + 'a {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(|(at, column)| value(image, *at).is_some() && !column.is_generated)
            .map(|(at, _)| at)
    }

    /// `INSERT INTO .. VALUES `
    pub(super) fn insert_head(&self, image: &RowImage) -> Vec<u8> {
        let names: Vec<_> = self.written(image).map(|at| self.columns[at].name.as_str()).collect();
        format!("INSERT INTO {} ({}) VALUES ", self.name, names.join(", ")).into_bytes()
    }

    /// `(1, 'a')`
    pub(super) fn put_row(&self, map: &TableMap, image: &RowImage, sql: &mut Vec<u8>) {
        sql.push(b'(');
        let start = sql.len();
        for at in self.written(image) {
            separate(sql, start, b", ");
            put_cell(value(image, at), &map.columns[at].ty, sql);
        }
        sql.push(b')');
    }

    /// What finds the row: its key, or else all its columns, letter case included.
    fn put_condition(
        &self,
        map: &TableMap,
        image: &RowImage,
        sql: &mut Vec<u8>,
    ) -> Result<(), String> {
        let has = |at: &usize| value(image, *at).is_some();
        let by_key = !self.key.is_empty() && self.key.iter().all(has);
        let read: Vec<usize> = match by_key {
            true => self.key.clone(),
            false => (0..self.columns.len()).filter(has).collect(),
        };
        if !by_key && read.len() < self.columns.len() {
            return Err(format!(
                "the image of a row of {} has neither its key nor all its columns",
                self.name
            ));
        }
        sql.extend_from_slice(b" WHERE ");
        let start = sql.len();
        for at in read {
            separate(sql, start, b" AND ");
            let (name, kind) = (&self.columns[at].name, self.columns[at].kind);
            let left = match kind {
                _ if by_key => format!("{name} = "),
                Kind::Plain | Kind::Json => format!("{name} <=> "),
                Kind::Binary => format!("CAST({name} AS BINARY) <=> "),
                Kind::Text => {
                    format!("CONVERT({name} USING utf8mb4) COLLATE utf8mb4_0900_bin <=> ")
                }
            };
            sql.extend_from_slice(left.as_bytes());
            put_cell(value(image, at), &map.columns[at].ty, sql);
        }
        if !by_key {
            sql.extend_from_slice(b" LIMIT 1");
        }
        Ok(())
    }
}

fn separate(sql: &mut Vec<u8>, start: usize, by: &[u8]) {
    if sql.len() > start {
        sql.extend_from_slice(by);
    }
}

/// Appends what becomes of a document: calls around the column's name, the first change innermost.
///
/// # Errors
/// The changes make no sense.
pub(super) fn put_changes(
    changes: &JsonChanges,
    name: &str,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let list = changes.list().map_err(|error| error.to_string())?;
    let function = |change: &JsonChange| match (change.operation, change.path.legs().last()) {
        (JsonOperation::Remove, _) => "JSON_REMOVE",
        (JsonOperation::Replace, _) => "JSON_REPLACE",
        (JsonOperation::Insert, Some(PathLeg::Cell(_))) => "JSON_ARRAY_INSERT",
        (JsonOperation::Insert, _) => "JSON_INSERT",
    };
    for change in list.iter().rev() {
        out.extend_from_slice(format!("{}(", function(change)).as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    for change in &list {
        let mut path = Vec::new();
        change.path.write_text(&mut path);
        out.extend_from_slice(b", ");
        put_text(&path, out);
        if change.operation != JsonOperation::Remove {
            out.extend_from_slice(b", CAST(");
            put_text(&change.value.to_text(), out);
            out.extend_from_slice(b" AS JSON)");
        }
        out.push(b')');
    }
    Ok(())
}

fn put_cell(cell: Option<&Value>, ty: &DataType, out: &mut Vec<u8>) {
    put_literal(cell.unwrap_or(&Value::Null), ty, out);
}

/// Appends a literal. TIMESTAMP is UTC.
pub(super) fn put_literal(value: &Value, ty: &DataType, out: &mut Vec<u8>) {
    let quoted = |write: &dyn Fn(&mut Vec<u8>), out: &mut Vec<u8>| {
        out.push(b'\'');
        write(out);
        out.push(b'\'');
    };
    match value {
        Value::Null => out.extend_from_slice(b"NULL"),
        Value::Int(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::UInt(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Double(number) => out.extend_from_slice(format!("{number:e}").as_bytes()),
        Value::Decimal(number) => number.write_text(out),
        Value::Date(date) => quoted(&|out| date.write_text(out), out),
        Value::Time(time) => quoted(&|out| time.write_text(ty.decimals.min(6), out), out),
        Value::DateTime(at) => quoted(&|out| at.write_text(ty.decimals.min(6), out), out),
        Value::Json(document) => {
            let mut text = Vec::new();
            types::json::write_text(document, &mut text);
            out.extend_from_slice(b"CAST(");
            put_text(&text, out);
            out.extend_from_slice(b" AS JSON)");
        }
        Value::Bytes(bytes) if kind_of(ty) == Kind::Text && std::str::from_utf8(bytes).is_ok() => {
            put_text(bytes, out);
        }
        Value::Bytes(bytes) => {
            out.extend_from_slice(b"X'");
            bytes.iter().for_each(|byte| out.extend_from_slice(format!("{byte:02x}").as_bytes()));
            out.push(b'\'');
        }
    }
}

fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 => out.extend_from_slice(b"\\0"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x1a => out.extend_from_slice(b"\\Z"),
            other => out.push(*other),
        }
    }
    out.push(b'\'');
}
