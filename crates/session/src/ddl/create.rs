//! CREATE TABLE in its three forms.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Column, Edit, PrivilegeSet, RelationKind, Table};
use definitions::alter::copy::filling_statement;
use definitions::{Draft, add_query_columns, check_table_name, is_hidden};
use engine_api::TableId;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::{Outcome, TransactionSource};
use plugin_api::{ColumnMeta, OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{self, CreateTable};

use super::definer::Definer;
use super::drop::{drop_tables, drop_temporary, in_own_temporary_transaction};
use super::sequence::fill_sequence;
use crate::planned::Planned;
use crate::session::Session;
use programs::Running;
use statements::sequences::SequenceRow;
use statements::sink::NoRows;

/// CREATE TABLE.
pub(crate) fn create_table(
    session: &mut Session,
    create: &CreateTable,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    create_table_with(session, create, FirstRows::None, running, sink)
}

/// The rows of a new table besides those of a query.
pub(crate) enum FirstRows {
    None,
    /// Of a sequence.
    Sequence(SequenceRow),
    /// IMPORT TABLE.
    Files(Vec<transport::TableFile>),
}

/// CREATE TABLE, with these rows.
pub(crate) fn create_table_with(
    session: &mut Session,
    create: &CreateTable,
    rows: FirstRows,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = session.qualify(&create.name)?;
    check_table_name(&name)?;
    if is_known_fact(session, create, &schema, &name) {
        session.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[&name]);
        return session.send_ok(sink, OkInfo::default());
    }
    check_create(session, create, &schema, &name)?;
    if already_there(session, create, (&schema, &name), running)? {
        return session.send_ok(sink, OkInfo::default());
    }
    let mut draft = match &create.like {
        Some(like) => draft_like(session, create, like, (&schema, &name), running)?,
        None => {
            let definer = &mut Definer::new(session, running);
            definitions::create::write_draft(definer, create, &schema, &name)?
        }
    };
    draft.temporary = create.temporary;
    let engines = super::definer::engines(&session.server);
    if create.temporary {
        draft.engine = engines.temporary.into();
    } else if *draft.engine == *engines.temporary {
        // LIKE a temporary table.
        draft.engine = engines.default.into();
    }
    if create.temporary && !draft.foreign_keys.is_empty() {
        bail!(CANNOT_ADD_FOREIGN);
    }
    let query = create.query.as_deref().filter(|_| create.like.is_none());
    if let Some(query) = query {
        let view = session.view();
        let metas = query_columns(session, query, running)?;
        let mode = session.settings.sql_mode;
        add_query_columns(&mut session.working, &mut draft, &view, mode, &metas)?;
    }
    let definer = &mut Definer::new(session, running);
    let (mut table, next) = definitions::create::complete(definer, create, draft)?;
    draw_ids(session, &mut table)?;
    let table = Arc::new(table);
    if create.temporary {
        return create_temporary(session, table, next, create, query, running, sink);
    }
    create_stored(session, &table, (next, rows), create, query, running, sink)
}

/// IF NOT EXISTS for a table of `mysql` that always exists: dumps begin with some.
fn is_known_fact(session: &Session, create: &CreateTable, schema: &str, name: &str) -> bool {
    schema == "mysql"
        && create.flags.if_not_exists
        && !create.temporary
        && session.privileges.on_schema(schema).contains(PrivilegeSet::CREATE)
        && session.server.registry().information_table(schema, name).is_some()
}

fn check_create(session: &Session, create: &CreateTable, schema: &str, name: &str) -> Result<()> {
    if create.temporary {
        session.require_on_schema(schema, PrivilegeSet::CREATE_TEMPORARY_TABLES)?;
    } else {
        session.require_on_table(schema, name, PrivilegeSet::CREATE)?;
        crate::ddl::check_writable_in(session, schema)?;
    }
    if session.snapshot().schema(schema).is_none() {
        bail!(BAD_DB_ERROR, schema);
    }
    Ok(())
}

/// Whether nothing is to be done because the table exists. OR REPLACE drops it.
fn already_there(
    session: &mut Session,
    create: &CreateTable,
    (schema, name): (&Arc<str>, &Arc<str>),
    running: &Running<'_>,
) -> Result<bool> {
    if let Some(like) = &create.like {
        let (from_schema, from) = session.qualify(like)?;
        session.find_table(&from_schema, &from)?;
        if catalog::same_name(&from_schema, schema) && catalog::same_name(&from, name) {
            bail!(NONUNIQ_TABLE, name);
        }
    }
    let view = session.view();
    let exists = if create.temporary {
        view.temporary_table(schema, name).is_some()
    } else {
        view.snapshot.kind(schema, name).is_some()
    };
    if !exists {
        return Ok(false);
    }
    if create.flags.or_replace {
        if create.temporary {
            drop_temporary(session, schema, name)?;
        } else if view.snapshot.kind(schema, name) != Some(RelationKind::View) {
            let drop = ast::DropTable {
                temporary: false,
                if_exists: true,
                names: vec![create.name.clone()],
                cascade: None,
            };
            let texts = session.statement.text.clone();
            drop_tables(session, &drop, &mut statements::sink::DiscardSink::default())?;
            session.statement.text = texts;
        } else {
            bail!(TABLE_EXISTS_ERROR, name);
        }
        return Ok(false);
    }
    check_sources(session, create, running)?;
    if create.flags.if_not_exists {
        session.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[name]);
        return Ok(true);
    }
    Err(err!(TABLE_EXISTS_ERROR, name))
}

/// A table that the query reads and that is not there is told before the name is compared.
fn check_sources(session: &Session, create: &CreateTable, running: &Running<'_>) -> Result<()> {
    let Some(query) = &create.query else { return Ok(()) };
    let types = session.parameter_types(running);
    let statement = Statement::Query(query.clone());
    match session.planner().plan_statement(&statement, running.source, types.as_deref()) {
        Err(error) if error.code() == ErrorCode::NO_SUCH_TABLE => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// CREATE TABLE ... LIKE: everything but foreign keys and rows.
fn draft_like(
    session: &mut Session,
    create: &CreateTable,
    like: &ast::ObjectName,
    (schema, name): (&Arc<str>, &Arc<str>),
    running: &Running<'_>,
) -> Result<Draft> {
    let (from_schema, from) = session.qualify(like)?;
    let table = session.find_table(&from_schema, &from)?;
    session.require_on_table(&from_schema, &from, PrivilegeSet::SELECT)?;
    if table.is_sequence() {
        return Err(Error::not_supported("CREATE TABLE ... LIKE a sequence"));
    }
    let mut ctx = Definer::new(session, running);
    let mut draft = Draft::like(&ctx, &table, schema, name);
    draft.temporary = create.temporary;
    definitions::encryption::inherit_like(&mut ctx, &mut draft)?;
    Ok(draft)
}

/// Creates a table in the engine, fills it from the query, and commits it with its definition.
fn create_stored(
    session: &mut Session,
    table: &Arc<Table>,
    (mut next, rows): (Option<u64>, FirstRows),
    create: &CreateTable,
    query: Option<&ast::Query>,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let txn = session.transactions.transaction(&table.engine)?;
    for definition in table.engine_tables() {
        let created = txn.create_table(&definition);
        created.map_err(|error| error.into_error(&session.shared.cancel))?;
    }
    let is_other = create.like.is_some() || create.flags.or_replace && !table.is_sequence();
    // What the statement does may depend on a variable that a replica has otherwise.
    if query.is_some() || is_other || definitions::has_generated_key(table) {
        let zone = &*session.settings.time_zone;
        let text =
            describe::create_table_statement(table, session.services.database.as_deref(), zone);
        crate::recording::log_instead(session, vec![text.into_bytes()]);
    }
    if query.is_some() {
        crate::recording::definition_of(session, table)?;
    }
    let filled = match rows {
        FirstRows::Files(files) => import_first(session, table, &files).map(|known| {
            next = next.max(Some(known));
            Outcome::default()
        }),
        FirstRows::Sequence(row) => fill_sequence(session, table, Some(row)),
        FirstRows::None if table.is_sequence() => fill_sequence(session, table, None),
        FirstRows::None => fill(session, table, create, query, running),
    };
    session.transactions.set_new_table(None);
    let filled = match filled {
        Ok(filled) => filled,
        Err(error) => {
            // The table is dropped by the rollback of the transaction that created it.
            let _ = session.transactions.undo_definition();
            return Err(error);
        }
    };
    let edits = [Edit::CreateTable(table.clone())];
    let commit = session.commit_definitions(&edits)?;
    set_next_auto_increment(session, table, next)?;
    let ok = filled_ok(session, filled);
    session.send_ok(sink, OkInfo { commit: Some(commit), ..ok })
}

/// The rows of IMPORT TABLE. Returns the next AUTO_INCREMENT value.
fn import_first(
    session: &mut Session,
    table: &Arc<Table>,
    files: &[transport::TableFile],
) -> Result<u64> {
    definitions::alter::check_transportable(session.server.default_engine.name(), table)?;
    transport::check_complete(table, files)?;
    crate::transport::load_files(session, table, files)
}

/// Gives a new table its id, and those of its FULLTEXT indexes' entries.
pub(crate) fn draw_ids(session: &Session, table: &mut Table) -> Result<()> {
    let engine = session.transactions.engine(&table.engine)?;
    table.id = match engine.shared_definitions().filter(|_| !table.temporary) {
        None => session.server.catalog.new_table_id()?,
        Some(shared) => {
            shared.new_table_id().map_err(|error| error.into_error(&session.shared.cancel))?
        }
    };
    table.definition.id = table.id;
    for index in &mut table.fulltext {
        index.entries = session.server.catalog.new_table_id()?;
    }
    Ok(())
}

fn create_temporary(
    session: &mut Session,
    table: Arc<Table>,
    next: Option<u64>,
    create: &CreateTable,
    query: Option<&ast::Query>,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let definition = table.definition.clone();
    in_own_temporary_transaction(session, |txn| txn.create_table(&definition))?;
    let key = (table.schema.clone(), table.name.clone());
    session.statement.state_changed = true;
    let shadowed = Arc::make_mut(&mut session.temporary).insert(key, table.clone());
    debug_assert!(shadowed.is_none(), "an existing temporary table was refused before");
    let filled = fill(session, &table, create, query, running);
    let filled = match filled {
        Ok(filled) => filled,
        Err(error) => {
            let (schema, name) = (table.schema.clone(), table.name.clone());
            drop_temporary(session, &schema, &name)?;
            return Err(error);
        }
    };
    set_next_auto_increment(session, &table, next)?;
    let commit = session.finish_transaction_scope()?;
    let ok = filled_ok(session, filled);
    session.send_ok(sink, OkInfo { commit, ..ok })
}

/// The answer to a CREATE TABLE that has filled its table.
fn filled_ok(session: &mut Session, filled: Outcome) -> OkInfo {
    session.services.row_count = filled.affected as i64;
    if let Some(generated) = filled.generated_id {
        session.services.last_insert_id = generated;
    }
    OkInfo {
        affected_rows: filled.affected,
        last_insert_id: filled.insert_id,
        info: filled.info,
        ..OkInfo::default()
    }
}

/// Applies AUTO_INCREMENT = n to a table whose counter already follows its rows.
pub(crate) fn set_next_auto_increment(
    session: &mut Session,
    table: &Table,
    next: Option<u64>,
) -> Result<()> {
    let has_column = table.columns.iter().any(|column| column.auto_increment);
    let Some(next) = next.filter(|next| has_column && *next > 0) else { return Ok(()) };
    let engine = session.transactions.engine(&table.engine)?;
    let current = engine
        .auto_increment_next(table.id)
        .map_err(|error| error.into_error(&session.shared.cancel))?;
    set_auto_increment(session, table, next.max(current))
}

/// Sets the counter, also below its old value.
pub(crate) fn set_auto_increment(session: &mut Session, table: &Table, next: u64) -> Result<()> {
    let engine = session.transactions.engine(&table.engine)?;
    if let Ok(before) = engine.auto_increment_next(table.id) {
        session.transactions.note_counter(table.id, before);
    }
    engine
        .auto_increment_set(table.id, next)
        .map_err(|error| error.into_error(&session.shared.cancel))
}

/// Runs `INSERT INTO table SELECT ...` on a table that only this statement knows yet.
fn fill(
    session: &mut Session,
    table: &Arc<Table>,
    create: &CreateTable,
    query: Option<&ast::Query>,
    running: &Running<'_>,
) -> Result<Outcome> {
    let Some(query) = query else { return Ok(Outcome::default()) };
    // The query's columns are the last ones of the table.
    let count = query_columns(session, query, running)?.len();
    let visible: Vec<&Column> = table.columns.iter().filter(|column| !is_hidden(column)).collect();
    let names = query_columns(session, query, running)?;
    debug_assert!(count <= visible.len(), "every column of the query has one in the table");
    let columns: Vec<&str> = names.iter().map(|meta| &*meta.name).collect();
    let statement = filling_statement(table, &columns, create.duplicates, query);
    run_on_new_table(session, table, &statement, running)
}

/// Runs a statement in a view of the catalog that has `table` in it.
pub(crate) fn run_on_new_table(
    session: &mut Session,
    table: &Arc<Table>,
    statement: &Statement,
    running: &Running<'_>,
) -> Result<Outcome> {
    let planned = plan_on_new_tables(session, &[table], statement, running)?;
    session.run_program(&planned, running.parameters, &mut NoRows)
}

/// Plans a statement in a view of the catalog that has `tables` in it, and locks the other tables that it uses.
pub(crate) fn plan_on_new_tables(
    session: &mut Session,
    tables: &[&Arc<Table>],
    statement: &Statement,
    running: &Running<'_>,
) -> Result<Arc<Planned>> {
    let mut view = session.view();
    for table in tables {
        let key = (table.schema.clone(), table.name.clone());
        Arc::make_mut(&mut view.temporary).insert(key, Arc::clone(table));
    }
    let types = session.parameter_types(running);
    let planned =
        session.planner().plan_in_view(&view, statement, running.source, types.as_deref())?;
    let timeout = session.settings.lock_wait_timeout;
    let is_new = |id: TableId| tables.iter().any(|table| table.id == id);
    let uses: Vec<(TableId, catalog::Usage)> =
        planned.uses.iter().filter(|(id, _)| !is_new(*id)).copied().collect();
    let locks = session.server.metadata_locks.clone();
    locks.use_tables(&session.transactions.slot, &uses, timeout, &session.shared.cancel)?;
    Ok(planned)
}

/// Result columns of a query.
fn query_columns(
    session: &mut Session,
    query: &ast::Query,
    running: &Running<'_>,
) -> Result<Vec<ColumnMeta>> {
    let statement = Statement::Query(Box::new(query.clone()));
    let types = session.parameter_types(running);
    let planned = session.planner().plan_statement(&statement, running.source, types.as_deref())?;
    if !planned.privileges.is_empty() {
        // The privileges on the tables that it reads are checked as for the SELECT itself.
        session.lock_plan(&planned)?;
    }
    Ok(planned.program.columns().to_vec())
}
