//! The columns of a table, and values for them from JSON and from text.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use types::json::JsonValue;
use types::{Decimal, SqlBytes, TemporalMode, Value, temporal};

use crate::reply::Reply;
use crate::route::{Names, decoded};
use crate::statement::{Database, Name, Statement, invalid, missing, run};
use changes::text;

/// Digits of a second's fraction.
const FSP_MAX: u8 = 6;

/// What the values of a column look like in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number without a fraction.
    Integer,
    /// An exact number.
    Decimal,
    /// A floating point number.
    Float,
    /// Text, also of dates, ENUM and SET.
    Text,
    /// Text that is a date or timestamp.
    DateTime,
    /// Text that is a duration.
    Time,
    /// Bytes as base64.
    Bytes,
    /// Any JSON.
    Document,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: Name,
    /// Its values.
    pub kind: Kind,
    /// A computed column takes no values.
    pub is_generated: bool,
}

/// A table or view with its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Its schema.
    pub schema: Name,
    /// Its name.
    pub name: Name,
    /// All visible columns in order.
    pub columns: Vec<Column>,
    /// The columns of its primary key, as indexes into `columns`.
    pub key: Vec<usize>,
}

impl Table {
    /// Reads the columns of the table that the first two parts of the path name.
    ///
    /// # Errors
    /// Status 404 when the account sees no such table.
    pub fn load(database: &mut dyn Database, names: &Names) -> Result<Table, Reply> {
        let (schema, name) = (Name::new(&names[0])?, Name::new(&names[1])?);
        let mut statement = Statement::new(
            "SELECT COLUMN_NAME, DATA_TYPE, GENERATION_EXPRESSION <> '' FROM information_schema.COLUMNS \
             WHERE EXTRA NOT LIKE '%INVISIBLE%' AND TABLE_SCHEMA = ",
        );
        statement.value(schema.value()).text(" AND TABLE_NAME = ").value(name.value());
        statement.text(" ORDER BY ORDINAL_POSITION");
        let rows = run(database, &statement)?.rows;
        let columns: Vec<Column> = rows.iter().filter_map(|row| column(row)).collect();
        if columns.is_empty() {
            return Err(missing("no table has this name"));
        }
        let mut statement = Statement::new(
            "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE INDEX_NAME = 'PRIMARY' AND TABLE_SCHEMA = ",
        );
        statement.value(schema.value()).text(" AND TABLE_NAME = ").value(name.value());
        statement.text(" ORDER BY SEQ_IN_INDEX");
        let parts: Vec<String> =
            run(database, &statement)?.rows.iter().filter_map(|row| text(row.first()?)).collect();
        let position = |part: &String| columns.iter().position(|column| column.name.text() == part);
        // A key with an invisible column names no row.
        let key = parts.iter().map(position).collect::<Option<Vec<usize>>>().unwrap_or_default();
        Ok(Table { schema, name, columns, key })
    }

    /// The column called `name`.
    ///
    /// # Errors
    /// Status 400 for an unknown one.
    pub fn column(&self, name: &str) -> Result<&Column, Reply> {
        let found =
            self.columns.iter().find(|column| column.name.text().eq_ignore_ascii_case(name));
        found.ok_or_else(|| invalid(format_args!("no column is called {name:?}")))
    }

    /// `text` and the table.
    pub fn statement(&self, text: &'static str) -> Statement {
        let mut statement = Statement::new(text);
        statement.table(&self.schema, &self.name);
        statement
    }

    /// The columns of the primary key.
    pub fn key_columns(&self) -> impl Iterator<Item = &Column> {
        self.key.iter().map(|index| &self.columns[*index])
    }

    /// The values of a key from a path, still percent-encoded: a comma separates them, and `%2C` is one inside a value.
    ///
    /// # Errors
    /// Status 400; 404 for a table without a primary key.
    pub fn key_values(&self, encoded: &str) -> Result<Vec<Value>, Reply> {
        if self.key.is_empty() {
            return Err(missing("the table has no primary key"));
        }
        let parts: Vec<&str> = encoded.split(',').collect();
        if parts.len() != self.key.len() {
            return Err(invalid(format_args!("the primary key has {} values", self.key.len())));
        }
        let value = |(column, part): (&Column, &&str)| {
            let text = decoded(part)
                .ok_or_else(|| invalid(format_args!("the key is not percent-encoded UTF-8")))?;
            column.text_value(&text)
        };
        self.key_columns().zip(&parts).map(value).collect()
    }

    /// Appends the condition for the row with a key.
    pub fn is_row(&self, key: &[Value], out: &mut Statement) {
        for (index, (column, value)) in self.key_columns().zip(key).enumerate() {
            out.text(if index == 0 { "" } else { " AND " });
            out.name(&column.name).text(" = ").value(value.clone());
        }
    }
}

fn column(row: &[Value]) -> Option<Column> {
    let [name, ty, generated] = row else { return None };
    let kind = match text(ty)?.to_lowercase().as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" => Kind::Integer,
        "decimal" => Kind::Decimal,
        "float" | "double" => Kind::Float,
        "date" | "datetime" | "timestamp" => Kind::DateTime,
        "time" => Kind::Time,
        "json" => Kind::Document,
        "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "set" => {
            Kind::Text
        }
        _ => Kind::Bytes,
    };
    let is_generated = matches!(generated, Value::Int(1) | Value::UInt(1));
    Some(Column { name: Name::new(&text(name)?).ok()?, kind, is_generated })
}

impl Column {
    /// A value from a path or from the part after `?`.
    ///
    /// # Errors
    /// Status 400 for a text that is no value of the column's type: SQL would compare it as zero.
    pub fn text_value(&self, text: &str) -> Result<Value, Reply> {
        let value = match self.kind {
            Kind::Integer => integer(text),
            Kind::Decimal => decimal(text),
            Kind::Float => float(text),
            Kind::Text => Some(Value::text(text)),
            Kind::DateTime => {
                let parsed =
                    temporal::parse_datetime(text.as_bytes(), FSP_MAX, TemporalMode::default());
                (parsed.value.is_some() && !parsed.truncated).then(|| Value::text(text))
            }
            Kind::Time => {
                let parsed =
                    temporal::parse_time(text.as_bytes(), FSP_MAX, TemporalMode::default());
                (parsed.value.is_some() && !parsed.truncated).then(|| Value::text(text))
            }
            Kind::Bytes => bytes(text),
            Kind::Document => types::json::check(text.as_bytes()).ok().map(|()| Value::text(text)),
        };
        value.ok_or_else(|| self.wrong(text))
    }

    /// A value from a JSON document.
    ///
    /// # Errors
    /// Status 400 for a value of another type.
    pub fn json_value(&self, json: &JsonValue) -> Result<Value, Reply> {
        let value = match (self.kind, json) {
            (Kind::Document, _) => Some(Value::Bytes(SqlBytes::from(json.to_text()))),
            (_, JsonValue::Null) => Some(Value::Null),
            (Kind::Integer, JsonValue::Bool(truth)) => Some(Value::bool(*truth)),
            (Kind::Integer | Kind::Decimal, JsonValue::Int(number)) => Some(Value::Int(*number)),
            (Kind::Integer | Kind::Decimal, JsonValue::UInt(number)) => Some(Value::UInt(*number)),
            (Kind::Decimal, JsonValue::Double(_)) => {
                decimal(&String::from_utf8_lossy(&json.to_text()))
            }
            (Kind::Float, JsonValue::Int(number)) => Some(Value::Int(*number)),
            (Kind::Float, JsonValue::UInt(number)) => Some(Value::UInt(*number)),
            (Kind::Float, JsonValue::Double(number)) => Some(Value::Double(*number)),
            (_, JsonValue::String(text)) => {
                return self.text_value(&String::from_utf8_lossy(text));
            }
            (
                Kind::Integer
                | Kind::Decimal
                | Kind::Float
                | Kind::Text
                | Kind::DateTime
                | Kind::Time
                | Kind::Bytes,
                _,
            ) => None,
        };
        value.ok_or_else(|| self.wrong(&String::from_utf8_lossy(&json.to_text())))
    }

    /// Appends a value as a parameter. A document is converted: as text it would be equal to nothing.
    pub fn write(&self, value: Value, out: &mut Statement) {
        match self.kind {
            Kind::Document => out.text("CAST(").value(value).text(" AS JSON)"),
            Kind::Integer
            | Kind::Decimal
            | Kind::Float
            | Kind::Text
            | Kind::DateTime
            | Kind::Time
            | Kind::Bytes => out.value(value),
        };
    }

    fn wrong(&self, text: &str) -> Reply {
        let shown: String = text.chars().take(100).collect();
        invalid(format_args!("{shown:?} is not a value of column {:?}", self.name.text()))
    }
}

fn integer(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let signed = text.parse().ok().map(Value::Int);
    signed.or_else(|| text.parse().ok().map(Value::UInt))
}

fn decimal(text: &str) -> Option<Value> {
    Decimal::parse(text.as_bytes()).map(Value::Decimal)
}

fn float(text: &str) -> Option<Value> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    let number: f64 = is_number.then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(Value::Double(number))
}

fn bytes(text: &str) -> Option<Value> {
    let url_safe = || URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
    let bytes = STANDARD.decode(text).ok().or_else(url_safe)?;
    Some(Value::Bytes(SqlBytes::from(bytes)))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    fn column(name: &str, kind: Kind) -> Column {
        Column { name: Name::new(name).unwrap(), kind, is_generated: false }
    }

    /// A table `s.t` with a key of two columns.
    pub fn table() -> Table {
        let columns = vec![
            column("id", Kind::Integer),
            column("k", Kind::Text),
            column("d", Kind::Decimal),
            column("j", Kind::Document),
            Column { is_generated: true, ..column("g", Kind::Integer) },
        ];
        let name = |text| Name::new(text).unwrap();
        Table { schema: name("s"), name: name("t"), columns, key: vec![0, 1] }
    }

    #[test]
    fn keys_are_values_of_their_columns() {
        let table = table();
        let key = table.key_values("5,a%2Cb").unwrap();
        assert_eq!(key, [Value::Int(5), Value::text("a,b")]);
        for encoded in
            ["5", "5,a,b", "x,a", "5 OR 1,a", "5%00,a", "5,%ff", "5,%", ",a", "+5,a", "0x5,a"]
        {
            assert_eq!(table.key_values(encoded).unwrap_err().status.as_u16(), 400, "{encoded}");
        }
        let mut out = Statement::default();
        table.is_row(&key, &mut out);
        assert_eq!(out.sql(), "`id` = ? AND `k` = ?");
    }

    #[test]
    fn values_fit_their_columns() {
        let from = |kind, text: &str| {
            column("c", kind).json_value(&types::json::parse(text.as_bytes()).unwrap()).ok()
        };
        assert_eq!(from(Kind::Integer, "\"18446744073709551615\""), Some(Value::UInt(u64::MAX)));
        assert_eq!(from(Kind::Integer, "true"), Some(Value::Int(1)));
        assert_eq!(from(Kind::Integer, "1.5"), None);
        assert_eq!(from(Kind::Integer, "\"abc\""), None);
        assert_eq!(from(Kind::Decimal, "\"1.50\""), Decimal::parse(b"1.50").map(Value::Decimal));
        assert_eq!(from(Kind::Float, "\"inf\""), None);
        assert_eq!(from(Kind::Float, "\"1e999\""), None);
        assert_eq!(from(Kind::Text, "5"), None);
        assert_eq!(from(Kind::Text, "[1]"), None);
        assert_eq!(from(Kind::Bytes, "\"_w==\""), Some(Value::Bytes(SqlBytes::from(vec![0xff]))));
        assert_eq!(from(Kind::Bytes, "\"*\""), None);
        assert!(from(Kind::DateTime, "\"2026-01-02 03:04:05.5\"").is_some());
        assert_eq!(from(Kind::DateTime, "\"2026-01-02x\""), None);
        assert_eq!(from(Kind::DateTime, "\"2026-13-02\""), None);
        assert!(from(Kind::Time, "\"-12:30:00\"").is_some());
        assert_eq!(from(Kind::Time, "\"noon\""), None);
        assert_eq!(from(Kind::Document, "null"), Some(Value::text("null")));
        assert_eq!(from(Kind::Text, "null"), Some(Value::Null));
    }
}
