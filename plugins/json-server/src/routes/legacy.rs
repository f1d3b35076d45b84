//! Version 0.3 of Drizzle's JSON server: `/sql` and `/json`, with values as strings.

use hyper::StatusCode;
use serde_json::{Map, Value as Json, json};
use types::Value;

use super::{Names, Route, login, public};
use crate::call::{Call, Incoming};
use crate::gateway::{Gateway, Lease};
use crate::reply::Reply;
use crate::sink::{JsonSink, Limits};
use changes::text;

pub const ROUTES: &[Route] = &[
    public("GET", "/version", version),
    public("GET", "/latest/version", version),
    public("GET", "/0.1/version", version),
    public("GET", "/0.2/version", version),
    public("GET", "/0.3/version", version),
    login("POST", "/sql", sql),
    login("POST", "/latest/sql", sql),
    login("POST", "/0.1/sql", sql),
    login("POST", "/0.2/sql", sql),
    login("POST", "/0.3/sql", sql),
    login("POST", "/json", put),
    login("POST", "/latest/json", put),
    login("POST", "/0.3/json", put),
    login("PUT", "/json", put),
    login("PUT", "/latest/json", put),
    login("PUT", "/0.3/json", put),
    login("GET", "/json", get),
    login("GET", "/latest/json", get),
    login("GET", "/0.3/json", get),
    login("DELETE", "/json", delete),
    login("DELETE", "/latest/json", delete),
    login("DELETE", "/0.3/json", delete),
    login("POST", "/json/ddl/schema/create", create_schema),
    login("POST", "/latest/json/ddl/schema/create", create_schema),
    login("POST", "/0.3/json/ddl/schema/create", create_schema),
    login("POST", "/json/ddl/schema/drop", drop_schema),
    login("POST", "/latest/json/ddl/schema/drop", drop_schema),
    login("POST", "/0.3/json/ddl/schema/drop", drop_schema),
];

const LIMITS: Limits = Limits { rows_max: 100_000, bytes_max: 64 << 20 };

fn version(gateway: &Gateway, _: &Incoming) -> Reply {
    Reply::document(&json!({
        "json_server_version": "0.3",
        "version": gateway.sessions.server_version(),
    }))
}

/// An answer of version 0.3 to a statement that failed: status 200 as Drizzle gave it, except for access.
fn failed(query: &Json, error: &errors::Error) -> Reply {
    let body = json!({
        "query": query,
        "error_type": "sql error",
        "error_message": error.message(),
        "error_code": error.code().0,
        "sqlstate": error.sqlstate_str(),
    });
    Reply::document(&body)
}

fn sql(call: &Call<'_>, _: &Names) -> Reply {
    let Ok(text) = std::str::from_utf8(&call.request.body) else {
        return Reply::failure(StatusCode::BAD_REQUEST, "the body is not UTF-8");
    };
    let schema = call.request.parameter("schema");
    let mut lease = match call.gateway.session(&call.caller, schema) {
        Ok(lease) => lease,
        Err(error) => return Reply::sql_error(&error),
    };
    let mut sink = JsonSink::of_strings(&LIMITS);
    let ended = lease.run(text, &[], &mut sink).and_then(|()| sink.wait_for_commits());
    if let Err(error) = ended {
        return failed(&text.into(), &error);
    }
    lease.give_back();
    if let Some(error) = &sink.error {
        return failed(&text.into(), error);
    }
    let mut body = format!("{{\"query\":{},\"result_set\":[", Json::from(text)).into_bytes();
    body.extend_from_slice(&sink.out);
    body.extend_from_slice(b"],\"sqlstate\":\"00000\"}");
    Reply::json(StatusCode::OK, body)
}

/// The table that a request names.
struct Place {
    schema: String,
    table: String,
}

impl Place {
    fn quoted(&self) -> String {
        format!("{}.{}", quoted(&self.schema), quoted(&self.table))
    }
}

/// A name as an identifier.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

fn place(call: &Call<'_>) -> Result<Place, Reply> {
    let settings = &call.gateway.settings;
    let given = |name: &str| call.request.parameter(name).map(str::to_owned);
    let schema = given("schema").unwrap_or_else(|| settings.schema.text());
    let table = given("table").unwrap_or_else(|| settings.table.text());
    if table.is_empty() {
        let message = "table must be specified in URI query string.";
        return Err(Reply::failure(StatusCode::NOT_FOUND, message));
    }
    Ok(Place { schema, table })
}

/// The `query` object of the body or of the parameter, and the id in it or beside it.
fn wanted(call: &Call<'_>) -> Result<(Json, Option<Json>), Reply> {
    let wrong = |what: &str| Reply::failure(StatusCode::BAD_REQUEST, what);
    let request = call.request;
    let document = match request.parameter("query") {
        Some(text) => serde_json::from_str(text).map_err(|_| wrong("query is not JSON"))?,
        None if request.body.is_empty() => json!({}),
        None => request.json()?,
    };
    let query = document.get("query").cloned().unwrap_or_else(|| json!({}));
    let beside =
        || request.parameter("_id").map(|id| id.parse().map_or(json!(id), |n: i64| json!(n)));
    let id = query.get("_id").cloned().or_else(beside);
    if id.as_ref().is_some_and(|id| id.as_i64().is_none()) {
        return Err(wrong("_id is not an integer"));
    }
    Ok((query, id))
}

/// Runs `work` in a session and words its failure.
fn with_session(
    call: &Call<'_>,
    query: &Json,
    work: impl FnOnce(&mut Lease<'_>) -> errors::Result<Reply>,
) -> Reply {
    let mut lease = match call.gateway.session(&call.caller, None) {
        Ok(lease) => lease,
        Err(error) => return Reply::sql_error(&error),
    };
    match work(&mut lease) {
        Ok(reply) => {
            lease.give_back();
            reply
        }
        Err(error) => failed(query, &error),
    }
}

fn put(call: &Call<'_>, _: &Names) -> Reply {
    let (place, (query, id)) = match place(call).and_then(|place| Ok((place, wanted(call)?))) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let Some(Json::Object(document)) = query.get("document") else {
        return Reply::failure(StatusCode::BAD_REQUEST, "query.document is not an object");
    };
    with_session(call, &query, |lease| {
        create_table(lease, &place, document)?;
        let mut names = vec!["_id".to_owned()];
        let mut values = vec![id.as_ref().and_then(Json::as_i64).map_or(Value::Null, Value::Int)];
        for (name, value) in document {
            names.push(name.clone());
            values.push(stored(value));
        }
        let columns: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let marks = vec!["?"; values.len()].join(", ");
        let sql =
            format!("REPLACE INTO {} ({}) VALUES ({marks})", place.quoted(), columns.join(", "));
        lease.values(&sql, &values)?;
        Ok(Reply::document(&json!({ "query": query, "sqlstate": "00000" })))
    })
}

/// Creates the table, or adds the columns that the document needs.
fn create_table(
    lease: &mut Lease<'_>,
    place: &Place,
    document: &Map<String, Json>,
) -> errors::Result<()> {
    let known = columns(lease, place)?;
    let missing = document
        .keys()
        .filter(|name| !known.iter().any(|column| column.eq_ignore_ascii_case(name)));
    let missing: Vec<String> = missing.map(|name| format!("{} TEXT", quoted(name))).collect();
    if known.is_empty() {
        let mut definitions = vec!["`_id` BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY".to_owned()];
        definitions.extend(missing);
        let sql =
            format!("CREATE TABLE IF NOT EXISTS {} ({})", place.quoted(), definitions.join(", "));
        lease.values(&sql, &[])?;
    } else if !missing.is_empty() {
        let adds: Vec<String> =
            missing.iter().map(|column| format!("ADD COLUMN {column}")).collect();
        lease.values(&format!("ALTER TABLE {} {}", place.quoted(), adds.join(", ")), &[])?;
    }
    Ok(())
}

/// The names of a table's columns; none when it does not exist.
fn columns(lease: &mut Lease<'_>, place: &Place) -> errors::Result<Vec<String>> {
    let sql = "SELECT COLUMN_NAME FROM information_schema.COLUMNS \
               WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
    let names = [Value::text(&place.schema), Value::text(&place.table)];
    let answer = lease.values(sql, &names)?;
    Ok(answer.rows.iter().filter_map(|row| text(&row[0])).collect())
}

/// A member of a document as its column stores it: as JSON text, so that its type comes back.
fn stored(value: &Json) -> Value {
    Value::text(&value.to_string())
}

fn get(call: &Call<'_>, _: &Names) -> Reply {
    let (place, (query, id)) = match place(call).and_then(|place| Ok((place, wanted(call)?))) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    with_session(call, &query, |lease| {
        let all = format!("SELECT * FROM {}", place.quoted());
        let answer = match id.as_ref().and_then(Json::as_i64) {
            Some(id) => lease.values(&format!("{all} WHERE `_id` = ?"), &[Value::Int(id)])?,
            None => lease.values(&format!("{all} ORDER BY `_id`"), &[])?,
        };
        let names: Vec<&str> = answer.columns.iter().map(|column| &*column.name).collect();
        let rows: Vec<Json> = answer.rows.iter().map(|row| document(&names, row)).collect();
        Ok(Reply::document(&json!({ "query": query, "result_set": rows, "sqlstate": "00000" })))
    })
}

/// `{"_id": .., "document": {..}}` of a row.
fn document(names: &[&str], row: &[Value]) -> Json {
    let mut members = Map::new();
    let mut id = Json::Null;
    for (name, value) in names.iter().zip(row) {
        let Some(text) = text(value) else { continue };
        let json = serde_json::from_str(&text).unwrap_or(Json::String(text));
        if *name == "_id" {
            id = json;
        } else {
            members.insert((*name).to_owned(), json);
        }
    }
    json!({ "_id": id, "document": members })
}

fn delete(call: &Call<'_>, _: &Names) -> Reply {
    let (place, (query, id)) = match place(call).and_then(|place| Ok((place, wanted(call)?))) {
        Ok(found) => found,
        Err(reply) => return reply,
    };
    let id = id.as_ref().and_then(Json::as_i64);
    if id.is_none() && !call.gateway.settings.allow_drop_table.is_on() {
        let message =
            "_id must be specified in URI query string or set --json_server.allow_drop_table =true";
        return Reply::failure(StatusCode::NOT_FOUND, message);
    }
    with_session(call, &query, |lease| {
        match id {
            Some(id) => {
                let sql = format!("DELETE FROM {} WHERE `_id` = ?", place.quoted());
                lease.values(&sql, &[Value::Int(id)])?;
            }
            None => drop(lease.values(&format!("DROP TABLE {}", place.quoted()), &[])?),
        }
        Ok(Reply::document(&json!({ "query": query, "sqlstate": "00000" })))
    })
}

fn create_schema(call: &Call<'_>, _: &Names) -> Reply {
    schema_statement(call, "CREATE SCHEMA")
}

fn drop_schema(call: &Call<'_>, _: &Names) -> Reply {
    schema_statement(call, "DROP SCHEMA")
}

fn schema_statement(call: &Call<'_>, words: &str) -> Reply {
    let body = match call.request.json() {
        Ok(body) => body,
        Err(reply) => return reply,
    };
    let query = body.get("query").cloned().unwrap_or_else(|| json!({}));
    let Some(name) = query.get("name").and_then(Json::as_str) else {
        return Reply::failure(StatusCode::BAD_REQUEST, "query.name is not a string");
    };
    with_session(call, &query, |lease| {
        lease.values(&format!("{words} {}", quoted(name)), &[])?;
        Ok(Reply::document(&json!({ "query": query, "sqlstate": "00000" })))
    })
}
