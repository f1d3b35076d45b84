//! Users: CREATE, ALTER, DROP, RENAME USER.

use std::sync::Arc;

use catalog::{Account, Edit, PrivilegeSet, RoleGrant, TlsRequirement};
use errors::{ErrorCode, Result, bail};
use syntax::ast::{AccountOptions, AlterUser, CreateUser, Require, UserName};

use crate::PrivilegeChecks;
use crate::logins::DEFAULT_METHOD;
use crate::passwords::{apply_password_option, expires, unlocks};
use crate::statement::{AccountChange, AccountStatement, failed};
use crate::usage::LIMITS;

impl AccountStatement<'_> {
    /// CREATE USER.
    pub(crate) fn create_users(&mut self, create: &CreateUser) -> Result<AccountChange> {
        self.require_account_change(PrivilegeSet::INSERT)?;
        let accounts = self.accounts();
        let (mut edits, mut made) = (Vec::new(), Vec::new());
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
                    self.diagnostics.note(ErrorCode::USER_ALREADY_EXISTS, &[&shown]);
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
                password_changed_micros: self.now_micros,
                ..Account::default()
            };
            self.apply_account_options(&mut account, &create.options)?;
            if let Some(password) = self.apply_auth(&mut account, spec)? {
                made.push((account.name.clone(), password));
            }
            self.check_without_password(&account)?;
            account.password_expired = expires(&create.options);
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
        Ok(AccountChange { edits, passwords: made, ..AccountChange::default() })
    }

    pub(crate) fn apply_account_options(
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
            apply_password_option(account, option)?;
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
    pub(crate) fn alter_users(&mut self, alter: &AlterUser) -> Result<AccountChange> {
        let accounts = self.accounts();
        let (mut edits, mut made) = (Vec::new(), Vec::new());
        let (mut refused, mut altered) = (Vec::new(), Vec::new());
        let mut own_password_given = false;
        for spec in &alter.users {
            let name = self.account_name(&spec.user)?;
            let own_password = name == *self.own
                && alter.default_role.is_none()
                && alter.options == AccountOptions::default()
                && spec.auth.iter().all(|auth| auth.plugin.is_none() && auth.hash.is_none());
            if !own_password {
                self.require_account_change(PrivilegeSet::UPDATE)?;
            }
            let Some(known) = accounts.get(&name) else {
                if alter.if_exists {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    self.diagnostics.note(ErrorCode::USER_DOES_NOT_EXIST, &[&shown]);
                } else {
                    refused.push(name);
                }
                continue;
            };
            let mut account = Account::clone(known);
            self.apply_account_options(&mut account, &alter.options)?;
            if let Some(password) = self.apply_auth(&mut account, spec)? {
                made.push((account.name.clone(), password));
            }
            account.password_expired |= expires(&alter.options);
            own_password_given |= account.name == *self.own && !spec.auth.is_empty();
            if let Some(choice) = &alter.default_role {
                account.default_roles = self.chosen_roles(&account, choice)?;
            }
            altered.push(account.name.clone());
            edits.push(Edit::PutAccount(account));
        }
        if !refused.is_empty() {
            return Err(failed("ALTER USER", &refused));
        }
        let own_password = own_password_given;
        let forgotten = if unlocks(&alter.options) { altered } else { Vec::new() };
        Ok(AccountChange { edits, passwords: made, own_password, forgotten, ..Default::default() })
    }

    /// DROP USER.
    pub(crate) fn drop_users(
        &mut self,
        if_exists: bool,
        users: &[UserName],
    ) -> Result<AccountChange> {
        self.require_account_change(PrivilegeSet::DELETE)?;
        self.drop_accounts("DROP USER", if_exists, users)
    }

    pub(crate) fn drop_accounts(
        &mut self,
        operation: &str,
        if_exists: bool,
        users: &[UserName],
    ) -> Result<AccountChange> {
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let mut refused = Vec::new();
        let mut gone = Vec::new();
        for user in users {
            let name = self.account_name(user)?;
            if accounts.get(&name).is_some() {
                self.check_not_mandatory(&name)?;
                edits.push(Edit::DropAccount(name.clone()));
                gone.push(name);
            } else if if_exists {
                let shown = format!("'{}'@'{}'", name.user, name.host);
                self.diagnostics.note(ErrorCode::USER_DOES_NOT_EXIST, &[&shown]);
            } else {
                refused.push(name);
            }
        }
        if !refused.is_empty() {
            return Err(failed(operation, &refused));
        }
        // A dropped role is revoked from all accounts.
        for account in accounts.iter() {
            let has = account.roles.iter().any(|grant| gone.contains(&grant.role));
            if has && !gone.contains(&account.name) {
                let mut account = Account::clone(account);
                account.roles.retain(|grant| !gone.contains(&grant.role));
                account.default_roles.retain(|role| !gone.contains(role));
                edits.push(Edit::PutAccount(account));
            }
        }
        Ok(AccountChange { edits, forgotten: gone, ..AccountChange::default() })
    }

    /// RENAME USER.
    pub(crate) fn rename_users(&mut self, pairs: &[(UserName, UserName)]) -> Result<AccountChange> {
        self.require_account_change(PrivilegeSet::UPDATE)?;
        let accounts = self.accounts();
        let mut edits = Vec::new();
        let (mut refused, mut renamed) = (Vec::new(), Vec::new());
        for (from, to) in pairs {
            let (from, to) = (self.account_name(from)?, self.account_name(to)?);
            let has = |account: &Arc<Account>| account.roles.iter().any(|one| one.role == from);
            if accounts.rules().mandatory_roles.contains(&from) || accounts.iter().any(has) {
                bail!(RENAME_ROLE);
            }
            match accounts.get(&from) {
                Some(account) if accounts.get(&to).is_none() => {
                    let mut account = Account::clone(account);
                    account.name = to.clone();
                    edits.push(Edit::DropAccount(from.clone()));
                    renamed.push((from, to));
                    edits.push(Edit::PutAccount(account));
                }
                _ => refused.push(from),
            }
        }
        if !refused.is_empty() {
            return Err(failed("RENAME USER", &refused));
        }
        Ok(AccountChange { edits, renamed, ..AccountChange::default() })
    }
}
