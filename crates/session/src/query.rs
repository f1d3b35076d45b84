//! Statements that have a plan: binding, planning, running, and reporting what they did.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;
use std::time::Duration;

use binder::{BindInput, Binder, PrivilegeKind, VariableTypes, ViewReader};
use catalog::{AccountName, CatalogSnapshot, CatalogView, EffectivePrivileges, Usage};
use engine_api::IsolationLevel;
use errors::{Error, ErrorCode, Result, bail, err};
use exec::{Environment, ExecContext, ExecSettings, Outcome, RowSink};
use plan::{Access, LogicalPlan, Physical, Plan, RowLocking};
use plugin_api::{BindContext, FunctionContext, OkInfo, ResultSink};
use syntax::ast::{self, Statement, VarScope};
use types::{DataType, Value};

use crate::planned::{BoundContext, Planned, PlannedKind, planned, privilege_of};
use crate::program_host::ProgramSession;
use crate::services::Services;
use crate::session::Session;
use crate::sink::{ClientRows, CollectedRows, NoRows, SingleRow};
use crate::statement::Running;
use crate::transaction_scope::Writable;
use accounts::Resource;
use describe::Information;
use variables::{Scope, expression_type};

/// Plans that are expected to touch more rows than this hand their reactor over before they run.
const LONG_PLAN_ROWS: u64 = 20_000;
/// Bytes that one statement may hold.
const STATEMENT_MEMORY_BYTES: usize = 1 << 30;
/// How often a plan is made anew because definitions changed under it.
const REPLAN_MAX: usize = 16;

impl VariableTypes for Services {
    fn user_variable(&self, name: &str) -> Option<DataType> {
        plugin_api::SessionServices::user_variable(self, name).map(|(_, ty)| ty)
    }

    fn system_variable(&self, name: &str, scope: Option<VarScope>) -> Result<Option<DataType>> {
        let definitions = &self.server.globals.definitions;
        let Some(id) = definitions.find(name) else { return Ok(None) };
        let definition = definitions.get(id);
        match (scope, definition.scope) {
            (Some(VarScope::Session), Scope::Global) => {
                Err(err!(INCORRECT_GLOBAL_LOCAL_VAR, definition.name, "GLOBAL"))
            }
            (
                Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly),
                Scope::Session,
            ) => Err(err!(INCORRECT_GLOBAL_LOCAL_VAR, definition.name, "SESSION")),
            _ => Ok(Some(expression_type(definition))),
        }
    }
}

impl Session {
    /// Session facts that types depend on.
    pub(crate) fn bind_context(&self) -> BindContext {
        BindContext {
            sql_mode: self.settings.sql_mode,
            collation_connection: self.settings.collation_connection.id,
            div_precision_increment: self.settings.div_precision_increment,
            group_concat_max_len: self.settings.group_concat_max_len,
            max_allowed_packet: self.settings.max_allowed_packet,
        }
    }

    /// Binds, plans and compiles a statement.
    pub(crate) fn plan_statement(
        &mut self,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<Arc<Planned>> {
        let view = self.view();
        self.plan_in_view(&view, statement, source, parameter_types)
    }

    /// As `plan_statement`, in a view of the catalog that may hold tables under construction.
    pub(crate) fn plan_in_view(
        &mut self,
        view: &CatalogView,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<Arc<Planned>> {
        let (logical, context) = self.bind_in_view(view, statement, source, parameter_types)?;
        let (plan, flags) = self.optimize(logical, &context.tables)?;
        if let Some(limit) = self.settings.max_join_size
            && flags.estimated_rows > limit
            && matches!(plan, Plan::Query(_))
        {
            bail!(TOO_BIG_SELECT);
        }
        if self.settings.sql_safe_updates {
            refuse_unsafe_update(&plan)?;
        }
        let program = exec::compile(&plan, &self.server.registry, &self.bind_context())?;
        Ok(Arc::new(planned(statement, &plan, &flags, program, context)))
    }

    /// Binds a statement: its logical plan, and what else is known of it.
    pub(crate) fn bind_in_view(
        &self,
        view: &CatalogView,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<(LogicalPlan, BoundContext)> {
        let bind = self.bind_context();
        let reader = ViewReader { view, database: self.services.database.as_deref() };
        let input = BindInput {
            catalog: &reader,
            registry: &self.server.registry,
            bind: &bind,
            variables: &self.services,
            parameter_types,
        };
        let mut bound = Binder::new(input).bind(statement, source)?;
        let lock_reads = self.transactions.reads_lock(&self.settings)
            && matches!(statement, Statement::Query(_));
        if lock_reads {
            for instance in &mut bound.plan.instances {
                if instance.locking == RowLocking::None {
                    instance.locking = RowLocking::Shared;
                }
            }
        }
        let context = BoundContext {
            uncacheable: bound.plan.uncacheable || lock_reads,
            tables: bound.tables,
            privileges: bound.privileges,
            parameters: bound.parameters,
            deprecations: bound.deprecations,
            notices: bound.notices,
            references: bound.references,
            max_execution: bound.max_execution_millis.map(Duration::from_millis),
            lock_wait: bound.lock_wait_seconds.map(Duration::from_secs),
            wants_literals: bound.wants_literals,
            programs: bound.programs,
            version: view.snapshot.version,
            text_bytes: source.len(),
        };
        Ok((bound.plan, context))
    }

    /// What the names of a statement mean, as changes of its text.
    pub(crate) fn spelled_names(
        &self,
        statement: &Statement,
        source: &[u8],
    ) -> Result<Vec<binder::Change>> {
        let database = self.services.database.as_deref();
        let bind = |binder: Binder<'_>| binder.bind_spelled(statement, source);
        Ok(self.with_binder(database, bind)?.1)
    }

    /// Hands a binder to `run` that sees the catalog as this session does; unqualified names are those of `database`.
    pub(crate) fn with_binder<T>(
        &self,
        database: Option<&str>,
        run: impl FnOnce(Binder<'_>) -> T,
    ) -> T {
        let bind = self.bind_context();
        let view = self.view();
        run(Binder::new(BindInput {
            catalog: &ViewReader { view: &view, database },
            registry: &self.server.registry,
            bind: &bind,
            variables: &self.services,
            parameter_types: None,
        }))
    }

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
                self.select_into_file(statement, file, charset, Some(format), running, sink)
            }
            Some(ast::Into::Dumpfile(file)) => {
                self.select_into_file(statement, file, None, None, running, sink)
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

    /// Makes a plan whose tables are as it knows them, with their metadata locks taken.
    pub(crate) fn plan_and_lock(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
    ) -> Result<Arc<Planned>> {
        let address = std::ptr::from_ref(statement) as usize;
        let may_keep = running.kept == Some(address);
        if may_keep
            && let Some(known) = programs::kept_plan(&mut ProgramSession::new(self), address)?
        {
            return Ok(known);
        }
        let types = self.parameter_types(running);
        for _ in 0..REPLAN_MAX {
            let planned = self.plan_statement(statement, running.source, types.as_deref())?;
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
            crate::statement::Origin::Text => None,
            crate::statement::Origin::Program => {
                self.programs.frame().map(|frame| frame.types().to_vec())
            }
            crate::statement::Origin::Prepared => {
                let collation = self.settings.collation_connection.id;
                let ty = |value| crate::prepared::type_of_value(value, collation);
                Some(running.parameters.iter().map(ty).collect())
            }
        }
    }

    /// Checks privileges and takes metadata locks; false when the plan is out of date.
    pub(crate) fn lock_plan(&mut self, planned: &Planned) -> Result<bool> {
        self.check_plan_privileges(planned)?;
        if !self.programs.is_outermost() {
            self.check_tables_above(planned)?;
        }
        let writes = planned.uses.iter().any(|(_, usage)| *usage == Usage::Write);
        if writes {
            self.count_use(Resource::Updates)?;
            self.check_writable()?;
            if self.locked.global_read.is_some() {
                bail!(CANT_UPDATE_WITH_READLOCK);
            }
        }
        if self.locked.is_in_force() {
            self.locked.check_use(planned, &self.view())?;
        }
        self.transactions.check_branch_tables(planned)?;
        if planned.uses.is_empty() && !planned.programs.is_empty()
            || self.transactions.function_depth > 0 && self.transactions.slot.holds(&planned.uses)
        {
            return Ok(self.is_plan_current(planned));
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
            if !self.is_plan_current(planned) {
                self.transactions.slot.release_to(mark);
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub(crate) fn is_plan_current(&self, planned: &Planned) -> bool {
        self.server.catalog.with(|snapshot| {
            snapshot.version == planned.version
                || planned.tables.iter().all(|table| table.temporary || snapshot.is_current(table))
                    && planned.programs.iter().all(|program| is_program_current(program, snapshot))
        })
    }

    /// Runs a locked plan, rows to the client.
    pub(crate) fn run_to_client(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        self.shared.counters.add(planned.counter, 1);
        let columns = planned.program.columns();
        if columns.is_empty() {
            let outcome = self.run_program(planned, parameters, &mut NoRows)?;
            return self.finish_without_rows(planned, &outcome, sink);
        }
        let mut rows = ClientRows::new(sink, columns);
        let outcome = self.run_program(planned, parameters, &mut rows)?;
        self.note_outcome(planned, &outcome);
        let commit = self.finish_transaction_scope()?;
        let state = OkInfo { commit, ..self.state_info() };
        rows.finish(&state)
    }

    /// Runs a locked plan and keeps its rows: server-side cursors, statements that the session asks itself.
    pub(crate) fn run_collecting(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
    ) -> Result<Vec<Vec<Value>>> {
        let mut rows = CollectedRows::new(STATEMENT_MEMORY_BYTES);
        let outcome = self.run_program(planned, parameters, &mut rows)?;
        self.note_outcome(planned, &outcome);
        Ok(rows.rows)
    }

    fn finish_without_rows(
        &mut self,
        planned: &Planned,
        outcome: &Outcome,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let affected_rows = self.note_outcome(planned, outcome);
        let commit = self.finish_transaction_scope()?;
        let last_insert_id = if self.services.last_insert_id_set {
            self.services.last_insert_id
        } else {
            outcome.insert_id
        };
        let info = outcome.info.clone();
        self.send_ok(
            sink,
            OkInfo { affected_rows, last_insert_id, info, commit, ..OkInfo::default() },
        )
    }

    /// Takes over what later statements may ask: ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID(). Returns the affected rows.
    pub(crate) fn note_outcome(&mut self, planned: &Planned, outcome: &Outcome) -> u64 {
        let affected = match planned.kind {
            PlannedKind::Update if self.client.found_rows => outcome.matched,
            PlannedKind::Query
            | PlannedKind::Insert
            | PlannedKind::Update
            | PlannedKind::Delete
            | PlannedKind::Do => outcome.affected,
        };
        self.services.row_count = match planned.kind {
            PlannedKind::Query => -1,
            PlannedKind::Do => 0,
            PlannedKind::Insert | PlannedKind::Update | PlannedKind::Delete => affected as i64,
        };
        if planned.kind == PlannedKind::Query {
            self.services.found_rows = outcome.found_rows;
        }
        if let Some(generated) = outcome.generated_id {
            self.services.last_insert_id = generated;
        }
        if planned.kind == PlannedKind::Insert {
            self.services.insert_id = None;
        }
        affected
    }

    /// Runs a locked plan.
    pub(crate) fn run_program(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        if planned.estimated_rows > LONG_PLAN_ROWS {
            return sys::blocking::blocking(|| self.run_program_here(planned, parameters, rows));
        }
        self.run_program_here(planned, parameters, rows)
    }

    fn run_program_here(
        &mut self,
        planned: &Planned,
        parameters: &[Value],
        rows: &mut dyn RowSink,
    ) -> Result<Outcome> {
        if !self.runs_prepared {
            self.raise_notices(planned);
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
        let _deadline = limit.map(|limit| self.server.deadlines.after(limit, &self.shared.cancel));
        if let Some(wait) = planned.lock_wait {
            self.transactions.set_row_lock_timeout(wait);
        }
        if !planned.programs.is_empty() {
            let outcome = self.run_with_programs(planned, parameters, rows);
            self.after_program(planned);
            return outcome;
        }
        let settings = self.exec_settings(planned.kind);
        let now_micros = self.services.fixed_now_micros.unwrap_or(self.started_micros);
        let now = self.local_clock.read(now_micros, &*self.settings.time_zone);
        let information = Information {
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
        let mut ctx = ExecContext {
            host: &mut self.transactions,
            env: Environment {
                registry: &self.server.registry,
                information: &information,
                parameters,
                settings: &settings,
                cancel: &self.shared.cancel,
                helpers: &self.server.scan_helpers,
            },
            function,
            scratch: &mut self.scratch,
        };
        let outcome = planned.program.run(&mut ctx, rows);
        self.after_program(planned);
        outcome
    }

    /// Counts what was done, and takes back what held for one statement only.
    fn after_program(&mut self, planned: &Planned) {
        if planned.lock_wait.is_some() {
            self.transactions.set_row_lock_timeout(self.settings.row_lock_timeout);
        }
        let counters = &self.shared.counters;
        counters.add_rows(&std::mem::take(&mut self.scratch.counts));
        planned.access_counters.iter().for_each(|counter| counters.add(*counter, 1));
    }

    /// What is said of a statement's text: with every execution, or when it is prepared.
    pub(crate) fn raise_notices(&mut self, planned: &Planned) {
        let deprecated = ErrorCode::WARN_DEPRECATED_SYNTAX;
        let deprecations = planned.deprecations.iter().map(|text| (deprecated, (*text).to_owned()));
        for (code, message) in deprecations.chain(planned.notices.iter().cloned()) {
            let sqlstate = code.sqlstate();
            let level = errors::Level::Warning;
            self.working.push(errors::Condition { level, code, sqlstate, message });
        }
    }

    /// Whether plain reads of a statement lock: what a change is made of must stay as it was read, so that the change could be repeated.
    fn locks_reads(&self, kind: PlannedKind) -> bool {
        let isolation = self.transactions.characteristics.isolation;
        match kind {
            PlannedKind::Insert | PlannedKind::Update | PlannedKind::Delete => {
                matches!(isolation, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
            }
            PlannedKind::Query | PlannedKind::Do => {
                self.transactions.explicit && isolation == IsolationLevel::Serializable
            }
        }
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
            lock_reads: self.locks_reads(kind),
            select_limit: self.settings.sql_select_limit.unwrap_or(u64::MAX),
            execution_mode: self.settings.execution_mode,
            parallel_degree: self.settings.parallel_degree,
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

    /// The value that the plan of an expression gives.
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
            .ok_or_else(|| Error::internal("an expression gave no row"))
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
        self.shared.counters.add(planned.counter, 1);
        let mut row = SingleRow::new(planned.program.columns());
        let outcome = self.run_program(&planned, running.parameters, &mut row)?;
        self.note_outcome(&planned, &outcome);
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

    /// Whether the account may do what the plan does.
    pub(crate) fn check_plan_privileges(&self, planned: &Planned) -> Result<()> {
        if self.privileges.global().contains(planned.privilege_mask)
            && planned.privileges.iter().all(|needed| needed.definer.is_none())
        {
            return Ok(());
        }
        for needed in &planned.privileges {
            match &needed.definer {
                None => self.check_privilege(&self.privileges, &self.account, needed)?,
                Some(definer) => {
                    let (user, host) = definer.rsplit_once('@').unwrap_or((definer, "%"));
                    let name = AccountName::new(user, host);
                    let accounts = self.server.catalog.snapshot().accounts().clone();
                    if accounts.get(&name).is_none() {
                        bail!(NO_SUCH_USER, name.user, name.host);
                    }
                    let effective = accounts.effective(&name, &[]);
                    self.check_privilege(&effective, &name, needed)?;
                }
            }
        }
        Ok(())
    }

    fn check_privilege(
        &self,
        privileges: &EffectivePrivileges,
        account: &AccountName,
        needed: &binder::RequiredPrivilege,
    ) -> Result<()> {
        let (schema, table) = (&*needed.schema, &*needed.table);
        // Accounts are the administrators' business; everything else about the server is filtered by what the account may see.
        let is_secret = schema == "mysql" && !table.starts_with("help_");
        if catalog::system_schema(schema).is_some() && !is_secret {
            return match needed.kind {
                PrivilegeKind::Select => Ok(()),
                PrivilegeKind::Insert | PrivilegeKind::Update | PrivilegeKind::Delete => {
                    Err(err!(DBACCESS_DENIED_ERROR, account.user, account.host, schema))
                }
            };
        }
        let privilege = privilege_of(needed.kind);
        if privileges.allows_table(schema, table, privilege) {
            return Ok(());
        }
        let word = privilege.names().next().unwrap_or("SELECT");
        let holds = |column: &str| privileges.on_column(schema, table, column).contains(privilege);
        let known = self.view().table(schema, table);
        let any_column = known
            .as_ref()
            .is_some_and(|table| table.columns.iter().any(|column| holds(&column.name)));
        if any_column {
            let Some(refused) = needed.columns.iter().find(|column| !holds(column)) else {
                return Ok(());
            };
            let host = self.shown_host(account);
            bail!(COLUMNACCESS_DENIED_ERROR, word, account.user, host, refused, table);
        }
        let host = self.shown_host(account);
        Err(err!(TABLEACCESS_DENIED_ERROR, word, account.user, host, table))
    }

    /// Refuses writes on a server that is read-only for this account.
    pub(crate) fn check_writable(&self) -> Result<()> {
        Writable { globals: &self.server.globals, privileges: &self.privileges }.check()
    }

    /// COM_FIELD_LIST.
    pub(crate) fn list_fields(
        &mut self,
        table: &str,
        wildcard: &str,
    ) -> Result<Vec<plugin_api::ColumnMeta>> {
        self.shared.cancel.reset_statement();
        self.begin_statement();
        let quoted = table.replace('`', "``");
        let sql = format!("SELECT * FROM `{quoted}` LIMIT 0");
        let statement = syntax::parse_one(&sql, &syntax::ParseOptions::default())
            .map_err(|error| crate::statement::parse_error(&error))?
            .0;
        let planned = self.plan_statement(&statement, sql.as_bytes(), None)?;
        self.check_plan_privileges(&planned)?;
        let collation = charset::collation_or_binary(types::CollationId::UTF8MB4_0900_AI_CI);
        let pattern = if wildcard.is_empty() { "%" } else { wildcard };
        let columns = planned.program.columns().iter();
        Ok(columns
            .filter(|column| collation.like(pattern.as_bytes(), column.name.as_bytes(), Some('\\')))
            .cloned()
            .collect())
    }
}

/// The INTO of a query, wherever the grammar put it.
pub(crate) fn find_into(query: &ast::Query) -> Option<&ast::Into> {
    match (&query.into, &query.body) {
        (Some(into), _) => Some(into),
        (None, ast::SetExpr::Query(inner)) => find_into(inner),
        (None, _) => None,
    }
}

/// Whether a program is as the plan knows it. Triggers belong to their tables.
fn is_program_current(program: &binder::StoredProgram, snapshot: &CatalogSnapshot) -> bool {
    match program {
        binder::StoredProgram::Trigger(..) => true,
        binder::StoredProgram::Function { routine, .. } => snapshot
            .routine(&routine.schema, routine.kind, &routine.name)
            .is_some_and(|known| Arc::ptr_eq(known, routine)),
    }
}

/// `sql_safe_updates`: UPDATE and DELETE need a LIMIT or an index that finds their rows.
fn refuse_unsafe_update(plan: &Plan) -> Result<()> {
    let (root, limit) = match plan {
        Plan::Update(update) => (&update.root, &update.limit),
        Plan::Delete(delete) => (&delete.root, &delete.limit),
        Plan::Query(_) | Plan::Insert(_) | Plan::Do { .. } | Plan::Rows { .. } => return Ok(()),
    };
    if limit.is_none() && scans_everything(root) {
        bail!(UPDATE_WITHOUT_KEY_IN_SAFE_MODE);
    }
    Ok(())
}

fn scans_everything(root: &Physical) -> bool {
    match root {
        Physical::Scan { access, .. } => matches!(access, Access::Full { .. }),
        Physical::Filter { input, .. }
        | Physical::Project { input, .. }
        | Physical::Sort { input, .. } => scans_everything(input),
        Physical::Limit { .. } => false,
        _ => false,
    }
}
