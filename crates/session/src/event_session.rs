//! The session in which an event runs.

use std::sync::Arc;

use ::accounts::parse_account;
use catalog::{Account, AccountName, Event};
use engine_api::CancelToken;
use errors::{Result, bail};
use plugin_api::{AuthRequest, ConnectInfo, ConnectionKind, Traffic};
use types::Value;

use crate::program_host::ProgramSession;
use crate::server::Server;
use crate::session::Session;
use observation::process::EVENT_USER;

impl Session {
    /// A session in which an event runs, as its definer.
    ///
    /// # Errors
    /// 1449.
    pub(crate) fn open_for_event(
        server: Arc<Server>,
        id: u64,
        cancel: CancelToken,
        event: &Event,
    ) -> Result<Session> {
        let info = ConnectInfo {
            connection_id: id,
            kind: ConnectionKind::Local,
            cancel,
            traffic: Traffic::default(),
            is_administrative: false,
        };
        let collation = types::CollationId::UTF8MB4_0900_AI_CI.0;
        let request = AuthRequest { user: EVENT_USER.into(), collation, ..AuthRequest::default() };
        let mut session = Session::new(server, info, &request);
        let definer: AccountName = parse_account(&event.definer);
        let snapshot = session.server.catalog.snapshot();
        let account = snapshot.accounts().get(&definer).cloned();
        if account.is_none() && &*definer.user != "root" {
            bail!(NO_SUCH_USER, definer.user, definer.host);
        }
        let at_login = |known: Arc<Account>| snapshot.accounts().roles_at_login(&known, false);
        session.active_roles = account.map(at_login).unwrap_or_default();
        session.account = definer;
        session.services.user = format!("{EVENT_USER}@localhost");
        session.services.current_user = event.definer.to_string();
        session.refresh_privileges();
        session.describe_roles();
        {
            let mut activity = session.shared.activity.lock();
            activity.user = EVENT_USER.into();
            activity.host = "localhost".into();
            activity.account = event.definer.to_string();
        }
        session.set_client_collation(collation);
        session.store_session("time_zone", Value::text(&event.time_zone));
        session.refresh_settings();
        Ok(session)
    }

    /// Runs an event's body.
    ///
    /// # Errors
    /// Errors of the body.
    pub(crate) fn run_event(&mut self, event: &Event) -> Result<()> {
        self.begin_command("Execute", event.body.as_bytes());
        let _bounds = self.begin_statement();
        let result = self
            .guarded(|session| programs::run_event_body(&mut ProgramSession::new(session), event));
        match &result {
            Ok(()) => self.end_statement(),
            Err(error) => self.fail_statement(error),
        }
        self.become_idle();
        result
    }
}
