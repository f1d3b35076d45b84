//! Connections while storage is being recovered: they are accepted, may ask how far it is, and are refused everything else.
//!
//! Until storage is open the gate leads to a small separate server, without accounts and tables, whose engine only reports recovery.
//! Only the administrator may log in. Sessions opened then never reach storage: once it is open they are asked to connect again.

use std::sync::{Arc, OnceLock};

use engine_api::CancelToken;
use errors::{Error, ErrorCode, Result};
use plugin_api::{
    AccountSecret, AuthRequest, Authenticator, ColumnMeta, CommandOutcome, ConnectInfo,
    ConnectionKind, ConsolePage, CountedCommand, ExecuteRequest, ForwardingSink, HttpRoutes,
    InfoColumn, OkInfo, PreparedInfo, QueryAttribute, ResultSink, SessionFactory, SessionHandle,
    StreamSink,
};
use session::Server;
use types::Value;

use crate::recovery::RecoveryState;

/// Statements that a session may run while storage is closed.
const ALLOWED: [&str; 5] = ["SELECT", "SHOW", "SET", "DO", "SHUTDOWN"];
/// The table that shows how far recovery is; it can be read also after recovery.
const PROGRESS_TABLE: &str = "recovery_progress";

/// Opens sessions of the recovered server, or before recovery ends of the waiting one.
pub(crate) struct RecoveryGate {
    waiting: Arc<Server>,
    open: OnceLock<Arc<Server>>,
    state: Arc<RecoveryState>,
}

impl RecoveryGate {
    /// A gate that leads to `waiting`.
    pub(crate) fn new(waiting: Arc<Server>, state: Arc<RecoveryState>) -> Arc<RecoveryGate> {
        Arc::new(RecoveryGate { waiting, open: OnceLock::new(), state })
    }

    /// Leads to `server` from now on.
    pub(crate) fn open_to(&self, server: Arc<Server>) {
        let _first = self.open.set(server);
    }

    fn server(&self) -> &Arc<Server> {
        self.open.get().unwrap_or(&self.waiting)
    }

    fn is_open(&self) -> bool {
        self.open.get().is_some()
    }

    /// Why a statement or a login is refused now.
    fn refusal(&self) -> Error {
        let text = match self.is_open() {
            true => {
                "Server isn't available on this connection: it has recovered, connect again".into()
            }
            false => format!(
                "Server isn't available: it is recovering, {} percent done",
                self.state.percent()
            ),
        };
        Error::new(ErrorCode::SERVER_ISNT_AVAILABLE, text)
    }
}

/// The session factory of the listeners: the gate, shared so that sessions can hold it too.
pub(crate) struct Entrance(pub(crate) Arc<RecoveryGate>);

impl SessionFactory for Entrance {
    fn server_version(&self) -> String {
        self.0.server().server_version()
    }

    fn server_collation(&self) -> u16 {
        self.0.server().server_collation()
    }

    fn default_authentication(&self) -> String {
        self.0.server().default_authentication()
    }

    fn find_account(
        &self,
        request: &AuthRequest,
        kind: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        // Accounts are in storage; the administrator alone is known without it.
        if !self.0.is_open() && request.user != "root" {
            return Err(self.0.refusal());
        }
        self.0.server().find_account(request, kind)
    }

    fn open(&self, info: ConnectInfo, request: &AuthRequest) -> Result<Box<dyn SessionHandle>> {
        if let Some(server) = self.0.open.get() {
            return server.open(info, request);
        }
        let request = AuthRequest { database: None, multi_statements: false, ..request.clone() };
        let inner = self.0.waiting.open(info, &request)?;
        Ok(Box::new(WaitingSession { gate: self.0.clone(), inner }))
    }

    fn open_applier(&self, cancel: CancelToken) -> Result<Box<dyn SessionHandle>> {
        match self.0.open.get() {
            Some(server) => server.open_applier(cancel),
            None => Err(self.0.refusal()),
        }
    }

    fn refused(&self, request: &AuthRequest, kind: &ConnectionKind) -> Option<Error> {
        self.0.server().refused(request, kind)
    }

    fn bearer_user(&self, token: &str) -> Option<String> {
        self.0.server().bearer_user(token)
    }

    fn kill(&self, connection_id: u64) {
        self.0.waiting.kill(connection_id);
        if let Some(server) = self.0.open.get() {
            server.kill(connection_id);
        }
    }

    fn global_integer(&self, variable: &str) -> u64 {
        self.0.server().global_integer(variable)
    }

    fn global_text(&self, variable: &str) -> String {
        self.0.server().global_text(variable)
    }

    fn status(&self) -> Vec<(String, String)> {
        self.0.server().status()
    }

    fn http_routes(&self) -> Vec<Arc<dyn HttpRoutes>> {
        self.0.server().http_routes()
    }

    fn stream_sinks(&self) -> Vec<Arc<dyn StreamSink>> {
        self.0.server().stream_sinks()
    }

    fn console_pages(&self) -> Vec<ConsolePage> {
        self.0.server().console_pages()
    }

    fn read_information(
        &self,
        schema: &str,
        table: &str,
        emit: &mut dyn FnMut(&[InfoColumn], &[Value]) -> Result<()>,
    ) -> Result<()> {
        self.0.server().read_information(schema, table, emit)
    }

    fn count_status(&self, name: &'static str, amount: u64) {
        self.0.server().count_status(name, amount);
    }
}

/// A session opened while storage was closed.
struct WaitingSession {
    gate: Arc<RecoveryGate>,
    inner: Box<dyn SessionHandle>,
}

/// The first word of a statement, after comments and parentheses.
fn first_word(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        rest = match rest.strip_prefix("/*") {
            Some(comment) => comment.split_once("*/").map_or("", |(_, rest)| rest),
            None if rest.starts_with("-- ") || rest.starts_with('#') => {
                rest.split_once('\n').map_or("", |(_, rest)| rest)
            }
            None => break,
        };
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    &rest[..end]
}

impl WaitingSession {
    fn may_run(&self, sql: &[u8]) -> bool {
        let text = String::from_utf8_lossy(sql);
        if self.gate.is_open() {
            return text.to_ascii_lowercase().contains(PROGRESS_TABLE);
        }
        let word = first_word(&text);
        ALLOWED.iter().any(|allowed| word.eq_ignore_ascii_case(allowed))
    }

    /// Replaces the error of a schema or table that is not found: it may well be in storage.
    fn explain(&self, error: Error) -> Error {
        let missing = [ErrorCode::NO_SUCH_TABLE, ErrorCode::BAD_DB_ERROR, ErrorCode::NO_DB_ERROR];
        match missing.contains(&error.code()) {
            true => self.gate.refusal(),
            false => error,
        }
    }

    fn refuse(&self, sink: &mut dyn ResultSink) -> Result<CommandOutcome> {
        sink.error(&self.gate.refusal())?;
        Ok(match self.gate.is_open() {
            true => CommandOutcome::Close,
            false => CommandOutcome::Continue,
        })
    }
}

impl SessionHandle for WaitingSession {
    fn query(
        &mut self,
        sql: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        if !self.may_run(sql) {
            return self.refuse(sink);
        }
        let mut sink = Explaining { sink, refusal: self.gate.refusal() };
        self.inner.query(sql, attributes, &mut sink)
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        match self.may_run(sql) {
            true => self.inner.prepare(sql).map_err(|error| self.explain(error)),
            false => Err(self.gate.refusal()),
        }
    }

    fn parameter_count(&self, statement_id: u32) -> Result<usize> {
        self.inner.parameter_count(statement_id)
    }

    fn execute(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        self.inner.execute(request, sink)
    }

    fn fetch(&mut self, statement_id: u32, rows: u32, sink: &mut dyn ResultSink) -> Result<()> {
        self.inner.fetch(statement_id, rows, sink)
    }

    fn reset_statement(&mut self, statement_id: u32) -> Result<OkInfo> {
        self.inner.reset_statement(statement_id)
    }

    fn close_statement(&mut self, statement_id: u32) {
        self.inner.close_statement(statement_id);
    }

    fn init_db(&mut self, schema: &str) -> Result<OkInfo> {
        self.inner.init_db(schema).map_err(|error| self.explain(error))
    }

    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnMeta>> {
        self.inner.field_list(table, wildcard).map_err(|error| self.explain(error))
    }

    fn count(&mut self, command: CountedCommand) {
        self.inner.count(command);
    }

    fn statistics(&mut self) -> String {
        self.inner.statistics()
    }

    fn kill(&mut self, connection_id: u64) -> Result<OkInfo> {
        self.inner.kill(connection_id)
    }

    fn reset_connection(&mut self) -> Result<OkInfo> {
        self.inner.reset_connection()
    }

    fn change_user(&mut self, _: &AuthRequest) -> Result<OkInfo> {
        Err(self.gate.refusal())
    }

    fn set_multi_statements(&mut self, _: bool) {}

    fn idle_transaction_limit(&self) -> Option<(&'static str, std::time::Duration)> {
        self.inner.idle_transaction_limit()
    }

    fn integer_variable(&self, name: &str) -> u64 {
        self.inner.integer_variable(name)
    }

    fn result_collation(&self) -> u16 {
        self.inner.result_collation()
    }

    fn has_privilege(&self, name: &str) -> bool {
        self.inner.has_privilege(name)
    }

    fn state(&self) -> OkInfo {
        self.inner.state()
    }
}

/// Forwards results, and says why a table is missing.
struct Explaining<'s> {
    sink: &'s mut dyn ResultSink,
    refusal: Error,
}

impl ForwardingSink for Explaining<'_> {
    fn target(&mut self) -> &mut dyn ResultSink {
        self.sink
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        let missing = [ErrorCode::NO_SUCH_TABLE, ErrorCode::BAD_DB_ERROR, ErrorCode::NO_DB_ERROR];
        match missing.contains(&error.code()) {
            true => self.sink.error(&self.refusal),
            false => self.sink.error(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::first_word;

    #[test]
    fn the_first_word_follows_comments() {
        assert_eq!(first_word("  /* a */ (SELECT 1)"), "SELECT");
        assert_eq!(first_word("-- x\n# y\nshow tables"), "show");
        assert_eq!(first_word("/* never ends"), "");
        assert_eq!(first_word("é"), "");
    }
}
