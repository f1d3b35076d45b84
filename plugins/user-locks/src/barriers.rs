//! Barriers: sessions wait at one until its owner signals or releases it, or until as many wait as it is for.

use std::collections::BTreeMap;

use errors::{Error, ErrorCode, Result};
use plugin_api::{ConnectionEvent, EventSet, Observer};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

/// Barriers that may exist at once.
const BARRIERS_MAX: usize = 10_000;
/// Characters of a name.
const NAME_CHARS_MAX: usize = 64;

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    pub(crate) owner: u64,
    pub(crate) user: String,
    /// As many waiters pass together; 0: only a signal lets them pass.
    pub(crate) limit: u64,
    /// Counts how often waiters were let pass.
    pub(crate) generation: u64,
    pub(crate) waiters: u64,
    /// Sessions that wait for waiters.
    pub(crate) observers: u64,
    /// Distinguishes barriers that had the same name one after the other.
    id: u64,
}

/// All barriers, by name in small letters.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    known: Mutex<BTreeMap<String, Barrier>>,
    made: AtomicU64,
}

/// A session's place at a barrier.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    name: String,
    id: u64,
    generation: u64,
}

fn key(name: &str) -> Result<String> {
    if name.is_empty() || name.chars().count() > NAME_CHARS_MAX {
        return Err(Error::with(ErrorCode(3057), &[&name]));
    }
    Ok(name.to_lowercase())
}

impl Barriers {
    /// Makes a barrier; false when one of its name exists.
    pub(crate) fn create(&self, name: &str, owner: u64, user: &str, limit: u64) -> Result<bool> {
        let key = key(name)?;
        let mut known = self.known.lock();
        if known.contains_key(&key) || known.len() >= BARRIERS_MAX {
            return Ok(false);
        }
        let id = self.made.fetch_add(1, Ordering::Relaxed);
        let user = user.to_owned();
        let barrier = Barrier { owner, user, limit, generation: 0, waiters: 0, observers: 0, id };
        known.insert(key, barrier);
        Ok(true)
    }

    /// Removes a barrier, whose waiters pass. `None`: there is none; false: it is another session's.
    pub(crate) fn release(&self, name: &str, session: u64) -> Result<Option<bool>> {
        let key = key(name)?;
        let mut known = self.known.lock();
        let Some(barrier) = known.get(&key) else { return Ok(None) };
        let is_own = barrier.owner == session;
        if is_own {
            known.remove(&key);
        }
        Ok(Some(is_own))
    }

    /// Lets all waiters pass. `None`: there is no such barrier; false: it is another session's.
    pub(crate) fn signal(&self, name: &str, session: u64) -> Result<Option<bool>> {
        let key = key(name)?;
        let mut known = self.known.lock();
        Ok(known.get_mut(&key).map(|barrier| {
            let is_own = barrier.owner == session;
            if is_own {
                barrier.generation += 1;
            }
            is_own
        }))
    }

    /// Begins to wait; the last one that the barrier is for lets all pass. `None`: there is no such barrier.
    pub(crate) fn enter(&self, name: &str) -> Result<Option<Place>> {
        let key = key(name)?;
        let mut known = self.known.lock();
        Ok(known.get_mut(&key).map(|barrier| {
            let place = Place { name: key.clone(), id: barrier.id, generation: barrier.generation };
            barrier.waiters += 1;
            if barrier.limit > 0 && barrier.waiters >= barrier.limit {
                barrier.generation += 1;
            }
            place
        }))
    }

    /// Whether a waiter may pass.
    pub(crate) fn may_pass(&self, place: &Place) -> bool {
        let known = self.known.lock();
        let barrier = known.get(&place.name).filter(|barrier| barrier.id == place.id);
        barrier.is_none_or(|barrier| barrier.generation != place.generation)
    }

    /// Ends a wait.
    pub(crate) fn leave(&self, place: &Place) {
        let mut known = self.known.lock();
        if let Some(barrier) = known.get_mut(&place.name).filter(|known| known.id == place.id) {
            barrier.waiters -= 1;
        }
    }

    /// Counts a session that waits for waiters in or out.
    pub(crate) fn observe(&self, name: &str, begins: Observing) -> Result<()> {
        let key = key(name)?;
        if let Some(barrier) = self.known.lock().get_mut(&key) {
            barrier.observers = match begins {
                Observing::Begins => barrier.observers + 1,
                Observing::Ends => barrier.observers.saturating_sub(1),
            };
        }
        Ok(())
    }

    /// How many wait; `None`: there is no such barrier.
    pub(crate) fn waiters(&self, name: &str) -> Result<Option<u64>> {
        let key = key(name)?;
        Ok(self.known.lock().get(&key).map(|barrier| barrier.waiters))
    }

    /// All barriers with their names.
    pub(crate) fn all(&self) -> Vec<(String, Barrier)> {
        let known = self.known.lock();
        known.iter().map(|(name, barrier)| (name.clone(), barrier.clone())).collect()
    }

    /// Removes the barriers of a session that ends.
    fn release_all(&self, session: u64) {
        self.known.lock().retain(|_, barrier| barrier.owner != session);
    }
}

/// The two ends of a wait for waiters.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observing {
    Begins,
    Ends,
}

impl Observer for Barriers {
    fn name(&self) -> &'static str {
        "user_locks"
    }

    fn events(&self) -> EventSet {
        EventSet::DISCONNECT
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        self.release_all(event.session.connection_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_waiter_lets_all_pass() {
        let barriers = Barriers::default();
        assert!(barriers.create("B", 1, "u", 2).expect("a name"));
        assert!(!barriers.create("b", 2, "u", 2).expect("a name"), "it exists");
        let first = barriers.enter("b").expect("a name").expect("a barrier");
        assert!(!barriers.may_pass(&first));
        let second = barriers.enter("b").expect("a name").expect("a barrier");
        assert!(barriers.may_pass(&first) && barriers.may_pass(&second));
        barriers.leave(&first);
        barriers.leave(&second);
        assert_eq!(barriers.waiters("b").expect("a name"), Some(0));
    }

    #[test]
    fn signal_release_and_the_end_of_the_owner_let_waiters_pass() {
        let barriers = Barriers::default();
        barriers.create("b", 1, "u", 0).expect("a name");
        let place = barriers.enter("b").expect("a name").expect("a barrier");
        assert_eq!(barriers.signal("b", 2).expect("a name"), Some(false));
        assert!(!barriers.may_pass(&place));
        assert_eq!(barriers.signal("b", 1).expect("a name"), Some(true));
        assert!(barriers.may_pass(&place));
        let next = barriers.enter("b").expect("a name").expect("a barrier");
        assert!(!barriers.may_pass(&next));
        barriers.release_all(1);
        assert!(barriers.may_pass(&next));
        assert_eq!(barriers.release("b", 1).expect("a name"), None);
        barriers.leave(&next);
    }
}
