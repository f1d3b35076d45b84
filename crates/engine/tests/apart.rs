//! The cache lines that connections which change rows write in common. Alone in its program: numbers of threads, by which lanes are chosen, are consecutive here.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{TableId, Transaction};
use sys::sim::SimDisk;
use wal::LogConfig;

use support::numbers::{self, record};
use support::{begin, key};

const TABLE: TableId = TableId(2000);
const ROWS: i64 = 2000;
/// Transactions of one connection: few enough that no two of both have the same place in the table of transactions.
const UPDATES: i64 = 8;
/// Writes of one update to its own memory, its log lane and the ticket: far from growing with anything.
const WRITES_MAX: u64 = 40;

fn engine() -> DurableEngine {
    let config = EngineConfig {
        pool_bytes: 256 << 10,
        log: LogConfig { segment_bytes: 256 << 10, lanes: 16, ..support::config().log },
        undo_memory_bytes: EngineConfig::default().undo_memory_bytes,
        ..support::config()
    };
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    for id in 0..ROWS {
        txn.insert(TABLE, &record([id, 0])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    // Settles the writer: its rows are older than every snapshot from here on.
    engine.tick().unwrap();
    engine
}

fn update(txn: &mut dyn Transaction, old: &mut Vec<u8>, id: i64) {
    support::start(txn, Duration::ZERO);
    assert!(txn.read_unlocked(TABLE, &key(id), old).unwrap());
    assert!(txn.write_if_unchanged(TABLE, &key(id), Some(&record([id, 1]))).unwrap());
    drop(txn.commit().unwrap());
}

/// Cache lines that warm updates of one connection write, and how often its last one writes.
fn connection(engine: &DurableEngine, first: i64) -> (BTreeSet<usize>, u64) {
    let mut txn = begin(engine);
    let mut old = Vec::new();
    update(&mut *txn, &mut old, first);
    let (mut lines, mut writes) = (BTreeSet::new(), 0);
    for id in first + 1..first + 1 + UPDATES {
        let before = sys::counted::shared_writes();
        lines.extend(sys::counted::lines_written(|| update(&mut *txn, &mut old, id)));
        writes = sys::counted::shared_writes() - before;
    }
    (lines, writes)
}

#[test]
fn warm_point_updates_of_two_connections_share_the_log_ticket_alone() {
    let engine = engine();
    // Each on its own thread, with rows on its own pages. One after the other: only the addresses written matter.
    let (one, writes) = connection(&engine, 0);
    let other = std::thread::scope(|scope| {
        scope.spawn(|| connection(&engine, ROWS - 2 * UPDATES).0).join().unwrap()
    });
    let common: Vec<_> = one.intersection(&other).collect();
    assert_eq!(common.len(), 1, "{common:?} of {one:?} and {other:?}");
    assert!(writes <= WRITES_MAX, "{writes}");
}
