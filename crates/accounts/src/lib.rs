//! Accounts: the statements that change users, roles and grants, log-ins, privileges and hourly limits.
//!
//! A statement is computed from an immutable version of the catalog and gives a list of edits (`AccountChange`); the session commits
//! them. Must not know sessions, transactions, or how accounts are shown.

mod checks;
mod failed_logins;
mod grants;
mod logins;
mod mandatory_roles;
mod owner;
mod passwords;
mod restrictions;
mod roles;
mod statement;
#[cfg(test)]
mod tests;
mod usage;
mod users;

pub use checks::{PrivilegeChecks, require_flush};
pub use failed_logins::FailedLogins;
pub use logins::{
    DEFAULT_METHOD, Logins, RootLogin, SOCKET_METHOD, hash_password, hosts_of, is_insecure,
    matched_name,
};
pub use mandatory_roles::{RULES, account_rules, check_rule};
pub use passwords::{PasswordRules, has_expired_password};
pub use statement::{AccountChange, AccountStatement, check_lengths, parse_account};
pub use usage::{AccountLimits, LIMITS, Quota, Resource, Usages, check_connections};
