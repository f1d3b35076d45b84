//! Compatibility, queues, upgrades, deadlocks, spans.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::time::Duration;

use sys::sync::Arc;

use crate::{LockTable, Mode, Owner, Patience, Place, Tag, WaitError, lock_name};

const NEVER: &dyn Fn() -> bool = &|| false;
const SHORT: Patience<'static> =
    Patience { timeout: Duration::from_millis(10), is_cancelled: NEVER };
const LONG: Patience<'static> = Patience { timeout: Duration::from_secs(30), is_cancelled: NEVER };

#[test]
fn modes_conflict() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    assert!(table.try_lock(&a, b"k", Mode::Shared) && table.try_lock(&b, b"k", Mode::Shared));
    assert!(!table.try_lock(&a, b"k", Mode::Exclusive));
    assert_eq!(table.wait_lock(&a, b"k", Mode::Exclusive, &SHORT), Err(WaitError::Timeout));
    table.release_all(&b);
    assert!(table.try_lock(&a, b"k", Mode::Exclusive));
    assert!(table.is_locked_by_other(None, b"k") && !table.is_locked_by_other(Some(&a), b"k"));
    table.release_all(&a);
    assert_eq!(table.events().entries, 0);
}

#[test]
fn a_cycle_has_one_victim() {
    let table = Arc::new(LockTable::new());
    let (a, b) = (table.new_owner(), table.new_owner());
    assert!(table.try_lock(&a, b"1", Mode::Exclusive) && table.try_lock(&b, b"2", Mode::Exclusive));
    a.add_weight();
    let other = {
        let (table, b) = (table.clone(), b.clone());
        std::thread::spawn(move || {
            let outcome = table.wait_lock(&b, b"1", Mode::Exclusive, &LONG);
            table.release_all(&b);
            outcome
        })
    };
    assert_eq!(table.wait_lock(&a, b"2", Mode::Exclusive, &LONG), Ok(()));
    assert_eq!(other.join().unwrap(), Err(WaitError::Deadlock));
    table.release_all(&a);
    assert_eq!(table.events().deadlocks, 1);
}

/// Waits on a separate thread until it is in the queue.
fn queue(table: &Arc<LockTable>, owner: &Arc<Owner>, name: &'static [u8], mode: Mode) -> Waiter {
    let waits = table.events().waits;
    let waiter = {
        let (table, owner) = (table.clone(), owner.clone());
        std::thread::spawn(move || table.wait_lock(&owner, name, mode, &LONG))
    };
    while table.events().waits == waits {
        std::thread::yield_now();
    }
    waiter
}

type Waiter = std::thread::JoinHandle<Result<(), WaitError>>;

#[test]
fn a_cycle_is_found_through_one_who_passed_the_queue() {
    let table = Arc::new(LockTable::new());
    let [a, b, c, d] = std::array::from_fn(|_| table.new_owner());
    assert!(table.try_lock(&d, b"2", Mode::Exclusive));
    assert!(table.try_lock(&a, b"1", Mode::Shared) && table.try_lock(&c, b"1", Mode::Shared));
    let _between = queue(&table, &b, b"1", Mode::Exclusive);
    let last = queue(&table, &d, b"1", Mode::Shared);
    let upgrade = queue(&table, &c, b"1", Mode::Exclusive);
    // The one between leaves; the last now waits for a transaction that was not before it when it came.
    b.resolve_wait(crate::owner::WaitState::Victim);
    table.release_all(&a);
    assert_eq!(upgrade.join().unwrap(), Ok(()));
    c.add_weight();
    assert_eq!(table.wait_lock(&c, b"2", Mode::Exclusive, &SHORT), Err(WaitError::Timeout));
    assert_eq!(last.join().unwrap(), Err(WaitError::Deadlock));
    table.release_all(&d);
}

#[test]
fn a_cycle_is_found_beside_one_who_is_leaving() {
    let table = Arc::new(LockTable::new());
    let [a, b, c, d] = std::array::from_fn(|_| table.new_owner());
    assert!(table.try_lock(&d, b"2", Mode::Exclusive));
    assert!(table.try_lock(&a, b"1", Mode::Shared) && table.try_lock(&c, b"1", Mode::Shared));
    let leaving = queue(&table, &b, b"1", Mode::Exclusive);
    let last = queue(&table, &d, b"1", Mode::Shared);
    a.add_weight();
    c.add_weight();
    // `b` is a victim already, but still in the queue.
    table.forget_wait(&b);
    let behind = queue(&table, &a, b"2", Mode::Shared);
    assert_eq!(table.wait_lock(&c, b"1", Mode::Exclusive, &SHORT), Err(WaitError::Timeout));
    assert_eq!(last.join().unwrap(), Err(WaitError::Deadlock));
    table.release_all(&d);
    assert_eq!(behind.join().unwrap(), Ok(()));
    b.resolve_wait(crate::owner::WaitState::Victim);
    assert_eq!(leaving.join().unwrap(), Err(WaitError::Deadlock));
}

#[test]
fn spans_block_others_until_the_end() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    table.lock_range(&a, 7, b"b", Some(b"d"));
    table.lock_range(&a, 7, b"c", Some(b"f"));
    for (key, blocked) in [("a", false), ("b", true), ("e", true), ("f", false)] {
        assert_eq!(!table.range_blockers(Some(&b), 7, key.as_bytes()).is_empty(), blocked, "{key}");
    }
    assert!(table.range_blockers(Some(&a), 7, b"c").is_empty());
    let blockers = table.range_blockers(Some(&b), 7, b"c");
    assert_eq!(table.wait_end(&b, &blockers, None, &SHORT), Err(WaitError::Timeout));
    table.release_all(&a);
    assert!(table.range_blockers(Some(&b), 7, b"c").is_empty());
}

#[test]
fn a_span_grows_at_both_ends() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    table.lock_range(&a, 7, b"m", Some(b"p"));
    // A backward scan moves the start, a forward one the end; a span apart stays apart.
    table.lock_range(&a, 7, b"k", Some(b"p"));
    table.lock_range(&a, 7, b"k", Some(b"r"));
    table.lock_range(&a, 7, b"x", None);
    for (key, blocked) in [("j", false), ("k", true), ("q", true), ("r", false), ("z", true)] {
        assert_eq!(!table.range_blockers(Some(&b), 7, key.as_bytes()).is_empty(), blocked, "{key}");
    }
}

fn name(id: u32) -> Vec<u8> {
    let mut name = Vec::new();
    crate::lock_name(3, &id.to_be_bytes(), &mut name);
    name
}

#[test]
fn packed_locks_are_locks() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    let empty = table.memory_bytes();
    let ids = (0..5000).map(|id| id * 2);
    ids.clone().for_each(|id| assert!(table.try_lock(&a, &name(id), Mode::Exclusive)));
    (1..9).step_by(2).for_each(|id| assert!(table.try_lock(&a, &name(id), Mode::Shared)));
    let before = table.memory_bytes() - empty;
    assert_eq!(table.pack(&a, 4, a.lock_count()), 4);
    assert_eq!((a.lock_count(), table.events().entries, table.events().packed), (4, 4, 5000));
    let after = table.memory_bytes() - empty;
    assert!(after * 20 < before, "{after} of {before}");
    for id in ids.clone() {
        assert!(!table.try_lock(&b, &name(id), Mode::Shared), "{id}");
        assert!(table.is_locked_by_other(Some(&b), &name(id)), "{id}");
        assert!(!table.is_locked_by_other(Some(&a), &name(id)), "{id}");
        assert!(table.try_lock(&a, &name(id), Mode::Exclusive), "{id}");
    }
    assert!(table.try_lock(&b, &name(9001), Mode::Exclusive));
    assert!(table.try_lock(&b, &name(7), Mode::Shared));
    assert_eq!(table.wait_lock(&b, &name(8), Mode::Shared, &SHORT), Err(WaitError::Timeout));
    table.release_all(&a);
    for id in ids {
        assert!(table.try_lock(&b, &name(id), Mode::Exclusive), "{id}");
    }
    table.release_all(&b);
    assert_eq!((table.events().entries, table.events().packed), (0, 0));
}

#[test]
fn shared_packed_locks_conflict_with_upgrades_only() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    for owner in [&a, &b] {
        assert!(table.try_lock(owner, &name(1), Mode::Shared));
        table.pack(owner, 0, 0);
    }
    assert_eq!((table.events().entries, table.events().packed), (0, 2));
    assert!(!table.try_lock(&a, &name(1), Mode::Exclusive));
    table.release_all(&b);
    assert!(table.try_lock(&a, &name(1), Mode::Exclusive));
    assert!(table.is_locked_by_other(Some(&b), &name(1)));
    table.release_all(&a);
    assert_eq!((table.events().entries, table.events().packed), (0, 0));
}

#[test]
fn the_place_of_a_statement_moves_with_the_names() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    let mode = |id| if id == 2 { Mode::Shared } else { Mode::Exclusive };
    (0..10).for_each(|id| assert!(table.try_lock(&a, &name(id), mode(id))));
    // A row that is shared is packed, with the other's lock left where it is.
    assert!(table.try_lock(&b, &name(2), Mode::Shared));
    let place = table.pack(&a, 4, 8);
    assert_eq!((place, a.lock_count(), table.events().entries), (2, 4, 5));
    assert!(!table.try_lock(&b, &name(2), Mode::Exclusive));
    table.release_early(&a, &name(7), place);
    table.release_early(&a, &name(9), place);
    assert!(table.is_locked_by_other(Some(&b), &name(7)));
    assert!(!table.is_locked_by_other(Some(&b), &name(9)));
    table.release_all(&a);
}

#[test]
fn very_many_spans_become_fewer() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    let key = |id: u32| id.to_be_bytes();
    (0..5000).for_each(|id| table.lock_range(&a, 7, &key(id * 10), Some(&key(id * 10 + 5))));
    (0..5000).for_each(|id| {
        assert!(!table.range_blockers(Some(&b), 7, &key(id * 10 + 4)).is_empty(), "{id}");
    });
    assert!(table.range_blockers(Some(&b), 7, &key(50_000)).is_empty());
    assert!(table.range_count() < 2048, "{}", table.range_count());
    table.release_all(&a);
    assert_eq!(table.range_count(), 0);
}

#[test]
fn a_lock_that_was_asked_for_twice_is_not_given_back_early() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    assert!(table.try_lock(&a, b"k", Mode::Exclusive) && table.try_lock(&a, b"k", Mode::Exclusive));
    table.release_early(&a, b"k", 0);
    assert!(table.is_locked_by_other(Some(&b), b"k"));
    table.release_all(&a);
    // Whoever waited asks again when it has the lock.
    assert_eq!(table.wait_lock(&a, b"k", Mode::Exclusive, &SHORT), Ok(()));
    assert!(table.try_lock(&a, b"k", Mode::Exclusive));
    table.release_early(&a, b"k", 0);
    assert!(!table.is_locked_by_other(Some(&b), b"k"));
    assert_eq!(table.events().entries, 0);
}

#[test]
fn the_lock_of_a_written_record_is_not_given_back_early() {
    let table = LockTable::new();
    let (a, b) = (table.new_owner(), table.new_owner());
    // Another wants a record that `a` has written; then a statement of `a` looks at it and does not want it.
    table.make_explicit(&a, b"k");
    table.release_early(&a, b"k", 0);
    assert!(table.is_locked_by_other(Some(&b), b"k"));
    // As when it was locked first, and written while another waited.
    assert!(table.try_lock(&a, b"l", Mode::Exclusive) && table.try_lock(&a, b"m", Mode::Shared));
    assert!(table.try_lock(&b, b"m", Mode::Shared));
    for name in [b"l", b"m"] {
        table.make_explicit(&a, name);
        table.forget_implied(&a, name);
        table.release_early(&a, name, 0);
        assert_eq!(table.is_locked_by_other(Some(&b), name), *name == *b"m");
    }
}

#[test]
fn a_report_shows_who_holds_what_and_who_waits_for_whom() {
    let table = Arc::new(LockTable::new());
    let a = table.new_owner_for(Tag { session: 7, kind: 2 });
    let [b, c] = std::array::from_fn(|_| table.new_owner());
    let packs = table.new_owner();
    (0..10).for_each(|id| assert!(table.try_lock(&packs, &name(id), Mode::Exclusive)));
    table.pack(&packs, 0, 0);
    a.add_weight();
    assert!(table.try_lock(&a, b"1", Mode::Shared));
    table.lock_range(&a, 9, b"b", Some(b"d"));
    let first = queue(&table, &b, b"1", Mode::Exclusive);
    let second = queue(&table, &c, b"1", Mode::Shared);
    let report = table.report(100, std::iter::empty());
    let owners: Vec<_> = report.owners.iter().map(|owner| owner.id).collect();
    assert_eq!(owners, [a.id, b.id, c.id, packs.id]);
    let one = &report.owners[0];
    assert_eq!((one.tag.session, one.records, one.spaces, one.weight), (7, 1, 1, 1));
    assert_eq!(one.waits_since, None);
    assert!(report.owners[1].waits_since.is_some());
    let mut waits: Vec<_> = report
        .waits
        .iter()
        .map(|(wants, has)| (report.locks[*wants].owner, report.locks[*has].owner))
        .collect();
    waits.sort_unstable();
    assert_eq!(waits, [(b.id, a.id), (c.id, b.id)]);
    let packed = report.locks.iter().find(|lock| lock.owner == packs.id).unwrap();
    assert_eq!(packed.place, Place::Packed { space: 3, count: 10 });
    assert!(table.report(1, std::iter::empty()).locks.len() < 6);
    // Behind the span.
    let blockers = table.range_blockers(Some(&packs), 9, b"c");
    let waits = table.events().waits;
    let inserter = {
        let (table, packs) = (table.clone(), packs.clone());
        let mut wanted = Vec::new();
        crate::lock_name(9, b"c", &mut wanted);
        std::thread::spawn(move || table.wait_end(&packs, &blockers, Some(&wanted), &LONG))
    };
    while table.events().waits == waits {
        std::thread::yield_now();
    }
    let report = loop {
        // It has counted its wait before it notes it.
        let report = table.report(100, std::iter::empty());
        if report.waits.len() == 3 {
            break report;
        }
    };
    let (wants, has) = report.waits[2];
    assert!(
        matches!(report.locks[wants].place, Place::Insert(_)) && report.locks[wants].is_waiting
    );
    assert!(matches!(report.locks[has].place, Place::Span { space: 9, .. }));
    table.release_all(&a);
    assert_eq!(inserter.join().unwrap(), Ok(()));
    assert_eq!(first.join().unwrap(), Ok(()));
    table.release_all(&b);
    assert_eq!(second.join().unwrap(), Ok(()));
}

#[test]
fn the_latest_deadlock_is_told_and_none_without_a_search() {
    let table = Arc::new(LockTable::new());
    let [a, b] = std::array::from_fn(|_| table.new_owner());
    assert!(table.try_lock(&a, b"1", Mode::Exclusive) && table.try_lock(&b, b"2", Mode::Exclusive));
    table.set_deadlock_detection(false);
    let other = queue(&table, &b, b"1", Mode::Exclusive);
    assert_eq!(table.wait_lock(&a, b"2", Mode::Exclusive, &SHORT), Err(WaitError::Timeout));
    assert_eq!(table.latest_deadlock(), None);
    table.set_deadlock_detection(true);
    a.add_weight();
    assert_eq!(table.wait_lock(&a, b"2", Mode::Exclusive, &SHORT), Err(WaitError::Timeout));
    assert_eq!(other.join().unwrap(), Err(WaitError::Deadlock));
    let deadlock = table.latest_deadlock().unwrap();
    let members: Vec<_> =
        deadlock.members.iter().map(|(owner, place)| (owner.id, place.clone())).collect();
    let record = |name: &[u8]| Place::Record(name.into());
    assert_eq!(members, [(a.id, record(b"2")), (b.id, record(b"1"))]);
    assert_eq!(deadlock.victim, b.id);
}

#[test]
fn shards_without_locks_keep_no_memory() {
    let table = LockTable::new();
    let owner = table.new_owner();
    let names = || (0..2000_u32).map(|key| key.to_be_bytes());
    let mut name = Vec::new();
    for key in names() {
        lock_name(7, &key, &mut name);
        assert!(table.try_lock(&owner, &name, Mode::Exclusive));
    }
    assert_eq!(table.events().entries, 2000);
    for key in names().take(1000) {
        lock_name(7, &key, &mut name);
        table.forget_implied(&owner, &name);
    }
    assert_eq!(table.events().entries, 1000);
    table.release_all(&owner);
    assert_eq!(table.events().entries, 0);
    assert!(table.shards.iter().all(|shard| shard.entries.lock().capacity() == 0));
}
