//! Files without a name, for data that a statement cannot keep in memory: they vanish with their last handle, also after a crash.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
// A static needs a constant, which loom's atomics are not.
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{self, File as _};
use crate::encryption::EncryptedFile;
use crate::io_times::{Call, FileClass, IoTimes, Target};
use crate::simulation::{self, file_tree::unnamed_file};
use crate::usage;

/// Whether this process encrypts what it writes to unnamed files.
static ENCRYPTS: AtomicBool = AtomicBool::new(false);

/// From now on, unnamed files of this process are encrypted, each under a key of its own that is kept nowhere.
pub fn encrypt_all() {
    // Pairs with the load in `create`.
    ENCRYPTS.store(true, Ordering::Release);
}

/// Where a session makes its files, and where calls to them are counted.
#[derive(Debug)]
pub struct TemporaryFiles {
    directory: PathBuf,
    times: Arc<IoTimes>,
}

impl TemporaryFiles {
    /// In `directory`.
    pub fn new(directory: &Path, times: Arc<IoTimes>) -> TemporaryFiles {
        TemporaryFiles { directory: directory.to_owned(), times }
    }

    /// Makes one.
    ///
    /// # Errors
    /// I/O.
    pub fn create(&self) -> io::Result<UnnamedFile> {
        usage::count_temporary_file();
        let times = self.times.clone();
        let file = match simulation::current() {
            Some(here) => Unnamed::Virtual(unnamed_file(&here, &self.directory)?),
            None => Unnamed::Real(open_unnamed(&self.directory)?),
        };
        let file = Plain { file, target: FileClass::Temporary.into(), times };
        // Pairs with `encrypt_all`.
        Ok(UnnamedFile(match ENCRYPTS.load(Ordering::Acquire) {
            false => Way::Plain(file),
            true => Way::Encrypted(EncryptedFile::unkept(Arc::new(file))?),
        }))
    }
}

/// A file that no other process can open.
pub struct UnnamedFile(Way);

enum Way {
    Plain(Plain),
    Encrypted(EncryptedFile),
}

/// The file as the system has it.
struct Plain {
    file: Unnamed,
    target: Target,
    times: Arc<IoTimes>,
}

enum Unnamed {
    Real(File),
    Virtual(Arc<dyn disk::File>),
}

fn open_unnamed(directory: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
        Ok(file) => return Ok(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
        // Not every file system can.
        Err(_) => {}
    }
    let mut noise = [0; 16];
    crate::entropy::fill(&mut noise)?;
    let path = directory.join(format!("squall-{:032x}", u128::from_le_bytes(noise)));
    let file = options.create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

impl UnnamedFile {
    /// Writes all of `buf` at `offset`.
    ///
    /// # Errors
    /// I/O.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        usage::count_temporary_bytes(buf.len());
        match &self.0 {
            Way::Plain(file) => file.write_at(buf, offset),
            Way::Encrypted(file) => file.write_at(buf, offset),
        }
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// I/O; the file is shorter.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let (rest, at) = (&mut buf[done..], offset + done as u64);
            let read = match &self.0 {
                Way::Plain(file) => file.read_some(rest, at)?,
                Way::Encrypted(file) => file.read_at(rest, at)?,
            };
            match read {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => done += count,
            }
        }
        Ok(())
    }
}

impl Plain {
    /// One call that reads something; 0 at the end of the file.
    fn read_some(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            let read = || match &self.file {
                Unnamed::Real(file) => FileExt::read_at(file, buf, offset),
                Unnamed::Virtual(file) => file.read_at(buf, offset),
            };
            match self.times.transfer((&self.target, Call::Pread), read) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }
}

impl disk::File for Plain {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < buf.len() {
            match self.read_some(&mut buf[done..], offset + done as u64)? {
                0 => break,
                count => done += count,
            }
        }
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        match &self.file {
            Unnamed::Real(file) => self.times.write_all(&self.target, file, buf, offset),
            Unnamed::Virtual(file) => file.write_at(buf, offset),
        }
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn size_bytes(&self) -> io::Result<u64> {
        match &self.file {
            Unnamed::Real(file) => Ok(file.metadata()?.len()),
            Unnamed::Virtual(file) => file.size_bytes(),
        }
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        match &self.file {
            Unnamed::Real(file) => file.set_len(size_bytes),
            Unnamed::Virtual(file) => file.set_size(size_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_to_temporary_files_count() {
        let times = Arc::new(IoTimes::default());
        let file = TemporaryFiles::new(&std::env::temp_dir(), times.clone()).create().unwrap();
        file.write_at(b"abc", 5).unwrap();
        file.write_at(b"d", 8).unwrap();
        let mut read = [0; 4];
        file.read_at(&mut read, 5).unwrap();
        assert_eq!(&read, b"abcd");
        // One call finds two bytes, the next the end.
        assert!(file.read_at(&mut read, 7).is_err());
        let counts =
            times.buckets().into_iter().fold((0, 0), |(reads, writes), bucket| match bucket.call {
                "pread" => (reads + bucket.count, writes),
                _ => (reads, writes + bucket.count),
            });
        assert_eq!(counts, (3, 2));
    }
}
