//! Segment files, and batches made from the lanes and written into them. Independent of waiting threads.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use sys::disk::{BlockBuffer, Disk, File, OpenMode, is_full};
use sys::process::Gravity;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicUsize, Ordering};

use crate::batch::{HEADER_BYTES, Header, record_length};
use crate::follow::LogPlace;
use crate::log::{FailurePolicy, Lane, LogConfig, LogPosition, LogStats};

/// Files kept for reuse, besides the reserve.
pub(crate) const SPARE_MAX: usize = 8;
/// A flight's memory that is larger is not kept.
const BUFFER_KEPT_MAX: usize = 8 << 20;

/// Name of a segment's file.
pub fn segment_name(number: u64) -> String {
    format!("wal-{number:012}.log")
}

/// Number of the segment that a file of this name holds.
pub fn segment_number(name: &str) -> Option<u64> {
    name.strip_prefix("wal-")?.strip_suffix(".log")?.parse().ok()
}

/// Files with these names hold blocks for segments to come.
pub(crate) const RESERVE_PREFIX: &str = "wal-reserve-";

pub(crate) fn reserve_name(number: u64) -> String {
    format!("{RESERVE_PREFIX}{number:06}")
}

/// Writes all blocks of a segment's file, so that later writes change no metadata.
fn fill_segment(file: &dyn File, size_bytes: u64) -> io::Result<()> {
    let mut zeros = BlockBuffer::default();
    zeros.reset(size_bytes.min(1 << 20) as usize).fill(0);
    let mut offset = 0;
    while offset < size_bytes {
        let count = (size_bytes - offset).min(zeros.bytes().len() as u64) as usize;
        file.write_at(&zeros.bytes()[..count], offset)?;
        offset += count as u64;
    }
    file.sync()
}

/// A file for a segment to come: its blocks are there.
struct Spare {
    name: String,
    file: Arc<dyn File>,
    /// It was a segment: all blocks were written.
    is_written: bool,
}

struct Files {
    /// Released by a checkpoint, or the reserve.
    spare: Vec<Spare>,
    /// Made ahead.
    next: Option<Arc<dyn File>>,
    /// Number of the newest segment in use.
    last: u64,
    /// Number of the newest file of the reserve.
    reserved: u64,
}

impl Files {
    fn count(&self) -> usize {
        self.spare.len() + usize::from(self.next.is_some())
    }
}

/// Makes segment files, from old ones if possible.
pub(crate) struct SegmentFiles {
    disk: Arc<dyn Disk>,
    size_bytes: u64,
    /// Segments that are there before they are needed.
    reserve: usize,
    /// Segments that are there now.
    available: AtomicUsize,
    /// Taken after the writer's mutex.
    files: Mutex<Files>,
}

impl SegmentFiles {
    /// `first`: number of the first segment to be taken. Files of an earlier run's reserve are taken over.
    pub fn new(disk: Arc<dyn Disk>, config: &LogConfig, first: u64) -> io::Result<SegmentFiles> {
        let mut files = Files { spare: Vec::new(), next: None, last: first - 1, reserved: 0 };
        for name in disk.list()? {
            let Some(number) = name.strip_prefix(RESERVE_PREFIX) else { continue };
            files.reserved = files.reserved.max(number.parse().unwrap_or(0));
            let file = disk.open_log(&name, OpenMode::Existing)?;
            match file.reserve(0, config.segment_bytes) {
                Ok(()) => files.spare.push(Spare { name, file, is_written: false }),
                Err(_) => disk.remove(&name)?,
            }
        }
        let available = AtomicUsize::new(files.count());
        let (size_bytes, reserve) = (config.segment_bytes, config.reserve_segments);
        Ok(SegmentFiles { disk, size_bytes, reserve, available, files: Mutex::new(files) })
    }

    /// Segments that can be used without more space.
    pub fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed)
    }

    /// Whether the whole reserve is there.
    pub fn is_reserve_whole(&self) -> bool {
        self.available() >= self.reserve
    }

    fn note(&self, files: &Files) {
        self.available.store(files.count(), Ordering::Relaxed);
    }

    fn make(&self, files: &mut Files) -> io::Result<Arc<dyn File>> {
        let name = segment_name(files.last + 1);
        let file = match files.spare.last() {
            None => {
                let file = self.disk.open_log(&name, OpenMode::OrCreate)?;
                if let Err(error) = fill_segment(&*file, self.size_bytes) {
                    // A part of it is of no use, and others may need the blocks.
                    let _ = self.disk.remove(&name);
                    return Err(error);
                }
                file
            }
            Some(spare) => {
                if !spare.is_written {
                    fill_segment(&*spare.file, self.size_bytes)?;
                }
                // W4 keeps the old content of a recycled segment from being read.
                self.disk.rename(&spare.name, &name)?;
                let file = spare.file.clone();
                files.spare.pop();
                file
            }
        };
        self.disk.sync_dir()?;
        Ok(file)
    }

    /// The next segment's file.
    fn take(&self) -> io::Result<Arc<dyn File>> {
        let mut files = self.files.lock();
        let file = match files.next.take() {
            Some(file) => file,
            None => self.make(&mut files)?,
        };
        files.last += 1;
        assert!(files.next.is_none(), "a segment's file is used once");
        self.note(&files);
        Ok(file)
    }

    /// Like `take`. There is no space when the reserve is used up too: then it waits for some, as nothing else could make the log whole (W13).
    fn take_waiting(&self) -> io::Result<Arc<dyn File>> {
        wait_for_space(|| self.take())
    }

    /// Makes the next segment, and the reserve whole.
    pub fn prepare(&self) -> io::Result<()> {
        let mut files = self.files.lock();
        let made = self.make_ahead(&mut files);
        self.note(&files);
        made
    }

    fn make_ahead(&self, files: &mut Files) -> io::Result<()> {
        if files.next.is_none() {
            files.next = Some(self.make(files)?);
        }
        while files.count() < self.reserve {
            files.reserved += 1;
            let name = reserve_name(files.reserved);
            let file = self.disk.open_log(&name, OpenMode::OrCreate)?;
            if let Err(error) = file.reserve(0, self.size_bytes) {
                let _ = self.disk.remove(&name);
                return Err(error);
            }
            files.spare.insert(0, Spare { name, file, is_written: false });
        }
        Ok(())
    }

    /// `kept`: how many segments may wait for reuse besides the reserve.
    pub fn recycle(&self, old: Vec<OldSegment>, kept: usize) -> io::Result<()> {
        let mut unused = Vec::new();
        {
            let mut files = self.files.lock();
            for OldSegment { number, file, size_bytes } in old {
                let name = segment_name(number);
                match size_bytes == self.size_bytes && files.count() < self.reserve + kept {
                    true => files.spare.push(Spare { name, file, is_written: true }),
                    false => unused.push(name),
                }
            }
            while files.count() > self.reserve + kept {
                let Some(spare) = files.spare.pop() else { break };
                unused.push(spare.name);
            }
            self.note(&files);
        }
        unused.iter().try_for_each(|name| self.disk.remove(name))
    }
}

/// Repeats what fails for lack of space until there is some, and says so.
fn wait_for_space<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const PAUSE: Duration = Duration::from_millis(50);
    let mut is_told = false;
    loop {
        match attempt() {
            Err(error) if is_full(&error) => {
                if !is_told {
                    sys::process::tell(
                        Gravity::Error,
                        &format!(
                            "the log has no space, and its reserve is used up: {error}; commits wait until there is space on its file system"
                        ),
                    );
                    is_told = true;
                }
                sys::threads::sleep(PAUSE);
            }
            outcome => {
                if is_told {
                    sys::process::tell(Gravity::Note, "the log has space again");
                }
                return outcome;
            }
        }
    }
}

struct Segment {
    start: LogPosition,
    file: Arc<dyn File>,
    size_bytes: u64,
}

/// A segment that no checkpoint needs.
pub(crate) struct OldSegment {
    number: u64,
    file: Arc<dyn File>,
    size_bytes: u64,
}

/// A batch in its place: a part of the flight's memory.
struct Piece {
    file: Arc<dyn File>,
    offset: u64,
    bytes: std::ops::Range<usize>,
}

/// The data of one flush: usually one batch, more where a segment ends.
#[derive(Default)]
pub(crate) struct Flight {
    number: u64,
    end: LogPlace,
    buffer: BlockBuffer,
    /// Bytes of the buffer from here on are zero, as padding requires.
    used: usize,
    pieces: Vec<Piece>,
}

impl Flight {
    /// Grows from flight to flight.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The end of its last batch.
    pub fn end(&self) -> LogPlace {
        self.end
    }

    /// `waits`: for space, when there is none.
    pub fn write(&self, waits: bool) -> io::Result<()> {
        for piece in &self.pieces {
            let bytes = &self.buffer.bytes()[piece.bytes.clone()];
            // The blocks are there; a file system that copies on write may need others. Nothing was acknowledged, and the bytes are still here.
            match waits {
                true => wait_for_space(|| piece.file.write_at(bytes, piece.offset))?,
                false => piece.file.write_at(bytes, piece.offset)?,
            }
            piece.file.sync()?;
        }
        Ok(())
    }
}

/// The place of the next batch and the identity of the previous one.
pub(crate) struct Writer {
    segments: VecDeque<Segment>,
    offset: u64,
    batch: u64,
    previous_crc: u32,
    low: u64,
    high: u64,
    /// The number below which batches are durable, for the next batch's header (W12).
    durable: u64,
    flights: u64,
    collected: Vec<u8>,
    idle: Vec<Flight>,
    /// Pins of segments: the reader, and its first segment.
    pins: Vec<(u64, u64)>,
    pins_made: u64,
    stats: LogStats,
}

impl Writer {
    /// `older`: the segments of earlier runs that are still needed.
    pub fn start(
        files: &SegmentFiles,
        older: &[LogPosition],
        start: LogPosition,
        next: u64,
    ) -> io::Result<Writer> {
        let mut segments = VecDeque::new();
        for start in older {
            let file = files.disk.open_log(&segment_name(start.segment), OpenMode::Existing)?;
            let size_bytes = file.size_bytes()?;
            segments.push_back(Segment { start: *start, file, size_bytes });
        }
        let (file, size_bytes) = (files.take()?, files.size_bytes);
        segments.push_back(Segment { start, file, size_bytes });
        Ok(Writer {
            segments,
            offset: 0,
            batch: start.batch,
            previous_crc: start.previous_crc,
            low: next,
            high: next,
            durable: start.batch,
            flights: 0,
            collected: Vec::new(),
            idle: Vec::new(),
            pins: Vec::new(),
            pins_made: 0,
            stats: LogStats::default(),
        })
    }

    /// Empties the lanes into batches with their places. The caller writes them; a failure breaks the log. Batches below `durable` are
    /// on disk.
    pub fn gather(
        &mut self,
        files: &SegmentFiles,
        lanes: &[Lane],
        (low, durable): (u64, u64),
        config: &LogConfig,
    ) -> io::Result<Flight> {
        self.durable = durable;
        let mut collected = std::mem::take(&mut self.collected);
        collected.clear();
        let mut high = self.high.max(low);
        for lane in lanes {
            let mut state = lane.0.lock();
            if collected.is_empty() {
                std::mem::swap(&mut collected, &mut state.bytes);
            } else {
                collected.extend_from_slice(&state.bytes);
                state.bytes.clear();
            }
            high = high.max(state.high);
        }
        let mut flight = self.idle.pop().unwrap_or_default();
        self.flights += 1;
        flight.number = self.flights;
        let placed = self.place(files, &mut flight, &collected, (low, high), config);
        flight.end = LogPlace { segment: self.current().start.segment, offset: self.offset };
        self.collected = collected;
        self.stats.syncs += 1;
        placed.map(|()| flight)
    }

    /// Makes as many batches as segments demand; only the last one moves `low`.
    fn place(
        &mut self,
        files: &SegmentFiles,
        flight: &mut Flight,
        records: &[u8],
        (low, high): (u64, u64),
        config: &LogConfig,
    ) -> io::Result<()> {
        let limit = config.segment_bytes as usize - HEADER_BYTES;
        let block = config.block_bytes;
        // Each batch except the last fills a segment; the memory for all is reserved at once.
        let batches = 2 + records.len() / (limit / 2).max(1);
        let room = records.len() + batches * (HEADER_BYTES + block);
        flight.buffer.reset(room.max(flight.used));
        let (mut rest, mut at) = (records, 0);
        loop {
            let room = (config.segment_bytes - self.offset) as usize;
            let room_here = room.saturating_sub(HEADER_BYTES);
            let whole = rest.len() <= room_here && room > HEADER_BYTES;
            let take = if whole { rest.len() } else { fitting(rest, room_here, limit) };
            if take > 0 || whole {
                let batch_low = if whole { low } else { self.low };
                at = self.put_batch(flight, at, &rest[..take], (batch_low, high), block, config);
                rest = &rest[take..];
                if whole {
                    return Ok(());
                }
            }
            self.next_segment(files, config.failure)?;
        }
    }

    /// Puts a batch at `at` of the flight's memory and returns where it ends there.
    fn put_batch(
        &mut self,
        flight: &mut Flight,
        at: usize,
        records: &[u8],
        (low, high): (u64, u64),
        block: usize,
        config: &LogConfig,
    ) -> usize {
        let length = (HEADER_BYTES + records.len()).div_ceil(block) * block;
        let end = at + length;
        let all = flight.buffer.bytes_mut();
        let content_end = at + HEADER_BYTES + records.len();
        all[at + HEADER_BYTES..content_end].copy_from_slice(records);
        // The padding up to a block is zero already where no earlier flight was longer.
        if let Some(older) = all.get_mut(content_end..flight.used) {
            older.fill(0);
        }
        flight.used = content_end;
        let batch = &mut all[at..end];
        let header = Header {
            epoch: self.epoch(),
            number: self.batch,
            low,
            high,
            length: records.len() as u32,
            previous_crc: self.previous_crc,
            durable: self.durable,
            crc: 0,
        };
        let crc = header.seal(batch);
        let file = self.current().file.clone();
        flight.pieces.push(Piece { file, offset: self.offset, bytes: at..end });
        assert!(
            self.offset + length as u64 <= config.segment_bytes,
            "a batch is in one segment (W5)"
        );
        assert!(self.low <= low && low <= high, "`low` never goes back (W3)");
        assert!(self.high <= high, "`high` never goes back");
        self.offset += length as u64;
        self.stats.written_bytes += length as u64;
        self.batch += 1;
        self.previous_crc = crc;
        self.low = low;
        self.high = high;
        end
    }

    /// Number of the next batch.
    pub fn next_batch(&self) -> u64 {
        self.batch
    }

    fn current(&self) -> &Segment {
        self.segments.back().expect("a log has a segment")
    }

    fn epoch(&self) -> u32 {
        self.current().start.epoch
    }

    fn next_segment(&mut self, files: &SegmentFiles, failure: FailurePolicy) -> io::Result<()> {
        let start = LogPosition {
            segment: self.current().start.segment + 1,
            epoch: self.epoch(),
            batch: self.batch,
            previous_crc: self.previous_crc,
            low: self.low,
            high: self.high,
        };
        let taken = match failure {
            FailurePolicy::Abort => files.take_waiting(),
            FailurePolicy::Report => files.take(),
        };
        let (file, size_bytes) = (taken?, files.size_bytes);
        self.segments.push_back(Segment { start, file, size_bytes });
        self.offset = 0;
        Ok(())
    }

    /// Takes back a finished flight, for reuse.
    pub fn keep(&mut self, mut flight: Flight) {
        flight.pieces.clear();
        if flight.buffer.capacity() <= BUFFER_KEPT_MAX {
            self.idle.push(flight);
        }
    }

    pub fn position_for(&self, ticket: u64) -> LogPosition {
        let found = self.segments.iter().rev().find(|segment| segment.start.high <= ticket);
        found.unwrap_or(&self.segments[0]).start
    }

    pub fn pin(&mut self, segment: u64) -> u64 {
        self.pins_made += 1;
        self.pins.push((self.pins_made, segment));
        self.pins_made
    }

    /// Moves a pin, or removes it.
    pub fn move_pin(&mut self, id: u64, segment: Option<u64>) {
        self.pins.retain(|(pin, _)| *pin != id);
        self.pins.extend(segment.map(|segment| (id, segment)));
    }

    /// Removes the segments before `position` that no reader has pinned.
    pub fn forget_before(&mut self, position: LogPosition) -> Vec<OldSegment> {
        let pinned = self.pins.iter().map(|(_, segment)| *segment);
        let keep = pinned.fold(position.segment, u64::min);
        let mut old = Vec::new();
        while self.segments.len() > 1 && self.segments[0].start.segment < keep {
            let first = self.segments.pop_front().expect("checked above");
            let Segment { start, file, size_bytes } = first;
            old.push(OldSegment { number: start.segment, file, size_bytes });
        }
        old
    }

    pub fn bytes_since(&self, ticket: u64) -> u64 {
        let (mut bytes, mut at) = (self.offset, self.segments.len() - 1);
        while at > 0 && self.segments[at].start.high > ticket {
            at -= 1;
            bytes += self.segments[at].size_bytes;
        }
        bytes
    }

    pub fn ticket_before(&self, bytes: u64) -> u64 {
        let (mut behind, mut at) = (self.offset, self.segments.len() - 1);
        while at > 0 && behind < bytes {
            at -= 1;
            behind += self.segments[at].size_bytes;
        }
        match behind < bytes {
            true => 0,
            false => self.segments.get(at + 1).map_or(self.high, |next| next.start.high),
        }
    }

    pub fn stats(&self) -> LogStats {
        let kept_bytes = self.segments.iter().map(|segment| segment.size_bytes).sum();
        let groups = self.flights;
        LogStats { segments: self.segments.len() as u64, kept_bytes, groups, ..self.stats }
    }
}

/// Bytes of the whole records at the front of `records` that fit into `room`.
fn fitting(records: &[u8], room: usize, limit: usize) -> usize {
    let mut take = 0;
    while let Some(length) = record_length(&records[take..]) {
        assert!(length <= limit, "a record is larger than a segment");
        if take + length > room {
            break;
        }
        take += length;
    }
    take
}
