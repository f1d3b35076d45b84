//! Following a log's files: whole verified batches, front to back, as a backup and an archive copy them.
//!
//! Reads files only, independent of lanes and waiting threads. `Log::durable_end` says how far a running log's files are
//! valid; a log that does not run is valid as far as its chain goes, as for a replay (W4, W10).

use std::io;
use std::sync::Arc;

use sys::disk::{Disk, File, OpenMode};

use crate::batch::{HEADER_BYTES, Header, RECORD_HEADER_BYTES, record_length};
use crate::log::LogPosition;
use crate::replay::{Chain, Found, Record, append, segment_numbers};
use crate::writer::segment_name;

/// A place in the log's files: everything before it in its segment is whole batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// Number of the segment.
    pub segment: u64,
    /// Offset in it.
    pub offset: u64,
}

/// Whole batches of one segment.
#[derive(Clone, Copy, Debug)]
pub struct Batches<'a> {
    /// Their place.
    pub place: LogPlace,
    /// Their bytes, padding included.
    pub bytes: &'a [u8],
    /// `low` of the last of them: records below it are in these batches or in earlier ones.
    pub low: u64,
    /// The run of the log that they are from: where it changes, records at or above `low` of the batch before were lost (W10).
    pub epoch: u32,
}

impl<'a> Batches<'a> {
    /// Their records in the order of the file, each with the place of its body.
    pub fn records(self, block_bytes: usize) -> impl Iterator<Item = (LogPlace, Record<'a>)> {
        let Batches { place, bytes, .. } = self;
        // Of the batch that is being read: the next record, and where the records end.
        let (mut at, mut end, mut next) = (0, 0, 0);
        std::iter::from_fn(move || {
            while at >= end {
                let header = Header::parse(bytes.get(next..)?)?;
                at = next + HEADER_BYTES;
                end = at + header.length as usize;
                next = end.next_multiple_of(block_bytes);
            }
            let length = record_length(bytes.get(at..end)?)?;
            let record = &bytes[at..at + length];
            let ticket = record[8..16].try_into().map_or(0, u64::from_le_bytes);
            let start = at + RECORD_HEADER_BYTES;
            at += length;
            let body = &record[RECORD_HEADER_BYTES..];
            let place = LogPlace { offset: place.offset + start as u64, ..place };
            Some((place, Record { kind: record[4], ticket, body }))
        })
    }
}

/// Reads `length` bytes of a record again, from a place that `Batches::records` gave, in a segment that is pinned.
///
/// # Errors
/// I/O; `UnexpectedEof` for a file that is too short.
pub fn read_again(
    disk: &dyn Disk,
    place: LogPlace,
    length: usize,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let file = disk.open(&segment_name(place.segment), OpenMode::Existing)?;
    match append(&*file, place.offset, length, out)? == length {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The starts of the segments present from number `from` on that hold the log before segment `before`.
///
/// # Errors
/// I/O.
pub fn positions_before(disk: &dyn Disk, from: u64, before: u64) -> io::Result<Vec<LogPosition>> {
    let mut found = Vec::new();
    for segment in segment_numbers(disk)? {
        if segment < from || segment >= before {
            continue;
        }
        found.extend(first_batch(disk, segment)?);
    }
    Ok(found)
}

/// The state of the chain before the first batch of a segment; `None` when it has none.
fn first_batch(disk: &dyn Disk, segment: u64) -> io::Result<Option<LogPosition>> {
    let mut head = Vec::new();
    match disk.open(&segment_name(segment), OpenMode::Existing) {
        Ok(file) => append(&*file, 0, HEADER_BYTES, &mut head)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    Ok(Header::parse(&head).map(|header| {
        let Header { epoch, number: batch, previous_crc, low, high, .. } = header;
        LogPosition { segment, epoch, batch, previous_crc, low, high }
    }))
}

/// Bytes handed out at a time, unless a batch is larger.
const STRETCH_BYTES: u64 = 1 << 20;

#[derive(Clone)]
struct Open {
    segment: u64,
    file: Arc<dyn File>,
}

/// Reads batches from a position on. Can be called again when the log has grown. A clone reads independently.
#[derive(Clone)]
pub struct Follower {
    disk: Arc<dyn Disk>,
    block_bytes: usize,
    chain: Chain,
    place: LogPlace,
    low: u64,
    high: u64,
    open: Option<Open>,
    bytes: Vec<u8>,
}

fn damaged(place: LogPlace) -> io::Error {
    let LogPlace { segment, offset } = place;
    let text = format!("the log is damaged: {} at byte {offset}", segment_name(segment));
    io::Error::new(io::ErrorKind::InvalidData, text)
}

impl Follower {
    /// From the start of a segment on.
    pub fn new(disk: Arc<dyn Disk>, position: LogPosition, block_bytes: usize) -> Follower {
        let LogPosition { segment, epoch, batch, previous_crc, low, high } = position;
        Follower {
            disk,
            block_bytes,
            chain: Chain { epoch, batch, crc: previous_crc },
            place: LogPlace { segment, offset: 0 },
            low,
            high,
            open: None,
            bytes: Vec::new(),
        }
    }

    /// Follows from the start of a segment, whose first batch names its predecessor. `None` if it has no batch.
    ///
    /// # Errors
    /// I/O.
    pub fn at_segment(
        disk: Arc<dyn Disk>,
        segment: u64,
        block_bytes: usize,
    ) -> io::Result<Option<Follower>> {
        let first = first_batch(&*disk, segment)?;
        Ok(first.map(|position| Follower::new(disk, position, block_bytes)))
    }

    /// Goes on in the files of another disk, which hold the same log.
    pub fn on(self, disk: Arc<dyn Disk>) -> Follower {
        Follower { disk, open: None, ..self }
    }

    /// Everything before it was handed out.
    pub fn place(&self) -> LogPlace {
        self.place
    }

    /// `low` of the last batch handed out.
    pub fn low(&self) -> u64 {
        self.low
    }

    /// Every ticket in the batches handed out is below it.
    pub fn high(&self) -> u64 {
        self.high
    }

    /// Number of the batch that must come next.
    pub fn batch(&self) -> u64 {
        self.chain.batch
    }

    /// Whether both are at the end of the same batch.
    pub fn is_same_chain(&self, other: &Follower) -> bool {
        (self.chain.batch, self.chain.crc) == (other.chain.batch, other.chain.crc)
    }

    /// Goes on to the batch before number `batch`; false when the log ends earlier.
    ///
    /// # Errors
    /// I/O.
    pub fn skip_to(&mut self, batch: u64) -> io::Result<bool> {
        while self.chain.batch < batch {
            if self.next_of(None, batch)?.is_none() {
                return Ok(false);
            }
        }
        Ok(self.chain.batch == batch)
    }

    /// The next batches, none of them after `end`; `None` if there are no more for now, or ever.
    ///
    /// # Errors
    /// I/O; `InvalidData` when the chain ends before `end`.
    pub fn next(&mut self, end: Option<LogPlace>) -> io::Result<Option<Batches<'_>>> {
        self.next_of(end, u64::MAX)
    }

    fn next_of(&mut self, end: Option<LogPlace>, below: u64) -> io::Result<Option<Batches<'_>>> {
        loop {
            if end.is_some_and(|end| self.place >= end) {
                return Ok(None);
            }
            let place = self.place;
            let taken = self.read(end, below)?;
            if taken > 0 {
                self.place.offset += taken as u64;
                let bytes = &self.bytes[..taken];
                return Ok(Some(Batches { place, bytes, low: self.low, epoch: self.chain.epoch }));
            }
            if !self.enter_next_segment()? {
                // A run that has written nothing yet ends at the start of a segment.
                let is_due = end.is_some_and(|end| end.offset > 0);
                return if is_due { Err(damaged(place)) } else { Ok(None) };
            }
        }
    }

    fn opened(&mut self) -> io::Result<Option<Arc<dyn File>>> {
        if let Some(open) = &self.open
            && open.segment == self.place.segment
        {
            return Ok(Some(open.file.clone()));
        }
        let segment = self.place.segment;
        let file = match self.disk.open(&segment_name(segment), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        self.open = Some(Open { segment, file: file.clone() });
        Ok(Some(file))
    }

    /// Reads and verifies the bytes at the place; returns those of whole batches.
    fn read(&mut self, end: Option<LogPlace>, below: u64) -> io::Result<usize> {
        let Some(file) = self.opened()? else { return Ok(0) };
        if end.is_none() {
            // As in a replay: accepted batches must survive the next crash too (W10).
            file.sync()?;
        }
        let here = end.filter(|end| end.segment == self.place.segment);
        let limit = here.map_or(file.size_bytes()?, |end| end.offset);
        let left = limit.saturating_sub(self.place.offset) as usize;
        let mut wanted = left.min(STRETCH_BYTES as usize);
        self.bytes.clear();
        let mut at = 0;
        loop {
            let missing = wanted.saturating_sub(self.bytes.len());
            let offset = self.place.offset + self.bytes.len() as u64;
            let more = append(&*file, offset, missing, &mut self.bytes)?;
            let needed = loop {
                if self.chain.batch >= below {
                    return Ok(at);
                }
                match self.chain.look(&self.bytes[at..]) {
                    Found::Batch(header) => {
                        let length = HEADER_BYTES + header.length as usize;
                        let length = length.next_multiple_of(self.block_bytes);
                        if at + length > self.bytes.len() {
                            break length;
                        }
                        at += length;
                        self.chain.batch += 1;
                        self.chain.crc = header.crc;
                        self.low = header.low;
                        self.high = self.high.max(header.high);
                    }
                    Found::Part(needed) => break needed,
                    Found::Nothing => return Ok(at),
                }
            };
            // A batch larger than a stretch is read whole.
            if at > 0 || needed > left || more == 0 {
                return Ok(at);
            }
            wanted = needed.next_multiple_of(self.block_bytes).min(left);
        }
    }

    /// Whether the first batch of a segment continues `chain`.
    fn starts_with(&self, segment: u64, chain: Chain) -> io::Result<bool> {
        let file = match self.disk.open(&segment_name(segment), OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut start = Vec::new();
        append(&*file, 0, HEADER_BYTES, &mut start)?;
        if let Found::Part(needed) = chain.look(&start) {
            let more = needed.saturating_sub(start.len());
            append(&*file, start.len() as u64, more, &mut start)?;
        }
        Ok(matches!(chain.look(&start), Found::Batch(_)))
    }

    /// The run continues in the next segment, or the next run begins in a later one (W5, W10).
    fn enter_next_segment(&mut self) -> io::Result<bool> {
        let next = self.place.segment + 1;
        let mut found = None;
        if self.place.offset > 0 && self.starts_with(next, self.chain)? {
            found = Some((next, self.chain));
        }
        if found.is_none() {
            let chain = Chain { epoch: self.chain.epoch + 1, ..self.chain };
            for segment in segment_numbers(&*self.disk)? {
                let is_later = segment > self.place.segment
                    || segment == self.place.segment && self.place.offset == 0;
                if is_later && self.starts_with(segment, chain)? {
                    found = Some((segment, chain));
                    break;
                }
            }
        }
        let Some((segment, chain)) = found else { return Ok(false) };
        self.chain = chain;
        self.place = LogPlace { segment, offset: 0 };
        Ok(true)
    }
}

/// Ends a log in the middle of `batches`: the first batch that says that everything below `cut` was seen is made to say just that, so that a
/// replay drops the rest (W3). Returns the bytes up to and with it; `None` when no batch reaches so far.
pub fn cut_batches(batches: &Batches<'_>, cut: u64, block_bytes: usize) -> Option<Vec<u8>> {
    let mut at = 0;
    while let Some(header) = Header::parse(batches.bytes.get(at..)?) {
        let end = at + HEADER_BYTES + header.length as usize;
        if header.low >= cut {
            let mut bytes = batches.bytes[..end.next_multiple_of(block_bytes)].to_vec();
            Header { low: cut, ..header }.seal(&mut bytes[at..]);
            return Some(bytes);
        }
        at = end.next_multiple_of(block_bytes);
    }
    None
}
