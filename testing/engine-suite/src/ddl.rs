//! Creating and dropping tables and indexes, in transactions.

use engine_api::{
    GetOutcome, IndexId, KeyRange, RowBatch, RowBuf, RowLock, TableDef, TableId, WaitPolicy,
};
use types::DataType;

use crate::harness::{BY_B, Bench, T1, column, commit, expect_duplicate, index, key_a, t1};
use crate::{Check, Factory};

pub(crate) const CHECKS: &[Check] = &[
    ("create and drop follow the transaction", create_and_drop),
    ("index on present rows", create_index),
    ("unique index on duplicates", create_unique_index),
    ("table without primary key", hidden_row_id),
];

pub(crate) const T2: TableId = TableId(2001);

fn t2() -> TableDef {
    TableDef {
        id: T2,
        name: "test.t2".into(),
        columns: vec![column("a", DataType::bigint())],
        indexes: vec![],
    }
}

fn create_and_drop(factory: Factory<'_>) {
    let bench = Bench::new(factory);
    let mut txn = bench.begin();
    txn.create_table(&t2()).expect("create");
    txn.rollback().expect("rollback");
    assert!(!bench.engine.has_table(T2), "an undone table is gone");
    let mut txn = bench.begin();
    txn.create_table(&t2()).expect("create");
    commit(txn);
    assert!(bench.engine.has_table(T2));
    let mut txn = bench.begin();
    txn.drop_table(T2).expect("drop");
    txn.rollback().expect("rollback");
    assert!(bench.engine.has_table(T2), "an undone drop did nothing");
    let mut txn = bench.begin();
    txn.drop_table(T2).expect("drop");
    commit(txn);
    assert!(!bench.engine.has_table(T2));
    let mut txn = bench.begin();
    assert!(txn.drop_table(T2).is_err(), "unknown table");
}

fn create_index(factory: Factory<'_>) {
    let bench =
        Bench::with_rows(factory, &[(1, Some(3), "c"), (2, Some(2), "b"), (3, Some(1), "a")]);
    let by_c = index(IndexId(7), "by_c", true, &[2, 1]);
    let mut txn = bench.begin();
    txn.create_index(T1, &by_c).expect("create index");
    txn.rollback().expect("rollback");
    let mut txn = bench.begin();
    assert!(txn.open_cursor(&bench.spec(by_c.id, KeyRange::ALL)).is_err(), "undone");
    txn.create_index(T1, &by_c).expect("create index");
    commit(txn);
    let mut txn = bench.begin();
    let rows = bench.scan(&mut *txn, &bench.spec(by_c.id, KeyRange::ALL)).expect("scan");
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [3, 2, 1]);
    bench.insert(&mut *txn, 4, Some(9), "aa").expect("insert");
    let rows = bench.scan(&mut *txn, &bench.spec(by_c.id, KeyRange::ALL)).expect("scan");
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [3, 4, 2, 1]);
    commit(txn);
    bench.check();
    let mut txn = bench.begin();
    txn.drop_index(T1, by_c.id).expect("drop index");
    commit(txn);
    let mut txn = bench.begin();
    assert!(txn.open_cursor(&bench.spec(by_c.id, KeyRange::ALL)).is_err(), "dropped");
    bench.check();
}

fn create_unique_index(factory: Factory<'_>) {
    let bench = Bench::with_rows(factory, &[(1, Some(3), "c"), (2, Some(2), "c")]);
    let mut txn = bench.begin();
    match txn.create_index(T1, &index(IndexId(7), "u", true, &[2])) {
        Err(engine_api::EngineError::DuplicateKey { index, .. }) => assert_eq!(index, IndexId(7)),
        other => panic!("expected a duplicate key, got {other:?}"),
    }
    txn.rollback().expect("rollback");
    let mut txn = bench.begin();
    expect_duplicate(bench.insert(&mut *txn, 3, Some(3), "z"), BY_B, &key_a(1));
    bench.insert(&mut *txn, 3, Some(4), "c").expect("the failed index left nothing");
    commit(txn);
    assert_eq!(t1().indexes.len(), 3);
    bench.check();
}

fn hidden_row_id(factory: Factory<'_>) {
    let bench = Bench::new(factory);
    let layout = types::record::RecordLayout::new(&[DataType::bigint()]);
    let record = |a| {
        let mut out = Vec::new();
        layout.encode(&[types::Value::Int(a)], &mut out).expect("the values have the column types");
        out
    };
    let mut txn = bench.begin();
    txn.create_table(&t2()).expect("create");
    let mut inserted = Vec::new();
    for a in [7, 7, 3] {
        txn.insert(T2, &record(a)).expect("equal rows may repeat");
        inserted.push(txn.inserted_locator().to_vec());
    }
    commit(txn);
    let mut txn = bench.begin();
    let mut spec = bench.spec(IndexId::CLUSTERED, KeyRange::ALL);
    spec.table = T2;
    let cursor = txn.open_cursor(&spec).expect("open");
    let mut batch = RowBatch::new();
    assert_eq!(txn.fetch(cursor, 10, &mut batch).expect("fetch"), 3);
    let first = batch.row(0);
    assert_eq!(first.locator.len(), 8, "the hidden row id has 8 bytes");
    assert_eq!(first.record, record(7), "insertion order");
    let locators: Vec<&[u8]> = batch.iter().map(|row| row.locator).collect();
    assert_eq!(locators, inserted, "the engine reported them");
    txn.update(T2, first.locator, &record(8)).expect("update in place");
    txn.delete(T2, batch.row(1).locator).expect("delete");
    let mut out = RowBuf::default();
    let found =
        txn.get(T2, IndexId::CLUSTERED, first.locator, RowLock::None, WaitPolicy::Wait, &mut out);
    assert_eq!(found.expect("get"), GetOutcome::Found);
    assert_eq!(out.record, record(8));
    commit(txn);
}
