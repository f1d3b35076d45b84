//! Statements that have a plan: binding, planning, running, and reporting their outcome.

use std::sync::Arc;

use catalog::Usage;
use engine_api::TimeLimit;
use errors::{Error, Result, bail, err};
use exec::{Environment, ExecContext, ExecSettings, Outcome, RowSink};
use plugin_api::{FunctionContext, OkInfo, ResultSink};
use syntax::ast::{self, Statement};
use types::{DataType, Value};

use crate::planned::{Planned, PlannedKind};
use crate::profile;
use crate::program_host::ProgramSession;
use crate::session::Session;
use crate::{optimizer_trace, outfile};
use accounts::Resource;
use describe::Information;
use observation::Phase;
use programs::Running;
use statements::copier::Copier;
use statements::sink::{ClientRows, CollectedRows, NoRows, SingleRow};
use transactions::Writable;
use variables::TransactionTracking;

/// Plans that are expected to touch more rows than this hand over their reactor thread before they run.
const LONG_PLAN_ROWS: u64 = 20_000;
/// Bytes that one statement may hold.
const STATEMENT_MEMORY_BYTES: usize = 1 << 30;
/// Maximum number of times that a plan is made again because definitions changed.
const REPLAN_MAX: usize = 16;

impl Session {
    /// Runs SELECT, with its INTO.
    pub(crate) fn run_query(
        &mut self,
        statement: &Statement,
        query: &ast::Query,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match find_into(query) {
            None => self.run_planned_statement(statement, running, sink),
            Some(ast::Into::Variables(targets)) => {
                self.select_into_variables(statement, targets, running, sink)
            }
            Some(ast::Into::Outfile { file, charset, format }) => {
                let charset = charset.as_ref().map(|name| &*name.text);
                outfile::select_into_file(
                    self,
                    statement,
                    file,
                    charset,
                    Some(format),
                    running,
                    sink,
                )
            }
            Some(ast::Into::Dumpfile(file)) => {
                outfile::select_into_file(self, statement, file, None, None, running, sink)
            }
        }
    }

    /// Plans and runs a statement, rows to the client.
    pub(crate) fn run_planned_statement(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let planned = self.plan_and_lock(statement, running)?;
        self.run_to_client(&planned, running.parameters, sink)
    }

    /// Makes a plan from current definitions of its tables, with their metadata locks taken.
    pub(crate) fn plan_and_lock(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
    ) -> Result<Arc<Planned>> {
        let address = std::ptr::from_ref(statement) as usize;
        let may_keep = running.kept == Some(address)
            && self.profile.is_none()
            && !self.settings.traces_optimizer;
        if may_keep
            && let Some(known) = programs::kept_plan(&mut ProgramSession::new(self), address)?
        {
            return Ok(known);
        }
        self.enter(Phase::Plan);
        let types = self.parameter_types(running);
        // The plan of a program's statement is kept for values to come.
        let values = if running.kept.is_none() { running.parameters } else { &[] };
        for _ in 0..REPLAN_MAX {
            let (source, types) = (running.source, types.as_deref());
            let planned = match self.profile {
                None if self.settings.traces_optimizer => {
                    optimizer_trace::plan_traced(self, statement, running, types)?
                }
                None => self.planner().knowing(values).plan_statement(statement, source, types)?,
                Some(_) => profile::plan_profiled(self, statement, source, types)?,
            };
            if self.lock_plan(&planned)? {
                if may_keep {
                    programs::keep_plan(&mut ProgramSession::new(self), address, &planned);
                }
                return Ok(planned);
            }
        }
        Err(err!(NEED_REPREPARE))
    }

    /// Types of the values that a statement is run with, where it has parameters.
    pub(crate) fn parameter_types(&self, running: &Running<'_>) -> Option<Vec<DataType>> {
        match running.origin {
            programs::Origin::Text => None,
            programs::Origin::Program => self.programs.frame().map(|frame| frame.types().to_vec()),
            programs::Origin::Prepared => {
                let collation = self.settings.collation_connection.id;
                let ty = |value| statements::preparable::type_of_value(value, collation);
                Some(running.parameters.iter().map(ty).collect())
            }
        }
    }

    /// Checks privileges and takes metadata locks; false when the plan is out of date.
    pub(crate) fn lock_plan(&mut self, planned: &Planned) -> Result<bool> {
        self.check_plan_privileges(planned)?;
        if !self.programs.is_outermost() {
            crate::with_programs::check_tables_above(&self.programs, planned)?;
        }
        let writes = planned.uses.iter().any(|(_, usage)| *usage == Usage::Write);
        if writes {
            self.limits.count_use(Resource::Updates, || self.server.now_micros())?;
            self.check_writable()?;
            // A value of a sequence: the engine refuses what is written otherwise.
            if self.transactions.characteristics.read_only && planned.targets.is_empty() {
                bail!(CANT_EXECUTE_IN_READ_ONLY_TRANSACTION);
            }
            if self.locked.global_read.is_some() {
                bail!(CANT_UPDATE_WITH_READLOCK);
            }
        }
        if self.locked.is_in_force() {
            self.locked.check_use(planned, &self.view())?;
        }
        self.transactions.check_branch_tables(planned)?;
        if self.settings.track_transaction != TransactionTracking::Off {
            self.transactions.report.note(planned);
        }
        if planned.uses.is_empty() && !planned.programs.is_empty()
            || self.transactions.function_depth > 0 && self.transactions.slot.holds(&planned.uses)
        {
            return Ok(self.is_current(planned));
        }
        if !planned.uses.is_empty() {
            let mark = self.transactions.slot.mark();
            let timeout = self.settings.lock_wait_timeout;
            let locks = &self.server.metadata_locks;
            locks.use_tables(
                &self.transactions.slot,
                &planned.uses,
                timeout,
                &self.shared.cancel,
            )?;
            if !self.is_current(planned) {
                self.transactions.slot.release_to(mark);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs a locked plan, rows to the client.
    pub(crate) fn run_to_client(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add_some(planned.counter);
        let columns = planned.program.columns();
        if columns.is_empty() {
            let outcome = self.run_program(planned, parameters, &mut NoRows)?;
            return self.finish_without_rows(planned, outcome, sink);
        }
        if self.settings.track_transaction != TransactionTracking::Off {
            self.transactions.report.note_result();
        }
        let mut rows = ClientRows::new(sink, columns);
        let outcome = self.run_program(planned, parameters, &mut rows)?;
        self.services.note_outcome(planned.kind, &outcome, self.client.found_rows);
        let commit = self.finish_transaction_scope()?;
        let state = OkInfo { commit, ..self.state_info() };
        rows.finish(&state)
    }

    /// Runs a locked plan and keeps its rows: server-side cursors, statements that the session runs itself.
    pub(crate) fn run_collecting(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let mut rows = CollectedRows::new(STATEMENT_MEMORY_BYTES);
        let outcome = self.run_program(planned, parameters, &mut rows)?;
        self.services.note_outcome(planned.kind, &outcome, self.client.found_rows);
        Ok(rows.rows)
    }

    fn finish_without_rows(
        &mut self,
        planned: &Planned,
        outcome: Outcome,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let affected_rows =
            self.services.note_outcome(planned.kind, &outcome, self.client.found_rows);
        let commit = self.finish_transaction_scope()?;
        let last_insert_id = if self.services.last_insert_id_set {
            self.services.last_insert_id
        } else {
            outcome.insert_id
        };
        let info = outcome.info;
        self.send_ok(
            sink,
            OkInfo { affected_rows, last_insert_id, info, commit, ..OkInfo::default() },
        )
    }

    /// Runs a locked plan.
    pub(crate) fn run_program(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        match self.profile {
            None => self.run_program_plain(planned, parameters, rows),
            Some(_) => profile::run_profiled(self, planned, parameters, rows),
        }
    }

    /// The same, not as part of a profile.
    #[inline]
    pub(crate) fn run_program_plain(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        self.enter(Phase::Execute);
        if planned.estimated_rows > LONG_PLAN_ROWS {
            let cancel = self.shared.cancel.clone();
            let _long = cancel.long(planned.estimated_rows);
            return sys::blocking::blocking(|| {
                self.run_program_here(planned, parameters, rows, None)
            });
        }
        self.run_program_here(planned, parameters, rows, None)
    }

    /// Runs the program that copies a table's rows, which `copier` reads and writes.
    pub(crate) fn run_copy(&mut self, planned: &Planned, copier: &mut Copier) -> Result<Outcome> {
        if !planned.programs.is_empty() {
            return Err(Error::internal("a copy of rows calls no programs"));
        }
        let cancel = self.shared.cancel.clone();
        let _long = cancel.long(planned.estimated_rows);
        self.run_program_here(planned, &[], &mut NoRows, Some(copier))
    }

    fn run_program_here(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
        copier: Option<&mut Copier>,
    ) -> Result<Outcome> {
        match self.programs.frame() {
            _ if self.statement.runs_prepared => {}
            None => planned.raise_notices(&mut self.working),
            Some(_) => planned.raise_resolved(&mut self.working),
        }
        let limit = match planned.kind {
            // A hint of 0 lifts the variable's limit.
            PlannedKind::Query => match planned.max_execution {
                Some(limit) => Some(limit).filter(|limit| !limit.is_zero()),
                None => self.settings.max_execution_time,
            },
            PlannedKind::Insert | PlannedKind::Update | PlannedKind::Delete | PlannedKind::Do => {
                None
            }
        };
        // Only of a client's own statement, as in MySQL.
        let limit = limit.filter(|_| self.programs.frame().is_none());
        let cancel = &self.shared.cancel;
        let after = |limit| self.server.deadlines.after(limit, TimeLimit::Select, cancel);
        let _deadline = limit.map(after);
        if let Some(wait) = planned.lock_wait {
            self.transactions.set_row_lock_timeout(wait);
        }
        if self.server.hooks.watches_rows() {
            self.watch_rows();
        }
        if !planned.programs.is_empty() {
            let outcome = self.run_with_programs(planned, parameters, rows);
            self.after_program(planned);
            return outcome;
        }
        let settings = self.exec_settings(planned.kind);
        let now_micros = self.services.fixed_now_micros.unwrap_or(self.statement.started_micros);
        let now = self.statement.local_clock.read(now_micros, &*self.settings.time_zone);
        let information = Information {
            server: &*self.server,
            definitions: self.transactions.definitions.clone(),
            connection: &*self.shared,
            values: self.services.values.clone(),
            privileges: &self.privileges,
            diagnostics: &self.diagnostics,
            database: self.services.database.clone(),
            account: &self.account,
            temporary: &self.temporary,
            tls: self.client.tls.as_ref(),
            active_roles: &self.active_roles,
        };
        let function = FunctionContext {
            sql_mode: self.settings.sql_mode,
            time_zone: &*self.settings.time_zone,
            now_micros,
            now,
            div_precision_increment: self.settings.div_precision_increment,
            max_allowed_packet: self.settings.max_allowed_packet,
            diagnostics: &mut self.working,
            session: &mut self.services,
        };
        let mut around;
        let host: &mut dyn exec::Host = match copier {
            None => &mut self.transactions,
            Some(copier) => {
                around = copier.around(&mut self.transactions)?;
                &mut around
            }
        };
        let mut ctx = ExecContext {
            host,
            env: Environment {
                registry: &planned.registry,
                information: &information,
                parameters,
                settings: &settings,
                cancel: &self.shared.cancel,
                helpers: &self.server.scan_helpers,
                memory: &self.server.memory,
                connection: &self.shared.memory,
            },
            function,
            scratch: &mut self.scratch,
        };
        let outcome = planned.program.run(&mut ctx, rows);
        self.after_program(planned);
        outcome
    }

    /// Counts the work done, and resets settings that held for one statement only.
    fn after_program(&mut self, planned: &Planned) {
        if planned.lock_wait.is_some() {
            self.transactions.set_row_lock_timeout(self.settings.row_lock_timeout);
        }
        let counters = &self.shared.counters;
        let counts = std::mem::take(&mut self.scratch.counts);
        self.statement.rows_examined += counts.examined;
        counters.add_rows(&counts);
        planned.access_counters.iter().for_each(|counter| counters.add(*counter, 1));
    }

    pub(crate) fn exec_settings(&self, kind: PlannedKind) -> ExecSettings {
        ExecSettings {
            memory_limit_bytes: STATEMENT_MEMORY_BYTES,
            cte_max_recursion_depth: self.settings.cte_max_recursion_depth,
            foreign_key_checks: self.settings.foreign_key_checks,
            auto_increment_increment: self.settings.auto_increment_increment,
            auto_increment_offset: self.settings.auto_increment_offset,
            insert_id: self.services.insert_id,
            client_found_rows: self.client.found_rows,
            lock_reads: self.transactions.locks_reads(kind),
            select_limit: self.settings.sql_select_limit.unwrap_or(u64::MAX),
            execution_mode: self.settings.execution_mode,
            parallel_degree: self.settings.parallel_degree,
            watches_rows: self.server.hooks.watches_rows(),
            null_timestamp_is_now: self.settings.null_timestamp_is_now,
            operator_memory_bytes: self.settings.operator_memory_bytes,
            temporary_files: self.settings.temporary_files.clone(),
        }
    }

    /// The value of an expression without tables: in SET, KILL and the like. Subqueries may read tables.
    pub(crate) fn evaluate(
        &mut self,
        expr: &ast::Expr,
        running: &Running<'_>,
    ) -> Result<(Value, DataType)> {
        let planned = self.plan_expression(expr, running)?;
        self.value_of_plan(&planned, running)
    }

    /// Makes the plan of an expression without tables.
    pub(crate) fn plan_expression(
        &mut self,
        expr: &ast::Expr,
        running: &Running<'_>,
    ) -> Result<Arc<Planned>> {
        // `SELECT expr` gives the value and its type in one run.
        let item = ast::SelectItem {
            kind: ast::SelectItemKind::Expr { expr: expr.clone(), alias: None },
            span: expr.span,
        };
        let select = ast::Select { items: vec![item], ..ast::Select::default() };
        let query = ast::Query {
            with: None,
            body: ast::SetExpr::Select(Box::new(select)),
            order_by: Vec::new(),
            limit: None,
            locking: Vec::new(),
            into: None,
            span: expr.span,
        };
        self.plan_and_lock(&Statement::Query(Box::new(query)), running)
    }

    /// Computes the value of an expression's plan.
    pub(crate) fn value_of_plan(
        &mut self,
        planned: &Planned,
        running: &Running<'_>,
    ) -> Result<(Value, DataType)> {
        let mut row = SingleRow::new(planned.program.columns());
        // The session's limit is for results.
        let limit = self.settings.sql_select_limit.take();
        let outcome = self.run_program(planned, running.parameters, &mut row);
        self.settings.sql_select_limit = limit;
        outcome?;
        row.row
            .and_then(|cells| cells.into_iter().next())
            .ok_or_else(|| Error::internal("an expression returned no row"))
    }

    /// SELECT ... INTO @a, @b.
    fn select_into_variables(
        &mut self,
        statement: &Statement,
        targets: &[ast::IntoVariable],
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let planned = self.plan_and_lock(statement, running)?;
        if planned.program.columns().len() != targets.len() {
            bail!(WRONG_NUMBER_OF_COLUMNS_IN_SELECT);
        }
        self.shared.counters.add_some(planned.counter);
        let mut row = SingleRow::new(planned.program.columns());
        let before = self.working.conditions().len();
        let outcome = self.run_program(&planned, running.parameters, &mut row)?;
        if targets.iter().any(|target| matches!(target, ast::IntoVariable::Local(_))) {
            programs::refuse_division_by_zero(&mut ProgramSession::new(self), before)?;
        }
        self.services.note_outcome(planned.kind, &outcome, self.client.found_rows);
        let found = row.row.is_some();
        if !found {
            self.working.warn(errors::ErrorCode::SP_FETCH_NO_DATA, &[]);
        }
        for (target, (value, ty)) in targets.iter().zip(row.row.unwrap_or_default()) {
            match target {
                ast::IntoVariable::User(name) => {
                    plugin_api::SessionServices::set_user_variable(
                        &mut self.services,
                        &name.text,
                        value,
                        ty,
                    );
                }
                ast::IntoVariable::Local(variable) => {
                    programs::assign_local(&mut ProgramSession::new(self), variable, &value, &ty)?
                }
            }
        }
        let affected_rows = u64::from(found);
        self.services.row_count = affected_rows as i64;
        let commit = self.finish_transaction_scope()?;
        self.send_ok(sink, OkInfo { affected_rows, commit, ..OkInfo::default() })
    }

    /// Returns an error for writes on a server that is read-only for this account.
    pub(crate) fn check_writable(&self) -> Result<()> {
        let (globals, privileges) = (&self.server.globals, &*self.privileges);
        Writable { globals, privileges, is_applier: self.is_applier }.check()
    }
}

/// The INTO of a query, in whichever of the allowed positions.
pub(crate) fn find_into(query: &ast::Query) -> Option<&ast::Into> {
    match (&query.into, &query.body) {
        (Some(into), _) => Some(into),
        (None, ast::SetExpr::Query(inner)) => find_into(inner),
        (None, _) => None,
    }
}
