//! Hourly limits of accounts: what each account that has one used so far. Accounts without limits never come here.

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

/// What one account used in the present hour.
#[derive(Debug, Default)]
pub struct Usage(Mutex<Used>);

/// What a session's account may use.
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
