//! From a statement to a plan: binding, statistics for the optimizer, compilation.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use binder::{BindInput, Binder, VariableTypes, ViewReader};
use catalog::{CatalogView, Table};
use engine_api::IndexId;
use errors::{Result, bail, err};
use optimizer::{OptimizeInput, StatisticsSource, Trace};
use plan::{
    ExplainFormat, Expr, IndexKeySource, KeyWalk, LogicalPlan, Plan, PlanFlags, RangeSpec,
    RowLocking,
};
use plugin_api::BindContext;
use syntax::ast::{Statement, VarScope};
use types::{DataType, Value};
use variables::{Scope, Settings, expression_type, key_cache_type};

use crate::plan_cache::{PlanKey, PlanSettings};
use crate::planned::{BoundContext, Planned, planned};
use crate::prepared_texts::PreparedText;
use crate::profiled::MeasuredPlan;
use crate::server::Server;
use crate::services::Services;
use crate::session::{Session, TemporaryTables};
use transactions::Transactions;

impl VariableTypes for Services {
    fn user_variable(&self, name: &str) -> Option<DataType> {
        plugin_api::SessionServices::user_variable(self, name).map(|(_, ty)| ty)
    }

    fn system_variable(&self, name: &str, scope: Option<VarScope>) -> Result<Option<DataType>> {
        let definitions = &self.server.globals.definitions;
        let Some(id) = definitions.find(name) else { return Ok(key_cache_type(name)) };
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

    fn removal_of(&self, name: &str) -> Option<&'static str> {
        variables::removal_of(name)
    }
}

/// Table statistics from the engines.
pub(crate) struct EngineStatistics<'a> {
    pub(crate) server: &'a Server,
    pub(crate) tables: &'a [Arc<Table>],
    /// What the values of a statement are computed from, where they are known.
    pub(crate) known: Option<statements::known_ranges::Known<'a>>,
    /// Values other than literals decided: the plan is of this execution alone.
    pub(crate) used_values: Cell<bool>,
}

impl<'a> EngineStatistics<'a> {
    /// Without values.
    pub(crate) fn new(server: &'a Server, tables: &'a [Arc<Table>]) -> EngineStatistics<'a> {
        EngineStatistics { server, tables, known: None, used_values: Cell::new(false) }
    }
}

impl EngineStatistics<'_> {
    fn stats(&self, table: u64) -> Option<(engine_api::TableStats, &Arc<Table>)> {
        let table = self.tables.iter().find(|known| known.id.0 == table)?;
        let engine = self.server.engines.engine(&table.engine)?;
        engine.table_stats(table.id).ok().map(|stats| (stats, table))
    }
}

impl StatisticsSource for EngineStatistics<'_> {
    fn rows(&self, table: u64) -> u64 {
        self.stats(table).map_or(0, |(stats, _)| stats.rows)
    }

    fn distinct(&self, table: u64, index: u32, parts: usize) -> Option<u64> {
        let (stats, table) = self.stats(table)?;
        let place = table.definition.indexes.iter().position(|known| known.id.0 == index)?;
        stats.distinct.get(place)?.get(parts.checked_sub(1)?).copied()
    }

    fn measured(&self, table: u64, index: u32, specs: &[RangeSpec]) -> Option<f64> {
        let table = self.tables.iter().find(|known| known.id.0 == table)?;
        let engine = self.server.engines.engine(&table.engine)?;
        if engine.capabilities().remote {
            return None;
        }
        let ranges = self.known.as_ref()?.ranges(specs)?;
        let mut rows = 0.0;
        for range in &ranges {
            let estimate = engine.estimate_range(table.id, IndexId(index), range).ok()?;
            rows += estimate.rows as f64;
        }
        let is_literal = |source: &IndexKeySource| {
            !source
                .value
                .any(&mut |node| matches!(node, Expr::Parameter { .. } | Expr::Function { .. }))
        };
        let is_written = |spec: &RangeSpec| {
            let bounds = [&spec.lower, &spec.upper].into_iter().flatten();
            spec.equal.iter().chain(bounds.map(|bound| &bound.key)).all(is_literal)
        };
        self.used_values.set(self.used_values.get() || !specs.iter().all(is_written));
        Some(rows)
    }
}

/// Makes plans of statements as a session sees the catalog, under its settings. Runs nothing and changes nothing.
pub(crate) struct Planner<'a> {
    server: &'a Arc<Server>,
    settings: &'a Settings,
    services: &'a Services,
    temporary: &'a TemporaryTables,
    transactions: &'a Transactions,
    /// The locks that plain reads take.
    read_locks: RowLocking,
    /// Values of parameters, where the statement is about to be run with them.
    values: &'a [Value],
    now_micros: i64,
}

impl Session {
    /// Makes plans as of now.
    pub(crate) fn planner(&self) -> Planner<'_> {
        let now = self.services.fixed_now_micros.unwrap_or(self.statement.started_micros);
        Planner {
            server: &self.server,
            settings: &self.settings,
            services: &self.services,
            temporary: &self.temporary,
            transactions: &self.transactions,
            read_locks: match self.transactions.reads_lock(&self.settings) {
                true => RowLocking::Shared,
                false => RowLocking::None,
            },
            values: &[],
            now_micros: now,
        }
    }
}

impl<'a> Planner<'a> {
    /// The same under other settings.
    pub(crate) fn under(self, settings: &'a Settings) -> Planner<'a> {
        Planner { settings, ..self }
    }

    /// The same; the statement is about to be run with these values.
    pub(crate) fn knowing(self, values: &'a [Value]) -> Planner<'a> {
        Planner { values, ..self }
    }

    /// The same; what queries read is going to be changed.
    pub(crate) fn reading_to_change(self) -> Planner<'a> {
        Planner { read_locks: RowLocking::Exclusive, ..self }
    }
}

impl Planner<'_> {
    /// The key of a prepared text's plans.
    pub(crate) fn prepared_key(&self, text: &PreparedText, types: u64) -> PlanKey {
        PlanKey {
            digest: text.digest(self.server.digest_seed),
            types,
            schema: self.services.database.clone(),
            settings: PlanSettings::of(self.settings),
        }
    }

    fn view(&self) -> CatalogView {
        CatalogView { snapshot: self.transactions.snapshot(), temporary: self.temporary.clone() }
    }

    /// Session facts that types depend on.
    pub(crate) fn bind_context(&self) -> BindContext {
        BindContext {
            sql_mode: self.settings.sql_mode,
            collation_connection: self.settings.collation_connection.id,
            div_precision_increment: self.settings.div_precision_increment,
            group_concat_max_len: self.settings.group_concat_max_len,
            max_allowed_packet: self.settings.max_allowed_packet,
            history: self.settings.history,
            cascades_fire_triggers: self.settings.cascades_fire_triggers,
        }
    }

    /// Binds, plans and compiles a statement.
    pub(crate) fn plan_statement(
        &self,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<Arc<Planned>> {
        let view = self.view();
        self.plan_in_view(&view, statement, source, parameter_types)
    }

    /// As `plan_statement`, in a view of the catalog that may hold tables under construction.
    pub(crate) fn plan_in_view(
        &self,
        view: &CatalogView,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<Arc<Planned>> {
        let _seen = sys::probes::plan(source);
        let (logical, context) = self.bind_in_view(view, statement, source, parameter_types)?;
        let (plan, flags) = self.optimize(logical, &context)?;
        self.check_plan(&plan, &flags)?;
        let program = exec::compile(&plan, &context.registry, &self.bind_context())?;
        Ok(Arc::new(planned(statement, &plan, &flags, program, context)))
    }

    /// As `plan_statement`, with a trace of what was considered. Returns the text of the plan too.
    pub(crate) fn plan_in_trace(
        &self,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
        trace: &Trace,
    ) -> Result<(Arc<Planned>, String)> {
        let (logical, context) =
            self.bind_in_view(&self.view(), statement, source, parameter_types)?;
        let bind = self.bind_context();
        let statistics = self.statistics(&context, &bind);
        let mut input = self.optimize_input(&context.tables, &statistics);
        input.trace = Some(trace);
        let (plan, flags, explainer) = optimizer::optimize_for_analysis(logical, &input)?;
        self.check_plan(&plan, &flags)?;
        let text = explainer.analysis(&plan, ExplainFormat::Tree, &input, None, None);
        let program = exec::compile(&plan, &context.registry, &self.bind_context())?;
        Ok((Arc::new(planned(statement, &plan, &flags, program, context)), text))
    }

    /// Plans the query of a HANDLER READ.
    pub(crate) fn plan_walk(
        &self,
        statement: &Statement,
        query: &Statement,
        source: &[u8],
        walk: Option<KeyWalk>,
    ) -> Result<Arc<Planned>> {
        let (mut logical, context) = self.bind_in_view(&self.view(), query, source, None)?;
        statements::handlers::walk_only(&mut logical, walk)?;
        let (plan, flags) = self.optimize(logical, &context)?;
        let program = exec::compile(&plan, &context.registry, &self.bind_context())?;
        Ok(Arc::new(planned(statement, &plan, &flags, program, context)))
    }

    /// As `plan_statement`, with every operator measured.
    pub(crate) fn plan_measured(
        &self,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<MeasuredPlan> {
        let (logical, context) =
            self.bind_in_view(&self.view(), statement, source, parameter_types)?;
        let bind = self.bind_context();
        let statistics = self.statistics(&context, &bind);
        let input = self.optimize_input(&context.tables, &statistics);
        let (plan, flags, explainer) = optimizer::optimize_for_analysis(logical, &input)?;
        self.check_plan(&plan, &flags)?;
        let plan = Box::new(plan);
        let (program, nodes) =
            exec::compile_measured(&plan, &context.registry, &bind, exec::Measuring::AsRun)?;
        let planned = Arc::new(planned(statement, &plan, &flags, program, context));
        Ok(MeasuredPlan { planned, plan, explainer, nodes })
    }

    /// # Errors
    /// The session's settings refuse the plan.
    fn check_plan(&self, plan: &Plan, flags: &PlanFlags) -> Result<()> {
        if let Some(limit) = self.settings.max_join_size
            && flags.estimated_rows > limit
            && matches!(plan, Plan::Query(_))
        {
            bail!(TOO_BIG_SELECT);
        }
        if self.settings.sql_safe_updates {
            statements::safe_updates::refuse_unsafe_update(plan)?;
        }
        Ok(())
    }

    /// Binds a statement; returns its logical plan and the other results of binding.
    pub(crate) fn bind_in_view(
        &self,
        view: &CatalogView,
        statement: &Statement,
        source: &[u8],
        parameter_types: Option<&[DataType]>,
    ) -> Result<(LogicalPlan, BoundContext)> {
        let bind = self.bind_context();
        let reader = ViewReader { view, database: self.services.database.as_deref() };
        // Read after the view: whoever publishes a registry changes the catalog's version afterwards, so a plan of that version has it.
        let registry = self.server.registry();
        let input = BindInput {
            catalog: &reader,
            registry: &registry,
            bind: &bind,
            variables: self.services,
            parameter_types,
        };
        let mut bound = Binder::new(input).bind(statement, source)?;
        let lock_reads =
            self.read_locks != RowLocking::None && matches!(statement, Statement::Query(_));
        if lock_reads {
            for instance in &mut bound.plan.instances {
                // The row of a sequence is locked by whoever draws values, within his statement.
                let is_sequence = bound.tables[instance.table].is_sequence();
                if instance.locking == RowLocking::None && !is_sequence {
                    instance.locking = self.read_locks;
                }
            }
        }
        let context = BoundContext {
            uncacheable: bound.plan.uncacheable || lock_reads,
            tables: bound.tables,
            views: bound.views,
            privileges: bound.privileges,
            parameters: bound.parameters,
            names_variable: bound.names_variable,
            locks_to_write: bound.plan.instances.iter().any(|instance| {
                matches!(statement, Statement::Query(_))
                    && instance.locking == RowLocking::Exclusive
            }),
            has_chance: bound.has_chance,
            deprecations: bound.deprecations,
            notices: bound.notices,
            references: bound.references,
            max_execution: bound.max_execution_millis.map(Duration::from_millis),
            lock_wait: bound.lock_wait_seconds.map(Duration::from_secs),
            wants_literals: bound.wants_literals,
            programs: bound.programs,
            drawn: bound.drawn,
            drawn_by_defaults: bound.drawn_by_defaults,
            version: view.snapshot.definitions,
            registry,
            text_bytes: source.len(),
        };
        Ok((bound.plan, context))
    }

    /// The resolved names of a statement, as changes of its text.
    pub(crate) fn spelled_names(
        &self,
        statement: &Statement,
        source: &[u8],
    ) -> Result<Vec<binder::Change>> {
        let database = self.services.database.as_deref();
        let bind = |binder: Binder<'_>| binder.bind_spelled(statement, source);
        Ok(self.with_binder(database, bind)?.1)
    }

    /// Calls `run` with a binder that sees the catalog as this session does; unqualified names belong to `database`.
    pub(crate) fn with_binder<T>(
        &self,
        database: Option<&str>,
        run: impl FnOnce(Binder<'_>) -> T,
    ) -> T {
        let bind = self.bind_context();
        let view = self.view();
        run(Binder::new(BindInput {
            catalog: &ViewReader { view: &view, database },
            registry: &self.server.registry(),
            bind: &bind,
            variables: self.services,
            parameter_types: None,
        }))
    }

    /// Chooses a plan.
    fn optimize(&self, plan: LogicalPlan, context: &BoundContext) -> Result<(Plan, PlanFlags)> {
        let bind = self.bind_context();
        let statistics = self.statistics(context, &bind);
        let input = self.optimize_input(&context.tables, &statistics);
        let (plan, mut flags) = optimizer::optimize(plan, &input)?;
        flags.uncacheable |= statistics.used_values.get();
        Ok((plan, flags))
    }

    /// The sizes of tables, and of ranges as far as values are known.
    fn statistics<'c>(
        &'c self,
        context: &'c BoundContext,
        bind: &'c BindContext,
    ) -> EngineStatistics<'c> {
        let known = statements::known_ranges::Known {
            parameters: self.values,
            registry: &context.registry,
            bind,
            time_zone: &*self.settings.time_zone,
            now_micros: self.now_micros,
            now: self.settings.time_zone.utc_to_local(self.now_micros),
        };
        EngineStatistics {
            known: Some(known),
            ..EngineStatistics::new(self.server, &context.tables)
        }
    }

    fn optimize_input<'a>(
        &self,
        tables: &'a [Arc<Table>],
        statistics: &'a EngineStatistics<'a>,
    ) -> OptimizeInput<'a> {
        let collation = self.settings.collation_connection.id;
        OptimizeInput { tables, statistics, collation, trace: None }
    }
}
