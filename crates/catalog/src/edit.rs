//! Changes of the catalog, one object at a time, and the effect of each on a snapshot.

use std::sync::Arc;

use engine_api::TableId;
use errors::{Result, bail, err};
use types::geometry::ReferenceSystem;

use crate::event::{Event, event_key};
use crate::foreign_server::ForeignServer;
use crate::model::StoredRelation;
use crate::resource_group::ResourceGroup;
use crate::routine::{Routine, RoutineKind, routine_key};
use crate::snapshot::constraint_key;
use crate::stored::StoredTable;
use crate::tablespace::Tablespace;
use crate::trigger::{Trigger, trigger_key};
use crate::{
    Account, AccountName, AccountRules, CatalogSnapshot, ForeignKey, Histogram, PersistedVariable,
    PluginChoice, Schema, SchemaOptions, Table, View,
};

/// One change. A statement applies a list of them atomically, in order.
#[derive(Clone, Debug)]
pub enum Edit {
    /// CREATE DATABASE.
    CreateSchema { name: Arc<str>, options: SchemaOptions },
    /// ALTER DATABASE.
    AlterSchema { name: Arc<str>, options: SchemaOptions },
    /// DROP DATABASE, after its relations.
    DropSchema(Arc<str>),
    /// CREATE TABLE.
    CreateTable(Arc<Table>),
    /// ALTER, RENAME and TRUNCATE TABLE: `old` is replaced by a table that may have another id and another name.
    ReplaceTable { old: TableId, new: Arc<Table> },
    /// A new version of the same definition, so that plans of the previous version are made again. No effect when the table has been dropped.
    RenewTable(TableId),
    /// ANALYZE TABLE .. HISTOGRAM: columns by name, and their new histograms. A column that has been dropped is skipped.
    PutHistograms { table: TableId, columns: Vec<(Arc<str>, Option<Arc<Histogram>>)> },
    /// DROP TABLE.
    DropTable(TableId),
    /// CREATE VIEW.
    CreateView(Arc<View>),
    /// CREATE OR REPLACE VIEW, ALTER VIEW, RENAME.
    ReplaceView { schema: Arc<str>, name: Arc<str>, new: Arc<View> },
    /// DROP VIEW.
    DropView { schema: Arc<str>, name: Arc<str> },
    /// CREATE PROCEDURE, ALTER PROCEDURE: replaces a routine of the same kind and name.
    PutRoutine(Arc<Routine>),
    /// DROP PROCEDURE.
    DropRoutine { schema: Arc<str>, kind: RoutineKind, name: Arc<str> },
    /// CREATE TRIGGER, and changes of triggers that follow their table: replaces a trigger of the same name.
    PutTrigger(Arc<Trigger>),
    /// DROP TRIGGER.
    DropTrigger { schema: Arc<str>, name: Arc<str> },
    /// CREATE EVENT, ALTER EVENT, a run: replaces an event of the same name, which must be `over` when that is given.
    PutEvent { event: Arc<Event>, over: Option<Arc<Event>> },
    /// DROP EVENT, the last run; likewise.
    DropEvent { schema: Arc<str>, name: Arc<str>, over: Option<Arc<Event>> },
    /// CREATE USER, GRANT, ...: replaces an account of the same name.
    PutAccount(Account),
    /// DROP USER.
    DropAccount(AccountName),
    /// SET GLOBAL of a variable about all accounts. Nothing is stored: the variables are.
    PutAccountRules(AccountRules),
    /// SET PERSIST.
    PutVariable { name: Box<str>, kept: PersistedVariable },
    /// RESET PERSIST.
    DropVariable(Box<str>),
    /// INSTALL PLUGIN, UNINSTALL PLUGIN: replaces the earlier choice for the plugin.
    PutPlugin { name: Box<str>, choice: PluginChoice },
    /// The same, when the plugin is loaded, or not, without a choice.
    DropPlugin(Box<str>),
    /// CREATE and ALTER RESOURCE GROUP: replaces a group of the same name.
    PutResourceGroup(Arc<ResourceGroup>),
    /// DROP RESOURCE GROUP.
    DropResourceGroup(Arc<str>),
    /// CREATE and ALTER TABLESPACE: replaces one of the same name.
    PutTablespace(Arc<Tablespace>),
    /// DROP TABLESPACE.
    DropTablespace(Arc<str>),
    /// CREATE and ALTER SERVER: replaces one of the same name.
    PutServer(Arc<ForeignServer>),
    /// DROP SERVER.
    DropServer(Arc<str>),
    /// CREATE SPATIAL REFERENCE SYSTEM: replaces one of the same number.
    PutReferenceSystem(Arc<ReferenceSystem>),
    /// DROP SPATIAL REFERENCE SYSTEM.
    DropReferenceSystem(u32),
}

impl Edit {
    /// Whether it changes an account and nothing else: no plan depends on it, as each execution checks privileges.
    pub(crate) fn is_of_account(&self) -> bool {
        matches!(self, Edit::PutAccount(_) | Edit::DropAccount(_) | Edit::PutAccountRules(_))
    }

    /// The table that it replaces or drops.
    pub fn replaced_table(&self) -> Option<TableId> {
        match self {
            Edit::ReplaceTable { old, .. } => Some(*old),
            Edit::DropTable(id) => Some(*id),
            Edit::CreateSchema { .. }
            | Edit::AlterSchema { .. }
            | Edit::DropSchema(_)
            | Edit::CreateTable(_)
            | Edit::RenewTable(_)
            | Edit::PutHistograms { .. }
            | Edit::CreateView(_)
            | Edit::ReplaceView { .. }
            | Edit::DropView { .. }
            | Edit::PutRoutine(_)
            | Edit::DropRoutine { .. }
            | Edit::PutTrigger(_)
            | Edit::DropTrigger { .. }
            | Edit::PutEvent { .. }
            | Edit::DropEvent { .. }
            | Edit::PutAccount(_)
            | Edit::DropAccount(_)
            | Edit::PutAccountRules(_)
            | Edit::PutVariable { .. }
            | Edit::DropVariable(_)
            | Edit::PutPlugin { .. }
            | Edit::DropPlugin(_)
            | Edit::PutResourceGroup(_)
            | Edit::DropResourceGroup(_)
            | Edit::PutTablespace(_)
            | Edit::DropTablespace(_)
            | Edit::PutServer(_)
            | Edit::DropServer(_)
            | Edit::PutReferenceSystem(_)
            | Edit::DropReferenceSystem(_) => None,
        }
    }
}

/// 1539 when an event is not the one that a change was made for.
fn check_event(known: Option<&Arc<Event>>, over: Option<&Arc<Event>>, name: &str) -> Result<()> {
    match over {
        Some(over) if !known.is_some_and(|known| Arc::ptr_eq(known, over)) => {
            Err(err!(EVENT_DOES_NOT_EXIST, name))
        }
        Some(_) | None => Ok(()),
    }
}

/// Sets the histograms of columns by name. A column that no longer exists is skipped.
fn put_histograms(table: &mut Table, columns: &[(Arc<str>, Option<Arc<Histogram>>)]) {
    for (name, histogram) in columns {
        if let Some(at) = table.column(name) {
            table.columns[at].histogram = histogram.clone();
        }
    }
}

impl CatalogSnapshot {
    /// Applies one change to this copy.
    ///
    /// # Errors
    /// 1007, 1050, 1049, 1146, 1826, 3822 when the catalog has changed since the statement read it.
    pub fn apply(&mut self, edit: &Edit) -> Result<()> {
        match edit {
            Edit::CreateSchema { name, options } => self.create_schema(name, *options),
            Edit::AlterSchema { name, options } => {
                self.schema_mut(name)?.options = *options;
                Ok(())
            }
            Edit::DropSchema(name) => self.drop_schema(name),
            Edit::CreateTable(table) => self.add_table(table),
            Edit::ReplaceTable { old, new } => {
                self.remove_table(*old)?;
                self.add_table(new)
            }
            Edit::RenewTable(id) => self.change_table(*id, |_| {}),
            Edit::PutHistograms { table, columns } => {
                self.change_table(*table, |table| put_histograms(table, columns))
            }
            Edit::DropTable(id) => self.remove_table(*id),
            Edit::CreateView(view) => self.add_view(view),
            Edit::ReplaceView { schema, name, new } => {
                self.remove_view(schema, name)?;
                self.add_view(new)
            }
            Edit::DropView { schema, name } => self.remove_view(schema, name),
            Edit::PutRoutine(routine) => self.put_routine(routine),
            Edit::DropRoutine { schema, kind, name } => self.drop_routine(schema, *kind, name),
            Edit::PutTrigger(trigger) => self.put_trigger(trigger),
            Edit::DropTrigger { schema, name } => self.drop_trigger(schema, name),
            Edit::PutEvent { event, over } => self.put_event(event, over.as_ref()),
            Edit::DropEvent { schema, name, over } => self.drop_event(schema, name, over.as_ref()),
            Edit::PutAccount(account) => {
                Arc::make_mut(&mut self.accounts).put(account.clone());
                Ok(())
            }
            Edit::DropAccount(name) => {
                Arc::make_mut(&mut self.accounts).remove(name);
                Ok(())
            }
            Edit::PutAccountRules(rules) => {
                Arc::make_mut(&mut self.accounts).set_rules(rules.clone());
                Ok(())
            }
            Edit::PutVariable { name, kept } => {
                Arc::make_mut(&mut self.persisted).insert(name.clone(), kept.clone());
                Ok(())
            }
            Edit::DropVariable(name) => {
                Arc::make_mut(&mut self.persisted).remove(name);
                Ok(())
            }
            Edit::PutResourceGroup(group) => {
                let groups = Arc::make_mut(&mut self.groups);
                match groups.iter_mut().find(|known| known.is_named(&group.name)) {
                    Some(known) => *known = group.clone(),
                    None => groups.push(group.clone()),
                }
                Ok(())
            }
            Edit::DropResourceGroup(name) => {
                Arc::make_mut(&mut self.groups).retain(|known| !known.is_named(name));
                Ok(())
            }
            Edit::PutTablespace(tablespace) => {
                let tablespaces = Arc::make_mut(&mut self.tablespaces);
                match tablespaces.iter_mut().find(|known| known.name == tablespace.name) {
                    Some(known) => *known = tablespace.clone(),
                    None => tablespaces.push(tablespace.clone()),
                }
                Ok(())
            }
            Edit::DropTablespace(name) => {
                Arc::make_mut(&mut self.tablespaces).retain(|known| known.name != *name);
                Ok(())
            }
            Edit::PutServer(server) => self.set_server(&server.name, Some(server)),
            Edit::DropServer(name) => self.set_server(name, None),
            Edit::PutReferenceSystem(system) => self.set_system(system.srid, Some(system)),
            Edit::DropReferenceSystem(srid) => self.set_system(*srid, None),
            Edit::PutPlugin { name, choice } => {
                Arc::make_mut(&mut self.plugins).insert(name.clone(), choice.clone());
                Ok(())
            }
            Edit::DropPlugin(name) => {
                Arc::make_mut(&mut self.plugins).remove(name);
                Ok(())
            }
        }
    }

    fn set_server(&mut self, name: &str, server: Option<&Arc<ForeignServer>>) -> Result<()> {
        let (key, servers) = (name.to_lowercase().into(), Arc::make_mut(&mut self.servers));
        match server {
            Some(server) => servers.insert(key, server.clone()),
            None => servers.remove(&key),
        };
        Ok(())
    }

    fn set_system(&mut self, srid: u32, system: Option<&Arc<ReferenceSystem>>) -> Result<()> {
        let systems = Arc::make_mut(&mut self.reference_systems);
        match system {
            Some(system) => systems.insert(srid, system.clone()),
            None => systems.remove(&srid),
        };
        Ok(())
    }

    fn create_schema(&mut self, name: &Arc<str>, options: SchemaOptions) -> Result<()> {
        if self.schemas.contains_key(name) {
            bail!(DB_CREATE_EXISTS, name);
        }
        let schema = Schema {
            name: name.clone(),
            options,
            relations: Default::default(),
            routines: Default::default(),
            triggers: Default::default(),
            events: Default::default(),
        };
        self.schemas.insert(name.clone(), Arc::new(schema));
        Ok(())
    }

    fn drop_schema(&mut self, name: &Arc<str>) -> Result<()> {
        match self.schemas.get(name) {
            Some(schema) if schema.relations.is_empty() && schema.routines.is_empty() => {
                self.schemas.remove(name);
                Ok(())
            }
            // Another session created something after the list of relations was read.
            Some(_) => Err(err!(LOCK_DEADLOCK)),
            None => Err(err!(DB_DROP_EXISTS, name)),
        }
    }

    /// Replaces a table by a changed copy. Does nothing when the table no longer exists.
    fn change_table(&mut self, id: TableId, change: impl FnOnce(&mut Table)) -> Result<()> {
        let Some(stored) = self.tables.get(&id) else { return Ok(()) };
        let mut changed = Table::clone(&stored.look());
        change(&mut changed);
        self.remove_table(id)?;
        self.add_table(&Arc::new(changed))
    }

    fn put_routine(&mut self, routine: &Arc<Routine>) -> Result<()> {
        let key = routine_key(routine.kind, &routine.name);
        self.schema_mut(&routine.schema)?.routines.insert(key, routine.clone());
        Ok(())
    }

    fn drop_routine(&mut self, schema: &str, kind: RoutineKind, name: &str) -> Result<()> {
        match self.schema_mut(schema)?.routines.remove(&routine_key(kind, name)) {
            Some(_) => Ok(()),
            None => Err(err!(SP_DOES_NOT_EXIST, kind.as_str(), name)),
        }
    }

    fn put_trigger(&mut self, trigger: &Arc<Trigger>) -> Result<()> {
        let key = trigger_key(&trigger.name);
        self.schema_mut(&trigger.schema)?.triggers.insert(key, trigger.clone());
        Ok(())
    }

    fn drop_trigger(&mut self, schema: &str, name: &str) -> Result<()> {
        match self.schema_mut(schema)?.triggers.remove(&trigger_key(name)) {
            Some(_) => Ok(()),
            None => Err(err!(TRG_DOES_NOT_EXIST)),
        }
    }

    fn put_event(&mut self, event: &Arc<Event>, over: Option<&Arc<Event>>) -> Result<()> {
        let events = &mut self.schema_mut(&event.schema)?.events;
        let key = event_key(&event.name);
        check_event(events.get(&key), over, &event.name)?;
        events.insert(key, event.clone());
        Ok(())
    }

    fn drop_event(&mut self, schema: &str, name: &str, over: Option<&Arc<Event>>) -> Result<()> {
        let events = &mut self.schema_mut(schema)?.events;
        let key = event_key(name);
        check_event(events.get(&key), over, name)?;
        match events.remove(&key) {
            Some(_) => Ok(()),
            None => Err(err!(EVENT_DOES_NOT_EXIST, name)),
        }
    }

    fn schema_mut(&mut self, name: &str) -> Result<&mut Schema> {
        match self.schemas.get_mut(name) {
            Some(schema) => Ok(Arc::make_mut(schema)),
            None => Err(err!(BAD_DB_ERROR, name)),
        }
    }

    fn add_relation(
        &mut self,
        schema: &str,
        name: &Arc<str>,
        relation: StoredRelation,
    ) -> Result<()> {
        let schema = self.schema_mut(schema)?;
        if schema.relations.contains_key(name) {
            bail!(TABLE_EXISTS_ERROR, name);
        }
        schema.relations.insert(name.clone(), relation);
        Ok(())
    }

    /// A table's dictionary entry.
    pub(crate) fn encoded_table(&self, id: TableId) -> Option<&[u8]> {
        self.tables.get(&id).map(|stored| stored.encoded())
    }

    /// Adds a table from its dictionary entry.
    ///
    /// # Errors
    /// A damaged entry.
    pub(crate) fn load_table(&mut self, encoded: &[u8]) -> Result<()> {
        let (stored, table) = StoredTable::load(encoded)?;
        self.add_stored(&table, Arc::new(stored))
    }

    fn add_table(&mut self, table: &Arc<Table>) -> Result<()> {
        let names = self.check_constraint_names(table, None);
        // The table's own name comes first.
        self.add_stored(table, Arc::new(StoredTable::new(table))).and(names)
    }

    fn add_stored(&mut self, table: &Table, stored: Arc<StoredTable>) -> Result<()> {
        self.add_relation(&table.schema, &table.name, StoredRelation::Table(stored.clone()))?;
        for key in &table.foreign_keys {
            let mut children = self.children_ids(key);
            if !children.contains(&table.id) {
                children.push(table.id);
                self.set_children_ids(key, children);
            }
        }
        for (kind, name) in table.constraint_names() {
            self.constraints.insert(constraint_key(kind, &table.schema, name), table.id);
        }
        self.tables.insert(table.id, stored);
        Ok(())
    }

    fn remove_table(&mut self, id: TableId) -> Result<()> {
        let Some(stored) = self.tables.remove(&id) else {
            return Err(errors::Error::internal("a dropped table is not in the catalog"));
        };
        let table = stored.look();
        self.schema_mut(&table.schema)?.relations.remove(&table.name);
        for key in &table.foreign_keys {
            let mut children = self.children_ids(key);
            children.retain(|child| *child != id);
            self.set_children_ids(key, children);
        }
        for (kind, name) in table.constraint_names() {
            let key = constraint_key(kind, &table.schema, name);
            // Older data directories may have a name twice.
            if self.constraints.get(&key) == Some(&id) {
                self.constraints.remove(&key);
            }
        }
        Ok(())
    }

    /// Tables that refer to the parent of a foreign key.
    fn children_ids(&self, key: &ForeignKey) -> Vec<TableId> {
        self.children.get(&parent_of(key)).cloned().unwrap_or_default()
    }

    fn set_children_ids(&mut self, key: &ForeignKey, children: Vec<TableId>) {
        match children.is_empty() {
            true => self.children.remove(&parent_of(key)),
            false => self.children.insert(parent_of(key), children),
        };
    }

    fn add_view(&mut self, view: &Arc<View>) -> Result<()> {
        self.add_relation(&view.schema, &view.name, StoredRelation::View(view.clone()))
    }

    fn remove_view(&mut self, schema: &str, name: &str) -> Result<()> {
        let relations = &mut self.schema_mut(schema)?.relations;
        match relations.get(name) {
            Some(StoredRelation::View(_)) => {
                relations.remove(name);
                Ok(())
            }
            Some(StoredRelation::Table(_)) | None => Err(err!(NO_SUCH_TABLE, schema, name)),
        }
    }
}

fn parent_of(key: &ForeignKey) -> (Arc<str>, Arc<str>) {
    (key.referenced_schema.clone(), key.referenced_table.clone())
}
