//! GRANT and REVOKE.

use catalog::{
    Account, AccountName, Accounts, Edit, PrivilegeSet, Relation, Restrictions, RoleGrant,
    RoutineKind, TableGrant, is_dynamic_privilege, routine_grant_key, system_schema,
};
use errors::{Condition, Error, ErrorCode, Result, bail, err};
use syntax::ast::{
    Grant, GrantTarget, ObjectName, Privileges, Revoke, RevokeKind, RoleChoice, UserName,
};

use crate::PrivilegeChecks;
use crate::restrictions::give_global;
use crate::statement::{AccountChange, AccountStatement, unknown};

impl AccountStatement<'_> {
    /// GRANT.
    pub(crate) fn grant(&mut self, grant: &Grant) -> Result<AccountChange> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        match grant {
            Grant::Privileges {
                privileges,
                target,
                users,
                grant_option,
                as_user,
                with_role,
                options,
            } => {
                let lent = match as_user {
                    Some(user) if matches!(target, GrantTarget::Global) => {
                        self.restrictions_as(user, with_role.as_ref())?
                    }
                    Some(_) => bail!(UNSUPPORTED_USE_OF_GRANT_AS),
                    None => self.privileges.restrictions().clone(),
                };
                for spec in users {
                    let name = self.account_name(&spec.user)?;
                    let known =
                        accounts.get(&name).ok_or_else(|| err!(CANT_CREATE_USER_WITH_GRANT))?;
                    let mut account = Account::clone(known);
                    self.grant_to(&mut account, privileges, target, *grant_option, &lent)?;
                    self.apply_account_options(&mut account, options)?;
                    edits.push(Edit::PutAccount(account));
                }
            }
            Grant::Roles { roles, users, admin_option } => {
                for user in users {
                    let name = self.account_name(user)?;
                    let known = accounts.get(&name).ok_or_else(|| unknown(&name))?;
                    let mut account = Account::clone(known);
                    for role in roles {
                        let role = self.account_name(role)?;
                        if accounts.get(&role).is_none() {
                            return Err(unknown(&role));
                        }
                        self.require_role_admin(&accounts, &role)?;
                        self.check_no_loop(&role, &name)?;
                        account.roles.retain(|grant| grant.role != role);
                        account.roles.push(RoleGrant { role, admin: *admin_option });
                    }
                    edits.push(Edit::PutAccount(account));
                }
            }
            Grant::Proxy { proxied, users, grant_option } => {
                let proxied = self.account_name(proxied)?;
                self.require_proxy_admin(&accounts, &proxied)?;
                for spec in users {
                    let name = self.account_name(&spec.user)?;
                    let known =
                        accounts.get(&name).ok_or_else(|| err!(CANT_CREATE_USER_WITH_GRANT))?;
                    let mut account = Account::clone(known);
                    account.proxies.insert(proxied.clone(), *grant_option);
                    edits.push(Edit::PutAccount(account));
                }
            }
        }
        Ok(edits.into())
    }

    /// The restrictions that `AS user [WITH ROLE ..]` hands on: those of the user with these roles, by default with its default ones.
    ///
    /// # Errors
    /// 3836: there is no such user, it does not have a role, or it is restricted less than the session's account.
    fn restrictions_as(
        &self,
        user: &UserName,
        with_role: Option<&RoleChoice>,
    ) -> Result<Restrictions> {
        let refused = || err!(UNKNOWN_AUTH_ID_OR_ACCESS_DENIED_FOR_GRANT_AS);
        let accounts = self.accounts();
        let name = self.account_name(user)?;
        let account = accounts.get(&name).ok_or_else(refused)?;
        let choice = with_role.unwrap_or(&RoleChoice::Default);
        let roles = self.chosen_roles(account, choice).map_err(|_| refused())?;
        let lent = accounts.effective(&name, &roles).restrictions().clone();
        let mut own = self.privileges.restrictions().iter();
        if own.any(|(schema, restricted)| !lent.on(schema).contains(restricted)) {
            return Err(refused());
        }
        Ok(lent)
    }

    /// Requires the right to grant a role to others.
    fn require_role_admin(&self, accounts: &Accounts, role: &AccountName) -> Result<()> {
        let own = accounts.get(self.own).is_some_and(|account| {
            account.roles.iter().any(|grant| grant.role == *role && grant.admin)
        });
        if own || self.privileges.has_dynamic("ROLE_ADMIN") {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "WITH ADMIN, ROLE_ADMIN, SUPER"))
    }

    /// Requires the right to grant PROXY on an account: it is the session's own, or a PROXY WITH GRANT OPTION is held.
    fn require_proxy_admin(&self, accounts: &Accounts, proxied: &AccountName) -> Result<()> {
        if accounts.get(self.own).is_some_and(|account| account.may_grant_proxy(proxied)) {
            return Ok(());
        }
        Err(err!(ACCESS_DENIED_NO_PASSWORD_ERROR, self.own.user, self.own.host))
    }

    /// Adds privileges to an account.
    fn grant_to(
        &mut self,
        account: &mut Account,
        privileges: &Privileges,
        target: &GrantTarget,
        grant_option: bool,
        lent: &Restrictions,
    ) -> Result<()> {
        let option = if grant_option { PrivilegeSet::GRANT_OPTION } else { PrivilegeSet::NONE };
        match self.grant_level(target)? {
            Level::Global => {
                let (set, dynamic) = self.global_set(privileges, account)?;
                self.require_grantable(self.privileges.global(), set)?;
                // Dynamic privileges have a GRANT OPTION each.
                let is_static = dynamic.is_empty() || !set.is_empty();
                give_global(account, if is_static { set | option } else { set }, lent);
                for name in dynamic {
                    self.require_dynamic(&name)?;
                    self.check_grantable_to(&account.name, &name)?;
                    *account.dynamic.entry(name).or_default() |= grant_option;
                }
            }
            Level::Schema(schema) => {
                let set = level_set(privileges, PrivilegeSet::ALL_SCHEMA)?;
                self.require_grantable_schema(&schema, set)?;
                Self::give_on_schema(account, schema, set | option);
            }
            Level::Table(schema, table) => {
                let (set, _) = table_set(privileges)?;
                self.require_grantable_table(&schema, &table, set)?;
                let (set, columns) = table_set(privileges)?;
                let names = columns.iter().map(|(column, _)| &**column);
                self.check_granted_table(&schema, &table, set, names)?;
                let entry = account.tables.entry((schema, table)).or_default();
                entry.table |= set | option;
                for (column, set) in columns {
                    *entry.columns.entry(column).or_default() |= set;
                }
            }
            Level::Routine(schema, kind, name) => {
                let set = routine_set(privileges)?;
                self.require_grantable_routine(&schema, kind, &name, set)?;
                if self.view.snapshot.routine(&schema, kind, &name).is_none() {
                    bail!(SP_DOES_NOT_EXIST, kind.as_str(), name);
                }
                let key = routine_grant_key(&schema, kind, &name);
                *account.routines.entry(key).or_default() |= set | option;
            }
        }
        Ok(())
    }

    /// 1146 or 1054 unless there are the table, which CREATE does not need, and its columns.
    fn check_granted_table<'n>(
        &self,
        schema: &str,
        table: &str,
        set: PrivilegeSet,
        mut columns: impl Iterator<Item = &'n str>,
    ) -> Result<()> {
        let unknown = match self.view.relation(schema, table) {
            Some(Relation::Table(known)) => columns.find(|column| known.column(column).is_none()),
            Some(Relation::View(_)) => None,
            None => match self.registry.information_table(schema, table) {
                Some(known) if schema == "mysql" => columns.find(|column| {
                    !known.columns().iter().any(|known| known.name.eq_ignore_ascii_case(column))
                }),
                Some(_) | None if set.contains(PrivilegeSet::CREATE) => None,
                Some(_) | None => bail!(NO_SUCH_TABLE, schema, table),
            },
        };
        match unknown {
            Some(column) => Err(err!(BAD_FIELD_ERROR, column, table)),
            None => Ok(()),
        }
    }

    /// Likewise for a routine.
    fn require_grantable_routine(
        &self,
        schema: &str,
        kind: RoutineKind,
        name: &str,
        wanted: PrivilegeSet,
    ) -> Result<()> {
        let held = self.privileges.on_routine(schema, kind, name);
        if held.contains(wanted | PrivilegeSet::GRANT_OPTION) {
            return Ok(());
        }
        let AccountName { user, host } = self.own;
        Err(err!(PROCACCESS_DENIED_ERROR, "grant", user, host, format!("{schema}.{name}")))
    }

    /// Only an account that holds privileges with GRANT OPTION may grant them.
    fn require_grantable(&self, held: PrivilegeSet, wanted: PrivilegeSet) -> Result<()> {
        if held.contains(wanted | PrivilegeSet::GRANT_OPTION) {
            return Ok(());
        }
        Err(err!(ACCESS_DENIED_ERROR, self.own.user, self.own.host, "YES"))
    }

    /// Likewise on a table.
    fn require_grantable_table(
        &self,
        schema: &str,
        table: &str,
        wanted: PrivilegeSet,
    ) -> Result<()> {
        let needed = wanted | PrivilegeSet::GRANT_OPTION;
        let missing = needed.without(self.privileges.on_table(schema, table));
        if missing.is_empty() {
            return Ok(());
        }
        let word = missing.names().next().unwrap_or("GRANT");
        let host = self.shown_host(self.own);
        Err(err!(TABLEACCESS_DENIED_ERROR, word, self.own.user, host, table))
    }

    /// Likewise on a schema.
    fn require_grantable_schema(&self, schema: &str, wanted: PrivilegeSet) -> Result<()> {
        let needed = wanted | PrivilegeSet::GRANT_OPTION;
        let is_open = system_schema(schema) == Some("information_schema");
        if !is_open && self.privileges.on_schema(schema).contains(needed) {
            return Ok(());
        }
        Err(err!(DBACCESS_DENIED_ERROR, self.own.user, self.own.host, schema))
    }

    fn grant_level(&self, target: &GrantTarget) -> Result<Level> {
        Ok(match target {
            GrantTarget::Global => Level::Global,
            GrantTarget::Schema(schema) => Level::Schema(schema.text.clone()),
            GrantTarget::CurrentSchema => Level::Schema((&*self.current_schema()?).into()),
            GrantTarget::Table(name) => {
                let (schema, table) = self.qualify(name)?;
                Level::Table((&*schema).into(), (&*table).into())
            }
            GrantTarget::Function(name) => self.routine_level(RoutineKind::Function, name)?,
            GrantTarget::Procedure(name) => self.routine_level(RoutineKind::Procedure, name)?,
            GrantTarget::Library(name) => self.routine_level(RoutineKind::Library, name)?,
        })
    }

    fn routine_level(&self, kind: RoutineKind, name: &ObjectName) -> Result<Level> {
        let (schema, name) = self.qualify(name)?;
        Ok(Level::Routine((&*schema).into(), kind, (&*name).into()))
    }

    /// REVOKE.
    pub(crate) fn revoke(&mut self, revoke: &Revoke) -> Result<AccountChange> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        for user in &revoke.users {
            let name = self.account_name(user)?;
            let Some(known) = accounts.get(&name) else {
                if revoke.ignore_unknown_user {
                    self.diagnostics.warn(ErrorCode::USER_DOES_NOT_EXIST, &[&name.user]);
                    continue;
                }
                return Err(match &revoke.what {
                    RevokeKind::Everything => err!(REVOKE_GRANTS),
                    RevokeKind::Roles { .. } => unknown(&name),
                    RevokeKind::Privileges { .. } | RevokeKind::Proxy(_) => {
                        err!(NONEXISTING_GRANT, name.user, name.host)
                    }
                });
            };
            let mut account = Account::clone(known);
            self.revoke_from(&mut account, &revoke.what, revoke.if_exists)?;
            edits.push(Edit::PutAccount(account));
        }
        Ok(edits.into())
    }

    fn revoke_from(
        &mut self,
        account: &mut Account,
        what: &RevokeKind,
        if_exists: bool,
    ) -> Result<()> {
        match what {
            RevokeKind::Everything => {
                self.require_global(PrivilegeSet::CREATE_USER)?;
                let all = PrivilegeSet::ALL_GLOBAL | PrivilegeSet::GRANT_OPTION;
                self.take_global(account, all)?;
                account.dynamic.clear();
                account.schemas.clear();
                account.tables.clear();
                account.routines.clear();
                Ok(())
            }
            RevokeKind::Roles { roles, .. } => {
                let accounts = self.accounts();
                for role in roles {
                    let role = self.account_name(role)?;
                    self.check_not_mandatory(&role)?;
                    if accounts.get(&role).is_none() {
                        self.miss(unknown(&role), if_exists)?;
                        continue;
                    }
                    self.require_role_admin(&accounts, &role)?;
                    let had = account.roles.len();
                    account.roles.retain(|grant| grant.role != role);
                    account.default_roles.retain(|default| *default != role);
                    if account.roles.len() == had && !if_exists {
                        let whom = &account.name;
                        bail!(ROLE_NOT_GRANTED, role.user, role.host, whom.user, whom.host);
                    }
                }
                Ok(())
            }
            RevokeKind::Proxy(proxied) => {
                let proxied = self.account_name(proxied)?;
                self.require_proxy_admin(&self.accounts(), &proxied)?;
                if account.proxies.remove(&proxied).is_none() {
                    let missing = err!(NONEXISTING_GRANT, account.name.user, account.name.host);
                    return self.miss(missing, if_exists);
                }
                Ok(())
            }
            RevokeKind::Privileges { privileges, target } => {
                self.revoke_privileges(account, privileges, target, if_exists)
            }
        }
    }

    /// The error of a REVOKE of a grant that does not exist; a warning under IF EXISTS.
    fn miss(&mut self, missing: Error, if_exists: bool) -> Result<()> {
        if !if_exists {
            return Err(missing);
        }
        // The reference has no text for this warning: the error's own is used.
        let (level, code) = (errors::Level::Warning, missing.code());
        let message = missing.message().to_owned();
        self.diagnostics.push(Condition::new(level, code, *b"HY000", message));
        Ok(())
    }

    /// Static and dynamic privileges of a global grant to an account, or a revocation: what it holds of a plugin that is gone can still be
    /// revoked.
    fn global_set(
        &self,
        privileges: &Privileges,
        account: &Account,
    ) -> Result<(PrivilegeSet, Vec<Box<str>>)> {
        let of_plugins = self.registry.privileges();
        let Privileges::List(list) = privileges else {
            let all = Account::default().with_all_privileges().dynamic.into_keys();
            let all = all.chain(of_plugins.iter().map(|name| (*name).into()));
            return Ok((PrivilegeSet::ALL_GLOBAL, all.collect()));
        };
        let mut set = PrivilegeSet::NONE;
        let mut dynamic = Vec::new();
        for privilege in list {
            if !privilege.columns.is_empty() {
                bail!(WRONG_USAGE, "COLUMN GRANT", "GLOBAL PRIVILEGES");
            }
            let upper = privilege.name.to_ascii_uppercase();
            let is_dynamic = is_dynamic_privilege(&upper)
                || of_plugins.contains(&&*upper)
                || account.dynamic.contains_key(&*upper);
            match PrivilegeSet::named(&upper) {
                Some(found) => set |= found,
                None if is_dynamic => dynamic.push(upper.into()),
                None => return Err(Error::with(ErrorCode::SYNTAX_ERROR, &[])),
            }
        }
        Ok((set, dynamic))
    }

    fn revoke_privileges(
        &mut self,
        account: &mut Account,
        privileges: &Privileges,
        target: &GrantTarget,
        if_exists: bool,
    ) -> Result<()> {
        let missing =
            |account: &Account| err!(NONEXISTING_GRANT, account.name.user, account.name.host);
        match self.grant_level(target)? {
            Level::Global => {
                let (set, dynamic) = self.global_set(privileges, account)?;
                self.require_grantable(self.privileges.global(), set)?;
                self.take_global(account, set)?;
                for name in dynamic {
                    account.dynamic.remove(&name);
                }
            }
            Level::Schema(schema) => {
                let set = level_set(privileges, PrivilegeSet::ALL_SCHEMA)?;
                self.require_grantable_schema(&schema, set)?;
                let Some(revoke) = self.revoke_on_schema(account, &schema, set) else {
                    return self.miss(missing(account), if_exists);
                };
                account.restrictions.add(&schema, revoke.restricted);
                if let Some(held) = account.schemas.get_mut(&schema) {
                    *held = held.without(revoke.removed);
                    if held.is_empty() {
                        account.schemas.remove(&schema);
                    }
                }
            }
            Level::Table(schema, table) => {
                let (set, columns) = table_set(privileges)?;
                self.require_grantable_table(&schema, &table, set)?;
                let key = (schema, table.clone());
                let Some(held) = account.tables.get_mut(&key) else {
                    let AccountName { user, host } = &account.name;
                    return self.miss(err!(NONEXISTING_TABLE_GRANT, user, host, table), if_exists);
                };
                held.table = held.table.without(set);
                for (column, set) in columns {
                    if let Some(granted) = held.columns.get_mut(&column) {
                        *granted = granted.without(set);
                    }
                }
                held.columns.retain(|_, set| !set.is_empty());
                if TableGrant::is_empty(held) {
                    account.tables.remove(&key);
                }
            }
            Level::Routine(schema, kind, name) => {
                let set = routine_set(privileges)?;
                self.require_grantable_routine(&schema, kind, &name, set)?;
                let key = routine_grant_key(&schema, kind, &name);
                let Some(held) = account.routines.get_mut(&key) else {
                    let AccountName { user, host } = &account.name;
                    return self.miss(err!(NONEXISTING_PROC_GRANT, user, host, name), if_exists);
                };
                *held = held.without(set);
                if held.is_empty() {
                    account.routines.remove(&key);
                }
            }
        }
        Ok(())
    }
}

/// The object that privileges are granted on.
enum Level {
    Global,
    Schema(Box<str>),
    Table(Box<str>, Box<str>),
    Routine(Box<str>, RoutineKind, Box<str>),
}

/// Privileges of a level at which only those of `all` exist.
fn level_set(privileges: &Privileges, all: PrivilegeSet) -> Result<PrivilegeSet> {
    let Privileges::List(list) = privileges else { return Ok(all) };
    let mut set = PrivilegeSet::NONE;
    for privilege in list {
        let upper = privilege.name.to_ascii_uppercase();
        let found =
            PrivilegeSet::named(&upper).ok_or_else(|| err!(ILLEGAL_PRIVILEGE_LEVEL, upper))?;
        let possible = all | PrivilegeSet::GRANT_OPTION;
        if !possible.contains(found) || !privilege.columns.is_empty() {
            bail!(WRONG_USAGE, "DB GRANT", "GLOBAL PRIVILEGES");
        }
        set |= found;
    }
    Ok(set)
}

/// Privileges on a routine.
fn routine_set(privileges: &Privileges) -> Result<PrivilegeSet> {
    let Privileges::List(list) = privileges else { return Ok(PrivilegeSet::ALL_ROUTINE) };
    let mut set = PrivilegeSet::NONE;
    for privilege in list {
        let possible = PrivilegeSet::ALL_ROUTINE | PrivilegeSet::GRANT_OPTION;
        set |= PrivilegeSet::named(&privilege.name.to_ascii_uppercase())
            .filter(|found| possible.contains(*found) && privilege.columns.is_empty())
            .ok_or_else(|| err!(ILLEGAL_GRANT_FOR_TABLE))?;
    }
    Ok(set)
}

type ColumnSets = Vec<(Box<str>, PrivilegeSet)>;

/// Privileges on a table and on its columns.
fn table_set(privileges: &Privileges) -> Result<(PrivilegeSet, ColumnSets)> {
    let Privileges::List(list) = privileges else {
        return Ok((PrivilegeSet::ALL_TABLE, Vec::new()));
    };
    let mut set = PrivilegeSet::NONE;
    let mut columns = Vec::new();
    for privilege in list {
        let upper = privilege.name.to_ascii_uppercase();
        let found = PrivilegeSet::named(&upper)
            .filter(|found| (PrivilegeSet::ALL_TABLE | PrivilegeSet::GRANT_OPTION).contains(*found))
            .ok_or_else(|| err!(ILLEGAL_GRANT_FOR_TABLE))?;
        if privilege.columns.is_empty() {
            set |= found;
        }
        for column in &privilege.columns {
            columns.push((column.text.clone(), found));
        }
    }
    Ok((set, columns))
}
