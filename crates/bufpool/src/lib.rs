//! The buffer pool: page number to frame, version latches, reading in, eviction, writing back through the doublewrite file.
//!
//! Knows nothing of records or trees. The README holds the rules (B1..B13). With `--cfg loom` only the latch is built, for its model.
#![allow(unsafe_code)]

mod latch;

#[cfg(not(loom))]
mod flush;
#[cfg(not(loom))]
mod frames;
#[cfg(not(loom))]
mod guard;
#[cfg(not(loom))]
mod pool;

pub use latch::Latch;

#[cfg(not(loom))]
pub use flush::SyncFailed;
pub use guard::{Exclusive, Optimistic, Shared};
#[cfg(not(loom))]
pub use pool::{Pool, PoolConfig, PoolStats};

#[cfg(test)]
mod tests;
