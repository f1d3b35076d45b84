//! One statement for many rows of parameters: all of them or none.

use errors::{Error, Result};
use plugin_api::ExecuteRequest;
use serde_json::json;
use types::Value;

use crate::gateway::Lease;
use crate::reply::{Reply, error_json, status_of};
use plugin_api::Answer;

const SAVEPOINT: &str = "`json_server rows`";

/// Runs `sql` once for each row, in the open transaction or in one of its own.
///
/// # Errors
/// The session is lost.
pub fn run(lease: &mut Lease<'_>, sql: &str, rows: &[Vec<Value>]) -> Result<Reply> {
    let started = sys::clock::monotonic();
    let is_inside = lease.session()?.state().in_transaction;
    let begin = match is_inside {
        true => format!("SAVEPOINT {SAVEPOINT}"),
        false => "START TRANSACTION".to_owned(),
    };
    lease.values(&begin, &[])?;
    match run_all(lease, sql, rows) {
        Ok((affected_rows, last_insert_id)) => {
            let end = match is_inside {
                true => format!("RELEASE SAVEPOINT {SAVEPOINT}"),
                false => "COMMIT".to_owned(),
            };
            lease.values(&end, &[])?;
            let took = sys::clock::monotonic().saturating_sub(started);
            let result = json!({
                "affected_rows": affected_rows,
                "last_insert_id": last_insert_id,
                "info": format!("Records: {}", rows.len()),
                "warnings": 0,
            });
            Ok(Reply::document(&json!({
                "results": [result],
                "warnings": [],
                "duration_us": took.as_micros() as u64,
                "connection_id": lease.connection_id(),
            })))
        }
        Err((row, error)) => {
            // A deadlock has rolled back everything, the savepoint too.
            let undo = match is_inside {
                true => format!("ROLLBACK TO SAVEPOINT {SAVEPOINT}"),
                false => "ROLLBACK".to_owned(),
            };
            let undone = lease.values(&undo, &[]);
            drop(undone);
            let mut described = error_json(&error);
            described["row"] = row.into();
            let body = json!({ "error": described, "results": [] });
            Ok(Reply::json(status_of(error.code()), body.to_string().into_bytes()))
        }
    }
}

/// The sum of affected rows and the first generated id; or the number of the row that failed, from 0, and its error.
fn run_all(
    lease: &mut Lease<'_>,
    sql: &str,
    rows: &[Vec<Value>],
) -> std::result::Result<(u64, u64), (usize, Error)> {
    let at = |row: usize| move |error: Error| (row, error);
    let session = lease.session().map_err(at(0))?;
    let prepared = session.prepare(sql.as_bytes()).map_err(at(0))?;
    let statement_id = prepared.statement_id;
    let (mut affected_rows, mut last_insert_id) = (0, 0);
    let mut failed = None;
    for (number, row) in rows.iter().enumerate() {
        if row.len() != prepared.parameters.len() {
            failed = Some((number, errors::err!(WRONG_VALUE_COUNT_ON_ROW, number + 1)));
            break;
        }
        let request =
            ExecuteRequest { statement_id, parameters: row, attributes: &[], cursor: false };
        let mut answer = Answer::new(0);
        let ended = session.execute(&request, &mut answer).and_then(|_| answer.finish());
        match ended {
            Ok(answer) => {
                affected_rows += answer.affected_rows;
                if last_insert_id == 0 {
                    last_insert_id = answer.last_insert_id;
                }
            }
            Err(error) => {
                failed = Some((number, error));
                break;
            }
        }
    }
    session.close_statement(statement_id);
    match failed {
        Some(failure) => Err(failure),
        None => Ok((affected_rows, last_insert_id)),
    }
}
