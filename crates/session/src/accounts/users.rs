//! Users: CREATE, ALTER, DROP, RENAME USER, SET PASSWORD.

use catalog::{Account, Edit, PrivilegeSet, RoleGrant, TlsRequirement};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::ResultSink;
use syntax::ast::{
    AccountOptions, AlterUser, AuthOption, CreateUser, PasswordOption, Require, SetPassword,
    UserName, UserSpec,
};

use super::failed;
use super::texts::LIMITS;
use crate::server::DEFAULT_METHOD;
use crate::session::Session;

impl Session {
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

    pub(super) fn apply_account_options(
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

    pub(super) fn drop_accounts(
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
}
