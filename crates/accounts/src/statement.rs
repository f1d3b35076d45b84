//! A statement about accounts: its inputs, and the changes that it makes.

use std::sync::Arc;

use catalog::{AccountName, Accounts, CatalogView, Edit, EffectivePrivileges};
use errors::{Diagnostics, Error, ErrorCode, Result, bail, err};
use plugin_api::Registry;
use syntax::ast::{ObjectName, Statement, UserName};

use crate::PrivilegeChecks;
use crate::passwords::PasswordRules;

/// Characters of a name that an error shows.
const SHOWN_CHARS_MAX: usize = 70;
/// Maximum length of a user name in characters.
const USER_CHARS_MAX: usize = 32;
/// Maximum length of a host name in characters.
const HOST_CHARS_MAX: usize = 255;

/// The facts about the running session that a statement about accounts needs.
pub struct AccountStatement<'a> {
    /// The session's account.
    pub own: &'a AccountName,
    /// The host of the client.
    pub client_host: Option<&'a str>,
    /// The privileges of the account and its active roles.
    pub privileges: &'a EffectivePrivileges,
    /// The catalog as the statement sees it.
    pub view: &'a CatalogView,
    /// The current schema.
    pub schema: Option<&'a Arc<str>>,
    /// Authentication methods and information tables.
    pub registry: &'a Registry,
    /// Variables about passwords.
    pub rules: PasswordRules,
    /// When the statement runs, microseconds since 1970 UTC.
    pub now_micros: i64,
    /// The session may do nothing before it has set a new password.
    pub must_change_password: bool,
    /// Receives notes and warnings.
    pub diagnostics: &'a mut Diagnostics,
}

/// The changes of a statement about accounts.
#[derive(Debug, Default)]
pub struct AccountChange {
    /// Changes of the catalog.
    pub edits: Vec<Edit>,
    /// Generated passwords, which are sent to the client.
    pub passwords: Vec<(AccountName, String)>,
    /// The session's own account has a new password.
    pub own_password: bool,
    /// Accounts whose count of failed log-ins restarts.
    pub forgotten: Vec<AccountName>,
    /// Renamed accounts: the old name and the new one.
    pub renamed: Vec<(AccountName, AccountName)>,
}

impl From<Vec<Edit>> for AccountChange {
    fn from(edits: Vec<Edit>) -> AccountChange {
        AccountChange { edits, ..AccountChange::default() }
    }
}

impl PrivilegeChecks for AccountStatement<'_> {
    fn account(&self) -> &AccountName {
        self.own
    }

    fn privileges(&self) -> &EffectivePrivileges {
        self.privileges
    }

    fn client_host(&self) -> Option<&str> {
        self.client_host
    }
}

impl AccountStatement<'_> {
    /// Computes the changes of a statement.
    ///
    /// # Errors
    /// Missing privileges, accounts that exist or do not exist, passwords that are refused; 1235 for statements about something else.
    pub fn run(&mut self, statement: &Statement) -> Result<AccountChange> {
        match statement {
            Statement::CreateUser(create) => self.create_users(create),
            Statement::AlterUser(alter) => self.alter_users(alter),
            Statement::DropUser { if_exists, users } => self.drop_users(*if_exists, users),
            Statement::RenameUser(pairs) => self.rename_users(pairs),
            Statement::CreateRole { flags, roles } => self.create_roles(*flags, roles),
            Statement::DropRole { if_exists, roles } => self.drop_roles(*if_exists, roles),
            Statement::Grant(grant) => self.grant(grant),
            Statement::Revoke(revoke) => self.revoke(revoke),
            Statement::SetPassword(set) => self.set_password(set),
            Statement::SetDefaultRole { roles, users } => self.set_default_role(roles, users),
            _ => Err(Error::not_supported("this statement")),
        }
    }

    /// Accounts as the statement sees them.
    pub(crate) fn accounts(&self) -> Arc<Accounts> {
        self.view.snapshot.accounts().clone()
    }

    /// The account that a statement names.
    pub(crate) fn account_name(&self, user: &UserName) -> Result<AccountName> {
        if user.current {
            return Ok(self.own.clone());
        }
        check_lengths(user)?;
        let host = user.host.as_deref().unwrap_or("%");
        Ok(AccountName::new(&user.user, host))
    }

    /// The current schema.
    pub(crate) fn current_schema(&self) -> Result<Arc<str>> {
        self.schema.cloned().ok_or_else(|| err!(NO_DB_ERROR))
    }

    /// Schema and name of an object, the current schema when none is written.
    pub(crate) fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
        let schema = match &name.schema {
            Some(schema) => Arc::from(&*schema.text),
            None => self.current_schema()?,
        };
        Ok((schema, Arc::from(&*name.name.text)))
    }
}

/// `user@host` as information tables write it, with or without quotes.
pub fn parse_account(text: &str) -> AccountName {
    let clean =
        |part: &str| part.trim_matches(|quote| matches!(quote, '\'' | '`' | '"')).to_owned();
    match text.rsplit_once('@') {
        Some((user, host)) => AccountName::new(&clean(user), &clean(host)),
        None => AccountName::new(&clean(text), "%"),
    }
}

/// Accounts that failed in a statement, as error 1396 lists them, with the reason if known.
pub(crate) fn failed(operation: &str, names: &[AccountName]) -> Error {
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

/// 3523.
pub(crate) fn unknown(name: &AccountName) -> Error {
    Error::with(ErrorCode::UNKNOWN_AUTHID, &[&name.user, &name.host])
}

/// Whether the parts of an account's name may be so long.
///
/// # Errors
/// 1470.
pub fn check_lengths(user: &UserName) -> Result<()> {
    let parts = [
        (Some(&*user.user), "user name", USER_CHARS_MAX),
        (user.host.as_deref(), "host name", HOST_CHARS_MAX),
    ];
    for (part, what, max) in parts {
        if let Some(part) = part.filter(|part| part.chars().count() > max) {
            let shown: String = part.chars().take(SHOWN_CHARS_MAX).collect();
            bail!(WRONG_STRING_LENGTH, shown, what, max);
        }
    }
    Ok(())
}
