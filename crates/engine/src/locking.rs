//! Row locks as transactions take them: implicit ones of writers, explicit ones, waiting.

use std::sync::Arc;

use engine_api::{EngineError, EngineResult, TableId, Wait, WaitPolicy};
use locks::{Mode, Owner, Patience, Tag, WaitError, lock_name};
use sys::blocking::blocking;
use sys::model::breaks;

use crate::error::io_error;
use crate::lock_report::level_number;
use crate::obstacle::{Absent, Locked, Obstacle};
use crate::row::Header;
use crate::table::Table;
use crate::transaction::Txn;

/// The number of a transaction's locks at which the older ones are packed.
pub(crate) const PACK_AT: usize = 4096;
/// The newest locks that are not packed: rows that a statement has fetched but not examined may still be unlocked.
pub(crate) const PACK_KEEP: usize = 512;

impl Txn {
    pub(crate) fn owner(&mut self) -> Arc<Owner> {
        let locks = &self.shared.system.locks;
        let tag = Tag { session: self.session, kind: level_number(self.isolation) };
        let numbers = &mut self.owner_numbers;
        self.owner.get_or_insert_with(|| locks.new_owner_from(numbers, tag)).clone()
    }

    /// Locks a row that was just found, under its leaf's latch. False if another transaction blocks it (E6).
    pub(crate) fn try_lock_row(
        &mut self,
        space: u64,
        key: &[u8],
        header: Header,
        mode: Mode,
    ) -> bool {
        let id = header.id();
        if id == self.own_id() {
            return true;
        }
        let mut name = std::mem::take(&mut self.name);
        lock_name(space, key, &mut name);
        self.note_writer(id, &name);
        self.name = name;
        self.try_lock_name(space, key, mode)
    }

    /// Like `try_lock_row` for a row that does not exist, so that none is inserted.
    fn try_lock_name(&mut self, space: u64, key: &[u8], mode: Mode) -> bool {
        let owner = self.owner();
        lock_name(space, key, &mut self.name);
        self.shared.system.locks.try_lock(&owner, &self.name, mode)
    }

    /// Makes the implicit lock of an active writer explicit; remembers the ticket of a committed one (E9).
    fn note_writer(&mut self, id: u64, name: &[u8]) {
        if self.shared.system.is_seen_by_all(id) {
            return;
        }
        let Some(core) = self.shared.system.find(id) else { return };
        if core.is_active() {
            self.shared.system.locks.make_explicit(&core.owner, name);
        }
        if let Some(ticket) = core.committed() {
            self.seen = self.seen.max(ticket);
        }
    }

    /// Whether this transaction may change the row, under its leaf's exclusive latch. An uncontended write allocates no lock.
    pub(crate) fn may_write(
        &mut self,
        space: u64,
        key: &[u8],
        header: Option<Header>,
    ) -> Result<(), Obstacle> {
        let mut name = std::mem::take(&mut self.name);
        lock_name(space, key, &mut name);
        if let Some(header) = header {
            if header.id() == self.own_id() && header.id() != 0 {
                // The row is ours since we wrote it; others wait for us.
                self.name = name;
                return Ok(());
            }
            self.note_writer(header.id(), &name);
        }
        let owner = self.owner.as_deref();
        let blocked = self.shared.system.locks.is_locked_by_other(owner, &name);
        let blocked = blocked && !breaks("writers wait for locks of rows");
        let outcome = if blocked { Err(Obstacle::Row(name.clone())) } else { Ok(()) };
        self.name = name;
        outcome
    }

    /// Before a step that takes more locks, without latches: packs old ones when there are very many (L6).
    #[inline]
    pub(crate) fn relieve_locks(&mut self) {
        if let Some(owner) = &self.owner
            && owner.lock_count() >= PACK_AT
        {
            let locks = &self.shared.system.locks;
            self.statement_locks = locks.pack(owner, PACK_KEEP, self.statement_locks);
        }
    }

    /// Checks that no other transaction has locked the range of a new key. The caller holds the leaf exclusively.
    pub(crate) fn may_insert(&self, space: u64, key: &[u8]) -> Result<(), Obstacle> {
        let owner = self.owner.as_deref();
        let blockers = self.shared.system.locks.range_blockers(owner, space, key);
        if blockers.is_empty() {
            return Ok(());
        }
        let mut name = Vec::new();
        lock_name(space, key, &mut name);
        Err(Obstacle::Insert(blockers, name))
    }

    /// Before a table's definition changes: waits for losers of a crash that changed its rows. Live writers are kept away by the caller.
    pub(crate) fn wait_for_losers(&mut self, table: TableId) -> EngineResult<()> {
        loop {
            let owners = self.shared.losers.owners_in(table);
            if owners.is_empty() {
                return Ok(());
            }
            self.wait_for(Obstacle::Transactions(owners), Mode::Exclusive)?;
        }
    }

    /// Waits for the obstacle. The caller holds no latch.
    pub(crate) fn wait_for(&mut self, obstacle: Obstacle, mode: Mode) -> EngineResult<()> {
        let owner = self.owner();
        let cancel = self.cancel.clone();
        let patience =
            Patience { timeout: self.lock_wait_timeout, is_cancelled: &|| cancel.is_cancelled() };
        let locks = &self.shared.system.locks;
        let waiting = cancel.waiting(Wait::RowLock);
        let outcome = match obstacle {
            Obstacle::Row(name) => locks.wait_lock(&owner, &name, mode, &patience),
            Obstacle::Transactions(blockers) => locks.wait_end(&owner, &blockers, None, &patience),
            Obstacle::Insert(blockers, name) => {
                locks.wait_end(&owner, &blockers, Some(&name), &patience)
            }
        };
        drop(waiting);
        match outcome {
            // The holder may release the lock right after KILL: the statement must end anyway.
            Ok(()) if cancel.is_cancelled() => Err(EngineError::Cancelled),
            Ok(()) => Ok(()),
            Err(WaitError::Timeout) => Err(EngineError::LockWaitTimeout),
            Err(WaitError::Cancelled) => Err(EngineError::Cancelled),
            Err(WaitError::Deadlock) => {
                self.roll_back_all()?;
                Err(EngineError::Deadlock)
            }
        }
    }

    /// Like `wait_for`, for a read with a policy. `Ok(false)`: leave the row out.
    pub(crate) fn wait_for_row(
        &mut self,
        name: Vec<u8>,
        mode: Mode,
        wait: WaitPolicy,
    ) -> EngineResult<bool> {
        match wait {
            WaitPolicy::Wait | WaitPolicy::Peek => {
                self.wait_for(Obstacle::Row(name), mode).map(|()| true)
            }
            WaitPolicy::NoWait => Err(EngineError::LockNotAvailable),
            WaitPolicy::SkipLocked => Ok(false),
        }
    }

    /// Locks the newest version of a row and leaves its value in the scratch buffer.
    pub(crate) fn lock_current(
        &mut self,
        table: &Table,
        key: &[u8],
        mode: Mode,
        wait: WaitPolicy,
    ) -> EngineResult<Locked> {
        self.lock_wanted(table, key, (mode, Absent::Left), wait)
    }

    /// Like `lock_current`; `wanted` also says how to treat a row that does not exist.
    pub(crate) fn lock_wanted(
        &mut self,
        table: &Table,
        key: &[u8],
        wanted: (Mode, Absent),
        wait: WaitPolicy,
    ) -> EngineResult<Locked> {
        loop {
            match self.try_lock_current(table, key, wanted)? {
                Some(locked) => return Ok(locked),
                None => {
                    let name = self.name.clone();
                    if !self.wait_for_row(name, wanted.0, wait)? {
                        return Ok(Locked::Skipped);
                    }
                }
            }
        }
    }

    /// One attempt; `None`: blocked, the lock's name is in `self.name`.
    pub(crate) fn try_lock_current(
        &mut self,
        table: &Table,
        key: &[u8],
        (mode, absent): (Mode, Absent),
    ) -> EngineResult<Option<Locked>> {
        let shared = self.shared.clone();
        let pool = &*shared.system.pool;
        let leaf = table.clustered.shared_leaf_near(pool, key, &mut self.near);
        let leaf = leaf.map_err(io_error)?;
        Ok(self.try_lock_in(leaf.page(), table, key, (mode, absent)))
    }

    /// Like `try_lock_current`, in the row's leaf.
    pub(crate) fn try_lock_in(
        &mut self,
        leaf: page::PageRef<'_>,
        table: &Table,
        key: &[u8],
        (mode, absent): (Mode, Absent),
    ) -> Option<Locked> {
        let (slot, found) = leaf.search(key);
        if !found {
            let granted = match absent {
                Absent::Left => true,
                Absent::Locked => self.try_lock_name(table.clustered.id, key, mode),
            };
            return granted.then_some(Locked::Missing);
        }
        let mut value = std::mem::take(&mut self.value);
        value.clear();
        leaf.copy_value(slot, &mut value);
        let header = Header::of(&value);
        self.value = value;
        if !self.try_lock_row(table.clustered.id, key, header, mode) {
            return None;
        }
        Some(if header.is_deleted() { Locked::Missing } else { Locked::Found })
    }

    /// Waits until a commit is durable, off the reactor.
    pub(crate) fn wait_durable(&self, ticket: u64) -> EngineResult<()> {
        let log = &self.shared.system.log;
        if log.is_acknowledged(ticket) {
            return Ok(());
        }
        blocking(|| log.commit_wait(ticket)).map_err(io_error)
    }
}
