//! A statement that is ready to run, and what must hold before it may.

use std::sync::Arc;
use std::time::Duration;

use binder::{PrivilegeKind, RequiredPrivilege};
use catalog::{CatalogVersion, PrivilegeSet, Table, Usage};
use engine_api::TableId;
use exec::Program;
use types::DataType;

use crate::status::Counter;

/// How the end of a statement is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedKind {
    /// A result set.
    Query,
    /// INSERT, REPLACE.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// DO.
    Do,
}

/// A compiled statement with its surroundings.
pub(crate) struct Planned {
    pub(crate) program: Arc<Program>,
    pub(crate) kind: PlannedKind,
    pub(crate) counter: Counter,
    /// Select_scan and the like: how its tables are read.
    pub(crate) access_counters: Vec<Counter>,
    /// Tables as they were when it was bound.
    pub(crate) tables: Vec<Arc<Table>>,
    /// What the metadata locks are asked for.
    pub(crate) uses: Vec<(TableId, Usage)>,
    pub(crate) privileges: Vec<RequiredPrivilege>,
    /// All of `privileges` together: who holds them globally needs no closer look.
    pub(crate) privilege_mask: PrivilegeSet,
    pub(crate) parameters: Vec<DataType>,
    pub(crate) version: CatalogVersion,
    pub(crate) cacheable: bool,
    /// With its lifted literals in place another plan is better.
    pub(crate) wants_literals: bool,
    /// Programs that run while it runs.
    pub(crate) programs: Vec<binder::StoredProgram>,
    /// Tables whose rows it changes itself.
    pub(crate) targets: Vec<TableId>,
    /// Warnings 1287 of each execution.
    pub(crate) deprecations: Vec<&'static str>,
    /// Other warnings of each execution.
    pub(crate) notices: Vec<binder::hints::Notice>,
    /// Tables and views that the statement names.
    pub(crate) references: Vec<binder::Reference>,
    /// `MAX_EXECUTION_TIME` hint.
    pub(crate) max_execution: Option<Duration>,
    /// `FOR UPDATE WAIT n`.
    pub(crate) lock_wait: Option<Duration>,
    /// Rows that the optimizer expects to touch.
    pub(crate) estimated_rows: u64,
    /// Size of the text it was made from.
    pub(crate) text_bytes: usize,
}

/// Bytes that a small plan takes besides what depends on its text.
const PLAN_BYTES_BASE: usize = 2048;
/// Bytes of plan for each byte of text, roughly.
const PLAN_BYTES_PER_TEXT: usize = 24;

impl Planned {
    /// Bytes that the cache counts.
    pub(crate) fn bytes(&self) -> usize {
        PLAN_BYTES_BASE
            + self.text_bytes * PLAN_BYTES_PER_TEXT
            + self.tables.len() * size_of::<usize>()
            + self.parameters.len() * size_of::<DataType>()
    }
}

/// The privilege behind a kind of use.
pub(crate) fn privilege_of(kind: PrivilegeKind) -> PrivilegeSet {
    match kind {
        PrivilegeKind::Select => PrivilegeSet::SELECT,
        PrivilegeKind::Insert => PrivilegeSet::INSERT,
        PrivilegeKind::Update => PrivilegeSet::UPDATE,
        PrivilegeKind::Delete => PrivilegeSet::DELETE,
    }
}
