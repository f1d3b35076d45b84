//! One version of everything the catalog knows, and what a statement sees of it.
//!
//! A snapshot never changes. Statements hold an `Arc` of the one that they were bound with.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine_api::TableId;
use hashbrown::HashMap;

use crate::shared_map::SharedMap;
use crate::{Accounts, CatalogVersion, Relation, Schema, Table, View};

/// The catalog at one version.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot {
    /// Which.
    pub version: CatalogVersion,
    pub(crate) schemas: BTreeMap<Arc<str>, Arc<Schema>>,
    pub(crate) tables: SharedMap<TableId, Arc<Table>>,
    /// Tables with a foreign key to `(schema, table)`, which need not exist.
    pub(crate) children: HashMap<(Arc<str>, Arc<str>), Vec<TableId>>,
    pub(crate) accounts: Arc<Accounts>,
    pub(crate) persisted: Arc<BTreeMap<Box<str>, Box<str>>>,
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

    /// A table or view.
    pub fn relation(&self, schema: &str, name: &str) -> Option<&Relation> {
        self.schemas.get(schema)?.relations.get(name)
    }

    /// A table.
    pub fn table(&self, schema: &str, name: &str) -> Option<&Arc<Table>> {
        match self.relation(schema, name)? {
            Relation::Table(table) => Some(table),
            Relation::View(_) => None,
        }
    }

    /// A view.
    pub fn view(&self, schema: &str, name: &str) -> Option<&Arc<View>> {
        match self.relation(schema, name)? {
            Relation::View(view) => Some(view),
            Relation::Table(_) => None,
        }
    }

    /// A table by its id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        self.tables.get(&id)
    }

    /// All tables, in the order in which they were made.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// Tables that have a foreign key to `schema.table`.
    pub fn children_of(&self, schema: &str, table: &str) -> impl Iterator<Item = &Arc<Table>> {
        let key = (Arc::from(schema), Arc::from(table));
        let ids = self.children.get(&key).map_or(&[][..], Vec::as_slice);
        ids.iter().filter_map(|id| self.tables.get(id))
    }

    /// Users and roles.
    pub fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }

    /// Variables set by SET PERSIST: name in lower case, value as text.
    pub fn persisted(&self) -> &BTreeMap<Box<str>, Box<str>> {
        &self.persisted
    }
}

/// What a statement sees: a snapshot under the session's temporary tables.
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
        self.snapshot.relation(schema, name).cloned()
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
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<Table>> {
        let temporary = || self.temporary.values().find(|table| table.id == id);
        self.snapshot.table_by_id(id).or_else(temporary)
    }

    /// Whether the schema exists.
    pub fn has_schema(&self, schema: &str) -> bool {
        self.snapshot.schema(schema).is_some()
    }
}
