//! More tables than may stay open: some are closed, and open again as they were.

mod support;

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{Engine, TableId};
use support::numbers::{self, fields, record};
use support::{begin, config, key};
use sys::sim::SimDisk;

const TABLES: u64 = 200;
const POOL_BYTES: usize = 256 << 10;

fn id(number: u64) -> TableId {
    TableId(2000 + number)
}

fn open_bytes(engine: &DurableEngine) -> u64 {
    let statistics = engine.stats();
    statistics.iter().find(|known| known.name == "dictionary_bytes").unwrap().value.parse().unwrap()
}

#[test]
fn tables_are_closed_when_many_are_open() {
    let config = EngineConfig { pool_bytes: POOL_BYTES, ..config() };
    let engine = DurableEngine::open(Arc::new(SimDisk::new()), config, |_| {}).unwrap();
    let mut txn = begin(&engine);
    for number in 0..TABLES {
        let table = numbers::table::<2>(id(number), "test.t", &[(0, true), (1, false)]);
        txn.create_table(&table).unwrap();
        txn.insert(id(number), &record([1, number as i64])).unwrap();
        engine.auto_increment_set(id(number), 100 + number).unwrap();
    }
    txn.commit().unwrap().wait().unwrap();
    let all = open_bytes(&engine);
    engine.tick().unwrap();
    let few = open_bytes(&engine);
    assert!(few < all / 4, "{few} of {all}");
    let mut reader = begin(&engine);
    let mut row = engine_api::RowBuf::default();
    for round in 0..3 {
        for number in 0..TABLES {
            // Every second time one that stays in use.
            for number in [number, 7] {
                let (table, index) = (id(number), engine_api::IndexId::CLUSTERED);
                let (lock, wait) = (engine_api::RowLock::None, engine_api::WaitPolicy::Wait);
                reader.get(table, index, &key(1), lock, wait, &mut row).unwrap();
                assert_eq!(fields::<2>(&row.record), [1, number as i64], "round {round}");
            }
        }
    }
    assert!(open_bytes(&engine) < all / 4, "{} of {all}", open_bytes(&engine));
    for number in 0..TABLES {
        assert_eq!(engine.auto_increment_next(id(number)).unwrap(), 100 + number);
    }
}
