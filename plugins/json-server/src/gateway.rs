//! The way from a request to the server: log-ins and sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_api::CancelToken;
use errors::{Error, Result};
use plugin_api::{ConnectInfo, ExecuteRequest, ResultSink, SessionFactory, SessionHandle, Traffic};
use sys::sync::Mutex;
use types::Value;

use crate::account::{Accounts, Caller};
use crate::held::Held;
use crate::live::Live;
use crate::running::Running;
use crate::settings::Settings;
use crate::sink::Answer;
use crate::tokens::Tokens;

/// Connection ids of this protocol: those of the MySQL protocol have 32 bits, and functions' sessions begin at 2^48.
const FIRST_CONNECTION: u64 = 1 << 40;
/// Idle sessions that are kept for the next request.
const IDLE_MAX: usize = 64;
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
    /// Counters of the server over time.
    pub live: Live,
    /// What cancels the sessions that requests use, by connection id.
    active: Mutex<HashMap<u64, CancelToken>>,
    connections: AtomicU64,
    idle: Mutex<HashMap<Key, Vec<Open>>>,
}

/// Sessions of one key are exchangeable.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    user: String,
    address: std::net::IpAddr,
}

struct Open {
    session: Box<dyn SessionHandle>,
    cancel: CancelToken,
    connection_id: u64,
}

/// A session between two requests of the same caller, with everything that is open in it.
pub struct Kept(Open);

/// A session that belongs to one request. It is used again by a later one when it is given back with nothing left open.
pub struct Lease<'a> {
    gateway: &'a Gateway,
    caller: Caller,
    open: Option<Open>,
}

impl Gateway {
    /// No session yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(sessions: Arc<dyn SessionFactory>, settings: Settings) -> std::io::Result<Gateway> {
        Ok(Gateway {
            settings,
            accounts: Accounts::new(sessions.clone())?,
            sessions,
            tokens: Tokens::default(),
            running: Running::default(),
            held: Held::default(),
            live: Live::default(),
            active: Mutex::default(),
            connections: AtomicU64::new(FIRST_CONNECTION),
            idle: Mutex::default(),
        })
    }

    /// A session of the caller, as if just logged in with `schema` current.
    ///
    /// # Errors
    /// 1049, 1044, 1226, 1040.
    pub fn session(&self, caller: &Caller, schema: Option<&str>) -> Result<Lease<'_>> {
        let key = Key { user: caller.user.clone(), address: caller.address.ip() };
        let kept = self.idle.lock().get_mut(&key).and_then(Vec::pop);
        let request = caller.request(schema);
        if let Some(mut open) = kept
            && !open.cancel.is_connection_killed()
        {
            open.session.change_user(&request)?;
            return Ok(self.lease(caller, Kept(open)));
        }
        let info = ConnectInfo {
            connection_id: self.connections.fetch_add(1, Ordering::Relaxed),
            kind: caller.kind(),
            cancel: CancelToken::new(),
            traffic: Traffic::default(),
        };
        let (cancel, connection_id) = (info.cancel.clone(), info.connection_id);
        let session = self.sessions.open(info, &request)?;
        Ok(self.lease(caller, Kept(Open { session, cancel, connection_id })))
    }

    /// A kept session for a request.
    pub fn lease(&self, caller: &Caller, kept: Kept) -> Lease<'_> {
        let Kept(open) = kept;
        self.active.lock().insert(open.connection_id, open.cancel.clone());
        Lease { gateway: self, caller: caller.clone(), open: Some(open) }
    }

    /// Ends the statements that run for requests.
    pub fn kill_active(&self) {
        self.active.lock().values().for_each(CancelToken::kill_connection);
    }

    /// Ends the sessions that nobody uses.
    pub fn close_idle(&self) {
        self.idle.lock().clear();
    }

    fn keep(&self, caller: &Caller, open: Open) {
        let key = Key { user: caller.user.clone(), address: caller.address.ip() };
        let mut idle = self.idle.lock();
        if idle.values().map(Vec::len).sum::<usize>() < IDLE_MAX {
            idle.entry(key).or_default().push(open);
        }
    }
}

impl Lease<'_> {
    fn open(&mut self) -> Result<&mut Open> {
        self.open.as_mut().ok_or_else(|| Error::internal("a session that was given back"))
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
        let session = &mut self.open()?.session;
        if parameters.is_empty() {
            session.query(sql.as_bytes(), &[], sink)?;
            return Ok(());
        }
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
            self.gateway.keep(&self.caller, open);
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
