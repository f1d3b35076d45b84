//! The way from a request to the server: log-ins and sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use engine_api::CancelToken;
use errors::Result;
use plugin_api::{ConnectInfo, ResultSink, SessionFactory, SessionHandle, Traffic};
use sys::sync::Mutex;
use types::Value;

use crate::account::{Accounts, Caller};
use crate::change_readers::Readers;
use crate::held::Held;
use crate::idle::{self, Idle, Key, Open};
use crate::live::Live;
use crate::quick_room::Quick;
use crate::running::Running;
use crate::settings::Settings;
use crate::tokens::Tokens;
use plugin_api::Answer;

/// Connection ids of this protocol: those of the MySQL protocol have 32 bits, and functions' sessions begin at 2^48.
const FIRST_CONNECTION: u64 = 1 << 40;
/// Rows that a call may hold in memory to build its answer from.
pub const ROWS_HELD_MAX: usize = 100_000;

/// Shared by all requests.
pub struct Gateway {
    /// The settings.
    pub settings: Settings,
    /// Opens sessions.
    pub sessions: Arc<dyn SessionFactory>,
    /// Checks passwords.
    pub accounts: Accounts,
    /// Log-ins that last.
    pub tokens: Tokens,
    /// Statements that can be cancelled.
    pub running: Running,
    /// Sessions that outlive their request.
    pub held: Held,
    /// Statements that run where their request was read.
    pub quick: Quick,
    /// Counters of the server over time.
    pub live: Live,
    /// What cancels the sessions that requests use, by connection id.
    active: Mutex<HashMap<u64, CancelToken>>,
    connections: AtomicU64,
    /// Sessions for the next requests.
    pub idle: Idle,
    /// Who reads changes.
    pub readers: Readers,
}

/// A session between two requests of the same caller, with everything that is open in it.
pub struct Kept(Open);

impl Kept {
    /// How long its transaction may be idle.
    pub fn idle_limit(&self) -> Option<Duration> {
        self.0.session.idle_transaction_limit().map(|(_, limit)| limit)
    }
}

/// A session that belongs to one request. It is used again by a later one when it is given back with nothing left open.
pub struct Lease<'a> {
    gateway: &'a Gateway,
    open: Option<Open>,
    /// Nothing has run in it for the request yet.
    is_new: bool,
}

impl Gateway {
    /// No session yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(
        sessions: Arc<dyn SessionFactory>,
        settings: Settings,
        quick_max: usize,
    ) -> std::io::Result<Gateway> {
        Ok(Gateway {
            settings,
            accounts: Accounts::new(sessions.clone())?,
            sessions,
            tokens: Tokens::default(),
            running: Running::default(),
            held: Held::default(),
            quick: Quick::new(quick_max),
            live: Live::default(),
            active: Mutex::default(),
            connections: AtomicU64::new(FIRST_CONNECTION),
            idle: Idle::default(),
            readers: Readers::default(),
        })
    }

    /// A session of the caller, as if just logged in with `schema` current.
    ///
    /// # Errors
    /// 1049, 1044, 1226, 1040.
    pub fn session(&self, caller: &Caller, schema: Option<&str>) -> Result<Lease<'_>> {
        if let Some(open) = self.idle.take(caller, schema) {
            return Ok(self.new_lease(open));
        }
        if let Some(open) = self.idle.log_in_again(caller, schema)? {
            return Ok(self.new_lease(open));
        }
        let info = ConnectInfo {
            connection_id: self.connections.fetch_add(1, Ordering::Relaxed),
            kind: caller.kind(),
            cancel: CancelToken::new(),
            traffic: Traffic::default(),
            is_administrative: false,
        };
        let (cancel, connection_id) = (info.cancel.clone(), info.connection_id);
        let session = self.sessions.open(info, &caller.request(schema))?;
        let key = Key::new(caller, schema);
        Ok(self.new_lease(Open::new(session, cancel, connection_id, key)))
    }

    /// A session that waits for a short statement of the caller.
    pub fn short_session(
        &self,
        caller: &Caller,
        schema: Option<&str>,
        sql: &str,
    ) -> Option<Lease<'_>> {
        let open = self.idle.take(caller, schema)?;
        if open.is_short(sql) {
            return Some(self.new_lease(open));
        }
        self.idle.put(open);
        None
    }

    fn new_lease(&self, open: Open) -> Lease<'_> {
        self.active.lock().insert(open.connection_id, open.cancel.clone());
        Lease { gateway: self, open: Some(open), is_new: true }
    }

    /// A kept session for a request.
    pub fn lease(&self, kept: Kept) -> Lease<'_> {
        let mut lease = self.new_lease(kept.0);
        lease.is_new = false;
        lease
    }

    /// Ends the statements that run for requests.
    pub fn kill_active(&self) {
        self.active.lock().values().for_each(CancelToken::kill_connection);
    }
}

impl Lease<'_> {
    fn open(&mut self) -> Result<&mut Open> {
        self.is_new = false;
        self.open.as_mut().ok_or_else(idle::given_back)
    }

    /// `CONNECTION_ID()`.
    pub fn connection_id(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.connection_id)
    }

    /// Cancels what runs.
    pub fn cancel(&self) -> CancelToken {
        self.open.as_ref().map_or_else(CancelToken::new, |open| open.cancel.clone())
    }

    /// Runs one or more statements, or one with parameters; their errors go to the sink.
    ///
    /// # Errors
    /// The sink refused: the session is lost.
    pub fn run(
        &mut self,
        sql: &str,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let is_new = self.is_new;
        let open = self.open()?;
        if parameters.is_empty() {
            open.session.query(sql.as_bytes(), &[], sink)?;
            return Ok(());
        }
        match is_new {
            true => open.run_kept(sql, parameters, sink),
            false => open.run_once(sql, parameters, sink),
        }
    }

    /// Runs one statement and keeps its values.
    ///
    /// # Errors
    /// The statement's; too many rows.
    pub fn values(&mut self, sql: &str, parameters: &[Value]) -> Result<Answer> {
        let mut answer = Answer::new(ROWS_HELD_MAX);
        self.run(sql, parameters, &mut answer)?;
        answer.finish()
    }

    /// The session itself.
    ///
    /// # Errors
    /// It was given back.
    pub fn session(&mut self) -> Result<&mut dyn SessionHandle> {
        Ok(self.open()?.session.as_mut())
    }

    /// Keeps the session as it is for a later request of the same caller.
    ///
    /// # Errors
    /// It was given back, or killed.
    pub fn keep(mut self) -> Result<Kept> {
        let open = self.open.take().filter(|open| !open.cancel.is_connection_killed());
        if let Some(open) = &open {
            self.gateway.active.lock().remove(&open.connection_id);
        }
        open.map(Kept).ok_or_else(|| errors::err!(SERVER_SHUTDOWN))
    }

    /// Gives the session back for the next request; without this call it ends with the lease.
    pub fn give_back(mut self) {
        if let Some(open) = self.open.take() {
            self.gateway.active.lock().remove(&open.connection_id);
            self.gateway.idle.put(open);
        }
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if let Some(open) = &self.open {
            self.gateway.active.lock().remove(&open.connection_id);
        }
    }
}
