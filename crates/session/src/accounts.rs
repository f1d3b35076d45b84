//! Users, roles and grants: the statements that change them.

use std::sync::Arc;

use catalog::{
    Account, AccountName, Accounts, Edit, PrivilegeSet, Relation, RoleGrant, TableGrant,
    TlsRequirement, is_dynamic_privilege,
};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::{
    AccountOptions, AlterUser, AuthOption, CreateFlags, CreateUser, Grant, GrantTarget,
    PasswordOption, Privileges, Require, Revoke, RevokeKind, RoleChoice, SetPassword, UserName,
    UserSpec,
};

use crate::account_texts::LIMITS;
use crate::server::DEFAULT_METHOD;
use crate::session::Session;

/// Longest user name, characters.
const USER_CHARS_MAX: usize = 32;
/// Longest host name, characters.
const HOST_CHARS_MAX: usize = 255;

/// `user@host` as information tables write it, with or without quotes.
pub(crate) fn parse_account(text: &str) -> AccountName {
    let clean =
        |part: &str| part.trim_matches(|quote| matches!(quote, '\'' | '`' | '"')).to_owned();
    match text.rsplit_once('@') {
        Some((user, host)) => AccountName::new(&clean(user), &clean(host)),
        None => AccountName::new(&clean(text), "%"),
    }
}

/// Accounts that failed in a statement, as error 1396 lists them, with the reason when there is one.
fn failed(operation: &str, names: &[AccountName]) -> Error {
    let reason = match operation {
        "CREATE USER" | "CREATE ROLE" => " (User account already exists)",
        "RENAME USER" => "",
        _ => " (User account does not exist)",
    };
    let list: Vec<String> =
        names.iter().map(|name| format!("'{}'@'{}'", name.user, name.host)).collect();
    let list = format!("{}{reason}", list.join(","));
    Error::with(ErrorCode::CANNOT_USER, &[&operation, &list])
}

impl Session {
    fn accounts(&self) -> Arc<Accounts> {
        self.server.catalog.snapshot().accounts().clone()
    }

    /// The account that a statement names.
    fn account_name(&self, user: &UserName) -> Result<AccountName> {
        if user.current {
            return Ok(self.account.clone());
        }
        if user.user.chars().count() > USER_CHARS_MAX {
            bail!(WRONG_STRING_LENGTH, user.user, "user name", USER_CHARS_MAX);
        }
        let host = user.host.as_deref().unwrap_or("%");
        if host.chars().count() > HOST_CHARS_MAX {
            bail!(WRONG_STRING_LENGTH, host, "host name", HOST_CHARS_MAX);
        }
        Ok(AccountName::new(&user.user, host))
    }

    fn commit_accounts(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()> {
        let commit = if edits.is_empty() { None } else { Some(self.commit_definitions(edits)?) };
        self.refresh_privileges();
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
    }

    /// CREATE USER.
    pub(crate) fn create_users(
        &mut self,
        create: &CreateUser,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.require_global(PrivilegeSet::CREATE_USER)?;
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for spec in &create.users {
            let name = self.account_name(&spec.user)?;
            let twice = edits
                .iter()
                .any(|edit| matches!(edit, Edit::PutAccount(account) if account.name == name));
            if twice {
                refused.push(name);
                continue;
            }
            if accounts.get(&name).is_some() {
                if create.flags.if_not_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.working.note(ErrorCode::USER_ALREADY_EXISTS, &[&shown]);
                } else if !create.flags.or_replace {
                    refused.push(name);
                    continue;
                }
                if !create.flags.or_replace {
                    continue;
                }
            }
            let mut account = Account {
                name,
                plugin: DEFAULT_METHOD.into(),
                password_changed_micros: self.server.now_micros(),
                ..Account::default()
            };
            self.apply_auth(&mut account, spec)?;
            self.apply_account_options(&mut account, &create.options)?;
            for role in &create.default_roles {
                let role = self.account_name(role)?;
                account.roles.push(RoleGrant { role: role.clone(), admin: false });
                account.default_roles.push(role);
            }
            edits.push(Edit::PutAccount(account));
        }
        if !refused.is_empty() {
            return Err(failed("CREATE USER", &refused));
        }
        self.commit_accounts(&edits, sink)
    }

    /// IDENTIFIED ...
    fn apply_auth(&mut self, account: &mut Account, spec: &UserSpec) -> Result<()> {
        if spec.auth.len() > 1 || !spec.factors.is_empty() {
            return Err(Error::not_supported("several authentication factors"));
        }
        let Some(auth) = spec.auth.first() else { return Ok(()) };
        self.apply_auth_option(account, auth)
    }

    fn apply_auth_option(&mut self, account: &mut Account, auth: &AuthOption) -> Result<()> {
        if auth.random {
            return Err(Error::not_supported("RANDOM PASSWORD"));
        }
        if auth.retain_current {
            return Err(Error::not_supported("RETAIN CURRENT PASSWORD"));
        }
        if let Some(plugin) = &auth.plugin {
            let name = plugin.text.to_ascii_lowercase();
            let method = self
                .server
                .registry
                .authenticator(&name)
                .ok_or_else(|| err!(PLUGIN_IS_NOT_LOADED, name))?;
            account.plugin = method.name().into();
            account.authentication_string.clear();
        }
        if let Some(password) = &auth.password {
            account.authentication_string = self.server.hash_password(&account.plugin, password)?;
            account.password_changed_micros = self.server.now_micros();
            account.password_expired = false;
        }
        if let Some(hash) = &auth.hash {
            let valid = self
                .server
                .registry
                .authenticator(&account.plugin)
                .is_some_and(|method| hash.is_empty() || method.is_valid_stored(hash));
            if !valid {
                bail!(PASSWORD_FORMAT);
            }
            account.authentication_string = hash.to_vec();
            account.password_changed_micros = self.server.now_micros();
        }
        Ok(())
    }

    fn apply_account_options(
        &mut self,
        account: &mut Account,
        options: &AccountOptions,
    ) -> Result<()> {
        if let Some(require) = &options.require {
            account.tls = match require {
                Require::None => TlsRequirement::None,
                Require::Ssl => TlsRequirement::Ssl,
                Require::X509 => TlsRequirement::X509,
                Require::Specified { subject, issuer, cipher } => TlsRequirement::Specified {
                    subject: subject.clone().unwrap_or_default(),
                    issuer: issuer.clone().unwrap_or_default(),
                    cipher: cipher.clone().unwrap_or_default(),
                },
            };
        }
        for (word, limit) in &options.limits {
            if let Some(position) = LIMITS.iter().position(|known| word.is(known)) {
                account.limits[position] = *limit;
            }
        }
        for option in &options.password {
            match option {
                PasswordOption::Expire => account.password_expired = true,
                PasswordOption::ExpireDefault | PasswordOption::ExpireNever => {
                    account.password_expired = false;
                }
                // What is the default anyway.
                PasswordOption::History(None | Some(0))
                | PasswordOption::ReuseInterval(None | Some(0))
                | PasswordOption::RequireCurrent(None | Some(false))
                | PasswordOption::FailedLoginAttempts(0)
                | PasswordOption::LockTime(Some(0)) => {}
                PasswordOption::ExpireInterval(_) => {
                    return Err(Error::not_supported("PASSWORD EXPIRE INTERVAL"));
                }
                PasswordOption::History(_) => {
                    return Err(Error::not_supported("PASSWORD HISTORY"));
                }
                PasswordOption::ReuseInterval(_) => {
                    return Err(Error::not_supported("PASSWORD REUSE INTERVAL"));
                }
                PasswordOption::RequireCurrent(_) => {
                    return Err(Error::not_supported("PASSWORD REQUIRE CURRENT"));
                }
                PasswordOption::FailedLoginAttempts(_) => {
                    return Err(Error::not_supported("FAILED_LOGIN_ATTEMPTS"));
                }
                PasswordOption::LockTime(_) => {
                    return Err(Error::not_supported("PASSWORD_LOCK_TIME"));
                }
            }
        }
        if let Some(lock) = options.lock {
            account.locked = lock;
        }
        if let Some(attribute) = &options.attribute {
            account.attribute = attribute.clone();
        }
        if let Some(comment) = &options.comment {
            let mut text = Vec::new();
            text.extend_from_slice(b"{\"comment\": \"");
            for byte in comment.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    text.push(b'\\');
                }
                text.push(byte);
            }
            text.extend_from_slice(b"\"}");
            account.attribute = String::from_utf8_lossy(&text).into();
        }
        Ok(())
    }

    /// ALTER USER.
    pub(crate) fn alter_users(
        &mut self,
        alter: &AlterUser,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for spec in &alter.users {
            let name = self.account_name(&spec.user)?;
            let own_password = name == self.account
                && alter.default_role.is_none()
                && alter.options == AccountOptions::default();
            if !own_password {
                self.require_global(PrivilegeSet::CREATE_USER)?;
            }
            let Some(known) = accounts.get(&name) else {
                if alter.if_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.working.note(ErrorCode::USER_DOES_NOT_EXIST, &[&shown]);
                } else {
                    refused.push(name);
                }
                continue;
            };
            let mut account = Account::clone(known);
            self.apply_auth(&mut account, spec)?;
            self.apply_account_options(&mut account, &alter.options)?;
            if let Some(choice) = &alter.default_role {
                account.default_roles = self.chosen_roles(&account, choice)?;
            }
            edits.push(Edit::PutAccount(account));
        }
        if !refused.is_empty() {
            return Err(failed("ALTER USER", &refused));
        }
        self.commit_accounts(&edits, sink)
    }

    /// DROP USER.
    pub(crate) fn drop_users(
        &mut self,
        if_exists: bool,
        users: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.require_global(PrivilegeSet::CREATE_USER)?;
        self.drop_accounts("DROP USER", if_exists, users, sink)
    }

    /// DROP ROLE.
    pub(crate) fn drop_roles(
        &mut self,
        if_exists: bool,
        roles: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !self.privileges.global().contains(PrivilegeSet::DROP_ROLE) {
            self.require_global(PrivilegeSet::CREATE_USER)?;
        }
        self.drop_accounts("DROP ROLE", if_exists, roles, sink)
    }

    fn drop_accounts(
        &mut self,
        operation: &str,
        if_exists: bool,
        users: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        let mut gone = Vec::new();
        for user in users {
            let name = self.account_name(user)?;
            if accounts.get(&name).is_some() {
                edits.push(Edit::DropAccount(name.clone()));
                gone.push(name);
            } else if if_exists {
                let shown = format!("'{}'@'{}'", name.user, name.host);
                self.working.note(ErrorCode::USER_DOES_NOT_EXIST, &[&shown]);
            } else {
                refused.push(name);
            }
        }
        if !refused.is_empty() {
            return Err(failed(operation, &refused));
        }
        // Whoever had a dropped role has it no more.
        for account in accounts.iter() {
            let has = account.roles.iter().any(|grant| gone.contains(&grant.role));
            if has && !gone.contains(&account.name) {
                let mut account = Account::clone(account);
                account.roles.retain(|grant| !gone.contains(&grant.role));
                account.default_roles.retain(|role| !gone.contains(role));
                edits.push(Edit::PutAccount(account));
            }
        }
        self.commit_accounts(&edits, sink)
    }

    /// RENAME USER.
    pub(crate) fn rename_users(
        &mut self,
        pairs: &[(UserName, UserName)],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.require_global(PrivilegeSet::CREATE_USER)?;
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for (from, to) in pairs {
            let (from, to) = (self.account_name(from)?, self.account_name(to)?);
            match accounts.get(&from) {
                Some(account) if accounts.get(&to).is_none() => {
                    let mut account = Account::clone(account);
                    account.name = to;
                    edits.push(Edit::DropAccount(from));
                    edits.push(Edit::PutAccount(account));
                }
                _ => refused.push(from),
            }
        }
        if !refused.is_empty() {
            return Err(failed("RENAME USER", &refused));
        }
        self.commit_accounts(&edits, sink)
    }

    /// CREATE ROLE.
    pub(crate) fn create_roles(
        &mut self,
        flags: CreateFlags,
        roles: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if !self.privileges.global().contains(PrivilegeSet::CREATE_ROLE) {
            self.require_global(PrivilegeSet::CREATE_USER)?;
        }
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        for role in roles {
            let name = self.account_name(role)?;
            if accounts.get(&name).is_some() && !flags.or_replace {
                if flags.if_not_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.working.note(ErrorCode::USER_ALREADY_EXISTS, &[&shown]);
                } else {
                    refused.push(name);
                }
                continue;
            }
            edits.push(Edit::PutAccount(Account {
                name,
                plugin: DEFAULT_METHOD.into(),
                locked: true,
                password_expired: true,
                is_role: true,
                ..Account::default()
            }));
        }
        if !refused.is_empty() {
            return Err(failed("CREATE ROLE", &refused));
        }
        self.commit_accounts(&edits, sink)
    }

    /// GRANT.
    pub(crate) fn run_grant(&mut self, grant: &Grant, sink: &mut dyn ResultSink) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        match grant {
            Grant::Privileges { privileges, target, users, grant_option, options, .. } => {
                for spec in users {
                    let name = self.account_name(&spec.user)?;
                    let known =
                        accounts.get(&name).ok_or_else(|| err!(CANT_CREATE_USER_WITH_GRANT))?;
                    let mut account = Account::clone(known);
                    self.grant_to(&mut account, privileges, target, *grant_option)?;
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
                        account.roles.retain(|grant| grant.role != role);
                        account.roles.push(RoleGrant { role, admin: *admin_option });
                    }
                    edits.push(Edit::PutAccount(account));
                }
            }
            Grant::Proxy { .. } => return Err(Error::not_supported("GRANT PROXY")),
        }
        self.commit_accounts(&edits, sink)
    }

    /// The right to hand a role on.
    fn require_role_admin(&self, accounts: &Accounts, role: &AccountName) -> Result<()> {
        let own = accounts.get(&self.account).is_some_and(|account| {
            account.roles.iter().any(|grant| grant.role == *role && grant.admin)
        });
        if own || self.privileges.has_dynamic("ROLE_ADMIN") {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "WITH ADMIN, ROLE_ADMIN, SUPER"))
    }

    /// Adds privileges to an account.
    fn grant_to(
        &mut self,
        account: &mut Account,
        privileges: &Privileges,
        target: &GrantTarget,
        grant_option: bool,
    ) -> Result<()> {
        let option = if grant_option { PrivilegeSet::GRANT_OPTION } else { PrivilegeSet::NONE };
        match self.grant_level(target)? {
            Level::Global => {
                let (set, dynamic) = global_set(privileges)?;
                self.require_grantable(self.privileges.global(), set)?;
                account.global |= set;
                // Dynamic privileges have a GRANT OPTION each.
                if dynamic.is_empty() || !set.is_empty() {
                    account.global |= option;
                }
                for name in dynamic {
                    self.require_dynamic(&name)?;
                    *account.dynamic.entry(name).or_default() |= grant_option;
                }
            }
            Level::Schema(schema) => {
                let set = level_set(privileges, PrivilegeSet::ALL_SCHEMA)?;
                self.require_grantable(self.privileges.on_schema(&schema), set)?;
                *account.schemas.entry(schema).or_default() |= set | option;
            }
            Level::Table(schema, table) => {
                self.require_grantable(
                    self.privileges.on_table(&schema, &table),
                    table_set(privileges)?.0,
                )?;
                let (set, columns) = table_set(privileges)?;
                let known = self.view().relation(&schema, &table);
                if known.is_none() && !set.contains(PrivilegeSet::CREATE) {
                    bail!(NO_SUCH_TABLE, schema, table);
                }
                if let Some(Relation::Table(known)) = &known
                    && let Some((column, _)) =
                        columns.iter().find(|(column, _)| known.column(column).is_none())
                {
                    bail!(BAD_FIELD_ERROR, column, table);
                }
                let entry = account.tables.entry((schema, table)).or_default();
                entry.table |= set | option;
                for (column, set) in columns {
                    *entry.columns.entry(column).or_default() |= set;
                }
            }
        }
        Ok(())
    }

    /// Only who holds privileges with GRANT OPTION may hand them on.
    fn require_grantable(&self, held: PrivilegeSet, wanted: PrivilegeSet) -> Result<()> {
        if held.contains(wanted | PrivilegeSet::GRANT_OPTION) {
            return Ok(());
        }
        Err(err!(ACCESS_DENIED_ERROR, self.account.user, self.account.host, "YES"))
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
            GrantTarget::Function(_) | GrantTarget::Procedure(_) | GrantTarget::Library(_) => {
                return Err(Error::not_supported("privileges on routines"));
            }
        })
    }

    /// REVOKE.
    pub(crate) fn run_revoke(&mut self, revoke: &Revoke, sink: &mut dyn ResultSink) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        for user in &revoke.users {
            let name = self.account_name(user)?;
            let Some(known) = accounts.get(&name) else {
                if revoke.ignore_unknown_user {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.working.warn(ErrorCode::USER_DOES_NOT_EXIST, &[&shown]);
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
        self.commit_accounts(&edits, sink)
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
                account.global = PrivilegeSet::NONE;
                account.dynamic.clear();
                account.schemas.clear();
                account.tables.clear();
                Ok(())
            }
            RevokeKind::Roles { roles, .. } => {
                let accounts = self.accounts();
                for role in roles {
                    let role = self.account_name(role)?;
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
            RevokeKind::Proxy(_) => Err(Error::not_supported("REVOKE PROXY")),
            RevokeKind::Privileges { privileges, target } => {
                self.revoke_privileges(account, privileges, target, if_exists)
            }
        }
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
                let (set, dynamic) = global_set(privileges)?;
                self.require_grantable(self.privileges.global(), set)?;
                account.global = account.global.without(set);
                for name in dynamic {
                    account.dynamic.remove(&name);
                }
            }
            Level::Schema(schema) => {
                let set = level_set(privileges, PrivilegeSet::ALL_SCHEMA)?;
                self.require_grantable(self.privileges.on_schema(&schema), set)?;
                let Some(held) = account.schemas.get_mut(&schema) else {
                    return if if_exists { Ok(()) } else { Err(missing(account)) };
                };
                *held = held.without(set);
                if held.is_empty() {
                    account.schemas.remove(&schema);
                }
            }
            Level::Table(schema, table) => {
                let (set, columns) = table_set(privileges)?;
                self.require_grantable(self.privileges.on_table(&schema, &table), set)?;
                let key = (schema, table.clone());
                let Some(held) = account.tables.get_mut(&key) else {
                    if if_exists {
                        return Ok(());
                    }
                    bail!(NONEXISTING_TABLE_GRANT, account.name.user, account.name.host, table);
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
        }
        Ok(())
    }

    /// SET PASSWORD.
    pub(crate) fn set_password(
        &mut self,
        set: &SetPassword,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let name = match &set.user {
            Some(user) => self.account_name(user)?,
            None => self.account.clone(),
        };
        if name != self.account {
            self.require_global(PrivilegeSet::CREATE_USER)?;
        }
        let Some(password) = &set.password else {
            return Err(Error::not_supported("SET PASSWORD TO RANDOM"));
        };
        let accounts = self.accounts();
        let known = accounts.get(&name).ok_or_else(|| err!(PASSWORD_NO_MATCH))?;
        let mut account = Account::clone(known);
        account.authentication_string = self.server.hash_password(&account.plugin, password)?;
        account.password_changed_micros = self.server.now_micros();
        account.password_expired = false;
        self.commit_accounts(&[Edit::PutAccount(account)], sink)
    }

    /// Roles that a choice means for an account.
    fn chosen_roles(&self, account: &Account, choice: &RoleChoice) -> Result<Vec<AccountName>> {
        let granted = || account.roles.iter().map(|grant| grant.role.clone());
        Ok(match choice {
            RoleChoice::Default => account.default_roles.clone(),
            RoleChoice::None => Vec::new(),
            RoleChoice::All => granted().collect(),
            RoleChoice::AllExcept(except) => {
                let except: Vec<AccountName> =
                    except.iter().map(|role| self.account_name(role)).collect::<Result<_>>()?;
                granted().filter(|role| !except.contains(role)).collect()
            }
            RoleChoice::Roles(roles) => {
                let mut chosen = Vec::with_capacity(roles.len());
                for role in roles {
                    let role = self.account_name(role)?;
                    if !granted().any(|known| known == role) {
                        let whom = &account.name;
                        bail!(ROLE_NOT_GRANTED, role.user, role.host, whom.user, whom.host);
                    }
                    chosen.push(role);
                }
                chosen
            }
        })
    }

    /// SET ROLE.
    pub(crate) fn set_role(
        &mut self,
        choice: &RoleChoice,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let account = accounts.get(&self.account).cloned().unwrap_or_default();
        self.active_roles = self.chosen_roles(&account, choice)?;
        self.refresh_privileges();
        self.describe_roles();
        self.send_ok(sink, OkInfo::default())
    }

    /// SET DEFAULT ROLE.
    pub(crate) fn set_default_role(
        &mut self,
        choice: &RoleChoice,
        users: &[UserName],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        for user in users {
            let name = self.account_name(user)?;
            if name != self.account {
                self.require_global(PrivilegeSet::CREATE_USER)?;
            }
            let known = accounts.get(&name).ok_or_else(|| unknown(&name))?;
            let mut account = Account::clone(known);
            account.default_roles = self.chosen_roles(&account, choice)?;
            edits.push(Edit::PutAccount(account));
        }
        self.commit_accounts(&edits, sink)
    }
}

/// On what privileges are granted.
enum Level {
    Global,
    Schema(Box<str>),
    Table(Box<str>, Box<str>),
}

fn unknown(name: &AccountName) -> Error {
    Error::with(ErrorCode::UNKNOWN_AUTHID, &[&name.user, &name.host])
}

/// Static and dynamic privileges of a global grant.
fn global_set(privileges: &Privileges) -> Result<(PrivilegeSet, Vec<Box<str>>)> {
    let Privileges::List(list) = privileges else {
        let all = Account::default().with_all_privileges();
        return Ok((PrivilegeSet::ALL_GLOBAL, all.dynamic.into_keys().collect()));
    };
    let mut set = PrivilegeSet::NONE;
    let mut dynamic = Vec::new();
    for privilege in list {
        if !privilege.columns.is_empty() {
            bail!(WRONG_USAGE, "COLUMN GRANT", "GLOBAL PRIVILEGES");
        }
        let upper = privilege.name.to_ascii_uppercase();
        match PrivilegeSet::named(&upper) {
            Some(found) => set |= found,
            None if is_dynamic_privilege(&upper) => dynamic.push(upper.into()),
            None => {
                return Err(Error::with(ErrorCode::SYNTAX_ERROR, &[]));
            }
        }
    }
    Ok((set, dynamic))
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
