//! Places among the connections: how many there may be, and who gets the one that is kept for administrators.

use std::time::Duration;

use ::accounts::{PrivilegeChecks, check_connections};
use catalog::AccountName;
use errors::{Result, bail};

use crate::server::Server;
use crate::session::Session;

/// How often the log is told at most that there is no place.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What a log-in is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogIn {
    /// One more connection.
    New,
    /// Another account on a connection that has its place.
    ChangeUser,
}

/// Refuses a log-in that has no place: beyond `max_connections` for all who may not administer connections, and at the administrative
/// address for all who may not use it.
///
/// # Errors
/// 1040, 1227.
pub(crate) fn check_place(session: &Session, log_in: LogIn) -> Result<()> {
    if session.client.is_administrative {
        return session.require_dynamic("SERVICE_CONNECTION_ADMIN");
    }
    if log_in == LogIn::New && !session.privileges.has_dynamic("CONNECTION_ADMIN") {
        // It is counted already.
        return session.server.check_room(0);
    }
    Ok(())
}

impl Server {
    /// Refuses one more connection of an account than its own limit or `max_user_connections` allows.
    ///
    /// # Errors
    /// 1226, 1203.
    pub(crate) fn check_connections_of(&self, name: &AccountName, own: u64) -> Result<()> {
        let common = self.globals.integer("max_user_connections");
        check_connections(name, own, common, || self.sessions.count_of(&name.to_string()))
    }

    /// Whether there is room for `more` connections beside the open ones.
    ///
    /// # Errors
    /// 1040.
    pub(crate) fn check_room(&self, more: u64) -> Result<()> {
        let max = self.globals.integer("max_connections");
        // Counting those of clients looks at every session, so only where it matters.
        if self.sessions.count() as u64 + more <= max || self.sessions.clients() + more <= max {
            return Ok(());
        }
        self.counters.add("Connection_errors_max_connections", 1);
        if self.sessions.tells_full(self.now_micros(), TOLD_EVERY) {
            tracing::warn!("Too many connections: max_connections = {max} of clients are open");
        }
        bail!(CON_COUNT_ERROR)
    }
}
