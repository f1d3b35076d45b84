//! Older versions of rows are rebuilt from the newest one by their differences (E22).

mod support;

use std::sync::Arc;

use engine::{DurableEngine, EngineConfig};
use engine_api::{CancelToken, Engine, IndexId, TableId, Transaction};
use support::texts::{self, Rows, record};
use support::{begin, config, key};
use sys::entropy::SplitMix;
use sys::sim::SimDisk;

const TABLE: TableId = TableId(2000);
const ROWS: i64 = 12;

fn open(disk: &SimDisk, config: EngineConfig) -> DurableEngine {
    DurableEngine::open(Arc::new(disk.clone()), config, |_| {}).unwrap()
}

fn create(engine: &DurableEngine) {
    let mut txn = begin(engine);
    txn.create_table(&texts::table(TABLE, "test.t", false)).unwrap();
    txn.commit().unwrap().wait().unwrap();
}

/// Another text, mostly of the same length or nearly; now and then one that goes out of line.
fn changed(text: &[u8], random: &mut SplitMix) -> Vec<u8> {
    let mut text = text.to_vec();
    match random.below(8) {
        0 => text.truncate(random.below(40) as usize),
        1 => text.resize(random.below(700) as usize, b'x'),
        2 | 3 => text.insert(0, b'a' + random.below(26) as u8),
        _ => {
            for _ in 0..random.below(4) {
                if let Some(byte) = text.get_mut(random.below(30) as usize) {
                    *byte = b'a' + random.below(26) as u8;
                }
            }
        }
    }
    text
}

fn change(txn: &mut dyn Transaction, rows: &mut Rows, random: &mut SplitMix) {
    let id = random.below(ROWS as u64) as i64;
    let Some((number, text)) = rows.remove(&id) else {
        let row = (None, b"new".to_vec());
        txn.insert(TABLE, &record(id, row.0, &row.1)).unwrap();
        rows.insert(id, row);
        return;
    };
    if random.below(12) == 0 {
        return txn.delete(TABLE, &key(id)).unwrap();
    }
    let number = match random.below(3) {
        0 => Some(random.below(5) as i64),
        1 => None,
        _ => number,
    };
    let row = (number, changed(&text, random));
    txn.update(TABLE, &key(id), &record(id, row.0, &row.1)).unwrap();
    rows.insert(id, row);
}

fn seen(txn: &mut dyn Transaction) -> Rows {
    let index = |number| IndexId(number);
    let rows = texts::rows(txn, TABLE, IndexId::CLUSTERED).unwrap();
    for number in [1, 2] {
        assert_eq!(texts::rows(txn, TABLE, index(number)).unwrap(), rows);
    }
    rows
}

#[test]
fn every_snapshot_keeps_seeing_its_own_versions() {
    for seed in 0..12 {
        let (disk, mut random) = (SimDisk::new(), SplitMix::new(seed));
        let (mut rows, mut readers) = (Rows::new(), Vec::new());
        let engine = open(&disk, config());
        create(&engine);
        for _ in 0..30 {
            let (mut writer, before) = (begin(&engine), rows.clone());
            (0..random.below(6)).for_each(|_| change(&mut *writer, &mut rows, &mut random));
            let (savepoint, kept) = (writer.savepoint(), rows.clone());
            (0..random.below(6)).for_each(|_| change(&mut *writer, &mut rows, &mut random));
            if random.below(2) == 0 {
                writer.rollback_to(savepoint).unwrap();
                rows = kept;
            }
            assert_eq!(seen(&mut *writer), rows, "seed {seed}");
            match random.below(4) {
                0 => {
                    writer.rollback().unwrap();
                    rows = before;
                }
                _ => writer.commit().unwrap().wait().unwrap(),
            }
            let mut reader = begin(&engine);
            assert_eq!(seen(&mut *reader), rows, "seed {seed}");
            readers.push((reader, rows.clone()));
            if random.below(3) == 0 {
                readers.swap_remove(random.below(readers.len() as u64) as usize);
            }
            engine.tick().unwrap();
        }
        for (reader, rows) in &mut readers {
            assert_eq!(seen(&mut **reader), *rows, "seed {seed}");
        }
        drop(readers);
        engine.tick().unwrap();
        assert_eq!(engine.unpurged(TABLE).unwrap(), 0, "seed {seed}");
        assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
        // A transaction that a crash ends.
        let mut loser = begin(&engine);
        let mut lost = rows.clone();
        (0..20).for_each(|_| change(&mut *loser, &mut lost, &mut random));
        engine.checkpoint().unwrap();
        let engine = open(&disk.after_crash(seed), config());
        engine.tick().unwrap();
        assert_eq!(seen(&mut *begin(&engine)), rows, "seed {seed}");
        assert_eq!(engine.check_table(TABLE).unwrap(), Vec::<String>::new());
    }
}

#[test]
fn undo_of_an_update_holds_what_changed() {
    const TEXT: [u8; 180] = [b'x'; 180];
    let engine = open(&SimDisk::new(), EngineConfig { undo_memory_bytes: 1 << 20, ..config() });
    create(&engine);
    let undo_bytes = || {
        let all = engine.stats();
        let found = all.iter().find(|stat| stat.name == "undo_bytes").unwrap();
        found.value.parse::<u64>().unwrap()
    };
    let mut txn = begin(&engine);
    (0..ROWS).for_each(|id| txn.insert(TABLE, &record(id, None, &TEXT)).unwrap());
    txn.commit().unwrap().wait().unwrap();
    engine.tick().unwrap();
    let mut txn = begin(&engine);
    // An indexed column, and one byte of a text after the index's prefix.
    let mut text = TEXT;
    text[100] = b'y';
    (0..ROWS).for_each(|id| txn.update(TABLE, &key(id), &record(id, Some(7), &text)).unwrap());
    assert!(undo_bytes() < ROWS as u64 * 80, "{}", undo_bytes());
    txn.rollback().unwrap();
    let rows = seen(&mut *begin(&engine));
    assert!(rows.values().all(|row| *row == (None, TEXT.to_vec())));
}

#[test]
fn more_transactions_than_there_is_room_for_read_nothing() {
    let engine = open(&SimDisk::new(), config());
    create(&engine);
    let mut all: Vec<_> = (0..8192).map(|_| engine.new_transaction()).collect();
    let mut more = begin(&engine);
    let spec = support::whole(TABLE, IndexId::CLUSTERED);
    let read = |txn: &mut dyn Transaction| txn.open_cursor(&spec).map(drop);
    let refused = read(&mut *more).unwrap_err().into_error(&CancelToken::new());
    assert_eq!(refused.code().0, 1637);
    drop(all.pop());
    support::start(&mut *more, std::time::Duration::ZERO);
    read(&mut *more).unwrap();
}
