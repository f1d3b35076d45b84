//! The lock table under random schedules: `cargo xtask models`. A failure prints a schedule that
//! `shuttle::replay` repeats.
#![cfg(shuttle)]

use std::time::Duration;

use locks::{LockTable, Mode, Patience, WaitError};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;
use sys::model::check;

const SCHEDULES: usize = 3000;
/// Nobody times out: a wait that nobody ends is a deadlock that shuttle reports.
const PATIENCE: Patience<'static> =
    Patience { timeout: Duration::from_secs(3600), is_cancelled: &|| false };

/// Locks two names in an order, and again with a new owner after losing a deadlock, until it has counted once.
fn count_once(table: &LockTable, counters: &[AtomicU64; 2], order: [usize; 2]) -> u64 {
    const NAMES: [&[u8]; 2] = [b"one", b"two"];
    let mut lost = 0;
    loop {
        let owner = table.new_owner();
        let mut counted = 0;
        let locked = order.iter().try_for_each(|at| {
            table.wait_lock(&owner, NAMES[*at], Mode::Exclusive, &PATIENCE)?;
            // Not atomic on purpose: two holders at a time would lose a step.
            let value = counters[*at].load(Ordering::SeqCst);
            thread::yield_now();
            counters[*at].store(value + 1, Ordering::SeqCst);
            counted += 1;
            Ok(())
        });
        match locked {
            Ok(()) => {
                table.release_all(&owner);
                return lost;
            }
            Err(WaitError::Deadlock) => {
                // Taken back under the locks held, as a rollback does.
                for at in &order[..counted] {
                    let value = counters[*at].load(Ordering::SeqCst);
                    thread::yield_now();
                    counters[*at].store(value - 1, Ordering::SeqCst);
                }
                table.release_all(&owner);
                lost += 1;
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn exclusive_locks_exclude_and_every_deadlock_ends() {
    check(SCHEDULES, || {
        let table = Arc::new(LockTable::new());
        let counters = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let threads: Vec<_> = [[0, 1], [1, 0], [0, 1]]
            .into_iter()
            .map(|order| {
                let (table, counters) = (table.clone(), counters.clone());
                thread::spawn(move || count_once(&table, &counters, order))
            })
            .collect();
        let lost: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(counters.each_ref().map(|counter| counter.load(Ordering::SeqCst)), [3, 3]);
        assert_eq!(table.events().deadlocks, lost);
        assert_eq!(table.events().entries, 0);
    });
}

/// Locks as requested, with new owners after losing a deadlock.
fn lock_all(table: &LockTable, wanted: &[(&[u8], Mode)]) {
    loop {
        let owner = table.new_owner();
        let mut wanted = wanted.iter();
        let locked =
            wanted.try_for_each(|(name, mode)| table.wait_lock(&owner, name, *mode, &PATIENCE));
        table.release_all(&owner);
        match locked {
            Ok(()) => return,
            Err(error) => assert_eq!(error, WaitError::Deadlock),
        }
    }
}

/// Upgrades pass the queue, so a waiter may wait for others than those before it when it came.
#[test]
fn deadlocks_of_upgrades_end_too() {
    use Mode::{Exclusive, Shared};
    check(SCHEDULES, || {
        let table = Arc::new(LockTable::new());
        let scripts: [&'static [(&[u8], Mode)]; 4] = [
            &[(b"one", Shared), (b"one", Exclusive), (b"two", Exclusive)],
            &[(b"two", Exclusive), (b"one", Shared)],
            &[(b"one", Shared), (b"one", Exclusive)],
            &[(b"one", Exclusive)],
        ];
        let threads = scripts.map(|script| {
            let table = table.clone();
            thread::spawn(move || lock_all(&table, script))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(table.events().entries, 0);
    });
}

#[test]
fn a_waiter_that_queues_before_it_says_so_is_caught() {
    let model = "exclusive_locks_exclude_and_every_deadlock_ends";
    assert!(sys::model::is_caught(model, "waiting before queued"));
}

#[test]
fn readers_share_and_a_writer_gets_its_turn() {
    check(SCHEDULES, || {
        let table = Arc::new(LockTable::new());
        let value = Arc::new(AtomicU64::new(0));
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let (table, value) = (table.clone(), value.clone());
                thread::spawn(move || {
                    let owner = table.new_owner();
                    table.wait_lock(&owner, b"k", Mode::Shared, &PATIENCE).unwrap();
                    let before = value.load(Ordering::SeqCst);
                    thread::yield_now();
                    assert_eq!(value.load(Ordering::SeqCst), before);
                    table.release_all(&owner);
                })
            })
            .collect();
        let owner = table.new_owner();
        table.wait_lock(&owner, b"k", Mode::Exclusive, &PATIENCE).unwrap();
        value.store(1, Ordering::SeqCst);
        thread::yield_now();
        value.store(2, Ordering::SeqCst);
        table.release_all(&owner);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(table.events().entries, 0);
    });
}

/// A transaction whose locks are packed while others come for them.
#[test]
fn packed_locks_exclude_too() {
    check(SCHEDULES, || {
        let table = Arc::new(LockTable::new());
        let value = Arc::new(AtomicU64::new(0));
        let count = |table: &LockTable, value: &AtomicU64, packs: bool| {
            let owner = table.new_owner();
            table.wait_lock(&owner, b"one-----k", Mode::Exclusive, &PATIENCE).unwrap();
            if packs {
                table.pack(&owner, 0, 0);
            }
            let before = value.load(Ordering::SeqCst);
            thread::yield_now();
            // No owner is blocked from its own locks.
            assert!(table.try_lock(&owner, b"one-----k", Mode::Exclusive));
            value.store(before + 1, Ordering::SeqCst);
            table.release_all(&owner);
        };
        let threads: Vec<_> = [false, true, false]
            .into_iter()
            .map(|packs| {
                let (table, value) = (table.clone(), value.clone());
                thread::spawn(move || count(&table, &value, packs))
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(value.load(Ordering::SeqCst), 3);
        let events = table.events();
        assert_eq!((events.entries, events.packed), (0, 0));
    });
}

#[test]
fn packed_locks_that_nobody_looks_for_are_caught() {
    assert!(sys::model::is_caught("packed_locks_exclude_too", "L6"));
}
