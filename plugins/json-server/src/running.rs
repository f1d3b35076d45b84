//! Statements that run and can be watched and cancelled by the id that their caller chose.

use std::collections::HashMap;

use std::time::Duration;

use engine_api::{CancelToken, Progress};
use sys::sync::Mutex;

/// The running statements by user and id.
#[derive(Default)]
pub struct Running(Mutex<HashMap<(String, String), Statement>>);

struct Statement {
    cancel: CancelToken,
    /// Of the monotonic clock.
    started: Duration,
}

/// Takes a statement out of the list when it ends.
pub struct Registered<'a> {
    running: &'a Running,
    key: (String, String),
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.running.0.lock().remove(&self.key);
    }
}

impl Running {
    /// Lists a statement until the returned value is dropped; `None` when the user's id is in use.
    pub fn register(&self, user: &str, id: &str, cancel: CancelToken) -> Option<Registered<'_>> {
        let key = (user.to_owned(), id.to_owned());
        let mut running = self.0.lock();
        if running.contains_key(&key) {
            return None;
        }
        running.insert(key.clone(), Statement { cancel, started: sys::clock::monotonic() });
        drop(running);
        Some(Registered { running: self, key })
    }

    /// Cancels a statement of the user; false when none has the id.
    pub fn cancel(&self, user: &str, id: &str) -> bool {
        let running = self.0.lock();
        let found = running.get(&(user.to_owned(), id.to_owned()));
        found.map(|statement| statement.cancel.kill_query()).is_some()
    }

    /// For how long a statement of the user has run, and how far it is if it is a long one.
    pub fn state(&self, user: &str, id: &str) -> Option<(Duration, Option<Progress>)> {
        let running = self.0.lock();
        let statement = running.get(&(user.to_owned(), id.to_owned()))?;
        let elapsed = sys::clock::monotonic().saturating_sub(statement.started);
        Some((elapsed, statement.cancel.progress()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_cancels() {
        let running = Running::default();
        let cancel = CancelToken::new();
        let registered = running.register("a", "1", cancel.clone());
        assert!(registered.is_some() && running.register("a", "1", CancelToken::new()).is_none());
        assert!(!running.cancel("b", "1") && running.cancel("a", "1"));
        assert!(running.state("b", "1").is_none());
        assert!(running.state("a", "1").is_some_and(|(_, progress)| progress.is_none()));
        let _long = cancel.long(50);
        let progress = running.state("a", "1").and_then(|(_, progress)| progress);
        assert_eq!(progress.map(|progress| progress.work_expected), Some(50));
        drop(registered);
        assert!(!running.cancel("a", "1"));
    }
}
