//! Accounts: the statements that change users, roles and grants, their texts, and their hourly limits.

pub(crate) mod failed_logins;
mod grants;
mod passwords;
mod roles;
pub(crate) mod texts;
pub(crate) mod usage;
mod users;

use std::sync::Arc;

use catalog::{AccountName, Accounts, Edit};
use errors::{Error, ErrorCode, Result, bail};
use plugin_api::{OkInfo, ResultSink};
use syntax::ast::UserName;

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
}

fn unknown(name: &AccountName) -> Error {
    Error::with(ErrorCode::UNKNOWN_AUTHID, &[&name.user, &name.host])
}
