//! Which of the known plugins are loaded.

use errors::{Error, ErrorCode, Result};
use plugin_api::{Loading, Module, Registry};
use variables::Globals;

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

/// The registry after these choices, made one after the other.
///
/// # Errors
/// 1524 with the known names for an unknown plugin, 1619 when one is not to be loaded that must be.
pub(crate) fn choose(registry: Registry, choices: &[PluginChoice]) -> Result<Registry> {
    let mut chosen = registry;
    for PluginChoice { name, wanted } in choices {
        let module = chosen.module(name).ok_or_else(|| unknown(&chosen, name))?;
        chosen = match (wanted, module.is_loaded) {
            (Wanted::Loaded, false) => chosen.with_loaded(name)?,
            (Wanted::NotLoaded, true) => chosen.without(name)?,
            (Wanted::Loaded, true) | (Wanted::NotLoaded, false) => chosen,
        };
    }
    Ok(chosen)
}

fn unknown(registry: &Registry, name: &str) -> Error {
    let removable = |module: &&Module| module.info.loading != Loading::Always;
    let mut names: Vec<&str> =
        registry.modules().iter().filter(removable).map(|module| &*module.info.name).collect();
    names.sort_unstable();
    let known = names.join(", ");
    let message = format!("There is no plugin '{name}'; plugins to choose from: {known}");
    Error::new(ErrorCode::PLUGIN_IS_NOT_LOADED, message)
}

/// Global variables with those of every known plugin.
pub(crate) fn globals_with(registry: &Registry) -> Globals {
    let variables = registry.modules().iter().flat_map(|module| module.slots().variables());
    Globals::with_plugins(&variables.cloned().collect::<Vec<_>>())
}

/// Shows the variables of the loaded plugins, and hides those of others.
pub(crate) fn show_variables(globals: &Globals, registry: &Registry) {
    let names = registry.variables().iter().map(|variable| variable.definition.name);
    globals.definitions.show_plugins(&names.collect::<Vec<_>>());
}
