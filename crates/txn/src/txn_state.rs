//! The state of one writing transaction that others read: its id, its commit time, its undo.

use std::io;
use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locks::Owner;
use sys::sync::Mutex;

use crate::undo_log::{UndoLog, UndoSpace};

/// Commit time of a transaction that has not ended.
const ACTIVE: u64 = 0;
/// Commit time of a transaction that was rolled back.
pub const ABORTED: u64 = u64::MAX;

/// Offset of an undo entry plus one; 0 means no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UndoPointer(pub u64);

/// The shared state of a writing transaction.
pub struct TxnState {
    /// Ticket of its first write.
    pub id: u64,
    /// Its locks.
    pub owner: Arc<Owner>,
    pub(crate) commit: AtomicU64,
    /// First ticket at which no reader can still have a row copied before its rollback ended.
    pub(crate) ended: AtomicU64,
    pub(crate) undo: Mutex<UndoLog>,
    /// Progress of purge: entries up to this pointer need no more work.
    pub(crate) purged: AtomicU64,
    /// Whether any entry may have left something to purge.
    pub(crate) garbage: AtomicBool,
    /// The name under which it is prepared (X17).
    pub(crate) name: Mutex<Option<Arc<[u8]>>>,
}

impl TxnState {
    pub(crate) fn new(id: u64, owner: Arc<Owner>, undo: UndoLog) -> TxnState {
        TxnState {
            id,
            owner,
            commit: AtomicU64::new(ACTIVE),
            ended: AtomicU64::new(0),
            undo: Mutex::new(undo),
            purged: AtomicU64::new(0),
            garbage: AtomicBool::new(true),
            name: Mutex::new(None),
        }
    }

    /// Like `new`, for a transaction whose changes all go through `TxnSystem`.
    pub(crate) fn fresh(id: u64, owner: Arc<Owner>, undo: UndoLog) -> TxnState {
        TxnState { garbage: AtomicBool::new(false), ..TxnState::new(id, owner, undo) }
    }

    /// Whether any change may have left something to purge.
    pub fn has_garbage(&self) -> bool {
        self.garbage.load(Ordering::Relaxed)
    }

    /// Whether it has neither committed nor finished rolling back.
    pub fn is_active(&self) -> bool {
        self.commit.load(Ordering::Acquire) == ACTIVE
    }

    /// The name under which it is prepared, or was when it committed.
    pub fn prepared_name(&self) -> Option<Arc<[u8]>> {
        self.name.lock().clone()
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

    /// Replaces `out` with the payload of an entry and returns the previous entry; `None` if no such entry exists.
    pub fn read_undo(&self, pointer: UndoPointer, out: &mut Vec<u8>) -> Option<UndoPointer> {
        self.undo.lock().read(pointer.0, out).map(UndoPointer)
    }

    /// Pointers of the entries not undone that purge has not done, oldest first.
    pub fn undo_entries(&self) -> UndoEntries<'_> {
        UndoEntries::new(self, ENTRIES_AT_ONCE)
    }

    /// The progress of purge.
    pub fn purged(&self) -> UndoPointer {
        UndoPointer(self.purged.load(Ordering::Acquire))
    }

    /// The newest entry not undone, before a change begins: entries beyond the limit go to a file now, while no latch is held.
    pub(crate) fn start_change(&self, space: &UndoSpace) -> io::Result<UndoPointer> {
        let mut undo = self.undo.lock();
        undo.spill_if_large(space).or_else(|error| undo.check_memory(space, error))?;
        Ok(UndoPointer(undo.last))
    }

    /// The subjects of its undo entries (X16), undone ones included; `None` if an earlier version wrote the entries, so that only they can say.
    pub fn subjects(&self) -> Option<Vec<u64>> {
        let undo = self.undo.lock();
        undo.subjects.as_ref().map(|subjects| subjects.iter().collect())
    }

    /// Bytes of undo in memory, and in a file.
    pub fn undo_bytes(&self) -> (usize, u64) {
        let undo = self.undo.lock();
        (undo.bytes.len(), undo.base)
    }
}

/// Entries held in memory at a time.
const ENTRIES_AT_ONCE: usize = 4096;

/// Iterates over entries from the oldest on, although each names only the previous one: a first pass backward notes one entry in many, then the entries
/// between two notes are read again, so that memory does not grow with the transaction.
pub struct UndoEntries<'t> {
    core: &'t TxnState,
    at_once: usize,
    /// The newest entries of the remaining parts, newest part first, and the entry before the oldest part.
    parts: Vec<u64>,
    before: u64,
    /// Entries of the current part, newest first.
    entries: Vec<u64>,
}

impl<'t> UndoEntries<'t> {
    pub(crate) fn new(core: &'t TxnState, at_once: usize) -> UndoEntries<'t> {
        let before = core.purged().0;
        let mut undo = core.undo.lock();
        let (mut parts, mut at, mut count) = (Vec::new(), undo.last, 0);
        while at > before
            && let Some(previous) = undo.previous(at)
        {
            if count % at_once == 0 {
                parts.push(at);
            }
            count += 1;
            at = previous;
        }
        drop(undo);
        UndoEntries { core, at_once, parts, before, entries: Vec::new() }
    }
}

impl Iterator for UndoEntries<'_> {
    type Item = UndoPointer;

    fn next(&mut self) -> Option<UndoPointer> {
        if self.entries.is_empty() {
            let mut at = self.parts.pop()?;
            let mut undo = self.core.undo.lock();
            while at > self.before
                && self.entries.len() < self.at_once
                && let Some(previous) = undo.previous(at)
            {
                self.entries.push(at);
                at = previous;
            }
        }
        self.entries.pop().map(UndoPointer)
    }
}
