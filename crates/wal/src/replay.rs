//! Reading a log back: verifies the chain, finds the cut, hands out records in ticket order.

use std::io;

use sys::disk::{Disk, OpenMode};

use crate::batch::{HEADER_BYTES, Header, RECORD_HEADER_BYTES, record_length};
use crate::log::LogPosition;
use crate::writer::{segment_name, segment_number};

/// A record as it was appended.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The caller's kind.
    pub kind: u8,
    /// Its ticket.
    pub ticket: u64,
    /// The caller's bytes.
    pub body: &'a [u8],
    /// Bytes of log read so far.
    pub read_bytes: u64,
}

/// Where a log ended, and where the next run must start (W8).
#[derive(Clone, Copy, Debug)]
pub struct ReplayEnd {
    /// Records below it were handed out.
    pub cut: u64,
    /// Start of the next run.
    pub next: LogPosition,
    /// First ticket of the next run.
    pub next_ticket: u64,
    /// Bytes of batches read.
    pub read_bytes: u64,
}

struct Pending {
    ticket: u64,
    start: usize,
    length: usize,
}

/// Hands every record with `from <= ticket < cut` to `apply`, in ticket order.
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
    let mut chain = Chain { position, batch: position.batch, crc: position.previous_crc };
    let (mut low, mut high) = (position.low, position.high);
    let mut held = Vec::new();
    let mut pending: Vec<Pending> = Vec::new();
    let mut read_bytes = 0;
    let mut segment = position.segment;
    while let Some(bytes) = read_segment(disk, segment)? {
        let mut offset = 0;
        let mut found = false;
        while let Some(header) = chain.accept(&bytes, offset) {
            found = true;
            let records = &bytes[offset + HEADER_BYTES..][..header.length as usize];
            collect(records, held.len(), &mut pending);
            held.extend_from_slice(records);
            (low, high) = (header.low, high.max(header.high));
            let length =
                (HEADER_BYTES + header.length as usize).div_ceil(block_bytes) * block_bytes;
            offset += length;
            read_bytes += length as u64;
            release(&mut held, &mut pending, (low, from, read_bytes), &mut apply)?;
        }
        if !found {
            break;
        }
        segment += 1;
    }
    let last = disk.list()?.iter().filter_map(|name| segment_number(name)).max().unwrap_or(segment);
    let highest = pending.iter().map(|record| record.ticket + 1).max().unwrap_or(0);
    let next_ticket = high.max(low).max(highest).max(from);
    let next = LogPosition {
        segment: last.max(segment) + 1,
        epoch: position.epoch + 1,
        batch: chain.batch,
        previous_crc: chain.crc,
        low: next_ticket,
        high: next_ticket,
    };
    Ok(ReplayEnd { cut: low, next, next_ticket, read_bytes })
}

struct Chain {
    position: LogPosition,
    batch: u64,
    crc: u32,
}

impl Chain {
    /// The batch at `offset`, when it continues the chain (W4).
    fn accept(&mut self, bytes: &[u8], offset: usize) -> Option<Header> {
        let rest = bytes.get(offset..)?;
        let (header, crc) = Header::parse(rest)?;
        let end = HEADER_BYTES.checked_add(header.length as usize)?;
        let expected = header.number == self.batch
            && header.previous_crc == self.crc
            && header.epoch == self.position.epoch;
        if !expected || crc32c::crc32c(rest.get(8..end)?) != crc {
            return None;
        }
        self.batch += 1;
        self.crc = crc;
        Some(header)
    }
}

fn read_segment(disk: &dyn Disk, number: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(&segment_name(number), OpenMode::Existing) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = vec![0; file.size_bytes()? as usize];
    let count = file.read_at(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(Some(bytes))
}

fn collect(records: &[u8], base: usize, pending: &mut Vec<Pending>) {
    let mut start = 0;
    while let Some(length) = record_length(&records[start..]) {
        let ticket = records[start + 8..start + 16].try_into().map_or(0, u64::from_le_bytes);
        pending.push(Pending { ticket, start: base + start, length });
        start += length;
    }
}

/// Hands out what is below `low` and keeps the rest for the next batch.
fn release(
    held: &mut Vec<u8>,
    pending: &mut Vec<Pending>,
    (low, from, read_bytes): (u64, u64, u64),
    apply: &mut impl FnMut(Record<'_>) -> io::Result<()>,
) -> io::Result<()> {
    pending.sort_by_key(|record| record.ticket);
    let ready = pending.partition_point(|record| record.ticket < low);
    for record in pending.drain(..ready) {
        if record.ticket >= from {
            let bytes = &held[record.start..record.start + record.length];
            let body = &bytes[RECORD_HEADER_BYTES..];
            apply(Record { kind: bytes[4], ticket: record.ticket, body, read_bytes })?;
        }
    }
    let mut kept = Vec::new();
    for record in pending.iter_mut() {
        let start = kept.len();
        kept.extend_from_slice(&held[record.start..record.start + record.length]);
        record.start = start;
    }
    *held = kept;
    Ok(())
}

/// Bytes of the segment files from `position` on: what a replay reads at most.
///
/// # Errors
/// I/O.
pub fn replay_bytes(disk: &dyn Disk, position: LogPosition) -> io::Result<u64> {
    let mut total = 0;
    for name in disk.list()? {
        if segment_number(&name).is_some_and(|number| number >= position.segment) {
            total += disk.open(&name, OpenMode::Existing)?.size_bytes()?;
        }
    }
    Ok(total)
}

/// Removes segments that no checkpoint needs any more: those numbered below `segment`.
///
/// # Errors
/// I/O.
pub fn remove_segments_before(disk: &dyn Disk, segment: u64) -> io::Result<()> {
    for name in disk.list()? {
        if segment_number(&name).is_some_and(|number| number < segment) {
            disk.remove(&name)?;
        }
    }
    Ok(())
}
