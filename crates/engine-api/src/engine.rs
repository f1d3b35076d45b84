//! The two traits: an engine, and a transaction in it.

use std::time::Duration;

use crate::many::get_one_by_one;
use crate::{
    AttachmentReader, BackupSummary, BackupTarget, CancelToken, CommitHandle, DeadlockView,
    EngineResult, FoundRows, IndexDef, IndexId, KeyList, LockReport, RowBatch, RowBuf,
    SharedChange, SharedDefinitions, SnapshotReader, TableDef, TableId,
};

/// The isolation levels of the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IsolationLevel {
    /// Newest version, committed or not.
    ReadUncommitted,
    /// A new snapshot each statement; record locks only.
    ReadCommitted,
    /// Snapshot at the first read; next-key locks for locking reads and writes.
    #[default]
    RepeatableRead,
    /// As repeatable read, and plain reads lock in shared mode (the SQL layer requests it).
    Serializable,
}

/// How a transaction starts.
#[derive(Clone, Debug)]
pub struct TxnOptions {
    /// Isolation level.
    pub isolation: IsolationLevel,
    /// Refuse writes.
    pub read_only: bool,
    /// `prepare` may be called: the engine must use only methods that also work for a transaction that a crash left prepared.
    pub may_be_prepared: bool,
    /// The longest wait for a row lock.
    pub lock_wait_timeout: Duration,
    /// Stops waits and long calls.
    pub cancel: CancelToken,
}

/// Lock taken on each row that a read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowLock {
    /// Consistent read from the snapshot.
    #[default]
    None,
    /// `FOR SHARE`.
    Shared,
    /// `FOR UPDATE` and the read half of UPDATE and DELETE.
    Exclusive,
}

/// The treatment of rows that another transaction has locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WaitPolicy {
    /// Wait up to `lock_wait_timeout`.
    #[default]
    Wait,
    /// Error `LockNotAvailable` at once.
    NoWait,
    /// Leave the row out.
    SkipLocked,
    /// Like `Wait`, but where rows that a statement does not match keep no lock, a scan of the clustered index may first return the last
    /// committed version of a locked row: `is_peeked` says that it is not locked, and `lock_peeked` locks it if it matters.
    Peek,
}

/// One end of a range over key bytes. A bound may be a prefix of a key: `Included` then takes in every key that starts with it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum KeyBound {
    /// No limit.
    #[default]
    Unbounded,
    /// Keys equal to, or starting with, these bytes belong to the range.
    Included(Vec<u8>),
    /// Keys equal to, or starting with, these bytes do not belong.
    Excluded(Vec<u8>),
}

/// A range of an index in key order. Secondary keys compare by their SQL columns first, then by locator.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct KeyRange {
    /// Lower end.
    pub lower: KeyBound,
    /// Upper end.
    pub upper: KeyBound,
}

impl KeyRange {
    /// The whole index.
    pub const ALL: KeyRange = KeyRange { lower: KeyBound::Unbounded, upper: KeyBound::Unbounded };

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: Vec<u8>) -> KeyRange {
        KeyRange { lower: KeyBound::Included(prefix.clone()), upper: KeyBound::Included(prefix) }
    }
}

/// Order in which a cursor moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Ascending keys.
    #[default]
    Forward,
    /// Descending keys.
    Backward,
}

/// The range that a cursor reads, and how.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    /// The table.
    pub table: TableId,
    /// The index that defines order and range.
    pub index: IndexId,
    /// The range.
    pub range: KeyRange,
    /// Forward or backward.
    pub direction: Direction,
    /// Lock on each returned row (and, by isolation level, on the gaps).
    pub lock: RowLock,
    /// The treatment of rows locked by others.
    pub wait: WaitPolicy,
}

/// The parts of an index's entries that a reader needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyContent {
    /// Their keys.
    Keys,
    /// Only their number.
    Count,
}

/// An engine's place among those of the server, which does not change after the start: running code names engines by it, stored data by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EngineIndex(pub usize);

/// Names an open cursor of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CursorId(pub u32);

/// A place in a transaction's undo to which it can return.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub u64);

/// Outcome of a point read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetOutcome {
    /// The row is in the buffer.
    Found,
    /// No visible row has the key.
    NotFound,
    /// The row is locked and the policy is `SkipLocked`.
    Skipped,
}

/// Sizes and distribution of a table, all estimates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableStats {
    /// Rows.
    pub rows: u64,
    /// Bytes of the clustered index.
    pub data_bytes: u64,
    /// Bytes of all other indexes.
    pub index_bytes: u64,
    /// For each index in definition order, distinct keys of each prefix of its parts.
    pub distinct: Vec<Vec<u64>>,
}

/// Estimated size of a key range.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct RangeEstimate {
    /// Rows in the range.
    pub rows: u64,
    /// Whether it was counted, not estimated.
    pub exact: bool,
}

/// A named counter or setting of an engine, for information tables.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineStat {
    /// Group: `log`, `pool`, `locks`, `recovery`, ...
    pub group: &'static str,
    /// Full words, with the unit last.
    pub name: String,
    /// Value as text.
    pub value: String,
}

/// A prepared transaction that waits for a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedTransaction {
    /// As given to `Transaction::prepare`.
    pub name: Vec<u8>,
    /// Tables that it may have changed.
    pub tables: Vec<TableId>,
}

/// What an engine can do. The SQL layers refuse, by number and name, what a table's engine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// ROLLBACK takes rows back.
    pub transactions: bool,
    /// A transaction at REPEATABLE READ sees one snapshot. Without it every level is READ COMMITTED, each row by itself.
    pub snapshots: bool,
    /// Locking reads keep others from inserting into the ranges that they read.
    pub gap_locks: bool,
    /// `Transaction::prepare` of a transaction that has written.
    pub prepare: bool,
    /// FULLTEXT indexes.
    pub full_text: bool,
    /// FOREIGN KEY.
    pub foreign_keys: bool,
    /// `Transaction::unlock_row` gives locks back before the end.
    pub early_unlock: bool,
    /// Indexes over the elements of JSON arrays.
    pub multi_valued_indexes: bool,
    /// Every call is a round trip to another process: many rows in one call are much cheaper than one row in each of many.
    pub remote: bool,
}

impl Capabilities {
    /// Of an engine in this process that can do everything.
    pub const LOCAL: Capabilities = Capabilities {
        transactions: true,
        snapshots: true,
        gap_locks: true,
        prepare: true,
        full_text: true,
        foreign_keys: true,
        early_unlock: true,
        multi_valued_indexes: true,
        remote: false,
    };
}

/// A storage engine.
pub trait Engine: Send + Sync {
    /// Name as in `ENGINE=`.
    fn name(&self) -> &'static str;

    /// Other names that `ENGINE=` takes for it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// One line for SHOW ENGINES.
    fn comment(&self) -> &'static str;

    /// Whether an acknowledged commit survives the process.
    fn is_durable(&self) -> bool;

    /// What it can do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::LOCAL
    }

    /// The definitions that this server shares with others, if the engine keeps them.
    fn shared_definitions(&self) -> Option<&dyn SharedDefinitions> {
        None
    }

    /// Whether `Transaction::begin_noting` succeeds.
    fn notes_rows(&self) -> bool {
        false
    }

    /// A transaction object in state "not started"; a session keeps one for its life.
    fn new_transaction(&self) -> Box<dyn Transaction>;

    /// Whether `table` exists, committed.
    fn has_table(&self, table: TableId) -> bool;

    /// Size and distribution.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn table_stats(&self, table: TableId) -> EngineResult<TableStats>;

    /// Makes `table_stats` compute its figures again at the next call, if the engine keeps them.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn forget_stats(&self, _table: TableId) -> EngineResult<()> {
        Ok(())
    }

    /// The number of rows in `range` of an index. Cheap: at most two descents.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn estimate_range(
        &self,
        table: TableId,
        index: IndexId,
        range: &KeyRange,
    ) -> EngineResult<RangeEstimate>;

    /// Draws `count` values of `offset + k * increment`, at least the table's next value, and returns the first. Not rolled back.
    ///
    /// # Errors
    /// `UnknownTable`; 1467 when the counter is exhausted.
    fn auto_increment_reserve(
        &self,
        table: TableId,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64>;

    /// Raises the counter so that the next drawn value is larger than `value`.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn auto_increment_raise(&self, table: TableId, value: u64) -> EngineResult<()>;

    /// Sets the next value (`ALTER TABLE ... AUTO_INCREMENT`); never below the largest value in use, which the caller has checked.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn auto_increment_set(&self, table: TableId, next: u64) -> EngineResult<()>;

    /// The next value that would be drawn with increment 1.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn auto_increment_next(&self, table: TableId) -> EngineResult<u64>;

    /// Counters and settings for information tables.
    fn stats(&self) -> Vec<EngineStat>;

    /// Transactions that changed or locked something, and their locks, at most about the given number. Copied in pieces; nothing stops during the copy.
    fn locks(&self, _limit: usize) -> LockReport {
        LockReport::default()
    }
    /// The deadlock found last.
    fn latest_deadlock(&self) -> Option<DeadlockView> {
        None
    }
    /// Verifies every invariant of a table; the strings describe what is wrong.
    ///
    /// # Errors
    /// `UnknownTable`, I/O.
    fn check_table(&self, table: TableId) -> EngineResult<Vec<String>> {
        self.check_table_counting(table, &CancelToken::new())
    }
    /// The same, until `cancel` stops it, which counts each row and each entry of an index as work.
    ///
    /// # Errors
    /// As `check_table`; `Cancelled`.
    fn check_table_counting(
        &self,
        table: TableId,
        cancel: &CancelToken,
    ) -> EngineResult<Vec<String>>;

    /// Copies everything committed into `target` while others read and write. The group `backup` of `stats` shows the progress.
    ///
    /// # Errors
    /// 1235 when the engine cannot; `Cancelled`; damaged pages; I/O of the engine's files or of the target. The written files are then
    /// useless.
    fn backup(
        &self,
        _target: &dyn BackupTarget,
        _cancel: &CancelToken,
    ) -> EngineResult<BackupSummary> {
        let what = format!("BACKUP of tables in {}", self.name());
        Err(errors::Error::not_supported(&what).into())
    }

    /// The key under which all of the engine's files are encrypted; `None` when they are not.
    fn directory_key(&self) -> Option<std::sync::Arc<dyn sys::disk::DiskKey>> {
        None
    }

    /// Whether `Transaction::attach` succeeds.
    fn keeps_attachments(&self) -> bool {
        false
    }

    /// Reads attachments of commits after position `after`, or from now on. One reader at a time.
    ///
    /// # Errors
    /// 1235 when the engine keeps none; I/O.
    fn attachments(&self, _after: Option<u64>) -> EngineResult<Box<dyn AttachmentReader>> {
        Err(errors::Error::not_supported("attachments of commits").into())
    }

    /// From now on commits at `position` or after it are durable without being seen by others or acknowledged, until a later call names a
    /// later position; `u64::MAX` holds nothing back.
    fn hold_commits(&self, _position: u64) {}

    /// A position above those of all commits before the call, all of which are durable when it returns.
    ///
    /// # Errors
    /// The log failed.
    fn durable_position(&self) -> EngineResult<u64> {
        Ok(0)
    }

    /// Transactions that are prepared and not decided, also from before the last start.
    fn prepared(&self) -> Vec<PreparedTransaction> {
        Vec::new()
    }

    /// Commits the transaction that is prepared under this name; these bytes follow what it has attached. Does nothing if none exists: it had
    /// changed nothing.
    ///
    /// # Errors
    /// I/O.
    fn commit_prepared(
        &self,
        _name: &[u8],
        _attached: &[u8],
    ) -> EngineResult<Option<CommitHandle>> {
        Ok(None)
    }

    /// Undoes the transaction that is prepared under this name. Does nothing if none exists.
    ///
    /// # Errors
    /// I/O; the decision is final, and the next start undoes the rest.
    fn rollback_prepared(&self, _name: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    /// Takes over the value of a global variable, at start and when it changes. Names that the engine does not use are ignored.
    fn set_option(&self, _name: &str, _value: u64) {}

    /// The greatest value that `set_option` can bring into effect, for a variable that only an engine can obey.
    fn option_max(&self, _name: &str) -> Option<u64> {
        None
    }

    /// Status variables of the engine: names of the reference, and values.
    fn status(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Stops background work after making everything durable.
    ///
    /// # Errors
    /// I/O.
    fn shutdown(&self) -> EngineResult<()>;
}

/// What the rows that `Transaction::next_noted` returns are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedPass {
    /// Their old versions are removed from the copy.
    Remove,
    /// Their new versions are put into it.
    Put,
}

/// A transaction. One thread uses it at a time. `start` begins, `commit` or `rollback` ends, then it can start again.
pub trait Transaction: Send {
    /// Begins. Costs nothing until the first read or write; the snapshot is taken at the first read.
    ///
    /// # Errors
    /// Too many transactions.
    fn start(&mut self, options: &TxnOptions) -> EngineResult<()>;

    /// Sets the session that owns these transactions, for `Engine::locks`.
    fn set_session(&mut self, _session: u64) {}
    /// Sets the longest wait for a row lock from now on.
    fn set_lock_wait_timeout(&mut self, timeout: Duration);

    /// Whether it is started and not ended.
    fn is_started(&self) -> bool;

    /// Whether it has written anything.
    fn has_written(&self) -> bool;

    /// Takes the snapshot now (`WITH CONSISTENT SNAPSHOT`).
    fn take_snapshot(&mut self);

    /// Later reads see what is committed by then: the caller has locked tables whose newest rows it must see.
    fn renew_snapshot(&mut self);

    /// A statement begins: READ COMMITTED and READ UNCOMMITTED take a new snapshot.
    fn begin_statement(&mut self);

    /// A place to return to.
    fn savepoint(&mut self) -> Savepoint;

    /// Undoes everything since `savepoint`. Locks stay, as in the reference.
    ///
    /// # Errors
    /// I/O.
    fn rollback_to(&mut self, savepoint: Savepoint) -> EngineResult<()>;

    /// Leaves bytes in the engine's log as a part of the commit, after those attached before. They go when the transaction is rolled back,
    /// but not with `rollback_to`.
    ///
    /// # Errors
    /// 1235 when the engine keeps no attachments.
    fn attach(&mut self, _bytes: &[u8]) -> EngineResult<()> {
        Err(errors::Error::not_supported("attachments of commits").into())
    }

    /// Bytes attached so far.
    fn attached(&self) -> u64 {
        0
    }

    /// Keeps only the first `length` bytes of those attached.
    fn detach_to(&mut self, _length: u64) {}

    /// Ends, keeping the changes. Closes all cursors.
    ///
    /// # Errors
    /// If the transaction was rolled back instead.
    fn commit(&mut self) -> EngineResult<CommitHandle>;

    /// Ends, undoing the changes. Closes all cursors. A no-op when not started.
    ///
    /// # Errors
    /// I/O; the transaction is ended anyway.
    fn rollback(&mut self) -> EngineResult<()>;

    /// Ends the use of this object, keeping its changes and the locks of changed rows until `Engine::commit_prepared` or
    /// `rollback_prepared` decides; when the handle is durable, also across crashes. A transaction that changed nothing simply ends. `name` names
    /// one transaction at a time.
    ///
    /// # Errors
    /// 1235 when the engine cannot prepare a transaction that changed something, which then stays as it was; after other errors it was rolled back.
    fn prepare(&mut self, _name: &[u8]) -> EngineResult<CommitHandle> {
        match self.has_written() {
            true => Err(errors::Error::not_supported("XA PREPARE in this engine").into()),
            false => self.commit(),
        }
    }

    /// Reads the row with the full key `key` of a unique index. `out` is cleared first. Does not allocate when `out` has room.
    ///
    /// # Errors
    /// Lock and I/O errors.
    fn get(
        &mut self,
        table: TableId,
        index: IndexId,
        key: &[u8],
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome>;

    /// Replaces `record` with the newest version of the row with the full clustered key `key`, even if uncommitted, without locking it: for
    /// `write_if_unchanged`, which must then be the transaction's next call. False if no such row exists, or if it must be locked by `get`
    /// before a change.
    ///
    /// # Errors
    /// I/O.
    fn read_unlocked(
        &mut self,
        _table: TableId,
        _key: &[u8],
        _record: &mut Vec<u8>,
    ) -> EngineResult<bool> {
        Ok(false)
    }

    /// Replaces the row that `read_unlocked` read with `record`, or deletes it when that is `None`, if the row has not changed since and no other
    /// transaction has locked it: the effect is as if it had been locked before it was read. False if nothing was done; the row must then be changed
    /// after a `get` that locks it. Always false when `record` has another clustered key.
    ///
    /// # Errors
    /// As `update` and `delete`.
    fn write_if_unchanged(
        &mut self,
        _table: TableId,
        _key: &[u8],
        _record: Option<&[u8]>,
    ) -> EngineResult<bool> {
        Ok(false)
    }

    /// Reads the rows with the full keys `keys` of a unique index, at most `LOOKUPS_MAX`: as `get` of one after the other would, in which order locks are
    /// taken, but faster; to a remote engine it is one round trip. `out` is reset first; without the row of a key that was not found or skipped.
    ///
    /// # Errors
    /// As `get`; `out` is useless then.
    fn get_many(
        &mut self,
        table: TableId,
        index: IndexId,
        keys: &KeyList,
        lock: RowLock,
        wait: WaitPolicy,
        out: &mut FoundRows,
    ) -> EngineResult<()> {
        get_one_by_one(keys, out, |key, row| {
            Ok(self.get(table, index, key, lock, wait, row)? == GetOutcome::Found)
        })
    }

    /// Opens a cursor. It sees the transaction's own later writes to rows that it has not passed.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn open_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId>;

    /// Appends up to `limit` rows to `batch` and returns how many; 0 at the end. A locking cursor locks only rows it returns.
    ///
    /// # Errors
    /// Lock and I/O errors, `Cancelled`.
    fn fetch(
        &mut self,
        cursor: CursorId,
        limit: usize,
        batch: &mut RowBatch,
    ) -> EngineResult<usize>;

    /// Like `open_cursor`, for a caller that reads only columns of the index and of the clustered key: rows may come as key records
    /// (`types::key::split_key_record`), which an index can return without reading the rows.
    ///
    /// # Errors
    /// As `open_cursor`.
    fn open_key_cursor(&mut self, spec: &ScanSpec) -> EngineResult<CursorId> {
        self.open_cursor(spec)
    }

    /// Like `snapshot_reader`, over the entries of a secondary index. Its records are key records, empty ones when `content` says that
    /// the caller does not read them.
    ///
    /// # Errors
    /// As `snapshot_reader`.
    fn index_reader(
        &mut self,
        table: TableId,
        index: IndexId,
        content: KeyContent,
    ) -> EngineResult<Option<Box<dyn SnapshotReader + '_>>> {
        let _ = (table, index, content);
        Ok(None)
    }

    /// A reader for consistent reads of a table by several threads; `None` when the engine has only cursors.
    ///
    /// # Errors
    /// `UnknownTable`, I/O.
    fn snapshot_reader(
        &mut self,
        table: TableId,
    ) -> EngineResult<Option<Box<dyn SnapshotReader + '_>>> {
        let _ = table;
        Ok(None)
    }

    /// Whether the last row fetched is its last committed version, because another transaction holds its lock (`WaitPolicy::Peek`).
    fn is_peeked(&self, _cursor: CursorId) -> bool {
        false
    }

    /// Makes the cursor return that row once more, in its present version, locked, if it is still in the range.
    fn lock_peeked(&mut self, _cursor: CursorId) {}

    /// Closes a cursor; unknown ids are ignored.
    fn close_cursor(&mut self, cursor: CursorId);

    /// Releases the lock on a row that the statement did not match; only below REPEATABLE READ, else a no-op.
    fn unlock_row(&mut self, table: TableId, locator: &[u8]);

    /// Many rows may be inserted into a table now. An engine may hold them back, to store them together at `rows_are_over`, or earlier when this
    /// transaction uses the table otherwise. In between, they can only be undone all together, with the changes before this call.
    ///
    /// # Errors
    /// I/O.
    fn expect_rows(&mut self, _table: TableId) -> EngineResult<()> {
        Ok(())
    }

    /// Ends `expect_rows`.
    ///
    /// # Errors
    /// As `insert`, except for duplicates.
    fn rows_are_over(&mut self) -> EngineResult<()> {
        Ok(())
    }

    /// One statement may change many rows now. An engine may defer its changes of secondary indexes that are not unique, to make them
    /// together at `changes_are_over`, or earlier when this transaction reads them.
    ///
    /// # Errors
    /// As `changes_are_over`, for changes that another statement deferred.
    fn expect_changes(&mut self) -> EngineResult<()> {
        Ok(())
    }
    /// Ends `expect_changes`. After an error the changes since must be undone.
    ///
    /// # Errors
    /// Lock and I/O errors, `Cancelled`.
    fn changes_are_over(&mut self) -> EngineResult<()> {
        Ok(())
    }
    /// A statement inserts several rows and fails with the first that is refused: an engine may hold rows back, to send many together. `insert` may then
    /// report the refusal of an earlier row, see `refused_record`; all changes since must be undone.
    fn hold_back_inserts(&mut self) {}

    /// Ends `hold_back_inserts`.
    ///
    /// # Errors
    /// As `insert`.
    fn send_inserts(&mut self) -> EngineResult<()> {
        Ok(())
    }

    /// The record that the last `DuplicateKey` of a row that was held back is about.
    fn refused_record(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Inserts a record. On `DuplicateKey` nothing has changed and the conflicting row is locked in shared mode.
    ///
    /// # Errors
    /// `DuplicateKey`, lock and I/O errors, `ReadOnly`.
    fn insert(&mut self, table: TableId, record: &[u8]) -> EngineResult<()>;

    /// Like `insert`, for a caller that changes the conflicting row: it is locked exclusively, so that two such callers do not wait for each
    /// other.
    ///
    /// # Errors
    /// As `insert`.
    fn insert_or_lock(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        self.insert(table, record)
    }

    /// The locator of the row that this transaction inserted last, outside `expect_rows`.
    fn inserted_locator(&self) -> &[u8];

    /// Replaces the row at `locator`; its key may change. Locks it exclusively unless it already is.
    ///
    /// # Errors
    /// `DuplicateKey` (nothing has changed), `RowNotFound`, lock and I/O errors, `ReadOnly`.
    fn update(&mut self, table: TableId, locator: &[u8], record: &[u8]) -> EngineResult<()>;

    /// Deletes the row at `locator`.
    ///
    /// # Errors
    /// `RowNotFound`, lock and I/O errors, `ReadOnly`.
    fn delete(&mut self, table: TableId, locator: &[u8]) -> EngineResult<()>;

    /// Creates an empty table, visible to others at commit.
    ///
    /// # Errors
    /// I/O, limits.
    fn create_table(&mut self, def: &TableDef) -> EngineResult<()>;

    /// Drops a table at commit. The caller holds its metadata lock exclusively.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn drop_table(&mut self, table: TableId) -> EngineResult<()>;

    /// Replaces the definition without touching rows: names, trailing columns with `instant_default`, widened types of equal encoding.
    ///
    /// # Errors
    /// 1235 when the change is not instant: the caller then copies the table.
    fn alter_table(&mut self, def: &TableDef) -> EngineResult<()>;

    /// Keeps the transactions of other servers from writing to a table until the end of this one, which changes its definition. The caller holds its metadata
    /// lock exclusively. Nothing is to be done where no other server uses the table.
    ///
    /// # Errors
    /// 1412 when another server has changed it; lock errors.
    fn lock_definition(&mut self, _table: TableId) -> EngineResult<()> {
        Ok(())
    }

    /// Makes definitions known to other servers with the commit: the last that the transaction does before it. Returns the new stamps. Tables that it has dropped
    /// are known to be gone without this.
    ///
    /// # Errors
    /// 1050 when another table has the name; 1235 when the engine keeps no definitions.
    fn share_definitions(&mut self, _changes: &[SharedChange<'_>]) -> EngineResult<Vec<u64>> {
        Err(errors::Error::not_supported("definitions that several servers share").into())
    }

    /// Builds a secondary index over the present rows.
    ///
    /// # Errors
    /// `DuplicateKey`, I/O.
    fn create_index(&mut self, table: TableId, index: &IndexDef) -> EngineResult<()>;

    /// Begins to build indexes over the rows of a table that others continue to change: from now on their changes are recorded. The caller
    /// keeps all other transactions away from the table during this call. False if the engine cannot do this; then `create_index` builds them.
    ///
    /// # Errors
    /// I/O.
    fn begin_indexes(&mut self, table: TableId, indexes: &[IndexDef]) -> EngineResult<bool> {
        let _ = (table, indexes);
        Ok(false)
    }

    /// Fills the indexes begun and catches up with nearly all changes made in the meantime. Others may use the table. After an error the
    /// transaction can only be rolled back.
    ///
    /// # Errors
    /// `Cancelled`, I/O.
    fn fill_indexes(&mut self, table: TableId) -> EngineResult<()> {
        let _ = table;
        Ok(())
    }

    /// Catches up with the rest and makes the indexes part of the definition. The caller keeps all other transactions away from the table until
    /// the commit.
    ///
    /// # Errors
    /// `DuplicateKey`, `Cancelled`, I/O.
    fn finish_indexes(&mut self, table: TableId) -> EngineResult<()> {
        let _ = table;
        Ok(())
    }

    /// Begins to note which rows of a table others change, until this transaction ends: for a copy of the rows that others need not wait for. The
    /// caller keeps all other transactions away from the table during this call. False if the engine cannot do this.
    ///
    /// # Errors
    /// I/O.
    fn begin_noting(&mut self, table: TableId) -> EngineResult<bool> {
        let _ = table;
        Ok(false)
    }

    /// Collects the rows noted so far, each once, and returns how many. A row whose newest version the snapshot of this transaction does not see
    /// stays noted too. So what another transaction of this kind saw, once these rows are replaced by what this one sees, is what this one sees.
    ///
    /// # Errors
    /// `Cancelled`, I/O, also of a writer's note.
    fn collect_noted(&mut self, table: TableId) -> EngineResult<u64> {
        let _ = table;
        Ok(0)
    }

    /// Replaces `out` with some of the collected rows, in the order of their keys: locators and empty records. If it stays empty, all have been returned;
    /// they are returned once for each `pass`.
    ///
    /// # Errors
    /// I/O.
    fn next_noted(
        &mut self,
        table: TableId,
        pass: NotedPass,
        out: &mut RowBatch,
    ) -> EngineResult<()> {
        let _ = (table, pass);
        out.clear();
        Ok(())
    }

    /// Deletes the row whose clustered key is that of `record`.
    ///
    /// # Errors
    /// As `delete`; the table has no such key.
    fn delete_equal(&mut self, table: TableId, record: &[u8]) -> EngineResult<()> {
        let _ = (table, record);
        Err(errors::Error::not_supported("deleting a row by its record").into())
    }

    /// Drops a secondary index at commit.
    ///
    /// # Errors
    /// `UnknownTable`.
    fn drop_index(&mut self, table: TableId, index: IndexId) -> EngineResult<()>;
}
