//! An account's rules for its passwords. Must not know how they are checked.

/// How long an account stays locked after failed log-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockTime {
    /// A number of days; 0: never.
    Days(u16),
    /// Until it is unlocked.
    Unbounded,
}

impl Default for LockTime {
    fn default() -> LockTime {
        LockTime::Days(0)
    }
}

/// The PASSWORD options of an account; an absent one is taken from the system variable.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PasswordPolicy {
    /// EXPIRE INTERVAL; 0 for NEVER.
    pub lifetime_days: Option<u16>,
    /// HISTORY: the number of earlier passwords that may not be used again.
    pub history: Option<u32>,
    /// REUSE INTERVAL: days after which a password may be used again.
    pub reuse_days: Option<u32>,
    /// REQUIRE CURRENT.
    pub require_current: Option<bool>,
    /// FAILED_LOGIN_ATTEMPTS; 0 for any number.
    pub failed_logins_max: u16,
    /// PASSWORD_LOCK_TIME.
    pub lock_time: LockTime,
}

impl PasswordPolicy {
    /// Whether failed log-ins lock the account.
    pub fn locks(&self) -> bool {
        self.failed_logins_max > 0 && self.lock_time != LockTime::Days(0)
    }
}

/// A password that an account has or had.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct EarlierPassword {
    /// Since when, microseconds since 1970 UTC.
    pub since_micros: i64,
    /// As the account's method stores it.
    pub secret: Vec<u8>,
}
