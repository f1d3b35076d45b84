//! `ENGINE=BLACKHOLE`: tables that take every row and keep none. What is above engines still sees the writes: triggers, the binary log and
//! change sinks get the rows.
//!
//! The engine knows no table, and so answers for each as for an empty one, also after a restart: the definitions are the dictionary's.

use std::sync::Arc;

use engine_api::{
    CancelToken, Capabilities, CommitHandle, CursorId, Engine, EngineResult, EngineStat,
    GetOutcome, IndexDef, IndexId, KeyRange, RangeEstimate, RowBatch, RowBuf, RowLock, Savepoint,
    ScanSpec, TableDef, TableId, TableStats, Transaction, TxnOptions, WaitPolicy,
};
use plugin_api::{Plugin, PluginInfo, Registrar};

/// The plugin.
#[derive(Debug)]
pub struct BlackholePlugin;

impl Plugin for BlackholePlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("blackhole", "Tables that keep no row.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(Arc::new(BlackholeEngine));
    }
}

struct BlackholeEngine;

/// Its transactions have nothing to end.
#[derive(Default)]
struct BlackholeTransaction {
    is_started: bool,
}

impl Engine for BlackholeEngine {
    fn name(&self) -> &'static str {
        "BLACKHOLE"
    }

    fn comment(&self) -> &'static str {
        "/dev/null storage engine (anything you write to it disappears)"
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            transactions: false,
            prepare: false,
            full_text: false,
            foreign_keys: false,
            multi_valued_indexes: false,
            ..Capabilities::LOCAL
        }
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        Box::new(BlackholeTransaction::default())
    }

    fn has_table(&self, _: TableId) -> bool {
        true
    }

    fn table_stats(&self, _: TableId) -> EngineResult<TableStats> {
        Ok(TableStats::default())
    }

    fn estimate_range(&self, _: TableId, _: IndexId, _: &KeyRange) -> EngineResult<RangeEstimate> {
        Ok(RangeEstimate { rows: 0, exact: true })
    }

    // As in the reference, a table without rows begins at 1 each time.
    fn auto_increment_reserve(
        &self,
        _: TableId,
        _count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        Ok(if offset == 0 || offset > increment { 1 } else { offset })
    }

    fn auto_increment_raise(&self, _: TableId, _: u64) -> EngineResult<()> {
        Ok(())
    }

    fn auto_increment_set(&self, _: TableId, _: u64) -> EngineResult<()> {
        Ok(())
    }

    fn auto_increment_next(&self, _: TableId) -> EngineResult<u64> {
        Ok(1)
    }

    fn stats(&self) -> Vec<EngineStat> {
        Vec::new()
    }

    fn check_table_counting(&self, _: TableId, _: &CancelToken) -> EngineResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn shutdown(&self) -> EngineResult<()> {
        Ok(())
    }
}

impl Transaction for BlackholeTransaction {
    fn set_lock_wait_timeout(&mut self, _: std::time::Duration) {}

    fn start(&mut self, _: &TxnOptions) -> EngineResult<()> {
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

    fn savepoint(&mut self) -> Savepoint {
        Savepoint(0)
    }

    fn rollback_to(&mut self, _: Savepoint) -> EngineResult<()> {
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
        _: TableId,
        _: IndexId,
        _: &[u8],
        _: RowLock,
        _: WaitPolicy,
        out: &mut RowBuf,
    ) -> EngineResult<GetOutcome> {
        out.clear();
        Ok(GetOutcome::NotFound)
    }

    fn open_cursor(&mut self, _: &ScanSpec) -> EngineResult<CursorId> {
        Ok(CursorId(0))
    }

    fn fetch(&mut self, _: CursorId, _limit: usize, _: &mut RowBatch) -> EngineResult<usize> {
        Ok(0)
    }

    fn close_cursor(&mut self, _: CursorId) {}

    fn unlock_row(&mut self, _: TableId, _locator: &[u8]) {}

    fn insert(&mut self, _: TableId, _record: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    fn inserted_locator(&self) -> &[u8] {
        &[]
    }

    fn update(&mut self, _: TableId, _locator: &[u8], _record: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    fn delete(&mut self, _: TableId, _locator: &[u8]) -> EngineResult<()> {
        Ok(())
    }

    fn create_table(&mut self, _: &TableDef) -> EngineResult<()> {
        Ok(())
    }

    fn drop_table(&mut self, _: TableId) -> EngineResult<()> {
        Ok(())
    }

    fn alter_table(&mut self, _: &TableDef) -> EngineResult<()> {
        Ok(())
    }

    fn create_index(&mut self, _: TableId, _: &IndexDef) -> EngineResult<()> {
        Ok(())
    }

    fn drop_index(&mut self, _: TableId, _: IndexId) -> EngineResult<()> {
        Ok(())
    }
}
