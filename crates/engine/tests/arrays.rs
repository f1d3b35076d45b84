//! Multi-valued indexes: after any changes, roll-backs, builds, purges and crashes a look-up of an element finds the rows whose array has it,
//! as a scan of all rows does, once each; snapshots find what they saw.
//!
//! `SQUALL_RUNS` sets the number of runs (default 20), `SQUALL_SEED` the first seed. A failure prints its seed.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::DurableEngine;
use engine_api::{
    Engine, EngineError, EngineResult, IndexDef, IndexId, KeyPart, KeyRange, ScanSpec, TableDef,
    TableId, Transaction,
};
use sys::entropy::SplitMix;
use sys::sim::SimDisk;
use types::key::encode_part;
use types::{DataType, JsonValue, RecordLayout, TypeKind, Value};

use support::builds::number;
use support::{begin, config, each_record, key, whole};

const TABLE: TableId = TableId(2000);
/// Elements of one array.
const ELEMENTS: IndexId = IndexId(1);
/// A number, then the elements.
const COMPOSITE: IndexId = IndexId(2);
/// It comes and goes.
const BUILT: IndexId = IndexId(3);
/// Different elements, except in large arrays.
const VALUES: u64 = 12;

/// The rows: a number and an array, or NULL.
type Rows = BTreeMap<i64, (i64, Option<Vec<i64>>)>;

fn types() -> [DataType; 3] {
    let number = DataType::bigint().with_nullable(false);
    [number.clone(), number, DataType::new(TypeKind::Json, u32::MAX, 0)]
}

fn elements() -> DataType {
    DataType::bigint().with_nullable(true)
}

fn array_index(id: IndexId, is_composite: bool, unique: bool) -> IndexDef {
    let part =
        |column, elements| KeyPart { column, prefix_length: None, descending: false, elements };
    let mut parts = vec![part(2, Some(elements()))];
    if is_composite {
        parts.insert(0, part(1, None));
    }
    IndexDef { id, name: format!("i{}", id.0), unique, parts }
}

fn table() -> TableDef {
    let mut def = support::table(TABLE, "test.t", &types(), &[(0, true, None)]);
    def.indexes.push(array_index(ELEMENTS, false, false));
    def.indexes.push(array_index(COMPOSITE, true, true));
    def
}

fn record(id: i64, number: i64, array: Option<&[i64]>) -> Vec<u8> {
    let array = array.map_or(Value::Null, |array| {
        JsonValue::Array(array.iter().map(|element| JsonValue::Int(*element)).collect()).to_value()
    });
    let mut out = Vec::new();
    RecordLayout::new(&types())
        .encode(&[Value::Int(id), Value::Int(number), array], &mut out)
        .unwrap();
    out
}

/// Sorted and distinct, as the writer of rows makes it.
fn random_array(random: &mut SplitMix) -> Option<Vec<i64>> {
    let count = match random.below(10) {
        0 => return None,
        1 => 0,
        2 => 100 + random.below(200),
        _ => 1 + random.below(5),
    };
    let span = if count > 20 { 5000 } else { VALUES };
    let mut array: Vec<i64> = (0..count).map(|_| random.below(span) as i64).collect();
    array.sort_unstable();
    array.dedup();
    Some(array)
}

fn ids(txn: &mut dyn Transaction, index: IndexId, prefix: Vec<u8>) -> EngineResult<Vec<i64>> {
    let spec = ScanSpec { range: KeyRange::prefix(prefix), ..whole(TABLE, index) };
    let (layout, mut found) = (RecordLayout::new(&types()), Vec::new());
    each_record(txn, &spec, 3, |record| {
        match layout.decode_column(record, 0) {
            Ok(Some(Value::Int(id))) => found.push(id),
            other => panic!("{other:?}"),
        };
    })?;
    found.sort_unstable();
    Ok(found)
}

/// Compares what the indexes find with the rows.
fn compare(txn: &mut dyn Transaction, rows: &Rows, has_built: bool, seed: u64) {
    for element in (0..VALUES as i64).map(Some).chain([None, Some(4711), Some(99)]) {
        let value = element.map_or(Value::Null, Value::Int);
        let has = |array: &Option<Vec<i64>>| match (element, array) {
            (Some(element), Some(array)) => array.contains(&element),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        let with = |wanted: Option<i64>| -> Vec<i64> {
            let all = rows.iter().filter(|(_, (number, array))| {
                has(array) && wanted.is_none_or(|wanted| wanted == *number)
            });
            all.map(|(id, _)| *id).collect()
        };
        let mut key = Vec::new();
        encode_part(&value, &elements(), None, false, &mut key);
        assert_eq!(ids(txn, ELEMENTS, key.clone()).unwrap(), with(None), "seed {seed} {element:?}");
        if has_built {
            assert_eq!(ids(txn, BUILT, key.clone()).unwrap(), with(None), "seed {seed}");
        }
        for number in 0..3 {
            let mut composite = Vec::new();
            encode_part(&Value::Int(number), &types()[1], None, false, &mut composite);
            composite.extend_from_slice(&key);
            let found = ids(txn, COMPOSITE, composite).unwrap();
            assert_eq!(found, with(Some(number)), "seed {seed} {number} {element:?}");
        }
    }
}

/// Whether the unique index allows a row beside the others.
fn is_allowed(rows: &Rows, id: i64, number: i64, array: &Option<Vec<i64>>) -> bool {
    let Some(array) = array else { return true };
    rows.iter().filter(|(other, _)| **other != id).all(|(_, (other, theirs))| {
        let shares =
            theirs.as_ref().is_some_and(|theirs| array.iter().any(|own| theirs.contains(own)));
        *other != number || !shares
    })
}

fn change(
    txn: &mut dyn Transaction,
    rows: &mut Rows,
    random: &mut SplitMix,
    seed: u64,
) -> EngineResult<()> {
    let id = random.below(30) as i64;
    let (number, array) = (random.below(3) as i64, random_array(random));
    let allowed = is_allowed(rows, id, number, &array);
    let exists = rows.contains_key(&id);
    let bytes = record(id, number, array.as_deref());
    let outcome = match random.below(4) {
        0 => txn.delete(TABLE, &key(id)).map(|()| drop(rows.remove(&id))),
        1 => txn.insert(TABLE, &bytes).map(|()| {
            assert!(allowed && !exists, "seed {seed}: a duplicate was inserted");
            rows.insert(id, (number, array));
        }),
        _ => txn.update(TABLE, &key(id), &bytes).map(|()| {
            assert!(allowed && exists, "seed {seed}: a duplicate was made");
            rows.insert(id, (number, array));
        }),
    };
    match outcome {
        Err(EngineError::DuplicateKey { index, .. }) => {
            let is_own = index == IndexId::CLUSTERED && exists;
            assert!(is_own || !allowed, "seed {seed}: no duplicate in {index:?}");
            Ok(())
        }
        Err(EngineError::RowNotFound) if !exists => Ok(()),
        other => other,
    }
}

/// A few transactions. `rows` are the committed ones, of which the last may be lost in a crash.
fn work(
    engine: &DurableEngine,
    rows: &mut Rows,
    has_built: &mut bool,
    random: &mut SplitMix,
    seed: u64,
) {
    let mut old: Option<(Box<dyn Transaction>, Rows)> = None;
    for _ in 0..25 {
        if random.below(6) == 0 {
            let mut reader = begin(engine);
            ids(&mut *reader, IndexId::CLUSTERED, Vec::new()).unwrap();
            old = Some((reader, rows.clone()));
        }
        let mut txn = begin(engine);
        let mut changed = rows.clone();
        let defers = random.below(2) == 0;
        if defers {
            txn.expect_changes().unwrap();
        }
        for _ in 0..1 + random.below(5) {
            let (savepoint, saved) = (txn.savepoint(), changed.clone());
            change(&mut *txn, &mut changed, random, seed).unwrap();
            if random.below(5) == 0 {
                txn.rollback_to(savepoint).unwrap();
                changed = saved;
            }
        }
        if defers {
            txn.changes_are_over().unwrap();
        }
        compare(&mut *txn, &changed, *has_built, seed);
        if random.below(4) == 0 {
            txn.rollback().unwrap();
        } else {
            txn.commit().unwrap().wait().unwrap();
            *rows = changed;
        }
        if let Some((reader, seen)) = &mut old {
            compare(&mut **reader, seen, false, seed);
        }
        match random.below(8) {
            0 => {
                old = None;
                engine.tick().unwrap();
            }
            1 => engine.checkpoint().unwrap(),
            2 => {
                old = None;
                build(engine, rows, has_built, random, seed);
            }
            _ => {}
        }
    }
}

/// Drops the index that comes and goes, or builds it beside a writer.
fn build(
    engine: &DurableEngine,
    rows: &mut Rows,
    has_built: &mut bool,
    random: &mut SplitMix,
    seed: u64,
) {
    let mut txn = begin(engine);
    if *has_built {
        txn.drop_index(TABLE, BUILT).unwrap();
    } else {
        assert!(txn.begin_indexes(TABLE, &[array_index(BUILT, false, false)]).unwrap());
        let beside = |rows: &mut Rows, random: &mut SplitMix| {
            for _ in 0..3 {
                let (mut writer, mut changed) = (begin(engine), rows.clone());
                for _ in 0..4 {
                    change(&mut *writer, &mut changed, random, seed).unwrap();
                }
                if random.below(3) == 0 {
                    writer.rollback().unwrap();
                } else {
                    writer.commit().unwrap().wait().unwrap();
                    *rows = changed;
                }
            }
        };
        beside(rows, random);
        txn.fill_indexes(TABLE).unwrap();
        beside(rows, random);
        txn.finish_indexes(TABLE).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    *has_built = !*has_built;
}

fn one_run(seed: u64) {
    let mut random = SplitMix::new(seed);
    let mut disk = SimDisk::new();
    let (mut rows, mut has_built) = (Rows::new(), false);
    for round in 0..3 {
        let engine = DurableEngine::open(Arc::new(disk.clone()), config(), |_| {}).unwrap();
        if round == 0 {
            let mut txn = begin(&engine);
            txn.create_table(&table()).unwrap();
            txn.commit().unwrap().wait().unwrap();
        }
        compare(&mut *begin(&engine), &rows, has_built, seed);
        // The losers of the crash are undone.
        engine.tick().unwrap();
        work(&engine, &mut rows, &mut has_built, &mut random, seed);
        // A loser of the crash.
        let mut loser = begin(&engine);
        let mut lost = rows.clone();
        for _ in 0..6 {
            change(&mut *loser, &mut lost, &mut random, seed).unwrap();
        }
        disk.crash_now();
        drop(loser);
        drop(engine);
        disk = disk.after_crash(seed);
    }
    let engine = DurableEngine::open(Arc::new(disk), config(), |_| {}).unwrap();
    compare(&mut *begin(&engine), &rows, has_built, seed);
    for _ in 0..3 {
        engine.tick().unwrap();
    }
    assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new(), "seed {seed}");
    compare(&mut *begin(&engine), &rows, has_built, seed);
}

#[test]
fn look_ups_of_elements_find_what_a_scan_finds() {
    let first = number("SQUALL_SEED", 1);
    for seed in first..first + number("SQUALL_RUNS", 20) {
        one_run(seed);
    }
}
