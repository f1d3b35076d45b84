//! Schemas, tables, views and accounts: immutable versions published by one pointer, metadata locks, kept in an engine's table.
//!
//! Invariant: knows no SQL text beyond the canonical expressions it stores; never parses.

mod account;
mod account_codec;
mod codec;
mod constraints;
mod discarded;
mod edit;
mod event;
mod fields;
mod foreign_server;
#[cfg(test)]
mod fuzz;
mod histogram;
mod history;
mod metadata_lock;
mod metadata_turn;
mod metadata_waits;
mod model;
mod partitions;
mod password;
mod pending;
mod privilege;
mod reference_system;
mod resource_group;
mod restriction;
mod routine;
mod row_times;
mod shared;
mod shared_map;
mod snapshot;
mod store;
mod stored;
mod system_schema;
mod tablespace;
#[cfg(test)]
mod tests;
mod trigger;

pub use account::{
    Account, AccountName, AccountRules, Accounts, EffectivePrivileges, RoleGrant, RoutineGrantKey,
    TableGrant, TlsRequirement, routine_grant_key,
};
pub use constraints::ConstraintKind;
pub use discarded::{DISCARDED_OPTION, discarded_numbers, set_discarded};
pub use edit::Edit;
pub use event::{Event, EventSchedule, EventStatus, EventStep};
pub use foreign_server::ForeignServer;
pub use histogram::{Histogram, HistogramBucket};
pub use history::{ColumnHistory, ROW_END, ROW_START, never, row_time_type};
pub use metadata_lock::{
    LockMode, MetadataGuard, MetadataLockView, MetadataLocks, MetadataSlot, Purpose, Usage,
};
pub use metadata_turn::{DdlWaitPolicy, LockWait};
pub use metadata_waits::{TableWaits, WaitSums};
pub use model::*;
pub use partitions::{
    NUMBER_INDEX, PARTITION_COLUMN, Partition, PartitionKind, PartitionMethod, PartitionValue,
    Partitioning, Rotation, RotationInterval, integer_type,
};
pub use password::{EarlierPassword, LockTime, PasswordPolicy};
pub use pending::PendingDefinitions;
pub use privilege::{PrivilegeSet, is_dynamic_privilege};
pub use resource_group::ResourceGroup;
pub use restriction::Restrictions;
pub use routine::{External, Routine, RoutineKind, RoutineParameter, UsedLibrary};
pub use row_times::RowTimes;
pub use shared::SharedEntry;
pub use shared_map::SharedMap;
pub use snapshot::{CatalogSnapshot, CatalogView, RelationKind};
pub use store::Catalog;
pub use system_schema::{SYSTEM_SCHEMAS, system_schema};
pub use tablespace::Tablespace;
pub use trigger::{Trigger, TriggerEvent};
