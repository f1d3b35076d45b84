//! The checker must name each anomaly, and accept histories without any.

use sys::entropy::SplitMix;

use crate::{Anomaly, End, Level, Op, Reading, Transaction, check};

fn append(key: u32, element: u32) -> Op {
    Op::Append { key, element, undone: false }
}

fn read(key: u32, elements: &[u32]) -> Op {
    Op::Read { key, elements: elements.to_vec(), reading: Reading::Plain }
}

fn lock(key: u32, elements: &[u32]) -> Op {
    Op::Read { key, elements: elements.to_vec(), reading: Reading::Locking }
}

/// All concurrent, so that the clock orders nothing.
fn at_once(transactions: &[&[Op]]) -> Vec<Transaction> {
    let one =
        |ops: &&[Op]| Transaction { ops: ops.to_vec(), end: End::Committed, began: 0, ended: 10 };
    transactions.iter().map(one).collect()
}

fn found(history: &[Transaction], level: Level) -> Vec<Anomaly> {
    let mut kinds: Vec<_> =
        check(history, level).forbidden.into_iter().map(|finding| finding.anomaly).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

const LEVELS: [Level; 3] = [Level::ReadCommitted, Level::RepeatableRead, Level::Serializable];
const SNAPSHOT: Level = Level::RepeatableRead;

#[test]
fn g0_dirty_write() {
    let history = at_once(&[
        &[append(1, 1), append(2, 1)],
        &[append(1, 2), append(2, 2)],
        &[read(1, &[1, 2]), read(2, &[2, 1])],
    ]);
    for level in LEVELS {
        assert!(found(&history, level).contains(&Anomaly::DirtyWrite), "{level:?}");
    }
}

#[test]
fn g1a_aborted_read() {
    let mut history = at_once(&[&[append(1, 1)], &[read(1, &[1])]]);
    history[0].end = End::Aborted;
    for level in LEVELS {
        assert_eq!(found(&history, level), [Anomaly::AbortedRead], "{level:?}");
    }
    let undone = Op::Append { key: 1, element: 1, undone: true };
    let history = at_once(&[&[undone, append(1, 2)], &[read(1, &[1, 2])]]);
    assert_eq!(found(&history, SNAPSHOT), [Anomaly::AbortedRead], "back to a savepoint");
}

#[test]
fn g1b_intermediate_read() {
    let history = at_once(&[&[append(1, 1), append(1, 2)], &[read(1, &[1])], &[read(1, &[1, 2])]]);
    for level in LEVELS {
        assert!(found(&history, level).contains(&Anomaly::IntermediateRead), "{level:?}");
    }
}

#[test]
fn g1c_circular_information() {
    let history = at_once(&[&[append(1, 1), read(2, &[1])], &[append(2, 1), read(1, &[1])]]);
    for level in LEVELS {
        assert_eq!(found(&history, level), [Anomaly::CircularInformation], "{level:?}");
    }
}

#[test]
fn g_single_of_a_reader() {
    // The reader sees the second transaction's append, not the first's before it: read skew.
    let history = at_once(&[&[append(1, 1), append(2, 1)], &[read(1, &[]), read(2, &[1])]]);
    let mut longer = history.clone();
    longer.extend(at_once(&[&[read(1, &[1])]]));
    for history in [&history, &longer] {
        assert_eq!(found(history, Level::ReadCommitted), []);
        assert_eq!(found(history, Level::Serializable), [Anomaly::GSingle]);
        assert_eq!(found(history, SNAPSHOT), [Anomaly::GSingle]);
    }
    let locking = at_once(&[&[append(1, 1), append(2, 1)], &[lock(1, &[]), lock(2, &[1])]]);
    assert_eq!(found(&locking, SNAPSHOT), [Anomaly::GSingle], "locks are kept to the end");
}

#[test]
fn a_lost_update_is_allowed_by_a_snapshot_and_by_nothing_else() {
    // Both read the empty list, both append (P4).
    let both = |reading: fn(u32, &[u32]) -> Op| {
        at_once(&[
            &[reading(1, &[]), append(1, 1)],
            &[reading(1, &[]), append(1, 2)],
            &[read(1, &[1, 2])],
        ])
    };
    assert_eq!(found(&both(read), SNAPSHOT), []);
    assert!(check(&both(read), SNAPSHOT).permitted > 0);
    assert_eq!(found(&both(read), Level::Serializable), [Anomaly::GSingle]);
    assert_eq!(found(&both(lock), SNAPSHOT), [Anomaly::GSingle]);
}

#[test]
fn g2_item_write_skew() {
    let skew = |reading: fn(u32, &[u32]) -> Op| {
        at_once(&[
            &[reading(1, &[]), append(2, 1)],
            &[reading(2, &[]), append(1, 1)],
            &[read(1, &[1]), read(2, &[1])],
        ])
    };
    assert_eq!(found(&skew(read), SNAPSHOT), []);
    assert!(check(&skew(read), SNAPSHOT).permitted > 0);
    assert_eq!(found(&skew(read), Level::Serializable), [Anomaly::G2]);
    assert_eq!(found(&skew(lock), SNAPSHOT), [Anomaly::G2]);
}

#[test]
fn a_fork_of_snapshots() {
    // Two writers, two readers that see them in different order.
    let history = at_once(&[
        &[append(1, 1)],
        &[append(2, 1)],
        &[read(1, &[1]), read(2, &[])],
        &[read(1, &[]), read(2, &[1])],
    ]);
    assert_eq!(found(&history, Level::ReadCommitted), []);
    assert_eq!(found(&history, SNAPSHOT), [Anomaly::G2]);
    assert_eq!(found(&history, Level::Serializable), [Anomaly::G2]);
}

#[test]
fn an_acknowledged_append_that_is_gone() {
    let mut history = at_once(&[&[append(1, 1)], &[read(1, &[])]]);
    assert_eq!(found(&history, SNAPSHOT), []);
    (history[1].began, history[1].ended) = (20, 30);
    for level in [SNAPSHOT, Level::Serializable] {
        assert_eq!(found(&history, level), [Anomaly::Time], "{level:?}");
    }
    history[0].end = End::Unknown;
    assert_eq!(found(&history, SNAPSHOT), [], "perhaps it never committed");
}

#[test]
fn lists_that_do_not_fit() {
    let history =
        at_once(&[&[append(1, 1)], &[append(1, 2)], &[read(1, &[1, 2])], &[read(1, &[2])]]);
    assert!(found(&history, Level::ReadCommitted).contains(&Anomaly::BrokenList));
    let history = at_once(&[&[read(1, &[7])]]);
    assert_eq!(found(&history, Level::ReadCommitted), [Anomaly::BrokenList]);
}

#[test]
fn transactions_that_contradict_themselves() {
    let others: &[Op] = &[append(1, 9)];
    let ops: [&[Op]; 4] = [
        &[append(1, 1), read(1, &[])],
        &[read(1, &[]), read(1, &[9])],
        &[lock(1, &[]), lock(1, &[9])],
        &[lock(1, &[]), append(1, 1), read(1, &[9, 1])],
    ];
    for ops in ops {
        let history = at_once(&[ops, others]);
        assert!(found(&history, SNAPSHOT).contains(&Anomaly::Internal), "{ops:?}");
    }
    let missing = at_once(&[&[lock(1, &[]), lock(1, &[9])], others]);
    assert_eq!(found(&missing, Level::ReadCommitted), [], "no row, no gap: nothing was locked");
    let gone = at_once(&[&[lock(1, &[9]), lock(1, &[])], others]);
    assert_eq!(found(&gone, Level::ReadCommitted), [Anomaly::Internal]);
    let back = Op::Append { key: 1, element: 1, undone: true };
    let history = at_once(&[&[read(1, &[]), back, read(1, &[])], others]);
    assert_eq!(found(&history, SNAPSHOT), [], "taken back, it is the snapshot's again");
    let steady = at_once(&[&[read(1, &[]), append(1, 1), read(1, &[9, 1])], others]);
    assert_eq!(found(&steady, SNAPSHOT), [], "an own row is read as it is now");
}

/// Transactions one after another on real lists; `skew` reads from a state that many transactions ago.
fn serial(random: &mut SplitMix, skew: usize) -> Vec<Transaction> {
    let mut states = vec![vec![Vec::new(); 4]];
    let mut history = Vec::new();
    for number in 0..200 {
        let mut state = states[states.len() - 1].clone();
        let from = states.len() - 1 - random.below(skew as u64 + 1).min(number) as usize;
        let (mut ops, mut own) = (Vec::new(), [false; 4]);
        for _ in 0..1 + random.below(4) {
            let key = random.below(4) as usize;
            if random.below(2) == 0 {
                let element = 1 + ops.len() as u32 + number as u32 * 10;
                state[key].push(element);
                own[key] = true;
                ops.push(append(key as u32, element));
            } else {
                let seen = if own[key] { &state[key] } else { &states[from][key] };
                ops.push(read(key as u32, seen));
            }
        }
        let (began, ended) = match skew {
            0 => (number * 10, number * 10 + 5),
            _ => (0, 5),
        };
        history.push(Transaction { ops, end: End::Committed, began, ended });
        states.push(state);
    }
    history
}

#[test]
fn serial_histories_are_serializable_and_old_snapshots_are_snapshots() {
    for seed in 0..20 {
        let mut random = SplitMix::new(seed);
        let history = serial(&mut random, 0);
        for level in LEVELS {
            assert_eq!(found(&history, level), [], "seed {seed} {level:?}");
        }
        let history = serial(&mut random, 5);
        assert_eq!(found(&history, SNAPSHOT), [], "seed {seed}");
        assert!(!found(&history, Level::Serializable).is_empty(), "seed {seed}");
    }
}

#[test]
fn a_read_that_misses_one_element_is_found() {
    let mut caught = 0;
    for seed in 0..40 {
        let mut random = SplitMix::new(seed);
        let mut history = serial(&mut random, 0);
        let at = random.below(history.len() as u64) as usize;
        let shortened = history[at].ops.iter_mut().any(|op| match op {
            Op::Read { elements, .. } => elements.pop().is_some(),
            Op::Append { .. } => false,
        });
        if shortened {
            caught += 1;
            assert!(!found(&history, SNAPSHOT).is_empty(), "seed {seed}");
        }
    }
    assert!(caught > 10);
}
