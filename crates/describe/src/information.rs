//! A session as information tables see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{
    AccountName, CatalogSnapshot, CatalogView, EffectivePrivileges, PendingDefinitions,
    PrivilegeSet, Table,
};
use errors::Diagnostics;
use plugin_api::Object;
use types::ZoneRules;
use variables::SessionValues;

use crate::facts::{ConnectionFacts, ServerFacts};
use crate::show_create::Style;

/// A session as information tables see it. Made for every statement, so it only borrows.
pub struct Information<'a> {
    /// The server.
    pub server: &'a dyn ServerFacts,
    /// Definitions that the session's transaction has changed.
    pub definitions: Option<Arc<PendingDefinitions>>,
    /// The connection.
    pub connection: &'a dyn ConnectionFacts,
    /// Session variables.
    pub values: Arc<SessionValues>,
    /// The privileges of the account.
    pub privileges: &'a EffectivePrivileges,
    /// Conditions of the previous statement.
    pub diagnostics: &'a Diagnostics,
    /// The current schema.
    pub database: Option<Arc<str>>,
    /// The account.
    pub account: &'a AccountName,
    /// Temporary tables by schema and name.
    pub temporary: &'a Arc<BTreeMap<(Arc<str>, Arc<str>), Arc<Table>>>,
    /// Version and cipher of TLS.
    pub tls: Option<&'a (String, String)>,
    /// The roles in force.
    pub active_roles: &'a [AccountName],
}

impl Information<'_> {
    pub(crate) fn zone(&self) -> Arc<dyn ZoneRules> {
        let definitions = &self.server.globals().definitions;
        let name = definitions.find("time_zone").map(|id| self.values.get(id).clone());
        let name = name.map_or_else(String::new, |value| variables::as_text(&value));
        self.server.zone(&name).unwrap_or_else(|| Arc::new(types::FixedOffset::utc()))
    }

    /// The session's style for definitions.
    pub(crate) fn style(&self) -> Style {
        let value = |name: &str| {
            let id = self.server.globals().definitions.find(name)?;
            Some(self.values.get(id).clone())
        };
        let mode = value("sql_mode").map_or_else(String::new, |v| variables::as_text(&v));
        let mode = |wanted: &str| mode.split(',').any(|name| name == wanted);
        let is_off =
            |name: &str| matches!(value(name), Some(types::Value::Int(0) | types::Value::UInt(0)));
        Style {
            ansi_quotes: mode("ANSI_QUOTES"),
            spare_quotes: is_off("sql_quote_show_create"),
            portable: mode("ANSI"),
            hides_generated_key: is_off("show_gipk_in_create_table_and_information_schema"),
            is_logged: false,
        }
    }

    /// Whether the session does not want to see the key of this table because it was generated.
    pub(crate) fn hides_key(&self, table: &Table) -> bool {
        self.style().hides_generated_key && definitions::has_generated_key(table)
    }

    /// The catalog as the session sees it.
    pub(crate) fn snapshot(&self) -> Arc<CatalogSnapshot> {
        let catalog = self.server.catalog();
        match &self.definitions {
            None => catalog.snapshot(),
            Some(definitions) => definitions.snapshot(catalog),
        }
    }

    pub(crate) fn catalog_view(&self) -> CatalogView {
        CatalogView { snapshot: self.snapshot(), temporary: self.temporary.clone() }
    }

    pub(crate) fn may_see_all(&self) -> bool {
        self.privileges.global().contains(PrivilegeSet::PROCESS)
    }

    pub(crate) fn sees(&self, schema: &str, name: &str) -> bool {
        self.privileges.sees_table(schema, name) && !self.is_denied(&Object::Table(schema, name))
    }

    /// Whether a plugin denies an object to the account.
    pub(crate) fn is_denied(&self, object: &Object<'_>) -> bool {
        self.server.is_denied(self.account, self.privileges, object)
    }
}
