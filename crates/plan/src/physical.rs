//! Operators as `exec` runs them: a tree that is pulled row by row.

use std::sync::Arc;

use types::{CollationId, DataType};

use crate::{AggregateCall, Expr, Register, SortKey, WindowCall};

/// A common table expression or derived table that is computed once and read several times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CteId(pub u32);

/// Locks requested by FOR UPDATE, FOR SHARE, UPDATE, DELETE or SERIALIZABLE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowLocking {
    #[default]
    None,
    Shared,
    SharedNoWait,
    SharedSkipLocked,
    Exclusive,
    ExclusiveNoWait,
    ExclusiveSkipLocked,
    /// A scan for UPDATE: skips a locked row whose last committed version does not match, where the isolation level allows it.
    ExclusivePeek,
}

/// A stored table in a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAccess {
    /// The engine's id for it (`engine_api::TableId`).
    pub table: u64,
    /// Engine that holds it.
    pub engine: Arc<str>,
    /// Alias, for EXPLAIN and errors.
    pub alias: Arc<str>,
    /// Types of all stored columns in record order: the record layout.
    pub layout: Arc<[DataType]>,
    /// `schema.alias.column` of each stored column as errors quote it.
    pub names: Arc<[Arc<str>]>,
    /// Values for records older than their columns, by column; empty when all are NULL.
    pub missing: Arc<[types::Value]>,
    /// Columns that the statement needs: `(index in layout, register)`.
    pub columns: Vec<(usize, Register)>,
    /// Register that receives the locator as `Value::Bytes`, when rows will be written or locked later.
    pub locator: Option<Register>,
    /// Row locks.
    pub locking: RowLocking,
    /// Number of the table reference in the statement, for EXPLAIN.
    pub instance: u32,
    /// Rows that the optimizer expects from one opening of the scan, filter applied.
    pub estimated_rows: u64,
    /// The entries of the index that the access goes through hold every column of `columns`: rows need not be read.
    pub entries: Option<Arc<EntryParts>>,
    /// The reader needs no more than the first row of each group: a scan may skip the others.
    pub firsts: Option<Firsts>,
}

/// Of the rows of an index that begin with the same values, the first that the filter accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Firsts {
    /// The parts with these values: place in the layout, and whether the part is descending.
    pub parts: Vec<(usize, bool)>,
    /// For an aggregate of each group; otherwise for their keys alone.
    pub groups: bool,
}

/// The place of columns in an index's entries, which consist of the index's key and the clustered key.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct EntryParts {
    /// Parts of the index.
    pub index: Vec<EntryPart>,
    /// Parts of the primary key; none without one.
    pub primary: Vec<EntryPart>,
}

/// A column of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryPart {
    /// Index in the record's layout.
    pub column: usize,
    /// DESC.
    pub descending: bool,
    /// Not only a prefix of the value.
    pub whole: bool,
}

/// Part of a key that comes from an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexKeySource {
    /// Evaluated when the operator opens (outer registers are set). NULL matches nothing unless `null_safe`.
    pub value: Expr,
    /// Type of the key column: the value is converted to it; if that loses information nothing matches. GEOMETRY: the index is a spatial
    /// one, and the key stands for the ranges of cells whose rows' boxes may meet that of the value.
    pub ty: DataType,
    /// Characters of a prefix index part.
    pub prefix_length: Option<u32>,
    /// DESC part.
    pub descending: bool,
    /// `<=>` or IS NULL.
    pub null_safe: bool,
}

/// One end of a range on the key part after the equal ones. Here the conversion to the key's type rounds and clamps instead of
/// matching nothing; where that could matter the optimizer makes the bound inclusive and keeps the filter.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeBound {
    pub key: IndexKeySource,
    pub inclusive: bool,
}

/// A range of an index: equal parts, then at most one part with bounds (in SQL order, also for DESC parts).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RangeSpec {
    pub equal: Vec<IndexKeySource>,
    pub lower: Option<RangeBound>,
    pub upper: Option<RangeBound>,
}

/// How rows of a table are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Access {
    /// At most one row, by all parts of a unique index (`engine_api::IndexId`).
    Unique { index: u32, key: Vec<IndexKeySource> },
    /// One or more ranges of an index (an IN list gives several), in index order, without duplicates.
    /// `or_all`: if the ranges hold much of the table, the whole table is read in its own order instead, and the filter selects the rows.
    /// `keys`: the index is unique, and each range is a whole key of it without NULL.
    Ranges { index: u32, ranges: Vec<RangeSpec>, backward: bool, or_all: bool, keys: bool },
    /// Rows in any of several indexes' ranges, arm by arm. A row in several arms comes once: with the first arm whose
    /// condition it fulfils. A row in several ranges of a single arm comes once, too. `or_all` as above.
    Merge { arms: Vec<MergeArm>, or_all: bool },
    /// The rows that a MATCH finds, best first.
    Fulltext { search: Arc<crate::FulltextSearch>, against: Expr },
    /// The whole index.
    Full { index: u32, backward: bool },
    /// Part of an index, from where HANDLER stopped; the run notes the last row that it took.
    Walk(Arc<crate::KeyWalk>),
}

/// One of the indexes of [`Access::Merge`].
#[derive(Clone, Debug, PartialEq)]
pub struct MergeArm {
    pub index: u32,
    pub ranges: Vec<RangeSpec>,
    /// The alternative that it answers: every row that fulfils it is in the ranges.
    pub condition: Expr,
}

/// How two inputs combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    /// Left outer: the inner side's registers become NULL when nothing matches.
    Left,
    /// Full outer: as `Left`, and then each inner row that nothing matched, with NULL in the outer side's registers. Only hash joins
    /// do it; without keys every row is a candidate.
    Full,
    /// Outer row once when anything matches.
    Semi,
    /// Outer row when nothing matches.
    Anti,
}

/// How groups are formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateMode {
    /// No GROUP BY: exactly one row.
    Scalar,
    /// Hash table.
    Hash,
    /// The input comes in key order.
    Sorted,
}

/// The sets of keys by which rows are grouped. A key that is not in a group's set is NULL in its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum GroupSets {
    /// One set of all keys.
    #[default]
    One,
    /// All keys, all but the last, and so on to none; rows of a higher level follow those that they summarize.
    Rollup,
    /// GROUPING SETS and CUBE: for each set one bit for each of its keys, by the key's place (at most [`GroupSets::KEYS_MAX`]).
    Listed(Vec<u64>),
}

impl GroupSets {
    /// Keys that sets of a list may have.
    pub const KEYS_MAX: usize = 64;

    /// What plans show of them.
    pub(crate) fn text(&self) -> String {
        match self {
            GroupSets::One => String::new(),
            GroupSets::Rollup => " rollup".into(),
            GroupSets::Listed(sets) => {
                let sets: Vec<String> = sets.iter().map(|set| format!("{set:b}")).collect();
                format!(" sets {}", sets.join(" "))
            }
        }
    }
}

/// UNION, INTERSECT, EXCEPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOperation {
    UnionAll,
    UnionDistinct,
    IntersectAll,
    IntersectDistinct,
    ExceptAll,
    ExceptDistinct,
}

/// An operator.
#[derive(Clone, Debug, PartialEq)]
pub enum Physical {
    /// One row without columns (`SELECT 1`).
    OneRow,
    /// No row.
    Nothing,
    /// Rows of a stored table; `filter` sees this table's registers and outer ones.
    Scan {
        table: TableAccess,
        access: Access,
        filter: Option<Expr>,
    },
    /// Rows of an information table. `equals`: look-up conditions, lower-case column name and value.
    InformationScan {
        schema: Arc<str>,
        name: Arc<str>,
        columns: Vec<(usize, Register)>,
        equals: Vec<(Arc<str>, Expr)>,
        filter: Option<Expr>,
    },
    /// Literal rows.
    Values {
        rows: Vec<Vec<Expr>>,
        columns: Vec<Register>,
    },
    Filter {
        input: Box<Physical>,
        predicate: Expr,
    },
    /// Computes registers from registers.
    Project {
        input: Box<Physical>,
        columns: Vec<(Register, Expr)>,
    },
    /// Opens `inner` again for each outer row. `inner_columns`: registers that become NULL for `Left`.
    NestedLoop {
        kind: JoinKind,
        outer: Box<Physical>,
        inner: Box<Physical>,
        condition: Option<Expr>,
        inner_columns: Vec<Register>,
    },
    /// Builds a hash table of `inner` once (again when it is correlated), probes with `outer`.
    HashJoin {
        kind: JoinKind,
        outer: Box<Physical>,
        inner: Box<Physical>,
        /// Equal pairs: outer expression, inner expression, collation for text.
        keys: Vec<(Expr, Expr, CollationId)>,
        condition: Option<Expr>,
        /// Registers of the inner side to save.
        inner_columns: Vec<Register>,
    },
    /// Groups rows. `carried`: registers whose value in the group's first row is kept (functionally dependent columns).
    Aggregate {
        input: Box<Physical>,
        mode: AggregateMode,
        keys: Vec<(Register, Expr)>,
        aggregates: Vec<AggregateCall>,
        carried: Vec<Register>,
        /// ROLLUP needs sorted input.
        sets: GroupSets,
        /// For each key the register of GROUPING(key), where it is used.
        grouping: Vec<Option<Register>>,
    },
    /// Window functions over one window; input sorted by partition and order.
    Window {
        input: Box<Physical>,
        partition_by: Vec<Expr>,
        order_by: Vec<SortKey>,
        calls: Vec<WindowCall>,
        columns: Vec<Register>,
    },
    /// Sorts; stable. `limit`: only the first rows are wanted. `columns`: registers to keep.
    Sort {
        input: Box<Physical>,
        keys: Vec<SortKey>,
        limit: Option<Expr>,
        columns: Vec<Register>,
    },
    /// First row of each distinct combination. Rows that do not fit memory come in another order, unless
    /// `keeps_order`.
    Distinct {
        input: Box<Physical>,
        columns: Vec<(Register, DataType)>,
        keeps_order: bool,
    },
    /// `count_all`: SQL_CALC_FOUND_ROWS, the input is read to its end.
    Limit {
        input: Box<Physical>,
        limit: Option<Expr>,
        offset: Option<Expr>,
        count_all: bool,
    },
    /// Combines inputs; each gives its output registers, converted to `columns`.
    SetOperation {
        operation: SetOperation,
        inputs: Vec<(Physical, Vec<Expr>)>,
        columns: Vec<(Register, DataType)>,
    },
    /// The rows of JSON_TABLE.
    JsonRows(Box<crate::JsonRows>),
    /// Computes `input` once per statement (or once per set of outer values when `correlated`) and reads it from memory.
    Materialize {
        id: CteId,
        input: Box<Physical>,
        outputs: Vec<Expr>,
        columns: Vec<(Register, DataType)>,
        correlated: bool,
    },
    /// Reads the rows that another `Materialize` of the same id computes (its first user runs it; definition in `QueryPlan::ctes`).
    CteScan {
        id: CteId,
        columns: Vec<(Register, DataType)>,
    },
    /// WITH RECURSIVE: `seed`, then `step` until it adds nothing; inside `step`, `CteScan { id }` reads the last round's rows.
    RecursiveCte {
        id: CteId,
        seed: Box<Physical>,
        seed_outputs: Vec<Expr>,
        step: Box<Physical>,
        step_outputs: Vec<Expr>,
        distinct: bool,
        columns: Vec<(Register, DataType)>,
        names: Vec<Arc<str>>,
    },
}
