//! Records statements as they end: by session, by digest, and the last ones one by one.
//!
//! A session's record is behind the mutex of one of a few shards, found by the session's number, so that sessions seldom meet. Totals by
//! user and so on are added up when somebody reads them. Everything has a bound.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use plugin_api::variable::as_u64;
use plugin_api::{
    ConnectionEvent, EventSet, GlobalValue, LoginFailure, Observer, StatementEnd, StatementEvent,
};
use sys::sync::Mutex;
use types::Value;

use crate::accounts::EndedConnections;
use crate::actors::Actors;
use crate::consumers::{Consumer, Consumers};
use crate::digests::{Digest, Digests, cut};
use crate::event_name::command_name;
use crate::samples::Samples;
use crate::stages::Stages;
use crate::sums::Sums;
use crate::switches::Switches;
use crate::table_io::TableIo;
use crate::threads::Threads;
use crate::users::Users;

/// A power of two.
const SHARDS: usize = 16;
/// Kinds of statements and schemas that are told apart for a session; further ones count under the last.
const KINDS_MAX: usize = 256;
/// Sums that outlive their sessions; further ones count together.
const CLOSED_MAX: usize = 10_000;
/// Bytes of a statement's text in the history.
const TEXT_BYTES_MAX: usize = 1024;

/// Whose statements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Who {
    pub(crate) user: String,
    pub(crate) host: String,
    /// `program_name` of the client's attributes.
    pub(crate) application: Option<String>,
}

/// What the sums of a session are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Kind {
    pub(crate) event_name: Arc<str>,
    pub(crate) schema: Option<Arc<str>>,
}

/// A statement that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) session: u64,
    pub(crate) number: u64,
    pub(crate) event_name: Arc<str>,
    pub(crate) started_micros: i64,
    pub(crate) text: String,
    pub(crate) digest: Arc<Digest>,
    pub(crate) schema: Option<Arc<str>>,
    /// Number, SQLSTATE and message of its error.
    pub(crate) error: Option<(u16, String, String)>,
    pub(crate) sums: Sums,
}

/// The record of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionRecord {
    pub(crate) who: Arc<Who>,
    kinds: Vec<(Kind, Sums)>,
    pub(crate) history: VecDeque<Arc<Ended>>,
    numbered: u64,
}

impl SessionRecord {
    /// The sums of all its statements.
    pub(crate) fn total(&self) -> Sums {
        self.kinds.iter().fold(Sums::default(), |mut total, (_, sums)| {
            total.add(sums);
            total
        })
    }

    fn add(&mut self, kind: Kind, sums: &Sums) {
        let known = self.kinds.iter().position(|(other, _)| *other == kind);
        let at = match known {
            Some(at) => at,
            None if self.kinds.len() < KINDS_MAX => {
                self.kinds.push((kind, Sums::default()));
                self.kinds.len() - 1
            }
            None => KINDS_MAX - 1,
        };
        self.kinds[at].1.add(sums);
    }
}

/// Limits, most of which only the command line sets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) digests: GlobalValue,
    pub(crate) history: GlobalValue,
    pub(crate) history_long: GlobalValue,
    /// `perf_sample_every`, which SET changes.
    pub(crate) sample_every: GlobalValue,
}

/// Sums of one session or of closed ones.
pub(crate) struct Row {
    /// `None` for sessions that have ended.
    pub(crate) session: Option<u64>,
    pub(crate) who: Arc<Who>,
    pub(crate) kind: Kind,
    pub(crate) sums: Sums,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) consumers: Consumers,
    limits: Limits,
    sessions: [Mutex<HashMap<u64, SessionRecord>>; SHARDS],
    closed: Mutex<HashMap<(Arc<Who>, Kind), Sums>>,
    history_long: Mutex<VecDeque<Arc<Ended>>>,
    pub(crate) digests: Digests,
    pub(crate) users: Users,
    /// Connections that have ended, by account.
    pub(crate) ended: EndedConnections,
    pub(crate) samples: Samples,
    pub(crate) stages: Stages,
    pub(crate) table_io: TableIo,
    pub(crate) threads: Threads,
    pub(crate) actors: Actors,
}

impl Recorder {
    pub(crate) fn new(limits: Limits) -> Recorder {
        Recorder {
            consumers: Consumers::default(),
            digests: Digests::new(limits.digests.clone()),
            samples: Samples::new(limits.sample_every.clone()),
            limits,
            sessions: Default::default(),
            closed: Mutex::default(),
            history_long: Mutex::default(),
            users: Users::default(),
            ended: EndedConnections::default(),
            stages: Stages::default(),
            table_io: TableIo::default(),
            threads: Threads::default(),
            actors: Actors::default(),
        }
    }

    fn shard(&self, session: u64) -> &Mutex<HashMap<u64, SessionRecord>> {
        &self.sessions[session as usize % SHARDS]
    }

    /// Asks about the record of a session; `None` when it has none.
    pub(crate) fn session<T>(
        &self,
        session: u64,
        ask: impl FnOnce(&SessionRecord) -> T,
    ) -> Option<T> {
        self.shard(session).lock().get(&session).map(ask)
    }

    /// All sums by session and kind; those of sessions that have ended are added up by user.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for shard in &self.sessions {
            for (session, record) in shard.lock().iter() {
                rows.extend(record.kinds.iter().map(|(kind, sums)| Row {
                    session: Some(*session),
                    who: record.who.clone(),
                    kind: kind.clone(),
                    sums: sums.clone(),
                }));
            }
        }
        let closed = self.closed.lock();
        rows.extend(closed.iter().map(|((who, kind), sums)| Row {
            session: None,
            who: who.clone(),
            kind: kind.clone(),
            sums: sums.clone(),
        }));
        rows
    }

    /// The last statements of all sessions, the oldest first.
    pub(crate) fn history_long(&self) -> Vec<Arc<Ended>> {
        self.history_long.lock().iter().cloned().collect()
    }

    pub(crate) fn clear_history(&self) {
        for shard in &self.sessions {
            shard.lock().values_mut().for_each(|record| record.history.clear());
        }
    }

    pub(crate) fn clear_history_long(&self) {
        self.history_long.lock().clear();
    }

    /// Forgets all sums but those by digest.
    pub(crate) fn clear_sums(&self) {
        for shard in &self.sessions {
            shard.lock().values_mut().for_each(|record| record.kinds.clear());
        }
        self.closed.lock().clear();
    }

    /// Whether each recorded statement is measured.
    fn measures_all(&self) -> bool {
        self.consumers.record() && self.consumers.has(Consumer::CPU)
    }

    fn record(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>, switches: Switches) {
        let digest = self.digests.of(event);
        digest.add(event, end);
        let sums = Sums::of(end);
        let session = &event.session;
        let event_name = match command_name(event.command) {
            Some(name) => name.into(),
            None => digest.event_name.clone(),
        };
        let schema: Option<Arc<str>> = session.schema.map(Arc::from);
        let keeps = switches.has_history && self.consumers.has(Consumer::HISTORY);
        let keeps_long = switches.has_history && self.consumers.has(Consumer::HISTORY_LONG);
        let mut shard = self.shard(session.connection_id).lock();
        let record = shard.entry(session.connection_id).or_default();
        if record.who.user != session.user || record.numbered == 0 {
            record.who = Arc::new(who(event));
        }
        record.numbered += 1;
        record.add(Kind { event_name: event_name.clone(), schema: schema.clone() }, &sums);
        if !keeps && !keeps_long {
            return;
        }
        let ended = Arc::new(Ended {
            session: session.connection_id,
            number: record.numbered,
            event_name,
            started_micros: event.started_micros,
            text: cut(&String::from_utf8_lossy(event.text), TEXT_BYTES_MAX).to_owned(),
            digest,
            schema,
            error: end.error.map(|error| {
                let state = String::from_utf8_lossy(&error.sqlstate()).into_owned();
                (error.code().0, state, error.to_string())
            }),
            sums,
        });
        if keeps {
            push(&mut record.history, ended.clone(), self.limits.history.number());
        }
        drop(shard);
        if keeps_long {
            push(&mut self.history_long.lock(), ended, self.limits.history_long.number());
        }
    }

    fn close(&self, session: u64) {
        let Some(record) = self.shard(session).lock().remove(&session) else { return };
        let mut closed = self.closed.lock();
        for (kind, sums) in record.kinds {
            let mut key = (record.who.clone(), kind);
            if closed.len() >= CLOSED_MAX && !closed.contains_key(&key) {
                let event_name = "statement/sql/error".into();
                key = (Arc::default(), Kind { event_name, schema: None });
            }
            closed.entry(key).or_default().add(&sums);
        }
    }
}

fn who(event: &StatementEvent<'_>) -> Who {
    let attributes = (event.connection_attributes)();
    let application = attributes.iter().find(|(name, _)| name == "program_name");
    Who {
        user: event.session.user.to_owned(),
        host: event.session.host.to_owned(),
        application: application.map(|(_, value)| value.clone()),
    }
}

/// Puts one at the end of a ring, whose oldest give way.
pub(crate) fn push<T>(ring: &mut VecDeque<Arc<T>>, ended: Arc<T>, length_max: u64) {
    ring.push_back(ended);
    while ring.len() as u64 > length_max {
        ring.pop_front();
    }
}

impl Observer for Recorder {
    fn name(&self) -> &'static str {
        "statement_costs"
    }

    fn events(&self) -> EventSet {
        let mut events = EventSet::SESSION_COST | EventSet::DISCONNECT | EventSet::LOGIN_FAILURE;
        if !self.actors.is_initial() {
            events = events | EventSet::CONNECT;
        }
        if self.consumers.record() || self.samples.is_on() {
            events = events | EventSet::AFTER_STATEMENT | EventSet::DIGEST;
            if self.measures_all() || self.samples.is_on() {
                events = events | EventSet::COST;
            }
        }
        if self.consumers.record_stages() {
            events = events | EventSet::AFTER_STATEMENT | EventSet::STEPS;
        }
        if self.table_io.is_on() {
            events = events | EventSet::AFTER_STATEMENT | EventSet::TABLES;
        }
        events
    }

    fn measures_next(&self) -> bool {
        self.measures_all() || self.samples.takes_next()
    }

    fn after_statement(&self, event: &StatementEvent<'_>, end: &StatementEnd<'_>) {
        let switches = self.threads.of(event.session.connection_id);
        if !switches.is_instrumented {
            return;
        }
        if self.consumers.record_stages() {
            let keeps = switches.has_history;
            self.stages.record(&self.consumers, (event, end), keeps, || who(event));
        }
        if self.table_io.is_on() {
            self.table_io.add(end.tables);
        }
        let services = event.services;
        let is_session_measured =
            || services.system_variable("statement_cost").is_some_and(|value| as_u64(&value) == 1);
        if self.samples.is_on() {
            let is_sampled = match self.measures_all() || is_session_measured() {
                true => self.samples.takes_next(),
                false => end.cost.is_some(),
            };
            if is_sampled {
                self.samples.keep(event, end, (who(event), self.digests.of(event)));
            }
        }
        if self.consumers.record() || is_session_measured() {
            self.record(event, end, switches);
        }
    }

    fn connected(&self, event: &ConnectionEvent<'_>) {
        let (session, host) = (event.session, event.session.host);
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        self.threads.set(session.connection_id, self.actors.of(session.user, host));
    }

    fn disconnected(&self, event: &ConnectionEvent<'_>) {
        let total = self.session(event.session.connection_id, SessionRecord::total);
        self.users.closed(event.session.user, &(event.counts)(), event.at_micros, total.as_ref());
        self.ended.count(event.session.user, event.session.host);
        self.close(event.session.connection_id);
        self.stages.close(event.session.connection_id);
        self.threads.close(event.session.connection_id);
    }

    fn login_failed(&self, failure: &LoginFailure<'_>) {
        self.users.refused(failure.user, failure.error.is_some());
    }
}

/// A text, or NULL.
pub(crate) fn optional(text: Option<&str>) -> Value {
    text.map_or(Value::Null, Value::text)
}
