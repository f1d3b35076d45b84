//! Statements that run and can be cancelled by the id that their caller chose.

use std::collections::HashMap;

use engine_api::CancelToken;
use sys::sync::Mutex;

/// The running statements by user and id.
#[derive(Default)]
pub struct Running(Mutex<HashMap<(String, String), CancelToken>>);

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
        running.insert(key.clone(), cancel);
        drop(running);
        Some(Registered { running: self, key })
    }

    /// Cancels a statement of the user; false when none has the id.
    pub fn cancel(&self, user: &str, id: &str) -> bool {
        let running = self.0.lock();
        let found = running.get(&(user.to_owned(), id.to_owned()));
        found.map(CancelToken::kill_query).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_cancels() {
        let running = Running::default();
        let registered = running.register("a", "1", CancelToken::new());
        assert!(registered.is_some() && running.register("a", "1", CancelToken::new()).is_none());
        assert!(!running.cancel("b", "1") && running.cancel("a", "1"));
        drop(registered);
        assert!(!running.cancel("a", "1"));
    }
}
