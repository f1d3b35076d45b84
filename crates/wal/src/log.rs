//! The running log: lanes, the flush by a leader for all, segments, waiting for durability.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use sys::disk::{Disk, File, OpenMode};
use sys::histogram::{Histogram, Summary};
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sys::sync::{Condvar, Mutex};

use crate::batch::{HEADER_BYTES, Header, put_record, record_length};

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After its batch is synced.
    Synced,
    /// At once; batches are written and synced in the background.
    Relaxed,
}

/// What a failed log write or sync does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Ends the process: restart recovers. The only right choice for a server.
    Abort,
    /// Breaks the log: every later flush is the error. For simulated disks.
    Report,
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Size of a segment file.
    pub segment_bytes: u64,
    /// Batches start at multiples of it.
    pub block_bytes: usize,
    /// Number of lanes, a power of two.
    pub lanes: usize,
    /// Durability of commits.
    pub durability: Durability,
    /// Reaction to a failed write.
    pub failure: FailurePolicy,
}

impl Default for LogConfig {
    fn default() -> Self {
        LogConfig {
            segment_bytes: 16 << 20,
            block_bytes: 4096,
            lanes: sys::threads::processors().next_power_of_two().min(64),
            durability: Durability::Synced,
            failure: FailurePolicy::Abort,
        }
    }
}

/// Where reading starts: the state of the chain before the first batch of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// Segment number.
    pub segment: u64,
    /// Epoch of its batches.
    pub epoch: u32,
    /// Number of its first batch.
    pub batch: u64,
    /// Checksum of the batch before.
    pub previous_crc: u32,
    /// `low` of the batch before.
    pub low: u64,
    /// Every ticket in earlier segments is below it.
    pub high: u64,
}

/// Counters since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogStats {
    /// Bytes of batches written, padding included.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Segments kept.
    pub segments: u64,
}

/// A lane larger than this asks its appender to flush.
const LANE_BYTES_MAX: usize = 4 << 20;

type Callback = Box<dyn FnOnce() + Send>;

struct Segment {
    start: LogPosition,
    file: Arc<dyn File>,
}

struct Flusher {
    flushing: bool,
    waiting: Vec<(u64, Callback)>,
    broken: Option<String>,
}

/// What only the thread that flushes touches.
struct Writer {
    segments: VecDeque<Segment>,
    offset: u64,
    batch: u64,
    previous_crc: u32,
    low: u64,
    high: u64,
    buffer: Vec<u8>,
    collected: Vec<u8>,
    spare: Vec<(u64, Arc<dyn File>)>,
    stats: LogStats,
}

#[derive(Default)]
struct LaneState {
    bytes: Vec<u8>,
    high: u64,
}

#[repr(align(128))]
struct Lane(Mutex<LaneState>);

/// A word alone on its cache lines.
#[repr(align(128))]
struct Padded(AtomicU64);

/// The log. Shared by all threads.
pub struct Log {
    next: Padded,
    /// Every ticket below it is on disk.
    durable: Padded,
    /// Snapshots see commits below it.
    visible: Padded,
    lanes: Box<[Lane]>,
    flusher: Mutex<Flusher>,
    flushed: Condvar,
    writer: Mutex<Writer>,
    requested: Mutex<u64>,
    request: Condvar,
    stopping: AtomicBool,
    disk: Arc<dyn Disk>,
    config: LogConfig,
    epoch: u32,
    flushes: Histogram,
}

pub(crate) fn segment_name(number: u64) -> String {
    format!("wal-{number:012}.log")
}

pub(crate) fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()
}

impl Log {
    /// Starts a new run of the log: `start` names a segment above all present ones (W8); `next` is the first ticket.
    ///
    /// # Errors
    /// I/O.
    pub fn start(
        disk: Arc<dyn Disk>,
        config: LogConfig,
        start: LogPosition,
        next: u64,
    ) -> io::Result<Log> {
        assert!(config.lanes.is_power_of_two());
        let file = create_segment(&*disk, start.segment, config.segment_bytes)?;
        let mut segments = VecDeque::new();
        segments.push_back(Segment { start, file });
        Ok(Log {
            next: Padded(AtomicU64::new(next)),
            durable: Padded(AtomicU64::new(next)),
            visible: Padded(AtomicU64::new(next)),
            lanes: (0..config.lanes).map(|_| Lane(Mutex::default())).collect(),
            flusher: Mutex::new(Flusher { flushing: false, waiting: Vec::new(), broken: None }),
            flushed: Condvar::new(),
            writer: Mutex::new(Writer {
                segments,
                offset: 0,
                batch: start.batch,
                previous_crc: start.previous_crc,
                low: next,
                high: next,
                buffer: Vec::new(),
                collected: Vec::new(),
                spare: Vec::new(),
                stats: LogStats::default(),
            }),
            requested: Mutex::new(0),
            request: Condvar::new(),
            stopping: AtomicBool::new(false),
            epoch: start.epoch,
            flushes: Histogram::new(),
            disk,
            config,
        })
    }

    /// The ticket that would be drawn next.
    pub fn next_ticket(&self) -> u64 {
        self.next.0.load(Ordering::Acquire)
    }

    /// Draws a ticket that names no record: a transaction id.
    pub fn draw(&self) -> u64 {
        self.next.0.fetch_add(1, Ordering::AcqRel)
    }

    /// Every record with a ticket below the result is durable.
    pub fn durable(&self) -> u64 {
        self.durable.0.load(Ordering::Acquire)
    }

    /// Commits with a ticket below the result may be seen by snapshots.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.0.load(Ordering::Acquire)
    }

    /// Appends a record and returns its ticket. `on_ticket` runs under the lane's mutex (W1): what it publishes is seen by
    /// whoever sees the ticket become visible.
    pub fn append(&self, kind: u8, parts: &[&[u8]], on_ticket: impl FnOnce(u64)) -> u64 {
        self.append_watched(kind, parts, on_ticket).0
    }

    /// As `append`; the second result says that the lane has grown large and `relieve` should be called, without latches.
    pub fn append_watched(
        &self,
        kind: u8,
        parts: &[&[u8]],
        on_ticket: impl FnOnce(u64),
    ) -> (u64, bool) {
        let lane = &self.lanes[sys::threads::number() & (self.config.lanes - 1)];
        let mut state = lane.0.lock();
        let ticket = self.draw();
        on_ticket(ticket);
        put_record(&mut state.bytes, kind, ticket, parts);
        state.high = ticket + 1;
        (ticket, state.bytes.len() > LANE_BYTES_MAX)
    }

    /// Empties the lanes. Call without latches.
    ///
    /// # Errors
    /// The log is broken.
    pub fn relieve(&self) -> io::Result<()> {
        self.flush_to(self.next_ticket() - 1)
    }

    /// Makes a commit with `ticket` acknowledgeable: waits for its batch, or in relaxed mode only publishes it.
    ///
    /// # Errors
    /// The log is broken.
    pub fn commit_wait(&self, ticket: u64) -> io::Result<()> {
        match self.config.durability {
            Durability::Synced => self.flush_to(ticket),
            Durability::Relaxed => {
                self.publish_relaxed();
                Ok(())
            }
        }
    }

    /// Whether `commit_wait` would return at once.
    pub fn is_acknowledged(&self, ticket: u64) -> bool {
        match self.config.durability {
            Durability::Synced => self.durable() > ticket,
            Durability::Relaxed => self.visible() > ticket,
        }
    }

    /// Relaxed mode: what is decided is visible. Passing each lane's mutex gives the same guarantee as W2.
    pub fn publish_relaxed(&self) {
        if self.config.durability == Durability::Synced {
            return;
        }
        let low = self.next_ticket();
        for lane in &self.lanes {
            drop(lane.0.lock());
        }
        self.visible.0.fetch_max(low, Ordering::AcqRel);
    }

    /// Returns when every ticket up to and including `ticket` is durable. Flushes for everybody when nobody does.
    ///
    /// # Errors
    /// The log is broken.
    pub fn flush_to(&self, ticket: u64) -> io::Result<()> {
        let mut flusher = self.flusher.lock();
        loop {
            if self.durable() > ticket {
                return Ok(());
            }
            if let Some(message) = &flusher.broken {
                return Err(io::Error::other(message.clone()));
            }
            if flusher.flushing {
                flusher = self.flushed.wait(flusher);
                continue;
            }
            flusher.flushing = true;
            drop(flusher);
            let outcome = self.flush_once();
            flusher = self.flusher.lock();
            flusher.flushing = false;
            if let Err(error) = &outcome {
                flusher.broken = Some(format!("the log is broken: {error}"));
            }
            let ready = self.take_ready(&mut flusher);
            self.flushed.notify_all();
            if !ready.is_empty() {
                drop(flusher);
                ready.into_iter().for_each(|wake| wake());
                flusher = self.flusher.lock();
            }
        }
    }

    fn take_ready(&self, flusher: &mut Flusher) -> Vec<Callback> {
        let durable = self.durable();
        let broken = flusher.broken.is_some();
        let (ready, waiting) = std::mem::take(&mut flusher.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|(ticket, _)| broken || *ticket < durable);
        flusher.waiting = waiting;
        ready.into_iter().map(|(_, wake)| wake).collect()
    }

    /// Calls `wake` once `ticket` is durable or the log is broken; needs a thread in `serve`.
    pub fn notify(&self, ticket: u64, wake: Callback) {
        let mut flusher = self.flusher.lock();
        if self.is_acknowledged(ticket) || flusher.broken.is_some() {
            drop(flusher);
            return wake();
        }
        flusher.waiting.push((ticket, wake));
        drop(flusher);
        let mut requested = self.requested.lock();
        *requested = (*requested).max(ticket + 1);
        self.request.notify_one();
    }

    /// Flushes for `notify` until `stop`. One thread runs it.
    pub fn serve(&self) {
        loop {
            let wanted = {
                let mut requested = self.requested.lock();
                while *requested <= self.durable() && !self.stopping.load(Ordering::Acquire) {
                    requested = self.request.wait(requested);
                }
                *requested
            };
            if self.stopping.load(Ordering::Acquire) && wanted <= self.durable() {
                return;
            }
            if self.flush_to(wanted - 1).is_err() {
                return;
            }
        }
    }

    /// Ends `serve`.
    pub fn stop(&self) {
        let _requested = self.requested.lock();
        self.stopping.store(true, Ordering::Release);
        self.request.notify_all();
    }

    /// Whether a write has failed.
    pub fn is_broken(&self) -> bool {
        self.flusher.lock().broken.is_some()
    }

    fn flush_once(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        // W2: `low` before the lanes.
        let low = self.next_ticket();
        let mut collected = std::mem::take(&mut writer.collected);
        collected.clear();
        let mut high = writer.high.max(low);
        for lane in &self.lanes {
            let mut state = lane.0.lock();
            if collected.is_empty() {
                std::mem::swap(&mut collected, &mut state.bytes);
            } else {
                collected.extend_from_slice(&state.bytes);
                state.bytes.clear();
            }
            high = high.max(state.high);
        }
        let write = || self.write_batches(&mut writer, &collected, low, high);
        let outcome = self.flushes.time(write);
        writer.collected = collected;
        if let Err(error) = outcome {
            if self.config.failure == FailurePolicy::Abort {
                // W6: the state of the file is unknown; only recovery can tell what is there.
                eprintln!("squall: the log cannot be written: {error}; aborting");
                std::process::abort();
            }
            return Err(error);
        }
        self.durable.0.fetch_max(low, Ordering::AcqRel);
        self.visible.0.fetch_max(low, Ordering::AcqRel);
        Ok(())
    }

    /// Writes what was collected in as many batches as segments demand; only the last one moves `low`.
    fn write_batches(
        &self,
        writer: &mut Writer,
        records: &[u8],
        low: u64,
        high: u64,
    ) -> io::Result<()> {
        let block = self.config.block_bytes as u64;
        let limit = self.config.segment_bytes as usize - HEADER_BYTES;
        let mut rest = records;
        loop {
            let room = (self.config.segment_bytes - writer.offset) as usize;
            let mut take = 0;
            let room_here = room.saturating_sub(HEADER_BYTES);
            let whole = rest.len() <= room_here;
            if whole && room > HEADER_BYTES {
                take = rest.len();
            } else {
                while let Some(length) = record_length(&rest[take..]) {
                    assert!(length <= limit, "a record is larger than a segment");
                    if take + length > room_here {
                        break;
                    }
                    take += length;
                }
            }
            if take > 0 || (whole && room > HEADER_BYTES) {
                let last = take == rest.len();
                let batch_low = if last { low } else { writer.low };
                self.write_batch(writer, &rest[..take], batch_low, high)?;
                rest = &rest[take..];
                if last {
                    let current = writer.segments.back().expect("a log has a segment");
                    current.file.sync()?;
                    writer.stats.syncs += 1;
                    return Ok(());
                }
            }
            let current = writer.segments.back().expect("a log has a segment");
            current.file.sync()?;
            self.next_segment(writer)?;
            debug_assert!(writer.offset.is_multiple_of(block));
        }
    }

    fn write_batch(
        &self,
        writer: &mut Writer,
        records: &[u8],
        low: u64,
        high: u64,
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut writer.buffer);
        buffer.clear();
        buffer.resize(HEADER_BYTES, 0);
        buffer.extend_from_slice(records);
        let block = self.config.block_bytes;
        buffer.resize(buffer.len().div_ceil(block) * block, 0);
        let header = Header {
            epoch: self.epoch,
            number: writer.batch,
            low,
            high,
            length: records.len() as u32,
            previous_crc: writer.previous_crc,
        };
        let crc = header.seal(&mut buffer);
        let current = writer.segments.back().expect("a log has a segment");
        let outcome = current.file.write_at(&buffer, writer.offset);
        writer.offset += buffer.len() as u64;
        writer.stats.written_bytes += buffer.len() as u64;
        writer.batch += 1;
        writer.previous_crc = crc;
        writer.low = low;
        writer.high = high;
        writer.buffer = buffer;
        outcome
    }

    fn next_segment(&self, writer: &mut Writer) -> io::Result<()> {
        let last = writer.segments.back().expect("a log has a segment");
        let start = LogPosition {
            segment: last.start.segment + 1,
            epoch: self.epoch,
            batch: writer.batch,
            previous_crc: writer.previous_crc,
            low: writer.low,
            high: writer.high,
        };
        let name = segment_name(start.segment);
        let file = match writer.spare.pop() {
            Some((number, file)) => {
                // W4 keeps the old content of a recycled segment from being read.
                self.disk.rename(&segment_name(number), &name)?;
                self.disk.sync_dir()?;
                file
            }
            None => create_segment(&*self.disk, start.segment, self.config.segment_bytes)?,
        };
        writer.segments.push_back(Segment { start, file });
        writer.offset = 0;
        Ok(())
    }

    /// The latest segment start from which every record at or above `ticket` can be read.
    pub fn position_for(&self, ticket: u64) -> LogPosition {
        let writer = self.writer.lock();
        let found = writer.segments.iter().rev().find(|segment| segment.start.high <= ticket);
        found.unwrap_or(&writer.segments[0]).start
    }

    /// Gives up segments before `position`, which a durable checkpoint names. Keeps a few for reuse, removes the rest.
    ///
    /// # Errors
    /// I/O; harmless, the files are found again at the next start.
    pub fn forget_before(&self, position: LogPosition) -> io::Result<()> {
        const SPARE_MAX: usize = 2;
        let mut writer = self.writer.lock();
        while writer.segments.len() > 1 && writer.segments[0].start.segment < position.segment {
            let old = writer.segments.pop_front().expect("checked above");
            if writer.spare.len() < SPARE_MAX {
                writer.spare.push((old.start.segment, old.file));
            } else {
                self.disk.remove(&segment_name(old.start.segment))?;
            }
        }
        Ok(())
    }

    /// How long writing and syncing a flush took.
    pub fn flush_times(&self) -> Summary {
        self.flushes.summary()
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        let writer = self.writer.lock();
        LogStats { segments: writer.segments.len() as u64, ..writer.stats }
    }
}

/// A file whose blocks are written, so that later writes change no metadata.
fn create_segment(disk: &dyn Disk, number: u64, size_bytes: u64) -> io::Result<Arc<dyn File>> {
    let file = disk.open_log(&segment_name(number), OpenMode::OrCreate)?;
    let zeros = vec![0; size_bytes.min(1 << 20) as usize];
    let mut offset = 0;
    while offset < size_bytes {
        let count = (size_bytes - offset).min(zeros.len() as u64) as usize;
        file.write_at(&zeros[..count], offset)?;
        offset += count as u64;
    }
    file.sync()?;
    disk.sync_dir()?;
    Ok(file)
}
