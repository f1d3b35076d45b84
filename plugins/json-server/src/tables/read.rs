//! Reading rows: by a condition, and by key.

use hyper::StatusCode;
use serde_json::Value as Json;
use types::{ResultCell, Value};

use super::columns::{Column, Kind, Table};
use super::condition;
use crate::call::Call;
use crate::filter::{Filter, read_json};
use crate::json::{self, form_of, write_cell, write_string};
use crate::reply::Reply;
use crate::route::Names;
use crate::statement::{Database, Statement, invalid, missing, run, with_database};
use plugin_api::Answer;

/// Rows of an answer when the request names no number, and at most.
const LIMIT_DEFAULT: u64 = 100;
const LIMIT_MAX: u64 = 10_000;
/// Parameters that are no conditions; columns with such names are reached by `filter`.
pub const RESERVED: [&str; 6] = ["select", "order", "limit", "offset", "after", "filter"];

/// A request for rows.
struct Query<'a> {
    table: &'a Table,
    /// The columns of the answer.
    select: Vec<&'a Column>,
    /// Columns to sort by, with what follows them in SQL.
    order: Vec<(&'a Column, &'static str)>,
    limit: u64,
    offset: u64,
    /// The key of the last row of the page before.
    after: Option<Vec<Value>>,
    condition: Statement,
}

impl<'a> Query<'a> {
    fn read(table: &'a Table, parameters: &[(String, String)]) -> Result<Query<'a>, Reply> {
        let mut query = Query {
            table,
            select: table.columns.iter().collect(),
            order: Vec::new(),
            limit: LIMIT_DEFAULT,
            offset: 0,
            after: None,
            condition: condition_of(table, parameters)?,
        };
        for (name, value) in parameters {
            match name.as_str() {
                "select" => {
                    let columns = value.split(',').map(|name| table.column(name));
                    query.select = columns.collect::<Result<_, _>>()?;
                }
                "order" => {
                    query.order =
                        value.split(',').map(|one| order(table, one)).collect::<Result<_, _>>()?;
                }
                "limit" => query.limit = number(name, value, LIMIT_MAX)?,
                "offset" => query.offset = number(name, value, u64::from(u32::MAX))?,
                "after" => query.after = Some(table.key_values(value)?),
                _ => {}
            }
        }
        match query.after.is_some() && (!query.order.is_empty() || query.offset > 0) {
            true => Err(invalid(format_args!("after goes with neither order nor offset"))),
            false => Ok(query),
        }
    }

    /// Whether the answer says where the next page begins.
    fn has_pages(&self) -> bool {
        self.order.is_empty() && !self.table.key.is_empty()
    }

    /// The statement: the selected columns, then those of the key, and one row more than wanted.
    fn statement(&self) -> Statement {
        let mut out = select(self.table, &self.select);
        out.append(self.condition.clone());
        if let Some(after) = &self.after {
            out.text(" AND ");
            self.follows(after, &mut out);
        }
        let key = self.table.key_columns().map(|column| (column, ""));
        let order: Vec<_> = self.order.iter().copied().chain(key).collect();
        for (index, (column, direction)) in order.into_iter().enumerate() {
            out.text(if index == 0 { " ORDER BY " } else { ", " });
            out.name(&column.name).text(direction);
        }
        out.text(" LIMIT ").number(self.limit + 1).text(" OFFSET ").number(self.offset);
        out
    }

    /// Appends `(a, b) > (x, y)` in the form that reads the index from there: `a >= x AND (a > x OR (a = x AND (b > y)))`.
    fn follows(&self, after: &[Value], out: &mut Statement) {
        let columns: Vec<&Column> = self.table.key_columns().collect();
        let mut open = 0;
        for (index, (column, value)) in columns.iter().zip(after).enumerate() {
            let is_last = index + 1 == columns.len();
            if !is_last {
                out.text("(").name(&column.name).text(" >= ").value(value.clone()).text(" AND ");
            }
            out.text("(").name(&column.name).text(" > ").value(value.clone());
            open += if is_last { 1 } else { 3 };
            if !is_last {
                out.text(" OR (").name(&column.name).text(" = ").value(value.clone()).text(" AND ");
            }
        }
        for _ in 0..open {
            out.text(")");
        }
    }
}

fn order<'a>(table: &'a Table, text: &str) -> Result<(&'a Column, &'static str), Reply> {
    match text.strip_prefix('-') {
        Some(name) => Ok((table.column(name)?, " DESC")),
        None => Ok((table.column(text)?, "")),
    }
}

fn number(name: &str, value: &str, max: u64) -> Result<u64, Reply> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse() {
        Ok(number) if digits && number <= max => Ok(number),
        _ => Err(invalid(format_args!("{name} is a number up to {max}"))),
    }
}

/// The condition that all conditions of a request make; `(TRUE)` when there is none.
///
/// # Errors
/// Status 400.
pub fn condition_of(table: &Table, parameters: &[(String, String)]) -> Result<Statement, Reply> {
    let mut out = Statement::new("(TRUE");
    for (name, value) in parameters {
        match name.as_str() {
            "filter" => {
                let filter = Filter::parse(read_json("filter", value.as_bytes())?)?;
                condition::filter(table, &filter, out.text(" AND "))?;
            }
            name if RESERVED.contains(&name) => {}
            name => condition::parameter(table, name, value, out.text(" AND "))?,
        }
    }
    out.text(")");
    Ok(out)
}

/// `SELECT .. FROM .. WHERE` for these columns and those of the key.
fn select(table: &Table, columns: &[&Column]) -> Statement {
    let mut out = Statement::new("SELECT ");
    for (index, column) in columns.iter().copied().chain(table.key_columns()).enumerate() {
        out.text(if index == 0 { "" } else { ", " }).name(&column.name);
    }
    out.text(" FROM ").table(&table.schema, &table.name).text(" WHERE ");
    out
}

/// Appends a row as an object of its first `count` columns.
fn write_row(answer: &Answer, row: &[Value], count: usize, out: &mut Vec<u8>) -> Result<(), Reply> {
    let mut scratch = Vec::new();
    out.push(b'{');
    for (index, (column, value)) in answer.columns.iter().zip(row).take(count).enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(column.name.as_bytes(), out);
        out.push(b':');
        let cell = ResultCell::from(value);
        write_cell(&cell, &column.ty, form_of(&column.ty), &mut scratch, out)
            .map_err(|error| Reply::sql_error(&error))?;
    }
    out.push(b'}');
    Ok(())
}

/// The key of a row as a path or `after` has it.
fn key_text(table: &Table, answer: &Answer, row: &[Value], first: usize) -> Option<String> {
    let mut parts = Vec::new();
    for (index, column) in table.key_columns().enumerate() {
        let (meta, value) = (answer.columns.get(first + index)?, row.get(first + index)?);
        let mut text = Vec::new();
        ResultCell::from(value).write_text(&meta.ty, &mut text).ok()?;
        let text = if column.kind == Kind::Bytes {
            use base64::Engine as _;
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&text)
        } else {
            String::from_utf8(text).ok()?
        };
        parts.push(encoded(&text));
    }
    Some(parts.join(","))
}

fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte))
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// `GET /1.0/tables/SCHEMA/TABLE`
pub fn rows(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let table = Table::load(database, names)?;
        let query = Query::read(&table, &call.request.query)?;
        let answer = run(database, &query.statement())?;
        let count = query.select.len();
        let wanted = usize::try_from(query.limit).unwrap_or(usize::MAX);
        let kept = &answer.rows[..answer.rows.len().min(wanted)];
        let more = answer.rows.len() > wanted;
        let columns = json::columns(&answer.columns[..count.min(answer.columns.len())]);
        let key: Vec<&str> = table.key_columns().map(|column| column.name.text()).collect();
        let mut body =
            format!("{{\"columns\":{columns},\"primary_key\":{},\"rows\":[", Json::from(key))
                .into_bytes();
        for (index, row) in kept.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            write_row(&answer, row, count, &mut body)?;
        }
        let last = kept.last().filter(|_| more && query.has_pages());
        let next = last.and_then(|row| key_text(&table, &answer, row, count));
        let end =
            format!("],\"count\":{},\"next\":{},\"more\":{more}}}", kept.len(), Json::from(next));
        body.extend_from_slice(end.as_bytes());
        Ok(Reply::json(StatusCode::OK, body))
    })
}

/// `GET /1.0/tables/SCHEMA/TABLE/KEY`
pub fn row(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let table = Table::load(database, names)?;
        let key = key_of(call, &table)?;
        one(database, &table, &key)
    })
}

/// The key in a request's path.
///
/// # Errors
/// Status 400, 404.
pub fn key_of(call: &Call<'_>, table: &Table) -> Result<Vec<Value>, Reply> {
    table.key_values(call.request.path.rsplit('/').next().unwrap_or(""))
}

/// The row with a key.
///
/// # Errors
/// Status 404.
pub fn one(database: &mut dyn Database, table: &Table, key: &[Value]) -> Result<Reply, Reply> {
    let columns: Vec<&Column> = table.columns.iter().collect();
    let mut statement = select(table, &columns);
    table.is_row(key, &mut statement);
    let answer = run(database, &statement)?;
    let row = answer.rows.first().ok_or_else(|| missing("no row has this key"))?;
    let mut body = Vec::new();
    write_row(&answer, row, columns.len(), &mut body)?;
    Ok(Reply::json(StatusCode::OK, body))
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::table;
    use super::*;

    fn sql(parameters: &[(&str, &str)]) -> Result<String, Reply> {
        let parameters: Vec<(String, String)> = parameters
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let table = table();
        Ok(Query::read(&table, &parameters)?.statement().sql().to_owned())
    }

    #[test]
    fn a_page_begins_after_a_key() {
        assert_eq!(
            sql(&[("after", "5,x"), ("select", "d"), ("limit", "2")]).unwrap(),
            "SELECT `d`, `id`, `k` FROM `s`.`t` WHERE (TRUE) AND (`id` >= ? AND (`id` > ? OR (`id` = ? AND (`k` > ?)))) \
             ORDER BY `id`, `k` LIMIT 3 OFFSET 0"
        );
        assert!(
            sql(&[("order", "-d")])
                .unwrap()
                .ends_with("ORDER BY `d` DESC, `id`, `k` LIMIT 101 OFFSET 0")
        );
    }

    #[test]
    fn wrong_parameters_are_refused() {
        let cases = [
            ("select", "x"),
            ("select", ""),
            ("select", "*"),
            ("order", "d;"),
            ("order", "--d"),
            ("order", "d desc"),
            ("limit", "-1"),
            ("limit", "+1"),
            ("limit", "99999999999999999999"),
            ("offset", "x"),
            ("after", "1"),
            ("filter", "{"),
            ("filter", "[]"),
            ("y", "eq.1"),
        ];
        for (name, value) in cases {
            assert_eq!(sql(&[(name, value)]).unwrap_err().status.as_u16(), 400, "{name}={value}");
        }
        assert!(sql(&[("after", "1,a"), ("order", "d")]).is_err());
    }

    #[test]
    fn keys_are_encoded_for_a_path() {
        assert_eq!(encoded("a,b/é %"), "a%2Cb%2F%C3%A9%20%25");
    }
}
