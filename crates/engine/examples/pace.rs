//! Prints nanoseconds per operation of the engine alone, on a real directory given as argument. Build it optimised.
//!
//! Two figures each: elapsed time, and processor time of the calling thread, which other load on the machine disturbs less.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "an example")]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    CancelToken, ColumnDef, Direction, Engine, EngineResult, IndexDef, IndexId, IsolationLevel,
    KeyPart, KeyRange, RowBatch, RowBuf, RowLock, ScanSpec, TableDef, TableId, Transaction,
    TxnOptions, WaitPolicy,
};
use sys::disk::{RealDisk, SyncPolicy};
use sys::entropy::SplitMix;
use types::key::encode_part;
use types::record::RecordLayout;
use types::{DataType, SqlBytes, Value};

const TABLE: TableId = TableId(2000);
/// Rows of the table, unless `PACE_ROWS` says otherwise.
const ROWS_DEFAULT: i64 = 200_000;

fn column_types() -> [DataType; 3] {
    let bigint = DataType::bigint().with_nullable(false);
    [bigint.clone(), bigint, DataType::varbinary(200).with_nullable(false)]
}

fn definition() -> TableDef {
    let index = |id, unique, column| IndexDef {
        id,
        name: "i".into(),
        unique,
        parts: vec![KeyPart { column, prefix_length: None, descending: false, elements: None }],
    };
    let columns = column_types().into_iter();
    TableDef {
        id: TABLE,
        name: "test.t1".into(),
        columns: columns
            .map(|ty| ColumnDef { name: "x".into(), ty, instant_default: None })
            .collect(),
        indexes: vec![index(IndexId::CLUSTERED, true, 0), index(IndexId(1), false, 1)],
    }
}

fn record(id: i64, value: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let values = [Value::Int(id), Value::Int(value), Value::Bytes(SqlBytes::new(&[b'x'; 100]))];
    let _ = RecordLayout::new(&column_types()).encode(&values, &mut out);
    out
}

fn key_of(id: i64, out: &mut Vec<u8>) {
    out.clear();
    encode_part(&Value::Int(id), &column_types()[0], None, false, out);
}

fn start(txn: &mut dyn Transaction) -> EngineResult<()> {
    txn.start(&TxnOptions {
        isolation: IsolationLevel::RepeatableRead,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: Duration::from_secs(5),
        cancel: CancelToken::new(),
    })?;
    txn.begin_statement();
    Ok(())
}

/// Processor time of this thread in nanoseconds; 0 if the system does not report it.
fn processor_time() -> i64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

struct Since(Instant, i64);

impl Since {
    fn now() -> Since {
        Since(Instant::now(), processor_time())
    }
}

fn report(what: &str, count: i64, since: Since) {
    let (elapsed, processor) = (since.0.elapsed().as_nanos() as i64, processor_time() - since.1);
    println!("{what}: {} ns, processor {} ns", elapsed / count.max(1), processor / count.max(1));
}

fn stat(engine: &DurableEngine, group: &str, name: &str) -> u64 {
    let all = engine.stats();
    let found = all.iter().find(|stat| stat.group == group && stat.name == name);
    found.and_then(|stat| stat.value.parse().ok()).unwrap_or(0)
}

/// One transaction over every row, rolled back and then committed, and its cost.
fn run_large(engine: &DurableEngine, rows: i64) -> EngineResult<()> {
    let mut txn = engine.new_transaction();
    let txn = &mut *txn;
    let mut key = Vec::new();
    for round in 0..2 {
        start(txn)?;
        let since = Since::now();
        for id in 0..rows {
            key_of(id, &mut key);
            txn.update(TABLE, &key, &record(id, id * 7 % 1000 + round))?;
        }
        report("update of every row and its index entry in one transaction", rows, since);
        let (memory, file) = ("undo_bytes", "undo_file_bytes");
        let [memory, file] = [memory, file].map(|name| stat(engine, "transactions", name));
        println!("its undo: {memory} bytes in memory, {file} in a file");
        let since = Since::now();
        if round == 0 {
            txn.rollback()?;
            report("its rollback, per row", rows, since);
        } else {
            txn.commit()?.wait()?;
            report("its commit", 1, since);
        }
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or(""));
    Ok(())
}

/// Sessions that each commit small transactions durably, all at once.
fn run_sessions(engine: &DurableEngine, rows: i64) {
    const SESSIONS: i64 = 8;
    const COMMITS: i64 = 500;
    let (flushes, since) = (stat(engine, "log", "flush_count"), Instant::now());
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            scope.spawn(move || -> EngineResult<()> {
                let mut txn = engine.new_transaction();
                for at in 0..COMMITS {
                    start(&mut *txn)?;
                    let id = 2 * rows + session * COMMITS + at;
                    txn.insert(TABLE, &record(id, id))?;
                    txn.commit()?.wait()?;
                }
                Ok(())
            });
        }
    });
    let commits = SESSIONS * COMMITS;
    let per_second = commits as f64 / since.elapsed().as_secs_f64();
    let flushes = stat(engine, "log", "flush_count") - flushes;
    println!(
        "{SESSIONS} sessions: {per_second:.0} durable commits a second, {flushes} flushes for {commits}"
    );
    for name in ["flush_p50_microseconds", "flush_p99_microseconds"] {
        println!("log {name}: {}", stat(engine, "log", name));
    }
}

fn run(engine: &DurableEngine, rows: i64) -> EngineResult<()> {
    let mut txn = engine.new_transaction();
    let txn = &mut *txn;
    start(txn)?;
    txn.create_table(&definition())?;
    txn.commit()?.wait()?;

    let since = Since::now();
    for chunk in 0..rows / 1000 {
        start(txn)?;
        for id in chunk * 1000..(chunk + 1) * 1000 {
            txn.insert(TABLE, &record(id, id * 7 % 1000))?;
        }
        txn.commit()?.wait()?;
    }
    report("insert, 1,000 a transaction, one secondary index", rows, since);
    std::thread::sleep(Duration::from_millis(500));

    let (mut random, mut key, mut out) = (SplitMix::new(1), Vec::new(), RowBuf::default());
    let keys: Vec<Vec<u8>> = (0..rows)
        .map(|_| {
            key_of(random.below(rows as u64) as i64, &mut key);
            key.clone()
        })
        .collect();
    let get = |txn: &mut dyn Transaction, key: &[u8], out: &mut RowBuf| {
        txn.get(TABLE, IndexId::CLUSTERED, key, RowLock::None, WaitPolicy::Wait, out)
    };
    start(txn)?;
    let since = Since::now();
    for key in &keys {
        get(txn, key, &mut out)?;
    }
    report("point read in one transaction, uniform", rows, since);
    txn.commit()?;
    let since = Since::now();
    for key in &keys {
        start(txn)?;
        get(txn, key, &mut out)?;
        txn.commit()?;
    }
    report("point read, a transaction each, uniform", rows, since);
    let since = Since::now();
    for key in keys.iter().take(1000).cycle().take(rows as usize) {
        start(txn)?;
        get(txn, key, &mut out)?;
        txn.commit()?;
    }
    report("point read, a transaction each, 1,000 hot rows", rows, since);

    start(txn)?;
    let spec = ScanSpec {
        table: TABLE,
        index: IndexId::CLUSTERED,
        range: KeyRange::ALL,
        direction: Direction::Forward,
        lock: RowLock::None,
        wait: WaitPolicy::Wait,
    };
    let since = Since::now();
    let cursor = txn.open_cursor(&spec)?;
    let mut batch = RowBatch::new();
    while txn.fetch(cursor, 1000, &mut batch)? > 0 {
        batch.clear();
    }
    report("scan, per row", rows, since);
    txn.commit()?;

    let since = Since::now();
    for chunk in keys.chunks(1000).take(50) {
        start(txn)?;
        for key in chunk {
            get(txn, key, &mut out)?;
            let mut record = out.record.clone();
            if let Some(last) = record.last_mut() {
                *last = last.wrapping_add(1);
            }
            txn.update(TABLE, key, &record)?;
        }
        txn.commit()?.wait()?;
    }
    report("read and update of no indexed column, 1,000 a transaction", 50_000, since);

    let since = Since::now();
    for id in 0..2000 {
        start(txn)?;
        txn.insert(TABLE, &record(rows + id, id))?;
        txn.commit()?.wait()?;
    }
    report("insert, a durable transaction each", 2000, since);
    Ok(())
}

fn main() {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "pace-data".into());
    let disk = RealDisk::open(Path::new(&directory), SyncPolicy::Device, Default::default())
        .expect("a directory");
    let since = Instant::now();
    let engine = DurableEngine::open(Arc::new(disk), EngineConfig::default(), |_| {});
    let engine = engine.unwrap_or_else(|error| panic!("{error:?}"));
    println!("open: {} ms, {:?}", since.elapsed().as_millis(), engine.recovery());
    if !engine.has_table(TABLE) {
        let rows = std::env::var("PACE_ROWS").ok().and_then(|text| text.parse().ok());
        let rows = rows.unwrap_or(ROWS_DEFAULT);
        run(&engine, rows).unwrap_or_else(|error| panic!("{error:?}"));
        run_sessions(&engine, rows);
        run_large(&engine, rows).unwrap_or_else(|error| panic!("{error:?}"));
    }
    println!("{:?}", engine.table_stats(TABLE));
    let since = Instant::now();
    // Left as a crash would leave it when an argument follows: the next run recovers.
    if std::env::args().nth(2).is_some() {
        std::process::abort();
    }
    engine.shutdown().unwrap_or_else(|error| panic!("{error:?}"));
    println!("shutdown: {} ms", since.elapsed().as_millis());
}
