//! The changes of other transactions that each isolation level makes visible.

use engine_api::{Capabilities, IndexId, IsolationLevel, KeyRange, RowLock, WaitPolicy};

use crate::harness::{BY_C, Bench, commit, row};
use crate::{Asked, Factory};

pub(crate) const CHECKS: &[Asked] = &[
    ("dirty reads", dirty_reads, snapshots),
    ("non-repeatable reads", repeatable, snapshots),
    ("no dirty reads at any level", no_dirty_reads, no_snapshots),
    ("reads see what is committed", committed_reads, no_snapshots),
    ("snapshot holds for rows that come, go and move", snapshot_holds, snapshots),
    ("WITH CONSISTENT SNAPSHOT", take_snapshot, snapshots),
    ("locking reads see the newest committed version", current_reads, snapshots),
    ("lost updates are prevented by current reads", write_after_snapshot, |_| true),
    ("long history", long_history, snapshots),
];

fn snapshots(can: Capabilities) -> bool {
    can.snapshots
}

fn no_snapshots(can: Capabilities) -> bool {
    !can.snapshots
}

use IsolationLevel::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};

fn dirty_reads(factory: Factory<'_>) {
    for level in [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable] {
        let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
        let mut writer = bench.begin();
        bench.update(&mut *writer, 1, row(1, Some(11), "y")).expect("update");
        bench.insert(&mut *writer, 2, None, "x").expect("insert");
        let mut reader = bench.begin_at(level);
        let dirty = level == ReadUncommitted;
        let b = if dirty { 11 } else { 10 };
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(b), "{level:?}");
        assert_eq!(bench.all(&mut *reader).len(), if dirty { 2 } else { 1 }, "{level:?}");
        writer.rollback().expect("rollback");
        reader.begin_statement();
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(10), "{level:?}");
    }
}

/// Every level of an engine without snapshots hides what is not committed.
fn no_dirty_reads(factory: Factory<'_>) {
    for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
        let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
        let mut writer = bench.begin();
        bench.update(&mut *writer, 1, row(1, Some(11), "y")).expect("update");
        bench.insert(&mut *writer, 2, None, "x").expect("insert");
        let mut reader = bench.begin_at(level);
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(10), "{level:?}");
        assert_eq!(bench.all(&mut *reader).len(), 1, "{level:?}");
        let by_c = bench.scan(&mut *reader, &bench.spec(BY_C, KeyRange::ALL)).expect("scan");
        assert_eq!(by_c, [row(1, Some(10), "x")], "{level:?}, by index");
        writer.rollback().expect("rollback");
        assert_eq!(bench.all(&mut *reader).len(), 1, "{level:?}");
    }
}

fn committed_reads(factory: Factory<'_>) {
    for level in [ReadUncommitted, ReadCommitted, RepeatableRead] {
        let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
        let mut reader = bench.begin_at(level);
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(10));
        let mut writer = bench.begin();
        bench.update(&mut *writer, 1, row(1, Some(11), "y")).expect("update");
        bench.insert(&mut *writer, 2, None, "x").expect("insert");
        commit(writer);
        reader.begin_statement();
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(11), "{level:?}");
        assert_eq!(bench.all(&mut *reader).len(), 2, "{level:?}");
        commit(reader);
    }
}

fn repeatable(factory: Factory<'_>) {
    for level in [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable] {
        let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
        let mut reader = bench.begin_at(level);
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(10));
        let mut writer = bench.begin();
        bench.update(&mut *writer, 1, row(1, Some(11), "y")).expect("update");
        bench.insert(&mut *writer, 2, None, "x").expect("insert");
        commit(writer);
        reader.begin_statement();
        let holds = matches!(level, RepeatableRead | Serializable);
        let b = if holds { 10 } else { 11 };
        assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(b), "{level:?}");
        assert_eq!(bench.all(&mut *reader).len(), if holds { 1 } else { 2 }, "{level:?}");
        commit(reader);
    }
}

fn snapshot_holds(factory: Factory<'_>) {
    let rows = [(1, Some(1), "a"), (2, Some(2), "b"), (3, Some(3), "c")];
    let bench = Bench::with_rows(factory, &rows);
    let mut reader = bench.begin();
    let before = bench.all(&mut *reader);
    for round in 0..5 {
        let mut writer = bench.begin();
        bench.delete(&mut *writer, 1).expect("delete");
        bench.update(&mut *writer, 2, row(2, Some(20 + round), "zz")).expect("update");
        bench.update(&mut *writer, 3, row(30 + round, Some(3), "c")).expect("move");
        commit(writer);
        let mut writer = bench.begin();
        bench.insert(&mut *writer, 1, Some(100 + round), "new").expect("insert");
        bench.update(&mut *writer, 30 + round, row(3, Some(3), "c")).expect("move back");
        commit(writer);
        assert_eq!(bench.all(&mut *reader), before, "clustered, round {round}");
        let by_c = bench.scan(&mut *reader, &bench.spec(BY_C, KeyRange::ALL)).expect("scan");
        assert_eq!(by_c, before, "secondary, round {round}");
    }
    commit(reader);
    assert_eq!(bench.keys(), [1, 2, 3]);
    bench.check();
}

fn take_snapshot(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, None, "x")]);
    let (mut early, mut late) = (bench.begin(), bench.begin());
    early.take_snapshot();
    let mut writer = bench.begin();
    bench.insert(&mut *writer, 2, None, "x").expect("insert");
    commit(writer);
    assert_eq!(bench.all(&mut *early).len(), 1, "taken at once");
    assert_eq!(bench.all(&mut *late).len(), 2, "taken at the first read");
}

fn current_reads(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
    let mut reader = bench.begin();
    assert_eq!(bench.all(&mut *reader).len(), 1);
    let mut writer = bench.begin();
    bench.update(&mut *writer, 1, row(1, Some(11), "x")).expect("update");
    bench.insert(&mut *writer, 2, None, "x").expect("insert");
    commit(writer);
    let locked = bench.get_locked(&mut *reader, 1, RowLock::Exclusive, WaitPolicy::Wait);
    assert_eq!(locked.expect("get").and_then(|row| row.1), Some(11), "current read");
    let mut spec = bench.spec(IndexId::CLUSTERED, KeyRange::ALL);
    spec.lock = RowLock::Shared;
    assert_eq!(bench.scan(&mut *reader, &spec).expect("scan").len(), 2, "current scan");
    assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(10), "snapshot read");
}

fn write_after_snapshot(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(10), "x")]);
    let mut first = bench.begin();
    assert_eq!(bench.get(&mut *first, 1).and_then(|row| row.1), Some(10));
    let mut second = bench.begin();
    bench.update(&mut *second, 1, row(1, Some(11), "x")).expect("update");
    commit(second);
    // Not aborted for being newer than the snapshot: the reference is lock-based.
    bench.update(&mut *first, 1, row(1, Some(12), "x")).expect("update");
    assert_eq!(bench.get(&mut *first, 1).and_then(|row| row.1), Some(12), "own version");
    commit(first);
    let mut txn = bench.begin();
    assert_eq!(bench.get(&mut *txn, 1).and_then(|row| row.1), Some(12));
}

fn long_history(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(0), "x")]);
    let mut readers = Vec::new();
    for b in 1..200 {
        if b % 40 == 0 {
            let mut reader = bench.begin();
            assert_eq!(bench.get(&mut *reader, 1).and_then(|row| row.1), Some(b - 1));
            readers.push((b - 1, reader));
        }
        let mut writer = bench.begin();
        bench.update(&mut *writer, 1, row(1, Some(b), "x")).expect("update");
        commit(writer);
    }
    for (b, reader) in &mut readers {
        assert_eq!(bench.get(&mut **reader, 1).and_then(|row| row.1), Some(*b));
        let rows = bench.scan(&mut **reader, &bench.spec(BY_C, KeyRange::ALL)).expect("scan");
        assert_eq!(rows, [row(1, Some(*b), "x")]);
    }
    for (_, reader) in readers {
        commit(reader);
    }
    bench.check();
}
