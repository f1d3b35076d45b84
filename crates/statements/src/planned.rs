//! A statement that is ready to run, and its preconditions.

use std::sync::Arc;
use std::time::Duration;

use binder::{PrivilegeKind, RequiredPrivilege};
use catalog::{CatalogSnapshot, CatalogVersion, PrivilegeSet, Relation, Table, Usage, View};
use engine_api::TableId;
use errors::Diagnostics;
use exec::Program;
use plan::{Plan, PlanFlags, TableWrite};
use plugin_api::Registry;
use syntax::ast::{self, Statement};
use sys::model::breaks;
use types::DataType;

use crate::status::{Counter, access_counters};

/// How the end of a statement is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedKind {
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

/// A compiled statement with everything needed to run it.
pub struct Planned {
    pub program: Arc<Program>,
    pub kind: PlannedKind,
    /// The counter of its executions; `None` when it stands for a statement that is counted otherwise.
    pub counter: Option<Counter>,
    /// Select_scan and the like: how its tables are read.
    pub access_counters: Vec<Counter>,
    /// Tables as they were when it was bound.
    pub tables: Vec<Arc<Table>>,
    /// Stored views that it reads through, likewise.
    pub views: Vec<Arc<View>>,
    /// Tables whose metadata locks it needs.
    pub uses: Vec<(TableId, Usage)>,
    pub privileges: Vec<RequiredPrivilege>,
    /// The union of `privileges`: an account that holds them globally needs no further check.
    pub privilege_mask: PrivilegeSet,
    pub parameters: Vec<DataType>,
    pub version: CatalogVersion,
    /// The plugins that it was compiled with; it runs with them even when others are loaded by then.
    pub registry: Arc<Registry>,
    pub cacheable: bool,
    /// With the values of its lifted literals another plan is better.
    pub wants_literals: bool,
    /// Programs that run while it runs.
    pub programs: Vec<binder::StoredProgram>,
    /// Tables whose rows it changes directly.
    pub targets: Vec<TableId>,
    /// It reads rows to change them: FOR UPDATE.
    pub locks_to_write: bool,
    /// Its text does not decide what it does: it calls a volatile function, reads a variable, or changes as many rows as a LIMIT says.
    pub has_chance: bool,
    /// Sequences that defaults of the columns of its tables draw from.
    pub drawn_by_defaults: Vec<u64>,
    /// Warnings 1287 of each execution.
    pub deprecations: Vec<&'static str>,
    /// It names a user or system variable itself, not through a view.
    pub names_variable: bool,
    /// Other warnings of each execution.
    pub notices: Vec<binder::Notice>,
    /// Tables and views that the statement names.
    pub references: Vec<binder::Reference>,
    /// `MAX_EXECUTION_TIME` hint.
    pub max_execution: Option<Duration>,
    /// `FOR UPDATE WAIT n`.
    pub lock_wait: Option<Duration>,
    /// Rows that the optimizer expects to touch.
    pub estimated_rows: u64,
    /// Size of the text it was made from.
    pub text_bytes: usize,
}

/// Bytes that a small plan takes besides the part that depends on its text.
const PLAN_BYTES_BASE: usize = 2048;
/// Bytes of plan for each byte of text, roughly.
const PLAN_BYTES_PER_TEXT: usize = 24;

fn raise(diagnostics: &mut Diagnostics, code: errors::ErrorCode, message: String) {
    let level = errors::Level::Warning;
    diagnostics.push(errors::Condition::new(level, code, code.sqlstate(), message));
}

impl Planned {
    /// Raises notices about a statement's text: with every execution, or when it is prepared.
    #[inline]
    pub fn raise_notices(&self, diagnostics: &mut Diagnostics) {
        let deprecated = errors::ErrorCode::WARN_DEPRECATED_SYNTAX;
        for text in &self.deprecations {
            raise(diagnostics, deprecated, (*text).to_owned());
        }
        self.raise_resolved(diagnostics);
    }

    /// Those that come when names are resolved: the others came when the program of the statement was read.
    #[inline]
    pub fn raise_resolved(&self, diagnostics: &mut Diagnostics) {
        for (code, message) in &self.notices {
            raise(diagnostics, *code, message.clone());
        }
    }

    /// Whether its tables, views and programs have not changed.
    #[inline]
    pub fn is_current(&self, snapshot: &CatalogSnapshot) -> bool {
        snapshot.definitions == self.version
            || breaks("plans follow definitions")
            || self.tables.iter().all(|table| table.temporary || snapshot.is_current(table))
                && self.views.iter().all(|view| is_view_current(view, snapshot))
                && self.programs.iter().all(|program| is_program_current(program, snapshot))
    }

    /// Whether this plan, newly made for the same statement, is of other definitions than `earlier`.
    pub fn has_other_definitions(&self, earlier: &Planned, snapshot: &CatalogSnapshot) -> bool {
        let is_here = |table: &Arc<Table>| self.tables.iter().any(|here| Arc::ptr_eq(here, table));
        let temporary = |table: &&Arc<Table>| table.temporary;
        !earlier.is_current(snapshot) || !earlier.tables.iter().filter(temporary).all(is_here)
    }

    /// Bytes that the cache counts.
    pub fn bytes(&self) -> usize {
        PLAN_BYTES_BASE
            + self.text_bytes * PLAN_BYTES_PER_TEXT
            + self.tables.len() * size_of::<usize>()
            + self.parameters.len() * size_of::<DataType>()
    }
}

fn is_view_current(view: &Arc<View>, snapshot: &CatalogSnapshot) -> bool {
    match snapshot.look(&view.schema, &view.name) {
        Some(Relation::View(known)) => Arc::ptr_eq(&known, view),
        Some(Relation::Table(_)) | None => false,
    }
}

/// Whether a program has not changed since planning. Triggers belong to their tables.
fn is_program_current(program: &binder::StoredProgram, snapshot: &CatalogSnapshot) -> bool {
    match program {
        binder::StoredProgram::Trigger(..) | binder::StoredProgram::Statements => true,
        binder::StoredProgram::Function { routine, .. } => snapshot
            .routine(&routine.schema, routine.kind, &routine.name)
            .is_some_and(|known| Arc::ptr_eq(known, routine)),
    }
}

/// The privilege that a kind of use needs.
pub fn privilege_of(kind: PrivilegeKind) -> PrivilegeSet {
    match kind {
        PrivilegeKind::Select | PrivilegeKind::SelectColumns => PrivilegeSet::SELECT,
        PrivilegeKind::Insert => PrivilegeSet::INSERT,
        PrivilegeKind::Update => PrivilegeSet::UPDATE,
        PrivilegeKind::Delete => PrivilegeSet::DELETE,
    }
}

/// Results of binding besides the plan.
pub struct BoundContext {
    pub uncacheable: bool,
    pub wants_literals: bool,
    pub programs: Vec<binder::StoredProgram>,
    /// Numbers of the sequences that it draws from.
    pub drawn: Vec<u64>,
    /// Those of them that defaults of columns draw from.
    pub drawn_by_defaults: Vec<u64>,
    pub tables: Vec<Arc<Table>>,
    pub views: Vec<Arc<View>>,
    pub privileges: Vec<RequiredPrivilege>,
    pub parameters: Vec<DataType>,
    /// It names a user or system variable itself, not through a view.
    pub names_variable: bool,
    /// It reads rows to change them: FOR UPDATE.
    pub locks_to_write: bool,
    pub has_chance: bool,
    pub deprecations: Vec<&'static str>,
    pub notices: Vec<binder::Notice>,
    pub references: Vec<binder::Reference>,
    pub max_execution: Option<Duration>,
    pub lock_wait: Option<Duration>,
    pub version: CatalogVersion,
    pub registry: Arc<Registry>,
    pub text_bytes: usize,
}

/// Combines a compiled statement with its preconditions.
pub fn planned(
    statement: &Statement,
    plan: &Plan,
    flags: &PlanFlags,
    program: Arc<Program>,
    context: BoundContext,
) -> Planned {
    let writes = writes(plan);
    let written = |id: TableId| {
        let changes = |write: &TableWrite| {
            let mut children = write.children.iter();
            TableId(write.table) == id || children.any(|child| TableId(child.other.table) == id)
        };
        writes.iter().any(|write| changes(write)) || context.drawn.contains(&id.0)
    };
    let tables = context.tables;
    let is_stored = |table: &&Arc<Table>| !table.temporary;
    let uses = tables
        .iter()
        .filter(is_stored)
        .map(|table| {
            let usage = if written(table.id) { Usage::Write } else { Usage::Read };
            (table.id, usage)
        })
        .collect();
    let privilege_mask = context
        .privileges
        .iter()
        .fold(PrivilegeSet::NONE, |mask, needed| mask | privilege_of(needed.kind));
    let has_definer = context.privileges.iter().any(|needed| needed.definer.is_some());
    Planned {
        program,
        kind: kind_of(plan),
        counter: Some(counter_of(statement)),
        access_counters: access_counters(plan),
        cacheable: !context.uncacheable
            && !flags.uncacheable
            && !has_definer
            && tables.iter().all(|table| !table.temporary),
        tables,
        views: context.views,
        uses,
        wants_literals: context.wants_literals || flags.wants_literals,
        programs: context.programs,
        targets: writes.iter().map(|write| TableId(write.table)).collect(),
        names_variable: context.names_variable,
        drawn_by_defaults: context.drawn_by_defaults,
        locks_to_write: context.locks_to_write,
        has_chance: context.has_chance,
        deprecations: context.deprecations,
        notices: context.notices,
        references: context.references,
        max_execution: context.max_execution,
        lock_wait: context.lock_wait,
        privileges: context.privileges,
        privilege_mask,
        parameters: context.parameters,
        version: context.version,
        registry: context.registry,
        estimated_rows: flags.estimated_rows,
        text_bytes: context.text_bytes,
    }
}

fn kind_of(plan: &Plan) -> PlannedKind {
    match plan {
        Plan::Query(_) | Plan::Rows { .. } => PlannedKind::Query,
        Plan::Insert(_) => PlannedKind::Insert,
        Plan::Update(_) => PlannedKind::Update,
        Plan::Delete(_) => PlannedKind::Delete,
        Plan::Do { .. } => PlannedKind::Do,
    }
}

fn counter_of(statement: &Statement) -> Counter {
    match statement {
        Statement::Insert(insert) => {
            let select = matches!(insert.source, ast::InsertSource::Query(_));
            match (insert.replace, select) {
                (false, false) => Counter::INSERT,
                (false, true) => Counter::INSERT_SELECT,
                (true, false) => Counter::REPLACE,
                (true, true) => Counter::REPLACE_SELECT,
            }
        }
        Statement::Update(update) if update.is_multi_table() => Counter::UPDATE_MULTI,
        Statement::Update(_) => Counter::UPDATE,
        Statement::Delete(delete) => match delete.target {
            ast::DeleteTarget::Single(_) | ast::DeleteTarget::History { .. } => Counter::DELETE,
            ast::DeleteTarget::Multi { .. } => Counter::DELETE_MULTI,
        },
        Statement::Do(_) => Counter::DO,
        Statement::Explain(_) => Counter::EXPLAIN,
        Statement::Handler(_) => Counter::HA_READ,
        _ => Counter::SELECT,
    }
}

/// The tables that a plan writes.
fn writes(plan: &Plan) -> Vec<&TableWrite> {
    match plan {
        Plan::Insert(insert) => vec![&insert.target],
        Plan::Update(update) => update.targets.iter().map(|target| &target.0).collect(),
        Plan::Delete(delete) => delete.targets.iter().map(|target| &target.0).collect(),
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => Vec::new(),
    }
}
