//! Pins against purge, commit against visibility, ids against the low mark; every schedule with few preemptions: `cargo xtask models`.

use std::sync::Arc;

use bufpool::{Pool, PoolConfig};
use loom::thread;
use sys::disk::{Disk, OpenMode};
use sys::model::{check, is_caught};
use sys::sim::SimDisk;
use sys::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition};

use crate::snapshot::SnapshotSlots;
use crate::undo_log::UndoSpace;
use crate::{TxnSystem, Visibility};

const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

/// A reader pins a snapshot and uses the version it needs; the purger frees the version replaced at ticket 5 once the horizon is above it.
#[test]
fn what_a_snapshot_needs_is_not_freed() {
    check(|| {
        let slots = Arc::new(SnapshotSlots::new(2));
        let slot = slots.take().unwrap();
        let (visible, low) = (Arc::new(AtomicU64::new(5)), AtomicU64::new(1));
        let freed = Arc::new(AtomicBool::new(false));
        let purger = {
            let (slots, visible, freed) = (slots.clone(), visible.clone(), freed.clone());
            thread::spawn(move || {
                visible.store(6, Ordering::Release);
                let now = visible.load(Ordering::Acquire);
                if slots.horizon(now) > 5 {
                    freed.store(true, Ordering::Release);
                }
            })
        };
        let snapshot = slots.pin(slot, &low, || visible.load(Ordering::Acquire));
        if snapshot.ts <= 5 {
            assert!(!freed.load(Ordering::Acquire), "freed under a snapshot that needs it");
        }
        slots.release(slot);
        purger.join().unwrap();
    });
}

#[test]
fn a_pin_without_its_fence_is_caught() {
    assert!(is_caught("model_tests::what_a_snapshot_needs_is_not_freed", "X5"));
}

fn system() -> Arc<TxnSystem> {
    let disk = SimDisk::new();
    let file = disk.open("data", OpenMode::OrCreate).unwrap();
    let doublewrite = disk.open("doublewrite", OpenMode::OrCreate).unwrap();
    let config = PoolConfig {
        page_bytes: 256,
        frames: 32,
        frames_max: 32,
        pages_max: 64,
        doublewrite: true,
        reserve_pages: 0,
    };
    let pool = Arc::new(Pool::new(config, file, doublewrite).unwrap());
    let config = LogConfig {
        segment_bytes: 4096,
        block_bytes: 512,
        lanes: 2,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 0,
    };
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let log = Arc::new(Log::start(disk.clone(), config, START, 1).unwrap());
    pool.connect(log.clone());
    Arc::new(TxnSystem::new(
        pool,
        log,
        UndoSpace { disk, memory_bytes: 1 << 20, subject_of: |_| 0 },
    ))
}

/// A commit becomes durable and is purged while a reader looks twice at its row.
#[test]
fn a_commit_is_seen_whole_or_not_at_all_until_the_snapshot_ends() {
    check(|| {
        let system = system();
        let slot = system.slots.take().unwrap();
        let core = system.begin_write(system.locks.new_owner());
        system.log_change(&core, btree::Mtr::new(&system.pool), b"before");
        let (id, watched) = (core.id, core.clone());
        let writer = {
            let system = system.clone();
            thread::spawn(move || {
                let ticket = system.commit(&core, &[]);
                system.log.commit_wait(ticket).unwrap();
                let lane = system.own_purge_lane().unwrap();
                if let Some(core) = system.next_to_purge(&lane, system.horizon()) {
                    system.retire(&core);
                }
                drop(lane);
                system.advance_low();
            })
        };
        // A flushing thread makes the commits of others visible.
        system.log.relieve().unwrap();
        let snapshot = system.snapshot(slot);
        let look = || match system.visibility(&snapshot, id, 0) {
            Visibility::Visible => true,
            Visibility::Hidden(core) => {
                let mut before = Vec::new();
                assert!(core.read_undo(core.last_undo(), &mut before).is_some());
                assert_eq!(before, b"before");
                false
            }
        };
        let (first, second) = (look(), look());
        assert_eq!(first, second, "a snapshot that changes");
        if first {
            let ticket = watched.committed();
            assert!(ticket.is_some_and(|ticket| ticket < snapshot.ts), "{ticket:?} {snapshot:?}");
        }
        system.slots.release(slot);
        writer.join().unwrap();
    });
}

const COMMIT: &str = "model_tests::a_commit_is_seen_whole_or_not_at_all_until_the_snapshot_ends";

#[test]
fn a_commit_published_behind_its_record_is_caught() {
    assert!(is_caught(COMMIT, "X3"));
}

#[test]
fn purge_that_forgets_the_snapshots_is_caught() {
    assert!(is_caught(COMMIT, "pins hold purge back"));
}

/// A transaction draws its id while the low mark moves up: no reader may take its rows for settled.
#[test]
fn the_low_mark_passes_nobody_who_begins() {
    check(|| {
        let system = system();
        let slot = system.slots.take().unwrap();
        let begun = Arc::new(AtomicU64::new(0));
        let writer = {
            let (system, begun) = (system.clone(), begun.clone());
            thread::spawn(move || {
                let core = system.begin_write(system.locks.new_owner());
                begun.store(core.id, Ordering::Release);
            })
        };
        system.advance_low();
        let snapshot = system.snapshot(slot);
        let id = begun.load(Ordering::Acquire);
        if id != 0 {
            let seen = system.visibility(&snapshot, id, 0);
            assert!(matches!(seen, Visibility::Hidden(_)), "{id} {snapshot:?}");
        }
        writer.join().unwrap();
        assert!(snapshot.low <= begun.load(Ordering::Acquire), "{snapshot:?}");
        system.slots.release(slot);
    });
}

#[test]
fn a_low_mark_that_does_not_wait_for_beginners_is_caught() {
    assert!(is_caught("model_tests::the_low_mark_passes_nobody_who_begins", "X1"));
}
