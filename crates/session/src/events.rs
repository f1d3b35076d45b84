//! The event scheduler: one thread that waits for the next event and gives each that is due a thread and a session of its own.
//!
//! A run is written to the dictionary before it begins, so that a crash cannot run an event twice. Runs that were missed while the server
//! was down or the scheduler off are not made up for, except an event that was to run once.

use std::sync::Arc;
use std::time::Duration;

use catalog::{AccountName, Edit, Event, EventSchedule, EventStatus, EventStep};
use engine_api::CancelToken;
use errors::{ErrorCode, Result, bail};
use hashbrown::HashMap;
use plugin_api::{AuthRequest, ConnectInfo, ConnectionKind, Traffic};
use sys::sync::{Condvar, Mutex, MutexGuard};
use types::temporal::MICROS_PER_SECOND;
use types::{FixedOffset, Value, ZoneRules};

use crate::server::Server;
use crate::session::Session;

/// Events that run at one time; others wait.
const RUNNING_MAX: usize = 64;
/// The clock may be set: it is looked at this often at least while an event is waited for.
const WAIT_MAX: Duration = Duration::from_secs(60);
/// When what is due cannot begin, it is tried again after this time.
const RETRY_MICROS: i64 = MICROS_PER_SECOND / 4;
/// How long a stopping server waits for events that were told to stop.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// Sessions of events have numbers beyond those of connections, which have 32 bits.
const FIRST_SESSION: u64 = 1 << 32;

#[derive(Default)]
struct State {
    /// Since when it is on.
    since_micros: Option<i64>,
    /// Something changed since the events were looked at.
    woken: bool,
    stopping: bool,
    /// By the number of their sessions.
    running: HashMap<u64, CancelToken>,
    sessions: u64,
}

/// What the scheduler shares with those who wake and stop it.
#[derive(Default)]
pub(crate) struct EventScheduler {
    state: Mutex<State>,
    changed: Condvar,
    /// Held from looking at an event to the commit of its change, so that statements and runs do not undo each other's.
    definitions: Mutex<()>,
}

impl EventScheduler {
    /// Until the guard is dropped nobody else changes events. Whoever waits for it waits for a commit at most.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        sys::blocking::blocking(|| self.definitions.lock())
    }

    /// Events or the scheduler's variable have changed.
    pub(crate) fn wake(&self) {
        self.state.lock().woken = true;
        self.changed.notify_all();
    }

    /// Ends the thread, and the events that run.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.stopping = true;
        state.running.values().for_each(CancelToken::kill_connection);
        self.changed.notify_all();
        if !state.running.is_empty() {
            drop(self.changed.wait_for(state, STOP_GRACE));
        }
    }

    /// A number for a session that runs an event, and what stops it; `None` when no more may run now.
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

/// The next moment at which an event that is enabled runs; `since`: what was before that is missed. `None`: never again.
fn next_run(event: &Event, zone: &dyn ZoneRules, since_micros: i64) -> Option<i64> {
    let (step, starts, ends) = match &event.schedule {
        EventSchedule::At(at) => return event.executed_micros.is_none().then_some(*at),
        EventSchedule::Every { step, starts, ends, .. } => (*step, *starts, *ends),
    };
    let second = |micros: i64| micros - micros.rem_euclid(MICROS_PER_SECOND);
    let after = event.executed_micros.map_or(second(event.altered_micros), |last| last + 1);
    let least = after.max(second(since_micros)).max(starts);
    let next = match step {
        EventStep::Seconds(seconds) => {
            let step = seconds as i64 * MICROS_PER_SECOND;
            starts + (least - starts + step - 1) / step * step
        }
        EventStep::Months(months) => next_by_months(starts, months as i64, least, zone)?,
    };
    ends.is_none_or(|ends| next <= ends).then_some(next)
}

fn next_by_months(starts: i64, step: i64, least: i64, zone: &dyn ZoneRules) -> Option<i64> {
    let (first, wanted) = (zone.utc_to_local(starts), zone.utc_to_local(least));
    let months = |at: types::DateTime| {
        let date = at.date();
        i64::from(date.year()) * 12 + i64::from(date.month())
    };
    let mut count = ((months(wanted) - months(first)) / step).max(0);
    loop {
        // Beyond the calendar it never runs again.
        let moment = zone.local_to_utc(first.add_months(count * step)?)?;
        if moment >= least {
            return Some(moment);
        }
        count += 1;
    }
}

impl Server {
    /// Starts the event scheduler; it does nothing while `event_scheduler` is not ON.
    ///
    /// # Errors
    /// The operating system refuses a thread.
    pub fn start_events(&self) -> Result<()> {
        let server = self.arc()?;
        let started = sys::threads::spawn("events", move || server.schedule_events());
        started.map(drop).map_err(|error| errors::Error::internal(error.to_string()))
    }

    /// The zone in which an event's times are understood.
    pub(crate) fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules> {
        self.zone(&event.time_zone).unwrap_or_else(|| Arc::new(FixedOffset::utc()))
    }

    fn schedule_events(&self) {
        let scheduler = &self.events;
        loop {
            let mut state = scheduler.state.lock();
            if state.stopping {
                return;
            }
            state.woken = false;
            let now = self.now_micros();
            let is_on = self.globals.text("event_scheduler") == "ON";
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
                    let wait = u64::try_from(next - self.now_micros()).unwrap_or(0);
                    let wait = Duration::from_micros(wait).min(WAIT_MAX);
                    drop(scheduler.changed.wait_for(state, wait));
                }
                None => drop(scheduler.changed.wait(state)),
            }
        }
    }

    /// Begins what is due; returns when the next one is.
    fn run_due_events(&self, since: i64, now: i64) -> Option<i64> {
        let snapshot = self.catalog.snapshot();
        let mut next: Option<i64> = None;
        let events = snapshot.schemas().flat_map(|schema| snapshot.events(&schema.name));
        for event in events.filter(|event| event.status == EventStatus::Enabled) {
            let zone = self.event_zone(event);
            let moment = match next_run(event, &*zone, since) {
                Some(at) if at > now => Some(at),
                Some(_) => self.begin_event(event, &*zone, since, now),
                None => {
                    // Its last run was before it could be written that it was the last.
                    let _ = self.settle_event(event, event.executed_micros, true);
                    None
                }
            };
            next = [next, moment].into_iter().flatten().min();
        }
        next
    }

    /// Writes that an event runs and gives it a thread; returns when it is to be looked at again.
    fn begin_event(
        &self,
        event: &Arc<Event>,
        zone: &dyn ZoneRules,
        since: i64,
        now: i64,
    ) -> Option<i64> {
        let retry = Some(now + RETRY_MICROS);
        let Some((id, cancel)) = self.events.begin() else { return retry };
        let executed = Event { executed_micros: Some(now), ..Event::clone(event) };
        let later = next_run(&executed, zone, since);
        if let Err(error) = self.settle_event(event, Some(now), later.is_none()) {
            self.events.end(id);
            if error.code() != ErrorCode::EVENT_DOES_NOT_EXIST {
                tracing::error!("event {}.{}: {}", event.schema, event.name, error.message());
            }
            return retry;
        }
        let (Ok(server), event) = (self.arc(), event.clone()) else { return None };
        let spawned = sys::threads::spawn("event", move || {
            let outcome = Session::open_for_event(server.clone(), id, cancel, &event)
                .and_then(|mut session| session.run_event(&event));
            if let Err(error) = outcome {
                let Event { definer, schema, name, .. } = &*event;
                tracing::error!("event [{definer}][{schema}.{name}] failed: {}", error.message());
            }
            server.events.end(id);
        });
        if spawned.is_err() {
            self.events.end(id);
        }
        later
    }

    /// Writes when an event ran; after its last run it is disabled, or gone.
    fn settle_event(&self, event: &Arc<Event>, executed: Option<i64>, last: bool) -> Result<()> {
        let _guard = self.events.changing();
        let over = Some(event.clone());
        let edit = if last && !event.preserve {
            Edit::DropEvent { schema: event.schema.clone(), name: event.name.clone(), over }
        } else {
            let status = if last { EventStatus::Disabled } else { event.status };
            let event = Event { executed_micros: executed, status, ..Event::clone(event) };
            Edit::PutEvent { event: Arc::new(event), over }
        };
        self.catalog.commit_alone(&[edit], &CancelToken::new()).map(drop)
    }
}

impl Session {
    /// A session in which an event runs, as its definer.
    fn open_for_event(
        server: Arc<Server>,
        id: u64,
        cancel: CancelToken,
        event: &Event,
    ) -> Result<Session> {
        const USER: &str = "event_scheduler";
        let info = ConnectInfo {
            connection_id: id,
            kind: ConnectionKind::Local,
            cancel,
            traffic: Traffic::default(),
        };
        let collation = types::CollationId::UTF8MB4_0900_AI_CI.0;
        let request = AuthRequest { user: USER.into(), collation, ..AuthRequest::default() };
        let mut session = Session::new(server, info, &request);
        let definer: AccountName = ::accounts::parse_account(&event.definer);
        let snapshot = session.server.catalog.snapshot();
        let account = snapshot.accounts().get(&definer).cloned();
        if account.is_none() && &*definer.user != "root" {
            bail!(NO_SUCH_USER, definer.user, definer.host);
        }
        session.active_roles = account.map(|known| known.default_roles.clone()).unwrap_or_default();
        session.account = definer;
        session.services.user = format!("{USER}@localhost");
        session.services.current_user = event.definer.to_string();
        session.refresh_privileges();
        session.describe_roles();
        {
            let mut activity = session.shared.activity.lock();
            activity.user = USER.into();
            activity.host = "localhost".into();
            activity.account = event.definer.to_string();
        }
        session.set_client_collation(collation);
        session.store_session("time_zone", Value::text(&event.time_zone));
        session.refresh_settings();
        Ok(session)
    }
}

#[cfg(test)]
mod tests {
    use types::Utc;

    use super::*;

    const DAY: i64 = 86_400 * MICROS_PER_SECOND;

    fn every(step: EventStep, starts: i64, ends: Option<i64>, executed: Option<i64>) -> Event {
        Event {
            schema: "s".into(),
            name: "e".into(),
            schedule: EventSchedule::Every { step, unit: "DAY".into(), starts, ends },
            status: EventStatus::Enabled,
            preserve: false,
            comment: "".into(),
            body: "DO 1".into(),
            definer: "root@localhost".into(),
            sql_mode: 0,
            time_zone: "UTC".into(),
            created_micros: 0,
            altered_micros: 0,
            executed_micros: executed,
            charset_client: "utf8mb4".into(),
            collation_connection: "utf8mb4_bin".into(),
            database_collation: types::CollationId::UTF8MB4_0900_AI_CI,
        }
    }

    #[test]
    fn an_event_runs_at_its_start_and_then_step_by_step() {
        let step = EventStep::Seconds(86_400);
        let next = |executed, since| next_run(&every(step, DAY, None, executed), &Utc, since);
        assert_eq!(next(None, 0), Some(DAY));
        assert_eq!(next(Some(DAY), 0), Some(2 * DAY));
        assert_eq!(next(Some(DAY + 5), 0), Some(2 * DAY));
        // What was missed is not made up for.
        assert_eq!(next(Some(DAY), 10 * DAY + 5 * MICROS_PER_SECOND), Some(11 * DAY));
        let ends = Some(3 * DAY);
        let ending = |executed| next_run(&every(step, DAY, ends, executed), &Utc, 0);
        assert_eq!(ending(Some(2 * DAY)), Some(3 * DAY));
        assert_eq!(ending(Some(3 * DAY)), None);
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        // 1970-01-31.
        let event = |executed| every(EventStep::Months(1), 30 * DAY, None, Some(executed));
        assert_eq!(next_run(&event(30 * DAY), &Utc, 0), Some(58 * DAY));
        assert_eq!(next_run(&event(58 * DAY), &Utc, 0), Some(89 * DAY));
        assert_eq!(next_run(&event(100 * DAY), &Utc, 0), Some(119 * DAY));
    }
}
