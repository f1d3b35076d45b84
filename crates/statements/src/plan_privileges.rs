//! Whether privileges include what a plan needs.

use binder::{PrivilegeKind, RequiredPrivilege};
use catalog::{AccountName, CatalogView, EffectivePrivileges};
use errors::{Result, bail, err};

use crate::planned::privilege_of;

/// Checks that these privileges include the needed one. `shown_host`: the host that a refusal shows of an account.
///
/// # Errors
/// 1044, 1142, 1143.
pub fn check_privilege(
    shown_host: &dyn Fn(&AccountName) -> String,
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
        let host = shown_host(account);
        bail!(COLUMNACCESS_DENIED_ERROR, word, account.user, host, refused, table);
    }
    let host = shown_host(account);
    Err(err!(TABLEACCESS_DENIED_ERROR, word, account.user, host, table))
}
