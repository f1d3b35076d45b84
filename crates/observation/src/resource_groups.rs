//! The resource group of a session, which others may change.

use std::sync::Arc;

use catalog::{EffectivePrivileges, ResourceGroup};
use errors::{Error, Result, bail};
use sys::share::{Share, Taken};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering};

use crate::process::Sessions;

/// A group that sessions are in.
#[derive(Debug)]
struct Joined {
    name: Arc<str>,
    share: Arc<Share>,
}

impl Joined {
    fn new(group: &ResourceGroup) -> Joined {
        let share = Share::new(&group.processors, group.priority);
        Joined { name: group.name.clone(), share: Arc::new(share) }
    }
}

#[derive(Debug, Default)]
struct Place {
    own: Option<Joined>,
    /// Of the running statement alone.
    hinted: Option<Joined>,
}

/// The group of a session; the default one has no share of its own.
#[derive(Debug, Default)]
pub struct GroupPlace {
    has_own: AtomicBool,
    place: Mutex<Place>,
}

impl GroupPlace {
    /// Puts the session into a group, into the default one without a group. Counts from its next statement on.
    pub fn put(&self, group: Option<&ResourceGroup>) {
        let mut place = self.place.lock();
        place.own = group.map(Joined::new);
        self.has_own.store(place.own.is_some(), Ordering::Relaxed);
    }

    /// Whether the session is in the default group.
    #[inline]
    pub fn is_default(&self) -> bool {
        !self.has_own.load(Ordering::Relaxed)
    }

    /// The group's name; `None` for the default one.
    pub fn name(&self) -> Option<Arc<str>> {
        let place = self.place.lock();
        place.hinted.as_ref().or(place.own.as_ref()).map(|joined| joined.name.clone())
    }

    /// Gives the calling thread the group's share of the processors, for one statement.
    #[inline]
    pub fn enter(&self) -> Option<Taken> {
        if self.is_default() {
            return None;
        }
        let share = self.place.lock().own.as_ref()?.share.clone();
        Some(share.take())
    }

    /// The same with the group that a hint names.
    pub fn enter_hinted(&self, group: &ResourceGroup) -> Hinted<'_> {
        let joined = Joined::new(group);
        let _taken = joined.share.take();
        let outer = self.place.lock().hinted.replace(joined);
        debug_assert!(outer.is_none(), "a client's own statement runs in no other");
        Hinted { place: self, _taken }
    }

    fn is_in(&self, name: &str) -> bool {
        let place = self.place.lock();
        [&place.own, &place.hinted].into_iter().flatten().any(|joined| &*joined.name == name)
    }
}

/// A statement runs in the group that its hint names.
#[derive(Debug)]
#[must_use]
pub struct Hinted<'p> {
    place: &'p GroupPlace,
    _taken: Taken,
}

impl Drop for Hinted<'_> {
    fn drop(&mut self) {
        self.place.place.lock().hinted = None;
    }
}

/// Numbers of threads that serve no connection begin here.
const BACKGROUND: u64 = 1 << 32;

/// Whether the account may put sessions into groups.
pub fn may_use_groups(privileges: &EffectivePrivileges) -> bool {
    ["RESOURCE_GROUP_ADMIN", "RESOURCE_GROUP_USER"].iter().any(|name| privileges.has_dynamic(name))
}

/// Checks a group that a session is to be in.
///
/// # Errors
/// 3661 with `why`.
pub fn check_for_session(group: &ResourceGroup, thread: u64, why: &str) -> Result<()> {
    if group.is_system {
        bail!(RESOURCE_GROUP_BIND_FAILED, group.name, thread, why);
    }
    Ok(())
}

/// Says once for a statement that a priority has no effect.
fn note_priority(group: &ResourceGroup) {
    if group.priority != 0 && !sys::share::may_prioritize() {
        tracing::warn!(
            "the system does not let the server change priorities: that of the resource group {} has no effect",
            group.name
        );
    }
}

impl Sessions {
    /// SET RESOURCE GROUP of session `own` for these threads, for itself without any. Returns what is wrong with some of several threads.
    ///
    /// # Errors
    /// 3657, 3660, 3661; 1235 for threads that serve no connection.
    pub fn set_group(
        &self,
        group: &ResourceGroup,
        is_default: bool,
        own: u64,
        threads: &[u64],
    ) -> Result<Vec<Error>> {
        if !group.is_enabled {
            bail!(RESOURCE_GROUP_DISABLED, group.name);
        }
        note_priority(group);
        let join = |thread: u64, why: &str| self.join(group, is_default, thread, why);
        match threads {
            [] => join(own, "System resource group can't be applied to user thread.")?,
            [thread] => join(*thread, "Resource group type and thread type doesn't match.")?,
            threads => {
                let why = "Resource group type & thread type doesn't match.";
                return Ok(threads.iter().filter_map(|thread| join(*thread, why).err()).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Puts the session of a thread into a group.
    fn join(&self, group: &ResourceGroup, is_default: bool, thread: u64, why: &str) -> Result<()> {
        let Some(found) = self.get(thread) else {
            let threads = sys::waits::threads();
            if !threads.iter().any(|known| BACKGROUND + u64::from(known.thread_id) == thread) {
                bail!(INVALID_THREAD_ID, thread);
            }
            if group.is_system {
                let what = "SET RESOURCE GROUP for threads that serve no connection";
                return Err(Error::not_supported(what));
            }
            bail!(RESOURCE_GROUP_BIND_FAILED, group.name, thread, why);
        };
        check_for_session(group, thread, why)?;
        found.group.put((!is_default).then_some(group));
        Ok(())
    }

    /// Whether sessions are in a group.
    pub fn are_in_group(&self, name: &str) -> bool {
        self.all().iter().any(|session| session.group.is_in(name))
    }

    /// A group has changed: its sessions are in the new one from their next statement on, or leave it.
    pub fn change_group(&self, name: &str, group: Option<&ResourceGroup>) {
        for session in self.all() {
            let is_own = {
                let place = session.group.place.lock();
                place.own.as_ref().is_some_and(|joined| &*joined.name == name)
            };
            if is_own {
                session.group.put(group);
            }
        }
    }
}
