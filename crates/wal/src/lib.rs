//! The write-ahead log: tickets, records in lanes, batches in segment files, group commit, checkpoints, reading back.
//!
//! A record is a kind and opaque bytes; their meaning is the caller's. The README holds the rules that the proof of durability
//! rests on (W1..W12); `docs/format/wal.md` describes the bytes.

mod batch;
mod checkpoint;
mod damage;
mod flush;
mod follow;
#[cfg(test)]
mod fuzz;
mod log;
mod replay;
mod writer;

pub use checkpoint::{Checkpoint, CheckpointFile};
pub use damage::{DamagePolicy, LogDamage};
pub use follow::{Batches, Follower, LogPlace, cut_batches, positions_before, read_again};
pub use log::{Durability, FailurePolicy, Log, LogConfig, LogPin, LogPosition, LogStats};
pub use replay::{
    Loaded, Loading, LogLoader, LogReader, Record, ReplayEnd, Window, remove_segments_except,
    replay, replay_bytes,
};
pub use writer::{segment_name, segment_number};

#[cfg(test)]
mod tests;
