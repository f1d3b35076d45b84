//! A server's answer as text, deterministic for equal answers.

use std::fmt::Write;

use client::{Answer, Column, Connection, Failure, Outcome};
use types::{Date, Time, Value};
use wire::{ColumnFlags, ColumnType};

/// The parts of an answer that a script wants to see, and the parameters that it sends with the statement.
#[derive(Clone, Default)]
pub struct View {
    /// Column types, lengths and flags under the captions.
    pub types: bool,
    /// Captions and whether there are rows, not the rows: for answers that differ from server to server.
    pub columns_only: bool,
    /// Rows in sorted order.
    pub sorted: bool,
    /// The lines of EXPLAIN's tree, with rounded rows and without costs.
    pub plan: bool,
    /// Binary protocol.
    pub prepared: bool,
    /// Parameters of the prepared statement: words; the word NULL is SQL's NULL.
    pub parameters: Vec<String>,
}

/// Runs `sql` and formats the answer. A lost connection is part of the answer.
pub fn ask(connection: &mut Connection, sql: &str, view: &View) -> String {
    let run = if view.prepared { prepared } else { text };
    match run(connection, sql, view) {
        Ok(text) => text.trim_end().to_owned(),
        Err(Failure::Server(error)) => error_line(&error),
        Err(lost) => format!("lost: {lost}"),
    }
}

/// An error in the scripts' format.
pub fn error_line(error: &errors::Error) -> String {
    let state = error.sqlstate();
    let state = String::from_utf8_lossy(&state);
    format!("error {} {state}: {}", error.code().0, error.message())
}

fn text(connection: &mut Connection, sql: &str, view: &View) -> client::Result<String> {
    let mut set = Rows { plan: view.plan, ..Rows::default() };
    let outcome = connection.query(sql.as_bytes(), &mut set)?;
    all_results(connection, &outcome, &set, view)
}

/// The first result and the following ones.
fn all_results(
    connection: &mut Connection,
    first: &Outcome,
    set: &Rows,
    view: &View,
) -> client::Result<String> {
    let (mut out, mut more) = (word_set(first, set, view), first.more);
    while more {
        let mut set = Rows::default();
        let outcome = connection.next_result(&mut set)?;
        out += &word_set(&outcome, &set, view);
        more = outcome.more;
    }
    Ok(out)
}

fn prepared(connection: &mut Connection, sql: &str, view: &View) -> client::Result<String> {
    let statement = connection.prepare(sql.as_bytes())?;
    let mut set = Rows::default();
    let value = |word: &String| match &**word {
        "NULL" => Value::Null,
        text => Value::Bytes(text.as_bytes().into()),
    };
    let parameters: Vec<_> = view.parameters.iter().map(value).collect();
    let outcome = connection.execute(statement, &parameters, &mut set);
    let answer = outcome.and_then(|first| all_results(connection, &first, &set, view));
    connection.close(statement)?;
    answer
}

/// The rows of a result set, each as its line.
#[derive(Default)]
struct Rows {
    types: Vec<wire::TypeOnWire>,
    lines: Vec<String>,
    /// The only cell of each is a plan.
    plan: bool,
}

impl Rows {
    fn add(&mut self, cells: &[String]) {
        // A row of one empty cell must not look like the blank line that ends an answer.
        let line = cells.join("\t");
        self.lines.push(if line.trim().is_empty() { format!("{line}''") } else { line });
    }
}

impl Answer for Rows {
    fn columns(&mut self, columns: &[Column]) {
        self.types = columns.iter().map(|column| column.ty).collect();
        self.plan &= columns.len() == 1;
    }

    fn row(&mut self, cells: &[Option<&[u8]>]) {
        if self.plan {
            let plans = cells.iter().flatten().map(|cell| String::from_utf8_lossy(cell));
            plans.for_each(|plan| self.lines.extend(plan.lines().map(plan_line)));
            return;
        }
        let word = |cell: &Option<&[u8]>| cell.map_or("NULL".into(), escape);
        self.add(&cells.iter().map(word).collect::<Vec<_>>());
    }

    fn binary_row(&mut self, packet: &[u8]) {
        let mut cells = Vec::new();
        match wire::decode_binary_row(packet, &self.types, &mut cells) {
            Ok(()) => {
                let pairs = cells.iter().zip(&self.types);
                let cells: Vec<_> = pairs.map(|(cell, ty)| word_value(cell, ty.ty)).collect();
                self.add(&cells);
            }
            Err(_) => self.lines.push("a row that makes no sense".into()),
        }
    }
}

fn word_set(outcome: &Outcome, rows: &Rows, view: &View) -> String {
    let mut out = String::new();
    if outcome.columns.is_empty() {
        out += "ok";
        if outcome.affected_rows > 0 {
            let _ = write!(out, " affected={}", outcome.affected_rows);
        }
        if outcome.last_insert_id > 0 {
            let _ = write!(out, " id={}", outcome.last_insert_id);
        }
        if outcome.warnings > 0 {
            let _ = write!(out, " warnings={}", outcome.warnings);
        }
        if !outcome.info.is_empty() {
            let _ = write!(out, " ({})", outcome.info);
        }
        out.push('\n');
        return out;
    }
    if rows.plan {
        return rows.lines.join("\n");
    }
    let captions = outcome.columns.iter().map(|column| escape(column.name.as_bytes()));
    let _ = writeln!(out, "{}", captions.collect::<Vec<_>>().join("\t"));
    if view.types {
        let types: Vec<_> = rows.types.iter().map(word_type).collect();
        let _ = writeln!(out, "{}", types.join("\t"));
    }
    let mut lines: Vec<_> = rows.lines.iter().collect();
    if view.columns_only {
        lines.clear();
    }
    if view.sorted {
        lines.sort();
    }
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
    if outcome.out_parameters {
        out += "-- out parameters\n";
    }
    if outcome.warnings > 0 {
        let _ = writeln!(out, "-- warnings={}", outcome.warnings);
    }
    out
}

/// A line of EXPLAIN's tree with two digits of its rows and without its cost, which matters less than the plan and changes more often.
fn plan_line(line: &str) -> String {
    let line = escape(line.as_bytes());
    let estimate = || {
        let (operator, estimate) = line.rsplit_once("  (cost=")?;
        let (_, rows) = estimate.strip_suffix(')')?.split_once(" rows=")?;
        Some((operator, two_digits(rows.parse().ok()?)))
    };
    match estimate() {
        Some((operator, rows)) => format!("{operator}  (rows={rows})"),
        None => line,
    }
}

fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}

fn word_type(ty: &wire::TypeOnWire) -> String {
    let mut text = format!("{}({},{})", type_name(ty.ty), ty.length, ty.decimals);
    if ty.collation != 63 || ty.ty == ColumnType::String {
        let _ = write!(text, " c{}", ty.collation);
    }
    for (flag, word) in [
        (ColumnFlags::UNSIGNED, "unsigned"),
        (ColumnFlags::NOT_NULL, "notnull"),
        (ColumnFlags::PRIMARY_KEY, "pri"),
        (ColumnFlags::UNIQUE_KEY, "uni"),
        (ColumnFlags::MULTIPLE_KEY, "mul"),
        (ColumnFlags::AUTO_INCREMENT, "auto"),
    ] {
        if ty.flags.contains(flag) {
            let _ = write!(text, " {word}");
        }
    }
    text
}

/// The protocol's own name of a type.
fn type_name(ty: ColumnType) -> String {
    match ty {
        ColumnType::VarString => "VAR_STRING".into(),
        ColumnType::TinyBlob => "TINY_BLOB".into(),
        ColumnType::MediumBlob => "MEDIUM_BLOB".into(),
        ColumnType::LongBlob => "LONG_BLOB".into(),
        other => format!("{other:?}").to_uppercase(),
    }
}

fn word_value(value: &Value, ty: ColumnType) -> String {
    match value {
        Value::Null => "NULL".into(),
        Value::Bytes(bytes) | Value::Json(bytes) => escape(bytes),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        // FLOAT has fewer digits than the number that carries it here.
        Value::Double(number) if ty == ColumnType::Float => (*number as f32).to_string(),
        Value::Double(number) => number.to_string(),
        Value::Decimal(number) => number.to_string(),
        Value::Date(date) => word_date(*date),
        Value::DateTime(at) if at.time() == Time::ZERO => word_date(at.date()),
        Value::DateTime(at) => format!("{} {}", word_date(at.date()), word_time(at.time())),
        Value::Time(time) => word_time(*time),
    }
}

fn word_date(date: Date) -> String {
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

fn word_time(time: Time) -> String {
    let sign = if time.is_negative() { "-" } else { "" };
    let micros = time.micros().unsigned_abs() % 1_000_000;
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{sign}{hour:02}:{minute:02}:{second:02}{}", fraction(micros))
}

fn fraction(micros: u64) -> String {
    if micros == 0 { String::new() } else { format!(".{micros:06}") }
}

/// UTF-8 unchanged; other bytes and characters that would break a line as `\xNN`.
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

#[cfg(test)]
mod tests {
    use super::plan_line;

    #[test]
    fn plans_are_shown_without_costs() {
        assert_eq!(
            plan_line("    -> Limit: 2 row(s)  (cost=1.5..350 rows=4197)"),
            "    -> Limit: 2 row(s)  (rows=4200)"
        );
        assert_eq!(plan_line("-> Sort: a  (cost=350 rows=0.667)"), "-> Sort: a  (rows=0.67)");
        assert_eq!(plan_line("-> Scan  (cost=3 rows=1.32e+06)"), "-> Scan  (rows=1300000)");
        assert_eq!(plan_line("-> Insert into t"), "-> Insert into t");
    }
}
