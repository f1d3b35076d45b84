//! Changes of rows that are read without a lock: accepted and refused writes, and the waits afterwards.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use engine::DurableEngine;
use engine_api::{
    Engine, EngineError, EngineResult, GetOutcome, IndexId, RowBuf, RowLock, TableId, Transaction,
    WaitPolicy,
};
use sys::sim::SimDisk;

use support::numbers::{self, fields, record, rows};
use support::{begin, begin_waiting, key, whole};

const TABLE: TableId = TableId(2000);

/// Columns: the primary key, one that is unique, one with an index, and one without.
type Row = [i64; 4];

fn engine() -> DurableEngine {
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), support::config(), |_| {}).unwrap();
    let mut txn = begin(&engine);
    let indexes = [(0, true), (1, true), (2, false)];
    txn.create_table(&numbers::table::<4>(TABLE, "test.t", &indexes)).unwrap();
    for id in 0..100 {
        txn.insert(TABLE, &record([id, id + 1000, id % 7, 0])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    engine
}

fn read(txn: &mut dyn Transaction, id: i64) -> Option<Row> {
    let mut record = Vec::new();
    txn.read_unlocked(TABLE, &key(id), &mut record).unwrap().then(|| fields(&record))
}

/// Whether the row was changed.
fn change(txn: &mut dyn Transaction, id: i64, change: impl Fn(&mut Row)) -> EngineResult<bool> {
    let mut row = read(txn, id).expect("the row is there");
    change(&mut row);
    txn.write_if_unchanged(TABLE, &key(id), Some(&record(row)))
}

/// The result of a locking read that does not wait.
fn lock(txn: &mut dyn Transaction, id: i64, lock: RowLock) -> EngineResult<GetOutcome> {
    let mut row = RowBuf::default();
    txn.get(TABLE, IndexId::CLUSTERED, &key(id), lock, WaitPolicy::NoWait, &mut row)
}

fn lock_entries(engine: &DurableEngine) -> u64 {
    let all = engine.stats();
    let found = all.iter().find(|stat| stat.group == "locks" && stat.name == "row_locks");
    found.expect("row_locks").value.parse().unwrap()
}

fn all(engine: &DurableEngine, index: u32) -> Vec<Row> {
    rows(&mut *begin(engine), &whole(TABLE, IndexId(index)), 10).unwrap()
}

#[test]
fn a_row_is_changed_with_its_entries_and_without_a_lock_entry() {
    let engine = engine();
    let mut txn = begin(&engine);
    assert!(change(&mut *txn, 5, |row| row[3] = 50).unwrap());
    assert!(change(&mut *txn, 6, |row| (row[2], row[3]) = (99, 60)).unwrap());
    assert!(change(&mut *txn, 6, |row| row[3] += 1).unwrap(), "its own change again");
    assert_eq!(lock_entries(&engine), 0);
    assert_eq!(all(&engine, 0)[5], [5, 1005, 5, 0], "others see what was committed");
    txn.commit().unwrap().wait().unwrap();
    assert_eq!(all(&engine, 0)[5..7], [[5, 1005, 5, 50], [6, 1006, 99, 61]]);
    assert_eq!(*all(&engine, 2).last().unwrap(), [6, 1006, 99, 61]);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

#[test]
fn a_row_is_deleted() {
    let engine = engine();
    let mut txn = begin(&engine);
    assert!(read(&mut *txn, 7).is_some());
    assert!(txn.write_if_unchanged(TABLE, &key(7), None).unwrap());
    assert!(read(&mut *txn, 7).is_none());
    txn.commit().unwrap().wait().unwrap();
    for index in 0..3 {
        assert_eq!(all(&engine, index).len(), 99);
    }
    assert!(read(&mut *begin(&engine), 7).is_none());
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

#[test]
fn a_row_that_changed_after_it_was_read_is_left() {
    let engine = engine();
    let (mut one, mut other) = (begin(&engine), begin(&engine));
    for ends in [true, false] {
        let row = read(&mut *one, 5).unwrap();
        assert!(change(&mut *other, 5, |row| row[3] += 1).unwrap());
        if ends {
            other.commit().unwrap().wait().unwrap();
            support::start(&mut *other, Duration::ZERO);
        }
        assert!(!one.write_if_unchanged(TABLE, &key(5), Some(&record(row))).unwrap());
        assert!(!one.has_written());
    }
    // A second write without a read does nothing.
    assert!(!one.write_if_unchanged(TABLE, &key(5), None).unwrap());
    drop(other);
    assert_eq!(all(&engine, 0)[5], [5, 1005, 5, 1]);
}

#[test]
fn a_neighbour_that_changed_in_between_is_no_reason() {
    let engine = engine();
    let (mut one, mut other) = (begin(&engine), begin(&engine));
    let mut row = read(&mut *one, 5).unwrap();
    assert!(change(&mut *other, 6, |row| row[3] += 1).unwrap());
    row[3] = 9;
    assert!(one.write_if_unchanged(TABLE, &key(5), Some(&record(row))).unwrap());
}

#[test]
fn a_lock_of_another_is_respected_and_an_own_one_is_none() {
    let engine = engine();
    let (mut one, mut other) = (begin(&engine), begin(&engine));
    for mode in [RowLock::Shared, RowLock::Exclusive] {
        assert_eq!(lock(&mut *other, 5, mode).unwrap(), GetOutcome::Found);
        assert!(!change(&mut *one, 5, |row| row[3] = 1).unwrap());
    }
    assert!(change(&mut *other, 5, |row| row[3] = 2).unwrap());
    other.commit().unwrap().wait().unwrap();
    assert!(change(&mut *one, 5, |row| row[3] = 3).unwrap());
}

#[test]
fn the_change_locks_the_row_until_its_transaction_ends() {
    let engine = engine();
    let (mut one, mut other) = (begin(&engine), begin(&engine));
    let savepoint = one.savepoint();
    assert!(change(&mut *one, 5, |row| row[3] = 1).unwrap());
    for _ in 0..2 {
        for mode in [RowLock::Shared, RowLock::Exclusive] {
            let refused = lock(&mut *other, 5, mode);
            assert!(matches!(refused, Err(EngineError::LockNotAvailable)), "{refused:?}");
        }
        assert!(!change(&mut *other, 5, |row| row[3] = 2).unwrap());
        // Back in the transaction, the row is as it was, and stays locked.
        one.rollback_to(savepoint).unwrap();
    }
    one.rollback().unwrap();
    assert_eq!(lock(&mut *other, 5, RowLock::Exclusive).unwrap(), GetOutcome::Found);
    assert_eq!(all(&engine, 0)[5], [5, 1005, 5, 0]);
}

#[test]
fn whoever_waits_for_the_row_gets_it_afterwards() {
    let engine = engine();
    let mut one = begin(&engine);
    assert!(change(&mut *one, 5, |row| row[3] = 1).unwrap());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut other = begin_waiting(&engine, Duration::from_secs(20));
            let mut row = RowBuf::default();
            let (index, lock, wait) = (IndexId::CLUSTERED, RowLock::Exclusive, WaitPolicy::Wait);
            other.get(TABLE, index, &key(5), lock, wait, &mut row).unwrap();
            fields::<4>(&row.record)[3]
        });
        // It is there when the row has got an entry, made on behalf of the writer.
        while lock_entries(&engine) == 0 {
            std::thread::yield_now();
        }
        one.commit().unwrap().wait().unwrap();
        assert_eq!(waiter.join().unwrap(), 1);
    });
    assert_eq!(lock_entries(&engine), 0);
}

#[test]
fn two_writers_who_wait_for_each_other_are_a_deadlock() {
    let engine = engine();
    let update = |txn: &mut dyn Transaction, id| {
        txn.update(TABLE, &key(id), &record([id, id + 1000, id % 7, 5]))
    };
    let mut one = begin_waiting(&engine, Duration::from_secs(20));
    assert!(change(&mut *one, 5, |row| row[3] = 1).unwrap());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut other = begin_waiting(&engine, Duration::from_secs(20));
            assert!(change(&mut *other, 6, |row| row[3] = 1).unwrap());
            let waited = update(&mut *other, 5);
            drop(other.commit());
            waited
        });
        while lock_entries(&engine) == 0 {
            std::thread::yield_now();
        }
        let outcomes = [update(&mut *one, 6), other.join().unwrap()];
        let is_victim = |outcome: &&EngineResult<()>| matches!(outcome, Err(EngineError::Deadlock));
        assert_eq!(outcomes.iter().filter(is_victim).count(), 1, "{outcomes:?}");
    });
}

#[test]
fn keys_are_kept_and_unique_ones_refused() {
    let engine = engine();
    let mut txn = begin(&engine);
    assert!(!change(&mut *txn, 5, |row| row[0] = 500).unwrap(), "another clustered key");
    let taken = change(&mut *txn, 5, |row| (row[1], row[3]) = (1006, 1));
    assert!(matches!(taken, Err(EngineError::DuplicateKey { .. })), "{taken:?}");
    assert_eq!(read(&mut *txn, 5).unwrap(), [5, 1005, 5, 0]);
    assert!(change(&mut *txn, 5, |row| row[1] = 2005).unwrap());
    assert!(change(&mut *txn, 6, |row| row[1] = 1005).unwrap(), "the name is free");
    txn.commit().unwrap().wait().unwrap();
    let unique: Vec<_> = all(&engine, 1).iter().map(|row| row[1]).collect();
    assert!(unique.is_sorted() && unique.contains(&2005) && !unique.contains(&1006));
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}
