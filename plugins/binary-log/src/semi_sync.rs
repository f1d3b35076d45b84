//! Semi-synchronous replication, the source's side: the reply to a commit waits until replicas have said that they have it.
//!
//! With the wait point AFTER_SYNC the engine holds commits back: they are durable, and so in the log, but nobody sees them before replicas
//! have them. With AFTER_COMMIT others see a commit when it is durable here. Readers that acknowledge get two bytes before each event;
//! the last event of what there is to send asks for an acknowledgement, which names the place after it.

use std::collections::VecDeque;
use std::time::Duration;

use engine_api::{CommitHandle, Engine};
use errors::{Error, Result};
use plugin_api::variable::{Definition, Kind, as_u64, uint};
use plugin_api::{GlobalValue, Registrar};
use sys::sync::{Condvar, Mutex};

use crate::core::{Core, file_name, file_number};

/// Begins the two bytes before an event, and an acknowledgement.
pub(crate) const MAGIC: u8 = 0xef;
/// How often a wait looks whether something else has changed.
const STEP: Duration = Duration::from_millis(100);

static ENABLED: Definition = Definition::global(
    "rpl_semi_sync_source_enabled",
    Kind::Bool,
    "OFF",
    "The reply to a commit waits until replicas have acknowledged it",
);
static TIMEOUT: Definition = Definition::global(
    "rpl_semi_sync_source_timeout",
    uint(0, u32::MAX as u64),
    "10000",
    "Milliseconds that a commit waits for replicas; then none waits until they have caught up",
);
static REPLICA_COUNT: Definition = Definition::global(
    "rpl_semi_sync_source_wait_for_replica_count",
    uint(1, 65_535),
    "1",
    "Replicas that must have acknowledged a commit",
);
static WAIT_NO_REPLICA: Definition = Definition::global(
    "rpl_semi_sync_source_wait_no_replica",
    Kind::Bool,
    "ON",
    "Commits wait also while fewer replicas are connected than must acknowledge",
);
static WAIT_POINT: Definition = Definition::global(
    "rpl_semi_sync_source_wait_point",
    Kind::Enum(&["AFTER_SYNC", "AFTER_COMMIT"]),
    "AFTER_SYNC",
    "When a commit waits: before others see it, or after",
);

/// A place in the log: number of the file and offset.
pub(crate) type Place = (u64, u64);

/// A commit that is in the log's files and not to be seen yet.
struct Held {
    position: u64,
    /// Where it ends in the files.
    end: Place,
    since: Duration,
}

#[derive(Default)]
struct State {
    /// The engine holds commits back.
    is_holding: bool,
    /// Those of them that replicas can have, in order.
    held: VecDeque<Held>,
    /// Every commit with a smaller position has been written to the files or has nothing there.
    passed: u64,
    /// Connections that acknowledge, and up to where they have.
    replicas: Vec<(u64, Place)>,
    /// A commit waited in vain, and the replicas have not caught up since.
    has_fallen_back: bool,
    /// Commits that were acknowledged and that were not, and how often it fell back.
    acknowledged: u64,
    unacknowledged: u64,
    fallen_back: u64,
    /// Commits that wait now, that have waited, and how long those did.
    waiting: u64,
    waits: u64,
    waited: Duration,
}

impl State {
    /// Replicas that have all up to a place.
    fn at(&self, place: Place) -> u64 {
        self.replicas.iter().filter(|(_, known)| *known >= place).count() as u64
    }

    /// No commit waits any more until the replicas have caught up.
    fn fall_back(&mut self, place: Place) {
        self.has_fallen_back = true;
        self.fallen_back += 1;
        let (file, replicas) = (file_name(place.0), self.replicas.len());
        tracing::warn!(
            file,
            offset = place.1,
            replicas,
            "replicas did not acknowledge a commit in time: commits do not wait for them until they have caught up"
        );
    }

    /// Lets those commits be seen that enough replicas have, and all others that have nothing in the log.
    fn release(&mut self, wanted: u64, engine: &dyn Engine) {
        if !self.is_holding {
            return;
        }
        let now = sys::clock::monotonic();
        while let Some(first) = self.held.front().filter(|first| self.at(first.end) >= wanted) {
            (self.waits, self.acknowledged) = (self.waits + 1, self.acknowledged + 1);
            self.waited += now.saturating_sub(first.since);
            self.held.pop_front();
        }
        engine.hold_commits(self.held.front().map_or(self.passed, |first| first.position));
    }
}

/// Who waits for whom.
#[derive(Default)]
pub(crate) struct SemiSync {
    enabled: GlobalValue,
    timeout: GlobalValue,
    replica_count: GlobalValue,
    wait_no_replica: GlobalValue,
    wait_point: GlobalValue,
    state: Mutex<State>,
    changed: Condvar,
}

impl SemiSync {
    /// Whether commits are to wait.
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled.is_on()
    }

    /// A connection that acknowledges begins to read.
    pub(crate) fn add(&self, connection: u64) {
        self.state.lock().replicas.push((connection, (0, 0)));
        tracing::info!(connection, "a replica that acknowledges transactions reads the log");
    }

    /// Begins or ends to hold commits back, as the settings say and the replicas do. `written`: commits that have come to the files, and where
    /// each ends there; every commit below `passed` is there, if it has anything for them.
    pub(crate) fn written(
        &self,
        engine: &dyn Engine,
        written: impl Iterator<Item = (u64, Place)>,
        passed: u64,
    ) {
        let is_after_commit = || self.wait_point.text().eq_ignore_ascii_case("AFTER_COMMIT");
        let is_wanted = self.is_enabled() && !is_after_commit();
        let mut state = self.state.lock();
        if !is_wanted && !state.is_holding {
            return;
        }
        let since = sys::clock::monotonic();
        state.passed = passed;
        if state.is_holding {
            state.held.extend(written.map(|(position, end)| Held { position, end, since }));
        }
        let limit = Duration::from_millis(self.timeout.number());
        let has_few = (state.replicas.len() as u64) < self.replica_count.number();
        let is_alone = has_few && !self.wait_no_replica.is_on();
        let late = state.held.front().filter(|first| is_alone || since - first.since >= limit);
        if let Some(end) = late.map(|first| first.end)
            && is_wanted
        {
            state.fall_back(end);
        }
        if !is_wanted || state.has_fallen_back {
            return SemiSync::let_go(&mut state, engine);
        }
        if !state.is_holding {
            // What is seen already stays so.
            state.is_holding = true;
            debug_assert!(state.held.is_empty(), "nothing was held");
        }
        state.release(self.replica_count.number(), engine);
    }

    /// Holds nothing back any more: the files cannot be written, or the server stops.
    pub(crate) fn stop_holding(&self, engine: &dyn Engine) {
        SemiSync::let_go(&mut self.state.lock(), engine);
    }

    fn let_go(state: &mut State, engine: &dyn Engine) {
        if std::mem::take(&mut state.is_holding) {
            state.unacknowledged += state.held.len() as u64;
            state.waits += state.held.len() as u64;
            state.held.clear();
            engine.hold_commits(u64::MAX);
        }
    }

    /// Whether commits are held back now.
    pub(crate) fn is_holding(&self) -> bool {
        self.state.lock().is_holding
    }

    /// The connection is gone.
    pub(crate) fn remove(&self, connection: u64) {
        self.state.lock().replicas.retain(|(known, _)| *known != connection);
        self.changed.notify_all();
    }

    /// A replica has all up to the place that its packet names; `end`: the end of the log.
    ///
    /// # Errors
    /// 1105 for a packet that is no acknowledgement.
    pub(crate) fn acknowledge(&self, core: &Core, connection: u64, packet: &[u8]) -> Result<()> {
        let malformed = || Error::internal("a malformed acknowledgement of a replica");
        let Some((&MAGIC, rest)) = packet.split_first() else { return Err(malformed()) };
        let (offset, name) = rest.split_first_chunk::<8>().ok_or_else(malformed)?;
        let name = std::str::from_utf8(name).map_err(|_| malformed())?;
        let number = file_number(name).ok_or_else(malformed)?;
        let place = (number, u64::from_le_bytes(*offset));
        let end = core.end();
        let mut state = self.state.lock();
        let own = state.replicas.iter_mut().filter(|(known, _)| *known == connection);
        own.for_each(|(_, known)| *known = place.max(*known));
        if state.has_fallen_back && state.at(end) >= self.replica_count.number() {
            state.has_fallen_back = false;
            tracing::info!(file = name, offset = place.1, "commits wait for replicas again");
        }
        state.release(self.replica_count.number(), &*core.engine);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until enough replicas have what was committed, or as long as the settings say.
    ///
    /// # Errors
    /// The engine's log cannot be written.
    pub(crate) fn wait(&self, core: &Core, commit: Option<&CommitHandle>) -> Result<()> {
        if !self.is_enabled() {
            return Ok(());
        }
        if self.state.lock().has_fallen_back {
            self.state.lock().unacknowledged += 1;
            return Ok(());
        }
        if self.is_holding() {
            // The engine holds it back until replicas have it, or for as long as they are waited for.
            let Some(commit) = commit else { return Ok(()) };
            return commit.wait().map_err(|e| e.into_error(&engine_api::CancelToken::new()));
        }
        let since = sys::clock::monotonic();
        let until = since + Duration::from_millis(self.timeout.number());
        sys::blocking::blocking(|| {
            if let Some(commit) = commit {
                commit.wait().map_err(|e| e.into_error(&engine_api::CancelToken::new()))?;
            }
            let Ok(()) = core.catch_up() else {
                // The files cannot be written, which is reported elsewhere: replicas get nothing.
                self.state.lock().unacknowledged += 1;
                return Ok(());
            };
            self.wait_for(core.end(), since, until);
            Ok(())
        })
    }

    fn wait_for(&self, place: Place, since: Duration, until: Duration) {
        let mut state = self.state.lock();
        state.waiting += 1;
        loop {
            let wanted = self.replica_count.number();
            let now = sys::clock::monotonic();
            if state.at(place) >= wanted {
                state.acknowledged += 1;
                break;
            }
            let is_alone = !self.wait_no_replica.is_on() && (state.replicas.len() as u64) < wanted;
            if now >= until || is_alone || state.has_fallen_back || !self.is_enabled() {
                state.unacknowledged += 1;
                if !state.has_fallen_back && self.is_enabled() {
                    state.fall_back(place);
                    self.changed.notify_all();
                }
                break;
            }
            state = self.changed.wait_for(state, until.saturating_sub(now).min(STEP));
        }
        debug_assert!(state.waiting > 0, "who waits was counted");
        state.waiting -= 1;
        state.waits += 1;
        state.waited += sys::clock::monotonic().saturating_sub(since);
    }
}

/// Registers the settings and what tells of them.
pub(crate) fn register(core: &std::sync::Arc<Core>, registrar: &mut Registrar<'_>) {
    let own = &core.semi_sync;
    let of_set = core.clone();
    registrar.checked_variable(&ENABLED, &own.enabled, move |value| {
        if as_u64(value) != 0 && !of_set.is_on() {
            return Err(errors::err!(NO_BINARY_LOGGING));
        }
        of_set.semi_sync.state.lock().has_fallen_back = false;
        Ok(())
    });
    registrar.variable(&TIMEOUT, &own.timeout);
    registrar.variable(&REPLICA_COUNT, &own.replica_count);
    registrar.variable(&WAIT_NO_REPLICA, &own.wait_no_replica);
    registrar.variable(&WAIT_POINT, &own.wait_point);
    let core = core.clone();
    registrar.status("Rpl_semi_sync_source_status", move || {
        let is_on = core.semi_sync.is_enabled() && !core.semi_sync.state.lock().has_fallen_back;
        if is_on { "ON".to_owned() } else { "OFF".to_owned() }
    });
}

/// A number of the state, as a row of SHOW STATUS.
type Read = fn(&State) -> u64;

const NUMBERS: [(&str, Read); 8] = [
    ("Rpl_semi_sync_source_clients", |state| state.replicas.len() as u64),
    ("Rpl_semi_sync_source_no_times", |state| state.fallen_back),
    ("Rpl_semi_sync_source_no_tx", |state| state.unacknowledged),
    ("Rpl_semi_sync_source_tx_avg_wait_time", |state| {
        (state.waited.as_micros() as u64).checked_div(state.waits).unwrap_or(0)
    }),
    ("Rpl_semi_sync_source_tx_wait_time", |state| state.waited.as_micros() as u64),
    ("Rpl_semi_sync_source_tx_waits", |state| state.waits),
    ("Rpl_semi_sync_source_wait_sessions", |state| state.waiting + state.held.len() as u64),
    ("Rpl_semi_sync_source_yes_tx", |state| state.acknowledged),
];

/// Registers the numbers of SHOW STATUS.
pub(crate) fn register_numbers(core: &std::sync::Arc<Core>, registrar: &mut Registrar<'_>) {
    for (name, read) in NUMBERS {
        let core = core.clone();
        registrar.status(name, move || read(&core.semi_sync.state.lock()).to_string());
    }
}
