//! Encryption at rest: whether a directory is encrypted, and the key that opens it (docs/encryption.md).
//!
//! A new data directory is encrypted when the start names a keyring. What a directory is, it stays: nothing here converts one.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{Keyring, keep_master_key};
use sys::disk::Disk;
use sys::encryption::{DirectoryKey, EncryptedDisk, KeyFile, master_key};
use tracing::{info, warn};

/// Where the keys are, and whose they are.
#[derive(Clone, Default)]
pub(crate) struct Keys {
    pub(crate) keyring: Option<Arc<dyn Keyring>>,
    pub(crate) server_uuid: String,
}

/// The start ends with this before anything is written.
fn refused(reason: &str) -> Error {
    let number = ErrorCode::CANNOT_FIND_KEY_IN_KEYRING;
    Error::new(number, format!("the data directory is encrypted, and {reason}"))
}

impl Keys {
    /// The key of an encrypted directory, or of a backup of one; `None` when it is not encrypted.
    ///
    /// # Errors
    /// 3185 when the keyring is missing, has not the key, or has another one of its name. Nothing was written then.
    pub(crate) fn open(&self, disk: &Arc<dyn Disk>) -> Result<Option<Arc<DirectoryKey>>> {
        let Some(file) = KeyFile::read(&**disk).map_err(Error::internal)? else { return Ok(None) };
        let id = file.master_id.clone();
        let Some(keyring) = &self.keyring else {
            return Err(refused(&format!(
                "no keyring was named: start with the keyring that has the key {id}, --keyring-file-data=FILE or --keyring-hashicorp-server-url=URL"
            )));
        };
        let Some(master) = keyring.fetch(&id)? else {
            return Err(refused(&format!(
                "the keyring has no key {id}: name the keyring of this directory, or put its copy back"
            )));
        };
        match DirectoryKey::open(disk, file, &master).map_err(Error::internal)? {
            Some(key) => Ok(Some(Arc::new(key))),
            None => Err(refused(&format!(
                "the key {id} of the keyring does not open it: name the keyring of this directory, or put its copy back"
            ))),
        }
    }

    /// As `open`; a directory without files becomes an encrypted one when there is a keyring.
    ///
    /// # Errors
    /// As `open`; the keyring or the directory cannot be written.
    pub(crate) fn open_or_make(&self, disk: &Arc<dyn Disk>) -> Result<Option<Arc<DirectoryKey>>> {
        if let Some(key) = self.open(disk)? {
            return Ok(Some(key));
        }
        let Some(keyring) = &self.keyring else { return Ok(None) };
        if !disk.list().map_err(Error::internal)?.is_empty() {
            warn!(
                "the data directory was made without encryption and stays so; to encrypt it, restore a backup of it into a new one with this keyring"
            );
            return Ok(None);
        }
        let master = master_key().map_err(Error::internal)?;
        let id = keep_master_key(&**keyring, &self.server_uuid, &master)?;
        let key = DirectoryKey::make(disk, &id, &master).map_err(Error::internal)?;
        info!(keyring = keyring.kind(), key = id, "the new data directory is encrypted");
        Ok(Some(Arc::new(key)))
    }
}

/// The disk as its users see it.
pub(crate) fn through(disk: Arc<dyn Disk>, key: Option<&Arc<DirectoryKey>>) -> Arc<dyn Disk> {
    match key {
        Some(key) => Arc::new(EncryptedDisk::new(disk, key.clone())),
        None => disk,
    }
}
