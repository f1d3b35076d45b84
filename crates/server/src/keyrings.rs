//! Which keyring the options name.

use std::path::PathBuf;
use std::sync::Arc;

use keyring_file::{FileKeyring, KeyringFile};
use keyring_hashicorp::{KeyringHashicorp, VaultKeyring, VaultOptions};
use plugin_api::{Keyring, Plugin};

/// Where the keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyringChoice {
    /// In this file.
    File(PathBuf),
    /// In this Vault.
    Vault(VaultOptions),
}

impl KeyringChoice {
    /// From the options of a start; `None` without a keyring.
    ///
    /// # Errors
    /// An option is wrong or missing; two keyrings.
    pub(crate) fn collect<'a>(
        last: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Option<KeyringChoice>, String> {
        let file = last("keyring_file_data").filter(|path| !path.is_empty());
        match (file, VaultOptions::collect(&last)?) {
            (None, None) => Ok(None),
            (Some(file), None) => Ok(Some(KeyringChoice::File(PathBuf::from(file)))),
            (None, Some(vault)) => Ok(Some(KeyringChoice::Vault(vault))),
            (Some(_), Some(_)) => Err("--keyring-file-data and --keyring-hashicorp-server-url: \
                the keys are in one keyring"
                .into()),
        }
    }

    /// The keyring.
    pub(crate) fn open(&self) -> Arc<dyn Keyring> {
        match self {
            KeyringChoice::File(path) => Arc::new(FileKeyring::new(path)),
            KeyringChoice::Vault(options) => Arc::new(VaultKeyring::new(options.clone())),
        }
    }
}

/// The plugins of all kinds of keyrings; one of them has the keyring that was chosen.
pub(crate) fn plugins(choice: Option<&KeyringChoice>) -> [Box<dyn Plugin>; 2] {
    let (file, vault) = match choice {
        Some(KeyringChoice::File(path)) => (Some(path.as_path()), None),
        Some(KeyringChoice::Vault(options)) => (None, Some(options)),
        None => (None, None),
    };
    [Box::new(KeyringFile::new(file)), Box::new(KeyringHashicorp::new(vault))]
}
