//! Schemas and their tables.

use catalog::{Relation, RelationKind};
use errors::Result;
use plugin_api::{Object, SchemaInformation, SchemaView, TableDetail, TableView, ViewUsage};

use crate::information::Information;
use crate::show_create;
use crate::tables::{BASE_TABLE, SEQUENCE, SYSTEM_VERSIONED, VIEW};

impl SchemaInformation for Information<'_> {
    fn schemas(&self) -> Vec<SchemaView> {
        let snapshot = self.snapshot();
        let mut schemas: Vec<SchemaView> = snapshot
            .schemas()
            .filter(|schema| self.privileges.sees_schema(&schema.name))
            .filter(|schema| !self.is_denied(&Object::Schema(&schema.name)))
            .map(|schema| {
                let collation = charset::collation_or_binary(schema.options.collation);
                let catalog::SchemaOptions { is_encrypted, is_read_only, .. } = schema.options;
                let (name, collation) = (schema.name.to_string(), collation.name.to_owned());
                SchemaView { name, collation, is_encrypted, is_read_only }
            })
            .collect();
        for name in catalog::SYSTEM_SCHEMAS {
            let registry = self.server.registry();
            let used = registry.information_tables().iter().any(|table| table.schema() == *name)
                || registry.system_views().iter().any(|view| view.schema == *name);
            let visible =
                !matches!(*name, "mysql" | "ndbinfo" | "sys") || self.privileges.sees_schema(name);
            let visible = visible && !self.is_denied(&Object::Schema(name));
            if visible && (used || *name == "information_schema") {
                let collation = match *name {
                    "information_schema" => "utf8mb3_general_ci",
                    _ => "utf8mb4_0900_ai_ci",
                };
                let (name, collation) = ((*name).to_owned(), collation.to_owned());
                schemas.push(SchemaView {
                    name,
                    collation,
                    is_encrypted: false,
                    is_read_only: false,
                });
            }
        }
        schemas.sort();
        schemas
    }

    fn tables(
        &self,
        schema: &str,
        name: Option<&str>,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()> {
        self.connection.check_cancelled()?;
        if self.is_denied(&Object::Schema(schema)) {
            return Ok(());
        }
        match (catalog::system_schema(schema), name) {
            (Some(system), name) => {
                self.system_tables(system, name, detail).iter().try_for_each(visit)
            }
            (None, Some(name)) => self.user_table(schema, name, detail).iter().try_for_each(visit),
            (None, None) => self.user_tables(schema, detail, visit),
        }
    }

    fn schema_create_statement(&self, schema: &str) -> Option<String> {
        let snapshot = self.snapshot();
        if let Some(schema) = snapshot.schema(schema) {
            return Some(show_create::create_schema(schema, self.style()));
        }
        let name = catalog::system_schema(schema)?;
        let charset = if name == "information_schema" { "utf8mb3" } else { "utf8mb4" };
        Some(format!(
            "CREATE DATABASE `{name}` /*!40100 DEFAULT CHARACTER SET {charset} */ /*!80016 DEFAULT ENCRYPTION='N' */"
        ))
    }

    fn is_updatable(&self, schema: &str, view: &str) -> bool {
        match self.snapshot().look(schema, view) {
            Some(Relation::View(found)) => self.is_view_updatable(&found),
            _ => false,
        }
    }

    fn view_usage(&self, schema: &str, view: &str) -> ViewUsage {
        match self.snapshot().look(schema, view) {
            Some(Relation::View(found)) => self.usage_of(&found),
            Some(Relation::Table(_)) | None => ViewUsage::default(),
        }
    }
}

impl Information<'_> {
    fn relation_view(&self, relation: &Relation, detail: TableDetail) -> TableView {
        match relation {
            Relation::Table(table) => self.table_view(table, detail),
            Relation::View(view) => self.view_view(view),
        }
    }

    /// The table or view `name`, temporary tables first.
    fn user_table(&self, schema: &str, name: &str, detail: TableDetail) -> Option<TableView> {
        let catalog = self.catalog_view();
        if let Some(table) = catalog.temporary_table(schema, name) {
            return Some(self.table_view(table, detail));
        }
        catalog.snapshot.kind(schema, name).filter(|_| self.sees(schema, name))?;
        catalog.snapshot.look(schema, name).map(|found| self.relation_view(&found, detail))
    }

    /// All tables and views of a schema except temporary ones, which are not listed.
    fn user_tables(
        &self,
        schema: &str,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()> {
        let snapshot = self.snapshot();
        for (name, kind) in snapshot.names(schema).filter(|(name, _)| self.sees(schema, name)) {
            self.connection.check_cancelled()?;
            let view = match detail {
                TableDetail::Name => Some(TableView {
                    schema: schema.to_owned(),
                    name: name.to_string(),
                    table_type: match kind {
                        RelationKind::Table => BASE_TABLE,
                        RelationKind::Sequence => SEQUENCE,
                        RelationKind::SystemVersioned => SYSTEM_VERSIONED,
                        RelationKind::View => VIEW,
                    },
                    ..TableView::default()
                }),
                TableDetail::Definition | TableDetail::Statistics => {
                    let found = snapshot.look(schema, name);
                    found.map(|found| self.relation_view(&found, detail))
                }
            };
            view.iter().try_for_each(&mut *visit)?;
        }
        Ok(())
    }
}
