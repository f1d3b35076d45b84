//! Files that are named by their path: those that a start writes to the data directory, and those that statements read and write for users.
//!
//! Tables and logs do not come here: their directory is a [`crate::disk::Disk`].

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub use crate::file_kinds::{About, Existing};
use crate::io_times::IoTimes;
use crate::simulation::{VirtualFile, current, file_tree};

/// Bytes of the file system that holds `path`: those free to this user, and all of them. `None` when the system does not say.
pub fn space(path: &Path) -> Option<(u64, u64)> {
    if current().is_some() {
        return None;
    }
    let facts = rustix::fs::statvfs(path).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(facts.f_frsize);
    Some((bytes(facts.f_bavail), bytes(facts.f_blocks)))
}

/// An open file, read or written from its start to its end.
#[derive(Debug)]
pub struct File(Inner);

#[derive(Debug)]
enum Inner {
    Real(fs::File),
    Virtual(VirtualFile),
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// `NotFound`, I/O.
    pub fn open(path: &Path) -> io::Result<File> {
        if let Some(here) = current() {
            return VirtualFile::open(&here, path).map(|file| File(Inner::Virtual(file)));
        }
        fs::File::open(path).map(|file| File(Inner::Real(file)))
    }

    /// Opens a file for writing. When it is made here its permissions are `mode`.
    ///
    /// # Errors
    /// `AlreadyExists` where `existing` refuses that; I/O.
    pub fn create(path: &Path, mode: u32, existing: Existing) -> io::Result<File> {
        if let Some(here) = current() {
            let file = VirtualFile::create(&here, path, existing)?;
            return Ok(File(Inner::Virtual(file)));
        }
        let mut options = fs::OpenOptions::new();
        options.mode(mode);
        match existing {
            Existing::Refuse => options.read(true).write(true).create_new(true),
            Existing::Replace => options.write(true).create(true).truncate(true),
            Existing::Append => options.append(true).create(true),
        };
        options.open(path).map(|file| File(Inner::Real(file)))
    }

    /// Makes the file share the blocks that `source` has now, so that nothing is written until one of the two changes. `false` where the file system cannot do
    /// that, or the two are on different ones.
    ///
    /// # Errors
    /// I/O.
    pub fn share(&self, source: BorrowedFd<'_>) -> io::Result<bool> {
        use rustix::io::Errno;
        let Inner::Real(file) = &self.0 else { return Ok(false) };
        match rustix::fs::ioctl_ficlone(file, source) {
            Ok(()) => Ok(true),
            Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOTTY) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Fills `bytes` from `offset`; fewer only at the end of the file. Only files that were shared are read.
    ///
    /// # Errors
    /// I/O.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let Inner::Real(file) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        let mut done = 0;
        while done < bytes.len() {
            match std::os::unix::fs::FileExt::read_at(
                file,
                &mut bytes[done..],
                offset + done as u64,
            ) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// How long the file is now.
    ///
    /// # Errors
    /// I/O.
    pub fn size_bytes(&self) -> io::Result<u64> {
        match &self.0 {
            Inner::Real(file) => Ok(file.metadata()?.len()),
            Inner::Virtual(file) => file.size_bytes(),
        }
    }

    /// Writes over bytes of a shared file.
    ///
    /// # Errors
    /// I/O.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let Inner::Real(file) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
    }

    /// Cuts a shared file.
    ///
    /// # Errors
    /// I/O.
    pub fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        let Inner::Real(file) = &self.0 else { return Err(io::ErrorKind::Unsupported.into()) };
        file.set_len(size_bytes)
    }

    /// Makes the written bytes durable, and counts the call in `times`.
    ///
    /// # Errors
    /// I/O.
    pub fn sync(&self, times: &IoTimes) -> io::Result<()> {
        match &self.0 {
            Inner::Real(file) => times.sync_all(file),
            Inner::Virtual(file) => file.sync(),
        }
    }
}

impl Read for File {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Real(file) => file.read(buf),
            Inner::Virtual(file) => file.read(buf),
        }
    }
}

impl Write for File {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Inner::Real(file) => file.write(buf),
            Inner::Virtual(file) => file.write(buf),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All bytes of a file.
///
/// # Errors
/// `NotFound`, I/O.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    if current().is_none() {
        return fs::read(path);
    }
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Names of the files in a directory, in order; directories in it are left out.
///
/// # Errors
/// `NotFound`, I/O.
pub fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().into_string()
            && fs::metadata(entry.path())?.is_file()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// All of a file that is text.
///
/// # Errors
/// `NotFound`, I/O; `InvalidData` when it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The kind of file at `path`; `None` if nothing exists there, or access is denied.
pub fn about(path: &Path) -> Option<About> {
    if let Some(here) = current() {
        return file_tree::about(&here, path);
    }
    let about = fs::metadata(path).ok()?;
    Some(About { is_file: about.is_file(), is_directory: about.is_dir(), size_bytes: about.len() })
}

/// Whether anything exists at `path`.
pub fn exists(path: &Path) -> bool {
    about(path).is_some()
}

/// The path from the root, without links and dots.
///
/// # Errors
/// The file does not exist.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match current() {
        Some(here) => file_tree::canonical(&here, path),
        None => path.canonicalize(),
    }
}

/// Removes a file.
///
/// # Errors
/// `NotFound`, I/O.
pub fn remove(path: &Path) -> io::Result<()> {
    match current() {
        Some(here) => file_tree::remove(&here, path),
        None => fs::remove_file(path),
    }
}

/// Gives a file another name in the same directory; a file of that name is replaced.
///
/// # Errors
/// `NotFound`, I/O.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    match current() {
        Some(here) => file_tree::rename(&here, from, to),
        None => fs::rename(from, to),
    }
}

/// Makes a directory that does not exist yet.
///
/// # Errors
/// `AlreadyExists`; the directory above it is missing; I/O.
pub fn create_directory(path: &Path, mode: u32) -> io::Result<()> {
    match current() {
        Some(here) => file_tree::create_directory(&here, path),
        None => fs::DirBuilder::new().mode(mode).create(path),
    }
}

/// Makes a directory, and those above it, where they are missing.
///
/// # Errors
/// I/O.
pub fn create_directories(path: &Path, mode: u32) -> io::Result<()> {
    if let Some(here) = current() {
        file_tree::create_directories(&here, path);
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(mode).create(path)
}

/// Removes a directory with everything in it.
///
/// # Errors
/// `NotFound`, I/O.
pub fn remove_directory(path: &Path) -> io::Result<()> {
    match current() {
        Some(here) => file_tree::remove_directory(&here, path),
        None => fs::remove_dir_all(path),
    }
}

/// Makes the names in a directory durable, and counts the call in `times`.
///
/// # Errors
/// I/O.
pub fn sync_directory(path: &Path, times: &IoTimes) -> io::Result<()> {
    match current() {
        Some(here) => file_tree::sync_directory(&here, path),
        None => times.sync_all(&fs::File::open(path)?),
    }
}

/// Whether the file system of `path` lies on a device of blocks, as opposed to memory or a network.
///
/// # Errors
/// The file does not exist.
pub fn is_on_block_device(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    if current().is_some() {
        return Ok(false);
    }
    Ok(rustix::fs::major(fs::metadata(path)?.dev()) != 0)
}
