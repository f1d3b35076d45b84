//! `keyring_file`: keys in a file that only the server's user can read.
//!
//! The file has to be on another medium than the data directory, or be backed up apart from it: who has both has everything.

mod file;

use std::path::Path;
use std::sync::Arc;

use plugin_api::{Plugin, PluginInfo, Registrar};

pub use file::FileKeyring;

/// The plugin. It has a keyring when the start named its file.
#[derive(Default)]
pub struct KeyringFile(Option<Arc<FileKeyring>>);

impl KeyringFile {
    /// With the keyring in this file, if one is named.
    pub fn new(path: Option<&Path>) -> KeyringFile {
        KeyringFile(path.map(|path| Arc::new(FileKeyring::new(path))))
    }
}

impl Plugin for KeyringFile {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("keyring_file", "Keys of encryption at rest in a file.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        if let Some(keyring) = &self.0 {
            registrar.keyring(keyring.clone());
        }
    }
}
