//! The data directory: created private, locked against a second server, with the files that a start creates in it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sys::files::{self, Existing};
use sys::io_times::IoTimes;
use sys::process::LockFile;

const DIRECTORY_MODE: u32 = 0o700;
const SECRET_MODE: u32 = 0o600;
/// Letters and digits that cannot be confused with each other.
const PASSWORD_ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyzABCDEFGH2";
const PASSWORD_CHARS: usize = 24;

/// An open data directory.
pub(crate) struct DataDirectory {
    pub(crate) path: PathBuf,
    /// Counts all file operations of the process.
    pub(crate) io_times: Arc<IoTimes>,
    _lock: LockFile,
}

impl DataDirectory {
    /// Creates and locks `path`.
    ///
    /// # Errors
    /// It cannot be created, or another server uses it.
    pub(crate) fn open(path: &Path) -> io::Result<DataDirectory> {
        if !files::about(path).is_some_and(|about| about.is_directory) {
            files::create_directories(path, DIRECTORY_MODE)?;
        }
        let path = files::canonical(path)?;
        let lock = LockFile::acquire(&path.join("squall.lock"))?.ok_or_else(|| {
            io::Error::new(io::ErrorKind::AddrInUse, "another server uses the data directory")
        })?;
        Ok(DataDirectory { path, io_times: Arc::default(), _lock: lock })
    }

    /// The operating system's user that owns it, and so administers the server.
    pub(crate) fn owner(&self) -> Option<u32> {
        sys::process::owner(&self.path).ok()
    }

    /// Generates a password for root and stores it in a file that only the owner can read.
    ///
    /// # Errors
    /// No entropy, or the file cannot be written.
    pub(crate) fn make_root_password(&self) -> io::Result<(String, PathBuf)> {
        let mut noise = [0; PASSWORD_CHARS];
        sys::entropy::fill(&mut noise)?;
        let letter = |byte: &u8| char::from(PASSWORD_ALPHABET[usize::from(byte % 32)]);
        let password: String = noise.iter().map(letter).collect();
        let path = self.path.join("root-password");
        self.write_private(&path, &format!("{password}\n"))?;
        Ok((password, path))
    }

    /// The server's uuid, generated at first start.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn server_uuid(&self) -> io::Result<String> {
        let path = self.path.join("auto.cnf");
        let known = files::read_text(&path).unwrap_or_default();
        if let Some(uuid) = known.lines().find_map(|line| line.strip_prefix("server-uuid=")) {
            return Ok(uuid.trim().to_owned());
        }
        let mut bytes = [0; 16];
        sys::entropy::fill(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
        self.write_private(&path, &format!("[auto]\nserver-uuid={uuid}\n"))?;
        Ok(uuid)
    }

    fn write_private(&self, path: &Path, text: &str) -> io::Result<()> {
        // Removed first, so that the mode holds for a file that already existed.
        match files::remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = files::File::create(path, SECRET_MODE, Existing::Refuse)?;
        file.write_all(text.as_bytes())?;
        file.sync(&self.io_times)?;
        // Its name too: without the password nobody could use the account that is about to be stored.
        files::sync_directory(&self.path, &self.io_times)
    }
}
