//! The identity of a plugin and when it is loaded.

use std::borrow::Cow;

/// When a plugin is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loading {
    /// Always: the server does not work without it, so it cannot be removed.
    Always,
    /// From the first start on, until somebody removes it.
    ByDefault,
    /// When somebody asks for it: `--plugin-add`, INSTALL PLUGIN.
    OnRequest,
}

/// The identity of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginInfo {
    /// Name, lower case with underscores.
    pub name: Cow<'static, str>,
    /// Version of the plugin.
    pub version: Cow<'static, str>,
    /// Who wrote it.
    pub author: Cow<'static, str>,
    /// Its licence, as SPDX spells it.
    pub licence: Cow<'static, str>,
    /// One sentence.
    pub description: Cow<'static, str>,
    /// When it is loaded.
    pub loading: Loading,
}

impl PluginInfo {
    /// A plugin of this project that is always loaded.
    pub const fn new(name: &'static str, description: &'static str) -> PluginInfo {
        PluginInfo {
            name: Cow::Borrowed(name),
            version: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
            author: Cow::Borrowed("Squall"),
            licence: Cow::Borrowed("Apache-2.0"),
            description: Cow::Borrowed(description),
            loading: Loading::Always,
        }
    }

    /// The same, loaded unless somebody removes it.
    pub const fn by_default(mut self) -> PluginInfo {
        self.loading = Loading::ByDefault;
        self
    }

    /// The same, loaded when somebody asks for it.
    pub const fn on_request(mut self) -> PluginInfo {
        self.loading = Loading::OnRequest;
        self
    }
}
