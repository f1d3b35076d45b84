//! A share of the processors that a thread has for a while: those that it runs on, and its priority. Helpers that the thread starts have the same share, other threads that it starts have none.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::affinity::{self, Mask, THIS_THREAD};

/// The lowest priority.
const NICENESS_MAX: i32 = 19;

/// A share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// `None` for those that the process may use.
    processors: Option<Mask>,
    niceness: i32,
}

thread_local! {
    static HERE: RefCell<Option<Arc<Share>>> = const { RefCell::new(None) };
}

/// The share of the calling thread.
pub(crate) fn here() -> Option<Arc<Share>> {
    HERE.with_borrow(Clone::clone)
}

/// Whether threads may have other priorities than the process: a priority that was lowered is raised again, which the system allows to some only.
pub fn may_prioritize() -> bool {
    rustix::thread::capabilities(None)
        .is_ok_and(|sets| sets.effective.contains(rustix::thread::CapabilitySet::SYS_NICE))
}

impl Share {
    /// The processors, none for all, and steps of niceness: from -20, the highest priority, to 19.
    pub fn new(processors: &BTreeSet<u32>, niceness: i32) -> Share {
        let processors = (!processors.is_empty()).then(|| Mask::of(processors));
        Share { processors, niceness }
    }

    /// Gives the calling thread the share until the guard is dropped. What the system refuses stays as it is.
    pub fn take(self: &Arc<Share>) -> Taken {
        let processors = match &self.processors {
            Some(_) => affinity::allowed(THIS_THREAD).ok().map(|before| Mask::of(&before)),
            None => None,
        };
        let own = (self.niceness != niceness() && may_prioritize()).then(niceness);
        self.apply();
        let outer = HERE.replace(Some(self.clone()));
        Taken { processors, niceness: own, outer, _of_this_thread: PhantomData }
    }

    /// Gives the calling thread the share for good.
    pub(crate) fn apply(&self) {
        if let Some(processors) = &self.processors {
            let _refused = processors.allow(THIS_THREAD);
        }
        if self.niceness != niceness() && may_prioritize() {
            set_niceness(self.niceness);
        }
    }
}

/// A thread has a share; it has what it had before when this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Taken {
    processors: Option<Mask>,
    niceness: Option<i32>,
    outer: Option<Arc<Share>>,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        HERE.set(self.outer.take());
        if let Some(before) = &self.processors {
            let _refused = before.allow(THIS_THREAD);
            // Whoever moved the thread in the meantime has not moved it for good.
            affinity::moved();
        }
        if let Some(before) = self.niceness {
            set_niceness(before);
        }
    }
}

/// Takes a share that the calling thread inherited from it.
pub(crate) fn give_up() {
    let first = rustix::process::getpriority_process(Some(rustix::process::getpid()));
    if may_prioritize() {
        set_niceness(first.unwrap_or(0));
    }
}

fn niceness() -> i32 {
    // The priority calls take the number of a thread for one thread.
    rustix::process::getpriority_process(Some(rustix::thread::gettid())).unwrap_or(0)
}

fn set_niceness(niceness: i32) {
    let _refused = rustix::process::setpriority_process(Some(rustix::thread::gettid()), niceness);
}

/// Lowers the calling thread's priority by so many steps; where that is refused it stays as it is.
pub(crate) fn lower_priority(steps: i32) {
    set_niceness((niceness() + steps).min(NICENESS_MAX));
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    fn state() -> (BTreeSet<u32>, i32) {
        (affinity::allowed(THIS_THREAD).unwrap(), niceness())
    }

    /// On the real machine.
    #[test]
    fn a_share_is_of_the_thread_and_its_helpers_until_it_ends() {
        let body = || {
            let before = state();
            let Some(last) = before.0.last().copied() else { return };
            let nice = if may_prioritize() { 3 } else { before.1 };
            let inside = (BTreeSet::from([last]), nice);
            let share = Arc::new(Share::new(&inside.0, nice));
            let taken = share.take();
            assert_eq!(state(), inside);
            {
                let all = Arc::new(Share::new(&BTreeSet::new(), before.1));
                let _outer = all.take();
                assert_eq!(state(), (inside.0.clone(), before.1));
            }
            assert_eq!(state(), inside);
            let helpers = crate::threads::together("helper", 2, |_| state());
            assert!(helpers.iter().all(|(processors, _)| *processors == inside.0), "{helpers:?}");
            let (child, seen) = std::sync::mpsc::channel();
            let spawned = crate::threads::spawn("child", move || child.send(state()).unwrap());
            spawned.unwrap().join();
            assert_eq!(seen.recv().unwrap(), before);
            drop(taken);
            assert_eq!(state(), before);
        };
        std::thread::spawn(body).join().unwrap();
    }
}
