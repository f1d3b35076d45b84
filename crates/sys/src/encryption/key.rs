//! The data key of a directory, and the file in which it is kept, wrapped by the master key.

use std::io;
use std::sync::Arc;

use crypt::{DATA_KEY_BYTES, MASTER_KEY_BYTES, Secret, UnitCipher, WRAPPED_BYTES};

use crate::disk::{Disk, DiskKey, OpenMode};
use crate::sync::Mutex;

const FILE_NAME: &str = "encryption-key";
const NEW_NAME: &str = "encryption-key-new";
/// What the disk keeps to itself.
pub(super) const FILE_NAMES: [&str; 2] = [FILE_NAME, NEW_NAME];
const TITLE: &str = "squall-encryption 1";
/// No such file is longer.
const BYTES_MAX: u64 = 4096;

/// What a directory says about its data key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// Name of the master key in the keyring.
    pub master_id: String,
    wrapped: Vec<u8>,
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let text =
            str::from_utf8(pair).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()));
        u8::from_str_radix(text?, 16).ok()
    };
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(byte).collect()
}

impl KeyFile {
    /// The file's text.
    pub fn encode(&self) -> String {
        let body = format!("{TITLE}\nmaster {}\ndata {}\n", self.master_id, hex(&self.wrapped));
        let sum = crypt::checksum(body.as_bytes());
        format!("{body}end {sum:08x}\n")
    }

    /// From the file's text.
    ///
    /// # Errors
    /// It is damaged, or of a later version.
    pub fn decode(text: &str) -> io::Result<KeyFile> {
        let first = text.lines().next().unwrap_or_default();
        if first.starts_with("squall-encryption ") && first != TITLE {
            return Err(invalid("the file `encryption-key` is of a later version of the server"));
        }
        KeyFile::parse(text).ok_or_else(|| {
            invalid("the file `encryption-key` is damaged: put its copy from a backup of this directory back")
        })
    }

    fn parse(text: &str) -> Option<KeyFile> {
        let (body, end) = text.split_at_checked(text.strip_suffix('\n')?.rfind('\n')? + 1)?;
        if end != format!("end {:08x}\n", crypt::checksum(body.as_bytes())) {
            return None;
        }
        let mut lines = body.lines().skip(1);
        let master_id = lines.next()?.strip_prefix("master ")?.to_owned();
        let wrapped = from_hex(lines.next()?.strip_prefix("data ")?)?;
        let is_whole = lines.next().is_none() && wrapped.len() == WRAPPED_BYTES;
        is_whole.then_some(KeyFile { master_id, wrapped })
    }

    /// Reads it; `None` when the directory is not encrypted.
    ///
    /// # Errors
    /// It is damaged; I/O.
    pub fn read(disk: &dyn Disk) -> io::Result<Option<KeyFile>> {
        let file = match disk.open(FILE_NAME, OpenMode::Existing) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut bytes = vec![0; file.size_bytes()?.min(BYTES_MAX) as usize];
        let count = file.read_at(&mut bytes, 0)?;
        KeyFile::decode(&String::from_utf8_lossy(&bytes[..count])).map(Some)
    }

    /// Writes it so that a crash leaves the one before or this one.
    fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = disk.open(NEW_NAME, OpenMode::OrCreate)?;
        file.set_size(0)?;
        file.write_at(self.encode().as_bytes(), 0)?;
        file.sync()?;
        disk.rename(NEW_NAME, FILE_NAME)?;
        disk.sync_dir()
    }
}

/// A new master key.
///
/// # Errors
/// The operating system refused randomness.
pub fn master_key() -> io::Result<Secret> {
    random(MASTER_KEY_BYTES)
}

fn random(length: usize) -> io::Result<Secret> {
    let mut bytes = vec![0; length];
    crate::entropy::fill(&mut bytes)?;
    Ok(Secret::new(bytes))
}

/// Units under a random key that is kept nowhere: for files that end with the process.
pub(crate) fn unkept_units() -> io::Result<Arc<UnitCipher>> {
    units_of(&random(DATA_KEY_BYTES)?)
}

fn units_of(key: &Secret) -> io::Result<Arc<UnitCipher>> {
    UnitCipher::new(key).map(Arc::new).ok_or_else(|| invalid("the data key has a wrong length"))
}

/// The data key of a directory that is in use.
pub struct DirectoryKey {
    disk: Arc<dyn Disk>,
    data: Secret,
    units: Arc<UnitCipher>,
    file: Mutex<KeyFile>,
}

impl std::fmt::Debug for DirectoryKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("DirectoryKey")
    }
}

impl DirectoryKey {
    /// The key of a directory, which `file` is of; `None` when `master` is not the key that wrapped it. Nothing is written.
    ///
    /// # Errors
    /// The key has a wrong length.
    pub fn open(
        disk: &Arc<dyn Disk>,
        file: KeyFile,
        master: &Secret,
    ) -> io::Result<Option<DirectoryKey>> {
        let Some(data) = crypt::unwrap_key(master, &file.wrapped) else { return Ok(None) };
        let units = units_of(&data)?;
        Ok(Some(DirectoryKey { disk: disk.clone(), data, units, file: Mutex::new(file) }))
    }

    /// Makes a directory an encrypted one. It should be empty.
    ///
    /// # Errors
    /// The master key has a wrong length; I/O.
    pub fn make(
        disk: &Arc<dyn Disk>,
        master_id: &str,
        master: &Secret,
    ) -> io::Result<DirectoryKey> {
        let data = random(DATA_KEY_BYTES)?;
        let file = wrapped(master_id, master, &data)?;
        file.write(&**disk)?;
        let units = units_of(&data)?;
        Ok(DirectoryKey { disk: disk.clone(), data, units, file: Mutex::new(file) })
    }
}

impl DiskKey for DirectoryKey {
    fn master_id(&self) -> String {
        self.file.lock().master_id.clone()
    }

    fn file(&self) -> (&'static str, String) {
        (FILE_NAME, self.file.lock().encode())
    }

    fn rotate(&self, master_id: &str, master: &Secret) -> io::Result<()> {
        let new = wrapped(master_id, master, &self.data)?;
        let mut file = self.file.lock();
        new.write(&*self.disk)?;
        *file = new;
        Ok(())
    }

    fn units(&self) -> Arc<UnitCipher> {
        self.units.clone()
    }
}

fn wrapped(master_id: &str, master: &Secret, data: &Secret) -> io::Result<KeyFile> {
    // One line of the file.
    if master_id.is_empty() || master_id.len() > 255 || master_id.contains(char::is_control) {
        return Err(invalid("the name of the master key cannot be kept"));
    }
    let wrapped = crypt::wrap_key(master, data);
    let wrapped = wrapped.ok_or_else(|| invalid("the master key has a wrong length"))?;
    Ok(KeyFile { master_id: master_id.to_owned(), wrapped })
}
