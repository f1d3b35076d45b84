//! Tables as files: FLUSH TABLES .. FOR EXPORT, IMPORT TABLESPACE and IMPORT TABLE. What the files hold is `transport`'s.

use ::accounts::PrivilegeChecks;
use std::path::PathBuf;
use std::sync::Arc;

use catalog::{LockMode, PrivilegeSet, Table, set_discarded};
use definitions::alter::check_transportable;
use definitions::alter::copy::{copy_statement, word_copy_error};
use engine_api::Progress;
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use statements::copier::{Copier, Work};
use statements::sink::DiscardSink;
use syntax::Statement;
use syntax::ast::{self, Ident, ObjectName};
use sys::blocking::blocking;
use transport::{EXPORT_DIRECTORY, Exported, FileRows, IMPORT_DIRECTORY, Place, TableFile};
use types::SqlMode;

use crate::ddl::{
    FirstRows, as_copy, create_table_with, plan_on_new_tables, publish_altered, rows_of,
    set_next_auto_increment,
};
use crate::measured::{begin_stage, end_stage};
use crate::observed::watched;
use crate::restricted::check_reads_table;
use crate::session::Session;

/// FLUSH TABLES .. FOR EXPORT: the tables are locked, and their files there, until the locks are released.
///
/// # Errors
/// 1146, 1347, 1031, 1814, 1235; those of LOCK TABLES; 3 where the files cannot be written.
pub(crate) fn export_tables(session: &mut Session, names: &[ObjectName]) -> Result<()> {
    let engine = &session.server.default_engine;
    if !engine.is_durable() || engine.directory_key().is_some() {
        // What is encrypted here would be plain in a file.
        const WHAT: &str =
            "FLUSH TABLES .. FOR EXPORT on a server that is encrypted or has no disk";
        return Err(Error::not_supported(WHAT));
    }
    let read = |name: &ObjectName| ast::LockTable {
        name: name.clone(),
        alias: None,
        mode: ast::LockTableMode::Read,
    };
    session.take_table_locks(&names.iter().map(read).collect::<Vec<_>>())?;
    let written = write_files(session, names).map(|files| session.locked.attach(files));
    written.inspect_err(|_| session.locked.release_tables())
}

/// Writes the files of locked tables. What is returned keeps them there, and other sessions from exporting the same tables.
fn write_files(session: &mut Session, names: &[ObjectName]) -> Result<Box<dyn Send>> {
    let tables: Vec<Arc<Table>> =
        names.iter().map(|name| exportable(session, name)).collect::<Result<_>>()?;
    let wanted: Vec<_> =
        tables.iter().map(|table| (Some(table.id), LockMode::Definition)).collect();
    let (times, cancel) = (session.server.io_times.clone(), session.shared.cancel.clone());
    let (locks, wait) = (session.server.metadata_locks.clone(), session.ddl_wait());
    let guard = locks.lock(session.shared.id, &wanted, wait, &cancel)?;
    begin_stage(session, "exporting tables");
    let engine = session.server.default_engine.clone();
    let directory = data_directory(session).join(EXPORT_DIRECTORY);
    let place = Place { directory: &directory, times: &times, cancel: &cancel };
    let mut files = Exported::default();
    let long = cancel.long(tables.iter().map(|table| rows_of(session, table)).sum());
    let exported = blocking(|| {
        tables.iter().try_for_each(|table| {
            let text = describe::create_table_statement(table, Some(&*table.schema), &types::Utc);
            transport::export_table(&*engine, table, &text, &place, &mut files)
        })
    });
    end_stage(session, cancel.progress());
    drop(long);
    exported.map(|()| -> Box<dyn Send> { Box::new((files, guard)) })
}

fn data_directory(session: &Session) -> PathBuf {
    PathBuf::from(session.server.globals.text("datadir"))
}

/// A table that can be exported.
fn exportable(session: &Session, name: &ObjectName) -> Result<Arc<Table>> {
    let (schema, name) = session.qualify(name)?;
    match catalog::system_schema(&schema) {
        Some("information_schema") => {
            let host = session.shown_host(&session.account);
            bail!(DBACCESS_DENIED_ERROR, session.account.user, host, "information_schema")
        }
        Some(_) => bail!(ILLEGAL_HA, name),
        None => {}
    }
    if session.view().temporary_table(&schema, &name).is_some() {
        // LOCK TABLES would take the temporary one.
        bail!(NO_SUCH_TABLE, schema, name);
    }
    check_reads_table(session, &schema, &name)?;
    let engine = session.server.default_engine.name();
    transport::exportable(&session.snapshot(), (&schema, &name), engine)
}

/// ALTER TABLE .. IMPORT TABLESPACE and IMPORT PARTITION.
///
/// # Errors
/// 1142, 1031, 1235, 3007, 1505, 1735, 1813; those of the files and of their rows.
pub(crate) fn import_rows(
    session: &mut Session,
    name: &ObjectName,
    partitions: Option<&ast::PartitionNames>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = session.qualify(name)?;
    let table = session.find_table(&schema, &name)?;
    if !table.temporary {
        session.require_on_table(&schema, &name, PrivilegeSet::ALTER)?;
        crate::ddl::check_writable_in(session, &schema)?;
    }
    check_transportable(session.server.default_engine.name(), &table)?;
    if session.transactions.is_defining() {
        return Err(Error::not_supported("IMPORT TABLESPACE within a transaction"));
    }
    let guard = session.lock_for_ddl(&[table.id])?;
    // Under the lock the definition does not change.
    let table = session.find_table(&schema, &name)?;
    let directory = data_directory(session).join(IMPORT_DIRECTORY);
    let listed: Option<Vec<&str>> = match partitions {
        Some(_) if table.partitioning.is_none() => bail!(PARTITION_MGMT_ON_NONPARTITIONED),
        None | Some(ast::PartitionNames::All) => None,
        Some(ast::PartitionNames::List(names)) => {
            Some(names.iter().map(|name| &*name.text).collect())
        }
    };
    let (files, still) = transport::files_to_import(&directory, &table, listed.as_deref())?;
    let mut new = Table::clone(&table);
    match &table.partitioning {
        None => new.options.retain(|(name, _)| name != catalog::DISCARDED_OPTION),
        Some(_) => set_discarded(&mut new.options, Some(&still)),
    }
    let new = Arc::new(new);
    let loaded = load_files(session, &new, &files);
    let published = loaded.and_then(|next| {
        let commit = publish_altered(session, &table, new.clone())?;
        Ok((next, commit))
    });
    let (next, commit) = match published {
        Ok(done) => done,
        Err(error) => {
            // While the table is still locked: the rows so far go.
            session.transactions.undo_definition()?;
            return Err(error);
        }
    };
    set_next_auto_increment(session, &new, Some(next))?;
    drop(guard);
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// Loads all rows of `files` into a table that no other session uses, in the open transaction. Returns the next AUTO_INCREMENT value that the files know.
pub(crate) fn load_files(
    session: &mut Session,
    table: &Arc<Table>,
    files: &[TableFile],
) -> Result<u64> {
    begin_stage(session, "importing tables");
    let cancel = session.shared.cancel.clone();
    let (mode, checks) = (session.settings.sql_mode, session.settings.foreign_key_checks);
    // The values are a table's already. As in the reference a foreign key is not checked.
    let kept = mode.0 & !(SqlMode::NO_ZERO_DATE.0 | SqlMode::NO_ZERO_IN_DATE.0);
    let strict = SqlMode::ALLOW_INVALID_DATES.0 | SqlMode::STRICT_ALL_TABLES.0;
    session.settings.sql_mode = SqlMode(kept | strict);
    session.settings.foreign_key_checks = false;
    let loaded = blocking(|| {
        session.server.catalog.wait_for_earlier_commits(&cancel)?;
        let (mut next, mut work_done) = (0, 0);
        for file in files {
            let (known, rows) = load_file(session, table, file)?;
            (next, work_done) = (next.max(known), work_done + rows);
        }
        Ok((next, work_done))
    });
    session.settings.sql_mode = mode;
    session.settings.foreign_key_checks = checks;
    let work_done = loaded.as_ref().map_or(0, |(_, rows)| *rows);
    end_stage(session, Some(Progress { work_done, work_expected: work_done }));
    loaded.map(|(next, _)| next)
}

/// The next AUTO_INCREMENT value that the file knows, and the number of its rows.
fn load_file(session: &mut Session, table: &Arc<Table>, file: &TableFile) -> Result<(u64, u64)> {
    let shown = transport::shown(table);
    let rows = transport::open(&file.path, &shown)?;
    transport::check_alike(&rows.definition().columns, table)?;
    let next = rows.definition().next;
    let source = Arc::new(transport::file_table(table, session.server.catalog.new_table_id()?));
    // No trigger is found under this name, and no statement can contain it.
    let mut target = Table::clone(table);
    target.name = format!("#copy-{}", table.id.0).into();
    target.foreign_keys.clear();
    target.options.retain(|(name, _)| name != catalog::DISCARDED_OPTION);
    let target = Arc::new(target);
    let origins: Vec<Option<usize>> =
        target.columns.iter().map(|column| source.column(&column.name)).collect();
    let into: Vec<Ident> = file.partition.iter().map(|name| Ident::new(name)).collect();
    let statement = copy_statement(&source, &target, &origins, None, &into)?;
    let cancel = session.shared.cancel.clone();
    let loaded = as_copy(session, &source, &target, &origins, |session| {
        let running = &crate::ddl::RUNNING;
        let planned = plan_on_new_tables(session, &[&target, &source], &statement, running)?;
        let registry = session.transactions.home.registry.clone();
        let engine = registry.engine_index(&table.engine);
        let engine = engine.ok_or_else(|| err!(UNKNOWN_STORAGE_ENGINE, table.engine))?;
        let reader = Box::new(FileRows::new(rows, &file.path, &shown, table, &cancel));
        let on_rows = Box::new(|_| {});
        let mut copier =
            Copier { engine, registry, table: source.id, work: Work::All, reader, on_rows };
        session.run_copy(&planned, &mut copier)
    });
    loaded.map(|outcome| (next, outcome.affected)).map_err(|error| match error.code() {
        ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET => err!(ROW_DOES_NOT_MATCH_PARTITION),
        _ => word_copy_error(&error, &target, table),
    })
}

/// IMPORT TABLE FROM: makes each table that files define, and loads its rows.
///
/// # Errors
/// 1227, 1290, 3608 to 3610, those of CREATE TABLE and of the files.
pub(crate) fn import_tables(
    session: &mut Session,
    patterns: &[Box<str>],
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.require_global(PrivilegeSet::FILE)?;
    let mut paths = Vec::new();
    let data = data_directory(session);
    for pattern in patterns {
        let own = transport::below_import(&data, pattern);
        let path = own.map_or_else(|| crate::load_data::data_path(session, pattern), Ok)?;
        paths.extend(transport::expand(&path, pattern)?);
    }
    let tables = transport::tables_of(&paths)?;
    transport::check_new(&session.snapshot(), &tables)?;
    // As in the reference: the files are where the statement is, not where its log is read.
    session.statement.text.clear();
    for (definition, files) in tables {
        let create = transport::creation(&definition, &files)?;
        let mode = SqlMode(SqlMode::NO_AUTO_VALUE_ON_ZERO.0 | SqlMode::ALLOW_INVALID_DATES.0);
        let mode = std::mem::replace(&mut session.settings.sql_mode, mode);
        let utc = Arc::new(types::Utc);
        let zone = std::mem::replace(&mut session.settings.time_zone, utc);
        let (running, rows) = (&crate::ddl::RUNNING, FirstRows::Files(files));
        // Whoever observes or denies CREATE TABLE is asked for this one.
        let statement = Statement::CreateTable(Box::new(create.clone()));
        let made = session.check_changes_allowed(&statement).and_then(|()| {
            watched(session, &statement, |session| {
                create_table_with(session, &create, rows, running, &mut DiscardSink::default())
            })
        });
        (session.settings.sql_mode, session.settings.time_zone) = (mode, zone);
        made?;
    }
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo::default())
}
