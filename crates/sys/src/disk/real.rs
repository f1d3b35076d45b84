//! Files in a directory of the operating system.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::contract::{BLOCK_BYTES, BlockBuffer, Disk, DiskSpace, File, OpenMode, SyncPolicy};
use crate::clock::monotonic;
use crate::io_times::{Call, FileClass, IoTimes, Target};
use crate::ring::WriteRing;
use crate::simulation::{self, file_tree};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// File that a process holds locked while it uses the directory.
const LOCK_NAME: &str = "lock";

/// Files in a directory of the operating system.
pub struct RealDisk {
    root: PathBuf,
    policy: SyncPolicy,
    uses_io_uring: bool,
    times: Arc<IoTimes>,
    /// Held locked for the life of the value: two processes on one directory would destroy it.
    _lock: std::fs::File,
}

impl RealDisk {
    /// Uses `root`, creating it when missing, and locks it against other processes. Calls are counted in `times`.
    ///
    /// # Errors
    /// `WouldBlock` when another process uses it; I/O.
    pub fn open(root: &Path, policy: SyncPolicy, times: Arc<IoTimes>) -> io::Result<RealDisk> {
        use rustix::fs::{FlockOperation, flock};
        std::fs::create_dir_all(root)?;
        let lock = std::fs::File::create(root.join(LOCK_NAME))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let root = std::path::absolute(root)?;
        Ok(RealDisk { root, policy, uses_io_uring: true, times, _lock: lock })
    }

    /// Whether many pages are written in one call where the kernel can do that. They are unless this says no.
    pub fn with_io_uring(self, uses_io_uring: bool) -> RealDisk {
        RealDisk { uses_io_uring, ..self }
    }
}

/// The duration of a write of a block with its sync on `disk`: the median of a few.
///
/// # Errors
/// I/O.
pub fn probe_sync(disk: &dyn Disk) -> io::Result<Duration> {
    const NAME: &str = "sync-probe";
    const TIMES: usize = 9;
    let file = disk.open(NAME, OpenMode::OrCreate)?;
    let mut times = Vec::with_capacity(TIMES);
    // The first one makes the file longer, which costs more than the request needs.
    for round in 0..=TIMES {
        file.write_at(&[round as u8; BLOCK_BYTES], 0)?;
        let start = monotonic();
        file.sync()?;
        times.push(monotonic().saturating_sub(start));
    }
    times.remove(0);
    times.sort_unstable();
    disk.remove(NAME)?;
    Ok(times[TIMES / 2])
}

/// How a directory of the operating system is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskOptions {
    /// The effect of a sync.
    pub sync: SyncPolicy,
    /// Whether many pages are written in one call where the kernel can do that.
    pub uses_io_uring: bool,
}

/// The files in the directory `root`, which is made when it is missing and is locked against other processes. Calls are counted in `times`.
///
/// # Errors
/// `WouldBlock` when another process uses it; I/O.
pub fn open(root: &Path, options: DiskOptions, times: Arc<IoTimes>) -> io::Result<Arc<dyn Disk>> {
    if let Some(here) = simulation::current() {
        return file_tree::open_disk(&here, root, options.sync);
    }
    let disk = RealDisk::open(root, options.sync, times)?;
    Ok(Arc::new(disk.with_io_uring(options.uses_io_uring)))
}

/// The files in the directory `root`, for reading only. Nothing is made or locked there.
///
/// # Errors
/// It is not a directory.
pub fn open_read_only(root: &Path) -> io::Result<Arc<dyn Disk>> {
    if let Some(here) = simulation::current() {
        return file_tree::open_disk_unlocked(&here, root);
    }
    Ok(Arc::new(ReadOnlyDisk::open(root)?))
}

/// Files in a directory that are only read. Nothing is made or locked there, so that it may be on a read-only medium.
pub struct ReadOnlyDisk {
    root: PathBuf,
    times: Arc<IoTimes>,
    /// The lock file, held until it is dropped, if one was taken.
    _lock: Option<std::fs::File>,
}

impl ReadOnlyDisk {
    /// Reads from `root`.
    ///
    /// # Errors
    /// It is not a directory.
    pub fn open(root: &Path) -> io::Result<ReadOnlyDisk> {
        std::fs::read_dir(root)?;
        Ok(ReadOnlyDisk { root: root.to_path_buf(), times: Arc::default(), _lock: None })
    }

    /// Like `open`, and keeps others from using the directory where it was used before.
    ///
    /// # Errors
    /// As `open`; `WouldBlock` when a process uses it.
    pub fn open_unused(root: &Path) -> io::Result<ReadOnlyDisk> {
        use rustix::fs::{FlockOperation, flock};
        let disk = ReadOnlyDisk::open(root)?;
        let lock = match std::fs::File::open(root.join(LOCK_NAME)) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(disk),
            Err(error) => return Err(error),
        };
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(ReadOnlyDisk { _lock: Some(lock), ..disk })
    }
}

impl Disk for ReadOnlyDisk {
    fn open(&self, name: &str, _mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = std::fs::File::open(self.root.join(name))?;
        // There is nothing of its own to sync.
        let (target, times) = (FileClass::of(name).into(), self.times.clone());
        Ok(Arc::new(RealFile { file, target, policy: SyncPolicy::Never, times }))
    }

    fn remove(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        list_files(&self.root)
    }

    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Names of the files in a directory but the lock.
fn list_files(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != LOCK_NAME {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    Ok(names)
}

struct RealFile {
    file: std::fs::File,
    target: Target,
    policy: SyncPolicy,
    times: Arc<IoTimes>,
}

impl File for RealFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let mut done = 0;
        while done < buf.len() {
            let rest = &mut buf[done..];
            let read = || self.file.read_at(rest, offset + done as u64);
            match self.times.transfer((&self.target, Call::Pread), read) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    // A direct read continues at block boundaries only; a shorter one means the end of the file.
                    if !done.is_multiple_of(BLOCK_BYTES) && done < buf.len() && is_aligned(buf) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn read_words(&self, words: &[AtomicU64], offset: u64) -> io::Result<usize> {
        use std::os::fd::AsRawFd;
        let length = size_of_val(words);
        let mut done = 0;
        while done < length {
            let read = || {
                // SAFETY: the rest of `words`, borrowed for the call, is written, as a shared reference to atomic words allows. Others
                // load from them atomically at most, and may see any mixture of old and new bytes.
                let count = unsafe {
                    let rest = words.as_ptr().cast::<u8>().add(done).cast_mut();
                    let offset = (offset + done as u64).cast_signed();
                    libc::pread(self.file.as_raw_fd(), rest.cast(), length - done, offset)
                };
                usize::try_from(count).map_err(|_| io::Error::last_os_error())
            };
            match self.times.transfer((&self.target, Call::Pread), read) {
                Ok(0) => break,
                Ok(count) => {
                    done += count;
                    if !done.is_multiple_of(BLOCK_BYTES) {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        from_file_order(words);
        Ok(done)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.times.write_all(&self.target, &self.file, buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        match self.policy {
            SyncPolicy::Device => {
                self.times.time((&self.target, Call::Fdatasync), || self.file.sync_data())
            }
            SyncPolicy::Never => Ok(()),
        }
    }

    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.times.time((&self.target, Call::Ftruncate), || self.file.set_len(size_bytes))
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        loop {
            match fallocate(&self.file, FallocateFlags::KEEP_SIZE, offset, length) {
                Err(Errno::INTR) => {}
                // Not every file system can.
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

/// Converts words read from a file, where they are little-endian, to native byte order.
fn from_file_order(words: &[AtomicU64]) {
    if cfg!(target_endian = "big") {
        for word in words {
            // Other threads may read the words at this time, but discard the values.
            word.store(u64::from_le(word.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
    }
}

/// A file with whole-block writes past the page cache, durable when they return: one call of the device instead of a
/// write-back and a flush. Other writes go through the page cache and wait for `sync`.
struct DirectFile {
    cached: RealFile,
    direct: std::fs::File,
    /// An aligned buffer for writes from unaligned memory.
    bounce: Mutex<BlockBuffer>,
    has_cached_writes: AtomicBool,
}

/// Bytes of one direct write at most.
const BOUNCE_BYTES: usize = 1 << 20;

impl DirectFile {
    fn write_direct(&self, buf: &[u8], mut offset: u64) -> io::Result<()> {
        if buf.as_ptr().addr().is_multiple_of(BLOCK_BYTES) {
            return self.cached.times.write_all(&self.cached.target, &self.direct, buf, offset);
        }
        let mut bounce = self.bounce.lock();
        for chunk in buf.chunks(BOUNCE_BYTES) {
            let aligned = bounce.reset(chunk.len());
            aligned.copy_from_slice(chunk);
            self.cached.times.write_all(&self.cached.target, &self.direct, aligned, offset)?;
            offset += chunk.len() as u64;
        }
        Ok(())
    }
}

impl File for DirectFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.cached.read_at(buf, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        if buf.len().is_multiple_of(BLOCK_BYTES) && offset.is_multiple_of(BLOCK_BYTES as u64) {
            return self.write_direct(buf, offset);
        }
        self.has_cached_writes.store(true, Ordering::Release);
        self.cached.write_at(buf, offset)
    }

    fn sync(&self) -> io::Result<()> {
        // Direct writes were durable when they returned.
        match self.has_cached_writes.swap(false, Ordering::AcqRel) {
            true => self.cached.sync(),
            false => Ok(()),
        }
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.cached.size_bytes()
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.has_cached_writes.store(true, Ordering::Release);
        self.cached.set_size(size_bytes)
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.cached.reserve(offset, length)
    }
}

fn is_aligned(buf: &[u8]) -> bool {
    is_aligned_at(buf.as_ptr(), buf.len())
}

fn is_aligned_at(start: *const u8, length: usize) -> bool {
    start.align_offset(BLOCK_BYTES) == 0 && length.is_multiple_of(BLOCK_BYTES)
}

/// A file that reads and writes whole blocks in aligned memory past the page cache; everything else goes through it. Writes wait
/// for `sync`.
struct PageFile {
    cached: RealFile,
    direct: RealFile,
    /// For many writes at once.
    ring: Option<Mutex<WriteRing>>,
}

impl PageFile {
    /// The way that a transfer may take. The kernel keeps both coherent.
    fn way(&self, start: *const u8, length: usize, offset: u64) -> &RealFile {
        match is_aligned_at(start, length) && offset.is_multiple_of(BLOCK_BYTES as u64) {
            true => &self.direct,
            false => &self.cached,
        }
    }
}

impl File for PageFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        self.way(buf.as_ptr(), buf.len(), offset).read_at(buf, offset)
    }

    fn read_words(&self, words: &[AtomicU64], offset: u64) -> io::Result<usize> {
        let way = self.way(words.as_ptr().cast(), size_of_val(words), offset);
        way.read_words(words, offset)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<()> {
        self.way(buf.as_ptr(), buf.len(), offset).write_at(buf, offset)
    }

    fn write_parts(&self, parts: &[(u64, &[u8])]) -> io::Result<()> {
        let is_direct = |(offset, bytes): &(u64, &[u8])| {
            is_aligned(bytes) && offset.is_multiple_of(BLOCK_BYTES as u64)
        };
        match &self.ring {
            Some(ring) if parts.len() > 1 && parts.iter().all(is_direct) => {
                let direct = &self.direct;
                ring.lock().write((&direct.target, &direct.file), parts, &direct.times)
            }
            _ => parts.iter().try_for_each(|(offset, bytes)| self.write_at(bytes, *offset)),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.cached.sync()
    }

    fn size_bytes(&self) -> io::Result<u64> {
        self.cached.size_bytes()
    }

    fn set_size(&self, size_bytes: u64) -> io::Result<()> {
        self.cached.set_size(size_bytes)
    }

    fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        self.cached.reserve(offset, length)
    }

    fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.cached.handle()
    }
}

impl RealDisk {
    fn open_cached(&self, name: &str, mode: OpenMode, class: FileClass) -> io::Result<RealFile> {
        let path = self.root.join(name);
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(mode == OpenMode::OrCreate)
            .truncate(false)
            .open(&path)?;
        let (target, times) = (self.times.opened(&path, class), self.times.clone());
        Ok(RealFile { file, target, policy: self.policy, times })
    }
}

impl Disk for RealDisk {
    fn open(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(self.open_cached(name, mode, FileClass::of(name))?))
    }

    fn open_log(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        use std::os::unix::fs::OpenOptionsExt;
        let cached = self.open_cached(name, mode, FileClass::of(name))?;
        if self.policy == SyncPolicy::Never {
            return Ok(Arc::new(cached));
        }
        let flags = libc::O_DIRECT | libc::O_DSYNC;
        let direct =
            std::fs::OpenOptions::new().write(true).custom_flags(flags).open(self.root.join(name));
        Ok(match direct {
            Ok(direct) => Arc::new(DirectFile {
                cached,
                direct,
                bounce: Mutex::default(),
                has_cached_writes: AtomicBool::new(false),
            }),
            // Not every file system can.
            Err(_) => Arc::new(cached),
        })
    }

    fn open_pages(&self, name: &str, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        use std::os::unix::fs::OpenOptionsExt;
        let named = FileClass::of(name);
        let class = if named == FileClass::Other { FileClass::Pages } else { named };
        let cached = self.open_cached(name, mode, class)?;
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_DIRECT);
        Ok(match options.open(self.root.join(name)) {
            Ok(file) => {
                let (policy, times) = (self.policy, self.times.clone());
                let direct = RealFile { file, target: cached.target.clone(), policy, times };
                let ring = self.uses_io_uring.then(|| Mutex::new(WriteRing::default()));
                Arc::new(PageFile { cached, direct, ring })
            }
            // Not every file system can.
            Err(_) => Arc::new(cached),
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.root.join(name);
        std::fs::remove_file(&path)?;
        self.times.removed(&path);
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.root.join(from), self.root.join(to));
        std::fs::rename(&from, &to)?;
        self.times.renamed(&from, &to);
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        list_files(&self.root)
    }

    fn sync_dir(&self) -> io::Result<()> {
        match self.policy {
            SyncPolicy::Device => {
                let directory = std::fs::File::open(&self.root)?;
                self.times.sync_all(&directory)
            }
            SyncPolicy::Never => Ok(()),
        }
    }

    fn space(&self) -> Option<DiskSpace> {
        let (free_bytes, total_bytes) = crate::files::space(&self.root)?;
        Some(DiskSpace { path: self.root.display().to_string(), total_bytes, free_bytes })
    }
}
