//! How far the recovery of storage is, for the log, the service manager and the table that clients read.

use std::time::Duration;

use engine_api::{
    CancelToken, Engine, EngineResult, EngineStat, IndexId, KeyRange, RangeEstimate, TableId,
    TableStats, Transaction,
};
use engine_memory::MemoryEngine;
use sys::clock::{Clock as _, RealClock};
use sys::notify::Manager;
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicU8, Ordering};
use tracing::info;

/// Interval between lines in the log.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The latest state reported.
pub(crate) struct RecoveryState {
    percent: AtomicU8,
    stats: Mutex<Vec<EngineStat>>,
    line: Mutex<Option<(Duration, &'static str)>>,
    clock: RealClock,
    manager: Option<Manager>,
}

impl RecoveryState {
    pub(crate) fn new() -> RecoveryState {
        RecoveryState {
            percent: AtomicU8::new(0),
            stats: Mutex::new(Vec::new()),
            line: Mutex::new(None),
            clock: RealClock::new(),
            manager: Manager::from_environment(),
        }
    }

    pub(crate) fn percent(&self) -> u8 {
        self.percent.load(Ordering::Relaxed)
    }

    /// Records the progress.
    pub(crate) fn report(
        &self,
        phase: &'static str,
        percent: u8,
        eta_seconds: Option<u64>,
        stats: Vec<EngineStat>,
    ) {
        self.percent.store(percent, Ordering::Relaxed);
        *self.stats.lock() = stats;
        let now = self.clock.monotonic();
        let mut line = self.line.lock();
        if line.is_some_and(|(at, told)| now < at + LINE_EVERY && told == phase) {
            return;
        }
        *line = Some((now, phase));
        drop(line);
        info!(percent, phase, eta_seconds, "recovering: {percent}%");
        // A start that shows progress may take as long as it needs.
        self.tell_manager(&format!(
            "STATUS=Recovering: {percent} percent ({phase})\nEXTEND_TIMEOUT_USEC=60000000"
        ));
    }

    /// Sends a message to the service manager, if any.
    pub(crate) fn tell_manager(&self, text: &str) {
        if let Some(manager) = &self.manager {
            manager.tell(text);
        }
    }
}

/// The engine of the server that serves connections until storage is open: tables in memory, which no session can create, and
/// the counters of recovery.
pub(crate) struct RecoveryView {
    pub(crate) state: std::sync::Arc<RecoveryState>,
    pub(crate) memory: MemoryEngine,
}

impl Engine for RecoveryView {
    fn name(&self) -> &'static str {
        "Squall"
    }

    fn comment(&self) -> &'static str {
        "Storage that is being recovered"
    }

    fn is_durable(&self) -> bool {
        false
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        self.memory.new_transaction()
    }

    fn has_table(&self, table: TableId) -> bool {
        self.memory.has_table(table)
    }

    fn table_stats(&self, table: TableId) -> EngineResult<TableStats> {
        self.memory.table_stats(table)
    }

    fn estimate_range(
        &self,
        table: TableId,
        index: IndexId,
        range: &KeyRange,
    ) -> EngineResult<RangeEstimate> {
        self.memory.estimate_range(table, index, range)
    }

    fn auto_increment_reserve(
        &self,
        table: TableId,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        self.memory.auto_increment_reserve(table, count, increment, offset)
    }

    fn auto_increment_raise(&self, table: TableId, value: u64) -> EngineResult<()> {
        self.memory.auto_increment_raise(table, value)
    }

    fn auto_increment_set(&self, table: TableId, next: u64) -> EngineResult<()> {
        self.memory.auto_increment_set(table, next)
    }

    fn auto_increment_next(&self, table: TableId) -> EngineResult<u64> {
        self.memory.auto_increment_next(table)
    }

    fn stats(&self) -> Vec<EngineStat> {
        self.state.stats.lock().clone()
    }

    fn check_table_counting(
        &self,
        table: TableId,
        cancel: &CancelToken,
    ) -> EngineResult<Vec<String>> {
        self.memory.check_table_counting(table, cancel)
    }

    fn shutdown(&self) -> EngineResult<()> {
        self.memory.shutdown()
    }
}
