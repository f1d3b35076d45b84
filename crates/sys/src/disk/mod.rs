//! The door to files: a flat directory of named files, real or simulated.
//!
//! Callers name files, never paths. A write is complete or an error; only `sync` makes it durable, and only `sync_dir` makes
//! creation, removal and renaming durable. The meaning of the bytes is the caller's.

mod contract;
mod real;

pub use contract::{
    BLOCK_BYTES, BlockBuffer, Disk, DiskKey, DiskSpace, File, FileHandle, OpenMode, SyncPolicy,
    is_full,
};
pub use real::{DiskOptions, ReadOnlyDisk, RealDisk, open, open_read_only, probe_sync};
