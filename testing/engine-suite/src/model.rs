//! Random statements against a `BTreeMap` that does the same, with snapshots, savepoints and rollbacks.

use std::collections::BTreeMap;

use engine_api::{EngineError, IndexId, KeyRange, Transaction};
use types::Value;

use crate::harness::{BY_B, BY_C, Bench, Row, commit};
use crate::{Check, Factory};

pub(crate) const CHECKS: &[Check] = &[("random statements against a model", random_statements)];

type Model = BTreeMap<i64, (Option<i64>, String)>;

/// A small generator, so that a printed seed repeats a failure anywhere.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (word ^ (word >> 31)) % limit
    }
}

fn random_statements(factory: Factory<'_>) {
    for seed in [1, 2, 3, 0xC0FFEE] {
        println!("engine-suite: model seed {seed}");
        one_run(factory, seed);
    }
}

fn one_run(factory: Factory<'_>, seed: u64) {
    let bench = Bench::new(factory);
    let has_snapshots = bench.engine.capabilities().snapshots;
    let mut random = Random(seed);
    let mut model = Model::new();
    let mut readers: Vec<(Model, Box<dyn Transaction>)> = Vec::new();
    for round in 0..120 {
        if random.below(8) == 0 && has_snapshots {
            let mut reader = bench.begin();
            reader.take_snapshot();
            readers.push((model.clone(), reader));
        }
        one_transaction(&bench, &mut random, &mut model);
        if random.below(6) == 0 && !readers.is_empty() {
            let at = random.below(readers.len() as u64) as usize;
            let (expected, mut reader) = readers.swap_remove(at);
            compare(&bench, &mut *reader, &expected, round);
            reader.rollback().expect("rollback");
        }
    }
    let mut txn = bench.begin();
    compare(&bench, &mut *txn, &model, 1000);
    for (expected, mut reader) in readers {
        compare(&bench, &mut *reader, &expected, 1001);
    }
    bench.check();
}

fn one_transaction(bench: &Bench, random: &mut Random, model: &mut Model) {
    let mut txn = bench.begin();
    let mut state = model.clone();
    let mut savepoint = (txn.savepoint(), state.clone());
    for _ in 0..random.below(12) {
        match random.below(10) {
            0 => savepoint = (txn.savepoint(), state.clone()),
            1 => {
                txn.rollback_to(savepoint.0).expect("rollback_to");
                state = savepoint.1.clone();
            }
            _ => one_change(bench, &mut *txn, random, &mut state),
        }
    }
    compare(bench, &mut *txn, &state, 0);
    if random.below(3) == 0 {
        txn.rollback().expect("rollback");
    } else {
        commit(txn);
        *model = state;
    }
}

fn one_change(bench: &Bench, txn: &mut dyn Transaction, random: &mut Random, state: &mut Model) {
    let key = random.below(30) as i64;
    let new_key = if random.below(3) == 0 { random.below(30) as i64 } else { key };
    let b = (random.below(4) > 0).then(|| random.below(40) as i64);
    let c = ["", "a", "ab", "b", "\u{e9}", "a longer text that does not fit inline"]
        [random.below(6) as usize]
        .to_owned();
    let kind = random.below(3);
    let own = (kind == 1).then_some(key);
    let taken_b =
        b.is_some() && state.iter().any(|(other, (value, _))| Some(*other) != own && *value == b);
    let outcome = match kind {
        0 => bench.insert(txn, key, b, &c),
        1 => bench.update(txn, key, (new_key, b, c.clone())),
        _ => bench.delete(txn, key),
    };
    let exists = state.contains_key(&key);
    let taken = match kind {
        0 => exists || taken_b,
        1 => (new_key != key && state.contains_key(&new_key)) || taken_b,
        _ => false,
    };
    match outcome {
        Ok(()) => {
            assert!(kind == 0 || exists, "row {key} was not there");
            assert!(!taken, "a key was taken twice");
            state.remove(&key);
            match kind {
                0 => drop(state.insert(key, (b, c))),
                1 => drop(state.insert(new_key, (b, c))),
                _ => {}
            }
        }
        Err(EngineError::RowNotFound) => assert!(kind != 0 && !exists, "row {key} is there"),
        Err(EngineError::DuplicateKey { .. }) => assert!(taken, "no key is taken"),
        Err(other) => panic!("unexpected {other:?}"),
    }
}

fn compare(bench: &Bench, txn: &mut dyn Transaction, model: &Model, round: usize) {
    let expected: Vec<Row> = model.iter().map(|(a, (b, c))| (*a, *b, c.clone())).collect();
    assert_eq!(bench.all(txn), expected, "round {round}");
    let mut by_b = expected.clone();
    by_b.sort_by_key(|row| (row.1, row.0));
    let scanned = bench.scan(txn, &bench.spec(BY_B, KeyRange::ALL)).expect("scan");
    assert_eq!(scanned, by_b, "by b, round {round}");
    let mut by_c = expected;
    by_c.sort_by_key(|row| (row.2.clone(), row.0));
    let scanned = bench.scan(txn, &bench.spec(BY_C, KeyRange::ALL)).expect("scan");
    assert_eq!(scanned, by_c, "by c, round {round}");
    for (a, (b, _)) in model.iter().take(3) {
        assert_eq!(bench.get(txn, *a).and_then(|row| row.1), *b);
    }
    let _ = (IndexId::CLUSTERED, Value::Null);
}
