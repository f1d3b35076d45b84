//! The plugins that the server knows, and the slots that the loaded ones fill. A registry never changes: loading a plugin builds another one,
//! which the server publishes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use engine_api::{Engine, EngineIndex};
use errors::{Result, bail, err};
use types::{AggregateRole, FunctionRole, Value, ZoneRules};

use crate::authentication::{Authenticator, PasswordCheck};
use crate::authorization::Authorizer;
use crate::binary_log::BinaryLog;
use crate::change::ChangeSink;
use crate::cluster::ClusterControl;
use crate::function::{AggregateFunction, ScalarFunction, TableFunction};
use crate::http::{ConsolePage, HttpRoutes};
use crate::identity::Loading;
use crate::information::{InformationTable, SystemProcedure, SystemView};
use crate::job::BackgroundJob;
use crate::keyring::Keyring;
use crate::language::ProgramLanguage;
use crate::listener::Listener;
use crate::log_sink::LogSink;
use crate::observer::Observer;
use crate::plugin::{Module, Plugin, PluginLoader};
use crate::profile::ProfilePrinter;
use crate::replication::ReplicationControl;
use crate::rewrite::StatementRewriter;
use crate::shared_state::SharedState;
use crate::stream_sink::StreamSink;
use crate::text_runner::TextRunner;
use crate::time_zone::TimeZones;
use crate::variable::{Definition, GlobalValue, PluginVariable, StatusVariable, VariableCheck};

/// All known plugins, and the contributions of those that are loaded. Immutable: readers share it behind an `Arc`.
#[derive(Default)]
pub struct Registry {
    modules: Vec<Module>,
    /// Functions of loaded plugins that may be removed.
    removable: HashSet<&'static str>,
    functions: HashMap<&'static str, Arc<ScalarFunction>>,
    table_functions: HashMap<&'static str, Arc<TableFunction>>,
    roles: HashMap<FunctionRole, Arc<ScalarFunction>>,
    aggregates: HashMap<&'static str, Arc<AggregateFunction>>,
    aggregate_roles: HashMap<AggregateRole, Arc<AggregateFunction>>,
    authenticators: Vec<Arc<dyn Authenticator>>,
    listeners: Vec<Arc<dyn Listener>>,
    information: Vec<Arc<dyn InformationTable>>,
    system_views: Vec<Arc<SystemView>>,
    system_procedures: Vec<Arc<SystemProcedure>>,
    rewriters: Vec<Arc<dyn StatementRewriter>>,
    engines: Vec<Arc<dyn Engine>>,
    time_zones: Vec<Arc<dyn TimeZones>>,
    privileges: Vec<&'static str>,
    text_runner: Option<Arc<dyn TextRunner>>,
    binary_log: Option<Arc<dyn BinaryLog>>,
    keyring: Option<Arc<dyn Keyring>>,
    replication: Option<Arc<dyn ReplicationControl>>,
    cluster: Option<Arc<dyn ClusterControl>>,
    profile_printer: Option<Arc<dyn ProfilePrinter>>,
    loaders: Vec<Arc<dyn PluginLoader>>,
    jobs: Vec<Arc<dyn BackgroundJob>>,
    variables: Vec<PluginVariable>,
    status: Vec<StatusVariable>,
    languages: Vec<Arc<dyn ProgramLanguage>>,
    observers: Vec<Arc<dyn Observer>>,
    authorizers: Vec<Arc<dyn Authorizer>>,
    password_checks: Vec<Arc<dyn PasswordCheck>>,
    log_sinks: Vec<Arc<dyn LogSink>>,
    change_sinks: Vec<Arc<dyn ChangeSink>>,
    stream_sinks: Vec<Arc<dyn StreamSink>>,
    http_routes: Vec<Arc<dyn HttpRoutes>>,
    console_pages: Vec<ConsolePage>,
    states: HashMap<&'static str, SharedState>,
}

/// Lets one plugin add its contributions.
pub struct Registrar<'a> {
    pub(crate) registry: &'a mut Registry,
    pub(crate) items: Vec<(&'static str, String)>,
}

impl Registry {
    /// A registry of these plugins, all loaded, in order. A later plugin's function replaces an earlier one of the same name.
    pub fn build(plugins: &[Box<dyn Plugin>]) -> Registry {
        let modules = plugins.iter().map(|plugin| {
            let module = Module::new(plugin.as_ref(), None);
            Module { is_loaded: true, ..module }
        });
        Registry::of(modules.collect())
    }

    /// A registry that knows these plugins; those that nobody has to ask for are loaded.
    pub fn knowing(plugins: &[Box<dyn Plugin>]) -> Registry {
        let modules = plugins.iter().map(|plugin| {
            let module = Module::new(plugin.as_ref(), None);
            let is_loaded = module.info.loading != Loading::OnRequest;
            Module { is_loaded, ..module }
        });
        Registry::of(modules.collect())
    }

    fn of(modules: Vec<Module>) -> Registry {
        let mut registry = Registry::default();
        for module in modules.iter().filter(|module| module.is_loaded) {
            let slots = module.slots();
            registry.absorb(slots);
            if module.info.loading != Loading::Always {
                registry.removable.extend(slots.functions.keys());
            }
        }
        registry.modules = modules;
        registry
    }

    /// Adds the contributions of one plugin.
    fn absorb(&mut self, part: &Registry) {
        let Registry {
            modules: _,
            removable: _,
            functions,
            table_functions,
            roles,
            aggregates,
            aggregate_roles,
            authenticators,
            listeners,
            information,
            system_views,
            system_procedures,
            rewriters,
            engines,
            time_zones,
            privileges,
            text_runner,
            binary_log,
            keyring,
            replication,
            cluster,
            profile_printer,
            loaders,
            jobs,
            variables,
            status,
            languages,
            observers,
            authorizers,
            password_checks,
            log_sinks,
            change_sinks,
            stream_sinks,
            http_routes,
            console_pages,
            states,
        } = part;
        self.functions.extend(functions.iter().map(|(name, function)| (*name, function.clone())));
        let of_tables = table_functions.iter().map(|(name, function)| (*name, function.clone()));
        self.table_functions.extend(of_tables);
        self.roles.extend(roles.iter().map(|(role, function)| (*role, function.clone())));
        self.aggregates.extend(aggregates.iter().map(|(name, function)| (*name, function.clone())));
        let of_roles = aggregate_roles.iter().map(|(role, function)| (*role, function.clone()));
        self.aggregate_roles.extend(of_roles);
        self.authenticators.extend_from_slice(authenticators);
        self.listeners.extend_from_slice(listeners);
        self.information.extend_from_slice(information);
        self.system_views.extend_from_slice(system_views);
        self.system_procedures.extend_from_slice(system_procedures);
        self.rewriters.extend_from_slice(rewriters);
        self.engines.extend_from_slice(engines);
        self.time_zones.extend_from_slice(time_zones);
        self.privileges.extend_from_slice(privileges);
        self.text_runner = text_runner.clone().or_else(|| self.text_runner.take());
        self.keyring = keyring.clone().or_else(|| self.keyring.take());
        self.binary_log = binary_log.clone().or_else(|| self.binary_log.take());
        self.replication = replication.clone().or_else(|| self.replication.take());
        self.cluster = cluster.clone().or_else(|| self.cluster.take());
        let printer = profile_printer.clone();
        self.profile_printer = printer.or_else(|| self.profile_printer.take());
        self.loaders.extend_from_slice(loaders);
        self.jobs.extend_from_slice(jobs);
        self.variables.extend_from_slice(variables);
        self.status.extend_from_slice(status);
        self.languages.extend_from_slice(languages);
        self.observers.extend_from_slice(observers);
        self.authorizers.extend_from_slice(authorizers);
        self.password_checks.extend_from_slice(password_checks);
        self.log_sinks.extend_from_slice(log_sinks);
        self.change_sinks.extend_from_slice(change_sinks);
        self.stream_sinks.extend_from_slice(stream_sinks);
        self.http_routes.extend_from_slice(http_routes);
        self.console_pages.extend_from_slice(console_pages);
        self.states.extend(states.iter().map(|(name, state)| (*name, state.clone())));
    }

    /// The same registry with a known plugin loaded.
    ///
    /// # Errors
    /// 1524 for an unknown plugin, 1125 when it is loaded already.
    pub fn with_loaded(&self, name: &str) -> Result<Registry> {
        let mut modules = self.modules.clone();
        let found = modules.iter_mut().find(|module| module.is_called(name));
        let module = found.ok_or_else(|| err!(PLUGIN_IS_NOT_LOADED, name))?;
        if module.is_loaded {
            bail!(UDF_EXISTS, name);
        }
        module.is_loaded = true;
        Ok(Registry::of(modules))
    }

    /// The same registry with one more plugin, which came from a file, loaded.
    ///
    /// # Errors
    /// 1125 when a plugin of its name exists, or another one has a function of a name of its own.
    pub fn with_added(&self, module: Module) -> Result<Registry> {
        if self.module(&module.info.name).is_some() {
            bail!(UDF_EXISTS, module.info.name);
        }
        // A file may not change what the server's own functions do.
        let slots = module.slots();
        let mut own = slots.functions.keys().chain(slots.aggregates.keys());
        let is_taken = |name: &&&str| {
            self.functions.contains_key(**name) || self.aggregates.contains_key(**name)
        };
        if let Some(taken) = own.find(is_taken) {
            bail!(UDF_EXISTS, taken);
        }
        let mut modules = self.modules.clone();
        modules.push(Module { is_loaded: true, ..module });
        Ok(Registry::of(modules))
    }

    /// The same registry without the contributions of a plugin; one that came from a file is forgotten.
    ///
    /// # Errors
    /// 1305 when no such plugin is loaded, 1619 when it must be, 1883 when it reads the file of another one.
    pub fn without(&self, name: &str) -> Result<Registry> {
        let mut modules = self.modules.clone();
        let found = modules.iter().position(|module| module.is_called(name) && module.is_loaded);
        let at = found.ok_or_else(|| err!(SP_DOES_NOT_EXIST, "PLUGIN", name))?;
        if modules[at].info.loading == Loading::Always {
            bail!(PLUGIN_DELETE_BUILTIN);
        }
        let loaders = modules[at].slots().loaders.iter();
        let suffixes: Vec<&str> = loaders.map(|loader| loader.suffix()).collect();
        let guest = modules.iter().find(|module| {
            let library = module.library.as_deref().and_then(|library| library.rsplit_once('.'));
            library
                .is_some_and(|(_, suffix)| suffixes.iter().any(|s| s.eq_ignore_ascii_case(suffix)))
        });
        if let Some(guest) = guest {
            let why = format!("Plugin '{}' needs it", guest.info.name);
            bail!(PLUGIN_CANNOT_BE_UNINSTALLED, name, why);
        }
        match modules[at].library {
            Some(_) => drop(modules.remove(at)),
            None => modules[at].is_loaded = false,
        }
        Ok(Registry::of(modules))
    }

    /// Every known plugin.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// The known plugin of this name; `-` and `_` are the same.
    pub fn module(&self, name: &str) -> Option<&Module> {
        self.modules.iter().find(|module| module.is_called(name))
    }

    /// The plugin loader for files with this suffix.
    pub fn loader(&self, suffix: &str) -> Option<&Arc<dyn PluginLoader>> {
        self.loaders.iter().find(|loader| loader.suffix().eq_ignore_ascii_case(suffix))
    }

    /// All background jobs.
    pub fn jobs(&self) -> &[Arc<dyn BackgroundJob>] {
        &self.jobs
    }

    /// System variables of plugins.
    pub fn variables(&self) -> &[PluginVariable] {
        &self.variables
    }

    /// Status variables of plugins.
    pub fn status_variables(&self) -> &[StatusVariable] {
        &self.status
    }

    /// Whether the scalar function called `name` (upper case) may leave with its plugin, so that no table may depend on it.
    pub fn may_leave(&self, name: &str) -> bool {
        self.removable.contains(name)
    }

    /// Whether a known plugin, loaded or not, has the scalar function called `name` (upper case).
    pub fn may_come(&self, name: &str) -> bool {
        self.modules.iter().any(|module| module.slots().functions.contains_key(name))
    }

    /// The aggregate called `name` (upper case) that is not of the grammar.
    pub fn named_aggregate(&self, name: &str) -> Option<&Arc<AggregateFunction>> {
        self.aggregates.get(name).filter(|function| function.role == AggregateRole::Named)
    }

    /// What a plugin keeps for its functions under this name.
    pub fn shared_state(&self, name: &str) -> Option<SharedState> {
        self.states.get(name).cloned()
    }

    /// All observers.
    pub fn observers(&self) -> &[Arc<dyn Observer>] {
        &self.observers
    }

    /// The plugins that deny objects.
    pub fn authorizers(&self) -> &[Arc<dyn Authorizer>] {
        &self.authorizers
    }

    /// The plugins that refuse weak passwords.
    pub fn password_checks(&self) -> &[Arc<dyn PasswordCheck>] {
        &self.password_checks
    }

    /// All log sinks.
    pub fn log_sinks(&self) -> &[Arc<dyn LogSink>] {
        &self.log_sinks
    }

    /// The plugins that get the changes of committed transactions.
    pub fn change_sinks(&self) -> &[Arc<dyn ChangeSink>] {
        &self.change_sinks
    }

    /// The sinks of change streams.
    pub fn stream_sinks(&self) -> &[Arc<dyn StreamSink>] {
        &self.stream_sinks
    }

    /// The calls over HTTP.
    pub fn http_routes(&self) -> &[Arc<dyn HttpRoutes>] {
        &self.http_routes
    }

    /// The pages of the web console.
    pub fn console_pages(&self) -> &[ConsolePage] {
        &self.console_pages
    }

    /// The scalar function called `name` (upper case).
    pub fn function(&self, name: &str) -> Option<&Arc<ScalarFunction>> {
        self.functions.get(name)
    }

    /// The table function called `name` (upper case).
    pub fn table_function(&self, name: &str) -> Option<&Arc<TableFunction>> {
        self.table_functions.get(name)
    }

    /// The scalar function that has `role`.
    pub fn function_of(&self, role: FunctionRole) -> Option<&Arc<ScalarFunction>> {
        self.roles.get(&role)
    }

    /// Every scalar function under each of its names, in no order.
    pub fn scalars(&self) -> impl Iterator<Item = (&'static str, &Arc<ScalarFunction>)> {
        self.functions.iter().map(|(name, function)| (*name, function))
    }

    /// The aggregate called `name` (upper case).
    pub fn aggregate(&self, name: &str) -> Option<&Arc<AggregateFunction>> {
        self.aggregates.get(name)
    }

    /// The aggregate that has `role`.
    pub fn aggregate_of(&self, role: AggregateRole) -> Option<&Arc<AggregateFunction>> {
        self.aggregate_roles.get(&role)
    }

    /// All function names with their help, in no order.
    pub fn functions(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        let scalars = self.functions.iter().map(|(name, function)| (*name, function.help));
        scalars.chain(self.aggregates.iter().map(|(name, function)| (*name, function.help)))
    }

    /// The authentication method called `name`.
    pub fn authenticator(&self, name: &str) -> Option<&Arc<dyn Authenticator>> {
        self.authenticators.iter().find(|method| method.name() == name)
    }

    /// All authentication methods.
    pub fn authenticators(&self) -> &[Arc<dyn Authenticator>] {
        &self.authenticators
    }

    /// All listeners.
    pub fn listeners(&self) -> &[Arc<dyn Listener>] {
        &self.listeners
    }

    /// All information tables.
    pub fn information_tables(&self) -> &[Arc<dyn InformationTable>] {
        &self.information
    }

    /// An information table by schema and name, without regard to case.
    pub fn information_table(
        &self,
        schema: &str,
        name: &str,
    ) -> Option<&Arc<dyn InformationTable>> {
        self.information.iter().find(|table| {
            table.schema().eq_ignore_ascii_case(schema) && table.name().eq_ignore_ascii_case(name)
        })
    }

    /// All views of system schemas.
    pub fn system_views(&self) -> &[Arc<SystemView>] {
        &self.system_views
    }

    /// A view of a system schema, by its exact name.
    pub fn system_view(&self, schema: &str, name: &str) -> Option<&Arc<SystemView>> {
        self.system_views.iter().find(|view| view.schema == schema && *view.name == *name)
    }

    /// All procedures of system schemas.
    pub fn system_procedures(&self) -> &[Arc<SystemProcedure>] {
        &self.system_procedures
    }

    /// A procedure of a system schema, in whatever case its name is written.
    pub fn system_procedure(&self, schema: &str, name: &str) -> Option<&Arc<SystemProcedure>> {
        let is_meant = |one: &&Arc<SystemProcedure>| {
            one.schema == schema && one.name.eq_ignore_ascii_case(name)
        };
        self.system_procedures.iter().find(is_meant)
    }

    /// The scalar function that is called as `schema.name` only.
    pub fn function_in(&self, schema: &str, name: &str) -> Option<&Arc<ScalarFunction>> {
        self.functions.get(&*format!("{schema}.{name}").to_ascii_uppercase())
    }

    /// All statement rewriters.
    pub fn rewriters(&self) -> &[Arc<dyn StatementRewriter>] {
        &self.rewriters
    }

    /// The engine called `name`, without regard to case.
    pub fn engine(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        self.engines.iter().find(|engine| engine.name().eq_ignore_ascii_case(name))
    }

    /// The engine that ENGINE= means by `name`: also by another of its names.
    pub fn engine_meant(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        let is_alias = |engine: &&Arc<dyn Engine>| {
            engine.aliases().iter().any(|alias| alias.eq_ignore_ascii_case(name))
        };
        self.engine(name).or_else(|| self.engines.iter().find(is_alias))
    }

    /// The place of the engine called `name`, without regard to case.
    pub fn engine_index(&self, name: &str) -> Option<EngineIndex> {
        let found = self.engines.iter().position(|engine| engine.name().eq_ignore_ascii_case(name));
        found.map(EngineIndex)
    }

    /// The engine at a place.
    pub fn engine_at(&self, index: EngineIndex) -> Option<&Arc<dyn Engine>> {
        self.engines.get(index.0)
    }

    /// The rules of the time zone called `name`, in any case; `None` when no plugin knows it.
    pub fn time_zone(&self, name: &str) -> Option<Arc<dyn ZoneRules>> {
        self.time_zones.iter().find_map(|zones| zones.named(name))
    }

    /// The names of the dynamic privileges of plugins, in upper case.
    pub fn privileges(&self) -> &[&'static str] {
        &self.privileges
    }

    /// Runs EXECUTE of a text with options.
    pub fn text_runner(&self) -> Option<&Arc<dyn TextRunner>> {
        self.text_runner.as_ref()
    }

    /// Where keys of encryption at rest are kept.
    pub fn keyring(&self) -> Option<&Arc<dyn Keyring>> {
        self.keyring.as_ref()
    }

    /// The binary log.
    pub fn binary_log(&self) -> Option<&Arc<dyn BinaryLog>> {
        self.binary_log.as_ref()
    }

    /// Controls replicas.
    pub fn replication(&self) -> Option<&Arc<dyn ReplicationControl>> {
        self.replication.as_ref()
    }

    /// Changes the cluster of a storage engine.
    pub fn cluster(&self) -> Option<&Arc<dyn ClusterControl>> {
        self.cluster.as_ref()
    }

    /// Shows profiles of statements.
    pub fn profile_printer(&self) -> Option<&Arc<dyn ProfilePrinter>> {
        self.profile_printer.as_ref()
    }

    /// The language of stored programs called `name` (upper case). A later plugin's replaces an earlier one.
    pub fn language(&self, name: &str) -> Option<&Arc<dyn ProgramLanguage>> {
        self.languages.iter().rev().find(|language| language.name() == name)
    }

    /// All engines, by their places.
    pub fn engines(&self) -> &[Arc<dyn Engine>] {
        &self.engines
    }
}

impl Registrar<'_> {
    /// Adds a scalar function under its name and aliases. A name `SCHEMA.NAME` is one that calls have to qualify.
    pub fn function(&mut self, function: ScalarFunction) {
        let function = Arc::new(function);
        for name in std::iter::once(&function.name).chain(function.aliases) {
            self.registry.functions.insert(name, function.clone());
        }
        if let Some(role) = function.traits.role {
            self.registry.roles.insert(role, function.clone());
        }
        self.items.push(("FUNCTION", function.name.to_owned()));
    }

    /// Adds a table function, and its code as a scalar function.
    pub fn table_function(&mut self, function: TableFunction) {
        self.items.push(("TABLE FUNCTION", function.rows.name.to_owned()));
        self.function(function.rows.clone());
        self.registry.table_functions.insert(function.rows.name, Arc::new(function));
    }

    /// Adds an aggregate under its name and aliases.
    pub fn aggregate(&mut self, function: AggregateFunction) {
        let function = Arc::new(function);
        for name in std::iter::once(&function.name).chain(function.aliases) {
            self.registry.aggregates.insert(name, function.clone());
        }
        if function.role != AggregateRole::Named {
            self.registry.aggregate_roles.insert(function.role, function.clone());
        }
        self.items.push(("AGGREGATE", function.name.to_owned()));
    }

    /// Adds an authentication method.
    pub fn authenticator(&mut self, method: Arc<dyn Authenticator>) {
        self.items.push(("AUTHENTICATION", method.name().to_owned()));
        self.registry.authenticators.push(method);
    }

    /// Adds a protocol.
    pub fn listener(&mut self, listener: Arc<dyn Listener>) {
        self.items.push(("LISTENER", listener.name().to_owned()));
        self.registry.listeners.push(listener);
    }

    /// Adds an information table.
    pub fn information_table(&mut self, table: Arc<dyn InformationTable>) {
        self.items.push(("INFORMATION TABLE", format!("{}.{}", table.schema(), table.name())));
        self.registry.information.push(table);
    }

    /// Adds a view of a system schema.
    pub fn system_view(&mut self, view: SystemView) {
        self.items.push(("SYSTEM VIEW", format!("{}.{}", view.schema, view.name)));
        self.registry.system_views.push(Arc::new(view));
    }

    /// Adds a procedure of a system schema.
    pub fn system_procedure(&mut self, procedure: SystemProcedure) {
        self.items.push(("SYSTEM PROCEDURE", format!("{}.{}", procedure.schema, procedure.name)));
        self.registry.system_procedures.push(Arc::new(procedure));
    }

    /// Adds a statement rewriter.
    pub fn rewriter(&mut self, name: &str, rewriter: Arc<dyn StatementRewriter>) {
        self.items.push(("STATEMENT", name.to_owned()));
        self.registry.rewriters.push(rewriter);
    }

    /// Adds a database of time zones.
    pub fn time_zones(&mut self, name: &str, zones: Arc<dyn TimeZones>) {
        self.items.push(("TIME ZONES", name.to_owned()));
        self.registry.time_zones.push(zones);
    }

    /// Adds a language of stored programs.
    pub fn language(&mut self, language: Arc<dyn ProgramLanguage>) {
        self.items.push(("LANGUAGE", language.name().to_owned()));
        self.registry.languages.push(language);
    }

    /// Adds an engine.
    pub fn engine(&mut self, engine: Arc<dyn Engine>) {
        self.items.push(("STORAGE ENGINE", engine.name().to_owned()));
        self.registry.engines.push(engine);
    }

    /// Adds a dynamic privilege, in upper case: GRANT and REVOKE know it, and SUPER implies it.
    pub fn privilege(&mut self, name: &'static str) {
        self.items.push(("PRIVILEGE", name.to_owned()));
        self.registry.privileges.push(name);
    }

    /// Sets how EXECUTE runs a text with options.
    pub fn text_runner(&mut self, name: &str, runner: Arc<dyn TextRunner>) {
        self.items.push(("STATEMENT", name.to_owned()));
        self.registry.text_runner = Some(runner);
    }

    /// Sets what controls replicas.
    pub fn replication(&mut self, control: Arc<dyn ReplicationControl>) {
        self.items.push(("STATEMENT", "START REPLICA".to_owned()));
        self.registry.replication = Some(control);
    }

    /// Sets what changes the cluster of a storage engine.
    pub fn cluster(&mut self, control: Arc<dyn ClusterControl>) {
        self.items.push(("STATEMENT", "ALTER CLUSTER".to_owned()));
        self.registry.cluster = Some(control);
    }

    /// Sets how PROFILE shows what it measured.
    pub fn profile_printer(&mut self, printer: Arc<dyn ProfilePrinter>) {
        self.items.push(("STATEMENT", "PROFILE".to_owned()));
        self.registry.profile_printer = Some(printer);
    }

    /// Adds a loader of plugins from files.
    pub fn loader(&mut self, loader: Arc<dyn PluginLoader>) {
        self.items.push(("LOADER", loader.suffix().to_owned()));
        self.registry.loaders.push(loader);
    }

    /// Adds work in the background.
    pub fn job(&mut self, job: Arc<dyn BackgroundJob>) {
        self.items.push(("JOB", job.name().to_owned()));
        self.registry.jobs.push(job);
    }

    /// Adds a system variable. `global` is where the plugin reads the global value; a session's value it gets by
    /// [`crate::SessionServices::system_variable`].
    pub fn variable(&mut self, definition: &'static Definition, global: &GlobalValue) {
        let global = global.clone();
        self.registry.variables.push(PluginVariable { definition, global, check: None });
    }

    /// The same with a check of the values that it may take.
    pub fn checked_variable(
        &mut self,
        definition: &'static Definition,
        global: &GlobalValue,
        check: impl Fn(&Value) -> Result<()> + Send + Sync + 'static,
    ) {
        let check = Some(VariableCheck::new(check));
        let global = global.clone();
        self.registry.variables.push(PluginVariable { definition, global, check });
    }

    /// Adds a row of SHOW STATUS.
    pub fn status(
        &mut self,
        name: &'static str,
        read: impl Fn() -> String + Send + Sync + 'static,
    ) {
        self.registry.status.push(StatusVariable { name, read: Arc::new(read) });
    }

    /// Keeps something for the plugin's functions, which find it by [`crate::SessionServices::shared_state`].
    pub fn shared_state(&mut self, name: &'static str, state: SharedState) {
        self.registry.states.insert(name, state);
    }

    /// Adds an observer.
    pub fn observer(&mut self, observer: Arc<dyn Observer>) {
        self.items.push(("OBSERVER", observer.name().to_owned()));
        self.registry.observers.push(observer);
    }

    /// Adds a plugin that denies objects.
    pub fn authorizer(&mut self, authorizer: Arc<dyn Authorizer>) {
        self.items.push(("AUTHORIZATION", authorizer.name().to_owned()));
        self.registry.authorizers.push(authorizer);
    }

    /// Adds a plugin that refuses weak passwords.
    pub fn password_check(&mut self, check: Arc<dyn PasswordCheck>) {
        self.items.push(("PASSWORD CHECK", check.name().to_owned()));
        self.registry.password_checks.push(check);
    }

    /// Adds a log sink.
    pub fn log_sink(&mut self, sink: Arc<dyn LogSink>) {
        self.items.push(("LOG SINK", sink.name().to_owned()));
        self.registry.log_sinks.push(sink);
    }

    /// Adds the keyring. The last one counts.
    pub fn keyring(&mut self, keyring: Arc<dyn Keyring>) {
        self.items.push(("KEYRING", keyring.kind().to_owned()));
        self.registry.keyring = Some(keyring);
    }

    /// Keeps the binary log.
    pub fn binary_log(&mut self, log: Arc<dyn BinaryLog>) {
        self.items.push(("BINARY LOG", "binary_log".to_owned()));
        self.registry.binary_log = Some(log);
    }

    /// Adds a plugin that gets the changes of committed transactions.
    pub fn change_sink(&mut self, sink: Arc<dyn ChangeSink>) {
        self.items.push(("CHANGE SINK", sink.name().to_owned()));
        self.registry.change_sinks.push(sink);
    }

    /// Adds a sink of change streams.
    pub fn stream_sink(&mut self, sink: Arc<dyn StreamSink>) {
        self.items.push(("STREAM SINK", sink.name().to_owned()));
        self.registry.stream_sinks.push(sink);
    }

    /// Adds calls over HTTP.
    pub fn http_routes(&mut self, routes: Arc<dyn HttpRoutes>) {
        self.items.push(("HTTP ROUTES", routes.name().to_owned()));
        self.registry.http_routes.push(routes);
    }

    /// Adds a page of the web console.
    pub fn console_page(&mut self, page: ConsolePage) {
        self.items.push(("CONSOLE PAGE", page.name.to_owned()));
        self.registry.console_pages.push(page);
    }
}
