//! Transactions below rows: ids and commit times from the ticket counter, snapshots, undo, the purge queue, recovery.
//!
//! Independent of tables: an undo payload is the engine's. The README holds the rules (X1..X18).

mod attachments;
mod checkpoint;
mod commits;
mod filed;
#[cfg(test)]
mod fuzz;
mod purge_queue;
mod recovery;
mod redo;
mod redo_line;
mod snapshot;
mod subjects;
mod system;
mod txn_state;
mod undo_log;

pub use attachments::{AttachedCommit, AttachmentReader};
pub use checkpoint::{FilePin, files_beside, take_checkpoint};
pub use commits::each_commit;
pub use purge_queue::PurgeLane;
pub use recovery::{Progress, RecoverConfig, Recovered, Recovery, RecoveryPhase, recover};
pub use redo::RedoCrew;
pub use snapshot::{Snapshot, SnapshotSlots, SnapshotView, Visibility};
pub use system::{KIND_PAGES, TxnSystem};
pub use txn_state::{ABORTED, TxnState, UndoPointer};

#[cfg(all(test, loom))]
mod model_tests;
#[cfg(all(test, not(loom)))]
mod tests;
