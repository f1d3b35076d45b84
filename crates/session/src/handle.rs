//! A session as a protocol sees it: the commands of clients.

use std::time::Duration;

use errors::Result;
use plugin_api::{
    AuthRequest, ColumnMeta, CommandOutcome, CountedCommand, DumpRequest, DumpSink, ExecuteRequest,
    OkInfo, PreparedInfo, QueryAttribute, RegisteredReplica, RepeatedTransaction, ResultSink,
    SessionHandle,
};
use variables::as_u64;

use crate::places::LogIn;
use crate::renew::LoggedIn;
use crate::session::Session;

/// An open session as a protocol uses it.
pub(crate) struct Handle {
    session: Session,
    /// Its log-in, for a protocol that asks for it.
    logged_in: Option<Box<LoggedIn>>,
}

impl Handle {
    pub(crate) fn new(session: Session) -> Handle {
        Handle { session, logged_in: None }
    }

    /// COM_FIELD_LIST.
    fn list_fields(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnMeta>> {
        self.session.shared.cancel.reset_statement();
        let _bounds = self.session.begin_statement();
        let quoted = table.replace('`', "``");
        let sql = format!("SELECT * FROM `{quoted}` LIMIT 0");
        let statement = syntax::parse_one(&sql, &syntax::ParseOptions::default())
            .map_err(|error| programs::parse_error(&error))?
            .0;
        let planned = self.session.planner().plan_statement(&statement, sql.as_bytes(), None)?;
        self.session.check_plan_privileges(&planned)?;
        let collation = charset::collation_or_binary(types::CollationId::UTF8MB4_0900_AI_CI);
        let pattern = if wildcard.is_empty() { "%" } else { wildcard };
        let columns = planned.program.columns().iter();
        Ok(columns
            .filter(|column| collation.like(pattern.as_bytes(), column.name.as_bytes(), Some('\\')))
            .cloned()
            .collect())
    }
}

impl SessionHandle for Handle {
    fn query(
        &mut self,
        sql: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        let _seen = sys::probes::query(self.session.shared.id, sql);
        self.session.run_text(sql, attributes, sink)
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        self.session.prepare_binary(sql)
    }

    fn parameter_count(&self, statement_id: u32) -> Result<usize> {
        self.session.prepared.parameter_count(statement_id)
    }

    fn execute(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        let _seen = sys::probes::execute(self.session.shared.id, request.statement_id);
        self.session.execute_binary(request, sink)
    }

    fn fetch(&mut self, statement_id: u32, rows: u32, sink: &mut dyn ResultSink) -> Result<()> {
        self.session.fetch_binary(statement_id, rows, sink)
    }

    fn reset_statement(&mut self, statement_id: u32) -> Result<OkInfo> {
        self.session.shared.counters.add(crate::status::Counter::STMT_RESET, 1);
        self.session.prepared.reset(statement_id)?;
        Ok(self.session.flags())
    }

    fn close_statement(&mut self, statement_id: u32) {
        self.session.shared.counters.add(crate::status::Counter::STMT_CLOSE, 1);
        self.session.prepared.close(statement_id, &self.session.server);
    }

    fn register_replica(&mut self, replica: RegisteredReplica) -> Result<OkInfo> {
        crate::binary_log::register(&mut self.session, replica)
    }

    fn dump_binary_log(&mut self, request: DumpRequest, sink: &mut dyn DumpSink) -> Result<()> {
        crate::binary_log::dump(&mut self.session, request, sink)
    }

    fn init_db(&mut self, schema: &str) -> Result<OkInfo> {
        self.session.working.clear();
        self.session.limits.check_password_current()?;
        self.session.use_schema(schema)?;
        Ok(self.session.state_info())
    }

    fn repeat_transaction(&mut self, next: &RepeatedTransaction<'_>) -> Result<()> {
        crate::replication::repeat_transaction(&mut self.session, next)
    }

    fn field_list(&mut self, table: &str, wildcard: &str) -> Result<Vec<ColumnMeta>> {
        self.session.limits.check_password_current()?;
        self.list_fields(table, wildcard)
    }

    fn count(&mut self, command: CountedCommand) {
        self.session.shared.counters.add(command.into(), 1);
    }

    fn statistics(&mut self) -> String {
        describe::statistics_line(&*self.session.server)
    }

    fn kill(&mut self, connection_id: u64) -> Result<OkInfo> {
        self.session.kill_connection(connection_id, false)?;
        Ok(self.session.flags())
    }

    fn reset_connection(&mut self) -> Result<OkInfo> {
        self.session.reset()?;
        Ok(self.session.flags())
    }

    fn change_user(&mut self, request: &AuthRequest) -> Result<OkInfo> {
        self.logged_in = None;
        // The old login's work is rolled back whether or not the new one succeeds.
        let _ = self.session.reset();
        self.session.set_database(None, self.session.settings.collation_server);
        self.session.client.collation = request.collation;
        self.session.shared.activity.lock().account.clear();
        self.session.log_in(request, LogIn::ChangeUser)?;
        self.session.tell_connected();
        Ok(self.session.flags())
    }

    fn remember_login(&mut self) {
        self.logged_in = LoggedIn::of(&self.session).map(Box::new);
    }

    fn renew(&mut self) -> bool {
        self.logged_in.as_ref().is_some_and(|login| login.renew(&mut self.session))
    }

    fn set_multi_statements(&mut self, on: bool) {
        self.session.client.multi_statements = on;
    }

    fn idle_transaction_limit(&self) -> Option<(&'static str, Duration)> {
        let session = &self.session;
        session.transactions.idle_limit(&session.settings)
    }

    fn integer_variable(&self, name: &str) -> u64 {
        as_u64(&self.session.value(name))
    }

    fn result_collation(&self) -> u16 {
        match self.session.settings.charset_results {
            None => types::CollationId::BINARY.0,
            Some(charset) => {
                self.session.client.results_collation.unwrap_or(charset.default_collation.0)
            }
        }
    }

    fn has_privilege(&self, name: &str) -> bool {
        self.session.privileges.has_named(name)
    }

    fn check_reads_table(&mut self, schema: &str, table: &str) -> Result<()> {
        self.session.check_privileges_current();
        crate::restricted::check_reads_table(&self.session, schema, table)
    }

    fn state(&self) -> OkInfo {
        self.session.flags()
    }
}
