//! The common set-up of the engine's tests: a small engine on a virtual disk, and transactions on it.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod builds;
pub mod numbers;
pub mod texts;

use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{
    CancelToken, ColumnDef, Direction, Engine, EngineResult, IndexDef, IndexId, IsolationLevel,
    KeyPart, KeyRange, RowBatch, RowLock, ScanSpec, TableDef, TableId, Transaction, TxnOptions,
    WaitPolicy,
};
use types::key::encode_part;
use types::{DataType, Value};
use wal::{Durability, FailurePolicy, LogConfig};

/// Pages and pool so small that trees have levels and pages are written and read again; undo that goes to files all the time; few changes of entries before
/// the rest is deferred; no threads.
pub fn config() -> EngineConfig {
    EngineConfig {
        page_bytes: 1024,
        pool_bytes: 64 << 10,
        pages_max: 1 << 16,
        log: LogConfig {
            segment_bytes: 64 << 10,
            block_bytes: 512,
            lanes: 2,
            flights: 2,
            durability: Durability::Synced,
            failure: FailurePolicy::Report,
            reserve_segments: 0,
        },
        undo_memory_bytes: 200,
        direct_changes: 2,
        background: false,
        ..EngineConfig::default()
    }
}

/// A transaction at REPEATABLE READ with a statement begun, that does not wait for locks.
pub fn begin(engine: &DurableEngine) -> Box<dyn Transaction> {
    begin_waiting(engine, Duration::from_millis(1))
}

/// Like `begin`, waiting for locks.
pub fn begin_waiting(engine: &DurableEngine, lock_wait_timeout: Duration) -> Box<dyn Transaction> {
    let mut txn = engine.new_transaction();
    start(&mut *txn, lock_wait_timeout);
    txn
}

/// Like `begin`, for a transaction that may be prepared.
pub fn begin_branch(engine: &DurableEngine) -> Box<dyn Transaction> {
    let mut txn = engine.new_transaction();
    start_with(&mut *txn, Duration::from_millis(1), true);
    txn
}

/// Starts `txn` at REPEATABLE READ, with a statement begun.
pub fn start(txn: &mut dyn Transaction, lock_wait_timeout: Duration) {
    start_with(txn, lock_wait_timeout, false);
}

fn start_with(txn: &mut dyn Transaction, lock_wait_timeout: Duration, may_be_prepared: bool) {
    let options = TxnOptions {
        isolation: IsolationLevel::RepeatableRead,
        read_only: false,
        may_be_prepared,
        lock_wait_timeout,
        cancel: CancelToken::new(),
    };
    txn.start(&options).unwrap();
    txn.begin_statement();
}

/// A plain read of a whole index from its begin.
pub fn whole(table: TableId, index: IndexId) -> ScanSpec {
    ScanSpec {
        table,
        index,
        range: KeyRange::ALL,
        direction: Direction::Forward,
        lock: RowLock::None,
        wait: WaitPolicy::Wait,
    }
}

/// Reads to the end of a scan, `at_once` rows at a time.
pub fn each_record(
    txn: &mut dyn Transaction,
    spec: &ScanSpec,
    at_once: usize,
    mut record: impl FnMut(&[u8]),
) -> EngineResult<()> {
    let cursor = txn.open_cursor(spec)?;
    let mut batch = RowBatch::new();
    while txn.fetch(cursor, at_once, &mut batch)? > 0 {
        batch.iter().for_each(|row| record(row.record));
        batch.clear();
    }
    txn.close_cursor(cursor);
    Ok(())
}

/// The key of a row whose primary key is one BIGINT.
pub fn key(id: i64) -> Vec<u8> {
    let mut out = Vec::new();
    let ty = DataType::bigint().with_nullable(false);
    encode_part(&Value::Int(id), &ty, None, false, &mut out);
    out
}

/// An index over one column, or a prefix of it.
pub fn index(id: IndexId, column: usize, unique: bool, prefix_length: Option<u32>) -> IndexDef {
    let part = KeyPart { column, prefix_length, descending: false, elements: None };
    IndexDef { id, name: format!("i{}", id.0), unique, parts: vec![part] }
}

/// A table of columns of these types. `indexes`: the column of each and whether it is unique; the first is the primary key, a number gives
/// the length of a prefix.
pub fn table(
    id: TableId,
    name: &str,
    types: &[DataType],
    indexes: &[(usize, bool, Option<u32>)],
) -> TableDef {
    let column =
        |ty: &DataType| ColumnDef { name: "x".into(), ty: ty.clone(), instant_default: None };
    let index = |(at, (column, unique, prefix_length)): (usize, &(usize, bool, Option<u32>))| {
        index(IndexId(at as u32), *column, *unique, *prefix_length)
    };
    TableDef {
        id,
        name: name.into(),
        columns: types.iter().map(column).collect(),
        indexes: indexes.iter().enumerate().map(index).collect(),
    }
}
