//! The server's services to protocols: log-ins, sessions, and a few facts.

use std::sync::Arc;
use std::time::Duration;

use ::accounts::{DEFAULT_METHOD, is_insecure};
use engine_api::CancelToken;
use errors::{Error, Result, bail};
use plugin_api::{
    AccountSecret, AuthRequest, Authenticator, ConnectInfo, ConnectionKind, ConsolePage,
    HttpRoutes, InfoColumn, ProcessView, SessionFactory, SessionHandle, StreamSink,
};
use types::Value;
use variables::{Scope, as_text, as_u64};

use crate::handle::Handle;
use crate::replication::open_applier;
use crate::server::Server;
use crate::session::Session;

impl SessionFactory for Server {
    fn server_version(&self) -> String {
        self.version.clone()
    }

    fn server_collation(&self) -> u16 {
        charset::collation_by_name(&self.globals.text("collation_server"))
            .map_or(types::CollationId::UTF8MB4_0900_AI_CI.0, |collation| collation.id.0)
    }

    fn default_authentication(&self) -> String {
        DEFAULT_METHOD.into()
    }

    fn find_account(
        &self,
        request: &AuthRequest,
        kind: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        let must_be_secure = self.globals.integer("require_secure_transport") == 1;
        if must_be_secure && is_insecure(request, kind) {
            bail!(SECURE_TRANSPORT_REQUIRED);
        }
        let snapshot = self.catalog.snapshot();
        let found = self.logins.find(snapshot.accounts(), &self.registry(), request, kind);
        found.inspect_err(|error| self.tell_login_failure(request, kind, Some(error)))
    }

    fn open(&self, info: ConnectInfo, request: &AuthRequest) -> Result<Box<dyn SessionHandle>> {
        let kind = info.kind.clone();
        let opened = Session::open(self.arc()?, info, request);
        let session =
            opened.inspect_err(|error| self.tell_login_failure(request, &kind, Some(error)))?;
        Ok(Box::new(Handle::new(session)))
    }

    fn open_applier(&self, cancel: CancelToken) -> Result<Box<dyn SessionHandle>> {
        Ok(Box::new(Handle::new(open_applier(self.arc()?, cancel))))
    }

    fn login_delay(&self, request: &AuthRequest, kind: &ConnectionKind) -> Duration {
        self.answer_delay(request, kind)
    }

    fn refused(&self, request: &AuthRequest, kind: &ConnectionKind) -> Option<Error> {
        let snapshot = self.catalog.snapshot();
        let reason = self.logins.refused(snapshot.accounts(), request, kind, self.now_micros());
        self.tell_login_failure(request, kind, reason.as_ref());
        reason
    }

    fn bearer_user(&self, token: &str) -> Option<String> {
        self.registry().authenticators().iter().find_map(|method| method.bearer_user(token))
    }

    fn kill(&self, connection_id: u64) {
        if let Some(session) = self.sessions.get(connection_id) {
            session.cancel.kill_connection();
        }
    }

    fn global_integer(&self, variable: &str) -> u64 {
        self.global(variable).map_or(0, |value| as_u64(&value))
    }

    fn global_text(&self, variable: &str) -> String {
        self.global(variable).map_or_else(String::new, |value| as_text(&value))
    }

    fn status(&self) -> Vec<(String, String)> {
        describe::global_status(self)
    }

    fn running_sessions(&self) -> Vec<ProcessView> {
        self.sessions.running_views(Server::now_micros(self))
    }

    fn http_routes(&self) -> Vec<Arc<dyn HttpRoutes>> {
        self.registry().http_routes().to_vec()
    }

    fn stream_sinks(&self) -> Vec<Arc<dyn StreamSink>> {
        self.registry().stream_sinks().to_vec()
    }

    fn console_pages(&self) -> Vec<ConsolePage> {
        self.registry().console_pages().to_vec()
    }

    fn read_information(
        &self,
        schema: &str,
        table: &str,
        emit: &mut dyn FnMut(&[InfoColumn], &[Value]) -> Result<()>,
    ) -> Result<()> {
        self.read_as_itself(schema, table, emit)
    }

    fn count_status(&self, name: &'static str, amount: u64) {
        self.counters.add(name, amount);
    }
}

impl Server {
    /// The value of a variable that has a global one.
    fn global(&self, variable: &str) -> Option<Value> {
        let definitions = &self.globals.definitions;
        let id = definitions.find(variable)?;
        (definitions.get(id).scope != Scope::Session).then(|| self.global_value(id))
    }
}
