//! Named locks of GET_LOCK and its family. Knows names and sessions, nothing else.

use std::time::Duration;

use engine_api::{CancelToken, Wait};
use errors::{Result, bail};
use hashbrown::HashMap;
use plugin_api::UserLockView;
use sys::sync::{Condvar, Mutex};

/// Maximum length of a name in characters.
const NAME_CHARS_MAX: usize = 64;
/// How often a waiter checks whether it was cancelled.
const POLL: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct Held {
    session: u64,
    count: u64,
}

#[derive(Debug, Default)]
struct State {
    held: HashMap<String, Held>,
    /// The lock that each waiting session waits for.
    waits: HashMap<u64, String>,
}

/// The server's named locks.
#[derive(Debug, Default)]
pub struct UserLocks {
    state: Mutex<State>,
    released: Condvar,
}

/// Names compare without regard to case.
fn key(name: &str) -> Result<String> {
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        bail!(USER_LOCK_WRONG_NAME, name);
    }
    Ok(name.to_lowercase())
}

impl UserLocks {
    /// The locks that are held, by name.
    pub fn held(&self) -> Vec<UserLockView> {
        let state = self.state.lock();
        let view = |(name, held): (&String, &Held)| UserLockView {
            name: name.clone(),
            session: held.session,
        };
        let mut locks: Vec<UserLockView> = state.held.iter().map(view).collect();
        locks.sort_unstable();
        locks
    }

    /// Takes a lock; a negative timeout waits for ever.
    ///
    /// # Errors
    /// 3057, 3058, cancelled.
    pub fn get(
        &self,
        session: u64,
        name: &str,
        timeout_seconds: f64,
        cancel: &CancelToken,
    ) -> Result<bool> {
        let key = key(name)?;
        if self.try_take(session, &key) {
            return Ok(true);
        }
        let limit = (timeout_seconds >= 0.0)
            .then(|| Duration::try_from_secs_f64(timeout_seconds).unwrap_or(Duration::MAX));
        if limit == Some(Duration::ZERO) {
            return Ok(false);
        }
        let result = sys::blocking::blocking(|| self.wait_for(session, &key, limit, cancel));
        self.state.lock().waits.remove(&session);
        result
    }

    fn try_take(&self, session: u64, key: &str) -> bool {
        self.state.lock().take(session, key)
    }

    fn wait_for(
        &self,
        session: u64,
        key: &str,
        limit: Option<Duration>,
        cancel: &CancelToken,
    ) -> Result<bool> {
        let mut waited = Duration::ZERO;
        let mut state = self.state.lock();
        loop {
            if state.take(session, key) {
                return Ok(true);
            }
            if state.would_deadlock(session, key) {
                bail!(USER_LOCK_DEADLOCK);
            }
            state.waits.insert(session, key.to_owned());
            let step = limit.map_or(POLL, |limit| POLL.min(limit.saturating_sub(waited)));
            if step.is_zero() {
                return Ok(false);
            }
            let waiting = cancel.waiting(Wait::UserLock);
            let counted = sys::waits::enter(sys::waits::Wait::MetadataLock);
            state = self.released.wait_for(state, step);
            drop((waiting, counted));
            waited += step;
            cancel.check()?;
        }
    }

    /// Releases a lock once: `None` when no session holds it, `Some(false)` when another does.
    pub fn release(&self, session: u64, name: &str) -> Option<bool> {
        let key = key(name).ok()?;
        let mut state = self.state.lock();
        let held = state.held.get_mut(&key)?;
        if held.session != session {
            return Some(false);
        }
        held.count -= 1;
        if held.count == 0 {
            state.held.remove(&key);
            self.released.notify_all();
        }
        Some(true)
    }

    /// Releases all locks of a session; returns the number of releases.
    pub fn release_all(&self, session: u64) -> u64 {
        let mut state = self.state.lock();
        let mut count = 0;
        state.held.retain(|_, held| {
            let mine = held.session == session;
            count += if mine { held.count } else { 0 };
            !mine
        });
        if count > 0 {
            self.released.notify_all();
        }
        count
    }

    /// Whether a session holds a lock.
    pub fn holds_any(&self, session: u64) -> bool {
        self.state.lock().held.values().any(|held| held.session == session)
    }

    /// The session that holds a lock.
    pub fn holder(&self, name: &str) -> Option<u64> {
        let key = key(name).ok()?;
        self.state.lock().held.get(&key).map(|held| held.session)
    }
}

impl State {
    fn take(&mut self, session: u64, key: &str) -> bool {
        match self.held.get_mut(key) {
            Some(held) if held.session == session => {
                held.count += 1;
                true
            }
            Some(_) => false,
            None => {
                self.held.insert(key.to_owned(), Held { session, count: 1 });
                true
            }
        }
    }

    /// Whether the holder of `key` waits, through any number of steps, for a lock of `session`.
    fn would_deadlock(&self, session: u64, key: &str) -> bool {
        let mut next = key;
        // Each session waits for at most one lock, so the chain is no longer than their number.
        for _ in 0..=self.waits.len() {
            let Some(held) = self.held.get(next) else { return false };
            if held.session == session {
                return true;
            }
            let Some(waited) = self.waits.get(&held.session) else { return false };
            next = waited;
        }
        false
    }
}
