//! The lanes' horizon and group commit, every schedule: `cargo xtask models`.
#![cfg(loom)]

use std::sync::Arc;

use loom::thread;
use sys::model::{check, is_caught};
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition, replay};

const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn start(disk: &SimDisk) -> Arc<Log> {
    let config = LogConfig {
        segment_bytes: 4096,
        block_bytes: 512,
        lanes: 2,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 0,
    };
    Arc::new(Log::start(Arc::new(disk.clone()), config, START, 1).unwrap())
}

/// Tickets that a crash now would leave.
fn survivors(disk: &SimDisk) -> Vec<u64> {
    let mut tickets = Vec::new();
    replay(&disk.after_crash(1), START, 0, 512, |record| {
        tickets.push(record.ticket);
        Ok(())
    })
    .unwrap();
    tickets
}

/// Two threads append while a third flushes.
#[test]
fn below_the_horizon_everything_is_on_the_disk() {
    check(|| {
        let disk = SimDisk::new();
        let log = start(&disk);
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let log = log.clone();
                thread::spawn(move || log.append(1, &[b"record"], |_| {}))
            })
            .collect();
        log.relieve().unwrap();
        let (durable, on_disk) = (log.durable(), survivors(&disk));
        for ticket in threads.into_iter().map(|thread| thread.join().unwrap()) {
            assert!(ticket >= durable || on_disk.contains(&ticket), "{ticket} of {durable}");
        }
    });
}

#[test]
fn a_horizon_read_after_the_lanes_is_caught() {
    assert!(is_caught("below_the_horizon_everything_is_on_the_disk", "W2"));
}

#[test]
fn whoever_waits_for_another_s_flush_is_woken_when_it_is_done() {
    check(|| {
        let disk = SimDisk::new();
        let log = start(&disk);
        let commit = |log: &Log, disk: &SimDisk| {
            let ticket = log.append(1, &[b"record"], |_| {});
            log.commit_wait(ticket).unwrap();
            assert!(survivors(disk).contains(&ticket));
        };
        let other = {
            let (log, disk) = (log.clone(), disk.clone());
            thread::spawn(move || commit(&log, &disk))
        };
        commit(&log, &disk);
        other.join().unwrap();
    });
}
