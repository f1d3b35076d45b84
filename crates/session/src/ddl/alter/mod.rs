//! ALTER TABLE: the actions edit a draft, the draft becomes the new definition (`definitions::alter`), which is then carried out (`carry_out`).

mod carry_out;
mod exchange;
mod in_place;
mod partition_rows;

use ::accounts::PrivilegeChecks;
use catalog::PrivilegeSet;
use definitions::alter::edit;
use errors::{Error, ErrorCode, Level, Result};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{AlterAction, AlterTable, PartitionAction};

use self::carry_out::carry_out;
use self::exchange::exchange_partition;
use super::definer::Definer;
use crate::session::Session;
use programs::Running;

pub(super) use self::carry_out::decide;
pub(crate) use self::carry_out::publish_altered;

/// ALTER TABLE.
pub(crate) fn alter_table(
    session: &mut Session,
    alter: &AlterTable,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    alter_with(session, alter, PrivilegeSet::ALTER, running, sink)
}

/// 1235 for what commits by itself and so cannot be part of a transaction (`transactional_ddl`).
fn refuse_within(session: &Session, alter: &AlterTable) -> Result<()> {
    let is_own = |action: &PartitionAction| {
        use PartitionAction::{Add, Drop, Truncate};
        matches!(action, Add { .. } | Drop { .. } | Truncate(_))
    };
    let commits = alter
        .actions
        .iter()
        .any(|action| matches!(action, AlterAction::Partition(partitions) if !is_own(partitions)));
    if commits {
        return Err(Error::not_supported("this change of partitions within a transaction"));
    }
    let (schema, name) = session.qualify(&alter.name)?;
    match session.view().temporary_table(&schema, &name) {
        Some(_) => {
            Err(Error::not_supported("ALTER TABLE of a temporary table within a transaction"))
        }
        None => Ok(()),
    }
}

/// ALTER TABLE, CREATE INDEX and DROP INDEX, which need different privileges.
pub(crate) fn alter_with(
    session: &mut Session,
    alter: &AlterTable,
    needed: PrivilegeSet,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if session.transactions.is_defining() {
        refuse_within(session, alter)?;
    }
    if let [AlterAction::Partition(action)] = &alter.actions[..]
        && let PartitionAction::Exchange { name, table, .. } = &**action
        && alter.partitioning.is_none()
    {
        return exchange_partition(session, &alter.name, name, table, sink);
    }
    if let [AlterAction::Partition(action)] = &alter.actions[..]
        && let Some(done) =
            crate::maintenance::maintain_partitions(session, &alter.name, action, sink)
    {
        return done;
    }
    if let Some(partitions) = transport::imported(alter) {
        return crate::transport::import_rows(session, &alter.name, partitions, sink);
    }
    let (schema, name) = session.qualify(&alter.name)?;
    let found = session.find_table(&schema, &name);
    let table = match found {
        Err(error) if alter.if_exists && error.code() == ErrorCode::NO_SUCH_TABLE => {
            session.working.push_error(Level::Note, &error);
            return session.send_ok(sink, OkInfo::default());
        }
        found => found?,
    };
    if !table.temporary {
        session.require_on_table(&schema, &name, needed)?;
        crate::ddl::check_writable_in(session, &schema)?;
    }
    let ids = if table.temporary { Vec::new() } else { vec![table.id] };
    let mut guard = session.lock_for_ddl(&ids)?;
    // Under the lock the definition does not change.
    let table = session.find_table(&schema, &name)?;
    let (draft, request) = edit(&mut Definer::new(session, running), &table, alter)?;
    let (affected_rows, commit) = carry_out(session, &table, draft, &request, running, &mut guard)?;
    drop(guard);
    // Renames report no rows, and TRUNCATE does not count them.
    let is_silent = |action: &AlterAction| match action {
        AlterAction::RenameTable(_) | AlterAction::DiscardTablespace => true,
        AlterAction::Partition(action) => {
            matches!(**action, PartitionAction::Truncate(_) | PartitionAction::Discard(_))
        }
        _ => false,
    };
    let info = if !alter.actions.is_empty() && alter.actions.iter().all(is_silent) {
        String::new()
    } else {
        let warnings = session.working.warning_count();
        format!("Records: {affected_rows}  Duplicates: 0  Warnings: {warnings}")
    };
    session.services.row_count = affected_rows as i64;
    session.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
}
