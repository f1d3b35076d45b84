//! Changing rows: insert, replace, change and delete, by key and by condition.

use hyper::StatusCode;
use serde_json::json;
use types::Value;
use types::json::JsonValue;

use super::columns::{Column, Table};
use super::read::{RESERVED, condition_of, key_of, one};
use crate::call::Call;
use crate::filter::read_json;
use crate::reply::Reply;
use crate::route::Names;
use crate::statement::{Database, Statement, atomically, invalid, missing, run, with_database};

/// Rows of one request.
const ROWS_MAX: usize = 10_000;
/// Values of one statement: the server's limit of parameters.
const VALUES_MAX: usize = 65_535;

/// Columns with the values that a request gives them.
type Cells<'a> = Vec<(&'a Column, Value)>;

fn cells<'a>(table: &'a Table, row: JsonValue) -> Result<Cells<'a>, Reply> {
    let JsonValue::Object(row) = row else {
        return Err(invalid(format_args!("a row is an object")));
    };
    let mut cells: Cells<'a> = Vec::with_capacity(row.len());
    for (name, value) in row.members() {
        let column = table.column(&String::from_utf8_lossy(name))?;
        if column.is_generated {
            let name = column.name.text();
            return Err(invalid(format_args!("column {name:?} is computed and takes no value")));
        }
        if cells.iter().any(|(known, _)| known.name == column.name) {
            return Err(invalid(format_args!("column {:?} is given twice", column.name.text())));
        }
        cells.push((column, column.json_value(value)?));
    }
    Ok(cells)
}

/// `POST`: one row or an array of rows; all or none are inserted.
pub fn insert(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let rows = match read_json("the body", &call.request.body)? {
            JsonValue::Array(rows) => rows,
            row => vec![row],
        };
        if rows.is_empty() || rows.len() > ROWS_MAX {
            return Err(invalid(format_args!("a request has 1 to {ROWS_MAX} rows")));
        }
        let table = Table::load(database, names)?;
        let rows = rows.into_iter().map(|row| cells(&table, row)).collect::<Result<Vec<_>, _>>()?;
        let answer = run(database, &insertion(&table, &rows)?)?;
        let body = json!({ "affected_rows": answer.affected_rows, "last_insert_id": answer.last_insert_id });
        Ok(Reply { status: StatusCode::CREATED, ..Reply::document(&body) })
    })
}

/// One INSERT of all rows; a column that a row does not name gets its default.
fn insertion(table: &Table, rows: &[Cells<'_>]) -> Result<Statement, Reply> {
    let is_given =
        |column: &&Column| rows.iter().flatten().any(|(given, _)| given.name == column.name);
    let columns: Vec<&Column> = table.columns.iter().filter(is_given).collect();
    if columns.len().saturating_mul(rows.len()) > VALUES_MAX {
        return Err(Reply::failure(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too many values for one statement",
        ));
    }
    let mut out = table.statement("INSERT INTO ");
    out.text(" (");
    for (index, column) in columns.iter().enumerate() {
        out.text(if index == 0 { "" } else { ", " }).name(&column.name);
    }
    out.text(") VALUES ");
    for (index, row) in rows.iter().enumerate() {
        out.text(if index == 0 { "(" } else { ", (" });
        for (index, column) in columns.iter().enumerate() {
            out.text(if index == 0 { "" } else { ", " });
            match row.iter().find(|(given, _)| given.name == column.name) {
                Some((_, value)) => out.value(value.clone()),
                None => out.text("DEFAULT"),
            };
        }
        out.text(")");
    }
    Ok(out)
}

/// The cells without those of the key, which must be equal to the key in the path.
fn without_key<'a>(table: &Table, cells: Cells<'a>, key: &[Value]) -> Result<Cells<'a>, Reply> {
    let mut rest = Vec::with_capacity(cells.len());
    for (column, value) in cells {
        let part = table.key_columns().zip(key).find(|(part, _)| part.name == column.name);
        match part {
            None => rest.push((column, value)),
            Some((_, in_path)) if *in_path == value => {}
            Some(_) => {
                let name = column.name.text();
                return Err(invalid(format_args!(
                    "column {name:?} differs from the key in the path"
                )));
            }
        }
    }
    Ok(rest)
}

/// Whether the row is there; it is locked.
fn is_there(database: &mut dyn Database, table: &Table, key: &[Value]) -> Result<bool, Reply> {
    let mut statement = table.statement("SELECT 1 FROM ");
    table.is_row(key, statement.text(" WHERE "));
    statement.text(" FOR UPDATE");
    Ok(!run(database, &statement)?.rows.is_empty())
}

fn assign(cells: Cells<'_>, out: &mut Statement) {
    for (index, (column, value)) in cells.into_iter().enumerate() {
        out.text(if index == 0 { " SET " } else { ", " })
            .name(&column.name)
            .text(" = ")
            .value(value);
    }
}

/// `PUT .../KEY`: the whole row; a column that is not named gets its default.
pub fn put(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let body = read_json("the body", &call.request.body)?;
        let table = Table::load(database, names)?;
        let key = key_of(call, &table)?;
        let given = without_key(&table, cells(&table, body)?, &key)?;
        atomically(database, |database| {
            let is_there = is_there(database, &table, &key)?;
            if is_there {
                replace(database, &table, &key, given)?;
            } else {
                let parts = table.key_columns().zip(key.iter().cloned());
                let row = parts.chain(given).collect();
                run(database, &insertion(&table, &[row])?)?;
            }
            let status = if is_there { StatusCode::OK } else { StatusCode::CREATED };
            Ok(Reply { status, ..one(database, &table, &key)? })
        })
    })
}

fn replace(
    database: &mut dyn Database,
    table: &Table,
    key: &[Value],
    given: Cells<'_>,
) -> Result<(), Reply> {
    let is_left = |column: &&Column| {
        !column.is_generated
            && !table.key_columns().any(|part| part.name == column.name)
            && !given.iter().any(|(named, _)| named.name == column.name)
    };
    let left: Vec<&Column> = table.columns.iter().filter(is_left).collect();
    if left.is_empty() && given.is_empty() {
        return Ok(());
    }
    let mut statement = table.statement("UPDATE ");
    let is_first = given.is_empty();
    assign(given, &mut statement);
    for (index, column) in left.iter().enumerate() {
        statement.text(if index == 0 && is_first { " SET " } else { ", " });
        statement.name(&column.name).text(" = DEFAULT");
    }
    table.is_row(key, statement.text(" WHERE "));
    run(database, &statement).map(drop)
}

/// `PATCH .../KEY`: the named columns.
pub fn patch(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let body = read_json("the body", &call.request.body)?;
        let table = Table::load(database, names)?;
        let key = key_of(call, &table)?;
        let given = without_key(&table, cells(&table, body)?, &key)?;
        atomically(database, |database| {
            if !given.is_empty() {
                let mut statement = table.statement("UPDATE ");
                assign(given, &mut statement);
                table.is_row(&key, statement.text(" WHERE "));
                run(database, &statement)?;
            }
            one(database, &table, &key)
        })
    })
}

/// `DELETE .../KEY`
pub fn delete(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let table = Table::load(database, names)?;
        let key = key_of(call, &table)?;
        let mut statement = table.statement("DELETE FROM ");
        table.is_row(&key, statement.text(" WHERE "));
        match run(database, &statement)?.affected_rows {
            0 => Err(missing("no row has this key")),
            _ => Ok(Reply::empty()),
        }
    })
}

/// The condition of a change; a request without one changes nothing.
fn explicit_condition(call: &Call<'_>, table: &Table) -> Result<Statement, Reply> {
    let parameters = &call.request.query;
    let other =
        RESERVED.iter().find(|name| **name != "filter" && call.request.parameter(name).is_some());
    if let Some(other) = other {
        return Err(invalid(format_args!("{other} goes only with GET")));
    }
    match parameters.is_empty() {
        true => {
            Err(invalid(format_args!("a condition says which rows, filter={{}} is all of them")))
        }
        false => condition_of(table, parameters),
    }
}

/// `PATCH` of the rows that fulfil a condition.
pub fn patch_many(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let body = read_json("the body", &call.request.body)?;
        let table = Table::load(database, names)?;
        let given = cells(&table, body)?;
        let condition = explicit_condition(call, &table)?;
        if given.is_empty() {
            return Err(invalid(format_args!("the body names no column")));
        }
        let mut statement = table.statement("UPDATE ");
        assign(given, &mut statement);
        statement.text(" WHERE ").append(condition);
        change(database, &statement)
    })
}

/// `DELETE` of the rows that fulfil a condition.
pub fn delete_many(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let table = Table::load(database, names)?;
        let condition = explicit_condition(call, &table)?;
        let mut statement = table.statement("DELETE FROM ");
        statement.text(" WHERE ").append(condition);
        change(database, &statement)
    })
}

fn change(database: &mut dyn Database, statement: &Statement) -> Result<Reply, Reply> {
    let answer = run(database, statement)?;
    Ok(Reply::document(&json!({ "affected_rows": answer.affected_rows })))
}

#[cfg(test)]
mod tests {
    use super::super::columns::tests::table;
    use super::*;

    fn row(text: &str) -> JsonValue {
        read_json("the test", text.as_bytes()).unwrap()
    }

    #[test]
    fn rows_become_one_statement() {
        let table = table();
        let rows = [r#"{"id":1,"k":"a"}"#, r#"{"id":2,"d":"1.5"}"#, "{}"];
        let rows: Vec<Cells<'_>> =
            rows.iter().map(|text| cells(&table, row(text)).unwrap()).collect();
        assert_eq!(
            insertion(&table, &rows).unwrap().sql(),
            "INSERT INTO `s`.`t` (`id`, `k`, `d`) VALUES (?, ?, DEFAULT), (?, DEFAULT, ?), (DEFAULT, DEFAULT, DEFAULT)"
        );
        assert_eq!(insertion(&table, &[vec![]]).unwrap().sql(), "INSERT INTO `s`.`t` () VALUES ()");
    }

    #[test]
    fn wrong_rows_are_refused() {
        let table = table();
        for text in [
            "[]",
            "1",
            r#"{"x":1}"#,
            r#"{"g":1}"#,
            r#"{"id":1,"ID":2}"#,
            r#"{"id` = 1 -- ":1}"#,
            r#"{"id":{}}"#,
        ] {
            assert_eq!(cells(&table, row(text)).unwrap_err().status.as_u16(), 400, "{text}");
        }
        let key = [Value::Int(1), Value::text("a")];
        let given = |text| without_key(&table, cells(&table, row(text)).unwrap(), &key);
        assert_eq!(given(r#"{"id":1,"d":null}"#).unwrap().len(), 1);
        assert!(given(r#"{"id":2}"#).is_err());
    }
}
