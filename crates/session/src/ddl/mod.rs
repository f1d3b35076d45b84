//! Statements that change definitions.
//!
//! Each builds the catalog's new objects, takes metadata locks, changes the engine and the dictionary in one transaction, and
//! publishes the new version with the commit.

mod alter;
mod copy;
mod create;
mod database;
mod definer;
mod drop;
mod explain;
mod index;
mod online_copy;
mod sequence;
pub(crate) mod tablespace;
mod view;

use std::sync::Arc;

use catalog::{CatalogSnapshot, DdlWaitPolicy, Edit, LockMode, LockWait, MetadataGuard, Table};
use engine_api::{CommitHandle, TableId};
use errors::{Result, err};
use exec::TransactionSource;
use syntax::ast::ObjectName;

use crate::session::Session;
use transactions::Shared;

pub(crate) use alter::{alter_table, publish_altered};
pub(crate) use copy::{RUNNING, as_copy};
pub(crate) use create::{
    FirstRows, create_table, create_table_with, plan_on_new_tables, set_next_auto_increment,
};
pub(crate) use database::{
    alter_database, check_schema_writable, check_writable_in, create_database, drop_database,
};
pub(crate) use definer::engines;
pub(crate) use drop::{drop_tables, rename_tables, truncate_table};
pub(crate) use explain::explain_definition;
pub(crate) use index::{create_index, drop_index};
pub(crate) use online_copy::rows_of;
pub(crate) use sequence::{alter_sequence, create_sequence, drop_sequences};
pub(crate) use view::{create_view, drop_views, understood_query};

impl Session {
    /// Schema and name of an object, the current schema when none is written.
    pub(crate) fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
        let schema = match &name.schema {
            Some(schema) => Arc::from(&*schema.text),
            None => self.current_schema()?,
        };
        Ok((schema, Arc::from(&*name.name.text)))
    }

    /// A stored or temporary table.
    ///
    /// # Errors
    /// 1146, 1347 for a view.
    pub(crate) fn find_table(&self, schema: &str, name: &str) -> Result<Arc<Table>> {
        match self.view().relation(schema, name) {
            Some(catalog::Relation::Table(table)) => Ok(table),
            Some(catalog::Relation::View(_)) => Err(err!(WRONG_OBJECT, schema, name, "BASE TABLE")),
            None => Err(err!(NO_SUCH_TABLE, schema, name)),
        }
    }

    /// Waits until no other session uses the tables, and excludes others.
    pub(crate) fn lock_for_ddl(&mut self, tables: &[TableId]) -> Result<MetadataGuard> {
        let wanted: Vec<_> =
            tables.iter().map(|table| (Some(*table), LockMode::Exclusive)).collect();
        let wait = self.ddl_wait();
        let locks = &self.server.metadata_locks;
        let guard = locks.lock(self.shared.id, &wanted, wait, &self.shared.cancel)?;
        if self.transactions.is_defining() {
            sys::blocking::blocking(|| self.transactions.see_newest())?;
        }
        if tables.iter().any(|table| table.is_shared()) {
            let snapshot = self.snapshot();
            self.transactions.lock_definitions(&snapshot, tables)?;
        }
        Ok(guard)
    }

    /// How a change of a definition waits for the statements that use it.
    pub(crate) fn ddl_wait(&self) -> LockWait {
        let policy = match self.settings.ddl_skips_ahead {
            true => DdlWaitPolicy::SkipAhead,
            false => DdlWaitPolicy::Queue,
        };
        LockWait { timeout: self.settings.lock_wait_timeout, policy }
    }

    /// Commits the running transaction of the default engine together with `edits`; or adds them to the open transaction that the statement is part of.
    pub(crate) fn commit_definitions(&mut self, edits: &[Edit]) -> Result<CommitHandle> {
        let engine = self.server.default_engine.name();
        let catalog = self.server.catalog.clone();
        let followed = programs::follow_tables(&self.snapshot(), edits)?;
        let edits = followed.as_deref().unwrap_or(edits);
        crate::recording::definition(self)?;
        if self.transactions.is_defining() {
            // Also when nothing but the dictionary changes: its commit writes that.
            self.transactions.transaction(engine)?;
            self.transactions.add_definitions(edits)?;
            return Ok(CommitHandle::Durable);
        }
        self.transactions.attach_recorded(true)?;
        let _sharing = edits.iter().any(Edit::is_shared).then(|| catalog.sharing());
        let shared = match &_sharing {
            None => Shared::default(),
            Some(_) => share(self, edits)?,
        };
        // What the dictionary will name must be there; what it no longer names may be left over.
        if !edits.iter().all(|edit| matches!(edit, Edit::DropTable(_) | Edit::DropSchema(_))) {
            let left = engines_left(&self.snapshot(), edits);
            let later: Vec<&str> = left.iter().map(|name| &**name).chain([engine]).collect();
            self.transactions.commit_others(&later)?;
        }
        let txn = self.transactions.transaction(engine)?;
        let handle = catalog.commit(txn, edits, &self.shared.cancel)?;
        self.transactions.commit()?;
        shared.follow();
        Ok(handle)
    }
}

fn share(session: &mut Session, edits: &[Edit]) -> Result<Shared> {
    let snapshot = session.snapshot();
    let shared = session.transactions.share(&snapshot, edits);
    if shared.is_err() {
        // The first error is the one to report.
        let _ = session.transactions.rollback();
    }
    shared
}

/// Engines whose shared tables move to others: theirs are the only rows until the dictionary names the new ones.
fn engines_left(snapshot: &CatalogSnapshot, edits: &[Edit]) -> Vec<Arc<str>> {
    let left = edits.iter().filter(|edit| edit.leaves_others());
    let left = left.filter_map(|edit| snapshot.table_by_id(edit.replaced_table()?));
    left.map(|table| table.engine.clone()).collect()
}
