//! Undoing many changes: first their effects on secondary entries, in the order of the indexes, then the rows (E21).
//!
//! Row by row, each change would cost a read and a write of a leaf of each index, where those do not fit the pool. A window is as much of a
//! transaction's undo as can be examined without undoing any of it: up to a row that it changed before. Leaves are read ahead in
//! both passes.

use std::collections::VecDeque;

use btree::Tree;
use engine_api::{EngineResult, TableId};
use txn::{TxnState, UndoPointer};

use crate::deferred_entries::each_batch;
use crate::entry::Entry;
use crate::entry_tree::{RemoveEntry, mark_entry, put_entry, remove_entry};
use crate::error::damaged;
use crate::error::io_error;
use crate::row::{Header, UndoEntry};
use crate::shared::Shared;
use crate::sorter::Sorter;
use crate::table::Table;
use crate::undo::{EntryUndo, KeepLocks};

/// Changes of one window: their entries take some hundred megabytes of a file.
const CHANGES_MAX: usize = 4 << 20;
/// Entries that are left marked and checked again after their rows; a window ends at this number.
const MARKED_MAX: usize = 4096;
/// A window of fewer changes is not worth its cost: this many are undone one by one before the next window is tried.
const CHANGES_MIN: usize = 16;
/// Bytes of undo that a change takes at least; for the settings, which count changes.
const CHANGE_BYTES: u64 = 64;
/// Changes whose rows are read ahead together.
const AHEAD: usize = 256;
/// Changes between two waits: rolling back writes log too, and a restart must not have too much of it to replay (E11).
const BRAKE_EVERY: usize = 256;

/// Flags of a tag. Without them the tag is the length of the columns of an entry to insert.
const MARK: u16 = 1 << 15;
const REMOVE: u16 = 1 << 14;
const _: () = assert!(REMOVE as usize > 32_768 / 4, "the columns of an entry on the largest page");

/// The changes above `end`: their effects on entries are undone.
pub(crate) struct Window {
    end: u64,
    changes: usize,
    /// Entries left marked, each with its change, newest first.
    marked: VecDeque<(u64, usize, Entry)>,
}

impl Window {
    const NONE: Window = Window { end: u64::MAX, changes: 0, marked: VecDeque::new() };

    /// The entries that a change left marked.
    pub fn take_marked(&mut self, change: u64) -> Vec<(usize, Entry)> {
        let mut taken = Vec::new();
        while let Some((_, at, entry)) = self.marked.pop_front_if(|(known, ..)| *known >= change) {
            taken.push((at, entry));
        }
        taken
    }
}

/// Changes of entries, sorted for each tree.
struct Sorters<'s> {
    shared: &'s Shared,
    writer: u64,
    trees: Vec<(Tree, Sorter)>,
}

impl Sorters<'_> {
    fn add(&mut self, tree: Tree, key: &[u8], tag: u16) -> EngineResult<()> {
        let at = self.trees.iter().position(|(known, _)| known.id == tree.id);
        let at = at.unwrap_or_else(|| {
            self.trees.push((tree, self.shared.change_sorter(tree, self.writer, "undo")));
            self.trees.len() - 1
        });
        self.trees[at].1.add(key, tag).map_err(io_error)
    }
}

/// Rows that are read ahead.
struct Ahead {
    /// The place to continue at.
    next: UndoPointer,
    /// When undo comes to this place it is time to.
    when: u64,
}

impl Ahead {
    fn from(start: UndoPointer) -> Ahead {
        Ahead { next: start, when: start.0 }
    }
}

impl Shared {
    /// Undoes every change of `core` above `mark`, newest first, until `goes_on`, called after each, returns false.
    pub(crate) fn undo_while(
        &self,
        core: &TxnState,
        mark: u64,
        keep: KeepLocks,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> EngineResult<()> {
        let (mut window, mut alone, mut count): (_, usize, usize) = (Window::NONE, 0, 0);
        let mut ahead = Ahead::from(core.last_undo());
        loop {
            let last = core.last_undo().0;
            if last <= mark {
                return Ok(());
            }
            let is_covered = last > window.end;
            if !is_covered && alone == 0 && self.is_long(last - mark) {
                let Some(next) = self.open_window(core, mark, goes_on)? else { return Ok(()) };
                alone = if next.changes < CHANGES_MIN { CHANGES_MIN } else { 0 };
                window = next;
                ahead = Ahead::from(UndoPointer(last));
                continue;
            }
            alone = if is_covered { alone } else { alone.saturating_sub(1) };
            self.ask_ahead(core, mark, last, &mut ahead);
            self.undo_last(core, keep, is_covered.then_some(&mut window))?;
            count += 1;
            if count.is_multiple_of(BRAKE_EVERY) {
                self.brake();
                self.spare_log();
            }
            if !goes_on() {
                return Ok(());
            }
        }
    }

    /// Whether this much undo is worth a window.
    fn is_long(&self, undo_bytes: u64) -> bool {
        undo_bytes > self.config.direct_changes * CHANGE_BYTES
    }

    /// Asks for the rows of the next changes.
    fn ask_ahead(&self, core: &TxnState, mark: u64, last: u64, ahead: &mut Ahead) {
        if last > ahead.when || !self.system.pool.reads_ahead() {
            return;
        }
        let mut payload = Vec::new();
        let (mut keys, mut table) = (Vec::new(), None);
        ahead.when = ahead.next.0;
        for _ in 0..AHEAD {
            if ahead.next.0 <= mark {
                break;
            }
            // Undoing it reports the damage.
            let Some(before) = core.read_undo(ahead.next, &mut payload) else { break };
            ahead.next = before;
            if let Some((id, key)) = UndoEntry::decode(&payload).and_then(|entry| entry.row()) {
                if table != Some(id) {
                    self.ask_for_rows(table, &keys);
                    (keys, table) = (Vec::new(), Some(id));
                }
                keys.push(key.to_vec());
            }
        }
        self.ask_for_rows(table, &keys);
    }

    fn ask_for_rows(&self, table: Option<u64>, keys: &[Vec<u8>]) {
        if let Some(table) = table.and_then(|id| self.dictionary.get(TableId(id)).ok()) {
            table.clustered.read_ahead(&self.system.pool, keys.iter().map(Vec::as_slice));
        }
    }

    /// Undoes the effects of the newest changes above `mark` on entries. `None` if `goes_on` returned false; that loses nothing.
    fn open_window(
        &self,
        core: &TxnState,
        mark: u64,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> EngineResult<Option<Window>> {
        let mut window = Window { end: mark, ..Window::NONE };
        let mut sorters = Sorters { shared: self, writer: core.id, trees: Vec::new() };
        let mut at = core.last_undo();
        let mut ahead = Ahead::from(at);
        let (mut payload, mut current) = (Vec::new(), Vec::new());
        while at.0 > mark {
            self.ask_ahead(core, mark, at.0, &mut ahead);
            let before = core.read_undo(at, &mut payload).ok_or_else(damaged)?;
            let entry = UndoEntry::decode(&payload).ok_or_else(damaged)?;
            let is_full = window.changes == CHANGES_MAX || window.marked.len() >= MARKED_MAX;
            if is_full || !self.look_at(core, at, entry, &mut current, &mut sorters, &mut window)? {
                window.end = at.0;
                break;
            }
            window.changes += 1;
            if window.changes.is_multiple_of(BRAKE_EVERY) && !goes_on() {
                return Ok(None);
            }
            at = before;
        }
        for (tree, sorter) in sorters.trees {
            self.undo_sorted(core.id, tree, sorter)?;
        }
        Ok(Some(window))
    }

    /// Adds the changes of entries that undoing a change needs. False if they are not known yet.
    fn look_at(
        &self,
        core: &TxnState,
        at: UndoPointer,
        entry: UndoEntry<'_>,
        current: &mut Vec<u8>,
        sorters: &mut Sorters<'_>,
        window: &mut Window,
    ) -> EngineResult<bool> {
        let (id, key) = match entry {
            UndoEntry::Insert { table, key }
            | UndoEntry::Change { table, key, .. }
            | UndoEntry::Update { table, key, .. } => (table, key),
            UndoEntry::Blob { .. } => return Ok(true),
            UndoEntry::TreePages { .. }
            | UndoEntry::TreeFilled { .. }
            | UndoEntry::CreateTree { .. }
            | UndoEntry::DropTree { .. }
            | UndoEntry::Define { .. } => return Ok(false),
        };
        let Ok(table) = self.dictionary.get(TableId(id)) else { return Ok(true) };
        if !table.builds.is_empty() {
            return Ok(false);
        }
        if table.indexes.is_empty() {
            return Ok(true);
        }
        current.clear();
        if !table.clustered.get(&self.system.pool, key, current).map_err(io_error)? {
            return Ok(true);
        }
        let header = Header::of(current);
        if header.id() != core.id || header.undo != at.0 {
            // A later change of the row is not undone yet.
            return Ok(false);
        }
        let mut before = Vec::new();
        let had = entry.before(current, &mut before).ok_or_else(damaged)?;
        let before = had.then_some(&before[..]);
        self.add_entries(&table, key, current, before, at, sorters, window)?;
        Ok(true)
    }

    #[allow(clippy::too_many_arguments, reason = "a row's versions and where its entries go")]
    fn add_entries(
        &self,
        table: &Table,
        key: &[u8],
        current: &[u8],
        before: Option<&[u8]>,
        at: UndoPointer,
        sorters: &mut Sorters<'_>,
        window: &mut Window,
    ) -> EngineResult<()> {
        self.each_entry_undone(table, key, current, before, |index, undo, entry| {
            let tag = match undo {
                EntryUndo::Mark => MARK,
                EntryUndo::Remove => REMOVE,
                EntryUndo::Put => entry.sql as u16,
            };
            sorters.add(table.indexes[index].tree, &entry.key, tag)?;
            if undo == EntryUndo::Mark {
                window.marked.push_back((at.0, index, entry));
            }
            Ok(())
        })
    }

    fn undo_sorted(&self, writer: u64, tree: Tree, sorter: Sorter) -> EngineResult<()> {
        let pool = &*self.system.pool;
        let mut put = Entry { key: Vec::new(), sql: 0, has_null: false };
        let mut count: usize = 0;
        each_batch(pool, tree, sorter, |key, tag| {
            count += 1;
            if count.is_multiple_of(BRAKE_EVERY) {
                self.brake();
            }
            match tag {
                MARK => mark_entry(pool, tree, key, writer).map_err(io_error),
                REMOVE => remove_entry(pool, tree, key, RemoveEntry::Any).map_err(io_error),
                sql => {
                    put.key.clear();
                    put.key.extend_from_slice(key);
                    put.sql = usize::from(sql);
                    // The key was there before: no range lock of another can forbid it.
                    let _always = put_entry(pool, tree, &put, writer, || Ok(()))?;
                    Ok(())
                }
            }
        })
    }
}
