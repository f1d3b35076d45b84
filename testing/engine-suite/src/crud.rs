//! Rows in and out, order, ranges, uniqueness, savepoints, AUTO_INCREMENT.

use engine_api::{
    Direction, EngineError, FoundRows, GetOutcome, IndexId, IsolationLevel, KeyBound, KeyList,
    KeyRange, RowBuf, RowLock, ScanSpec, TxnOptions, WaitPolicy,
};

use crate::harness::{
    BY_B, BY_C, Bench, T1, commit, expect_duplicate, key_a, key_b, key_c, options, range_a, row,
};
use crate::{Check, Factory};

pub(crate) const CHECKS: &[Check] = &[
    ("rows come back", rows_come_back),
    ("ranges", ranges),
    ("backward scans", backward),
    ("secondary order and prefix ranges", secondary),
    ("unique violations", unique),
    ("unique after update and delete", unique_after_changes),
    ("update changes keys", update_keys),
    ("missing rows", missing_rows),
    ("savepoints", savepoints),
    ("rollback", rollback),
    ("read-only transactions", read_only),
    ("AUTO_INCREMENT", auto_increment),
    ("statistics and estimates", statistics),
    ("cursor and own writes", cursor_and_own_writes),
    ("ranges that were announced", many_keys),
    ("inserts that are held back", held_back),
];

fn rows_come_back(factory: Factory<'_>) {
    let bench = Bench::new(factory);
    let mut txn = bench.begin();
    for a in [5, -3, 9, 0] {
        bench.insert(&mut *txn, a, Some(a * 10), &format!("c{a}")).expect("insert");
        assert_eq!(txn.inserted_locator(), key_a(a));
    }
    assert_eq!(bench.get(&mut *txn, 9), Some(row(9, Some(90), "c9")), "own write");
    commit(txn);
    assert_eq!(bench.keys(), [-3, 0, 5, 9], "clustered order");
    let mut txn = bench.begin();
    assert_eq!(bench.get(&mut *txn, 4), None);
    let mut out = RowBuf::default();
    let key = key_b(Some(50));
    let found = txn.get(T1, BY_B, &key, RowLock::None, WaitPolicy::Wait, &mut out);
    assert_eq!(found.expect("get"), GetOutcome::Found, "by a unique secondary index");
    assert_eq!(out.locator, key_a(5), "the locator is the clustered key");
    assert_eq!(bench.row(&out.record), row(5, Some(50), "c5"));
    bench.check();
}

fn keys_in(bench: &Bench, spec: &ScanSpec) -> Vec<i64> {
    let mut txn = bench.begin();
    bench.scan(&mut *txn, spec).expect("scan").into_iter().map(|row| row.0).collect()
}

fn ten(factory: Factory<'_>) -> Bench {
    let rows: Vec<_> = (0..10).map(|a| (a, Some(100 - a), "x")).collect();
    Bench::with_rows(factory, &rows)
}

fn ranges(factory: Factory<'_>) {
    let bench = ten(factory);
    let included = |a| KeyBound::Included(key_a(a));
    let excluded = |a| KeyBound::Excluded(key_a(a));
    let cases: [(KeyBound, KeyBound, &[i64]); 8] = [
        (included(3), included(5), &[3, 4, 5]),
        (excluded(3), included(5), &[4, 5]),
        (included(3), excluded(5), &[3, 4]),
        (excluded(3), excluded(4), &[]),
        (KeyBound::Unbounded, excluded(2), &[0, 1]),
        (excluded(7), KeyBound::Unbounded, &[8, 9]),
        (included(5), included(4), &[]),
        (included(20), included(30), &[]),
    ];
    for (lower, upper, expected) in cases {
        let mut spec = bench.spec(IndexId::CLUSTERED, KeyRange { lower, upper });
        assert_eq!(keys_in(&bench, &spec), expected, "{:?}", spec.range);
        spec.direction = Direction::Backward;
        let reversed: Vec<i64> = expected.iter().rev().copied().collect();
        assert_eq!(keys_in(&bench, &spec), reversed, "backward {:?}", spec.range);
    }
}

fn backward(factory: Factory<'_>) {
    let bench = ten(factory);
    let mut spec = bench.spec(BY_B, KeyRange::ALL);
    assert_eq!(keys_in(&bench, &spec), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    spec.direction = Direction::Backward;
    assert_eq!(keys_in(&bench, &spec), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

fn secondary(factory: Factory<'_>) {
    let rows = [
        (1, None, "b"),
        (2, None, "a"),
        (3, Some(1), "ab"),
        (4, Some(2), "a"),
        (5, Some(3), ""),
        (6, Some(4), "b"),
    ];
    let bench = Bench::with_rows(factory, &rows);
    assert_eq!(keys_in(&bench, &bench.spec(BY_C, KeyRange::ALL)), [5, 2, 4, 3, 1, 6]);
    assert_eq!(keys_in(&bench, &bench.spec(BY_C, KeyRange::prefix(key_c("a")))), [2, 4]);
    let after = KeyRange { lower: KeyBound::Excluded(key_c("a")), upper: KeyBound::Unbounded };
    assert_eq!(keys_in(&bench, &bench.spec(BY_C, after)), [3, 1, 6]);
    assert_eq!(keys_in(&bench, &bench.spec(BY_B, KeyRange::ALL)), [1, 2, 3, 4, 5, 6]);
    assert_eq!(keys_in(&bench, &bench.spec(BY_B, KeyRange::prefix(key_b(None)))), [1, 2]);
}

fn unique(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x"), (2, None, "x")]);
    let mut txn = bench.begin();
    expect_duplicate(bench.insert(&mut *txn, 1, Some(99), "y"), IndexId::CLUSTERED, &key_a(1));
    expect_duplicate(bench.insert(&mut *txn, 3, Some(10), "y"), BY_B, &key_a(1));
    bench.insert(&mut *txn, 3, None, "y").expect("NULLs never collide");
    expect_duplicate(bench.update(&mut *txn, 2, row(2, Some(10), "x")), BY_B, &key_a(1));
    expect_duplicate(bench.update(&mut *txn, 2, row(1, None, "x")), IndexId::CLUSTERED, &key_a(1));
    bench.update(&mut *txn, 1, row(1, Some(10), "z")).expect("a row is not a duplicate of itself");
    commit(txn);
    assert_eq!(bench.keys(), [1, 2, 3]);
    bench.check();
}

fn unique_after_changes(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x"), (2, Some(20), "x")]);
    let mut txn = bench.begin();
    bench.delete(&mut *txn, 1).expect("delete");
    bench.insert(&mut *txn, 3, Some(10), "x").expect("the key is free");
    bench.insert(&mut *txn, 1, Some(11), "x").expect("the clustered key is free");
    bench.update(&mut *txn, 2, row(2, Some(21), "x")).expect("update");
    bench.insert(&mut *txn, 4, Some(20), "x").expect("the old value is free");
    expect_duplicate(bench.insert(&mut *txn, 5, Some(21), "x"), BY_B, &key_a(2));
    commit(txn);
    assert_eq!(bench.keys(), [1, 2, 3, 4]);
    bench.check();
}

fn update_keys(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x"), (2, Some(20), "y")]);
    let mut old = bench.begin();
    assert_eq!(bench.all(&mut *old).len(), 2, "takes its snapshot");
    let mut txn = bench.begin();
    bench.update(&mut *txn, 1, row(7, Some(70), "a")).expect("moves the row");
    assert_eq!(bench.get(&mut *txn, 1), None);
    assert_eq!(bench.get(&mut *txn, 7), Some(row(7, Some(70), "a")));
    commit(txn);
    assert_eq!(bench.keys(), [2, 7]);
    let by_c = bench.spec(BY_C, KeyRange::ALL);
    assert_eq!(keys_in(&bench, &by_c), [7, 2]);
    if bench.engine.capabilities().snapshots {
        let seen: Vec<_> = bench.scan(&mut *old, &by_c).expect("scan").into_iter().collect();
        let before = [row(1, Some(10), "x"), row(2, Some(20), "y")];
        assert_eq!(seen, before, "the old snapshot by index");
    }
    old.rollback().expect("rollback");
    bench.check();
}

fn missing_rows(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, None, "x")]);
    let mut txn = bench.begin();
    let gone = bench.delete(&mut *txn, 2);
    assert!(matches!(gone, Err(EngineError::RowNotFound)), "{gone:?}");
    bench.delete(&mut *txn, 1).expect("delete");
    let gone = bench.update(&mut *txn, 1, row(1, None, "y"));
    assert!(matches!(gone, Err(EngineError::RowNotFound)), "{gone:?}");
}

fn savepoints(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
    let mut txn = bench.begin();
    bench.insert(&mut *txn, 2, Some(20), "x").expect("insert");
    let first = txn.savepoint();
    bench.update(&mut *txn, 1, row(1, Some(11), "y")).expect("update");
    bench.update(&mut *txn, 1, row(1, Some(12), "z")).expect("update again");
    bench.delete(&mut *txn, 2).expect("delete");
    let second = txn.savepoint();
    bench.insert(&mut *txn, 2, Some(22), "x").expect("insert again");
    bench.insert(&mut *txn, 3, Some(10), "x").expect("the old key is free");
    txn.rollback_to(second).expect("rollback_to");
    assert_eq!(bench.all(&mut *txn), [row(1, Some(12), "z")]);
    txn.rollback_to(first).expect("rollback_to");
    assert_eq!(bench.all(&mut *txn), [row(1, Some(10), "x"), row(2, Some(20), "x")]);
    bench.insert(&mut *txn, 4, Some(11), "x").expect("the undone key is free");
    txn.rollback_to(first).expect("the savepoint is still there");
    commit(txn);
    assert_eq!(bench.keys(), [1, 2]);
    bench.check();
}

fn rollback(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x"), (2, Some(20), "y")]);
    let mut txn = bench.begin();
    assert!(!txn.has_written());
    bench.insert(&mut *txn, 3, Some(30), "x").expect("insert");
    bench.update(&mut *txn, 1, row(5, Some(50), "q")).expect("update");
    bench.delete(&mut *txn, 2).expect("delete");
    assert!(txn.has_written() && txn.is_started());
    txn.rollback().expect("rollback");
    assert!(!txn.is_started(), "rollback ends the transaction");
    txn.rollback().expect("a second one is a no-op");
    assert_eq!(bench.keys(), [1, 2]);
    assert_eq!(keys_in(&bench, &bench.spec(BY_B, KeyRange::ALL)), [1, 2]);
    bench.check();
    txn.start(&options(IsolationLevel::RepeatableRead)).expect("it can start again");
    bench.insert(&mut *txn, 3, Some(30), "x").expect("insert");
    commit(txn);
    assert_eq!(bench.keys(), [1, 2, 3]);
}

fn read_only(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, None, "x")]);
    let read_only = TxnOptions { read_only: true, ..options(IsolationLevel::RepeatableRead) };
    let mut txn = bench.begin_with(&read_only);
    assert_eq!(bench.get(&mut *txn, 1), Some(row(1, None, "x")));
    let refused = bench.insert(&mut *txn, 2, None, "x");
    assert!(matches!(refused, Err(EngineError::ReadOnly)), "{refused:?}");
    let refused = bench.delete(&mut *txn, 1);
    assert!(matches!(refused, Err(EngineError::ReadOnly)), "{refused:?}");
}

fn auto_increment(factory: Factory<'_>) {
    let bench = Bench::new(factory);
    let engine = &bench.engine;
    assert_eq!(engine.auto_increment_next(T1).expect("next"), 1);
    assert_eq!(engine.auto_increment_reserve(T1, 3, 1, 1).expect("reserve"), 1);
    assert_eq!(engine.auto_increment_reserve(T1, 1, 1, 1).expect("reserve"), 4);
    engine.auto_increment_raise(T1, 2).expect("raise");
    assert_eq!(engine.auto_increment_next(T1).expect("next"), 5, "raise never lowers");
    engine.auto_increment_raise(T1, 10).expect("raise");
    assert_eq!(engine.auto_increment_reserve(T1, 1, 1, 1).expect("reserve"), 11);
    assert_eq!(engine.auto_increment_reserve(T1, 2, 10, 5).expect("reserve"), 15, "5 + k * 10");
    assert_eq!(engine.auto_increment_reserve(T1, 1, 10, 5).expect("reserve"), 35);
    engine.auto_increment_set(T1, 100).expect("set");
    assert_eq!(engine.auto_increment_reserve(T1, 1, 1, 1).expect("reserve"), 100);
    engine.auto_increment_raise(T1, u64::MAX - 1).expect("raise");
    assert_eq!(engine.auto_increment_reserve(T1, 1, 1, 1).expect("the last"), u64::MAX);
    assert!(engine.auto_increment_reserve(T1, 1, 1, 1).is_err(), "the counter is exhausted");
}

fn statistics(factory: Factory<'_>) {
    let rows: Vec<_> =
        (0..1000).map(|a| (a, Some(a), ["x", "y", "z", "w"][a as usize % 4])).collect();
    let bench = Bench::with_rows(factory, &rows);
    let stats = bench.engine.table_stats(T1).expect("stats");
    assert!((900..=1100).contains(&stats.rows), "{stats:?}");
    assert_eq!(stats.distinct.len(), 3, "one list for each index");
    let estimate =
        bench.engine.estimate_range(T1, IndexId::CLUSTERED, &range_a(100, 119)).expect("estimate");
    assert!((5..=200).contains(&estimate.rows), "20 rows were guessed as {}", estimate.rows);
    let nothing = bench
        .engine
        .estimate_range(T1, IndexId::CLUSTERED, &range_a(5000, 6000))
        .expect("estimate");
    assert!(nothing.rows <= 10, "no rows were guessed as {}", nothing.rows);
}

fn cursor_and_own_writes(factory: Factory<'_>) {
    let bench = ten(factory);
    let mut txn = bench.begin();
    let cursor = txn.open_cursor(&bench.spec(IndexId::CLUSTERED, KeyRange::ALL)).expect("open");
    let mut batch = engine_api::RowBatch::new();
    txn.fetch(cursor, 1, &mut batch).expect("fetch");
    bench.insert(&mut *txn, 50, None, "new").expect("insert");
    bench.delete(&mut *txn, 9).expect("delete");
    let mut keys = Vec::new();
    loop {
        batch.clear();
        if txn.fetch(cursor, 4, &mut batch).expect("fetch") == 0 {
            break;
        }
        keys.extend(batch.iter().map(|row| bench.row(row.record).0));
    }
    assert!(keys.contains(&50), "a cursor sees own rows that it has not passed: {keys:?}");
    assert!(!keys.contains(&9), "and not own deletions: {keys:?}");
    txn.close_cursor(cursor);
    txn.close_cursor(cursor);
}

fn many_keys(factory: Factory<'_>) {
    let bench = ten(factory);
    let mut txn = bench.begin();
    let mut found = FoundRows::default();
    let mut read = |txn: &mut dyn engine_api::Transaction, index, keys: &[Vec<u8>], lock| {
        let mut list = KeyList::default();
        keys.iter().for_each(|key| list.push(key));
        txn.get_many(T1, index, &list, lock, WaitPolicy::Wait, &mut found).expect("get_many");
        assert_eq!(found.keys(), keys.len());
        let rows = (0..keys.len()).map(|at| found.row(at).map(|row| bench.row(row.record).0));
        rows.collect::<Vec<_>>()
    };
    let keys: Vec<Vec<u8>> = [7, 99, 3, 7].iter().map(|a| key_a(*a)).collect();
    let found = [Some(7), None, Some(3), Some(7)];
    for lock in [RowLock::None, RowLock::Shared, RowLock::Exclusive] {
        assert_eq!(read(&mut *txn, IndexId::CLUSTERED, &keys, lock), found, "{lock:?}");
    }
    let by_b: Vec<Vec<u8>> = [97, 500, 93].iter().map(|b| key_b(Some(*b))).collect();
    for lock in [RowLock::None, RowLock::Exclusive] {
        assert_eq!(read(&mut *txn, BY_B, &by_b, lock), [Some(3), None, Some(7)], "{lock:?}");
    }
    bench.update(&mut *txn, 7, row(7, Some(700), "y")).expect("update");
    bench.delete(&mut *txn, 3).expect("delete");
    let found = [Some(7), None, None, Some(7)];
    assert_eq!(read(&mut *txn, IndexId::CLUSTERED, &keys, RowLock::None), found, "own writes");
    assert_eq!(read(&mut *txn, BY_B, &by_b, RowLock::None), [None, None, None]);
    assert_eq!(read(&mut *txn, IndexId::CLUSTERED, &[], RowLock::None), []);
    for a in 1000..2000 {
        bench.insert(&mut *txn, a, Some(a * 10), "many").expect("insert");
    }
    // In no order of the keys, on many leaves.
    let spread: Vec<i64> = (0..1000).map(|n| 1000 + n * 7 % 1001).collect();
    let keys: Vec<Vec<u8>> = spread.iter().map(|a| key_a(*a)).collect();
    let expected: Vec<Option<i64>> = spread.iter().map(|a| (*a < 2000).then_some(*a)).collect();
    assert_eq!(read(&mut *txn, IndexId::CLUSTERED, &keys, RowLock::None), expected);
    txn.rollback().expect("rollback");
}

fn held_back(factory: Factory<'_>) {
    let bench = ten(factory);
    let mut txn = bench.begin();
    txn.hold_back_inserts();
    for a in 100..400 {
        bench.insert(&mut *txn, a, Some(a * 10), "x").expect("insert");
    }
    assert_eq!(bench.get(&mut *txn, 250), Some(row(250, Some(2500), "x")), "they are seen");
    txn.send_inserts().expect("send");
    commit(txn);
    assert_eq!(bench.keys().len(), 310);
    let mut txn = bench.begin();
    let savepoint = txn.savepoint();
    txn.hold_back_inserts();
    let rows = [(500, 5000), (501, 2500), (502, 5002)];
    let mut inserted = rows.iter().map(|(a, b)| bench.insert(&mut *txn, *a, Some(*b), "x"));
    let refused = inserted.find(Result::is_err);
    drop(inserted);
    expect_duplicate(refused.unwrap_or_else(|| txn.send_inserts()), BY_B, &key_a(250));
    if let Some(record) = txn.refused_record() {
        assert_eq!(bench.row(&record).0, 501, "the row that was refused");
    }
    txn.rollback_to(savepoint).expect("rollback_to");
    commit(txn);
    assert_eq!(bench.keys().len(), 310);
    bench.check();
}
