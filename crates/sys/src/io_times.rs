//! Calls to the operating system's files, by class of file and kind of call: how many, how long (counts by powers of two of microseconds), how many bytes. A process has
//! one `IoTimes`, passed to the code that opens files.
//!
//! Every thread counts in one of a few shards, so that threads that do I/O do not share a cache line. Each system call counts once, also
//! those of a loop, so that the sums agree with a tracer of system calls. A call is a wait of its thread (`waits`).

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stdx::{Extent, SharedExtent};

use crate::clock::monotonic;
use crate::disk::BLOCK_BYTES;
use crate::probes;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::usage;
use crate::waits::{self, Wait};

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Pread,
    Pwrite,
    Fdatasync,
    Fsync,
    Ftruncate,
    IoUringEnter,
}

const CALLS: [(Call, &str); 6] = [
    (Call::Pread, "pread"),
    (Call::Pwrite, "pwrite"),
    (Call::Fdatasync, "fdatasync"),
    (Call::Fsync, "fsync"),
    (Call::Ftruncate, "ftruncate"),
    (Call::IoUringEnter, "io_uring_enter"),
];

/// What files are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileClass {
    /// Pages of tables and indexes.
    Pages,
    /// The engine's log.
    Log,
    /// Copies of pages that are about to be written in place.
    Doublewrite,
    /// Undo of transactions that is too large for memory.
    Undo,
    /// Sorts, hash tables and temporary tables.
    Temporary,
    /// The rest: checkpoints, backups, directories.
    Other,
}

impl FileClass {
    const ALL: [FileClass; 6] = [
        FileClass::Pages,
        FileClass::Log,
        FileClass::Doublewrite,
        FileClass::Undo,
        FileClass::Temporary,
        FileClass::Other,
    ];

    /// The class of a file of a data directory by its name, unless it is opened for pages.
    pub(crate) fn of(name: &str) -> FileClass {
        const BEGINNINGS: [(&str, FileClass); 4] = [
            ("wal-", FileClass::Log),
            ("doublewrite", FileClass::Doublewrite),
            ("undo", FileClass::Undo),
            ("sort", FileClass::Temporary),
        ];
        let found = BEGINNINGS.iter().find(|(beginning, _)| name.starts_with(beginning));
        found.map_or(FileClass::Other, |(_, class)| *class)
    }

    /// The word that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            FileClass::Pages => "pages",
            FileClass::Log => "redo log",
            FileClass::Doublewrite => "doublewrite",
            FileClass::Undo => "undo",
            FileClass::Temporary => "temporary",
            FileClass::Other => "other",
        }
    }

    fn wait(self, call: Call) -> Wait {
        match (self, call) {
            (_, Call::Pread) => Wait::Read,
            (FileClass::Log, _) => Wait::LogFlush,
            (_, Call::Pwrite | Call::Ftruncate | Call::IoUringEnter) => Wait::Write,
            (_, Call::Fdatasync | Call::Fsync) => Wait::Sync,
        }
    }
}

/// The direction of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// From a file.
    Read,
    /// To a file.
    Write,
    /// Making writes durable.
    Sync,
}

impl Operation {
    const ALL: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Sync];

    /// The word that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Sync => "sync",
        }
    }

    fn of(call: Call) -> Operation {
        match call {
            Call::Pread => Operation::Read,
            Call::Pwrite | Call::Ftruncate | Call::IoUringEnter => Operation::Write,
            Call::Fdatasync | Call::Fsync => Operation::Sync,
        }
    }
}

/// Bucket n counts durations below 2^n microseconds and not below half of it; the last one everything longer.
const BUCKETS: usize = 28;
/// On small machines; a power of two.
const SHARDS_MIN: usize = 16;

#[derive(Default)]
struct Bucket {
    count: AtomicU64,
    micros: AtomicU64,
}

/// Calls of one kind to files of one class.
#[derive(Default)]
struct Calls {
    buckets: [Bucket; BUCKETS],
    bytes: AtomicU64,
    errors: AtomicU64,
    /// Microseconds.
    extent: SharedExtent,
    /// Of writes: those of whole blocks at a block's boundary.
    aligned: AtomicU64,
    /// Of io_uring: writes that one call handed over.
    parts: AtomicU64,
}

#[repr(align(128))]
#[derive(Default)]
struct Shard([[Calls; CALLS.len()]; FileClass::ALL.len()]);

/// One line of the histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoBucket {
    /// Name of the call.
    pub call: &'static str,
    /// The calls took less than this.
    pub below_micros: u64,
    /// The number of calls.
    pub count: u64,
    /// Their time in all.
    pub total_micros: u64,
}

/// Operations of one kind on the files of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStats {
    /// What the files are for.
    pub class: FileClass,
    /// The direction.
    pub operation: Operation,
    /// Requests: calls, and each write that one call hands over with others.
    pub requests: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Writes of whole blocks of 4 kB at a multiple of 4 kB.
    pub aligned: u64,
    /// The time of all calls.
    pub total_micros: u64,
    /// Half of the calls took at most this, rounded up to a power of two.
    pub p50_micros: u64,
    /// As above for 95 of 100.
    pub p95_micros: u64,
    /// As above for 99 of 100.
    pub p99_micros: u64,
    /// The shortest and the longest call, microseconds.
    pub extent: Extent,
}

/// Files that are told apart; further ones count by class only.
const FILES_MAX: usize = 10_000;

/// Calls of one direction to one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCalls {
    /// How many.
    pub count: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// The time of all calls.
    pub nanos: u64,
    /// The shortest and the longest call, nanoseconds.
    pub extent: Extent,
}

/// A file that is or was open, until it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// Its whole path.
    pub path: PathBuf,
    /// What it is for.
    pub class: FileClass,
    /// How often it is open now.
    pub open_count: u64,
    /// Calls by `Operation`.
    pub calls: [FileCalls; Operation::ALL.len()],
}

#[derive(Default)]
struct DirectionCounts {
    count: AtomicU64,
    bytes: AtomicU64,
    nanos: AtomicU64,
    extent: SharedExtent,
}

impl DirectionCounts {
    fn read(&self) -> FileCalls {
        FileCalls {
            count: self.count.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            nanos: self.nanos.load(Ordering::Relaxed),
            extent: self.extent.get(),
        }
    }
}

type FileCounts = [DirectionCounts; Operation::ALL.len()];

/// What a call is made to: the class of the file, and the counts of the file itself where it has some.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) class: FileClass,
    counts: Option<Arc<FileCounts>>,
}

impl From<FileClass> for Target {
    fn from(class: FileClass) -> Target {
        Target { class, counts: None }
    }
}

impl Target {
    fn add_call(&self, call: Call, took: Duration) {
        let Some(counts) = &self.counts else { return };
        let counts = &counts[Operation::of(call) as usize];
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        counts.count.fetch_add(1, Ordering::Relaxed);
        counts.nanos.fetch_add(nanos, Ordering::Relaxed);
        counts.extent.add(nanos);
    }

    fn add_bytes(&self, call: Call, bytes: usize) {
        let Some(counts) = &self.counts else { return };
        counts[Operation::of(call) as usize].bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// See the file's head.
pub struct IoTimes {
    shards: Box<[Shard]>,
    /// Files that were opened and are still there, by path. Locked when a file is opened, renamed or removed.
    files: Mutex<BTreeMap<PathBuf, (FileClass, Arc<FileCounts>)>>,
}

impl Default for IoTimes {
    fn default() -> IoTimes {
        let shards =
            (0..crate::threads::sizes().shards(SHARDS_MIN)).map(|_| Shard::default()).collect();
        IoTimes { shards, files: Mutex::default() }
    }
}

/// Whether a call reads.
fn is_read(call: Call) -> bool {
    match call {
        Call::Pread => true,
        Call::Pwrite | Call::Fdatasync | Call::Fsync | Call::Ftruncate | Call::IoUringEnter => {
            false
        }
    }
}

impl std::fmt::Debug for IoTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.buckets()).finish()
    }
}

impl IoTimes {
    /// Makes a file, or the names in a directory, durable.
    ///
    /// # Errors
    /// I/O.
    pub fn sync_all(&self, file: &std::fs::File) -> io::Result<()> {
        self.time((&FileClass::Other.into(), Call::Fsync), || file.sync_all())
    }

    /// What calls to the file at `path`, which is open now, count for. Keep it while the file is open.
    pub(crate) fn opened(&self, path: &Path, class: FileClass) -> Target {
        let mut files = self.files.lock();
        if files.len() >= FILES_MAX && !files.contains_key(path) {
            return class.into();
        }
        let (_, counts) = files.entry(path.to_owned()).or_insert_with(|| (class, Arc::default()));
        Target { class, counts: Some(counts.clone()) }
    }

    /// The file at `path` is gone.
    pub(crate) fn removed(&self, path: &Path) {
        self.files.lock().remove(path);
    }

    /// A file has another name now.
    pub(crate) fn renamed(&self, from: &Path, to: &Path) {
        let mut files = self.files.lock();
        files.remove(to);
        if let Some(file) = files.remove(from) {
            files.insert(to.to_owned(), file);
        }
    }

    /// Files that were opened and are still there, by path.
    pub fn uses(&self) -> Vec<FileUse> {
        let files = self.files.lock();
        let view = |(path, (class, counts)): (&PathBuf, &(FileClass, Arc<FileCounts>))| FileUse {
            path: path.clone(),
            class: *class,
            // One holder is the map.
            open_count: Arc::strong_count(counts) as u64 - 1,
            calls: std::array::from_fn(|at| counts[at].read()),
        };
        files.iter().map(view).collect()
    }

    /// Writes all of `buf` at `offset`; each call counts.
    pub(crate) fn write_all(
        &self,
        target: &Target,
        file: &std::fs::File,
        mut buf: &[u8],
        mut offset: u64,
    ) -> io::Result<()> {
        let block = BLOCK_BYTES as u64;
        if offset.is_multiple_of(block) && buf.len().is_multiple_of(BLOCK_BYTES) {
            self.calls(target.class, Call::Pwrite).aligned.fetch_add(1, Ordering::Relaxed);
        }
        while !buf.is_empty() {
            match self.transfer((target, Call::Pwrite), || file.write_at(buf, offset)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    buf = &buf[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn calls(&self, class: FileClass, call: Call) -> &Calls {
        let shard = &self.shards[crate::threads::number() & (self.shards.len() - 1)];
        &shard.0[class as usize][call as usize]
    }

    /// Makes one call that transfers bytes, and counts it.
    pub(crate) fn transfer(
        &self,
        which: (&Target, Call),
        make: impl FnOnce() -> io::Result<usize>,
    ) -> io::Result<usize> {
        let result = self.time(which, make);
        if let Ok(bytes) = result {
            match is_read(which.1) {
                true => usage::count_read_bytes(bytes),
                false => usage::count_written_bytes(bytes),
            }
            let (target, call) = which;
            self.calls(target.class, call).bytes.fetch_add(bytes as u64, Ordering::Relaxed);
            target.add_bytes(call, bytes);
        }
        result
    }

    /// Makes one call and counts it.
    pub(crate) fn time<T>(
        &self,
        (target, call): (&Target, Call),
        make: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let class = target.class;
        let is_sync = matches!(call, Call::Fdatasync | Call::Fsync);
        let start = monotonic();
        let waiting = waits::enter_at(class.wait(call), start);
        if is_sync {
            probes::fsync_start(class as u8);
        }
        let result = make();
        let end = monotonic();
        waiting.end_at(end);
        if is_sync {
            probes::fsync_done(class as u8, end.saturating_sub(start).as_nanos() as u64);
        }
        let calls = self.calls(class, call);
        let took = end.saturating_sub(start);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        match is_read(call) {
            true => usage::count_read(nanos),
            false => usage::count_write(nanos),
        }
        calls.add(took);
        target.add_call(call, took);
        if let Err(error) = &result
            && error.kind() != io::ErrorKind::Interrupted
        {
            calls.errors.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// Counts one of the writes that a call of io_uring handed over.
    pub(crate) fn add_part(&self, target: &Target, bytes: usize) {
        usage::count_written_bytes(bytes);
        target.add_bytes(Call::IoUringEnter, bytes);
        let calls = self.calls(target.class, Call::IoUringEnter);
        calls.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        calls.parts.fetch_add(1, Ordering::Relaxed);
        // The ring is only for whole blocks.
        calls.aligned.fetch_add(1, Ordering::Relaxed);
    }

    /// Count and time of each bucket of some calls.
    fn sums(&self, wanted: impl Fn(FileClass, Call) -> bool) -> [(u64, u64); BUCKETS] {
        let mut sums = [(0, 0); BUCKETS];
        for calls in self.some(wanted) {
            for (sum, bucket) in sums.iter_mut().zip(&calls.buckets) {
                sum.0 += bucket.count.load(Ordering::Relaxed);
                sum.1 += bucket.micros.load(Ordering::Relaxed);
            }
        }
        sums
    }

    fn some(&self, wanted: impl Fn(FileClass, Call) -> bool) -> impl Iterator<Item = &Calls> {
        let kinds = FileClass::ALL.iter().flat_map(|class| CALLS.map(|(call, _)| (*class, call)));
        let kinds: Vec<_> = kinds.filter(|(class, call)| wanted(*class, *call)).collect();
        self.shards.iter().flat_map(move |shard| {
            let found =
                |(class, call): &(FileClass, Call)| &shard.0[*class as usize][*call as usize];
            kinds.iter().map(found).collect::<Vec<_>>()
        })
    }

    /// The buckets that are not empty, by call and time.
    pub fn buckets(&self) -> Vec<IoBucket> {
        let mut found = Vec::new();
        for (call, name) in CALLS {
            let sums = self.sums(|_, other| other == call);
            for (at, (count, total_micros)) in sums.into_iter().enumerate() {
                if count > 0 {
                    found.push(IoBucket { call: name, below_micros: 1 << at, count, total_micros });
                }
            }
        }
        found
    }

    /// Operations by class of file, those that there were.
    pub fn files(&self) -> Vec<FileStats> {
        let classes = FileClass::ALL.into_iter();
        let all = classes.flat_map(|class| Operation::ALL.map(|operation| (class, operation)));
        all.map(|(class, operation)| self.stats(class, operation))
            .filter(|stats| stats.requests > 0)
            .collect()
    }

    fn stats(&self, class: FileClass, operation: Operation) -> FileStats {
        let wanted = |of: FileClass, call| of == class && Operation::of(call) == operation;
        let sums = self.sums(wanted);
        let sum = |value: fn(&Calls) -> &AtomicU64| -> u64 {
            self.some(wanted).map(|calls| value(calls).load(Ordering::Relaxed)).sum()
        };
        let count: u64 = sums.iter().map(|(count, _)| count).sum();
        let extents = self.some(wanted).map(|calls| calls.extent.get());
        let extent = extents.fold(Extent::NONE, Extent::and);
        let at_most = |share: u64| {
            let (wanted, mut seen) = ((count * share).div_ceil(100), 0);
            let found = sums.iter().position(|(count, _)| {
                seen += count;
                seen >= wanted
            });
            found.map_or(0, |bucket| (1_u64 << bucket).min(extent.most()))
        };
        // What io_uring handed over counts by its parts.
        let is_ring = |of: FileClass, call| wanted(of, call) && call == Call::IoUringEnter;
        let handed: u64 = self.sums(is_ring).iter().map(|(count, _)| count).sum();
        FileStats {
            class,
            operation,
            // More may have been handed over since `count` was read.
            requests: count.saturating_sub(handed) + sum(|calls| &calls.parts),
            bytes: sum(|calls| &calls.bytes),
            errors: sum(|calls| &calls.errors),
            aligned: sum(|calls| &calls.aligned),
            total_micros: sums.iter().map(|(_, micros)| micros).sum(),
            p50_micros: at_most(50),
            p95_micros: at_most(95),
            p99_micros: at_most(99),
            extent,
        }
    }
}

impl Calls {
    fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = ((u64::BITS - micros.leading_zeros()) as usize).min(BUCKETS - 1);
        let bucket = &self.buckets[bucket];
        bucket.count.fetch_add(1, Ordering::Relaxed);
        bucket.micros.fetch_add(micros, Ordering::Relaxed);
        self.extent.add(micros);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_the_class_of_the_file() {
        let path = std::env::temp_dir().join(format!("squall-io-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let times = IoTimes::default();
        let log = Target::from(FileClass::Log);
        let before = waits::mine();
        times.write_all(&log, &file, &[0; BLOCK_BYTES], 0).unwrap();
        times.write_all(&log, &file, &[0; 100], 10).unwrap();
        times.time((&log, Call::Fdatasync), || file.sync_data()).unwrap();
        let is_refused = times
            .transfer((&FileClass::Pages.into(), Call::Pread), || file.read_at(&mut [0; 8], 0));
        assert!(is_refused.is_err(), "the file is not open for reading");
        let found = times.files();
        let named =
            |at: usize| (found[at].class, found[at].operation, found[at].requests, found[at].bytes);
        assert_eq!(found.len(), 3);
        assert_eq!(named(0), (FileClass::Pages, Operation::Read, 1, 0));
        assert_eq!(found[0].errors, 1);
        assert_eq!(named(1), (FileClass::Log, Operation::Write, 2, BLOCK_BYTES as u64 + 100));
        assert_eq!((found[1].aligned, found[1].errors), (1, 0));
        assert_eq!(named(2), (FileClass::Log, Operation::Sync, 1, 0));
        assert!(found[2].p50_micros <= found[2].extent.most());
        let waited = waits::mine().since(&before);
        assert_eq!((waited.of(Wait::LogFlush).count, waited.of(Wait::Read).count), (3, 1));
    }

    #[test]
    fn calls_count_for_their_file_until_it_is_removed() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("squall-uses-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let times = IoTimes::default();
        let target = times.opened(&path, FileClass::Log);
        let again = times.opened(&path, FileClass::Log);
        times.write_all(&target, &file, &[0; 100], 0).unwrap();
        times.write_all(&again, &file, &[0; 50], 100).unwrap();
        times.time((&target, Call::Fdatasync), || file.sync_data()).unwrap();
        let found = times.uses();
        assert_eq!((found.len(), &found[0].path, found[0].open_count), (1, &path, 2));
        let calls = found[0].calls.map(|calls| (calls.count, calls.bytes));
        assert_eq!(calls, [(0, 0), (2, 150), (1, 0)]);
        assert!(found[0].calls[1].extent.most() <= found[0].calls[1].nanos);
        drop(again);
        let other = directory.join("squall-uses-other");
        times.renamed(&path, &other);
        let found = times.uses();
        assert_eq!((&found[0].path, found[0].open_count, found[0].calls[1].count), (&other, 1, 2));
        times.removed(&other);
        assert!(times.uses().is_empty());
    }
}
