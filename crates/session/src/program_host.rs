//! The session as stored programs see it.

use std::sync::Arc;

use ::accounts::{PrivilegeChecks, parse_account};
use catalog::{
    AccountName, CatalogSnapshot, CatalogView, Edit, EffectivePrivileges, Event, MetadataGuard,
    Table,
};
use engine_api::{CancelToken, TableId};
use errors::{Diagnostics, Error, Result, bail};
use plugin_api::{
    CompiledProgram, OkInfo, ProgramLanguage, ProgramOutcome, ResultSink, SessionServices,
    SystemProcedure,
};
use programs::{
    Conditions, DefinitionHost, EventHost, EventScheduler, Facts, Loaded, ProgramHost, ProgramState,
};
use syntax::ast::{Expr, ObjectName, Statement};
use types::convert::{CastContext, StoreMode, store};
use types::{DataType, FixedOffset, SqlMode, Value, ZoneRules};
use variables::{Settings, as_u64};

use crate::plan_cache::{PlanContext, PlanSettings};
use crate::planned::Planned;
use crate::server::Server;
use crate::session::Session;
use programs::Running;

/// The state that a call saves and restores.
pub(crate) struct Outside {
    sql_mode: SqlMode,
    database: Option<Arc<str>>,
    account: Option<(AccountName, Vec<AccountName>, String)>,
    more_results: bool,
    depth: u32,
    runs_prepared: bool,
}

/// Whether `user@host` is the account.
fn is_account(text: &str, account: &AccountName) -> bool {
    text.rsplit_once('@')
        .is_some_and(|(user, host)| *user == *account.user && *host == *account.host)
}

/// A session as the host of stored programs.
pub(crate) struct ProgramSession<'s> {
    session: &'s mut Session,
}

impl<'s> ProgramSession<'s> {
    pub(crate) fn new(session: &'s mut Session) -> ProgramSession<'s> {
        ProgramSession { session }
    }
}

impl PrivilegeChecks for ProgramSession<'_> {
    fn account(&self) -> &AccountName {
        &self.session.account
    }

    fn privileges(&self) -> &EffectivePrivileges {
        &self.session.privileges
    }

    fn client_host(&self) -> Option<&str> {
        self.session.client_host()
    }
}

impl ProgramSession<'_> {
    fn set_sql_mode(&mut self, mode: SqlMode) {
        if self.session.settings.sql_mode != mode {
            self.session.store_session("sql_mode", Value::text(&mode.to_text()));
            self.session.refresh_settings();
        }
    }

    /// Sets the current schema, which may have been dropped in the meantime.
    fn move_to_schema(&mut self, schema: Option<Arc<str>>) {
        let snapshot = self.session.snapshot();
        let known = schema.as_deref().and_then(|name| snapshot.schema(name));
        let collation = match known {
            Some(schema) => charset::collation_or_binary(schema.options.collation),
            None => self.session.settings.collation_server,
        };
        self.session.set_database(schema, collation);
    }
}

impl ProgramHost for ProgramSession<'_> {
    type Plan = Arc<Planned>;
    type Context = PlanContext;
    type Outside = Outside;

    fn state(&self) -> &ProgramState<Arc<Planned>, PlanContext> {
        &self.session.programs
    }

    fn state_mut(&mut self) -> &mut ProgramState<Arc<Planned>, PlanContext> {
        &mut self.session.programs
    }

    fn system_procedure(&self, schema: &str, name: &str) -> Option<Arc<SystemProcedure>> {
        self.session.server.registry().system_procedure(schema, name).cloned()
    }

    fn settings(&self) -> &Settings {
        &self.session.settings
    }

    fn snapshot(&self) -> Arc<CatalogSnapshot> {
        self.session.snapshot()
    }

    fn conditions(&mut self) -> Conditions<'_> {
        Conditions {
            last: &mut self.session.diagnostics,
            working: &mut self.session.working,
            keeps: &mut self.session.statement.keeps_diagnostics,
        }
    }

    fn check_running(&self) -> Result<()> {
        self.session.shared.cancel.check()
    }

    fn is_connection_killed(&self) -> bool {
        self.session.shared.cancel.is_connection_killed()
    }

    fn function_depth(&self) -> u32 {
        self.session.transactions.function_depth
    }

    fn begin_scope(&mut self) {
        self.session.transactions.begin_scope(&self.session.settings);
    }

    fn finish_scope(&mut self) -> Result<()> {
        self.session.finish_transaction_scope().map(drop)
    }

    fn abort_scope(&mut self, error: &Error) {
        self.session.abort_transaction_scope(error);
    }

    fn move_time(&mut self) {
        if self.session.transactions.function_depth == 0 {
            self.session.statement.started_micros = self.session.server.now_micros();
        }
    }

    fn begin_part(&mut self) {
        self.move_time();
        let mut working = Diagnostics::new(self.session.settings.max_error_count);
        working.set_notes_enabled(self.session.settings.sql_notes);
        self.session.working = working;
        self.session.services.warning_count = self.session.diagnostics.warning_count();
        self.session.services.error_count = self.session.diagnostics.error_count();
        self.session.services.statement_number += 1;
        self.session.services.last_insert_id_set = false;
    }

    fn note_text(&mut self, text: &[u8]) {
        if self.session.server.hooks.logs_commits() {
            self.session.statement.program_text = Some(text.to_vec());
        }
    }

    fn end_part(&mut self) {
        self.session.end_statement();
    }

    fn run_statement(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.session.run_statement(statement, running, sink)
    }

    fn plan_query(&mut self, query: &Statement, running: &Running<'_>) -> Result<Arc<Planned>> {
        self.session.plan_and_lock(query, running)
    }

    fn plan_value(&mut self, expr: &Expr, running: &Running<'_>) -> Result<Arc<Planned>> {
        self.session.plan_expression(expr, running)
    }

    fn value_of_plan(
        &mut self,
        plan: &Arc<Planned>,
        running: &Running<'_>,
    ) -> Result<(Value, DataType)> {
        self.session.value_of_plan(plan, running)
    }

    fn rows_of_plan(
        &mut self,
        plan: &Arc<Planned>,
        parameters: &[Value],
    ) -> Result<(Vec<Vec<Value>>, Vec<DataType>)> {
        // The session's limit is for results.
        let limit = self.session.settings.sql_select_limit.take();
        let rows = self.session.run_collecting(plan, parameters);
        self.session.settings.sql_select_limit = limit;
        let types = plan.program.columns().iter().map(|column| column.ty.clone());
        Ok((rows?, types.collect()))
    }

    fn plan_context(&self) -> PlanContext {
        PlanContext {
            database: self.session.services.database.clone(),
            settings: PlanSettings::of(&self.session.settings),
        }
    }

    fn may_keep(&self, plan: &Arc<Planned>) -> bool {
        plan.cacheable && (plan.tables.is_empty() || self.session.may_share_plans())
    }

    fn lock_kept(&mut self, plan: &Arc<Planned>) -> Result<bool> {
        Ok((plan.tables.is_empty() || self.session.may_share_plans())
            && self.session.server.plugins.is_current(&plan.registry)
            && self.session.lock_plan(plan)?)
    }

    fn convert(
        &mut self,
        name: &str,
        value: &Value,
        from: &DataType,
        to: &DataType,
    ) -> Result<Value> {
        let sql_mode = self.session.settings.sql_mode;
        let mode = if sql_mode.is_strict() { StoreMode::Strict } else { StoreMode::Lenient };
        let now =
            self.session.services.fixed_now_micros.unwrap_or(self.session.statement.started_micros);
        let today =
            self.session.statement.local_clock.read(now, &*self.session.settings.time_zone).date();
        let mut ctx = CastContext {
            sql_mode,
            diagnostics: &mut self.session.working,
            time_zone: &*self.session.settings.time_zone,
            today,
            column: name,
            row: 1,
        };
        store(value, from, to, &mut ctx, mode)
    }

    fn language(&self, name: &str) -> Option<Arc<dyn ProgramLanguage>> {
        self.session.server.registry().language(name).cloned()
    }

    fn invoke(
        &mut self,
        program: &dyn CompiledProgram,
        arguments: &[Value],
    ) -> Result<ProgramOutcome> {
        self.session.invoke_program(program, arguments)
    }

    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) {
        self.session.services.set_user_variable(name, value, ty);
    }

    fn row_count(&self) -> i64 {
        self.session.services.row_count
    }

    fn set_row_count(&mut self, count: i64) {
        self.session.services.row_count = count;
    }

    fn enter(&mut self, loaded: &Loaded) -> Result<Outside> {
        let mut outside = Outside {
            sql_mode: self.session.settings.sql_mode,
            database: self.session.services.database.clone(),
            account: None,
            more_results: self.session.statement.more_results,
            depth: self.session.statement.depth,
            runs_prepared: self.session.statement.runs_prepared,
        };
        if !loaded.invoker && !is_account(&loaded.definer, &self.session.account) {
            let definer = parse_account(&loaded.definer);
            let snapshot = self.session.snapshot();
            if snapshot.accounts().get(&definer).is_none() && &*definer.user != "root" {
                bail!(NO_SUCH_USER, definer.user, definer.host);
            }
            let roles =
                snapshot.accounts().get(&definer).map(|account| account.default_roles.clone());
            outside.account = Some((
                std::mem::replace(&mut self.session.account, definer),
                std::mem::replace(&mut self.session.active_roles, roles.unwrap_or_default()),
                std::mem::replace(
                    &mut self.session.services.current_user,
                    loaded.definer.to_string(),
                ),
            ));
            self.session.refresh_privileges();
        }
        self.set_sql_mode(SqlMode(loaded.sql_mode));
        if self.session.services.database.as_deref() != Some(&*loaded.schema) {
            self.move_to_schema(Some(loaded.schema.clone()));
        }
        self.session.statement.more_results = true;
        self.session.statement.depth = 0;
        self.session.statement.runs_prepared = false;
        Ok(outside)
    }

    fn leave(&mut self, outside: Outside) {
        self.session.statement.more_results = outside.more_results;
        self.session.statement.depth = outside.depth;
        self.session.statement.runs_prepared = outside.runs_prepared;
        if let Some((account, roles, shown)) = outside.account {
            self.session.account = account;
            self.session.active_roles = roles;
            self.session.services.current_user = shown;
            self.session.refresh_privileges();
        }
        self.set_sql_mode(outside.sql_mode);
        if self.session.services.database != outside.database {
            self.move_to_schema(outside.database);
        }
    }

    fn commits_implicitly(&self, statement: &Statement) -> bool {
        crate::statement_kind::commits_implicitly(statement)
    }

    fn recursion_max(&self) -> u64 {
        as_u64(&self.session.value("max_sp_recursion_depth"))
    }

    fn has_variable(&self, name: &str) -> bool {
        self.session.server.globals.definitions.find(name).is_some()
    }

    fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)> {
        self.session.qualify(name)
    }

    fn state_info(&mut self) -> OkInfo {
        self.session.state_info()
    }

    fn send_ok(&mut self, sink: &mut dyn ResultSink, ok: OkInfo) -> Result<()> {
        self.session.send_ok(sink, ok)
    }
}

impl DefinitionHost for ProgramSession<'_> {
    fn facts(&self) -> Facts {
        Facts {
            now_micros: self
                .session
                .services
                .fixed_now_micros
                .unwrap_or(self.session.statement.started_micros),
            charset_client: self.session.services.text("character_set_client").into(),
            time_zone: self.session.services.text("time_zone").into(),
        }
    }

    fn view(&self) -> CatalogView {
        self.session.view()
    }

    fn check_writable(&self, schema: &str) -> Result<()> {
        crate::ddl::check_writable_in(self.session, schema)
    }

    fn find_table(&self, schema: &str, name: &str) -> Result<Arc<Table>> {
        self.session.find_table(schema, name)
    }

    fn lock_for_ddl(&mut self, tables: &[TableId]) -> Result<MetadataGuard> {
        self.session.lock_for_ddl(tables)
    }

    fn has_native_function(&self, name: &str) -> bool {
        self.session.server.registry().function(&name.to_ascii_uppercase()).is_some()
    }

    fn grants_to_makers(&self) -> bool {
        self.session.server.globals.integer("automatic_sp_privileges") != 0
    }

    fn events(&self) -> Arc<EventScheduler> {
        self.session.server.events.clone()
    }

    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules> {
        EventHost::event_zone(&*self.session.server, event)
    }

    fn commit(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()> {
        let commit = self.session.commit_definitions(edits)?;
        if edits.iter().any(|edit| matches!(edit, Edit::PutAccount(_))) {
            self.session.refresh_privileges();
        }
        if edits.iter().any(|edit| matches!(edit, Edit::PutEvent { .. } | Edit::DropEvent { .. })) {
            self.session.server.events.wake();
        }
        self.session.services.row_count = 0;
        self.session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
    }
}

impl EventHost for Server {
    fn now_micros(&self) -> i64 {
        Server::now_micros(self)
    }

    fn is_scheduler_on(&self) -> bool {
        self.globals.text("event_scheduler") == "ON"
    }

    fn catalog(&self) -> &catalog::Catalog {
        &self.catalog
    }

    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules> {
        self.zone(&event.time_zone).unwrap_or_else(|| Arc::new(FixedOffset::utc()))
    }

    fn run_event(&self, event: &Event, session: u64, cancel: CancelToken) -> Result<()> {
        Session::open_for_event(self.arc()?, session, cancel, event)?.run_event(event)
    }
}
