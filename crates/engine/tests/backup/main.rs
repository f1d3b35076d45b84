//! Backups concurrent with writers, restored: the result is the model's state at the backup's end, or at the requested point in time.
//!
//! The writers run inside the backup's own writes, so that the schedule is a seed's. `SQUALL_SEED` sets the first one.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod offline;
#[path = "../support/mod.rs"]
mod support;
#[path = "../crash_points/workload.rs"]
mod workload;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use engine::{ArchiveDisk, DurableEngine, EngineConfig, RestoreUntil, Restored, restore};
use engine_api::{BackupFile, BackupSummary, BackupTarget, CancelToken, Engine, EngineError};
use sys::disk::{Disk, File, OpenMode};
use sys::entropy::SplitMix;
use sys::fault::{Call, FaultDisk, Rule, Verdict};
use sys::sim::SimDisk;

use support::config;
use workload::{Hanging, History, State, read_state, set_up, work};

fn open(disk: &SimDisk) -> DurableEngine {
    DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).expect("it opens")
}

/// The work concurrent with a backup.
struct World<'e> {
    engine: &'e DurableEngine,
    random: SplitMix,
    history: History,
    hanging: Hanging,
}

impl World<'_> {
    fn go_on(&mut self) {
        work(self.engine, &mut self.random, &mut self.history, &mut self.hanging)
            .expect("no crash");
    }
}

/// A backup into a simulated disk; each write to it lets the other work proceed.
struct Busy<'w, 'e> {
    disk: SimDisk,
    world: Option<&'w Mutex<World<'e>>>,
    cancel: Option<(usize, CancelToken)>,
}

struct BusyFile<'t, 'w, 'e> {
    file: Arc<dyn File>,
    target: &'t Busy<'w, 'e>,
    offset: u64,
}

impl BackupTarget for Busy<'_, '_> {
    fn create(&self, name: &str) -> io::Result<Box<dyn BackupFile + '_>> {
        let file = self.disk.open(name, OpenMode::OrCreate)?;
        Ok(Box::new(BusyFile { file, target: self, offset: 0 }))
    }
}

impl BackupFile for BusyFile<'_, '_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(bytes, self.offset)?;
        self.offset += bytes.len() as u64;
        if let Some((_, token)) =
            self.target.cancel.as_ref().filter(|(at, _)| *at as u64 <= self.offset)
        {
            token.kill_query();
        }
        if let Some(world) = self.target.world {
            let mut world = world.lock().unwrap();
            if world.random.below(3) == 0 {
                world.go_on();
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.file.sync()
    }
}

fn back_up(world: &Mutex<World<'_>>, engine: &DurableEngine) -> (SimDisk, BackupSummary) {
    let target = Busy { disk: SimDisk::new(), world: Some(world), cancel: None };
    let summary = engine.backup(&target, &CancelToken::new()).expect("a backup");
    target.disk.sync_dir().unwrap();
    (target.disk, summary)
}

/// A random world after some work.
fn worked<'e>(engine: &'e DurableEngine, seed: u64) -> World<'e> {
    set_up(engine);
    let mut random = SplitMix::new(seed);
    let keys = if seed.is_multiple_of(3) { 400 } else { 40 };
    let rounds = random.below(6);
    let hanging = Hanging::default();
    let mut world = World { engine, random, history: History::new(keys), hanging };
    (0..rounds).for_each(|_| world.go_on());
    world
}

fn dynamic(disk: &SimDisk) -> Arc<dyn Disk> {
    Arc::new(disk.clone())
}

fn restored(
    backup: &SimDisk,
    archive: Option<&SimDisk>,
    until: RestoreUntil,
) -> io::Result<(SimDisk, Restored)> {
    let target = SimDisk::new();
    let archive = archive.map(dynamic);
    let done = restore(&dynamic(backup), archive.as_ref(), &target, until, |_, _| {})?;
    // All of it is durable.
    Ok((target.after_crash(1), done))
}

fn refusal(backup: &SimDisk, archive: Option<&SimDisk>, until: RestoreUntil) -> String {
    restored(backup, archive, until).err().expect("it is refused").to_string()
}

fn state_of(disk: &SimDisk, history: &History) -> State {
    let engine = open(disk);
    engine.tick().unwrap();
    let state = read_state(&engine, history);
    assert_eq!(engine.lost_pages().unwrap(), 0);
    state
}

/// The model's state at a position.
fn expected(history: &History, position: u64) -> &State {
    let count = history.positions.partition_point(|behind| *behind <= position);
    &history.states[count]
}

fn for_seeds(count: u64, test: impl Fn(u64)) {
    let first = std::env::var("SQUALL_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = first.map_or(1..=count, |seed| seed..=seed);
    for seed in seeds {
        let run = std::panic::AssertUnwindSafe(|| test(seed));
        assert!(std::panic::catch_unwind(run).is_ok(), "SQUALL_SEED={seed} fails");
    }
}

#[test]
fn a_backup_beside_writers_is_the_state_at_its_end() {
    let changed = std::cell::Cell::new(0);
    for_seeds(12, |seed| {
        let engine = open(&SimDisk::new());
        let world = Mutex::new(worked(&engine, seed));
        let before = world.lock().unwrap().history.states.len();
        let (backup, summary) = back_up(&world, &engine);
        let world = world.into_inner().unwrap();
        changed.set(changed.get() + world.history.states.len() - before);
        let (_, findings) = offline::check(&backup);
        assert!(findings.is_empty(), "{findings:?}");
        let (disk, done) = restored(&backup, None, RestoreUntil::End).unwrap();
        assert_eq!(done.end_position, summary.end_position);
        let state = state_of(&disk, &world.history);
        assert_eq!(&state, expected(&world.history, summary.end_position));
        // And it continues: changes of the restored engine survive its own crash.
        let engine = open(&disk);
        let random = SplitMix::new(seed);
        let states = vec![state];
        let history = History { states, positions: Vec::new(), acknowledged: 0, ..world.history };
        let mut next = World { engine: &engine, random, history, hanging: Hanging::default() };
        next.go_on();
        let end = engine.position();
        disk.crash_now();
        let last = state_of(&disk.after_crash(seed), &next.history);
        assert!(next.history.states[next.history.acknowledged..].contains(&last), "{end}");
    });
    assert!(changed.get() > 200, "hardly any writer: {}", changed.get());
}

#[test]
fn a_second_backup_of_the_same_engine_is_as_good_as_the_first() {
    let engine = open(&SimDisk::new());
    let world = Mutex::new(worked(&engine, 5));
    for _ in 0..3 {
        let (backup, summary) = back_up(&world, &engine);
        let mut world = world.lock().unwrap();
        // Hanging transactions keep undo from being purged.
        world.hanging = Hanging::default();
        let (disk, _) = restored(&backup, None, RestoreUntil::End).unwrap();
        let state = state_of(&disk, &world.history);
        assert_eq!(&state, expected(&world.history, summary.end_position));
    }
}

#[test]
fn a_cancelled_backup_ends_and_keeps_nothing_back() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    let world = Mutex::new(worked(&engine, 7));
    let token = CancelToken::new();
    let cancel = Some((3000, token.clone()));
    let target = Busy { disk: SimDisk::new(), world: Some(&world), cancel };
    let outcome = engine.backup(&target, &token);
    assert!(matches!(outcome, Err(EngineError::Cancelled)), "{outcome:?}");
    // Files kept for it are released again.
    let mut world = world.into_inner().unwrap();
    (0..4).for_each(|_| world.go_on());
    drop(world);
    engine.tick().unwrap();
    engine.checkpoint().unwrap();
    engine.checkpoint().unwrap();
    let names = disk.list().unwrap();
    let count = |prefix: &str| names.iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!(count("straddle-"), 1, "{names:?}");
    assert!(count("wal-") <= 12, "{names:?}");
}

#[test]
fn damage_anywhere_in_a_backup_is_noticed() {
    let engine = open(&SimDisk::new());
    let world = Mutex::new(worked(&engine, 3));
    let (backup, _) = back_up(&world, &engine);
    let mut random = SplitMix::new(1);
    for name in backup.list().unwrap() {
        let file = backup.open(&name, OpenMode::Existing).unwrap();
        let size = file.size_bytes().unwrap();
        for _ in 0..20.min(size) {
            let (at, bit) = (random.below(size) as usize, random.below(8) as u8);
            backup.flip_bit(&name, at, bit);
            let Err(error) = restored(&backup, None, RestoreUntil::End) else {
                panic!("{name} byte {at} bit {bit}");
            };
            let text = error.to_string();
            assert!(
                text.contains(&name) && text.contains("use another copy") || name == "manifest",
                "{name}: {text}"
            );
            backup.flip_bit(&name, at, bit);
        }
        let copy = backup.after_crash(1);
        copy.remove(&name).unwrap();
        let error = refusal(&copy, None, RestoreUntil::End);
        assert!(error.contains(&name) && error.contains("use another"), "{error}");
        if size > 0 {
            let copy = backup.after_crash(1);
            copy.open(&name, OpenMode::Existing).unwrap().set_size(size / 2).unwrap();
            assert!(restored(&copy, None, RestoreUntil::End).is_err(), "half of {name}");
        }
    }
    restored(&backup, None, RestoreUntil::End).expect("whole again");
    let error = refusal(&backup, None, RestoreUntil::Position(1));
    assert!(error.contains("use an earlier backup"), "{error}");
}

#[test]
fn a_damaged_page_fails_the_backup_and_names_its_table() {
    let disk = SimDisk::new();
    let engine = open(&disk);
    let world = Mutex::new(worked(&engine, 3));
    world.lock().unwrap().go_on();
    engine.shutdown().unwrap();
    drop(world);
    drop(engine);
    let engine = open(&disk);
    // A leaf of a table: level 0, a node.
    let space = disk.open("space", OpenMode::Existing).unwrap();
    let mut page = vec![0; 1024];
    let leaf = (3..).find(|no| {
        space.read_at(&mut page, no * 1024).unwrap();
        page[4] == 2 && page[5] == 0 && u64::from_le_bytes(page[56..64].try_into().unwrap()) > 1
    });
    let leaf = leaf.unwrap();
    disk.flip_bit("space", leaf as usize * 1024 + 700, 3);
    let target = Busy { disk: SimDisk::new(), world: None, cancel: None };
    let outcome = engine.backup(&target, &CancelToken::new());
    let Err(EngineError::Other(error)) = outcome else { panic!("{outcome:?}") };
    let text = error.message();
    assert!(text.contains(&format!("page {leaf} ")) && text.contains("test."), "{text}");
}

fn open_archived(disk: &SimDisk, archive: &Arc<dyn Disk>) -> DurableEngine {
    let config = EngineConfig { archive: Some(ArchiveDisk(archive.clone())), ..config() };
    DurableEngine::open(Arc::new(disk.clone()), config, |_| {}).expect("it opens")
}

/// After a crash: the present state counts as decided.
fn settle(engine: &DurableEngine, mut history: History) -> History {
    engine.tick().unwrap();
    let state = read_state(engine, &history);
    let at = history.states.iter().rposition(|known| *known == state).expect("a known state");
    assert!(at >= history.acknowledged);
    history.states.truncate(at + 1);
    history.positions.truncate(at);
    history
}

#[test]
fn every_commit_behind_a_backup_can_be_restored_to_over_crashes_and_runs() {
    let tried = std::cell::Cell::new(0);
    for_seeds(4, |seed| {
        let (mut disk, mut archive_disk) = (SimDisk::new(), SimDisk::new());
        let mut archive = dynamic(&archive_disk);
        let engine = open_archived(&disk, &archive);
        let world = Mutex::new(worked(&engine, seed));
        let (backup, summary) = back_up(&world, &engine);
        let mut world = world.into_inner().unwrap();
        (0..3).for_each(|_| world.go_on());
        let (mut history, mut random) = (world.history, world.random);
        for _ in 0..2 {
            // Both machines stop, or only the engine does.
            disk.crash_now();
            disk = disk.after_crash(random.below(1 << 40));
            if random.below(2) == 0 {
                archive_disk.crash_now();
                archive_disk = archive_disk.after_crash(random.below(1 << 40));
                archive = dynamic(&archive_disk);
            }
            let engine = open_archived(&disk, &archive);
            history = settle(&engine, history);
            let mut world = World { engine: &engine, random, history, hanging: Hanging::default() };
            (0..2).for_each(|_| world.go_on());
            engine.tick().unwrap();
            (history, random) = (world.history, world.random);
        }
        let engine = open_archived(&disk.after_crash(3), &archive);
        let history = settle(&engine, history);
        engine.shutdown().unwrap();
        let later: Vec<usize> = (0..history.positions.len())
            .filter(|at| history.positions[*at] >= summary.end_position)
            .collect();
        for at in later.iter().step_by(1 + later.len() / 8).chain(later.last()) {
            let until = RestoreUntil::Position(history.positions[*at] - 1);
            let (disk, done) = restored(&backup, Some(&archive_disk), until).unwrap();
            assert!(done.is_reached);
            assert_eq!(state_of(&disk, &history), history.states[at + 1], "commit {at}");
            tried.set(tried.get() + 1);
        }
        let (disk, _) = restored(&backup, Some(&archive_disk), RestoreUntil::End).unwrap();
        assert_eq!(&state_of(&disk, &history), history.states.last().unwrap());
    });
    assert!(tried.get() > 24, "{}", tried.get());
}

#[test]
fn a_time_is_a_moment_too() {
    let (disk, archive_disk) = (SimDisk::new(), SimDisk::new());
    let engine = open_archived(&disk, &dynamic(&archive_disk));
    let world = Mutex::new(worked(&engine, 4));
    let (backup, _) = back_up(&world, &engine);
    let mut world = world.into_inner().unwrap();
    let mut moments = Vec::new();
    for _ in 0..3 {
        world.go_on();
        moments.push((sys::clock::wall().as_micros() as u64, world.history.states.len() - 1));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    world.go_on();
    engine.shutdown().unwrap();
    for (micros, at) in moments {
        let until = RestoreUntil::Micros(micros);
        let (disk, done) = restored(&backup, Some(&archive_disk), until).unwrap();
        assert_eq!(state_of(&disk, &world.history), world.history.states[at]);
        assert!(done.last_commit_micros <= micros);
    }
    let error = refusal(&backup, Some(&archive_disk), RestoreUntil::Micros(1));
    assert!(error.contains("use an earlier backup"), "{error}");
    let far = RestoreUntil::Micros(u64::MAX >> 2);
    assert!(!restored(&backup, Some(&archive_disk), far).unwrap().1.is_reached);
}

#[test]
fn a_moment_before_a_backup_beside_which_nobody_commits_is_refused() {
    let (disk, archive_disk) = (SimDisk::new(), SimDisk::new());
    let engine = open_archived(&disk, &dynamic(&archive_disk));
    let mut world = worked(&engine, 4);
    world.go_on();
    let before = sys::clock::wall().as_micros() as u64;
    std::thread::sleep(std::time::Duration::from_millis(2));
    let target = Busy { disk: SimDisk::new(), world: None, cancel: None };
    let summary = engine.backup(&target, &CancelToken::new()).expect("a backup");
    target.disk.sync_dir().unwrap();
    let history = world.history;
    engine.shutdown().unwrap();
    for micros in [1, before] {
        let until = RestoreUntil::Micros(micros);
        let error = refusal(&target.disk, Some(&archive_disk), until);
        assert!(error.contains("use an earlier backup"), "{error}");
    }
    let until = RestoreUntil::Micros(summary.end_micros);
    let (disk, _) = restored(&target.disk, Some(&archive_disk), until).unwrap();
    assert_eq!(Some(&state_of(&disk, &history)), history.states.last());
}

#[test]
fn an_archive_that_does_not_fit_is_refused() {
    let (disk, archive_disk) = (SimDisk::new(), SimDisk::new());
    let archive = dynamic(&archive_disk);
    let engine = open_archived(&disk, &archive);
    let world = Mutex::new(worked(&engine, 6));
    let (backup, summary) = back_up(&world, &engine);
    let mut world = world.into_inner().unwrap();
    (0..6).for_each(|_| world.go_on());
    engine.shutdown().unwrap();
    // A segment in the middle.
    let mut names = archive_disk.list().unwrap();
    names.retain(|name| name.starts_with("wal-"));
    names.sort_unstable();
    assert!(names.len() > 4, "{names:?}");
    archive_disk.sync_dir().unwrap();
    let gapped = archive_disk.after_crash(1);
    gapped.remove(&names[names.len() - 2]).unwrap();
    let error = refusal(&backup, Some(&gapped), RestoreUntil::End);
    assert!(error.contains("gap") && error.contains(names.last().unwrap()), "{error}");
    // A flipped bit in the middle ends the log there: later batches show that it is not the end.
    let damaged = archive_disk.after_crash(1);
    let middle = &names[names.len() - 2];
    let size = damaged.open(middle, OpenMode::Existing).unwrap().size_bytes().unwrap();
    damaged.flip_bit(middle, size as usize / 2, 1);
    let error = refusal(&backup, Some(&damaged), RestoreUntil::End);
    assert!(error.contains("gap"), "{error}");
    let far = RestoreUntil::Position(u64::MAX - 1);
    let error = refusal(&backup, Some(&archive_disk), far);
    assert!(error.contains("before the requested one"), "{error}");
    restored(&backup, Some(&gapped), RestoreUntil::Position(summary.end_position)).unwrap();
    // That of somebody else, for a restore and for an engine.
    let foreign = SimDisk::new();
    drop(open_archived(&SimDisk::new(), &dynamic(&foreign)));
    let error = refusal(&backup, Some(&foreign), RestoreUntil::End);
    assert!(error.contains("another data directory"), "{error}");
    let config = EngineConfig { archive: Some(ArchiveDisk(archive)), ..config() };
    let (restored, _) = restored(&backup, None, RestoreUntil::End).unwrap();
    let error = DurableEngine::open(Arc::new(restored), config, |_| {}).err().unwrap();
    assert!(format!("{error:?}").contains("name an empty directory"), "{error:?}");
}

#[test]
fn an_archive_that_fails_now_and_then_is_whole_in_the_end() {
    let (disk, archive_disk) = (SimDisk::new(), SimDisk::new());
    let calls = AtomicU64::new(0);
    let rule: Rule = Arc::new(move |call, _| {
        let count = calls.fetch_add(1, Ordering::Relaxed);
        match matches!(call, Call::Write | Call::Sync) && count % 5 < 2 {
            true => Verdict::Fail(io::ErrorKind::StorageFull),
            false => Verdict::Pass,
        }
    });
    // It is set up while all is well.
    drop(open_archived(&disk, &dynamic(&archive_disk)));
    let failing: Arc<dyn Disk> = Arc::new(FaultDisk::new(dynamic(&archive_disk), rule));
    let opened = (0..50).find_map(|_| {
        let config = EngineConfig { archive: Some(ArchiveDisk(failing.clone())), ..config() };
        DurableEngine::open(Arc::new(disk.clone()), config, |_| {}).ok()
    });
    let engine = opened.expect("one attempt succeeds");
    let world = Mutex::new(worked(&engine, 8));
    let (backup, _) = back_up(&world, &engine);
    let mut world = world.into_inner().unwrap();
    (0..4).for_each(|_| world.go_on());
    (0..50).for_each(|_| engine.tick().unwrap());
    let stats = engine.stats();
    let stat = |name: &str| {
        let found = stats.iter().find(|stat| stat.group == "archive" && stat.name == name);
        found.unwrap().value.parse::<u64>().unwrap()
    };
    assert!(stat("failures_total") > 3 && stat("gaps_total") == 0);
    engine.shutdown().unwrap();
    drop(open_archived(&disk, &dynamic(&archive_disk)));
    let (restored, _) = restored(&backup, Some(&archive_disk), RestoreUntil::End).unwrap();
    assert_eq!(&state_of(&restored, &world.history), world.history.states.last().unwrap());
}
