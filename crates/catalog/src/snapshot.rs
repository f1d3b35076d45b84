//! One version of the whole catalog, and a statement's view of it.
//!
//! A snapshot never changes. Statements hold an `Arc` of the one that they were bound with.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_api::TableId;
use errors::Result;
use types::geometry::{KnownSystem, ReferenceSystem};

use crate::event::{Event, event_key};
use crate::foreign_server::ForeignServer;
use crate::model::StoredRelation;
use crate::resource_group::ResourceGroup;
use crate::routine::{Routine, RoutineKind, routine_key};
use crate::shared_map::SharedMap;
use crate::stored::{ReadTables, StoredTable};
use crate::tablespace::Tablespace;
use crate::trigger::{Trigger, trigger_key};
use crate::{
    Accounts, CatalogVersion, ConstraintKind, PersistedVariable, PluginChoice, Relation, Schema,
    Table,
};

/// The catalog at one version.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot {
    /// Which.
    pub version: CatalogVersion,
    /// The last version that changed more than accounts: plans of an older one are made again.
    pub definitions: CatalogVersion,
    pub(crate) schemas: BTreeMap<Arc<str>, Arc<Schema>>,
    pub(crate) tables: SharedMap<TableId, Arc<StoredTable>>,
    /// Tables with a foreign key to `(schema, table)`, which need not exist.
    pub(crate) children: SharedMap<(Arc<str>, Arc<str>), Vec<TableId>>,
    /// Owners of the names of constraints.
    pub(crate) constraints: SharedMap<ConstraintKey, TableId>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) persisted: Arc<BTreeMap<Box<str>, PersistedVariable>>,
    pub(crate) plugins: Arc<BTreeMap<Box<str>, PluginChoice>>,
    /// In the order in which they were created.
    pub(crate) groups: Arc<Vec<Arc<ResourceGroup>>>,
    /// Likewise.
    pub(crate) tablespaces: Arc<Vec<Arc<Tablespace>>>,
    /// By their names in lower case.
    pub(crate) servers: Arc<BTreeMap<Box<str>, Arc<ForeignServer>>>,
    /// Those that users made, by number.
    pub(crate) reference_systems: Arc<BTreeMap<u32, Arc<ReferenceSystem>>>,
    /// All versions share it.
    pub(crate) read: Arc<ReadTables>,
}

/// Kind, schema and name (in lower case) of a constraint.
pub(crate) type ConstraintKey = (ConstraintKind, Arc<str>, Box<str>);

/// The kind of object that a name in a schema denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// A stored table.
    Table,
    /// A stored table that is a sequence.
    Sequence,
    /// A stored table that keeps history.
    SystemVersioned,
    /// A view.
    View,
}

impl RelationKind {
    fn of(stored: &StoredRelation) -> RelationKind {
        match stored {
            StoredRelation::Table(table) if table.is_sequence => RelationKind::Sequence,
            StoredRelation::Table(table) if table.keeps_history => RelationKind::SystemVersioned,
            StoredRelation::Table(_) => RelationKind::Table,
            StoredRelation::View(_) => RelationKind::View,
        }
    }
}

impl CatalogSnapshot {
    /// A schema by its exact name.
    pub fn schema(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(name)
    }

    /// Schemas in order of name.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values()
    }

    fn stored(&self, schema: &str, name: &str) -> Option<&StoredRelation> {
        self.schemas.get(schema)?.relations.get(name)
    }

    fn read(&self, stored: &StoredRelation) -> Relation {
        match stored {
            StoredRelation::Table(table) => Relation::Table(self.read.get(table)),
            StoredRelation::View(view) => Relation::View(view.clone()),
        }
    }

    /// A table or view.
    pub fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        self.stored(schema, name).map(|stored| self.read(stored))
    }

    /// The kind of object that a name denotes, without reading it.
    pub fn kind(&self, schema: &str, name: &str) -> Option<RelationKind> {
        self.stored(schema, name).map(RelationKind::of)
    }

    /// A procedure or function, by its name in any case.
    pub fn routine(&self, schema: &str, kind: RoutineKind, name: &str) -> Option<&Arc<Routine>> {
        self.schemas.get(schema)?.routines.get(&routine_key(kind, name))
    }

    /// The procedures of a schema in order, then its functions.
    pub fn routines(&self, schema: &str) -> impl Iterator<Item = &Arc<Routine>> {
        self.schemas.get(schema).into_iter().flat_map(|schema| schema.routines.values())
    }

    /// An event, by its name in any case.
    pub fn event(&self, schema: &str, name: &str) -> Option<&Arc<Event>> {
        self.schemas.get(schema)?.events.get(&event_key(name))
    }

    /// The events of a schema in order of name.
    pub fn events(&self, schema: &str) -> impl Iterator<Item = &Arc<Event>> {
        self.schemas.get(schema).into_iter().flat_map(|schema| schema.events.values())
    }

    /// A trigger, by its name in any case.
    pub fn trigger(&self, schema: &str, name: &str) -> Option<&Arc<Trigger>> {
        self.schemas.get(schema)?.triggers.get(&trigger_key(name))
    }

    /// The triggers of a schema in order of name.
    pub fn triggers(&self, schema: &str) -> impl Iterator<Item = &Arc<Trigger>> {
        self.schemas.get(schema).into_iter().flat_map(|schema| schema.triggers.values())
    }

    /// The triggers of a table, those of one event and time in the order in which they run.
    pub fn triggers_of(&self, schema: &str, table: &str) -> Vec<Arc<Trigger>> {
        let own = self.triggers(schema).filter(|trigger| *trigger.table == *table);
        let mut found: Vec<Arc<Trigger>> = own.cloned().collect();
        found.sort_by_key(|trigger| (trigger.event, !trigger.before, trigger.order));
        found
    }

    /// The names in a schema in order, and the kind of each.
    pub fn names(&self, schema: &str) -> impl Iterator<Item = (&Arc<str>, RelationKind)> {
        let known = self.schemas.get(schema).into_iter();
        known
            .flat_map(|schema| schema.relations.iter())
            .map(|(name, stored)| (name, RelationKind::of(stored)))
    }

    /// A table or view for a scan over many: it is not kept in memory.
    pub fn look(&self, schema: &str, name: &str) -> Option<Relation> {
        Some(match self.stored(schema, name)? {
            StoredRelation::Table(table) => Relation::Table(table.look()),
            StoredRelation::View(view) => Relation::View(view.clone()),
        })
    }

    /// A table.
    pub fn table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        match self.stored(schema, name)? {
            StoredRelation::Table(table) => Some(self.read.get(table)),
            StoredRelation::View(_) => None,
        }
    }

    /// A table by its id.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        self.tables.get(&id).map(|stored| self.read.get(stored))
    }

    /// Whether a table with this id exists.
    pub fn has_table(&self, id: TableId) -> bool {
        self.tables.contains_key(&id)
    }

    /// Whether `table` is the one of this version, which others get too.
    pub fn is_current(&self, table: &Arc<Table>) -> bool {
        self.tables.get(&table.id).is_some_and(|stored| stored.is(table))
    }

    /// The number of decoded tables.
    pub fn read_tables(&self) -> usize {
        self.read.count()
    }

    /// The number of unused tables that stay decoded.
    pub fn set_read_limit(&self, tables: usize) {
        self.read.set_limit(tables);
    }

    /// Approximate bytes of memory for tables that are not decoded.
    pub fn memory_bytes(&self) -> usize {
        /// A name and its positions in two maps.
        const ENTRY_BYTES: usize = 96;
        self.tables.values().map(|table| table.memory_bytes() + ENTRY_BYTES).sum()
    }

    /// Tables that have a foreign key to `schema.table`.
    pub fn children_of(&self, schema: &str, table: &str) -> impl Iterator<Item = Arc<Table>> {
        let key = (Arc::from(schema), Arc::from(table));
        let ids = self.children.get(&key).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.table_by_id(*id))
    }

    /// Whether the constraints of a new table, or of one that replaces `replaced`, have names that no other table has.
    ///
    /// # Errors
    /// 1826, 3822.
    pub fn check_constraint_names(&self, table: &Table, replaced: Option<TableId>) -> Result<()> {
        for (kind, name) in table.constraint_names() {
            let owner = self.constraints.get(&constraint_key(kind, &table.schema, name));
            if owner.is_some_and(|owner| Some(*owner) != replaced) {
                return Err(kind.duplicate(name));
            }
        }
        Ok(())
    }

    /// Users and roles.
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// Variables set by SET PERSIST, by name in lower case.
    pub fn persisted(&self) -> &BTreeMap<Box<str>, PersistedVariable> {
        &self.persisted
    }

    /// Plugins that somebody installed or removed, by name.
    pub fn plugins(&self) -> &BTreeMap<Box<str>, PluginChoice> {
        &self.plugins
    }

    /// Resource groups in the order in which they were created, without those that are always there.
    pub fn resource_groups(&self) -> &[Arc<ResourceGroup>] {
        &self.groups
    }

    /// Tablespaces in the order in which they were created, without those that are always there.
    pub fn tablespaces(&self) -> &[Arc<Tablespace>] {
        &self.tablespaces
    }

    /// The servers that statements described, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<ForeignServer>> {
        self.servers.values()
    }

    /// A described server by its name in any case.
    pub fn server(&self, name: &str) -> Option<&Arc<ForeignServer>> {
        self.servers.get(&*name.to_lowercase())
    }

    /// Reference systems that users made, by number.
    pub fn reference_systems(&self) -> &Arc<BTreeMap<u32, Arc<ReferenceSystem>>> {
        &self.reference_systems
    }

    /// Whether a column of a table has only geometries of this reference system.
    pub fn uses_reference_system(&self, srid: u32) -> bool {
        self.tables.values().any(|stored| {
            stored.look().columns.iter().any(|column| column.ty.spatial.srid == Some(srid))
        })
    }

    /// A reference system by its number.
    pub fn reference_system(&self, srid: u32) -> Option<KnownSystem> {
        let made = self.reference_systems.get(&srid).cloned().map(KnownSystem::Made);
        made.or_else(|| KnownSystem::built_in(srid))
    }

    /// A tablespace by its name.
    pub fn tablespace(&self, name: &str) -> Option<&Arc<Tablespace>> {
        self.tablespaces.iter().find(|known| *known.name == *name)
    }
}

/// A statement's view of the catalog: the session's temporary tables over a snapshot.
#[derive(Clone, Debug, Default)]
pub struct CatalogView {
    /// The committed catalog.
    pub snapshot: Arc<CatalogSnapshot>,
    /// Temporary tables by schema and name; they hide others.
    pub temporary: Arc<BTreeMap<(Arc<str>, Arc<str>), Arc<Table>>>,
}

impl CatalogView {
    /// A table or view, temporary tables first.
    pub fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        if let Some(table) = self.temporary_table(schema, name) {
            return Some(Relation::Table(table.clone()));
        }
        self.snapshot.relation(schema, name)
    }

    /// A table, temporary tables first.
    pub fn table(&self, schema: &str, name: &str) -> Option<Arc<Table>> {
        match self.relation(schema, name)? {
            Relation::Table(table) => Some(table),
            Relation::View(_) => None,
        }
    }

    /// A temporary table.
    pub fn temporary_table(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        if self.temporary.is_empty() {
            return None;
        }
        self.temporary.get(&(Arc::from(schema), Arc::from(name)))
    }

    /// A table by its id, temporary ones included.
    pub fn table_by_id(&self, id: TableId) -> Option<Arc<Table>> {
        let temporary = || self.temporary.values().find(|table| table.id == id).cloned();
        self.snapshot.table_by_id(id).or_else(temporary)
    }

    /// Whether the schema exists.
    pub fn has_schema(&self, schema: &str) -> bool {
        self.snapshot.schema(schema).is_some()
    }
}

pub(crate) fn constraint_key(kind: ConstraintKind, schema: &Arc<str>, name: &str) -> ConstraintKey {
    (kind, schema.clone(), name.to_lowercase().into())
}
