//! The contract of a directory of files, real or simulated.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crypt::{Secret, UnitCipher};

/// The action when a file does or does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist.
    Existing,
    /// It is created when missing.
    OrCreate,
}

/// The operating system's handle of an open file.
pub use std::os::fd::BorrowedFd as FileHandle;

/// An open file. All methods may be called from several threads.
pub trait File: Send + Sync {
    /// Fills `buf` from `offset`; returns fewer bytes only at the end of the file.
    ///
    /// # Errors
    /// I/O.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Like `read_at`, into words that other threads may read at the same time; they discard the values.
    ///
    /// # Errors
    /// I/O.
    fn read_words(&self, words: &[AtomicU64], offset: u64) -> io::Result<usize> {
        let mut bytes = vec![0; size_of_val(words)];
        let count = self.read_at(&mut bytes, offset)?;
        for (word, bytes) in words.iter().zip(bytes.as_chunks::<8>().0) {
            word.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
        }
        Ok(count)
    }
    /// Writes all of `buf` at `offset`, growing the file when needed.
    ///
    /// # Errors
    /// I/O; the number of bytes written is then unknown.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()>;
    /// Writes each part, an offset and its bytes, as `write_at` does, in no order. Side by side where the file can do that.
    ///
    /// # Errors
    /// I/O; which parts were written is then unknown.
    fn write_parts(&self, parts: &[(u64, &[u8])]) -> io::Result<()> {
        parts.iter().try_for_each(|(offset, bytes)| self.write_at(bytes, *offset))
    }
    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// I/O; the caller must assume that any unsynced write is lost and never retry.
    fn sync(&self) -> io::Result<()>;
    /// Size in bytes.
    ///
    /// # Errors
    /// I/O.
    fn size_bytes(&self) -> io::Result<u64>;
    /// Cuts or grows (with zeros) the file.
    ///
    /// # Errors
    /// I/O.
    fn set_size(&self, size_bytes: u64) -> io::Result<()>;
    /// Gives the file blocks for `length` bytes from `offset`, without changing its content or its size, so that writes there need no more space.
    /// File systems that cannot do that are left as they are.
    ///
    /// # Errors
    /// `StorageFull` and `QuotaExceeded`; I/O.
    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        let _ = (offset, length);
        Ok(())
    }
    /// The operating system's handle, for those who want to share the blocks of the file. Simulated files have none.
    fn handle(&self) -> Option<FileHandle<'_>> {
        None
    }
}

/// A directory of files.
pub trait Disk: Send + Sync {
    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound` in mode `Existing`; I/O.
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Like `open`, for a file written in whole blocks of `BLOCK_BYTES` and synced after every write or two.
    ///
    /// # Errors
    /// As `open`.
    fn open_log(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.open(name, mode)
    }
    /// Like `open`, for a file of pages that its reader caches itself: whole blocks in aligned memory go past the page cache.
    ///
    /// # Errors
    /// As `open`.
    fn open_pages(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        self.open(name, mode)
    }
    /// Removes a file; durable after `sync_dir`.
    ///
    /// # Errors
    /// `NotFound`, I/O.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Renames a file, replacing the target; durable after `sync_dir`.
    ///
    /// # Errors
    /// `NotFound`, I/O.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Names of all files, in no order.
    ///
    /// # Errors
    /// I/O.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Makes creations, removals and renames durable.
    ///
    /// # Errors
    /// I/O.
    fn sync_dir(&self) -> io::Result<()>;
    /// The space that there is; `None` when nobody knows.
    fn space(&self) -> Option<DiskSpace> {
        None
    }
    /// The key under which all files are encrypted, by this disk; `None` when they are as they were written.
    fn key(&self) -> Option<Arc<dyn DiskKey>> {
        None
    }
}

/// The data key of a directory whose files are encrypted, wrapped by a master key that a keyring holds.
pub trait DiskKey: Send + Sync + std::fmt::Debug {
    /// Name of the master key in the keyring.
    fn master_id(&self) -> String;
    /// Name and text of the file from which a copy of the directory is opened with the same master key.
    fn file(&self) -> (&'static str, String);
    /// Has another master key wrap the data key. A crash leaves the one before or this one; the caller keeps both.
    ///
    /// # Errors
    /// The key has a wrong length; I/O: then the one before is still the one, or, when the error came last, either.
    fn rotate(&self, master_id: &str, master: &Secret) -> io::Result<()>;
    /// Encrypts and decrypts the units of files.
    fn units(&self) -> Arc<UnitCipher>;
}

/// The space of the file system that a directory is on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiskSpace {
    /// The directory.
    pub path: String,
    /// Bytes of the file system.
    pub total_bytes: u64,
    /// Bytes that this process may still use.
    pub free_bytes: u64,
}

/// Whether an error says that there is no space: of the file system, or of what a user may have of it.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Offset and length of writes that go past the page cache are multiples of it.
pub const BLOCK_BYTES: usize = 4096;

/// Memory for writes of whole blocks, aligned as they must be to go past the page cache without a copy.
#[derive(Default)]
pub struct BlockBuffer {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl BlockBuffer {
    /// Makes room for `length` bytes with unspecified content; bytes never written are zero.
    pub fn reset(&mut self, length: usize) -> &mut [u8] {
        let wanted = length + BLOCK_BYTES;
        if self.bytes.len() < wanted {
            self.bytes = vec![0; wanted.next_power_of_two()];
            self.start = self.bytes.as_ptr().align_offset(BLOCK_BYTES);
        }
        self.length = length;
        &mut self.bytes[self.start..self.start + length]
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    /// For changing them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

/// What a sync does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Waits for the device.
    Device,
    /// Nothing: a crash of the machine loses or destroys data. For tests.
    Never,
}
