//! Tables of this server that rows go to, and the statements that change their rows.

use binlog::rows::RowImage;
use binlog::{KnownColumn, Row, RowsKind};
use errors::{Error, ErrorCode, Result};
use types::Value;

use crate::apply::broken;
use crate::by_hash;
use crate::local::{Run, quoted, text_of};

const COLUMNS: &str = "SELECT COLUMN_NAME, DATA_TYPE, GENERATION_EXPRESSION, COLUMN_TYPE, COLLATION_NAME, \
     CAST(DATETIME_PRECISION AS CHAR) FROM \
     information_schema.COLUMNS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
const KEYS: &str = "SELECT INDEX_NAME, COLUMN_NAME, SUB_PART, NULLABLE FROM \
     information_schema.STATISTICS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND NON_UNIQUE = 0 \
     ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX";

const TYPE: &str =
    "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";

/// How a column's values are written and compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    /// Of ENUM, SET and BIT.
    Number,
    Text,
    /// MariaDB sends its texts.
    Json,
    Binary,
}

struct Column {
    /// In backquotes.
    name: String,
    kind: Kind,
    is_generated: bool,
    known: KnownColumn,
}

/// A table.
pub(crate) struct Target {
    /// Schema and name, in backquotes.
    name: String,
    columns: Vec<Column>,
    /// Positions of the columns that identify a row; empty when only the whole row does.
    key: Vec<usize>,
    /// Whether rows can be changed in any order: no unique index is in the way.
    is_without_unique: bool,
}

/// A statement that changes many rows, of which `by_hash` says which and how.
pub(crate) struct HashStatement {
    pub(crate) sql: String,
    pub(crate) kind: RowsKind,
    /// Positions of the columns that say which row it is.
    pub(crate) read: Vec<usize>,
}

impl Target {
    /// Looks a table up.
    ///
    /// # Errors
    /// 1146.
    pub(crate) fn load(local: &mut dyn Run, schema: &str, table: &str) -> Result<Target> {
        let names = [Value::text(schema), Value::text(table)];
        let rows = local.execute(COLUMNS, &names)?.rows;
        if rows.is_empty() {
            return Err(errors::err!(NO_SUCH_TABLE, schema, table));
        }
        let bare: Vec<String> = rows.iter().map(|row| text_of(row.first())).collect();
        let columns = rows.iter().map(|row| Column {
            name: quoted(&text_of(row.first())),
            kind: kind_of(&text_of(row.get(1))),
            is_generated: !text_of(row.get(2)).is_empty(),
            known: known_of(row),
        });
        let mut columns: Vec<Column> = columns.collect();
        let keys = local.execute(KEYS, &names)?.rows;
        let (mut key, is_without_unique) = (key_of(&keys, &bare), keys.is_empty());
        let found = local.execute(TYPE, &names)?.rows;
        if found.first().is_some_and(|row| text_of(row.first()) == "SYSTEM VERSIONED") {
            let texts: Vec<String> = rows.iter().map(|row| text_of(row.get(2))).collect();
            let end = add_row_times(&mut columns, &texts);
            if !key.is_empty() && !key.contains(&end) {
                key.push(end);
            }
        }
        let name = format!("{}.{}", quoted(schema), quoted(table));
        Ok(Target { name, columns, key, is_without_unique })
    }

    /// Whether changes of rows of this kind may be made by one statement.
    pub(crate) fn takes_hash(&self, kind: RowsKind) -> bool {
        self.is_without_unique && kind != RowsKind::Insert
    }

    /// The statement that changes rows like this one, each of which it finds by all its values. `None` when values have to be converted, or nothing is written.
    pub(crate) fn hash_statement(&self, kind: RowsKind, row: &Row) -> Option<HashStatement> {
        let has = |image: &RowImage, at: usize| image.get(at).is_some_and(Option::is_some);
        let positions = |image: &RowImage| -> Vec<usize> {
            (0..self.columns.len()).filter(|at| has(image, *at)).collect()
        };
        let (read, mut written) = (positions(&row.before), positions(&row.after));
        written.retain(|at| !self.columns[*at].is_generated);
        let is_text_of_document = |image: &RowImage, at: &usize| {
            self.columns[*at].kind == Kind::Json
                && matches!(image.get(*at), Some(Some(Value::Bytes(_))))
        };
        let needs_conversion = read.iter().any(|at| is_text_of_document(&row.before, at))
            || written.iter().any(|at| is_text_of_document(&row.after, at));
        if read.is_empty() || needs_conversion {
            return None;
        }
        let names: Vec<_> = read.iter().map(|at| self.as_value(*at)).collect();
        let (names, find, take) = (names.join(", "), by_hash::FIND, by_hash::TAKE);
        let condition = format!("WHERE {find}({names}) LIMIT ?");
        let sql = match kind {
            RowsKind::Insert => return None,
            RowsKind::Delete => format!("DELETE FROM {} {condition}", self.name),
            RowsKind::Update if written.is_empty() => return None,
            RowsKind::Update => {
                let sets: Vec<_> = written
                    .iter()
                    .enumerate()
                    .map(|(number, at)| {
                        let (name, value) = (&self.columns[*at].name, self.as_value(*at));
                        // The first one says which row it is.
                        let which = if number == 0 { format!(", {names}") } else { String::new() };
                        format!("{name} = {take}({at}, {value}{which})")
                    })
                    .collect();
                format!("UPDATE {} SET {} {condition}", self.name, sets.join(", "))
            }
        };
        Some(HashStatement { sql, kind, read })
    }

    /// A column with the values that events have.
    fn as_value(&self, at: usize) -> String {
        let Column { name, kind, .. } = &self.columns[at];
        match kind {
            Kind::Number => format!("CAST({name} AS UNSIGNED)"),
            Kind::Binary => format!("CAST({name} AS BINARY)"),
            Kind::Plain | Kind::Text | Kind::Json => name.clone(),
        }
    }

    /// What it knows of its columns.
    pub(crate) fn known(&self) -> Vec<KnownColumn> {
        self.columns.iter().map(|column| column.known).collect()
    }

    /// The statement that makes a change of rows with these images, all of which have the same columns.
    ///
    /// # Errors
    /// 1677 when the table has fewer columns than the rows.
    pub(crate) fn change(
        &self,
        kind: RowsKind,
        before: &RowImage,
        after: &RowImage,
    ) -> Result<Change> {
        if before.len().max(after.len()) > self.columns.len() {
            let text = format!("Table {} has fewer columns than on the source", self.name);
            return Err(Error::new(ErrorCode(1677), text));
        }
        let has = |image: &RowImage, at: usize| image.get(at).is_some_and(Option::is_some);
        let written: Vec<usize> = (0..self.columns.len())
            .filter(|at| has(after, *at) && !self.columns[*at].is_generated)
            .collect();
        let by_key = !self.key.is_empty() && self.key.iter().all(|at| has(before, *at));
        let read: Vec<usize> = if by_key {
            self.key.clone()
        } else {
            (0..self.columns.len()).filter(|at| has(before, *at)).collect()
        };
        let names = |at: &[usize]| -> Vec<&str> {
            at.iter().map(|at| self.columns[*at].name.as_str()).collect()
        };
        let sql = match kind {
            RowsKind::Insert => {
                let marks: Vec<_> = written.iter().map(|at| self.mark(*at)).collect();
                let columns = names(&written).join(", ");
                format!("INSERT INTO {} ({columns}) VALUES ({})", self.name, marks.join(", "))
            }
            RowsKind::Update => {
                let sets: Vec<_> = written
                    .iter()
                    .map(|at| format!("{} = {}", self.columns[*at].name, self.mark(*at)))
                    .collect();
                let condition = self.condition(&read, by_key);
                format!("UPDATE {} SET {} WHERE {condition}", self.name, sets.join(", "))
            }
            RowsKind::Delete => {
                format!("DELETE FROM {} WHERE {}", self.name, self.condition(&read, by_key))
            }
        };
        Ok(Change { sql, written, read, kind })
    }

    /// Gives a row the documents of which the event has only the changes: this server has what they change.
    ///
    /// # Errors
    /// 1032; 1594 when the changes do not fit the document.
    pub(crate) fn complete(&self, local: &mut dyn Run, row: &mut Row) -> Result<()> {
        if row.changes.is_empty() {
            return Ok(());
        }
        let change = self.change(RowsKind::Update, &row.before, &row.after)?;
        let fits = row.changes.iter().all(|changes| changes.column < self.columns.len());
        let names: Vec<_> = row
            .changes
            .iter()
            .filter_map(|changes| self.columns.get(changes.column))
            .map(|column| column.name.as_str())
            .collect();
        let by_key = self.key.iter().all(|at| change.read.contains(at)) && !self.key.is_empty();
        let condition = self.condition(&change.read, by_key);
        let limit = if by_key { " LIMIT 1" } else { "" };
        let sql = format!(
            "SELECT {} FROM {} WHERE {condition}{limit} FOR UPDATE",
            names.join(", "),
            self.name
        );
        let values = change.read.iter().map(|at| value_at(&row.before, *at));
        let found = local.execute(&sql, &values.collect::<Vec<_>>())?.rows;
        let found = found.first().filter(|_| fits).ok_or_else(not_found)?;
        for (changes, document) in std::mem::take(&mut row.changes).into_iter().zip(found) {
            let Value::Json(document) = document else { return Err(not_found()) };
            let changed = changes.apply(document).map_err(broken)?;
            row.after[changes.column] = Some(Value::Json(changed));
        }
        Ok(())
    }

    fn mark(&self, at: usize) -> &'static str {
        match self.columns[at].kind {
            Kind::Binary => "CAST(? AS BINARY)",
            Kind::Json => "CAST(? AS JSON)",
            Kind::Plain | Kind::Number | Kind::Text => "?",
        }
    }

    /// What finds the row: by its key, or else one that is the same in all columns, letter case included.
    fn condition(&self, read: &[usize], by_key: bool) -> String {
        let parts: Vec<_> = read
            .iter()
            .map(|at| {
                let (name, mark) = (&self.columns[*at].name, self.mark(*at));
                match self.columns[*at].kind {
                    _ if by_key => format!("{name} = {mark}"),
                    Kind::Plain | Kind::Number | Kind::Json => format!("{name} <=> {mark}"),
                    Kind::Binary => format!("CAST({name} AS BINARY) <=> {mark}"),
                    Kind::Text => {
                        format!("CONVERT({name} USING utf8mb4) COLLATE utf8mb4_0900_bin <=> {mark}")
                    }
                }
            })
            .collect();
        let limit = if by_key { "" } else { " LIMIT 1" };
        format!("{}{limit}", parts.join(" AND "))
    }
}

/// The columns that tell when rows of a system-versioned table were current have values of their own here; those that the definition does not
/// declare follow the others. Returns the position of the second, with which unique keys end. `texts`: what columns are generated as.
fn add_row_times(columns: &mut Vec<Column>, texts: &[String]) -> usize {
    for (column, text) in columns.iter_mut().zip(texts) {
        column.is_generated &= text != "ROW START" && text != "ROW END";
    }
    if let Some(end) = texts.iter().position(|text| text == "ROW END") {
        return end;
    }
    for name in ["`row_start`", "`row_end`"] {
        let known = KnownColumn { unsigned: false, collation: None, fsp: 6 };
        let name = name.to_owned();
        columns.push(Column { name, kind: Kind::Plain, is_generated: false, known });
    }
    columns.len() - 1
}

fn not_found() -> Error {
    Error::new(ErrorCode(1032), "Can't find the row that the source changed")
}

fn value_at(image: &RowImage, at: usize) -> Value {
    image.get(at).cloned().flatten().unwrap_or(Value::Null)
}

fn kind_of(data_type: &str) -> Kind {
    match data_type.to_ascii_lowercase().as_str() {
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => Kind::Text,
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "float"
        | "double" | "year" | "date" | "time" | "datetime" | "timestamp" => Kind::Plain,
        "bit" | "enum" | "set" => Kind::Number,
        "json" => Kind::Json,
        // Strings of bytes, geometries and vectors.
        _ => Kind::Binary,
    }
}

/// What a row of `COLUMNS` says of the values of events.
fn known_of(row: &[Value]) -> KnownColumn {
    let is_json = text_of(row.get(1)) == "json";
    let name = if is_json { "utf8mb4_bin".to_owned() } else { text_of(row.get(4)) };
    let collation = charset::collation_by_name(&name);
    KnownColumn {
        unsigned: text_of(row.get(3)).contains("unsigned"),
        collation: collation.map(|collation| collation.id),
        fsp: text_of(row.get(5)).parse().unwrap_or(0),
    }
}

/// The first unique index, the primary key before others, that has whole columns which are never NULL.
fn key_of(rows: &[Vec<Value>], columns: &[String]) -> Vec<usize> {
    let mut at = 0;
    while at < rows.len() {
        let index = text_of(rows[at].first());
        let same = |row: &&Vec<Value>| text_of(row.first()) == index;
        let parts: Vec<_> = rows[at..].iter().take_while(same).collect();
        at += parts.len();
        let positions: Option<Vec<usize>> = parts
            .iter()
            .map(|part| {
                let is_whole = part.get(2).is_none_or(Value::is_null);
                let is_never_null = text_of(part.get(3)) != "YES";
                let name = text_of(part.get(1));
                columns.iter().position(|column| *column == name && is_whole && is_never_null)
            })
            .collect();
        if let Some(positions) = positions {
            return positions;
        }
    }
    Vec::new()
}

/// A statement that changes one row.
pub(crate) struct Change {
    pub(crate) sql: String,
    written: Vec<usize>,
    read: Vec<usize>,
    kind: RowsKind,
}

impl Change {
    /// Whether there is nothing to do: only generated columns were written.
    pub(crate) fn is_empty(&self) -> bool {
        self.kind == RowsKind::Update && self.written.is_empty()
    }

    /// Changes a row.
    ///
    /// # Errors
    /// Those of the statement; 1032 when the row is not there.
    pub(crate) fn run(
        &self,
        local: &mut dyn Run,
        before: &RowImage,
        after: &RowImage,
    ) -> Result<()> {
        let mut parameters = Vec::with_capacity(self.written.len() + self.read.len());
        parameters.extend(self.written.iter().map(|at| value_at(after, *at)));
        if self.kind != RowsKind::Insert {
            parameters.extend(self.read.iter().map(|at| value_at(before, *at)));
        }
        let found = local.execute(&self.sql, &parameters)?.affected_rows;
        if found == 0 && self.kind != RowsKind::Insert {
            return Err(not_found());
        }
        Ok(())
    }
}
