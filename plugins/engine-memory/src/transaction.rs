//! A transaction: its snapshot, its locks, its undo, and the contract's methods.

use std::time::Duration;

use engine_api::{
    CancelToken, CommitHandle, CursorId, EngineError, EngineResult, GetOutcome, IndexDef, IndexId,
    IsolationLevel, RowBatch, RowBuf, RowLock, Savepoint, ScanSpec, TableDef, TableId, Transaction,
    TxnOptions, WaitPolicy,
};
use locks::{Mode, Patience, WaitError};
use sys::sync::Arc;

use crate::cursor::{Cursor, mode_of};
use crate::engine::Shared;
use crate::key::Key;
use crate::purge::Garbage;
use crate::status::{LockName, Obstacle, SnapshotSlot, TxnStatus, row_name};
use crate::table::{Row, Table, View};
use engine_api::Span;

/// One change to take back.
pub(crate) enum Undo {
    Row {
        table: Arc<Table>,
        locator: Key,
        has_history: bool,
    },
    CreateTable(TableId),
    /// Takes effect at commit.
    DropTable(TableId),
    AlterTable {
        table: Arc<Table>,
        old: Arc<TableDef>,
    },
    CreateIndex {
        table: Arc<Table>,
        index: IndexId,
    },
    /// Takes effect at commit.
    DropIndex {
        table: Arc<Table>,
        index: IndexId,
    },
}

/// See `engine_api::Transaction`.
pub(crate) struct MemoryTransaction {
    pub(crate) shared: Arc<Shared>,
    slot: Arc<SnapshotSlot>,
    started: bool,
    isolation: IsolationLevel,
    read_only: bool,
    lock_wait_timeout: Duration,
    pub(crate) cancel: CancelToken,
    snapshot: Option<u64>,
    status: Option<Arc<TxnStatus>>,
    pub(crate) undo: Vec<Undo>,
    cursors: Vec<Option<Cursor>>,
    /// Locks of this statement start at this place of the list.
    statement_locks: usize,
    /// Tables looked up, valid while the engine's table map has `tables_version`.
    tables: Vec<Arc<Table>>,
    tables_version: u64,
    /// Locator of the row inserted last.
    pub(crate) inserted: Vec<u8>,
}

impl MemoryTransaction {
    pub(crate) fn new(shared: Arc<Shared>) -> MemoryTransaction {
        let slot = shared.clock.new_slot();
        MemoryTransaction {
            shared,
            slot,
            started: false,
            isolation: IsolationLevel::default(),
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            cancel: CancelToken::new(),
            snapshot: None,
            status: None,
            undo: Vec::new(),
            cursors: Vec::new(),
            statement_locks: 0,
            tables: Vec::new(),
            tables_version: 0,
            inserted: Vec::new(),
        }
    }

    /// The table, through its own cache so that transactions do not contend for the table map.
    pub(crate) fn table(&mut self, id: TableId) -> EngineResult<Arc<Table>> {
        let version = self.shared.tables_version();
        if version != self.tables_version {
            self.tables.clear();
            self.tables_version = version;
        }
        if let Some(table) = self.tables.iter().find(|table| table.id == id) {
            return Ok(table.clone());
        }
        let table = self.shared.table(id)?;
        self.tables.push(table.clone());
        Ok(table)
    }

    pub(crate) fn status(&mut self) -> Arc<TxnStatus> {
        let shared = &self.shared;
        self.status.get_or_insert_with(|| shared.clock.new_status(shared.locks.new_owner())).clone()
    }

    pub(crate) fn view(&mut self) -> View {
        let own = self.status.as_ref().map(|status| status.id);
        if self.isolation == IsolationLevel::ReadUncommitted {
            return View { snapshot: None, own };
        }
        View { snapshot: Some(self.snapshot_stamp()), own }
    }

    fn snapshot_stamp(&mut self) -> u64 {
        let (clock, slot) = (&self.shared.clock, &self.slot);
        *self.snapshot.get_or_insert_with(|| clock.snapshot(slot))
    }

    /// Whether locking reads lock the gaps between rows too.
    pub(crate) fn locks_gaps(&self) -> bool {
        matches!(self.isolation, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
    }

    pub(crate) fn check_writable(&self) -> EngineResult<()> {
        if self.read_only { Err(EngineError::ReadOnly) } else { Ok(()) }
    }

    /// Locks a row that was just found, under the table's latch. False if another transaction blocks it.
    pub(crate) fn try_lock_row(
        &mut self,
        table: TableId,
        locator: &[u8],
        row: &Row,
        mode: Mode,
    ) -> bool {
        let status = self.status();
        let writer = &row.head.writer;
        if writer.id == status.id {
            return true;
        }
        let name = row_name(table, locator);
        if writer.is_active() {
            self.shared.locks.make_explicit(&writer.owner, &name);
        }
        self.shared.locks.try_lock(&status.owner, &name, mode)
    }

    /// Waits for the obstacle. The caller holds no latch.
    pub(crate) fn wait_for(&mut self, obstacle: Obstacle, mode: Mode) -> EngineResult<()> {
        let status = self.status();
        let is_cancelled = || self.cancel.is_cancelled();
        let patience = Patience { timeout: self.lock_wait_timeout, is_cancelled: &is_cancelled };
        let locks = &self.shared.locks;
        let outcome = match obstacle {
            Obstacle::Row(name) => locks.wait_lock(&status.owner, &name, mode, &patience),
            Obstacle::Transactions(blockers) => {
                locks.wait_end(&status.owner, &blockers, None, &patience)
            }
            Obstacle::Error(error) => return Err(error),
        };
        match outcome {
            // As in the durable engine: a lock that comes after KILL comes too late.
            Ok(()) if self.cancel.is_cancelled() => Err(EngineError::Cancelled),
            Ok(()) => Ok(()),
            Err(WaitError::Timeout) => Err(EngineError::LockWaitTimeout),
            Err(WaitError::Cancelled) => Err(EngineError::Cancelled),
            Err(WaitError::Deadlock) => {
                self.rollback()?;
                Err(EngineError::Deadlock)
            }
        }
    }

    /// Like `wait_for`, for a read with a policy. `Ok(false)`: leave the row out.
    pub(crate) fn wait_for_row(
        &mut self,
        name: LockName,
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

    fn get_locked(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        mode: Mode,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        loop {
            let data = table.data.read();
            let Some(row) = data.rows.get(key) else {
                self.lock_missing(table, IndexId::CLUSTERED, key);
                return Ok(GetOutcome::NotFound);
            };
            if self.try_lock_row(table.id, key, row, mode) {
                let Some(record) = row.head.record.as_deref() else {
                    self.lock_missing(table, IndexId::CLUSTERED, key);
                    return Ok(GetOutcome::NotFound);
                };
                out.locator.extend_from_slice(key);
                out.record.extend_from_slice(record);
                return Ok(GetOutcome::Found);
            }
            drop(data);
            let name = row_name(table.id, key);
            if !self.wait_for_row(name, mode, wait)? {
                return Ok(GetOutcome::Skipped);
            }
        }
    }

    /// A locking read found no row: no other transaction may insert it before this one ends. The caller holds the latch.
    pub(crate) fn lock_missing(&mut self, table: &Arc<Table>, index: IndexId, key: &[u8]) {
        if self.locks_gaps() {
            self.lock_gap(table, index, &Span::prefix(key));
        }
    }

    /// Locks a span of keys against inserts by others. The caller holds the latch.
    pub(crate) fn lock_gap(&mut self, table: &Table, index: IndexId, span: &Span) {
        let status = self.status();
        let (space, end) = (table.gap_space(index), span.end.as_deref());
        self.shared.locks.lock_range(&status.owner, space, &span.start, end);
    }

    fn get_consistent(
        &mut self,
        table: &Table,
        key: &[u8],
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        let view = self.view();
        let data = table.data.read();
        match data.rows.get(key).and_then(|row| row.visible(view)) {
            Some(record) => {
                out.locator.extend_from_slice(key);
                out.record.extend_from_slice(record);
                Ok(GetOutcome::Found)
            }
            None => Ok(GetOutcome::NotFound),
        }
    }

    /// By a unique secondary index: a scan of one row.
    fn get_secondary(
        &mut self,
        cursor: Cursor,
        key: &[u8],
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        let (table, index, lock) = (cursor.table.clone(), cursor.index, cursor.lock);
        let mut cursor = cursor.without_gap();
        let mut batch = RowBatch::new();
        let found = self.fetch_from(&mut cursor, 1, &mut batch)?;
        if found == 0 {
            if cursor.skipped {
                return Ok(GetOutcome::Skipped);
            }
            if lock != RowLock::None {
                let _latch = table.data.read();
                self.lock_missing(&table, index, key);
            }
            return Ok(GetOutcome::NotFound);
        }
        let row = batch.row(0);
        out.locator.extend_from_slice(row.locator);
        out.record.extend_from_slice(row.record);
        Ok(GetOutcome::Found)
    }

    /// Takes back the changes above `mark`.
    fn undo_to(&mut self, mark: usize, keep_locks: bool) {
        while self.undo.len() > mark {
            if let Some(undo) = self.undo.pop() {
                self.undo_one(undo, keep_locks);
            }
        }
    }

    fn undo_one(&mut self, undo: Undo, keep_locks: bool) {
        match undo {
            Undo::Row { table, locator, .. } => {
                if keep_locks {
                    let name = row_name(table.id, locator.as_slice());
                    let status = self.status();
                    self.shared.locks.make_explicit(&status.owner, &name);
                }
                crate::write::undo_row(&table, locator.as_slice());
            }
            Undo::CreateTable(id) => self.shared.remove_table(id),
            Undo::DropTable(_) | Undo::DropIndex { .. } => {}
            Undo::AlterTable { table, old } => crate::ddl::restore_definition(&table, old),
            Undo::CreateIndex { table, index } => crate::ddl::remove_index(&table, index),
        }
    }

    /// Applies the effects that wait for the commit, and queues the rows with older versions for purge.
    fn apply_commit_effects(&mut self, stamp: u64) {
        let mut rows = Vec::new();
        for undo in self.undo.drain(..) {
            match undo {
                Undo::Row { table, locator, has_history: true } => rows.push((table, locator)),
                Undo::Row { .. } | Undo::AlterTable { .. } | Undo::CreateIndex { .. } => {}
                Undo::CreateTable(id) => self.shared.publish_table(id),
                Undo::DropTable(id) => self.shared.remove_table(id),
                Undo::DropIndex { table, index } => crate::ddl::remove_index(&table, index),
            }
        }
        if !rows.is_empty() {
            self.shared.purge.push(Garbage { stamp, rows });
        }
    }

    fn end(&mut self) {
        if let Some(status) = self.status.take() {
            self.shared.locks.release_all(&status.owner);
        }
        self.shared.clock.release(&self.slot);
        self.snapshot = None;
        self.started = false;
        self.cursors.clear();
        self.undo.clear();
        self.statement_locks = 0;
    }
}

impl Drop for MemoryTransaction {
    fn drop(&mut self) {
        // Rolling back in memory cannot fail.
        let _ = self.rollback();
        self.shared.clock.drop_slot(&self.slot);
    }
}

impl Transaction for MemoryTransaction {
    fn start(&mut self, options: &TxnOptions) -> EngineResult<()> {
        if self.started {
            self.rollback()?;
        }
        self.started = true;
        self.isolation = options.isolation;
        self.read_only = options.read_only;
        self.lock_wait_timeout = options.lock_wait_timeout;
        self.cancel = options.cancel.clone();
        Ok(())
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    fn is_started(&self) -> bool {
        self.started
    }

    fn has_written(&self) -> bool {
        !self.undo.is_empty()
    }

    fn take_snapshot(&mut self) {
        if self.isolation != IsolationLevel::ReadUncommitted {
            self.snapshot_stamp();
        }
    }

    fn renew_snapshot(&mut self) {
        self.snapshot = None;
        self.shared.clock.release(&self.slot);
    }

    fn begin_statement(&mut self) {
        if !self.locks_gaps() {
            self.renew_snapshot();
            self.statement_locks =
                self.status.as_ref().map_or(0, |status| status.owner.lock_count());
        }
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.undo.len() as u64)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> EngineResult<()> {
        self.undo_to(savepoint.0 as usize, true);
        Ok(())
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        if !self.undo.is_empty() {
            let status = self.status();
            let stamp = self.shared.clock.commit(&status);
            self.apply_commit_effects(stamp);
        }
        self.end();
        self.shared.purge.run(&self.shared.clock);
        Ok(CommitHandle::Durable)
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.undo_to(0, false);
        if let Some(status) = &self.status {
            status.set_aborted();
        }
        self.end();
        // The released snapshot may have been the last to see a version.
        self.shared.purge.run(&self.shared.clock);
        Ok(())
    }

    fn get(
        &mut self,
        table: TableId,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        out.clear();
        let table = self.table(table)?;
        if index != IndexId::CLUSTERED {
            let cursor = Cursor::point(table, index, key, lock, wait);
            return self.get_secondary(cursor, key, out);
        }
        match mode_of(lock) {
            None => self.get_consistent(&table, key, out),
            Some(mode) => self.get_locked(&table, key, mode, wait, out),
        }
    }

    fn open_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        let table = self.table(spec.table)?;
        if spec.lock == RowLock::None {
            self.view();
        }
        let cursor = Cursor::open(table, spec)?;
        let free = self.cursors.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.cursors.push(None);
            self.cursors.len() - 1
        });
        self.cursors[at] = Some(cursor);
        Ok(CursorId(at as u32))
    }

    fn fetch(
        &mut self,
        cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let slot = self.cursors.get_mut(cursor.0 as usize);
        let Some(mut open) = slot.and_then(Option::take) else { return Ok(0) };
        let outcome = self.fetch_from(&mut open, limit, batch);
        // A deadlock has ended the transaction and with it every cursor.
        if let Some(slot) = self.cursors.get_mut(cursor.0 as usize) {
            *slot = Some(open);
        }
        outcome
    }

    fn close_cursor(&mut self, cursor: CursorId) {
        if let Some(slot) = self.cursors.get_mut(cursor.0 as usize) {
            *slot = None;
        }
    }

    fn unlock_row(&mut self, table: TableId, locator: &[u8]) {
        if self.locks_gaps() {
            return;
        }
        if let Some(status) = self.status.clone() {
            let name = row_name(table, locator);
            self.shared.locks.release_early(&status.owner, &name, self.statement_locks);
        }
    }

    fn insert(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.insert_row(table, record)
    }

    fn inserted_locator(&self) -> &[u8] {
        &self.inserted
    }

    fn update(&mut self, table: TableId, locator: &[u8], record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.update_row(table, locator, record)
    }

    fn delete(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.delete_row(table, locator)
    }

    fn create_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        self.shared.add_table(Table::new(def)?)?;
        self.undo.push(Undo::CreateTable(def.id));
        Ok(())
    }

    fn drop_table(&mut self, table: TableId) -> EngineResult<()> {
        self.check_writable()?;
        self.table(table)?;
        self.undo.push(Undo::DropTable(table));
        Ok(())
    }

    fn alter_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        let table = self.table(def.id)?;
        let old = crate::ddl::replace_definition(&table, def)?;
        self.undo.push(Undo::AlterTable { table, old });
        Ok(())
    }

    fn create_index(&mut self, table: TableId, index: &IndexDef) -> EngineResult<()> {
        self.check_writable()?;
        let table = self.table(table)?;
        crate::ddl::build_index(&table, index)?;
        self.undo.push(Undo::CreateIndex { table, index: index.id });
        Ok(())
    }

    fn drop_index(&mut self, table: TableId, index: IndexId) -> EngineResult<()> {
        self.check_writable()?;
        let table = self.table(table)?;
        self.undo.push(Undo::DropIndex { table, index });
        Ok(())
    }
}
