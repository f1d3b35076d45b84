//! Semi-synchronous replication, the source's side: the reply to a commit waits until replicas have said that they have it.
//!
//! A commit is visible to others when it is durable here, before replicas have it: the wait point is AFTER_COMMIT. Readers that acknowledge get
//! two bytes before each event; the last event of what there is to send asks for an acknowledgement, which names the place after it.

use std::time::Duration;

use engine_api::CommitHandle;
use errors::{Error, Result};
use plugin_api::variable::{Definition, Kind, as_text, as_u64, uint};
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
    "AFTER_COMMIT",
    "When a commit waits: after others see it; AFTER_SYNC is not supported",
);

/// A place in the log: number of the file and offset.
type Place = (u64, u64);

#[derive(Default)]
struct State {
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

    /// The connection is gone.
    pub(crate) fn remove(&self, connection: u64) {
        self.state.lock().replicas.retain(|(known, _)| *known != connection);
        self.changed.notify_all();
    }

    /// A replica has all up to the place that its packet names; `end`: the end of the log.
    ///
    /// # Errors
    /// 1105 for a packet that is no acknowledgement.
    pub(crate) fn acknowledge(&self, connection: u64, packet: &[u8], end: Place) -> Result<()> {
        let malformed = || Error::internal("a malformed acknowledgement of a replica");
        let Some((&MAGIC, rest)) = packet.split_first() else { return Err(malformed()) };
        let (offset, name) = rest.split_first_chunk::<8>().ok_or_else(malformed)?;
        let name = std::str::from_utf8(name).map_err(|_| malformed())?;
        let number = file_number(name).ok_or_else(malformed)?;
        let place = (number, u64::from_le_bytes(*offset));
        let mut state = self.state.lock();
        let own = state.replicas.iter_mut().filter(|(known, _)| *known == connection);
        own.for_each(|(_, known)| *known = place.max(*known));
        if state.has_fallen_back && state.at(end) >= self.replica_count.number() {
            state.has_fallen_back = false;
            tracing::info!(file = name, offset = place.1, "commits wait for replicas again");
        }
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
                    state.has_fallen_back = true;
                    state.fallen_back += 1;
                    let (file, replicas) = (file_name(place.0), state.replicas.len());
                    tracing::warn!(
                        file,
                        offset = place.1,
                        replicas,
                        "replicas did not acknowledge a commit in time: commits do not wait for them until they have caught up"
                    );
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
    registrar.checked_variable(&WAIT_POINT, &own.wait_point, |value| {
        match as_text(value).eq_ignore_ascii_case("AFTER_SYNC") {
            true => Err(Error::not_supported("rpl_semi_sync_source_wait_point = AFTER_SYNC")),
            false => Ok(()),
        }
    });
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
    ("Rpl_semi_sync_source_wait_sessions", |state| state.waiting),
    ("Rpl_semi_sync_source_yes_tx", |state| state.acknowledged),
];

/// Registers the numbers of SHOW STATUS.
pub(crate) fn register_numbers(core: &std::sync::Arc<Core>, registrar: &mut Registrar<'_>) {
    for (name, read) in NUMBERS {
        let core = core.clone();
        registrar.status(name, move || read(&core.semi_sync.state.lock()).to_string());
    }
}
