//! The crash loop: a random workload against a model, a crash at any disk operation, recovery, comparison; again during recovery.
//!
//! Broken builds are tried too: one that skips a sync, skips the doublewrite file or replays out of order must be caught by the same
//! loop, otherwise the loop proves nothing.
//!
//! `SQUALL_CRASHES` sets the number of crashes (default 300), `SQUALL_SEED` the first seed. A failure prints its seed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    CommitHandle, Engine, EngineError, EngineResult, IndexDef, IndexId, KeyPart, TableId,
    Transaction,
};
use sys::disk::Disk;
use sys::entropy::SplitMix;
use sys::fault::{Call, FaultDisk, Verdict};
use sys::sim::SimDisk;
use sys::threads::Crew;
use txn::RedoCrew;

use support::builds::{Build, is_caught, number, skipping};
use support::texts::{Rows, record, rows, table};
use support::{begin, begin_branch, key};

const TABLE: TableId = TableId(2000);
const OTHER: TableId = TableId(2001);

/// A pool for which segments are small.
const READS_AHEAD: usize = 2 << 20;

fn config() -> EngineConfig {
    EngineConfig { redo: RedoCrew { workers: 3, crew: Crew::InTurn }, ..support::config() }
}

fn read_all(engine: &DurableEngine, index: IndexId) -> EngineResult<Rows> {
    rows(&mut *begin(engine), TABLE, index)
}

/// One change; errors of the contract that change nothing are fine.
fn change(txn: &mut dyn Transaction, model: &mut Rows, random: &mut SplitMix) -> EngineResult<()> {
    let a = random.below(40) as i64;
    let b = (random.below(3) > 0).then(|| random.below(60) as i64);
    let length = match random.below(12) {
        0 => random.below(6000),
        _ => random.below(60),
    };
    let c = vec![b'a' + random.below(5) as u8; length as usize];
    let outcome = match random.below(4) {
        0 => txn.delete(TABLE, &key(a)).map(|()| drop(model.remove(&a))),
        1 => txn.insert(TABLE, &record(a, b, &c)).map(|()| drop(model.insert(a, (b, c)))),
        2 => txn.update(TABLE, &key(a), &record(a, b, &c)).map(|()| drop(model.insert(a, (b, c)))),
        _ => {
            let target = random.below(40) as i64;
            txn.update(TABLE, &key(a), &record(target, b, &c)).map(|()| {
                model.remove(&a);
                model.insert(target, (b, c));
            })
        }
    };
    match outcome {
        Err(
            engine_api::EngineError::DuplicateKey { .. } | engine_api::EngineError::RowNotFound,
        ) => Ok(()),
        other => other,
    }
}

/// Committed states in order, how many of them are acknowledged, and the transaction in doubt.
struct History {
    states: Vec<Rows>,
    acknowledged: usize,
    doubt: Option<Doubt>,
}

/// The name of the transaction that is prepared: one at a time.
const NAME: &[u8] = b"doubt";

/// A prepared transaction.
#[derive(Clone)]
struct Doubt {
    /// The new state of the rows that it changed.
    changes: Vec<(i64, Option<(Option<i64>, Vec<u8>)>)>,
    /// It was acknowledged.
    is_durable: bool,
    decided: Option<Decision>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    /// The state with this number is the first with the changes.
    Committed(usize),
    RolledBack,
}

impl Doubt {
    fn new(before: &Rows, after: &Rows) -> Doubt {
        let keys: std::collections::BTreeSet<i64> =
            before.keys().chain(after.keys()).copied().collect();
        let changed = keys.into_iter().filter(|key| before.get(key) != after.get(key));
        let changes = changed.map(|key| (key, after.get(&key).cloned())).collect();
        Doubt { changes, is_durable: false, decided: None }
    }

    /// The rows after its commit: until then no other transaction could change its rows.
    fn applied(&self, rows: &Rows) -> Rows {
        let mut rows = rows.clone();
        for (key, row) in &self.changes {
            match row {
                Some(row) => drop(rows.insert(*key, row.clone())),
                None => drop(rows.remove(key)),
            }
        }
        rows
    }
}

impl History {
    fn new() -> History {
        History { states: vec![Rows::new()], acknowledged: 0, doubt: None }
    }

    fn last(&self) -> Rows {
        self.states.last().cloned().unwrap_or_default()
    }

    fn is_in_doubt(&self) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.decided.is_none())
    }

    /// Somebody decides about the transaction in doubt.
    fn decide(&mut self, engine: &DurableEngine, random: &mut SplitMix) -> EngineResult<()> {
        let (at, last) = (self.states.len(), self.last());
        let Some(doubt) = &mut self.doubt else { return Ok(()) };
        if random.below(2) == 0 {
            doubt.decided = Some(Decision::RolledBack);
            return engine.rollback_prepared(NAME);
        }
        doubt.decided = Some(Decision::Committed(at));
        let state = doubt.applied(&last);
        self.states.push(state);
        let handle = engine.commit_prepared(NAME, &[])?;
        if random.below(3) > 0 {
            handle.map_or(Ok(()), |handle| handle.wait())?;
            self.acknowledged = at;
        }
        Ok(())
    }

    /// After a crash that left the state `model`: whether the transaction in doubt is there as it has to be.
    fn check_doubt(&mut self, engine: &DurableEngine, model: &Rows, seed: u64) {
        let listed = !engine.prepared().is_empty();
        let Some(doubt) = &self.doubt else {
            assert!(!listed, "seed {seed}: nobody prepared it");
            return;
        };
        match doubt.decided {
            None => {
                assert!(listed || !doubt.is_durable, "seed {seed}: a prepared transaction is gone")
            }
            Some(Decision::RolledBack) => {}
            Some(Decision::Committed(at)) => {
                let possible = if listed { &self.states[..at] } else { &self.states[at..] };
                let is_gone = !listed && !doubt.is_durable && self.acknowledged < at;
                assert!(
                    possible.contains(model) || is_gone,
                    "seed {seed}: in doubt {listed}, {at}"
                );
            }
        }
        self.doubt = listed.then(|| Doubt { is_durable: true, decided: None, ..doubt.clone() });
    }
}

/// The changes of one transaction; `true` if it is to continue to its end.
fn transact(
    txn: &mut dyn Transaction,
    model: &mut Rows,
    random: &mut SplitMix,
) -> EngineResult<bool> {
    let mut changes = || -> EngineResult<()> {
        for _ in 0..1 + random.below(6) {
            if random.below(6) == 0 {
                let (savepoint, saved) = (txn.savepoint(), model.clone());
                change(txn, model, random)?;
                change(txn, model, random)?;
                txn.rollback_to(savepoint)?;
                *model = saved;
            } else {
                change(txn, model, random)?;
            }
        }
        Ok(())
    };
    match changes() {
        // A row or a unique key of a loser that is not undone yet.
        Err(EngineError::LockWaitTimeout) => Ok(false),
        other => other.map(|()| true),
    }
}

fn work(engine: &DurableEngine, random: &mut SplitMix, history: &mut History) -> EngineResult<()> {
    let extra = |unique| IndexDef {
        id: IndexId(3),
        name: "i".into(),
        unique,
        parts: vec![KeyPart { column: 1, prefix_length: None, descending: false, elements: None }],
    };
    // Now and then a snapshot that stays: later transactions cannot be purged and are filed.
    let mut old: Option<(Box<dyn Transaction>, Rows)> = None;
    for _ in 0..random.below(60) {
        match old.take() {
            None if random.below(8) == 0 => {
                let mut reader = begin(engine);
                let seen = rows(&mut *reader, TABLE, IndexId::CLUSTERED)?;
                old = Some((reader, seen));
            }
            Some((mut reader, seen)) if random.below(10) > 0 => {
                assert_eq!(rows(&mut *reader, TABLE, IndexId::CLUSTERED)?, seen, "an old snapshot");
                old = Some((reader, seen));
            }
            _ => {}
        }
        if history.is_in_doubt() && random.below(8) == 0 {
            history.decide(engine, random)?;
        }
        let mut txn = begin_branch(engine);
        let mut model = history.last();
        if !transact(&mut *txn, &mut model, random)? {
            txn.rollback()?;
            engine.tick()?;
            continue;
        }
        // One in a run of the engine. A prepared transaction changes no definitions, and definitions do not change during it.
        if history.doubt.is_none() && random.below(12) == 0 {
            let has_written = txn.has_written();
            if has_written {
                history.doubt = Some(Doubt::new(&history.last(), &model));
            }
            let handle = txn.prepare(NAME)?;
            if random.below(3) > 0 {
                handle.wait()?;
                if let Some(doubt) = &mut history.doubt {
                    doubt.is_durable = true;
                }
            }
            continue;
        }
        if !history.is_in_doubt() && random.below(8) == 0 {
            match random.below(3) {
                0 => txn
                    .create_table(&table(OTHER, "test.t1", true))
                    .or_else(|_| txn.drop_table(OTHER))?,
                1 => match txn.drop_index(TABLE, IndexId(3)) {
                    Ok(()) => {}
                    Err(_) => txn.create_index(TABLE, &extra(random.below(2) == 0))?,
                },
                _ => engine.checkpoint()?,
            }
        }
        if random.below(6) == 0 {
            txn.rollback()?;
        } else {
            // Decided, and from here on possible after a crash.
            history.states.push(model);
            let has_written = txn.has_written();
            let handle: CommitHandle = txn.commit()?;
            // A commit without changes waits for nobody, so it proves nothing of those before it.
            if random.below(3) > 0 && has_written {
                handle.wait()?;
                history.acknowledged = history.states.len() - 1;
            }
        }
        match random.below(6) {
            0 => engine.tick()?,
            1 => engine.checkpoint()?,
            _ => {}
        }
    }
    Ok(())
}

fn check(engine: &DurableEngine, history: &History, seed: u64) -> Rows {
    let model = read_all(engine, IndexId::CLUSTERED).unwrap();
    let possible = &history.states[history.acknowledged..];
    if !possible.contains(&model) {
        let differences = |state: &Rows| {
            let keys = state.keys().chain(model.keys()).copied();
            let keys: std::collections::BTreeSet<i64> = keys.collect();
            keys.into_iter().filter(|key| state.get(key) != model.get(key)).collect::<Vec<_>>()
        };
        let all: Vec<_> = history.states.iter().map(differences).enumerate().collect();
        let closest = all.iter().min_by_key(|(_, keys)| keys.len());
        panic!(
            "seed {seed}: no state at or after the last acknowledged one, {} of {}; closest {closest:?}",
            history.acknowledged,
            history.states.len() - 1
        );
    }
    for index in [IndexId(1), IndexId(2)] {
        assert_eq!(read_all(engine, index).unwrap(), model, "seed {seed}");
    }
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new(), "seed {seed}");
    model
}

/// Decides transactions in doubt on a copy of the disk: the run itself keeps them.
fn decide_there(engine: &DurableEngine, history: &History, random: &mut SplitMix, seed: u64) {
    let mut copy = History {
        states: history.states.clone(),
        acknowledged: history.acknowledged,
        doubt: history.doubt.clone(),
    };
    copy.decide(engine, random).unwrap();
    copy.acknowledged = copy.states.len() - 1;
    assert_eq!(engine.prepared(), [], "seed {seed}");
    engine.checkpoint().unwrap();
    check(engine, &copy, seed);
}

/// Half of the runs have memory enough for redo to read whole segments ahead.
fn one_run(seed: u64, build: Build<'_>) {
    let pool_bytes = if seed.is_multiple_of(2) { config().pool_bytes } else { READS_AHEAD };
    run_with(seed, build, &|| EngineConfig { pool_bytes, ..config() });
}

fn run_with(seed: u64, build: Build<'_>, config: &dyn Fn() -> EngineConfig) {
    let mut random = SplitMix::new(seed);
    let mut disk = SimDisk::new();
    let mut history = History::new();
    {
        let engine = DurableEngine::open(build(disk.clone()), config(), |_| {}).unwrap();
        let mut txn = begin(&engine);
        txn.create_table(&table(TABLE, "test.t1", true)).unwrap();
        txn.commit().unwrap().wait().unwrap();
    }
    for crash in 0..4 {
        disk.crash_after(random.below(700));
        if random.below(3) == 0 {
            // A sync that fails and drops its data: the engine must not believe the next one that succeeds.
            disk.fail_sync_after(random.below(400));
        }
        // It may crash during recovery already.
        if let Ok(engine) = DurableEngine::open(build(disk.clone()), config(), |_| {}) {
            let _ = work(&engine, &mut random, &mut history);
            disk.crash_now();
        }
        disk = disk.after_crash(seed * 7 + crash);
        // A second recovery must lead to the same state.
        let probe = disk.after_crash(seed);
        let engine = DurableEngine::open(build(probe), config(), |_| {})
            .unwrap_or_else(|error| panic!("seed {seed}, crash {crash}: {error:?}"));
        // Uncommitted changes are hidden before they are undone, and gone afterwards.
        let hidden = read_all(&engine, IndexId::CLUSTERED).unwrap();
        engine.tick().unwrap();
        let model = check(&engine, &history, seed);
        assert_eq!(hidden, model, "seed {seed}, crash {crash}");
        assert_eq!(engine.recovery().percent, 100, "seed {seed}");
        history.check_doubt(&engine, &model, seed);
        let at = history.states.iter().rposition(|state| *state == model).unwrap();
        history.states.truncate(at + 1);
        history.acknowledged = at;
        decide_there(&engine, &history, &mut random, seed);
    }
}

#[test]
fn acknowledged_commits_survive_and_others_are_whole_or_gone() {
    let (first, crashes) = (number("SQUALL_SEED", 1), number("SQUALL_CRASHES", 300));
    for seed in first..first + crashes.div_ceil(4) {
        one_run(seed, &|disk| Arc::new(disk));
    }
}

#[test]
fn workers_on_threads_of_their_own_find_the_same() {
    let crew = || RedoCrew { workers: 3, crew: Crew::Threads };
    for seed in 1000..1020 {
        let pool_bytes = if seed % 2 == 0 { config().pool_bytes } else { READS_AHEAD };
        let config = || EngineConfig { redo: crew(), pool_bytes, ..config() };
        run_with(seed, &|disk| Arc::new(disk), &config);
    }
}

#[test]
fn a_build_that_skips_the_sync_of_the_log_is_caught() {
    assert!(is_caught(40, |seed| one_run(seed, &skipping(Call::Sync, "wal-"))));
}

#[test]
fn a_build_that_skips_another_call_is_caught() {
    for (call, name) in [(Call::Sync, "space"), (Call::Write, "doublewrite"), (Call::SyncDir, "")] {
        assert!(is_caught(200, |seed| one_run(seed, &skipping(call, name))), "{call:?} {name}");
    }
}

/// Gives neighbouring log records each other's tickets as they are read, so that replay applies them out of order. The checksums of
/// the batches are made good again, along the chain.
fn swap_tickets(bytes: &mut [u8], sums: &mut std::collections::HashMap<u32, u32>, block: usize) {
    const HEADER: usize = 64;
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut start = 0;
    while start + HEADER <= bytes.len() && bytes[start..start + 4] == *b"SQWL" {
        let length = word(bytes, start + 36) as usize;
        let end = start + HEADER + length;
        if end > bytes.len() {
            return;
        }
        let old = word(bytes, start + 4);
        if page::checksum(&bytes[start + 4..end]) != old {
            return;
        }
        let mut places = Vec::new();
        let mut at = start + HEADER;
        while at + 16 <= end {
            places.push(at + 8);
            at += 16 + word(bytes, at) as usize;
        }
        for pair in places.chunks_exact(2) {
            for byte in 0..8 {
                bytes.swap(pair[0] + byte, pair[1] + byte);
            }
        }
        let previous = word(bytes, start + 40);
        let previous = sums.get(&previous).copied().unwrap_or(previous);
        bytes[start + 40..start + 44].copy_from_slice(&previous.to_le_bytes());
        let new = page::checksum(&bytes[start + 4..end]);
        bytes[start + 4..start + 8].copy_from_slice(&new.to_le_bytes());
        sums.insert(old, new);
        start += (HEADER + length).div_ceil(block) * block;
    }
}

#[test]
fn a_build_that_replays_out_of_order_is_caught() {
    let build = |disk| -> Arc<dyn Disk> {
        let sums = std::sync::Mutex::new(std::collections::HashMap::new());
        let block = config().log.block_bytes;
        let fault = FaultDisk::new(Arc::new(disk), Arc::new(|_, _: &str| Verdict::Pass));
        Arc::new(fault.with_tamper(Arc::new(move |name: &str, _, bytes: &mut [u8]| {
            if name.starts_with("wal-") {
                swap_tickets(bytes, &mut sums.lock().unwrap(), block);
            }
        })))
    };
    assert!(is_caught(40, |seed| one_run(seed, &build)));
}

#[test]
fn a_clean_shutdown_loses_nothing_and_no_page() {
    for seed in 1..15 {
        let disk = SimDisk::new();
        let mut random = SplitMix::new(seed);
        let mut history = History::new();
        for round in 0..3 {
            let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
            if round == 0 {
                let mut txn = begin(&engine);
                txn.create_table(&table(TABLE, "test.t1", true)).unwrap();
                txn.commit().unwrap().wait().unwrap();
            }
            work(&engine, &mut random, &mut history).unwrap();
            engine.shutdown().unwrap();
            history.acknowledged = history.states.len() - 1;
            check(&engine, &history, seed);
            assert_eq!(engine.lost_pages().unwrap(), 0, "seed {seed} round {round}");
        }
    }
}
