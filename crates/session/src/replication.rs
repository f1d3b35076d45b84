//! Statements that control replicas, which a plugin runs, and the session in which one repeats what its source did.

use std::sync::Arc;

use ::accounts::PrivilegeChecks;
use catalog::AccountName;
use engine_api::{CancelToken, DiskKey};
use errors::{Error, Level, Result};
use observation::process::APPLIER_USER;
use plugin_api::{
    AuthRequest, ConnectInfo, ConnectionKind, OkInfo, RepeatedTransaction, ReplicationSession,
    ResultSink, SessionHandle, Traffic,
};
use programs::Running;

use sys::sync::atomic::Ordering;
use types::{SqlMode, Value};

use crate::handle::Handle;
use crate::prepared::read_prepared;
use crate::server::Server;
use crate::session::Session;

/// Numbers of such sessions begin here: beyond those that functions open.
const FIRST_SESSION: u64 = 1 << 49;

/// Runs a statement by the plugin that controls replicas.
///
/// # Errors
/// 1235 when there is none, errors of the statement.
pub(crate) fn run_replica(
    session: &mut Session,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let Some(control) = session.server.registry().replication().cloned() else {
        return Err(Error::not_supported("replication statements"));
    };
    let text = String::from_utf8_lossy(running.source);
    control.run(&text, &mut Controlling { session })?;
    session.send_ok(sink, OkInfo::default())
}

/// A session as `ReplicationSession`.
pub(crate) struct Controlling<'s> {
    pub(crate) session: &'s mut Session,
}

impl ReplicationSession for Controlling<'_> {
    fn require_privilege(&self, name: &str) -> Result<()> {
        self.session.require_dynamic(name)
    }

    fn cancel(&self) -> CancelToken {
        self.session.shared.cancel.clone()
    }

    fn directory_key(&self) -> Option<Arc<dyn DiskKey>> {
        self.session.server.default_engine.directory_key()
    }

    fn connection_id(&self) -> u64 {
        self.session.shared.id
    }

    fn sql_mode(&self) -> SqlMode {
        self.session.settings.sql_mode
    }

    fn warn(&mut self, error: &Error) {
        self.session.working.push_error(Level::Warning, error);
    }

    fn repeat(
        &mut self,
        sql: &str,
        parameters: &[Value],
        answer: &mut dyn ResultSink,
    ) -> Result<()> {
        let session = &mut *self.session;
        session.check_writable()?;
        let was_applier = std::mem::replace(&mut session.is_applier, true);
        session.refresh_privileges();
        let result = read_prepared(session, sql.as_bytes())
            .and_then(|(text, _)| session.run_prepared_text(&text, None, parameters, answer));
        session.is_applier = was_applier;
        session.refresh_privileges();
        result
    }

    fn is_in_transaction(&self) -> bool {
        self.session.transactions.is_open(&self.session.settings)
    }

    fn events_have_checksums(&self) -> Option<bool> {
        self.session.events_have_checksums
    }

    fn note_event_format(&mut self, has_checksums: bool) {
        self.session.events_have_checksums = Some(has_checksums);
    }
}

impl Server {
    /// A session of the server itself, as root, for statements that run before clients are served.
    ///
    /// # Errors
    /// The server is stopping.
    pub fn open_at_start(&self) -> Result<Box<dyn SessionHandle>> {
        let mut session = open_applier(self.arc()?, CancelToken::new());
        session.is_applier = false;
        Ok(Box::new(Handle::new(session)))
    }
}

/// As `SessionHandle::repeat_transaction`.
pub(crate) fn repeat_transaction(
    session: &mut Session,
    next: &RepeatedTransaction<'_>,
) -> Result<()> {
    if !session.is_applier {
        return Err(Error::internal("this session repeats no transactions"));
    }
    let gtid = next.gtid.map(ToString::to_string);
    let shown = gtid.as_deref().unwrap_or("AUTOMATIC");
    // What the variables say decides again when another is set.
    session.store_session("gtid_next", Value::text(shown));
    session.store_session("original_server_id", Value::UInt(next.server_id.into()));
    session.store_session("original_commit_timestamp", Value::UInt(next.commit_micros));
    if let Some(watcher) = &mut session.transactions.watcher {
        watcher.renew_identifier();
    }
    session.settings.binary_log.repeat(gtid, next.server_id, next.commit_micros);
    Ok(())
}

/// A session of the server itself that fires no triggers.
pub(crate) fn open_applier(server: Arc<Server>, cancel: CancelToken) -> Session {
    let opened = server.opened_by_functions.fetch_add(1, Ordering::Relaxed);
    let info = ConnectInfo {
        connection_id: FIRST_SESSION + opened,
        kind: ConnectionKind::Local,
        cancel,
        traffic: Traffic::default(),
        is_administrative: false,
    };
    let collation = types::CollationId::UTF8MB4_0900_AI_CI.0;
    let user = APPLIER_USER.to_owned();
    let found_rows = true;
    let request = AuthRequest { user, collation, found_rows, ..AuthRequest::default() };
    let mut session = Session::new(server, info, &request);
    session.is_applier = true;
    session.account = AccountName { user: "root".into(), host: "localhost".into() };
    session.services.user = format!("{APPLIER_USER}@localhost");
    session.services.current_user = session.account.to_string();
    session.refresh_privileges();
    session.describe_roles();
    {
        let mut activity = session.shared.activity.lock();
        activity.user = APPLIER_USER.into();
        activity.host = "localhost".into();
        activity.account = session.account.to_string();
        activity.command = "Connect";
        activity.since_micros = session.server.now_micros();
    }
    session.set_client_collation(collation);
    session.refresh_settings();
    session
}
