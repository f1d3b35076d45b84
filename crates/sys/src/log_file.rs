//! Log files: callers put entries into lanes in memory, one thread writes them in the order of their times and rotates the files by size and age.
//!
//! A caller waits for the disk only when its lane is full. Entries that cannot be written are dropped and counted: no caller ever fails because of its log.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::files::{self, Existing, File};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex};
use crate::threads::{self, Thread};

/// Lanes of a file. Threads are spread over them by their numbers.
const LANES: usize = 16;
/// Bytes that a lane collects before its caller writes them itself.
const LANE_BYTES_MAX: usize = 256 << 10;
/// How long entries wait for others, so that one write takes many.
const COLLECTS: Duration = Duration::from_millis(100);

/// When a log file is renamed and a new one begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// A file that would exceed this size; 0 for never.
    pub size_bytes: u64,
    /// A file that was opened this long ago; zero for never.
    pub age: Duration,
    /// Old files that stay: `NAME.1` is the newest, the others are removed.
    pub keep: usize,
}

/// Where a log goes, asked before each write.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The file.
    pub path: PathBuf,
    /// Permissions of a new file, before the process's umask.
    pub mode: u32,
    /// What each file begins with.
    pub header: String,
    /// When it is rotated.
    pub rotation: Rotation,
}

/// What a log file asks its owner.
pub trait Owner: Send + Sync {
    /// Where the log goes.
    fn target(&self) -> Target;
    /// Entries could not be written. Told once, and again after a success.
    fn failed(&self, path: &Path, error: &io::Error);
}

/// Entries with their times and their ends in `bytes`.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<(i64, usize)>,
}

impl Entries {
    fn each(&self) -> impl Iterator<Item = (i64, &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |(at, end)| {
            let entry = &self.bytes[from..*end];
            from = *end;
            (*at, entry)
        })
    }
}

/// A file that its caller writes, renamed when it gets large or old.
#[derive(Default)]
pub struct RotatingFile {
    file: Option<(PathBuf, File)>,
    size_bytes: u64,
    opened_at: Duration,
}

/// One log file.
pub struct LogFile {
    owner: Box<dyn Owner>,
    lanes: [Mutex<Entries>; LANES],
    open: Mutex<RotatingFile>,
    has_failed: AtomicBool,
    written: AtomicU64,
    lost: AtomicU64,
    writer: Arc<Signal>,
}

/// Wakes the writer.
#[derive(Default)]
struct Signal {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    has_entries: bool,
    stops: bool,
}

impl Signal {
    fn wake(&self) {
        let mut state = self.state.lock();
        if !state.has_entries {
            state.has_entries = true;
            self.changed.notify_all();
        }
    }
}

impl LogFile {
    /// Adds an entry of the time `at_micros`.
    pub fn append(&self, at_micros: i64, entry: &[u8]) {
        self.append_with(at_micros, |bytes| bytes.extend_from_slice(entry));
    }

    /// Adds an entry of the time `at_micros`, which `push` puts at the end of what it is given. Others that share the lane wait for it.
    pub fn append_with(&self, at_micros: i64, push: impl FnOnce(&mut Vec<u8>)) {
        let mut lane = self.lanes[threads::number() % LANES].lock();
        let is_first = lane.ends.is_empty();
        push(&mut lane.bytes);
        let end = lane.bytes.len();
        lane.ends.push((at_micros, end));
        if end >= LANE_BYTES_MAX {
            let full = std::mem::take(&mut *lane);
            drop(lane);
            return self.write(&[full]);
        }
        drop(lane);
        if is_first {
            self.writer.wake();
        }
    }

    /// Writes all entries.
    pub fn flush(&self) {
        let take = |lane: &Mutex<Entries>| std::mem::take(&mut *lane.lock());
        let full: Vec<Entries> =
            self.lanes.iter().map(take).filter(|entries| !entries.ends.is_empty()).collect();
        if !full.is_empty() {
            self.write(&full);
        }
    }

    /// Writes all entries and opens the file again by its name, which another file may have by now. A log without an open file stays so.
    ///
    /// # Errors
    /// The file cannot be opened: the log goes on in the old one.
    pub fn reopen(&self) -> io::Result<()> {
        self.flush();
        let mut open = self.open.lock();
        if open.file.is_none() {
            return Ok(());
        }
        open.open(&self.owner.target())
    }

    /// Entries written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Entries that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn write(&self, lanes: &[Entries]) {
        let mut entries: Vec<(i64, &[u8])> = lanes.iter().flat_map(Entries::each).collect();
        // Entries of one lane with the same time keep their order.
        if !entries.is_sorted_by_key(|(at, _)| *at) {
            entries.sort_by_key(|(at, _)| *at);
        }
        let mut bytes = Vec::with_capacity(entries.iter().map(|(_, entry)| entry.len()).sum());
        entries.iter().for_each(|(_, entry)| bytes.extend_from_slice(entry));
        let target = self.owner.target();
        let result = self.open.lock().append(&target, &bytes);
        let count = entries.len() as u64;
        match result {
            Ok(()) => {
                self.has_failed.store(false, Ordering::Relaxed);
                self.written.fetch_add(count, Ordering::Relaxed);
            }
            Err(error) => {
                self.lost.fetch_add(count, Ordering::Relaxed);
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    self.owner.failed(&target.path, &error);
                }
            }
        }
    }
}

impl RotatingFile {
    /// Opens the file, or opens it again by its name.
    ///
    /// # Errors
    /// It cannot be opened: an open file stays.
    pub fn open(&mut self, target: &Target) -> io::Result<()> {
        let mut again = RotatingFile::default();
        again.create(target)?;
        *self = again;
        Ok(())
    }

    /// Appends to the file, which is opened or rotated first when that is due.
    ///
    /// # Errors
    /// I/O: the next call opens the file again.
    pub fn append(&mut self, target: &Target, bytes: &[u8]) -> io::Result<()> {
        self.prepare(target, bytes.len() as u64)?;
        let Some((_, file)) = &mut self.file else { return Ok(()) };
        let result = file.write_all(bytes);
        match result {
            Ok(()) => self.size_bytes += bytes.len() as u64,
            // Opened again by the next write: the directory may have changed.
            Err(_) => self.file = None,
        }
        result
    }

    /// Opens the file, after a rotation if one is due before `more_bytes`.
    fn prepare(&mut self, target: &Target, more_bytes: u64) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|(path, _)| *path != target.path) {
            self.file = None;
        }
        if self.file.is_none() {
            self.create(target)?;
        }
        let Rotation { size_bytes, age, keep } = target.rotation;
        let holds_entries = self.size_bytes > target.header.len() as u64;
        let is_large = size_bytes > 0 && self.size_bytes + more_bytes > size_bytes;
        let is_old = !age.is_zero() && crate::clock::monotonic() - self.opened_at >= age;
        if holds_entries && (is_large || is_old) {
            self.file = None;
            rotate(&target.path, keep)?;
            self.create(target)?;
        }
        Ok(())
    }

    fn create(&mut self, target: &Target) -> io::Result<()> {
        let mut file = File::create(&target.path, target.mode, Existing::Append)?;
        file.write_all(target.header.as_bytes())?;
        self.size_bytes = files::about(&target.path).map_or(0, |about| about.size_bytes);
        self.opened_at = crate::clock::monotonic();
        self.file = Some((target.path.clone(), file));
        Ok(())
    }
}

/// The name of the old file with this number.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Renames `path` to `path.1`, and the older files likewise; at most `keep` stay.
fn rotate(path: &Path, keep: usize) -> io::Result<()> {
    if keep == 0 {
        return files::remove(path);
    }
    for number in (1..keep).rev() {
        let from = numbered(path, number);
        if files::exists(&from) {
            files::rename(&from, &numbered(path, number + 1))?;
        }
    }
    files::rename(path, &numbered(path, 1))
}

/// The files of one writer, collected before it starts.
#[derive(Default)]
pub struct LogFiles {
    files: Vec<Arc<LogFile>>,
    signal: Arc<Signal>,
}

impl LogFiles {
    /// Adds a file.
    pub fn add(&mut self, owner: Box<dyn Owner>) -> Arc<LogFile> {
        let file = Arc::new(LogFile {
            owner,
            lanes: std::array::from_fn(|_| Mutex::default()),
            open: Mutex::default(),
            has_failed: AtomicBool::new(false),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            writer: self.signal.clone(),
        });
        self.files.push(file.clone());
        file
    }

    /// Starts the thread that writes them. It sleeps while there is nothing to write.
    ///
    /// # Errors
    /// The operating system refused the thread.
    pub fn start(&self, thread_name: &str) -> io::Result<Writer> {
        let (files, signal) = (self.files.clone(), self.signal.clone());
        signal.state.lock().stops = false;
        let running = signal.clone();
        let thread = threads::spawn(thread_name, move || write_until_stopped(&files, &running))?;
        Ok(Writer { signal, thread })
    }
}

fn write_until_stopped(files: &[Arc<LogFile>], signal: &Signal) {
    loop {
        let mut state = signal.state.lock();
        while !state.has_entries && !state.stops {
            state = signal.changed.wait(state);
        }
        if !state.stops {
            // Stopping notifies: then nothing waits longer.
            state = signal.changed.wait_for(state, COLLECTS);
        }
        let stops = state.stops;
        state.has_entries = false;
        drop(state);
        files.iter().for_each(|file| file.flush());
        if stops {
            return;
        }
    }
}

/// The thread that writes log files.
pub struct Writer {
    signal: Arc<Signal>,
    thread: Thread,
}

impl Writer {
    /// Writes what is left and ends.
    pub fn stop(self) {
        self.signal.state.lock().stops = true;
        self.signal.changed.notify_all();
        self.thread.join();
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "a test")]
mod tests {
    use super::*;

    #[derive(Clone)]
    struct Settings {
        target: Arc<Mutex<Target>>,
        failures: Arc<AtomicU64>,
    }

    impl Owner for Settings {
        fn target(&self) -> Target {
            self.target.lock().clone()
        }

        fn failed(&self, _: &Path, _: &io::Error) {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("squall-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn file(path: PathBuf, rotation: Rotation) -> (LogFiles, Arc<LogFile>, Settings) {
        let target = Target { path, mode: 0o640, header: "head\n".to_owned(), rotation };
        let settings = Settings { target: Arc::new(Mutex::new(target)), failures: Arc::default() };
        let mut files = LogFiles::default();
        let file = files.add(Box::new(settings.clone()));
        (files, file, settings)
    }

    #[test]
    fn entries_of_all_threads_are_in_the_order_of_their_times() {
        let directory = directory("order");
        let (files, file, _) = file(directory.join("log"), Rotation::default());
        let writer = files.start("log").unwrap();
        let adding: Vec<_> = (0..4)
            .map(|thread| {
                let file = file.clone();
                std::thread::spawn(move || {
                    for number in 0..100 {
                        file.append(
                            number * 4 + thread,
                            format!("{}\n", number * 4 + thread).as_bytes(),
                        );
                    }
                })
            })
            .collect();
        adding.into_iter().for_each(|thread| thread.join().unwrap());
        writer.stop();
        let text = std::fs::read_to_string(directory.join("log")).unwrap();
        let mut numbers: Vec<i64> =
            text.lines().skip(1).map(|line| line.parse().unwrap()).collect();
        assert!(text.starts_with("head\n"));
        // Two writes may have taken them.
        numbers.sort_unstable();
        assert_eq!(numbers, (0..400).collect::<Vec<_>>());
        assert_eq!((file.written(), file.lost()), (400, 0));
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn one_write_sorts_what_it_takes() {
        let lanes = [
            Entries { bytes: b"a3a9".to_vec(), ends: vec![(3, 2), (9, 4)] },
            Entries { bytes: b"b1b5".to_vec(), ends: vec![(1, 2), (5, 4)] },
        ];
        let directory = directory("sort");
        let (_, file, _) = file(directory.join("log"), Rotation::default());
        file.write(&lanes);
        assert_eq!(std::fs::read(directory.join("log")).unwrap(), b"head\nb1a3b5a9");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_large_file_is_renamed_and_old_ones_are_removed() {
        let directory = directory("rotate");
        let rotation = Rotation { size_bytes: 10, age: Duration::ZERO, keep: 2 };
        let (_, file, _) = file(directory.join("log"), rotation);
        for entry in ["first", "second", "third", "fourth"] {
            file.append(0, entry.as_bytes());
            file.flush();
        }
        let read = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap();
        assert_eq!(read("log"), "head\nfourth");
        assert_eq!(read("log.1"), "head\nthird");
        assert_eq!(read("log.2"), "head\nsecond");
        assert!(!directory.join("log.3").exists());
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_old_file_is_renamed() {
        let directory = directory("age");
        let rotation = Rotation { size_bytes: 0, age: Duration::from_nanos(1), keep: 1 };
        let (_, file, _) = file(directory.join("log"), rotation);
        file.append(0, b"first");
        file.flush();
        file.append(0, b"second");
        file.flush();
        assert_eq!(std::fs::read(directory.join("log.1")).unwrap(), b"head\nfirst");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn entries_that_cannot_be_written_are_counted_and_the_log_goes_on() {
        let directory = directory("lost");
        let (_, file, settings) = file(directory.join("missing/log"), Rotation::default());
        file.append(0, b"one");
        file.append(0, b"two");
        file.flush();
        file.append(0, b"three");
        file.flush();
        assert_eq!((file.written(), file.lost()), (0, 3));
        assert_eq!(settings.failures.load(Ordering::Relaxed), 1);
        std::fs::create_dir_all(directory.join("missing")).unwrap();
        file.append(0, b"four");
        file.flush();
        assert_eq!(std::fs::read(directory.join("missing/log")).unwrap(), b"head\nfour");
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_full_lane_is_written_without_the_writer() {
        let directory = directory("full");
        let (_, file, _) = file(directory.join("log"), Rotation::default());
        let entry = vec![b'x'; LANE_BYTES_MAX / 2];
        file.append(0, &entry);
        assert_eq!(file.written(), 0);
        file.append(0, &entry);
        assert_eq!(file.written(), 2);
        std::fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_renamed_file_is_left_when_the_log_is_opened_again() {
        let directory = directory("reopen");
        let (_, file, _) = file(directory.join("log"), Rotation::default());
        file.append(0, b"before");
        file.flush();
        std::fs::rename(directory.join("log"), directory.join("moved")).unwrap();
        file.append(0, b"between");
        file.reopen().unwrap();
        file.append(0, b"after");
        file.flush();
        assert_eq!(std::fs::read(directory.join("moved")).unwrap(), b"head\nbeforebetween");
        assert_eq!(std::fs::read(directory.join("log")).unwrap(), b"head\nafter");
        std::fs::remove_dir_all(directory).unwrap();
    }
}
