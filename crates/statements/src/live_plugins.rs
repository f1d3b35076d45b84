//! Which of the known plugins are loaded: the choice at the start, and the registry of the present ones, which a server replaces while it runs.
//!
//! Changes nothing that others see but through `LivePlugins::publish`.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

use arc_swap::ArcSwap;
use catalog::{CatalogSnapshot, Edit, PluginChoice as StoredChoice};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{Loading, Module, Rebinding, Registry};
use sys::sync::Mutex;
use types::Value;
use variables::{Globals, VariableId};

/// The largest file that a plugin may be in.
const LIBRARY_BYTES_MAX: u64 = 256 << 20;

/// Whether a plugin is to be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// It is to be loaded.
    Loaded,
    /// It is not to be loaded.
    NotLoaded,
}

/// A choice for one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginChoice {
    /// Its name; `-` and `_` are the same.
    pub name: String,
    /// Whether it is to be loaded.
    pub wanted: Wanted,
}

/// Runs the listeners and background jobs of plugins.
pub trait PluginHost: Send + Sync {
    /// Starts what a plugin has to run.
    ///
    /// # Errors
    /// A port cannot be bound; then nothing of the plugin runs.
    fn start(&self, module: &Module) -> Result<()>;
    /// Binds the addresses of changed settings of listeners, beside the present ones.
    ///
    /// # Errors
    /// An address cannot be bound, or no listener has one of the settings; then nothing has changed.
    fn rebind(&self, settings: &[(&'static str, Value)]) -> Result<Box<dyn Rebinding>>;
    /// Listeners read their certificates anew.
    ///
    /// # Errors
    /// 3888: they cannot be read. The ones before stay in use, or with `disables_on_error` none.
    fn reload_tls(&self, disables_on_error: bool) -> Result<()>;
    /// Stops what a plugin runs, without waiting for it: a connection of its own listener may be the caller.
    fn stop(&self, name: &str);
}

/// The loaded plugins of a running server.
pub struct LivePlugins {
    current: ArcSwap<Registry>,
    /// Held by whoever changes them.
    pub changing: Mutex<()>,
    host: OnceLock<Weak<dyn PluginHost>>,
}

/// A step of a change.
pub enum Change {
    /// Loads a known plugin.
    Load(String),
    /// Loads a plugin from a file.
    Add(Module),
    /// Removes a loaded plugin.
    Remove(String),
}

/// A value that a variable of a plugin gets with its loading.
pub struct Setting {
    /// The variable.
    pub id: VariableId,
    /// Its value.
    pub value: Value,
    /// Later starts have it too.
    pub persists: bool,
}

impl LivePlugins {
    /// With the plugins of the start.
    pub fn new(registry: Arc<Registry>) -> LivePlugins {
        LivePlugins {
            current: ArcSwap::new(registry),
            changing: Mutex::new(()),
            host: OnceLock::new(),
        }
    }

    /// The present registry.
    #[inline]
    pub fn current(&self) -> Arc<Registry> {
        self.current.load_full()
    }

    /// Replaces the registry; the caller holds `changing`.
    pub fn publish(&self, registry: Arc<Registry>) {
        self.current.store(registry);
    }

    /// Whether a plan that was compiled with `registry` has the plugins that are loaded now.
    #[inline]
    pub fn is_current(&self, registry: &Arc<Registry>) -> bool {
        Arc::ptr_eq(&self.current.load(), registry)
    }

    /// Only the first host counts: there is one.
    pub fn run_by(&self, host: &Arc<dyn PluginHost>) {
        let _first = self.host.set(Arc::downgrade(host));
    }

    /// Who runs listeners and jobs, while there is one.
    pub fn host(&self) -> Option<Arc<dyn PluginHost>> {
        self.host.get()?.upgrade()
    }

    /// Starts what a plugin has to run.
    ///
    /// # Errors
    /// A listener cannot start, or nothing runs listeners here.
    pub fn start(&self, module: &Module) -> Result<()> {
        let slots = module.slots();
        match self.host() {
            Some(host) => host.start(module),
            None if slots.listeners().is_empty() && slots.jobs().is_empty() => Ok(()),
            None => Err(Error::internal("nothing runs listeners here")),
        }
    }

    /// Stops what plugins run.
    pub fn stop<'m>(&self, modules: impl IntoIterator<Item = &'m Module>) {
        let Some(host) = self.host() else { return };
        modules.into_iter().for_each(|module| host.stop(&module.info.name));
    }
}

impl Change {
    /// The registry after this step.
    ///
    /// # Errors
    /// An unknown plugin, one that is loaded already or must stay.
    pub fn apply(&self, registry: &Registry) -> Result<Registry> {
        match self {
            Change::Load(name) => registry.with_loaded(name),
            Change::Add(module) => registry.with_added(module.clone()),
            Change::Remove(name) => registry.without(name),
        }
    }
}

/// The modules that are loaded in one registry and not in the other.
pub fn only_in<'r>(registry: &'r Registry, other: &Registry) -> Vec<&'r Module> {
    let is_loaded = |module: &Module| {
        module.is_loaded && !other.module(&module.info.name).is_some_and(|known| known.is_loaded)
    };
    registry.modules().iter().filter(|module| is_loaded(module)).collect()
}

/// What the dictionary keeps about a change: nothing when the plugin is as it would be without any choice.
pub fn stored_choice(module: &Module, wanted: Wanted) -> Edit {
    let name = Box::from(&*module.info.name);
    let is_loaded = wanted == Wanted::Loaded;
    let is_usual = match (&module.library, module.info.loading) {
        (Some(_), _) | (None, Loading::OnRequest) => !is_loaded,
        (None, Loading::Always | Loading::ByDefault) => is_loaded,
    };
    if is_usual {
        return Edit::DropPlugin(name);
    }
    let library = module.library.as_deref().map(Box::from);
    Edit::PutPlugin { name, choice: StoredChoice { is_loaded, library } }
}

/// The registry of a start: what earlier statements chose, then what the command line says.
///
/// # Errors
/// 1524 with the known names for an unknown plugin of the command line, 1619 when one is not to be loaded that must be.
pub fn chosen(
    known: Registry,
    stored: &CatalogSnapshot,
    given: &[PluginChoice],
    directory: &str,
) -> Result<Registry> {
    let mut registry = known;
    let mut files = Vec::new();
    for (name, choice) in stored.plugins() {
        match (&choice.library, registry.module(name)) {
            (Some(library), _) => files.push((&**name, &**library)),
            // A plugin that a later version dropped is not worth refusing to start.
            (None, None) => tracing::warn!("plugin {name} was installed and is not known"),
            (None, Some(module)) if module.is_loaded == choice.is_loaded => {}
            (None, Some(_)) if choice.is_loaded => registry = registry.with_loaded(name)?,
            (None, Some(_)) => registry = registry.without(name)?,
        }
    }
    for choice in given {
        if !files.iter().any(|(name, _)| same_name(name, &choice.name)) {
            registry = with_choice(registry, choice)?;
        }
    }
    for (name, library) in files {
        let last = given.iter().rev().find(|choice| same_name(name, &choice.name));
        if last.is_some_and(|choice| choice.wanted == Wanted::NotLoaded) {
            continue;
        }
        let module = read_library(&registry, name, library, directory);
        match module.and_then(|module| registry.with_added(module)) {
            Ok(next) => registry = next,
            Err(error) => tracing::warn!("plugin {name} cannot be loaded: {error}"),
        }
    }
    Ok(registry)
}

fn same_name(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(&other.replace('-', "_"))
}

fn with_choice(registry: Registry, choice: &PluginChoice) -> Result<Registry> {
    let name = &choice.name;
    let module = registry.module(name).ok_or_else(|| unknown_plugin(&registry, name))?;
    match (choice.wanted, module.is_loaded) {
        (Wanted::Loaded, false) => registry.with_loaded(name),
        (Wanted::NotLoaded, true) => registry.without(name),
        (Wanted::Loaded, true) | (Wanted::NotLoaded, false) => Ok(registry),
    }
}

/// 1524 with the names of the plugins that can be chosen.
pub fn unknown_plugin(registry: &Registry, name: &str) -> Error {
    let removable = |module: &&Module| module.info.loading != Loading::Always;
    let mut names: Vec<&str> =
        registry.modules().iter().filter(removable).map(|module| &*module.info.name).collect();
    names.sort_unstable();
    let known = names.join(", ");
    let message = format!("There is no plugin '{name}'; plugins to choose from: {known}");
    Error::new(ErrorCode::PLUGIN_IS_NOT_LOADED, message)
}

/// The plugin in a file of `plugin_dir`, read by the loaded plugin that knows such files.
///
/// # Errors
/// 1126 when no plugin reads such files or the file cannot be read, 1127 when the file's plugin has another name, errors of its loader.
pub fn read_library(
    registry: &Registry,
    name: &str,
    library: &str,
    directory: &str,
) -> Result<Module> {
    let path = Path::new(directory).join(library);
    let loader = registry.loader(suffix(library)).ok_or_else(|| {
        let why = "no loaded plugin reads such files, and no plugin of this name is compiled in";
        err!(CANT_OPEN_LIBRARY, path.display(), 0, why)
    })?;
    if directory.is_empty() {
        bail!(CANT_OPEN_LIBRARY, path.display(), 0, "plugin_dir is not set");
    }
    if sys::files::about(&path).is_some_and(|about| about.size_bytes > LIBRARY_BYTES_MAX) {
        bail!(CANT_OPEN_LIBRARY, path.display(), 0, "the file is too large");
    }
    let contents = sys::files::read(&path).map_err(|error| {
        err!(CANT_OPEN_LIBRARY, path.display(), error.raw_os_error().unwrap_or(0), error)
    })?;
    let plugin = loader.load(name, &contents)?;
    let module = Module::new(plugin.as_ref(), Some(Arc::from(library)));
    if !module.is_called(name) {
        bail!(CANT_FIND_DL_ENTRY, name);
    }
    if !module.slots().variables().is_empty() {
        // Ids of variables are given at the start.
        return Err(Error::not_supported("system variables of a plugin from a file"));
    }
    Ok(module)
}

/// The part of a file's name after the last dot.
pub fn suffix(library: &str) -> &str {
    library.rsplit_once('.').map_or("", |(_, suffix)| suffix)
}

/// Global variables with those of every known plugin.
pub fn globals_with(registry: &Registry) -> Globals {
    let variables = registry.modules().iter().flat_map(|module| module.slots().variables());
    Globals::with_plugins(&variables.cloned().collect::<Vec<_>>())
}

/// Shows the variables of the loaded plugins, and hides those of others.
pub fn show_variables(globals: &Globals, registry: &Registry) {
    let names = registry.variables().iter().map(|variable| variable.definition.name);
    globals.definitions.show_plugins(&names.collect::<Vec<_>>());
}
