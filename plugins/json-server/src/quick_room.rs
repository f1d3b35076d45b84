//! How many statements may run on the threads that read requests, and the watch that has another thread look at the sockets.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use sys::sync::{Condvar, Mutex};
use tokio::runtime::Handle;

/// The watch's step: a statement is overdue after one to two of them.
const WATCH_STEP: Duration = Duration::from_millis(5);
/// Steps without a statement after which the watch sleeps.
const WATCH_IDLE_STEPS: u32 = 200;
/// How long it sleeps at most.
const WATCH_SLEEP: Duration = Duration::from_secs(1);

/// The statements that run on threads that read requests.
pub struct Quick {
    most: usize,
    running: AtomicUsize,
    /// Statements begun and ended.
    turns: AtomicU64,
    watch_sleeps: AtomicBool,
    is_stopping: Mutex<bool>,
    wake: Condvar,
}

/// Room for one statement.
pub struct Room<'a>(&'a Quick);

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
        self.0.turns.fetch_add(1, Ordering::Relaxed);
    }
}

impl Quick {
    /// Up to `most` statements at one time.
    pub fn new(most: usize) -> Quick {
        Quick {
            most,
            running: AtomicUsize::new(0),
            turns: AtomicU64::new(0),
            watch_sleeps: AtomicBool::new(false),
            is_stopping: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// Room for one more statement, until the result is dropped.
    pub fn enter(&self) -> Option<Room<'_>> {
        let more = |running| (running < self.most).then_some(running + 1);
        self.running.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        self.turns.fetch_add(1, Ordering::Relaxed);
        if self.watch_sleeps.load(Ordering::Relaxed) {
            self.wake.notify_one();
        }
        Some(Room(self))
    }

    /// Has a thread look at the sockets whenever a statement keeps a reading thread for long. Returns when `stop` was called.
    pub fn watch(&self, runtime: &Handle) {
        let (mut seen, mut idle_steps) = (0, 0);
        while !*self.is_stopping.lock() {
            sys::threads::sleep(WATCH_STEP);
            let turns = self.turns.load(Ordering::Relaxed);
            let is_running = self.running.load(Ordering::Relaxed) > 0;
            if is_running && turns == seen {
                // A thread wakes up for the task, and stays with the sockets when it is done.
                runtime.spawn(async {});
            }
            idle_steps = if is_running || turns != seen { 0 } else { idle_steps + 1 };
            seen = turns;
            if idle_steps > WATCH_IDLE_STEPS {
                self.watch_sleeps.store(true, Ordering::Relaxed);
                let is_stopping = self.is_stopping.lock();
                if !*is_stopping {
                    drop(self.wake.wait_at_most(is_stopping, WATCH_SLEEP));
                }
                self.watch_sleeps.store(false, Ordering::Relaxed);
            }
        }
    }

    /// Ends the watch.
    pub fn stop(&self) {
        *self.is_stopping.lock() = true;
        self.wake.notify_all();
    }
}
