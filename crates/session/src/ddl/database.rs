//! CREATE, ALTER and DROP DATABASE.

use ::accounts::PrivilegeChecks;
use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Edit, PrivilegeSet, Relation, SchemaOptions};
use definitions::encryption::{TABLE_ENCRYPTION_ADMIN, schema_encryption};
use definitions::{check_declared_once, check_schema_name, choose_collation, note_charset};
use engine_api::TableId;
use errors::{ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::variable::as_u64;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{AlterDatabase, CreateDatabase, DatabaseOption, DropDatabase};

use crate::session::Session;

/// How often DROP DATABASE retries after other sessions have created objects in it.
const RACES_MAX: usize = 10;

/// The options of a database after a statement with these; `before` it had those, and by default it is encrypted or not.
fn database_options(
    session: &mut Session,
    options: &[DatabaseOption],
    before: SchemaOptions,
) -> Result<SchemaOptions> {
    let (mut charset, mut collation, mut encryption) = (None, None, None);
    let mut is_read_only = before.is_read_only;
    for option in options {
        match option {
            DatabaseOption::Charset(name) => {
                check_declared_once(charset, name.as_ref())?;
                charset = name.as_ref();
            }
            DatabaseOption::Collation(name) => collation = name.as_ref(),
            DatabaseOption::Encryption(text) => encryption = Some(&**text),
            DatabaseOption::ReadOnly(wanted) => is_read_only = wanted.unwrap_or(false),
            DatabaseOption::Comment(_) => {
                session.working.warn(ErrorCode::OPTION_IGNORED, &[&"COMMENT"]);
            }
        }
    }
    let text = |name: Option<&syntax::ast::Ident>| name.map(|name| name.text.clone());
    let (charset, collation) = (text(charset), text(collation));
    let chosen = choose_collation(charset.as_deref(), collation.as_deref(), before.collation)?;
    note_charset(&mut session.working, charset.as_deref(), collation.as_deref());
    let is_default_on = as_u64(&session.value("default_table_encryption")) == 1;
    let choice = encryption_choice(session);
    let encryption = schema_encryption(encryption, is_default_on, choice)?;
    let is_encrypted = encryption.unwrap_or(before.is_encrypted);
    Ok(SchemaOptions { collation: chosen, is_encrypted, is_read_only })
}

/// Whether the choice of encryption is checked, and whether the account may choose.
pub(crate) fn encryption_choice(session: &Session) -> (bool, bool) {
    let is_checked = session.server.globals.integer("table_encryption_privilege_check") == 1;
    (is_checked, session.privileges.has_dynamic(TABLE_ENCRYPTION_ADMIN))
}

/// CREATE DATABASE.
pub(crate) fn create_database(
    session: &mut Session,
    create: &CreateDatabase,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    check_schema_name(&create.name)?;
    let name: Arc<str> = Arc::from(&*create.name.text);
    let may_create = session.privileges.on_schema(&name).contains(PrivilegeSet::CREATE);
    if matches!(&*name, "mysql" | "sys") && create.flags.if_not_exists && may_create {
        // They always exist: dumps begin with this.
        session.working.note(ErrorCode::DB_CREATE_EXISTS, &[&name]);
        return session.send_ok(sink, OkInfo { affected_rows: 1, ..OkInfo::default() });
    }
    session.require_on_schema(&name, PrivilegeSet::CREATE)?;
    session.check_writable()?;
    let before = SchemaOptions {
        is_encrypted: as_u64(&session.value("default_table_encryption")) == 1,
        ..SchemaOptions::of_collation(session.settings.collation_server.id)
    };
    let options = database_options(session, &create.options, before)?;
    let exists = session.snapshot().schema(&name).is_some();
    if exists {
        if create.flags.or_replace {
            drop_schema(session, &name)?;
        } else if create.flags.if_not_exists {
            session.working.note(ErrorCode::DB_CREATE_EXISTS, &[&name]);
            return session.send_ok(sink, OkInfo { affected_rows: 1, ..OkInfo::default() });
        } else {
            bail!(DB_CREATE_EXISTS, name);
        }
    }
    let edit = Edit::CreateSchema { name, options };
    let commit = session.commit_definitions(&[edit])?;
    session.services.row_count = 1;
    let ok = OkInfo { affected_rows: 1, commit: Some(commit), ..OkInfo::default() };
    session.send_ok(sink, ok)
}

/// ALTER DATABASE.
pub(crate) fn alter_database(
    session: &mut Session,
    alter: &AlterDatabase,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let name = match &alter.name {
        Some(name) => Arc::from(&*name.text),
        None => session.current_schema()?,
    };
    session.require_on_schema(&name, PrivilegeSet::ALTER)?;
    session.check_writable()?;
    let known = session.snapshot().schema(&name).map(|schema| schema.options);
    let known = known.ok_or_else(|| err!(BAD_DB_ERROR, name))?;
    let options = database_options(session, &alter.options, known)?;
    let is_about_writes = |option: &DatabaseOption| matches!(option, DatabaseOption::ReadOnly(_));
    if options.is_read_only && !alter.options.iter().all(is_about_writes) {
        crate::ddl::check_schema_writable(session, &name)?;
    }
    // Statements that write its tables end first.
    let _guard = match options.is_read_only && !known.is_read_only {
        true => Some(session.lock_for_ddl(&tables_of(session, &name))?),
        false => None,
    };
    let edit = Edit::AlterSchema { name: name.clone(), options };
    let commit = session.commit_definitions(&[edit])?;
    let collation = options.collation;
    if session.services.database.as_deref() == Some(&*name) {
        let collation = charset::collation_or_binary(collation);
        session.set_database(Some(name), collation);
    }
    let ok = OkInfo { affected_rows: 1, commit: Some(commit), ..OkInfo::default() };
    session.send_ok(sink, ok)
}

/// Whether the session may change a schema or its objects.
///
/// # Errors
/// 1290 on a server that is read-only for the account, 3989.
pub(crate) fn check_writable_in(session: &Session, schema: &str) -> Result<()> {
    session.check_writable()?;
    check_schema_writable(session, schema)
}

/// # Errors
/// 3989 for a schema that is READ ONLY. A channel changes it all the same: its source decides.
pub(crate) fn check_schema_writable(session: &Session, schema: &str) -> Result<()> {
    let snapshot = session.snapshot();
    let known = snapshot.schema(schema).filter(|known| known.options.is_read_only);
    match known {
        Some(_) if !session.is_applier => Err(err!(SCHEMA_READ_ONLY, schema)),
        _ => Ok(()),
    }
}

fn tables_of(session: &Session, schema: &str) -> Vec<TableId> {
    let snapshot = session.snapshot();
    let id = |(table, _): (&Arc<str>, _)| match snapshot.look(schema, table)? {
        Relation::Table(table) => Some(table.id),
        Relation::View(_) => None,
    };
    snapshot.names(schema).filter_map(id).collect()
}

/// DROP DATABASE.
pub(crate) fn drop_database(
    session: &mut Session,
    drop: &DropDatabase,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let name: Arc<str> = Arc::from(&*drop.name.text);
    session.require_on_schema(&name, PrivilegeSet::DROP)?;
    crate::ddl::check_writable_in(session, &name)?;
    let exists = session.snapshot().schema(&name).is_some();
    if !exists {
        if drop.if_exists {
            session.working.note(ErrorCode::DB_DROP_EXISTS, &[&name]);
            return session.send_ok(sink, OkInfo::default());
        }
        bail!(DB_DROP_EXISTS, name);
    }
    let mut dropped = drop_schema(session, &name);
    for _ in 0..RACES_MAX {
        // Other sessions created objects in it in the meantime: its contents are looked up again.
        if !dropped.as_ref().is_err_and(|error| error.code() == ErrorCode::LOCK_DEADLOCK) {
            break;
        }
        session.transactions.undo_definition()?;
        dropped = drop_schema(session, &name);
    }
    let affected_rows = dropped?;
    if session.services.database.as_deref() == Some(&*name) {
        let collation = session.settings.collation_server;
        session.set_database(None, collation);
    }
    session.services.row_count = affected_rows as i64;
    session.send_ok(sink, OkInfo { affected_rows, ..OkInfo::default() })
}

/// Drops a schema with everything in it; returns the number of its tables and views.
fn drop_schema(session: &mut Session, name: &Arc<str>) -> Result<u64> {
    let snapshot = session.snapshot();
    snapshot.schema(name).ok_or_else(|| err!(DB_DROP_EXISTS, name))?;
    let tables: Vec<_> = snapshot
        .names(name)
        .filter_map(|(table, _)| match snapshot.look(name, table)? {
            Relation::Table(table) => Some(table),
            Relation::View(_) => None,
        })
        .collect();
    if session.settings.foreign_key_checks {
        for table in &tables {
            for child in snapshot.children_of(name, &table.name) {
                if child.schema != *name {
                    let key = child.foreign_keys.iter().find(|key| {
                        key.referenced_schema == *name && key.referenced_table == table.name
                    });
                    let key = key.map_or("", |key| &key.name);
                    bail!(FK_CANNOT_DROP_PARENT, table.name, key, child.name);
                }
            }
        }
    }
    let ids: Vec<_> = tables.iter().map(|table| table.id).collect();
    let expected: HashSet<_> = ids.iter().copied().collect();
    let _guard = session.lock_for_ddl(&ids)?;
    let server = session.server.clone();
    let _changing = server.events.changing();
    // A table created in the meantime would be left behind: look again under the locks.
    let snapshot = session.snapshot();
    snapshot.schema(name).ok_or_else(|| err!(DB_DROP_EXISTS, name))?;
    let mut edits: Vec<Edit> = Vec::new();
    edits.extend(snapshot.routines(name).map(|routine| Edit::DropRoutine {
        schema: name.clone(),
        kind: routine.kind,
        name: routine.name.clone(),
    }));
    edits.extend(snapshot.events(name).map(|event| Edit::DropEvent {
        schema: name.clone(),
        name: event.name.clone(),
        over: None,
    }));
    // Only tables and views are counted.
    let routines = edits.len() as u64;
    for relation in snapshot.names(name).filter_map(|(own, _)| snapshot.look(name, own)) {
        match relation {
            Relation::Table(table) => {
                if !expected.contains(&table.id) {
                    bail!(LOCK_DEADLOCK);
                }
                let txn = session.transactions.transaction(&table.engine)?;
                for part in table.engine_tables() {
                    let dropped = txn.drop_table(part.id);
                    dropped.map_err(|error| error.into_error(&session.shared.cancel))?;
                }
                edits.push(Edit::DropTable(table.id));
            }
            Relation::View(view) => {
                edits.push(Edit::DropView { schema: name.clone(), name: view.name.clone() });
            }
        }
    }
    edits.push(Edit::DropSchema(name.clone()));
    session.commit_definitions(&edits)?;
    Ok(edits.len() as u64 - 1 - routines)
}
