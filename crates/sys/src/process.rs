//! Facts of this process and its machine: lock files, names of users, the host's name.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::FlockOperation;

/// A file that one process at a time has locked. The lock ends with the value, and with the process.
pub struct LockFile(#[allow(dead_code, reason = "holds the lock")] File);

impl LockFile {
    /// Locks `path`, making the file when it is missing; `None` when another process has it.
    ///
    /// # Errors
    /// The file cannot be made or locked.
    pub fn acquire(path: &Path) -> io::Result<Option<LockFile>> {
        let file =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(LockFile(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Name of the operating system's user who owns `path`.
///
/// # Errors
/// There is no such file.
pub fn owner_name(path: &Path) -> io::Result<Option<String>> {
    Ok(crate::net::user_name(std::fs::metadata(path)?.uid()))
}

/// The machine's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The process id.
pub fn id() -> u32 {
    std::process::id()
}
