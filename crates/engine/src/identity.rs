//! The identity that distinguishes one data directory's log from another's: a random number in its own file. A backup names it but does not hold the file, so
//! a directory restored or copied from a backup gets a new one.

use std::io;

use sys::disk::{Disk, OpenMode};
use sys::encryption::KeyFile;

const FILE_NAME: &str = "identity";
const NOISE_BYTES: usize = 16;

/// Reads a file's identity; `None` if the file is missing or incomplete.
pub(crate) fn read(disk: &dyn Disk) -> io::Result<Option<String>> {
    let file = match disk.open(FILE_NAME, OpenMode::Existing) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut bytes = [0; 2 * NOISE_BYTES];
    let count = file.read_at(&mut bytes, 0)?;
    let is_whole = count == bytes.len() && bytes.iter().all(u8::is_ascii_hexdigit);
    Ok(is_whole.then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Makes an identity the disk's.
pub(crate) fn write(disk: &dyn Disk, identity: &str) -> io::Result<()> {
    let file = disk.open(FILE_NAME, OpenMode::OrCreate)?;
    file.set_size(0)?;
    file.write_at(identity.as_bytes(), 0)?;
    file.sync()?;
    disk.sync_dir()
}

/// Refuses files that are encrypted and were opened without their key: they would look damaged.
///
/// # Errors
/// `InvalidData`; I/O.
pub(crate) fn require_key(disk: &dyn Disk) -> io::Result<()> {
    if disk.key().is_some() || KeyFile::read(disk)?.is_none() {
        return Ok(());
    }
    let text = "the directory is encrypted, and can be read only by a server that has its keyring";
    Err(io::Error::new(io::ErrorKind::InvalidData, text))
}

/// Reads the identity, or makes one.
pub(crate) fn read_or_make(disk: &dyn Disk) -> io::Result<String> {
    if let Some(identity) = read(disk)? {
        return Ok(identity);
    }
    let mut noise = [0; NOISE_BYTES];
    sys::entropy::fill(&mut noise)?;
    let identity: String = noise.iter().map(|byte| format!("{byte:02x}")).collect();
    write(disk, &identity)?;
    Ok(identity)
}
