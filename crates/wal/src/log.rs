//! The running log: tickets, lanes, the durable and the visible ticket. `flush.rs` makes it durable, `writer.rs` writes the files.

use std::io;
use std::sync::Arc;

use sys::disk::Disk;
use sys::histogram::{Histogram, Summary};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::batch::put_record;
use crate::flush::FlushState;
use crate::follow::LogPlace;
use crate::replay::ReplayEnd;
use crate::writer::{SPARE_MAX, SegmentFiles, Writer};

/// When a commit counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After its batch is synced.
    Synced,
    /// At once; batches are written and synced in the background.
    Relaxed,
}

/// The effect of a failed log write or sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Ends the process: a restart recovers. The only safe choice for a server.
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
    /// Writes of batches under way at a time.
    pub flights: usize,
    /// Durability of commits.
    pub durability: Durability,
    /// Reaction to a failed write.
    pub failure: FailurePolicy,
    /// Segments whose blocks are there before they are needed.
    pub reserve_segments: usize,
}

impl Default for LogConfig {
    fn default() -> Self {
        /// Lanes for whose records a segment of the reserve is enough.
        const LANES_EACH: usize = 16;
        let sizes = sys::threads::sizes();
        let lanes = sizes.lanes();
        LogConfig {
            segment_bytes: 16 << 20,
            block_bytes: 4096,
            lanes,
            reserve_segments: 3 + lanes / LANES_EACH,
            flights: sizes.flights(),
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
    /// Checksum of the previous batch.
    pub previous_crc: u32,
    /// `low` of the previous batch.
    pub low: u64,
    /// Every ticket in earlier segments is below it.
    pub high: u64,
}

/// Counters since start.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogStats {
    /// Bytes of batches written, padding included.
    pub written_bytes: u64,
    /// Groups of records made durable together.
    pub groups: u64,
    /// Syncs.
    pub syncs: u64,
    /// Segments kept.
    pub segments: u64,
    /// Bytes of the segments kept.
    pub kept_bytes: u64,
}

/// A lane larger than this asks its appender to flush.
const LANE_BYTES_MAX: usize = 4 << 20;
/// All lanes together hold at most this share of the reserve, but each may hold so much.
const RESERVE_SHARE: u64 = 2;
const LANE_BYTES_MIN: u64 = 64 << 10;
/// Kinds of records that are counted.
pub(crate) const KINDS: usize = 16;

#[derive(Default)]
pub(crate) struct LaneState {
    pub bytes: Vec<u8>,
    pub high: u64,
    /// Records so far, by kind.
    pub counts: [u64; KINDS],
}

#[repr(align(128))]
pub(crate) struct Lane(pub Mutex<LaneState>);

/// A word alone on its cache lines.
#[repr(align(128))]
pub(crate) struct Padded(pub AtomicU64);

/// The log. Shared by all threads.
pub struct Log {
    pub(crate) next: Padded,
    /// Every ticket below it is on disk.
    pub(crate) durable: Padded,
    /// Every batch with a smaller number is on disk.
    pub(crate) durable_batch: AtomicU64,
    /// Snapshots see commits below it.
    pub(crate) visible: Padded,
    /// Commits from here on are not to be seen yet; written with the flusher's mutex held.
    pub(crate) held: AtomicU64,
    pub(crate) lanes: Box<[Lane]>,
    pub(crate) flush: FlushState,
    pub(crate) writer: Mutex<Writer>,
    pub(crate) files: SegmentFiles,
    /// Microseconds that a thread which flushes for a commit waits for others first.
    pub(crate) delay_micros: AtomicU64,
    /// Space is short: files are not kept for reuse.
    is_frugal: AtomicBool,
    /// Bytes of a lane above which its appender flushes.
    lane_bytes_max: usize,
    pub(crate) config: LogConfig,
    pub(crate) flushes: Histogram,
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
        Log::start_behind(disk, config, &[], start, next)
    }

    /// Continues where a replay ended: its segments are kept until no checkpoint needs them. `next` is the first ticket.
    ///
    /// # Errors
    /// I/O.
    pub fn resume(
        disk: Arc<dyn Disk>,
        config: LogConfig,
        end: &ReplayEnd,
        next: u64,
    ) -> io::Result<Log> {
        let start = LogPosition { low: next, high: next, ..end.next };
        Log::start_behind(disk, config, &end.segments, start, next)
    }

    fn start_behind(
        disk: Arc<dyn Disk>,
        config: LogConfig,
        older: &[LogPosition],
        start: LogPosition,
        next: u64,
    ) -> io::Result<Log> {
        assert!(config.lanes.is_power_of_two() && config.flights < crate::flush::SLOTS);
        let files = SegmentFiles::new(disk, &config, start.segment)?;
        let writer = Writer::start(&files, older, start, next)?;
        Ok(Log {
            next: Padded(AtomicU64::new(next)),
            durable: Padded(AtomicU64::new(next)),
            durable_batch: AtomicU64::new(start.batch),
            visible: Padded(AtomicU64::new(next)),
            held: AtomicU64::new(u64::MAX),
            lanes: (0..config.lanes).map(|_| Lane(Mutex::default())).collect(),
            flush: FlushState::starting_at(LogPlace { segment: start.segment, offset: 0 }),
            writer: Mutex::new(writer),
            files,
            delay_micros: AtomicU64::new(0),
            is_frugal: AtomicBool::new(false),
            flushes: Histogram::new(),
            lane_bytes_max: lane_bytes_max(&config),
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

    /// Every batch with a number below the result is durable.
    pub fn durable_batch(&self) -> u64 {
        self.durable_batch.load(Ordering::Acquire)
    }

    /// Commits with a ticket below the result may be seen by snapshots.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.0.load(Ordering::Acquire)
    }

    /// Appends a record and returns its ticket. `on_ticket` runs under the lane's mutex (W1): every thread that sees the ticket become visible
    /// also sees the data that it publishes.
    pub fn append(&self, kind: u8, parts: &[&[u8]], on_ticket: impl FnOnce(u64)) -> u64 {
        self.append_watched(kind, parts, on_ticket).0
    }

    /// Like `append`; the second result says whether the lane has grown large, so that `relieve` should be called, without latches.
    pub fn append_watched(
        &self,
        kind: u8,
        parts: &[&[u8]],
        on_ticket: impl FnOnce(u64),
    ) -> (u64, bool) {
        let lane = &self.lanes[sys::threads::number() & (self.config.lanes - 1)];
        let mut state = lane.0.lock();
        let ticket = self.draw();
        debug_assert!(ticket >= state.high, "the tickets of a lane grow (W1)");
        debug_assert!(ticket >= self.durable(), "nothing below `durable` is still to come (W2)");
        on_ticket(ticket);
        let before = state.bytes.len();
        put_record(&mut state.bytes, kind, ticket, parts);
        sys::usage::count_log_bytes(state.bytes.len() - before);
        state.high = ticket + 1;
        state.counts[usize::from(kind) % KINDS] += 1;
        (ticket, state.bytes.len() > self.lane_bytes_max)
    }

    /// Segments that can be used without more space, and how many there should be.
    pub fn reserve_state(&self) -> (usize, usize) {
        (self.files.available(), self.config.reserve_segments)
    }

    /// Whether every segment of the reserve is there.
    #[inline]
    pub fn is_reserve_whole(&self) -> bool {
        self.files.is_reserve_whole()
    }

    /// Whether files are kept for reuse beyond the reserve.
    pub fn set_frugal(&self, is_frugal: bool) {
        self.is_frugal.store(is_frugal, Ordering::Relaxed);
    }

    /// Bytes of memory of the lanes.
    pub fn memory_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.0.lock().bytes.capacity()).sum()
    }

    /// Empties the lanes. Call without latches.
    ///
    /// # Errors
    /// The log is broken.
    pub fn relieve(&self) -> io::Result<()> {
        self.flush_to(self.next_ticket() - 1)
    }

    /// Makes a commit with `ticket` acknowledgeable: waits for its batch, or in relaxed mode only publishes it; then until it may be seen.
    ///
    /// # Errors
    /// The log is broken.
    pub fn commit_wait(&self, ticket: u64) -> io::Result<()> {
        match self.config.durability {
            Durability::Synced => self.flush_to(ticket)?,
            Durability::Relaxed => self.publish_relaxed(),
        }
        if self.is_acknowledged(ticket) { Ok(()) } else { self.wait_until_seen(ticket) }
    }

    /// Whether `commit_wait` would return at once.
    pub fn is_acknowledged(&self, ticket: u64) -> bool {
        self.visible() > ticket
    }

    /// Everything below the result is in a lane: passing each lane's mutex gives the same guarantee as W2.
    pub(crate) fn decided(&self) -> u64 {
        let low = self.next_ticket();
        for lane in &self.lanes {
            drop(lane.0.lock());
        }
        low
    }

    /// Relaxed mode: decided commits are visible.
    pub fn publish_relaxed(&self) {
        if self.config.durability == Durability::Synced {
            return;
        }
        let low = self.decided();
        if self.is_holding() {
            return self.show_below(low);
        }
        self.visible.0.fetch_max(low, Ordering::AcqRel);
    }

    /// Makes the next segment's file before it is needed, so that no commit waits for it. For a background thread.
    ///
    /// # Errors
    /// I/O; harmless, the file is made when it is needed.
    pub fn prepare_segment(&self) -> io::Result<()> {
        self.files.prepare()
    }

    /// Sets the time that a flush for a commit waits for other commits to join it.
    pub fn set_commit_delay(&self, micros: u64) {
        self.delay_micros.store(micros, Ordering::Relaxed);
    }

    /// The latest segment start from which every record at or above `ticket` can be read.
    pub fn position_for(&self, ticket: u64) -> LogPosition {
        self.writer.lock().position_for(ticket)
    }

    /// Everything before it in the files is durable.
    pub fn durable_end(&self) -> LogPlace {
        self.flush.landed()
    }

    /// Keeps segments from `segment` on from being released.
    pub fn pin(self: &Arc<Self>, segment: u64) -> LogPin {
        LogPin { id: self.writer.lock().pin(segment), log: self.clone() }
    }

    /// Releases segments before `position`, which a durable checkpoint names. Keeps a few for reuse, removes the rest.
    ///
    /// # Errors
    /// I/O; harmless, the files are found again at the next start.
    pub fn forget_before(&self, position: LogPosition) -> io::Result<()> {
        let old = self.writer.lock().forget_before(position);
        let kept = if self.is_frugal.load(Ordering::Relaxed) { 0 } else { SPARE_MAX };
        self.files.recycle(old, kept)
    }

    /// Bytes of log after the start of the segment from which records at or above `ticket` can be read: the length of a replay.
    pub fn bytes_since(&self, ticket: u64) -> u64 {
        self.writer.lock().bytes_since(ticket)
    }

    /// The ticket below which changes keep a replay from reading less than `bytes`.
    pub fn ticket_before(&self, bytes: u64) -> u64 {
        self.writer.lock().ticket_before(bytes)
    }

    /// Records of a kind so far.
    pub fn count_of(&self, kind: u8) -> u64 {
        self.lanes.iter().map(|lane| lane.0.lock().counts[usize::from(kind) % KINDS]).sum()
    }

    /// Durations of writing and syncing a flush.
    pub fn flush_times(&self) -> Summary {
        self.flushes.summary()
    }

    /// Counters.
    pub fn stats(&self) -> LogStats {
        self.writer.lock().stats()
    }
}

/// The reserve must hold what is in the lanes when space ends.
fn lane_bytes_max(config: &LogConfig) -> usize {
    let reserve = config.reserve_segments.saturating_sub(1) as u64 * config.segment_bytes;
    if reserve == 0 {
        return LANE_BYTES_MAX;
    }
    let share = reserve / RESERVE_SHARE / config.lanes as u64;
    (share.max(LANE_BYTES_MIN) as usize).min(LANE_BYTES_MAX)
}

/// Keeps segments of a log for a reader of its files, until it is dropped.
pub struct LogPin {
    log: Arc<Log>,
    id: u64,
}

impl LogPin {
    /// Segments before `segment` are no longer needed.
    pub fn advance(&self, segment: u64) {
        self.log.writer.lock().move_pin(self.id, Some(segment));
    }
}

impl Drop for LogPin {
    fn drop(&mut self) {
        self.log.writer.lock().move_pin(self.id, None);
    }
}
