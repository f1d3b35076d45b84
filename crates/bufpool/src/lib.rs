//! The buffer pool: page number to frame, version latches, reading in, eviction, writing back through the doublewrite file.
//!
//! Independent of records and trees. The README holds the rules (B1..B17).
#![allow(unsafe_code)]

mod latch;

mod bad_pages;
mod dirty;
mod flush;
mod frames;
mod guard;
mod pool;
mod resize;
mod room;

pub use bad_pages::BadPage;
pub use latch::Latch;

pub use flush::SyncFailed;
pub use guard::{Exclusive, Optimistic, Shared};
pub use pool::{Pool, PoolConfig, PoolStats};
pub use resize::ResizeState;

#[cfg(test)]
mod tests;
