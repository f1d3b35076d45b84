//! Transactions over several requests.

use serde_json::{Value as Json, json};

use super::{Names, Route, login, sql};
use crate::call::Call;
use crate::gateway::Lease;
use crate::held::{HeldSession, IDLE_WITHIN, Kind, Purpose};
use crate::reply::Reply;

pub const ROUTES: &[Route] = &[
    login("POST", "/1.0/transactions", begin),
    login("POST", "/1.0/transactions/{id}/sql", run),
    login("POST", "/1.0/transactions/{id}/commit", commit),
    login("POST", "/1.0/transactions/{id}/rollback", rollback),
];

/// The statements that begin the transaction which a body describes, and its schema.
fn beginning(body: &Json) -> Result<(String, Option<String>), Reply> {
    let wrong = |what: &str| Reply::failure(hyper::StatusCode::BAD_REQUEST, what);
    let Json::Object(fields) = body else { return Err(wrong("the body is not an object")) };
    let mut statement = String::new();
    let mut schema = None;
    let mut mode = "";
    for (name, value) in fields {
        let unknown = || wrong(&format!("{name:?} is not a field, or has the wrong type"));
        if value.is_null() {
            continue;
        } else if name == "schema" {
            schema = Some(value.as_str().ok_or_else(unknown)?.to_owned());
        } else if name == "read_only" {
            let is_read_only = value.as_bool().ok_or_else(unknown)?;
            mode = if is_read_only { " READ ONLY" } else { " READ WRITE" };
        } else if name == "isolation" {
            let level = value.as_str().ok_or_else(unknown)?;
            let level = level.to_ascii_uppercase().replace('-', " ");
            const LEVELS: [&str; 4] =
                ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
            if !LEVELS.contains(&level.as_str()) {
                return Err(wrong("isolation is not a level"));
            }
            statement = format!("SET TRANSACTION ISOLATION LEVEL {level}; ");
        } else {
            return Err(unknown());
        }
    }
    Ok((format!("{statement}START TRANSACTION{mode}"), schema))
}

fn begin(call: &Call<'_>, _: &Names) -> Reply {
    begin_in(call).unwrap_or_else(|refusal| refusal)
}

fn begin_in(call: &Call<'_>) -> Result<Reply, Reply> {
    let body = match call.request.body.is_empty() {
        true => json!({}),
        false => call.request.json()?,
    };
    let (statements, schema) = beginning(&body)?;
    let failed = |error| Reply::sql_error(&error);
    let mut lease = call.gateway.session(&call.caller, schema.as_deref()).map_err(failed)?;
    lease.values(&statements, &[]).map_err(failed)?;
    let session = lease.keep().map_err(failed)?;
    let held = HeldSession { session, purpose: Purpose::Transaction };
    let id = call.gateway.held.hold(&call.caller, held)?;
    Ok(Reply::document(&json!({ "id": id, "expires_in": IDLE_WITHIN.as_secs() })))
}

fn take<'a>(call: &'a Call<'_>, id: &str) -> Result<Lease<'a>, Reply> {
    let held = call.gateway.held.take(&call.caller, Kind::Transaction, id)?;
    Ok(call.gateway.lease(held.session))
}

fn run(call: &Call<'_>, names: &Names) -> Reply {
    let statements = match sql::read(call) {
        Ok(statements) => statements,
        Err(reply) => return reply,
    };
    let id = &names[0];
    let mut lease = match take(call, id) {
        Ok(lease) => lease,
        Err(reply) => return reply,
    };
    let held = &call.gateway.held;
    match sql::run_in(call, &mut lease, &statements) {
        // A deadlock or the statements themselves ended it: what came next under its id would commit by itself.
        Ok(reply) if !is_open(&mut lease) => {
            held.forget(id);
            lease.give_back();
            reply.with("x-squall-transaction", "ended")
        }
        Ok(reply) => {
            match lease.keep() {
                Ok(session) => held.put(id, HeldSession { session, purpose: Purpose::Transaction }),
                Err(_) => held.forget(id),
            }
            reply
        }
        Err(reply) => {
            held.forget(id);
            reply
        }
    }
}

/// Whether the session's transaction is still open.
fn is_open(lease: &mut Lease<'_>) -> bool {
    lease.session().is_ok_and(|session| session.state().in_transaction)
}

fn commit(call: &Call<'_>, names: &Names) -> Reply {
    end(call, &names[0], "COMMIT")
}

fn rollback(call: &Call<'_>, names: &Names) -> Reply {
    end(call, &names[0], "ROLLBACK")
}

fn end(call: &Call<'_>, id: &str, statement: &str) -> Reply {
    let mut lease = match take(call, id) {
        Ok(lease) => lease,
        Err(reply) => return reply,
    };
    call.gateway.held.forget(id);
    match lease.values(statement, &[]) {
        Ok(_) => {
            lease.give_back();
            Reply::empty()
        }
        Err(error) => Reply::sql_error(&error),
    }
}
