//! Cursors: the rows of a result in several requests.

use errors::{Error, Result, bail};
use hyper::StatusCode;
use plugin_api::{
    ColumnMeta, ExecuteRequest, LocalFile, OkInfo, ResultSink, RowSource, SessionState,
};
use types::DataType;

use super::{Names, Route, login, sql};
use crate::call::Call;
use crate::gateway::Lease;
use crate::held::{Cursor, HeldSession, IDLE_WITHIN, Kind, Purpose};
use crate::json::{self, Form};
use crate::reply::Reply;

pub const ROUTES: &[Route] = &[
    login("POST", "/1.0/cursors", open),
    login("GET", "/1.0/cursors/{id}", fetch),
    login("DELETE", "/1.0/cursors/{id}", close),
];

/// Rows of an answer when the request names no number, and at most.
const ROWS_DEFAULT: u32 = 1000;
const ROWS_MAX: u32 = 100_000;
/// Bytes after which an answer ends early.
const BYTES_MAX: usize = 16 << 20;

/// Takes the rows of one answer.
struct Rows<'a> {
    columns: &'a [(DataType, Form)],
    out: Vec<u8>,
    count: u32,
    is_last: bool,
    scratch: Vec<u8>,
    error: Option<Error>,
}

impl Rows<'_> {
    fn new(columns: &[(DataType, Form)]) -> Rows<'_> {
        let (out, scratch) = (Vec::new(), Vec::new());
        Rows { columns, out, count: 0, is_last: false, scratch, error: None }
    }
}

impl ResultSink for Rows<'_> {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        if self.count > 0 {
            self.out.push(b',');
        }
        self.count += 1;
        json::write_row(row, self.columns, &mut self.scratch, &mut self.out)
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        self.is_last = state.last_row_sent;
        Ok(())
    }

    fn ok(&mut self, _ok: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _name: &str) -> Result<Box<dyn LocalFile + '_>> {
        bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}

fn open(call: &Call<'_>, _: &Names) -> Reply {
    open_in(call).unwrap_or_else(|refusal| refusal)
}

fn open_in(call: &Call<'_>) -> std::result::Result<Reply, Reply> {
    let statements = sql::read(call)?;
    let failed = |error| Reply::sql_error(&error);
    let mut lease =
        call.gateway.session(&call.caller, statements.schema.as_deref()).map_err(failed)?;
    let _runs = call.request.waiting.runs(lease.cancel());
    let cursor = open_cursor(&mut lease, &statements).map_err(failed)?;
    let described = cursor.described.clone();
    let session = lease.keep().map_err(failed)?;
    let held = HeldSession { session, purpose: Purpose::Cursor(cursor) };
    let id = call.gateway.held.hold(&call.caller, held)?;
    let expires_in = IDLE_WITHIN.as_secs();
    let body = format!("{{\"id\":\"{id}\",\"columns\":{described},\"expires_in\":{expires_in}}}");
    Ok(Reply::json(StatusCode::OK, body.into_bytes()))
}

/// Runs a statement whose rows stay in the session.
fn open_cursor(lease: &mut Lease<'_>, statements: &sql::Statements) -> Result<Cursor> {
    let session = lease.session()?;
    let prepared = session.prepare(statements.sql.as_bytes())?;
    if prepared.columns.is_empty() {
        bail!(WRONG_USAGE, "a cursor", "a statement without rows");
    }
    if prepared.parameters.len() != statements.parameters.len() {
        bail!(WRONG_ARGUMENTS, "EXECUTE");
    }
    let mut rows = Rows::new(&[]);
    let request = ExecuteRequest {
        statement_id: prepared.statement_id,
        parameters: &statements.parameters,
        attributes: &[],
        cursor: true,
    };
    session.execute(&request, &mut rows)?;
    if let Some(error) = rows.error {
        return Err(error);
    }
    let form = |column: &ColumnMeta| (column.ty.clone(), json::form_of(&column.ty));
    Ok(Cursor {
        statement_id: prepared.statement_id,
        columns: prepared.columns.iter().map(form).collect(),
        described: json::columns(&prepared.columns),
    })
}

/// How many rows a request wants.
fn wanted(call: &Call<'_>) -> std::result::Result<u32, Reply> {
    let given = call.request.parameter("rows").map(str::parse::<u32>);
    match given {
        None => Ok(ROWS_DEFAULT),
        Some(Ok(count @ 1..=ROWS_MAX)) => Ok(count),
        Some(_) => {
            let message = format!("rows is a number from 1 to {ROWS_MAX}");
            Err(Reply::failure(StatusCode::BAD_REQUEST, &message))
        }
    }
}

fn fetch(call: &Call<'_>, names: &Names) -> Reply {
    fetch_in(call, &names[0]).unwrap_or_else(|refusal| refusal)
}

fn fetch_in(call: &Call<'_>, id: &str) -> std::result::Result<Reply, Reply> {
    let count = wanted(call)?;
    let held = &call.gateway.held;
    let HeldSession { session, purpose } = held.take(&call.caller, Kind::Cursor, id)?;
    let mut lease = call.gateway.lease(session);
    let Purpose::Cursor(cursor) = purpose else {
        held.forget(id);
        return Err(Reply::sql_error(&Error::internal("a transaction as a cursor")));
    };
    let mut rows = Rows::new(&cursor.columns);
    let fetched = fetch_rows(&mut lease, cursor.statement_id, count, &mut rows);
    if let Err(error) = fetched {
        held.forget(id);
        return Err(Reply::sql_error(&error));
    }
    let Rows { out, count, is_last, .. } = rows;
    let mut body = format!("{{\"columns\":{},\"rows\":[", cursor.described).into_bytes();
    body.extend_from_slice(&out);
    body.extend_from_slice(format!("],\"row_count\":{count},\"done\":{is_last}}}").as_bytes());
    match lease.keep() {
        Ok(session) if !is_last => {
            held.put(id, HeldSession { session, purpose: Purpose::Cursor(cursor) });
        }
        Ok(_) | Err(_) => held.forget(id),
    }
    Ok(Reply::json(StatusCode::OK, body).with("cache-control", "no-store"))
}

/// Fetches some rows at a time, until there are enough or they are large.
fn fetch_rows(
    lease: &mut Lease<'_>,
    statement_id: u32,
    count: u32,
    rows: &mut Rows<'_>,
) -> Result<()> {
    while rows.count < count && !rows.is_last && rows.out.len() < BYTES_MAX {
        let step = (count - rows.count).min(256);
        lease.session()?.fetch(statement_id, step, rows)?;
        if let Some(error) = rows.error.take() {
            return Err(error);
        }
    }
    Ok(())
}

fn close(call: &Call<'_>, names: &Names) -> Reply {
    match call.gateway.held.take(&call.caller, Kind::Cursor, &names[0]) {
        Ok(held) => {
            call.gateway.held.forget(&names[0]);
            drop(held);
            Reply::empty()
        }
        Err(reply) => reply,
    }
}
