//! Users: CREATE, ALTER, DROP, RENAME USER, SET PASSWORD.

use catalog::{Account, AccountName, Edit, PrivilegeSet, RoleGrant, TlsRequirement};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{ColumnMeta, ResultSink};
use syntax::ast::{
    AccountOptions, AlterUser, AuthOption, CreateUser, PasswordOption, Require, SetPassword,
    UserName, UserSpec,
};
use types::{CollationId, DataType, Value};

use super::failed;
use super::texts::LIMITS;
use crate::server::DEFAULT_METHOD;
use crate::session::Session;
use crate::sink::{DiscardSink, send_rows};
use crate::variables::as_u64;

impl Session {
    /// CREATE USER.
    pub(crate) fn create_users(
        &mut self,
        create: &CreateUser,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.require_global(PrivilegeSet::CREATE_USER)?;
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
            if let Some(password) = self.apply_auth(&mut account, spec)? {
                made.push((account.name.clone(), password));
            }
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
        self.commit_with_passwords(&edits, made, sink)
    }

    /// IDENTIFIED ...: a password that was made is returned.
    fn apply_auth(&mut self, account: &mut Account, spec: &UserSpec) -> Result<Option<String>> {
        if spec.auth.len() > 1 || !spec.factors.is_empty() {
            return Err(Error::not_supported("several authentication factors"));
        }
        let Some(auth) = spec.auth.first() else { return Ok(None) };
        self.apply_auth_option(account, auth)
    }

    fn apply_auth_option(
        &mut self,
        account: &mut Account,
        auth: &AuthOption,
    ) -> Result<Option<String>> {
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
        let made = if auth.random { Some(self.random_password()?) } else { None };
        if let Some(password) = made.as_deref().or(auth.password.as_deref()) {
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
        Ok(made)
    }

    /// A password of `generated_random_password_length` printable characters.
    fn random_password(&self) -> Result<String> {
        let length = as_u64(&self.value("generated_random_password_length")) as usize;
        let mut password = String::with_capacity(length);
        while password.len() < length {
            let mut noise = [0_u8; 64];
            sys::entropy::fill(&mut noise).map_err(|error| Error::internal(error.to_string()))?;
            // Seven bits each; what is no printable character is drawn again, so that all are as likely.
            let letters = noise.iter().map(|byte| char::from(byte & 0x7f));
            let room = length - password.len();
            password.extend(letters.filter(char::is_ascii_graphic).take(room));
        }
        Ok(password)
    }

    /// Commits `edits` and answers with the passwords that were made, if any.
    fn commit_with_passwords(
        &mut self,
        edits: &[Edit],
        made: Vec<(AccountName, String)>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if made.is_empty() {
            return self.commit_accounts(edits, sink);
        }
        self.commit_accounts(edits, &mut DiscardSink::default())?;
        let text = |name: &str, chars| {
            let ty = DataType::varchar(chars, CollationId::UTF8MB4_0900_AI_CI);
            ColumnMeta::computed(name, ty.with_nullable(false))
        };
        let factor = DataType { length: 13, ..DataType::bigint_unsigned().with_nullable(false) };
        let columns = [
            text("user", 4),
            text("host", 4),
            text("generated password", 18),
            ColumnMeta::computed("auth_factor", factor),
        ];
        let row = |(name, password): &(AccountName, String)| {
            let [user, host, password] =
                [&*name.user, &*name.host, password.as_str()].map(Value::text);
            vec![user, host, password, Value::UInt(1)]
        };
        let rows: Vec<_> = made.iter().map(row).collect();
        let state = self.state_info();
        send_rows(sink, &columns, &rows, &state)
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
        let (mut edits, mut made) = (Vec::new(), Vec::new());
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
            if let Some(password) = self.apply_auth(&mut account, spec)? {
                made.push((account.name.clone(), password));
            }
            self.apply_account_options(&mut account, &alter.options)?;
            if let Some(choice) = &alter.default_role {
                account.default_roles = self.chosen_roles(&account, choice)?;
            }
            edits.push(Edit::PutAccount(account));
        }
        if !refused.is_empty() {
            return Err(failed("ALTER USER", &refused));
        }
        self.commit_with_passwords(&edits, made, sink)
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
        let made = match set.password {
            Some(_) => None,
            None => Some(self.random_password()?),
        };
        let password = made.as_deref().or(set.password.as_deref());
        let accounts = self.accounts();
        let known = accounts.get(&name).ok_or_else(|| err!(PASSWORD_NO_MATCH))?;
        let mut account = Account::clone(known);
        let password = password.unwrap_or_default();
        account.authentication_string = self.server.hash_password(&account.plugin, password)?;
        account.password_changed_micros = self.server.now_micros();
        account.password_expired = false;
        let made = made.map(|password| (name, password)).into_iter().collect();
        self.commit_with_passwords(&[Edit::PutAccount(account)], made, sink)
    }
}
