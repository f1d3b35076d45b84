//! Failed log-ins, for accounts that are locked by them. The counts are lost when the server stops, as in the reference.

use catalog::{Account, AccountName, LockTime};
use errors::{Error, ErrorCode, Result};
use hashbrown::HashMap;
use sys::sync::Mutex;

const DAY_MICROS: i64 = 86_400 * 1_000_000;

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    count: u16,
    /// When the count reached the limit of the account.
    locked_micros: Option<i64>,
}

/// Failures of all accounts that have FAILED_LOGIN_ATTEMPTS and PASSWORD_LOCK_TIME; other accounts are not entered.
#[derive(Debug, Default)]
pub struct FailedLogins(Mutex<HashMap<AccountName, Failures>>);

impl FailedLogins {
    /// Counts a failure: error 3955 when the account is locked by it, or already was.
    pub fn count(&self, account: &Account, host: &str, now_micros: i64) -> Option<Error> {
        let policy = &account.password_policy;
        if !policy.locks() {
            return None;
        }
        let mut all = self.0.lock();
        let failures = all.entry(account.name.clone()).or_default();
        if failures.locked_micros.is_some() && days_left(failures, account, now_micros).is_none() {
            *failures = Failures::default();
        }
        if failures.locked_micros.is_none() {
            failures.count += 1;
            if failures.count >= policy.failed_logins_max {
                failures.locked_micros = Some(now_micros);
            }
        }
        let left = days_left(failures, account, now_micros)?;
        Some(locked(account, host, &left, failures.count))
    }

    /// A log-in with the right password: it ends the count, unless the account is locked.
    ///
    /// # Errors
    /// 3955.
    pub fn pass(&self, account: &Account, host: &str, now_micros: i64) -> Result<()> {
        if !account.password_policy.locks() {
            return Ok(());
        }
        let mut all = self.0.lock();
        let Some(failures) = all.get(&account.name) else { return Ok(()) };
        if let Some(left) = days_left(failures, account, now_micros) {
            return Err(locked(account, host, &left, failures.count));
        }
        all.remove(&account.name);
        Ok(())
    }

    /// Restarts the count of an account.
    pub fn forget(&self, name: &AccountName) {
        self.0.lock().remove(name);
    }

    /// FLUSH PRIVILEGES.
    pub fn forget_all(&self) {
        self.0.lock().clear();
    }

    /// RENAME USER.
    pub fn rename(&self, from: &AccountName, to: &AccountName) {
        let mut all = self.0.lock();
        if let Some(failures) = all.remove(from) {
            all.insert(to.clone(), failures);
        }
    }
}

/// The number of days, rounded up, for which an account stays locked; `None` when it is not locked.
fn days_left(failures: &Failures, account: &Account, now_micros: i64) -> Option<String> {
    let since = failures.locked_micros?;
    match account.password_policy.lock_time {
        LockTime::Unbounded => Some(UNBOUNDED.into()),
        LockTime::Days(days) => {
            let passed = now_micros.saturating_sub(since).max(0) / DAY_MICROS;
            let left = i64::from(days) - passed;
            (left > 0).then(|| left.to_string())
        }
    }
}

/// As the text of error 3955 needs it.
const UNBOUNDED: &str = "unlimited";

fn locked(account: &Account, host: &str, left: &str, count: u16) -> Error {
    let days = match account.password_policy.lock_time {
        LockTime::Unbounded => UNBOUNDED.to_owned(),
        LockTime::Days(days) => days.to_string(),
    };
    Error::with(
        ErrorCode::USER_ACCESS_DENIED_FOR_USER_ACCOUNT_BLOCKED_BY_PASSWORD_LOCK,
        &[&account.name.user, &host, &days, &left, &count],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(failed_logins_max: u16, lock_time: LockTime) -> Account {
        let mut account = Account { name: AccountName::new("u", "%"), ..Account::default() };
        account.password_policy.failed_logins_max = failed_logins_max;
        account.password_policy.lock_time = lock_time;
        account
    }

    #[test]
    fn a_lock_ends_with_its_last_day() {
        let logins = FailedLogins::default();
        let account = account(2, LockTime::Days(2));
        assert!(logins.count(&account, "h", 0).is_none());
        assert!(logins.count(&account, "h", 5).is_some());
        let error = logins.pass(&account, "h", DAY_MICROS + 5).expect_err("locked");
        assert!(error.message().contains("for 2 day(s) (1 day(s) remaining) due to 2"));
        assert!(logins.pass(&account, "h", 2 * DAY_MICROS + 5).is_ok());
        // The count restarted.
        assert!(logins.count(&account, "h", 2 * DAY_MICROS + 6).is_none());
    }

    #[test]
    fn success_ends_a_count_and_a_name_keeps_it() {
        let logins = FailedLogins::default();
        let mut account = account(2, LockTime::Unbounded);
        assert!(logins.count(&account, "h", 0).is_none());
        assert!(logins.pass(&account, "h", 1).is_ok());
        assert!(logins.count(&account, "h", 2).is_none());
        let to = AccountName::new("v", "%");
        logins.rename(&account.name, &to);
        account.name = to;
        assert!(logins.count(&account, "h", 3).is_some());
        logins.forget(&account.name);
        assert!(logins.pass(&account, "h", 4).is_ok());
    }
}
