//! INSERT, REPLACE, UPDATE and DELETE.

mod delete;
mod elements;
mod foreign;
mod history;
mod insert;
mod overlaps;
mod point;
mod portion;
mod row;
mod system_partitions;
mod table;
mod target_rows;
mod trigger;
mod twins;
mod update;
mod watched;

use engine_api::{EngineError, EngineIndex, Savepoint};
use errors::{Condition, Error, ErrorCode, Level, Result};

use rows::convert::STRICT_WARNINGS;

use crate::run::Run;

pub(crate) use delete::DeleteProgram;
pub(crate) use insert::InsertProgram;
pub(crate) use table::WriteTable;
pub(crate) use update::UpdateProgram;

/// Runs a write, perhaps of many rows; on an error all of its changes are undone. After a deadlock the engine has undone the whole
/// transaction.
pub(crate) fn atomically<'r, T>(
    engines: &[EngineIndex],
    run: &mut Run<'r>,
    write: impl FnOnce(&mut Run<'r>) -> Result<T>,
) -> Result<T> {
    let Some((first, others)) = engines.split_first() else { return write(run) };
    let first = (*first, run.transaction(*first)?.savepoint());
    let mut savepoints: Vec<(EngineIndex, Savepoint)> = Vec::new();
    for engine in others {
        savepoints.push((*engine, run.transaction(*engine)?.savepoint()));
    }
    let mark = watched::mark(run);
    let outcome = together(engines, run, write);
    let outcome = match strict_failure(run) {
        // The first fault is the statement's error.
        Some(error) if !is_deadlock(&outcome) => Err(error),
        _ => outcome,
    };
    if outcome.is_err() && !is_deadlock(&outcome) {
        for (engine, savepoint) in std::iter::once(first).chain(savepoints) {
            let undone = run.transaction(engine)?.rollback_to(savepoint);
            run.engine(undone)?;
        }
        watched::undo_to(mark, run);
    } else if !run.filled.is_empty() {
        system_partitions::warn(run)?;
    }
    outcome
}

/// Runs a write whose engines may defer some of their work to its end.
fn together<'r, T>(
    engines: &[EngineIndex],
    run: &mut Run<'r>,
    write: impl FnOnce(&mut Run<'r>) -> Result<T>,
) -> Result<T> {
    if run.host.has_programs() || run.env.settings.watches_rows {
        // Other statements run in between, or rows are read before they are written.
        return write(run);
    }
    for engine in engines {
        let begun = run.transaction(*engine)?.expect_changes();
        run.engine(begun)?;
    }
    let written = write(run)?;
    for engine in engines {
        let ended = run.transaction(*engine)?.changes_are_over();
        run.engine(ended)?;
    }
    Ok(written)
}

fn is_deadlock<T>(outcome: &Result<T>) -> bool {
    outcome.as_ref().is_err_and(Error::ends_transaction)
}

/// The first such warning, removed from the diagnostics area.
fn strict_failure(run: &mut Run<'_>) -> Option<Error> {
    if !run.is_strict_write || !run.function.sql_mode.is_strict() {
        return None;
    }
    let is_failure = |condition: &&Condition| {
        condition.level == Level::Warning && STRICT_WARNINGS.contains(&condition.code)
    };
    let diagnostics = &mut *run.function.diagnostics;
    let found = diagnostics.conditions().iter().find(is_failure)?.clone();
    let others: Vec<Condition> =
        diagnostics.conditions().iter().filter(|other| **other != found).cloned().collect();
    diagnostics.clear();
    others.into_iter().for_each(|condition| diagnostics.push(condition));
    Some(Error::with_sqlstate(found.code, found.sqlstate, found.message))
}

/// The result for a row that an engine may refuse.
pub(crate) enum Written {
    Done,
    Duplicate { index: engine_api::IndexId, locator: Vec<u8> },
}

/// Distinguishes duplicate keys from other refusals.
pub(crate) fn written(outcome: engine_api::EngineResult<()>, run: &Run<'_>) -> Result<Written> {
    match outcome {
        Ok(()) => Ok(Written::Done),
        Err(EngineError::DuplicateKey { index, locator }) => {
            Ok(Written::Duplicate { index, locator })
        }
        Err(error) => Err(run.engine_error(error)),
    }
}

/// IGNORE: whether the error may become a warning and the row be skipped; raises the warning.
pub(crate) fn ignored(error: &Error, run: &mut Run<'_>) -> bool {
    let code = error.code();
    let ignorable = code == ErrorCode::DUP_ENTRY
        || code == ErrorCode::NO_REFERENCED_ROW_2
        || code == ErrorCode::ROW_IS_REFERENCED_2
        || code == ErrorCode::CHECK_CONSTRAINT_VIOLATED
        || code == ErrorCode::NO_PARTITION_FOR_GIVEN_VALUE
        || code == ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET
        || code == ErrorCode::VIEW_CHECK_FAILED;
    let ignorable = ignorable && !run.program_failed;
    if ignorable {
        run.function.diagnostics.push_error(Level::Warning, error);
    }
    ignorable
}
