//! SHOW GRANTS and SHOW CREATE USER: accounts as statements.

use std::sync::Arc;

use ::accounts::LIMITS;
use catalog::{
    Account, AccountName, Accounts, Edit, LockTime, PrivilegeSet, RoleGrant, RoutineGrantKey,
    TableGrant, TlsRequirement,
};
use definitions::{literal, quote};
use syntax::ast::Statement;

/// An account with the privileges of its roles, and of their roles.
pub fn with_roles(accounts: &Accounts, account: &Account, roles: &[AccountName]) -> Account {
    let mut merged = account.clone();
    let mut seen: Vec<AccountName> = Vec::new();
    let mut pending: Vec<AccountName> = roles.to_vec();
    while let Some(name) = pending.pop() {
        if seen.contains(&name) {
            continue;
        }
        if let Some(role) = accounts.get(&name) {
            merged.restrictions.merge(merged.global, role.global, &role.restrictions);
            merged.global |= role.global;
            for (name, grantable) in &role.dynamic {
                *merged.dynamic.entry(name.clone()).or_default() |= grantable;
            }
            for (schema, set) in &role.schemas {
                *merged.schemas.entry(schema.clone()).or_default() |= *set;
            }
            for (table, grant) in &role.tables {
                let entry = merged.tables.entry(table.clone()).or_default();
                entry.table |= grant.table;
                for (column, set) in &grant.columns {
                    *entry.columns.entry(column.clone()).or_default() |= *set;
                }
            }
            for (routine, set) in &role.routines {
                *merged.routines.entry(routine.clone()).or_default() |= *set;
            }
            pending.extend(role.roles.iter().map(|grant| grant.role.clone()));
        }
        seen.push(name);
    }
    for (schema, set) in &merged.schemas {
        merged.restrictions.lift(schema, *set);
    }
    merged
}

/// SHOW GRANTS.
pub fn grant_statements(account: &Account) -> Vec<String> {
    let to = format!("{}@{}", quote(&account.name.user), quote(&account.name.host));
    let mut grants = global_grants(account, &to);
    for (schema, set) in &account.schemas {
        let privileges = privilege_list(*set, Some(PrivilegeSet::ALL_SCHEMA));
        let option = grant_option(*set);
        grants.push(format!("GRANT {privileges} ON {}.* TO {to}{option}", quote(schema)));
    }
    for (schema, set) in account.restrictions.iter() {
        let privileges = set.names().collect::<Vec<_>>().join(", ");
        grants.push(format!("REVOKE {privileges} ON {}.* FROM {to}", quote(schema)));
    }
    for ((schema, table), grant) in &account.tables {
        let (privileges, option) = (table_privileges(grant), grant_option(grant.table));
        let (schema, table) = (quote(schema), quote(table));
        grants.push(format!("GRANT {privileges} ON {schema}.{table} TO {to}{option}"));
    }
    grants.extend(routine_grants(account, &to));
    grants.extend(role_grants(account, &to));
    for (proxied, grantable) in account.proxies_by_specificity() {
        let option = if grantable { " WITH GRANT OPTION" } else { "" };
        let proxied = format!("{}@{}", quote(&proxied.user), quote(&proxied.host));
        grants.push(format!("GRANT PROXY ON {proxied} TO {to}{option}"));
    }
    grants
}

fn grant_option(set: PrivilegeSet) -> &'static str {
    if set.contains(PrivilegeSet::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" }
}

/// Names of privileges. `all`: those that together are ALL PRIVILEGES.
fn privilege_list(set: PrivilegeSet, all: Option<PrivilegeSet>) -> String {
    let plain = set.without(PrivilegeSet::GRANT_OPTION);
    if plain.is_empty() {
        return "USAGE".to_owned();
    }
    if all.is_some_and(|all| plain.contains(all)) {
        return "ALL PRIVILEGES".to_owned();
    }
    plain.names().collect::<Vec<_>>().join(", ")
}

/// Static and dynamic privileges on everything.
fn global_grants(account: &Account, to: &str) -> Vec<String> {
    let (privileges, option) = (privilege_list(account.global, None), grant_option(account.global));
    let mut grants = vec![format!("GRANT {privileges} ON *.* TO {to}{option}")];
    for grantable in [false, true] {
        let dynamic = account.dynamic.iter().filter(|(_, option)| **option == grantable);
        let names: Vec<&str> = dynamic.map(|(name, _)| &**name).collect();
        if !names.is_empty() {
            let option = if grantable { " WITH GRANT OPTION" } else { "" };
            grants.push(format!("GRANT {} ON *.* TO {to}{option}", names.join(",")));
        }
    }
    grants
}

/// Privileges on a table, each followed by those on its columns.
fn table_privileges(grant: &TableGrant) -> String {
    let whole = grant.table.without(PrivilegeSet::GRANT_OPTION);
    if whole.contains(PrivilegeSet::ALL_TABLE) {
        return "ALL PRIVILEGES".to_owned();
    }
    let mut parts: Vec<String> = Vec::new();
    for name in PrivilegeSet::ALL_TABLE.names() {
        let wanted = PrivilegeSet::named(name).unwrap_or_default();
        if whole.contains(wanted) {
            parts.push(name.to_owned());
        }
        let columns = grant.columns.iter().filter(|(_, set)| set.contains(wanted));
        let columns: Vec<String> = columns.map(|(column, _)| quote(column)).collect();
        if !columns.is_empty() {
            parts.push(format!("{name} ({})", columns.join(", ")));
        }
    }
    if parts.is_empty() { "USAGE".to_owned() } else { parts.join(", ") }
}

/// Privileges on routines: procedures first, each in name order.
fn routine_grants(account: &Account, to: &str) -> Vec<String> {
    let mut routines: Vec<_> = account.routines.iter().filter(|(_, set)| !set.is_empty()).collect();
    routines.sort_by_key(|((_, kind, _), _)| *kind);
    let statement = |((schema, kind, name), set): (&RoutineGrantKey, &PrivilegeSet)| {
        let (privileges, option) = (privilege_list(*set, None), grant_option(*set));
        let (kind, schema, name) = (kind.as_str(), quote(schema), quote(name));
        format!("GRANT {privileges} ON {kind} {schema}.{name} TO {to}{option}")
    };
    routines.into_iter().map(statement).collect()
}

/// Roles, those with ADMIN OPTION last.
fn role_grants(account: &Account, to: &str) -> Vec<String> {
    let mut grants = Vec::new();
    for admin in [false, true] {
        let mut granted: Vec<_> =
            account.roles.iter().filter(|grant| grant.admin == admin).collect();
        granted.sort_by_key(|grant| grant.role.to_string());
        let name =
            |grant: &RoleGrant| format!("{}@{}", quote(&grant.role.user), quote(&grant.role.host));
        let roles: Vec<String> = granted.into_iter().map(name).collect();
        if !roles.is_empty() {
            let option = if admin { " WITH ADMIN OPTION" } else { "" };
            grants.push(format!("GRANT {} TO {to}{option}", roles.join(",")));
        }
    }
    grants
}

/// Every grant of a role in order: the account, the role, and WITH ADMIN OPTION.
pub fn all_role_grants(accounts: &Accounts) -> Vec<(String, String, bool)> {
    let shown = |name: &AccountName| format!("{}@{}", quote(&name.user), quote(&name.host));
    let of_account = |account: &Arc<Account>| -> Vec<(String, String, bool)> {
        let grants = account.roles.iter();
        grants.map(|one| (shown(&account.name), shown(&one.role), one.admin)).collect()
    };
    accounts.iter().flat_map(of_account).collect()
}

/// A statement that sets passwords as other servers can repeat it: with the stored secrets; one text for each account. `None` for other
/// statements, which can be repeated as they are.
pub fn account_statements(statement: &Statement, edits: &[Edit]) -> Option<Vec<String>> {
    let is_new = matches!(statement, Statement::CreateUser(_));
    if !is_new && !matches!(statement, Statement::AlterUser(_) | Statement::SetPassword(_)) {
        return None;
    }
    let text = |edit: &Edit| {
        let Edit::PutAccount(account) = edit else { return None };
        if is_new {
            return Some(create_user_statement(account, SecretForm::AnyMode));
        }
        // Default roles are set by a statement of their own.
        let account = Account { default_roles: Vec::new(), ..Account::clone(account) };
        Some(create_user_statement(&account, SecretForm::AnyMode).replacen("CREATE", "ALTER", 1))
    };
    Some(edits.iter().filter_map(text).collect())
}

/// How a stored secret is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretForm {
    /// As a text, if it is one.
    Text,
    /// In hexadecimal, if it has bytes that cannot be printed.
    Hex,
    /// In hexadecimal, if SQL modes read its text differently.
    AnyMode,
}

fn secret_literal(secret: &[u8], form: SecretForm) -> String {
    let is_printable = secret.iter().all(|byte| matches!(byte, b' '..=b'~'));
    let is_plain = is_printable && !secret.iter().any(|byte| b"'\"\\".contains(byte));
    let is_text = match form {
        SecretForm::Text => true,
        SecretForm::Hex => is_printable,
        SecretForm::AnyMode => is_plain,
    };
    match std::str::from_utf8(secret) {
        Ok(text) if is_text => {
            let mut out = String::from("'");
            for c in text.chars() {
                match c {
                    '\0' => out.push_str("\\0"),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\u{1a}' => out.push_str("\\Z"),
                    '\'' | '"' | '\\' => out.extend(['\\', c]),
                    other => out.push(other),
                }
            }
            out + "'"
        }
        Ok(_) | Err(_) => {
            let digits: String = secret.iter().map(|byte| format!("{byte:02X}")).collect();
            debug_assert_eq!(digits.len(), secret.len() * 2, "two digits a byte");
            format!("0x{digits}")
        }
    }
}

/// SHOW CREATE USER.
pub fn create_user_statement(account: &Account, form: SecretForm) -> String {
    let secret = &account.authentication_string;
    let identified = if secret.is_empty() {
        format!("IDENTIFIED WITH '{}'", account.plugin)
    } else {
        format!("IDENTIFIED WITH '{}' AS {}", account.plugin, secret_literal(secret, form))
    };
    let require = match &account.tls {
        TlsRequirement::None => "NONE".to_owned(),
        TlsRequirement::Ssl => "SSL".to_owned(),
        TlsRequirement::X509 => "X509".to_owned(),
        TlsRequirement::Specified { subject, issuer, cipher } => {
            let parts: Vec<String> = [("SUBJECT", subject), ("ISSUER", issuer), ("CIPHER", cipher)]
                .iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(word, text)| format!("{word} {}", literal(text)))
                .collect();
            parts.join(" ")
        }
    };
    let name_of = |role: &AccountName| format!("{}@{}", quote(&role.user), quote(&role.host));
    let roles: Vec<String> = account.default_roles.iter().map(name_of).collect();
    let default_roles = match roles.is_empty() {
        true => String::new(),
        false => format!(" DEFAULT ROLE {}", roles.join(",")),
    };
    let limits: Vec<String> = LIMITS
        .iter()
        .zip(account.limits)
        .filter(|(_, limit)| *limit > 0)
        .map(|(word, limit)| format!("{word} {limit}"))
        .collect();
    let limits = match limits.is_empty() {
        true => String::new(),
        false => format!(" WITH {}", limits.join(" ")),
    };
    let attribute = match account.attribute.is_empty() {
        true => String::new(),
        false => format!(" ATTRIBUTE {}", literal(&account.attribute)),
    };
    let lock = if account.locked { "LOCK" } else { "UNLOCK" };
    let (expire, policy) = password_options(account);
    format!(
        "CREATE USER {}@{} {identified}{default_roles} REQUIRE {require}{limits} PASSWORD {expire} \
         ACCOUNT {lock} {policy}{attribute}",
        quote(&account.name.user),
        quote(&account.name.host),
    )
}

/// The password options of SHOW CREATE USER: EXPIRE, and those after ACCOUNT.
fn password_options(account: &Account) -> (String, String) {
    let policy = &account.password_policy;
    let expire = match policy.lifetime_days {
        _ if account.password_expired => "EXPIRE".to_owned(),
        None => "EXPIRE DEFAULT".to_owned(),
        Some(0) => "EXPIRE NEVER".to_owned(),
        Some(days) => format!("EXPIRE INTERVAL {days} DAY"),
    };
    let history = policy.history.map_or("DEFAULT".to_owned(), |count| count.to_string());
    let reuse = policy.reuse_days.map_or("DEFAULT".to_owned(), |days| format!("{days} DAY"));
    let current = match policy.require_current {
        None => " DEFAULT",
        Some(false) => " OPTIONAL",
        Some(true) => "",
    };
    let mut text = format!(
        "PASSWORD HISTORY {history} PASSWORD REUSE INTERVAL {reuse} PASSWORD REQUIRE CURRENT{current}"
    );
    if policy.failed_logins_max > 0 {
        text += &format!(" FAILED_LOGIN_ATTEMPTS {}", policy.failed_logins_max);
    }
    match policy.lock_time {
        LockTime::Days(0) => {}
        LockTime::Days(days) => text += &format!(" PASSWORD_LOCK_TIME {days}"),
        LockTime::Unbounded => text += " PASSWORD_LOCK_TIME UNBOUNDED",
    }
    (expire, text)
}
