//! The engine: the table map and the state that all transactions share.

use std::collections::HashMap;

use engine_api::{
    CancelToken, Engine, EngineError, EngineResult, EngineStat, IndexId, KeyRange, RangeEstimate,
    TableId, TableStats, Transaction,
};
use errors::{Error, ErrorCode};
use locks::LockTable;
use sys::sync::atomic::{AtomicU64, Ordering};
use sys::sync::{Arc, RwLock};

use crate::purge::PurgeQueue;
use crate::status::Clock;
use crate::table::Table;
use crate::transaction::MemoryTransaction;

/// The state that transactions share.
pub(crate) struct Shared {
    tables: RwLock<HashMap<TableId, Arc<Table>>>,
    /// Changes with the map.
    tables_version: AtomicU64,
    pub(crate) clock: Clock,
    pub(crate) locks: LockTable,
    pub(crate) purge: PurgeQueue,
}

impl Shared {
    pub(crate) fn tables_version(&self) -> u64 {
        self.tables_version.load(Ordering::Acquire)
    }

    pub(crate) fn table(&self, id: TableId) -> EngineResult<Arc<Table>> {
        self.tables.read().get(&id).cloned().ok_or(EngineError::UnknownTable)
    }

    pub(crate) fn add_table(&self, table: Table) -> EngineResult<()> {
        let mut tables = self.tables.write();
        if tables.contains_key(&table.id) {
            return Err(Error::internal("a table id was used twice").into());
        }
        tables.insert(table.id, Arc::new(table));
        self.tables_version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn remove_table(&self, id: TableId) {
        self.tables.write().remove(&id);
        self.tables_version.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn publish_table(&self, id: TableId) {
        if let Some(table) = self.tables.read().get(&id) {
            table.committed.store(true, Ordering::Release);
        }
    }
}

/// The memory engine.
pub struct MemoryEngine(Arc<Shared>);

impl MemoryEngine {
    /// An engine without tables.
    pub fn new() -> MemoryEngine {
        MemoryEngine(Arc::new(Shared {
            tables: RwLock::new(HashMap::new()),
            tables_version: AtomicU64::new(1),
            clock: Clock::new(),
            locks: LockTable::new(),
            purge: PurgeQueue::default(),
        }))
    }
}

impl Default for MemoryEngine {
    fn default() -> Self {
        MemoryEngine::new()
    }
}

fn exhausted() -> EngineError {
    EngineError::Other(Error::with(ErrorCode::AUTOINC_READ_FAILED, &[]))
}

/// Smallest `offset + k * increment` that is at least `next`.
fn aligned(next: u64, increment: u64, offset: u64) -> Option<u64> {
    if next <= offset {
        return Some(offset);
    }
    let steps = (next - offset).div_ceil(increment);
    steps.checked_mul(increment)?.checked_add(offset)
}

impl Engine for MemoryEngine {
    fn name(&self) -> &'static str {
        "MEMORY"
    }

    fn comment(&self) -> &'static str {
        "Transactional tables in memory, lost at restart"
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        Box::new(MemoryTransaction::new(self.0.clone()))
    }

    fn has_table(&self, table: TableId) -> bool {
        self.0.table(table).is_ok_and(|table| table.committed.load(Ordering::Acquire))
    }

    fn table_stats(&self, table: TableId) -> EngineResult<TableStats> {
        crate::statistics::table_stats(&*self.0.table(table)?)
    }

    fn estimate_range(
        &self,
        table: TableId,
        index: IndexId,
        range: &KeyRange,
    ) -> EngineResult<RangeEstimate> {
        crate::statistics::estimate_range(&*self.0.table(table)?, index, range)
    }

    fn auto_increment_reserve(
        &self,
        table: TableId,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        let table = self.0.table(table)?;
        let increment = increment.max(1);
        // As the reference: an offset above the increment does not count.
        let offset = if offset == 0 || offset > increment { 1 } else { offset };
        let mut next = table.auto_increment.lock();
        if *next == 0 {
            return Err(exhausted());
        }
        let first = aligned(*next, increment, offset).ok_or_else(exhausted)?;
        let span = count.max(1).checked_mul(increment).ok_or_else(exhausted)?;
        *next = first.checked_add(span - increment).ok_or_else(exhausted)?.wrapping_add(1);
        Ok(first)
    }

    fn auto_increment_raise(&self, table: TableId, value: u64) -> EngineResult<()> {
        let table = self.0.table(table)?;
        let mut next = table.auto_increment.lock();
        if *next != 0 && *next <= value {
            *next = value.wrapping_add(1);
        }
        Ok(())
    }

    fn auto_increment_set(&self, table: TableId, next: u64) -> EngineResult<()> {
        *self.0.table(table)?.auto_increment.lock() = next.max(1);
        Ok(())
    }

    fn auto_increment_next(&self, table: TableId) -> EngineResult<u64> {
        let next = *self.0.table(table)?.auto_increment.lock();
        Ok(if next == 0 { u64::MAX } else { next })
    }

    fn stats(&self) -> Vec<EngineStat> {
        let stat = |group, name: &str, value: u64| EngineStat {
            group,
            name: name.to_owned(),
            value: value.to_string(),
        };
        let shared = &self.0;
        let locks = shared.locks.events();
        vec![
            stat("tables", "tables", shared.tables.read().len() as u64),
            stat("transactions", "transaction_objects", shared.clock.open_transactions() as u64),
            stat("transactions", "commit_stamp", shared.clock.now()),
            stat("purge", "transactions_waiting_for_purge", shared.purge.len() as u64),
            stat("locks", "row_locks", locks.entries),
            stat("locks", "waits_total", locks.waits),
            stat("locks", "deadlocks_total", locks.deadlocks),
        ]
    }

    fn check_table_counting(
        &self,
        table: TableId,
        cancel: &CancelToken,
    ) -> EngineResult<Vec<String>> {
        crate::statistics::check_table(&*self.0.table(table)?, cancel)
    }

    fn shutdown(&self) -> EngineResult<()> {
        Ok(())
    }
}
