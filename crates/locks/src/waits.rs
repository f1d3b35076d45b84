//! Who waits for what, and the search for deadlocks. Whom a wait is for is looked up anew in each search: queues change while a
//! transaction stands in them. Knows no lock table.

use std::collections::{HashMap, HashSet};

use sys::sync::{Arc, Mutex};

use crate::owner::{Owner, WaitState};

/// What a transaction waits for.
pub(crate) enum Awaited {
    /// Its turn at a record.
    Record(Box<[u8]>),
    /// The end of others.
    Ends(Vec<u64>),
}

/// Whom a waiter waits for. What goes into the set are waiters whose own are among these: a search need not ask for them, so that a long
/// queue does not cost its square.
pub(crate) trait AwaitedBy: Fn(u64, &Awaited, &mut HashSet<u64>) -> Vec<u64> {}
impl<F: Fn(u64, &Awaited, &mut HashSet<u64>) -> Vec<u64>> AwaitedBy for F {}

type Waiters = HashMap<u64, (Arc<Owner>, Awaited)>;

/// All waits there are.
#[derive(Default)]
pub(crate) struct Waits(Mutex<Waiters>);

impl Waits {
    /// Notes a wait and ends the lightest transaction of each cycle through `owner`; on a tie `owner` itself. In one step: a cycle seen
    /// by a third who merely queues between its members would cost that one too. `awaited` tells whom a waiter waits for,
    /// `is_awaited` whether anybody can wait for `owner` yet: without that there is no cycle.
    pub fn add(
        &self,
        owner: &Arc<Owner>,
        wait: Awaited,
        is_awaited: impl FnOnce(&Awaited) -> bool,
        awaited: impl AwaitedBy,
    ) {
        let mut waiters = self.0.lock();
        let (_, wait) = &*waiters.entry(owner.id).insert_entry((owner.clone(), wait)).into_mut();
        if is_awaited(wait) {
            break_cycles(&mut waiters, owner, &awaited);
        }
    }

    /// As `add` for one who waits already, if it does: somebody may wait for it now who did not when it came.
    pub fn check(&self, owner: &Arc<Owner>, awaited: impl AwaitedBy) {
        let mut waiters = self.0.lock();
        if waiters.contains_key(&owner.id) {
            break_cycles(&mut waiters, owner, &awaited);
        }
    }

    /// The wait is over.
    pub fn remove(&self, owner: &Owner) {
        self.0.lock().remove(&owner.id);
    }
}

fn break_cycles(waiters: &mut Waiters, owner: &Arc<Owner>, awaited: &impl AwaitedBy) {
    while let Some(cycle) = find_cycle(waiters, owner.id, awaited) {
        let weight = |id: &u64| {
            let other = u64::from(*id != owner.id);
            waiters.get(id).map_or((u64::MAX, other), |(owner, _)| (owner.weight(), other))
        };
        let Some(victim) = cycle.into_iter().min_by_key(weight) else { return };
        if let Some((loser, _)) = waiters.remove(&victim) {
            loser.resolve_wait(WaitState::Victim);
        }
        if victim == owner.id {
            return;
        }
    }
}

/// The transactions of a cycle through `start`.
fn find_cycle(waiters: &Waiters, start: u64, awaited: &impl AwaitedBy) -> Option<Vec<u64>> {
    let mut covered = HashSet::new();
    let mut next = |id: u64| match waiters.get(&id) {
        Some((_, wait)) if !covered.contains(&id) => awaited(id, wait, &mut covered),
        _ => Vec::new(),
    };
    let mut seen = HashSet::new();
    // Each element: a transaction, and those it waits for that were not looked at.
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
