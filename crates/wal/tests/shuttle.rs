//! Group commit under random schedules: `cargo xtask models`. A failure prints a schedule that
//! `shuttle::replay` repeats.
#![cfg(shuttle)]

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use sys::model::check;
use sys::sim::SimDisk;
use wal::{Durability, FailurePolicy, Log, LogConfig, LogPosition, replay};

const SCHEDULES: usize = 1000;
const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn start(disk: &SimDisk) -> Arc<Log> {
    let config = LogConfig {
        segment_bytes: 8192,
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
fn survivors(disk: &SimDisk, seed: u64) -> Vec<u64> {
    let mut tickets = Vec::new();
    replay(&disk.after_crash(seed), START, 0, 512, |record| {
        tickets.push(record.ticket);
        Ok(())
    })
    .unwrap();
    tickets
}

#[test]
fn what_is_acknowledged_survives_a_crash_at_that_moment() {
    check(SCHEDULES, || {
        let disk = SimDisk::new();
        let log = start(&disk);
        let threads: Vec<_> = (0..3_u64)
            .map(|number| {
                let (disk, log) = (disk.clone(), log.clone());
                thread::spawn(move || {
                    for at in 0..2 {
                        let ticket = log.append(1, &[&[number as u8; 40]], |_| {});
                        log.commit_wait(ticket).unwrap();
                        assert!(log.durable() > ticket && log.visible() > ticket);
                        assert!(survivors(&disk, number * 2 + at).contains(&ticket));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(survivors(&disk, 9).len(), 6);
    });
}

#[test]
fn a_horizon_read_after_the_lanes_is_caught() {
    let model = "what_is_acknowledged_survives_a_crash_at_that_moment";
    assert!(sys::model::is_caught(model, "W2"));
}

#[test]
fn everybody_who_asked_to_be_told_is_told_once() {
    check(SCHEDULES, || {
        let disk = SimDisk::new();
        let log = start(&disk);
        let told = Arc::new(AtomicU64::new(0));
        let server = {
            let log = log.clone();
            thread::spawn(move || log.serve())
        };
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let (log, told) = (log.clone(), told.clone());
                thread::spawn(move || {
                    for _ in 0..2 {
                        let ticket = log.append(1, &[b"record"], |_| {});
                        let (log_then, told) = (log.clone(), told.clone());
                        let wake = move || {
                            assert!(log_then.is_acknowledged(ticket));
                            told.fetch_add(1, Ordering::SeqCst);
                        };
                        log.notify(ticket, Box::new(wake));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        log.stop();
        server.join().unwrap();
        assert_eq!(told.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn leaders_write_side_by_side_and_nobody_is_forgotten() {
    check(SCHEDULES, || {
        let disk = SimDisk::new();
        let log = start(&disk);
        let threads: Vec<_> = (0..3_u64)
            .map(|number| {
                let (disk, log) = (disk.clone(), log.clone());
                thread::spawn(move || {
                    for at in 0..2 {
                        let ticket = log.append(1, &[&[number as u8; 40]], |_| {});
                        lead_until_durable(&log, ticket);
                        assert!(survivors(&disk, number * 2 + at).contains(&ticket));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(survivors(&disk, 9).len(), 6);
    });
}

/// As a reactor does it: offers to write, and sleeps until it is called when others are at it.
fn lead_until_durable(log: &Log, ticket: u64) {
    loop {
        let (wake, woken) = shuttle::sync::mpsc::channel();
        let callback = Box::new(move || wake.send(()).unwrap_or(()));
        if log.lead(ticket, std::time::Duration::MAX, callback).unwrap() {
            return;
        }
        woken.recv().unwrap();
    }
}
