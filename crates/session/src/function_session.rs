//! Sessions that functions open: of the same account, with transactions of their own.

use std::time::Duration;

use engine_api::CancelToken;
use errors::{Result, bail};
use plugin_api::{AuthRequest, ConnectInfo, SessionHandle, Traffic};
use sys::sync::atomic::Ordering;
use types::Value;
use variables::as_u64;

use crate::handle::Handle;
use crate::server::Server;
use crate::session::Session;

/// Their numbers are beyond those of connections, which have 32 bits, and those of events.
const FIRST_SESSION: u64 = 1 << 48;
/// How long a stopping server waits for sessions that were asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(10);

impl Server {
    /// Stops the sessions that nobody waits for.
    pub(crate) fn stop_function_sessions(&self) {
        self.sessions.stop_from(FIRST_SESSION, STOP_GRACE);
    }
}

impl Session {
    /// Opens a session for a function that a statement of this session calls.
    ///
    /// # Errors
    /// As `plugin_api::Statements::open_session`.
    pub(crate) fn open_for_function(&self) -> Result<Box<dyn SessionHandle>> {
        self.open_handle(CancelToken::following(&self.shared.cancel))
    }

    /// The same; `cancel` stops its statements.
    ///
    /// # Errors
    /// As `open_for_function`.
    pub(crate) fn open_handle(&self, cancel: CancelToken) -> Result<Box<dyn SessionHandle>> {
        Ok(Box::new(Handle::new(self.open_beside(cancel)?)))
    }

    /// Opens another session of the same account, with this one's variables and current schema.
    ///
    /// # Errors
    /// 1424 in a session that was opened so, 1792 in a read-only transaction, 1040, 1226.
    fn open_beside(&self, cancel: CancelToken) -> Result<Session> {
        if self.opened_by.is_some() {
            bail!(SP_NO_RECURSION);
        }
        if self.transactions.characteristics.read_only {
            bail!(CANT_EXECUTE_IN_READ_ONLY_TRANSACTION);
        }
        let server = self.server.clone();
        server.check_room(1)?;
        self.check_connections_of_account()?;
        let opened = server.opened_by_functions.fetch_add(1, Ordering::Relaxed);
        let info = ConnectInfo {
            connection_id: FIRST_SESSION + opened,
            kind: self.client.kind.clone(),
            cancel,
            traffic: Traffic::default(),
            is_administrative: false,
        };
        let request = AuthRequest {
            collation: self.client.collation,
            multi_statements: true,
            ignore_space: self.client.ignore_space,
            tls: self.client.tls.clone(),
            ..AuthRequest::default()
        };
        let mut session = Session::new(server, info, &request);
        session.opened_by = Some(self.shared.id);
        session.adopt(self);
        Ok(session)
    }

    /// `max_user_connections` and the account's own limit.
    fn check_connections_of_account(&self) -> Result<()> {
        let snapshot = self.server.catalog.snapshot();
        let own = snapshot.accounts().get(&self.account).map_or(0, |account| account.limits[3]);
        self.server.check_connections_of(&self.account, own)
    }

    /// Takes over the account, the schema and the variables of the session that opens this one.
    fn adopt(&mut self, opener: &Session) {
        let snapshot = self.server.catalog.snapshot();
        self.account = opener.account.clone();
        self.active_roles.clone_from(&opener.active_roles);
        self.services.user.clone_from(&opener.services.user);
        self.services.current_user.clone_from(&opener.services.current_user);
        self.refresh_privileges();
        self.describe_roles();
        self.limits.must_change_password = opener.limits.must_change_password;
        if let Some(account) = snapshot.accounts().get(&self.account) {
            self.limits.quota = self.server.logins.usages.quota(account);
        }
        {
            let opener = opener.shared.activity.lock();
            let mut activity = self.shared.activity.lock();
            activity.user.clone_from(&opener.user);
            activity.host.clone_from(&opener.host);
            activity.account = self.account.to_string();
            activity.command = "Sleep";
            activity.since_micros = self.server.now_micros();
            activity.database.clone_from(&opener.database);
        }
        self.services.database.clone_from(&opener.services.database);
        self.services.values = opener.services.values.clone();
        self.store_session("autocommit", Value::Int(1));
        // Functions give their texts in UTF-8.
        self.store_session("character_set_client", Value::text("utf8mb4"));
        let row_wait = as_u64(&self.value("innodb_lock_wait_timeout"));
        let table_wait = as_u64(&self.value("lock_wait_timeout"));
        self.store_session("lock_wait_timeout", Value::UInt(table_wait.min(row_wait)));
        self.refresh_settings();
    }
}
