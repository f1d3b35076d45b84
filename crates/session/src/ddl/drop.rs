//! DROP, TRUNCATE and RENAME TABLE.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Edit, PrivilegeSet, Relation, Table};
use definitions::encryption::check_move;
use definitions::{check_table_name, foreign_key_reference, quote};
use engine_api::TableId;
use errors::{ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{DropTable, ObjectName, RenameTable};

use super::create::draw_ids;
use super::database::encryption_choice;
use crate::session::Session;

/// DROP TABLE.
pub(crate) fn drop_tables(
    session: &mut Session,
    drop: &DropTable,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut temporary = Vec::new();
    let mut stored: Vec<Arc<Table>> = Vec::new();
    let mut missing = Vec::new();
    let view = session.view();
    for name in &drop.names {
        let (schema, name) = session.qualify(name)?;
        if view.temporary_table(&schema, &name).is_some() {
            temporary.push((schema, name));
            continue;
        }
        if drop.temporary {
            missing.push(format!("{schema}.{name}"));
            continue;
        }
        crate::ddl::check_schema_writable(session, &schema)?;
        match view.snapshot.relation(&schema, &name) {
            Some(Relation::Table(table)) => {
                session.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
                if stored.iter().any(|known| known.id == table.id) {
                    bail!(NONUNIQ_TABLE, name);
                }
                stored.push(table.clone());
            }
            Some(Relation::View(_)) | None => missing.push(format!("{schema}.{name}")),
        }
    }
    if !missing.is_empty() && !drop.if_exists {
        bail!(BAD_TABLE_ERROR, missing.join(","));
    }
    for name in &missing {
        session.working.note(ErrorCode::BAD_TABLE_ERROR, &[name]);
    }
    if !stored.is_empty() {
        session.check_writable()?;
        refuse_parents(session, &stored)?;
        drop_stored(session, &stored)?;
    }
    for (schema, name) in temporary {
        drop_temporary(session, &schema, &name)?;
    }
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())
}

/// 3730 when a table outside the list refers to one in it.
fn refuse_parents(session: &Session, tables: &[Arc<Table>]) -> Result<()> {
    if !session.settings.foreign_key_checks {
        return Ok(());
    }
    let snapshot = session.snapshot();
    for table in tables {
        for child in snapshot.children_of(&table.schema, &table.name) {
            if tables.iter().any(|dropped| dropped.id == child.id) {
                continue;
            }
            let key = child.foreign_keys.iter().find(|key| {
                key.referenced_schema == table.schema && key.referenced_table == table.name
            });
            let key = key.map_or("", |key| &key.name);
            bail!(FK_CANNOT_DROP_PARENT, table.name, key, child.name);
        }
    }
    Ok(())
}

fn drop_stored(session: &mut Session, tables: &[Arc<Table>]) -> Result<()> {
    let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
    let _guard = session.lock_for_ddl(&ids)?;
    let mut edits = Vec::with_capacity(ids.len());
    for table in tables {
        let present = session.snapshot().has_table(table.id);
        if !present {
            bail!(BAD_TABLE_ERROR, format!("{}.{}", table.schema, table.name));
        }
        let txn = session.transactions.transaction(&table.engine)?;
        for part in table.engine_tables() {
            let dropped = txn.drop_table(part.id);
            dropped.map_err(|error| error.into_error(&session.shared.cancel))?;
        }
        edits.push(Edit::DropTable(table.id));
    }
    // Temporary tables of the statement, and those that do not exist, are nothing to others.
    let current = session.services.database.as_deref();
    let quote = |table: &Arc<Table>| match current {
        Some(current) if *current == *table.schema => quote(&table.name),
        _ => format!("{}.{}", quote(&table.schema), quote(&table.name)),
    };
    let names: Vec<String> = tables.iter().map(quote).collect();
    crate::recording::log_instead(
        session,
        vec![format!("DROP TABLE {}", names.join(",")).into_bytes()],
    );
    session.commit_definitions(&edits)?;
    Ok(())
}

/// Drops a temporary table. Its engine's transaction is not affected: the table is dropped in a separate one.
pub(crate) fn drop_temporary(
    session: &mut Session,
    schema: &Arc<str>,
    name: &Arc<str>,
) -> Result<()> {
    let tables = Arc::make_mut(&mut session.temporary);
    let Some(table) = tables.remove(&(schema.clone(), name.clone())) else { return Ok(()) };
    session.statement.state_changed = true;
    in_own_temporary_transaction(session, |txn| txn.drop_table(table.id))
}

/// Runs `work` in a transaction of the temporary tables' engine that ends with it.
pub(crate) fn in_own_temporary_transaction(
    session: &Session,
    work: impl FnOnce(&mut dyn engine_api::Transaction) -> engine_api::EngineResult<()>,
) -> Result<()> {
    let cancel = &session.shared.cancel;
    let word = |error: engine_api::EngineError| error.into_error(cancel);
    let mut txn = session.server.temporary_engine.new_transaction();
    txn.start(&engine_api::TxnOptions {
        isolation: engine_api::IsolationLevel::ReadCommitted,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: session.settings.row_lock_timeout,
        cancel: cancel.clone(),
    })
    .map_err(word)?;
    match work(txn.as_mut()) {
        Ok(()) => txn.commit().map(|_| ()).map_err(word),
        Err(error) => {
            // The first error is the one to report.
            let _ = txn.rollback();
            Err(word(error))
        }
    }
}

/// TRUNCATE TABLE: an empty table of the same definition replaces it.
pub(crate) fn truncate_table(
    session: &mut Session,
    name: &ObjectName,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    if crate::information_changes::truncate_information(session, name, sink)? {
        return Ok(());
    }
    let (schema, name) = session.qualify(name)?;
    // A view has no rows to remove: for TRUNCATE it is not there.
    let found = session.find_table(&schema, &name).ok();
    let table = found.ok_or_else(|| err!(NO_SUCH_TABLE, schema, name))?;
    if table.temporary {
        return truncate_temporary(session, &table, sink);
    }
    session.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
    crate::ddl::check_writable_in(session, &schema)?;
    if table.is_sequence() {
        bail!(ILLEGAL_HA, name);
    }
    if table.is_discarded() {
        bail!(TABLESPACE_DISCARDED, format!("{schema}/{name}"));
    }
    if table.row_times().is_some() {
        bail!(VERS_NOT_SUPPORTED, "TRUNCATE TABLE");
    }
    let snapshot = session.snapshot();
    if session.settings.foreign_key_checks
        && let Some(child) = snapshot.children_of(&schema, &name).find(|child| child.id != table.id)
    {
        let key = child.foreign_keys.iter().find(|key| key.referenced_table == name);
        let text = key.map_or_else(String::new, |key| foreign_key_reference(&child, key));
        bail!(TRUNCATE_ILLEGAL_FK, text);
    }
    let guard = session.lock_for_ddl(&[table.id])?;
    let table = session.find_table(&schema, &name)?;
    let mut new = Table::clone(&table);
    draw_ids(session, &mut new)?;
    let txn = session.transactions.transaction(&table.engine)?;
    let mut created = new.engine_tables().into_iter().map(|new| txn.create_table(&new));
    created.try_for_each(|made| made).map_err(|error| error.into_error(&session.shared.cancel))?;
    let drops_late = super::copy::drops_late(session, &table);
    if !drops_late {
        super::copy::drop_parts(session, &table)?;
    }
    let edit = Edit::ReplaceTable { old: table.id, new: Arc::new(new) };
    let commit = session.commit_definitions(&[edit])?;
    if drops_late {
        super::copy::drop_parts(session, &table)?;
        session.transactions.commit()?;
    }
    drop(guard);
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

fn truncate_temporary(
    session: &mut Session,
    table: &Table,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let mut new = table.clone();
    new.id = session.server.catalog.new_table_id()?;
    new.definition.id = new.id;
    let (old, definition) = (table.id, new.definition.clone());
    in_own_temporary_transaction(session, |txn| {
        txn.drop_table(old)?;
        txn.create_table(&definition)
    })?;
    let key = (new.schema.clone(), new.name.clone());
    Arc::make_mut(&mut session.temporary).insert(key, Arc::new(new));
    session.send_ok(sink, OkInfo::default())
}

/// RENAME TABLE.
pub(crate) fn rename_tables(
    session: &mut Session,
    rename: &RenameTable,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.check_writable()?;
    let mut pairs = Vec::with_capacity(rename.renames.len());
    for (from, to) in &rename.renames {
        let (from_schema, from) = session.qualify(from)?;
        let (to_schema, to) = session.qualify(to)?;
        check_table_name(&to)?;
        let needed = PrivilegeSet::ALTER | PrivilegeSet::DROP;
        session.require_on_table(&from_schema, &from, needed)?;
        let needed = PrivilegeSet::CREATE | PrivilegeSet::INSERT;
        session.require_on_table(&to_schema, &to, needed)?;
        crate::ddl::check_schema_writable(session, &from_schema)?;
        crate::ddl::check_schema_writable(session, &to_schema)?;
        pairs.push(((from_schema, from), (to_schema, to)));
    }
    let snapshot = session.snapshot();
    let ids: Vec<TableId> = pairs
        .iter()
        .filter_map(|((schema, name), _)| snapshot.table(schema, name))
        .map(|table| table.id)
        .collect();
    let _guard = session.lock_for_ddl(&ids)?;
    let edits = definitions::renames::rename_edits(&session.snapshot(), &pairs)?;
    let snapshot = session.snapshot();
    for edit in &edits {
        let Edit::ReplaceTable { old, new } = edit else { continue };
        if snapshot.table_by_id(*old).is_some_and(|old| old.schema != new.schema) {
            let choice = encryption_choice(session);
            let conditions = &mut session.working;
            check_move(&snapshot, &new.options, &new.schema, choice, conditions)?;
        }
    }
    rename_in_engine(session, &edits)?;
    let commit = session.commit_definitions(&edits)?;
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// Tells the engine the names of tables.
fn rename_in_engine(session: &mut Session, edits: &[Edit]) -> Result<()> {
    for edit in edits {
        let Edit::ReplaceTable { new, .. } = edit else { continue };
        let txn = session.transactions.transaction(&new.engine)?;
        let altered = txn.alter_table(&new.definition);
        altered.map_err(|error| error.into_error(&session.shared.cancel))?;
    }
    Ok(())
}
