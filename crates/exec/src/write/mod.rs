//! INSERT, REPLACE, UPDATE and DELETE.

mod delete;
mod foreign;
mod insert;
mod row;
mod table;
mod update;

use std::sync::Arc;

use engine_api::{EngineError, Savepoint};
use errors::{Error, ErrorCode, Level, Result};

use crate::run::Run;

pub(crate) use delete::DeleteProgram;
pub(crate) use insert::InsertProgram;
pub(crate) use update::UpdateProgram;

/// Runs a write; on an error all of its changes are undone. After a deadlock the engine has undone the whole transaction.
pub(crate) fn atomically<'r, T>(
    engines: &[Arc<str>],
    run: &mut Run<'r>,
    write: impl FnOnce(&mut Run<'r>) -> Result<T>,
) -> Result<T> {
    let mut savepoints: Vec<(&str, Savepoint)> = Vec::with_capacity(engines.len());
    for engine in engines {
        savepoints.push((engine, run.transaction(engine)?.savepoint()));
    }
    let outcome = write(run);
    if let Err(error) = &outcome
        && error.code() != ErrorCode::LOCK_DEADLOCK
    {
        for (engine, savepoint) in savepoints {
            let undone = run.transaction(engine)?.rollback_to(savepoint);
            run.engine(undone)?;
        }
    }
    outcome
}

/// What became of a row that an engine may refuse.
pub(crate) enum Written {
    Done,
    Duplicate { index: engine_api::IndexId, locator: Vec<u8> },
}

/// Sorts out duplicate keys from other refusals.
pub(crate) fn written(outcome: engine_api::EngineResult<()>, run: &Run<'_>) -> Result<Written> {
    match outcome {
        Ok(()) => Ok(Written::Done),
        Err(EngineError::DuplicateKey { index, locator }) => {
            Ok(Written::Duplicate { index, locator })
        }
        Err(error) => Err(run.engine_error(error)),
    }
}

/// IGNORE: whether the error may become a warning and the row be left out; raises the warning.
pub(crate) fn ignored(error: &Error, run: &mut Run<'_>) -> bool {
    let code = error.code();
    let ignorable = code == ErrorCode::DUP_ENTRY
        || code == ErrorCode::NO_REFERENCED_ROW_2
        || code == ErrorCode::ROW_IS_REFERENCED_2
        || code == ErrorCode::CHECK_CONSTRAINT_VIOLATED;
    if ignorable {
        run.function.diagnostics.push_error(Level::Warning, error);
    }
    ignorable
}
