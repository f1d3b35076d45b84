//! Bulk inserts announced with `expect_rows`: no reader sees a difference from other inserts.

mod support;

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    Engine, EngineError, GetOutcome, IndexId, RowBuf, RowLock, ScanSpec, TableId, Transaction,
    WaitPolicy,
};
use sys::sim::SimDisk;
use wal::LogConfig;

use support::{begin, each_record, key, numbers, whole};

const TABLE: TableId = TableId(2000);
const SECOND: IndexId = IndexId(1);
/// More than go the usual way.
const ROWS: i64 = 700;

fn engine() -> DurableEngine {
    let config = EngineConfig {
        pool_bytes: 512 << 10,
        log: LogConfig { segment_bytes: 256 << 10, flights: 1, ..support::config().log },
        undo_memory_bytes: 10_000,
        ..support::config()
    };
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t1", &[(0, true), (1, false)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    engine
}

fn record(id: i64) -> Vec<u8> {
    numbers::record([id, id * 7 % 100])
}

fn count(txn: &mut dyn Transaction, index: IndexId, lock: RowLock) -> Result<usize, EngineError> {
    let mut count = 0;
    each_record(txn, &ScanSpec { lock, ..whole(TABLE, index) }, 50, |_| count += 1)?;
    Ok(count)
}

fn insert(txn: &mut dyn Transaction, ids: impl Iterator<Item = i64>) {
    ids.for_each(|id| txn.insert(TABLE, &record(id)).unwrap());
}

fn assert_rows(engine: &DurableEngine, rows: usize) {
    let mut txn = begin(engine);
    for index in [IndexId::CLUSTERED, SECOND] {
        assert_eq!(count(&mut *txn, index, RowLock::None).unwrap(), rows);
    }
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

#[test]
fn rows_are_seen_by_the_own_transaction_and_by_others_after_the_commit() {
    let engine = engine();
    let mut old = begin(&engine);
    assert_eq!(count(&mut *old, IndexId::CLUSTERED, RowLock::None).unwrap(), 0);
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..ROWS);
    let mut row = RowBuf::default();
    let wait = WaitPolicy::Wait;
    let got = txn.get(TABLE, IndexId::CLUSTERED, &key(ROWS - 1), RowLock::None, wait, &mut row);
    assert_eq!(got.unwrap(), GetOutcome::Found);
    assert_eq!(row.record, record(ROWS - 1));
    assert_rows(&engine, 0);
    txn.rows_are_over().unwrap();
    assert_rows(&engine, 0);
    txn.commit().unwrap().wait().unwrap();
    assert_rows(&engine, ROWS as usize);
    assert_eq!(count(&mut *old, SECOND, RowLock::None).unwrap(), 0);
    drop(old);
    engine.tick().unwrap();
    assert_rows(&engine, ROWS as usize);
}

#[test]
fn a_key_out_of_order_and_a_duplicate_are_as_with_other_rows() {
    let engine = engine();
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, (0..ROWS).chain([-5, ROWS]));
    let twice = txn.insert(TABLE, &record(ROWS - 1));
    assert!(matches!(twice, Err(EngineError::DuplicateKey { index: IndexId::CLUSTERED, .. })));
    txn.commit().unwrap().wait().unwrap();
    assert_rows(&engine, ROWS as usize + 2);
}

#[test]
fn a_rollback_leaves_nothing_and_no_lost_page() {
    let engine = engine();
    let stat = |name: &str| {
        engine.stats().iter().find(|stat| stat.name == name).map(|stat| stat.value.clone())
    };
    let mut pages = Vec::new();
    for _ in 0..3 {
        let mut txn = begin(&engine);
        let savepoint = txn.savepoint();
        txn.expect_rows(TABLE).unwrap();
        insert(&mut *txn, 0..ROWS);
        // Before the trees are the table's, and after.
        txn.rollback_to(savepoint).unwrap();
        txn.expect_rows(TABLE).unwrap();
        insert(&mut *txn, 0..ROWS);
        txn.rows_are_over().unwrap();
        txn.rollback().unwrap();
        assert_rows(&engine, 0);
        pages.push(stat("pages_data"));
    }
    assert_eq!(pages[1], pages[2]);
}

#[test]
fn a_part_cannot_be_taken_back_and_the_whole_is_refused() {
    let engine = engine();
    let mut txn = begin(&engine);
    let start = txn.savepoint();
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..ROWS);
    let savepoint = txn.savepoint();
    txn.rollback_to(savepoint).unwrap();
    insert(&mut *txn, ROWS..ROWS + 1);
    txn.rollback_to(savepoint).unwrap();
    assert!(txn.rows_are_over().is_err());
    txn.rollback_to(start).unwrap();
    txn.commit().unwrap().wait().unwrap();
    assert_rows(&engine, 0);
}

#[test]
fn others_wait_for_the_end_and_are_waited_for() {
    let engine = engine();
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..ROWS);
    let mut other = begin(&engine);
    let blocked = other.insert(TABLE, &record(ROWS * 2));
    assert!(matches!(blocked, Err(EngineError::LockWaitTimeout)));
    // A locking scan meets the rows that came first.
    let blocked = count(&mut *other, IndexId::CLUSTERED, RowLock::Shared);
    assert!(matches!(blocked, Err(EngineError::LockWaitTimeout)));
    // It may have locked the span before them.
    let stored = txn.rows_are_over();
    assert!(matches!(stored, Ok(()) | Err(EngineError::LockWaitTimeout)));
    drop(other);
    txn.rollback().unwrap();

    // A locking read of a missing row blocks its insert.
    let mut reader = begin(&engine);
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..ROWS);
    let mut row = RowBuf::default();
    let (lock, wait) = (RowLock::Exclusive, WaitPolicy::Wait);
    let got = reader.get(TABLE, IndexId::CLUSTERED, &key(ROWS - 1), lock, wait, &mut row);
    assert_eq!(got.unwrap(), GetOutcome::NotFound);
    assert!(matches!(txn.rows_are_over(), Err(EngineError::LockWaitTimeout)));
    txn.rollback().unwrap();
    assert_rows(&engine, 0);

    // A span locked before makes the inserts go one by one.
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..ROWS - 1);
    let blocked = txn.insert(TABLE, &record(ROWS - 1));
    assert!(matches!(blocked, Err(EngineError::LockWaitTimeout)));
}

#[test]
fn an_update_among_the_first_rows_can_be_rolled_back() {
    let engine = engine();
    let mut txn = begin(&engine);
    txn.expect_rows(TABLE).unwrap();
    insert(&mut *txn, 0..100);
    txn.update(TABLE, &key(40), &numbers::record([40, 999])).unwrap();
    insert(&mut *txn, 100..ROWS);
    txn.rows_are_over().unwrap();
    assert_eq!(count(&mut *txn, IndexId::CLUSTERED, RowLock::None).unwrap(), ROWS as usize);
    txn.rollback().unwrap();
    assert_rows(&engine, 0);
}
