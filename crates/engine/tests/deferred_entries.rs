//! Deferred changes of secondary entries (E20), and those that are undone together (E21): their results do not differ from changes
//! made one by one.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    CancelToken, Engine, EngineError, IndexId, IsolationLevel, KeyRange, RowBatch, RowLock,
    ScanSpec, TableId, Transaction, TxnOptions,
};
use support::numbers::{self, record};
use support::{begin, config, key, start, whole};
use sys::entropy::SplitMix;
use sys::sim::SimDisk;

const TABLE: TableId = TableId(2000);
/// Of the second column, not unique.
const INDEX: IndexId = IndexId(1);
const ROWS: i64 = 200;

/// All changes after the first are deferred.
fn open(disk: &SimDisk) -> DurableEngine {
    let config = EngineConfig { direct_changes: 0, ..config() };
    DurableEngine::open(Arc::new(disk.clone()), config, |_| {}).unwrap()
}

/// Row `id` has `second(id)` in the index and a third column that is unique.
fn filled(disk: &SimDisk) -> DurableEngine {
    let engine = open(disk);
    let mut txn = begin(&engine);
    let def = numbers::table::<3>(TABLE, "test.t", &[(0, true), (1, false), (2, true)]);
    txn.create_table(&def).unwrap();
    (0..ROWS).for_each(|id| txn.insert(TABLE, &record([id, second(id), id])).unwrap());
    txn.commit().unwrap().wait().unwrap();
    engine.tick().unwrap();
    engine
}

fn second(id: i64) -> i64 {
    id * 79 % ROWS
}

fn through(txn: &mut dyn Transaction, index: IndexId) -> BTreeMap<i64, [i64; 3]> {
    let rows = numbers::rows::<3>(txn, &whole(TABLE, index), 7).unwrap();
    let count = rows.len();
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (row[0], row)).collect();
    assert_eq!(rows.len(), count, "a row twice through {index:?}");
    rows
}

fn is_whole(engine: &DurableEngine, expected: &BTreeMap<i64, [i64; 3]>) {
    let mut txn = begin(engine);
    for index in [IndexId::CLUSTERED, INDEX, IndexId(2)] {
        assert_eq!(&through(&mut *txn, index), expected, "{index:?}");
    }
    drop(txn);
    engine.tick().unwrap();
    assert_eq!(engine.unpurged(TABLE).unwrap(), 0);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

fn as_filled() -> BTreeMap<i64, [i64; 3]> {
    (0..ROWS).map(|id| (id, [id, second(id), id])).collect()
}

fn move_all(txn: &mut dyn Transaction, by: i64) {
    for id in 0..ROWS {
        txn.update(TABLE, &key(id), &record([id, second(id) + by, id])).unwrap();
    }
}

#[test]
fn snapshots_and_the_transaction_itself_see_what_they_should() {
    let engine = filled(&SimDisk::new());
    let mut old = begin(&engine);
    assert_eq!(through(&mut *old, INDEX), as_filled());
    let mut txn = begin(&engine);
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    assert_eq!(through(&mut *old, INDEX), as_filled());
    assert_eq!(through(&mut *begin(&engine), INDEX), as_filled());
    let moved: BTreeMap<_, _> = (0..ROWS).map(|id| (id, [id, second(id) + 1000, id])).collect();
    // A read through the index makes the deferred changes.
    assert_eq!(through(&mut *txn, INDEX), moved);
    move_all(&mut *txn, 2000);
    txn.changes_are_over().unwrap();
    assert_eq!(through(&mut *old, INDEX), as_filled());
    txn.commit().unwrap().wait().unwrap();
    assert_eq!(through(&mut *old, INDEX), as_filled());
    drop(old);
    is_whole(&engine, &(0..ROWS).map(|id| (id, [id, second(id) + 2000, id])).collect());
}

#[test]
fn an_open_cursor_reads_entries_that_were_deferred() {
    let engine = filled(&SimDisk::new());
    let mut txn = begin(&engine);
    txn.expect_changes().unwrap();
    let cursor = txn.open_cursor(&whole(TABLE, INDEX)).unwrap();
    let mut batch = RowBatch::new();
    assert_eq!(txn.fetch(cursor, 1, &mut batch).unwrap(), 1);
    txn.delete(TABLE, &key(5)).unwrap();
    txn.update(TABLE, &key(7), &record([7, 5000, 7])).unwrap();
    let (mut seen, mut last) = (1, 0);
    loop {
        batch.clear();
        let count = txn.fetch(cursor, 50, &mut batch).unwrap();
        if count == 0 {
            break;
        }
        seen += count as i64;
        last = numbers::fields::<3>(batch.row(count - 1).record)[1];
    }
    assert_eq!((seen, last), (ROWS - 1, 5000));
    txn.rollback().unwrap();
    is_whole(&engine, &as_filled());
}

#[test]
fn what_is_taken_back_was_never_there() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let mut txn = begin(&engine);
    txn.update(TABLE, &key(3), &record([3, 777, 3])).unwrap();
    let savepoint = txn.savepoint();
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    txn.rollback_to(savepoint).unwrap();
    // In the middle of a statement: earlier changes are made, then the later ones undone.
    txn.expect_changes().unwrap();
    txn.update(TABLE, &key(4), &record([4, 888, 4])).unwrap();
    let middle = txn.savepoint();
    txn.update(TABLE, &key(4), &record([4, 889, 4])).unwrap();
    txn.update(TABLE, &key(6), &record([6, 890, 6])).unwrap();
    txn.rollback_to(middle).unwrap();
    // A duplicate after entries of other indexes were deferred.
    let duplicate = txn.update(TABLE, &key(8), &record([8, 891, 9]));
    assert!(matches!(duplicate, Err(EngineError::DuplicateKey { .. })), "{duplicate:?}");
    txn.changes_are_over().unwrap();
    txn.commit().unwrap().wait().unwrap();
    let mut expected = as_filled();
    expected.insert(3, [3, 777, 3]);
    expected.insert(4, [4, 888, 4]);
    is_whole(&engine, &expected);
    let mut txn = begin(&engine);
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    txn.rollback().unwrap();
    is_whole(&engine, &expected);
    // No file of sorted changes is left.
    drop(txn);
    drop(engine);
    assert!(sys::disk::Disk::list(&disk).unwrap().iter().all(|name| !name.starts_with("sort-")));
}

#[test]
fn a_change_that_cannot_be_made_in_the_end_takes_the_rows_back() {
    let engine = filled(&SimDisk::new());
    let mut other = begin(&engine);
    let range = ScanSpec {
        range: KeyRange::prefix(key(1003)),
        lock: RowLock::Exclusive,
        ..whole(TABLE, INDEX)
    };
    let cursor = other.open_cursor(&range).unwrap();
    assert_eq!(other.fetch(cursor, 1, &mut RowBatch::new()).unwrap(), 0);
    let mut txn = begin(&engine);
    let savepoint = txn.savepoint();
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    assert!(matches!(txn.changes_are_over(), Err(EngineError::LockWaitTimeout)));
    // Without that it does not commit.
    txn.rollback_to(savepoint).unwrap();
    txn.update(TABLE, &key(1), &record([1, 1, 1])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    let mut expected = as_filled();
    expected.insert(1, [1, 1, 1]);
    let mut txn = begin(&engine);
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    assert!(txn.changes_are_over().is_err());
    assert!(txn.commit().is_err());
    other.rollback().unwrap();
    is_whole(&engine, &expected);
    // A statement that is stopped while it makes them.
    let cancel = CancelToken::new();
    let mut txn = engine.new_transaction();
    let options = TxnOptions {
        isolation: IsolationLevel::ReadCommitted,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: Duration::from_millis(1),
        cancel: cancel.clone(),
    };
    txn.start(&options).unwrap();
    txn.expect_changes().unwrap();
    move_all(&mut *txn, 1000);
    cancel.kill_query();
    assert!(matches!(txn.changes_are_over(), Err(EngineError::Cancelled)));
    txn.rollback().unwrap();
    is_whole(&engine, &expected);
}

/// One random change of a row and of the model.
fn change(txn: &mut dyn Transaction, rows: &mut BTreeMap<i64, [i64; 3]>, random: &mut SplitMix) {
    let id = random.below(ROWS as u64) as i64;
    let row = [id, random.below(50) as i64, id];
    let done = match random.below(3) {
        0 => txn.insert(TABLE, &record(row)),
        1 => txn.update(TABLE, &key(id), &record(row)),
        _ => txn.delete(TABLE, &key(id)),
    };
    match done {
        Ok(()) if rows.contains_key(&id) => match txn.has_row(id) {
            true => drop(rows.insert(id, row)),
            false => drop(rows.remove(&id)),
        },
        Ok(()) => drop(rows.insert(id, row)),
        Err(EngineError::DuplicateKey { .. } | EngineError::RowNotFound) => {}
        Err(other) => panic!("{other:?}"),
    }
}

trait HasRow {
    fn has_row(&mut self, id: i64) -> bool;
}

impl HasRow for dyn Transaction + '_ {
    fn has_row(&mut self, id: i64) -> bool {
        let mut row = engine_api::RowBuf::default();
        let wait = engine_api::WaitPolicy::Wait;
        let got = self.get(TABLE, IndexId::CLUSTERED, &key(id), RowLock::Exclusive, wait, &mut row);
        got.unwrap() == engine_api::GetOutcome::Found
    }
}

#[test]
fn random_changes_agree_with_the_model() {
    for seed in 1..30 {
        let mut random = SplitMix::new(seed);
        let engine = filled(&SimDisk::new());
        let mut committed = as_filled();
        let mut txn = engine.new_transaction();
        for _ in 0..12 {
            start(&mut *txn, Duration::from_millis(1));
            let mut rows = committed.clone();
            for _ in 0..random.below(4) {
                let (savepoint, before) = (txn.savepoint(), rows.clone());
                txn.expect_changes().unwrap();
                for _ in 0..random.below(80) {
                    change(&mut *txn, &mut rows, &mut random);
                    if random.below(60) == 0 {
                        assert_eq!(through(&mut *txn, INDEX), rows, "seed {seed}");
                    }
                }
                match random.below(3) {
                    0 => {
                        txn.rollback_to(savepoint).unwrap();
                        rows = before;
                    }
                    1 => txn.changes_are_over().unwrap(),
                    _ => {}
                }
            }
            assert_eq!(through(&mut *begin(&engine), INDEX), committed, "seed {seed}");
            match random.below(3) {
                0 => txn.rollback().unwrap(),
                _ => {
                    txn.commit().unwrap().wait().unwrap();
                    committed = rows;
                }
            }
            if random.below(3) == 0 {
                engine.tick().unwrap();
            }
        }
        drop(txn);
        is_whole(&engine, &committed);
    }
}

#[test]
fn many_changes_are_undone_together_beside_purge_and_old_snapshots() {
    for seed in 1..20 {
        let mut random = SplitMix::new(seed);
        let engine = filled(&SimDisk::new());
        let mut committed = as_filled();
        // Versions of before, some kept by a snapshot: entries that come back from a rollback may have to stay marked.
        let mut old = begin(&engine);
        let mut seen = through(&mut *old, INDEX);
        for round in 0..4 {
            let mut txn = begin(&engine);
            for _ in 0..random.below(60) {
                change(&mut *txn, &mut committed, &mut random);
            }
            txn.commit().unwrap().wait().unwrap();
            let (mut txn, mut rows) = (begin(&engine), committed.clone());
            if random.below(2) == 0 {
                txn.expect_changes().unwrap();
            }
            for _ in 0..200 {
                change(&mut *txn, &mut rows, &mut random);
            }
            txn.changes_are_over().unwrap();
            if random.below(2) == 0 {
                engine.tick().unwrap();
            }
            match random.below(2) {
                0 => txn.rollback().unwrap(),
                _ => {
                    let savepoint = txn.savepoint();
                    let before = rows.clone();
                    for _ in 0..100 {
                        change(&mut *txn, &mut rows, &mut random);
                    }
                    txn.rollback_to(savepoint).unwrap();
                    assert_eq!(through(&mut *txn, INDEX), before, "seed {seed}");
                    txn.rollback().unwrap();
                }
            }
            assert_eq!(through(&mut *begin(&engine), INDEX), committed, "seed {seed}");
            assert_eq!(through(&mut *old, INDEX), seen, "seed {seed}");
            if round == 2 {
                old.rollback().unwrap();
                old = begin(&engine);
                seen = through(&mut *old, INDEX);
            }
        }
        drop(old);
        is_whole(&engine, &committed);
    }
}

#[test]
fn what_a_crash_left_is_undone_together_however_often_it_crashes() {
    let mut disk = SimDisk::new();
    let expected = as_filled();
    drop(filled(&disk));
    for seed in 1..25 {
        let engine = open(&disk);
        let mut txn = begin(&engine);
        txn.expect_changes().unwrap();
        move_all(&mut *txn, 1000);
        (0..20).for_each(|id| txn.delete(TABLE, &key(id)).unwrap());
        txn.changes_are_over().unwrap();
        engine.checkpoint().unwrap();
        disk.crash_now();
        drop(txn);
        drop(engine);
        disk = disk.after_crash(seed);
        // In the middle of the rollback, wherever that is.
        let engine = open(&disk);
        disk.crash_after(seed * 9 % 200);
        let _ = engine.tick();
        disk.crash_now();
        drop(engine);
        disk = disk.after_crash(seed + 100);
        let engine = open(&disk);
        engine.tick().unwrap();
        is_whole(&engine, &expected);
    }
}
