//! What one writing transaction shows to others: its id, its commit time, its undo.

use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locks::Owner;
use sys::sync::Mutex;

use crate::undo_log::UndoLog;

/// Commit time of a transaction that has not ended.
const ACTIVE: u64 = 0;
/// Commit time of a transaction that was rolled back.
pub const ABORTED: u64 = u64::MAX;

/// Offset of an undo entry plus one; 0 is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndoPointer(pub u64);

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
    /// Whether any entry may have left something to purge.
    pub(crate) garbage: AtomicBool,
}

impl Core {
    pub(crate) fn new(id: u64, owner: Arc<Owner>, undo: UndoLog) -> Core {
        Core {
            id,
            owner,
            commit: AtomicU64::new(ACTIVE),
            ended: AtomicU64::new(0),
            undo: Mutex::new(undo),
            purged: AtomicU64::new(0),
            garbage: AtomicBool::new(true),
        }
    }

    /// As `new`, for a transaction whose every change goes through `TxnSystem`.
    pub(crate) fn fresh(id: u64, owner: Arc<Owner>, undo: UndoLog) -> Core {
        Core { garbage: AtomicBool::new(false), ..Core::new(id, owner, undo) }
    }

    /// Whether any change may have left something to purge.
    pub fn has_garbage(&self) -> bool {
        self.garbage.load(Ordering::Relaxed)
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
        UndoPointer(self.undo.lock().next())
    }

    /// The newest entry not undone.
    pub fn last_undo(&self) -> UndoPointer {
        UndoPointer(self.undo.lock().last)
    }

    /// Replaces `out` with the payload of an entry and returns the entry before it; `None` when there is none.
    pub fn read_undo(&self, pointer: UndoPointer, out: &mut Vec<u8>) -> Option<UndoPointer> {
        self.undo.lock().read(pointer.0, out).map(UndoPointer)
    }

    /// Pointers of all entries not undone, oldest first.
    pub fn undo_entries(&self) -> Vec<UndoPointer> {
        let mut undo = self.undo.lock();
        let (mut pointers, mut at) = (Vec::new(), undo.last);
        while let Some(previous) = undo.previous(at) {
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

    /// The newest entry not undone, before a change begins: entries beyond the limit go to a file now, while no latch is held.
    pub fn start_change(&self) -> UndoPointer {
        let mut undo = self.undo.lock();
        undo.spill_if_large();
        UndoPointer(undo.last)
    }

    /// Bytes of undo in memory, and in a file.
    pub fn undo_bytes(&self) -> (usize, u64) {
        let undo = self.undo.lock();
        (undo.bytes.len(), undo.base)
    }
}
