//! A transaction: the cluster's, its locks, its undo, and the contract's methods.
//!
//! The cluster knows no savepoints: `undo` keeps the old image of each row of the cluster that was written, and `rollback_to` writes them back. The same list runs the
//! transaction again when the cluster has aborted it for a temporary reason: if nothing that it read under a lock has changed, it goes on as if nothing had happened.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use engine_api::{
    CancelToken, CommitHandle, CursorId, EngineError, EngineResult, FoundRows, GetOutcome,
    IndexDef, IndexId, KeyList, RowBatch, RowBuf, RowLock, Savepoint, ScanSpec, SharedChange,
    TableDef, TableId, Transaction, TxnOptions, WaitPolicy,
};
use locks::{Mode, Owner, Patience, WaitError};
use sys::blocking::blocking;
use sys::clock;
use sys::sync::Arc;
use sys::sync::atomic::Ordering;

use crate::cursor::Cursor;
use crate::engine::{REPLAY_MAX, Shared};
use crate::error::{DUPLICATE, LOCKED, NO_ROW, NdbError};
use crate::fence::Fences;
use crate::link::Link;
use crate::shim::{Hold, Kind, NdbTable, NdbTransaction, Operation};
use crate::table::Table;

/// Operations in one round trip.
pub(crate) const BATCH: usize = 256;
/// Pauses between tries.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(1);
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Bytes of rows that are kept because a statement has locked them and may change them.
const HELD_BYTES_MAX: usize = 4 << 20;

/// One change to take back, or to make when the transaction ends.
pub(crate) enum Undo {
    Row {
        table: Arc<NdbTable>,
        key: Vec<u8>,
        old: Option<Vec<u8>>,
        new: Option<Vec<u8>>,
    },
    /// Tables of the cluster that are dropped if it is undone.
    Created(Vec<String>),
    /// Tables of the cluster that are dropped at commit.
    Dropped {
        table: TableId,
        names: Vec<String>,
        whole: bool,
    },
    /// The definition that the transaction saw before.
    Defined {
        table: TableId,
        before: Option<Option<Arc<Table>>>,
    },
}

/// A row that was read under a lock, and what was there.
struct Locked {
    table: Arc<NdbTable>,
    key: Vec<u8>,
    hold: Hold,
    image: Option<u64>,
}

/// The cluster's side.
struct Active {
    link: Arc<Link>,
    ndb: NdbTransaction,
}

/// See `engine_api::Transaction`.
pub(crate) struct NdbEngineTransaction {
    pub(crate) shared: Arc<Shared>,
    /// Before `active`: their scans end before it.
    cursors: Vec<Option<Cursor>>,
    active: Option<Active>,
    started: bool,
    read_only: bool,
    pub(crate) lock_wait_timeout: Duration,
    pub(crate) cancel: CancelToken,
    owner: Option<Arc<Owner>>,
    undo: Vec<Undo>,
    locked: Vec<Locked>,
    hasher: RandomState,
    /// Definitions that it changed; `None`: it dropped the table.
    own: HashMap<TableId, Option<Arc<Table>>>,
    /// Changes with each write: a scan does not see what was written after it began.
    pub(crate) writes: u64,
    /// Rows that this statement has locked exclusively.
    held: HashMap<(TableId, Vec<u8>), Vec<u8>>,
    held_bytes: usize,
    /// Locator of the row inserted last.
    pub(crate) inserted: Vec<u8>,
    /// A table that it has made and fills: its rows need no undo.
    pub(crate) filling: Option<TableId>,
    /// Inserts that were not sent yet.
    pub(crate) pending: crate::pending::Pending,
    /// Stamps of shared tables that it holds.
    pub(crate) fences: Fences,
}

pub(crate) fn lost(error: &NdbError) -> EngineError {
    EngineError::TransactionLost(error.word_loss())
}

impl NdbEngineTransaction {
    pub(crate) fn new(shared: Arc<Shared>) -> NdbEngineTransaction {
        NdbEngineTransaction {
            shared,
            cursors: Vec::new(),
            active: None,
            started: false,
            read_only: false,
            lock_wait_timeout: Duration::from_secs(50),
            cancel: CancelToken::new(),
            owner: None,
            undo: Vec::new(),
            locked: Vec::new(),
            hasher: RandomState::new(),
            own: HashMap::new(),
            writes: 0,
            held: HashMap::new(),
            held_bytes: 0,
            inserted: Vec::new(),
            filling: None,
            pending: crate::pending::Pending::default(),
            fences: Fences::default(),
        }
    }

    /// The table as this transaction sees it.
    pub(crate) fn table(&self, id: TableId) -> EngineResult<Arc<Table>> {
        if let Some(own) = self.own.get(&id) {
            return own.clone().ok_or(EngineError::UnknownTable);
        }
        if let Some(active) = &self.active {
            return active.link.table(id);
        }
        self.shared.table(id).map(|(_, table)| table)
    }

    pub(crate) fn link(&self) -> EngineResult<Arc<Link>> {
        match &self.active {
            Some(active) => Ok(active.link.clone()),
            None => self.shared.links.get(),
        }
    }

    pub(crate) fn check_writable(&self) -> EngineResult<()> {
        if self.read_only { Err(EngineError::ReadOnly) } else { Ok(()) }
    }

    fn owner(&mut self) -> Arc<Owner> {
        let locks = &self.shared.locks;
        self.owner.get_or_insert_with(|| locks.new_owner()).clone()
    }

    /// Locks a name among this server's transactions. `Ok(false)`: leave the row out.
    pub(crate) fn lock(&mut self, name: &[u8], mode: Mode, wait: WaitPolicy) -> EngineResult<bool> {
        let owner = self.owner();
        if self.shared.locks.try_lock(&owner, name, mode) {
            return Ok(true);
        }
        match wait {
            WaitPolicy::NoWait => return Err(EngineError::LockNotAvailable),
            WaitPolicy::SkipLocked => return Ok(false),
            WaitPolicy::Wait | WaitPolicy::Peek => {}
        }
        let is_cancelled = || self.cancel.is_cancelled();
        let patience = Patience { timeout: self.lock_wait_timeout, is_cancelled: &is_cancelled };
        match self.shared.locks.wait_lock(&owner, name, mode, &patience) {
            Ok(()) if self.cancel.is_cancelled() => Err(EngineError::Cancelled),
            Ok(()) => Ok(true),
            Err(WaitError::Timeout) => Err(EngineError::LockWaitTimeout),
            Err(WaitError::Cancelled) => Err(EngineError::Cancelled),
            Err(WaitError::Deadlock) => {
                self.rollback()?;
                Err(EngineError::Deadlock)
            }
        }
    }

    /// Begins the cluster's transaction if it has not begun.
    fn activate(&mut self, hint: Option<(&NdbTable, &[u8])>) -> EngineResult<()> {
        if self.active.is_some() {
            return Ok(());
        }
        let link = self.shared.links.get()?;
        let begun = NdbTransaction::begin(&link.connection, hint);
        match begun {
            Ok(ndb) => {
                self.active = Some(Active { link, ndb });
                Ok(())
            }
            Err(error) => self.recover(&link, error),
        }
    }

    /// Runs operations in one round trip. After a temporary error the whole transaction is run again.
    pub(crate) fn execute(&mut self, operations: &mut [Operation]) -> EngineResult<()> {
        let mut fences = self.fences.reads();
        if operations.is_empty() && fences.is_empty() {
            return Ok(());
        }
        let count = operations.len() + fences.len();
        self.shared.executes.fetch_add(1, Ordering::Relaxed);
        self.shared.operations.fetch_add(count as u64, Ordering::Relaxed);
        loop {
            let first = operations.first();
            self.activate(first.map(|first| (&*first.table, first.key.as_slice())))?;
            let Some(active) = &mut self.active else { continue };
            match blocking(|| active.ndb.execute_after(&mut fences, operations)) {
                Ok(()) => {
                    if !fences.is_empty() {
                        let held = self.fences.settle(fences);
                        held.iter().for_each(|read| self.keep_locked(read));
                    }
                    return Ok(());
                }
                Err(error) if !error.is_aborted && !error.is_cut_off() => {
                    return Err(error.into_engine());
                }
                Err(error) => {
                    let link = active.link.clone();
                    self.recover(&link, error)?;
                }
            }
        }
    }

    /// With the cluster's transaction, for a scan.
    pub(crate) fn with_ndb<T>(
        &mut self,
        work: impl Fn(&mut NdbTransaction) -> Result<T, NdbError>,
    ) -> EngineResult<T> {
        loop {
            self.activate(None)?;
            let Some(active) = &mut self.active else { continue };
            match blocking(|| work(&mut active.ndb)) {
                Ok(result) => return Ok(result),
                Err(error) => {
                    let link = active.link.clone();
                    self.recover(&link, error)?;
                }
            }
        }
    }

    /// A scan has failed: its transaction is run again, or ends.
    pub(crate) fn after_scan_failure(&mut self, error: NdbError) -> EngineResult<()> {
        let link = self.link()?;
        self.recover(&link, error)
    }

    /// The cluster has aborted the transaction, or cannot begin it: runs it again as far as it was, if that can succeed. Where the cluster is full,
    /// the transaction goes on as well, and the statement fails with 1114.
    ///
    /// # Errors
    /// It is rolled back then, except after 1114.
    fn recover(&mut self, link: &Arc<Link>, error: NdbError) -> EngineResult<()> {
        let began = clock::monotonic();
        let (mut error, mut pause) = (error, PAUSE_MIN);
        loop {
            self.leave_cluster();
            if error.is_cut_off() && link.connection.ready_nodes() <= 0 {
                self.shared.links.drop_link(link);
            }
            if error.is_full() {
                return match self.replay(link) {
                    Ok(true) => Err(EngineError::Other(error.word())),
                    Ok(false) | Err(_) => self.give_up(error),
                };
            }
            let is_over = clock::monotonic().saturating_sub(began) > REPLAY_MAX;
            if !error.may_repeat() || is_over || self.cancel.is_cancelled() {
                return self.give_up(error);
            }
            blocking(|| sys::threads::sleep(pause));
            pause = (pause * 2).min(PAUSE_MAX);
            // What it has written is named by tables of its link.
            if link.is_lost() {
                return self.give_up(error);
            }
            match self.replay(link) {
                Ok(true) => {
                    self.shared.replays.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Ok(false) => return self.give_up(error),
                Err(again) => error = again,
            }
        }
    }

    fn give_up(&mut self, error: NdbError) -> EngineResult<()> {
        self.shared.losses.fetch_add(1, Ordering::Relaxed);
        self.rollback()?;
        match error.is_lock_wait() {
            true => Err(EngineError::Deadlock),
            false => Err(lost(&error)),
        }
    }

    fn leave_cluster(&mut self) {
        for cursor in self.cursors.iter_mut().flatten() {
            cursor.stop();
        }
        self.active = None;
    }

    /// Locks again what was locked, and if nothing has changed writes again what was written. False if something has changed.
    ///
    /// # Errors
    /// A row is locked: by another client, or by what the cluster has not yet taken back of this transaction after a node died.
    fn replay(&mut self, link: &Arc<Link>) -> Result<bool, NdbError> {
        let mut ndb = blocking(|| NdbTransaction::begin(&link.connection, None))?;
        let mut seen: HashMap<(String, Vec<u8>), ()> = HashMap::new();
        let mut checks: Vec<(Operation, Option<u64>)> = Vec::new();
        for locked in &self.locked {
            if let Entry::Vacant(free) = seen.entry((locked.table.name.clone(), locked.key.clone()))
            {
                free.insert(());
                let read = Operation::read(&locked.table, &locked.key, locked.hold);
                checks.push((read, locked.image));
            }
        }
        let mut last: HashMap<(String, Vec<u8>), usize> = HashMap::new();
        let mut writes: Vec<Operation> = Vec::new();
        for undo in &self.undo {
            let Undo::Row { table, key, old, new } = undo else { continue };
            let name = (table.name.clone(), key.clone());
            if let Entry::Vacant(free) = seen.entry(name.clone()) {
                free.insert(());
                let image = old.as_ref().map(|old| self.hasher.hash_one(old));
                checks.push((Operation::read(table, key, Hold::Exclusive), image));
            }
            let write = match new {
                Some(new) => Operation::new(Kind::Write, table, key, new),
                None => Operation::new(Kind::Delete, table, key, &[]),
            };
            match last.entry(name) {
                Entry::Occupied(at) => writes[*at.get()] = write,
                Entry::Vacant(free) => {
                    free.insert(writes.len());
                    writes.push(write);
                }
            }
        }
        let hasher = &self.hasher;
        let same = blocking(|| {
            for checks in checks.chunks_mut(BATCH) {
                let mut reads: Vec<Operation> =
                    checks.iter().map(|(read, _)| read.clone()).collect();
                ndb.execute(&mut reads)?;
                if reads.iter().any(|read| read.code == LOCKED) {
                    return Err(NdbError::locked());
                }
                let is_same =
                    |(read, (_, image)): (&Operation, &(Operation, Option<u64>))| match read.code {
                        0 => *image == Some(hasher.hash_one(&read.row)),
                        NO_ROW => image.is_none(),
                        _ => false,
                    };
                if !reads.iter().zip(checks.iter()).all(is_same) {
                    return Ok(false);
                }
            }
            for writes in writes.chunks_mut(BATCH) {
                ndb.execute(writes)?;
                if writes.iter().any(|write| write.code == LOCKED) {
                    return Err(NdbError::locked());
                }
                if writes.iter().any(|write| !matches!(write.code, 0 | NO_ROW)) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        if same {
            self.active = Some(Active { link: link.clone(), ndb });
        }
        Ok(same)
    }

    /// Reads rows under a lock; each is in its operation then. Waits for other clients of the cluster.
    pub(crate) fn read_locked(
        &mut self,
        reads: &mut [Operation],
        wait: WaitPolicy,
    ) -> EngineResult<()> {
        self.execute(reads)?;
        self.pass_fences()?;
        let began = clock::monotonic();
        let mut pause = PAUSE_MIN;
        while let Some(at) = reads.iter().position(|read| read.code == LOCKED) {
            match wait {
                WaitPolicy::NoWait => return Err(EngineError::LockNotAvailable),
                WaitPolicy::SkipLocked => break,
                WaitPolicy::Wait | WaitPolicy::Peek => {}
            }
            if self.cancel.is_cancelled() {
                return Err(EngineError::Cancelled);
            }
            if clock::monotonic().saturating_sub(began) > self.lock_wait_timeout {
                return Err(EngineError::LockWaitTimeout);
            }
            blocking(|| sys::threads::sleep(pause));
            pause = (pause * 2).min(PAUSE_MAX);
            self.execute(&mut reads[at..=at])?;
        }
        for read in reads.iter().filter(|read| matches!(read.code, 0 | NO_ROW)) {
            self.keep_locked(read);
        }
        Ok(())
    }

    /// A row was read under a lock.
    fn keep_locked(&mut self, read: &Operation) {
        let image = (read.code == 0).then(|| self.hasher.hash_one(&read.row));
        self.locked.push(Locked {
            table: read.table.clone(),
            key: read.key.clone(),
            hold: read.hold,
            image,
        });
    }

    /// Whether the end of the cluster's transaction would lose anything.
    pub(crate) fn holds_anything(&self) -> bool {
        !self.undo.is_empty() || !self.locked.is_empty()
    }

    /// Runs a read that waits for its lock, in a transaction that has nothing to lose. `None`: the cluster has ended it after too long a wait.
    pub(crate) fn execute_or_lose(&mut self, read: Operation) -> EngineResult<Option<Operation>> {
        let mut read = [read];
        loop {
            self.activate(None)?;
            let Some(active) = &mut self.active else { continue };
            match blocking(|| active.ndb.execute(&mut read)) {
                Ok(()) => break,
                Err(error) if error.is_lock_wait() => {
                    self.leave_cluster();
                    return Ok(None);
                }
                Err(error) => {
                    let link = active.link.clone();
                    self.recover(&link, error)?;
                }
            }
        }
        let [read] = read;
        self.keep_locked(&read);
        Ok(Some(read))
    }

    /// Ends the transaction, undoing everything.
    pub(crate) fn rollback_whole(&mut self) {
        self.leave_cluster();
        self.undo_definitions_to(0);
        self.end();
    }

    /// Makes writes that nothing can refuse, and notes how to undo them. `old` has the image of each row before.
    pub(crate) fn write(
        &mut self,
        operations: &mut [Operation],
        old: Vec<Option<Vec<u8>>>,
    ) -> EngineResult<()> {
        self.execute(operations)?;
        self.writes += 1;
        for (operation, old) in operations.iter_mut().zip(old) {
            if operation.code != 0 {
                continue;
            }
            let new = (operation.kind != Kind::Delete).then(|| std::mem::take(&mut operation.row));
            let (table, key) = (operation.table.clone(), std::mem::take(&mut operation.key));
            self.undo.push(Undo::Row { table, key, old, new });
        }
        self.pass_fences()
    }

    /// Writes back the images of rows before the changes above `mark`.
    pub(crate) fn undo_to(&mut self, mark: usize) -> EngineResult<()> {
        let mut rows: Vec<Operation> = Vec::new();
        let mut places: HashMap<(String, Vec<u8>), usize> = HashMap::new();
        for undo in self.undo.iter().skip(mark).rev() {
            let Undo::Row { table, key, old, .. } = undo else { continue };
            let write = match old {
                Some(old) => Operation::new(Kind::Write, table, key, old),
                None => Operation::new(Kind::Delete, table, key, &[]),
            };
            match places.entry((table.name.clone(), key.clone())) {
                Entry::Occupied(at) => rows[*at.get()] = write,
                Entry::Vacant(free) => {
                    free.insert(rows.len());
                    rows.push(write);
                }
            }
        }
        for rows in rows.chunks_mut(BATCH) {
            self.execute(rows)?;
            if let Some(failed) = rows.iter().find(|row| !matches!(row.code, 0 | NO_ROW)) {
                let error =
                    errors::Error::internal(format!("NDB error {} while undoing", failed.code));
                self.rollback()?;
                return Err(EngineError::TransactionLost(error));
            }
        }
        self.undo_definitions_to(mark);
        self.undo.truncate(mark);
        self.writes += 1;
        self.forget_held();
        Ok(())
    }

    fn undo_definitions_to(&mut self, mark: usize) {
        let link = self.link();
        for undo in self.undo.drain(mark.min(self.undo.len())..).rev() {
            match undo {
                Undo::Created(names) => {
                    if let Ok(link) = &link {
                        names.iter().for_each(|name| link.drop_part(name));
                    }
                }
                Undo::Defined { table, before: None } => {
                    self.own.remove(&table);
                }
                Undo::Defined { table, before: Some(before) } => {
                    self.own.insert(table, before);
                }
                Undo::Row { .. } | Undo::Dropped { .. } => {}
            }
        }
    }

    /// Sets a definition of this transaction.
    pub(crate) fn define(&mut self, id: TableId, table: Option<Arc<Table>>) {
        let before = self.own.insert(id, table);
        self.undo.push(Undo::Defined { table: id, before });
    }

    pub(crate) fn undo_length(&self) -> usize {
        self.undo.len()
    }

    pub(crate) fn push_undo(&mut self, undo: Undo) {
        self.undo.push(undo);
    }

    pub(crate) fn hold(&mut self, table: TableId, locator: &[u8], record: &[u8]) {
        self.held_bytes += locator.len() + record.len();
        if self.held_bytes > HELD_BYTES_MAX {
            self.forget_held();
        }
        self.held.insert((table, locator.to_vec()), record.to_vec());
    }

    pub(crate) fn take_held(&mut self, table: TableId, locator: &[u8]) -> Option<Vec<u8>> {
        if self.held.is_empty() {
            return None;
        }
        self.held.remove(&(table, locator.to_vec()))
    }

    pub(crate) fn forget_held(&mut self) {
        self.held.clear();
        self.held_bytes = 0;
    }

    /// The effects that wait for the commit.
    fn apply_commit_effects(&mut self, link: &Link) {
        for undo in std::mem::take(&mut self.undo) {
            let Undo::Dropped { table, names, whole } = undo else { continue };
            self.shared.links.forget(table);
            names.iter().for_each(|name| link.drop_part(name));
            if whole {
                self.shared.forget_counters(table);
                self.shared.statistics.forget(table);
            }
        }
        for (id, table) in std::mem::take(&mut self.own) {
            self.shared.statistics.forget(id);
            self.shared.links.forget(id);
            if let Some(table) = table {
                link.remember(&table);
            }
        }
    }

    fn end(&mut self) {
        self.cursors.clear();
        self.active = None;
        if let Some(owner) = self.owner.take() {
            self.shared.locks.release_all(&owner);
        }
        self.undo.clear();
        self.locked.clear();
        self.own.clear();
        self.pending.clear();
        self.fences = Fences::default();
        self.filling = None;
        self.forget_held();
        self.started = false;
    }

    fn commit_cluster(&mut self) -> EngineResult<()> {
        loop {
            let Some(Active { link, ndb }) = self.active.take() else { return Ok(()) };
            match blocking(|| ndb.commit()) {
                Ok(()) => {
                    self.apply_commit_effects(&link);
                    return Ok(());
                }
                Err(error) if error.is_unknown() => {
                    let error = error.word_loss();
                    self.end();
                    return Err(EngineError::OutcomeUnknown(error));
                }
                Err(error) => self.recover(&link, error)?,
            }
        }
    }

    pub(crate) fn get_secondary(
        &mut self,
        table: &Arc<Table>,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        /// Tries while others change the row.
        const TRIES: usize = 16;
        let index = table.index(index)?;
        for _ in 0..TRIES {
            let mut read = [Operation::read(&index.entries, key, Hold::Nothing)];
            self.execute(&mut read)?;
            if read[0].code != 0 {
                return Ok(GetOutcome::NotFound);
            }
            let (_, locator) = crate::table::split_entry(key, &read[0].row)?;
            let outcome = self.get_clustered(table, locator, lock, wait, out)?;
            match outcome {
                GetOutcome::Skipped => return Ok(outcome),
                GetOutcome::Found if index.entry(&out.record, &out.locator)?.key == key => {
                    return Ok(outcome);
                }
                // It was changed between the two reads.
                GetOutcome::Found | GetOutcome::NotFound => {}
            }
        }
        out.clear();
        Ok(GetOutcome::NotFound)
    }

    pub(crate) fn get_clustered(
        &mut self,
        table: &Arc<Table>,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        out.clear();
        let hold = hold_of(lock);
        let mut read = [Operation::read(&table.rows, key, hold)];
        if let Some(mode) = mode_of(lock) {
            self.fence(table)?;
            if !self.lock(&crate::write::row_name(table.id(), key), mode, wait)? {
                return Ok(GetOutcome::Skipped);
            }
            self.read_locked(&mut read, wait)?;
        } else {
            self.execute(&mut read)?;
        }
        match read[0].code {
            0 => {}
            LOCKED => return Ok(GetOutcome::Skipped),
            _ => return Ok(GetOutcome::NotFound),
        }
        out.locator.extend_from_slice(key);
        out.record.extend_from_slice(&read[0].row);
        if lock == RowLock::Exclusive {
            self.hold(table.id(), key, &read[0].row);
        }
        Ok(GetOutcome::Found)
    }
}

/// The local lock that a read takes.
pub(crate) fn mode_of(lock: RowLock) -> Option<Mode> {
    match lock {
        RowLock::None => None,
        RowLock::Shared => Some(Mode::Shared),
        RowLock::Exclusive => Some(Mode::Exclusive),
    }
}

/// The lock in the cluster that a read takes.
pub(crate) fn hold_of(lock: RowLock) -> Hold {
    match lock {
        RowLock::None => Hold::Nothing,
        RowLock::Shared => Hold::Shared,
        RowLock::Exclusive => Hold::Exclusive,
    }
}

impl Drop for NdbEngineTransaction {
    fn drop(&mut self) {
        // Nobody is left to tell.
        let _ = self.rollback();
    }
}

impl Transaction for NdbEngineTransaction {
    fn start(&mut self, options: &TxnOptions) -> EngineResult<()> {
        if self.started {
            self.rollback()?;
        }
        self.started = true;
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
        !self.undo.is_empty() || !self.pending.is_empty()
    }

    // The engine has no snapshots: each read sees what is committed when it is made.
    fn take_snapshot(&mut self) {}

    fn renew_snapshot(&mut self) {}

    fn begin_statement(&mut self) {
        self.forget_held();
    }

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(self.undo.len() as u64)
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> EngineResult<()> {
        self.filling = None;
        self.pending.clear();
        self.undo_to((savepoint.0 as usize).min(self.undo.len()))
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        self.send_pending()?;
        self.cursors.clear();
        if self.undo.is_empty() && self.locked.is_empty() {
            // It has only read: nothing needs to be told to the cluster.
            self.end();
            return Ok(CommitHandle::Durable);
        }
        if self.fences.has_unshared(&self.own) {
            self.rollback_whole();
            return Err(errors::Error::internal("a definition is not shared at its commit").into());
        }
        self.raise_version()?;
        self.commit_cluster()?;
        self.end();
        Ok(CommitHandle::Durable)
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.rollback_whole();
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
        self.send_pending()?;
        let table = self.table(table)?;
        match index {
            IndexId::CLUSTERED => self.get_clustered(&table, key, lock, wait, out),
            index => self.get_secondary(&table, index, key, lock, wait, out),
        }
    }

    fn get_many(
        &mut self,
        table: TableId,
        index: IndexId,
        keys: &KeyList,
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut FoundRows,
    ) -> EngineResult<()> {
        out.reset(keys.len());
        self.send_pending()?;
        let table = self.table(table)?;
        match index {
            IndexId::CLUSTERED => {
                let keys: Vec<&[u8]> = keys.iter().collect();
                self.get_many_clustered(&table, &keys, lock, wait, |at, row| out.put(at, row))
            }
            index => self.get_many_secondary(&table, index, keys, lock, wait, out),
        }
    }

    fn open_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        let table = self.table(spec.table)?;
        self.keep_cursor(Cursor::open(table, spec, false)?)
    }

    fn open_key_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        let table = self.table(spec.table)?;
        self.keep_cursor(Cursor::open(table, spec, true)?)
    }

    fn fetch(
        &mut self,
        cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        self.send_pending()?;
        let slot = self.cursors.get_mut(cursor.0 as usize);
        let Some(mut open) = slot.and_then(Option::take) else { return Ok(0) };
        let outcome = self.fetch_from(&mut open, limit, batch);
        // The end of the transaction has closed every cursor.
        match self.cursors.get_mut(cursor.0 as usize) {
            Some(slot) if self.started => *slot = Some(open),
            Some(_) | None => {}
        }
        outcome
    }

    fn close_cursor(&mut self, cursor: CursorId) {
        if let Some(slot) = self.cursors.get_mut(cursor.0 as usize) {
            *slot = None;
        }
    }

    // Locks stay until the end (`Capabilities::early_unlock`).
    fn unlock_row(&mut self, _table: TableId, _locator: &[u8]) {}

    fn insert(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.insert_row(table, record)
    }

    fn hold_back_inserts(&mut self) {
        self.pending.is_open = true;
    }

    fn send_inserts(&mut self) -> EngineResult<()> {
        let sent = self.send_pending();
        self.pending.is_open = false;
        sent
    }

    fn refused_record(&mut self) -> Option<Vec<u8>> {
        self.pending.refused.take()
    }

    fn expect_rows(&mut self, table: TableId) -> EngineResult<()> {
        // Nobody else sees a table that this transaction has made, and it goes whole if it is rolled back.
        let is_new = |undo: &Undo| matches!(undo, Undo::Defined { table: made, before: None } if *made == table);
        let has_definition = self.own.get(&table).is_some_and(Option::is_some);
        let created = self.undo.iter().any(|undo| matches!(undo, Undo::Created(names) if names.contains(&crate::table::rows_name(table))));
        self.filling = (has_definition && created && self.undo.iter().any(is_new)).then_some(table);
        Ok(())
    }

    fn rows_are_over(&mut self) -> EngineResult<()> {
        let sent = self.send_pending();
        self.filling = None;
        sent
    }

    fn inserted_locator(&self) -> &[u8] {
        &self.inserted
    }

    fn update(&mut self, table: TableId, locator: &[u8], record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.send_pending()?;
        self.update_row(table, locator, record)
    }

    fn delete(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.send_pending()?;
        self.delete_row(table, locator)
    }

    fn create_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        self.create(def)
    }

    fn drop_table(&mut self, table: TableId) -> EngineResult<()> {
        self.check_writable()?;
        self.drop_whole(table)
    }

    fn alter_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        self.redefine(def)
    }

    fn lock_definition(&mut self, table: TableId) -> EngineResult<()> {
        self.lock_stamp(table)
    }

    fn share_definitions(&mut self, changes: &[SharedChange<'_>]) -> EngineResult<Vec<u64>> {
        self.share(changes)
    }

    fn create_index(&mut self, table: TableId, index: &IndexDef) -> EngineResult<()> {
        self.check_writable()?;
        self.build_index(table, index)
    }

    fn drop_index(&mut self, table: TableId, index: IndexId) -> EngineResult<()> {
        self.check_writable()?;
        self.remove_index(table, index)
    }
}

impl NdbEngineTransaction {
    fn keep_cursor(&mut self, cursor: Cursor) -> EngineResult<CursorId> {
        let free = self.cursors.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.cursors.push(None);
            self.cursors.len() - 1
        });
        self.cursors[at] = Some(cursor);
        Ok(CursorId(at as u32))
    }
}

/// Whether a write was refused because a row has its key.
pub(crate) fn is_duplicate(operation: &Operation) -> bool {
    operation.code == DUPLICATE
}
