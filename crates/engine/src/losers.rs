//! What a crash left undone: transactions without an end. Those that changed definitions are undone before the engine opens, the others while it
//! is in use (E10).
//!
//! Until a loser is undone its id in a row locks that row like a live writer's. Nothing here is needed for a second crash: the log
//! tells how far each rollback got (X8).

use std::collections::BTreeSet;
use std::sync::Arc;
use sys::sync::atomic::Ordering;

use engine_api::{EngineResult, TableId};
use locks::Owner;
use sys::sync::Mutex;
use txn::{Core, Progress, Recovery, RecoveryPhase};

use crate::engine::Shared;
use crate::entries::unique_space;
use crate::row::{DEFINITIONS, UndoEntry};
use crate::undo::{KeepLocks, damaged};

/// Undo entries between two looks at the progress.
const STEP: u64 = 64;

struct Loser {
    core: Arc<Core>,
    /// Tables that it changed.
    tables: BTreeSet<u64>,
    /// How much of its undo is left, as far as was told.
    left_bytes: u64,
}

/// The losers of the last crash that are left, newest first, and how far their rollback is.
pub(crate) struct Losers {
    left: Mutex<Vec<Loser>>,
    /// One thread rolls back.
    rolling: Mutex<()>,
    told: Mutex<(Recovery, Progress)>,
}

/// What the undo of a transaction is about. Its subjects say so at once, however long it is (X16); entries of an earlier version are read.
pub(crate) fn subjects_of(core: &Core) -> EngineResult<BTreeSet<u64>> {
    if let Some(subjects) = core.subjects() {
        return Ok(subjects.into_iter().collect());
    }
    let (mut subjects, mut payload) = (BTreeSet::new(), Vec::new());
    let mut at = core.last_undo();
    while at.0 > 0 {
        at = core.read_undo(at, &mut payload).ok_or_else(damaged)?;
        subjects.insert(UndoEntry::subject(&payload));
    }
    subjects.remove(&0);
    Ok(subjects)
}

impl Losers {
    pub(crate) fn new(report: Recovery, progress: Progress) -> Losers {
        Losers {
            left: Mutex::new(Vec::new()),
            rolling: Mutex::new(()),
            told: Mutex::new((report, progress)),
        }
    }

    /// How far recovery is.
    pub(crate) fn report(&self) -> Recovery {
        self.told.lock().0
    }

    fn tell(&self, phase: RecoveryPhase, change: impl FnOnce(&mut Recovery) -> (u64, u64)) {
        let mut told = self.told.lock();
        let (report, progress) = &mut *told;
        let (done, total) = change(report);
        progress.tell(report, phase, done, total);
    }

    /// Counts what was undone since the last call.
    fn note_left(&self, core: &Core) {
        let now = core.last_undo().0;
        let mut left = self.left.lock();
        let Some(loser) = left.iter_mut().find(|loser| loser.core.id == core.id) else { return };
        let done = loser.left_bytes.saturating_sub(now);
        loser.left_bytes = now;
        drop(left);
        self.told.lock().0.undo_done += done;
    }

    /// Losers that changed a table.
    pub(crate) fn owners_in(&self, table: TableId) -> Vec<Arc<Owner>> {
        let left = self.left.lock();
        let touching = left.iter().filter(|loser| loser.tables.contains(&table.0));
        touching.map(|loser| loser.core.owner.clone()).collect()
    }
}

impl Shared {
    /// Looks at every loser before anybody else is let in: undoes changes of definitions, and locks what a row's id does not lock.
    pub(crate) fn take_losers(&self, cores: Vec<Arc<Core>>) -> EngineResult<()> {
        let count = cores.len() as u64;
        for (core, at) in cores.into_iter().zip(0..) {
            self.losers.tell(RecoveryPhase::Analysis, |_| (at, count));
            let tables = subjects_of(&core)?;
            if tables.contains(&DEFINITIONS) {
                self.undo_to(&core, 0, KeepLocks::No)?;
                self.end_loser(&core);
                continue;
            }
            self.lock_unique_keys(&core, &tables);
            let left_bytes = core.last_undo().0;
            self.losers.told.lock().0.undo_total += left_bytes;
            self.losers.left.lock().push(Loser { core, tables, left_bytes });
        }
        self.tell_rollback();
        Ok(())
    }

    /// E5 asks for locks on the unique keys that a writer took away: all keys of those indexes, as which ones they were would have to be
    /// computed from every row.
    fn lock_unique_keys(&self, core: &Core, tables: &BTreeSet<u64>) {
        let tables = tables.iter().filter_map(|id| self.dictionary.get(TableId(*id)).ok());
        for table in tables {
            for index in table.indexes.iter().filter(|index| index.def.unique) {
                self.system.locks.lock_range(&core.owner, unique_space(index.tree), &[], None);
            }
        }
    }

    fn end_loser(&self, core: &Arc<Core>) {
        self.system.finish_rollback(core);
        self.system.locks.release_all(&core.owner);
        self.losers.told.lock().0.losers_done += 1;
    }

    fn tell_rollback(&self) {
        let phase = match self.losers.left.lock().is_empty() {
            true => RecoveryPhase::Done,
            false => RecoveryPhase::Rollback,
        };
        self.losers.tell(phase, |report| match phase {
            RecoveryPhase::Done => (1, 1),
            _ => (report.undo_done, report.undo_total),
        });
    }

    /// Undoes losers until none is left or the engine stops.
    pub(crate) fn roll_back_losers(&self) -> EngineResult<()> {
        let _one = self.losers.rolling.lock();
        loop {
            let next = self.losers.left.lock().first().map(|loser| loser.core.clone());
            let Some(core) = next else { return Ok(()) };
            let mut steps: u64 = 0;
            self.undo_while(&core, 0, KeepLocks::No, &mut || {
                steps += 1;
                if steps.is_multiple_of(STEP) {
                    self.losers.note_left(&core);
                    self.tell_rollback();
                }
                !self.stopping.load(Ordering::Acquire)
            })?;
            if core.last_undo().0 > 0 {
                return Ok(());
            }
            self.losers.note_left(&core);
            // First the table's locks, then the list: whoever finds it here waits for an end that comes.
            self.end_loser(&core);
            self.losers.left.lock().retain(|loser| loser.core.id != core.id);
            self.tell_rollback();
        }
    }
}
