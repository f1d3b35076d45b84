//! A transaction: its snapshot, locks and undo, and the contract's methods.

use std::sync::Arc;
use std::time::Duration;

use btree::{LeafPlace, NearLeaf};
use engine_api::{
    CancelToken, CommitHandle, CommitWait, CursorId, EngineError, EngineResult, FoundRows,
    GetOutcome, IndexDef, IndexId, IsolationLevel, KeyContent, KeyList, LOOKUPS_MAX, NotedPass,
    RowBatch, RowBuf, RowLock, Savepoint, ScanSpec, SnapshotReader, TableDef, TableId, Transaction,
    TxnOptions, WaitPolicy,
};
use errors::{Error, ErrorCode};
use locks::{Mode, Owner, OwnerNumbers, lock_name};
use stdx::LocalArc;
use sys::blocking::blocking;
use txn::{Snapshot, TxnState};
use wal::Log;

use crate::attachments::Attaching;
use crate::bulk::Expected;
use crate::cursor::Cursor;
use crate::deferred_entries::DeferredEntries;
use crate::dictionary::RecentTables;
use crate::entry_reader::EntryReader;
use crate::error::io_error;
use crate::error::{is_full, name_table};
use crate::obstacle::Locked;
use crate::read::{View, visible};
use crate::row::{Header, append_record};
use crate::shared::Shared;
use crate::snapshot_reader::Reader;
use crate::table::Table;
use crate::undo::KeepLocks;

/// A change of the table map that waits for the commit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    Created(TableId),
    Dropped(TableId),
    /// An index with this tree, which this transaction built at a snapshot that it still has, or an older one than all that it takes.
    Built(TableId, u64),
}

/// See `engine_api::Transaction`.
pub(crate) struct Txn {
    /// A reference count of this object alone: clones by methods touch no count that other transactions use.
    pub(crate) shared: LocalArc<Shared>,
    slot: Option<usize>,
    pub(crate) started: bool,
    pub(crate) isolation: IsolationLevel,
    /// The session that owns it, for reports.
    pub(crate) session: u64,
    read_only: bool,
    pub(crate) may_be_prepared: bool,
    pub(crate) lock_wait_timeout: Duration,
    pub(crate) cancel: CancelToken,
    snapshot: Option<Snapshot>,
    pub(crate) owner: Option<Arc<Owner>>,
    pub(crate) owner_numbers: OwnerNumbers,
    pub(crate) core: Option<Arc<TxnState>>,
    /// E9. It outlives the transaction: the next one's snapshot must not be older.
    pub(crate) seen: u64,
    /// Changes since the object was created.
    changes: u64,
    cursors: Vec<Option<Cursor>>,
    /// A cache of tables, so that transactions do not contend for the dictionary.
    tables: RecentTables,
    /// Locks of this statement start at this place of the owner's list.
    pub(crate) statement_locks: usize,
    /// Each with its undo mark.
    pub(crate) pending: Vec<(u64, Pending)>,
    /// Locator of the row inserted last.
    pub(crate) inserted: Vec<u8>,
    /// The bulk insert of expected rows (E14).
    pub(crate) expected: Expected,
    /// Deferred changes of entries (E20).
    pub(crate) deferred: DeferredEntries,
    /// The table whose indexes this transaction builds, or whose changed rows are noted for it.
    pub(crate) building: Option<TableId>,
    /// It made an index public that older snapshots cannot use: the commit is durable, and seen, before it returns.
    pub(crate) made_public: bool,
    /// Memory for copies of leaves, from closed cursors.
    pub(crate) leaves: Vec<btree::LeafCopy>,
    /// The clustered leaf changed last.
    pub(crate) near: NearLeaf,
    /// The place where `read_unlocked` found its row, and the version that it read, which is in `before`.
    pub(crate) read: Option<(LeafPlace, Header)>,
    /// Scratch: a row's value.
    pub(crate) value: Vec<u8>,
    /// Scratch: the places of keys in their order.
    pub(crate) key_order: Vec<u32>,
    /// Scratch: a lock's name.
    pub(crate) name: Vec<u8>,
    /// Scratch: a row's value before a change, and an undo entry.
    pub(crate) before: Vec<u8>,
    pub(crate) payload: Vec<u8>,
    /// What is attached to the commit.
    pub(crate) attaching: Attaching,
    /// Scratch: parts of an undo entry.
    pub(crate) difference: Vec<u8>,
    pub(crate) gone: Vec<u8>,
}

struct LogWait {
    /// The transaction's own, so that committing threads do not contend for a count.
    shared: LocalArc<Shared>,
    ticket: u64,
}

impl LogWait {
    fn log(&self) -> &Log {
        &self.shared.system.log
    }
}

/// For a thread that waits until everything up to a ticket is durable.
pub(crate) fn commit_handle(shared: &LocalArc<Shared>, ticket: u64) -> CommitHandle {
    match shared.system.log.is_acknowledged(ticket) {
        true => CommitHandle::Durable,
        false => CommitHandle::Pending(Arc::new(LogWait { shared: shared.clone(), ticket })),
    }
}

impl CommitWait for LogWait {
    fn is_durable(&self) -> bool {
        self.log().is_acknowledged(self.ticket)
    }

    fn wait(&self) -> EngineResult<()> {
        match self.is_durable() {
            true => Ok(()),
            false => blocking(|| self.log().commit_wait(self.ticket)).map_err(io_error),
        }
    }

    fn notify(&self, wake: Box<dyn FnOnce() + Send>) {
        self.log().notify(self.ticket, wake);
    }

    fn lead(&self, patience: Duration, wake: Box<dyn FnOnce() + Send>) -> EngineResult<bool> {
        self.log().lead(self.ticket, patience, wake).map_err(io_error)
    }
}

fn mode_of(lock: RowLock) -> Option<Mode> {
    match lock {
        RowLock::None => None,
        RowLock::Shared => Some(Mode::Shared),
        RowLock::Exclusive => Some(Mode::Exclusive),
    }
}

impl Txn {
    pub(crate) fn new(shared: Arc<Shared>) -> Txn {
        Txn {
            slot: shared.system.slots.take(),
            shared: Arc::new(shared),
            started: false,
            isolation: IsolationLevel::default(),
            session: 0,
            read_only: false,
            may_be_prepared: false,
            lock_wait_timeout: Duration::from_secs(50),
            cancel: CancelToken::new(),
            snapshot: None,
            owner: None,
            owner_numbers: OwnerNumbers::default(),
            core: None,
            seen: 0,
            changes: 0,
            cursors: Vec::new(),
            tables: RecentTables::default(),
            statement_locks: 0,
            pending: Vec::new(),
            inserted: Vec::new(),
            expected: Expected::Nothing,
            deferred: DeferredEntries::default(),
            building: None,
            made_public: false,
            leaves: Vec::new(),
            near: NearLeaf::default(),
            read: None,
            value: Vec::new(),
            key_order: Vec::new(),
            name: Vec::new(),
            before: Vec::new(),
            payload: Vec::new(),
            attaching: Attaching::default(),
            difference: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Id of its writes; 0 before the first.
    #[inline]
    pub(crate) fn own_id(&self) -> u64 {
        self.core.as_ref().map_or(0, |core| core.id)
    }

    #[inline]
    pub(crate) fn table_ref(&mut self, id: TableId) -> EngineResult<&LocalArc<Table>> {
        self.tables.get(&self.shared.dictionary, id)
    }

    /// A reference count of this object alone, like `shared`.
    pub(crate) fn table(&mut self, id: TableId) -> EngineResult<LocalArc<Table>> {
        self.table_ref(id).cloned()
    }

    #[inline]
    pub(crate) fn view(&mut self) -> EngineResult<View> {
        let own = self.own_id();
        if self.isolation == IsolationLevel::ReadUncommitted {
            return Ok(View { snapshot: None, own });
        }
        let snapshot = match self.snapshot {
            Some(snapshot) => snapshot,
            None => self.new_snapshot()?,
        };
        Ok(View { snapshot: Some(snapshot), own })
    }

    fn new_snapshot(&mut self) -> EngineResult<Snapshot> {
        if self.seen >= self.shared.system.log.visible() {
            self.wait_durable(self.seen)?;
        }
        let too_many = || Error::with(ErrorCode::TOO_MANY_CONCURRENT_TRXS, &[]);
        let slot = self.slot.ok_or_else(too_many)?;
        let snapshot = self.shared.system.snapshot(slot);
        self.snapshot = Some(snapshot);
        Ok(snapshot)
    }

    /// Holds purge back from here on, at any isolation level.
    pub(crate) fn pin_snapshot(&mut self) -> EngineResult<()> {
        match self.snapshot {
            Some(_) => Ok(()),
            None => self.new_snapshot().map(drop),
        }
    }

    fn release_snapshot(&mut self) {
        if self.snapshot.take().is_some()
            && let Some(slot) = self.slot
        {
            self.shared.system.slots.release(slot);
        }
    }

    /// Whether locking reads lock the gaps between rows too.
    pub(crate) fn locks_gaps(&self) -> bool {
        matches!(self.isolation, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
    }

    fn check_writable(&self) -> EngineResult<()> {
        if self.read_only { Err(EngineError::ReadOnly) } else { Ok(()) }
    }

    /// A place in the undo.
    pub(crate) fn undo_mark(&self) -> u64 {
        self.core.as_ref().map_or(0, |core| core.last_undo().0)
    }

    /// Like `undo_mark`, at the beginning of a change.
    pub(crate) fn start_change(&mut self) -> EngineResult<u64> {
        /// Changes between two waits of a transaction that makes many: commits of small ones wait for themselves.
        const BRAKE_EVERY: u64 = 256;
        self.changes += 1;
        if self.changes.is_multiple_of(BRAKE_EVERY) {
            self.shared.brake();
            self.relieve_locks();
        }
        if self.shared.is_short() {
            self.shared.wait_for_reserve(&self.cancel)?;
        }
        let Some(core) = &self.core else { return Ok(0) };
        self.shared.system.start_change(core).map(|mark| mark.0).map_err(io_error)
    }

    pub(crate) fn undo_to(&mut self, mark: u64, keep_locks: bool) -> EngineResult<()> {
        if self.drop_bulk_behind(mark) {
            return Ok(());
        }
        self.undo_deferred(mark)?;
        let Some(core) = self.core.clone() else { return Ok(()) };
        let keep = if keep_locks { KeepLocks::Yes } else { KeepLocks::No };
        self.shared.undo_to(&core, mark, keep)?;
        self.pending.retain(|(at, _)| *at <= mark);
        Ok(())
    }

    pub(crate) fn roll_back_all(&mut self) -> EngineResult<()> {
        self.expected = Expected::Nothing;
        self.stop_builds()?;
        let undone = self.undo_to(0, false);
        if let Some(core) = self.core.take() {
            match &undone {
                Ok(()) => self.shared.system.finish_rollback(&core),
                // The rows stay locked until the background has undone them.
                Err(_) => {
                    self.owner = None;
                    self.shared.abandoned.lock().push(core);
                }
            }
        }
        self.end();
        undone
    }

    pub(crate) fn end(&mut self) {
        self.expected = Expected::Nothing;
        self.deferred = DeferredEntries::default();
        if let Some(owner) = self.owner.take() {
            self.shared.system.locks.release_all(&owner);
        }
        self.release_snapshot();
        self.core = None;
        self.started = false;
        for cursor in std::mem::take(&mut self.cursors).into_iter().flatten() {
            self.keep_leaf(cursor);
        }
        self.pending.clear();
        self.building = None;
        self.made_public = false;
        self.statement_locks = 0;
        self.attaching.clear();
    }

    #[inline]
    fn get_consistent(
        &mut self,
        table: TableId,
        key: &[u8],
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        let tree = self.table_ref(table)?.clustered;
        let view = self.view()?;
        self.check_known(&view, table)?;
        let system = &self.shared.system;
        self.value.clear();
        let found = tree.get(&system.pool, key, &mut self.value).map_err(io_error)?;
        if !found || !visible(system, &view, &mut self.value)? {
            return Ok(GetOutcome::NotFound);
        }
        out.locator.extend_from_slice(key);
        append_record(&system.pool, &self.value, &mut out.record).map_err(io_error)?;
        Ok(GetOutcome::Found)
    }

    fn get_locked(
        &mut self,
        table: &Table,
        key: &[u8],
        mode: Mode,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        self.relieve_locks();
        let mut locked = self.lock_current(table, key, mode, wait)?;
        if matches!(locked, Locked::Missing) && self.locks_gaps() {
            // First lock the range, then read again: an insert in between is seen now or blocked from here on.
            self.lock_prefix(table.clustered.id, key);
            locked = self.lock_current(table, key, mode, wait)?;
        }
        match locked {
            Locked::Missing => Ok(GetOutcome::NotFound),
            Locked::Skipped => Ok(GetOutcome::Skipped),
            Locked::Found => {
                out.locator.extend_from_slice(key);
                let pool = &self.shared.system.pool;
                append_record(pool, &self.value, &mut out.record).map_err(io_error)?;
                Ok(GetOutcome::Found)
            }
        }
    }

    /// Refuses a table that was created after the snapshot was taken.
    #[inline]
    pub(crate) fn check_known(&self, view: &View, table: TableId) -> EngineResult<()> {
        let new_tables = &self.shared.dictionary.new_tables;
        match view.snapshot {
            Some(snapshot) if new_tables.is_newer(table, snapshot.ts) => Err(definition_changed()),
            _ => Ok(()),
        }
    }

    /// Like `check_known`, for an index that was built after the snapshot was taken.
    fn check_usable(&mut self, table: &Table, at: usize) -> EngineResult<()> {
        let view = self.view()?;
        match view.snapshot {
            Some(snapshot)
                if snapshot.ts <= table.indexes[at].usable_from
                    && !self.has_built(table.indexes[at].tree.id) =>
            {
                Err(definition_changed())
            }
            _ => self.check_known(&view, table.id),
        }
    }

    /// Whether this transaction built the index: nobody has changed the table since.
    fn has_built(&self, tree: u64) -> bool {
        let is_own = |(_, pending): &(u64, Pending)| match pending {
            Pending::Built(_, built) => *built == tree,
            Pending::Created(_) | Pending::Dropped(_) => false,
        };
        self.pending.iter().any(is_own)
    }

    fn lock_prefix(&mut self, space: u64, key: &[u8]) {
        let owner = self.owner();
        let end = crate::keys::successor(key);
        self.shared.system.locks.lock_range(&owner, space, key, end.as_deref());
    }

    /// Reads by a unique secondary index, from the snapshot: tries the few entries with the key until one is the visible version's (E3).
    fn get_secondary_consistent(
        &mut self,
        table: &Table,
        at: usize,
        key: &[u8],
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        let view = self.view()?;
        let (system, index) = (&self.shared.system, &table.indexes[at]);
        let pool = &system.pool;
        let (mut start, mut sql) = (key.to_vec(), Vec::new());
        loop {
            let entry = &mut self.name;
            entry.clear();
            let word = {
                let seek = btree::Seek::At(&start);
                let leaf = index.tree.shared_leaf(pool, seek).map_err(io_error)?;
                let page = leaf.page();
                let slot = page.search(&start).0;
                if slot == page.count() {
                    match page.upper_fence(&mut start) {
                        true => continue,
                        false => return Ok(GetOutcome::NotFound),
                    }
                }
                page.copy_key(slot, entry);
                page.value_word(slot, 0)
            };
            if !entry.starts_with(key) {
                return Ok(GetOutcome::NotFound);
            }
            let (length, _) = crate::entry::read_entry(word);
            let locator = entry.get(length..).unwrap_or(&[]);
            self.value.clear();
            let found = table.clustered.get(pool, locator, &mut self.value).map_err(io_error)?;
            if length == key.len() && found && visible(system, &view, &mut self.value)? {
                out.clear();
                append_record(pool, &self.value, &mut out.record).map_err(io_error)?;
                if index.keys.has(&out.record, key, &mut sql)? {
                    out.locator.extend_from_slice(locator);
                    return Ok(GetOutcome::Found);
                }
                out.clear();
            }
            start.clear();
            start.extend_from_slice(entry);
            // The smallest key above it.
            start.push(0);
        }
    }

    /// Reads by a unique secondary index, locking: a scan of one row.
    fn get_secondary(
        &mut self,
        table: LocalArc<Table>,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        let at = table.index_at(index)?;
        if lock == RowLock::None {
            self.check_usable(&table, at)?;
            return self.get_secondary_consistent(&table, at, key, out);
        }
        let space = table.indexes[at].tree.id;
        let mut cursor = Cursor::point(table, index, key, mode_of(lock), wait)?;
        let mut batch = RowBatch::new();
        let mut found = self.fetch_from(&mut cursor, 1, &mut batch)?;
        if found == 0 && !cursor.skipped && self.locks_gaps() {
            self.lock_prefix(space, key);
            cursor.restart();
            found = self.fetch_from(&mut cursor, 1, &mut batch)?;
        }
        let skipped = cursor.skipped;
        self.keep_leaf(cursor);
        match (found, skipped) {
            (0, true) => Ok(GetOutcome::Skipped),
            (0, false) => Ok(GetOutcome::NotFound),
            _ => {
                let row = batch.row(0);
                out.locator.extend_from_slice(row.locator);
                out.record.extend_from_slice(row.record);
                Ok(GetOutcome::Found)
            }
        }
    }

    fn keep_leaf(&mut self, mut cursor: Cursor) {
        /// Copies kept by an idle session: 16 KiB each.
        const LEAVES_MAX: usize = 2;
        if self.leaves.len() < LEAVES_MAX {
            self.leaves.extend(cursor.leaf.take());
        }
    }

    /// Adds the table's name to an error of its files.
    #[cold]
    fn name_table(&mut self, id: TableId, error: EngineError) -> EngineError {
        match self.table(id) {
            Ok(table) if is_full(&error) => self.shared.table_is_full(&table.def.name),
            Ok(table) => name_table(&table.def, error),
            Err(_) => error,
        }
    }

    fn apply_pending(&mut self, ticket: u64) {
        let dictionary = &self.shared.dictionary;
        for (_, pending) in self.pending.drain(..) {
            match pending {
                Pending::Created(id) => {
                    dictionary.new_tables.add(id, ticket, || self.shared.system.horizon());
                    if let Ok(table) = dictionary.get(id) {
                        table.counters.committed.store(true, sys::sync::atomic::Ordering::Release);
                    }
                }
                Pending::Dropped(id) => dictionary.remove(id),
                Pending::Built(id, tree) => {
                    // The tree has the newest versions only: snapshots that do not see this commit need older ones.
                    let Ok(table) = dictionary.get(id) else { continue };
                    let mut built = table.counters.built.lock();
                    let own = built.iter_mut().filter(|(known, _)| *known == tree);
                    own.for_each(|(_, usable_from)| *usable_from = ticket);
                    drop(built);
                    if let Ok(renewed) = table.with_builds(Vec::new()) {
                        dictionary.put(Arc::new(renewed));
                    }
                }
            }
        }
    }
}

/// Error 1412: the snapshot's version of the table cannot be read any more.
#[cold]
fn definition_changed() -> EngineError {
    Error::with(ErrorCode::TABLE_DEF_CHANGED, &[]).into()
}

impl Drop for Txn {
    fn drop(&mut self) {
        // Changes that cannot be undone now are undone at the next start.
        let _ = self.rollback();
        if let Some(slot) = self.slot {
            self.shared.system.slots.give_back(slot);
        }
    }
}

impl Transaction for Txn {
    fn start(&mut self, options: &TxnOptions) -> EngineResult<()> {
        if self.started {
            self.rollback()?;
        }
        if self.slot.is_none() {
            self.slot = self.shared.system.slots.take();
        }
        self.started = true;
        self.isolation = options.isolation;
        if let Some(slot) = self.slot {
            let tag = crate::lock_report::snapshot_tag(self.session, self.isolation);
            self.shared.system.slots.tag(slot, tag);
        }
        self.read_only = options.read_only;
        self.may_be_prepared = options.may_be_prepared;
        self.lock_wait_timeout = options.lock_wait_timeout;
        self.cancel = options.cancel.clone();
        Ok(())
    }

    fn set_session(&mut self, session: u64) {
        self.session = session;
    }

    fn set_lock_wait_timeout(&mut self, timeout: Duration) {
        self.lock_wait_timeout = timeout;
    }

    fn is_started(&self) -> bool {
        self.started
    }

    fn has_written(&self) -> bool {
        self.undo_mark() != 0
    }

    fn take_snapshot(&mut self) {
        // A failure shows at the first read.
        let _ = self.view();
    }

    fn renew_snapshot(&mut self) {
        self.release_snapshot();
    }

    fn begin_statement(&mut self) {
        if !self.locks_gaps() {
            self.release_snapshot();
            self.statement_locks = self.owner.as_ref().map_or(0, |owner| owner.lock_count());
        }
    }

    fn savepoint(&mut self) -> Savepoint {
        self.note_savepoint();
        Savepoint(self.undo_mark())
    }

    fn rollback_to(&mut self, savepoint: Savepoint) -> EngineResult<()> {
        self.undo_to(savepoint.0, true)
    }

    fn attach(&mut self, bytes: &[u8]) -> EngineResult<()> {
        if !self.shared.config.keeps_attachments {
            return Err(Error::not_supported("attachments of commits").into());
        }
        if self.attaching.push(bytes, &self.shared.config.log) {
            let core = self.core();
            self.attaching.log(&self.shared.system, &core, &self.shared.config.log)?;
            self.shared.brake();
        }
        Ok(())
    }

    fn attached(&self) -> u64 {
        self.attaching.len()
    }

    fn detach_to(&mut self, length: u64) {
        if self.attaching.truncate(length) {
            let core = self.core();
            self.shared.system.detach(&core, length);
        }
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        if let Err(error) = self.end_bulk().and_then(|()| self.end_deferring()) {
            self.roll_back_all()?;
            return Err(error);
        }
        self.stop_builds()?;
        if !self.attaching.rest().is_empty() {
            self.core();
        }
        let Some(core) = self.core.take() else {
            let seen = self.seen;
            self.end();
            return Ok(commit_handle(&self.shared, seen));
        };
        let ticket = self.shared.system.commit(&core, self.attaching.rest());
        if self.attaching.len() > 0 {
            self.shared.attachments.committed(&self.shared.system.log, ticket);
        }
        if std::mem::take(&mut self.made_public) {
            // Otherwise snapshots taken now could be too old for the index.
            self.wait_durable(ticket)?;
        }
        self.apply_pending(ticket);
        self.end();
        self.shared.after_commit();
        self.shared.system.log.publish_relaxed();
        Ok(commit_handle(&self.shared, ticket))
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.roll_back_all()
    }

    fn prepare(&mut self, name: &[u8]) -> EngineResult<CommitHandle> {
        self.prepare_as(name)
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
        self.end_bulk_of(table)?;
        let outcome = match (index, mode_of(lock)) {
            (IndexId::CLUSTERED, None) => self.get_consistent(table, key, out),
            (IndexId::CLUSTERED, Some(mode)) => {
                let table = self.table(table)?;
                self.get_locked(&table, key, mode, wait, out)
            }
            _ => {
                self.make_deferred_of(table, index)?;
                let table = self.table(table)?;
                self.get_secondary(table, index, key, lock, wait, out)
            }
        };
        outcome.map_err(|error| self.name_table(table, error))
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
        debug_assert!(keys.len() <= LOOKUPS_MAX, "a list of keys is bounded");
        out.reset(keys.len());
        if index == IndexId::CLUSTERED && lock == RowLock::None {
            self.end_bulk_of(table)?;
            let found = self.get_many_consistent(table, keys, out);
            return found.map_err(|error| self.name_table(table, error));
        }
        let mut row = RowBuf::default();
        for (at, key) in keys.iter().enumerate() {
            if self.get(table, index, key, lock, wait, &mut row)? == GetOutcome::Found {
                out.put(at, row.as_row());
            }
        }
        Ok(())
    }

    fn read_unlocked(
        &mut self,
        table: TableId,
        key: &[u8],
        record: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        self.read = None;
        self.end_bulk_of(table)?;
        let tree = self.table_ref(table)?.clustered;
        let read = self.read_row_unlocked(tree, key, record);
        read.map_err(|error| self.name_table(table, error))
    }

    fn write_if_unchanged(
        &mut self,
        table: TableId,
        key: &[u8],
        record: Option<&[u8]>,
    ) -> EngineResult<bool> {
        self.check_writable()?;
        let found = self.table(table)?;
        let outcome = self.write_row_if_unchanged(&found, key, record);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn open_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        self.end_bulk_of(spec.table)?;
        self.make_deferred_of(spec.table, spec.index)?;
        let table = self.table(spec.table)?;
        if spec.lock == RowLock::None {
            match spec.index {
                IndexId::CLUSTERED => {
                    let view = self.view()?;
                    self.check_known(&view, table.id)?;
                }
                index => self.check_usable(&table, table.index_at(index)?)?,
            }
        }
        let cursor = Cursor::open(table, spec, mode_of(spec.lock))?;
        let free = self.cursors.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.cursors.push(None);
            self.cursors.len() - 1
        });
        self.cursors[at] = Some(cursor);
        Ok(CursorId(at as u32))
    }

    fn open_key_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        let id = self.open_cursor(spec)?;
        if let Some(Some(cursor)) = self.cursors.get_mut(id.0 as usize) {
            cursor.gives_keys = spec.index != IndexId::CLUSTERED;
        }
        Ok(id)
    }

    fn fetch(
        &mut self,
        cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        let slot = self.cursors.get_mut(cursor.0 as usize);
        let Some(mut open) = slot.and_then(Option::take) else { return Ok(0) };
        let outcome = self.make_deferred_before(open.table(), open.index());
        let outcome = outcome.and_then(|()| self.fetch_from(&mut open, limit, batch));
        let outcome = outcome.map_err(|error| self.name_table(open.table_id(), error));
        // A deadlock has ended the transaction and with it every cursor.
        if let Some(slot) = self.cursors.get_mut(cursor.0 as usize) {
            *slot = Some(open);
        }
        outcome
    }

    fn snapshot_reader(
        &mut self,
        table: TableId,
    ) -> EngineResult<Option<Box<dyn SnapshotReader + '_>>> {
        self.end_bulk_of(table)?;
        let found = self.table(table)?;
        let view = self.view()?;
        self.check_known(&view, table)?;
        let reader =
            Reader::new(Arc::clone(&self.shared), Arc::clone(&found), view, self.cancel.clone());
        Ok(Some(Box::new(reader)))
    }

    fn index_reader(
        &mut self,
        table: TableId,
        index: IndexId,
        content: KeyContent,
    ) -> EngineResult<Option<Box<dyn SnapshotReader + '_>>> {
        self.end_bulk_of(table)?;
        self.make_deferred_of(table, index)?;
        let found = self.table(table)?;
        let at = found.index_at(index)?;
        self.check_usable(&found, at)?;
        let view = self.view()?;
        let rows =
            Reader::new(Arc::clone(&self.shared), Arc::clone(&found), view, self.cancel.clone());
        Ok(Some(Box::new(EntryReader::new(rows, at, content))))
    }

    fn is_peeked(&self, cursor: CursorId) -> bool {
        let open = self.cursors.get(cursor.0 as usize);
        open.and_then(Option::as_ref).is_some_and(|open| open.peeked.is_some())
    }

    fn lock_peeked(&mut self, cursor: CursorId) {
        if let Some(Some(open)) = self.cursors.get_mut(cursor.0 as usize) {
            open.lock_peeked();
        }
    }

    fn close_cursor(&mut self, cursor: CursorId) {
        let slot = self.cursors.get_mut(cursor.0 as usize);
        if let Some(closed) = slot.and_then(Option::take) {
            self.keep_leaf(closed);
        }
    }

    fn unlock_row(&mut self, table: TableId, locator: &[u8]) {
        if self.locks_gaps() {
            return;
        }
        let tree = self.table_ref(table).map(|table| table.clustered.id);
        let (Ok(tree), Some(owner)) = (tree, self.owner.clone()) else { return };
        lock_name(tree, locator, &mut self.name);
        self.shared.system.locks.release_early(&owner, &self.name, self.statement_locks);
    }

    fn expect_rows(&mut self, table: TableId) -> EngineResult<()> {
        self.check_writable()?;
        if self.may_be_prepared {
            // The lock that protects such trees is in memory only (E14).
            return Ok(());
        }
        let found = self.table(table)?;
        self.expect_rows_in(&found)
    }

    fn rows_are_over(&mut self) -> EngineResult<()> {
        self.end_bulk()
    }

    fn expect_changes(&mut self) -> EngineResult<()> {
        self.begin_deferring()
    }

    fn changes_are_over(&mut self) -> EngineResult<()> {
        self.end_deferring()
    }

    fn insert(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        let found = self.table(table)?;
        let outcome = self.insert_row(&found, record, Mode::Shared);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn insert_or_lock(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        let found = self.table(table)?;
        let outcome = self.insert_row(&found, record, Mode::Exclusive);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn inserted_locator(&self) -> &[u8] {
        &self.inserted
    }

    fn update(&mut self, table: TableId, locator: &[u8], record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk_of(table)?;
        let found = self.table(table)?;
        let outcome = self.update_row(&found, locator, record);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn delete(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk_of(table)?;
        let found = self.table(table)?;
        let outcome = self.delete_row(&found, locator);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn create_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk()?;
        self.create_table_with(def)
    }

    fn drop_table(&mut self, table: TableId) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk()?;
        let table = self.table(table)?;
        self.drop_table_at_commit(&table)
    }

    fn alter_table(&mut self, def: &TableDef) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk()?;
        let table = self.table(def.id)?;
        self.replace_definition(&table, def)
    }

    fn create_index(&mut self, table: TableId, index: &IndexDef) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk()?;
        self.begin_builds(table, std::slice::from_ref(index))?;
        let built = self.fill_builds(table).and_then(|()| self.finish_builds(table));
        built.or_else(|error| self.stop_builds().and(Err(error)))
    }

    fn begin_indexes(&mut self, table: TableId, indexes: &[IndexDef]) -> EngineResult<bool> {
        self.check_writable()?;
        self.end_bulk()?;
        self.begin_builds(table, indexes).map(|()| true)
    }

    fn fill_indexes(&mut self, table: TableId) -> EngineResult<()> {
        self.fill_builds(table)
    }

    fn finish_indexes(&mut self, table: TableId) -> EngineResult<()> {
        self.finish_builds(table)
    }

    fn begin_noting(&mut self, table: TableId) -> EngineResult<bool> {
        self.check_writable()?;
        self.end_bulk()?;
        self.begin_notes(table).map(|()| true)
    }

    fn collect_noted(&mut self, table: TableId) -> EngineResult<u64> {
        self.collect_notes(table)
    }

    fn next_noted(
        &mut self,
        table: TableId,
        pass: NotedPass,
        out: &mut RowBatch,
    ) -> EngineResult<()> {
        self.notes_of(table)?.next(pass, out)
    }

    fn delete_equal(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk_of(table)?;
        let found = self.table(table)?;
        let outcome = self.delete_row_equal(&found, record);
        outcome.map_err(|error| self.name_table(table, error))
    }

    fn drop_index(&mut self, table: TableId, index: IndexId) -> EngineResult<()> {
        self.check_writable()?;
        self.end_bulk()?;
        let table = self.table(table)?;
        self.drop_index_of(&table, index)
    }
}
