//! The tables that LOCK TABLES locked, and what statements may do while they are.

use std::sync::Arc;

use catalog::{CatalogView, LockMode, MetadataGuard, Table, Usage};
use engine_api::TableId;
use errors::{Result, bail, err};
use syntax::Statement;
use syntax::ast::{AlterAction, AlterTable, ObjectName, PartitionAction};

use crate::planned::Planned;

/// Tables locked by LOCK TABLES.
#[derive(Default)]
pub struct LockedTables {
    /// `None` when LOCK TABLES is not in force.
    tables: Option<Vec<LockedTable>>,
    guards: Vec<MetadataGuard>,
    /// What goes with the locks: the files of FLUSH TABLES .. FOR EXPORT.
    attached: Vec<Box<dyn Send>>,
    /// FLUSH TABLES WITH READ LOCK.
    pub global_read: Option<MetadataGuard>,
}

/// A table that LOCK TABLES locked under one name.
#[derive(Clone, Debug)]
pub struct LockedTable {
    /// The table; `None` for a view.
    pub id: Option<TableId>,
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The name that statements use.
    pub alias: Arc<str>,
    /// Locked for writing.
    pub write: bool,
}

impl LockedTables {
    /// Whether LOCK TABLES is in force.
    #[inline]
    pub fn is_in_force(&self) -> bool {
        self.tables.is_some()
    }

    /// Stores the locks of LOCK TABLES.
    pub fn put(&mut self, tables: Vec<LockedTable>, guard: MetadataGuard) {
        self.guards.push(guard);
        self.tables = Some(tables);
    }

    /// Drops `what` when the locks are released.
    pub fn attach(&mut self, what: Box<dyn Send>) {
        self.attached.push(what);
    }

    /// Ends LOCK TABLES; a global read lock stays.
    pub fn release_tables(&mut self) {
        self.tables = None;
        // The files first: while they are there nobody writes the tables.
        self.attached.clear();
        self.guards.clear();
    }

    /// While LOCK TABLES is in force only locked tables may be used, each by the name it was locked with and once for each time
    /// that it was locked.
    pub fn check_use(&self, planned: &Planned, view: &CatalogView) -> Result<()> {
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
                // A table's lock is one on the sequences of its defaults.
                None if planned.drawn_by_defaults.contains(&id.0) => {}
                None => bail!(TABLE_NOT_LOCKED, name),
                Some(false) if *usage == Usage::Write => bail!(TABLE_NOT_LOCKED_FOR_WRITE, name),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Definitions may change under LOCK TABLES only of tables locked for writing; under a global read lock not at all.
    pub fn check_definition(&self, statement: &Statement, names: Names<'_>) -> Result<()> {
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
            Statement::CreateTable(create) if !create.temporary => {
                names.check_new(&create.name, locked)
            }
            Statement::CreateSequence(create) => names.check_new(&create.name, locked),
            Statement::AlterSequence(alter) => names.check_redefinable(&alter.name, locked),
            Statement::DropSequence(drop) => {
                drop.names.iter().try_for_each(|name| names.check_redefinable(name, locked))
            }
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
            | Statement::DropEvent(_)
            | Statement::ImportTable(_) => Err(err!(LOCK_OR_ACTIVE_TRANSACTION)),
            _ => Ok(()),
        }
    }

    /// After a definition changed: forgets locked tables that are gone, learns new names, and locks the table that took the
    /// place of a locked table.
    pub fn renew(
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
pub struct Names<'a> {
    /// The catalog.
    pub view: &'a CatalogView,
    /// The current schema.
    pub schema: Option<&'a Arc<str>>,
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
    fn check_new(self, created: &ObjectName, locked: &[LockedTable]) -> Result<()> {
        let (schema, name) = self.qualify(created)?;
        let table = self.view.snapshot.table(&schema, &name).map(|table| table.id);
        match table.is_some() && locked.iter().any(|known| known.id == table) {
            true => Ok(()),
            false => Err(err!(TABLE_NOT_LOCKED, name)),
        }
    }
}

impl LockedTable {
    pub fn mode(&self) -> LockMode {
        if self.write { LockMode::Exclusive } else { LockMode::NoWrite }
    }
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
