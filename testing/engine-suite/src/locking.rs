//! Row locks, gap locks, waiting, deadlocks.

use std::sync::mpsc;
use std::thread;

use engine_api::{
    EngineError, IndexId, IsolationLevel, KeyBound, KeyRange, RowLock, Transaction, TxnOptions,
    WaitPolicy,
};

use crate::harness::{
    BY_B, BY_C, Bench, LONG, T1, commit, expect_timeout, key_a, key_c, options, range_a, row,
};
use crate::{Asked, Check, Factory};

pub(crate) const CHECKS: &[Check] = &[
    ("locks conflict as they should", conflicts),
    ("NOWAIT and SKIP LOCKED", policies),
    ("writers lock rows", writers_lock),
    ("a waiter continues when the holder ends", waiter_continues),
    ("inserting the same key waits", same_key_waits),
    ("deadlock has one victim", deadlock),
    ("locks stay after rollback to a savepoint", locks_stay),
    ("a cancelled wait ends", cancelled_wait),
    ("counters under contention", contention),
];

pub(crate) const BY_ABILITY: &[Asked] = &[
    ("phantoms", phantoms, |can| can.gap_locks),
    ("gap locks of a point miss", point_miss, |can| can.gap_locks),
    ("READ COMMITTED locks no gaps and unlocks", read_committed, |can| can.early_unlock),
    // A reader without a snapshot sees halves of others' transactions.
    ("transfers keep the sum", transfers, |can| can.snapshots),
];

fn three(factory: Factory<'_>) -> Bench {
    Bench::with_rows(factory, &[(10, Some(1), "a"), (20, Some(2), "b"), (30, Some(3), "c")])
}

fn lock(bench: &Bench, txn: &mut dyn Transaction, a: i64, lock: RowLock) {
    let row = bench.get_locked(txn, a, lock, WaitPolicy::Wait).expect("lock");
    assert!(row.is_some(), "row {a}");
}

fn conflicts(factory: Factory<'_>) {
    let cases = [
        (RowLock::Shared, RowLock::Shared, true),
        (RowLock::Shared, RowLock::Exclusive, false),
        (RowLock::Exclusive, RowLock::Shared, false),
        (RowLock::Exclusive, RowLock::Exclusive, false),
        (RowLock::Exclusive, RowLock::None, true),
    ];
    for (held, wanted, granted) in cases {
        let bench = three(factory);
        let (mut first, mut second) = (bench.begin(), bench.begin());
        lock(&bench, &mut *first, 10, held);
        let outcome = bench.get_locked(&mut *second, 10, wanted, WaitPolicy::Wait);
        match granted {
            true => assert!(outcome.is_ok(), "{held:?} then {wanted:?}: {outcome:?}"),
            false => expect_timeout(outcome),
        }
        lock(&bench, &mut *second, 20, RowLock::Exclusive);
        first.rollback().expect("rollback");
        lock(&bench, &mut *second, 10, RowLock::Exclusive);
    }
}

fn policies(factory: Factory<'_>) {
    let bench = three(factory);
    let (mut first, mut second) = (bench.begin(), bench.begin());
    lock(&bench, &mut *first, 20, RowLock::Exclusive);
    let refused = bench.get_locked(&mut *second, 20, RowLock::Shared, WaitPolicy::NoWait);
    assert!(matches!(refused, Err(EngineError::LockNotAvailable)), "{refused:?}");
    let skipped = bench.get_locked(&mut *second, 20, RowLock::Shared, WaitPolicy::SkipLocked);
    assert_eq!(skipped.expect("skipped"), None);
    for index in [IndexId::CLUSTERED, BY_B, BY_C] {
        let mut spec = bench.spec(index, KeyRange::ALL);
        spec.lock = RowLock::Exclusive;
        spec.wait = WaitPolicy::SkipLocked;
        let rows = bench.scan(&mut *second, &spec).expect("scan");
        assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [10, 30]);
        spec.wait = WaitPolicy::NoWait;
        let refused = bench.scan(&mut *second, &spec);
        assert!(matches!(refused, Err(EngineError::LockNotAvailable)), "{refused:?}");
    }
}

fn writers_lock(factory: Factory<'_>) {
    let bench = three(factory);
    let (mut first, mut second) = (bench.begin(), bench.begin());
    bench.update(&mut *first, 10, row(10, Some(9), "q")).expect("update");
    bench.delete(&mut *first, 20).expect("delete");
    expect_timeout(bench.update(&mut *second, 10, row(10, None, "x")));
    expect_timeout(bench.delete(&mut *second, 20));
    expect_timeout(bench.get_locked(&mut *second, 20, RowLock::Shared, WaitPolicy::Wait));
    bench.update(&mut *second, 30, row(30, None, "x")).expect("another row");
    commit(first);
    let gone = bench.delete(&mut *second, 20);
    assert!(matches!(gone, Err(EngineError::RowNotFound)), "{gone:?}");
    bench.update(&mut *second, 10, row(10, None, "x")).expect("free now");
    commit(second);
    bench.check();
}

fn patient() -> TxnOptions {
    TxnOptions { lock_wait_timeout: LONG, ..options(IsolationLevel::RepeatableRead) }
}

fn waiter_continues(factory: Factory<'_>) {
    let bench = three(factory);
    let mut first = bench.begin();
    bench.update(&mut *first, 10, row(10, Some(7), "w")).expect("update");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut second = bench.begin_with(&patient());
            let row = bench.get_locked(&mut *second, 10, RowLock::Exclusive, WaitPolicy::Wait);
            second.rollback().expect("rollback");
            row
        });
        thread::yield_now();
        commit(first);
        let seen = waiter.join().expect("no panic").expect("granted");
        assert_eq!(seen, Some(row(10, Some(7), "w")), "it sees the holder's committed row");
    });
}

fn same_key_waits(factory: Factory<'_>) {
    for commits in [true, false] {
        let bench = three(factory);
        let mut first = bench.begin();
        bench.insert(&mut *first, 40, Some(4), "d").expect("insert");
        let mut impatient = bench.begin();
        expect_timeout(bench.insert(&mut *impatient, 40, None, "e"));
        expect_timeout(bench.insert(&mut *impatient, 41, Some(4), "e"));
        impatient.rollback().expect("rollback");
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let mut second = bench.begin_with(&patient());
                let outcome = bench.insert(&mut *second, 41, Some(4), "e");
                commit(second);
                outcome
            });
            thread::yield_now();
            if commits {
                commit(first);
            } else {
                first.rollback().expect("rollback");
            }
            let outcome = waiter.join().expect("no panic");
            assert_eq!(outcome.is_err(), commits, "{outcome:?}");
        });
        bench.check();
    }
}

fn phantoms(factory: Factory<'_>) {
    for level in [IsolationLevel::RepeatableRead, IsolationLevel::Serializable] {
        let bench = three(factory);
        let (mut first, mut second) = (bench.begin_at(level), bench.begin());
        let mut spec = bench.spec(IndexId::CLUSTERED, range_a(10, 25));
        spec.lock = RowLock::Exclusive;
        assert_eq!(bench.scan(&mut *first, &spec).expect("scan").len(), 2);
        expect_timeout(bench.insert(&mut *second, 15, None, "x"));
        expect_timeout(bench.insert(&mut *second, 25, None, "x"));
        bench.insert(&mut *second, 35, None, "x").expect("outside the range");
        bench.insert(&mut *first, 15, None, "x").expect("own gap");
        first.rollback().expect("rollback");
        bench.insert(&mut *second, 15, None, "x").expect("free now");
        second.rollback().expect("rollback");

        let (mut first, mut second) = (bench.begin_at(level), bench.begin());
        let mut spec = bench.spec(BY_C, KeyRange::prefix(key_c("b")));
        spec.lock = RowLock::Shared;
        assert_eq!(bench.scan(&mut *first, &spec).expect("scan").len(), 1);
        expect_timeout(bench.insert(&mut *second, 15, None, "b"));
        expect_timeout(bench.update(&mut *second, 10, row(10, None, "b")));
        bench.update(&mut *second, 30, row(30, None, "z")).expect("elsewhere");
        first.rollback().expect("rollback");
        bench.insert(&mut *second, 15, None, "b").expect("free now");
    }
}

fn point_miss(factory: Factory<'_>) {
    let bench = three(factory);
    let (mut first, mut second) = (bench.begin(), bench.begin());
    let missing = bench.get_locked(&mut *first, 15, RowLock::Exclusive, WaitPolicy::Wait);
    assert_eq!(missing.expect("get"), None);
    let missing = bench.get_locked(&mut *second, 15, RowLock::Exclusive, WaitPolicy::Wait);
    assert_eq!(missing.expect("gap locks do not conflict with each other"), None);
    expect_timeout(bench.insert(&mut *second, 15, None, "x"));
    second.rollback().expect("rollback");
    bench.insert(&mut *first, 15, None, "x").expect("insert");
    commit(first);
}

fn read_committed(factory: Factory<'_>) {
    let bench = three(factory);
    let mut first = bench.begin_at(IsolationLevel::ReadCommitted);
    let mut second = bench.begin();
    let mut spec = bench.spec(IndexId::CLUSTERED, KeyRange::ALL);
    spec.lock = RowLock::Exclusive;
    assert_eq!(bench.scan(&mut *first, &spec).expect("scan").len(), 3);
    bench.insert(&mut *second, 15, None, "x").expect("no gap locks");
    expect_timeout(bench.delete(&mut *second, 20));
    first.unlock_row(T1, &key_a(20));
    bench.delete(&mut *second, 20).expect("unlocked early");
    expect_timeout(bench.delete(&mut *second, 30));
    second.rollback().expect("rollback");

    let mut first = bench.begin();
    lock(&bench, &mut *first, 20, RowLock::Exclusive);
    first.unlock_row(T1, &key_a(20));
    let mut second = bench.begin();
    expect_timeout(bench.delete(&mut *second, 20));
}

fn deadlock(factory: Factory<'_>) {
    let bench = three(factory);
    let (ready_sender, ready) = mpsc::channel();
    let (go_sender, go) = mpsc::channel();
    thread::scope(|scope| {
        let bench = &bench;
        let other = scope.spawn(move || {
            let mut second = bench.begin_with(&patient());
            bench.update(&mut *second, 20, row(20, None, "second")).expect("update");
            ready_sender.send(()).expect("send");
            go.recv().expect("recv");
            let outcome = bench.update(&mut *second, 10, row(10, None, "second"));
            let started = second.is_started();
            if outcome.is_ok() {
                commit(second);
            }
            (outcome, started)
        });
        let mut first = bench.begin_with(&patient());
        bench.update(&mut *first, 10, row(10, None, "first")).expect("update");
        ready.recv().expect("recv");
        go_sender.send(()).expect("send");
        let outcome = bench.update(&mut *first, 20, row(20, None, "first"));
        let started = first.is_started();
        if outcome.is_ok() {
            commit(first);
        }
        let (other_outcome, other_started) = other.join().expect("no panic");
        let victims = [(&outcome, started), (&other_outcome, other_started)];
        let failed: Vec<_> = victims.into_iter().filter(|(outcome, _)| outcome.is_err()).collect();
        assert_eq!(failed.len(), 1, "one victim: {outcome:?} {other_outcome:?}");
        assert!(matches!(failed[0].0, Err(EngineError::Deadlock)), "{:?}", failed[0].0);
        assert!(!failed[0].1, "the victim was rolled back whole");
    });
    let mut txn = bench.begin();
    let rows = bench.all(&mut *txn);
    assert_eq!(rows[0].2, rows[1].2, "both rows have one writer");
    bench.check();
}

fn locks_stay(factory: Factory<'_>) {
    let bench = three(factory);
    let (mut first, mut second) = (bench.begin(), bench.begin());
    let savepoint = first.savepoint();
    bench.update(&mut *first, 10, row(10, None, "q")).expect("update");
    first.rollback_to(savepoint).expect("rollback_to");
    expect_timeout(bench.delete(&mut *second, 10));
    first.rollback().expect("rollback");
    bench.delete(&mut *second, 10).expect("free now");
}

fn cancelled_wait(factory: Factory<'_>) {
    let bench = three(factory);
    let mut first = bench.begin();
    lock(&bench, &mut *first, 10, RowLock::Exclusive);
    let patient = patient();
    let cancel = patient.cancel.clone();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut second = bench.begin_with(&patient);
            bench.get_locked(&mut *second, 10, RowLock::Exclusive, WaitPolicy::Wait)
        });
        thread::yield_now();
        cancel.kill_query();
        let outcome = waiter.join().expect("no panic");
        assert!(matches!(outcome, Err(EngineError::Cancelled)), "{outcome:?}");
    });
    let unbounded = KeyRange { lower: KeyBound::Unbounded, upper: KeyBound::Unbounded };
    assert_eq!(unbounded, KeyRange::ALL);
}

fn contention(factory: Factory<'_>) {
    const THREADS: i64 = 4;
    const ROUNDS: i64 = 50;
    let bench = Bench::with_rows(factory, &[(1, Some(0), "x"), (2, None, "y")]);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut txn = bench.begin_with(&patient());
                    let row = bench.get_locked(&mut *txn, 1, RowLock::Exclusive, WaitPolicy::Wait);
                    let (_, b, c) = row.expect("lock").expect("row");
                    let next = b.map(|b| b + 1);
                    bench.update(&mut *txn, 1, (1, next, c)).expect("update");
                    commit(txn);
                }
            });
        }
    });
    let mut txn = bench.begin();
    assert_eq!(bench.get(&mut *txn, 1).and_then(|row| row.1), Some(THREADS * ROUNDS));
    bench.check();
}

/// Money moves between accounts in both directions; victims of deadlocks try again; every snapshot has the same sum.
fn transfers(factory: Factory<'_>) {
    const THREADS: i64 = 3;
    const ROUNDS: i64 = 60;
    const ACCOUNTS: i64 = 4;
    const EACH: i64 = 1000;
    let rows: Vec<_> = (0..ACCOUNTS).map(|a| (a, Some(a * EACH * EACH + EACH), "x")).collect();
    let bench = Bench::with_rows(factory, &rows);
    let total: i64 = rows.iter().filter_map(|row| row.1).sum();
    let sum = || {
        let mut txn = bench.begin();
        let sum: i64 = bench.all(&mut *txn).iter().filter_map(|row| row.1).sum();
        txn.rollback().expect("rollback");
        sum
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let bench = &bench;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let from = (thread + round) % ACCOUNTS;
                    let to = (from + 1 + round % (ACCOUNTS - 1)) % ACCOUNTS;
                    while !transfer(bench, from, to) {}
                }
            });
        }
        for _ in 0..ROUNDS {
            assert_eq!(sum(), total, "a snapshot sees whole transactions");
        }
    });
    assert_eq!(sum(), total);
    bench.check();
}

/// Moves 1; false when it has to be tried again.
fn transfer(bench: &Bench, from: i64, to: i64) -> bool {
    let mut txn = bench.begin_with(&patient());
    for (account, amount) in [(from, -1), (to, 1)] {
        let read = bench.get_locked(&mut *txn, account, RowLock::Exclusive, WaitPolicy::Wait);
        let (_, balance, name) = match read {
            Ok(row) => row.expect("the account is there"),
            Err(EngineError::Deadlock) => return false,
            Err(other) => panic!("unexpected {other:?}"),
        };
        let balance = balance.map(|balance| balance + amount);
        match bench.update(&mut *txn, account, (account, balance, name)) {
            Ok(()) => {}
            Err(EngineError::Deadlock) => return false,
            Err(other) => panic!("unexpected {other:?}"),
        }
    }
    commit(txn);
    true
}
