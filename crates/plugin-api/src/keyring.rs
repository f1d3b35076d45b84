//! The keyring: where the keys are kept that open the server's data. It is outside the data directory, so that who has the one has not the other.

use crypt::Secret;
use errors::Result;

/// Keeps keys under names. All methods may be called from several threads, and may wait for I/O.
pub trait Keyring: Send + Sync {
    /// The name of its kind: `keyring_file`.
    fn kind(&self) -> &'static str;

    /// The key of this name; `None` when there is none.
    ///
    /// # Errors
    /// The keyring cannot be read: the message says what to do.
    fn fetch(&self, id: &str) -> Result<Option<Secret>>;

    /// Keeps a key under a name that is not in use. It is durable when this returns.
    ///
    /// # Errors
    /// The name is in use; the keyring cannot be written.
    fn store(&self, id: &str, key: &Secret) -> Result<()>;

    /// Forgets a key; `false` when there is none of this name.
    ///
    /// # Errors
    /// The keyring cannot be written.
    fn remove(&self, id: &str) -> Result<bool>;

    /// The names of all keys, in their order.
    ///
    /// # Errors
    /// The keyring cannot be read.
    fn ids(&self) -> Result<Vec<String>>;

    /// What an administrator wants to know of it, as names and values; no secrets.
    fn status(&self) -> Vec<(&'static str, String)>;
}
