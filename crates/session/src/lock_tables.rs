//! LOCK TABLES and UNLOCK TABLES.

use std::sync::Arc;

use catalog::{LockMode, PrivilegeSet, Relation, Table, Usage};
use engine_api::TableId;
use errors::{Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{LockTable, LockTableMode};

use crate::planned::Planned;
use crate::session::Session;

/// A table that LOCK TABLES locked.
#[derive(Clone, Debug)]
pub(crate) struct LockedTable {
    pub(crate) id: TableId,
    pub(crate) name: Arc<str>,
    pub(crate) write: bool,
}

impl Session {
    /// LOCK TABLES. What was locked before is released; the transaction was committed by the dispatcher.
    pub(crate) fn lock_tables(
        &mut self,
        tables: &[LockTable],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.release_locked_tables();
        self.take_table_locks(tables)?;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    /// Locks tables; views stand for the tables that they read.
    pub(crate) fn take_table_locks(&mut self, tables: &[LockTable]) -> Result<()> {
        let view = self.view();
        let mut locked: Vec<LockedTable> = Vec::new();
        for table in tables {
            let (schema, name) = self.qualify(&table.name)?;
            let write = match table.mode {
                LockTableMode::Read | LockTableMode::ReadLocal => false,
                LockTableMode::Write => true,
            };
            if crate::information::system_schema(&schema).is_some()
                || view.temporary_table(&schema, &name).is_some()
            {
                continue;
            }
            match view.snapshot.relation(&schema, &name) {
                None => return Err(err!(NO_SUCH_TABLE, schema, name)),
                Some(Relation::View(definition)) => {
                    let definition = definition.clone();
                    self.lock_view_tables(&definition, &mut locked)?;
                }
                Some(Relation::Table(found)) => {
                    self.require_on_schema(&schema, PrivilegeSet::LOCK_TABLES)?;
                    self.require_on_table(&schema, &name, PrivilegeSet::SELECT)?;
                    add(&mut locked, found.id, &name, write);
                }
            }
        }
        let wanted: Vec<_> = locked
            .iter()
            .map(|table| {
                let mode = if table.write { LockMode::Exclusive } else { LockMode::NoWrite };
                (Some(table.id), mode)
            })
            .collect();
        let timeout = self.settings.lock_wait_timeout;
        let guard = self.server.metadata_locks.lock(
            self.shared.id,
            &wanted,
            timeout,
            &self.shared.cancel,
        )?;
        let cancel = self.shared.cancel.clone();
        sys::blocking::blocking(|| self.server.catalog.settle(&cancel))?;
        self.locked.guards.push(guard);
        self.locked.tables = Some(locked);
        Ok(())
    }

    fn lock_view_tables(
        &mut self,
        view: &catalog::View,
        locked: &mut Vec<LockedTable>,
    ) -> Result<()> {
        let parsed = syntax::parse_one(&view.definition, &syntax::ParseOptions::default())
            .map_err(|_| err!(VIEW_INVALID, view.schema, view.name))?;
        let planned = self.plan_statement(&parsed.0, view.definition.as_bytes(), None)?;
        for table in &planned.tables {
            add(locked, table.id, &table.name, false);
        }
        Ok(())
    }

    /// UNLOCK TABLES.
    pub(crate) fn unlock_tables(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        let mut commit = None;
        if self.locked.tables.is_some() {
            // Only when tables were locked does UNLOCK TABLES end the transaction.
            let handle = self.transactions.commit()?;
            self.slot.release_to(0);
            commit = crate::transaction_statements::to_wait_for(handle);
        }
        self.release_locked_tables();
        self.locked.global_read = None;
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }

    pub(crate) fn release_locked_tables(&mut self) {
        self.locked.tables = None;
        self.locked.guards.clear();
    }

    /// While LOCK TABLES is in force only locked tables may be used.
    pub(crate) fn check_locked_tables(&self, planned: &Planned) -> Result<()> {
        let Some(locked) = &self.locked.tables else { return Ok(()) };
        for (id, usage) in &planned.uses {
            let used = planned.tables.iter().find(|table| table.id == *id);
            let name = used.map_or("", |table| &table.name);
            match locked.iter().find(|table| table.id == *id) {
                // Both ends of a foreign key are used when one of them is written.
                None if used.is_some_and(|used| is_relative(used, planned, locked)) => {}
                None => bail!(TABLE_NOT_LOCKED, name),
                Some(table) if *usage == Usage::Write && !table.write => {
                    bail!(TABLE_NOT_LOCKED_FOR_WRITE, table.name);
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Definitions may change under LOCK TABLES only of tables locked for writing; under a global read lock not at all.
    pub(crate) fn check_lock_mode(&self, statement: &Statement) -> Result<()> {
        let harmless = matches!(
            statement,
            Statement::StartTransaction(_) | Statement::LockTables(_) | Statement::Flush(_)
        );
        if self.locked.global_read.is_some() && !harmless {
            bail!(CANT_UPDATE_WITH_READLOCK);
        }
        let Some(locked) = &self.locked.tables else { return Ok(()) };
        let target = match statement {
            Statement::AlterTable(alter) => &alter.name,
            Statement::TruncateTable(name) => name,
            Statement::CreateIndex(create) => &create.table,
            Statement::DropIndex(drop) => &drop.table,
            _ => return Ok(()),
        };
        let (schema, name) = self.qualify(target)?;
        let Some(table) = self.view().table(&schema, &name) else { return Ok(()) };
        match locked.iter().find(|locked| locked.id == table.id) {
            Some(locked) if !locked.write => bail!(TABLE_NOT_LOCKED_FOR_WRITE, name),
            Some(_) => Ok(()),
            None if table.temporary => Ok(()),
            None => Err(err!(TABLE_NOT_LOCKED, name)),
        }
    }
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
        .filter(|other| locked.iter().any(|known| known.id == other.id))
        .any(|other| refers(table, other) || refers(other, table))
}

fn add(locked: &mut Vec<LockedTable>, id: TableId, name: &Arc<str>, write: bool) {
    match locked.iter_mut().find(|table| table.id == id) {
        Some(known) => known.write |= write,
        None => locked.push(LockedTable { id, name: name.clone(), write }),
    }
}
