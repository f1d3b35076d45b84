//! Events as text or as lines of JSON.

use std::io::Write;
use std::sync::Arc;

use binlog::envelope::XaPrepare;
use binlog::query::QueryEvent;
use binlog::rows::RowImage;
use binlog::{Header, JsonChanges, JsonOperation, RowsEvent, RowsKind, TableMap};
use serde_json::{Map, Value as Json, json};
use types::{DataType, Value};

use super::read::Place;
use super::sql::{put_changes, put_literal};
use super::time;
use super::walk::{Sink, Transaction};
use crate::import::server::quoted_name;

/// Writes transactions for people, or a JSON object per change.
pub(super) struct Show<'o> {
    out: &'o mut dyn Write,
    as_json: bool,
    with_events: bool,
    transaction: Option<Transaction>,
    /// The head of the transaction is written with its first change.
    is_head_due: bool,
    is_bundle: bool,
    /// The statement that changed the next rows.
    rows_query: Option<String>,
    place: Option<Place>,
}

impl<'o> Show<'o> {
    pub(super) fn new(out: &'o mut dyn Write, as_json: bool, with_events: bool) -> Show<'o> {
        Show {
            out,
            as_json,
            with_events,
            transaction: None,
            is_head_due: false,
            is_bundle: false,
            rows_query: None,
            place: None,
        }
    }

    fn line(&mut self, text: &str) -> Result<(), String> {
        writeln!(self.out, "{text}").map_err(|error| error.to_string())
    }

    fn head(&mut self) -> Result<(), String> {
        let Some(of) = self.transaction.clone().filter(|_| self.is_head_due) else { return Ok(()) };
        self.is_head_due = false;
        self.line(&format!(
            "# {}, {} UTC, server {}, thread {}",
            of.place,
            time::text(of.micros()),
            of.server_id,
            of.thread_id
        ))?;
        if let Some(gtid) = &of.event.gtid {
            self.line(&format!("# GTID {gtid}"))?;
        }
        if self.is_bundle { self.line("BEGIN;") } else { Ok(()) }
    }

    /// What all objects of a transaction have.
    fn object(&self) -> Map<String, Json> {
        let mut object = Map::new();
        let Some(of) = &self.transaction else { return object };
        let position = self.place.as_ref().map_or(of.place.start, |place| place.start);
        object.insert("file".into(), json!(of.place.file));
        object.insert("position".into(), json!(position));
        object.insert("gtid".into(), json!(of.event.gtid.as_ref().map(ToString::to_string)));
        object.insert("time".into(), json!(time::text(of.micros())));
        object.insert("server_id".into(), json!(of.server_id));
        object.insert("thread_id".into(), json!(of.thread_id));
        object
    }

    fn put_object(&mut self, more: Json) -> Result<(), String> {
        let mut object = self.object();
        if let Json::Object(more) = more {
            object.extend(more);
        }
        self.line(&Json::Object(object).to_string())
    }

    fn image(&mut self, title: &str, map: &TableMap, image: &RowImage) -> Result<(), String> {
        self.line(&format!("### {title}"))?;
        for (at, cell) in image.iter().enumerate() {
            let Some(cell) = cell else { continue };
            let Some(column) = map.columns.get(at) else { continue };
            let mut text = format!("###   {} = ", name_of(map, at)).into_bytes();
            put_literal(cell, &column.ty, &mut text);
            let members = member_text(cell, &column.ty).map(|name| format!(" '{name}'"));
            let text = String::from_utf8_lossy(&text);
            self.line(&format!(
                "{text} /*{} {} */",
                members.unwrap_or_default(),
                type_text(&column.ty)
            ))?;
        }
        Ok(())
    }
}

fn name_of(map: &TableMap, at: usize) -> String {
    let name = map.columns.get(at).and_then(|column| column.name.as_deref());
    name.map_or_else(|| format!("@{}", at + 1), quoted_name)
}

fn type_text(ty: &DataType) -> String {
    let kind = format!("{:?}", ty.kind).to_uppercase();
    let unsigned = if ty.unsigned { " UNSIGNED" } else { "" };
    let null = if ty.nullable { "" } else { " NOT NULL" };
    format!("{kind}{unsigned}{null}")
}

/// The names of an ENUM's or SET's members, where the log has them.
fn member_text(cell: &Value, ty: &DataType) -> Option<String> {
    let Value::UInt(number) = cell else { return None };
    let names = ty.members.as_ref()?.names();
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    if ty.kind == types::TypeKind::Enum {
        let at = usize::try_from(*number).ok()?.checked_sub(1)?;
        return names.map(text).nth(at);
    }
    let has = |at: &usize| number >> at & 1 == 1;
    let chosen = names.take(64).enumerate().filter(|(at, _)| has(at)).map(|(_, name)| text(name));
    Some(chosen.collect::<Vec<_>>().join(","))
}

/// A cell in JSON: numbers that JSON's readers keep exactly stay numbers, bytes become `0x..`.
fn json_cell(cell: &Value, ty: &DataType) -> Json {
    if let Some(names) = member_text(cell, ty) {
        return json!(names);
    }
    match cell {
        Value::Null => Json::Null,
        Value::Int(number) => json!(number),
        Value::UInt(number) => json!(number),
        Value::Double(number) => json!(number),
        Value::Json(document) => {
            let mut text = Vec::new();
            types::json::write_text(document, &mut text);
            serde_json::from_slice(&text).unwrap_or(Json::Null)
        }
        Value::Decimal(number) => json!(number.to_string()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !charset_is_binary(ty) => json!(text),
            Ok(_) | Err(_) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                json!(format!("0x{hex}"))
            }
        },
        Value::Date(_) | Value::Time(_) | Value::DateTime(_) => {
            let mut text = Vec::new();
            put_literal(cell, ty, &mut text);
            json!(String::from_utf8_lossy(&text).trim_matches('\''))
        }
    }
}

fn charset_is_binary(ty: &DataType) -> bool {
    charset::collation_or_binary(ty.collation).is_binary()
}

fn json_image(map: &TableMap, image: &RowImage) -> Json {
    let mut object = Map::new();
    for (at, cell) in image.iter().enumerate() {
        let (Some(cell), Some(column)) = (cell, map.columns.get(at)) else { continue };
        let name = column.name.as_deref();
        let name = name.map_or_else(|| format!("@{}", at + 1), ToOwned::to_owned);
        object.insert(name, json_cell(cell, &column.ty));
    }
    Json::Object(object)
}

/// The changes of documents that the row before lacks, by column.
fn json_changes(map: &TableMap, columns: &[JsonChanges]) -> Result<Json, String> {
    let mut object = Map::new();
    for changes in columns {
        let name = map.columns.get(changes.column).and_then(|column| column.name.clone());
        let name = name.map_or_else(|| format!("@{}", changes.column + 1), |name| name.to_string());
        let list = changes.list().map_err(|error| error.to_string())?;
        let shown = list.iter().map(|change| {
            let mut path = Vec::new();
            change.path.write_text(&mut path);
            let mut shown = json!({
                "op": change.operation.name(),
                "path": String::from_utf8_lossy(&path),
            });
            if change.operation != JsonOperation::Remove {
                let value = serde_json::from_slice(&change.value.to_text());
                shown["value"] = value.unwrap_or(Json::Null);
            }
            shown
        });
        object.insert(name, shown.collect());
    }
    Ok(Json::Object(object))
}

impl Sink for Show<'_> {
    fn event(&mut self, place: &Place, header: &Header, _: &[u8]) -> Result<(), String> {
        self.place = Some(place.clone());
        if !self.with_events || self.as_json {
            return Ok(());
        }
        self.line(&format!(
            "# {place}, ends at {}: {}, {} UTC, server {}, {} bytes",
            place.end,
            header.kind.name(),
            time::text(u64::from(header.timestamp) * 1_000_000),
            header.server_id,
            header.size
        ))
    }

    fn begin(&mut self, transaction: &Transaction, is_bundle: bool) -> Result<(), String> {
        self.transaction = Some(transaction.clone());
        self.is_bundle = is_bundle;
        self.rows_query = None;
        self.is_head_due = true;
        Ok(())
    }

    fn statement(&mut self, _: &Header, query: &QueryEvent<'_>) -> Result<(), String> {
        let schema = String::from_utf8_lossy(query.schema).into_owned();
        let text = String::from_utf8_lossy(query.text).into_owned();
        if self.as_json {
            return self.put_object(json!({"op": "statement", "database": schema, "sql": text}));
        }
        self.head()?;
        if !schema.is_empty() {
            self.line(&format!("USE {};", quoted_name(&schema)))?;
        }
        self.line(&format!("{text};"))
    }

    fn rows_query(&mut self, text: &[u8]) -> Result<(), String> {
        if self.as_json {
            return Ok(());
        }
        self.rows_query = Some(String::from_utf8_lossy(text).replace('\n', "\n# "));
        Ok(())
    }

    fn rows(&mut self, map: &Arc<TableMap>, rows: &RowsEvent<'_>) -> Result<(), String> {
        for row in rows.rows(map) {
            let row = row.map_err(|error| error.to_string())?;
            if self.as_json {
                let operation = match rows.kind {
                    RowsKind::Insert => "insert",
                    RowsKind::Update => "update",
                    RowsKind::Delete => "delete",
                };
                let mut object =
                    json!({"op": operation, "database": map.schema, "table": map.table});
                if rows.kind != RowsKind::Insert {
                    object["before"] = json_image(map, &row.before);
                }
                if rows.kind != RowsKind::Delete {
                    object["after"] = json_image(map, &row.after);
                }
                if !row.changes.is_empty() {
                    object["changes"] = json_changes(map, &row.changes)?;
                }
                self.put_object(object)?;
                continue;
            }
            self.head()?;
            if let Some(text) = self.rows_query.take() {
                self.line(&format!("# {text}"))?;
            }
            let path = format!("{}.{}", quoted_name(&map.schema), quoted_name(&map.table));
            match rows.kind {
                RowsKind::Insert => {
                    self.line(&format!("### INSERT INTO {path}"))?;
                    self.image("SET", map, &row.after)?;
                }
                RowsKind::Update => {
                    self.line(&format!("### UPDATE {path}"))?;
                    self.image("WHERE", map, &row.before)?;
                    self.image("SET", map, &row.after)?;
                    for changes in &row.changes {
                        let name = name_of(map, changes.column);
                        let mut text = format!("###   {name} = ").into_bytes();
                        put_changes(changes, &name, &mut text)?;
                        self.line(&format!("{} /* JSON */", String::from_utf8_lossy(&text)))?;
                    }
                }
                RowsKind::Delete => {
                    self.line(&format!("### DELETE FROM {path}"))?;
                    self.image("WHERE", map, &row.before)?;
                }
            }
        }
        Ok(())
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>) -> Result<(), String> {
        let text = super::replay::prepared(xid);
        if self.as_json {
            return self.put_object(json!({"op": "statement", "database": "", "sql": text}));
        }
        self.head()?;
        self.line(&format!("{text};"))
    }

    fn commit(&mut self) -> Result<(), String> {
        let is_shown = !self.as_json && !self.is_head_due && self.transaction.is_some();
        self.transaction = None;
        self.is_head_due = false;
        let end = if self.is_bundle { "COMMIT;\n" } else { "" };
        if is_shown { self.line(end) } else { Ok(()) }
    }
}
