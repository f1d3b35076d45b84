//! Transactions are prepared, taken over at a start, committed and rolled back by name (E23).

use std::sync::Arc;

use engine_api::{CommitHandle, EngineResult, PreparedTransaction, TableId, Transaction as _};
use errors::Error;
use locks::{Mode, lock_name};
use txn::TxnState;

use crate::entry::{Entry, unique_space};
use crate::error::damaged;
use crate::locking::{PACK_AT, PACK_KEEP};
use crate::losers::subjects_of;
use crate::purge::gone_of;
use crate::row::{Header, UndoEntry, append_record};
use crate::shared::Shared;
use crate::table::Table;
use crate::transaction::{Txn, commit_handle};
use crate::undo::KeepLocks;

impl Txn {
    /// See `Transaction::prepare`.
    pub(crate) fn prepare_as(&mut self, name: &[u8]) -> EngineResult<CommitHandle> {
        if !self.has_written() {
            return self.commit();
        }
        if !self.may_be_prepared || !self.pending.is_empty() {
            return Err(Error::internal("this transaction was not to be prepared").into());
        }
        if let Err(error) = self.end_deferring() {
            self.roll_back_all()?;
            return Err(error);
        }
        let Some(core) = self.core.take() else {
            return Err(Error::internal("a transaction lost its changes").into());
        };
        self.attaching.log(&self.shared.system, &core, &self.shared.config.log)?;
        core.owner.detach();
        let ticket = self.shared.system.prepare(&core, name);
        self.shared.prepared.0.lock().insert(name.into(), core);
        // The locks belong to the transaction's `TxnState` from now on.
        self.owner = None;
        self.end();
        self.shared.system.log.publish_relaxed();
        Ok(commit_handle(&self.shared, ticket))
    }
}

impl Shared {
    /// Takes over transactions that a crash or a stop left prepared, before the engine opens.
    pub(crate) fn take_prepared(&self, cores: Vec<Arc<TxnState>>) -> EngineResult<()> {
        for core in cores {
            let Some(name) = core.prepared_name() else { continue };
            self.lock_freed_keys(&core)?;
            self.prepared.0.lock().insert(name, core);
        }
        Ok(())
    }

    /// E5: the unique keys that the transaction took away from rows are locked until its end. Rows, and the keys that it gave them, say
    /// themselves which transaction wrote them (E6).
    fn lock_freed_keys(&self, core: &TxnState) -> EngineResult<()> {
        let mut payload = Vec::new();
        for pointer in core.undo_entries() {
            core.read_undo(pointer, &mut payload).ok_or_else(damaged)?;
            core.owner.add_weight();
            match UndoEntry::decode(&payload).ok_or_else(damaged)? {
                UndoEntry::Change { table, key, before } => {
                    let header = Header::of(before);
                    let Ok(table) = self.dictionary.get(TableId(table)) else { continue };
                    if header.is_deleted() || !has_unique(&table) {
                        continue;
                    }
                    let mut record = Vec::new();
                    append_record(&self.system.pool, before, &mut record)
                        .map_err(crate::error::io_error)?;
                    for index in table.indexes.iter().filter(|index| index.def.unique) {
                        Entry::each(&index.keys, &record, key, |entry| {
                            self.lock_freed_key(core, unique_space(index.tree), entry.sql_key());
                            Ok(())
                        })?;
                    }
                }
                UndoEntry::Update { table, gone, .. } if !gone.is_empty() => {
                    let Ok(table) = self.dictionary.get(TableId(table)) else { continue };
                    for (index, sql) in gone_of(&table, gone) {
                        if index.def.unique {
                            self.lock_freed_key(core, unique_space(index.tree), sql);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn lock_freed_key(&self, core: &TxnState, space: u64, sql: &[u8]) {
        let mut name = Vec::new();
        lock_name(space, sql, &mut name);
        // No other transaction runs yet.
        self.system.locks.try_lock(&core.owner, &name, Mode::Exclusive);
        if core.owner.lock_count() >= PACK_AT {
            self.system.locks.pack(&core.owner, PACK_KEEP, 0);
        }
    }

    /// See `Engine::prepared`.
    pub(crate) fn list_prepared(&self) -> Vec<PreparedTransaction> {
        let all: Vec<_> = self
            .prepared
            .0
            .lock()
            .iter()
            .map(|(name, core)| (name.clone(), core.clone()))
            .collect();
        all.into_iter()
            .map(|(name, core)| {
                // Its subjects are known, unless an earlier version wrote it, which could not prepare transactions.
                let tables = subjects_of(&core).unwrap_or_default();
                PreparedTransaction {
                    name: name.to_vec(),
                    tables: tables.into_iter().map(TableId).collect(),
                }
            })
            .collect()
    }

    /// See `Engine::commit_prepared`. Returns the ticket of the commit; `None` when nothing is prepared under this name.
    pub(crate) fn commit_prepared(&self, name: &[u8], attached: &[u8]) -> Option<u64> {
        let core = self.prepared.remove(name)?;
        let ticket = self.system.commit(&core, attached);
        // Whether something was attached before is known to the log alone.
        self.attachments.committed(&self.system.log, ticket);
        self.system.locks.release_all(&core.owner);
        self.after_commit();
        self.system.log.publish_relaxed();
        Some(ticket)
    }

    /// See `Engine::rollback_prepared`.
    pub(crate) fn rollback_prepared(&self, name: &[u8]) -> EngineResult<()> {
        let Some(core) = self.prepared.remove(name) else { return Ok(()) };
        self.system.unprepare(&core);
        // A failure leaves the rows locked, and the next start undoes them.
        self.undo_to(&core, 0, KeepLocks::No)?;
        self.system.finish_rollback(&core);
        self.system.locks.release_all(&core.owner);
        Ok(())
    }
}

fn has_unique(table: &Table) -> bool {
    table.indexes.iter().any(|index| index.def.unique)
}
