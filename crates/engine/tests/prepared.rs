//! Prepared transactions: the locks on their changes, before and after a restart, and the result of a decision (E23).

mod support;

use std::sync::Arc;

use engine::DurableEngine;
use engine_api::{
    CommitHandle, Engine, EngineError, EngineResult, IndexId, PreparedTransaction, TableId,
    Transaction,
};
use support::texts::{self, Rows, record};
use support::{begin, begin_branch, config, key};
use sys::sim::SimDisk;

const TABLE: TableId = TableId(2000);
const NAME: &[u8] = b"a name\0\xff";

fn open(disk: &SimDisk) -> DurableEngine {
    DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap()
}

fn read(engine: &DurableEngine) -> Rows {
    texts::rows(&mut *begin(engine), TABLE, IndexId::CLUSTERED).unwrap()
}

fn row(number: i64) -> (Option<i64>, Vec<u8>) {
    (Some(number), b"text".to_vec())
}

/// Rows 0 to 99, each with its key as the unique number too.
fn filled(disk: &SimDisk) -> DurableEngine {
    let engine = open(disk);
    let mut txn = begin(&engine);
    txn.create_table(&texts::table(TABLE, "test.t", true)).unwrap();
    for id in 0..100 {
        txn.insert(TABLE, &record(id, Some(id), b"text")).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    engine
}

/// Changes rows in all ways, and prepares. Returns the rows before and after the commit.
fn prepare(engine: &DurableEngine) -> (Rows, Rows) {
    let before = read(engine);
    let mut after = before.clone();
    let mut txn = begin_branch(engine);
    txn.update(TABLE, &key(1), &record(1, Some(1001), b"text")).unwrap();
    after.insert(1, row(1001));
    txn.delete(TABLE, &key(2)).unwrap();
    after.remove(&2);
    // Its key moves, its number stays.
    txn.update(TABLE, &key(3), &record(300, Some(3), b"text")).unwrap();
    after.remove(&3);
    after.insert(300, row(3));
    txn.insert(TABLE, &record(400, Some(400), &[b'l'; 5000])).unwrap();
    after.insert(400, (Some(400), vec![b'l'; 5000]));
    for id in 10..80 {
        txn.update(TABLE, &key(id), &record(id, Some(id), b"another text")).unwrap();
        after.insert(id, (Some(id), b"another text".to_vec()));
    }
    let savepoint = txn.savepoint();
    txn.delete(TABLE, &key(90)).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.prepare(NAME).unwrap().wait().unwrap();
    assert!(!txn.is_started(), "the object is free");
    (before, after)
}

fn change(
    engine: &DurableEngine,
    change: impl FnOnce(&mut dyn Transaction) -> EngineResult<()>,
) -> EngineResult<()> {
    let mut txn = begin(engine);
    change(&mut *txn)?;
    txn.rollback()
}

fn is_locked(outcome: EngineResult<()>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(EngineError::LockWaitTimeout) => true,
        Err(other) => panic!("{other:?}"),
    }
}

/// Its changes are locked; everything else is free.
fn check_locked(engine: &DurableEngine, before: &Rows) {
    assert!(read(engine) == *before, "other rows");
    let expected = PreparedTransaction { name: NAME.to_vec(), tables: vec![TABLE] };
    assert_eq!(engine.prepared(), [expected]);
    let insert =
        |id, number| change(engine, move |txn| txn.insert(TABLE, &record(id, Some(number), b"")));
    let update = |id| {
        change(engine, move |txn| txn.update(TABLE, &key(id), &record(id, Some(9000 + id), b"")))
    };
    // Rows that it wrote; keys that it took away from rows; keys that it gave.
    for id in [1, 2, 3, 10, 79, 300, 400] {
        assert!(is_locked(update(id)), "row {id}");
    }
    for (id, number) in [(2, 9000), (3, 9000), (300, 9000), (500, 1), (500, 2), (500, 3)] {
        assert!(is_locked(insert(id, number)), "{id}, {number}");
    }
    for (id, number) in [(500, 1001), (500, 400)] {
        assert!(is_locked(insert(id, number)), "{id}, {number}");
    }
    for id in [0, 4, 99] {
        assert!(!is_locked(update(id)), "row {id}");
    }
    assert!(!is_locked(insert(500, 500)));
}

fn check_free(engine: &DurableEngine, rows: &Rows) {
    assert!(read(engine) == *rows, "other rows");
    assert_eq!(engine.prepared(), []);
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    let number = |id| rows.get(&id).and_then(|(number, _)| *number);
    let changed = change(engine, |txn| {
        for id in rows.keys() {
            txn.update(TABLE, &key(*id), &record(*id, number(*id), b"mine"))?;
        }
        txn.insert(TABLE, &record(5000, Some(5000), b""))
    });
    changed.unwrap();
    while engine.unpurged(TABLE).unwrap() > 0 {
        engine.tick().unwrap();
    }
    engine.shutdown().unwrap();
    assert_eq!(engine.lost_pages().unwrap(), 0);
}

#[test]
fn its_changes_are_locked_and_hidden_until_somebody_decides() {
    for commits in [true, false] {
        // No restart, a crash, a stop, crashes one after the other.
        for restarts in [&[][..], &[true], &[false], &[true, true, false, true]] {
            let disk = SimDisk::new();
            let mut engine = filled(&disk);
            let (before, after) = prepare(&engine);
            let mut disk = disk;
            check_locked(&engine, &before);
            for (crash, number) in restarts.iter().zip(1..) {
                if *crash {
                    disk = disk.after_crash(number);
                } else {
                    engine.shutdown().unwrap();
                }
                engine = open(&disk);
                engine.tick().unwrap();
                check_locked(&engine, &before);
            }
            match commits {
                true => engine
                    .commit_prepared(NAME, &[])
                    .unwrap()
                    .expect("it is prepared")
                    .wait()
                    .unwrap(),
                false => engine.rollback_prepared(NAME).unwrap(),
            }
            check_free(&engine, if commits { &after } else { &before });
            // Whoever was told of the decision has forgotten the name.
            for seed in 0..8 {
                assert_eq!(open(&disk.after_crash(seed)).prepared(), [], "seed {seed}");
            }
        }
    }
}

#[test]
fn a_transaction_without_changes_just_ends() {
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let mut txn = begin_branch(&engine);
    assert!(matches!(txn.prepare(b"one").unwrap(), CommitHandle::Durable));
    let mut txn = begin_branch(&engine);
    let savepoint = txn.savepoint();
    txn.delete(TABLE, &key(1)).unwrap();
    txn.rollback_to(savepoint).unwrap();
    txn.prepare(b"two").unwrap().wait().unwrap();
    assert_eq!(engine.prepared(), []);
    assert!(engine.commit_prepared(b"one", &[]).unwrap().is_none());
    engine.rollback_prepared(b"two").unwrap();
    let all = read(&engine);
    check_free(&engine, &all);
}

#[test]
fn many_are_prepared_at_once() {
    const MANY: i64 = 40;
    let disk = SimDisk::new();
    let engine = filled(&disk);
    let mut expected = read(&engine);
    let name = |id: i64| id.to_le_bytes();
    for id in 0..MANY {
        let mut txn = begin_branch(&engine);
        txn.update(TABLE, &key(id), &record(id, Some(id + 1000), b"text")).unwrap();
        let prepared = txn.prepare(&name(id)).unwrap();
        if id == MANY - 1 {
            prepared.wait().unwrap();
        }
        if id % 10 == 5 {
            engine.checkpoint().unwrap();
        }
    }
    drop(engine);
    let disk = disk.after_crash(1);
    let engine = open(&disk);
    let mut names: Vec<_> = engine.prepared().into_iter().map(|one| one.name).collect();
    names.sort_unstable();
    assert_eq!(names, (0..MANY).map(|id| name(id).to_vec()).collect::<Vec<_>>());
    for id in 0..MANY {
        if id % 2 == 0 {
            expected.insert(id, row(id + 1000));
            engine
                .commit_prepared(&name(id), &[])
                .unwrap()
                .expect("it is prepared")
                .wait()
                .unwrap();
        } else {
            engine.rollback_prepared(&name(id)).unwrap();
        }
    }
    check_free(&engine, &expected);
}
