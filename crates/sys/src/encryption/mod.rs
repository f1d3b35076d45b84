//! Encryption at rest: a disk whose files are encrypted on their way to the disk below (docs/format/encryption.md).
//!
//! One data key encrypts all files of a directory. It is kept in the directory itself, wrapped by a master key that is kept elsewhere, so that the master
//! key changes without a file being written anew. Callers of the disk notice nothing: files keep their sizes, and a torn write tears what it would tear without
//! encryption.

mod file;
mod key;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use crate::disk::{Disk, DiskKey, DiskSpace, File, OpenMode};
use crate::sync::Mutex;

pub use crypt::Secret;
pub use file::{EncryptedFile, FileSealer, HEADER_BYTES};
pub use key::{DirectoryKey, KeyFile, master_key};

/// Files that are read before the key is known, or that say where it is; none holds data of users.
const PLAIN_NAMES: [&str; 3] = ["identity", "manifest", "sync-probe"];

/// A directory whose files are encrypted.
pub struct EncryptedDisk {
    below: Arc<dyn Disk>,
    key: Arc<dyn DiskKey>,
    /// Held while bytes of a unit are changed that another write may also change, and while a file gets its header.
    partial: Arc<Mutex<()>>,
}

impl EncryptedDisk {
    /// Encrypts with `key` what goes to `below`.
    pub fn new(below: Arc<dyn Disk>, key: Arc<dyn DiskKey>) -> EncryptedDisk {
        EncryptedDisk { below, key, partial: Arc::default() }
    }

    fn wrap(
        &self,
        name: &str,
        file: Arc<dyn File>,
        is_in_blocks: bool,
    ) -> io::Result<Arc<dyn File>> {
        if PLAIN_NAMES.contains(&name) {
            return Ok(file);
        }
        let file = EncryptedFile::open(file, self.key.units(), &self.partial, is_in_blocks);
        let file =
            file.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        Ok(Arc::new(file))
    }
}

impl Disk for EncryptedDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.wrap(name, self.below.open(name, mode)?, false)
    }

    fn open_log(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.wrap(name, self.below.open_log(name, mode)?, true)
    }

    fn open_pages(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.wrap(name, self.below.open_pages(name, mode)?, true)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.below.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.below.rename(from, to)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.below.list()?;
        names.retain(|name| !key::FILE_NAMES.contains(&name.as_str()));
        Ok(names)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.below.sync_dir()
    }

    fn space(&self) -> Option<DiskSpace> {
        self.below.space()
    }

    fn key(&self) -> Option<Arc<dyn DiskKey>> {
        Some(self.key.clone())
    }
}
