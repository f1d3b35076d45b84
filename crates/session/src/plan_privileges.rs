//! Checks that an account has the privileges that a plan needs.

use ::accounts::PrivilegeChecks;
use binder::{PrivilegeKind, RequiredPrivilege};
use catalog::{AccountName, CatalogView, EffectivePrivileges, View};
use errors::{Result, bail, err};

use crate::planned::{Planned, privilege_of};
use crate::session::Session;

impl Session {
    /// Checks that the account has the privileges that the plan needs.
    pub(crate) fn check_plan_privileges(&self, planned: &Planned) -> Result<()> {
        if self.server.hooks.restricts() {
            self.check_plan_allowed(planned)?;
        }
        if self.privileges.everywhere().contains(planned.privilege_mask)
            && planned.privileges.iter().all(|needed| needed.definer.is_none())
        {
            return Ok(());
        }
        let view = self.view();
        for needed in &planned.privileges {
            match &needed.definer {
                None => check_privilege(self, &view, (&self.privileges, &self.account), needed)?,
                Some(definer) => {
                    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, "%"));
                    let name = AccountName::new(user, host);
                    let accounts = view.snapshot.accounts().clone();
                    if accounts.get(&name).is_none() {
                        bail!(NO_SUCH_USER, name.user, name.host);
                    }
                    let effective = accounts.effective(&name, &[]);
                    check_privilege(self, &view, (&effective, &name), needed)?;
                }
            }
        }
        Ok(())
    }
}

/// Checks that the session's account may do this to a view as such.
pub(crate) fn check_on_view(session: &Session, kind: PrivilegeKind, view: &View) -> Result<()> {
    let (schema, table) = (view.schema.clone(), view.name.clone());
    let needed = RequiredPrivilege { schema, table, columns: Vec::new(), kind, definer: None };
    let own = (&*session.privileges, &session.account);
    check_privilege(session, &session.view(), own, &needed)
}

/// Checks that these privileges include the needed one; `session` words refusals.
fn check_privilege(
    session: &impl PrivilegeChecks,
    view: &CatalogView,
    (privileges, account): (&EffectivePrivileges, &AccountName),
    needed: &RequiredPrivilege,
) -> Result<()> {
    let (schema, table) = (&*needed.schema, &*needed.table);
    // Tables of `mysql` and of the cluster are the administrators' business, except those that HELP reads; everything else about
    // the server is filtered by what the account may see.
    let is_secret = schema == "mysql" && !table.starts_with("help_") || schema == "ndbinfo";
    if catalog::system_schema(schema).is_some() && !is_secret {
        return match needed.kind {
            PrivilegeKind::Select | PrivilegeKind::SelectColumns => Ok(()),
            PrivilegeKind::Insert | PrivilegeKind::Update | PrivilegeKind::Delete => {
                Err(err!(DBACCESS_DENIED_ERROR, account.user, account.host, schema))
            }
        };
    }
    let privilege = privilege_of(needed.kind);
    if privileges.allows_table(schema, table, privilege) {
        return Ok(());
    }
    let only_columns = needed.kind == PrivilegeKind::SelectColumns;
    if only_columns && needed.columns.is_empty() {
        return Ok(());
    }
    let word = privilege.names().next().unwrap_or("SELECT");
    let holds = |column: &str| privileges.on_column(schema, table, column).contains(privilege);
    let known = view.table(schema, table);
    let any_column = match &known {
        Some(table) => table.columns.iter().any(|column| holds(&column.name)),
        // An information table: the catalog does not know its columns.
        None => needed.columns.iter().any(|column| holds(column)),
    };
    if any_column || only_columns {
        let Some(refused) = needed.columns.iter().find(|column| !holds(column)) else {
            return Ok(());
        };
        let host = session.shown_host(account);
        bail!(COLUMNACCESS_DENIED_ERROR, word, account.user, host, refused, table);
    }
    let host = session.shown_host(account);
    Err(err!(TABLEACCESS_DENIED_ERROR, word, account.user, host, table))
}
