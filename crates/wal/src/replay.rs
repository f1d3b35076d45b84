//! Reading a log back: verifies the chain, finds the cuts, hands out records in ticket order, a window at a time.
//!
//! The meaning of records is the caller's. Records stay where they were read to: a window owns the bytes of its stretch of the log.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use sys::disk::{BlockBuffer, Disk, File, OpenMode};

use crate::batch::{HEADER_BYTES, Header, RECORD_HEADER_BYTES, record_length};
use crate::damage::{End, LogDamage, find_damage};
use crate::log::{LogConfig, LogPosition};
use crate::writer::{RESERVE_PREFIX, reserve_name, segment_name, segment_number};

/// A record as it was appended.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The caller's kind.
    pub kind: u8,
    /// Its ticket.
    pub ticket: u64,
    /// The caller's bytes.
    pub body: &'a [u8],
}

/// Where a log ended, and where the next run must start (W8).
#[derive(Clone, Debug)]
pub struct ReplayEnd {
    /// Records below it were handed out.
    pub cut: u64,
    /// Start of the next run.
    pub next: LogPosition,
    /// First ticket of the next run.
    pub next_ticket: u64,
    /// Bytes of batches read.
    pub read_bytes: u64,
    /// Starts of the segments that hold the replayed log, oldest first.
    pub segments: Vec<LogPosition>,
    /// Why this cannot be the end that a crash left (W12).
    pub damage: Option<LogDamage>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    ticket: u64,
    start: u32,
    length: u32,
}

/// A stretch of the log in memory. Reused from one stretch to the next.
#[derive(Default)]
pub struct Window {
    bytes: Vec<u8>,
    /// A whole segment, read ahead.
    block: BlockBuffer,
    places: Vec<Place>,
}

/// Bytes of a segment that are read at a time: devices serve a few such faster than a few large ones.
const PIECE_BYTES: usize = 1 << 20;

/// A place in `Window::block`, not in `Window::bytes`.
const IN_BLOCK: u32 = 1 << 31;

impl Window {
    /// Nothing.
    pub fn new() -> Window {
        Window::default()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Bytes at a place: the start of a record's body or after it.
    #[inline]
    pub fn at(&self, place: u32, length: usize) -> &[u8] {
        let source = if place & IN_BLOCK != 0 { self.block.bytes() } else { &self.bytes };
        &source[(place & !IN_BLOCK) as usize..][..length]
    }

    /// The records in ticket order, each with the place of its body.
    pub fn records(&self) -> impl Iterator<Item = (u32, Record<'_>)> {
        self.places.iter().map(|place| {
            let bytes = self.at(place.start, place.length as usize);
            let body = &bytes[RECORD_HEADER_BYTES..];
            let record = Record { kind: bytes[4], ticket: place.ticket, body };
            (place.start + RECORD_HEADER_BYTES as u32, record)
        })
    }

    /// The records of one batch.
    #[cfg(test)]
    pub(crate) fn of_batch(bytes: Vec<u8>, header: Header) -> Window {
        let mut window = Window { bytes, ..Window::default() };
        window.collect(0, header);
        window
    }

    /// Notes the records of a batch that starts at `at` of `bytes`.
    fn collect(&mut self, at: usize, header: Header) {
        self.places.extend(places(&self.bytes, at, header, 0));
    }
}

/// The records of a batch that starts at `at`; `source` is 0 or `IN_BLOCK`.
fn places(
    bytes: &[u8],
    at: usize,
    header: Header,
    source: u32,
) -> impl Iterator<Item = Place> + use<'_> {
    let mut start = at + HEADER_BYTES;
    let bytes = &bytes[..start + header.length as usize];
    std::iter::from_fn(move || {
        let length = record_length(&bytes[start..])?;
        let ticket = bytes[start + 8..start + 16].try_into().map_or(0, u64::from_le_bytes);
        let place = Place { ticket, start: start as u32 | source, length: length as u32 };
        start += length;
        Some(place)
    })
}

/// The content of a segment at a place.
pub(crate) enum Found {
    /// The next batch of the chain.
    Batch(Header),
    /// Perhaps one; this many bytes are needed to decide.
    Part(usize),
    Nothing,
}

/// The batch that must come next (W4).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub epoch: u32,
    pub batch: u64,
    pub crc: u32,
}

impl Chain {
    pub fn look(self, rest: &[u8]) -> Found {
        self.look_at(rest, Checksum::Unknown)
    }

    fn look_at(self, rest: &[u8], checksum: Checksum) -> Found {
        if rest.len() < HEADER_BYTES {
            return Found::Part(HEADER_BYTES);
        }
        let Some(header) = Header::parse(rest) else { return Found::Nothing };
        let expected = header.number == self.batch
            && header.previous_crc == self.crc
            && header.epoch == self.epoch;
        if !expected {
            return Found::Nothing;
        }
        let end = HEADER_BYTES + header.length as usize;
        match rest.get(8..end) {
            None => Found::Part(end),
            Some(_) if checksum == Checksum::Right => Found::Batch(header),
            Some(sealed) if page::crc(sealed) == header.crc => Found::Batch(header),
            Some(_) => Found::Nothing,
        }
    }
}

/// The state of a batch's checksum.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksum {
    Right,
    Unknown,
}

/// A segment that was read ahead.
pub struct Loaded {
    number: u64,
    file: Arc<dyn File>,
    block: BlockBuffer,
    /// Bytes from the start on that are consecutive batches with the right checksum, whatever chain they belong to.
    sound: usize,
    /// The records of each of them, counted from the first.
    ends: Vec<u32>,
    places: Vec<Place>,
}

impl Loaded {
    /// Which one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Continues verifying checksums and notes the records, batch by batch, up to `end`: bytes just verified are in the processor's
    /// cache.
    fn look(&mut self, block_bytes: usize, end: usize) {
        let bytes = &self.block.bytes()[..end];
        let mut at = self.sound;
        while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= HEADER_BYTES)
            && let Some(header) = Header::parse(rest)
            && let Some(sealed) = rest.get(8..HEADER_BYTES + header.length as usize)
            && page::crc(sealed) == header.crc
        {
            self.places.extend(places(bytes, at, header, IN_BLOCK));
            self.ends.push(self.places.len() as u32);
            let length = HEADER_BYTES + header.length as usize;
            at = (at + length.next_multiple_of(block_bytes)).min(bytes.len());
        }
        self.sound = at;
    }

    /// Its memory, for another one.
    pub fn into_block(self) -> BlockBuffer {
        self.block
    }
}

/// A segment that is to be read ahead.
pub struct Loading {
    segment: Loaded,
    block_bytes: usize,
}

impl Loading {
    /// Which one.
    pub fn number(&self) -> u64 {
        self.segment.number
    }

    /// Reads the segment, verifies its checksums and notes its records; `None` if the file is shorter than it was.
    ///
    /// # Errors
    /// I/O.
    pub fn read(mut self) -> io::Result<Option<Loaded>> {
        let segment = &mut self.segment;
        // W10: batches accepted now must survive the next crash too.
        segment.file.sync()?;
        let (size, mut end) = (segment.block.bytes().len(), 0);
        while end < size {
            let piece = end..(end + PIECE_BYTES).min(size);
            let read =
                segment.file.read_at(&mut segment.block.bytes_mut()[piece.clone()], end as u64)?;
            if read < piece.len() {
                return Ok(None);
            }
            end = piece.end;
            segment.look(self.block_bytes, end);
        }
        Ok(Some(self.segment))
    }
}

/// Opens whole segments ahead of a `LogReader`, to be read past the page cache.
pub struct LogLoader<'d> {
    disk: &'d dyn Disk,
    next: u64,
    /// Larger segments are left to the reader.
    bytes_max: u64,
    block_bytes: usize,
}

impl<'d> LogLoader<'d> {
    /// Starts with the segment of `position`.
    pub fn new(
        disk: &'d dyn Disk,
        position: LogPosition,
        bytes_max: usize,
        block_bytes: usize,
    ) -> LogLoader<'d> {
        LogLoader { disk, next: position.segment, bytes_max: bytes_max as u64, block_bytes }
    }

    /// Goes on at a segment, unless it is further already. Whether it was not.
    pub fn follow(&mut self, segment: u64) -> bool {
        let is_behind = self.next < segment;
        self.next = self.next.max(segment);
        is_behind
    }

    /// The segment that comes next.
    pub fn segment(&self) -> u64 {
        self.next
    }

    /// The next segment; `None` if it does not exist or is too large.
    ///
    /// # Errors
    /// I/O.
    pub fn next(&mut self, mut block: BlockBuffer) -> io::Result<Option<Loading>> {
        let file = match self.disk.open_pages(&segment_name(self.next), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let size_bytes = file.size_bytes()?;
        if size_bytes > self.bytes_max {
            return Ok(None);
        }
        block.reset(size_bytes as usize);
        self.next += 1;
        let (ends, places) = (Vec::new(), Vec::new());
        let segment = Loaded { number: self.next - 1, file, block, sound: 0, ends, places };
        Ok(Some(Loading { segment, block_bytes: self.block_bytes }))
    }
}

/// A segment that is being read.
struct Open {
    file: Arc<dyn File>,
    size_bytes: u64,
    offset: u64,
    has_batches: bool,
}

/// Reads a log from a position to its end, over the ends of runs that a crash cut short.
pub struct LogReader<'d> {
    disk: &'d dyn Disk,
    block_bytes: usize,
    from: u64,
    chain: Chain,
    low: u64,
    high: u64,
    segment: u64,
    open: Option<Open>,
    /// Records at or above `low`: they wait for those before them.
    held: Window,
    /// Segments read ahead, in order.
    loaded: VecDeque<Loaded>,
    /// Memory for more of them.
    spare: Vec<BlockBuffer>,
    segments: Vec<LogPosition>,
    read_bytes: u64,
    /// Segment and offset after the last batch.
    stopped_at: (u64, u64),
    is_over: bool,
}

/// Whether a run continues.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Goes,
    Ended,
}

impl<'d> LogReader<'d> {
    /// Reads from `position`; records below `from` are left out.
    pub fn new(
        disk: &'d dyn Disk,
        position: LogPosition,
        from: u64,
        block_bytes: usize,
    ) -> LogReader<'d> {
        let LogPosition { segment, epoch, batch, previous_crc, low, high } = position;
        LogReader {
            disk,
            block_bytes,
            from,
            chain: Chain { epoch, batch, crc: previous_crc },
            low,
            high,
            segment,
            open: None,
            held: Window::new(),
            loaded: VecDeque::new(),
            spare: Vec::new(),
            segments: Vec::new(),
            read_bytes: 0,
            stopped_at: (segment, 0),
            is_over: false,
        }
    }

    /// Bytes of batches read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// The segment that is read next.
    pub fn segment(&self) -> u64 {
        self.segment
    }

    /// Takes a segment that was read ahead.
    pub fn give(&mut self, loaded: Loaded) {
        self.loaded.push_back(loaded);
    }

    /// Unused memory of a segment that was read ahead.
    pub fn spare(&mut self) -> Option<BlockBuffer> {
        self.spare.pop()
    }

    /// The segment that comes next, when it was read ahead.
    fn take_loaded(&mut self) -> Option<Loaded> {
        if self.open.is_some() {
            return None;
        }
        while self.loaded.front().is_some_and(|loaded| loaded.number < self.segment) {
            let passed = self.loaded.pop_front();
            self.spare.extend(passed.map(|loaded| loaded.block));
        }
        self.loaded.pop_front_if(|loaded| loaded.number == self.segment)
    }

    /// Fills `window` with the next records, about `bytes_max` of log; false if there are no more.
    ///
    /// # Errors
    /// I/O.
    pub fn next(&mut self, window: &mut Window, bytes_max: usize) -> io::Result<bool> {
        std::mem::swap(window, &mut self.held);
        self.held.bytes.clear();
        self.held.places.clear();
        if self.held.block.capacity() > 0 {
            self.spare.push(std::mem::take(&mut self.held.block));
        }
        if self.is_over {
            window.places.clear();
            return Ok(false);
        }
        // A large group of records moves `low` with its last batch only: the records held may exceed a window.
        let bytes_max = window.bytes.len() + bytes_max;
        let run = match self.take_loaded() {
            Some(loaded) => self.read_loaded(window, loaded),
            None => {
                let mut run = Run::Goes;
                while run == Run::Goes && window.bytes.len() < bytes_max {
                    run = self.read_more(window, bytes_max)?;
                }
                run
            }
        };
        // Lanes come one after another in each batch, each in order: a merge of runs.
        window.places.sort_by_key(|place| place.ticket);
        let ready = window.places.partition_point(|place| place.ticket < self.low);
        if run == Run::Ended {
            let last = window.places.last().map_or(0, |place| place.ticket + 1);
            self.high = self.next_ticket(last);
            self.is_over = !self.find_next_run()?;
        } else {
            self.hold(window, ready);
        }
        window.places.truncate(ready);
        let below = window.places.partition_point(|place| place.ticket < self.from);
        window.places.drain(..below);
        Ok(true)
    }

    fn hold(&mut self, window: &Window, from: usize) {
        for place in &window.places[from..] {
            let start = self.held.bytes.len() as u32;
            let bytes = window.at(place.start, place.length as usize);
            self.held.bytes.extend_from_slice(bytes);
            self.held.places.push(Place { start, ..*place });
        }
    }

    /// Verifies a segment that was read ahead and takes it into `window`.
    fn read_loaded(&mut self, window: &mut Window, loaded: Loaded) -> Run {
        let Loaded { file, block, sound, ends, places, .. } = loaded;
        let size_bytes = block.bytes().len() as u64;
        let mut open = Open { file, size_bytes, offset: 0, has_batches: false };
        window.block = block;
        let (mut at, mut ends, mut taken) = (0, ends.into_iter(), 0);
        // No batch follows the sound ones.
        while at < sound
            && let Found::Batch(header) =
                self.chain.look_at(&window.block.bytes()[at..], Checksum::Right)
            && let Some(end) = ends.next()
        {
            self.take(header, &mut open);
            taken = end as usize;
            let length = HEADER_BYTES + header.length as usize;
            at = (at + length.next_multiple_of(self.block_bytes)).min(size_bytes as usize);
        }
        window.places.extend_from_slice(&places[..taken]);
        if at == 0 {
            return Run::Ended;
        }
        self.stopped_at = (self.segment, at as u64);
        self.read_bytes += at as u64;
        self.segment += 1;
        Run::Goes
    }

    /// First ticket that no record has, `last` being one more than the largest of those dropped.
    fn next_ticket(&self, last: u64) -> u64 {
        self.high.max(self.low).max(last).max(self.from)
    }

    /// Reads and verifies as much of one segment as fits `window`.
    fn read_more(&mut self, window: &mut Window, bytes_max: usize) -> io::Result<Run> {
        let Some(mut open) = self.opened()? else { return Ok(Run::Ended) };
        let base = window.bytes.len();
        let left = open.size_bytes - open.offset;
        let wanted = left.min(bytes_max.saturating_sub(base).max(self.block_bytes) as u64);
        let mut available = append(&*open.file, open.offset, wanted as usize, &mut window.bytes)?;
        let mut at = 0;
        let is_chain_here = loop {
            match self.chain.look(&window.bytes[base + at..]) {
                Found::Batch(header) => {
                    window.collect(base + at, header);
                    self.take(header, &mut open);
                    let length = HEADER_BYTES + header.length as usize;
                    at += length.next_multiple_of(self.block_bytes);
                }
                // The rest of it may not have been read yet.
                Found::Part(needed) if at == available && needed == HEADER_BYTES => {
                    break available < left as usize;
                }
                // A length that no batch here can have.
                Found::Part(needed) if at + needed > left as usize => break false,
                Found::Part(needed) => {
                    let wanted = (at + needed).next_multiple_of(self.block_bytes) - available;
                    let offset = open.offset + available as u64;
                    let more = append(&*open.file, offset, wanted, &mut window.bytes)?;
                    available += more;
                    if more == 0 || available < at + needed {
                        break false;
                    }
                }
                Found::Nothing => break false,
            }
            if at >= available {
                break at < left as usize;
            }
        };
        window.bytes.truncate(base + at.min(available));
        open.offset += at as u64;
        if at > 0 {
            self.stopped_at = (self.segment, open.offset);
        }
        self.read_bytes += at as u64;
        let has_batches = open.has_batches;
        match (is_chain_here, has_batches) {
            (true, _) => self.open = Some(open),
            (false, true) => self.segment += 1,
            (false, false) => return Ok(Run::Ended),
        }
        Ok(Run::Goes)
    }

    /// Extends the chain by a batch.
    fn take(&mut self, header: Header, open: &mut Open) {
        if !open.has_batches {
            open.has_batches = true;
            self.segments.push(self.position());
        }
        self.chain.batch += 1;
        self.chain.crc = header.crc;
        (self.low, self.high) = (header.low, self.high.max(header.high));
    }

    fn position(&self) -> LogPosition {
        LogPosition {
            segment: self.segment,
            epoch: self.chain.epoch,
            batch: self.chain.batch,
            previous_crc: self.chain.crc,
            low: self.low,
            high: self.high,
        }
    }

    /// The segment to read; `None` if the file does not exist.
    fn opened(&mut self) -> io::Result<Option<Open>> {
        if let Some(open) = self.open.take() {
            return Ok(Some(open));
        }
        let file = match self.disk.open(&segment_name(self.segment), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // W10: batches accepted now must survive the next crash too.
        file.sync()?;
        let size_bytes = file.size_bytes()?;
        Ok(Some(Open { file, size_bytes, offset: 0, has_batches: false }))
    }

    /// W10: the run after this one, whose first segment continues the chain under the next epoch.
    fn find_next_run(&mut self) -> io::Result<bool> {
        let chain = Chain { epoch: self.chain.epoch + 1, ..self.chain };
        let last = self.segments.last().map_or(0, |start| start.segment);
        let mut numbers = segment_numbers(self.disk)?;
        numbers.retain(|number| *number > last);
        for number in numbers {
            let file = self.disk.open(&segment_name(number), OpenMode::Existing)?;
            let mut start = Vec::new();
            append(&*file, 0, HEADER_BYTES, &mut start)?;
            if let Found::Part(needed) = chain.look(&start) {
                let more = needed.saturating_sub(start.len());
                append(&*file, start.len() as u64, more, &mut start)?;
            }
            if let Found::Batch(_) = chain.look(&start) {
                self.chain = chain;
                self.segment = number;
                self.stopped_at = (number, 0);
                self.low = self.high;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Examines the end of the log, after `next` has returned false. Batches below `durable` were durable when the checkpoint
    /// was taken.
    ///
    /// # Errors
    /// I/O.
    pub fn end(self, durable: u64) -> io::Result<ReplayEnd> {
        let last = segment_numbers(self.disk)?.last().copied().unwrap_or(0);
        let (segment, offset) = self.stopped_at;
        let end = End { segment, offset, epoch: self.chain.epoch, batch: self.chain.batch };
        let damage = find_damage(self.disk, end, durable, self.block_bytes)?;
        let beyond = damage.as_ref().map_or(0, |damage| damage.high);
        let next_ticket = self.next_ticket(beyond);
        let next = LogPosition {
            segment: last.max(self.segment) + 1,
            epoch: self.chain.epoch + 1,
            batch: self.chain.batch,
            previous_crc: self.chain.crc,
            low: next_ticket,
            high: next_ticket,
        };
        let (cut, read_bytes) = (self.low, self.read_bytes);
        Ok(ReplayEnd { cut, next, next_ticket, read_bytes, segments: self.segments, damage })
    }
}

/// Appends up to `count` bytes of a file to `out`; returns how many there were.
pub(crate) fn append(
    file: &dyn File,
    offset: u64,
    count: usize,
    out: &mut Vec<u8>,
) -> io::Result<usize> {
    let start = out.len();
    out.resize(start + count, 0);
    let read = file.read_at(&mut out[start..], offset)?;
    out.truncate(start + read);
    Ok(read)
}

/// Numbers of the segments present, ascending.
pub(crate) fn segment_numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> =
        disk.list()?.iter().filter_map(|name| segment_number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Hands every record with `from <= ticket` to `apply`, in ticket order within each run.
///
/// # Errors
/// I/O; errors of `apply`.
pub fn replay(
    disk: &dyn Disk,
    position: LogPosition,
    from: u64,
    block_bytes: usize,
    mut apply: impl FnMut(Record<'_>) -> io::Result<()>,
) -> io::Result<ReplayEnd> {
    const WINDOW_BYTES: usize = 1 << 20;
    let mut reader = LogReader::new(disk, position, from, block_bytes);
    let mut window = Window::new();
    while reader.next(&mut window, WINDOW_BYTES)? {
        window.records().try_for_each(|(_, record)| apply(record))?;
    }
    reader.end(0)
}

/// Bytes of the segment files from `position` on: the most that a replay reads.
///
/// # Errors
/// I/O.
pub fn replay_bytes(disk: &dyn Disk, position: LogPosition) -> io::Result<u64> {
    let mut total = 0;
    for number in segment_numbers(disk)? {
        if number >= position.segment {
            total += disk.open(&segment_name(number), OpenMode::Existing)?.size_bytes()?;
        }
    }
    Ok(total)
}

/// Takes away every log file but the segments in `kept`: old ones that no checkpoint needs, those without a batch, those prepared for use. As
/// many as the reserve lacks become files of the reserve: on a full file system their blocks might not be had again.
///
/// # Errors
/// I/O.
pub fn remove_segments_except(
    disk: &dyn Disk,
    config: &LogConfig,
    kept: &[LogPosition],
) -> io::Result<()> {
    let names = disk.list()?;
    let numbers = names.iter().filter_map(|name| name.strip_prefix(RESERVE_PREFIX));
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let mut last = numbers.iter().copied().max().unwrap_or(0);
    // One more than the reserve, which is the first segment of this run.
    let mut missing = (config.reserve_segments + 1).saturating_sub(numbers.len());
    for name in names {
        let Some(number) = segment_number(&name) else { continue };
        if kept.iter().any(|start| start.segment == number) {
            continue;
        }
        let is_whole = config.reserve_segments > 0
            && missing > 0
            && disk.open(&name, OpenMode::Existing)?.size_bytes()? == config.segment_bytes;
        if is_whole {
            missing -= 1;
            last += 1;
            disk.rename(&name, &reserve_name(last))?;
        } else {
            disk.remove(&name)?;
        }
    }
    Ok(())
}
