//! Copies of an engine's files, taken while it is in use: the data that the engine writes, and its target.

use std::io;

use sys::disk::FileHandle;

/// The target of a backup: a flat set of files, each written front to back, so that a stream can be one.
pub trait BackupTarget: Send + Sync {
    /// Begins a file.
    ///
    /// # Errors
    /// I/O.
    fn create(&self, name: &str) -> io::Result<Box<dyn BackupFile + '_>>;

    /// Whether it wants data as it is read, from an encrypted directory too: it encrypts by itself.
    fn is_plain(&self) -> bool {
        false
    }

    /// Told once how many bytes of pages come: most of the backup.
    fn expect(&self, _bytes: u64) {}
}

/// A file of a backup.
pub trait BackupFile {
    /// Appends bytes.
    ///
    /// # Errors
    /// I/O.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes the file, to which nothing was written, share the blocks that `source` has now. `false`: it cannot, and is written. Afterwards it may be read,
    /// changed in places and cut, and nothing is appended.
    ///
    /// # Errors
    /// I/O.
    fn share(&mut self, _source: FileHandle<'_>) -> io::Result<bool> {
        Ok(false)
    }

    /// Reads from a file that shares; returns fewer bytes only at its end.
    ///
    /// # Errors
    /// I/O; it does not share.
    fn read_at(&mut self, _bytes: &mut [u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Writes over bytes of a file that shares.
    ///
    /// # Errors
    /// I/O; it does not share.
    fn write_at(&mut self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Cuts a file that shares.
    ///
    /// # Errors
    /// I/O; it does not share.
    fn cut(&mut self, _size_bytes: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Ends the file and makes it durable.
    ///
    /// # Errors
    /// I/O.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// The contents of a complete backup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// Commits with a smaller position are in it, and no others.
    pub end_position: u64,
    /// When the last of them can have been made, microseconds since 1970 UTC.
    pub end_micros: u64,
    /// Bytes written.
    pub bytes: u64,
}
