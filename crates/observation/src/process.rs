//! A session as other sessions see it: its account, its running statement, and how to stop it.

use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, Wait};
use exec::ConnectionMemory;
use hashbrown::HashMap;
use plugin_api::{CopyProgress, ProcessView, SessionCounts, Traffic};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU64, Ordering};

use crate::resource_groups::GroupPlace;
use statements::status::{Counter, NAMES, SessionCounters};

/// Bytes of a running statement that the process list keeps.
const INFO_BYTES_MAX: usize = 64 * 1024;
/// A text buffer larger than this is freed when its statement ends.
const INFO_BYTES_KEPT: usize = 1024;
/// Bytes of connection attributes that are kept: names and values.
const ATTRIBUTE_BYTES_MAX: usize = 512;
/// The user that the process list shows for events.
pub const EVENT_USER: &str = "event_scheduler";
/// The user that the process list shows for a replica's workers.
pub const APPLIER_USER: &str = "system user";
/// How often a stopping server looks whether sessions have closed.
const STOP_POLL: Duration = Duration::from_millis(10);

/// The current activity of a session.
#[derive(Debug, Default)]
pub struct Activity {
    pub database: Option<Arc<str>>,
    pub user: String,
    pub host: String,
    /// `user@host` of the account.
    pub account: String,
    /// Connection attributes, cut by `kept_attributes`.
    pub attributes: Arc<[(String, String)]>,
    /// Version and cipher of its encryption.
    pub tls: Option<(String, String)>,
    pub command: &'static str,
    pub state: &'static str,
    /// Text of the running statement; empty when idle.
    pub info: Vec<u8>,
    /// Since when, microseconds since 1970 UTC.
    pub since_micros: i64,
    /// Long work within the statement, and when it began.
    pub stage: Option<(&'static str, i64)>,
    /// Slot (`sys::waits::slot`) of the thread that runs the statement, or that ran the last one.
    pub thread: u32,
    /// The copy of rows under way.
    pub copying: Option<CopyProgress>,
}

impl Activity {
    fn is_running(&self) -> bool {
        !matches!(self.command, "Sleep" | "")
    }
}

/// The part of a session that others see.
#[derive(Debug)]
pub struct SessionShared {
    pub id: u64,
    /// When it began, microseconds since 1970 UTC.
    pub opened_micros: i64,
    pub cancel: CancelToken,
    pub counters: SessionCounters,
    pub traffic: Traffic,
    /// What its statements hold.
    pub memory: ConnectionMemory,
    /// Its resource group.
    pub group: GroupPlace,
    /// Contended only by SHOW PROCESSLIST.
    pub activity: Mutex<Activity>,
}

impl SessionShared {
    /// What the session has counted so far.
    pub fn counts(&self) -> SessionCounts {
        let (received, sent) = self.traffic.counts();
        let mut counts = vec![0; NAMES.len()];
        self.counters.add_to(&mut counts);
        let counters = NAMES.iter().copied().zip(counts).collect();
        let (id, opened_micros, socket) = (self.id, self.opened_micros, self.traffic.socket());
        SessionCounts { id, opened_micros, received, sent, socket, counters }
    }
}

impl SessionShared {
    /// Begins a command. Clears a stop request for the previous one first: a session that sees this one run may stop it.
    pub fn begin(&self, command: &'static str, text: &[u8], now_micros: i64) {
        self.cancel.reset_statement();
        let mut activity = self.activity.lock();
        activity.command = command;
        activity.state = "executing";
        activity.since_micros = now_micros;
        activity.thread = sys::waits::slot();
        activity.info.clear();
        activity.info.extend_from_slice(&text[..text.len().min(INFO_BYTES_MAX)]);
    }

    /// Ends a command: the session waits for its client. `slow_micros`: how long a statement may take before it counts as slow.
    pub fn idle(&self, now_micros: i64, slow_micros: i64) {
        let mut activity = self.activity.lock();
        if now_micros.saturating_sub(activity.since_micros) > slow_micros {
            self.counters.add(Counter::SLOW_QUERIES, 1);
        }
        activity.command = "Sleep";
        activity.state = "";
        activity.stage = None;
        activity.since_micros = now_micros;
        activity.info.clear();
        if activity.info.capacity() > INFO_BYTES_KEPT {
            activity.info = Vec::new();
        }
    }
}

/// The process list's word for a wait: the reference's, which has no word for row locks.
fn wait_name(wait: Wait) -> &'static str {
    match wait {
        Wait::RowLock => "Waiting for row lock",
        Wait::MetadataLock => "Waiting for table metadata lock",
        Wait::GlobalReadLock => "Waiting for global read lock",
        Wait::UserLock => "User lock",
        Wait::Sleep => "User sleep",
    }
}

/// As many of a client's attributes as fit the limit; those that do not fit are counted in one more attribute, as in the reference.
pub fn kept_attributes(attributes: &[(String, String)]) -> Arc<[(String, String)]> {
    let bytes = |(name, value): &(String, String)| name.len() + value.len();
    let mut left = ATTRIBUTE_BYTES_MAX;
    let mut lost = 0;
    let mut kept = Vec::with_capacity(attributes.len());
    for attribute in attributes {
        if lost == 0 && bytes(attribute) <= left {
            left -= bytes(attribute);
            kept.push(attribute.clone());
        } else {
            lost += bytes(attribute);
        }
    }
    if lost > 0 {
        kept.push(("_truncated".to_owned(), lost.to_string()));
    }
    kept.into()
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    open: Mutex<HashMap<u64, Arc<SessionShared>>>,
    closed: SessionCounters,
    running: AtomicU64,
    most: AtomicU64,
    /// When the log was told that there is no place, microseconds since 1970 UTC.
    told_full: Mutex<Option<i64>>,
}

impl Sessions {
    pub fn add(&self, session: Arc<SessionShared>) {
        let mut open = self.open.lock();
        open.insert(session.id, session);
        self.most.fetch_max(open.len() as u64, Ordering::Relaxed);
    }

    pub fn remove(&self, id: u64) {
        if let Some(session) = self.open.lock().remove(&id) {
            self.closed.absorb(&session.counters);
        }
    }

    pub fn get(&self, id: u64) -> Option<Arc<SessionShared>> {
        self.open.lock().get(&id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<SessionShared>> {
        self.open.lock().values().cloned().collect()
    }

    pub fn count(&self) -> usize {
        self.open.lock().len()
    }

    /// How many of them are of clients, not of the server itself.
    pub fn clients(&self) -> u64 {
        let open = self.open.lock();
        let is_client = |session: &&Arc<SessionShared>| {
            let activity = session.activity.lock();
            activity.user != EVENT_USER && activity.user != APPLIER_USER
        };
        open.values().filter(is_client).count() as u64
    }

    /// Whether the log is to be told that there is no place: once in a while, however many are refused.
    pub fn tells_full(&self, now_micros: i64, every: Duration) -> bool {
        let mut told = self.told_full.lock();
        let is_due = told.is_none_or(|told| now_micros >= told + every.as_micros() as i64);
        if is_due {
            *told = Some(now_micros);
        }
        is_due
    }

    /// Maximum number of sessions that were open at once.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    /// Kills the sessions with numbers from `first` on, and waits until they are closed, but no longer than `grace`.
    pub fn stop_from(&self, first: u64, grace: Duration) {
        let mut waited = Duration::ZERO;
        loop {
            let open = self.open.lock();
            let mut left = open.values().filter(|session| session.id >= first).peekable();
            if left.peek().is_none() || waited >= grace {
                return;
            }
            left.for_each(|session| session.cancel.kill_connection());
            drop(open);
            sys::threads::sleep(STOP_POLL);
            waited += STOP_POLL;
        }
    }

    /// Kills the sessions of clients whose account (`user@host`) is one of these.
    pub fn kill_accounts(&self, is_one: &dyn Fn(&str) -> bool) {
        for session in self.open.lock().values() {
            let is_event = session.activity.lock().user == EVENT_USER;
            let account = session.activity.lock().account.clone();
            if !is_event && is_one(&account) {
                session.cancel.kill_connection();
            }
        }
    }

    /// Connections of an account (`user@host`).
    pub fn count_of(&self, account: &str) -> usize {
        let open = self.open.lock();
        open.values().filter(|session| session.activity.lock().account == account).count()
    }

    /// Sums of all sessions, closed ones included, in the order of `status::NAMES`.
    pub fn sums(&self) -> Vec<u64> {
        let mut sums = vec![0; NAMES.len()];
        self.closed.add_to(&mut sums);
        for session in self.open.lock().values() {
            session.counters.add_to(&mut sums);
        }
        sums
    }

    /// Bytes received and sent over the open connections.
    pub fn traffic(&self) -> (u64, u64) {
        let open = self.open.lock();
        let counts = open.values().map(|session| session.traffic.counts());
        counts.fold((0, 0), |sums, (received, sent)| (sums.0 + received, sums.1 + sent))
    }

    /// FLUSH STATUS.
    pub fn reset_sums(&self) {
        self.closed.reset();
        for session in self.open.lock().values() {
            session.counters.reset();
        }
    }

    /// Sessions that run a statement.
    pub fn running(&self) -> u64 {
        let open = self.open.lock();
        let busy = open.values().filter(|session| session.activity.lock().command != "Sleep");
        self.running.load(Ordering::Relaxed).max(busy.count() as u64)
    }

    /// What each session has counted, in order of id.
    pub fn counts(&self) -> Vec<SessionCounts> {
        let sessions: Vec<Arc<SessionShared>> = self.open.lock().values().cloned().collect();
        let mut counts: Vec<SessionCounts> =
            sessions.iter().map(|session| session.counts()).collect();
        counts.sort_by_key(|session| session.id);
        counts
    }

    /// One of the process list.
    pub fn view(&self, id: u64, now_micros: i64) -> Option<ProcessView> {
        views_of(vec![self.get(id)?], now_micros).pop()
    }

    /// The process list in order of id.
    pub fn views(&self, now_micros: i64) -> Vec<ProcessView> {
        views_of(self.open.lock().values().cloned().collect(), now_micros)
    }

    /// The part of the process list that runs something.
    pub fn running_views(&self, now_micros: i64) -> Vec<ProcessView> {
        let is_running = |session: &&Arc<SessionShared>| session.activity.lock().is_running();
        let open = self.open.lock();
        let running = open.values().filter(is_running).cloned().collect();
        drop(open);
        let mut views = views_of(running, now_micros);
        // Some may have ended since.
        views.retain(|view| view.thread.is_some());
        views
    }
}

fn views_of(mut sessions: Vec<Arc<SessionShared>>, now_micros: i64) -> Vec<ProcessView> {
    sessions.sort_by_key(|session| session.id);
    let view = |session: &Arc<SessionShared>| {
        let activity = session.activity.lock();
        let elapsed_micros = now_micros.saturating_sub(activity.since_micros).max(0);
        let thread = activity.is_running().then_some(activity.thread);
        let info = (!activity.info.is_empty())
            .then(|| String::from_utf8_lossy(&activity.info).into_owned());
        ProcessView {
            id: session.id,
            user: activity.user.clone(),
            host: activity.host.clone(),
            database: activity.database.as_ref().map(|name| name.to_string()),
            command: activity.command,
            seconds: elapsed_micros as u64 / 1_000_000,
            since_micros: activity.since_micros,
            stage: match (session.cancel.waits_for(), activity.stage) {
                (None, Some(stage)) => stage,
                (wait, _) => (wait.map_or(activity.state, wait_name), activity.since_micros),
            },
            state: session.cancel.waits_for().map_or(activity.state, wait_name),
            info,
            progress: session.cancel.progress(),
            account: activity.account.clone(),
            attributes: activity.attributes.clone(),
            tls: activity.tls.clone(),
            thread: thread.filter(|slot| *slot != sys::waits::NO_SLOT),
            copying: activity.copying.clone(),
            resource_group: session.group.name(),
        }
    };
    sessions.iter().map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_beyond_what_is_kept_are_counted() {
        let named = |name: &str, bytes: usize| (name.to_owned(), "v".repeat(bytes));
        let all = [named("a", 100), named("b", 410)];
        assert_eq!(*kept_attributes(&all), all);
        let kept = kept_attributes(&[named("a", 100), named("b", 411), named("c", 1)]);
        assert_eq!(*kept, [named("a", 100), ("_truncated".to_owned(), "414".to_owned())]);
    }

    #[test]
    fn a_kill_that_follows_the_begin_of_a_statement_counts() {
        let session = SessionShared {
            id: 1,
            opened_micros: 0,
            cancel: CancelToken::new(),
            counters: SessionCounters::default(),
            traffic: Traffic::default(),
            memory: Default::default(),
            group: GroupPlace::default(),
            activity: Mutex::default(),
        };
        session.cancel.kill_query();
        session.begin("Query", b"SELECT 1", 0);
        assert!(!session.cancel.is_cancelled(), "the statement before was meant");
        session.cancel.kill_query();
        assert!(session.cancel.is_cancelled());
    }
}
