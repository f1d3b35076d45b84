//! What INSTALL and UNINSTALL PLUGIN and COMPONENT name: a plugin that is compiled in, or a file.

use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{Loading, Registry};

use crate::live_plugins::{Change, read_library, suffix, unknown_plugin};

/// The URNs of components begin so.
const SCHEME: &str = "file://";
/// The names of components begin so, those of plugins do not.
const COMPONENT: &str = "component_";

/// `INSTALL PLUGIN name [SONAME 'library']`: a library names a file that a loaded plugin reads, or else a plugin that is compiled in.
///
/// # Errors
/// 1124, 1125, 1126, 1127.
pub fn install(
    registry: &Registry,
    name: &str,
    library: Option<&str>,
    directory: &str,
) -> Result<Change> {
    let known = registry.module(name);
    if known.is_some_and(|module| module.is_loaded) {
        bail!(UDF_EXISTS, name);
    }
    let Some(library) = library else {
        return match known {
            Some(_) => Ok(Change::Load(name.to_owned())),
            None => Err(unknown_plugin(registry, name)),
        };
    };
    if library.contains(['/', '\\', '\0']) {
        bail!(UDF_NO_PATHS);
    }
    let stem = library.rsplit_once('.').map_or(library, |(stem, _)| stem);
    if registry.loader(suffix(library)).is_some() || registry.module(stem).is_none() {
        return read_library(registry, name, library, directory).map(Change::Add);
    }
    match known.filter(|module| module.is_called(stem)) {
        Some(_) => Ok(Change::Load(name.to_owned())),
        None => Err(err!(CANT_FIND_DL_ENTRY, name)),
    }
}

/// The first URN that is not the only one of its kind in a statement.
pub fn repeated(urns: &[Box<str>]) -> Option<&str> {
    let mut earlier = urns.iter().enumerate();
    earlier.find_map(|(at, urn)| urns[..at].contains(urn).then_some(&**urn))
}

/// The plugin that a URN names.
fn component_name(urn: &str) -> Result<&str> {
    let (scheme, _) = urn.split_once("://").ok_or_else(|| err!(COMPONENTS_UNKNOWN_SCHEME, urn))?;
    let file =
        urn.strip_prefix(SCHEME).ok_or_else(|| err!(COMPONENTS_NO_SCHEME_SERVICE, scheme, urn))?;
    Ok(file.strip_prefix(COMPONENT).unwrap_or(file))
}

/// INSTALL COMPONENT of one.
///
/// # Errors
/// 1126, 3527, 3528, 3529.
pub fn install_component(registry: &Registry, urn: &str, directory: &str) -> Result<Change> {
    let name = component_name(urn)?;
    match registry.module(name) {
        Some(module) if module.is_loaded => Err(err!(COMPONENTS_CANT_LOAD, urn)),
        Some(_) => Ok(Change::Load(name.to_owned())),
        None => {
            let path = format!("{directory}{COMPONENT}{name}.so");
            Err(err!(CANT_OPEN_LIBRARY, path, 0, "no plugin of this name is compiled in"))
        }
    }
}

/// UNINSTALL COMPONENT of one.
///
/// # Errors
/// 1533 for one that stays, 3537.
pub fn uninstall_component(registry: &Registry, urn: &str) -> Result<Change> {
    let name = component_name(urn).map_err(|_| err!(COMPONENTS_UNLOAD_NOT_LOADED, urn))?;
    match registry.module(name).filter(|module| module.is_loaded) {
        Some(module) if module.info.loading == Loading::Always => {
            Err(Error::with(ErrorCode::PLUGIN_DELETE_BUILTIN, &[]))
        }
        Some(_) => Ok(Change::Remove(name.to_owned())),
        None => Err(err!(COMPONENTS_UNLOAD_NOT_LOADED, urn)),
    }
}
