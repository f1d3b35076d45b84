//! The privileges that an account needs for an action, and the errors without them.

use catalog::{AccountName, EffectivePrivileges, PrivilegeSet, RoutineKind, system_schema};
use errors::{Result, bail, err};
use syntax::ast::{Flush, FlushItem};

/// Checks of privileges for a session that acts as an account, or for a statement that it runs.
pub trait PrivilegeChecks {
    /// The account.
    fn account(&self) -> &AccountName;

    /// The privileges of the account and its active roles.
    fn privileges(&self) -> &EffectivePrivileges;

    /// The host of the client, which refusals name instead of the account's pattern.
    fn client_host(&self) -> Option<&str>;

    /// The host that refusals name: for the session's account the client's.
    fn shown_host<'h>(&'h self, account: &'h AccountName) -> &'h str {
        self.client_host().filter(|_| account == self.account()).unwrap_or(&account.host)
    }

    /// 1227 unless a global privilege is held.
    ///
    /// # Errors
    /// 1227.
    fn require_global(&self, needed: PrivilegeSet) -> Result<()> {
        if self.privileges().global().contains(needed) {
            return Ok(());
        }
        let name = needed.names().next().unwrap_or("SUPER");
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, name))
    }

    /// 1227 unless accounts may be changed: by CREATE USER, or by a privilege on the schema `mysql`, whose tables the reference changes with it.
    ///
    /// # Errors
    /// 1227.
    fn require_account_change(&self, on_tables: PrivilegeSet) -> Result<()> {
        if self.privileges().on_schema("mysql").contains(on_tables) {
            return Ok(());
        }
        self.require_global(PrivilegeSet::CREATE_USER)
    }

    /// 1227 unless CREATE USER or this privilege on roles is held.
    ///
    /// # Errors
    /// 1227.
    fn require_role_change(&self, needed: PrivilegeSet) -> Result<()> {
        let own = self.privileges().global();
        if own.contains(needed) || own.contains(PrivilegeSet::CREATE_USER) {
            return Ok(());
        }
        let name = needed.names().next().unwrap_or_default();
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, format!("CREATE USER, {name}")))
    }

    /// 1227 unless a dynamic privilege is held.
    ///
    /// # Errors
    /// 1227.
    fn require_dynamic(&self, name: &str) -> Result<()> {
        if self.privileges().has_dynamic(name) {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, format!("SUPER or {name}")))
    }

    /// As `require_dynamic`, for statements that came after SUPER was given up: the message does not name it.
    ///
    /// # Errors
    /// 1227.
    fn require_dynamic_alone(&self, name: &str) -> Result<()> {
        if self.privileges().has_dynamic(name) {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, name))
    }

    /// 1227 unless global variables may be set.
    ///
    /// # Errors
    /// 1227.
    fn require_variable_admin(&self) -> Result<()> {
        if self.privileges().has_dynamic("SYSTEM_VARIABLES_ADMIN") {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "SUPER or SYSTEM_VARIABLES_ADMIN"))
    }

    /// 1227 unless the account has one of the dynamic privileges in `words`: names with commas, `or` and SUPER between them.
    ///
    /// # Errors
    /// 1227.
    fn require_one_of(&self, words: &str) -> Result<()> {
        let mut names = words.split([',', ' ']).filter(|word| word.contains('_'));
        if names.any(|name| self.privileges().has_dynamic(name)) {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, words))
    }

    /// 1227 unless the account may set what decides about the encryption of tables.
    ///
    /// # Errors
    /// 1227.
    fn require_encryption_admin(&self) -> Result<()> {
        let own = self.privileges();
        if own.has_dynamic("SYSTEM_VARIABLES_ADMIN") && own.has_dynamic("TABLE_ENCRYPTION_ADMIN") {
            return Ok(());
        }
        let needed = "SUPER or SYSTEM_VARIABLES_ADMIN and TABLE_ENCRYPTION_ADMIN";
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, needed))
    }

    /// 1044 unless `needed` is held on the schema.
    ///
    /// # Errors
    /// 1044.
    fn require_on_schema(&self, schema: &str, needed: PrivilegeSet) -> Result<()> {
        let is_system = system_schema(schema).is_some();
        if !is_system && self.privileges().on_schema(schema).contains(needed) {
            return Ok(());
        }
        let AccountName { user, host } = self.account();
        Err(err!(DBACCESS_DENIED_ERROR, user, host, schema))
    }

    /// 1044 unless the schema may be the current one, or is one of the system's.
    ///
    /// # Errors
    /// 1044.
    fn require_entry(&self, schema: &str) -> Result<()> {
        if system_schema(schema).is_some() || self.privileges().enters_schema(schema) {
            return Ok(());
        }
        let AccountName { user, host } = self.account();
        Err(err!(DBACCESS_DENIED_ERROR, user, host, schema))
    }

    /// 1142 unless `needed` is held on the table.
    ///
    /// # Errors
    /// 1142; 1044 in a system schema.
    fn require_on_table(&self, schema: &str, table: &str, needed: PrivilegeSet) -> Result<()> {
        let account = self.account();
        if system_schema(schema).is_some() {
            bail!(DBACCESS_DENIED_ERROR, account.user, account.host, schema);
        }
        if self.privileges().allows_table(schema, table, needed) {
            return Ok(());
        }
        let word = needed.names().next().unwrap_or("ALTER");
        let host = self.shown_host(account);
        Err(err!(TABLEACCESS_DENIED_ERROR, word, account.user, host, table))
    }

    /// 1370 unless `needed` is held on the routine, whether or not it exists.
    ///
    /// # Errors
    /// 1370.
    fn require_on_routine(
        &self,
        schema: &str,
        kind: RoutineKind,
        name: &str,
        needed: PrivilegeSet,
    ) -> Result<()> {
        if self.privileges().on_routine(schema, kind, name).contains(needed) {
            return Ok(());
        }
        let word = if needed == PrivilegeSet::EXECUTE { "execute" } else { "alter routine" };
        let AccountName { user, host } = self.account();
        Err(err!(PROCACCESS_DENIED_ERROR, word, user, host, format!("{schema}.{name}")))
    }
}

/// Checks that the account may FLUSH all that a statement names.
///
/// # Errors
/// 1227.
pub fn require_flush(session: &impl PrivilegeChecks, flush: &Flush) -> Result<()> {
    let held = session.privileges();
    if held.global().contains(PrivilegeSet::RELOAD) {
        return Ok(());
    }
    // Of several the reference names the first in this order.
    let mut needed: Vec<_> = flush.items.iter().map(flush_privilege).collect();
    needed.sort_unstable();
    for privilege in needed {
        match privilege {
            Some(name) if held.has_dynamic(name) => {}
            Some(name) => bail!(SPECIFIC_ACCESS_DENIED_ERROR, format!("RELOAD or {name}")),
            None => return session.require_global(PrivilegeSet::RELOAD),
        }
    }
    Ok(())
}

/// The privilege that is enough to FLUSH this; `None`: only RELOAD is.
fn flush_privilege(item: &FlushItem) -> Option<&'static str> {
    match item {
        FlushItem::Tables { .. } => Some("FLUSH_TABLES"),
        FlushItem::Privileges => Some("FLUSH_PRIVILEGES"),
        FlushItem::Status => Some("FLUSH_STATUS"),
        FlushItem::UserResources => Some("FLUSH_USER_RESOURCES"),
        FlushItem::OptimizerCosts => Some("FLUSH_OPTIMIZER_COSTS"),
        FlushItem::Logs
        | FlushItem::BinaryLogs
        | FlushItem::EngineLogs
        | FlushItem::ErrorLogs
        | FlushItem::GeneralLogs
        | FlushItem::SlowLogs
        | FlushItem::RelayLogs { .. } => None,
    }
}
