//! Passwords of accounts: how they are set, and the rules that the options of an account make for them.

use catalog::{Account, AccountName, EarlierPassword, Edit, LockTime, PrivilegeSet};
use errors::{Error, Result, bail, err};
use plugin_api::{NewPassword, Registry};
use syntax::ast::{AccountOptions, AuthOption, PasswordOption, SetPassword, UserSpec};

use crate::logins::hash_password;
use crate::statement::{AccountChange, AccountStatement};

const DAY_MICROS: i64 = 86_400 * 1_000_000;
/// Maximum of FAILED_LOGIN_ATTEMPTS, and of the days of PASSWORD_LOCK_TIME.
const FAILED_LOGINS_MAX: u64 = 32_767;
/// Maximum number of days of PASSWORD EXPIRE INTERVAL.
const LIFETIME_DAYS_MAX: u64 = 65_535;

/// Applies one PASSWORD option except EXPIRE, which depends on when the password is set.
///
/// # Errors
/// 1525.
pub(crate) fn apply_password_option(account: &mut Account, option: &PasswordOption) -> Result<()> {
    let policy = &mut account.password_policy;
    let within = |name: &str, number: u64, range: std::ops::RangeInclusive<u64>| {
        if range.contains(&number) {
            Ok(number as u16)
        } else {
            Err(err!(WRONG_VALUE, name, number))
        }
    };
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    match *option {
        PasswordOption::Expire => {}
        PasswordOption::ExpireDefault => policy.lifetime_days = None,
        PasswordOption::ExpireNever => policy.lifetime_days = Some(0),
        PasswordOption::ExpireInterval(days) => {
            policy.lifetime_days = Some(within("DAY", days, 1..=LIFETIME_DAYS_MAX)?);
        }
        PasswordOption::History(count) => policy.history = count.map(narrow),
        PasswordOption::ReuseInterval(days) => policy.reuse_days = days.map(narrow),
        PasswordOption::RequireCurrent(required) => policy.require_current = required,
        PasswordOption::FailedLoginAttempts(count) => {
            policy.failed_logins_max =
                within("FAILED_LOGIN_ATTEMPTS", count, 0..=FAILED_LOGINS_MAX)?;
        }
        PasswordOption::LockTime(None) => policy.lock_time = LockTime::Unbounded,
        PasswordOption::LockTime(Some(days)) => {
            let days = within("PASSWORD_LOCK_TIME", days, 0..=FAILED_LOGINS_MAX)?;
            policy.lock_time = LockTime::Days(days);
        }
    }
    Ok(())
}

/// Whether the options expire the password at once.
pub(crate) fn expires(options: &AccountOptions) -> bool {
    options.password.contains(&PasswordOption::Expire)
}

/// Whether the options reset the count of failed log-ins.
pub(crate) fn unlocks(options: &AccountOptions) -> bool {
    let counts = |option: &PasswordOption| {
        matches!(option, PasswordOption::FailedLoginAttempts(_) | PasswordOption::LockTime(_))
    };
    options.lock == Some(false) || options.password.iter().any(counts)
}

/// Variables about passwords.
#[derive(Clone, Copy, Debug)]
pub struct PasswordRules {
    /// `password_history`.
    pub history: u32,
    /// `password_reuse_interval`.
    pub reuse_days: u32,
    /// `password_require_current` is on.
    pub require_current: bool,
    /// `generated_random_password_length`.
    pub random_chars: usize,
}

/// Whether the account must set a new password before it may do anything else. `default_days`: `default_password_lifetime`.
pub fn has_expired_password(account: &Account, default_days: u64, now_micros: i64) -> bool {
    let days = account.password_policy.lifetime_days.map_or(default_days, u64::from);
    let days = i64::try_from(days).unwrap_or(i64::MAX);
    let age = now_micros.saturating_sub(account.password_changed_micros);
    account.password_expired || (days > 0 && age >= days.saturating_mul(DAY_MICROS))
}

fn is_password(registry: &Registry, account: &Account, stored: &[u8], password: &str) -> bool {
    let method = registry.authenticator(&account.plugin);
    method.is_some_and(|method| method.is_password(stored, password.as_bytes()))
}

impl AccountStatement<'_> {
    /// IDENTIFIED ..., DISCARD OLD PASSWORD: returns a generated password.
    pub(crate) fn apply_auth(
        &mut self,
        account: &mut Account,
        spec: &UserSpec,
    ) -> Result<Option<String>> {
        if spec.auth.len() > 1 || !spec.factors.is_empty() {
            return Err(Error::not_supported("several authentication factors"));
        }
        if spec.discard_old_password {
            self.require_second_password(account)?;
            account.second_secret.clear();
        }
        let Some(auth) = spec.auth.first() else { return Ok(None) };
        self.apply_auth_option(account, auth)
    }

    fn apply_auth_option(
        &mut self,
        account: &mut Account,
        auth: &AuthOption,
    ) -> Result<Option<String>> {
        let present = account.clone();
        let mut method_changes = false;
        if let Some(plugin) = &auth.plugin {
            let name = plugin.text.to_ascii_lowercase();
            let method = self
                .registry
                .authenticator(&name)
                .ok_or_else(|| err!(PLUGIN_IS_NOT_LOADED, name))?;
            method_changes = *account.plugin != *method.name();
            account.plugin = method.name().into();
            account.authentication_string.clear();
        }
        if auth.retain_current {
            self.require_second_password(account)?;
            let AccountName { user, host } = &account.name;
            if method_changes {
                bail!(PASSWORD_CANNOT_BE_RETAINED_ON_PLUGIN_CHANGE, user, host);
            }
            if present.authentication_string.is_empty() {
                bail!(SECOND_PASSWORD_CANNOT_BE_EMPTY, user, host);
            }
        }
        if method_changes {
            account.earlier_passwords.clear();
            account.second_secret.clear();
        }
        let made = if auth.random { Some(self.random_password()?) } else { None };
        if let Some(password) = made.as_deref().or(auth.password.as_deref()) {
            if made.is_none() {
                let is_own = account.name == *self.own;
                self.check_strength(password, auth.replace.as_deref().filter(|_| is_own))?;
            }
            let secret = hash_password(self.registry, &account.plugin, password)?;
            self.put_password(account, secret, Some(password))?;
        }
        if let Some(hash) = &auth.hash {
            let valid = self
                .registry
                .authenticator(&account.plugin)
                .is_some_and(|method| hash.is_empty() || method.is_valid_stored(hash));
            if !valid {
                bail!(PASSWORD_FORMAT);
            }
            self.put_password(account, hash.to_vec(), None)?;
        }
        // As the reference does, only now: errors of the password history come first.
        self.check_current_password(&present, auth.replace.as_deref())?;
        self.update_second_password(account, present.authentication_string, auth.retain_current)?;
        Ok(made)
    }

    /// Asks the plugins whether a password is strong enough. `current` is the one that it replaces, as the statement gives it.
    ///
    /// # Errors
    /// Theirs, such as 1819.
    fn check_strength(&self, password: &str, current: Option<&str>) -> Result<()> {
        let new = NewPassword { password, current, user: &self.own.user };
        self.registry.password_checks().iter().try_for_each(|check| check.check(&new))
    }

    /// The same of an account that was made without a password, if its method lets everyone in then.
    pub(crate) fn check_without_password(&self, account: &Account) -> Result<()> {
        if !account.authentication_string.is_empty() {
            return Ok(());
        }
        match is_password(self.registry, account, b"", "") {
            true => self.check_strength("", None),
            false => Ok(()),
        }
    }

    /// Gives an account a new password: `password` unless only its stored form is known.
    ///
    /// # Errors
    /// 3638.
    fn put_password(
        &self,
        account: &mut Account,
        secret: Vec<u8>,
        password: Option<&str>,
    ) -> Result<()> {
        let now = self.now_micros;
        if !secret.is_empty() {
            self.remember_password(account, &secret, password, now)?;
        }
        account.authentication_string = secret;
        account.password_changed_micros = now;
        account.password_expired = false;
        Ok(())
    }

    /// Compares a new password with earlier ones as far as HISTORY and REUSE INTERVAL reach, and keeps it for the next time.
    fn remember_password(
        &self,
        account: &mut Account,
        secret: &[u8],
        password: Option<&str>,
        now: i64,
    ) -> Result<()> {
        let policy = &account.password_policy;
        let history = policy.history.unwrap_or(self.rules.history) as usize;
        let days = policy.reuse_days.unwrap_or(self.rules.reuse_days);
        let forget = |earlier: &mut Vec<EarlierPassword>| {
            let mut position = 0;
            earlier.retain(|password| {
                position += 1;
                let age = now.saturating_sub(password.since_micros);
                position <= history || age < i64::from(days).saturating_mul(DAY_MICROS)
            });
        };
        let mut earlier = std::mem::take(&mut account.earlier_passwords);
        forget(&mut earlier);
        if let Some(password) = password {
            let mut known = earlier.iter();
            if known.any(|known| is_password(self.registry, account, &known.secret, password)) {
                bail!(CREDENTIALS_CONTRADICT_TO_HISTORY, account.name.user, account.name.host);
            }
        }
        if history > 0 || days > 0 {
            earlier.insert(0, EarlierPassword { since_micros: now, secret: secret.to_vec() });
            forget(&mut earlier);
        }
        account.earlier_passwords = earlier;
        Ok(())
    }

    /// Keeps the previous password of an account as its second one, or clears the second one.
    fn update_second_password(
        &self,
        account: &mut Account,
        before: Vec<u8>,
        retain: bool,
    ) -> Result<()> {
        let is_empty = account.authentication_string.is_empty();
        if retain && is_empty {
            bail!(CURRENT_PASSWORD_CANNOT_BE_RETAINED, account.name.user, account.name.host);
        }
        if retain {
            account.second_secret = before;
        } else if is_empty {
            account.second_secret.clear();
        }
        Ok(())
    }

    /// RETAIN CURRENT and DISCARD OLD PASSWORD of the session's own account.
    fn require_second_password(&self, account: &Account) -> Result<()> {
        let allowed = self.privileges.global().contains(PrivilegeSet::CREATE_USER)
            || (account.name == *self.own
                && self.privileges.has_dynamic("APPLICATION_PASSWORD_ADMIN"));
        if allowed {
            return Ok(());
        }
        Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "CREATE USER or APPLICATION_PASSWORD_ADMIN"))
    }

    /// REPLACE, and PASSWORD REQUIRE CURRENT.
    ///
    /// # Errors
    /// 3891, 3892, 3893.
    fn check_current_password(&self, account: &Account, replace: Option<&str>) -> Result<()> {
        let is_own = account.name == *self.own;
        let current = &account.authentication_string;
        match replace {
            Some(_) if !is_own => bail!(CURRENT_PASSWORD_NOT_REQUIRED),
            Some(given) if is_password(self.registry, account, current, given) => Ok(()),
            Some(_) => bail!(INCORRECT_CURRENT_PASSWORD),
            None => {
                let required = account.password_policy.require_current;
                let required = required.unwrap_or(self.rules.require_current);
                if is_own && required && !self.administers_accounts() {
                    bail!(MISSING_CURRENT_PASSWORD);
                }
                Ok(())
            }
        }
    }

    fn administers_accounts(&self) -> bool {
        self.privileges.global().contains(PrivilegeSet::CREATE_USER)
            || self.privileges.on_schema("mysql").contains(PrivilegeSet::UPDATE)
    }

    /// A password of `generated_random_password_length` printable characters.
    fn random_password(&self) -> Result<String> {
        let length = self.rules.random_chars;
        let mut password = String::with_capacity(length);
        while password.len() < length {
            let mut noise = [0_u8; 64];
            sys::entropy::fill(&mut noise).map_err(|error| Error::internal(error.to_string()))?;
            // Seven bits each; characters that are not printable are drawn again, so that all are equally likely.
            let letters = noise.iter().map(|byte| char::from(byte & 0x7f));
            let room = length - password.len();
            password.extend(letters.filter(char::is_ascii_graphic).take(room));
        }
        Ok(password)
    }

    /// SET PASSWORD.
    pub(crate) fn set_password(&mut self, set: &SetPassword) -> Result<AccountChange> {
        let name = match &set.user {
            Some(user) => self.account_name(user)?,
            None => self.own.clone(),
        };
        let is_own = name == *self.own;
        if !is_own && self.must_change_password {
            bail!(MUST_CHANGE_PASSWORD);
        }
        if !is_own && !self.administers_accounts() {
            bail!(DBACCESS_DENIED_ERROR, self.own.user, self.own.host, "mysql");
        }
        let accounts = self.accounts();
        let known = accounts.get(&name).ok_or_else(|| err!(PASSWORD_NO_MATCH))?;
        let mut account = Account::clone(known);
        let auth = AuthOption {
            password: set.password.clone(),
            random: set.password.is_none(),
            replace: set.replace.clone(),
            retain_current: set.retain_current,
            ..AuthOption::default()
        };
        let made = self.apply_auth_option(&mut account, &auth)?;
        Ok(AccountChange {
            edits: vec![Edit::PutAccount(account)],
            passwords: made.map(|password| (name, password)).into_iter().collect(),
            own_password: is_own,
            ..AccountChange::default()
        })
    }
}
