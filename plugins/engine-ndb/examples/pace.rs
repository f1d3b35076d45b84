//! How fast the engine is below SQL: `pace CONNECTSTRING SHIM [ROWS]`. Run MySQL Cluster's flexAsynch beside it: only figures of one run compare.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine_api::{
    CancelToken, ColumnDef, Direction, Engine, GetOutcome, IndexDef, IndexId, IsolationLevel,
    KeyPart, KeyRange, RowBatch, RowBuf, RowLock, ScanSpec, TableDef, TableId, Transaction,
    TxnOptions, WaitPolicy,
};
use engine_ndb::NdbEngine;
use types::key::encode_part;
use types::record::RecordLayout;
use types::{CollationId, DataType, Value};

const TABLE: TableId = TableId(3000);
/// Bytes of the text of a row: 184 with the key, as flexAsynch's rows.
const TEXT_BYTES: usize = 180;

fn definition() -> TableDef {
    let column =
        |name: &str, ty: DataType| ColumnDef { name: name.into(), ty, instant_default: None };
    let part = KeyPart { column: 0, prefix_length: None, descending: false, elements: None };
    TableDef {
        id: TABLE,
        name: "pace.t".into(),
        columns: vec![
            column("a", DataType::bigint().with_nullable(false)),
            column("b", DataType::varchar(200, CollationId::BINARY)),
        ],
        indexes: vec![IndexDef {
            id: IndexId::CLUSTERED,
            name: "PRIMARY".into(),
            unique: true,
            parts: vec![part],
        }],
    }
}

fn begin(engine: &dyn Engine) -> Box<dyn Transaction> {
    let mut txn = engine.new_transaction();
    let options = TxnOptions {
        isolation: IsolationLevel::ReadCommitted,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: Duration::from_secs(10),
        cancel: CancelToken::new(),
    };
    txn.start(&options).expect("start");
    txn
}

fn record(a: i64) -> Vec<u8> {
    let types: Vec<DataType> = definition().columns.into_iter().map(|column| column.ty).collect();
    let mut out = Vec::new();
    let values = [Value::Int(a), Value::text(&"x".repeat(TEXT_BYTES))];
    RecordLayout::new(&types).encode(&values, &mut out).expect("the values have the types");
    out
}

fn key(a: i64) -> Vec<u8> {
    let mut key = Vec::new();
    encode_part(&Value::Int(a), &DataType::bigint().with_nullable(false), None, false, &mut key);
    key
}

/// Runs `work` on so many threads and prints the rate.
fn timed(what: &str, threads: i64, each: i64, work: impl Fn(i64, i64) + Sync) {
    let began = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let work = &work;
            scope.spawn(move || work(thread * each, each));
        }
    });
    let rate = (threads * each) as f64 / began.elapsed().as_secs_f64();
    println!("{what}, {threads} threads: {rate:.0} rows/s");
}

fn insert(engine: &dyn Engine, first: i64, count: i64, at_once: i64) {
    let mut next = first;
    while next < first + count {
        let mut txn = begin(engine);
        txn.hold_back_inserts();
        let end = (next + at_once).min(first + count);
        (next..end).for_each(|a| txn.insert(TABLE, &record(a)).expect("insert"));
        txn.send_inserts().expect("insert");
        txn.commit().expect("commit");
        next = end;
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(cluster), Some(shim)) = (arguments.next(), arguments.next()) else {
        println!("pace CONNECTSTRING SHIM [ROWS]");
        return;
    };
    let rows: i64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(40_000);
    let engine = Arc::new(NdbEngine::with(&cluster, &shim, "squall_pace"));
    let mut txn = begin(&*engine);
    if engine.has_table(TABLE) {
        txn.drop_table(TABLE).expect("drop");
        txn.commit().expect("commit");
        txn = begin(&*engine);
    }
    txn.create_table(&definition()).expect("create");
    txn.commit().expect("commit");
    timed("insert, 100 in a transaction", 1, rows, |first, count| {
        insert(&*engine, first, count, 100)
    });
    timed("insert, 100 in a transaction", 4, rows / 4, |first, count| {
        insert(&*engine, 10_000_000 + first, count, 100);
    });
    timed("insert, one in a transaction", 8, rows / 40, |first, count| {
        insert(&*engine, 20_000_000 + first, count, 1);
    });
    for threads in [1, 8, 32] {
        timed("read by key, one at a time", threads, rows / 8, |first, count| {
            let (mut txn, mut out) = (begin(&*engine), RowBuf::default());
            for a in first..first + count {
                let key = key(a % rows);
                let none = RowLock::None;
                let wait = WaitPolicy::Wait;
                let found = txn.get(TABLE, IndexId::CLUSTERED, &key, none, wait, &mut out);
                assert_eq!(found.expect("get"), GetOutcome::Found);
            }
            txn.rollback().expect("rollback");
        });
    }
    timed("scan", 1, rows, |_, _| {
        let mut txn = begin(&*engine);
        let spec = ScanSpec {
            table: TABLE,
            index: IndexId::CLUSTERED,
            range: KeyRange {
                lower: Default::default(),
                upper: engine_api::KeyBound::Excluded(key(rows)),
            },
            direction: Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        };
        let cursor = txn.open_cursor(&spec).expect("open");
        let (mut batch, mut read) = (RowBatch::new(), 0);
        while txn.fetch(cursor, 256, &mut batch).expect("fetch") > 0 {
            read += batch.len() as i64;
            batch.clear();
        }
        assert_eq!(read, rows);
    });
    let mut txn = begin(&*engine);
    txn.drop_table(TABLE).expect("drop");
    txn.commit().expect("commit");
    engine.shutdown().expect("shutdown");
}
