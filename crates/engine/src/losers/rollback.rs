//! Losers are taken over before the engine opens, and undone (E10).

use std::collections::BTreeSet;
use std::sync::Arc;
use sys::sync::atomic::Ordering;

use engine_api::{EngineResult, TableId};
use txn::{RecoveryPhase, TxnState};

use super::{Loser, STEP, subjects_of};
use crate::entry::unique_space;
use crate::row::DEFINITIONS;
use crate::shared::Shared;
use crate::undo::KeepLocks;

impl Shared {
    /// Treats every loser before the engine opens: undoes changes of definitions, and takes the locks that a row's id does not imply.
    pub(crate) fn take_losers(&self, cores: Vec<Arc<TxnState>>) -> EngineResult<()> {
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

    /// E5 requires locks on the unique keys that a writer took away: all keys of those indexes, as which ones they were would have to be
    /// computed from every row.
    fn lock_unique_keys(&self, core: &TxnState, tables: &BTreeSet<u64>) {
        let tables = tables.iter().filter_map(|id| self.dictionary.get(TableId(*id)).ok());
        for table in tables {
            for index in table.indexes.iter().filter(|index| index.def.unique) {
                self.system.locks.lock_range(&core.owner, unique_space(index.tree), &[], None);
            }
        }
    }

    fn end_loser(&self, core: &Arc<TxnState>) {
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

    /// Undoes what sessions could not undo, and frees its locks.
    pub(crate) fn roll_back_abandoned(&self) -> EngineResult<()> {
        let cores = std::mem::take(&mut *self.abandoned.lock());
        let mut outcome = Ok(());
        for core in cores {
            // Pairs with the store in `stop_threads`.
            let goes_on = &mut || !self.stopping.load(Ordering::Acquire);
            outcome = outcome.and(self.undo_while(&core, 0, KeepLocks::No, goes_on));
            if core.last_undo().0 > 0 {
                self.abandoned.lock().push(core);
                continue;
            }
            self.system.finish_rollback(&core);
            self.system.locks.release_all(&core.owner);
        }
        outcome
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
            // First the table's locks, then the list: a thread that finds it in the list can rely on its end.
            self.end_loser(&core);
            self.losers.left.lock().retain(|loser| loser.core.id != core.id);
            self.tell_rollback();
        }
    }
}
