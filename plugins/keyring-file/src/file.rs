//! The file: a line of text for each key, and a checksum (docs/format/encryption.md). Every call reads it, so that no key stays in memory; each change writes
//! a new file, syncs it, and gives it the name of the old one.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use errors::{Error, Result};
use plugin_api::{Keyring, Secret};
use sys::files::{self, Existing};
use sys::io_times::IoTimes;
use sys::sync::Mutex;

const TITLE: &str = "squall-keyring 1";
/// For the server's user only.
const MODE: u32 = 0o600;
/// Room for thousands of keys.
const BYTES_MAX: u64 = 1 << 20;
/// Bytes of a name.
const ID_BYTES_MAX: usize = 255;

/// A keyring in a file.
#[derive(Debug)]
pub struct FileKeyring {
    path: PathBuf,
    /// One change at a time.
    changes: Mutex<()>,
}

type Keys = BTreeMap<String, Secret>;

impl FileKeyring {
    /// In the file of this path. It need not exist: the first key makes it.
    pub fn new(path: &Path) -> FileKeyring {
        FileKeyring { path: path.to_owned(), changes: Mutex::default() }
    }

    fn error(&self, error: &dyn std::fmt::Display) -> Error {
        Error::internal(format!("keyring file {}: {error}", self.path.display()))
    }

    fn read(&self) -> Result<Keys> {
        let text = match sys::private_file::read(&self.path, BYTES_MAX) {
            Ok((_, text)) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Keys::new()),
            Err(error) => return Err(self.error(&error)),
        };
        // Wiped when it is dropped.
        let text = Secret::new(text.into_bytes());
        let keys = str::from_utf8(text.bytes()).ok().and_then(parse);
        keys.ok_or_else(|| self.error(&"it is damaged, or not a keyring; put its copy back"))
    }

    fn write(&self, keys: &Keys) -> Result<()> {
        let text = encode(keys);
        self.replace(text.bytes()).map_err(|error| self.error(&error))
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let mut name = self.path.as_os_str().to_owned();
        name.push("-new");
        let new = PathBuf::from(name);
        let times = IoTimes::default();
        // One that a crash left may have other permissions.
        match files::remove(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = files::File::create(&new, MODE, Existing::Refuse)?;
        file.write_all(bytes)?;
        file.sync(&times)?;
        files::rename(&new, &self.path)?;
        let directory = self.path.parent().filter(|path| !path.as_os_str().is_empty());
        files::sync_directory(directory.unwrap_or(Path::new(".")), &times)
    }
}

/// Whether a name can be kept: it is a word of a line.
fn is_id(id: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_graphic();
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.bytes().all(is_part)
}

fn encode(keys: &Keys) -> Secret {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    // Grown once: what is left behind by growing is not wiped.
    let room = keys.iter().map(|(id, key)| 8 + id.len() + 2 * key.bytes().len()).sum::<usize>();
    let mut text = Vec::with_capacity(TITLE.len() + room + 64);
    text.extend_from_slice(TITLE.as_bytes());
    text.push(b'\n');
    for (id, key) in keys {
        text.extend_from_slice(b"key ");
        text.extend_from_slice(id.as_bytes());
        text.push(b' ');
        for byte in key.bytes() {
            text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        text.push(b'\n');
    }
    let sum = crypt::checksum(&text);
    text.extend_from_slice(format!("end {sum:08x}\n").as_bytes());
    Secret::new(text)
}

fn parse(text: &str) -> Option<Keys> {
    let (body, end) = text.split_at_checked(text.strip_suffix('\n')?.rfind('\n')? + 1)?;
    if end != format!("end {:08x}\n", crypt::checksum(body.as_bytes())) {
        return None;
    }
    let mut lines = body.lines();
    if lines.next()? != TITLE {
        return None;
    }
    let mut keys = Keys::new();
    for line in lines {
        let (id, key) = line.strip_prefix("key ")?.split_once(' ')?;
        let (pairs, rest) = key.as_bytes().as_chunks::<2>();
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
        let key = pairs.iter().map(byte).collect::<Option<Vec<u8>>>()?;
        if !rest.is_empty() || !is_id(id) {
            return None;
        }
        keys.insert(id.to_owned(), Secret::new(key));
    }
    Some(keys)
}

impl Keyring for FileKeyring {
    fn kind(&self) -> &'static str {
        "keyring_file"
    }

    fn fetch(&self, id: &str) -> Result<Option<Secret>> {
        Ok(self.read()?.remove(id))
    }

    fn store(&self, id: &str, key: &Secret) -> Result<()> {
        if !is_id(id) {
            return Err(self.error(&"a key's name is 1 to 255 visible ASCII characters"));
        }
        let _alone = self.changes.lock();
        let mut keys = self.read()?;
        if keys.insert(id.to_owned(), key.clone()).is_some() {
            return Err(self.error(&format!("there is a key {id} already")));
        }
        self.write(&keys)
    }

    fn remove(&self, id: &str) -> Result<bool> {
        let _alone = self.changes.lock();
        let mut keys = self.read()?;
        match keys.remove(id) {
            Some(_) => self.write(&keys).map(|()| true),
            None => Ok(false),
        }
    }

    fn ids(&self) -> Result<Vec<String>> {
        Ok(self.read()?.into_keys().collect())
    }

    fn reload(&self) -> Result<()> {
        // Every call reads the file.
        self.read().map(drop)
    }

    fn status(&self) -> Vec<(&'static str, String)> {
        let is_usable = self.read().is_ok();
        vec![
            ("Component_name", self.kind().to_owned()),
            ("Author", "Squall".to_owned()),
            ("License", "Apache-2.0".to_owned()),
            ("Implementation_name", self.kind().to_owned()),
            ("Version", "1.0".to_owned()),
            ("Component_status", if is_usable { "Active" } else { "Disabled" }.to_owned()),
            ("Data_file", self.path.display().to_string()),
            ("Read_only", "No".to_owned()),
        ]
    }
}

#[cfg(test)]
#[path = "tests.rs"]
#[allow(clippy::disallowed_methods, reason = "a test")]
mod tests;
