//! Snapshots, commit, rollback records, checkpoints and recovery of a system without tables.

use std::sync::Arc;

use btree::Mtr;
use bufpool::PoolConfig;
use sys::disk::Disk;
use sys::sim::SimDisk;
use sys::threads::Crew;
use wal::{Durability, FailurePolicy, LogConfig};

use crate::*;

fn open(disk: &SimDisk) -> Recovered {
    let log = LogConfig {
        segment_bytes: 64 << 10,
        block_bytes: 512,
        lanes: 2,
        flights: 2,
        durability: Durability::Synced,
        failure: FailurePolicy::Report,
        reserve_segments: 0,
    };
    let pool = PoolConfig {
        page_bytes: 1024,
        frames: 64,
        frames_max: 64,
        pages_max: 10_000,
        doublewrite: true,
        reserve_pages: 0,
    };
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let progress = &mut Progress::new(|_| {});
    let redo = RedoCrew { workers: 3, crew: Crew::InTurn };
    let log_damage = wal::DamagePolicy::Refuse;
    let subject_of = |payload: &[u8]| payload.first().map_or(0, |byte| u64::from(*byte));
    let config = RecoverConfig {
        log,
        pool,
        undo_memory_bytes: 16,
        subject_of,
        redo,
        log_damage,
        keep_log_from: None,
    };
    recover(&disk, config, btree::format_space, progress).unwrap()
}

fn change(system: &TxnSystem, core: &TxnState, payload: &[u8]) -> u64 {
    system.log_change(core, Mtr::new(&system.pool), payload)
}

fn next_to_purge(system: &TxnSystem) -> Option<Arc<TxnState>> {
    system.purge_lanes().find_map(|lane| system.next_to_purge(&lane, system.horizon()))
}

#[test]
fn a_snapshot_sees_what_was_committed_before() {
    let opened = open(&SimDisk::new());
    let system = &opened.system;
    let slot = system.slots.take().unwrap();
    let writer = system.begin_write(system.locks.new_owner());
    change(system, &writer, b"x");
    let before = system.snapshot(slot);
    let ticket = system.commit(&writer, &[]);
    system.log.commit_wait(ticket).unwrap();
    assert!(matches!(system.visibility(&before, writer.id, 0), Visibility::Hidden(_)));
    assert!(matches!(system.visibility(&before, writer.id, writer.id), Visibility::Visible));
    assert!(next_to_purge(system).is_none(), "the snapshot holds it back");
    let after = system.snapshot(slot);
    assert!(matches!(system.visibility(&after, writer.id, 0), Visibility::Visible));
    let core = next_to_purge(system).unwrap();
    system.retire(&core);
    system.advance_low();
    assert!(system.snapshot(slot).low > writer.id);
}

#[test]
fn undo_survives_in_log_and_file_of_unsettled_transactions() {
    let disk = SimDisk::new();
    let opened = open(&disk);
    let system = &opened.system;
    let loser = system.begin_write(system.locks.new_owner());
    change(system, &loser, b"one");
    let done = system.begin_write(system.locks.new_owner());
    change(system, &done, b"done");
    let ticket = system.commit(&done, &[]);
    let before = opened.checkpoint.number;
    let taken = take_checkpoint(system, &disk, &opened.checkpoints, before).unwrap();
    assert!(taken.number > before);
    change(system, &loser, b"two");
    let two = loser.last_undo();
    change(system, &loser, b"three");
    system.log_undone(&loser, Mtr::new(&system.pool), two);
    change(system, &loser, b"four");
    system.log.flush_to(system.log.next_ticket() - 1).unwrap();
    for round in 0..3 {
        let disk = disk.after_crash(round);
        for _ in 0..2 {
            let again = open(&disk);
            assert_eq!(again.losers.len(), 1);
            let (core, mut payload) = (&again.losers[0], Vec::new());
            let mut found = Vec::new();
            for pointer in core.undo_entries() {
                core.read_undo(pointer, &mut payload).unwrap();
                found.push(String::from_utf8(payload.clone()).unwrap());
            }
            assert_eq!(found, ["one", "two", "four"]);
            let mut subjects = core.subjects().unwrap();
            subjects.sort_unstable();
            assert_eq!(subjects, [u64::from(b'f'), u64::from(b'o'), u64::from(b't')]);
            let done = again.system.find(done.id).unwrap();
            assert_eq!(done.committed(), Some(ticket));
        }
    }
}

#[test]
fn a_file_of_unsettled_transactions_without_subjects_leaves_them_unknown() {
    let disk = SimDisk::new();
    let opened = open(&disk);
    let system = &opened.system;
    let loser = system.begin_write(system.locks.new_owner());
    change(system, &loser, b"one");
    let before = opened.checkpoint.number;
    let taken = take_checkpoint(system, &disk, &opened.checkpoints, before).unwrap();
    let disk = disk.after_crash(1);
    assert_eq!(open(&disk.after_crash(2)).losers[0].subjects(), Some(vec![u64::from(b'o')]));
    // As written before there were subjects: without the last record, of one number for one transaction.
    let name = crate::checkpoint::unsettled_file_name(taken.number);
    let file = disk.open(&name, sys::disk::OpenMode::Existing).unwrap();
    let mut bytes = vec![0; file.size_bytes().unwrap() as usize - (7 * 8 + 4 + 3 * 8)];
    file.read_at(&mut bytes, 0).unwrap();
    let hash = stdx::hash_bytes(1, &bytes[4..]) as u32;
    bytes[..4].copy_from_slice(&hash.to_le_bytes());
    file.set_size(0).unwrap();
    file.write_at(&bytes, 0).unwrap();
    let again = open(&disk);
    assert_eq!((again.losers.len(), again.losers[0].subjects()), (1, None));
}

#[test]
fn entries_come_oldest_first_however_few_are_known_at_a_time() {
    let opened = open(&SimDisk::new());
    let system = &opened.system;
    let core = system.begin_write(system.locks.new_owner());
    let mut pointers = Vec::new();
    for number in 0..20_u8 {
        change(system, &core, &[number; 7]);
        pointers.push(core.last_undo());
        if number % 5 == 4 {
            // Undone: it does not appear again.
            let left = pointers[pointers.len() - 2];
            system.log_undone(&core, Mtr::new(&system.pool), left);
            pointers.pop();
        }
    }
    system.commit(&core, &[]);
    for at_once in [1, 2, 3, 15, 16, 17, 100] {
        let entries = crate::txn_state::UndoEntries::new(&core, at_once);
        assert_eq!(entries.collect::<Vec<_>>(), pointers, "{at_once} at a time");
    }
    let done = pointers[6];
    system.log_purged(&core, Mtr::new(&system.pool), done);
    for at_once in [1, 4, 9, 10] {
        let entries = crate::txn_state::UndoEntries::new(&core, at_once);
        assert_eq!(entries.collect::<Vec<_>>(), pointers[7..], "{at_once} at a time");
    }
}

#[test]
fn the_low_mark_passes_what_only_an_old_snapshot_keeps() {
    let opened = open(&SimDisk::new());
    let system = &opened.system;
    let slot = system.slots.take().unwrap();
    let old = system.snapshot(slot);
    let write = || {
        let writer = system.begin_write(system.locks.new_owner());
        change(system, &writer, b"x");
        writer
    };
    let done: Vec<_> = (0..5).map(|_| write()).collect();
    let (active, undone) = (write(), write());
    for core in &done {
        let ticket = system.commit(core, &[]);
        system.log.commit_wait(ticket).unwrap();
    }
    system.finish_rollback(&undone);
    system.advance_low();
    system.advance_low();
    let other = system.slots.take().unwrap();
    assert_eq!(system.snapshot(other).low, active.id, "seen ones are passed, active ones not");
    assert!(matches!(system.visibility(&old, done[4].id, 0), Visibility::Hidden(_)));
    system.slots.release(slot);
    system.slots.release(other);
    let ticket = system.commit(&active, &[]);
    system.log.commit_wait(ticket).unwrap();
    system.advance_low();
    assert_eq!(
        system.snapshot(other).low,
        undone.id,
        "until it is settled, a row of it may be looked at"
    );
    system.slots.release(other);
    while let Some(core) = next_to_purge(system) {
        system.retire(&core);
    }
    system.advance_low();
    assert!(system.snapshot(other).low > undone.id);
}

/// Names of prepared transactions and number of losers that a crash now would leave.
fn after_a_crash(disk: &SimDisk, system: &TxnSystem) -> (Vec<Vec<u8>>, usize) {
    system.log.flush_to(system.log.next_ticket() - 1).unwrap();
    let disk = disk.after_crash(1);
    // Recovery can be repeated.
    let mut found = Vec::new();
    for _ in 0..2 {
        let again = open(&disk);
        let names = again.prepared.iter().map(|core| core.prepared_name().unwrap().to_vec());
        found.push((names.collect(), again.losers.len()));
    }
    assert_eq!(found[0], found[1]);
    found.remove(0)
}

#[test]
fn a_prepared_transaction_is_no_loser_until_somebody_decides() {
    for checkpoints in [false, true] {
        let disk = SimDisk::new();
        let opened = open(&disk);
        let system = &opened.system;
        let mut number = opened.checkpoint.number;
        let mut checkpoint = || {
            if checkpoints {
                while system.flush_pages(usize::MAX).unwrap() > 0 {}
                number =
                    take_checkpoint(system, &disk, &opened.checkpoints, number).unwrap().number;
            }
        };
        let (core, other) = (
            system.begin_write(system.locks.new_owner()),
            system.begin_write(system.locks.new_owner()),
        );
        change(system, &core, b"one");
        change(system, &core, b"two");
        change(system, &other, b"three");
        assert_eq!(after_a_crash(&disk, system), (vec![], 2));
        system.prepare(&core, b"name");
        system.prepare(&other, b"");
        checkpoint();
        assert_eq!(after_a_crash(&disk, system).1, 0);
        system.commit(&other, &[]);
        checkpoint();
        assert_eq!(after_a_crash(&disk, system), (vec![b"name".to_vec()], 0));
        // To be rolled back: from the first step on it cannot be committed any more.
        system.unprepare(&core);
        checkpoint();
        system.log_undone(&core, Mtr::new(&system.pool), UndoPointer(1));
        assert_eq!(after_a_crash(&disk, system), (vec![], 1));
        // That step may lie before the log that recovery reads.
        for _ in 0..3 {
            for _ in 0..100 {
                change(system, &core, &[b'f'; 500]);
            }
            checkpoint();
        }
        assert_eq!(after_a_crash(&disk, system), (vec![], 1));
        system.finish_rollback(&core);
        assert_eq!(after_a_crash(&disk, system), (vec![], 0));
    }
}
