//! Purge and rollback leave nothing behind, in whichever order they come.

mod support;

use std::sync::Arc;

use engine::DurableEngine;
use engine_api::{Engine, TableId};
use support::numbers::{self, record};
use support::{begin, config, key};
use sys::sim::SimDisk;

const TABLE: TableId = TableId(2000);

/// Ten rows, the even ones deleted, and nothing purged.
fn half_deleted() -> DurableEngine {
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config(), |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, false)])).unwrap();
    (0..10).for_each(|id| txn.insert(TABLE, &record([id, id])).unwrap());
    txn.commit().unwrap().wait().unwrap();
    engine.tick().unwrap();
    let mut txn = begin(&engine);
    (0..10).step_by(2).for_each(|id| txn.delete(TABLE, &key(id)).unwrap());
    txn.commit().unwrap().wait().unwrap();
    assert_eq!(engine.unpurged(TABLE).unwrap(), 10);
    engine
}

fn is_clean(engine: &DurableEngine) {
    engine.tick().unwrap();
    assert_eq!(engine.unpurged(TABLE).unwrap(), 0);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

#[test]
fn deleted_rows_that_were_covered_while_purge_passed_do_not_come_back() {
    let engine = half_deleted();
    // The same entries, and others.
    for shift in [0, 100] {
        let mut txn = begin(&engine);
        (0..10).step_by(2).for_each(|id| txn.insert(TABLE, &record([id, id + shift])).unwrap());
        engine.tick().unwrap();
        txn.rollback().unwrap();
        is_clean(&engine);
        let mut txn = begin(&engine);
        (0..10).step_by(2).for_each(|id| txn.insert(TABLE, &record([id, id])).unwrap());
        txn.commit().unwrap().wait().unwrap();
        let mut txn = begin(&engine);
        (0..10).step_by(2).for_each(|id| txn.delete(TABLE, &key(id)).unwrap());
        txn.commit().unwrap().wait().unwrap();
    }
    is_clean(&engine);
}

#[test]
fn entries_that_a_savepoint_left_marked_go_with_the_transaction() {
    let engine = half_deleted();
    is_clean(&engine);
    for commits in [true, false] {
        let mut txn = begin(&engine);
        txn.update(TABLE, &key(1), &record([1, 20])).unwrap();
        let savepoint = txn.savepoint();
        txn.update(TABLE, &key(1), &record([1, 1])).unwrap();
        txn.rollback_to(savepoint).unwrap();
        match commits {
            true => txn.commit().unwrap().wait().unwrap(),
            false => txn.rollback().unwrap(),
        }
        is_clean(&engine);
        let mut txn = begin(&engine);
        txn.update(TABLE, &key(1), &record([1, 1])).unwrap();
        txn.commit().unwrap().wait().unwrap();
        is_clean(&engine);
    }
}

#[test]
fn stopping_does_not_wait_for_the_purge_of_a_large_transaction() {
    const ROWS: i64 = 6000;
    let disk = SimDisk::new();
    let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, false)])).unwrap();
    (0..ROWS).for_each(|id| txn.insert(TABLE, &record([id, id])).unwrap());
    txn.commit().unwrap().wait().unwrap();
    engine.tick().unwrap();
    let mut txn = begin(&engine);
    txn.expect_changes().unwrap();
    (0..ROWS).for_each(|id| txn.delete(TABLE, &key(id)).unwrap());
    txn.commit().unwrap().wait().unwrap();
    drop(txn);
    engine.shutdown().unwrap();
    let left = engine.unpurged(TABLE).unwrap();
    assert!(left > 0 && left < ROWS as u64, "{left} rows and entries are left");
    drop(engine);
    // The next run continues where this one stopped.
    let engine = DurableEngine::open(Arc::new(disk), config(), |_| {}).unwrap();
    is_clean(&engine);
}
