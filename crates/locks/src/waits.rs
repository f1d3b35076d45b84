//! The waits of transactions, and the search for deadlocks. The transactions that a wait is for are looked up again in each search: queues change while a
//! transaction is in them. Independent of the lock table.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use sys::clock::{Clock as _, RealClock};
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::sync::{Arc, Mutex};

use crate::owner::{Owner, WaitState};
use crate::report::{Deadlock, Place};

/// The object of a transaction's wait.
#[derive(Clone)]
pub(crate) enum Awaited {
    /// Its turn at a record.
    Record(Box<[u8]>),
    /// The end of other transactions; with the name of the key to insert into a range that they have locked, if that is the reason.
    Ends(Vec<u64>, Option<Box<[u8]>>),
}

/// Returns the transactions that a waiter waits for. Adds to the set waiters that wait only for some of these: a search need not visit them, so that a long
/// queue does not take quadratic time.
pub(crate) trait AwaitedBy: Fn(u64, &Awaited, &mut HashSet<u64>) -> Vec<u64> {}
impl<F: Fn(u64, &Awaited, &mut HashSet<u64>) -> Vec<u64>> AwaitedBy for F {}

/// A waiting transaction.
#[derive(Clone)]
pub(crate) struct Waiting {
    owner: Arc<Owner>,
    wait: Awaited,
    since: Duration,
}

impl Waiting {
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Since 1970.
    pub fn since(&self) -> Duration {
        self.since
    }

    /// The key that it wants to insert, and the transactions whose end it waits for.
    pub fn insert(&self) -> Option<(&[u8], &[u64])> {
        match &self.wait {
            Awaited::Ends(others, Some(name)) => Some((name, others)),
            Awaited::Ends(_, None) | Awaited::Record(_) => None,
        }
    }
}

type Waiters = HashMap<u64, Waiting>;

/// All waits.
pub(crate) struct Waits {
    waiters: Mutex<Waiters>,
    /// Deadlock detection is off; the lock wait timeout of a member ends a deadlock.
    is_blind: AtomicBool,
    latest: Mutex<Option<Deadlock>>,
    clock: RealClock,
}

impl Waits {
    pub fn new() -> Waits {
        Waits {
            waiters: Mutex::default(),
            is_blind: AtomicBool::new(false),
            latest: Mutex::default(),
            clock: RealClock::new(),
        }
    }

    /// Records a wait and ends the lightest transaction of each cycle through `owner`; on a tie `owner` itself. In one step: otherwise a cycle found
    /// by a third transaction that only queues between its members would end that one too. `awaited` returns the transactions that a waiter waits for,
    /// `is_awaited` says whether any transaction can wait for `owner` yet: if not, no cycle exists.
    pub fn add(
        &self,
        owner: &Arc<Owner>,
        wait: Awaited,
        is_awaited: impl FnOnce(&Awaited) -> bool,
        awaited: impl AwaitedBy,
    ) {
        let since = self.clock.wall_coarse();
        let mut waiters = self.waiters.lock();
        let waiting = Waiting { owner: owner.clone(), wait, since };
        let waiting = &*waiters.entry(owner.id).insert_entry(waiting).into_mut();
        if is_awaited(&waiting.wait) {
            self.break_cycles(&mut waiters, owner, &awaited);
        }
    }

    /// Like `add` for a transaction that may already wait: others may have begun to wait for it since.
    pub fn check(&self, owner: &Arc<Owner>, awaited: impl AwaitedBy) {
        let mut waiters = self.waiters.lock();
        if waiters.contains_key(&owner.id) {
            self.break_cycles(&mut waiters, owner, &awaited);
        }
    }

    /// Removes an ended wait.
    pub fn remove(&self, owner: &Owner) {
        self.waiters.lock().remove(&owner.id);
    }

    /// Switches the search for cycles, from the next wait on.
    pub fn set_detection(&self, detects: bool) {
        self.is_blind.store(!detects, Ordering::Relaxed);
    }

    /// A copy of all waits.
    pub fn views(&self) -> Vec<Waiting> {
        self.waiters.lock().values().cloned().collect()
    }

    /// The cycle that was found last.
    pub fn latest_deadlock(&self) -> Option<Deadlock> {
        self.latest.lock().clone()
    }

    fn break_cycles(&self, waiters: &mut Waiters, owner: &Arc<Owner>, awaited: &impl AwaitedBy) {
        if self.is_blind.load(Ordering::Relaxed) {
            return;
        }
        while let Some(cycle) = find_cycle(waiters, owner.id, awaited) {
            let weight = |id: &&u64| {
                let other = u64::from(**id != owner.id);
                waiters.get(*id).map_or((u64::MAX, other), |one| (one.owner.weight(), other))
            };
            let Some(victim) = cycle.iter().min_by_key(weight).copied() else { return };
            *self.latest.lock() = Some(self.describe(waiters, &cycle, victim));
            if let Some(loser) = waiters.remove(&victim) {
                loser.owner.resolve_wait(WaitState::Victim);
            }
            if victim == owner.id {
                return;
            }
        }
    }

    fn describe(&self, waiters: &Waiters, cycle: &[u64], victim: u64) -> Deadlock {
        let members = cycle.iter().filter_map(|id| {
            let member = waiters.get(id)?;
            let place = match &member.wait {
                Awaited::Record(name) => Place::Record(name.clone()),
                Awaited::Ends(_, name) => Place::Insert(name.clone().unwrap_or_default()),
            };
            Some((member.owner.view_since(Some(member.since)), place))
        });
        Deadlock { at: self.clock.wall_coarse(), members: members.collect(), victim }
    }
}

/// The transactions of a cycle through `start`.
fn find_cycle(waiters: &Waiters, start: u64, awaited: &impl AwaitedBy) -> Option<Vec<u64>> {
    let mut covered = HashSet::new();
    let mut next = |id: u64| match waiters.get(&id) {
        Some(waiting) if !covered.contains(&id) => awaited(id, &waiting.wait, &mut covered),
        _ => Vec::new(),
    };
    let mut seen = HashSet::new();
    // Each element: a transaction, and those it waits for that were not visited yet.
    let mut path = vec![(start, next(start))];
    while let Some((_, rest)) = path.last_mut() {
        match rest.pop() {
            None => drop(path.pop()),
            Some(other) if other == start => {
                return Some(path.into_iter().map(|(id, _)| id).collect());
            }
            Some(other) if seen.insert(other) => path.push((other, next(other))),
            Some(_) => {}
        }
    }
    None
}
