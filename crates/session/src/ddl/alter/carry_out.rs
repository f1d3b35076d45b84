//! Carries out an altered definition, in place or by a copy; then publishes it.

use std::sync::Arc;

use catalog::{Edit, MetadataGuard, Table};
use definitions::Draft;
use definitions::alter::{
    Algorithm, AlgorithmClause, Altered, Choice, Facts, IndexChanges, Request, choose, complete,
    not_instant,
};
use engine_api::{CommitHandle, EngineError};
use errors::{ErrorCode, Result, bail};
use exec::TransactionSource;

use super::in_place::{alter_in_place, next_beyond_rows, shown_entry};
use super::partition_rows::{empty_partitions, most_rows_go};
use crate::ddl::copy::{Copied, alter_by_copy};
use crate::ddl::create::set_auto_increment;
use crate::ddl::definer::Definer;
use crate::session::Session;
use programs::Running;

/// Carries out the new definition. Returns the number of rows to report.
pub(super) fn carry_out(
    session: &mut Session,
    table: &Arc<Table>,
    draft: Draft,
    request: &Request,
    running: &Running<'_>,
    guard: &mut MetadataGuard,
) -> Result<(u64, Option<CommitHandle>)> {
    let (mut altered, choice) = decide(session, table, draft, request, running)?;
    let commit = match choice.algorithm {
        Algorithm::Copy => None,
        Algorithm::InPlace(changes) => {
            change_in_place(session, table, &altered, &changes, request, guard)?
        }
    };
    if let Some(commit) = commit {
        return Ok((0, Some(commit)));
    }
    altered.drop_vacant();
    // Where the reference rebuilds in place it checks no value.
    let copied = Copied {
        origins: &altered.origins,
        next: altered.next,
        partitions: request.kept.as_deref(),
        checks_dates: choice.counts_rows,
        online: choice.copies_online,
    };
    let (rows, commit) = alter_by_copy(session, table, altered.table, &copied, guard)?;
    Ok((if choice.counts_rows { rows } else { 0 }, commit))
}

/// The new definition, and how it is carried out.
pub(crate) fn decide(
    session: &mut Session,
    table: &Arc<Table>,
    draft: Draft,
    request: &Request,
    running: &Running<'_>,
) -> Result<(Altered, Choice)> {
    let definer = &mut Definer::new(session, running);
    let mut altered = complete(definer, table, draft, request.rename.as_ref())?;
    let facts = Facts {
        most_rows_go: most_rows_go(session, table, &request.gone)?,
        checks_foreign_keys: session.settings.foreign_key_checks,
        // Within a transaction the table stays locked until its end, so there is nobody to note for.
        engine_notes_rows: session.transactions.engine(&table.engine)?.notes_rows()
            && !session.transactions.takes_definitions(&session.settings),
    };
    let choice = choose(table, &mut altered, request, facts)?;
    Ok((altered, choice))
}

/// Changes the table in place. `None`: the engine cannot, and nothing has changed.
fn change_in_place(
    session: &mut Session,
    table: &Arc<Table>,
    altered: &Altered,
    changes: &IndexChanges,
    request: &Request,
    guard: &mut MetadataGuard,
) -> Result<Option<CommitHandle>> {
    let new = &altered.table;
    let emptied = empty_partitions(session, table, &request.gone);
    match emptied.and_then(|()| alter_in_place(session, table, new, changes, guard)) {
        Ok(()) => {}
        Err(EngineError::Other(error)) if error.code() == ErrorCode::NOT_SUPPORTED_YET => {
            session.transactions.undo_definition()?;
            if request.algorithm == AlgorithmClause::Instant {
                return Err(not_instant());
            }
            return Ok(None);
        }
        Err(EngineError::DuplicateKey { index, locator }) => {
            let index = new.indexes.iter().find(|known| known.id == index);
            let name = index.map_or("", |index| &index.name);
            let key = format!("{}.{name}", table.name);
            let entry = index.and_then(|index| shown_entry(session, new, index, &locator));
            session.transactions.undo_definition()?;
            bail!(DUP_ENTRY, entry.unwrap_or_default(), key);
        }
        Err(error) => {
            // While the table is still locked: incomplete changes are rolled back first.
            session.transactions.undo_definition()?;
            return Err(error.into_error(&session.shared.cancel));
        }
    }
    let new = Arc::new(new.clone());
    let counter = match altered.next.filter(|next| *next > 0) {
        Some(next) => next_beyond_rows(session, table, &new, next)?,
        None => None,
    };
    let commit = publish_altered(session, table, new.clone())?;
    if let Some(counter) = counter {
        set_auto_increment(session, &new, counter)?;
    }
    Ok(Some(commit))
}

/// Makes an altered table the current one.
pub(crate) fn publish_altered(
    session: &mut Session,
    old: &Table,
    new: Arc<Table>,
) -> Result<CommitHandle> {
    if old.temporary {
        let tables = Arc::make_mut(&mut session.temporary);
        tables.remove(&(old.schema.clone(), old.name.clone()));
        tables.insert((new.schema.clone(), new.name.clone()), new);
        return session.transactions.commit();
    }
    let mut edits = vec![Edit::ReplaceTable { old: old.id, new: new.clone() }];
    edits.extend(child_edits(session, old, &new));
    session.commit_definitions(&edits)
}

/// Tables whose foreign keys follow renamed tables and columns of their parent.
fn child_edits(session: &Session, old: &Table, new: &Table) -> Vec<Edit> {
    let snapshot = session.snapshot();
    let mut edits = Vec::new();
    for child in snapshot.children_of(&old.schema, &old.name) {
        if child.id == old.id {
            continue;
        }
        let mut changed = Table::clone(&child);
        for key in &mut changed.foreign_keys {
            if key.referenced_schema != old.schema || key.referenced_table != old.name {
                continue;
            }
            key.referenced_schema = new.schema.clone();
            key.referenced_table = new.name.clone();
            for column in &mut key.referenced_columns {
                let place = old.column(column).and_then(|at| old.columns[at].stored);
                let renamed = place.and_then(|place| {
                    new.columns.iter().find(|now| now.stored == Some(place) && !now.is_vacant())
                });
                if new.column(column).is_none()
                    && let Some(renamed) = renamed
                {
                    *column = renamed.name.clone();
                }
            }
        }
        if changed.foreign_keys != child.foreign_keys {
            edits.push(Edit::ReplaceTable { old: child.id, new: Arc::new(changed) });
        }
    }
    edits
}
