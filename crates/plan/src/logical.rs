//! Statements after binding and before planning: relational operators over registers, without access paths or join order.
//!
//! Invariant: a register is defined by exactly one operator of the statement (a group key that is a plain column keeps its register).

use std::sync::Arc;

use types::{DataType, FunctionRef};

use crate::{
    AggregateCall, Assignment, CteId, Expr, GroupSets, OutputColumn, Register, RowLocking,
    SetOperation, SortKey, TableWrite, WindowCall,
};

/// A table reference of the statement, index into `LogicalPlan::instances`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub u32);

/// The effect of an index hint of a table reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintKind {
    Use,
    Ignore,
    Force,
}

/// The purpose that an index hint applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintScope {
    All,
    Join,
    OrderBy,
    GroupBy,
}

/// `USE|IGNORE|FORCE INDEX`: names resolved to engine index ids.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub scope: IndexHintScope,
    pub indexes: Vec<u32>,
}

/// How the number of a row's partition follows from the row, and the functions that give the numbers some values can have. Each takes
/// the router that is the first argument of `number`, and values in the place of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionRouting {
    /// The number, over the registers of the row: a call of the function `PartitionNumber`.
    pub number: Expr,
    pub probe: FunctionRef,
    pub first: FunctionRef,
    pub last: FunctionRef,
    pub before: FunctionRef,
}

/// The part of an index that HANDLER reads next, by bytes of its keys. An end may be a prefix of keys.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyWalk {
    /// The index; 0 is the table itself.
    pub index: u32,
    /// Where it begins, and whether keys that start with the bytes belong to it.
    pub lower: Option<(Vec<u8>, bool)>,
    /// Where it ends.
    pub upper: Option<(Vec<u8>, bool)>,
    pub backward: bool,
}

/// One reference to a stored table. Column `i` of the catalog's table has register `base + i`.
#[derive(Clone, Debug, PartialEq)]
pub struct TableInstance {
    /// Index into the statement's list of catalog tables.
    pub table: usize,
    /// Alias.
    pub alias: Arc<str>,
    /// Number of the query block, for EXPLAIN.
    pub block: u32,
    /// Register of column 0.
    pub base: Register,
    /// Number of columns.
    pub columns: u32,
    /// Virtual generated columns that the statement uses, in column order.
    pub virtuals: Vec<(Register, Expr)>,
    /// Register of the locator, for rows that will be written.
    pub locator: Option<Register>,
    /// All stored columns are needed (the row will be written).
    pub all_columns: bool,
    /// Row locks.
    pub locking: RowLocking,
    /// Index hints.
    pub hints: Vec<IndexHint>,
    /// The number of a row's partition, over the row's registers; for a partitioned table.
    pub partition: Option<Box<PartitionRouting>>,
    /// The only way to read it: HANDLER.
    pub walk: Option<Arc<KeyWalk>>,
}

impl TableInstance {
    /// Whether `register` is one of the instance's columns; its index then.
    pub fn column_of(&self, register: Register) -> Option<usize> {
        let offset = register.0.checked_sub(self.base.0)?;
        (offset < self.columns).then_some(offset as usize)
    }

    /// The register of column `index`.
    pub fn register(&self, index: usize) -> Register {
        Register(self.base.0 + index as u32)
    }
}

/// How two inputs of a logical join combine. RIGHT is turned into `Left` by the binder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogicalJoinKind {
    Inner,
    /// STRAIGHT_JOIN: left side first.
    Straight,
    Left,
    /// FULL OUTER: both sides' rows remain.
    Full,
}

/// The rows that the paths of JSON_TABLE find in a document, which may be a column of a table before it. Those of any other table function are
/// in the document that it returns.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonRows {
    pub document: Expr,
    /// The function, in lower case.
    pub function: Arc<str>,
    pub alias: Arc<str>,
    /// The table's own path first, then those of NESTED in the order written.
    pub levels: Vec<JsonLevel>,
}

/// One path of JSON_TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonLevel {
    pub path: Arc<str>,
    /// The level in whose items this path searches; `None` for the first.
    pub parent: Option<usize>,
    /// The item found, as JSON; NULL where another path of the same parent gives rows.
    pub item: Register,
    /// Its number, from 1.
    pub ordinal: Register,
}

impl JsonRows {
    /// Adds the registers that it sets.
    pub fn add_definitions(&self, set: &mut crate::RegisterSet) {
        for level in &self.levels {
            set.insert(level.item);
            set.insert(level.ordinal);
        }
    }
}

/// A logical operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Logical {
    /// One row without columns.
    OneRow,
    /// No row.
    Nothing,
    /// All rows of a table.
    Get(InstanceId),
    /// All rows of an information table: column index, name in lower case, register.
    InformationGet {
        schema: Arc<str>,
        name: Arc<str>,
        alias: Arc<str>,
        columns: Vec<(usize, Arc<str>, Register, DataType)>,
    },
    Values {
        rows: Vec<Vec<Expr>>,
        columns: Vec<(Register, DataType)>,
    },
    /// The rows of JSON_TABLE.
    JsonRows(Box<JsonRows>),
    Filter {
        input: Box<Logical>,
        predicate: Expr,
    },
    Project {
        input: Box<Logical>,
        columns: Vec<(Register, Expr)>,
    },
    /// `right` may use registers of `left` when it is lateral.
    Join {
        kind: LogicalJoinKind,
        left: Box<Logical>,
        right: Box<Logical>,
        on: Option<Expr>,
    },
    /// Groups; without keys exactly one row unless `sets` has several. `scalar`: no GROUP BY clause.
    Aggregate {
        input: Box<Logical>,
        keys: Vec<(Register, Expr)>,
        aggregates: Vec<AggregateCall>,
        scalar: bool,
        sets: GroupSets,
        grouping: Vec<Option<Register>>,
    },
    Window {
        input: Box<Logical>,
        partition_by: Vec<Expr>,
        order_by: Vec<SortKey>,
        calls: Vec<WindowCall>,
    },
    Sort {
        input: Box<Logical>,
        keys: Vec<SortKey>,
    },
    Distinct {
        input: Box<Logical>,
        columns: Vec<(Register, DataType)>,
    },
    Limit {
        input: Box<Logical>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        count_all: bool,
    },
    SetOperation {
        operation: SetOperation,
        inputs: Vec<(Logical, Vec<Expr>)>,
        columns: Vec<(Register, DataType)>,
    },
    /// A derived table or view that could not be merged; `columns` are the registers that it shows.
    Derived {
        input: Box<Logical>,
        columns: Vec<(Register, DataType)>,
        alias: Arc<str>,
        block: u32,
        lateral: bool,
    },
    /// A reference to a CTE of `LogicalPlan::ctes`, or inside the step of a recursive one its last round.
    CteScan {
        id: CteId,
        columns: Vec<(Register, DataType)>,
        alias: Arc<str>,
    },
    /// `names`: of the columns, for the errors of values that do not fit them.
    RecursiveCte {
        id: CteId,
        name: Arc<str>,
        seed: Box<Logical>,
        seed_outputs: Vec<Expr>,
        step: Box<Logical>,
        step_outputs: Vec<Expr>,
        distinct: bool,
        columns: Vec<(Register, DataType)>,
        names: Vec<Arc<str>>,
    },
}

/// A subquery in an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalSubquery {
    pub root: Logical,
    pub outputs: Vec<Expr>,
    /// Registers of outer blocks that it reads.
    pub outer: Vec<Register>,
    /// Number of its query block, for EXPLAIN.
    pub block: u32,
}

/// A query with its result columns.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalQuery {
    pub root: Logical,
    pub outputs: Vec<OutputColumn>,
}

/// A common table expression that is computed once and read by several `CteScan`s.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalCte {
    pub id: CteId,
    pub name: Arc<str>,
    pub root: Logical,
    pub outputs: Vec<Expr>,
}

/// Rows to insert.
#[derive(Clone, Debug, PartialEq)]
pub enum LogicalInsertSource {
    Values(Vec<Vec<Option<Expr>>>),
    Query(LogicalQuery),
}

/// INSERT and REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalInsert {
    pub target: TableWrite,
    pub targets: Vec<usize>,
    pub source: LogicalInsertSource,
    pub mode: crate::InsertMode,
    pub ignore: bool,
    pub returning: Vec<OutputColumn>,
}

/// A table that UPDATE or DELETE writes.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalTarget {
    pub instance: InstanceId,
    pub write: TableWrite,
    /// UPDATE: index in `TableWrite::columns` and value.
    pub assignments: Vec<Assignment>,
}

/// UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalWrite {
    pub root: Logical,
    pub targets: Vec<LogicalTarget>,
    pub ignore: bool,
    pub limit: Option<Expr>,
    /// ORDER BY was given.
    pub ordered: bool,
    /// Multi-table syntax.
    pub multi_table: bool,
    pub returning: Vec<OutputColumn>,
    /// UPDATE: registers of values, each with the register that keeps for RETURNING what was there before.
    pub old: Vec<(Register, Register)>,
}

/// The output of EXPLAIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainFormat {
    Traditional,
    /// Operators.
    Json,
    /// Query blocks and tables: the first version.
    JsonBlocks,
    Tree,
}

/// The statements that have a plan.
#[derive(Clone, Debug, PartialEq)]
pub enum LogicalStatement {
    Query(LogicalQuery),
    Insert(Box<LogicalInsert>),
    Update(Box<LogicalWrite>),
    Delete(Box<LogicalWrite>),
    Do(Vec<Expr>),
    Explain { statement: Box<LogicalStatement>, format: ExplainFormat, analyze: bool },
}

/// A bound statement with everything that its parts refer to by number.
#[derive(Clone, Debug, PartialEq)]
pub struct LogicalPlan {
    pub statement: LogicalStatement,
    pub instances: Vec<TableInstance>,
    pub subqueries: Vec<LogicalSubquery>,
    pub ctes: Vec<LogicalCte>,
    /// Size of the register file so far; the optimizer may add registers.
    pub registers: u32,
    /// CTE ids so far; likewise.
    pub cte_ids: u32,
    /// STRAIGHT_JOIN was given as a SELECT option somewhere.
    pub straight_join: bool,
    /// Pairs of tables: the first must be joined before the second, where the joins allow it.
    pub join_orders: Vec<(InstanceId, InstanceId)>,
    /// The plan depends on a literal's value or on information tables.
    pub uncacheable: bool,
}
