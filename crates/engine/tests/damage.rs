//! A flipped bit in every kind of file, pages that cannot be written for a while or for good, and commits that are seen before they are
//! durable.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::io::ErrorKind;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    EngineError, EngineResult, IndexId, RowBuf, RowLock, TableId, Transaction, WaitPolicy,
};
use sys::disk::{Disk, OpenMode};
use sys::fault::{Call, FaultDisk, Verdict};
use sys::sim::SimDisk;
use wal::{FailurePolicy, LogConfig};

use support::numbers::{self, record, rows};
use support::{begin_waiting, key, whole};

const TABLE: TableId = TableId(2000);
const ROWS: i64 = 300;
const LOCK_WAIT: Duration = Duration::from_secs(10);

fn config() -> EngineConfig {
    EngineConfig {
        pool_bytes: 256 << 10,
        log: LogConfig { segment_bytes: 256 << 10, lanes: 4, ..support::config().log },
        ..support::config()
    }
}

fn begin(engine: &DurableEngine) -> Box<dyn Transaction> {
    begin_waiting(engine, LOCK_WAIT)
}

fn restart(txn: &mut dyn Transaction) {
    support::start(txn, LOCK_WAIT);
}

fn insert(engine: &DurableEngine, ids: std::ops::Range<i64>) -> EngineResult<()> {
    let mut txn = begin(engine);
    for id in ids {
        txn.insert(TABLE, &record([id, id]))?;
    }
    txn.commit()?.wait()
}

fn values(txn: &mut dyn Transaction) -> EngineResult<Vec<i64>> {
    let rows = rows::<2>(txn, &whole(TABLE, IndexId::CLUSTERED), 100)?;
    Ok(rows.into_iter().map(|[_, value]| value).collect())
}

fn open(disk: impl Disk + 'static) -> EngineResult<DurableEngine> {
    DurableEngine::open(Arc::new(disk), config(), |_| {})
}

/// A disk as a crash leaves it: rows 0 to 300 committed, all changed by a transaction whose undo is in its file and which did not end.
fn crashed() -> SimDisk {
    let disk = SimDisk::new();
    let engine = open(disk.clone()).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    insert(&engine, 0..ROWS).unwrap();
    engine.tick().unwrap();
    let mut loser = begin(&engine);
    for id in 0..ROWS {
        loser.update(TABLE, &key(id), &record([id, -1])).unwrap();
    }
    engine.checkpoint().unwrap();
    engine.tick().unwrap();
    disk.crash_now();
    drop(loser);
    drop(engine);
    disk.after_crash(3)
}

/// Starts and reads everything: the result must be all rows as committed, or an error. Anything else is a wrong answer.
fn is_right_or_refused(disk: SimDisk, what: &str) -> bool {
    let Ok(engine) = open(disk) else { return false };
    // Losers are undone here.
    let undone = engine.tick();
    match values(&mut *begin(&engine)) {
        Ok(values) => {
            let right = values.iter().copied().eq(0..ROWS);
            assert!(right, "{what}: a wrong answer, after {undone:?}: {values:?}");
            true
        }
        Err(_) => false,
    }
}

#[test]
fn a_flipped_bit_in_any_file_is_never_a_wrong_answer() {
    let disk = crashed();
    assert!(is_right_or_refused(disk.after_crash(0), "no bit"));
    let names = disk.list().unwrap();
    for kind in ["space", "doublewrite", "checkpoint", "undo-", "straddle-", "wal-"] {
        let files: Vec<_> = names.iter().filter(|name| name.starts_with(kind)).collect();
        assert!(!files.is_empty(), "{kind} of {names:?}");
        let (mut right, mut refused) = (0, 0);
        for name in files {
            let size = disk.open(name, OpenMode::Existing).unwrap().size_bytes().unwrap() as usize;
            // Sixty places, all over the file.
            for at in (0..size).step_by((size / 60).max(1)) {
                let copy = disk.after_crash(0);
                copy.flip_bit(name, at, (at % 8) as u8);
                // The log ends at its first batch that is not whole, which a crash may leave too: here only after the loser.
                match is_right_or_refused(copy, &format!("{name} at {at}")) {
                    true => right += 1,
                    false => refused += 1,
                }
            }
        }
        println!("{kind}: {right} starts with all rows, {refused} errors");
    }
}

#[test]
fn a_flipped_bit_in_the_log_is_never_a_lost_commit() {
    let disk = SimDisk::new();
    let engine = open(disk.clone()).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    for id in 0..40 {
        insert(&engine, id..id + 1).unwrap();
    }
    let rows: Vec<i64> = (0..40).collect();
    drop(engine);
    let look = |disk: SimDisk, config: EngineConfig| {
        let engine = DurableEngine::open(Arc::new(disk), config, |_| {})?;
        let found = match values(&mut *begin(&engine)) {
            // The damage is before the table.
            Err(EngineError::UnknownTable) => Vec::new(),
            found => found.unwrap(),
        };
        Ok((found, engine.log_damage()))
    };
    let names = disk.list().unwrap();
    let name = names.iter().find(|name| name.starts_with("wal-")).unwrap();
    let (mut refused, mut given_up) = (0, 0);
    // Each block of the log has a batch: the last one alone is not known to have been there.
    for at in (8..28 << 10).step_by(512) {
        let copy = disk.after_crash(0);
        copy.flip_bit(name, at, 2);
        match look(copy.after_crash(0), config()) {
            Ok((found, damage)) => {
                assert_eq!(damage, None);
                assert!(found == rows || found == rows[..39], "at {at}: {found:?}");
                continue;
            }
            Err(EngineError::Other(error)) => {
                let message = error.message();
                assert!(message.contains(name) && message.contains("offset"), "{message}");
                assert!(message.contains("--open-up-to-log-damage"), "{message}");
                refused += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
        // Refused again, nothing was changed; opened on request, and from then on without it.
        let open_anyway = EngineConfig { open_up_to_log_damage: true, ..config() };
        assert!(look(copy.clone(), config()).is_err());
        let Ok((found, damage)) = look(copy.clone(), open_anyway) else { continue };
        assert!(damage.is_some() && found == rows[..found.len()], "at {at}: {found:?}");
        given_up += 1;
        assert_eq!(look(copy, config()).unwrap(), (found, None), "at {at}");
    }
    assert!(refused > 30 && given_up > 30, "{refused} {given_up}");
}

#[test]
fn undo_in_a_damaged_file_is_an_error() {
    let disk = SimDisk::new();
    let engine = open(disk.clone()).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    insert(&engine, 0..ROWS).unwrap();
    let mut reader = begin(&engine);
    assert_eq!(values(&mut *reader).unwrap().len(), ROWS as usize);
    let mut writer = begin(&engine);
    for id in 0..ROWS {
        writer.update(TABLE, &key(id), &record([id, -1])).unwrap();
    }
    let names = disk.list().unwrap();
    // The writer's is the youngest.
    let number = |name: &str| name.strip_prefix("undo-").and_then(|id| id.parse::<u64>().ok());
    let file = names.iter().max_by_key(|name| number(name)).expect("spilled");
    let size = disk.open(file, OpenMode::Existing).unwrap().size_bytes().unwrap() as usize;
    disk.flip_bit(file, size / 2, 3);
    assert!(matches!(values(&mut *reader), Err(EngineError::Other(_))), "older versions");
    assert!(writer.rollback().is_err(), "before-images");
}

/// Inserts a row now and then until `done`: pages that no longer change are soon not written any more.
fn insert_until(engine: &DurableEngine, ids: &mut i64, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never happens");
        insert(engine, *ids..*ids + 1).unwrap();
        *ids += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn pages_that_cannot_be_written_are_written_when_the_device_takes_them_again() {
    for kind in [ErrorKind::Other, ErrorKind::StorageFull] {
        let (disk, armed) = (SimDisk::new(), Arc::new(AtomicBool::new(false)));
        let (failed, written) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (is_armed, failures, writes) = (armed.clone(), failed.clone(), written.clone());
        let rule = move |call, name: &str| {
            let is_page = call == Call::Write && (name == "space" || name == "doublewrite");
            match (is_page, is_armed.load(Ordering::SeqCst)) {
                (true, true) => {
                    failures.fetch_add(1, Ordering::SeqCst);
                    return Verdict::Fail(kind);
                }
                (true, false) => drop(writes.fetch_add(1, Ordering::SeqCst)),
                (false, _) => {}
            }
            Verdict::Pass
        };
        let faulty: Arc<dyn Disk> =
            Arc::new(FaultDisk::new(Arc::new(disk.clone()), Arc::new(rule)));
        let settings = EngineConfig {
            background: true,
            checkpoint_interval: Duration::from_millis(50),
            log: LogConfig { failure: FailurePolicy::Abort, ..config().log },
            ..config()
        };
        let engine = DurableEngine::open(faulty, settings, |_| {}).unwrap();
        let mut txn = begin(&engine);
        txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
        txn.commit().unwrap().wait().unwrap();
        armed.store(true, Ordering::SeqCst);
        insert(&engine, 0..ROWS).unwrap();
        let mut ids = ROWS;
        // Retried repeatedly, while commits continue.
        insert_until(&engine, &mut ids, || failed.load(Ordering::SeqCst) > 3);
        armed.store(false, Ordering::SeqCst);
        let before = written.load(Ordering::SeqCst);
        insert_until(&engine, &mut ids, || written.load(Ordering::SeqCst) > before + 3);
        drop(engine);
        let again = open(disk.after_crash(5)).unwrap();
        assert_eq!(values(&mut *begin(&again)).unwrap().len() as i64, ids);
    }
}

const CHILD: &str = "SQUALL_TEST_CHILD";

/// The body of a process that is to end itself: a sync of `file` fails.
fn fail_a_sync_of(file: &str) {
    let (file, armed) = (file.to_owned(), Arc::new(AtomicBool::new(false)));
    let is_armed = armed.clone();
    let rule = move |call, name: &str| {
        let fails =
            call == Call::Sync && name.starts_with(&file) && is_armed.load(Ordering::SeqCst);
        if fails { Verdict::Fail(ErrorKind::Other) } else { Verdict::Pass }
    };
    let faulty: Arc<dyn Disk> = Arc::new(FaultDisk::new(Arc::new(SimDisk::new()), Arc::new(rule)));
    let settings = EngineConfig {
        background: true,
        checkpoint_interval: Duration::from_millis(50),
        log: LogConfig { failure: FailurePolicy::Abort, ..config().log },
        ..config()
    };
    let engine = DurableEngine::open(faulty, settings, |_| {}).unwrap();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    armed.store(true, Ordering::SeqCst);
    for id in 0..ROWS * 10 {
        let _ = insert(&engine, id..id + 1);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_failed_sync_ends_the_process() {
    const NAME: &str = "a_failed_sync_ends_the_process";
    if let Ok(file) = std::env::var(CHILD) {
        return fail_a_sync_of(&file);
    }
    for file in ["wal-", "space", "doublewrite"] {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(["--exact", NAME, "--nocapture"]).env(CHILD, file).stdout(Stdio::null());
        let output = command.stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(output.status.signal(), Some(6), "{file}: {:?} {said}", output.status);
        assert!(said.contains("aborting"), "{file}: {said}");
    }
}

/// An engine whose log's syncs wait while the flag is set.
fn open_with_slow_syncs() -> (DurableEngine, Arc<AtomicBool>) {
    let held = Arc::new(AtomicBool::new(false));
    let is_held = held.clone();
    let rule = move |call, name: &str| {
        while call == Call::Sync && name.starts_with("wal-") && is_held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Verdict::Pass
    };
    let engine = open(FaultDisk::new(Arc::new(SimDisk::new()), Arc::new(rule))).unwrap();
    (engine, held)
}

#[test]
fn whoever_saw_a_commit_under_a_lock_waits_until_it_is_durable() {
    let (engine, held) = open_with_slow_syncs();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    insert(&engine, 0..1).unwrap();
    held.store(true, Ordering::SeqCst);
    let mut writer = begin(&engine);
    writer.update(TABLE, &key(0), &record([0, 7])).unwrap();
    let written = writer.commit().unwrap();
    let mut reader = begin(&engine);
    let mut look = |ends: fn(&mut dyn Transaction) -> bool| {
        let mut out = RowBuf::default();
        let lock = RowLock::Shared;
        reader.get(TABLE, IndexId::CLUSTERED, &key(0), lock, WaitPolicy::Wait, &mut out).unwrap();
        assert_eq!(out.record, record([0, 7]), "locks are given back before the sync");
        let may_be_told = ends(&mut *reader);
        restart(&mut *reader);
        may_be_told
    };
    assert!(!written.is_durable());
    assert!(!look(|txn| txn.commit().unwrap().is_durable()), "told before it is durable");
    look(|txn| txn.rollback().is_ok());
    // The same session's next snapshot is not older than the state it has seen: it waits for the sync.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            held.store(false, Ordering::SeqCst);
        });
        assert_eq!(values(&mut *reader).unwrap(), [7]);
    });
    written.wait().unwrap();
}

/// A key that a commit gave free is one that its taker has seen: no snapshot of the taker's has the row that it was taken from.
#[test]
fn whoever_takes_a_unique_key_sees_who_gave_it_free() {
    let (engine, held) = open_with_slow_syncs();
    let mut txn = begin(&engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.t", &[(0, true), (1, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
    insert(&engine, 0..1).unwrap();
    held.store(true, Ordering::SeqCst);
    let mut giver = begin(&engine);
    giver.delete(TABLE, &key(0)).unwrap();
    let given = giver.commit().unwrap();
    let mut taker = begin(&engine);
    taker.insert(TABLE, &record([1, 0])).unwrap();
    assert!(!given.is_durable());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            held.store(false, Ordering::SeqCst);
        });
        let seen = rows::<2>(&mut *taker, &whole(TABLE, IndexId::CLUSTERED), 100).unwrap();
        assert_eq!(seen, [[1, 0]]);
    });
    given.wait().unwrap();
}
