//! Rows of any table as JSON: `/1.0/tables/SCHEMA/TABLE/KEY`. docs/json-server.md describes the calls.
//!
//! The columns are read for each request, and a name that is none of them is refused before a statement is built.

mod columns;
mod condition;
mod read;
mod write;

use serde_json::{Value as Json, json};

use crate::call::Call;
use crate::reply::Reply;
use crate::route::{Names, Route, login};
use crate::statement::{Statement, existing_schema, run, with_database};
use changes::text;

pub const ROUTES: &[Route] = &[
    login("GET", "/1.0/tables/{schema}", list),
    login("GET", "/1.0/tables/{schema}/{table}", read::rows),
    login("POST", "/1.0/tables/{schema}/{table}", write::insert),
    login("PATCH", "/1.0/tables/{schema}/{table}", write::patch_many),
    login("DELETE", "/1.0/tables/{schema}/{table}", write::delete_many),
    login("GET", "/1.0/tables/{schema}/{table}/{key}", read::row),
    login("PUT", "/1.0/tables/{schema}/{table}/{key}", write::put),
    login("PATCH", "/1.0/tables/{schema}/{table}/{key}", write::patch),
    login("DELETE", "/1.0/tables/{schema}/{table}/{key}", write::delete),
];

/// `GET /1.0/tables/SCHEMA`: the tables and views that the account may see.
fn list(call: &Call<'_>, names: &Names) -> Reply {
    with_database(call, |database| {
        let schema = existing_schema(database, &names[0])?;
        let mut statement = Statement::new(
            "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ",
        );
        statement.value(schema.value()).text(" ORDER BY TABLE_NAME");
        let rows = run(database, &statement)?.rows;
        let table = |row: &Vec<types::Value>| match &row[..] {
            [name, kind] => {
                let kind = text(kind).unwrap_or_default().to_lowercase();
                Some(json!({ "name": text(name)?, "type": kind }))
            }
            _ => None,
        };
        let tables: Vec<Json> = rows.iter().filter_map(table).collect();
        Ok(Reply::document(&json!({ "tables": tables })))
    })
}
