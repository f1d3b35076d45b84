//! CREATE, ALTER and DROP SEQUENCE: sequences are tables of one row.

use ::accounts::PrivilegeChecks;
use catalog::{Edit, PrivilegeSet, Relation, Table};
use definitions::sequences::create_table_of;
use errors::{Error, Level, Result, SequenceError, bail};
use exec::{Outcome, TransactionSource};
use plugin_api::{OkInfo, ResultSink};
use programs::Running;
use statements::sequences::{SequenceChanges, SequenceRow, change_row, encoded};
use syntax::ast::{AlterSequence, CreateSequence, DropObjects, DropTable};

use super::create::{FirstRows, create_table_with};
use super::drop::drop_tables;
use crate::session::Session;

/// CREATE SEQUENCE.
pub(crate) fn create_sequence(
    session: &mut Session,
    create: &CreateSequence,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = session.qualify(&create.name)?;
    let changes = SequenceChanges::of(&create.options)?;
    if changes.restart.is_some() {
        bail!(WRONG_USAGE, "CREATE SEQUENCE", "RESTART");
    }
    if create.flags.or_replace && create.flags.if_not_exists {
        bail!(WRONG_USAGE, "OR REPLACE", "IF NOT EXISTS");
    }
    let row = SequenceRow::new(&changes, &format!("{schema}.{name}"))?;
    if create.flags.or_replace {
        session.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
    }
    create_table_with(session, &create_table_of(create)?, FirstRows::Sequence(row), running, sink)
}

/// Writes the first row of a sequence into its new table.
pub(super) fn fill_sequence(
    session: &mut Session,
    table: &Table,
    row: Option<SequenceRow>,
) -> Result<Outcome> {
    if *table.engine != *session.server.default_engine.name() {
        return Err(Error::not_supported("sequences in this engine"));
    }
    if session.transactions.is_defining() {
        return Err(Error::not_supported("CREATE TABLE ... SEQUENCE within a transaction"));
    }
    let row = match row {
        Some(row) => row,
        None => SequenceRow::new(&SequenceChanges::default(), &table.name)?,
    };
    let record = encoded(&table.definition.layout(), &row.values())?;
    let inserted = session.transactions.transaction(&table.engine)?.insert(table.id, &record);
    inserted.map_err(|error| error.into_error(&session.shared.cancel))?;
    Ok(Outcome::default())
}

/// ALTER SEQUENCE: what was reserved and not given out is skipped, unless it restarts.
pub(crate) fn alter_sequence(
    session: &mut Session,
    alter: &AlterSequence,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = session.qualify(&alter.name)?;
    let full = format!("{schema}.{name}");
    session.require_on_table(&schema, &name, PrivilegeSet::ALTER)?;
    crate::ddl::check_writable_in(session, &schema)?;
    let table = match session.snapshot().relation(&schema, &name) {
        Some(Relation::Table(table)) if table.is_sequence() => table,
        Some(Relation::Table(_) | Relation::View(_)) => {
            return Err(SequenceError::NotASequence.about(full));
        }
        None if alter.if_exists => {
            session.working.push_error(Level::Note, &SequenceError::Unknown.about(full));
            return session.send_ok(sink, OkInfo::default());
        }
        None => return Err(SequenceError::Unknown.about(name)),
    };
    let changes = SequenceChanges::of(&alter.options)?;
    if alter.options.is_empty() {
        bail!(WRONG_USAGE, "ALTER SEQUENCE", "no option");
    }
    let guard = session.lock_for_ddl(&[table.id])?;
    if !session.snapshot().has_table(table.id) {
        return Err(SequenceError::Unknown.about(name));
    }
    let cancel = session.shared.cancel.clone();
    let txn = session.transactions.transaction(&table.engine)?;
    change_row(txn, &table, &table.definition.layout(), &cancel, |values| {
        let row = SequenceRow::of(values, &full)?.altered(&changes, &full)?;
        Ok(Some((row.values(), ())))
    })?;
    let commit = session.commit_definitions(&[Edit::RenewTable(table.id)])?;
    session.server.sequences.forget(table.id);
    drop(guard);
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// DROP SEQUENCE.
pub(crate) fn drop_sequences(
    session: &mut Session,
    drop: &DropObjects,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut missing = Vec::new();
    let mut names = Vec::new();
    for written in &drop.names {
        let (schema, name) = session.qualify(written)?;
        session.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
        let full = format!("{schema}.{name}");
        match session.snapshot().relation(&schema, &name) {
            Some(Relation::Table(table)) if table.is_sequence() => names.push(written.clone()),
            Some(_) if drop.if_exists => {
                let error = SequenceError::NotToBeDropped.about(full);
                session.working.push_error(Level::Note, &error);
            }
            Some(_) => return Err(SequenceError::NotToBeDropped.about(full)),
            None => missing.push(full),
        }
    }
    if !missing.is_empty() {
        let error = SequenceError::Unknown.about(missing.join(","));
        if !drop.if_exists {
            return Err(error);
        }
        session.working.push_error(Level::Note, &error);
    }
    // A temporary table of the name is another table.
    for name in &names {
        let (schema, name) = session.qualify(name)?;
        if session.view().temporary_table(&schema, &name).is_some() {
            return Err(Error::not_supported("DROP SEQUENCE behind a temporary table"));
        }
    }
    let drop = DropTable { temporary: false, if_exists: false, names, cascade: None };
    drop_tables(session, &drop, sink)
}
