//! Translation from page numbers to frames, and reading in.

use std::io;
use std::sync::atomic::AtomicU64 as Word;
use std::sync::{Arc, OnceLock};

use page::{PageNo, verify};
use sys::blocking::blocking;
use sys::disk::File;
use sys::histogram::{Histogram, Summary};
use sys::mem::Region;
use sys::model::sized;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use wal::Log;

use crate::bad_pages::{BadPage, BadPages};
use crate::dirty::DirtySet;
use crate::flush::{PageWriter, bytes_of};
use crate::frames::{Partition, Service, divide};
use crate::guard::{Exclusive, Optimistic, Shared};
use crate::latch::Latch;
use crate::resize::Resizing;
use crate::room::Room;

/// Entries of one translation segment: 4,096 * 16 bytes = 64 KiB.
const SEGMENT_ENTRIES: usize = sized(4096, 64);
pub(crate) const NO_FRAME: u32 = u32::MAX;
/// Frames of the smallest pool.
pub(crate) const FRAMES_MIN: usize = 32;

/// Settings.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// Size of a page, a power of two of at most 32 KiB.
    pub page_bytes: usize,
    /// Number of frames at first, at least 32.
    pub frames: usize,
    /// Number of frames that the pool may grow to. They cost address space only.
    pub frames_max: usize,
    /// Largest page number plus one.
    pub pages_max: usize,
    /// Whether pages go to the doublewrite file first, so that torn ones can be restored. Without it the file system must write whole pages.
    pub doublewrite: bool,
    /// Pages that have blocks before anybody needs them, for work that must not fail when there is no space.
    pub reserve_pages: u64,
}

/// Counters since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct PoolStats {
    /// Frames in all.
    pub frames: u64,
    /// Frames that hold a page.
    pub used_frames: u64,
    /// Frames with changes not yet handed to the disk.
    pub dirty_frames: u64,
    /// Pages read in.
    pub reads: u64,
    /// Pages of them that were read before a thread needed them.
    pub reads_ahead: u64,
    /// Pages written.
    pub writes: u64,
    /// Frames taken from a page.
    pub evictions: u64,
}

/// Translation of one page number.
pub(crate) struct Entry {
    pub latch: Latch,
    pub frame: AtomicU32,
    /// Beside the latch, so that a reader touches no further cache line.
    referenced: AtomicU8,
}

/// The contents of a frame.
pub(crate) struct Descriptor {
    pub page: AtomicU32,
    /// B6.
    pub first_change: AtomicU64,
    /// B6.
    pub in_flight: AtomicU64,
}

impl Descriptor {
    /// Ticket floor of the oldest change not on disk; 0 when clean.
    pub fn oldest_change(&self) -> u64 {
        let first = self.first_change.load(Ordering::Acquire);
        let flying = self.in_flight.load(Ordering::Acquire);
        match (first, flying) {
            (0, other) | (other, 0) => other,
            (first, flying) => first.min(flying),
        }
    }
}

impl Entry {
    /// Whether the page was used since the clock last passed.
    pub fn is_referenced(&self) -> bool {
        self.referenced.load(Ordering::Relaxed) != 0
    }

    /// Whether the page was used since the last call.
    pub fn take_referenced(&self) -> bool {
        let was = self.referenced.load(Ordering::Relaxed) != 0;
        if was {
            self.referenced.store(0, Ordering::Relaxed);
        }
        was
    }
}

type Segment = Box<[Entry]>;
type Descriptors = Box<[Descriptor]>;

/// Descriptors that are allocated together.
const DESCRIPTORS_EACH: usize = sized(4096, 64);

/// The buffer pool of one space.
pub struct Pool {
    pub(crate) config: PoolConfig,
    page_words: usize,
    pub(crate) region: Region,
    descriptors: Box<[OnceLock<Descriptors>]>,
    /// Frames in use: those below this number.
    pub(crate) frames: AtomicUsize,
    pub(crate) resizing: Resizing,
    /// Frames with an `oldest_change` that may not be zero (B14).
    pub(crate) marks: DirtySet,
    directory: Box<[OnceLock<Segment>]>,
    pub(crate) partitions: Box<[Partition]>,
    /// Nodes of memory to which the partitions belong in turn.
    pub(crate) nodes: usize,
    pub(crate) service: Service,
    /// Frames that `set_aside` took from the free ones.
    pub(crate) aside: Mutex<Vec<u32>>,
    pub(crate) file: Arc<dyn File>,
    pub(crate) writer: Mutex<PageWriter>,
    log: OnceLock<Arc<Log>>,
    pub(crate) room: Room,
    bad: BadPages,
    reads: AtomicU64,
    reads_ahead: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) evictions: AtomicU64,
    /// Frames with a `first_change` that is not zero.
    pub(crate) dirty: AtomicU64,
    read_times: Histogram,
    pub(crate) write_times: Histogram,
}

fn damaged(no: PageNo) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("page {} is damaged", no.0))
}

impl Pool {
    /// A pool over a data file and its doublewrite file, whose batch was already restored (`restore_torn`).
    ///
    /// # Errors
    /// Not enough memory.
    pub fn new(
        config: PoolConfig,
        file: Arc<dyn File>,
        doublewrite: Arc<dyn File>,
    ) -> io::Result<Pool> {
        assert!(config.page_bytes.is_power_of_two() && (256..=32768).contains(&config.page_bytes));
        let page_words = config.page_bytes / 8;
        /// Of the pages that there may be.
        const RESERVE_SHARE: u64 = 16;
        let reserve_pages = config.reserve_pages.min(config.pages_max as u64 / RESERVE_SHARE);
        let config = PoolConfig { reserve_pages, ..config };
        let frames = config.frames.max(FRAMES_MIN);
        let frames_max = config.frames_max.clamp(frames, NO_FRAME as usize);
        // Where so much address space is refused, the pool stays within its first size.
        let (region, frames_max) = match Region::map(page_words * frames_max) {
            Ok(region) => (region, frames_max),
            Err(_) => (Region::map(page_words * frames)?, frames),
        };
        let config = PoolConfig { frames, frames_max, ..config };
        let segments = config.pages_max.div_ceil(SEGMENT_ENTRIES);
        let sizes = sys::threads::sizes();
        let partitions = divide(frames, &sizes);
        Ok(Pool {
            page_words,
            region,
            descriptors: (0..frames_max.div_ceil(DESCRIPTORS_EACH))
                .map(|_| OnceLock::new())
                .collect(),
            frames: AtomicUsize::new(frames),
            resizing: Resizing::new(frames),
            marks: DirtySet::new(frames_max),
            directory: (0..segments).map(|_| OnceLock::new()).collect(),
            nodes: if partitions.len().is_multiple_of(sizes.nodes) { sizes.nodes } else { 1 },
            partitions,
            service: Service::default(),
            aside: Mutex::new(Vec::new()),
            file,
            writer: Mutex::new(PageWriter::new(doublewrite, config.page_bytes)),
            log: OnceLock::new(),
            room: Room::default(),
            bad: BadPages::default(),
            reads: AtomicU64::new(0),
            reads_ahead: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            read_times: Histogram::new(),
            write_times: Histogram::new(),
            config,
        })
    }

    /// Connects the log. Before, during redo, every page's changes are durable already.
    pub fn connect(&self, log: Arc<Log>) {
        assert!(self.log.set(log).is_ok(), "a pool has one log");
    }

    /// Keeps frames of `bytes` in all from being used, so that their memory may serve something else. At most half of the pool.
    pub fn set_aside(&self, bytes: usize) {
        let count = (bytes / self.config.page_bytes).min(self.frames() / 2);
        self.aside.lock().extend(self.take_untouched(count));
    }

    /// Ends `set_aside`.
    pub fn give_back_set_aside(&self) {
        let aside = std::mem::take(&mut *self.aside.lock());
        aside.into_iter().for_each(|frame| self.give_back_frame(frame));
    }

    /// Frames that may be used now.
    pub fn usable_frames(&self) -> usize {
        self.frames().saturating_sub(self.aside.lock().len())
    }

    /// Frames with changes not yet on disk.
    pub fn dirty_frames(&self) -> usize {
        self.dirty.load(Ordering::Relaxed) as usize
    }

    /// The log, once connected.
    pub fn log(&self) -> Option<&Arc<Log>> {
        self.log.get()
    }

    /// Size of a page.
    pub fn page_bytes(&self) -> usize {
        self.config.page_bytes
    }

    #[inline]
    pub(crate) fn frame_words(&self, frame: u32) -> &[Word] {
        let start = frame as usize * self.page_words;
        &self.region.words()[start..start + self.page_words]
    }

    /// Frames of the pool.
    pub(crate) fn frames(&self) -> usize {
        // Acquire pairs with the stores of `resize`.
        self.frames.load(Ordering::Acquire)
    }

    pub(crate) fn descriptor(&self, frame: u32) -> &Descriptor {
        let frame = frame as usize;
        let part = &self.descriptors[frame / DESCRIPTORS_EACH];
        let part = match part.get() {
            Some(part) => part,
            None => part.get_or_init(|| {
                let descriptor = |_| Descriptor {
                    page: AtomicU32::new(NO_FRAME),
                    first_change: AtomicU64::new(0),
                    in_flight: AtomicU64::new(0),
                };
                (0..DESCRIPTORS_EACH).map(descriptor).collect()
            }),
        };
        &part[frame % DESCRIPTORS_EACH]
    }

    #[inline]
    pub(crate) fn entry(&self, no: PageNo) -> io::Result<&Entry> {
        let index = no.0 as usize;
        let segment = self.directory.get(index / SEGMENT_ENTRIES).ok_or_else(|| damaged(no))?;
        let segment = match segment.get() {
            Some(segment) => segment,
            None => segment.get_or_init(|| {
                let entry = |_| Entry {
                    latch: Latch::new(),
                    frame: AtomicU32::new(NO_FRAME),
                    referenced: AtomicU8::new(0),
                };
                (0..SEGMENT_ENTRIES).map(entry).collect()
            }),
        };
        Ok(&segment[index % SEGMENT_ENTRIES])
    }

    /// Looks at a page without a latch, reading it in when needed.
    ///
    /// # Errors
    /// I/O; `InvalidData` for a damaged page; `OutOfMemory` when every frame is latched.
    #[inline]
    pub fn optimistic(&self, no: PageNo) -> io::Result<Optimistic<'_>> {
        let look = self.optimistic_once(no)?;
        self.touch(look.entry);
        Ok(look)
    }

    /// Like `optimistic`, for a page that is read once and not soon again: it may be evicted before others.
    ///
    /// # Errors
    /// As `optimistic`.
    pub fn optimistic_once(&self, no: PageNo) -> io::Result<Optimistic<'_>> {
        let entry = self.entry(no)?;
        sys::usage::count_page();
        loop {
            let version = entry.latch.version();
            let frame = entry.frame.load(Ordering::Relaxed);
            if frame != NO_FRAME {
                return Ok(Optimistic { pool: self, entry, number: no, frame, version });
            }
            entry.latch.lock_exclusive();
            self.fill_latched(no, entry, Missing::Read).map(drop)?;
        }
    }

    /// Whether the page is in memory now.
    pub fn is_resident(&self, no: PageNo) -> bool {
        self.entry(no).is_ok_and(|entry| entry.frame.load(Ordering::Relaxed) != NO_FRAME)
    }

    /// Reads a page in, unless it is present or another thread is reading it.
    pub(crate) fn read_in_cold(&self, no: PageNo) -> io::Result<()> {
        let entry = self.entry(no)?;
        if entry.frame.load(Ordering::Relaxed) != NO_FRAME || !entry.latch.try_lock_exclusive() {
            return Ok(());
        }
        self.fill_latched(no, entry, Missing::Read).map(drop)?;
        self.reads_ahead.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Like `optimistic`, but `None` instead of waiting for a writer: for callers that hold a latch out of order.
    ///
    /// # Errors
    /// As `optimistic`.
    pub fn try_optimistic(&self, no: PageNo) -> io::Result<Option<Optimistic<'_>>> {
        let entry = self.entry(no)?;
        let Some(version) = entry.latch.try_version() else { return Ok(None) };
        sys::usage::count_page();
        let frame = entry.frame.load(Ordering::Relaxed);
        if frame == NO_FRAME {
            return Ok(None);
        }
        Ok(Some(Optimistic { pool: self, entry, number: no, frame, version }))
    }

    #[inline]
    fn touch(&self, entry: &Entry) {
        // Hot pages are not written by readers.
        if entry.referenced.load(Ordering::Relaxed) == 0 {
            entry.referenced.store(1, Ordering::Relaxed);
        }
    }

    /// Takes the shared latch.
    ///
    /// # Errors
    /// As `optimistic`.
    pub fn shared(&self, no: PageNo) -> io::Result<Shared<'_>> {
        loop {
            if let Some(shared) = self.optimistic(no)?.share() {
                return Ok(shared);
            }
        }
    }

    /// Takes the exclusive latch.
    ///
    /// # Errors
    /// As `optimistic`.
    pub fn exclusive(&self, no: PageNo) -> io::Result<Exclusive<'_>> {
        let entry = self.entry(no)?;
        sys::usage::count_page();
        entry.latch.lock_exclusive();
        let guard = self.fill_latched(no, entry, Missing::Read)?;
        self.touch(entry);
        Ok(guard)
    }

    /// Latches a page exclusively without reading it, for a caller that replaces its content.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn create(&self, no: PageNo) -> io::Result<Exclusive<'_>> {
        let entry = self.entry(no)?;
        entry.latch.lock_exclusive();
        let guard = self.fill_latched(no, entry, Missing::Zero)?;
        self.touch(entry);
        Ok(guard)
    }

    /// `entry` is latched exclusively; makes it resident. On failure the latch is released.
    fn fill_latched<'p>(
        &'p self,
        no: PageNo,
        entry: &'p Entry,
        missing: Missing,
    ) -> io::Result<Exclusive<'p>> {
        let mut guard = Exclusive { pool: self, entry, number: no, frame: NO_FRAME };
        guard.frame = entry.frame.load(Ordering::Relaxed);
        if guard.frame == NO_FRAME {
            let frame = self.take_frame()?;
            sys::unmodelled! {
                let oldest = self.descriptor(frame).oldest_change();
                assert_eq!(oldest, 0, "a frame is clean before it is used again");
            }
            let filled = match missing {
                Missing::Read => self.read_page(no, frame),
                Missing::Zero => {
                    let words = self.frame_words(frame);
                    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                    Ok(())
                }
            };
            if let Err(error) = filled {
                self.give_back_frame(frame);
                return Err(error);
            }
            self.descriptor(frame).page.store(no.0, Ordering::Release);
            entry.frame.store(frame, Ordering::Release);
            guard.frame = frame;
        }
        Ok(guard)
    }

    /// Reads a page into a frame that is not published yet. Other tasks of the thread's reactor continue during the read.
    fn read_page(&self, no: PageNo, frame: u32) -> io::Result<()> {
        let offset = u64::from(no.0) * self.config.page_bytes as u64;
        sys::probes::page_read(no.0, frame);
        let words = self.frame_words(frame);
        let attempt = || -> io::Result<bool> {
            let read = || self.read_times.time(|| self.file.read_words(words, offset));
            let count = blocking(read)?;
            Ok(count == self.config.page_bytes && verify(&bytes_of(words), no))
        };
        // Once more: the transfer may have been faulty while the device holds the right bytes.
        let read = attempt().and_then(|is_whole| if is_whole { Ok(true) } else { attempt() });
        match read {
            Ok(true) => {}
            Ok(false) => {
                self.bad.note(no, "its checksum is wrong");
                return Err(damaged(no));
            }
            Err(error) => {
                self.bad.note(no, &error.to_string());
                return Err(error);
            }
        }
        self.reads.fetch_add(1, Ordering::Relaxed);
        sys::usage::count_missed_page();
        Ok(())
    }

    /// Pages that could not be read since the start.
    pub fn damaged_pages(&self) -> Vec<BadPage> {
        self.bad.list()
    }

    /// Lets another thread run, for a caller with repeatedly failing optimistic attempts.
    pub fn give_way(&self) {
        sys::threads::yield_now();
    }

    /// Durations of reading a page, and of writing a batch of pages with its syncs.
    pub fn io_times(&self) -> (Summary, Summary) {
        (self.read_times.summary(), self.write_times.summary())
    }

    /// Counters. Cheap however large the pool is.
    pub fn stats(&self) -> PoolStats {
        let frames = self.frames();
        PoolStats {
            frames: frames as u64,
            used_frames: frames.saturating_sub(self.free_frames()) as u64,
            dirty_frames: self.dirty.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
            reads_ahead: self.reads_ahead.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
        }
    }

    /// Bytes of memory for pages, and for finding and writing them.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let used = self.frames().saturating_sub(self.free_frames());
        let segments = self.directory.iter().filter(|segment| segment.get().is_some()).count();
        let descriptors = self.descriptors.iter().filter(|part| part.get().is_some()).count();
        let around = segments * SEGMENT_ENTRIES * size_of::<Entry>()
            + size_of_val(&*self.directory)
            + size_of_val(&*self.descriptors)
            + descriptors * DESCRIPTORS_EACH * size_of::<Descriptor>()
            + self.marks.memory_bytes();
        (used * self.config.page_bytes, around)
    }
}

/// The treatment of a page that has no frame.
#[derive(Clone, Copy)]
enum Missing {
    Read,
    Zero,
}
