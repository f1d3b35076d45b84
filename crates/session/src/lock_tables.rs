//! LOCK TABLES and UNLOCK TABLES.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{CatalogView, LockMode, MetadataGuard, PrivilegeSet, Relation, Table, Usage};
use engine_api::TableId;
use errors::{Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{
    AlterAction, AlterTable, CreateTable, LockTable, LockTableMode, ObjectName, PartitionAction,
};

use crate::planned::Planned;
use crate::planner::Planner;
use crate::session::Session;

/// Tables locked by LOCK TABLES.
#[derive(Default)]
pub(crate) struct LockedTables {
    /// `None` when LOCK TABLES is not in force.
    tables: Option<Vec<LockedTable>>,
    guards: Vec<MetadataGuard>,
    /// FLUSH TABLES WITH READ LOCK.
    pub(crate) global_read: Option<MetadataGuard>,
}

/// A table that LOCK TABLES locked under one name.
#[derive(Clone, Debug)]
pub(crate) struct LockedTable {
    /// The table; `None` for a view.
    pub(crate) id: Option<TableId>,
    schema: Arc<str>,
    pub(crate) name: Arc<str>,
    alias: Arc<str>,
    pub(crate) write: bool,
}

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
            commit = crate::transaction_scope::to_wait_for(handle);
        }
        self.locked.release_tables();
        self.locked.global_read = None;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }
}

impl LockedTables {
    /// Whether LOCK TABLES is in force.
    pub(crate) fn is_in_force(&self) -> bool {
        self.tables.is_some()
    }

    /// Stores the locks of LOCK TABLES.
    fn put(&mut self, tables: Vec<LockedTable>, guard: MetadataGuard) {
        self.guards.push(guard);
        self.tables = Some(tables);
    }

    /// Ends LOCK TABLES; a global read lock stays.
    pub(crate) fn release_tables(&mut self) {
        self.tables = None;
        self.guards.clear();
    }

    /// While LOCK TABLES is in force only locked tables may be used, each by the name it was locked with and once for each time
    /// that it was locked.
    pub(crate) fn check_use(&self, planned: &Planned, view: &CatalogView) -> Result<()> {
        let Some(locked) = &self.tables else { return Ok(()) };
        let mut used = vec![false; locked.len()];
        for reference in &planned.references {
            if view.temporary_table(&reference.schema, &reference.name).is_some() {
                continue;
            }
            let id = view.table(&reference.schema, &reference.name).map(|table| table.id);
            let found = locked.iter().zip(&used).position(|(table, used)| {
                !used
                    && table.id == id
                    && table.alias == reference.alias
                    && (id.is_some() || is_view(table, reference))
            });
            match found {
                Some(index) => used[index] = true,
                None => bail!(TABLE_NOT_LOCKED, reference.alias),
            }
        }
        for (id, usage) in &planned.uses {
            let used = planned.tables.iter().find(|table| table.id == *id);
            let name = used.map_or("", |table| &table.name);
            match is_locked(locked, *id) {
                // Both ends of a foreign key are used when one of them is written.
                None if used.is_some_and(|used| is_relative(used, planned, locked)) => {}
                None => bail!(TABLE_NOT_LOCKED, name),
                Some(false) if *usage == Usage::Write => bail!(TABLE_NOT_LOCKED_FOR_WRITE, name),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Definitions may change under LOCK TABLES only of tables locked for writing; under a global read lock not at all.
    pub(crate) fn check_definition(&self, statement: &Statement, names: Names<'_>) -> Result<()> {
        let harmless = matches!(
            statement,
            Statement::StartTransaction(_) | Statement::LockTables(_) | Statement::Flush(_)
        );
        if self.global_read.is_some() && !harmless {
            bail!(CANT_UPDATE_WITH_READLOCK);
        }
        let Some(locked) = &self.tables else { return Ok(()) };
        match statement {
            Statement::AlterTable(alter) => {
                names.check_redefinable(&alter.name, locked)?;
                exchanged(alter).map_or(Ok(()), |other| names.check_redefinable(other, locked))
            }
            Statement::TruncateTable(name) => names.check_redefinable(name, locked),
            Statement::CreateIndex(create) => names.check_redefinable(&create.table, locked),
            Statement::DropIndex(drop) => names.check_redefinable(&drop.table, locked),
            Statement::CreateTable(create) if !create.temporary => names.check_new(create, locked),
            Statement::DropTable(drop) if !drop.temporary => {
                drop.names.iter().try_for_each(|name| names.check_redefinable(name, locked))
            }
            Statement::RenameTable(rename) => names.check_renames(&rename.renames, locked),
            Statement::CreateDatabase(_)
            | Statement::AlterDatabase(_)
            | Statement::DropDatabase(_)
            | Statement::CreateView(_)
            | Statement::AlterView(_)
            | Statement::DropView(_)
            | Statement::CreateRoutine(_)
            | Statement::AlterRoutine(_)
            | Statement::DropRoutine(_)
            | Statement::CreateLibrary(_)
            | Statement::AlterLibrary(_)
            | Statement::DropLibrary(_)
            | Statement::CreateEvent(_)
            | Statement::AlterEvent(_)
            | Statement::DropEvent(_) => Err(err!(LOCK_OR_ACTIVE_TRANSACTION)),
            _ => Ok(()),
        }
    }

    /// After a definition changed: forgets locked tables that are gone, learns new names, and locks the table that took the
    /// place of a locked table.
    pub(crate) fn renew(
        &mut self,
        view: &CatalogView,
        lock: impl FnOnce(&[(Option<TableId>, LockMode)]) -> Result<MetadataGuard>,
    ) -> Result<()> {
        let Some(locked) = &mut self.tables else { return Ok(()) };
        let mut wanted = Vec::new();
        locked.retain_mut(|table| {
            let Some(id) = table.id else { return true };
            let by_id = view.snapshot.table_by_id(id);
            let Some(present) = by_id.or_else(|| view.snapshot.table(&table.schema, &table.name))
            else {
                return false;
            };
            if present.id != id {
                table.id = Some(present.id);
                wanted.push((table.id, table.mode()));
            }
            if table.alias == table.name {
                table.alias = present.name.clone();
            }
            table.name = present.name.clone();
            table.schema = present.schema.clone();
            true
        });
        if locked.is_empty() {
            // No locked table is left.
            self.release_tables();
            return Ok(());
        }
        if !wanted.is_empty() {
            let guard = lock(&wanted)?;
            self.guards.push(guard);
        }
        Ok(())
    }
}

/// Meaning of the names of a statement.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) view: &'a CatalogView,
    pub(crate) schema: Option<&'a Arc<str>>,
}

impl Names<'_> {
    /// Schema and name of an object, the current schema when none is written.
    fn qualify(self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
        let schema = match &name.schema {
            Some(schema) => Arc::from(&*schema.text),
            None => self.schema.cloned().ok_or_else(|| err!(NO_DB_ERROR))?,
        };
        Ok((schema, Arc::from(&*name.name.text)))
    }

    /// A table that is changed or dropped must be locked for writing.
    fn check_redefinable(self, target: &ObjectName, locked: &[LockedTable]) -> Result<()> {
        let (schema, name) = self.qualify(target)?;
        let Some(table) = self.view.table(&schema, &name) else { bail!(TABLE_NOT_LOCKED, name) };
        match is_locked(locked, table.id) {
            Some(true) => Ok(()),
            Some(false) => Err(err!(TABLE_NOT_LOCKED_FOR_WRITE, name)),
            None if table.temporary => Ok(()),
            None => Err(err!(TABLE_NOT_LOCKED, name)),
        }
    }

    /// Renamed tables must be locked for writing, but those that have their names from an earlier part of the statement: their own names
    /// were checked there.
    fn check_renames(
        self,
        renames: &[(ObjectName, ObjectName)],
        locked: &[LockedTable],
    ) -> Result<()> {
        let mut given = Vec::new();
        for (from, to) in renames {
            let name = self.qualify(from)?;
            match given.iter().position(|known| *known == name) {
                Some(at) => _ = given.swap_remove(at),
                None => self.check_redefinable(from, locked)?,
            }
            given.push(self.qualify(to)?);
        }
        Ok(())
    }

    /// A created table must be one that is locked.
    fn check_new(self, create: &CreateTable, locked: &[LockedTable]) -> Result<()> {
        let (schema, name) = self.qualify(&create.name)?;
        let table = self.view.snapshot.table(&schema, &name).map(|table| table.id);
        match table.is_some() && locked.iter().any(|known| known.id == table) {
            true => Ok(()),
            false => Err(err!(TABLE_NOT_LOCKED, name)),
        }
    }
}

impl LockedTable {
    fn mode(&self) -> LockMode {
        if self.write { LockMode::Exclusive } else { LockMode::NoWrite }
    }
}

/// The tables that a view reads are locked in the same mode as the view.
fn tables_of_view(
    planner: &Planner<'_>,
    view: &catalog::View,
    write: bool,
) -> Result<Vec<LockedTable>> {
    let parsed = syntax::parse_one(&view.definition, &syntax::ParseOptions::default())
        .map_err(|_| err!(VIEW_INVALID, view.schema, view.name))?;
    let planned = planner.plan_statement(&parsed.0, view.definition.as_bytes(), None)?;
    let table = |table: &Arc<Table>| LockedTable {
        id: Some(table.id),
        schema: table.schema.clone(),
        name: table.name.clone(),
        alias: table.name.clone(),
        write,
    };
    Ok(planned.tables.iter().map(table).collect())
}

/// The other table of EXCHANGE PARTITION.
fn exchanged(alter: &AlterTable) -> Option<&ObjectName> {
    match &alter.actions[..] {
        [AlterAction::Partition(action)] => match &**action {
            PartitionAction::Exchange { table, .. } => Some(table),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a table is locked, and then whether for writing.
fn is_locked(locked: &[LockedTable], id: TableId) -> Option<bool> {
    let known = locked.iter().filter(|table| table.id == Some(id));
    known.map(|table| table.write).reduce(|one, other| one || other)
}

fn is_view(table: &LockedTable, reference: &binder::Reference) -> bool {
    table.name == reference.name && table.schema == reference.schema
}

/// Whether a foreign key joins `table` with a table that is locked.
fn is_relative(table: &Table, planned: &Planned, locked: &[LockedTable]) -> bool {
    let refers = |child: &Table, parent: &Table| {
        child.foreign_keys.iter().any(|key| {
            key.referenced_schema == parent.schema && key.referenced_table == parent.name
        })
    };
    planned
        .tables
        .iter()
        .filter(|other| locked.iter().any(|known| known.id == Some(other.id)))
        .any(|other| refers(table, other) || refers(other, table))
}
