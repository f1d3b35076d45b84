//! Locks of transactions: records by name, ranges by span, waiting, deadlocks.
//!
//! Independent of pages and rows: a name is a space (an index) and key bytes, so page splits never move a lock. A row written by an
//! active transaction is locked by its id alone; it gets an entry only when another transaction has to wait (`make_explicit`).
//!
//! Gaps are locked as spans of keys. A scan registers its span before it latches the pages it reads; an inserter checks spans
//! while it holds the leaf exclusively. So either the inserter sees the span, or the scan sees the new row.
//!
//! A transaction that holds very many record locks has the older ones packed (`LockTable::pack`): they have no entries until another transaction's
//! request conflicts with one of them.
//!
//! Lock order: `Waits` < shard < packed locks of a space < `Owner::held` < `Owner::wait`. Nothing waits for a lock while it holds a latch or any of
//! these.

mod keyset;
mod owner;
mod packed;
mod ranges;
mod report;
mod table;
mod waits;

pub use owner::{Owner, OwnerNumbers};
pub use report::{Deadlock, LockView, OwnerView, Place, Report, Tag};
pub use table::{LockTable, Mode, Patience, WaitError, WaitEvents, lock_name};

#[cfg(test)]
mod tests;
