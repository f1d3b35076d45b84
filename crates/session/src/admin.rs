//! Statements about the server and other sessions, and SHOW through the rewriters.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{AccountName, LockMode, PrivilegeSet};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{ColumnMeta, CommandOutcome, OkInfo, ResultSink, RewriteContext};
use syntax::Statement;
use syntax::ast::{self, Explain, Flush, FlushItem, FlushTablesMode, ShowKind};
use types::{CollationId, DataType, Value};

use crate::planned::Planned;
use crate::program_host::ProgramSession;
use crate::session::Session;
use crate::sink::send_rows;
use crate::statement::{Origin, Running, parse_error};
use describe::Information;

impl Session {
    /// KILL.
    pub(crate) fn run_kill(
        &mut self,
        query_only: bool,
        id: &ast::Expr,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let id = match self.evaluate(id, running)?.0 {
            Value::Int(id) => u64::try_from(id).map_err(|_| err!(NO_SUCH_THREAD, id))?,
            Value::UInt(id) => id,
            other => bail!(NO_SUCH_THREAD, variables::shown(&other)),
        };
        self.kill_connection(id, query_only)?;
        if id == self.shared.id && !query_only {
            self.outcome = CommandOutcome::Close;
            bail!(QUERY_INTERRUPTED);
        }
        self.send_ok(sink, OkInfo::default())
    }

    /// Stops a session or its statement.
    ///
    /// # Errors
    /// 1094, 1095.
    pub(crate) fn kill_connection(&mut self, id: u64, query_only: bool) -> Result<()> {
        let target = self.server.sessions.get(id).ok_or_else(|| err!(NO_SUCH_THREAD, id))?;
        let own = target.activity.lock().account == self.account.to_string();
        if !own && !self.privileges.has_dynamic("CONNECTION_ADMIN") {
            bail!(KILL_DENIED_ERROR, id);
        }
        if query_only {
            target.cancel.kill_query();
        } else {
            target.cancel.kill_connection();
        }
        Ok(())
    }

    /// SHUTDOWN.
    pub(crate) fn run_shutdown(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        self.require_global(PrivilegeSet::SHUTDOWN)?;
        self.send_ok(sink, OkInfo::default())?;
        self.outcome = CommandOutcome::Close;
        self.server.request_shutdown();
        Ok(())
    }

    /// FLUSH: there is nothing to flush, as everything is current; the locks that it takes are taken.
    pub(crate) fn run_flush(&mut self, flush: &Flush, sink: &mut dyn ResultSink) -> Result<()> {
        if !self.privileges.has_dynamic("FLUSH_TABLES") {
            self.require_global(PrivilegeSet::RELOAD)?;
        }
        for item in &flush.items {
            match item {
                FlushItem::Tables { tables, mode } => self.flush_tables(tables, *mode)?,
                FlushItem::Status => self.server.sessions.reset_sums(),
                FlushItem::Privileges => {
                    self.refresh_privileges();
                    self.server.logins.failed.forget_all();
                    self.working.warn(
                        ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT,
                        &[&"FLUSH PRIVILEGES"],
                    );
                }
                FlushItem::BinaryLogs
                | FlushItem::EngineLogs
                | FlushItem::ErrorLogs
                | FlushItem::GeneralLogs
                | FlushItem::Logs
                | FlushItem::OptimizerCosts
                | FlushItem::RelayLogs { .. }
                | FlushItem::SlowLogs => {}
                FlushItem::UserResources => self.server.logins.usages.reset(),
            }
        }
        self.services.row_count = 0;
        self.send_ok(sink, OkInfo::default())
    }

    fn flush_tables(&mut self, tables: &[ast::ObjectName], mode: FlushTablesMode) -> Result<()> {
        match mode {
            FlushTablesMode::Close => {
                for name in tables {
                    let (schema, name) = self.qualify(name)?;
                    self.find_table(&schema, &name)?;
                }
                Ok(())
            }
            FlushTablesMode::WithReadLock if tables.is_empty() => {
                let timeout = self.settings.lock_wait_timeout;
                let wanted = [(None, LockMode::NoWrite)];
                let locks = self.server.metadata_locks.clone();
                let guard = locks.lock(self.shared.id, &wanted, timeout, &self.shared.cancel)?;
                let cancel = self.shared.cancel.clone();
                sys::blocking::blocking(|| self.server.catalog.settle(&cancel))?;
                self.locked.global_read = Some(guard);
                Ok(())
            }
            FlushTablesMode::WithReadLock | FlushTablesMode::ForExport => {
                let locks: Vec<ast::LockTable> = tables
                    .iter()
                    .map(|name| ast::LockTable {
                        name: name.clone(),
                        alias: None,
                        mode: ast::LockTableMode::Read,
                    })
                    .collect();
                self.take_table_locks(&locks)
            }
        }
    }

    /// CACHE INDEX, LOAD INDEX: of another engine.
    pub(crate) fn key_cache(&mut self, _sink: &mut dyn ResultSink) -> Result<()> {
        Err(Error::not_supported("CACHE INDEX and LOAD INDEX INTO CACHE"))
    }

    /// SHOW, DESCRIBE and HELP.
    pub(crate) fn run_rewritten(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if let Statement::Show(show) = statement {
            if matches!(
                show.kind,
                ShowKind::Warnings(_)
                    | ShowKind::Errors(_)
                    | ShowKind::WarningCount
                    | ShowKind::ErrorCount
            ) {
                self.keeps_diagnostics = true;
            }
            let old = match show.kind {
                ShowKind::Profiles => Some("SHOW PROFILES"),
                ShowKind::Profile { .. } => Some("SHOW PROFILE"),
                _ => None,
            };
            if let Some(old) = old {
                let words: [&dyn std::fmt::Display; 2] = [&old, &"Performance Schema"];
                self.working.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &words);
            }
            if let Some(done) = self.show_directly(&show.kind, sink)? {
                return Ok(done);
            }
        }
        let types = self.parameter_types(running);
        let planned = self.plan_rewritten(statement, running.source, types.as_deref())?;
        self.lock_plan(&planned)?;
        let found_rows = self.services.found_rows;
        self.run_to_client(&planned, running.parameters, sink)?;
        if let Statement::Show(show) = statement
            && matches!(show.kind, ShowKind::Warnings(_) | ShowKind::Errors(_))
        {
            self.services.found_rows = found_rows;
        }
        Ok(())
    }

    /// The plan of the SELECT behind a SHOW. Its parameters are the statement's, in the same order: WHERE stands before LIMIT in both.
    pub(crate) fn plan_rewritten(
        &mut self,
        statement: &Statement,
        source: &[u8],
        types: Option<&[DataType]>,
    ) -> Result<Arc<Planned>> {
        let sql = self.rewrite(source)?.ok_or_else(|| Error::not_supported(shown(statement)))?;
        let parsed =
            syntax::parse_one(&sql, &self.parse_options()).map_err(|error| parse_error(&error))?.0;
        self.planner().plan_statement(&parsed, sql.as_bytes(), types)
    }

    fn rewrite(&mut self, source: &[u8]) -> Result<Option<String>> {
        let context = RewriteContext {
            database: self.services.database.as_ref().map(|name| name.to_string()),
            sql_mode: self.settings.sql_mode,
            current_user: self.account.to_string(),
        };
        let text = String::from_utf8_lossy(source);
        // The text may go on with further statements: a rewriter reads the first.
        let information = self.information();
        for rewriter in self.server.registry.rewriters() {
            if let Some(sql) = rewriter.rewrite(&text, &context, &information)? {
                return Ok(Some(sql));
            }
        }
        Ok(None)
    }

    /// The session as information tables see it.
    pub(crate) fn information(&self) -> Information<'_> {
        Information {
            server: &*self.server,
            connection: &*self.shared,
            values: self.services.values.clone(),
            privileges: &self.privileges,
            diagnostics: &self.diagnostics,
            database: self.services.database.clone(),
            account: &self.account,
            temporary: &self.temporary,
            tls: self.client.tls.as_ref(),
            active_roles: &self.active_roles,
        }
    }

    /// SHOW statements about accounts, which are no view on a table.
    fn show_directly(&mut self, kind: &ShowKind, sink: &mut dyn ResultSink) -> Result<Option<()>> {
        use plugin_api::AccountInformation;
        let text = DataType::varchar(1024, CollationId::UTF8MB4_0900_AI_CI);
        match kind {
            ShowKind::Grants { user, using } => {
                let name = match user {
                    Some(user) if !user.current => {
                        Some(format!("{}@{}", user.user, user.host.as_deref().unwrap_or("%")))
                    }
                    _ => None,
                };
                let mut grants = self.information().grants(name.as_deref())?;
                if !using.is_empty() {
                    let accounts = self.server.catalog.snapshot().accounts().clone();
                    let named = name.as_deref().map(::accounts::parse_account);
                    let account = accounts.get(&named.unwrap_or_else(|| self.account.clone()));
                    let roles: Vec<catalog::AccountName> = using
                        .iter()
                        .map(|role| {
                            let host = role.host.as_deref().unwrap_or("%");
                            catalog::AccountName::new(&role.user, host)
                        })
                        .collect();
                    if let Some(account) = account {
                        for role in &roles {
                            if !account.roles.iter().any(|grant| grant.role == *role) {
                                let whom = &account.name;
                                bail!(ROLE_NOT_GRANTED, role.user, role.host, whom.user, whom.host);
                            }
                        }
                        let merged = describe::with_roles(&accounts, account, &roles);
                        grants = describe::grant_statements(&merged);
                    }
                }
                let shown = name.unwrap_or_else(|| self.account.to_string());
                let column = ColumnMeta::computed(&format!("Grants for {shown}"), text);
                let rows: Vec<Vec<Value>> =
                    grants.iter().map(|grant| vec![Value::text(grant)]).collect();
                let state = self.state_info();
                send_rows(sink, &[column], &rows, &state).map(Some)
            }
            ShowKind::CreateProcedure(name) => programs::show_create_routine(
                &mut ProgramSession::new(self),
                name,
                catalog::RoutineKind::Procedure,
                sink,
            )
            .map(Some),
            ShowKind::CreateEvent(name) => {
                programs::show_create_event(&mut ProgramSession::new(self), name, sink).map(Some)
            }
            ShowKind::Events(schema) => {
                let schema = match schema {
                    Some(schema) => Arc::from(&*schema.text),
                    None => self.current_schema()?,
                };
                if !self.privileges.on_schema(&schema).contains(PrivilegeSet::EVENT) {
                    let AccountName { user, host } = &self.account;
                    bail!(DBACCESS_DENIED_ERROR, user, host, schema);
                }
                Ok(None)
            }
            ShowKind::CreateTrigger(name) => {
                programs::show_create_trigger(&mut ProgramSession::new(self), name, sink).map(Some)
            }
            ShowKind::CreateFunction(name) => programs::show_create_routine(
                &mut ProgramSession::new(self),
                name,
                catalog::RoutineKind::Function,
                sink,
            )
            .map(Some),
            ShowKind::CreateUser(user) => {
                let name = if user.current {
                    self.account.clone()
                } else {
                    catalog::AccountName::new(&user.user, user.host.as_deref().unwrap_or("%"))
                };
                let accounts = self.server.catalog.snapshot().accounts().clone();
                let account = accounts.get(&name).ok_or_else(|| {
                    let shown = format!("'{}'@'{}'", name.user, name.host);
                    err!(
                        CANNOT_USER,
                        "SHOW CREATE USER",
                        format!("{shown} (User account does not exist)")
                    )
                })?;
                if name != self.account {
                    self.require_global(PrivilegeSet::CREATE_USER)?;
                }
                let column = ColumnMeta::computed(&format!("CREATE USER for {name}"), text);
                let statement = describe::create_user_statement(account);
                let state = self.state_info();
                send_rows(sink, &[column], &[vec![Value::text(&statement)]], &state).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// EXPLAIN of a statement with a plan; ANALYZE runs it.
    pub(crate) fn run_explain(
        &mut self,
        statement: &Statement,
        explain: &Explain,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        if explain.into.is_some() {
            return Err(Error::not_supported("EXPLAIN INTO"));
        }
        if explain.schema.is_some() {
            return Err(Error::not_supported("EXPLAIN FOR SCHEMA"));
        }
        if let ast::ExplainTarget::Connection(id) = explain.target
            && !explain.analyze
        {
            return self.explain_connection(id, explain, sink);
        }
        if let ast::ExplainTarget::Statement(inner) = &explain.target
            && matches!(**inner, Statement::Show(_) | Statement::Describe(_))
        {
            bail!(EXPLAIN_NOT_SUPPORTED);
        }
        if explain.analyze {
            return self.explain_analyze(explain, running, sink);
        }
        let format = match &explain.format {
            Some(format) => format.text.to_string(),
            None => variables::as_text(&self.value("explain_format")),
        };
        if format.eq_ignore_ascii_case("JSON")
            && let ast::ExplainTarget::Statement(inner) = &explain.target
        {
            return self.explain_json(inner, running, sink);
        }
        if explain.format.is_some() {
            return self.run_planned_statement(statement, running, sink);
        }
        let format = if format == "DEFAULT" { "TRADITIONAL" } else { &format };
        let formatted = Explain { format: Some(ast::Ident::new(format)), ..explain.clone() };
        self.run_planned_statement(&Statement::Explain(Box::new(formatted)), running, sink)
    }
}

impl Session {
    /// EXPLAIN FOR CONNECTION: the plan that this session would choose for what another one runs, in that one's schema.
    ///
    /// # Errors
    /// 1094, 1045, and 3012 when it runs nothing that has a plan.
    fn explain_connection(
        &mut self,
        id: u64,
        explain: &Explain,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let target = self.server.sessions.get(id).ok_or_else(|| err!(NO_SUCH_THREAD, id))?;
        let (own, text, database) = {
            let activity = target.activity.lock();
            let own = activity.account == self.account.to_string();
            (own, activity.info.clone(), activity.database.clone())
        };
        if !own && !self.privileges.global().contains(PrivilegeSet::PROCESS) {
            let (user, host) = (&self.account.user, &self.account.host);
            bail!(ACCESS_DENIED_ERROR, user, host, "YES");
        }
        let parsed = syntax::parse_bytes(&text, &self.parse_options());
        let Ok((inner, _)) = parsed else { bail!(EXPLAIN_NOT_SUPPORTED) };
        let has_plan = matches!(
            inner,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
        );
        if !has_plan {
            bail!(EXPLAIN_NOT_SUPPORTED);
        }
        let explain =
            Explain { target: ast::ExplainTarget::Statement(Box::new(inner)), ..explain.clone() };
        let statement = Statement::Explain(Box::new(explain.clone()));
        let running = Running { source: &text, parameters: &[], origin: Origin::Text, kept: None };
        let before = std::mem::replace(&mut self.services.database, database);
        let outcome = self.run_explain(&statement, &explain, &running, sink);
        self.services.database = before;
        outcome
    }
}

fn shown(statement: &Statement) -> &'static str {
    match statement {
        Statement::Show(_) => "this SHOW",
        Statement::Describe(_) => "DESCRIBE",
        _ => "HELP",
    }
}
