//! Turns of long computations: only so many run at a time, and each lets a waiting one run after a while, so that short work of other threads finds a processor.

use std::collections::VecDeque;
use std::time::Duration;

use crate::blocking::blocking;
use crate::clock::monotonic;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex};

/// How long a turn lasts while others wait.
const SLICE: Duration = Duration::from_millis(20);
/// How often a waiting thread looks whether its work was cancelled, and how much less often for each thread that waits with it: looks of hundreds would take
/// the time of those who have turns.
const LOOK: Duration = Duration::from_millis(50);
const LOOK_LATER: Duration = Duration::from_millis(1);

/// A thread that waits.
#[derive(Debug, Default)]
struct Waiter {
    /// Set under the lock of the state by the one who gives it a turn.
    has_turn: AtomicBool,
    given: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// None while somebody waits: a turn that ends goes to the first who waits, and wakes no other.
    free: usize,
    /// In the order in which they came.
    queue: VecDeque<Arc<Waiter>>,
}

/// The turns. Who has one waits for nobody who may wait for one: it only reads and computes.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
    waiting: AtomicUsize,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub struct Turn<'t> {
    turns: &'t Turns,
    since: Duration,
}

impl Turns {
    /// `count` turns at a time, at least one.
    pub fn new(count: usize) -> Turns {
        let state = State { free: count.max(1), ..State::default() };
        Turns { state: Mutex::new(state), waiting: AtomicUsize::new(0) }
    }

    fn turn(&self) -> Turn<'_> {
        Turn { turns: self, since: monotonic() }
    }

    /// Turns that nobody has or waits for.
    pub fn free(&self) -> usize {
        self.state.lock().free
    }

    /// A turn, if one is free and nobody waits.
    pub fn try_take(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.free == 0 {
            return None;
        }
        state.free -= 1;
        drop(state);
        Some(self.turn())
    }

    /// A turn, first come, first served. `None` when `is_over` says so while it waits. The caller holds nothing that others wait for.
    pub fn take(&self, is_over: impl Fn() -> bool) -> Option<Turn<'_>> {
        if let Some(turn) = self.try_take() {
            return Some(turn);
        }
        blocking(|| self.wait(is_over)).then(|| self.turn())
    }

    fn wait(&self, is_over: impl Fn() -> bool) -> bool {
        let own = Arc::new(Waiter::default());
        let mut state = self.state.lock();
        if state.free > 0 {
            state.free -= 1;
            return true;
        }
        state.queue.push_back(own.clone());
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let has_turn = loop {
            let others = u32::try_from(state.queue.len()).unwrap_or(u32::MAX);
            state = own.given.wait_for(state, LOOK + LOOK_LATER.saturating_mul(others));
            if own.has_turn.load(Ordering::Relaxed) {
                break true;
            }
            if is_over() {
                state.queue.retain(|other| !Arc::ptr_eq(other, &own));
                break false;
            }
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        has_turn
    }
}

impl Turn<'_> {
    /// Whether somebody waits and this turn has lasted its time.
    pub fn is_due(&self) -> bool {
        self.turns.waiting.load(Ordering::Relaxed) > 0 && monotonic() - self.since >= SLICE
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        match state.queue.pop_front() {
            None => state.free += 1,
            Some(next) => {
                next.has_turn.store(true, Ordering::Relaxed);
                drop(state);
                next.given.notify_one();
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn no_more_run_than_there_are_turns_and_all_get_theirs() {
        const THREADS: u64 = 12;
        let turns = Arc::new(Turns::new(2));
        let (running, most, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let start = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..50 {
                        let turn = turns.take(|| false).expect("nobody ends it");
                        most.fetch_max(
                            running.fetch_add(1, Ordering::SeqCst) + 1,
                            Ordering::SeqCst,
                        );
                        std::thread::yield_now();
                        running.fetch_sub(1, Ordering::SeqCst);
                        drop(turn);
                        done.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), THREADS * 50);
        assert_eq!((most.into_inner(), turns.free()), (2, 2));
    }

    #[test]
    fn turns_go_to_those_who_wait_in_the_order_in_which_they_came() {
        const WAITERS: usize = 8;
        let turns = Turns::new(1);
        let order = Mutex::new(Vec::new());
        let turn = turns.try_take().expect("it is free");
        std::thread::scope(|scope| {
            for number in 0..WAITERS {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let _turn = turns.take(|| false).expect("nobody ends it");
                    order.lock().push(number);
                });
                while turns.state.lock().queue.len() <= number {
                    std::thread::yield_now();
                }
            }
            assert_eq!(turns.free(), 0);
            drop(turn);
        });
        assert_eq!(*order.lock(), (0..WAITERS).collect::<Vec<_>>());
        assert_eq!(turns.free(), 1);
    }

    #[test]
    fn who_is_cancelled_leaves_the_queue_and_a_turn_is_due_when_somebody_waits() {
        let turns = Turns::new(1);
        let turn = turns.try_take().expect("it is free");
        assert!(turns.try_take().is_none() && turns.take(|| true).is_none());
        std::thread::sleep(SLICE);
        assert!(!turn.is_due(), "nobody waits");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| turns.take(|| false).is_some());
            while !turn.is_due() {
                std::thread::yield_now();
            }
            drop(turn);
            assert!(waiter.join().expect("it ends"));
        });
        assert_eq!(turns.free(), 1);
    }
}
