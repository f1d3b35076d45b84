//! Failed log-ins, so that nobody tries passwords at full speed. They are counted by address alone and by address with account: failures at one
//! address keep nobody out who logs in from another.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use sys::sync::Mutex;

/// Failures to one account from one address within `WINDOW` before the pair has to wait.
const OF_ACCOUNT_MAX: u32 = 20;
/// The same to all accounts: more, for addresses that many people share.
const OF_ADDRESS_MAX: u32 = 100;
const WINDOW: Duration = Duration::from_secs(60);
/// Origins that failures are remembered of.
const ORIGINS_MAX: usize = 4096;

/// An address, and the account when it is counted by itself.
type Origin = (IpAddr, Option<String>);

/// When the first of the latest failures was, and how many there were since.
type Count = (Duration, u32);

/// The failures of the last minute.
#[derive(Default)]
pub struct Failures(Mutex<HashMap<Origin, Count>>);

impl Failures {
    /// Whether there were so many that the next attempt has to wait.
    pub fn are_many(&self, address: IpAddr, user: &str, now: Duration) -> bool {
        let failures = self.0.lock();
        let many = |origin: Origin, most: u32| {
            failures
                .get(&origin)
                .is_some_and(|(since, count)| *count >= most && now.saturating_sub(*since) < WINDOW)
        };
        many((address, None), OF_ADDRESS_MAX)
            || many((address, Some(user.to_owned())), OF_ACCOUNT_MAX)
    }

    /// An attempt has failed.
    pub fn count(&self, address: IpAddr, user: &str, now: Duration) {
        let mut failures = self.0.lock();
        for origin in [(address, None), (address, Some(user.to_owned()))] {
            if failures.len() >= ORIGINS_MAX {
                failures.retain(|_, (since, _)| now.saturating_sub(*since) < WINDOW);
            }
            if failures.len() >= ORIGINS_MAX && !failures.contains_key(&origin) {
                continue;
            }
            let entry = failures.entry(origin).or_insert((now, 0));
            if now.saturating_sub(entry.0) >= WINDOW {
                *entry = (now, 0);
            }
            entry.1 += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stranger_keeps_out_nobody_elsewhere() {
        let failures = Failures::default();
        let (stranger, owner) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..10_000 {
            failures.count(stranger, "root", SECOND);
        }
        assert!(failures.are_many(stranger, "root", SECOND));
        assert!(failures.are_many(stranger, "other", SECOND), "it tries too much");
        assert!(!failures.are_many(owner, "root", SECOND));
        assert!(!failures.are_many(stranger, "root", SECOND + WINDOW));
    }

    #[test]
    fn people_who_share_an_address_are_counted_apart() {
        let failures = Failures::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        for _ in 0..OF_ACCOUNT_MAX {
            assert!(!failures.are_many(address, "a", SECOND));
            failures.count(address, "a", SECOND);
        }
        assert!(failures.are_many(address, "a", SECOND));
        assert!(!failures.are_many(address, "b", SECOND));
    }

    #[test]
    fn memory_is_bounded() {
        let failures = Failures::default();
        for number in 0..3 * ORIGINS_MAX as u32 {
            failures.count(IpAddr::from(number.to_be_bytes()), "root", SECOND);
        }
        assert!(failures.0.lock().len() <= ORIGINS_MAX);
        failures.count(IpAddr::from([255; 4]), "root", SECOND + 2 * WINDOW);
        assert_eq!(failures.0.lock().len(), 2, "old ones make room");
    }
}
