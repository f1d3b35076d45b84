//! `max_execution_time` and `max_statement_time`: one thread that stops statements whose time is up. Statements without a limit never come here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, TimeLimit};
use sys::clock::Clock;
use sys::share::Taken;
use sys::sync::{Condvar, Mutex};

/// The token of a statement while it runs; emptied at its end, so that the next statement is never hit.
type Target = Arc<Mutex<Option<(CancelToken, TimeLimit)>>>;

#[derive(Default)]
struct State {
    /// By time, then by a number that makes keys unique.
    due: BTreeMap<(Duration, u64), Target>,
    next: u64,
    started: bool,
    stopping: bool,
}

/// Deadlines of running statements.
pub struct Deadlines {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Removes its deadline when dropped.
pub struct DeadlineGuard {
    deadlines: Arc<Deadlines>,
    key: (Duration, u64),
    target: Target,
}

/// The limits of a statement: its time, and its group's share of the processors. Most statements have none.
pub struct Bounds {
    _time: Option<DeadlineGuard>,
    _share: Option<Taken>,
}

impl Bounds {
    /// Holds as long as it lives. `time`: what stops which statement after which time.
    #[cold]
    pub fn of(
        time: Option<(&Arc<Deadlines>, Duration, &CancelToken)>,
        share: Option<Taken>,
    ) -> Box<Bounds> {
        let after = |(deadlines, limit, cancel): (&Arc<Deadlines>, _, _)| {
            deadlines.after(limit, TimeLimit::Statement, cancel)
        };
        Box::new(Bounds { _time: time.map(after), _share: share })
    }
}

impl Deadlines {
    /// None yet, by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Deadlines {
        Deadlines { clock, state: Mutex::new(State::default()), changed: Condvar::new() }
    }

    /// Stops the statement of `cancel` after `limit`, unless the guard is dropped earlier.
    pub fn after(
        self: &Arc<Self>,
        limit: Duration,
        kind: TimeLimit,
        cancel: &CancelToken,
    ) -> DeadlineGuard {
        let target: Target = Arc::new(Mutex::new(Some((cancel.clone(), kind))));
        let mut state = self.state.lock();
        state.next += 1;
        let key = (self.clock.monotonic().saturating_add(limit), state.next);
        state.due.insert(key, target.clone());
        if !state.started {
            let watcher = self.clone();
            // Without a thread the limit is not enforced, which is better than refusing the statement.
            state.started = sys::threads::spawn("deadlines", move || watcher.watch()).is_ok();
        }
        drop(state);
        self.changed.notify_one();
        DeadlineGuard { deadlines: self.clone(), key, target }
    }

    /// Ends the thread.
    pub fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    fn watch(&self) {
        let mut state = self.state.lock();
        while !state.stopping {
            let now = self.clock.monotonic();
            let Some(((due, _), _)) = state.due.first_key_value() else {
                state = self.changed.wait(state);
                continue;
            };
            if *due > now {
                let wait = *due - now;
                state = self.changed.wait_for(state, wait);
                continue;
            }
            if let Some((_, target)) = state.due.pop_first()
                && let Some((cancel, kind)) = target.lock().take()
            {
                cancel.time_out(kind);
            }
        }
    }
}

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        *self.target.lock() = None;
        self.deadlines.state.lock().due.remove(&self.key);
    }
}
