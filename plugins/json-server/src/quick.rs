//! Short statements on the thread that read their request: no other thread has to wake up for them.
//!
//! A statement is expected to be short when it was so each time lately. When one has to wait all the same, `sys::blocking` tells the runtime, which
//! has another thread go on with the sockets. Some threads are always left to read and write; one of them looks at the sockets again when a watch
//! sees that a statement takes longer than it should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hyper::{Method, StatusCode};
use sys::sync::{Condvar, Mutex};
use tokio::runtime::Handle;

use crate::call::{Call, Incoming};
use crate::finish::{self, Origin};
use crate::gateway::Gateway;
use crate::reply::Reply;
use crate::routes;

/// Larger bodies are read on another thread.
const BODY_BYTES_MAX: usize = 8 << 10;
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
struct Room<'a>(&'a Quick);

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

    fn enter(&self) -> Option<Room<'_>> {
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

/// Answers a request by a statement that is expected to be short, when everything for it is at hand.
pub fn answer(gateway: &Arc<Gateway>, request: &Incoming) -> Option<Reply> {
    if request.method != Method::POST
        || request.path != routes::SQL_PATH
        || request.body.len() > BODY_BYTES_MAX
        || finish::origin(&request.headers, "") != Origin::Own
    {
        return None;
    }
    let _room = gateway.quick.enter()?;
    let call = Call::identify_at_hand(gateway, request)?;
    let around = |body: &mut dyn FnMut()| tokio::task::block_in_place(body);
    let run = || sys::blocking::released_by(around, || routes::run_short(&call));
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Some(fault()))
}

/// The answer when a handler panicked.
pub fn fault() -> Reply {
    Reply::failure(StatusCode::INTERNAL_SERVER_ERROR, "the request ended by a fault of the server")
}
