//! The keyring: each key is a secret below the path of the store, with the key's name.

use errors::{Error, ErrorCode, Result};
use plugin_api::{Keyring, Secret};
use sys::sync::Mutex;
use ureq::http::{Method, StatusCode};

use crate::answer;
use crate::options::VaultOptions;
use crate::request::{Answer, send};

/// Bytes of a name.
const ID_BYTES_MAX: usize = 255;

/// A keyring in a Vault.
#[derive(Debug)]
pub struct VaultKeyring {
    options: VaultOptions,
    /// One change of this server at a time. Version 1 cannot refuse to write over a secret; names have the server's own UUID in them.
    changes: Mutex<()>,
}

impl VaultKeyring {
    /// In this Vault. Nothing is sent yet.
    pub fn new(options: VaultOptions) -> VaultKeyring {
        VaultKeyring { options, changes: Mutex::default() }
    }

    fn is_versioned(&self) -> bool {
        self.options.store.metadata.is_some()
    }

    /// Error 3185: a start that cannot have its keys ends with it, and so does a statement.
    fn error(&self, reason: impl std::fmt::Display) -> Error {
        let number = ErrorCode::CANNOT_FIND_KEY_IN_KEYRING;
        Error::new(number, format!("the keyring in Vault at {}: {reason}", self.options.server_url))
    }

    fn send(&self, method: Method, path: &str, body: Option<&Secret>) -> Result<Answer> {
        send(&self.options, method, path, body).map_err(|reason| self.error(reason))
    }

    /// The path of a key.
    fn path(&self, folder: &str, id: &str) -> Result<String> {
        // What a path holds as it is.
        let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
        let is_id =
            !matches!(id, "" | "." | "..") && id.len() <= ID_BYTES_MAX && id.bytes().all(is_known);
        match is_id {
            true => Ok(format!("{folder}/{id}")),
            false => Err(self.error("a key's name is 1 to 255 letters, digits, - _ . ~")),
        }
    }

    /// Whether an answer has something; an error unless it has, or there is nothing.
    fn is_there(&self, answer: &Answer) -> Result<bool> {
        match answer.status {
            status if status.is_success() => Ok(true),
            // Vault says with words when the path is wrong, and without when it is empty.
            StatusCode::NOT_FOUND if answer::words(answer).is_none() => Ok(false),
            _ => Err(self.error(answer::failure(answer))),
        }
    }

    fn read(&self, id: &str) -> Result<Option<Secret>> {
        let path = self.path(&self.options.store.data, id)?;
        let answer = self.send(Method::GET, &path, None)?;
        if !self.is_there(&answer)? {
            return match answer::is_removed(&answer) {
                true => Err(self.error(format!("the key {id} was removed: undelete its version"))),
                false => Ok(None),
            };
        }
        let key = answer::key(&answer, self.is_versioned());
        let damaged = || self.error(format!("{path} holds no key of a keyring"));
        key.map(Some).ok_or_else(damaged)
    }
}

impl Keyring for VaultKeyring {
    fn kind(&self) -> &'static str {
        "keyring_hashicorp"
    }

    fn fetch(&self, id: &str) -> Result<Option<Secret>> {
        self.read(id)
    }

    fn store(&self, id: &str, key: &Secret) -> Result<()> {
        let path = self.path(&self.options.store.data, id)?;
        let _alone = self.changes.lock();
        if self.read(id)?.is_some() {
            return Err(self.error(format!("there is a key {id} already")));
        }
        let body = answer::kept(key, self.is_versioned());
        let answer = self.send(Method::POST, &path, Some(&body))?;
        if !answer.status.is_success() {
            return Err(self.error(answer::failure(&answer)));
        }
        // What a lost answer, a cache or a replica of Vault says must be what was kept: else the data is lost with it.
        match self.read(id)?.as_ref() == Some(key) {
            true => Ok(()),
            false => Err(self.error(format!("the key {id} was kept and is not read back"))),
        }
    }

    fn remove(&self, id: &str) -> Result<bool> {
        let _alone = self.changes.lock();
        if self.read(id)?.is_none() {
            return Ok(false);
        }
        let store = &self.options.store;
        // Of version 2 this removes all versions of the secret.
        let path = self.path(store.metadata.as_deref().unwrap_or(&store.data), id)?;
        let answer = self.send(Method::DELETE, &path, None)?;
        self.is_there(&answer)
    }

    fn ids(&self) -> Result<Vec<String>> {
        let store = &self.options.store;
        let folder = store.metadata.as_deref().unwrap_or(&store.data);
        // As the method LIST, which proxies between may not know.
        let answer = self.send(Method::GET, &format!("{folder}?list=true"), None)?;
        if !self.is_there(&answer)? {
            return Ok(Vec::new());
        }
        let damaged = || self.error(format!("{folder} is no list of secrets"));
        answer::names(&answer).ok_or_else(damaged)
    }

    fn reload(&self) -> Result<()> {
        // Token and certificates are read with each request: there is nothing to read anew, but something to find out.
        self.ids().map(drop)
    }

    fn status(&self) -> Vec<(&'static str, String)> {
        let is_usable = sys::blocking::blocking(|| self.ids()).is_ok();
        let ca_file = self.options.ca_file.as_ref().map(|path| path.display().to_string());
        vec![
            ("Component_name", self.kind().to_owned()),
            ("Author", "Squall".to_owned()),
            ("License", "Apache-2.0".to_owned()),
            ("Implementation_name", self.kind().to_owned()),
            ("Version", "1.0".to_owned()),
            ("Component_status", if is_usable { "Active" } else { "Disabled" }.to_owned()),
            ("Server_url", self.options.server_url.clone()),
            ("Store_path", self.options.store.data.clone()),
            ("Token_file", self.options.token_file.display().to_string()),
            ("Ca_path", ca_file.unwrap_or_default()),
            ("Timeout", self.options.timeout.as_secs().to_string()),
            ("Read_only", "No".to_owned()),
        ]
    }
}
