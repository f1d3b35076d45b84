//! The array of a multi-valued index: the elements of a document, converted to their type.

use errors::{Error, ErrorCode, Result};
use plan::WrittenElements;
use types::elements::{ElementFault, array_of};
use types::json::{JsonRef, parse};
use types::{SqlBytes, StoreMode, Value};

use super::table::StoreCode;
use crate::run::Run;

/// As errors about its argument call the cast.
const CAST: &str = "cast_as_array";

/// The array of the document that `code` computes for the row in the registers; NULL if there is none.
///
/// # Errors
/// An element that the type does not hold, whatever the SQL mode: an entry cannot differ from the document's element.
pub(crate) fn array(
    code: &StoreCode,
    elements: &WrittenElements,
    row: u64,
    mode: StoreMode,
    run: &mut Run<'_>,
) -> Result<Value> {
    let value = code.code.eval(run)?;
    let document: SqlBytes = match value {
        Value::Null => return Ok(Value::Null),
        Value::Json(document) => document,
        Value::Bytes(_) if code.from.is_binary() => {
            return Err(Error::with(ErrorCode::INVALID_JSON_CHARSET, &[&"binary"]));
        }
        Value::Bytes(text) => {
            let parsed = parse(&text).map_err(|error| {
                let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
                Error::with(code, &[&1, &CAST, &error.message, &error.position])
            });
            parsed?.to_binary()
        }
        Value::Int(_)
        | Value::UInt(_)
        | Value::Double(_)
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_) => {
            return Err(Error::with(ErrorCode::INVALID_TYPE_FOR_JSON, &[&1, &CAST]));
        }
    };
    let made = array_of(JsonRef::new(&document), &elements.ty, run.function.sql_mode);
    made.map(|array| array.to_value()).map_err(|fault| error_of(fault, elements, row, mode))
}

#[cold]
fn error_of(fault: ElementFault, elements: &WrittenElements, row: u64, mode: StoreMode) -> Error {
    let index = &elements.index;
    let of_row = |code| Error::with(code, &[index, &row]);
    let lossy = |code| match mode {
        StoreMode::Strict => code,
        StoreMode::Lenient => of_row(ErrorCode::WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX),
    };
    match fault {
        ElementFault::Refused(kind) => {
            Error::not_supported(format!("CAST-ing JSON {} type to array", kind.name()))
        }
        ElementFault::Nested => Error::with(ErrorCode::JSON_CANT_STORE_IN_SCALAR_PART, &[index]),
        ElementFault::Invalid => {
            Error::with(ErrorCode::INVALID_JSON_VALUE_FOR_FUNC_INDEX, &[index])
        }
        ElementFault::NoInteger => {
            Error::with(ErrorCode::JSON_VALUE_OUT_OF_RANGE_FOR_FUNC_INDEX, &[index])
        }
        ElementFault::OutOfRange => of_row(ErrorCode::WARN_DATA_OUT_OF_RANGE_FUNCTIONAL_INDEX),
        ElementFault::Truncated => lossy(of_row(ErrorCode::WARN_DATA_TRUNCATED_FUNCTIONAL_INDEX)),
        ElementFault::TooLong => {
            lossy(Error::with(ErrorCode::FUNCTIONAL_INDEX_DATA_IS_TOO_LONG, &[index]))
        }
    }
}
