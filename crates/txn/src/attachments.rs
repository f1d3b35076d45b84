//! What transactions attached to their commits, read back from the files of the log in the order of the commits.
//!
//! The reader holds no attachment in memory but those that are part of a commit's own record: it notes where the others are in the log,
//! whose files its owner pins, and reads them again when the commit is handed out.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use btree::RedoBody;
use stdx::bytes::Reader;
use sys::disk::Disk;
use wal::{Follower, Log, LogPlace, Record, read_again};

use crate::recovery::damaged;
use crate::system::{KIND_ABORTED, KIND_ATTACHED, KIND_COMMIT, KIND_DETACHED};

/// A part of an attachment in the log.
#[derive(Clone, Copy, Debug)]
struct Piece {
    place: LogPlace,
    length: usize,
}

/// A commit with an attachment, durable.
#[derive(Debug)]
pub struct AttachedCommit {
    /// Its ticket: the time of the commit in the order of all.
    pub ticket: u64,
    /// When, microseconds since 1970 UTC.
    pub micros: u64,
    /// Bytes of the attachment.
    pub length: u64,
    pieces: VecDeque<Piece>,
    /// Pieces that were read.
    read: usize,
    tail: Vec<u8>,
    /// The first segment that holds some of it.
    segment: u64,
}

impl AttachedCommit {
    /// The attachment is read from its start again.
    pub fn again(&mut self) {
        self.read = 0;
    }
}

/// A record that says something of attachments.
enum Said {
    Piece(Piece),
    /// Only so many bytes stay.
    Cut(u64),
    Commit {
        micros: u64,
        tail: Vec<u8>,
    },
    Aborted,
}

/// Such a record, which waits for those before it.
struct Held {
    ticket: u64,
    transaction: u64,
    segment: u64,
    said: Said,
}

/// Reads a running log.
pub struct AttachmentReader {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
    block_bytes: usize,
    follower: Follower,
    epoch: u32,
    /// Every record below it was taken note of.
    low: u64,
    held: Vec<Held>,
    /// Pieces of transactions that have not ended.
    open: HashMap<u64, VecDeque<Piece>>,
    ready: VecDeque<AttachedCommit>,
    /// Commits up to this ticket were handed out earlier.
    after: u64,
}

impl AttachmentReader {
    /// Starts at a segment, which must hold the log's next batch or an earlier one. Commits up to ticket `after` are left out.
    ///
    /// # Errors
    /// I/O; `NotFound` when the segment is gone.
    pub fn new(
        log: Arc<Log>,
        disk: Arc<dyn Disk>,
        block_bytes: usize,
        (segment, after): (u64, u64),
    ) -> io::Result<AttachmentReader> {
        let follower = match Follower::at_segment(disk.clone(), segment, block_bytes)? {
            Some(follower) => follower,
            // Nothing was written to it so far.
            None => {
                let position = log.position_for(u64::MAX);
                if position.segment != segment {
                    return Err(io::ErrorKind::NotFound.into());
                }
                Follower::new(disk.clone(), position, block_bytes)
            }
        };
        Ok(AttachmentReader {
            log,
            disk,
            block_bytes,
            follower,
            epoch: 0,
            low: 0,
            held: Vec::new(),
            open: HashMap::new(),
            ready: VecDeque::new(),
            after,
        })
    }

    /// The next commit with an attachment; `None` when there is none that is durable.
    ///
    /// # Errors
    /// I/O; `InvalidData` for a damaged log.
    pub fn next_commit(&mut self) -> io::Result<Option<AttachedCommit>> {
        loop {
            if let Some(commit) = self.ready.pop_front() {
                return Ok(Some(commit));
            }
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    /// Adds the next part of a commit's attachment to `out`; false at its end.
    ///
    /// # Errors
    /// I/O.
    pub fn read(&self, commit: &mut AttachedCommit, out: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(piece) = commit.pieces.get(commit.read) {
            commit.read += 1;
            read_again(&*self.disk, piece.place, piece.length, out)?;
            return Ok(true);
        }
        out.extend_from_slice(&commit.tail);
        Ok(false)
    }

    /// Every commit below this ticket was handed out, if it has an attachment.
    pub fn passed(&self) -> u64 {
        // Those up to `after` were handed out earlier, also when the segment has no batch yet.
        let low = self.low.max(self.after.saturating_add(1));
        self.ready.front().map_or(low, |commit| commit.ticket)
    }

    /// The first segment that a reader needs which goes on where this one is.
    pub fn needed_segment(&self) -> u64 {
        let open = self.open.values().flatten().map(|piece| piece.place.segment);
        let held = self.held.iter().map(|held| held.segment);
        let ready = self.ready.iter().map(|commit| commit.segment);
        open.chain(held).chain(ready).fold(self.follower.place().segment, u64::min)
    }

    /// Reads the next batches. False when there are none.
    fn read_on(&mut self) -> io::Result<bool> {
        let Some(batches) = self.follower.next(Some(self.log.durable_end()))? else {
            return Ok(false);
        };
        if batches.epoch != self.epoch {
            // A crash ended the run: what it had not completed was dropped by the recovery too (W3).
            self.held.clear();
            self.epoch = batches.epoch;
        }
        assert!(self.low <= batches.low, "`low` never goes back (W3)");
        self.low = batches.low;
        for (place, record) in batches.records(self.block_bytes) {
            if let Some((transaction, said)) = said(place, &record)? {
                let (ticket, segment) = (record.ticket, place.segment);
                self.held.push(Held { ticket, transaction, segment, said });
            }
        }
        self.take_note()?;
        Ok(true)
    }

    /// Follows the records whose predecessors have all been read.
    fn take_note(&mut self) -> io::Result<()> {
        self.held.sort_unstable_by_key(|held| held.ticket);
        let known = self.held.partition_point(|held| held.ticket < self.low);
        for Held { ticket, transaction, segment, said } in self.held.drain(..known) {
            match said {
                Said::Piece(piece) => self.open.entry(transaction).or_default().push_back(piece),
                Said::Cut(length) => cut(self.open.entry(transaction).or_default(), length),
                Said::Aborted => drop(self.open.remove(&transaction)),
                Said::Commit { micros, tail } => {
                    let pieces = self.open.remove(&transaction).unwrap_or_default();
                    let bytes = pieces.iter().map(|piece| piece.length).sum::<usize>();
                    let length = (bytes + tail.len()) as u64;
                    if length == 0 || ticket <= self.after {
                        continue;
                    }
                    debug_assert!(ticket < self.low, "every earlier commit has been read");
                    let segment = pieces.front().map_or(segment, |piece| piece.place.segment);
                    self.ready.push_back(AttachedCommit {
                        ticket,
                        micros,
                        length,
                        pieces,
                        read: 0,
                        tail,
                        segment,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Drops the bytes of pieces from `length` on.
fn cut(pieces: &mut VecDeque<Piece>, length: u64) {
    let mut left = usize::try_from(length).unwrap_or(usize::MAX);
    for piece in pieces.iter_mut() {
        piece.length = piece.length.min(left);
        debug_assert!(piece.length <= left, "only bytes that are left stay");
        left -= piece.length;
    }
    pieces.retain(|piece| piece.length > 0);
}

/// What a record says of attachments, and of which transaction.
fn said(place: LogPlace, record: &Record<'_>) -> io::Result<Option<(u64, Said)>> {
    if !matches!(record.kind, KIND_ATTACHED | KIND_DETACHED | KIND_COMMIT | KIND_ABORTED) {
        return Ok(None);
    }
    let body = RedoBody::parse(record.body).ok_or_else(damaged)?;
    let mut reader = Reader::new(body.extra);
    let transaction = reader.u64().ok_or_else(damaged)?;
    let said = match record.kind {
        KIND_ATTACHED => {
            let length = reader.rest().len();
            let offset = place.offset + (record.body.len() - length) as u64;
            Said::Piece(Piece { place: LogPlace { offset, ..place }, length })
        }
        KIND_DETACHED => Said::Cut(reader.u64().ok_or_else(damaged)?),
        KIND_ABORTED => Said::Aborted,
        _ => {
            let micros = reader.u64().unwrap_or(0);
            Said::Commit { micros, tail: reader.rest().to_vec() }
        }
    };
    Ok(Some((transaction, said)))
}
