//! Purge against scans, DDL against changes, under random schedules: `cargo xtask models`. A failure prints a schedule that
//! `shuttle::replay` repeats.
#![cfg(shuttle)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use catalog::{DdlWaitPolicy, LockMode, LockWait, MetadataLocks, Usage};
use engine::{DurableEngine, EngineConfig};
use engine_api::{
    CancelToken, Direction, Engine, EngineError, EngineResult, GetOutcome, IndexId, KeyRange,
    NotedPass, RowBatch, RowBuf, RowLock, ScanSpec, TableId, Transaction, WaitPolicy,
};
use shuttle::thread;
use sys::entropy::SplitMix;
use sys::model::{check, is_caught};
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, LogConfig};

use support::numbers::{self, fields, record};
use support::{begin_waiting, index, key, whole};

const SCHEDULES: usize = 200;
const TABLE: TableId = TableId(2000);
const COPY: TableId = TableId(2001);
const BY_VALUE: IndexId = IndexId(1);
const FOREVER: Duration = Duration::from_secs(100_000);

fn open() -> Arc<DurableEngine> {
    let config = EngineConfig {
        page_bytes: 512,
        pool_bytes: 32 << 10,
        // A bulk insert asks for room for a group of pages at once.
        pages_max: 1 << 10,
        log: LogConfig {
            segment_bytes: 64 << 10,
            block_bytes: 512,
            lanes: 2,
            flights: 2,
            durability: Durability::Synced,
            failure: FailurePolicy::Report,
            reserve_segments: 0,
        },
        // Entries are deferred whenever that is allowed, and undone together (E20, E21).
        direct_changes: 0,
        background: false,
        ..EngineConfig::default()
    };
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, false)])).unwrap();
    for id in 0..8 {
        txn.insert(TABLE, &record([id, 100])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    Arc::new(engine)
}

fn begin(engine: &DurableEngine) -> Box<dyn Transaction> {
    begin_waiting(engine, FOREVER)
}

fn read(txn: &mut dyn Transaction, index: IndexId) -> EngineResult<BTreeMap<i64, i64>> {
    let mut rows = BTreeMap::new();
    // One at a time: others come between.
    for [id, value] in numbers::rows(txn, &whole(TABLE, index), 1)? {
        assert!(rows.insert(id, value).is_none(), "row {id} came twice");
    }
    Ok(rows)
}

/// Moves value from one row to another; now and then a row goes and comes back in one transaction.
fn transfer(engine: &DurableEngine, random: &mut SplitMix) -> EngineResult<()> {
    let mut txn = begin(engine);
    let (from, to) = (random.below(4) as i64, 4 + random.below(4) as i64);
    let mut read = |id| -> EngineResult<i64> {
        let mut out = engine_api::RowBuf::default();
        let lock = RowLock::Exclusive;
        txn.get(TABLE, IndexId::CLUSTERED, &key(id), lock, WaitPolicy::Wait, &mut out)?;
        let [_, value] = fields(&out.record);
        Ok(value)
    };
    let (left, right) = (read(from)?, read(to)?);
    txn.update(TABLE, &key(from), &record([from, left - 1]))?;
    if random.below(2) == 0 {
        txn.delete(TABLE, &key(to))?;
        txn.insert(TABLE, &record([to, right + 1]))?;
    } else {
        txn.update(TABLE, &key(to), &record([to, right + 1]))?;
    }
    txn.commit()?.wait()
}

#[test]
fn a_snapshot_stays_while_purge_and_writers_work() {
    check(SCHEDULES, || {
        let engine = open();
        let writer = {
            let engine = engine.clone();
            thread::spawn(move || {
                let mut random = SplitMix::new(1);
                (0..4).for_each(|_| transfer(&engine, &mut random).unwrap());
            })
        };
        let purger = {
            let engine = engine.clone();
            thread::spawn(move || (0..3).for_each(|_| engine.tick().unwrap()))
        };
        let mut reader = begin(&engine);
        let first = read(&mut *reader, IndexId::CLUSTERED).unwrap();
        assert_eq!((first.len(), first.values().sum::<i64>()), (8, 800));
        for index in [BY_VALUE, IndexId::CLUSTERED] {
            assert_eq!(read(&mut *reader, index).unwrap(), first, "{index:?}");
        }
        reader.rollback().unwrap();
        writer.join().unwrap();
        purger.join().unwrap();
        engine.tick().unwrap();
        assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    });
}

#[test]
fn purge_that_forgets_the_snapshots_is_caught() {
    let model = "a_snapshot_stays_while_purge_and_writers_work";
    assert!(is_caught(model, "pins hold purge back"));
}

/// Transactions of two threads on the same rows, which two purge at a time, each others' too.
#[test]
fn several_purge_at_once_and_leave_nothing() {
    check(SCHEDULES, || {
        let engine = open();
        let worker = |seed| {
            let engine = engine.clone();
            thread::spawn(move || {
                let mut random = SplitMix::new(seed);
                for _ in 0..3 {
                    // A deadlock's victim leaves its changes to the other.
                    let _ = transfer(&engine, &mut random);
                    engine.tick().unwrap();
                }
            })
        };
        let workers = [worker(1), worker(2)];
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        engine.tick().unwrap();
        assert_eq!(engine.unpurged(TABLE).unwrap(), 0);
        let mut reader = begin(&engine);
        let rows = read(&mut *reader, IndexId::CLUSTERED).unwrap();
        assert_eq!((rows.len(), rows.values().sum::<i64>()), (8, 800));
        assert_eq!(read(&mut *reader, BY_VALUE).unwrap(), rows);
        reader.rollback().unwrap();
        assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    });
}

/// Sessions change rows under metadata locks while another drops the index and builds it again.
#[test]
fn definitions_change_between_statements_not_under_them() {
    check(SCHEDULES, definitions_beside_changes);
}

fn definitions_beside_changes() {
    let (engine, locks) = (open(), Arc::new(MetadataLocks::new()));
    let inside = Arc::new(AtomicUsize::new(0));
    let sessions: Vec<_> = (1..3)
        .map(|session| {
            let (engine, locks) = (engine.clone(), locks.clone());
            let inside = inside.clone();
            thread::spawn(move || {
                let (slot, cancel) = (locks.register(session), CancelToken::new());
                let mut random = SplitMix::new(session);
                for _ in 0..3 {
                    let tables = [(TABLE, Usage::Write)];
                    locks.use_tables(&slot, &tables, FOREVER, &cancel).unwrap();
                    inside.fetch_add(1, Ordering::SeqCst);
                    match transfer(&engine, &mut random) {
                        Ok(()) | Err(EngineError::Deadlock) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                    slot.release_to(0);
                }
            })
        })
        .collect();
    let cancel = CancelToken::new();
    for round in 0..2 {
        let wanted = [(Some(TABLE), LockMode::Exclusive)];
        let guard = locks.lock(9, &wanted, FOREVER, &cancel).unwrap();
        assert_eq!(inside.load(Ordering::SeqCst), 0, "a statement runs on the table");
        let mut txn = begin(&engine);
        txn.drop_index(TABLE, BY_VALUE).unwrap();
        thread::yield_now();
        match round {
            0 => txn.rollback().unwrap(),
            _ => {
                txn.commit().unwrap().wait().unwrap();
                let mut txn = begin(&engine);
                txn.create_index(TABLE, &index(BY_VALUE, 1, false, None)).unwrap();
                txn.commit().unwrap().wait().unwrap();
            }
        }
        assert_eq!(inside.load(Ordering::SeqCst), 0, "a statement began on the table");
        drop(guard);
    }
    sessions.into_iter().for_each(|session| session.join().unwrap());
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    let mut reader = begin(&engine);
    let rows = read(&mut *reader, BY_VALUE).unwrap();
    assert_eq!((rows.len(), rows.values().sum::<i64>()), (8, 800));
}

/// Two sessions write while an index is built; only its begin and its end keep them away.
fn an_index_is_built_among_writers() {
    let engine = open();
    let locks = Arc::new(MetadataLocks::new());
    let sessions: Vec<_> = (1..3)
        .map(|session| {
            let (engine, locks) = (engine.clone(), locks.clone());
            thread::spawn(move || {
                let (slot, cancel) = (locks.register(session), CancelToken::new());
                let mut random = SplitMix::new(session);
                for _ in 0..3 {
                    let tables = [(TABLE, Usage::Write)];
                    locks.use_tables(&slot, &tables, FOREVER, &cancel).unwrap();
                    match transfer(&engine, &mut random) {
                        Ok(()) | Err(EngineError::Deadlock) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    slot.release_to(0);
                }
            })
        })
        .collect();
    let cancel = CancelToken::new();
    let wanted = [(Some(TABLE), LockMode::Exclusive)];
    let mut guard = locks.lock(9, &wanted, FOREVER, &cancel).unwrap();
    let mut txn = begin(&engine);
    assert!(txn.begin_indexes(TABLE, &[index(IndexId(2), 1, false, None)]).unwrap());
    guard.downgrade();
    txn.fill_indexes(TABLE).unwrap();
    guard.upgrade(FOREVER, &cancel).unwrap();
    txn.finish_indexes(TABLE).unwrap();
    txn.commit().unwrap().wait().unwrap();
    drop(guard);
    sessions.into_iter().for_each(|session| session.join().unwrap());
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    let mut reader = begin(&engine);
    let rows = read(&mut *reader, IndexId(2)).unwrap();
    assert_eq!((rows.len(), rows.values().sum::<i64>()), (8, 800));
}

/// Takes a newer snapshot than `last`, and makes the copy what it shows. Returns how many rows were noted.
fn take_round(
    engine: &DurableEngine,
    txn: &mut dyn Transaction,
    last: &mut Box<dyn Transaction>,
) -> u64 {
    let mut now = begin(engine);
    now.take_snapshot();
    let noted = now.collect_noted(TABLE).unwrap();
    let (mut batch, mut row) = (RowBatch::new(), RowBuf::default());
    for pass in [NotedPass::Remove, NotedPass::Put] {
        loop {
            now.next_noted(TABLE, pass, &mut batch).unwrap();
            if batch.is_empty() {
                break;
            }
            let reader = if pass == NotedPass::Remove { &mut *last } else { &mut now };
            for noted in batch.iter() {
                let (clustered, none, wait) = (IndexId::CLUSTERED, RowLock::None, WaitPolicy::Wait);
                let got = reader.get(TABLE, clustered, noted.locator, none, wait, &mut row);
                match (got.unwrap() == GetOutcome::Found, pass) {
                    (false, _) => {}
                    (true, NotedPass::Remove) => txn.delete_equal(COPY, &row.record).unwrap(),
                    (true, NotedPass::Put) => txn.insert(COPY, &row.record).unwrap(),
                }
            }
        }
    }
    *last = now;
    noted
}

/// Two sessions write while the rows are copied; only its begin and its end keep them away.
fn rows_are_copied_among_writers() {
    let engine = open();
    let locks = Arc::new(MetadataLocks::new());
    let sessions: Vec<_> = (1..3)
        .map(|session| {
            let (engine, locks) = (engine.clone(), locks.clone());
            thread::spawn(move || {
                let (slot, cancel) = (locks.register(session), CancelToken::new());
                let mut random = SplitMix::new(session);
                for _ in 0..3 {
                    let tables = [(TABLE, Usage::Write)];
                    locks.use_tables(&slot, &tables, FOREVER, &cancel).unwrap();
                    match transfer(&engine, &mut random) {
                        Ok(()) | Err(EngineError::Deadlock) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    slot.release_to(0);
                }
            })
        })
        .collect();
    let cancel = CancelToken::new();
    let wanted = [(Some(TABLE), LockMode::Exclusive)];
    let wait = LockWait { timeout: FOREVER, policy: DdlWaitPolicy::SkipAhead };
    let mut guard = locks.lock(9, &wanted, wait, &cancel).unwrap();
    let mut txn = begin(&engine);
    assert!(txn.begin_noting(TABLE).unwrap());
    txn.create_table(&numbers::table::<2>(COPY, "test.c", &[(0, true), (1, false)])).unwrap();
    guard.downgrade();
    let mut last = begin(&engine);
    last.take_snapshot();
    for (id, value) in read(&mut *last, IndexId::CLUSTERED).unwrap() {
        txn.insert(COPY, &record([id, value])).unwrap();
    }
    take_round(&engine, &mut *txn, &mut last);
    guard.upgrade(wait, &cancel).unwrap();
    while take_round(&engine, &mut *txn, &mut last) > 0 {}
    let rows = read(&mut *begin(&engine), IndexId::CLUSTERED).unwrap();
    let copied = numbers::rows(&mut *txn, &whole(COPY, IndexId::CLUSTERED), 1).unwrap();
    let copied: BTreeMap<i64, i64> = copied.into_iter().map(|[id, value]| (id, value)).collect();
    assert_eq!((rows.len(), &rows), (8, &copied));
    txn.commit().unwrap().wait().unwrap();
    drop(guard);
    sessions.into_iter().for_each(|session| session.join().unwrap());
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

/// Transactions of several statements, and a thread that locks all tables now and then: no transaction writes or commits while they are locked.
fn transactions_beside_a_global_read_lock() {
    let locks = Arc::new(MetadataLocks::new());
    let writing = Arc::new(AtomicUsize::new(0));
    let writer = |session: u64| {
        let (locks, writing) = (locks.clone(), writing.clone());
        thread::spawn(move || {
            let (slot, cancel) = (locks.register(session), CancelToken::new());
            let at_work = || {
                writing.fetch_add(1, Ordering::SeqCst);
                thread::yield_now();
                writing.fetch_sub(1, Ordering::SeqCst);
            };
            for table in [TABLE, TABLE, TableId(7)] {
                locks.use_tables(&slot, &[(table, Usage::Write)], FOREVER, &cancel).unwrap();
                at_work();
                slot.rest();
            }
            locks.wake(&slot, session, FOREVER, &cancel).unwrap();
            at_work();
            slot.release_to(0);
            slot.rest();
        })
    };
    let writers = [writer(1), writer(2)];
    let cancel = CancelToken::new();
    for _ in 0..2 {
        let everything = [(None, LockMode::NoWrite)];
        let guard = locks.lock(9, &everything, FOREVER, &cancel).unwrap();
        for _ in 0..3 {
            assert_eq!(writing.load(Ordering::SeqCst), 0, "somebody writes under the lock");
            thread::yield_now();
        }
        drop(guard);
    }
    writers.into_iter().for_each(|writer| writer.join().unwrap());
}

#[test]
fn nobody_writes_under_a_global_read_lock() {
    check(SCHEDULES, transactions_beside_a_global_read_lock);
}

#[test]
fn a_global_read_lock_that_looks_only_once_is_caught() {
    let model = "nobody_writes_under_a_global_read_lock";
    assert!(is_caught(model, "look again behind the lock"));
}

#[test]
fn an_index_built_among_writers_has_every_row() {
    shuttle::check_random(an_index_is_built_among_writers, SCHEDULES);
}

#[test]
fn an_index_whose_build_misses_a_note_is_caught() {
    assert!(is_caught("an_index_built_among_writers_has_every_row", "note changes for builds"));
}

#[test]
fn rows_copied_among_writers_are_all_there() {
    check(SCHEDULES, rows_are_copied_among_writers);
}

#[test]
fn a_copy_that_misses_notes_is_caught() {
    let model = "rows_copied_among_writers_are_all_there";
    assert!(is_caught(model, "note changed rows"));
    assert!(is_caught(model, "keep notes of open changes"));
}

/// Ids that a locking scan by value finds, both ways.
fn locked(txn: &mut dyn Transaction, direction: Direction) -> EngineResult<Vec<i64>> {
    let range = KeyRange::ALL;
    let (lock, wait) = (RowLock::Exclusive, WaitPolicy::Wait);
    let spec = ScanSpec { table: TABLE, index: BY_VALUE, range, direction, lock, wait };
    let rows = numbers::rows::<2>(txn, &spec, 3)?;
    let mut ids: Vec<i64> = rows.into_iter().map(|[id, _]| id).collect();
    ids.sort_unstable();
    Ok(ids)
}

/// Purge removes entries, and so merges leaves, between the looks of a locking scan.
fn a_locking_scan_beside_purge() {
    let engine = open();
    let mut txn = begin(&engine);
    for id in 8..40 {
        txn.insert(TABLE, &record([id, id])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    let mut txn = begin(&engine);
    for id in (8..40).filter(|id| id % 8 != 0) {
        txn.delete(TABLE, &key(id)).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    let purged = Arc::new(AtomicUsize::new(0));
    let purger = {
        let (engine, purged) = (engine.clone(), purged.clone());
        thread::spawn(move || {
            engine.tick().unwrap();
            purged.store(1, Ordering::SeqCst);
        })
    };
    let left: Vec<i64> = (0..8).chain([8, 16, 24, 32]).collect();
    while purged.load(Ordering::SeqCst) == 0 {
        for direction in [Direction::Forward, Direction::Backward] {
            let mut txn = begin(&engine);
            assert_eq!(locked(&mut *txn, direction).unwrap(), left, "{direction:?}");
            txn.rollback().unwrap();
        }
    }
    purger.join().unwrap();
}

#[test]
fn a_locking_scan_finds_every_row_while_leaves_merge() {
    check(SCHEDULES, a_locking_scan_beside_purge);
}

#[test]
fn a_locking_scan_that_passes_more_than_it_locked_is_caught() {
    let model = "a_locking_scan_finds_every_row_while_leaves_merge";
    assert!(is_caught(model, "pass only what was locked"));
}

/// A transaction inserts a deleted row and its entry again and is rolled back, while purge handles their previous versions.
fn a_rollback_beside_purge() {
    let engine = open();
    let change = |value: i64| {
        let mut txn = begin(&engine);
        txn.expect_changes().unwrap();
        txn.update(TABLE, &key(1), &record([1, value])).unwrap();
        txn
    };
    let mut reader = begin(&engine);
    assert_eq!(read(&mut *reader, BY_VALUE).unwrap().len(), 8);
    change(101).commit().unwrap().wait().unwrap();
    let mut txn = begin(&engine);
    txn.delete(TABLE, &key(2)).unwrap();
    txn.commit().unwrap().wait().unwrap();
    let mut back = change(100);
    back.insert(TABLE, &record([2, 100])).unwrap();
    let purger = {
        let engine = engine.clone();
        thread::spawn(move || {
            reader.rollback().unwrap();
            engine.tick().unwrap();
        })
    };
    back.rollback().unwrap();
    purger.join().unwrap();
    engine.tick().unwrap();
    assert_eq!(engine.unpurged(TABLE).unwrap(), 0);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

#[test]
fn a_rollback_beside_purge_leaves_nothing() {
    check(SCHEDULES, a_rollback_beside_purge);
}

#[test]
fn a_rollback_that_does_not_look_whether_purge_has_passed_is_caught() {
    assert!(is_caught("a_rollback_beside_purge_leaves_nothing", "E17"));
}

#[test]
fn statements_that_look_before_they_enter_are_caught() {
    let model = "definitions_change_between_statements_not_under_them";
    assert!(is_caught(model, "enter before looking"));
}
