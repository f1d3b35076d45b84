//! What one writing transaction shows to others: its id, its commit time, its undo.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use locks::Owner;
use sys::sync::Mutex;

/// Commit time of a transaction that has not ended.
const ACTIVE: u64 = 0;
/// Commit time of a transaction that was rolled back.
pub const ABORTED: u64 = u64::MAX;

/// Offset of an undo entry plus one; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndoPointer(pub u64);

/// Bytes in front of an undo payload: length:32, pointer to the entry before:64.
const ENTRY_HEADER_BYTES: usize = 12;

/// Append-only undo entries, chained backwards.
#[derive(Default)]
pub(crate) struct UndoLog {
    pub bytes: Vec<u8>,
    /// The newest entry not undone.
    pub last: u64,
}

impl UndoLog {
    pub fn push(&mut self, payload: &[u8]) -> u64 {
        let pointer = self.bytes.len() as u64 + 1;
        self.bytes.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(&self.last.to_le_bytes());
        self.bytes.extend_from_slice(payload);
        self.last = pointer;
        pointer
    }

    /// Recovery: puts an entry at its place, whatever was there (X6).
    pub fn restore(&mut self, pointer: u64, previous: u64, payload: &[u8]) {
        let start = pointer as usize - 1;
        let end = start + ENTRY_HEADER_BYTES + payload.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..start + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        self.bytes[start + 4..start + 12].copy_from_slice(&previous.to_le_bytes());
        self.bytes[start + 12..end].copy_from_slice(payload);
        self.last = pointer;
    }

    /// The entry before, and the payload.
    pub fn entry(&self, pointer: u64) -> Option<(u64, &[u8])> {
        let start = (pointer as usize).checked_sub(1)?;
        let mut reader = stdx::bytes::Reader::new(self.bytes.get(start..)?);
        let length = reader.u32()? as usize;
        let previous = reader.u64()?;
        Some((previous, reader.take(length)?))
    }
}

/// A writing transaction.
pub struct Core {
    /// Ticket of its first write.
    pub id: u64,
    /// Its locks.
    pub owner: Arc<Owner>,
    pub(crate) commit: AtomicU64,
    /// First ticket at which nobody can have copied a row of it before its rollback ended.
    pub(crate) ended: AtomicU64,
    pub(crate) undo: Mutex<UndoLog>,
    /// How far purge got: entries up to this pointer need no more work.
    pub(crate) purged: AtomicU64,
}

impl Core {
    pub(crate) fn new(id: u64, owner: Arc<Owner>) -> Core {
        Core {
            id,
            owner,
            commit: AtomicU64::new(ACTIVE),
            ended: AtomicU64::new(0),
            undo: Mutex::new(UndoLog::default()),
            purged: AtomicU64::new(0),
        }
    }

    /// Whether it has neither committed nor finished rolling back.
    pub fn is_active(&self) -> bool {
        self.commit.load(Ordering::Acquire) == ACTIVE
    }

    /// Commit ticket, when committed.
    pub fn committed(&self) -> Option<u64> {
        match self.commit.load(Ordering::Acquire) {
            ACTIVE | ABORTED => None,
            ticket => Some(ticket),
        }
    }

    /// Where the next undo entry will be. Only the owning thread pushes.
    pub fn next_undo(&self) -> UndoPointer {
        UndoPointer(self.undo.lock().bytes.len() as u64 + 1)
    }

    /// The newest entry not undone.
    pub fn last_undo(&self) -> UndoPointer {
        UndoPointer(self.undo.lock().last)
    }

    /// Replaces `out` with the payload of an entry and returns the entry before it; `None` when there is none.
    pub fn read_undo(&self, pointer: UndoPointer, out: &mut Vec<u8>) -> Option<UndoPointer> {
        let undo = self.undo.lock();
        let (previous, payload) = undo.entry(pointer.0)?;
        out.clear();
        out.extend_from_slice(payload);
        Some(UndoPointer(previous))
    }

    /// Pointers of all entries not undone, oldest first.
    pub fn undo_entries(&self) -> Vec<UndoPointer> {
        let undo = self.undo.lock();
        let (mut pointers, mut at) = (Vec::new(), undo.last);
        while let Some((previous, _)) = undo.entry(at) {
            pointers.push(UndoPointer(at));
            at = previous;
        }
        pointers.reverse();
        pointers
    }

    /// How far purge got.
    pub fn purged(&self) -> UndoPointer {
        UndoPointer(self.purged.load(Ordering::Acquire))
    }

    /// Bytes of undo.
    pub fn undo_bytes(&self) -> usize {
        self.undo.lock().bytes.len()
    }
}
