//! What one writing transaction shows to others: its id, its commit time, its undo.

use std::sync::Arc;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use locks::Owner;
use sys::sync::Mutex;

use crate::undo_log::{UndoLog, UndoSpace};

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
    /// The name under which it is prepared (X17).
    pub(crate) name: Mutex<Option<Arc<[u8]>>>,
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
            name: Mutex::new(None),
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

    /// Replaces `out` with the payload of an entry and returns the entry before it; `None` when there is none.
    pub fn read_undo(&self, pointer: UndoPointer, out: &mut Vec<u8>) -> Option<UndoPointer> {
        self.undo.lock().read(pointer.0, out).map(UndoPointer)
    }

    /// Pointers of the entries not undone that purge has not done, oldest first.
    pub fn undo_entries(&self) -> UndoEntries<'_> {
        UndoEntries::new(self, ENTRIES_AT_ONCE)
    }

    /// How far purge got.
    pub fn purged(&self) -> UndoPointer {
        UndoPointer(self.purged.load(Ordering::Acquire))
    }

    /// The newest entry not undone, before a change begins: entries beyond the limit go to a file now, while no latch is held.
    pub(crate) fn start_change(&self, space: &UndoSpace) -> UndoPointer {
        let mut undo = self.undo.lock();
        undo.spill_if_large(space);
        UndoPointer(undo.last)
    }

    /// What its undo entries are about (X16), those undone included; `None` when only they can say, as an earlier version wrote them.
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

/// Entries that are known at a time.
const ENTRIES_AT_ONCE: usize = 4096;

/// Entries from the oldest on, although each knows only the one before it: a first pass backward notes one entry of many, then the entries between two
/// notes are looked up again, so that memory does not grow with the transaction.
pub struct UndoEntries<'c> {
    core: &'c Core,
    at_once: usize,
    /// The newest entries of the parts that are left, newest part first, and the entry before the oldest part.
    parts: Vec<u64>,
    before: u64,
    /// Of the part under way, newest first.
    entries: Vec<u64>,
}

impl<'c> UndoEntries<'c> {
    pub(crate) fn new(core: &'c Core, at_once: usize) -> UndoEntries<'c> {
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
