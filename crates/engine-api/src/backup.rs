//! Copies of an engine's files, taken while it is in use: the data that the engine writes, and its target.

use std::io;

/// The target of a backup: a flat set of files, each written front to back, so that a stream can be one.
pub trait BackupTarget: Send + Sync {
    /// Begins a file.
    ///
    /// # Errors
    /// I/O.
    fn create(&self, name: &str) -> io::Result<Box<dyn BackupFile + '_>>;
}

/// A file of a backup.
pub trait BackupFile {
    /// Appends bytes.
    ///
    /// # Errors
    /// I/O.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;

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
