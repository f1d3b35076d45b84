//! Failed I/O of every class of call, damaged pages, shared syncs, undo beyond memory, and the progress that recovery reports.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    Engine, EngineError, EngineResult, IndexId, RowBuf, RowLock, TableId, Transaction, WaitPolicy,
};
use sys::disk::{Disk, OpenMode};
use sys::fault::{Call, FaultDisk, Verdict};
use sys::sim::SimDisk;
use wal::LogConfig;

use support::numbers::{self, record, rows};
use support::{begin_waiting, each_record, key, whole};

const TABLE: TableId = TableId(2000);
const OTHER: TableId = TableId(2001);
const LOCK_WAIT: Duration = Duration::from_secs(10);

fn config() -> EngineConfig {
    EngineConfig {
        pool_bytes: 256 << 10,
        log: LogConfig { segment_bytes: 256 << 10, lanes: 4, ..support::config().log },
        undo_memory_bytes: EngineConfig::default().undo_memory_bytes,
        ..support::config()
    }
}

fn begin(engine: &DurableEngine) -> Box<dyn Transaction> {
    begin_waiting(engine, LOCK_WAIT)
}

fn restart(txn: &mut dyn Transaction) {
    support::start(txn, LOCK_WAIT);
}

fn create(engine: &DurableEngine) {
    let mut txn = begin(engine);
    txn.create_table(&numbers::table::<2>(TABLE, "test.good", &[(0, true)])).unwrap();
    txn.create_table(&numbers::table::<2>(OTHER, "test.other", &[(0, true)])).unwrap();
    txn.commit().unwrap().wait().unwrap();
}

fn insert(engine: &DurableEngine, table: TableId, ids: std::ops::Range<i64>) -> EngineResult<()> {
    let mut txn = begin(engine);
    for id in ids {
        txn.insert(table, &record([id, id * 3]))?;
    }
    txn.commit()?.wait()
}

fn count(engine: &DurableEngine, table: TableId) -> EngineResult<i64> {
    let mut count = 0;
    each_record(&mut *begin(engine), &whole(table, IndexId::CLUSTERED), 100, |_| count += 1)?;
    Ok(count)
}

/// Fails every call of one kind on files with a prefix while armed.
#[derive(Clone, Default)]
struct Fault {
    armed: Arc<AtomicBool>,
    hits: Arc<AtomicU64>,
}

impl Fault {
    fn on(&self, disk: &SimDisk, call: Call, prefix: &'static str, kind: ErrorKind) -> FaultDisk {
        let this = self.clone();
        let rule = move |made, name: &str| {
            if made == call && name.starts_with(prefix) && this.armed.load(Ordering::SeqCst) {
                this.hits.fetch_add(1, Ordering::SeqCst);
                return Verdict::Fail(kind);
            }
            Verdict::Pass
        };
        FaultDisk::new(Arc::new(disk.clone()), Arc::new(rule))
    }
}

fn open(disk: impl Disk + 'static) -> EngineResult<DurableEngine> {
    DurableEngine::open(Arc::new(disk), config(), |_| {})
}

/// EIO, and the device that is full.
const KINDS: [ErrorKind; 2] = [ErrorKind::Other, ErrorKind::StorageFull];

#[test]
fn after_a_failed_log_write_or_sync_nothing_is_acknowledged_and_nothing_acknowledged_is_lost() {
    for (call, kind) in
        [Call::Write, Call::Sync].into_iter().flat_map(|call| KINDS.map(|kind| (call, kind)))
    {
        let (disk, fault) = (SimDisk::new(), Fault::default());
        let engine = open(fault.on(&disk, call, "wal-", kind)).unwrap();
        create(&engine);
        insert(&engine, TABLE, 0..10).unwrap();
        fault.armed.store(true, Ordering::SeqCst);
        assert!(insert(&engine, TABLE, 10..20).is_err(), "{call:?} {kind:?}");
        // The device recovers; the log does not: its content is unknown.
        fault.armed.store(false, Ordering::SeqCst);
        assert!(insert(&engine, TABLE, 20..30).is_err(), "{call:?} {kind:?}");
        assert!(engine.checkpoint().is_err(), "no checkpoint names a broken log");
        disk.crash_now();
        let again = open(disk.after_crash(1)).unwrap();
        let rows = count(&again, TABLE).unwrap();
        assert!(rows == 10 || rows == 20, "{rows}");
    }
}

#[test]
fn failed_page_writes_and_syncs_keep_pages_dirty_and_commits_going() {
    let classes = [
        (Call::Write, "space"),
        (Call::Sync, "space"),
        (Call::Write, "doublewrite"),
        (Call::Sync, "doublewrite"),
    ];
    for ((call, name), kind) in
        classes.into_iter().flat_map(|class| KINDS.map(|kind| (class, kind)))
    {
        let (disk, fault) = (SimDisk::new(), Fault::default());
        let engine = open(fault.on(&disk, call, name, kind)).unwrap();
        create(&engine);
        fault.armed.store(true, Ordering::SeqCst);
        insert(&engine, TABLE, 0..50).unwrap();
        assert!(engine.tick().is_err(), "{call:?} {name} {kind:?}");
        assert!(fault.hits.load(Ordering::SeqCst) > 0);
        insert(&engine, TABLE, 50..60).unwrap();
        // A checkpoint may be taken, but redo still starts before the pages that are not there.
        engine.checkpoint().unwrap();
        // Whatever the failed writes left in place, whole, torn or lost.
        for seed in 0..8 {
            let crashed = disk.after_crash(seed);
            assert_eq!(count(&open(crashed).unwrap(), TABLE).unwrap(), 60, "{call:?} {name}");
        }
        fault.armed.store(false, Ordering::SeqCst);
        engine.tick().unwrap();
        engine.shutdown().unwrap();
        assert_eq!(count(&open(disk.after_crash(4)).unwrap(), TABLE).unwrap(), 60);
    }
}

#[test]
fn a_checkpoint_that_fails_leaves_the_one_before() {
    let classes = [
        (Call::Write, "checkpoint"),
        (Call::Sync, "checkpoint"),
        (Call::Open, "straddle-"),
        (Call::Write, "straddle-"),
        (Call::Sync, "straddle-"),
        (Call::SyncDir, ""),
    ];
    for ((call, name), kind) in
        classes.into_iter().flat_map(|class| KINDS.map(|kind| (class, kind)))
    {
        let (disk, fault) = (SimDisk::new(), Fault::default());
        let engine = open(fault.on(&disk, call, name, kind)).unwrap();
        create(&engine);
        insert(&engine, TABLE, 0..50).unwrap();
        fault.armed.store(true, Ordering::SeqCst);
        assert!(engine.checkpoint().is_err(), "{call:?} {name} {kind:?}");
        insert(&engine, TABLE, 50..60).unwrap();
        let crashed = disk.after_crash(5);
        assert_eq!(count(&open(crashed).unwrap(), TABLE).unwrap(), 60, "{call:?} {name}");
        fault.armed.store(false, Ordering::SeqCst);
        engine.checkpoint().unwrap();
        assert_eq!(count(&open(disk.after_crash(6)).unwrap(), TABLE).unwrap(), 60);
    }
}

#[test]
fn a_failed_read_is_an_error_of_its_statement_and_works_again_later() {
    let (disk, fault) = (SimDisk::new(), Fault::default());
    {
        let engine = open(disk.clone()).unwrap();
        create(&engine);
        insert(&engine, TABLE, 0..500).unwrap();
        engine.shutdown().unwrap();
    }
    let engine = open(fault.on(&disk, Call::Read, "space", ErrorKind::Other)).unwrap();
    // Opens the table: its definition is read when it is first needed.
    engine.auto_increment_next(TABLE).unwrap();
    fault.armed.store(true, Ordering::SeqCst);
    let Err(EngineError::Other(error)) = count(&engine, TABLE) else {
        panic!("read from a dead disk")
    };
    assert!(error.message().contains("test.good"), "{}", error.message());
    fault.armed.store(false, Ordering::SeqCst);
    assert_eq!(count(&engine, TABLE).unwrap(), 500);
}

#[test]
fn files_that_cannot_be_opened_fail_the_start_with_an_error() {
    let disk = SimDisk::new();
    {
        let engine = open(disk.clone()).unwrap();
        create(&engine);
        insert(&engine, TABLE, 0..50).unwrap();
    }
    for (call, name) in [
        (Call::Open, "space"),
        (Call::Open, "doublewrite"),
        (Call::Open, "checkpoint"),
        (Call::Open, "straddle-"),
        (Call::Read, "wal-"),
        (Call::Read, "doublewrite"),
        (Call::Sync, "space"),
    ] {
        let fault = Fault::default();
        fault.armed.store(true, Ordering::SeqCst);
        let crashed = disk.after_crash(7);
        assert!(open(fault.on(&crashed, call, name, ErrorKind::Other)).is_err(), "{call:?} {name}");
        assert_eq!(count(&open(crashed.after_crash(8)).unwrap(), TABLE).unwrap(), 50);
    }
}

#[test]
fn a_flipped_bit_is_an_error_that_names_table_and_page_and_others_go_on() {
    let disk = SimDisk::new();
    {
        let engine = open(disk.clone()).unwrap();
        create(&engine);
        insert(&engine, TABLE, 0..400).unwrap();
        insert(&engine, OTHER, 0..400).unwrap();
        engine.shutdown().unwrap();
    }
    let pages = disk.open("space", OpenMode::Existing).unwrap().size_bytes().unwrap() / 1024;
    let (mut good, mut other) = (0, 0);
    for no in 0..pages {
        let copy = disk.after_crash(9);
        // Otherwise the last pages written would be restored from there.
        copy.open("doublewrite", OpenMode::Existing).unwrap().set_size(0).unwrap();
        copy.flip_bit("space", no as usize * 1024 + 700, (no % 8) as u8);
        // A page of the dictionary: nothing can be opened without it, which is an error too.
        let Ok(engine) = open(copy) else { continue };
        if [TABLE, OTHER].iter().any(|table| engine.auto_increment_next(*table).is_err()) {
            continue;
        }
        let counts = [(TABLE, "test.good"), (OTHER, "test.other")].map(|(table, name)| {
            count(&engine, table).map_err(|error| {
                let EngineError::Other(error) = error else { panic!("{error:?}") };
                let message = error.message();
                assert!(message.contains(name), "{message}");
                assert!(message.contains(&format!("page {no} ")), "{message}");
            })
        });
        match counts {
            [Err(()), Ok(400)] => good += 1,
            [Ok(400), Err(())] => other += 1,
            [Ok(400), Ok(400)] => {}
            counts => panic!("page {no}: {counts:?}"),
        }
    }
    assert!(good > 5 && other > 5, "{good} {other} of {pages}");
}

fn stat(engine: &DurableEngine, group: &str, name: &str) -> u64 {
    let all = engine.stats();
    let found = all.iter().find(|stat| stat.group == group && stat.name == name);
    found.unwrap_or_else(|| panic!("{group}.{name}")).value.parse().unwrap()
}

#[test]
fn eight_committers_share_syncs() {
    const COMMITS: i64 = 40;
    // A device that takes its time, as real ones do.
    let slow = |call, name: &str| {
        if call == Call::Sync && name.starts_with("wal-") {
            std::thread::sleep(Duration::from_millis(5));
        }
        Verdict::Pass
    };
    let disk = FaultDisk::new(Arc::new(SimDisk::new()), Arc::new(slow));
    let engine = open(disk).unwrap();
    create(&engine);
    let before = stat(&engine, "log", "syncs_total");
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for session in 0..8 {
            let (engine, failures) = (&engine, &failures);
            scope.spawn(move || {
                for at in 0..COMMITS {
                    let id = session * COMMITS + at;
                    if let Err(error) = insert(engine, TABLE, id..id + 1) {
                        failures.lock().unwrap().push(error);
                    }
                }
            });
        }
    });
    assert!(failures.lock().unwrap().is_empty());
    let syncs = stat(&engine, "log", "syncs_total") - before;
    let commits = 8 * COMMITS as u64;
    println!("{syncs} syncs for {commits} commits");
    assert!(syncs * 2 < commits, "{syncs} syncs for {commits} commits");
    assert!(stat(&engine, "log", "flush_count") >= syncs);
    assert!(stat(&engine, "log", "flush_p50_microseconds") >= 2000);
    assert_eq!(count(&engine, TABLE).unwrap() as u64, commits);
}

#[test]
fn a_commit_delay_gathers_commits_and_each_group_is_synced_once() {
    const SESSIONS: i64 = 8;
    const COMMITS: i64 = 4;
    let engine = open(SimDisk::new()).unwrap();
    create(&engine);
    engine.set_option("commit_delay_us", 5000);
    let now = || ["groups_total", "syncs_total"].map(|name| stat(&engine, "log", name));
    let before = now();
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let engine = &engine;
            scope.spawn(move || {
                for id in session * COMMITS..(session + 1) * COMMITS {
                    insert(engine, TABLE, id..id + 1).unwrap();
                }
            });
        }
    });
    let [groups, syncs] = [0, 1].map(|at| now()[at] - before[at]);
    println!("{groups} groups and {syncs} syncs for {} commits", SESSIONS * COMMITS);
    assert_eq!(groups, syncs);
    // Without the delay a device that takes no time is asked nearly once for each.
    assert!(syncs * 2 <= (SESSIONS * COMMITS) as u64, "{syncs} syncs");
    assert_eq!(count(&engine, TABLE).unwrap(), SESSIONS * COMMITS);
}

#[test]
fn a_transaction_that_wrote_nothing_does_not_touch_the_log() {
    let writes = Arc::new(AtomicU64::new(0));
    let counter = writes.clone();
    let rule = move |call, _: &str| {
        if matches!(call, Call::Write | Call::Sync) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        Verdict::Pass
    };
    let disk = FaultDisk::new(Arc::new(SimDisk::new()), Arc::new(rule));
    let engine = open(disk).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..100).unwrap();
    let ticket = stat(&engine, "log", "next_ticket");
    let before = writes.load(Ordering::SeqCst);
    let mut txn = begin(&engine);
    let mut out = RowBuf::default();
    for id in 0..200 {
        restart(&mut *txn);
        let lock = if id % 2 == 0 { RowLock::None } else { RowLock::Exclusive };
        txn.get(TABLE, IndexId::CLUSTERED, &key(id), lock, WaitPolicy::Wait, &mut out).unwrap();
        // A change that does not happen.
        assert!(id >= 100 || txn.insert(TABLE, &record([id, 0])).is_err());
        match id % 3 {
            0 => txn.rollback().unwrap(),
            _ => txn.commit().unwrap().wait().unwrap(),
        }
    }
    assert_eq!(writes.load(Ordering::SeqCst), before);
    assert_eq!(stat(&engine, "log", "next_ticket"), ticket);
}

fn sum(txn: &mut dyn Transaction, table: TableId) -> EngineResult<i64> {
    let rows = rows::<2>(txn, &whole(table, IndexId::CLUSTERED), 100)?;
    Ok(rows.into_iter().map(|[_, value]| value).sum())
}

#[test]
fn an_old_snapshot_keeps_small_transactions_in_files() {
    const CHANGES: i64 = 400;
    const MEMORY: usize = 64;
    let disk = SimDisk::new();
    let small = || EngineConfig { undo_memory_bytes: MEMORY, ..config() };
    let engine = DurableEngine::open(Arc::new(disk.clone()), small(), |_| {}).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..10).unwrap();
    let old = 45 * 3;
    let mut reader = begin(&engine);
    assert_eq!(sum(&mut *reader, TABLE).unwrap(), old);
    for round in 0..CHANGES {
        let mut writer = begin(&engine);
        let id = round % 10;
        writer.update(TABLE, &key(id), &record([id, round])).unwrap();
        writer.commit().unwrap().wait().unwrap();
        engine.tick().unwrap();
        if round % 100 == 50 {
            engine.checkpoint().unwrap();
        }
    }
    assert!(stat(&engine, "transactions", "undo_file_bytes") > CHANGES as u64 * 20);
    assert!(stat(&engine, "transactions", "undo_bytes") < 64 * MEMORY as u64);
    assert_eq!(sum(&mut *reader, TABLE).unwrap(), old);
    let new = (CHANGES - 10..CHANGES).sum::<i64>();
    assert_eq!(sum(&mut *begin(&engine), TABLE).unwrap(), new);
    for seed in 0..4 {
        let again = disk.after_crash(seed);
        let engine = DurableEngine::open(Arc::new(again.clone()), small(), |_| {}).unwrap();
        assert_eq!(sum(&mut *begin(&engine), TABLE).unwrap(), new);
        assert!(engine.check_table(TABLE).unwrap().is_empty());
        engine.checkpoint().unwrap();
        assert!(!again.list().unwrap().iter().any(|name| name.starts_with("undo-")));
    }
    drop(reader);
    engine.tick().unwrap();
    assert_eq!(stat(&engine, "purge", "transactions_waiting_for_purge"), 0);
    assert_eq!(stat(&engine, "transactions", "undo_file_bytes"), 0);
}

#[test]
fn undo_beyond_memory_rolls_back_commits_recovers_and_shows_old_rows() {
    const ROWS: i64 = 3000;
    const MEMORY: usize = 4096;
    let disk = SimDisk::new();
    let small = || EngineConfig { undo_memory_bytes: MEMORY, pool_bytes: 1 << 20, ..config() };
    let engine = DurableEngine::open(Arc::new(disk.clone()), small(), |_| {}).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..ROWS).unwrap();
    let old = ROWS * (ROWS - 1) / 2 * 3;
    let mut reader = begin(&engine);
    assert_eq!(sum(&mut *reader, TABLE).unwrap(), old);
    let update = |txn: &mut dyn Transaction| {
        for id in 0..ROWS {
            txn.update(TABLE, &key(id), &record([id, id * 3 + 1])).unwrap();
        }
    };
    let mut writer = begin(&engine);
    update(&mut *writer);
    assert!(stat(&engine, "transactions", "undo_file_bytes") > 10 * MEMORY as u64);
    assert!(stat(&engine, "transactions", "undo_bytes") < 4 * MEMORY as u64);
    assert_eq!(sum(&mut *reader, TABLE).unwrap(), old, "an old snapshot, from the file");
    writer.rollback().unwrap();
    assert_eq!(sum(&mut *begin(&engine), TABLE).unwrap(), old);
    restart(&mut *writer);
    update(&mut *writer);
    engine.checkpoint().unwrap();
    // A crash with the transaction half way, its undo partly named by the checkpoint and partly in the log.
    writer.update(TABLE, &key(7), &record([7, 1_000_000])).unwrap();
    insert(&engine, OTHER, 0..1).unwrap();
    for seed in 0..4 {
        let again = disk.after_crash(seed);
        for _ in 0..2 {
            let engine = DurableEngine::open(Arc::new(again.clone()), small(), |_| {}).unwrap();
            assert_eq!(sum(&mut *begin(&engine), TABLE).unwrap(), old);
            assert_eq!(count(&engine, OTHER).unwrap(), 1);
            assert!(engine.check_table(TABLE).unwrap().is_empty());
        }
    }
    writer.commit().unwrap().wait().unwrap();
    let new = old + ROWS + 1_000_000 - 7 * 3 - 1;
    assert_eq!(sum(&mut *reader, TABLE).unwrap(), old);
    drop(reader);
    assert_eq!(sum(&mut *begin(&engine), TABLE).unwrap(), new);
    engine.tick().unwrap();
    engine.checkpoint().unwrap();
    let undo_files = disk.list().unwrap().iter().filter(|name| name.starts_with("undo-")).count();
    assert_eq!(undo_files, 0, "a settled transaction keeps no file");
}

/// Each stretch of a file is read about once for entries and once for rows (E21), not once for every entry in it.
#[test]
fn rolling_back_and_looking_at_losers_reads_spilled_undo_in_large_pieces() {
    const ROWS: i64 = 3000;
    /// Bytes that the undo log reads at a time, less the share for the entry it begins with.
    const PIECE_BYTES: u64 = 48 << 10;
    let (disk, reads) = (SimDisk::new(), Arc::new(AtomicU64::new(0)));
    let counting = |disk: &SimDisk| {
        let reads = reads.clone();
        let rule = move |made, name: &str| {
            let is_undo = made == Call::Read && name.starts_with("undo-");
            reads.fetch_add(u64::from(is_undo), Ordering::SeqCst);
            Verdict::Pass
        };
        FaultDisk::new(Arc::new(disk.clone()), Arc::new(rule))
    };
    let small = || EngineConfig { undo_memory_bytes: 4096, pool_bytes: 1 << 20, ..config() };
    let engine = DurableEngine::open(Arc::new(counting(&disk)), small(), |_| {}).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..ROWS).unwrap();
    let mut writer = begin(&engine);
    let update = |txn: &mut dyn Transaction| {
        for id in 0..ROWS {
            txn.update(TABLE, &key(id), &record([id, id * 3 + 1])).unwrap();
        }
    };
    update(&mut *writer);
    let bytes = stat(&engine, "transactions", "undo_file_bytes");
    assert!(bytes > 2 * PIECE_BYTES, "{bytes}");
    let pieces = bytes / PIECE_BYTES + 2;
    reads.store(0, Ordering::SeqCst);
    writer.rollback().unwrap();
    assert!(reads.load(Ordering::SeqCst) <= 2 * pieces, "{reads:?} for {bytes} bytes");
    restart(&mut *writer);
    update(&mut *writer);
    engine.checkpoint().unwrap();
    let crashed = disk.after_crash(1);
    reads.store(0, Ordering::SeqCst);
    let again = DurableEngine::open(Arc::new(counting(&crashed)), small(), |_| {}).unwrap();
    // Once for the loser; twice for the rows' insertion, which purge looks through.
    assert!(reads.load(Ordering::SeqCst) <= 3 * pieces, "to know its tables: {reads:?}");
    again.tick().unwrap();
    assert!(reads.load(Ordering::SeqCst) <= 6 * pieces, "and to undo it: {reads:?}");
    let old = ROWS * (ROWS - 1) / 2 * 3;
    assert_eq!(sum(&mut *begin(&again), TABLE).unwrap(), old);
}

#[test]
fn recovery_tells_how_far_it_is() {
    let disk = SimDisk::new();
    let engine = open(disk.clone()).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..3000).unwrap();
    let mut loser = begin(&engine);
    loser.insert(TABLE, &record([5000, 0])).unwrap();
    insert(&engine, OTHER, 0..10).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    let listen = move |report: &txn::Recovery| listener.lock().unwrap().push(*report);
    let crashed = disk.after_crash(1);
    let engine = DurableEngine::open(Arc::new(crashed), config(), listen).unwrap();
    assert!(stat(&engine, "recovery", "percent") < 100, "the rollback is left");
    assert_eq!(count(&engine, TABLE).unwrap(), 3000, "what is not committed is hidden");
    engine.tick().unwrap();
    let told: Vec<(&str, u8)> =
        told.lock().unwrap().iter().map(|report| (report.phase.as_str(), report.percent)).collect();
    let phases: Vec<&str> = told.iter().map(|(phase, _)| *phase).collect();
    for wanted in ["redo", "analysis", "rollback", "done"] {
        assert!(phases.contains(&wanted), "{told:?}");
    }
    assert!(told.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{told:?}");
    assert_eq!((told[0].1, told[told.len() - 1].1), (0, 100));
    assert_eq!(stat(&engine, "recovery", "percent"), 100);
    assert_eq!(stat(&engine, "recovery", "transactions_rolled_back"), 1);
    assert!(stat(&engine, "recovery", "pages_done") > 0);
}

#[test]
fn a_warm_point_read_writes_nothing_shared_but_its_own_snapshot_slot() {
    let engine = open(SimDisk::new()).unwrap();
    create(&engine);
    insert(&engine, TABLE, 0..2000).unwrap();
    // Settles the writer: its rows are older than every snapshot from here on.
    engine.tick().unwrap();
    let mut txn = begin(&engine);
    let mut out = RowBuf::default();
    let mut get = |txn: &mut dyn Transaction, id| {
        txn.get(TABLE, IndexId::CLUSTERED, &key(id), RowLock::None, WaitPolicy::Wait, &mut out)
    };
    for id in 0..2000 {
        get(&mut *txn, id).unwrap();
    }
    // Within a transaction that has its snapshot: none at all.
    let before = sys::counted::shared_writes();
    for id in 0..2000 {
        get(&mut *txn, id).unwrap();
    }
    assert_eq!(sys::counted::shared_writes() - before, 0);
    txn.commit().unwrap();
    // A transaction for each: the slot counts its snapshots, is set and released. It is on its own cache lines.
    let before = sys::counted::shared_writes();
    for id in 0..2000 {
        restart(&mut *txn);
        get(&mut *txn, id).unwrap();
        txn.commit().unwrap();
    }
    assert_eq!(sys::counted::shared_writes() - before, 3 * 2000);
}
