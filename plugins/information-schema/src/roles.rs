//! The session's roles: those it may take, those it has taken, and their privileges.

use errors::Result;
use plugin_api::{
    AccountView, ColumnPrivilegesView, InfoFilter, InformationContext, RoleView,
    RoutinePrivilegesView, TablePrivilegesView,
};
use types::Value;

use crate::accounts::{routine_set_text, set_text};
use crate::row::{Emit, yes_no};

/// `APPLICABLE_ROLES`: roles granted to the account, and to those roles.
pub fn applicable(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    visit_applicable(ctx, |_| true, emit)
}

/// `ADMINISTRABLE_ROLE_AUTHORIZATIONS`: those that may be handed on.
pub fn administrable(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit_applicable(ctx, |admin| admin, emit)
}

fn visit_applicable(
    ctx: &dyn InformationContext,
    is_wanted: impl Fn(bool) -> bool,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let accounts = ctx.role_accounts();
    let Some(own) = accounts.first() else { return Ok(()) };
    let mandatory = ctx.mandatory_roles();
    for (position, holder) in accounts.iter().enumerate() {
        for grant in holder.roles.iter().filter(|grant| is_wanted(grant.admin)) {
            let RoleView { user, host } = &grant.role;
            emit(&[
                Value::text(&own.user),
                Value::text(&own.host),
                Value::text(&holder.user),
                Value::text(&holder.host),
                Value::text(user),
                Value::text(host),
                yes_no(grant.admin),
                yes_no(position == 0 && is_default(own, user, host)),
                yes_no(position == 0 && mandatory.contains(&grant.role)),
            ])?;
        }
    }
    Ok(())
}

fn is_default(account: &AccountView, user: &str, host: &str) -> bool {
    account.default_roles.iter().any(|role| role.user == user && role.host == host)
}

/// `ENABLED_ROLES`: those in force.
pub fn enabled(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let accounts = ctx.role_accounts();
    let mandatory = ctx.mandatory_roles();
    for role in ctx.active_roles() {
        let RoleView { user, host } = &role;
        let default = accounts.first().is_some_and(|own| is_default(own, user, host));
        let is_mandatory = yes_no(mandatory.contains(&role));
        emit(&[Value::text(user), Value::text(host), yes_no(default), is_mandatory])?;
    }
    Ok(())
}

/// The roles in force and those granted to them.
fn roles_in_force(ctx: &dyn InformationContext) -> Vec<AccountView> {
    let mut names = ctx.active_roles();
    let accounts = ctx.role_accounts();
    let mut next = 0;
    while let Some(name) = names.get(next).cloned() {
        next += 1;
        let role = accounts.iter().find(|one| one.user == name.user && one.host == name.host);
        for grant in role.iter().flat_map(|role| &role.roles) {
            if !names.contains(&grant.role) {
                names.push(grant.role.clone());
            }
        }
    }
    let is_named = |role: &AccountView| {
        names.iter().any(|name| role.user == name.user && role.host == name.host)
    };
    accounts.into_iter().skip(1).filter(is_named).collect()
}

/// The head of a row: the grantor is not kept; the grantee, and the catalog.
fn head(role: &AccountView) -> [Value; 5] {
    let none = || Value::text("");
    [none(), none(), Value::text(&role.user), Value::text(&role.host), Value::text("def")]
}

fn may_grant(names: &[String]) -> Value {
    yes_no(names.iter().any(|name| name == "GRANT OPTION"))
}

/// `ROLE_TABLE_GRANTS`.
pub fn table_grants(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for role in roles_in_force(ctx) {
        for TablePrivilegesView { schema, table, names } in &role.table_privileges {
            let object = [Value::text(schema), Value::text(table)];
            let held = [set_text(names), may_grant(names)];
            emit(&[head(&role).as_slice(), &object, &held].concat())?;
        }
    }
    Ok(())
}

/// `ROLE_COLUMN_GRANTS`.
pub fn column_grants(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for role in roles_in_force(ctx) {
        for ColumnPrivilegesView { schema, table, column, names } in &role.column_privileges {
            let object = [Value::text(schema), Value::text(table), Value::text(column)];
            // Columns have no separate GRANT OPTION.
            let mut tables = role.table_privileges.iter();
            let of_table = tables.find(|held| held.schema == *schema && held.table == *table);
            let grantable = of_table.map_or_else(|| yes_no(false), |held| may_grant(&held.names));
            emit(&[head(&role).as_slice(), &object, &[set_text(names), grantable]].concat())?;
        }
    }
    Ok(())
}

/// `ROLE_ROUTINE_GRANTS`.
pub fn routine_grants(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for role in roles_in_force(ctx) {
        for RoutinePrivilegesView { schema, routine, names, .. } in &role.routine_privileges {
            let name = [Value::text(schema), Value::text(routine)];
            let catalog = [Value::text("def")];
            let held = [routine_set_text(names), may_grant(names)];
            emit(&[head(&role).as_slice(), &name, &catalog, &name, &held].concat())?;
        }
    }
    Ok(())
}
