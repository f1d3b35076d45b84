//! What the tests of the engine set up alike: an engine of small parts on a virtual disk, and transactions on it.
#![allow(dead_code, reason = "no test uses all of it")]

use std::time::Duration;

use engine::{DurableEngine, EngineConfig};
use engine_api::{CancelToken, Engine, IsolationLevel, Transaction, TxnOptions};
use wal::{Durability, FailurePolicy, LogConfig};

/// Pages and pool so small that trees have levels and pages are written and read again; undo that goes to files all the time; no threads.
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
        },
        undo_memory_bytes: 200,
        background: false,
        ..EngineConfig::default()
    }
}

/// A transaction at REPEATABLE READ with a statement begun, that does not wait for locks.
pub fn begin(engine: &DurableEngine) -> Box<dyn Transaction> {
    let mut txn = engine.new_transaction();
    start(&mut *txn, Duration::from_millis(1));
    txn
}

/// Starts `txn` at REPEATABLE READ, with a statement begun.
pub fn start(txn: &mut dyn Transaction, lock_wait_timeout: Duration) {
    let options = TxnOptions {
        isolation: IsolationLevel::RepeatableRead,
        read_only: false,
        lock_wait_timeout,
        cancel: CancelToken::new(),
    };
    txn.start(&options).unwrap();
    txn.begin_statement();
}
