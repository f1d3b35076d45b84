//! Accounts, roles and their privileges. Immutable: a change makes a new `Accounts`.
//!
//! Must not know how passwords are checked; the stored secret is opaque here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::password::{EarlierPassword, PasswordPolicy};
use crate::privilege::{PrivilegeSet, dynamic_privileges};
use crate::restriction::Restrictions;
use crate::routine::RoutineKind;

/// `'user'@'host'`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct AccountName {
    /// User; empty for the anonymous one.
    pub user: Box<str>,
    /// Host pattern.
    pub host: Box<str>,
}

impl AccountName {
    /// `user`@`host`.
    pub fn new(user: &str, host: &str) -> AccountName {
        AccountName { user: user.into(), host: host.to_lowercase().into() }
    }
}

impl std::fmt::Display for AccountName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.user, self.host)
    }
}

/// Privileges on one table and its columns.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableGrant {
    /// On the whole table.
    pub table: PrivilegeSet,
    /// By column, as named in GRANT.
    pub columns: BTreeMap<Box<str>, PrivilegeSet>,
}

impl TableGrant {
    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty() && self.columns.values().all(|set| set.is_empty())
    }
}

/// The key of privileges on a routine: its schema, kind, and name in lower case.
pub type RoutineGrantKey = (Box<str>, RoutineKind, Box<str>);

/// The key of a routine's privileges.
pub fn routine_grant_key(schema: &str, kind: RoutineKind, name: &str) -> RoutineGrantKey {
    (schema.into(), kind, name.to_lowercase().into())
}

/// A role granted to an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// Which.
    pub role: AccountName,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// REQUIRE.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum TlsRequirement {
    /// NONE.
    #[default]
    None,
    /// SSL.
    Ssl,
    /// X509.
    X509,
    /// SUBJECT, ISSUER, CIPHER; empty for not given.
    Specified { subject: Box<str>, issuer: Box<str>, cipher: Box<str> },
}

/// A user or a role.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Account {
    /// User and host.
    pub name: AccountName,
    /// Authentication method.
    pub plugin: Box<str>,
    /// The value stored by the authentication method.
    pub authentication_string: Vec<u8>,
    /// ACCOUNT LOCK. Roles are locked.
    pub locked: bool,
    /// PASSWORD EXPIRE.
    pub password_expired: bool,
    /// REQUIRE.
    pub tls: TlsRequirement,
    /// Global privileges, GRANT OPTION included.
    pub global: PrivilegeSet,
    /// Schemas in which some of the global privileges do not hold.
    pub restrictions: Restrictions,
    /// Dynamic privileges and whether they come with GRANT OPTION.
    pub dynamic: BTreeMap<Box<str>, bool>,
    /// By schema pattern.
    pub schemas: BTreeMap<Box<str>, PrivilegeSet>,
    /// By schema and table.
    pub tables: BTreeMap<(Box<str>, Box<str>), TableGrant>,
    /// By routine.
    pub routines: BTreeMap<RoutineGrantKey, PrivilegeSet>,
    /// Granted roles.
    pub roles: Vec<RoleGrant>,
    /// Roles active after login.
    pub default_roles: Vec<AccountName>,
    /// Accounts that it may act for (PROXY), and whether it may grant that to others. An empty name means any account.
    pub proxies: BTreeMap<AccountName, bool>,
    /// COMMENT or ATTRIBUTE, a JSON text; empty without one.
    pub attribute: Box<str>,
    /// MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR, MAX_CONNECTIONS_PER_HOUR, MAX_USER_CONNECTIONS.
    pub limits: [u64; 4],
    /// Last change of the password, microseconds since 1970 UTC.
    pub password_changed_micros: i64,
    /// Rules for its passwords.
    pub password_policy: PasswordPolicy,
    /// The previous password, kept by RETAIN CURRENT PASSWORD, as the method stored it; empty without one.
    pub second_secret: Vec<u8>,
    /// Passwords that a new one is compared with, newest first; the current one is the first, unless no policy needs them.
    pub earlier_passwords: Vec<EarlierPassword>,
    /// Created by CREATE ROLE.
    pub is_role: bool,
}

impl Account {
    /// An account with all privileges and GRANT OPTION: the one of the first start.
    pub fn with_all_privileges(mut self) -> Account {
        self.global = PrivilegeSet::ALL_GLOBAL | PrivilegeSet::GRANT_OPTION;
        self.dynamic = dynamic_privileges().iter().map(|name| ((*name).into(), true)).collect();
        self.proxies = BTreeMap::from([(AccountName::default(), true)]);
        self
    }

    /// Whether it may grant PROXY on `name`.
    pub fn may_grant_proxy(&self, name: &AccountName) -> bool {
        let covers = |proxied: &AccountName| {
            (proxied.user.is_empty() || proxied.user == name.user)
                && (proxied.host.is_empty() || proxied.host == name.host)
        };
        self.name == *name || self.proxies.iter().any(|(proxied, grant)| *grant && covers(proxied))
    }

    /// The accounts that it may act for, the most specific host first.
    pub fn proxies_by_specificity(&self) -> Vec<(&AccountName, bool)> {
        let mut proxies: Vec<_> =
            self.proxies.iter().map(|(proxied, grant)| (proxied, *grant)).collect();
        proxies.sort_by_key(|(proxied, _)| host_rank(&proxied.host));
        proxies
    }
}

/// What system variables say about all accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRules {
    /// `partial_revokes`: grants on schemas name one schema each, without wildcards.
    pub literal_schemas: bool,
    /// `mandatory_roles`: every account has these, once they exist.
    pub mandatory_roles: Vec<AccountName>,
}

/// All accounts of one catalog version.
#[derive(Clone, Debug, Default)]
pub struct Accounts {
    rules: AccountRules,
    by_name: BTreeMap<AccountName, Arc<Account>>,
    /// Most specific host first.
    by_specificity: Vec<Arc<Account>>,
}

impl Accounts {
    /// The account with exactly this name.
    pub fn get(&self, name: &AccountName) -> Option<&Arc<Account>> {
        self.by_name.get(name)
    }

    /// What holds for all of them.
    pub fn rules(&self) -> &AccountRules {
        &self.rules
    }

    pub(crate) fn set_rules(&mut self, rules: AccountRules) {
        self.rules = rules;
    }

    /// The mandatory roles of an account: those that exist.
    pub fn mandatory_roles<'a>(
        &'a self,
        account: &'a AccountName,
    ) -> impl Iterator<Item = &'a AccountName> {
        let exists = move |role: &&AccountName| *role != account && self.get(role).is_some();
        self.rules.mandatory_roles.iter().filter(exists)
    }

    /// The roles that an account may take: those granted to it, and the mandatory ones.
    pub fn roles_of(&self, account: &Account) -> Vec<AccountName> {
        let mut roles: Vec<AccountName> =
            account.roles.iter().map(|grant| grant.role.clone()).collect();
        self.add_mandatory(&account.name, &mut roles);
        roles.sort_unstable();
        roles
    }

    /// The roles that are active after a log-in: the default ones and the mandatory ones, or `all`.
    pub fn roles_at_login(&self, account: &Account, all: bool) -> Vec<AccountName> {
        let mut roles = match all {
            true => account.roles.iter().map(|grant| grant.role.clone()).collect(),
            false => account.default_roles.clone(),
        };
        self.add_mandatory(&account.name, &mut roles);
        roles.sort_unstable();
        roles
    }

    fn add_mandatory(&self, account: &AccountName, roles: &mut Vec<AccountName>) {
        for role in self.mandatory_roles(account) {
            if !roles.contains(role) {
                roles.push(role.clone());
            }
        }
    }

    /// In order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Account>> {
        self.by_name.values()
    }

    /// Number of accounts.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// The account that a login of `user` from `host` (a name or an address) matches: most specific host first, then a named
    /// user before the anonymous one. `usable` may exclude accounts.
    pub fn find_login(
        &self,
        user: &str,
        hosts: &[&str],
        usable: impl Fn(&Account) -> bool,
    ) -> Option<&Arc<Account>> {
        self.by_specificity.iter().find(|account| {
            (account.name.user.is_empty() || *account.name.user == *user)
                && hosts.iter().any(|host| host_matches(&account.name.host, host))
                && usable(account)
        })
    }

    pub(crate) fn put(&mut self, account: Account) {
        self.by_name.insert(account.name.clone(), Arc::new(account));
        self.sort();
    }

    pub(crate) fn remove(&mut self, name: &AccountName) -> Option<Arc<Account>> {
        let removed = self.by_name.remove(name);
        self.sort();
        removed
    }

    fn sort(&mut self) {
        self.by_specificity =
            self.by_name.values().filter(|account| !account.is_role).cloned().collect();
        self.by_specificity
            .sort_by_key(|account| (host_rank(&account.name.host), account.name.user.is_empty()));
    }

    /// The privileges of `name` with `active` roles.
    pub fn effective(&self, name: &AccountName, active: &[AccountName]) -> EffectivePrivileges {
        let mut effective = EffectivePrivileges {
            literal_schemas: self.rules.literal_schemas,
            ..EffectivePrivileges::default()
        };
        let mut seen = BTreeSet::new();
        let mut pending: Vec<&AccountName> = vec![name];
        pending.extend(active);
        while let Some(next) = pending.pop() {
            if !seen.insert(next.clone()) {
                continue;
            }
            let Some(account) = self.by_name.get(next) else { continue };
            effective.add(account);
            // A role includes the roles granted to it; the account itself includes only the active ones.
            if next != name {
                pending.extend(account.roles.iter().map(|grant| &grant.role));
            }
        }
        effective
    }
}

/// Smaller is more specific: literal hosts and networks before patterns, then patterns with longer prefixes before the first wildcard.
fn host_rank(host: &str) -> (u8, std::cmp::Reverse<usize>) {
    let wildcard = host.find(['%', '_']);
    match wildcard {
        None if host.is_empty() => (3, std::cmp::Reverse(0)),
        None => (0, std::cmp::Reverse(host.len())),
        Some(at) => (if host == "%" { 2 } else { 1 }, std::cmp::Reverse(at)),
    }
}

/// Whether the pattern of an account covers a client host.
fn host_matches(pattern: &str, host: &str) -> bool {
    if pattern.is_empty() || pattern == "%" || pattern.eq_ignore_ascii_case(host) {
        return true;
    }
    if let Some((network, mask)) = pattern.split_once('/') {
        return network_matches(network, mask, host);
    }
    like(pattern.as_bytes(), host.to_ascii_lowercase().as_bytes())
}

fn network_matches(network: &str, mask: &str, host: &str) -> bool {
    let (Ok(network), Ok(host)) = (network.parse::<IpAddr>(), host.parse::<IpAddr>()) else {
        return false;
    };
    let bits = |address: IpAddr| match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    let ((network, width), (host, host_width)) = (bits(network), bits(host));
    let mask = match (mask.parse::<u32>(), mask.parse::<IpAddr>()) {
        (Ok(0), _) => 0,
        (Ok(prefix), _) if prefix <= width => (u128::MAX << (128 - prefix)) >> (128 - width),
        (_, Ok(mask)) => bits(mask).0,
        _ => return false,
    };
    width == host_width && host & mask == network & mask
}

/// `LIKE` with `\` as escape, byte by byte: enough for host names and schema patterns.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    // Positions to return to when a later literal does not match: after the last `%`, and the text position where it was tried.
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let matched = match pattern.get(p) {
            Some(b'%') => {
                retry = Some((p + 1, t));
                p += 1;
                continue;
            }
            Some(b'_') => Some(1),
            Some(b'\\') if p + 1 < pattern.len() => (pattern[p + 1] == text[t]).then_some(2),
            Some(byte) => (*byte == text[t]).then_some(1),
            None => None,
        };
        match (matched, retry) {
            (Some(width), _) => {
                p += width;
                t += 1;
            }
            (None, Some((after, at))) => {
                retry = Some((after, at + 1));
                p = after;
                t = at + 1;
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'%')
}

/// The privileges of a session: those of its account and its active roles together.
#[derive(Clone, Debug, Default)]
pub struct EffectivePrivileges {
    global: PrivilegeSet,
    /// Those of `global` that hold in every schema.
    everywhere: PrivilegeSet,
    restrictions: Restrictions,
    literal_schemas: bool,
    dynamic: BTreeMap<Box<str>, bool>,
    schemas: Vec<(Box<str>, PrivilegeSet)>,
    tables: BTreeMap<(Box<str>, Box<str>), TableGrant>,
    routines: BTreeMap<RoutineGrantKey, PrivilegeSet>,
}

impl EffectivePrivileges {
    /// Every privilege: for the server's own sessions.
    pub fn everything() -> EffectivePrivileges {
        let mut effective = EffectivePrivileges::default();
        effective.add(&Account::default().with_all_privileges());
        effective
    }

    fn add(&mut self, account: &Account) {
        self.restrictions.merge(self.global, account.global, &account.restrictions);
        self.global |= account.global;
        self.everywhere = self.global.without(self.restrictions.anywhere());
        for (name, grantable) in &account.dynamic {
            *self.dynamic.entry(name.clone()).or_default() |= grantable;
        }
        for (pattern, set) in &account.schemas {
            self.schemas.push((pattern.clone(), *set));
        }
        for (key, grant) in &account.tables {
            let entry = self.tables.entry(key.clone()).or_default();
            entry.table |= grant.table;
            for (column, set) in &grant.columns {
                *entry.columns.entry(column.clone()).or_default() |= *set;
            }
        }
        for (key, set) in &account.routines {
            *self.routines.entry(key.clone()).or_default() |= *set;
        }
    }

    /// Global privileges. In some schemas they may not hold: ask `everywhere` before using them on objects of any schema.
    pub fn global(&self) -> PrivilegeSet {
        self.global
    }

    /// Global privileges that hold in every schema.
    pub fn everywhere(&self) -> PrivilegeSet {
        self.everywhere
    }

    /// Schemas in which some of the global privileges do not hold.
    pub fn restrictions(&self) -> &Restrictions {
        &self.restrictions
    }

    /// Whether a dynamic privilege (upper case) is held; SUPER implies the administrative ones.
    pub fn has_dynamic(&self, name: &str) -> bool {
        self.dynamic.contains_key(name) || self.global.contains(PrivilegeSet::SUPER)
    }

    /// Whether a dynamic privilege (upper case) is held itself, and not by SUPER.
    pub fn has_exactly(&self, name: &str) -> bool {
        self.dynamic.contains_key(name)
    }

    /// Whether a global or dynamic privilege (upper case) is held.
    pub fn has_named(&self, name: &str) -> bool {
        match PrivilegeSet::named(name) {
            Some(needed) => self.global.contains(needed),
            None => self.has_dynamic(name),
        }
    }

    /// Privileges on all of a schema.
    pub fn on_schema(&self, schema: &str) -> PrivilegeSet {
        let mut set = self.global.without(self.restrictions.on(schema));
        for (pattern, granted) in &self.schemas {
            let matches = |pattern: &str| like(pattern.as_bytes(), schema.as_bytes());
            if **pattern == *schema || !self.literal_schemas && matches(pattern) {
                set |= *granted;
            }
        }
        set
    }

    /// Privileges on all of a table.
    pub fn on_table(&self, schema: &str, table: &str) -> PrivilegeSet {
        let set = self.on_schema(schema);
        match self.table_grant(schema, table) {
            Some(grant) => set | grant.table,
            None => set,
        }
    }

    /// Privileges on a routine.
    pub fn on_routine(&self, schema: &str, kind: RoutineKind, name: &str) -> PrivilegeSet {
        let set = self.on_schema(schema);
        if self.routines.is_empty() {
            return set;
        }
        let own = self.routines.get(&routine_grant_key(schema, kind, name));
        set | own.copied().unwrap_or_default()
    }

    /// Privileges on a column.
    pub fn on_column(&self, schema: &str, table: &str, column: &str) -> PrivilegeSet {
        let mut set = self.on_table(schema, table);
        if let Some(grant) = self.table_grant(schema, table) {
            for (name, granted) in &grant.columns {
                if crate::same_name(name, column) {
                    set |= *granted;
                }
            }
        }
        set
    }

    /// Whether all of `needed` is held on the table. The usual case, unrestricted global privileges, costs one comparison.
    pub fn allows_table(&self, schema: &str, table: &str, needed: PrivilegeSet) -> bool {
        self.everywhere.contains(needed) || self.on_table(schema, table).contains(needed)
    }

    /// Whether the table has any privilege at all, on itself or a column: it may be seen.
    pub fn sees_table(&self, schema: &str, table: &str) -> bool {
        let visible = PrivilegeSet::ALL_SCHEMA;
        self.everywhere.intersects(visible)
            || self.on_schema(schema).intersects(visible)
            || self.table_grant(schema, table).is_some_and(|grant| !grant.is_empty())
    }

    /// Whether the schema is listed.
    pub fn sees_schema(&self, schema: &str) -> bool {
        self.global.contains(PrivilegeSet::SHOW_DATABASES) || self.enters_schema(schema)
    }

    /// Whether anything in the schema may be seen or done: it may be the current one.
    pub fn enters_schema(&self, schema: &str) -> bool {
        self.everywhere.intersects(PrivilegeSet::ALL_SCHEMA)
            || !self.on_schema(schema).without(PrivilegeSet::GRANT_OPTION).is_empty()
                && self.on_schema(schema).intersects(PrivilegeSet::ALL_SCHEMA)
            || self.tables.iter().any(|((name, _), grant)| **name == *schema && !grant.is_empty())
            || self.routines.iter().any(|((name, ..), set)| **name == *schema && !set.is_empty())
    }

    fn table_grant(&self, schema: &str, table: &str) -> Option<&TableGrant> {
        if self.tables.is_empty() {
            return None;
        }
        self.tables.get(&(Box::from(schema), Box::from(table)))
    }
}
