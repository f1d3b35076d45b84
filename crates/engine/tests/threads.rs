//! Threads with background purge, page writing and checkpoints: snapshots stay whole, sums are kept, and a crash at the end loses
//! nothing that was acknowledged.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    Direction, Engine, EngineError, EngineResult, IndexId, KeyRange, RowBuf, RowLock, ScanSpec,
    TableDef, TableId, Transaction, WaitPolicy,
};
use sys::entropy::SplitMix;
use sys::fault::{Call, FaultDisk, Verdict};
use sys::sim::SimDisk;
use txn::RecoveryPhase;
use wal::{Durability, FailurePolicy, LogConfig};

use support::numbers::{self, fields, record};
use support::{key, whole};

const TABLE: TableId = TableId(2000);
const ACCOUNTS: i64 = 60;
const START: i64 = 100;
const LOCK_WAIT: Duration = Duration::from_secs(20);

fn config() -> EngineConfig {
    EngineConfig {
        redo: txn::RedoCrew::default(),
        page_bytes: 1024,
        pool_bytes: 128 << 10,
        pages_max: 1 << 16,
        log: LogConfig {
            segment_bytes: 256 << 10,
            block_bytes: 512,
            lanes: 4,
            flights: 2,
            durability: Durability::Synced,
            failure: FailurePolicy::Report,
            reserve_segments: 0,
        },
        undo_memory_bytes: 300,
        background: true,
        checkpoint_interval: Duration::from_millis(30),
        ..EngineConfig::default()
    }
}

fn definition() -> TableDef {
    numbers::table::<3>(TABLE, "test.t1", &[(0, true), (1, false), (2, true)])
}

fn start(txn: &mut dyn Transaction) {
    support::start(txn, LOCK_WAIT);
}

fn scan(
    txn: &mut dyn Transaction,
    index: IndexId,
    direction: Direction,
) -> EngineResult<Vec<[i64; 3]>> {
    numbers::rows(txn, &ScanSpec { direction, ..whole(TABLE, index) }, 7)
}

/// Moves an amount between two accounts; sometimes an account gets a new id or a new tag instead.
fn transfer(
    txn: &mut dyn Transaction,
    random: &mut SplitMix,
    tags: &AtomicU64,
) -> EngineResult<()> {
    let (from, to) = (random.below(ACCOUNTS as u64) as i64, random.below(ACCOUNTS as u64) as i64);
    if from == to {
        return Ok(());
    }
    let mut rows: Vec<[i64; 3]> = Vec::new();
    for id in [from, to] {
        let mut out = RowBuf::default();
        txn.get(
            TABLE,
            IndexId::CLUSTERED,
            &key(id),
            RowLock::Exclusive,
            WaitPolicy::Wait,
            &mut out,
        )?;
        rows.push(fields(&out.record));
    }
    let amount = random.below(10) as i64;
    let tag = tags.fetch_add(1, Ordering::Relaxed) as i64;
    if random.below(4) == 0 {
        txn.delete(TABLE, &key(from))?;
        txn.insert(TABLE, &record([from, rows[0][1] - amount, tag]))?;
    } else {
        txn.update(TABLE, &key(from), &record([from, rows[0][1] - amount, rows[0][2]]))?;
    }
    txn.update(TABLE, &key(to), &record([to, rows[1][1] + amount, rows[1][2]]))
}

fn read(engine: &DurableEngine, random: &mut SplitMix) {
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    let index = IndexId(random.below(3) as u32);
    let direction = match random.below(2) {
        0 => Direction::Forward,
        _ => Direction::Backward,
    };
    let mut rows = scan(&mut *txn, index, direction).unwrap();
    rows.sort_unstable();
    let sum: i64 = rows.iter().map(|row| row[1]).sum();
    assert_eq!(
        (rows.len() as i64, sum),
        (ACCOUNTS, ACCOUNTS * START),
        "by {index:?} {direction:?}"
    );
    let mut again = scan(&mut *txn, IndexId::CLUSTERED, Direction::Forward).unwrap();
    again.sort_unstable();
    assert_eq!(rows, again, "one snapshot");
}

#[test]
fn transfers_keep_the_sum() {
    let disk = SimDisk::new();
    let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    txn.create_table(&definition()).unwrap();
    for id in 0..ACCOUNTS {
        txn.insert(TABLE, &record([id, START, id])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    let tags = AtomicU64::new(1000);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3)
            .map(|seed| {
                let (engine, tags) = (&engine, &tags);
                scope.spawn(move || {
                    let mut random = SplitMix::new(seed);
                    let mut txn = engine.new_transaction();
                    for _ in 0..150 {
                        start(&mut *txn);
                        match transfer(&mut *txn, &mut random, tags) {
                            Ok(()) if random.below(6) == 0 => txn.rollback().unwrap(),
                            Ok(()) => txn.commit().unwrap().wait().unwrap(),
                            Err(EngineError::Deadlock) => assert!(!txn.is_started()),
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut random = SplitMix::new(9);
            while !over.load(Ordering::Relaxed) {
                read(&engine, &mut random);
            }
        });
        let outcomes: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        over.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    disk.crash_now();
    drop(engine);
    let engine = DurableEngine::open(Arc::new(disk.after_crash(1)), config(), |_| {}).unwrap();
    read(&engine, &mut SplitMix::new(1));
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    engine.shutdown().unwrap();
    assert_eq!(engine.lost_pages().unwrap(), 0);
}

#[test]
fn many_inserters_one_table() {
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config(), |_| {}).unwrap();
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    txn.create_table(&definition()).unwrap();
    txn.commit().unwrap().wait().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let engine = &engine;
            scope.spawn(move || {
                let mut txn = engine.new_transaction();
                for round in 0..40 {
                    start(&mut *txn);
                    for at in 0..10 {
                        let id = (round * 10 + at) * 3 + thread;
                        txn.insert(TABLE, &record([id, id % 7, -id])).unwrap();
                    }
                    txn.commit().unwrap().wait().unwrap();
                }
            });
        }
    });
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    assert_eq!(scan(&mut *txn, IndexId::CLUSTERED, Direction::Forward).unwrap().len(), 1200);
    assert_eq!(scan(&mut *txn, IndexId(2), Direction::Backward).unwrap().len(), 1200);
    drop(txn);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

/// Each writer also counts its rounds in its own row; after the crash the count is at least the acknowledged one.
fn crash_while_working(seed: u64) {
    const WRITERS: i64 = 3;
    let disk = SimDisk::new();
    let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    txn.create_table(&definition()).unwrap();
    for id in 0..ACCOUNTS {
        txn.insert(TABLE, &record([id, START, id])).unwrap();
    }
    for writer in 0..WRITERS {
        txn.insert(TABLE, &record([1000 + writer, 0, 500 + writer])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    drop(txn);
    let tags = AtomicU64::new(1000);
    disk.crash_after(SplitMix::new(seed).below(1500));
    let acknowledged: Vec<i64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (engine, tags) = (&engine, &tags);
                scope.spawn(move || {
                    let mut random = SplitMix::new(seed * 10 + writer as u64);
                    let mut txn = engine.new_transaction();
                    let (mut done, mut round) = (0, 0);
                    while round < 200 {
                        start(&mut *txn);
                        round += 1;
                        let own = record([1000 + writer, round, 500 + writer]);
                        let outcome = transfer(&mut *txn, &mut random, tags)
                            .and_then(|()| txn.update(TABLE, &key(1000 + writer), &own))
                            .and_then(|()| txn.commit())
                            .and_then(|handle| handle.wait());
                        match outcome {
                            Ok(()) => done = round,
                            Err(EngineError::Deadlock) => {}
                            Err(_) => break,
                        }
                    }
                    done
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    disk.crash_now();
    drop(engine);
    let engine = DurableEngine::open(Arc::new(disk.after_crash(seed)), config(), |_| {}).unwrap();
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new(), "seed {seed}");
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    let rows = scan(&mut *txn, IndexId::CLUSTERED, Direction::Forward).unwrap();
    let (accounts, counters) = rows.split_at(ACCOUNTS as usize);
    assert_eq!(accounts.iter().map(|row| row[1]).sum::<i64>(), ACCOUNTS * START, "seed {seed}");
    for (counter, acknowledged) in counters.iter().zip(&acknowledged) {
        assert!(counter[1] >= *acknowledged, "seed {seed}: {counter:?} {acknowledged}");
    }
}

#[test]
fn crashes_under_concurrent_writers() {
    let crashes = std::env::var("SQUALL_CRASHES").ok().and_then(|text| text.parse().ok());
    for seed in 1..=crashes.unwrap_or(12) {
        crash_while_working(seed);
    }
}

/// A disk with 2,000 rows and a loser that changed the even ones of them, whose undo is in its file.
fn with_a_loser() -> SimDisk {
    let disk = SimDisk::new();
    let settings = EngineConfig { background: false, ..config() };
    let engine = DurableEngine::open(Arc::new(disk.clone()), settings, |_| {}).unwrap();
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    txn.create_table(&definition()).unwrap();
    for id in 0..2000 {
        txn.insert(TABLE, &record([id, START, id])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    let mut loser = engine.new_transaction();
    start(&mut *loser);
    for id in (0..2000).step_by(2) {
        loser.update(TABLE, &key(id), &record([id, -1, id + 10_000])).unwrap();
    }
    engine.checkpoint().unwrap();
    disk.crash_now();
    disk.after_crash(1)
}

#[test]
fn losers_are_undone_while_the_engine_is_in_use() {
    let held = Arc::new(AtomicBool::new(true));
    let is_held = held.clone();
    let opened = Arc::new(AtomicBool::new(false));
    let is_opened = opened.clone();
    // The thread that undoes them cannot read pages until the test lets go, and the pool has no room for all of the table.
    let rule = move |call, name: &str| {
        let is_rollback = std::thread::current().name() == Some("rollback");
        // However much it is, the undo of a loser is not read before.
        let is_early = !is_rollback && !is_opened.load(Ordering::SeqCst);
        if call == Call::Read && name.starts_with("undo-") && is_early {
            return Verdict::Fail(std::io::ErrorKind::Other);
        }
        match call == Call::Read && name == "space" && is_rollback && is_held.load(Ordering::SeqCst)
        {
            true => Verdict::Fail(std::io::ErrorKind::Other),
            false => Verdict::Pass,
        }
    };
    let disk = FaultDisk::new(Arc::new(with_a_loser()), Arc::new(rule));
    let told = Arc::new(Mutex::new(Vec::new()));
    let tell = told.clone();
    let engine = DurableEngine::open(Arc::new(disk), config(), move |now| {
        tell.lock().unwrap().push((now.phase, now.percent));
    })
    .unwrap();
    opened.store(true, Ordering::SeqCst);
    let now = engine.recovery();
    assert!(now.phase == RecoveryPhase::Rollback && (85..100).contains(&now.percent), "{now:?}");
    assert_eq!((now.losers, now.losers_done), (1, 0));
    assert!(now.undo_total > 20_000, "{now:?}");
    // Its changes are hidden and locked, its table keeps its definition, and everything else continues.
    let mut txn = engine.new_transaction();
    let begin = |txn: &mut dyn Transaction| {
        start(txn);
        txn.set_lock_wait_timeout(Duration::from_millis(20));
    };
    begin(&mut *txn);
    let rows = scan(&mut *txn, IndexId(2), Direction::Forward).unwrap();
    assert!(rows.iter().copied().eq((0..2000).map(|id| [id, START, id])));
    let waits = |outcome: EngineResult<()>| {
        assert!(matches!(outcome, Err(EngineError::LockWaitTimeout)), "{outcome:?}");
    };
    waits(txn.update(TABLE, &key(10), &record([10, 7, 10])));
    waits(txn.drop_table(TABLE));
    txn.update(TABLE, &key(11), &record([11, 7, 11])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    held.store(false, Ordering::SeqCst);
    // Now they wait for its end.
    start(&mut *txn);
    txn.update(TABLE, &key(10), &record([10, 8, 10])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    start(&mut *txn);
    let rows = scan(&mut *txn, IndexId::CLUSTERED, Direction::Forward).unwrap();
    let value = |id| {
        [
            id,
            if id == 10 {
                8
            } else if id == 11 {
                7
            } else {
                START
            },
            id,
        ]
    };
    assert!(rows.iter().copied().eq((0..2000).map(value)));
    let now = engine.recovery();
    assert_eq!((now.phase, now.percent, now.losers_done), (RecoveryPhase::Done, 100, 1));
    assert_eq!(now.undo_done, now.undo_total);
    let told = told.lock().unwrap();
    assert!(told.is_sorted(), "{told:?}");
    drop(txn);
    engine.shutdown().unwrap();
    assert_eq!(engine.lost_pages().unwrap(), 0);
}

fn locked_ids(txn: &mut dyn Transaction, index: IndexId, low: i64) -> EngineResult<Vec<i64>> {
    use engine_api::KeyBound;
    let range =
        KeyRange { lower: KeyBound::Included(key(low)), upper: KeyBound::Excluded(key(low + 30)) };
    let direction = if low % 2 == 0 { Direction::Forward } else { Direction::Backward };
    let lock = RowLock::Shared;
    let spec = ScanSpec { table: TABLE, index, range, direction, lock, wait: WaitPolicy::Wait };
    let rows = numbers::rows::<3>(txn, &spec, 4)?;
    Ok(rows.into_iter().map(|[id, ..]| id).collect())
}

/// One transaction that reads a range twice under locks and then changes something in it.
fn read_twice(txn: &mut dyn Transaction, random: &mut SplitMix) -> EngineResult<()> {
    let index = IndexId(random.below(2) as u32);
    let low = random.below(170) as i64;
    let first = locked_ids(txn, index, low)?;
    std::thread::yield_now();
    let second = locked_ids(txn, index, low)?;
    assert_eq!(first, second, "a phantom in {index:?} from {low}");
    let id = low + random.below(30) as i64;
    let outcome = match first.contains(&id) {
        true => txn.delete(TABLE, &key(id)),
        // The indexed column equals the id, so both indexes cover the same range.
        false => txn.insert(TABLE, &record([id, id, id])),
    };
    match outcome {
        Err(EngineError::DuplicateKey { .. } | EngineError::RowNotFound) => {
            assert!(index != IndexId::CLUSTERED, "the range was locked");
            Ok(())
        }
        other => other,
    }
}

#[test]
fn locked_ranges_have_no_phantoms() {
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config(), |_| {}).unwrap();
    let mut txn = engine.new_transaction();
    start(&mut *txn);
    txn.create_table(&definition()).unwrap();
    for id in (0..200).step_by(2) {
        txn.insert(TABLE, &record([id, id, id])).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    drop(txn);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let engine = &engine;
            scope.spawn(move || {
                let mut random = SplitMix::new(seed);
                let mut txn = engine.new_transaction();
                for _ in 0..120 {
                    start(&mut *txn);
                    match read_twice(&mut *txn, &mut random) {
                        Ok(()) => txn.commit().unwrap().wait().unwrap(),
                        Err(EngineError::Deadlock) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                }
            });
        }
    });
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
}

/// An engine with one row of zeros.
fn with_a_row() -> DurableEngine {
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config(), |_| {}).unwrap();
    let mut txn = support::begin_waiting(&engine, LOCK_WAIT);
    txn.create_table(&definition()).unwrap();
    txn.insert(TABLE, &record([0, 0, 0])).unwrap();
    txn.commit().unwrap();
    engine
}

fn waits(engine: &DurableEngine) -> u64 {
    let stats = engine.stats();
    let waits = stats.iter().find(|stat| stat.name == "waits_total");
    waits.expect("it counts waits").value.parse().unwrap()
}

/// A transaction that waits for the row with its unique key reads again after the wait: the key may be free.
#[test]
fn a_row_in_the_way_that_goes_is_not_in_the_way() {
    let changes: [fn(&mut dyn Transaction) -> EngineResult<()>; 2] = [
        |holder| holder.delete(TABLE, &key(0)),
        |holder| holder.update(TABLE, &key(0), &record([0, 0, 1])),
    ];
    for change in changes {
        let engine = with_a_row();
        let mut holder = support::begin_waiting(&engine, LOCK_WAIT);
        let mut out = RowBuf::default();
        let (lock, wait) = (RowLock::Exclusive, WaitPolicy::Wait);
        holder.get(TABLE, IndexId::CLUSTERED, &key(0), lock, wait, &mut out).unwrap();
        let before = waits(&engine);
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                let mut taker = support::begin_waiting(&engine, LOCK_WAIT);
                taker.insert(TABLE, &record([1, 1, 0]))?;
                taker.commit().map(drop)
            });
            while waits(&engine) == before {
                std::thread::yield_now();
            }
            change(&mut *holder).unwrap();
            holder.commit().unwrap();
            assert!(taker.join().unwrap().is_ok());
        });
    }
}

/// Two transactions that change the conflicting row each lock it exclusively at once: neither waits for the other's shared lock.
#[test]
fn the_row_in_the_way_is_locked_as_asked_for() {
    let engine = with_a_row();
    let mut txn = engine.new_transaction();
    for row in [[0, 5, 5], [5, 5, 0]] {
        for shared in [true, false] {
            start(&mut *txn);
            let refused = match shared {
                true => txn.insert(TABLE, &record(row)),
                false => txn.insert_or_lock(TABLE, &record(row)),
            };
            assert!(matches!(refused, Err(EngineError::DuplicateKey { .. })), "{refused:?}");
            let mut other = support::begin_waiting(&engine, LOCK_WAIT);
            let (lock, wait) = (RowLock::Shared, WaitPolicy::NoWait);
            let mut out = RowBuf::default();
            let got = other.get(TABLE, IndexId::CLUSTERED, &key(0), lock, wait, &mut out);
            assert_eq!(got.is_ok(), shared, "{row:?}");
            txn.rollback().unwrap();
        }
    }
}

/// A transaction that waits for the row with a unique key has locked no range yet; a range lock would block the holder from inserting another row in its place.
#[test]
fn a_unique_key_goes_from_row_to_row_while_others_wait_for_it() {
    let engine = with_a_row();
    let mut holder = support::begin_waiting(&engine, LOCK_WAIT);
    holder.delete(TABLE, &key(0)).unwrap();
    let before = waits(&engine);
    std::thread::scope(|scope| {
        let next = scope.spawn(|| {
            let mut next = support::begin_waiting(&engine, LOCK_WAIT);
            let mut out = RowBuf::default();
            let (lock, wait) = (RowLock::Exclusive, WaitPolicy::Wait);
            next.get(TABLE, IndexId(2), &key(0), lock, wait, &mut out)?;
            next.delete(TABLE, &out.locator)?;
            next.insert(TABLE, &record([2, 2, 0]))?;
            next.commit()?;
            Ok::<_, EngineError>(fields::<3>(&out.record))
        });
        while waits(&engine) == before {
            std::thread::yield_now();
        }
        holder.insert(TABLE, &record([1, 1, 0])).unwrap();
        holder.commit().unwrap();
        assert_eq!(next.join().unwrap().unwrap(), [1, 1, 0]);
    });
    start(&mut *holder);
    assert_eq!(scan(&mut *holder, IndexId::CLUSTERED, Direction::Forward).unwrap(), [[2, 2, 0]]);
}
