//! The smallest engine that compiles: it knows no table and refuses every change. Copy it to begin another engine.
//!
//! Every method says what a real engine must do there. The contract itself is in `engine-api`; `engine-suite` tests it.

use engine_api::{
    CancelToken, CommitHandle, CursorId, Engine, EngineError, EngineResult, EngineStat, GetOutcome,
    IndexDef, IndexId, KeyRange, RangeEstimate, RowBatch, RowBuf, RowLock, Savepoint, ScanSpec,
    TableDef, TableId, TableStats, Transaction, TxnOptions, WaitPolicy,
};
use errors::Error;

/// An engine without tables.
#[derive(Default)]
pub struct SkeletonEngine;

/// Its transactions: they begin and end, nothing else.
#[derive(Default)]
struct SkeletonTransaction {
    is_started: bool,
}

/// 1235 naming the operation.
fn refused<T>(what: &str) -> EngineResult<T> {
    Err(Error::not_supported(format_args!("{what} in engine SKELETON")).into())
}

impl Engine for SkeletonEngine {
    fn name(&self) -> &'static str {
        "SKELETON"
    }

    fn comment(&self) -> &'static str {
        "Template for engine authors; stores nothing"
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        Box::new(SkeletonTransaction::default())
    }

    fn has_table(&self, _table: TableId) -> bool {
        false
    }

    fn table_stats(&self, _table: TableId) -> EngineResult<TableStats> {
        Err(EngineError::UnknownTable)
    }

    fn estimate_range(
        &self,
        _table: TableId,
        _index: IndexId,
        _range: &KeyRange,
    ) -> EngineResult<RangeEstimate> {
        Err(EngineError::UnknownTable)
    }

    // The counter lives outside transactions: drawn values are never given back.
    fn auto_increment_reserve(
        &self,
        _table: TableId,
        _count: u64,
        _increment: u64,
        _offset: u64,
    ) -> EngineResult<u64> {
        Err(EngineError::UnknownTable)
    }

    fn auto_increment_raise(&self, _table: TableId, _value: u64) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn auto_increment_set(&self, _table: TableId, _next: u64) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn auto_increment_next(&self, _table: TableId) -> EngineResult<u64> {
        Err(EngineError::UnknownTable)
    }

    fn stats(&self) -> Vec<EngineStat> {
        Vec::new()
    }

    fn check_table_counting(
        &self,
        _table: TableId,
        _cancel: &CancelToken,
    ) -> EngineResult<Vec<String>> {
        Err(EngineError::UnknownTable)
    }

    fn shutdown(&self) -> EngineResult<()> {
        Ok(())
    }
}

impl Transaction for SkeletonTransaction {
    // Keep the options: isolation, timeout and the cancel token bound every later wait.
    fn set_lock_wait_timeout(&mut self, _timeout: std::time::Duration) {}

    fn start(&mut self, _options: &TxnOptions) -> EngineResult<()> {
        self.is_started = true;
        Ok(())
    }

    fn is_started(&self) -> bool {
        self.is_started
    }

    fn has_written(&self) -> bool {
        false
    }

    fn take_snapshot(&mut self) {}

    fn renew_snapshot(&mut self) {}

    fn begin_statement(&mut self) {}

    // A real engine returns the length of its undo.
    fn savepoint(&mut self) -> Savepoint {
        Savepoint(0)
    }

    fn rollback_to(&mut self, _savepoint: Savepoint) -> EngineResult<()> {
        Ok(())
    }

    fn commit(&mut self) -> EngineResult<CommitHandle> {
        self.is_started = false;
        Ok(CommitHandle::Durable)
    }

    fn rollback(&mut self) -> EngineResult<()> {
        self.is_started = false;
        Ok(())
    }

    fn get(
        &mut self,
        _table: TableId,
        _index: IndexId,
        _key: &[u8],
        _lock: RowLock,
        _wait: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        out.clear();
        Err(EngineError::UnknownTable)
    }

    fn open_cursor(&mut self, _spec: &ScanSpec) -> EngineResult<CursorId> {
        Err(EngineError::UnknownTable)
    }

    fn fetch(
        &mut self,
        _cursor: CursorId,
        _limit: usize,
        _batch: &mut RowBatch,
    ) -> EngineResult<usize> {
        Ok(0)
    }

    fn close_cursor(&mut self, _cursor: CursorId) {}

    fn unlock_row(&mut self, _table: TableId, _locator: &[u8]) {}

    // Derive every index key from the record here, with `types::key` and the `TableDef`.
    fn insert(&mut self, _table: TableId, _record: &[u8]) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn inserted_locator(&self) -> &[u8] {
        &[]
    }

    fn update(&mut self, _table: TableId, _locator: &[u8], _record: &[u8]) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn delete(&mut self, _table: TableId, _locator: &[u8]) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn create_table(&mut self, _def: &TableDef) -> EngineResult<()> {
        refused("CREATE TABLE")
    }

    fn drop_table(&mut self, _table: TableId) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }

    fn alter_table(&mut self, _def: &TableDef) -> EngineResult<()> {
        refused("ALTER TABLE")
    }

    fn create_index(&mut self, _table: TableId, _index: &IndexDef) -> EngineResult<()> {
        refused("CREATE INDEX")
    }

    fn drop_index(&mut self, _table: TableId, _index: IndexId) -> EngineResult<()> {
        Err(EngineError::UnknownTable)
    }
}
