//! Changes through JSON duality views: from a document to ordinary changes of rows of the tables below.
//!
//! A document is read against the view's objects (`document`): what its members are, what the links between objects say of their
//! columns, which objects are the same row. A change
//! (`insert`, `update`, `delete`) then makes one statement for each row, parents and
//! children in the order that their links ask for, and gives it to the [`Host`], which runs it within the statement of its client.
//!
//! Knows no session: whoever implements `Host` brings privileges, locks and transactions. If a statement fails, the host undoes all.

mod change;
mod delete;
mod document;
mod insert;
mod literal;
mod request;
mod shape;
mod statements;
#[cfg(test)]
mod tests;
mod update;

use errors::{Error, ErrorCode, Result, bail};
use types::json::{self, JsonRef};
use types::{JsonValue, Value};

use delete::delete;
use insert::insert;
use update::update;

pub use request::{Done, Kind, Request, changed_name};
pub use shape::Shape;
pub use statements::RowStatement;

/// What messages call the conversion of a value to a document.
const CONVERSION: &str = "get_json_wrapper";
/// Bytes in memory for a byte of a document: `{"id":1},` becomes 300.
const BYTES_FOR_ONE: usize = 32;

/// Runs the statements of a change.
pub trait Host {
    /// The first row of a query.
    ///
    /// # Errors
    /// The query's.
    fn read(&mut self, query: &RowStatement) -> Result<Option<Vec<Value>>>;

    /// Runs an INSERT, UPDATE or DELETE of a base table.
    ///
    /// # Errors
    /// The statement's.
    fn write(&mut self, statement: &RowStatement) -> Result<Written>;
}

/// What a statement has done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Affected rows.
    pub affected: u64,
    /// The value that AUTO_INCREMENT gave the row.
    pub generated: Option<u64>,
}

/// Bytes that documents take while a change compares them, roughly: a small object of few bytes has a path, cells and a place among
/// the rows.
#[must_use]
pub fn bytes_of(rows: &[Vec<Value>]) -> usize {
    rows.iter().flatten().map(|value| value.heap_bytes() * BYTES_FOR_ONE).sum()
}

/// The document that a value is.
///
/// # Errors
/// 3141, 3146.
fn document_of(value: &Value) -> Result<JsonValue> {
    match value {
        Value::Json(document) => Ok(JsonValue::from_ref(JsonRef::new(document))),
        Value::Bytes(text) => json::parse(text).map_err(|error| {
            let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
            Error::with(code, &[&1, &CONVERSION, &error.message, &error.position])
        }),
        Value::Null
        | Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_) => bail!(INVALID_TYPE_FOR_JSON, 1, CONVERSION),
    }
}
