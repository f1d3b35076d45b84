//! Asks the plugins that restrict access beyond privileges. Without such a plugin it is the test of one word.

use ::accounts::PrivilegeChecks;
use catalog::{AccountName, EffectivePrivileges, PrivilegeSet};
use errors::{Result, bail};
use plugin_api::{Object, Subject};
use syntax::ast::Statement;

use crate::planned::Planned;
use crate::server::Server;
use crate::session::Session;
use observation::changes_of;

impl Server {
    /// Whether a plugin denies the object to this account.
    pub(crate) fn is_denied(
        &self,
        account: &AccountName,
        privileges: &EffectivePrivileges,
        object: &Object<'_>,
    ) -> bool {
        if !self.hooks.restricts() {
            return false;
        }
        let is_administrator = privileges.has_dynamic("CONNECTION_ADMIN");
        let subject = Subject { user: &account.user, host: &account.host, is_administrator };
        self.registry().authorizers().iter().any(|authorizer| authorizer.denies(&subject, object))
    }
}

/// Whether the account has SELECT on all of a table.
///
/// # Errors
/// 1142, 1044.
pub(crate) fn check_reads_table(session: &Session, schema: &str, table: &str) -> Result<()> {
    if !session.privileges.allows_table(schema, table, PrivilegeSet::SELECT) {
        let AccountName { user, host } = &session.account;
        bail!(TABLEACCESS_DENIED_ERROR, "SELECT", user, host, table);
    }
    session.check_table_allowed(schema, table, "SELECT")
}

impl Session {
    fn denies(&self, object: &Object<'_>) -> bool {
        self.server.is_denied(&self.account, &self.privileges, object)
    }

    /// Asks for a schema.
    ///
    /// # Errors
    /// 1044.
    pub(crate) fn check_schema_allowed(&self, schema: &str) -> Result<()> {
        if self.denies(&Object::Schema(schema)) {
            bail!(DBACCESS_DENIED_ERROR, self.account.user, self.account.host, schema);
        }
        Ok(())
    }

    fn check_table_allowed(&self, schema: &str, table: &str, word: &str) -> Result<()> {
        self.check_schema_allowed(schema)?;
        if self.denies(&Object::Table(schema, table)) {
            let host = self.shown_host(&self.account);
            bail!(TABLEACCESS_DENIED_ERROR, word, self.account.user, host, table);
        }
        Ok(())
    }

    /// Asks for the tables of a plan that the account itself uses: what a view reads as its definer is the definer's.
    ///
    /// # Errors
    /// 1044, 1142.
    #[cold]
    pub(crate) fn check_plan_allowed(&self, planned: &Planned) -> Result<()> {
        let mut own = planned.privileges.iter().filter(|needed| needed.definer.is_none());
        own.try_for_each(|needed| {
            let privilege = crate::planned::privilege_of(needed.kind);
            let word = privilege.names().next().unwrap_or("SELECT");
            self.check_table_allowed(&needed.schema, &needed.table, word)
        })
    }

    /// Asks for the schemas and tables that a statement changes.
    ///
    /// # Errors
    /// 1044, 1142.
    #[cold]
    pub(crate) fn check_changes_allowed(&self, statement: &Statement) -> Result<()> {
        for change in changes_of(statement, self.services.database.as_deref()) {
            match &change.table {
                None => self.check_schema_allowed(&change.schema)?,
                Some(table) => self.check_table_allowed(&change.schema, table, "ALTER")?,
            }
            if let Some((schema, table)) = &change.renamed {
                self.check_table_allowed(schema, table, "ALTER")?;
            }
        }
        Ok(())
    }
}
