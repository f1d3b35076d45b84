//! The event scheduler: one thread that waits for the next event and gives each due event its own thread and session.
//!
//! A run is written to the dictionary before it begins, so that a crash cannot run an event twice. Runs missed while the server
//! was down or the scheduler off are not made up for, except an event that was to run once.

use std::sync::Arc;
use std::time::Duration;

use catalog::{Catalog, Edit, Event, EventStatus};
use engine_api::CancelToken;
use errors::{ErrorCode, Result};
use hashbrown::HashMap;
use sys::sync::{Condvar, Mutex, MutexGuard};
use types::ZoneRules;
use types::temporal::MICROS_PER_SECOND;

use crate::schedule::next_run;

/// Maximum number of events that run concurrently; others wait.
const RUNNING_MAX: usize = 64;
/// The clock may be set: while the scheduler waits for an event, it reads the clock at least this often.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// When a due event cannot begin, it is tried again after this time.
const RETRY_MICROS: i64 = MICROS_PER_SECOND / 4;
/// How long a stopping server waits for events that were asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Sessions of events have numbers beyond those of connections, which have 32 bits.
const FIRST_SESSION: u64 = 1 << 32;

#[derive(Default)]
struct State {
    /// Since when it is on.
    since_micros: Option<i64>,
    /// Something changed since the events were last checked.
    woken: bool,
    stopping: bool,
    /// By the number of their sessions.
    running: HashMap<u64, CancelToken>,
    sessions: u64,
}

/// State that the scheduler shares with the threads that wake and stop it.
#[derive(Default)]
pub struct EventScheduler {
    state: Mutex<State>,
    changed: Condvar,
    /// Held from the check of an event to the commit of its change, so that statements and runs do not overwrite each other's changes.
    definitions: Mutex<()>,
}

impl EventScheduler {
    /// Until the guard is dropped no other thread changes events. A waiter waits for a commit at most.
    pub fn changing(&self) -> MutexGuard<'_, ()> {
        sys::blocking::blocking(|| self.definitions.lock())
    }

    /// Events or the scheduler's variable have changed.
    pub fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// Ends the thread, and the running events.
    pub fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.running.values().for_each(CancelToken::kill_connection);
        self.changed.notify_all();
        if !state.running.is_empty() {
            drop(self.changed.wait_for(state, STOP_GRACE));
        }
    }

    /// A number for a session that runs an event, and the token that stops it; `None` when no more may run now.
    fn begin(&self) -> Option<(u64, CancelToken)> {
        let mut state = self.state.lock();
        if state.stopping || state.running.len() >= RUNNING_MAX {
            return None;
        }
        let id = FIRST_SESSION + state.sessions;
        state.sessions += 1;
        let cancel = CancelToken::new();
        state.running.insert(id, cancel.clone());
        Some((id, cancel))
    }

    fn end(&self, id: u64) {
        let mut state = self.state.lock();
        state.running.remove(&id);
        if state.running.is_empty() {
            self.changed.notify_all();
        }
    }
}

/// The server whose events the scheduler runs.
pub trait EventHost: Send + Sync {
    /// Microseconds since 1970 UTC.
    fn now_micros(&self) -> i64;

    /// `event_scheduler` is ON.
    fn is_scheduler_on(&self) -> bool;

    /// The catalog.
    fn catalog(&self) -> &Catalog;

    /// The time zone of an event's times.
    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules>;

    /// Runs an event in a separate session with this number, which `cancel` stops.
    ///
    /// # Errors
    /// Errors of the event.
    fn run_event(&self, event: &Event, session: u64, cancel: CancelToken) -> Result<()>;
}

/// Starts the scheduler's thread; it does nothing while `event_scheduler` is not ON.
///
/// # Errors
/// The operating system refuses a thread.
pub fn schedule_events(scheduler: Arc<EventScheduler>, host: Arc<dyn EventHost>) -> Result<()> {
    let scheduling = Scheduling { scheduler, host };
    let started = sys::threads::spawn("events", move || scheduling.run());
    started.map(drop).map_err(|error| errors::Error::internal(error.to_string()))
}

/// State of the scheduler's thread.
struct Scheduling {
    scheduler: Arc<EventScheduler>,
    host: Arc<dyn EventHost>,
}

impl Scheduling {
    fn run(&self) {
        let scheduler = &self.scheduler;
        loop {
            let mut state = scheduler.state.lock();
            if state.stopping {
                return;
            }
            state.woken = false;
            let now = self.host.now_micros();
            let is_on = self.host.is_scheduler_on();
            state.since_micros = if is_on { state.since_micros.or(Some(now)) } else { None };
            let since = state.since_micros;
            drop(state);
            let next = since.and_then(|since| self.run_due_events(since, now));
            let state = scheduler.state.lock();
            if state.woken || state.stopping {
                continue;
            }
            match next {
                Some(next) => {
                    let wait = u64::try_from(next - self.host.now_micros()).unwrap_or(0);
                    let wait = Duration::from_micros(wait).min(WAIT_MAX);
                    drop(scheduler.changed.wait_for(state, wait));
                }
                None => drop(scheduler.changed.wait(state)),
            }
        }
    }

    /// Begins the due events; returns the time of the next one.
    fn run_due_events(&self, since: i64, now: i64) -> Option<i64> {
        let snapshot = self.host.catalog().snapshot();
        let mut next: Option<i64> = None;
        let events = snapshot.schemas().flat_map(|schema| snapshot.events(&schema.name));
        for event in events.filter(|event| event.status == EventStatus::Enabled) {
            let zone = self.host.event_zone(event);
            let at = match next_run(event, &*zone, since) {
                Some(at) if at > now => Some(at),
                Some(_) => self.begin_event(event, &*zone, since, now),
                None => {
                    // Its last run took place before it could be recorded as the last.
                    let _ = self.finish_event(event, event.executed_micros, true);
                    None
                }
            };
            next = [next, at].into_iter().flatten().min();
        }
        next
    }

    /// Records that an event runs and gives it a thread; returns when it is to be checked again.
    fn begin_event(
        &self,
        event: &Arc<Event>,
        zone: &dyn ZoneRules,
        since: i64,
        now: i64,
    ) -> Option<i64> {
        let retry = Some(now + RETRY_MICROS);
        let Some((id, cancel)) = self.scheduler.begin() else { return retry };
        let executed = Event { executed_micros: Some(now), ..Event::clone(event) };
        let later = next_run(&executed, zone, since);
        if let Err(error) = self.finish_event(event, Some(now), later.is_none()) {
            self.scheduler.end(id);
            if error.code() != ErrorCode::EVENT_DOES_NOT_EXIST {
                tracing::error!("event {}.{}: {}", event.schema, event.name, error.message());
            }
            return retry;
        }
        let (host, scheduler, event) = (self.host.clone(), self.scheduler.clone(), event.clone());
        let spawned = sys::threads::spawn("event", move || {
            if let Err(error) = host.run_event(&event, id, cancel) {
                let Event { definer, schema, name, .. } = &*event;
                tracing::error!("event [{definer}][{schema}.{name}] failed: {}", error.message());
            }
            scheduler.end(id);
        });
        if spawned.is_err() {
            self.scheduler.end(id);
        }
        later
    }

    /// Stores when an event ran; after its last run disables or drops it.
    fn finish_event(&self, event: &Arc<Event>, executed: Option<i64>, last: bool) -> Result<()> {
        let _guard = self.scheduler.changing();
        let over = Some(event.clone());
        let edit = if last && !event.preserve {
            Edit::DropEvent { schema: event.schema.clone(), name: event.name.clone(), over }
        } else {
            let status = if last { EventStatus::Disabled } else { event.status };
            let event = Event { executed_micros: executed, status, ..Event::clone(event) };
            Edit::PutEvent { event: Arc::new(event), over }
        };
        self.host.catalog().commit_alone(&[edit], &CancelToken::new()).map(drop)
    }
}
