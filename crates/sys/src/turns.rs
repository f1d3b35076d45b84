//! Turns of long computations: only so many run at a time, and each lets a waiting one run after a while, so that short work of other threads finds a processor.

use std::collections::VecDeque;
use std::time::Duration;

use crate::blocking::blocking;
use crate::clock::monotonic;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex};

/// How long a turn lasts while others wait.
const SLICE: Duration = Duration::from_millis(20);
/// How often a waiting thread looks whether its work was cancelled.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Default)]
struct State {
    free: usize,
    last_ticket: u64,
    /// Tickets in the order in which they came.
    queue: VecDeque<u64>,
}

/// The turns. Who has one waits for nobody who may wait for one: it only reads and computes.
#[derive(Debug)]
pub struct Turns {
    state: Mutex<State>,
    freed: Condvar,
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
        Turns { state: Mutex::new(state), freed: Condvar::new(), waiting: AtomicUsize::new(0) }
    }

    fn turn(&self) -> Turn<'_> {
        Turn { turns: self, since: monotonic() }
    }

    /// Turns that nobody has or waits for.
    pub fn free(&self) -> usize {
        let state = self.state.lock();
        state.free.saturating_sub(state.queue.len())
    }

    /// A turn, if one is free and nobody waits.
    pub fn try_take(&self) -> Option<Turn<'_>> {
        let mut state = self.state.lock();
        if state.free == 0 || !state.queue.is_empty() {
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
        let mut state = self.state.lock();
        state.last_ticket += 1;
        let ticket = state.last_ticket;
        state.queue.push_back(ticket);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let has_turn = loop {
            if state.free > 0 && state.queue.front() == Some(&ticket) {
                state.queue.pop_front();
                state.free -= 1;
                break true;
            }
            if is_over() {
                state.queue.retain(|other| *other != ticket);
                break false;
            }
            state = self.freed.wait_for(state, LOOK);
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(state);
        // The next in the queue may have been waiting for this one to go.
        self.freed.notify_all();
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
        self.turns.state.lock().free += 1;
        self.turns.freed.notify_all();
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Barrier};

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
