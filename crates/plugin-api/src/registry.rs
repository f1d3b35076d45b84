//! The registered plugins. Built once at boot; a change builds another registry and publishes it.

use std::collections::HashMap;
use std::sync::Arc;

use engine_api::{Engine, EngineIndex};
use types::{AggregateRole, FunctionRole, ZoneRules};

use crate::authentication::Authenticator;
use crate::function::{AggregateFunction, ScalarFunction};
use crate::information::InformationTable;
use crate::listener::Listener;
use crate::rewrite::StatementRewriter;
use crate::text_runner::TextRunner;
use crate::time_zone::TimeZones;

/// The identity of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Name, lower case with underscores.
    pub name: &'static str,
    /// One sentence.
    pub description: &'static str,
}

/// A family of features.
pub trait Plugin: Send + Sync {
    /// The plugin's identity.
    fn info(&self) -> PluginInfo;
    /// Adds the plugin's contributions.
    fn register(&self, registrar: &mut Registrar<'_>);
}

/// All registered plugins. Immutable: readers share it behind an `Arc`.
#[derive(Default)]
pub struct Registry {
    plugins: Vec<(PluginInfo, Vec<(&'static str, String)>)>,
    functions: HashMap<&'static str, Arc<ScalarFunction>>,
    roles: HashMap<FunctionRole, Arc<ScalarFunction>>,
    aggregates: HashMap<&'static str, Arc<AggregateFunction>>,
    aggregate_roles: HashMap<AggregateRole, Arc<AggregateFunction>>,
    authenticators: Vec<Arc<dyn Authenticator>>,
    listeners: Vec<Arc<dyn Listener>>,
    information: Vec<Arc<dyn InformationTable>>,
    rewriters: Vec<Arc<dyn StatementRewriter>>,
    engines: Vec<Arc<dyn Engine>>,
    time_zones: Vec<Arc<dyn TimeZones>>,
    privileges: Vec<&'static str>,
    text_runner: Option<Arc<dyn TextRunner>>,
}

/// Lets one plugin add to a registry under construction.
pub struct Registrar<'a> {
    registry: &'a mut Registry,
    items: Vec<(&'static str, String)>,
}

impl Registry {
    /// A registry of these plugins, in order. A later plugin's function replaces an earlier one of the same name.
    pub fn build(plugins: &[Box<dyn Plugin>]) -> Registry {
        let mut registry = Registry::default();
        for plugin in plugins {
            registry.add(plugin.as_ref());
        }
        registry
    }

    /// Adds one plugin.
    pub fn add(&mut self, plugin: &dyn Plugin) {
        let mut registrar = Registrar { registry: self, items: Vec::new() };
        plugin.register(&mut registrar);
        let items = registrar.items;
        self.plugins.push((plugin.info(), items));
    }

    /// The scalar function called `name` (upper case).
    pub fn function(&self, name: &str) -> Option<&Arc<ScalarFunction>> {
        self.functions.get(name)
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

    /// All statement rewriters.
    pub fn rewriters(&self) -> &[Arc<dyn StatementRewriter>] {
        &self.rewriters
    }

    /// The engine called `name`, without regard to case.
    pub fn engine(&self, name: &str) -> Option<&Arc<dyn Engine>> {
        self.engines.iter().find(|engine| engine.name().eq_ignore_ascii_case(name))
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

    /// All engines, by their places.
    pub fn engines(&self) -> &[Arc<dyn Engine>] {
        &self.engines
    }

    /// All plugins with their contributions: `(slot, name)`.
    pub fn plugins(&self) -> &[(PluginInfo, Vec<(&'static str, String)>)] {
        &self.plugins
    }
}

impl Registrar<'_> {
    /// Adds a scalar function under its name and aliases.
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

    /// Adds an aggregate under its name and aliases.
    pub fn aggregate(&mut self, function: AggregateFunction) {
        let function = Arc::new(function);
        for name in std::iter::once(&function.name).chain(function.aliases) {
            self.registry.aggregates.insert(name, function.clone());
        }
        self.registry.aggregate_roles.insert(function.role, function.clone());
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
}
