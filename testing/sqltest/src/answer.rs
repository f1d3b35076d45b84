//! A server's answer as text, the same for every server that answers the same.

use std::fmt::Write;

use mysql::consts::{ColumnFlags, ColumnType};
use mysql::prelude::Queryable;
use mysql::{Column, Conn, Error, Value};

/// What a script wants to see.
#[derive(Clone, Copy, Default)]
pub struct View {
    /// Column types, lengths and flags under the captions.
    pub types: bool,
    /// Captions and whether there are rows, not the rows: for answers that differ from server to server.
    pub columns_only: bool,
    /// Rows in sorted order.
    pub sorted: bool,
    /// Binary protocol.
    pub prepared: bool,
}

/// Runs `sql` and words the answer. A lost connection is part of the answer.
pub fn ask(conn: &mut Conn, sql: &str, view: View) -> String {
    let result = if view.prepared { prepared(conn, sql, view) } else { text(conn, sql, view) };
    // The default engine's own name is the one difference that every server has.
    result.unwrap_or_else(|error| word_error(&error)).replace("InnoDB", "Squall")
}

fn word_error(error: &Error) -> String {
    match error {
        Error::MySqlError(e) => format!("error {} {}: {}", e.code, e.state, e.message),
        other => format!("lost: {other}"),
    }
}

fn text(conn: &mut Conn, sql: &str, view: View) -> Result<String, Error> {
    let mut out = String::new();
    let mut result = conn.query_iter(sql)?;
    while let Some(set) = result.iter() {
        word_set(set, view, &mut out)?;
    }
    Ok(out.trim_end().to_owned())
}

fn prepared(conn: &mut Conn, sql: &str, view: View) -> Result<String, Error> {
    let mut out = String::new();
    let statement = conn.prep(sql)?;
    let mut result = conn.exec_iter(&statement, ())?;
    while let Some(set) = result.iter() {
        word_set(set, view, &mut out)?;
    }
    Ok(out.trim_end().to_owned())
}

fn word_set<P: mysql::prelude::Protocol>(
    mut set: mysql::ResultSet<'_, '_, '_, '_, P>,
    view: View,
    out: &mut String,
) -> Result<(), Error> {
    let columns: Vec<Column> = set.columns().as_ref().to_vec();
    if columns.is_empty() {
        let _ = write!(out, "ok");
        if set.affected_rows() > 0 {
            let _ = write!(out, " affected={}", set.affected_rows());
        }
        if let Some(id) = set.last_insert_id().filter(|id| *id > 0) {
            let _ = write!(out, " id={id}");
        }
        if set.warnings() > 0 {
            let _ = write!(out, " warnings={}", set.warnings());
        }
        if !set.info_str().is_empty() {
            let _ = write!(out, " ({})", set.info_str());
        }
        out.push('\n');
        return Ok(());
    }
    let captions: Vec<_> = columns.iter().map(|column| escape(column.name_ref())).collect();
    let _ = writeln!(out, "{}", captions.join("\t"));
    if view.types {
        let types: Vec<_> = columns.iter().map(word_type).collect();
        let _ = writeln!(out, "{}", types.join("\t"));
    }
    let mut rows = Vec::new();
    for row in set.by_ref() {
        let cells: Vec<_> = row?.unwrap().iter().map(word_value).collect();
        // A row of one empty cell must not look like the blank line that ends an answer.
        let line = cells.join("\t");
        rows.push(if line.trim().is_empty() { format!("{line}''") } else { line });
    }
    if view.columns_only {
        rows.clear();
    }
    if view.sorted {
        rows.sort();
    }
    for row in rows {
        let _ = writeln!(out, "{row}");
    }
    if set.warnings() > 0 {
        let _ = writeln!(out, "-- warnings={}", set.warnings());
    }
    Ok(())
}

fn word_type(column: &Column) -> String {
    let flags = column.flags();
    let mut text = format!("{:?}", column.column_type()).replace("MYSQL_TYPE_", "");
    let _ = write!(text, "({},{})", column.column_length(), column.decimals());
    if column.character_set() != 63 || column.column_type() == ColumnType::MYSQL_TYPE_STRING {
        let _ = write!(text, " c{}", column.character_set());
    }
    for (flag, word) in [
        (ColumnFlags::UNSIGNED_FLAG, "unsigned"),
        (ColumnFlags::NOT_NULL_FLAG, "notnull"),
        (ColumnFlags::PRI_KEY_FLAG, "pri"),
        (ColumnFlags::UNIQUE_KEY_FLAG, "uni"),
        (ColumnFlags::MULTIPLE_KEY_FLAG, "mul"),
        (ColumnFlags::AUTO_INCREMENT_FLAG, "auto"),
    ] {
        if flags.contains(flag) {
            let _ = write!(text, " {word}");
        }
    }
    text
}

fn word_value(value: &Value) -> String {
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) => escape(bytes),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Date(year, month, day, 0, 0, 0, 0) => format!("{year:04}-{month:02}-{day:02}"),
        Value::Date(year, month, day, hour, minute, second, micros) => format!(
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{}",
            fraction(*micros)
        ),
        Value::Time(negative, days, hours, minutes, seconds, micros) => format!(
            "{}{:02}:{minutes:02}:{seconds:02}{}",
            if *negative { "-" } else { "" },
            days * 24 + u32::from(*hours),
            fraction(*micros)
        ),
    }
}

fn fraction(micros: u32) -> String {
    if micros == 0 { String::new() } else { format!(".{micros:06}") }
}

/// UTF-8 as it is, everything else and what would break a line as `\xNN`.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\\' => out.push_str("\\\\"),
                c if c.is_control() => {
                    let _ = write!(out, "\\x{:02x}", c as u32);
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}
