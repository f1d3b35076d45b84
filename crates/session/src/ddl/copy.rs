//! ALTER TABLE by copy: a table of the new definition is filled from the old one by an INSERT ... SELECT, and replaces it.

use std::sync::Arc;

use catalog::{MetadataGuard, Table};
use definitions::alter::copy::{copy_statement, fills_dates, was_auto_increment, word_copy_error};
use engine_api::{CommitHandle, IsolationLevel, Progress};
use errors::Result;
use exec::TransactionSource;
use plugin_api::HistorySettings;
use syntax::ast;
use types::SqlMode;

use super::alter::publish_altered;
use super::create::{draw_ids, run_on_new_table, set_next_auto_increment};
use super::online_copy::{copy_beside_others, rows_of};
use crate::measured::{begin_stage, end_stage};
use crate::session::Session;
use programs::{Origin, Running};

/// The rows and values that a copy takes over.
pub(crate) struct Copied<'a> {
    /// Each new column's position in the old table.
    pub origins: &'a [Option<usize>],
    /// AUTO_INCREMENT as the statement gives it.
    pub next: Option<u64>,
    /// Partitions whose rows are copied; `None`: all.
    pub partitions: Option<&'a [ast::Ident]>,
    /// Dates that the SQL mode forbids are errors even where they do not change.
    pub checks_dates: bool,
    /// Others may use the table in the meantime.
    pub online: bool,
}

/// Copies rows of `old` into a table defined as `new`.
pub(crate) fn alter_by_copy(
    session: &mut Session,
    old: &Arc<Table>,
    mut new: Table,
    what: &Copied<'_>,
    guard: &mut MetadataGuard,
) -> Result<(u64, Option<CommitHandle>)> {
    let Copied { origins, next, partitions, checks_dates, online } = *what;
    draw_ids(session, &mut new)?;
    for column in &mut new.definition.columns {
        column.instant_default = None;
    }
    let engine = new.engine.clone();
    let cancel = session.shared.cancel.clone();
    // Commits of other sessions before the lock was granted must be in the copy's snapshot.
    sys::blocking::blocking(|| session.server.catalog.wait_for_earlier_commits(&cancel))?;
    // Of the rows that others change meanwhile all would be taken.
    let moves = old.engine != new.engine || definitions::history::changes(old, &new);
    let txn = session.transactions.transaction(&engine)?;
    let online =
        online && !moves && txn.begin_noting(old.id).map_err(|error| error.into_error(&cancel))?;
    for part in new.engine_tables() {
        txn.create_table(&part).map_err(|error| error.into_error(&cancel))?;
    }
    // While it is filled the copy has a name that no statement can contain, and its foreign keys to itself refer to the old table.
    let mut copy = new.clone();
    let (own_name, old_name) = ((&*new.schema, &*new.name), (&old.schema, &old.name));
    copy.redirect_foreign_keys(own_name, old_name);
    copy.name = format!("#copy-{}", new.id.0).into();
    copy.options.retain(|(name, _)| name != catalog::DISCARDED_OPTION);
    let copy = Arc::new(copy);
    let mode = session.settings.sql_mode;
    if !checks_dates && !fills_dates(&copy, origins) {
        let kept = mode.0 & !(SqlMode::NO_ZERO_DATE.0 | SqlMode::NO_ZERO_IN_DATE.0);
        session.settings.sql_mode = SqlMode(kept | SqlMode::ALLOW_INVALID_DATES.0);
    }
    let copied = sys::blocking::blocking(|| match online {
        true => copy_beside_others(session, old, &copy, origins, guard),
        false => {
            let work_expected = rows_of(session, old);
            begin_stage(session, "copy to tmp table");
            let copied = copy_rows(session, old, &copy, origins, partitions, &[]);
            let work_done = copied.as_ref().copied().unwrap_or(0);
            end_stage(session, Some(Progress { work_done, work_expected }));
            copied
        }
    });
    session.settings.sql_mode = mode;
    let copied = match copied {
        Ok(count) => count,
        Err(error) => {
            // The copy is dropped by the rollback of the transaction that created it.
            let _ = session.transactions.undo_definition();
            return Err(word_copy_error(&error, &copy, old));
        }
    };
    let counter = copied_counter(session, old, &new)?;
    let drops_late = drops_late(session, old);
    if !drops_late {
        drop_parts(session, old)?;
    }
    let new = Arc::new(new);
    let commit = publish_altered(session, old, new.clone())?;
    if drops_late {
        drop_parts(session, old)?;
        session.transactions.commit()?;
    }
    set_next_auto_increment(session, &new, next.or(counter))?;
    Ok((copied, Some(commit)))
}

/// Whether a table that a copy replaces is dropped in a transaction of its own, once the dictionary no longer names it: its engine does not commit together with
/// the dictionary. A shared table goes in the transaction that keeps other servers from it.
pub(crate) fn drops_late(session: &Session, old: &Table) -> bool {
    let is_default = *old.engine == *session.server.default_engine.name();
    let is_own = !is_default && !old.id.is_shared();
    !old.temporary && is_own && !session.transactions.is_defining()
}

/// Drops a table that a copy has replaced.
pub(crate) fn drop_parts(session: &mut Session, old: &Table) -> Result<()> {
    let txn = session.transactions.transaction(&old.engine)?;
    for part in old.engine_tables() {
        let dropped = txn.drop_table(part.id);
        dropped.map_err(|error| error.into_error(&session.shared.cancel))?;
    }
    Ok(())
}

/// The AUTO_INCREMENT counter that the copy continues with.
fn copied_counter(session: &Session, old: &Table, new: &Table) -> Result<Option<u64>> {
    let both =
        [old, new].iter().all(|table| table.columns.iter().any(|column| column.auto_increment));
    if !both {
        return Ok(None);
    }
    let engine = session.transactions.engine(&old.engine)?;
    let next = engine.auto_increment_next(old.id);
    next.map(Some).map_err(|error| error.into_error(&session.shared.cancel))
}

/// Inserts the rows of `old`, or of some of its partitions, into `copy`, whose name only this statement knows. `into`
/// are the partitions that may take them, when not all do.
pub(crate) fn copy_rows(
    session: &mut Session,
    old: &Arc<Table>,
    copy: &Arc<Table>,
    origins: &[Option<usize>],
    partitions: Option<&[ast::Ident]>,
    into: &[ast::Ident],
) -> Result<u64> {
    if partitions.is_some_and(<[_]>::is_empty) {
        return Ok(0);
    }
    let statement = copy_statement(old, copy, origins, partitions, into)?;
    as_copy(session, old, copy, origins, |session| {
        run_on_new_table(session, copy, &statement, &RUNNING).map(|outcome| outcome.affected)
    })
}

/// A statement without a text.
pub(crate) const RUNNING: Running<'static> =
    Running { source: b"", parameters: &[], origin: Origin::Text, kept: None };

/// Runs `body` with the settings and privileges of a copy.
pub(crate) fn as_copy<T>(
    session: &mut Session,
    old: &Table,
    copy: &Table,
    origins: &[Option<usize>],
    body: impl FnOnce(&mut Session) -> Result<T>,
) -> Result<T> {
    // A stored 0 in an AUTO_INCREMENT column stays 0; in a column that becomes AUTO_INCREMENT it requests a value.
    let mode = session.settings.sql_mode;
    if was_auto_increment(old, copy, origins) {
        session.settings.sql_mode = SqlMode(mode.0 | SqlMode::NO_AUTO_VALUE_ON_ZERO.0);
    }
    let privileges = std::mem::replace(
        &mut session.privileges,
        Arc::new(catalog::EffectivePrivileges::everything()),
    );
    let limit = session.settings.sql_select_limit.take();
    // Copied rows keep their times.
    let history = std::mem::replace(
        &mut session.settings.history,
        HistorySettings { gives_row_times: true, ..HistorySettings::default() },
    );
    // No other session can change the old table now: its rows need no locks, which reads of an INSERT take above this level.
    let own_level = &mut session.transactions.characteristics.isolation;
    let isolation = std::mem::replace(own_level, IsolationLevel::ReadCommitted);
    let result = body(session);
    session.transactions.characteristics.isolation = isolation;
    session.settings.history = history;
    session.settings.sql_select_limit = limit;
    session.privileges = privileges;
    session.settings.sql_mode = mode;
    result
}
