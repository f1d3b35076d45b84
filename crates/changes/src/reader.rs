//! Makes events of the binary log into events of `docs/format/changes.md`, while they come.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use binlog::event::{Events, HEADER_BYTES};
use binlog::query::QueryEvent;
use binlog::{
    Event, EventKind, Header, JsonChanges, JsonOperation, Row, RowsEvent, RowsKind, TableMap,
    decode,
};
use errors::{Error, ErrorCode, Result};
use plugin_api::DumpSink;
use serde_json::json;
use syntax::ParseOptions;
use syntax::ast::{AlterAction, ObjectName, Statement};
use types::{Gtid, GtidSet};

use crate::event::{Keys, Outlet, Post, put_document, put_name, put_number, put_text};
use crate::json::write_string;
use crate::scope::Scope;
use crate::value::{Column, put_key, put_table, write_object};

/// Most bytes of a compressed transaction once it is not: the log compresses none of more than 16 MiB.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
/// Bits of `sql_mode` in the log.
const ANSI_QUOTES: u64 = 1 << 2;
const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
/// Most tables that are known at once.
const TABLES_MAX: usize = 1000;

/// How events look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Updates and deletes have the row before.
    pub has_before: bool,
    /// Tables are described.
    pub has_schema: bool,
}

/// A table that rows come of.
struct Table {
    schema: String,
    name: String,
    map: Box<TableMap>,
    columns: Vec<Column>,
    key: Vec<usize>,
    is_wanted: bool,
}

/// The transaction that comes.
struct Transaction {
    gtid: Option<Gtid>,
    shown: String,
    commit_micros: u64,
    /// Events of it that the reader got.
    events: u64,
    is_open: bool,
}

/// Reads the log for one client.
pub struct Reader<'o> {
    post: Post<'o>,
    scope: Scope,
    shape: Shape,
    /// Transactions that the client has after the last one that came.
    position: GtidSet,
    /// The place that it was told last.
    told: GtidSet,
    tables: HashMap<u64, Table>,
    described: HashMap<(String, String), (Vec<Column>, Vec<usize>)>,
    transaction: Option<Transaction>,
    scratch: Vec<u8>,
    /// Asked before what is of a table is sent, for a reader who may not see all tables.
    guard: Option<Guard<'o>>,
}

/// Whether a reader may see a table: schema and name.
pub type Guard<'o> = Box<dyn FnMut(&str, &str) -> Result<()> + 'o>;

/// Appends the key that an update gave a row, if it is another.
fn put_new_key(
    table: &Table,
    row: &Row,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<Option<Range<usize>>> {
    // An image may have no more than what has changed.
    let has_moved = |at: &usize| {
        let after = row.after.get(*at).and_then(Option::as_ref);
        after.is_some() && after != row.before.get(*at).and_then(Option::as_ref)
    };
    if row.before.is_empty() || row.after.is_empty() || !table.key.iter().any(has_moved) {
        return Ok(None);
    }
    let now = |at: usize| {
        let after = row.after.get(at).and_then(Option::as_ref);
        after.or_else(|| row.before.get(at).and_then(Option::as_ref))
    };
    put_key("new_key", &table.columns, &table.key, now, scratch, out)
}

/// Appends the changes of documents that the row before lacks, if there are any.
fn put_changes(columns: &[Column], changed: &[JsonChanges], out: &mut Vec<u8>) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    put_name("changes", out);
    for (number, changes) in changed.iter().enumerate() {
        out.push(if number == 0 { b'{' } else { b',' });
        let name = columns.get(changes.column).map_or("", |column| column.name.as_str());
        write_string(name.as_bytes(), out);
        out.extend_from_slice(b":[");
        for (number, change) in changes.list().map_err(broken)?.iter().enumerate() {
            let mut path = Vec::new();
            change.path.write_text(&mut path);
            out.extend_from_slice(if number == 0 { b"{\"op\":" } else { b",{\"op\":" });
            write_string(change.operation.name().as_bytes(), out);
            out.extend_from_slice(b",\"path\":");
            write_string(&path, out);
            if change.operation != JsonOperation::Remove {
                out.extend_from_slice(b",\"value\":");
                out.extend_from_slice(&change.value.to_text());
            }
            out.push(b'}');
        }
        out.push(b']');
    }
    out.push(b'}');
    Ok(())
}

fn broken(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorCode(1594), format!("The event makes no sense: {why}"))
}

/// A set without the line breaks that it is shown with.
pub fn one_line(set: &GtidSet) -> String {
    set.to_string().replace('\n', "")
}

impl<'o> Reader<'o> {
    /// A reader of a client who has the transactions of `position`.
    pub fn new(
        outlet: &'o mut dyn Outlet,
        scope: Scope,
        shape: Shape,
        position: GtidSet,
    ) -> Reader<'o> {
        Reader {
            post: Post::new(outlet),
            scope,
            shape,
            told: position.clone(),
            position,
            tables: HashMap::new(),
            described: HashMap::new(),
            transaction: None,
            scratch: Vec::new(),
            guard: None,
        }
    }

    /// The reader sees a table while `guard` lets him, and its error ends the stream. Texts of definitions, which may tell of other
    /// tables, are left out.
    #[must_use]
    pub fn guarded(self, guard: Guard<'o>) -> Reader<'o> {
        Reader { guard: Some(guard), ..self }
    }

    fn take(&mut self, header: Header, body: &[u8]) -> Result<()> {
        // It has a checksum whether the others have or not.
        if header.kind == EventKind::FORMAT_DESCRIPTION {
            return Ok(());
        }
        match decode(header.kind, body).map_err(broken)? {
            Event::Gtid(event) => {
                self.transaction = Some(Transaction {
                    shown: event.gtid.as_ref().map_or_else(String::new, Gtid::to_string),
                    gtid: event.gtid,
                    commit_micros: event.immediate_commit_timestamp,
                    events: 0,
                    is_open: false,
                });
            }
            Event::TransactionPayload(payload) => {
                let events = payload.events(PAYLOAD_BYTES_MAX).map_err(broken)?;
                let mut inner = Events::new(&events);
                for (header, event) in inner.by_ref() {
                    self.take(header, &event[HEADER_BYTES..])?;
                }
                if !inner.rest().is_empty() {
                    return Err(broken("a compressed transaction"));
                }
            }
            Event::Query(query) => self.query(&query)?,
            Event::TableMap(map) => self.map(map)?,
            Event::Rows(rows) => self.rows(&rows)?,
            Event::Xid(_) | Event::XaPrepare(_) => self.commit()?,
            Event::Heartbeat(_) => self.heartbeat()?,
            Event::Incident(_, message) => {
                return Err(broken(format_args!(
                    "changes are missing: {}",
                    String::from_utf8_lossy(message)
                )));
            }
            Event::FormatDescription(_) | Event::Rotate(_) | Event::PreviousGtids(_) => {}
            Event::RowsQuery(_) | Event::Stop | Event::Other(_) => {}
        }
        Ok(())
    }

    fn query(&mut self, query: &QueryEvent<'_>) -> Result<()> {
        let Some(transaction) = &mut self.transaction else { return Ok(()) };
        match query.text {
            b"BEGIN" => transaction.is_open = true,
            b"COMMIT" => return self.commit(),
            text => {
                let is_open = transaction.is_open;
                let sql_mode = query.context.sql_mode.unwrap_or(0);
                self.definition(&String::from_utf8_lossy(query.schema), text, sql_mode)?;
                if !is_open {
                    return self.commit();
                }
            }
        }
        Ok(())
    }

    /// A change of definitions.
    fn definition(&mut self, schema: &str, text: &[u8], sql_mode: u64) -> Result<()> {
        let text = String::from_utf8_lossy(text);
        let Some(named) = Named::of(schema, &text, sql_mode) else { return Ok(()) };
        let scope = &self.scope;
        let is_wanted = named.schemas.iter().any(|schema| scope.has_schema(schema))
            || named.tables.iter().any(|(schema, table)| scope.has_table(schema, table));
        // What comes next of these tables is described again.
        self.described.retain(|(schema, table), _| {
            !named.tables.iter().any(|(s, t)| s == schema && t == table)
                && !named.schemas.contains(schema)
        });
        if !is_wanted {
            return Ok(());
        }
        if self.guard.is_some() {
            return self.guarded_definition(&named);
        }
        let tables: Vec<_> =
            named.tables.iter().map(|(schema, table)| json!([schema, table])).collect();
        let op = if named.is_truncate { "truncate" } else { "ddl" };
        let first = named.tables.first().map(|(schema, table)| (schema.as_str(), table.as_str()));
        self.in_transaction(op, first, |out, _| {
            put_text("schema", schema, out);
            put_document("tables", &json!(tables), out);
            put_text("sql", &text, out);
            Ok(Keys::default())
        })
    }

    /// A change of definitions, for a reader who may not see all tables: which of his it is about.
    fn guarded_definition(&mut self, named: &Named) -> Result<()> {
        let Scope::Tables(own) = &self.scope else { return Ok(()) };
        let is_meant = |(schema, table): &&(String, String)| {
            named.schemas.contains(schema)
                || named.tables.iter().any(|(s, t)| s == schema && t == table)
        };
        let tables: Vec<_> = own.iter().filter(is_meant).cloned().collect();
        let Some((first, _)) = tables.first() else { return Ok(()) };
        let schema = first.clone();
        if let Some(guard) = &mut self.guard {
            tables.iter().try_for_each(|(schema, table)| guard(schema, table))?;
        }
        let op = if named.is_truncate { "truncate" } else { "ddl" };
        let first = tables.first().map(|(schema, table)| (schema.as_str(), table.as_str()));
        self.in_transaction(op, first, |out, _| {
            put_text("schema", &schema, out);
            put_document("tables", &json!(tables), out);
            put_text("sql", "", out);
            Ok(Keys::default())
        })
    }

    /// Writes an event of the present transaction, which begins with the first one that its reader wants.
    fn in_transaction(
        &mut self,
        op: &'static str,
        table: Option<(&str, &str)>,
        fill: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>) -> Result<Keys>,
    ) -> Result<()> {
        let Some(transaction) = &mut self.transaction else {
            return Err(broken("a change outside of a transaction"));
        };
        let (gtid, micros) = (transaction.shown.as_str(), transaction.commit_micros);
        if transaction.events == 0 {
            self.post.event("begin", None, |out| {
                put_text("gtid", gtid, out);
                put_number("commit_us", micros, out);
                Ok(())
            })?;
        }
        transaction.events += 1;
        let (number, scratch) = (transaction.events, &mut self.scratch);
        self.post.table_event(op, table, |out| {
            put_text("gtid", gtid, out);
            put_number("commit_us", micros, out);
            put_number("n", number, out);
            fill(out, scratch)
        })
    }

    fn map(&mut self, map: Box<TableMap>) -> Result<()> {
        if self.tables.len() >= TABLES_MAX {
            self.tables.clear();
        }
        let name = |(at, column): (usize, &binlog::MappedColumn)| {
            column.name.as_deref().map_or_else(|| format!("column_{at}"), str::to_owned)
        };
        let columns = map.columns.iter().enumerate();
        let columns = columns
            .map(|(at, column)| Column { name: name((at, column)), ty: column.ty.clone() })
            .collect();
        let is_wanted = self.scope.has_table(&map.schema, &map.table);
        if let (Some(guard), true) = (&mut self.guard, is_wanted) {
            guard(&map.schema, &map.table)?;
        }
        let table = Table {
            schema: map.schema.to_string(),
            name: map.table.to_string(),
            key: map.primary_key.iter().map(|part| part.column).collect(),
            is_wanted,
            columns,
            map,
        };
        self.tables.insert(table.map.table_id, table);
        Ok(())
    }

    fn rows(&mut self, rows: &RowsEvent<'_>) -> Result<()> {
        // Taken out while the reader is used for its rows.
        let Some(table) = self.tables.remove(&rows.table_id) else {
            return Err(broken("rows of an unknown table"));
        };
        let written = match table.is_wanted {
            true => self.describe(&table).and_then(|()| self.rows_of(&table, rows)),
            false => Ok(()),
        };
        self.tables.insert(rows.table_id, table);
        written
    }

    fn describe(&mut self, table: &Table) -> Result<()> {
        if !self.shape.has_schema {
            return Ok(());
        }
        let name = (table.schema.clone(), table.name.clone());
        let known = self.described.get(&name);
        if known.is_some_and(|(columns, key)| *columns == table.columns && *key == table.key) {
            return Ok(());
        }
        if self.described.len() >= TABLES_MAX {
            self.described.clear();
        }
        self.described.insert(name, (table.columns.clone(), table.key.clone()));
        self.post.table_event("table", Some((&table.schema, &table.name)), |out| {
            put_table(&table.schema, &table.name, &table.columns, &table.key, out);
            Ok(Keys::default())
        })
    }

    fn rows_of(&mut self, table: &Table, rows: &RowsEvent<'_>) -> Result<()> {
        let has_before = self.shape.has_before;
        for row in rows.rows(&table.map) {
            let row = row.map_err(broken)?;
            let op = match rows.kind {
                RowsKind::Insert => "insert",
                RowsKind::Update => "update",
                RowsKind::Delete => "delete",
            };
            let of_table = Some((table.schema.as_str(), table.name.as_str()));
            self.in_transaction(op, of_table, |out, scratch| {
                put_text("schema", &table.schema, out);
                put_text("table", &table.name, out);
                // The key that the row has had until now: an update may change it.
                let named = if row.before.is_empty() { &row.after } else { &row.before };
                let of = |at: usize| named.get(at).and_then(Option::as_ref);
                let key = put_key("key", &table.columns, &table.key, of, scratch, out)?;
                let new_key = put_new_key(table, &row, scratch, out)?;
                for (name, image) in [("before", &row.before), ("after", &row.after)] {
                    if name == "before" && !has_before && !table.key.is_empty() {
                        continue;
                    }
                    put_name(name, out);
                    match image.is_empty() {
                        true => out.extend_from_slice(b"null"),
                        false => {
                            let of = |at: usize| image.get(at).and_then(Option::as_ref);
                            write_object(&table.columns, of, |_| true, scratch, out)?;
                        }
                    }
                }
                put_changes(&table.columns, &row.changes, out)?;
                Ok(Keys { key, new_key })
            })?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.tables.clear();
        let Some(transaction) = self.transaction.take() else { return Ok(()) };
        if let Some(gtid) = &transaction.gtid {
            self.position.add(gtid.uuid, &gtid.tag, gtid.number);
        }
        if transaction.events == 0 {
            return Ok(());
        }
        let position = one_line(&self.position);
        self.told.clone_from(&self.position);
        self.post.event("commit", Some(&position), |out| {
            put_text("gtid", &transaction.shown, out);
            put_number("commit_us", transaction.commit_micros, out);
            put_number("events", transaction.events, out);
            put_text("position", &position, out);
            Ok(())
        })
    }

    /// Nothing comes: says where the log is, so that the client can confirm it, and that the connection lives.
    fn heartbeat(&mut self) -> Result<()> {
        if self.transaction.is_none() {
            let position = one_line(&self.position);
            self.told.clone_from(&self.position);
            self.post.event("position", Some(&position), |out| {
                put_text("position", &position, out);
                Ok(())
            })?;
        }
        self.post.outlet.heartbeat()
    }
}

impl DumpSink for Reader<'_> {
    fn event(&mut self, event: &[u8]) -> Result<()> {
        let header = Header::read(event).map_err(broken)?;
        let body = event.get(HEADER_BYTES..header.size as usize);
        self.take(header, body.ok_or_else(|| broken("size"))?)?;
        // The answer begins when the log has accepted the reader.
        if header.kind == EventKind::ROTATE { self.post.outlet.flush() } else { Ok(()) }
    }

    fn asking_event(&mut self, _event: &[u8]) -> Result<()> {
        Err(Error::internal("no acknowledgement was offered"))
    }

    fn answer(&mut self, _limit: Duration) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn flush(&mut self) -> Result<()> {
        self.post.outlet.flush()
    }
}

/// What a statement about definitions names.
struct Named {
    schemas: Vec<String>,
    tables: Vec<(String, String)>,
    is_truncate: bool,
}

impl Named {
    /// `None` for statements that are about neither schemas nor tables, such as those about accounts.
    fn of(schema: &str, text: &str, sql_mode: u64) -> Option<Named> {
        let options = ParseOptions {
            ansi_quotes: sql_mode & ANSI_QUOTES != 0,
            no_backslash_escapes: sql_mode & NO_BACKSLASH_ESCAPES != 0,
            ..ParseOptions::default()
        };
        let (statement, _) = syntax::parse_one(text, &options).ok()?;
        let table = |name: &ObjectName| {
            let of = name.schema.as_ref().map_or(schema, |schema| &schema.text);
            (of.to_owned(), name.name.text.to_string())
        };
        let mut named = Named { schemas: Vec::new(), tables: Vec::new(), is_truncate: false };
        match &statement {
            Statement::CreateDatabase(create) => named.schemas.push(create.name.text.to_string()),
            Statement::DropDatabase(drop) => named.schemas.push(drop.name.text.to_string()),
            Statement::AlterDatabase(alter) => {
                let name = alter.name.as_ref().map_or(schema, |name| &name.text);
                named.schemas.push(name.to_owned());
            }
            Statement::CreateTable(create) => named.tables.push(table(&create.name)),
            Statement::AlterTable(alter) => {
                named.tables.push(table(&alter.name));
                for action in &alter.actions {
                    if let AlterAction::RenameTable(name) = action {
                        named.tables.push(table(name));
                    }
                }
            }
            Statement::DropTable(drop) => named.tables.extend(drop.names.iter().map(table)),
            Statement::TruncateTable(name) => {
                named.tables.push(table(name));
                named.is_truncate = true;
            }
            Statement::RenameTable(rename) => {
                let both = rename.renames.iter().flat_map(|(from, to)| [table(from), table(to)]);
                named.tables.extend(both);
            }
            Statement::CreateIndex(create) => named.tables.push(table(&create.table)),
            Statement::DropIndex(drop) => named.tables.push(table(&drop.table)),
            _ => return None,
        }
        Some(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_their_tables() {
        let named = |text| Named::of("d", text, 0).map(|named| named.tables);
        let pair = |s: &str, t: &str| (s.to_owned(), t.to_owned());
        assert_eq!(named("CREATE TABLE t (a INT)"), Some(vec![pair("d", "t")]));
        assert_eq!(
            named("DROP TABLE IF EXISTS a.b, c"),
            Some(vec![pair("a", "b"), pair("d", "c")])
        );
        assert_eq!(named("RENAME TABLE a TO e.b"), Some(vec![pair("d", "a"), pair("e", "b")]));
        assert_eq!(named("CREATE USER a IDENTIFIED BY 'secret'"), None, "accounts are not told");
        assert!(Named::of("d", "TRUNCATE TABLE t", 0).is_some_and(|named| named.is_truncate));
    }
}
