//! Sessions between two requests of their caller, and the statements that they keep prepared.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::Duration;

use engine_api::CancelToken;
use errors::{Error, Result};
use plugin_api::{ExecuteRequest, ResultSink, SessionHandle};
use sys::sync::Mutex;
use types::Value;

use crate::account::Caller;

/// Idle sessions that are kept for the next request; the one used longest ago makes room.
const IDLE_MAX: usize = 64;
/// A session that no request wants ends after this time.
const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// Statements that a session keeps prepared, and the longest text of one.
const KNOWN_MAX: usize = 16;
const KNOWN_BYTES_MAX: usize = 4 << 10;
/// A statement that has ended within this time so often is expected to do so again.
const SHORT_WITHIN: Duration = Duration::from_micros(300);
const SHORT_RUNS: u8 = 3;

/// Sessions of one key are exchangeable.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    user: String,
    address: IpAddr,
    schema: Option<String>,
}

impl Key {
    /// What a session of the caller with this schema is kept for.
    pub fn new(caller: &Caller, schema: Option<&str>) -> Key {
        Key {
            user: caller.user.clone(),
            address: caller.address.ip(),
            schema: schema.map(str::to_owned),
        }
    }

    fn fits(&self, caller: &Caller, schema: Option<&str>) -> bool {
        self.schema.as_deref() == schema && self.is_of(caller)
    }

    fn is_of(&self, caller: &Caller) -> bool {
        self.address == caller.address.ip() && self.user == caller.user
    }
}

/// A statement that a session keeps prepared.
struct Known {
    sql: Box<str>,
    statement_id: u32,
    parameters: usize,
    /// Runs one after another that gave rows, did not wait, and were short.
    short_runs: u8,
}

/// A session of the JSON server.
pub struct Open {
    /// The session.
    pub session: Box<dyn SessionHandle>,
    /// Ends what runs in it.
    pub cancel: CancelToken,
    /// `CONNECTION_ID()`.
    pub connection_id: u64,
    key: Key,
    known: Vec<Known>,
    /// The place in `known` that the next statement takes when all are taken.
    next: usize,
}

impl Open {
    /// A session that has just logged in.
    pub fn new(
        mut session: Box<dyn SessionHandle>,
        cancel: CancelToken,
        connection_id: u64,
        key: Key,
    ) -> Open {
        session.remember_login();
        Open { session, cancel, connection_id, key, known: Vec::new(), next: 0 }
    }

    /// After another log-in, which closed its statements.
    fn logged_in(&mut self, key: Key) {
        self.session.remember_login();
        self.known.clear();
        self.key = key;
    }

    /// Whether the statement was short each time lately.
    pub fn is_short(&self, sql: &str) -> bool {
        self.find(sql).is_some_and(|at| self.known[at].short_runs >= SHORT_RUNS)
    }

    fn find(&self, sql: &str) -> Option<usize> {
        self.known.iter().position(|known| *known.sql == *sql)
    }

    /// The place of a statement among those that are prepared; `None` when it is too long to keep.
    fn keep_prepared(&mut self, sql: &str) -> Result<Option<usize>> {
        if sql.len() > KNOWN_BYTES_MAX {
            return Ok(None);
        }
        if let Some(at) = self.find(sql) {
            return Ok(Some(at));
        }
        let prepared = self.session.prepare(sql.as_bytes())?;
        let known = Known {
            sql: sql.into(),
            statement_id: prepared.statement_id,
            parameters: prepared.parameters.len(),
            short_runs: 0,
        };
        if self.known.len() < KNOWN_MAX {
            self.known.push(known);
            return Ok(Some(self.known.len() - 1));
        }
        let at = self.next;
        self.next = (at + 1) % KNOWN_MAX;
        self.session.close_statement(self.known[at].statement_id);
        self.known[at] = known;
        Ok(Some(at))
    }

    /// Runs one statement with parameters in a session that is as new: the statement stays prepared for later requests.
    ///
    /// # Errors
    /// The sink refused: the session is lost.
    pub fn run_kept(
        &mut self,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let at = match self.keep_prepared(sql) {
            Ok(Some(at)) => at,
            Ok(None) => return self.run_once(sql, parameters, sink),
            Err(error) => return sink.error(&error),
        };
        let known = &mut self.known[at];
        if known.parameters != parameters.len() {
            return sink.error(&errors::err!(WRONG_ARGUMENTS, "EXECUTE"));
        }
        let statement_id = known.statement_id;
        let request = ExecuteRequest { statement_id, parameters, attributes: &[], cursor: false };
        let (began, waits) = (sys::clock::monotonic(), sys::blocking::waits());
        self.session.execute(&request, sink)?;
        let took = sys::clock::monotonic().saturating_sub(began);
        let is_short = took < SHORT_WITHIN && sys::blocking::waits() == waits;
        known.short_runs = if is_short { (known.short_runs + 1).min(SHORT_RUNS) } else { 0 };
        Ok(())
    }

    /// Runs one statement with parameters and forgets it.
    ///
    /// # Errors
    /// The sink refused: the session is lost.
    pub fn run_once(
        &mut self,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let session = &mut self.session;
        let prepared = match session.prepare(sql.as_bytes()) {
            Ok(prepared) => prepared,
            Err(error) => return sink.error(&error),
        };
        let statement_id = prepared.statement_id;
        if prepared.parameters.len() != parameters.len() {
            session.close_statement(statement_id);
            return sink.error(&errors::err!(WRONG_ARGUMENTS, "EXECUTE"));
        }
        let request = ExecuteRequest { statement_id, parameters, attributes: &[], cursor: false };
        session.execute(&request, sink)?;
        session.close_statement(statement_id);
        Ok(())
    }
}

struct Entry {
    open: Open,
    since: Duration,
}

/// All idle sessions, those used last at the end. Each is as after its log-in.
#[derive(Default)]
pub struct Idle(Mutex<VecDeque<Entry>>);

impl Idle {
    /// A session of the caller that is as after a log-in with `schema` now.
    pub fn take(&self, caller: &Caller, schema: Option<&str>) -> Option<Open> {
        let mut open = self.take_where(|key| key.fits(caller, schema))?;
        open.session.renew().then_some(open)
    }

    /// A session of the caller, logged in again.
    ///
    /// # Errors
    /// The log-in's.
    pub fn log_in_again(&self, caller: &Caller, schema: Option<&str>) -> Result<Option<Open>> {
        let Some(mut open) = self.take_where(|key| key.is_of(caller)) else { return Ok(None) };
        open.session.change_user(&caller.request(schema))?;
        open.logged_in(Key::new(caller, schema));
        Ok(Some(open))
    }

    fn take_where(&self, wanted: impl Fn(&Key) -> bool) -> Option<Open> {
        let mut idle = self.0.lock();
        let is_wanted = |entry: &Entry| wanted(&entry.open.key);
        let at = idle.iter().rposition(is_wanted)?;
        let open = idle.remove(at)?.open;
        drop(idle);
        (!open.cancel.is_connection_killed()).then_some(open)
    }

    /// Keeps a session when its request has left nothing in it; ends it otherwise, and with it what the request left.
    pub fn put(&self, mut open: Open) {
        if open.cancel.is_connection_killed() || !open.session.renew() {
            return;
        }
        let since = sys::clock::monotonic();
        let mut idle = self.0.lock();
        let oldest = if idle.len() < IDLE_MAX { None } else { idle.pop_front() };
        idle.push_back(Entry { open, since });
        drop(idle);
        // Its end takes time: without the lock.
        drop(oldest);
    }

    /// Ends the sessions that nobody wanted for a while.
    pub fn end_old(&self) {
        self.end_before(sys::clock::monotonic().saturating_sub(IDLE_WITHIN));
    }

    /// Ends all.
    pub fn clear(&self) {
        self.end_before(Duration::MAX);
    }

    fn end_before(&self, time: Duration) {
        let ended: Vec<Entry> = {
            let mut idle = self.0.lock();
            let old = idle.iter().take_while(|entry| entry.since < time).count();
            idle.drain(..old).collect()
        };
        drop(ended);
    }
}

/// What a request tells when a session was given back.
pub fn given_back() -> Error {
    Error::internal("a session that was given back")
}
