//! A transactional engine whose tables live in memory only: multi-version rows in ordered maps, row and gap locks.
//!
//! Used for temporary tables and where durability is not wanted. Knows nothing of SQL: keys are bytes that `types::key` makes.
//!
//! Lock order: `Table::data` < lock-table shard < `TxnStatus::held` < `TxnStatus::wait` < wait graph. Nothing waits for a row while
//! it holds any of them.

mod cursor;
mod ddl;
mod engine;
mod index_keys;
mod key;
mod locks;
mod purge;
mod statistics;
mod status;
mod table;
mod transaction;
mod write;

pub use engine::MemoryEngine;
