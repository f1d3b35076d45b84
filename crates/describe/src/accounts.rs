//! Accounts, roles and grants.

use ::accounts::parse_account;
use catalog::{
    Account, AccountName, EarlierPassword, LockTime, PrivilegeSet, RoleGrant, TlsRequirement,
};
use errors::{Result, bail, err};
use plugin_api::{
    AccountInformation, AccountView, ColumnPrivilegesView, DynamicPrivilegeView,
    EarlierPasswordView, ProxyView, RoleGrantView, RoleView, RoutinePrivilegesView,
    SchemaPrivilegesView, TablePrivilegesView,
};

use crate::grants::{grant_statements, with_roles};
use crate::information::Information;

impl Information<'_> {
    /// SHOW GRANTS: of an account, by default the session's own, with roles that it has.
    ///
    /// # Errors
    /// 1044 for another account without the privilege, 1141 for one that does not exist, 3530 for a role that it has not.
    pub fn grants_with(&self, account: Option<&str>, roles: &[AccountName]) -> Result<Vec<String>> {
        let grants = self.grants(account)?;
        let snapshot = self.snapshot();
        let accounts = snapshot.accounts();
        let name = account.map_or_else(|| self.account.clone(), parse_account);
        let Some(known) = accounts.get(&name).filter(|_| !roles.is_empty()) else {
            return Ok(grants);
        };
        let held = accounts.roles_of(known);
        if let Some(role) = roles.iter().find(|role| !held.contains(role)) {
            bail!(ROLE_NOT_GRANTED, role.user, role.host, name.user, name.host);
        }
        Ok(grant_statements(&with_roles(accounts, known, roles)))
    }
}

impl AccountInformation for Information<'_> {
    fn accounts(&self) -> Vec<AccountView> {
        let snapshot = self.snapshot();
        let may_read = self.privileges.on_schema("mysql").contains(PrivilegeSet::SELECT)
            || self.privileges.global().contains(PrivilegeSet::CREATE_USER);
        snapshot
            .accounts()
            .iter()
            .filter(|account| may_read || account.name == *self.account)
            .map(|account| account_view(account, may_read))
            .collect()
    }

    fn stored_accounts(&self) -> Vec<AccountView> {
        let snapshot = self.snapshot();
        snapshot.accounts().iter().map(|account| account_view(account, true)).collect()
    }

    fn role_accounts(&self) -> Vec<AccountView> {
        let snapshot = self.snapshot();
        let mut names = vec![self.account.clone()];
        let mut views = Vec::new();
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            let Some(account) = snapshot.accounts().get(&name) else { continue };
            let mut view = account_view(account, false);
            if name == *self.account {
                let missing = self
                    .mandatory_roles()
                    .into_iter()
                    .filter(|role| !view.roles.iter().any(|grant| grant.role == *role));
                let missing: Vec<_> =
                    missing.map(|role| RoleGrantView { role, admin: false }).collect();
                view.roles.extend(missing);
                names.extend(snapshot.accounts().mandatory_roles(&name).cloned());
            }
            views.push(view);
            for grant in &account.roles {
                if !names.contains(&grant.role) {
                    names.push(grant.role.clone());
                }
            }
        }
        views
    }

    fn mandatory_roles(&self) -> Vec<RoleView> {
        let snapshot = self.snapshot();
        snapshot.accounts().mandatory_roles(self.account).map(role_view).collect()
    }

    fn active_roles(&self) -> Vec<RoleView> {
        self.active_roles.iter().map(role_view).collect()
    }

    fn grants(&self, account: Option<&str>) -> Result<Vec<String>> {
        let snapshot = self.snapshot();
        let name = match account {
            None => self.account.clone(),
            Some(text) => parse_account(text),
        };
        let may_read = name == *self.account
            || self.privileges.on_schema("mysql").contains(PrivilegeSet::SELECT);
        if !may_read {
            return Err(err!(DBACCESS_DENIED_ERROR, self.account.user, self.account.host, "mysql"));
        }
        let accounts = snapshot.accounts();
        match accounts.get(&name) {
            Some(found) if account.is_none() => {
                let mut merged = with_roles(accounts, found, self.active_roles);
                for role in accounts.mandatory_roles(&name) {
                    if !merged.roles.iter().any(|grant| grant.role == *role) {
                        merged.roles.push(RoleGrant { role: role.clone(), admin: false });
                    }
                }
                Ok(grant_statements(&merged))
            }
            Some(found) => Ok(grant_statements(found)),
            None if name == *self.account => Ok(vec![format!(
                "GRANT ALL PRIVILEGES ON *.* TO `{}`@`{}` WITH GRANT OPTION",
                name.user, name.host
            )]),
            None => Err(err!(NONEXISTING_GRANT, name.user, name.host)),
        }
    }

    fn current_user(&self) -> String {
        self.account.to_string()
    }

    fn has_privilege(&self, name: &str) -> bool {
        self.privileges.has_named(name)
    }
}

fn role_view(role: &AccountName) -> RoleView {
    RoleView { user: role.user.to_string(), host: role.host.to_string() }
}

/// An account as information tables see it.
fn account_view(account: &Account, with_secret: bool) -> AccountView {
    let mut privileges: Vec<String> = account.global.names().map(str::to_owned).collect();
    privileges.extend(account.dynamic.keys().map(|name| name.to_string()));
    AccountView {
        user: account.name.user.to_string(),
        host: account.name.host.to_string(),
        plugin: account.plugin.to_string(),
        authentication_string: if with_secret {
            String::from_utf8_lossy(&account.authentication_string).into_owned()
        } else {
            String::new()
        },
        privileges,
        schema_privileges: schema_privileges(account),
        table_privileges: table_privileges(account),
        column_privileges: column_privileges(account),
        routine_privileges: routine_privileges(account),
        dynamic_privileges: dynamic_privileges(account),
        roles: account
            .roles
            .iter()
            .map(|grant| RoleGrantView { role: role_view(&grant.role), admin: grant.admin })
            .collect(),
        default_roles: account.default_roles.iter().map(role_view).collect(),
        proxies: proxies(account),
        tls: match account.tls {
            TlsRequirement::None => "",
            TlsRequirement::Ssl => "ANY",
            TlsRequirement::X509 => "X509",
            TlsRequirement::Specified { .. } => "SPECIFIED",
        },
        limits: account.limits,
        password_expired: account.password_expired,
        password_changed_micros: account.password_changed_micros,
        password_lifetime: account.password_policy.lifetime_days.map(u64::from),
        password_history: account.password_policy.history.map(u64::from),
        password_reuse_days: account.password_policy.reuse_days.map(u64::from),
        password_require_current: account.password_policy.require_current,
        user_attributes: user_attributes(account, with_secret),
        earlier_passwords: match with_secret {
            true => account.earlier_passwords.iter().map(earlier_password).collect(),
            false => Vec::new(),
        },
        grant_option: account.global.contains(PrivilegeSet::GRANT_OPTION),
        locked: account.locked,
        attribute: account.attribute.to_string(),
    }
}

/// Names of privileges as GRANT spells them, GRANT OPTION last.
fn names(set: PrivilegeSet) -> Vec<String> {
    let mut names: Vec<String> = set.names().map(str::to_owned).collect();
    if set.contains(PrivilegeSet::GRANT_OPTION) {
        names.push("GRANT OPTION".into());
    }
    names
}

fn schema_privileges(account: &Account) -> Vec<SchemaPrivilegesView> {
    account
        .schemas
        .iter()
        .map(|(schema, set)| SchemaPrivilegesView {
            schema: schema.to_string(),
            names: names(*set),
        })
        .collect()
}

fn table_privileges(account: &Account) -> Vec<TablePrivilegesView> {
    account
        .tables
        .iter()
        .map(|((schema, table), grant)| TablePrivilegesView {
            schema: schema.to_string(),
            table: table.to_string(),
            names: names(grant.table),
        })
        .collect()
}

fn routine_privileges(account: &Account) -> Vec<RoutinePrivilegesView> {
    account
        .routines
        .iter()
        .map(|((schema, kind, name), set)| RoutinePrivilegesView {
            schema: schema.to_string(),
            kind: kind.as_str(),
            routine: name.to_string(),
            names: names(*set),
        })
        .collect()
}

fn dynamic_privileges(account: &Account) -> Vec<DynamicPrivilegeView> {
    account
        .dynamic
        .iter()
        .map(|(name, grantable)| DynamicPrivilegeView {
            name: name.to_string(),
            grantable: *grantable,
        })
        .collect()
}

fn proxies(account: &Account) -> Vec<ProxyView> {
    account
        .proxies
        .iter()
        .map(|(name, grantable)| ProxyView {
            user: name.user.to_string(),
            host: name.host.to_string(),
            grantable: *grantable,
        })
        .collect()
}

fn earlier_password(earlier: &EarlierPassword) -> EarlierPasswordView {
    let secret = String::from_utf8_lossy(&earlier.secret).into_owned();
    EarlierPasswordView { since_micros: earlier.since_micros, secret }
}

/// The attributes of an account that have no column, in the order in which JSON keeps the names.
fn user_attributes(account: &Account, with_secret: bool) -> String {
    let mut parts = Vec::new();
    if !account.attribute.is_empty() {
        parts.push(format!("\"metadata\": {}", account.attribute));
    }
    let policy = &account.password_policy;
    if policy.failed_logins_max > 0 || policy.lock_time != LockTime::Days(0) {
        let days = match policy.lock_time {
            LockTime::Days(days) => i32::from(days),
            LockTime::Unbounded => -1,
        };
        parts.push(format!(
            "\"Password_locking\": {{\"failed_login_attempts\": {}, \"password_lock_time_days\": {days}}}",
            policy.failed_logins_max
        ));
    }
    if !account.restrictions.is_empty() {
        parts.insert(usize::from(!account.attribute.is_empty()), restrictions(account));
    }
    if with_secret && !account.second_secret.is_empty() {
        let secret = String::from_utf8_lossy(&account.second_secret);
        parts.push(format!("\"additional_password\": {}", json_text(&secret)));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", parts.join(", ")),
    }
}

/// Restrictions as a member of a JSON object.
fn restrictions(account: &Account) -> String {
    let one = |(schema, set): (&str, PrivilegeSet)| {
        let mut words: Vec<String> = set.names().map(|name| format!("\"{name}\"")).collect();
        if set.contains(PrivilegeSet::GRANT_OPTION) {
            words.push("\"GRANT\"".into());
        }
        let words = words.join(", ");
        format!("{{\"Database\": {}, \"Privileges\": [{words}]}}", json_text(schema))
    };
    let all: Vec<String> = account.restrictions.iter().map(one).collect();
    format!("\"Restrictions\": [{}]", all.join(", "))
}

/// A JSON string. Stored passwords are printable, but those of other servers may hold control characters.
fn json_text(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => out += &format!("\\u{:04x}", u32::from(letter)),
            letter => out.push(letter),
        }
    }
    out + "\""
}

fn column_privileges(account: &Account) -> Vec<ColumnPrivilegesView> {
    let mut rows = Vec::new();
    for ((schema, table), grant) in &account.tables {
        for (column, set) in &grant.columns {
            rows.push(ColumnPrivilegesView {
                schema: schema.to_string(),
                table: table.to_string(),
                column: column.to_string(),
                names: names(*set),
            });
        }
    }
    rows
}
