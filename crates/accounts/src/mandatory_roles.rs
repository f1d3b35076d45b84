//! `mandatory_roles`: roles that every account has. They are neither dropped nor revoked.

use catalog::{AccountName, AccountRules, Accounts, EffectivePrivileges};
use errors::{Error, ErrorCode, Result, bail};

use crate::restrictions::check_partial_revokes;
use crate::statement::AccountStatement;

const PARTIAL_REVOKES: &str = "partial_revokes";
const MANDATORY_ROLES: &str = "mandatory_roles";
/// The variables about all accounts.
pub const RULES: [&str; 2] = [PARTIAL_REVOKES, MANDATORY_ROLES];

/// Who has it is safe from those who have it not: no role that everybody has may give it.
const SYSTEM_USER: &str = "SYSTEM_USER";

/// The names in a list such as ``a, `b`@`%` ``; `None` for a text that is no such list.
fn role_list(text: &str) -> Option<Vec<AccountName>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut rest = text;
    let mut roles: Vec<AccountName> = Vec::new();
    loop {
        let (role, after) = one_role(rest.trim_start())?;
        if !roles.contains(&role) {
            roles.push(role);
        }
        rest = after.trim_start();
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some(roles),
        }
    }
}

/// A name at the start of a text, and what follows it. Nothing after the last name is read, as in the reference.
fn one_role(text: &str) -> Option<(AccountName, &str)> {
    let (user, rest) = word(text);
    if user.is_empty() {
        return None;
    }
    Some(match rest.strip_prefix('@') {
        None => (AccountName::new(user, "%"), rest),
        Some(host) => match word(host) {
            ("", rest) => (AccountName::new(user, "%"), rest),
            (host, rest) => (AccountName::new(user, host), rest),
        },
    })
}

/// A word, quoted or not, and what follows it.
fn word(text: &str) -> (&str, &str) {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"' | '`'));
    if let Some(quote) = quote
        && let Some((inner, rest)) = text[1..].split_once(quote)
    {
        return (inner, rest);
    }
    let end = text.find(|c: char| c == '@' || c == ',' || c.is_whitespace());
    text.split_at(end.unwrap_or(text.len()))
}

/// The value of `mandatory_roles`.
///
/// # Errors
/// 1227 without ROLE_ADMIN, 1231 for a text that is no list of roles, 3880 for an account with SYSTEM_USER.
fn check_mandatory_roles(
    accounts: &Accounts,
    privileges: &EffectivePrivileges,
    text: &str,
) -> Result<()> {
    if !privileges.has_dynamic("ROLE_ADMIN") {
        let needed = "SYSTEM_VARIABLES_ADMIN or SUPER privileges, as well as the ROLE_ADMIN";
        bail!(SPECIFIC_ACCESS_DENIED_ERROR, needed);
    }
    let Some(roles) = role_list(text) else {
        bail!(WRONG_VALUE_FOR_VAR, "mandatory_roles", text);
    };
    for role in roles {
        let gives = accounts.effective(
            &role,
            &accounts.get(&role).map_or_else(Vec::new, |known| {
                known.roles.iter().map(|grant| grant.role.clone()).collect()
            }),
        );
        if gives.has_exactly(SYSTEM_USER) {
            let code = ErrorCode::DA_AUTH_ID_WITH_SYSTEM_USER_PRIV_IN_MANDATORY_ROLES;
            return Err(Error::with(code, &[&role.user, &role.host, &SYSTEM_USER]));
        }
    }
    Ok(())
}

/// The value of a variable about all accounts, which an account with these privileges sets; other variables pass.
///
/// # Errors
/// As the variable has them.
pub fn check_rule(
    accounts: &Accounts,
    privileges: &EffectivePrivileges,
    name: &str,
    value: &str,
) -> Result<()> {
    match name {
        PARTIAL_REVOKES => check_partial_revokes(accounts, is_on(value)),
        MANDATORY_ROLES => check_mandatory_roles(accounts, privileges, value),
        _ => Ok(()),
    }
}

/// Whether a variable of kind Bool is on.
fn is_on(value: &str) -> bool {
    value == "1" || value == "ON"
}

/// The rules of all accounts, from the values of the variables. At the start a list that cannot be read names no role.
pub fn account_rules(value: impl Fn(&str) -> String) -> AccountRules {
    AccountRules {
        literal_schemas: is_on(&value(PARTIAL_REVOKES)),
        mandatory_roles: role_list(&value(MANDATORY_ROLES)).unwrap_or_default(),
    }
}

impl AccountStatement<'_> {
    /// 3628 for a mandatory role.
    pub(crate) fn check_not_mandatory(&self, role: &AccountName) -> Result<()> {
        if self.accounts().rules().mandatory_roles.contains(role) {
            let shown = format!("`{}`@`{}`", role.user, role.host);
            return Err(Error::with(ErrorCode::MANDATORY_ROLE, &[&shown]));
        }
        Ok(())
    }

    /// 3897 for SYSTEM_USER to a mandatory role.
    pub(crate) fn check_grantable_to(&self, account: &AccountName, privilege: &str) -> Result<()> {
        if privilege == SYSTEM_USER && self.accounts().rules().mandatory_roles.contains(account) {
            let code = ErrorCode::CANNOT_GRANT_SYSTEM_PRIV_TO_MANDATORY_ROLE;
            return Err(Error::with(code, &[&account.user, &account.host, &SYSTEM_USER]));
        }
        Ok(())
    }

    /// 4027 when `role` includes `account`.
    pub(crate) fn check_no_loop(&self, role: &AccountName, account: &AccountName) -> Result<()> {
        let accounts = self.accounts();
        let mut pending = vec![role.clone()];
        let mut seen: Vec<AccountName> = Vec::new();
        while let Some(next) = pending.pop() {
            if next == *account {
                let [role, account] =
                    [role, account].map(|name| format!("`{}`@`{}`", name.user, name.host));
                return Err(Error::with(ErrorCode::ROLE_GRANTED_TO_ITSELF, &[&account, &role]));
            }
            if seen.contains(&next) {
                continue;
            }
            let known = accounts.get(&next);
            pending.extend(
                known.into_iter().flat_map(|known| &known.roles).map(|one| one.role.clone()),
            );
            seen.push(next);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_reference_reads_them() {
        let names = |text: &str| {
            let roles = role_list(text)?;
            Some(roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names("").as_deref(), Some(""));
        assert_eq!(names("a, `b`@`%`,c@localhost,a").as_deref(), Some("a@% b@% c@localhost"));
        assert_eq!(names("'a'@'%', b@").as_deref(), Some("a@% b@%"));
        assert_eq!(names("a b").as_deref(), Some("a@%"));
        for bad in ["a,,b", ",a", "@", " ", "a,"] {
            assert_eq!(names(bad), None, "{bad}");
        }
    }
}
