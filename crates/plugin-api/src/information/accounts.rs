//! Accounts, roles and privileges, as information tables see them.

use errors::Result;

/// Facts about accounts.
pub trait AccountInformation {
    /// All accounts that the session may see.
    fn accounts(&self) -> Vec<AccountView>;
    /// All accounts with their secrets, whoever asks: for tables that need the privilege to read them.
    fn stored_accounts(&self) -> Vec<AccountView>;
    /// The session's own account and all roles that it holds, directly or through others; its own first.
    fn role_accounts(&self) -> Vec<AccountView> {
        Vec::new()
    }
    /// The roles that every account has, as far as they exist.
    fn mandatory_roles(&self) -> Vec<RoleView> {
        Vec::new()
    }
    /// The roles that are active.
    fn active_roles(&self) -> Vec<RoleView> {
        Vec::new()
    }
    /// Grants of an account as statements, `None` for the session's own.
    ///
    /// # Errors
    /// 1141.
    fn grants(&self, account: Option<&str>) -> Result<Vec<String>>;
    /// The session's `user@host`.
    fn current_user(&self) -> String;
    /// Whether the session's account has a global or dynamic privilege, given in capitals.
    fn has_privilege(&self, _name: &str) -> bool {
        false
    }
}

/// An account, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountView {
    /// User name.
    pub user: String,
    /// Host pattern.
    pub host: String,
    /// Authentication method.
    pub plugin: String,
    /// Stored secret; empty unless the session may read it.
    pub authentication_string: String,
    /// Global privileges, names as GRANT spells them.
    pub privileges: Vec<String>,
    /// Privileges on schemas.
    pub schema_privileges: Vec<SchemaPrivilegesView>,
    /// Privileges on tables.
    pub table_privileges: Vec<TablePrivilegesView>,
    /// Privileges on columns.
    pub column_privileges: Vec<ColumnPrivilegesView>,
    /// Privileges on routines.
    pub routine_privileges: Vec<RoutinePrivilegesView>,
    /// Dynamic privileges.
    pub dynamic_privileges: Vec<DynamicPrivilegeView>,
    /// Granted roles.
    pub roles: Vec<RoleGrantView>,
    /// Roles active after log-in.
    pub default_roles: Vec<RoleView>,
    /// Accounts that it may act for.
    pub proxies: Vec<ProxyView>,
    /// `ANY`, `X509`, `SPECIFIED` or empty: the account's TLS requirement.
    pub tls: &'static str,
    /// MAX_QUERIES_PER_HOUR, MAX_UPDATES_PER_HOUR, MAX_CONNECTIONS_PER_HOUR, MAX_USER_CONNECTIONS.
    pub limits: [u64; 4],
    /// PASSWORD EXPIRE.
    pub password_expired: bool,
    /// Last change of the password, microseconds since 1970 UTC; 0 for never.
    pub password_changed_micros: i64,
    /// PASSWORD EXPIRE INTERVAL; 0 for NEVER.
    pub password_lifetime: Option<u64>,
    /// PASSWORD HISTORY.
    pub password_history: Option<u64>,
    /// PASSWORD REUSE INTERVAL.
    pub password_reuse_days: Option<u64>,
    /// PASSWORD REQUIRE CURRENT.
    pub password_require_current: Option<bool>,
    /// Other stored attributes, a JSON text or empty: `mysql.user.User_attributes`.
    pub user_attributes: String,
    /// Earlier passwords; empty unless the session may read them.
    pub earlier_passwords: Vec<EarlierPasswordView>,
    /// WITH GRANT OPTION, global.
    pub grant_option: bool,
    /// ACCOUNT LOCK.
    pub locked: bool,
    /// ATTRIBUTE and COMMENT, a JSON text or empty.
    pub attribute: String,
}

/// Privileges of an account on a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SchemaPrivilegesView {
    /// Pattern of schema names.
    pub schema: String,
    /// Privileges, names as GRANT spells them.
    pub names: Vec<String>,
}

/// Privileges of an account on a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablePrivilegesView {
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub table: String,
    /// Privileges, names as GRANT spells them.
    pub names: Vec<String>,
}

/// Privileges of an account on a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnPrivilegesView {
    /// Schema name.
    pub schema: String,
    /// Table name.
    pub table: String,
    /// Column name.
    pub column: String,
    /// Privileges, names as GRANT spells them.
    pub names: Vec<String>,
}

/// Privileges of an account on a routine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutinePrivilegesView {
    /// Schema name.
    pub schema: String,
    /// `PROCEDURE` or `FUNCTION`.
    pub kind: &'static str,
    /// Name of the routine.
    pub routine: String,
    /// Privileges, names as GRANT spells them.
    pub names: Vec<String>,
}

/// A dynamic privilege of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamicPrivilegeView {
    /// Name.
    pub name: String,
    /// WITH GRANT OPTION.
    pub grantable: bool,
}

/// The name of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleView {
    /// User part.
    pub user: String,
    /// Host part.
    pub host: String,
}

/// A role that is granted to an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleGrantView {
    /// The role.
    pub role: RoleView,
    /// WITH ADMIN OPTION.
    pub admin: bool,
}

/// An account that another may act for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyView {
    /// User name.
    pub user: String,
    /// Host pattern.
    pub host: String,
    /// WITH GRANT OPTION.
    pub grantable: bool,
}

/// A password that an account had before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierPasswordView {
    /// When it was set, microseconds since 1970 UTC.
    pub since_micros: i64,
    /// As stored.
    pub secret: String,
}
