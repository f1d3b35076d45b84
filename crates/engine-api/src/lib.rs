//! The storage contract: the requests that the SQL layers may make of an engine, and nothing about how an engine serves them.
//!
//! Rows cross this border as records (`types::record`), rows are named by locators (the clustered key's bytes), ranges are
//! byte ranges over order-preserving keys (`types::key`). An engine derives every index key itself from the `TableDef`.
//!
//! Invariant: no SQL text, plan, session or packet appears here; no caller needs to know the concrete engine.

mod attachments;
mod backup;
mod cancel;
mod commit;
mod definition;
mod engine;
mod error;
mod locks;
mod many;
mod rows;
mod shared;
mod snapshot;
mod span;

pub use attachments::{AttachedCommit, AttachmentReader};
pub use backup::{BackupFile, BackupSummary, BackupTarget};
pub use cancel::{CancelToken, Long, Progress, TimeLimit, Wait, Waiting};
pub use commit::{CommitHandle, CommitWait};
pub use definition::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
pub use engine::{
    Capabilities, CursorId, Direction, Engine, EngineIndex, EngineStat, GetOutcome, IsolationLevel,
    KeyBound, KeyContent, KeyRange, NotedPass, PreparedTransaction, RangeEstimate, RowLock,
    Savepoint, ScanSpec, TableStats, Transaction, TxnOptions, WaitPolicy,
};
pub use error::{EngineError, EngineResult};
pub use locks::{DeadlockView, LockKind, LockReport, LockView, TransactionView};
pub use many::{FoundRows, KeyList, LOOKUPS_MAX};
pub use rows::{RowBatch, RowBuf, RowRef};
pub use shared::{SharedChange, SharedDefinitions, SharedTable};
pub use snapshot::{RecordBlock, SnapshotReader};
pub use span::{Span, successor, united};
pub use sys::disk::DiskKey;
