//! Compatibility, queues, upgrades, deadlocks, spans.

use std::time::Duration;

use sys::sync::Arc;

use crate::{LockTable, Mode, Patience, WaitError};

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
    assert_eq!(table.wait_end(&b, blockers, &SHORT), Err(WaitError::Timeout));
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
