//! The durable engine: `engine-api` on pages, log, trees, locks and transactions.
//!
//! Starts, recovers and passes the engine suite with no SQL crate present. Latch order: clustered leaf, then secondary leaf, then
//! the meta page. No latch is held while waiting for a lock. The README says how rows, entries and undo fit together (E1..E23).

mod archive;
mod attachment_reader;
mod attachments;
mod background;
mod backup;
mod bulk;
mod check;
#[cfg(test)]
mod check_tests;
mod checkpointer;
mod codec;
mod config;
mod cursor;
mod ddl;
mod deferred_entries;
mod dictionary;
mod difference;
mod engine;
mod entries;
mod entry;
mod entry_reader;
mod entry_tree;
mod error;
#[cfg(test)]
mod fuzz;
mod identity;
mod index_build;
mod keys;
mod lock_report;
mod locking;
mod losers;
mod many;
mod new_tables;
mod obstacle;
mod offline;
mod prepared;
mod purge;
mod read;
mod row;
mod row_notes;
mod shared;
mod side_log;
mod snapshot_reader;
mod sorter;
mod space;
mod stats;
mod status;
mod table;
mod transaction;
mod undo;
mod undo_window;
mod write;

pub use backup::restore::{RestoreUntil, Restored, restore, time_text};
pub use config::{ArchiveDisk, EngineConfig, PAGE_BYTES, Settings};
pub use engine::DurableEngine;
pub use offline::{CheckNews, Checked, check_files};
pub use stats::recovery_stats;
