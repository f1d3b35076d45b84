//! Sessions that outlive their request: of transactions over several requests, and of cursors.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use errors::Error;
use hyper::StatusCode;
use sys::sync::Mutex;

use crate::account::Caller;
use crate::gateway::Kept;
use crate::json::Form;
use crate::reply::Reply;

/// A session that nobody asks for ends after this time.
pub const IDLE_WITHIN: Duration = Duration::from_secs(60);
/// At one time, of all callers and of one user.
const HELD_MAX: usize = 64;
const HELD_OF_USER_MAX: usize = 16;

/// What a session is held for.
pub enum Purpose {
    /// A transaction.
    Transaction,
    /// The rest of a result.
    Cursor(Cursor),
}

/// An open cursor.
pub struct Cursor {
    /// The prepared statement.
    pub statement_id: u32,
    /// Types of its columns.
    pub columns: Vec<(types::DataType, Form)>,
    /// The columns as the answer describes them.
    pub described: String,
}

/// A held session.
pub struct HeldSession {
    /// The session.
    pub session: Kept,
    /// What it is held for.
    pub purpose: Purpose,
}

struct Entry {
    owner: (String, std::net::IpAddr),
    is_cursor: bool,
    used: Duration,
    /// How long its transaction may be idle.
    limit: Option<Duration>,
    /// `None` while a request uses it.
    session: Option<HeldSession>,
}

/// All held sessions by id.
#[derive(Default)]
pub struct Held(Mutex<HashMap<String, Entry>>);

/// What a caller asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A transaction.
    Transaction,
    /// A cursor.
    Cursor,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Transaction => "transaction",
            Kind::Cursor => "cursor",
        }
    }
}

impl Held {
    /// Holds a session; returns its id, which nobody can guess.
    ///
    /// # Errors
    /// Status 429 when the caller or all callers hold too many.
    pub fn hold(&self, caller: &Caller, session: HeldSession) -> Result<String, Reply> {
        let mut bytes = [0; 16];
        let drawn = sys::entropy::fill(&mut bytes).map_err(Error::internal);
        drawn.map_err(|error| Reply::sql_error(&error))?;
        let id = URL_SAFE_NO_PAD.encode(bytes);
        let owner = owner(caller);
        let mut held = self.0.lock();
        let of_user = held.values().filter(|entry| entry.owner.0 == owner.0).count();
        if held.len() >= HELD_MAX || of_user >= HELD_OF_USER_MAX {
            let message = "too many open transactions and cursors";
            return Err(Reply::failure(StatusCode::TOO_MANY_REQUESTS, message));
        }
        let is_cursor = matches!(session.purpose, Purpose::Cursor(_));
        let used = sys::clock::monotonic();
        let limit = session.session.idle_limit();
        held.insert(id.clone(), Entry { owner, is_cursor, used, limit, session: Some(session) });
        Ok(id)
    }

    /// Takes a session out for a request of its owner.
    ///
    /// # Errors
    /// Status 404 when the caller has none of this id, 409 while another request uses it.
    pub fn take(&self, caller: &Caller, kind: Kind, id: &str) -> Result<HeldSession, Reply> {
        let mut held = self.0.lock();
        let found = held.get_mut(id).filter(|entry| {
            entry.owner == owner(caller) && entry.is_cursor == (kind == Kind::Cursor)
        });
        let name = kind.name();
        let Some(entry) = found else {
            let message = format!("no {name} has this id; an idle one ends after 60 seconds");
            return Err(Reply::failure(StatusCode::NOT_FOUND, &message));
        };
        entry.session.take().ok_or_else(|| {
            let message = format!("another request uses the {name}");
            Reply::failure(StatusCode::CONFLICT, &message)
        })
    }

    /// Puts a session back after a request.
    pub fn put(&self, id: &str, session: HeldSession) {
        if let Some(entry) = self.0.lock().get_mut(id) {
            entry.used = sys::clock::monotonic();
            entry.limit = session.session.idle_limit();
            entry.session = Some(session);
        }
    }

    /// Forgets a session that a request took out.
    pub fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }

    /// Ends the sessions that nobody used for `idle`, or for as long as their transaction may be idle.
    pub fn end_idle(&self, idle: Duration) {
        let now = sys::clock::monotonic();
        let is_idle = |entry: &Entry| {
            let limit = entry.limit.map_or(idle, |limit| limit.min(idle));
            entry.session.is_some() && now.saturating_sub(entry.used) >= limit
        };
        let ended: Vec<Entry> = {
            let mut held = self.0.lock();
            let ids: Vec<String> =
                held.iter().filter(|(_, it)| is_idle(it)).map(|(id, _)| id.clone()).collect();
            ids.iter().filter_map(|id| held.remove(id)).collect()
        };
        // Their transactions roll back, which takes time: without the lock.
        drop(ended);
    }
}

fn owner(caller: &Caller) -> (String, std::net::IpAddr) {
    (caller.user.clone(), caller.address.ip())
}
