//! What a plugin is, and what the server knows of it.

use std::fmt;
use std::sync::Arc;

use errors::Result;

use crate::identity::PluginInfo;
use crate::registry::{Registrar, Registry};

/// A family of features.
pub trait Plugin: Send + Sync {
    /// The plugin's identity.
    fn info(&self) -> PluginInfo;
    /// Adds the plugin's contributions. Called once, at the start of the server, whether the plugin is loaded or not: it must have no
    /// effect outside of the plugin. Listeners and jobs start when the plugin is loaded.
    fn register(&self, registrar: &mut Registrar<'_>);
}

/// Makes plugins of files, so that a plugin may be written in any language.
pub trait PluginLoader: Send + Sync {
    /// The suffix of its files, without a dot: `wasm`.
    fn suffix(&self) -> &'static str;
    /// The plugin in a file of `plugin_dir`, which is to be called `name`.
    ///
    /// # Errors
    /// The contents are not such a plugin.
    fn load(&self, name: &str, contents: &[u8]) -> Result<Box<dyn Plugin>>;
}

/// A plugin that the server knows.
#[derive(Clone)]
pub struct Module {
    /// Its identity.
    pub info: Arc<PluginInfo>,
    /// The file that it was loaded from; `None` for one that is compiled in.
    pub library: Option<Arc<str>>,
    /// Whether it is loaded.
    pub is_loaded: bool,
    pub(crate) part: Arc<Part>,
}

/// The contributions of one plugin.
pub(crate) struct Part {
    pub(crate) slots: Registry,
    pub(crate) items: Vec<(&'static str, String)>,
}

impl Module {
    /// A plugin with its contributions, not loaded.
    pub fn new(plugin: &dyn Plugin, library: Option<Arc<str>>) -> Module {
        let info = Arc::new(plugin.info());
        let mut slots = Registry::default();
        let mut registrar = Registrar { registry: &mut slots, items: Vec::new() };
        plugin.register(&mut registrar);
        let items = registrar.items;
        Module { info, library, is_loaded: false, part: Arc::new(Part { slots, items }) }
    }

    /// Its contributions: slot and name.
    pub fn items(&self) -> &[(&'static str, String)] {
        &self.part.items
    }

    /// What it contributes, alone.
    pub fn slots(&self) -> &Registry {
        &self.part.slots
    }

    /// Whether this is its name; `-` and `_` are the same, and so are capitals and small letters.
    pub fn is_called(&self, name: &str) -> bool {
        let plain = |byte: u8| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
        self.info.name.len() == name.len()
            && self
                .info
                .name
                .bytes()
                .zip(name.bytes())
                .all(|(own, given)| plain(own) == plain(given))
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({}, loaded: {})", self.info.name, self.is_loaded)
    }
}
