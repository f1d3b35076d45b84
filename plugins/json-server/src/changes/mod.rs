//! Changes of tables as they are committed: `GET /1.0/changes`, `GET /1.0/changes/NAME`, and what a reader confirms. docs/changes.md describes
//! the calls, docs/format/changes.md the events.

mod outlet;

use changes::{
    Post, Reader, Runner, Scope, Shape, VERSION, put_document, put_number, put_text, text,
};
use engine_api::CancelToken;
use errors::{Error, Result, bail, err};
use hyper::StatusCode;
use plugin_api::{DumpRequest, ResultSink};
use serde_json::json;
use types::{GtidSet, Value};

use crate::call::Call;
use crate::gateway::Lease;
use crate::reply::{Reply, error_json};
use crate::route::{Names, Route, login};
use crate::statement::missing;

use self::outlet::EventOutlet;

pub const ROUTES: &[Route] = &[
    login("GET", "/1.0/changes", without_slot),
    login("GET", "/1.0/changes/{name}", of_slot),
    login("POST", "/1.0/changes/{name}/ack", confirm),
];

/// Seconds between two signs of life when nothing happens, and at most.
const HEARTBEAT: u64 = 10;
const HEARTBEAT_MAX: u64 = 60;
/// What a reader needs to get the rows of all tables, as a replica does. With SELECT on the tables that he names he gets theirs.
const PRIVILEGE: &str = "REPLICATION SLAVE";

/// Where a reader begins.
enum Start {
    Now,
    Snapshot,
    /// After the transactions that the text names.
    After(String),
}

/// What a reader asks for.
struct Wanted {
    /// The slot.
    name: Option<String>,
    scope: Scope,
    shape: Shape,
    start: Start,
    heartbeat: u64,
    /// He gets what he may SELECT.
    is_guarded: bool,
}

fn without_slot(call: &Call<'_>, _: &Names) -> Reply {
    serve(call, |lease| {
        let request = call.request;
        let scope = Scope::of_parameters(request.parameter("tables"), request.parameter("schema"))?;
        let is_guarded = !lease.session()?.has_privilege(PRIVILEGE);
        if is_guarded {
            check_tables(lease, &scope)?;
        }
        check_log(lease)?;
        let flag = |name: &str| match request.parameter(name) {
            None | Some("1" | "true") => Ok(true),
            Some("0" | "false") => Ok(false),
            Some(_) => Err(err!(WRONG_ARGUMENTS, name)),
        };
        let shape = Shape { has_before: flag("include_before")?, has_schema: flag("describe")? };
        let start = start(call)?.unwrap_or(Start::Now);
        if is_guarded && matches!(start, Start::Snapshot) {
            // It holds all writers off for a moment.
            require_privilege(lease)?;
        }
        let heartbeat = heartbeat(call)?;
        Ok(Some(Wanted { name: None, scope, shape, start, heartbeat, is_guarded }))
    })
}

fn of_slot(call: &Call<'_>, names: &Names) -> Reply {
    let name = &names[0];
    serve(call, |lease| {
        require_privilege(lease)?;
        check_log(lease)?;
        const FIND: &str = "SELECT SCOPE_DOCUMENT, CONFIRMED_GTID_SET, CAST(WANTS_SNAPSHOT AS CHAR), \
             CAST(INCLUDE_BEFORE AS CHAR), CAST(INCLUDE_SCHEMA AS CHAR), LAST_ERROR, STATE FROM \
             data_dictionary.CHANGE_STREAMS WHERE STREAM_NAME = ?";
        let found = lease.values(FIND, &[Value::text(name)])?.rows;
        let Some(row) = found.first() else { return Ok(None) };
        let field = |at: usize| row.get(at).and_then(text).unwrap_or_default();
        if field(6) == "lost" {
            let why = format!("the place of the stream is lost: {}", field(5));
            bail!(ERROR_WHEN_EXECUTING_COMMAND, "CHANGE STREAM", why);
        }
        let is_on = |at: usize| field(at) == "1";
        let place = if is_on(2) { Start::Snapshot } else { Start::After(field(1)) };
        Ok(Some(Wanted {
            name: Some(name.clone()),
            scope: Scope::of_document(&field(0)),
            shape: Shape { has_before: is_on(3), has_schema: is_on(4) },
            start: start(call)?.unwrap_or(place),
            heartbeat: heartbeat(call)?,
            is_guarded: false,
        }))
    })
}

/// `from`, or the last event that a client says that it saw.
fn start(call: &Call<'_>) -> Result<Option<Start>> {
    // A client that comes back repeats its address: what it saw counts more.
    if let Some(seen) = call.request.headers.get("last-event-id").and_then(|id| id.to_str().ok())
        && !seen.is_empty()
    {
        return Ok(Some(Start::After(seen.to_owned())));
    }
    Ok(match call.request.parameter("from") {
        None => None,
        Some("now") => Some(Start::Now),
        Some("snapshot") => Some(Start::Snapshot),
        Some("") => bail!(WRONG_ARGUMENTS, "from"),
        Some(gtid) => Some(Start::After(gtid.to_owned())),
    })
}

fn heartbeat(call: &Call<'_>) -> Result<u64> {
    let Some(given) = call.request.parameter("heartbeat") else { return Ok(HEARTBEAT) };
    let seconds = given.parse().ok().filter(|seconds| (1..=HEARTBEAT_MAX).contains(seconds));
    seconds.ok_or_else(|| err!(WRONG_ARGUMENTS, "heartbeat"))
}

/// Streams what `wanted` finds out; 404 when it finds nothing.
fn serve(call: &Call<'_>, wanted: impl FnOnce(&mut Lease<'_>) -> Result<Option<Wanted>>) -> Reply {
    let most = (call.gateway.settings.max_threads.number() as usize / 2).max(1);
    let Some(_place) = call.gateway.readers.enter(most) else {
        let message = "half of json_server_max_threads read changes: no more can";
        return Reply::failure(StatusCode::SERVICE_UNAVAILABLE, message).with("retry-after", "10");
    };
    let mut lease = match call.gateway.session(&call.caller, None) {
        Ok(lease) => lease,
        Err(error) => return Reply::sql_error(&error),
    };
    let _runs = call.request.waiting.runs(lease.cancel());
    let wanted = wanted(&mut lease);
    let wanted = match wanted {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return missing("no change stream has this name"),
        Err(error) => return Reply::sql_error(&error),
    };
    let mut outlet = EventOutlet::new(call.request);
    let outcome = stream(call, &mut lease, &mut outlet, wanted);
    let Err(error) = outcome else {
        return outlet.finish().unwrap_or_else(|error| Reply::sql_error(&error));
    };
    if !outlet.has_begun() {
        return Reply::sql_error(&error);
    }
    // When the client is gone nobody hears it.
    let told = Post::new(&mut outlet).event("error", None, |out| {
        put_document("error", &error_json(&error), out);
        Ok(())
    });
    let finished = told.and_then(|()| outlet.finish());
    finished.unwrap_or_else(|error| Reply::sql_error(&error))
}

/// # Errors
/// 1227.
fn require_privilege(lease: &mut Lease<'_>) -> Result<()> {
    if lease.session()?.has_privilege(PRIVILEGE) {
        return Ok(());
    }
    bail!(SPECIFIC_ACCESS_DENIED_ERROR, PRIVILEGE)
}

/// A reader without the privilege names base tables of users, and may read all of each.
///
/// # Errors
/// 1227, 1142, 1146, 1347.
fn check_tables(lease: &mut Lease<'_>, scope: &Scope) -> Result<()> {
    const KIND: &str = "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ?";
    let Scope::Tables(tables) = scope else { return require_privilege(lease) };
    for (schema, table) in tables {
        if changes::OWN.contains(&schema.to_ascii_lowercase().as_str()) {
            require_privilege(lease)?;
        }
        lease.session()?.check_reads_table(schema, table)?;
        let answer = lease.values(KIND, &[Value::text(schema), Value::text(table)])?;
        match answer.rows.first().and_then(|row| row.first()).and_then(text).as_deref() {
            Some("BASE TABLE") => {}
            Some(_) => bail!(WRONG_OBJECT, schema, table, "BASE TABLE"),
            None => bail!(NO_SUCH_TABLE, schema, table),
        }
    }
    Ok(())
}

/// # Errors
/// 1381.
fn check_log(lease: &mut Lease<'_>) -> Result<()> {
    let answer = lease.values("SELECT CAST(@@GLOBAL.log_bin AS CHAR)", &[])?;
    let is_on = answer.rows.first().and_then(|row| row.first()).and_then(text);
    if is_on.as_deref() == Some("1") { Ok(()) } else { bail!(NO_BINARY_LOGGING) }
}

impl Runner for Lease<'_> {
    fn run(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<()> {
        self.run(sql, &[], sink)
    }

    fn cancel(&self) -> CancelToken {
        self.cancel()
    }
}

fn executed(lease: &mut Lease<'_>, what: &str) -> Result<GtidSet> {
    let answer = lease.values(&format!("SELECT @@GLOBAL.gtid_{what}"), &[])?;
    let shown = answer.rows.first().and_then(|row| row.first()).and_then(text);
    let set = shown.as_deref().and_then(GtidSet::parse);
    set.ok_or_else(|| Error::internal("a variable that is no set"))
}

fn stream(
    call: &Call<'_>,
    lease: &mut Lease<'_>,
    outlet: &mut EventOutlet<'_>,
    wanted: Wanted,
) -> Result<()> {
    let Wanted { name, scope, shape, start, heartbeat, is_guarded } = wanted;
    let greet = |outlet: &mut EventOutlet<'_>, position: Option<&GtidSet>| {
        Post::new(outlet).event("stream", None, |out| {
            put_number("version", VERSION, out);
            put_document("name", &json!(name), out);
            if let Some(position) = position {
                put_text("position", &changes::one_line(position), out);
            }
            Ok(())
        })
    };
    let position = match start {
        Start::Snapshot => {
            greet(outlet, None)?;
            let mut session = call.gateway.session(&call.caller, None)?;
            // What stops the reader stops its snapshot.
            let _runs = call.request.waiting.runs(session.cancel());
            let sessions = &*call.gateway.sessions;
            changes::write_snapshot(sessions, &mut session, outlet, &scope, shape)?
        }
        Start::Now => executed(lease, "executed")?,
        Start::After(text) => {
            let purged = executed(lease, "purged")?;
            let position = binlog::gtid::position(&text, &purged);
            position.ok_or_else(|| err!(MALFORMED_GTID_SET_SPECIFICATION, text))?
        }
    };
    let _runs = call.request.waiting.runs(lease.cancel());
    if !outlet.has_begun() {
        greet(outlet, Some(&position))?;
    }
    let beat = heartbeat * 1_000_000_000;
    lease.values(&format!("SET @source_heartbeat_period = {beat}"), &[])?;
    let mut gtids = Vec::new();
    binlog::gtid::write_tagged_set(&position, &mut gtids);
    let request = DumpRequest {
        stream: name.clone(),
        gtids: Some(gtids),
        connection_id: lease.connection_id(),
        is_filtered: is_guarded,
        ..DumpRequest::default()
    };
    let mut reader = Reader::new(outlet, scope, shape, position);
    if is_guarded {
        // The first session is busy with the log.
        let mut asked = call.gateway.session(&call.caller, None)?;
        reader = reader.guarded(Box::new(move |schema, table| {
            asked.session()?.check_reads_table(schema, table)
        }));
    }
    lease.session()?.dump_binary_log(request, &mut reader)
}

/// `POST /1.0/changes/NAME/ack` with `{"gtid": ".."}`.
fn confirm(call: &Call<'_>, names: &Names) -> Reply {
    let body = match call.request.json() {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let given = body.as_object().filter(|fields| fields.len() == 1);
    let Some(gtid) = given.and_then(|fields| fields.get("gtid")).and_then(|gtid| gtid.as_str())
    else {
        return Reply::failure(StatusCode::BAD_REQUEST, "the body is {\"gtid\": \"..\"}");
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_, \n".contains(&byte);
    if gtid.is_empty() || !gtid.bytes().all(is_plain) {
        return Reply::sql_error(&err!(MALFORMED_GTID_SET_SPECIFICATION, gtid));
    }
    match confirm_in(call, &names[0], gtid) {
        Ok(true) => Reply::document(&json!({ "confirmed": gtid })),
        Ok(false) => missing("no change stream has this name"),
        Err(error) => Reply::sql_error(&error),
    }
}

fn confirm_in(call: &Call<'_>, name: &str, gtid: &str) -> Result<bool> {
    let mut lease = call.gateway.session(&call.caller, None)?;
    require_privilege(&mut lease)?;
    check_log(&mut lease)?;
    const FIND: &str = "SELECT 1 FROM data_dictionary.CHANGE_STREAMS WHERE STREAM_NAME = ?";
    if lease.values(FIND, &[Value::text(name)])?.rows.is_empty() {
        return Ok(false);
    }
    let name = name.replace('`', "``");
    lease.values(&format!("ALTER CHANGE STREAM `{name}` CONFIRM GTID '{gtid}'"), &[])?;
    lease.give_back();
    Ok(true)
}
