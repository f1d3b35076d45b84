//! LOCK TABLES and UNLOCK TABLES.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{LockMode, PrivilegeSet, Relation, Table};
use engine_api::TableId;
use errors::{Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use statements::locked_tables::LockedTable;
use syntax::ast::{LockTable, LockTableMode, Statement};

use crate::planner::Planner;
use crate::session::Session;

impl Session {
    /// LOCK TABLES. Earlier locks are released; the dispatcher has committed the transaction.
    pub(crate) fn lock_tables(
        &mut self,
        tables: &[LockTable],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let writes = tables.iter().any(|table| table.mode == LockTableMode::Write);
        if writes && self.locked.global_read.is_some() {
            bail!(CANT_UPDATE_WITH_READLOCK);
        }
        self.locked.release_tables();
        self.take_table_locks(tables)?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    /// Locks tables; a view locks the tables that it reads.
    pub(crate) fn take_table_locks(&mut self, tables: &[LockTable]) -> Result<()> {
        let view = self.view();
        let (mut locked, mut of_views): (Vec<LockedTable>, Vec<LockedTable>) = Default::default();
        for table in tables {
            let (schema, name) = self.qualify(&table.name)?;
            let write = match table.mode {
                LockTableMode::Read | LockTableMode::ReadLocal => false,
                LockTableMode::Write => true,
            };
            if catalog::system_schema(&schema).is_some()
                || view.temporary_table(&schema, &name).is_some()
            {
                continue;
            }
            if write {
                crate::ddl::check_schema_writable(self, &schema)?;
            }
            let alias = match &table.alias {
                Some(alias) => Arc::from(&*alias.text),
                None => name.clone(),
            };
            if locked.iter().any(|known| known.alias == alias && known.schema == schema) {
                bail!(NONUNIQ_TABLE, alias);
            }
            let mut entry = LockedTable { id: None, schema, name, alias, write };
            match view.snapshot.relation(&entry.schema, &entry.name) {
                None => return Err(err!(NO_SUCH_TABLE, entry.schema, entry.name)),
                Some(Relation::View(definition)) => {
                    let definition = definition.clone();
                    locked.push(entry);
                    of_views.extend(tables_of_view(&self.planner(), &definition, write)?);
                }
                Some(Relation::Table(found)) => {
                    self.require_on_schema(&entry.schema, PrivilegeSet::LOCK_TABLES)?;
                    self.require_on_table(&entry.schema, &entry.name, PrivilegeSet::SELECT)?;
                    entry.id = Some(found.id);
                    locked.push(entry);
                }
            }
        }
        locked.append(&mut of_views);
        let mut wanted: Vec<(Option<TableId>, LockMode)> = Vec::new();
        for table in locked.iter().filter(|table| table.id.is_some()) {
            let mode = table.mode();
            match wanted.iter_mut().find(|(id, _)| *id == table.id) {
                Some((_, known)) if table.write => *known = mode,
                Some(_) => {}
                None => wanted.push((table.id, mode)),
            }
        }
        let timeout = self.settings.lock_wait_timeout;
        let guard = self.server.metadata_locks.lock(
            self.shared.id,
            &wanted,
            timeout,
            &self.shared.cancel,
        )?;
        let cancel = self.shared.cancel.clone();
        sys::blocking::blocking(|| self.server.catalog.wait_for_earlier_commits(&cancel))?;
        self.locked.put(locked, guard);
        Ok(())
    }

    /// UNLOCK TABLES.
    pub(crate) fn unlock_tables(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        let mut commit = None;
        if self.locked.is_in_force() {
            // Only when tables were locked does UNLOCK TABLES end the transaction.
            let handle = self.transactions.commit()?;
            self.transactions.slot.release_to(0);
            commit = transactions::to_wait_for(handle);
        }
        self.locked.release_tables();
        self.locked.global_read = None;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }
}

/// The tables that a view reads are locked in the same mode as the view.
fn tables_of_view(
    planner: &Planner<'_>,
    view: &catalog::View,
    write: bool,
) -> Result<Vec<LockedTable>> {
    let Some(query) = binder::view_query(view) else {
        return Err(err!(VIEW_INVALID, view.schema, view.name));
    };
    let query = Statement::Query(query);
    let planned = planner.plan_statement(&query, view.definition.as_bytes(), None)?;
    let table = |table: &Arc<Table>| LockedTable {
        id: Some(table.id),
        schema: table.schema.clone(),
        name: table.name.clone(),
        alias: table.name.clone(),
        write,
    };
    Ok(planned.tables.iter().map(table).collect())
}
