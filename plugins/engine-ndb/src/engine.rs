//! The engine: the way to the cluster, the locks of this server's transactions, counters.

use std::collections::HashMap;
use std::time::Duration;

use engine_api::{
    CancelToken, Capabilities, Engine, EngineError, EngineResult, EngineStat, IndexId, KeyRange,
    RangeEstimate, SharedDefinitions, TableId, TableStats, Transaction,
};
use errors::{Error, ErrorCode};
use locks::LockTable;
use sys::blocking::blocking;
use sys::sync::atomic::{AtomicU64, Ordering};
use sys::sync::{Arc, Mutex};

use crate::error::NdbError;
use crate::kept::number;
use crate::link::{Link, Links};
use crate::statistics::Statistics;
use crate::table::Table;
use crate::transaction::NdbEngineTransaction;
use engine_api::Span;

/// Values that a counter draws from the cluster at a time.
const AUTO_INCREMENT_BLOCK: u128 = 256;
const ROW_ID_BLOCK: u128 = 1024;

/// What a counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    AutoIncrement,
    RowId,
}

impl Counted {
    pub(crate) fn key(self, table: TableId) -> Vec<u8> {
        let kind = match self {
            Counted::AutoIncrement => b'a',
            Counted::RowId => b'r',
        };
        [table.0.to_be_bytes().as_slice(), &[kind]].concat()
    }

    fn block(self) -> u128 {
        match self {
            Counted::AutoIncrement => AUTO_INCREMENT_BLOCK,
            Counted::RowId => ROW_ID_BLOCK,
        }
    }
}

/// Values from `next` on, those below `end` drawn from the cluster.
#[derive(Clone, Copy)]
struct Counter {
    next: u128,
    end: u128,
}

/// The state that transactions share.
pub(crate) struct Shared {
    pub(crate) links: Links,
    /// Locks among this server's transactions: they wait in turn and find deadlocks. The cluster's own locks keep other clients away.
    pub(crate) locks: LockTable,
    counters: Mutex<HashMap<(TableId, Counted), Counter>>,
    pub(crate) statistics: Statistics,
    /// Transactions that were run again after a temporary error.
    pub(crate) replays: AtomicU64,
    /// Transactions that were lost.
    pub(crate) losses: AtomicU64,
    /// Round trips and their operations.
    pub(crate) executes: AtomicU64,
    pub(crate) operations: AtomicU64,
}

fn exhausted() -> EngineError {
    Error::with(ErrorCode::AUTOINC_READ_FAILED, &[]).into()
}

impl Shared {
    pub(crate) fn new() -> Shared {
        Shared {
            links: Links::new(),
            locks: LockTable::new(),
            counters: Mutex::new(HashMap::new()),
            statistics: Statistics::default(),
            replays: AtomicU64::new(0),
            losses: AtomicU64::new(0),
            executes: AtomicU64::new(0),
            operations: AtomicU64::new(0),
        }
    }

    pub(crate) fn table(&self, id: TableId) -> EngineResult<(Arc<Link>, Arc<Table>)> {
        let link = self.links.get()?;
        match link.table(id) {
            Ok(table) => Ok((link, table)),
            Err(error) => {
                self.look_at(&link, &error);
                Err(error)
            }
        }
    }

    /// Lets go of a link whose cluster is gone.
    pub(crate) fn look_at(&self, link: &Arc<Link>, error: &EngineError) {
        let EngineError::Other(error) = error else { return };
        if error.code() == ErrorCode::GET_ERRMSG && link.connection.ready_nodes() == 0 {
            self.links.drop_link(link);
        }
    }

    /// Runs `work` with the counter of a table, drawn up to date with the cluster.
    fn with_counter<T>(
        &self,
        table: TableId,
        kind: Counted,
        work: impl FnOnce(&Link, &mut Counter) -> EngineResult<T>,
    ) -> EngineResult<T> {
        let link = self.links.get()?;
        let mut counters = self.counters.lock();
        let counter = match counters.entry((table, kind)) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let read =
                    || link.change_row(&link.counters, &kind.key(table), |old| (None, number(old)));
                let value = blocking(read).map_err(NdbError::into_engine)?;
                entry.insert(Counter { next: value, end: value })
            }
        };
        work(&link, counter)
    }

    /// Draws `count` values of `offset + k * increment`, and returns the first.
    pub(crate) fn draw(
        &self,
        table: TableId,
        kind: Counted,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        self.with_counter(table, kind, |link, counter| {
            let (step, offset) = (u128::from(increment), u128::from(offset));
            let align = |next: u128| match next <= offset {
                true => offset,
                false => offset + (next - offset).div_ceil(step) * step,
            };
            let last = |first: u128| first + u128::from(count.max(1) - 1) * step;
            let mut first = align(counter.next);
            if last(first) >= counter.end {
                let own_end = counter.end;
                let (next, block) = (counter.next, kind.block());
                let renew = || {
                    link.change_row(&link.counters, &kind.key(table), |old| {
                        let stored = number(old);
                        // Another server may have drawn values.
                        let next = if stored > own_end { next.max(stored) } else { next };
                        let end = last(align(next)) + 1 + block;
                        (Some(end.to_le_bytes().to_vec()), (next, end))
                    })
                };
                let (next, end) = blocking(renew).map_err(NdbError::into_engine)?;
                counter.end = end;
                first = align(next);
            }
            if last(first) > u128::from(u64::MAX) {
                return Err(exhausted());
            }
            counter.next = last(first) + 1;
            Ok(first as u64)
        })
    }

    /// Sets the next value: at least `next`, or exactly.
    fn set_counter(&self, table: TableId, next: u128, exactly: bool) -> EngineResult<()> {
        let kind = Counted::AutoIncrement;
        self.with_counter(table, kind, |link, counter| {
            if !exactly && counter.next >= next {
                return Ok(());
            }
            if !exactly && next <= counter.end {
                counter.next = next;
                return Ok(());
            }
            let own_end = counter.end;
            let write = || {
                link.change_row(&link.counters, &kind.key(table), |old| {
                    let stored = number(old);
                    // Values that another server has drawn are not this one's.
                    let next = if stored > own_end { next.max(stored) } else { next };
                    let end = next + if exactly { 0 } else { kind.block() };
                    (Some(end.to_le_bytes().to_vec()), (next, end))
                })
            };
            (counter.next, counter.end) = blocking(write).map_err(NdbError::into_engine)?;
            Ok(())
        })
    }

    /// Gives back what counters have drawn and not used.
    fn settle_counters(&self) {
        let Some(link) = self.links.present() else { return };
        for ((table, kind), counter) in self.counters.lock().drain() {
            let settle = |old: Option<&[u8]>| {
                let unused =
                    (number(old) == counter.end).then(|| counter.next.to_le_bytes().to_vec());
                (unused, ())
            };
            // A gap in the numbers is all that a failure leaves.
            let _ = link.change_row(&link.counters, &kind.key(table), settle);
        }
    }

    /// The table is dropped: its counters are not needed.
    pub(crate) fn forget_counters(&self, table: TableId) {
        self.counters.lock().retain(|(id, _), _| *id != table);
    }
}

/// MySQL Cluster's data nodes as an engine.
pub struct NdbEngine(pub(crate) Arc<Shared>);

impl Default for NdbEngine {
    fn default() -> Self {
        NdbEngine::new()
    }
}

impl NdbEngine {
    /// An engine that connects when it is first needed.
    pub fn new() -> NdbEngine {
        NdbEngine(Arc::new(Shared::new()))
    }

    /// An engine for tests: where the cluster and the shim are, and the NDB database.
    pub fn with(connectstring: &str, shim: &str, database: &str) -> NdbEngine {
        let engine = NdbEngine::new();
        let settings = &engine.0.links.settings;
        for (setting, value) in [
            (&settings.connectstring, connectstring),
            (&settings.shim, shim),
            (&settings.database, database),
        ] {
            setting.store(types::Value::text(value));
        }
        engine
    }
}

impl Engine for NdbEngine {
    fn name(&self) -> &'static str {
        "ndbcluster"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["NDB"]
    }

    fn comment(&self) -> &'static str {
        "Tables in the data nodes of a MySQL Cluster; READ COMMITTED"
    }

    fn is_durable(&self) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            transactions: true,
            snapshots: false,
            gap_locks: false,
            prepare: false,
            full_text: false,
            foreign_keys: false,
            early_unlock: false,
            multi_valued_indexes: false,
            remote: true,
        }
    }

    fn shared_definitions(&self) -> Option<&dyn SharedDefinitions> {
        (!self.0.links.settings.connectstring.text().is_empty()).then_some(self)
    }

    fn new_transaction(&self) -> Box<dyn Transaction> {
        Box::new(NdbEngineTransaction::new(self.0.clone()))
    }

    fn has_table(&self, table: TableId) -> bool {
        self.0.table(table).is_ok()
    }

    fn table_stats(&self, table: TableId) -> EngineResult<TableStats> {
        let (link, table) = self.0.table(table)?;
        self.0.statistics.of(&link, &table)
    }

    fn forget_stats(&self, table: TableId) -> EngineResult<()> {
        self.0.statistics.forget(table);
        Ok(())
    }

    fn estimate_range(
        &self,
        table: TableId,
        index: IndexId,
        range: &KeyRange,
    ) -> EngineResult<RangeEstimate> {
        let (_, table) = self.0.table(table)?;
        let Some(span) = Span::of(range) else { return Ok(RangeEstimate { rows: 0, exact: true }) };
        let keys = match index {
            IndexId::CLUSTERED => &table.rows,
            other => &table.index(other)?.entries,
        };
        let rows = blocking(|| keys.range_size(Some(&span.start), span.end.as_deref()));
        Ok(RangeEstimate { rows: rows.map_err(NdbError::into_engine)?, exact: false })
    }

    fn auto_increment_reserve(
        &self,
        table: TableId,
        count: u64,
        increment: u64,
        offset: u64,
    ) -> EngineResult<u64> {
        let increment = increment.max(1);
        // As the reference: an offset above the increment does not count.
        let offset = if offset == 0 || offset > increment { 1 } else { offset };
        self.0.draw(table, Counted::AutoIncrement, count, increment, offset)
    }

    fn auto_increment_raise(&self, table: TableId, value: u64) -> EngineResult<()> {
        self.0.set_counter(table, u128::from(value) + 1, false)
    }

    fn auto_increment_set(&self, table: TableId, next: u64) -> EngineResult<()> {
        self.0.set_counter(table, u128::from(next.max(1)), true)
    }

    fn auto_increment_next(&self, table: TableId) -> EngineResult<u64> {
        self.0.with_counter(table, Counted::AutoIncrement, |_, counter| {
            Ok(u64::try_from(counter.next).unwrap_or(u64::MAX))
        })
    }

    fn stats(&self) -> Vec<EngineStat> {
        let stat =
            |group, name: &str, value: String| EngineStat { group, name: name.to_owned(), value };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed).to_string();
        let shared = &self.0;
        let link = shared.links.present();
        let ready = link.as_ref().map_or(0, |link| link.connection.ready_nodes());
        let tables = link.as_ref().map_or(0, |link| link.known_tables());
        let locks = shared.locks.events();
        vec![
            stat("cluster", "data_nodes_ready", ready.to_string()),
            stat("tables", "tables_in_use", tables.to_string()),
            stat("operations", "round_trips_total", count(&shared.executes)),
            stat("operations", "operations_total", count(&shared.operations)),
            stat("transactions", "repeated_total", count(&shared.replays)),
            stat("transactions", "lost_total", count(&shared.losses)),
            stat("locks", "row_locks", locks.entries.to_string()),
            stat("locks", "waits_total", locks.waits.to_string()),
            stat("locks", "deadlocks_total", locks.deadlocks.to_string()),
        ]
    }

    fn check_table_counting(
        &self,
        table: TableId,
        cancel: &CancelToken,
    ) -> EngineResult<Vec<String>> {
        let (link, table) = self.0.table(table)?;
        blocking(|| crate::check::check(&link, &table, cancel))
    }

    fn shutdown(&self) -> EngineResult<()> {
        self.0.settle_counters();
        self.0.links.close();
        Ok(())
    }
}

/// The longest time that a transaction is tried again after temporary errors.
pub(crate) const REPLAY_MAX: Duration = Duration::from_secs(8);
