//! Schemas, tables and views, as information tables see them.

use errors::Result;

use super::table::{TableDetail, TableView};

/// A schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaView {
    /// Name.
    pub name: String,
    /// Name of the default collation.
    pub collation: String,
    /// DEFAULT ENCRYPTION.
    pub is_encrypted: bool,
    /// READ ONLY.
    pub is_read_only: bool,
}

/// Facts about schemas, tables and views.
pub trait SchemaInformation {
    /// Schemas in name order.
    fn schemas(&self) -> Vec<SchemaView>;
    /// Visits the tables of a schema in name order, information tables included. Pass `name` to get one.
    ///
    /// # Errors
    /// Cancelled; any error that `visit` returns.
    fn tables(
        &self,
        schema: &str,
        name: Option<&str>,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()>;
    /// CREATE DATABASE text of a schema.
    fn schema_create_statement(&self, schema: &str) -> Option<String>;
    /// Whether rows can be changed through a view. The view is bound for it.
    fn is_updatable(&self, _schema: &str, _view: &str) -> bool {
        false
    }
    /// What a view names itself, by schema and name: tables and views, and stored functions. The view is bound for it.
    fn view_usage(&self, _schema: &str, _view: &str) -> ViewUsage {
        ViewUsage::default()
    }
}

/// What a view names: schemas and names, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ViewUsage {
    /// Tables and views.
    pub tables: Vec<(String, String)>,
    /// Stored functions.
    pub routines: Vec<(String, String)>,
}
