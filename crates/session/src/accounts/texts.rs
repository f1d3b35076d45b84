//! Accounts as statements and information tables show them. Changes nothing.

use ::accounts::LIMITS;
use catalog::{
    Account, AccountName, Accounts, EarlierPassword, LockTime, PrivilegeSet, TlsRequirement,
};
use plugin_api::AccountView;

use definitions::{literal, quote};

/// An account as information tables see it.
pub(crate) fn account_view(account: &Account, with_secret: bool) -> AccountView {
    let names = |set: PrivilegeSet| -> Vec<String> {
        let mut names: Vec<String> = set.names().map(str::to_owned).collect();
        if set.contains(PrivilegeSet::GRANT_OPTION) {
            names.push("GRANT OPTION".into());
        }
        names
    };
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
        schema_privileges: account
            .schemas
            .iter()
            .map(|(schema, set)| (schema.to_string(), names(*set)))
            .collect(),
        table_privileges: account
            .tables
            .iter()
            .map(|((schema, table), grant)| {
                (schema.to_string(), table.to_string(), names(grant.table))
            })
            .collect(),
        column_privileges: column_privileges(account, names),
        routine_privileges: account
            .routines
            .iter()
            .map(|((schema, kind, name), set)| {
                (schema.to_string(), kind.as_str(), name.to_string(), names(*set))
            })
            .collect(),
        dynamic_privileges: account
            .dynamic
            .iter()
            .map(|(name, grantable)| (name.to_string(), *grantable))
            .collect(),
        roles: account
            .roles
            .iter()
            .map(|grant| (grant.role.user.to_string(), grant.role.host.to_string(), grant.admin))
            .collect(),
        default_roles: account
            .default_roles
            .iter()
            .map(|role| (role.user.to_string(), role.host.to_string()))
            .collect(),
        proxies: account
            .proxies
            .iter()
            .map(|(name, grantable)| (name.user.to_string(), name.host.to_string(), *grantable))
            .collect(),
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

fn earlier_password(earlier: &EarlierPassword) -> (i64, String) {
    (earlier.since_micros, String::from_utf8_lossy(&earlier.secret).into_owned())
}

/// What is kept of an account beside columns, in the order in which JSON keeps the names.
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
    if with_secret && !account.second_secret.is_empty() {
        let secret = String::from_utf8_lossy(&account.second_secret);
        parts.push(format!("\"additional_password\": {}", json_text(&secret)));
    }
    match parts.is_empty() {
        true => String::new(),
        false => format!("{{{}}}", parts.join(", ")),
    }
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

fn column_privileges(
    account: &Account,
    names: impl Fn(PrivilegeSet) -> Vec<String>,
) -> Vec<(String, String, String, Vec<String>)> {
    let mut rows = Vec::new();
    for ((schema, table), grant) in &account.tables {
        for (column, set) in &grant.columns {
            rows.push((schema.to_string(), table.to_string(), column.to_string(), names(*set)));
        }
    }
    rows
}

/// An account with what its roles, and theirs, bring.
pub(crate) fn with_roles(accounts: &Accounts, account: &Account, roles: &[AccountName]) -> Account {
    let mut merged = account.clone();
    let mut seen: Vec<AccountName> = Vec::new();
    let mut pending: Vec<AccountName> = roles.to_vec();
    while let Some(name) = pending.pop() {
        if seen.contains(&name) {
            continue;
        }
        if let Some(role) = accounts.get(&name) {
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
    merged
}

/// SHOW GRANTS.
pub(crate) fn grant_statements(account: &Account) -> Vec<String> {
    let to = format!("{}@{}", quote(&account.name.user), quote(&account.name.host));
    let option = |set: PrivilegeSet| {
        if set.contains(PrivilegeSet::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" }
    };
    let list = |set: PrivilegeSet, all: Option<PrivilegeSet>| {
        let plain = set.without(PrivilegeSet::GRANT_OPTION);
        if plain.is_empty() {
            return "USAGE".to_owned();
        }
        if all.is_some_and(|all| plain.contains(all)) {
            return "ALL PRIVILEGES".to_owned();
        }
        plain.names().collect::<Vec<_>>().join(", ")
    };
    let mut grants = vec![format!(
        "GRANT {} ON *.* TO {to}{}",
        list(account.global, None),
        option(account.global)
    )];
    for grantable in [false, true] {
        let names: Vec<&str> = account
            .dynamic
            .iter()
            .filter(|(_, option)| **option == grantable)
            .map(|(name, _)| &**name)
            .collect();
        if !names.is_empty() {
            let option = if grantable { " WITH GRANT OPTION" } else { "" };
            grants.push(format!("GRANT {} ON *.* TO {to}{option}", names.join(",")));
        }
    }
    for (schema, set) in &account.schemas {
        let privileges = list(*set, Some(PrivilegeSet::ALL_SCHEMA));
        grants.push(format!("GRANT {privileges} ON {}.* TO {to}{}", quote(schema), option(*set)));
    }
    for ((schema, table), grant) in &account.tables {
        let mut parts: Vec<String> = Vec::new();
        let whole = grant.table.without(PrivilegeSet::GRANT_OPTION);
        if whole.contains(PrivilegeSet::ALL_TABLE) {
            parts.push("ALL PRIVILEGES".into());
        } else {
            for name in PrivilegeSet::ALL_TABLE.names() {
                let wanted = PrivilegeSet::named(name).unwrap_or_default();
                if whole.contains(wanted) {
                    parts.push(name.to_owned());
                }
                let columns: Vec<String> = grant
                    .columns
                    .iter()
                    .filter(|(_, set)| set.contains(wanted))
                    .map(|(column, _)| quote(column))
                    .collect();
                if !columns.is_empty() {
                    parts.push(format!("{name} ({})", columns.join(", ")));
                }
            }
        }
        let privileges = if parts.is_empty() { "USAGE".to_owned() } else { parts.join(", ") };
        grants.push(format!(
            "GRANT {privileges} ON {}.{} TO {to}{}",
            quote(schema),
            quote(table),
            option(grant.table)
        ));
    }
    let mut routines: Vec<_> = account.routines.iter().filter(|(_, set)| !set.is_empty()).collect();
    routines.sort_by_key(|((_, kind, _), _)| *kind);
    for ((schema, kind, name), set) in routines {
        grants.push(format!(
            "GRANT {} ON {} {}.{} TO {to}{}",
            list(*set, None),
            kind.as_str(),
            quote(schema),
            quote(name),
            option(*set)
        ));
    }
    for admin in [false, true] {
        let mut granted: Vec<_> =
            account.roles.iter().filter(|grant| grant.admin == admin).collect();
        granted.sort_by_key(|grant| grant.role.to_string());
        let roles: Vec<String> = granted
            .into_iter()
            .map(|grant| format!("{}@{}", quote(&grant.role.user), quote(&grant.role.host)))
            .collect();
        if !roles.is_empty() {
            let option = if admin { " WITH ADMIN OPTION" } else { "" };
            grants.push(format!("GRANT {} TO {to}{option}", roles.join(",")));
        }
    }
    for (proxied, grantable) in account.proxies_by_specificity() {
        let option = if grantable { " WITH GRANT OPTION" } else { "" };
        let proxied = format!("{}@{}", quote(&proxied.user), quote(&proxied.host));
        grants.push(format!("GRANT PROXY ON {proxied} TO {to}{option}"));
    }
    grants
}

/// SHOW CREATE USER.
pub(crate) fn create_user_statement(account: &Account) -> String {
    let secret = String::from_utf8_lossy(&account.authentication_string).into_owned();
    let identified = if secret.is_empty() {
        format!("IDENTIFIED WITH '{}'", account.plugin)
    } else {
        format!("IDENTIFIED WITH '{}' AS {}", account.plugin, literal(&secret))
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

/// What SHOW CREATE USER says of passwords: EXPIRE, and what follows ACCOUNT.
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
