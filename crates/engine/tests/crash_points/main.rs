//! Ten thousand crash points: a random workload against a model, a crash at any disk operation, crashes of the recovery from it, then
//! every acknowledged commit is there, nothing half done, all invariants hold, and another recovery gives the same.
//!
//! Lost, torn and reordered writes and failed syncs are the simulated disk's. Builds that are broken on purpose must be caught by the same
//! loop. `SQUALL_CRASHES` sets the number of crash points (default 400), `SQUALL_SEED` the first seed. A failure prints its seed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[path = "../support/mod.rs"]
mod support;
mod workload;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use engine::DurableEngine;
use sys::entropy::SplitMix;
use sys::fault::Call;
use sys::sim::SimDisk;

use support::builds::{Build, encrypted, is_caught, number, skipping};
use support::config;
use workload::{Hanging, History, State, read_state, set_up, work};

/// Crash points of the workload in one run; recoveries crash besides.
const CRASHES_PER_RUN: u64 = 4;

fn try_open(build: Build<'_>, disk: &SimDisk) -> engine_api::EngineResult<DurableEngine> {
    DurableEngine::open(build(disk.clone()), config(), |_| {})
}

fn open(build: Build<'_>, disk: &SimDisk) -> DurableEngine {
    try_open(build, disk).unwrap_or_else(|error| panic!("it does not open: {error:?}"))
}

fn check(engine: &DurableEngine, history: &History) -> State {
    // Losers are undone now.
    engine.tick().unwrap();
    let state = read_state(engine, history);
    let possible = &history.states[history.acknowledged..];
    assert!(
        possible.contains(&state),
        "no state at or after the last acknowledged one, {} of {}; it is {:?}",
        history.acknowledged,
        history.states.len() - 1,
        history.states.iter().rposition(|known| *known == state),
    );
    state
}

/// Recovers, crashing on the way up to twice, until it opens. Returns the disk to continue with and the number of crash points.
fn recover_with_crashes(
    mut disk: SimDisk,
    random: &mut SplitMix,
    build: Build<'_>,
    history: &History,
) -> (SimDisk, u64) {
    let mut crashes = 0;
    while random.below(3) == 0 && crashes < 2 {
        disk.crash_after(random.below(120));
        let engine = try_open(build, &disk);
        disk.crash_now();
        drop(engine);
        disk = disk.after_crash(random.below(1 << 40));
        crashes += 1;
    }
    // A second and a third recovery must lead to the same state.
    let probe = disk.after_crash(random.below(1 << 40));
    let engine = open(build, &probe);
    let state = check(&engine, history);
    probe.crash_now();
    drop(engine);
    let probe = probe.after_crash(random.below(1 << 40));
    let engine = open(build, &probe);
    assert_eq!(check(&engine, history), state, "the second recovery differs");
    (disk, crashes + 1)
}

/// One history of crashes; returns how many there were.
fn one_run(seed: u64, build: Build<'_>) -> u64 {
    let mut random = SplitMix::new(seed);
    let mut disk = SimDisk::new();
    // Few rows meet often; many are more than the pool holds.
    let keys = if seed.is_multiple_of(4) { 400 } else { 40 };
    let mut history = History::new(keys);
    set_up(&open(build, &disk));
    let mut crashes = 0;
    for _ in 0..CRASHES_PER_RUN {
        disk.crash_after(random.below(700));
        if random.below(3) == 0 {
            // A sync that fails and drops its data: the engine must not believe the next one that succeeds.
            disk.fail_sync_after(random.below(400));
        }
        // It may crash during recovery already.
        let mut hanging = Hanging::default();
        if let Ok(engine) = try_open(build, &disk) {
            let _ = work(&engine, &mut random, &mut history, &mut hanging);
            disk.crash_now();
            drop(hanging);
        }
        disk = disk.after_crash(random.below(1 << 40));
        let (recovered, more) = recover_with_crashes(disk, &mut random, build, &history);
        disk = recovered;
        crashes += 1 + more;
        // From here on the present state counts as decided.
        let probe = disk.after_crash(random.below(1 << 40));
        let state = check(&open(build, &probe), &history);
        let at = history.states.iter().rposition(|known| *known == state).unwrap();
        history.states.truncate(at + 1);
        history.positions.truncate(at);
        history.acknowledged = at;
        disk = probe;
    }
    crashes
}

fn many_runs(wanted: u64, build: Build<'_>) {
    let first = number("SQUALL_SEED", 1);
    let (next, done) = (AtomicU64::new(first), AtomicU64::new(0));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < wanted {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let run = std::panic::AssertUnwindSafe(|| one_run(seed, build));
                    match std::panic::catch_unwind(run) {
                        Ok(crashes) => done.fetch_add(crashes, Ordering::Relaxed),
                        Err(_) => panic!("SQUALL_SEED={seed} fails"),
                    };
                }
            });
        }
    });
    println!("{} crash points in {:.1} s", done.into_inner(), begun.elapsed().as_secs_f64());
}

#[test]
fn acknowledged_commits_survive_and_others_are_whole_or_gone() {
    many_runs(number("SQUALL_CRASHES", 400), &|disk| Arc::new(disk));
}

#[test]
fn so_they_do_on_an_encrypted_disk() {
    many_runs(number("SQUALL_CRASHES", 400) / 2, &encrypted);
}

#[test]
fn every_disk_operation_of_a_script_is_a_crash_point() {
    crash_everywhere(&|disk| Arc::new(disk));
}

#[test]
fn every_disk_operation_of_a_script_is_a_crash_point_on_an_encrypted_disk() {
    crash_everywhere(&encrypted);
}

/// A script of a few dozen operations, crashed at each disk operation it makes, with the unsynced writes lost, kept and mixed.
fn crash_everywhere(build: Build<'_>) {
    const SCRIPT: u64 = 5;
    let mut points = 0;
    for at in 0.. {
        let disk = SimDisk::new();
        let mut history = History::new(20);
        let engine = open(build, &disk);
        set_up(&engine);
        disk.crash_after(at * 3);
        let (mut random, mut hanging) = (SplitMix::new(SCRIPT), Hanging::default());
        let _ = work(&engine, &mut random, &mut history, &mut hanging);
        let is_over = !disk.has_crashed();
        disk.crash_now();
        drop(hanging);
        for survivors in 0..4 {
            check(&open(build, &disk.after_crash(at * 4 + survivors)), &history);
            points += 1;
        }
        if is_over {
            break;
        }
    }
    println!("{points} crash points");
    assert!(points > 100);
}

#[test]
fn a_build_that_skips_a_sync_is_caught() {
    for (call, name) in [(Call::Sync, "wal-"), (Call::Sync, "space"), (Call::SyncDir, "")] {
        assert!(is_caught(100, |seed| _ = one_run(seed, &skipping(call, name))), "{call:?} {name}");
    }
}

#[test]
fn a_build_that_skips_the_doublewrite_file_is_caught() {
    assert!(is_caught(400, |seed| _ = one_run(seed, &skipping(Call::Write, "doublewrite"))));
}

#[test]
fn a_build_that_skips_the_sync_of_undo_files_is_caught() {
    assert!(is_caught(200, |seed| _ = one_run(seed, &skipping(Call::Sync, "undo-"))));
}
