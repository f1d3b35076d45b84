//! Statements: `POST /1.0/sql`, their progress and their cancellation.

use std::time::Duration;

use hyper::{StatusCode, header};
use plugin_api::ResultSink;
use serde_json::{Value as Json, json};
use types::Value;

use super::{Names, Route, login, many};
use crate::arrow::{self, ArrowSink};
use crate::call::{Call, Incoming};
use crate::gateway::Lease;
use crate::json;
use crate::lines::{self, LineSink};
use crate::reply::{Reply, error_json, status_of};
use crate::sink::{JsonSink, Limits};
use changes::text;

/// Where statements are sent.
pub const PATH: &str = "/1.0/sql";

pub const ROUTES: &[Route] = &[
    login("POST", PATH, run),
    login("GET", "/1.0/statements/{id}", state),
    login("DELETE", "/1.0/statements/{id}", cancel),
];

/// Rows of a result when the request names no number.
const ROWS_DEFAULT: u64 = 100_000;
/// Bytes of an answer that is built in memory.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// Longest id of a statement.
const ID_LENGTH_MAX: usize = 128;

/// A request for statements.
pub struct Statements {
    /// The text, perhaps several statements.
    pub sql: String,
    /// Values of the question marks; only for one statement.
    pub parameters: Vec<Value>,
    /// Current schema.
    pub schema: Option<String>,
    /// The caller's name for it, to cancel it by.
    pub id: Option<String>,
    /// Rows of a result.
    pub rows_max: Option<u64>,
    /// Values for one run each, instead of `parameters`.
    pub rows: Option<Vec<Vec<Value>>>,
}

/// Reads the body of a request: JSON, or text that is the statements.
///
/// # Errors
/// Status 400, 415.
pub fn read(call: &Call<'_>) -> Result<Statements, Reply> {
    let request = call.request;
    let given = request.header(header::CONTENT_TYPE).unwrap_or("application/json");
    let media = given.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    match media.as_str() {
        "application/json" => from_json(&request.json()?),
        "text/plain" | "application/sql" => {
            let sql = std::str::from_utf8(&request.body)
                .map_err(|_| Reply::failure(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
            Ok(Statements {
                sql: sql.to_owned(),
                parameters: Vec::new(),
                schema: request.parameter("schema").map(str::to_owned),
                id: request.parameter("id").map(str::to_owned),
                rows_max: None,
                rows: None,
            })
        }
        _ => Err(Reply::failure(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body is application/json or text/plain",
        )),
    }
}

fn from_json(body: &Json) -> Result<Statements, Reply> {
    let wrong = |what: &str| Reply::failure(StatusCode::BAD_REQUEST, what);
    let Json::Object(fields) = body else { return Err(wrong("the body is not an object")) };
    const KNOWN: [&str; 6] = ["sql", "parameters", "rows", "schema", "id", "max_rows"];
    if let Some(unknown) = fields.keys().find(|field| !KNOWN.contains(&field.as_str())) {
        return Err(wrong(&format!("no field is called {unknown:?}")));
    }
    let field = |name: &str| match fields.get(name) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(&format!("{name} is not a string"))),
    };
    let sql = field("sql")?.ok_or_else(|| wrong("sql is missing"))?;
    let values = |name: &str, values: &Json| match values {
        Json::Array(values) => {
            let values = values.iter().map(json::parameter).collect::<errors::Result<Vec<_>>>();
            values.map_err(|error| Reply::sql_error(&error))
        }
        _ => Err(wrong(&format!("{name} is not an array"))),
    };
    let parameters = match fields.get("parameters") {
        None | Some(Json::Null) => Vec::new(),
        Some(given) => values("parameters", given)?,
    };
    let rows = match fields.get("rows") {
        None | Some(Json::Null) => None,
        Some(Json::Array(_)) if !parameters.is_empty() => {
            return Err(wrong("parameters and rows exclude each other"));
        }
        Some(Json::Array(rows)) => {
            let rows = rows.iter().map(|row| values("a row", row));
            Some(rows.collect::<Result<Vec<_>, _>>()?)
        }
        Some(_) => return Err(wrong("rows is not an array")),
    };
    let rows_max = match fields.get("max_rows") {
        None | Some(Json::Null) => None,
        Some(number) => Some(number.as_u64().ok_or_else(|| wrong("max_rows is not a number"))?),
    };
    let id = field("id")?;
    if id.as_ref().is_some_and(|id| id.is_empty() || id.len() > ID_LENGTH_MAX) {
        return Err(wrong("id is empty or too long"));
    }
    Ok(Statements { sql, parameters, schema: field("schema")?, id, rows_max, rows })
}

fn run(call: &Call<'_>, _: &Names) -> Reply {
    let statements = match read(call) {
        Ok(statements) => statements,
        Err(reply) => return reply,
    };
    let mut lease = match call.gateway.session(&call.caller, statements.schema.as_deref()) {
        Ok(lease) => lease,
        Err(error) => return Reply::sql_error(&error),
    };
    match run_in(call, &mut lease, &statements) {
        Ok(reply) => {
            lease.give_back();
            reply
        }
        // The session may be in the middle of a result: it ends.
        Err(reply) => reply,
    }
}

/// Runs a statement that is expected to be short in a session that waits for it; `None` when there is none.
pub fn run_short(call: &Call<'_>) -> Option<Reply> {
    if form(call.request) != Form::Whole {
        return None;
    }
    let statements = read(call).ok()?;
    let schema = statements.schema.as_deref();
    if statements.id.is_some() || statements.rows.is_some() || statements.parameters.is_empty() {
        return None;
    }
    let mut lease = call.gateway.short_session(&call.caller, schema, &statements.sql)?;
    match run_whole(&mut lease, &statements) {
        Ok(reply) => {
            lease.give_back();
            Some(reply)
        }
        Err(error) => Some(Reply::sql_error(&error)),
    }
}

/// Runs statements in a session.
///
/// # Errors
/// The session cannot be used any more; the answer all the same.
pub fn run_in(
    call: &Call<'_>,
    lease: &mut Lease<'_>,
    statements: &Statements,
) -> Result<Reply, Reply> {
    let running = &call.gateway.running;
    let registered = match &statements.id {
        None => None,
        Some(id) => match running.register(&call.caller.user, id, lease.cancel()) {
            Some(registered) => Some(registered),
            None => return Ok(Reply::failure(StatusCode::CONFLICT, "a statement has this id")),
        },
    };
    let runs = call.request.waiting.runs(lease.cancel());
    let reply = match (&statements.rows, form(call.request)) {
        (Some(rows), _) => many::run(lease, &statements.sql, rows),
        (None, Form::Whole) => run_whole(lease, statements),
        (None, Form::Lines) => {
            let sink = LineSink::new(call.request, statements.rows_max.unwrap_or(u64::MAX));
            run_to(lease, statements, sink, LineSink::finish)
        }
        (None, Form::Arrow) => {
            let sink = ArrowSink::new(call.request, statements.rows_max.unwrap_or(u64::MAX));
            run_to(lease, statements, sink, ArrowSink::finish)
        }
    };
    drop((runs, registered));
    reply.map_err(|error| Reply::sql_error(&error))
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// One JSON document.
    Whole,
    /// A JSON value a line.
    Lines,
    /// An Arrow IPC stream.
    Arrow,
}

fn form(request: &Incoming) -> Form {
    let accepted = request.header(header::ACCEPT).unwrap_or("");
    let media = accepted.split(',').map(|range| range.split(';').next().unwrap_or("").trim());
    let known = |media: &str| match media.to_ascii_lowercase().as_str() {
        lines::MEDIA_TYPE => Some(Form::Lines),
        arrow::MEDIA_TYPE => Some(Form::Arrow),
        "application/json" | "application/*" | "*/*" => Some(Form::Whole),
        _ => None,
    };
    media.filter_map(known).next().unwrap_or(Form::Whole)
}

fn run_whole(lease: &mut Lease<'_>, statements: &Statements) -> errors::Result<Reply> {
    let started = sys::clock::monotonic();
    let rows_max = statements.rows_max.unwrap_or(ROWS_DEFAULT);
    let mut sink = JsonSink::new(&Limits { rows_max, bytes_max: ANSWER_BYTES_MAX });
    lease.run(&statements.sql, &statements.parameters, &mut sink)?;
    sink.wait_for_commits()?;
    let took = sys::clock::monotonic().saturating_sub(started);
    Ok(finish(lease, sink, took))
}

fn run_to<S: ResultSink>(
    lease: &mut Lease<'_>,
    statements: &Statements,
    mut sink: S,
    finish: impl FnOnce(S) -> errors::Result<Reply>,
) -> errors::Result<Reply> {
    lease.run(&statements.sql, &statements.parameters, &mut sink)?;
    finish(sink)
}

/// The answer: the results, and the warnings or the error of the last statement.
fn finish(lease: &mut Lease<'_>, mut sink: JsonSink, took: Duration) -> Reply {
    let connection_id = lease.connection_id();
    if let Some(error) = sink.error.take() {
        // A result that was cut off by the error is left out.
        let whole = sink.whole_results();
        let mut body = format!("{{\"error\":{},\"results\":[", error_json(&error)).into_bytes();
        body.extend_from_slice(whole);
        body.extend_from_slice(b"]}");
        return Reply::json(status_of(error.code()), body);
    }
    let warnings = if sink.warnings > 0 { warnings(lease) } else { json!([]) };
    let mut body = Vec::with_capacity(sink.out.len() + 100);
    body.extend_from_slice(b"{\"results\":[");
    body.extend_from_slice(&sink.out);
    let end = format!(
        "],\"warnings\":{warnings},\"duration_us\":{},\"connection_id\":{connection_id}}}",
        took.as_micros()
    );
    body.extend_from_slice(end.as_bytes());
    Reply::json(StatusCode::OK, body)
}

fn warnings(lease: &mut Lease<'_>) -> Json {
    let Ok(answer) = lease.values("SHOW WARNINGS", &[]) else { return json!([]) };
    let one = |row: &Vec<Value>| match &row[..] {
        [level, code, message] => {
            let code = text(code).and_then(|code| code.parse::<u64>().ok());
            json!({ "level": text(level), "code": code, "message": text(message) })
        }
        _ => Json::Null,
    };
    answer.rows.iter().map(one).collect()
}

fn state(call: &Call<'_>, names: &Names) -> Reply {
    let Some((elapsed, progress)) = call.gateway.running.state(&call.caller.user, &names[0]) else {
        return Reply::failure(StatusCode::NOT_FOUND, "no statement has this id");
    };
    let state = json!({
        "elapsed_us": elapsed.as_micros() as u64,
        "work_done": progress.map(|progress| progress.work_done),
        "work_expected": progress.map(|progress| progress.work_expected),
    });
    Reply::document(&state).with("cache-control", "no-store")
}

fn cancel(call: &Call<'_>, names: &Names) -> Reply {
    match call.gateway.running.cancel(&call.caller.user, &names[0]) {
        true => Reply::empty(),
        false => Reply::failure(StatusCode::NOT_FOUND, "no statement has this id"),
    }
}
