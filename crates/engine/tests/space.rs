//! A disk that becomes full at any moment: what was acknowledged stays, commits, rollbacks and checkpoints go on, and so does everything
//! once there is space (E24).
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::{DurableEngine, EngineConfig};
use engine_api::{Engine, EngineError, EngineResult, IndexId, TableId, Transaction};
use errors::ErrorCode;
use sys::entropy::SplitMix;
use sys::fault::{Call, FaultDisk, Verdict};
use sys::sim::SimDisk;
use wal::LogConfig;

use support::numbers::{self, record, rows};
use support::{begin, key, whole};

const TABLE: TableId = TableId(2000);
const SEEDS: u64 = 20;

fn config() -> EngineConfig {
    EngineConfig {
        pool_bytes: 128 << 10,
        reserve_bytes: 64 << 10,
        log: LogConfig { reserve_segments: 2, ..support::config().log },
        undo_memory_bytes: 4 << 10,
        ..support::config()
    }
}

fn open(disk: &SimDisk) -> DurableEngine {
    DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap()
}

fn is_full(error: &EngineError) -> bool {
    let full = [ErrorCode::RECORD_FILE_FULL, ErrorCode::DISK_FULL];
    matches!(error, EngineError::Other(error) if full.contains(&error.code()))
}

type Rows = BTreeMap<i64, i64>;

/// One statement in a transaction of its own. A failure of a change rolls back, which must not fail; nor must a commit.
fn change(
    engine: &DurableEngine,
    rows: &mut Rows,
    what: impl FnOnce(&mut dyn Transaction, &mut Rows) -> EngineResult<()>,
) -> bool {
    let (mut txn, mut changed) = (begin(engine), rows.clone());
    match what(&mut *txn, &mut changed) {
        Ok(()) => {
            txn.commit().unwrap().wait().unwrap();
            *rows = changed;
            true
        }
        Err(error) => {
            assert!(is_full(&error), "{error:?}");
            txn.rollback().unwrap();
            false
        }
    }
}

fn step(engine: &DurableEngine, random: &mut SplitMix, known: &mut Rows, next: &mut i64) -> bool {
    let count = 1 + random.below(80) as i64;
    let first = *next;
    *next += count;
    let from = known.keys().nth(random.below(known.len() as u64 + 1) as usize).copied();
    let some: Vec<i64> =
        known.range(from.unwrap_or(0)..).map(|(id, _)| *id).take(count as usize).collect();
    match random.below(10) {
        0..5 => change(engine, known, |txn, rows| {
            (first..first + count).try_for_each(|id| {
                rows.insert(id, id * 3);
                txn.insert(TABLE, &record([id, id * 3]))
            })
        }),
        5..7 => change(engine, known, |txn, rows| {
            some.iter().try_for_each(|id| {
                rows.insert(*id, first);
                txn.update(TABLE, &key(*id), &record([*id, first]))
            })
        }),
        7 => change(engine, known, |txn, rows| {
            some.iter().try_for_each(|id| {
                rows.remove(id);
                txn.delete(TABLE, &key(*id))
            })
        }),
        8 => {
            let mut txn = begin(engine);
            let done = some.iter().try_for_each(|id| txn.delete(TABLE, &key(*id)));
            assert!(done.as_ref().err().is_none_or(is_full), "{done:?}");
            txn.rollback().unwrap();
            done.is_ok()
        }
        _ => {
            engine.tick().unwrap();
            engine.checkpoint().unwrap();
            true
        }
    }
}

fn check(engine: &DurableEngine, known: &Rows, seed: u64) {
    let rows = rows::<2>(&mut *begin(engine), &whole(TABLE, IndexId::CLUSTERED), 100);
    let found: Rows = rows.unwrap().into_iter().map(|[id, number]| (id, number)).collect();
    assert_eq!(&found, known, "{seed}");
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new(), "{seed}");
    assert!(engine.locks(100).locks.is_empty(), "{seed}");
}

#[test]
fn a_disk_that_becomes_full_loses_nothing_and_holds_nothing_up() {
    let (mut refused, mut opened_full) = (0, 0);
    for seed in 0..SEEDS {
        let mut random = SplitMix::new(seed);
        let mut disk = SimDisk::new();
        let mut engine = open(&disk);
        let (mut known, mut next) = (Rows::new(), 1);
        let mut txn = begin(&engine);
        txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, false)])).unwrap();
        txn.commit().unwrap().wait().unwrap();
        for _ in 0..random.below(12) {
            assert!(step(&engine, &mut random, &mut known, &mut next), "{seed}");
        }
        engine.tick().unwrap();
        for _ in 0..2 {
            let room = random.below(3) * random.below(200 << 10);
            disk.limit(Some(disk.used_bytes() + room));
            for _ in 0..20 {
                refused += u64::from(!step(&engine, &mut random, &mut known, &mut next));
                // As the background threads do.
                engine.tick().unwrap();
                if random.below(4) == 0 {
                    engine.checkpoint().unwrap();
                }
            }
            check(&engine, &known, seed);
            if random.below(2) == 0 {
                // The next process finds no more space than this one had.
                let limit = disk.used_bytes();
                disk.crash_now();
                drop(engine);
                disk = disk.after_crash(seed);
                // Files whose removal was not durable are back, and nobody else got their blocks.
                disk.limit(Some(limit.max(disk.used_bytes())));
                engine = open(&disk);
                opened_full += 1;
                engine.tick().unwrap();
                check(&engine, &known, seed);
            }
            disk.limit(None);
            engine.tick().unwrap();
            engine.checkpoint().unwrap();
            engine.tick().unwrap();
            for _ in 0..3 {
                assert!(step(&engine, &mut random, &mut known, &mut next), "{seed}");
            }
        }
        check(&engine, &known, seed);
    }
    assert!(refused > SEEDS && opened_full > SEEDS / 2, "{refused} {opened_full}");
}

/// A quota is met where a file grows: the statement fails and names the table, nothing of it stays, and the next one works without the quota.
#[test]
fn a_quota_is_a_full_table() {
    let armed = Arc::new(AtomicBool::new(false));
    let asked = armed.clone();
    let rule = move |call, name: &str| match call == Call::Reserve && name == "space" {
        true if asked.load(Ordering::SeqCst) => Verdict::Fail(ErrorKind::QuotaExceeded),
        _ => Verdict::Pass,
    };
    let disk = FaultDisk::new(Arc::new(SimDisk::new()), Arc::new(rule));
    let engine = DurableEngine::open(Arc::new(disk), config(), |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, false)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    armed.store(true, Ordering::SeqCst);
    let (mut known, mut first, mut failure) = (Rows::new(), 0, None);
    while failure.is_none() {
        let mut txn = begin(&engine);
        failure = (first..first + 500).find_map(|id| txn.insert(TABLE, &record([id, id])).err());
        match failure {
            None => {
                txn.commit().unwrap().wait().unwrap();
                known.extend((first..first + 500).map(|id| (id, id)));
                first += 500;
            }
            Some(_) => txn.rollback().unwrap(),
        }
        assert!(first < 100_000, "the quota is not noticed");
    }
    let Some(EngineError::Other(error)) = failure else { panic!("{failure:?}") };
    assert_eq!(error.code(), ErrorCode::RECORD_FILE_FULL);
    assert!(error.message().starts_with("The table 'test.t' is full: "), "{}", error.message());
    check(&engine, &known, 0);
    armed.store(false, Ordering::SeqCst);
    let mut txn = begin(&engine);
    (first..first + 500).for_each(|id| txn.insert(TABLE, &record([id, id])).unwrap());
    txn.commit().unwrap().wait().unwrap();
}
