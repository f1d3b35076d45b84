//! CREATE, ALTER and DROP DATABASE.

use ::accounts::PrivilegeChecks;
use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Edit, PrivilegeSet, Relation};
use errors::{Error, ErrorCode, Result, bail, err};
use exec::TransactionSource;
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{AlterDatabase, CreateDatabase, DatabaseOption, DropDatabase};
use types::CollationId;

use super::check_schema_name;
use super::options::choose_collation;
use crate::session::Session;

/// How often DROP DATABASE looks again after others have made something in it.
const RACES_MAX: usize = 10;

impl Session {
    /// The collation that database options ask for.
    fn database_collation(
        &mut self,
        options: &[DatabaseOption],
        default: CollationId,
    ) -> Result<CollationId> {
        let (mut charset, mut collation) = (None, None);
        for option in options {
            match option {
                DatabaseOption::Charset(name) => charset = name.as_ref(),
                DatabaseOption::Collation(name) => collation = name.as_ref(),
                DatabaseOption::Encryption(text) if text.eq_ignore_ascii_case("Y") => {
                    return Err(Error::not_supported("ENCRYPTION='Y'"));
                }
                DatabaseOption::Encryption(_) => {}
                DatabaseOption::ReadOnly(Some(true)) => {
                    return Err(Error::not_supported("READ ONLY databases"));
                }
                DatabaseOption::ReadOnly(_) => {}
                DatabaseOption::Comment(_) => {
                    self.working.warn(ErrorCode::OPTION_IGNORED, &[&"COMMENT"]);
                }
            }
        }
        let text = |name: Option<&syntax::ast::Ident>| name.map(|name| name.text.clone());
        let (charset, collation) = (text(charset), text(collation));
        let chosen = choose_collation(charset.as_deref(), collation.as_deref(), default)?;
        self.note_charset(charset.as_deref(), collation.as_deref());
        Ok(chosen)
    }

    /// CREATE DATABASE.
    pub(crate) fn create_database(
        &mut self,
        create: &CreateDatabase,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        check_schema_name(&create.name)?;
        let name: Arc<str> = Arc::from(&*create.name.text);
        let may_create = self.privileges.on_schema(&name).contains(PrivilegeSet::CREATE);
        if matches!(&*name, "mysql" | "sys") && create.flags.if_not_exists && may_create {
            // They are always there: dumps begin with this.
            self.working.note(ErrorCode::DB_CREATE_EXISTS, &[&name]);
            return self.send_ok(sink, OkInfo { affected_rows: 1, ..OkInfo::default() });
        }
        self.require_on_schema(&name, PrivilegeSet::CREATE)?;
        self.check_writable()?;
        let collation =
            self.database_collation(&create.options, self.settings.collation_server.id)?;
        let exists = self.server.catalog.with(|snapshot| snapshot.schema(&name).is_some());
        if exists {
            if create.flags.or_replace {
                self.drop_schema(&name)?;
            } else if create.flags.if_not_exists {
                self.working.note(ErrorCode::DB_CREATE_EXISTS, &[&name]);
                return self.send_ok(sink, OkInfo { affected_rows: 1, ..OkInfo::default() });
            } else {
                bail!(DB_CREATE_EXISTS, name);
            }
        }
        let commit = self.commit_definitions(&[Edit::CreateSchema { name, collation }])?;
        self.services.row_count = 1;
        let ok = OkInfo { affected_rows: 1, commit: Some(commit), ..OkInfo::default() };
        self.send_ok(sink, ok)
    }

    /// ALTER DATABASE.
    pub(crate) fn alter_database(
        &mut self,
        alter: &AlterDatabase,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let name = match &alter.name {
            Some(name) => Arc::from(&*name.text),
            None => self.current_schema()?,
        };
        self.require_on_schema(&name, PrivilegeSet::ALTER)?;
        self.check_writable()?;
        let known = self
            .server
            .catalog
            .with(|snapshot| snapshot.schema(&name).map(|schema| schema.default_collation))
            .ok_or_else(|| err!(BAD_DB_ERROR, name))?;
        let collation = self.database_collation(&alter.options, known)?;
        let edit = Edit::AlterSchema { name: name.clone(), collation };
        let commit = self.commit_definitions(&[edit])?;
        if self.services.database.as_deref() == Some(&*name) {
            let collation = charset::collation_or_binary(collation);
            self.set_database(Some(name), collation);
        }
        let ok = OkInfo { affected_rows: 1, commit: Some(commit), ..OkInfo::default() };
        self.send_ok(sink, ok)
    }

    /// DROP DATABASE.
    pub(crate) fn drop_database(
        &mut self,
        drop: &DropDatabase,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let name: Arc<str> = Arc::from(&*drop.name.text);
        self.require_on_schema(&name, PrivilegeSet::DROP)?;
        self.check_writable()?;
        let exists = self.server.catalog.with(|snapshot| snapshot.schema(&name).is_some());
        if !exists {
            if drop.if_exists {
                self.working.note(ErrorCode::DB_DROP_EXISTS, &[&name]);
                return self.send_ok(sink, OkInfo::default());
            }
            bail!(DB_DROP_EXISTS, name);
        }
        let mut dropped = self.drop_schema(&name);
        for _ in 0..RACES_MAX {
            // Others made something in it meanwhile: what there is now is looked up anew.
            if !dropped.as_ref().is_err_and(|error| error.code() == ErrorCode::LOCK_DEADLOCK) {
                break;
            }
            self.transactions.rollback()?;
            dropped = self.drop_schema(&name);
        }
        let affected_rows = dropped?;
        if self.services.database.as_deref() == Some(&*name) {
            let collation = self.settings.collation_server;
            self.set_database(None, collation);
        }
        self.services.row_count = affected_rows as i64;
        self.send_ok(sink, OkInfo { affected_rows, ..OkInfo::default() })
    }

    /// Drops a schema with everything in it; returns the number of its tables and views.
    fn drop_schema(&mut self, name: &Arc<str>) -> Result<u64> {
        let snapshot = self.server.catalog.snapshot();
        snapshot.schema(name).ok_or_else(|| err!(DB_DROP_EXISTS, name))?;
        let tables: Vec<_> = snapshot
            .names(name)
            .filter_map(|(table, _)| match snapshot.look(name, table)? {
                Relation::Table(table) => Some(table),
                Relation::View(_) => None,
            })
            .collect();
        if self.settings.foreign_key_checks {
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
        let _guard = self.lock_for_ddl(&ids)?;
        let server = self.server.clone();
        let _changing = server.events.changing();
        // A table made meanwhile would be left behind: look again under the locks.
        let snapshot = self.server.catalog.snapshot();
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
        let engine = self.server.default_engine.name();
        for relation in snapshot.names(name).filter_map(|(own, _)| snapshot.look(name, own)) {
            match relation {
                Relation::Table(table) => {
                    if !expected.contains(&table.id) {
                        bail!(LOCK_DEADLOCK);
                    }
                    let txn = self.transactions.transaction(engine)?;
                    for part in table.engine_tables() {
                        let dropped = txn.drop_table(part.id);
                        dropped.map_err(|error| error.into_error(&self.shared.cancel))?;
                    }
                    edits.push(Edit::DropTable(table.id));
                }
                Relation::View(view) => {
                    edits.push(Edit::DropView { schema: name.clone(), name: view.name.clone() });
                }
            }
        }
        edits.push(Edit::DropSchema(name.clone()));
        self.commit_definitions(&edits)?;
        Ok(edits.len() as u64 - 1 - routines)
    }
}
