//! Files without a name, for what a statement cannot keep in memory: gone with their last handle, whatever happens.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// A file that nobody else can open.
pub struct UnnamedFile(std::fs::File);

impl UnnamedFile {
    /// Makes one on the file system of `directory`.
    ///
    /// # Errors
    /// I/O.
    pub fn create(directory: &Path) -> io::Result<UnnamedFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        match options.clone().custom_flags(libc::O_TMPFILE).open(directory) {
            Ok(file) => return Ok(UnnamedFile(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error),
            // Not every file system can.
            Err(_) => {}
        }
        let mut noise = [0; 16];
        crate::entropy::fill(&mut noise)?;
        let path = directory.join(format!("squall-{:032x}", u128::from_le_bytes(noise)));
        let file = options.create_new(true).open(&path)?;
        std::fs::remove_file(&path)?;
        Ok(UnnamedFile(file))
    }

    /// Writes all of `buf` at `offset`.
    ///
    /// # Errors
    /// I/O.
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(buf, offset)
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// I/O; the file is shorter.
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buf, offset)
    }
}
