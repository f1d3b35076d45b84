//! Sessions that a protocol uses for one request after another: whether one is as it was after its log-in, without logging in again.

use std::sync::Arc;

use catalog::{AccountName, Accounts, CatalogVersion};
use errors::Diagnostics;
use transactions::TransactionReport;
use types::temporal::MICROS_PER_SECOND;
use variables::SessionValues;

use crate::session::Session;

/// A log-in counts for so long. What depends on the time of day, such as the expiry of passwords, is looked at again then.
const LOGIN_LIFE_MICROS: i64 = 60 * MICROS_PER_SECOND;

/// A session after its log-in.
pub(crate) struct LoggedIn {
    /// Shared with the session until it changes a variable, which gives it a copy of its own.
    values: Arc<SessionValues>,
    database: Option<Arc<str>>,
    roles: Vec<AccountName>,
    accounts: Arc<Accounts>,
    version: CatalogVersion,
    since_micros: i64,
}

impl LoggedIn {
    /// The session now; `None` when each log-in runs statements of its own.
    pub(crate) fn of(session: &Session) -> Option<LoggedIn> {
        let snapshot = session.server.catalog.snapshot();
        let runs_statements = !session.server.globals.text("init_connect").is_empty();
        (!runs_statements).then(|| LoggedIn {
            values: session.services.values.clone(),
            database: session.services.database.clone(),
            roles: session.active_roles.clone(),
            accounts: snapshot.accounts().clone(),
            version: snapshot.version,
            since_micros: session.server.now_micros(),
        })
    }

    /// Whether the session has nothing of its own, and another log-in would end as this one did. What the last statement left to read
    /// is cleared.
    pub(crate) fn renew(&self, session: &mut Session) -> bool {
        if !(self.is_current(session) && self.is_unchanged(session) && holds_nothing(session)) {
            return false;
        }
        let services = &mut session.services;
        services.last_insert_id = 0;
        services.found_rows = 0;
        services.row_count = -1;
        (services.warning_count, services.error_count) = (0, 0);
        session.statement.changes.clear();
        session.statement.state_changed = false;
        session.transactions.report = TransactionReport::default();
        session.diagnostics = Diagnostics::default();
        session.working = Diagnostics::default();
        true
    }

    /// No account, definition or global variable has changed since.
    fn is_current(&self, session: &Session) -> bool {
        let server = &session.server;
        let age = server.now_micros_coarse().saturating_sub(self.since_micros);
        age < LOGIN_LIFE_MICROS
            && self.values.is_of(&server.globals)
            && server.catalog.with(|snapshot| {
                snapshot.version == self.version && Arc::ptr_eq(snapshot.accounts(), &self.accounts)
            })
    }

    fn is_unchanged(&self, session: &Session) -> bool {
        let services = &session.services;
        let same_schema = match (&services.database, &self.database) {
            (None, None) => true,
            (Some(now), Some(then)) => Arc::ptr_eq(now, then),
            (None, Some(_)) | (Some(_), None) => false,
        };
        same_schema
            && Arc::ptr_eq(&services.values, &self.values)
            && services.user_variables.is_empty()
            && services.sequences.is_empty()
            && services.insert_id.is_none()
            && services.fixed_now_micros.is_none()
            && !services.seeds_given
            && session.active_roles == self.roles
            && session.shared.group.is_default()
    }
}

/// No transaction, lock, temporary table, cursor or statement by name is open.
fn holds_nothing(session: &Session) -> bool {
    let transactions = &session.transactions;
    !transactions.explicit
        && !transactions.is_started()
        && transactions.next.is_none()
        && transactions.branch.is_none()
        && !session.locked.is_in_force()
        && session.locked.global_read.is_none()
        && session.temporary.is_empty()
        && session.prepared.is_quiet()
        && !session.server.user_locks.holds_any(session.shared.id)
}
