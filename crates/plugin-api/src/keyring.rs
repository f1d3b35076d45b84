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

    /// ALTER INSTANCE RELOAD KEYRING: reads its settings anew and finds out whether it can be used.
    ///
    /// # Errors
    /// It cannot.
    fn reload(&self) -> Result<()>;

    /// What an administrator wants to know of it, as names and values; no secrets.
    fn status(&self) -> Vec<(&'static str, String)>;
}

/// Keeps a new master key, under the next name of this server: as the reference's, so that administrators know what it is.
///
/// # Errors
/// The keyring cannot be read or written.
pub fn keep_master_key(keyring: &dyn Keyring, server_uuid: &str, key: &Secret) -> Result<String> {
    let prefix = format!("INNODBKey-{server_uuid}-");
    let ids = keyring.ids()?;
    let numbers = ids.iter().filter_map(|id| id.strip_prefix(&prefix)?.parse::<u64>().ok());
    let id = format!("{prefix}{}", numbers.max().unwrap_or(0).saturating_add(1));
    keyring.store(&id, key)?;
    Ok(id)
}
