//! EXCHANGE PARTITION: the rows of a partition and those of a table that is defined like it change places.
//!
//! A partition is not a separate engine table, so rows move: the partition's are copied into a table that takes the other's place, and the
//! other's are inserted where they were, all in one transaction. Each row is assigned to its partition again on its way, so WITHOUT
//! VALIDATION too returns error 1737 for one that belongs elsewhere: no condition on the partition column would find it.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Column, Partition, PrivilegeSet, Table, same_name};
use definitions::exchange::check_alike;
use engine_api::CommitHandle;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{Ident, ObjectName};
use types::SqlMode;

use super::partition_rows::empty_partitions;
use super::publish_altered;
use crate::ddl::copy::copy_rows;
use crate::ddl::create::{draw_ids, set_next_auto_increment};
use crate::session::Session;

/// The privileges that the statement needs on both tables.
const NEEDED: [PrivilegeSet; 4] =
    [PrivilegeSet::INSERT, PrivilegeSet::CREATE, PrivilegeSet::DROP, PrivilegeSet::ALTER];

/// `ALTER TABLE table EXCHANGE PARTITION partition WITH TABLE other`.
pub(super) fn exchange_partition(
    session: &mut Session,
    table: &ObjectName,
    partition: &Ident,
    other: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let names = [session.qualify(table)?, session.qualify(other)?];
    for (schema, name) in &names {
        require_for_exchange(session, schema, name)?;
        crate::ddl::check_schema_writable(session, schema)?;
    }
    let (table, other) = exchanged(session, &names)?;
    session.check_writable()?;
    let guard = session.lock_for_ddl(&[table.id, other.id])?;
    // Under the locks the definitions do not change.
    let (table, other) = exchanged(session, &names)?;
    let (definition, number) = leaf(&table, partition)?;
    check_alike(&table, definition, &other)?;
    let mode = session.settings.sql_mode;
    // The values are in a table already, even if the SQL mode forbids them now.
    let kept = mode.0 & !(SqlMode::NO_ZERO_DATE.0 | SqlMode::NO_ZERO_IN_DATE.0);
    session.settings.sql_mode = SqlMode(kept | SqlMode::ALLOW_INVALID_DATES.0);
    let exchanged = exchange_rows(session, &table, (partition, number), &other);
    session.settings.sql_mode = mode;
    let commit = match exchanged {
        Ok(commit) => commit,
        Err(error) => {
            // While the tables are still locked: incomplete changes are rolled back first.
            session.transactions.undo_definition()?;
            return Err(error);
        }
    };
    drop(guard);
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
}

/// 1142 with all privileges that are missing.
fn require_for_exchange(session: &Session, schema: &str, name: &str) -> Result<()> {
    if session.view().temporary_table(schema, name).is_some() {
        return Ok(());
    }
    let is_missing =
        |needed: &PrivilegeSet| !session.privileges.allows_table(schema, name, *needed);
    let missing: Vec<&str> =
        NEEDED.into_iter().filter(is_missing).flat_map(PrivilegeSet::names).collect();
    if missing.is_empty() || catalog::system_schema(schema).is_some() {
        return session.require_on_table(schema, name, PrivilegeSet::ALTER);
    }
    let host = session.shown_host(&session.account);
    Err(err!(TABLEACCESS_DENIED_ERROR, missing.join(", "), session.account.user, host, name))
}

/// Both tables, when they are of the kinds that can exchange rows.
fn exchanged(
    session: &Session,
    names: &[(Arc<str>, Arc<str>); 2],
) -> Result<(Arc<Table>, Arc<Table>)> {
    let find = |(schema, name): &(Arc<str>, Arc<str>)| {
        session.find_table(schema, name).map_err(|error| match error.code() {
            ErrorCode::WRONG_OBJECT => err!(CHECK_NO_SUCH_TABLE),
            _ => error,
        })
    };
    let table = find(&names[0])?;
    if names[0] == names[1] {
        bail!(NONUNIQ_TABLE, table.name);
    }
    let other = find(&names[1])?;
    if table.partitioning.is_none() {
        bail!(PARTITION_MGMT_ON_NONPARTITIONED);
    }
    if other.temporary {
        bail!(PARTITION_EXCHANGE_TEMP_TABLE, other.name);
    }
    if other.partitioning.is_some() {
        bail!(PARTITION_EXCHANGE_PART_TABLE, other.name);
    }
    let catalog = session.snapshot();
    let is_parent = catalog.children_of(&other.schema, &other.name).next().is_some();
    if is_parent || !other.foreign_keys.is_empty() {
        bail!(PARTITION_EXCHANGE_FOREIGN_KEY, other.name);
    }
    Ok((table, other))
}

/// Moves the rows and publishes the table that replaces `other`.
fn exchange_rows(
    session: &mut Session,
    table: &Arc<Table>,
    (name, number): (&Ident, u16),
    other: &Arc<Table>,
) -> Result<Option<CommitHandle>> {
    let partition = std::slice::from_ref(name);
    let cancel = session.shared.cancel.clone();
    let word = |error: engine_api::EngineError| error.into_error(&cancel);
    // Commits of other sessions before the locks were granted must be visible.
    sys::blocking::blocking(|| session.server.catalog.wait_for_earlier_commits(&cancel))?;
    let counter =
        session.transactions.engine(&other.engine)?.auto_increment_next(other.id).map_err(word)?;
    let mut new = Table::clone(other);
    draw_ids(session, &mut new)?;
    for column in &mut new.definition.columns {
        column.instant_default = None;
    }
    let txn = session.transactions.transaction(&other.engine)?;
    for part in new.engine_tables() {
        txn.create_table(&part).map_err(word)?;
    }
    move_rows(session, table, &new, partition, &[])?;
    empty_partitions(session, table, &[number]).map_err(word)?;
    move_rows(session, other, table, &[], partition).map_err(|error| match error.code() {
        ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET => err!(ROW_DOES_NOT_MATCH_PARTITION),
        _ => error,
    })?;
    let txn = session.transactions.transaction(&other.engine)?;
    for part in other.engine_tables() {
        txn.drop_table(part.id).map_err(word)?;
    }
    let new = Arc::new(new);
    let commit = publish_altered(session, other, new.clone())?;
    // Neither table generates a value that the other generated for the rows it has now.
    set_next_auto_increment(session, table, Some(counter))?;
    set_next_auto_increment(session, &new, Some(counter))?;
    Ok(Some(commit))
}

/// Inserts the rows of `from` into `to`; of one partition, into one partition.
fn move_rows(
    session: &mut Session,
    from: &Arc<Table>,
    to: &Table,
    partition: &[Ident],
    into: &[Ident],
) -> Result<()> {
    let place = |column: &Column| from.column(&column.name);
    let origins: Vec<Option<usize>> = to.columns.iter().map(place).collect();
    // No trigger is found under this name, and no statement can contain it.
    let mut target = to.clone();
    target.name = format!("#exchange-{}", to.id.0).into();
    let target = Arc::new(target);
    let partition = (!partition.is_empty()).then_some(partition);
    let moved = sys::blocking::blocking(|| {
        copy_rows(session, from, &target, &origins, partition, into).map(|_| ())
    });
    moved.map_err(|error| {
        let message = error.message().replace(&*target.name, &to.name);
        Error::with_sqlstate(error.code(), error.sqlstate(), message)
    })
}

/// The partition that a name denotes or belongs to, and its number; 1735, 1734.
fn leaf<'t>(table: &'t Table, name: &Ident) -> Result<(&'t Partition, u16)> {
    let unknown = || err!(UNKNOWN_PARTITION, name.text, table.name);
    let partitioning = table.partitioning.as_ref().ok_or_else(unknown)?;
    let numbers = partitioning.named(&name.text).ok_or_else(unknown)?;
    let mut partitions = partitioning.partitions.iter();
    let is_subpartitioned = partitioning.sub.is_some();
    if is_subpartitioned && partitions.clone().any(|own| same_name(&own.name, &name.text)) {
        bail!(PARTITION_INSTEAD_OF_SUBPARTITION);
    }
    let number = *numbers.first().ok_or_else(unknown)?;
    let found = partitions.find(|own| own.number == number / partitioning.subpartitions());
    Ok((found.ok_or_else(unknown)?, number))
}
