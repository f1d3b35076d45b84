//! Losers: transactions that a crash left without an end. Those that changed definitions are undone before the engine opens, the others while it
//! is in use (E10).
//!
//! Until a loser is undone its id in a row locks that row like a live writer's. A second crash needs nothing from here: the log
//! records the progress of each rollback (X8).

use std::collections::BTreeSet;
use std::sync::Arc;

use engine_api::{EngineResult, TableId};
use locks::Owner;
use sys::sync::Mutex;
use txn::{Progress, Recovery, RecoveryPhase, TxnState};

use crate::error::damaged;
use crate::row::UndoEntry;

mod rollback;

/// Undo entries between two updates of the progress.
const STEP: u64 = 64;

struct Loser {
    core: Arc<TxnState>,
    /// Tables that it changed.
    tables: BTreeSet<u64>,
    /// The amount of its undo that is left, as last counted.
    left_bytes: u64,
}

/// The remaining losers of the last crash, newest first, and the progress of their rollback.
pub(crate) struct Losers {
    left: Mutex<Vec<Loser>>,
    /// One thread rolls back.
    rolling: Mutex<()>,
    told: Mutex<(Recovery, Progress)>,
}

/// Returns the subjects of a transaction's undo. They are known without reading it (X16), except for undo of an earlier version, which is read.
pub(crate) fn subjects_of(core: &TxnState) -> EngineResult<BTreeSet<u64>> {
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

    /// The progress of recovery.
    pub(crate) fn report(&self) -> Recovery {
        self.told.lock().0
    }

    fn tell(&self, phase: RecoveryPhase, change: impl FnOnce(&mut Recovery) -> (u64, u64)) {
        let mut told = self.told.lock();
        let (report, progress) = &mut *told;
        let (done, total) = change(report);
        progress.tell(report, phase, done, total);
    }

    /// Counts the entries undone since the last call.
    fn note_left(&self, core: &TxnState) {
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
