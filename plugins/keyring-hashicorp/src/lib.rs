//! `keyring_hashicorp`: keys in HashiCorp Vault, over its HTTP API, as secrets of a key/value engine of version 1 or 2. docs/encryption.md tells how.
//!
//! The token comes from a file and nowhere else: a setting would be in lists of processes and variables. It is read for each request, so that who renews it
//! (Vault's agent) needs to tell nobody. Neither it nor a key is in a message.

mod answer;
mod options;
mod request;
#[cfg(test)]
#[allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
mod tests;
mod vault;

use std::sync::Arc;

use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};

pub use options::VaultOptions;
pub use vault::VaultKeyring;

/// The plugin. It has a keyring when the start named a server.
#[derive(Default)]
pub struct KeyringHashicorp(Option<Arc<VaultKeyring>>);

impl KeyringHashicorp {
    /// With the keyring in this Vault, if one is named.
    pub fn new(options: Option<&VaultOptions>) -> KeyringHashicorp {
        KeyringHashicorp(options.map(|options| Arc::new(VaultKeyring::new(options.clone()))))
    }
}

impl Plugin for KeyringHashicorp {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("keyring_hashicorp", "Keys of encryption at rest in HashiCorp Vault.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        if let Some(keyring) = &self.0 {
            registrar.keyring(keyring.clone());
        }
        for definition in options::DEFINITIONS {
            // They are read by the start, before there are variables.
            registrar.variable(definition, &GlobalValue::default());
        }
    }
}
