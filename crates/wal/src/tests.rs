//! Every acknowledged record survives a crash, and the surviving records are a prefix in ticket order.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::sync::Arc;

use sys::disk::Disk;
use sys::entropy::SplitMix;
use sys::sim::SimDisk;

use crate::*;

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 8192,
        block_bytes: 512,
        lanes: 2,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 2,
    }
}

const START: LogPosition =
    LogPosition { segment: 1, epoch: 1, batch: 1, previous_crc: 0, low: 1, high: 1 };

fn read(disk: &SimDisk, position: LogPosition) -> (Vec<(u64, Vec<u8>)>, ReplayEnd) {
    let mut records = Vec::new();
    let end = replay(disk, position, 0, 512, |record| {
        records.push((record.ticket, record.body.to_vec()));
        Ok(())
    })
    .unwrap();
    // What a crash leaves is never taken for damage.
    assert_eq!(end.damage, None);
    (records, end)
}

/// As a reactor does it: offers to write, and sleeps until it is called when others are at it.
fn lead_until_durable(log: &Log, ticket: u64) -> std::io::Result<()> {
    loop {
        let (wake, woken) = std::sync::mpsc::channel();
        let callback = Box::new(move || wake.send(()).unwrap_or(()));
        if log.lead(ticket, std::time::Duration::MAX, callback)? {
            return Ok(());
        }
        woken.recv().expect("the log calls back");
    }
}

#[test]
fn what_leaders_acknowledge_survives_a_crash_among_their_writes() {
    for seed in 0..100 {
        let disk = SimDisk::new();
        let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
        disk.crash_after(SplitMix::new(seed).below(200));
        let acknowledged: Vec<u64> = std::thread::scope(|scope| {
            let writers = [0_u8, 1, 2, 3].map(|number| {
                let log = &log;
                scope.spawn(move || {
                    let mut done = Vec::new();
                    for at in 0..40 {
                        let ticket = log.append(1, &[&[number; 90]], |_| {});
                        let outcome = match at % 3 {
                            0 => log.flush_to(ticket),
                            _ => lead_until_durable(log, ticket),
                        };
                        if outcome.is_err() {
                            break;
                        }
                        done.push(ticket);
                    }
                    done
                })
            });
            writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
        });
        let (records, _) = read(&disk.after_crash(seed), START);
        let found: Vec<u64> = records.iter().map(|(ticket, _)| *ticket).collect();
        assert!(found.is_sorted(), "seed {seed}");
        let lost = acknowledged.iter().find(|ticket| !found.contains(ticket));
        assert_eq!(lost, None, "seed {seed}");
    }
}

#[test]
fn a_segment_made_ahead_is_the_next_one() {
    let disk = SimDisk::new();
    let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
    let mut tickets = Vec::new();
    for _ in 0..40 {
        log.prepare_segment().unwrap();
        tickets.push(log.append(1, &[&[7; 1000]], |_| {}));
        log.flush_to(tickets[tickets.len() - 1]).unwrap();
        // Old segments are used again.
        let (records, _) = read(&disk.after_crash(1), log.position_for(tickets[tickets.len() - 1]));
        assert_eq!(records.last().map(|record| record.0), tickets.last().copied());
        log.forget_before(log.position_for(tickets[tickets.len() - 1])).unwrap();
    }
    let names = disk.list().unwrap();
    assert!(names.iter().filter(|name| name.starts_with("wal-")).count() <= 4, "{names:?}");
}

#[test]
fn acknowledged_records_survive_crashes_in_order() {
    for seed in 0..200 {
        let disk = SimDisk::new();
        let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
        let mut random = SplitMix::new(seed);
        disk.crash_after(random.below(120));
        let (mut written, mut acknowledged) = (Vec::new(), 0);
        for _ in 0..400 {
            let body = vec![random.next_u64() as u8; random.below(300) as usize];
            let ticket = log.append(1, &[&body], |_| {});
            written.push((ticket, body));
            if random.below(4) == 0 {
                match log.flush_to(ticket) {
                    Ok(()) => acknowledged = written.len(),
                    Err(_) => break,
                }
            }
        }
        let next = disk.after_crash(seed);
        let (records, end) = read(&next, START);
        assert!(records.len() >= acknowledged, "seed {seed}: {} {acknowledged}", records.len());
        assert_eq!(records, written[..records.len()], "seed {seed}");
        assert!(end.next_ticket > records.last().map_or(0, |record| record.0));
        // A second run appends in a new epoch; nothing of the first run beyond the cut reappears.
        let disk: Arc<dyn Disk> = Arc::new(next.clone());
        let log = Log::start(disk, config(), end.next, end.next_ticket).unwrap();
        let ticket = log.append(1, &[b"second"], |_| {});
        log.flush_to(ticket).unwrap();
        let (records, _) = read(&next.after_crash(seed), end.next);
        assert_eq!(records, vec![(ticket, b"second".to_vec())], "seed {seed}");
    }
}

/// Runs that follow each other, each cut short by a crash, some before they wrote anything: all of them are read back from the first.
#[test]
fn a_log_goes_on_over_crashes() {
    for seed in 0..300 {
        let mut random = SplitMix::new(seed);
        let mut disk = SimDisk::new();
        let (mut end, mut next) = (None::<ReplayEnd>, 1);
        let mut acknowledged: Vec<(u64, Vec<u8>)> = Vec::new();
        for run in 0..5 {
            let inner: Arc<dyn Disk> = Arc::new(disk.clone());
            let log = match &end {
                None => Log::start(inner, config(), START, next),
                Some(end) => {
                    disk.crash_after(random.below(60));
                    let removed = remove_segments_except(&disk, &config(), &end.segments);
                    removed.and_then(|()| Log::resume(inner, config(), end, next))
                }
            };
            if let Ok(log) = log {
                let mut waiting = Vec::new();
                for _ in 0..random.below(60) {
                    let body = vec![random.next_u64() as u8; random.below(900) as usize];
                    let ticket = log.append(1, &[&body], |_| {});
                    waiting.push((ticket, body));
                    if random.below(4) == 0 {
                        match log.flush_to(ticket) {
                            Ok(()) => acknowledged.append(&mut waiting),
                            Err(_) => break,
                        }
                    }
                }
            }
            disk = disk.after_crash(seed * 5 + run);
            let (records, found) = read(&disk, START);
            let kept = |wanted: &(u64, Vec<u8>)| records.binary_search(wanted).is_ok();
            assert!(acknowledged.iter().all(kept), "seed {seed} run {run}");
            // What survived without being acknowledged counts from here on: it was handed out.
            acknowledged = records;
            next = found.next_ticket;
            end = Some(found);
        }
    }
}

#[test]
fn segments_are_recycled() {
    let disk = SimDisk::new();
    let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
    let mut last = 0;
    for _ in 0..100 {
        last = log.append(1, &[&[7; 900]], |_| {});
        log.flush_to(last).unwrap();
        log.forget_before(log.position_for(last)).unwrap();
    }
    assert!(disk.list().unwrap().len() <= 4);
    let (records, _) = read(&disk, log.position_for(last));
    assert_eq!(records.last().unwrap().0, last);
}

#[test]
fn a_failed_sync_breaks_the_log() {
    let disk = SimDisk::new();
    let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
    disk.fail_sync_after(1);
    let ticket = log.append(1, &[b"x"], |_| {});
    assert!(log.flush_to(ticket).is_err() && log.flush_to(ticket).is_err());
}

#[test]
fn callbacks_run_when_durable() {
    let disk = SimDisk::new();
    let log = Arc::new(Log::start(Arc::new(disk), config(), START, 1).unwrap());
    let server = Arc::clone(&log);
    let thread = sys::threads::spawn("log", move || server.serve()).unwrap();
    let (sender, receiver) = std::sync::mpsc::channel();
    let ticket = log.append(1, &[b"x"], |_| {});
    log.notify(ticket, Box::new(move || sender.send(()).unwrap()));
    receiver.recv().unwrap();
    assert!(log.durable() > ticket);
    log.stop();
    thread.join();
}

#[test]
fn the_newest_whole_checkpoint_counts() {
    let disk = SimDisk::new();
    let (file, none) = CheckpointFile::open(&disk).unwrap();
    assert!(none.is_none());
    let mut checkpoint = Checkpoint {
        number: 1,
        redo_from: 5,
        position: START,
        next_ticket: 9,
        durable_batch: 1,
        page_bytes: 1024,
        redo_rate: 0,
    };
    file.store(&checkpoint).unwrap();
    checkpoint.number = 2;
    file.store(&checkpoint).unwrap();
    disk.flip_bit("checkpoint", 20, 1);
    let (_, found) = CheckpointFile::open(&disk).unwrap();
    assert_eq!(found.unwrap().number, 1);
    disk.flip_bit("checkpoint", 4096 + 20, 1);
    let error = CheckpointFile::open(&disk)
        .err()
        .expect("a disk that was in use is not taken for a new one");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
}

/// File and offset of each batch, in order.
fn batches(disk: &SimDisk) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for name in disk.list().unwrap().into_iter().filter(|name| name.starts_with("wal-")) {
        let mut bytes = vec![0; 8192];
        let file = disk.open(&name, sys::disk::OpenMode::Existing).unwrap();
        file.read_at(&mut bytes, 0).unwrap();
        for (block, at) in bytes.chunks(512).zip((0..).step_by(512)) {
            if let Some(header) = crate::batch::Header::parse(block) {
                found.push((header.number, name.clone(), at));
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, name, at)| (name, at)).collect()
}

fn end_of(disk: &SimDisk, durable: u64) -> ReplayEnd {
    let mut reader = LogReader::new(disk, START, 0, 512);
    let mut window = Window::new();
    while reader.next(&mut window, 4096).unwrap() {}
    reader.end(durable).unwrap()
}

/// A log of batches each of which was durable before the next was made.
fn forty_batches() -> (SimDisk, u64) {
    let disk = SimDisk::new();
    let log = Log::start(Arc::new(disk.clone()), config(), START, 1).unwrap();
    for at in 0..40 {
        let ticket = log.append(1, &[&vec![at; 20 * usize::from(at)]], |_| {});
        log.flush_to(ticket).unwrap();
    }
    (disk, log.durable_batch())
}

#[test]
fn a_flipped_bit_before_what_is_known_to_be_durable_is_damage() {
    let (disk, durable) = forty_batches();
    let all = batches(&disk);
    assert_eq!((all.len() as u64 + 1, end_of(&disk, durable).damage), (durable, None));
    for (number, (name, offset)) in (1..).zip(&all) {
        // Magic, checksum, number, epoch, length, the checksum of the previous one, durable, a record.
        for at in [1, 5, 9, 33, 37, 38, 41, 45, 70] {
            if number == 1 && at == 70 {
                continue; // It has no bytes there.
            }
            let copy = disk.after_crash(0);
            copy.flip_bit(name, offset + at, 3);
            let damage = end_of(&copy, durable).damage.expect("found");
            assert_eq!(damage.batch, number, "{damage}");
            let is_at = (damage.file.as_str(), damage.offset) == (name.as_str(), *offset as u64);
            assert!(is_at || *offset == 0, "{damage}");
            // Without a later checkpoint the last one may be the end that a crash left; for all others a later batch proves them durable.
            let is_last = number == all.len() as u64;
            assert_eq!(end_of(&copy, 0).damage.is_none(), is_last, "{number} {at}");
        }
    }
}

#[test]
fn a_segment_that_is_missing_is_damage() {
    let (disk, _) = forty_batches();
    let mut names: Vec<String> = batches(&disk).into_iter().map(|(name, _)| name).collect();
    names.dedup();
    assert!(names.len() > 2, "{names:?}");
    for name in &names[..names.len() - 1] {
        let copy = disk.after_crash(0);
        copy.remove(name).unwrap();
        let damage = end_of(&copy, 0).damage.expect("found");
        assert!(damage.to_string().contains("the start of the next file"), "{damage}");
    }
}

#[test]
fn a_log_whose_damaged_part_was_given_up_goes_on() {
    let (disk, _) = forty_batches();
    let (name, offset) = batches(&disk)[20].clone();
    disk.flip_bit(&name, offset + 70, 3);
    let end = end_of(&disk, 0);
    assert!(end.damage.is_some());
    // No ticket that a lost record had is drawn again: pages may have seen it.
    assert_eq!(end.next_ticket, 41);
    let log = Log::resume(Arc::new(disk.clone()), config(), &end, end.next_ticket).unwrap();
    let ticket = log.append(1, &[b"on"], |_| {});
    log.flush_to(ticket).unwrap();
    let (records, _) = read(&disk.after_crash(1), START);
    let tickets: Vec<u64> = records.iter().map(|(ticket, _)| *ticket).collect();
    assert_eq!(tickets, (1..=20).chain([ticket]).collect::<Vec<_>>());
}

#[test]
fn a_batch_has_its_golden_bytes() {
    const GOLDEN: &str = include_str!("../tests/golden/batch.hex");
    let header = crate::batch::Header {
        epoch: 3,
        number: 5,
        low: 7,
        high: 9,
        length: 0,
        previous_crc: 0x0A0B_0C0D,
        durable: 4,
        crc: 0,
    };
    let mut batch = vec![0; crate::batch::HEADER_BYTES];
    crate::batch::put_record(&mut batch, 1, 7, &[b"ab", b"c"]);
    crate::batch::put_record(&mut batch, 2, 8, &[]);
    let length = (batch.len() - crate::batch::HEADER_BYTES) as u32;
    let crc = crate::batch::Header { length, ..header }.seal(&mut batch);
    golden::check("batch.hex", &batch, GOLDEN);
    let parsed = crate::batch::Header::parse(&golden::bytes(GOLDEN));
    assert_eq!(parsed, Some(crate::batch::Header { length, crc, ..header }));
}

#[test]
fn a_checkpoint_has_its_golden_bytes() {
    const GOLDEN: &str = include_str!("../tests/golden/checkpoint.hex");
    let disk = SimDisk::new();
    let checkpoint = Checkpoint {
        number: 2,
        redo_from: 11,
        position: LogPosition { segment: 4, epoch: 5, batch: 6, previous_crc: 7, low: 8, high: 9 },
        next_ticket: 10,
        durable_batch: 12,
        page_bytes: 16384,
        redo_rate: 13,
    };
    let (file, _) = CheckpointFile::open(&disk).unwrap();
    file.store(&checkpoint).unwrap();
    let stored = disk.open("checkpoint", sys::disk::OpenMode::OrCreate).unwrap();
    let mut block = vec![0; 96];
    stored.read_at(&mut block, 0).unwrap();
    golden::check("checkpoint.hex", &block, GOLDEN);
    assert_eq!(CheckpointFile::open(&disk).unwrap().1, Some(checkpoint));
}
