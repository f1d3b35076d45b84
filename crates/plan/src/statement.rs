//! Whole statements: queries and writes.

use std::sync::Arc;

use types::{DataType, Value};

use crate::{CteId, Expr, Physical, Register};

/// A column of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputColumn {
    /// Caption.
    pub name: Arc<str>,
    /// The rows that it shows.
    pub expr: Expr,
    /// The column shown, when it is a plain column.
    pub source: Option<ColumnSource>,
    /// How the value was made.
    pub making: Making,
}

/// How a result column's value was made: metadata and CREATE TABLE ... SELECT depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Making {
    /// By an operator or a function, or it is a constant.
    #[default]
    Computed,
    /// It is a column or an aggregate.
    Typed,
    /// By IFNULL, which keeps the type of integers.
    IfNull,
    /// It was kept in a temporary table: set operations, windows.
    Kept,
    /// By a subquery.
    Subquery,
    /// It is written as an integer.
    Integer,
    /// It is a `?` of a prepared statement.
    Placeholder,
}

/// The table column that a result column shows. A computed column of a derived table has the table's alias and its own name there, and no
/// table of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnSource {
    pub schema: Arc<str>,
    /// Alias.
    pub table: Arc<str>,
    pub org_table: Arc<str>,
    pub org_name: Arc<str>,
    pub primary_key: bool,
    pub unique_key: bool,
    pub multiple_key: bool,
    pub auto_increment: bool,
    pub no_default: bool,
    pub on_update_now: bool,
    /// The current timestamp is its default.
    pub default_now: bool,
    /// The rows are kept before they are read: a column of a temporary table, whatever its source.
    pub materialized: bool,
    /// The display width that its definition named.
    pub display_width: Option<u32>,
}

/// A subquery that is evaluated from an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Subquery {
    pub root: Physical,
    pub outputs: Vec<Expr>,
    /// Outer registers that it reads; empty: evaluated once and remembered.
    pub outer: Vec<Register>,
}

/// A SELECT. As the source of an INSERT it shares the statement's register file and subquery numbers: `subqueries`, `ctes` and
/// `registers` are then the same as the INSERT's.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    pub root: Physical,
    pub outputs: Vec<OutputColumn>,
    pub subqueries: Vec<Subquery>,
    /// Plans of shared CTEs: `CteScan` of an id not under its own `Materialize` runs this.
    pub ctes: Vec<(CteId, Physical, Vec<Expr>)>,
    /// Size of the register file.
    pub registers: u32,
}

/// The source of a stored column's value when a row is written.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenColumn {
    /// Name, for errors.
    pub name: Arc<str>,
    /// Type.
    pub ty: DataType,
    /// Register that holds the column of the row being written (and of the row as read, for UPDATE).
    pub register: Register,
    /// The value when the statement gives none: `None` means no default (1364 when NOT NULL).
    pub default: Option<Expr>,
    /// Value of records older than the column.
    pub missing: Value,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// ON UPDATE CURRENT_TIMESTAMP(fsp).
    pub on_update_now: Option<Expr>,
    /// Generated column: computed after all others, in order.
    pub generated: Option<Expr>,
    /// The array of a multi-valued index: `generated` is the document whose elements it has.
    pub elements: Option<WrittenElements>,
}

/// The elements of the array that a multi-valued index has.
#[derive(Clone, Debug, PartialEq)]
pub struct WrittenElements {
    /// Their type.
    pub ty: DataType,
    /// The index's name, for errors.
    pub index: Arc<str>,
    /// Bytes of the elements' column as the reference counts them: error 1062 shows no more of a short one.
    pub shown_bytes: Option<usize>,
}

/// The action of a foreign key on child rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignKeyAction {
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
    NoAction,
}

/// A foreign key as a write has to check it.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKeyCheck {
    /// Name and full text, for errors 1451 and 1452.
    pub name: Arc<str>,
    pub text: Arc<str>,
    /// The table on the other side.
    pub other: Arc<TableWrite>,
    /// Column indexes in the written table.
    pub columns: Vec<usize>,
    /// Column indexes in the other table, and the index of the other table to look in.
    pub other_columns: Vec<usize>,
    pub other_index: u32,
    /// The keys of that index end with the time of the row: with that of current rows they find the one current row.
    pub only_current: bool,
    pub on_update: ForeignKeyAction,
    pub on_delete: ForeignKeyAction,
}

/// WITH CHECK OPTION: a row that the view would not show is refused (1369).
#[derive(Clone, Debug, PartialEq)]
pub struct ViewCheck {
    pub schema: Arc<str>,
    pub view: Arc<str>,
    /// Over the registers of the written table; the row passes when it is true.
    pub predicate: Expr,
}

/// The triggers that a write fires, by their numbers among the statement's programs, in the order in which they run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Triggers {
    pub before_insert: Vec<u32>,
    pub after_insert: Vec<u32>,
    pub before_update: Vec<u32>,
    pub after_update: Vec<u32>,
    pub before_delete: Vec<u32>,
    pub after_delete: Vec<u32>,
}

/// A FULLTEXT index of a table that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct FulltextWrite {
    /// The engine's id of the table of its entries.
    pub entries: u64,
    /// Columns in the record.
    pub columns: Vec<usize>,
    /// Their collation.
    pub collation: types::CollationId,
    /// Where their words begin and end.
    pub parser: types::fulltext::WordParser,
}

/// What writing a row of a table that keeps history has to do besides.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryWrite {
    /// The columns of the row's times, in the record.
    pub start: usize,
    pub end: usize,
    /// Columns whose change leaves the old row behind.
    pub kept: Vec<usize>,
    /// The end of rows that are current.
    pub never: Value,
}

/// Partitions by SYSTEM_TIME of a table that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemPartitions {
    /// The engine's id of the table.
    pub id: u64,
    /// The columns of the partition's number and of the row's end, in the record.
    pub number: usize,
    pub end: usize,
    /// The end of rows that are current.
    pub never: Value,
    /// Subpartitions of each partition.
    pub subpartitions: u16,
    /// Numbers of the partitions of old rows, in the order in which they are filled.
    pub history: Vec<u16>,
    /// By INTERVAL: when each of them ends.
    pub ends: Vec<Value>,
    /// LIMIT: rows of each.
    pub limit: Option<u64>,
    /// Schema and name of the table, and name of the last of them.
    pub table: (Arc<str>, Arc<str>),
    pub last: Arc<str>,
    /// The index whose keys begin with the number.
    pub index: u32,
    /// A full partition is worth a warning: the statement makes rows old, it does not move old ones.
    pub warns: bool,
}

/// A unique key WITHOUT OVERLAPS: its parts are `alike`, then the end and the start of the period.
#[derive(Clone, Debug, PartialEq)]
pub struct OverlapCheck {
    pub index: u32,
    /// Rows that are alike in these parts must not have a time in common.
    pub alike: Vec<crate::KeyColumn>,
    /// The columns of the period, in the record.
    pub start: usize,
    pub end: usize,
    /// The clustered index of a partitioned table: the part before the others, and the numbers under which rows that are alike may be. None: under that of
    /// the row itself.
    pub partitions: Option<(crate::KeyColumn, Vec<u16>)>,
    /// Of a table that keeps history: the column of the row's end and what current rows, the only ones that count, have there.
    pub current: Option<(usize, Value)>,
}

/// FOR PORTION OF: the row is cut to the portion, and what it was before and after is inserted again.
#[derive(Clone, Debug, PartialEq)]
pub struct PortionWrite {
    /// The columns of the period, in the record.
    pub start: usize,
    pub end: usize,
    /// The portion.
    pub from: Expr,
    pub to: Expr,
    /// Registers of the row that `rest` inserts, by columns of the record.
    pub given: Vec<Register>,
    pub rest: InsertPlan,
}

/// A table that is written.
#[derive(Clone, Debug, PartialEq)]
pub struct TableWrite {
    pub table: u64,
    pub engine: Arc<str>,
    pub schema: Arc<str>,
    pub name: Arc<str>,
    /// Stored columns in record order.
    pub columns: Vec<WrittenColumn>,
    /// Columns that are computed when read: a new row whose expressions fail is refused, and triggers and the binary log see them.
    pub virtuals: Vec<WrittenColumn>,
    /// CHECK constraints: name and predicate over the registers; violated when false (3819).
    pub checks: Vec<(Arc<str>, Expr)>,
    /// Conditions that the views written through put on the row.
    pub view_checks: Vec<ViewCheck>,
    /// The row must lie in the partitions that the statement names (1748).
    pub selected: Option<Expr>,
    /// Schema and name of the view that an INSERT names: errors for columns without a value and a default name it.
    pub view: Option<(Arc<str>, Arc<str>)>,
    /// Indexes: id, name as in messages (`t.PRIMARY`), columns; for the text of error 1062.
    pub indexes: Vec<(u32, Arc<str>, Vec<usize>)>,
    /// FULLTEXT indexes, and the parts of the primary key, if any.
    pub fulltext: Vec<FulltextWrite>,
    pub key: Vec<crate::KeyColumn>,
    /// The unique index that is asked last.
    pub last_unique: Option<u32>,
    /// `None`: it has none that the statement fires.
    pub triggers: Option<Box<Triggers>>,
    /// Foreign keys of this table: parents that must exist.
    pub parents: Vec<ForeignKeyCheck>,
    /// Foreign keys that refer to this table. Recursion through cascades is resolved by `exec` by table id, bounded at 15 levels.
    pub children: Vec<ForeignKeyCheck>,
    /// `None`: it keeps no history, or the statement is about history itself.
    pub history: Option<Box<HistoryWrite>>,
    /// PARTITION BY SYSTEM_TIME.
    pub partitions: Option<Arc<SystemPartitions>>,
    /// Its unique keys WITHOUT OVERLAPS.
    pub overlaps: Vec<OverlapCheck>,
    /// FOR PORTION OF.
    pub portion: Option<Box<PortionWrite>>,
}

/// Rows to insert.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// VALUES: one expression for each target column; `None` is DEFAULT.
    Values(Vec<Vec<Option<Expr>>>),
    /// SELECT: the plan's outputs in target order.
    Query(Box<QueryPlan>),
}

/// The action of an INSERT on a duplicate key.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertMode {
    /// 1062.
    Error,
    /// A warning, next row.
    Ignore,
    /// REPLACE.
    Replace,
    /// The table keeps one row, and the new one takes its place.
    Only,
    /// ON DUPLICATE KEY UPDATE. `new_columns[i]` holds the row that failed (VALUES(col), row alias); `columns[i].register` the row in the table.
    Update { assignments: Vec<Assignment>, new_columns: Vec<Register> },
}

/// `column = value`.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// Index in `TableWrite::columns`.
    pub column: usize,
    /// `None` is DEFAULT.
    pub value: Option<Expr>,
}

/// INSERT and REPLACE.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertPlan {
    pub target: TableWrite,
    /// Target columns in the order of the values.
    pub targets: Vec<usize>,
    pub source: InsertSource,
    pub mode: InsertMode,
    /// IGNORE: conversion errors and NULLs become warnings too.
    pub ignore: bool,
    pub returning: Vec<OutputColumn>,
    pub subqueries: Vec<Subquery>,
    pub ctes: Vec<(CteId, Physical, Vec<Expr>)>,
    pub registers: u32,
}

/// UPDATE, one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatePlan {
    /// Finds the rows; each target's locator and all its columns are in registers.
    pub root: Physical,
    /// Tables with their locator register and assignments, in order.
    pub targets: Vec<(TableWrite, Register, Vec<Assignment>)>,
    pub ignore: bool,
    /// Rows must be collected before the first is written (the scan could meet them again, or several tables are written).
    pub buffered: bool,
    pub limit: Option<Expr>,
    pub returning: Vec<OutputColumn>,
    /// Registers of values, each with the register that keeps for RETURNING what was there before.
    pub old: Vec<(Register, Register)>,
    pub subqueries: Vec<Subquery>,
    pub ctes: Vec<(CteId, Physical, Vec<Expr>)>,
    pub registers: u32,
}

/// DELETE, one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct DeletePlan {
    pub root: Physical,
    pub targets: Vec<(TableWrite, Register)>,
    pub ignore: bool,
    pub buffered: bool,
    pub limit: Option<Expr>,
    pub returning: Vec<OutputColumn>,
    pub subqueries: Vec<Subquery>,
    pub ctes: Vec<(CteId, Physical, Vec<Expr>)>,
    pub registers: u32,
}

/// Facts about a plan that the session needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanFlags {
    /// Reads or writes stored tables.
    pub uses_tables: bool,
    /// Takes row locks or writes.
    pub locking: bool,
    /// Optimizer's estimate of rows touched: above a limit the statement hands its reactor over before it runs.
    pub estimated_rows: u64,
    /// Must not be kept in the plan cache (depends on a literal's value, reads information tables...).
    pub uncacheable: bool,
    /// With literals in place of its parameters another plan may be better.
    pub wants_literals: bool,
}

/// A statement that `exec` runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    Query(QueryPlan),
    Insert(InsertPlan),
    Update(UpdatePlan),
    Delete(DeletePlan),
    /// DO: evaluated, results dropped.
    Do {
        exprs: Vec<Expr>,
        subqueries: Vec<Subquery>,
        ctes: Vec<(CteId, Physical, Vec<Expr>)>,
        registers: u32,
    },
    /// Constant answer made at bind time (EXPLAIN).
    Rows {
        columns: Vec<OutputColumn>,
        rows: Vec<Vec<Value>>,
    },
}

/// The program that runs work which both the batch and the row program can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ExecutionMode {
    /// The batch program where a scan is large.
    #[default]
    Auto,
    /// Always the row program.
    Row,
    /// The batch program however small the scan.
    Batch,
}
