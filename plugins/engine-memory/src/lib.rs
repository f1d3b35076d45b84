//! A transactional engine whose tables live in memory only: multi-version rows in ordered maps, row and gap locks.
//!
//! Used for temporary tables and where durability is not wanted. Independent of SQL: keys are bytes that `types::key` makes.
//!
//! Row and gap locks are those of `locks`, as in the durable engine. Lock order: `Table::data` before any mutex of `locks`. Nothing
//! waits for a row while it holds either.

mod cursor;
mod ddl;
mod engine;
mod index_keys;
mod key;
mod purge;
mod statistics;
mod status;
mod table;
mod transaction;
mod write;

pub use engine::MemoryEngine;
