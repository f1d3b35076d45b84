//! Hourly limits of accounts: the use so far of each account that has a limit. Accounts without limits never come here.

use std::sync::Arc;

use catalog::{Account, AccountName};
use errors::{Result, bail};
use hashbrown::HashMap;
use sys::sync::Mutex;

const HOUR_MICROS: i64 = 3_600 * 1_000_000;

/// Resource limits in the order in which accounts keep them.
pub const LIMITS: [&str; 4] = [
    "MAX_QUERIES_PER_HOUR",
    "MAX_UPDATES_PER_HOUR",
    "MAX_CONNECTIONS_PER_HOUR",
    "MAX_USER_CONNECTIONS",
];

/// Positions in `Account::limits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Statements of clients.
    Questions = 0,
    /// Statements that change something.
    Updates = 1,
    /// Log-ins.
    Connections = 2,
}

impl Resource {
    /// As error 1226 calls it.
    fn name(self) -> &'static str {
        match self {
            Resource::Questions => "max_questions",
            Resource::Updates => "max_updates",
            Resource::Connections => "max_connections_per_hour",
        }
    }
}

#[derive(Debug, Default)]
struct Used {
    since_micros: i64,
    counts: [u64; 3],
}

/// The use of one account in the current hour.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Used>);

/// The hourly limits of a session's account.
#[derive(Debug)]
pub struct Quota {
    user: Box<str>,
    limits: [u64; 4],
    usage: Arc<Usage>,
}

impl Quota {
    /// Counts one use.
    ///
    /// # Errors
    /// 1226.
    pub fn count(&self, resource: Resource, now_micros: i64) -> Result<()> {
        let limit = self.limits[resource as usize];
        if limit == 0 {
            return Ok(());
        }
        let mut used = self.usage.0.lock();
        if now_micros.saturating_sub(used.since_micros) >= HOUR_MICROS {
            *used = Used { since_micros: now_micros, counts: [0; 3] };
        }
        if used.counts[resource as usize] >= limit {
            bail!(USER_LIMIT_REACHED, self.user, resource.name(), limit);
        }
        used.counts[resource as usize] += 1;
        Ok(())
    }
}

/// Reasons that keep a session from running statements.
#[derive(Debug, Default)]
pub struct AccountLimits {
    /// Set when the account has hourly limits.
    pub quota: Option<Quota>,
    /// The account's password has expired: until it has a new one, no other statement runs.
    pub must_change_password: bool,
}

impl AccountLimits {
    /// Counts a use of a resource that has an hourly limit. Calls `now_micros` only for accounts with limits.
    ///
    /// # Errors
    /// 1226.
    pub fn count_use(&self, resource: Resource, now_micros: impl FnOnce() -> i64) -> Result<()> {
        match &self.quota {
            None => Ok(()),
            Some(quota) => quota.count(resource, now_micros()),
        }
    }

    /// Whether other statements than setting a new password are allowed.
    ///
    /// # Errors
    /// 1820.
    pub fn check_password_current(&self) -> Result<()> {
        if self.must_change_password {
            bail!(MUST_CHANGE_PASSWORD);
        }
        Ok(())
    }
}

/// Refuses one more connection of an account beside `open` others; `open` is asked only where there is a limit. The account's own limit goes
/// before `common`, the value of `max_user_connections`. 0 is no limit.
///
/// # Errors
/// 1226 for the account's own limit, 1203 for the common one.
pub fn check_connections(
    name: &AccountName,
    own: u64,
    common: u64,
    open: impl FnOnce() -> usize,
) -> Result<()> {
    let limit = if own == 0 { common } else { own };
    if limit == 0 || (open() as u64) < limit {
        return Ok(());
    }
    match own {
        0 => bail!(TOO_MANY_USER_CONNECTIONS, name.user),
        own => bail!(USER_LIMIT_REACHED, name.user, "max_user_connections", own),
    }
}

/// Usage of all accounts with limits.
#[derive(Debug, Default)]
pub struct Usages(Mutex<HashMap<AccountName, Arc<Usage>>>);

impl Usages {
    /// The quota of an account; `None` when it has no hourly limit.
    pub fn quota(&self, account: &Account) -> Option<Quota> {
        if account.limits[..3].iter().all(|limit| *limit == 0) {
            return None;
        }
        let usage = self.0.lock().entry(account.name.clone()).or_default().clone();
        Some(Quota { user: account.name.user.as_ref().into(), limits: account.limits, usage })
    }

    /// FLUSH USER_RESOURCES.
    pub fn reset(&self) {
        self.0.lock().values().for_each(|usage| *usage.0.lock() = Used::default());
    }
}

#[cfg(test)]
mod tests {
    use errors::ErrorCode;

    use super::*;

    #[test]
    fn an_hour_has_its_limit_and_the_next_another() {
        let usages = Usages::default();
        let name = AccountName::new("u", "%");
        let account = Account { name, limits: [2, 0, 0, 0], ..Account::default() };
        let limits = AccountLimits { quota: usages.quota(&account), must_change_password: false };
        let ask = |now| limits.count_use(Resource::Questions, || now);
        assert!(ask(0).is_ok() && ask(1).is_ok());
        assert_eq!(ask(2).expect_err("the third").code(), ErrorCode::USER_LIMIT_REACHED);
        assert!(limits.count_use(Resource::Updates, || 2).is_ok(), "these have no limit");
        assert!(ask(HOUR_MICROS).is_ok());
    }

    #[test]
    fn without_limits_the_clock_is_not_read() {
        let limits = AccountLimits::default();
        let clock = || -> i64 { panic!("nobody asked") };
        assert!(limits.count_use(Resource::Questions, clock).is_ok());
        assert!(limits.check_password_current().is_ok());
        let expired = AccountLimits { must_change_password: true, ..limits };
        let refused = expired.check_password_current().expect_err("expired");
        assert_eq!(refused.code(), ErrorCode::MUST_CHANGE_PASSWORD);
    }
}
