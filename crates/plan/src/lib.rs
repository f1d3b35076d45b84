//! The meaning and the execution plan of a statement, as data: expressions, logical and physical operators, write plans.
//!
//! Invariant: data only. Functions are named, tables are named by id, nothing here can run; `exec` runs it.
//!
//! All rows of a statement live in one register file: every column instance of every table reference, and every computed value,
//! has its own register (`Register`). Operators fill registers, expressions read them; a correlated subquery reads the outer
//! query's registers directly. Operators that keep rows (sort, hash, materialise) save and restore the registers that the plan names.

mod expr;
mod logical;
mod physical;
pub mod print;
mod statement;
mod verify;
mod walk;
pub mod writing;

pub use expr::{
    AggregateCall, BinaryOp, CastKind, Expr, FrameBound, FrameUnit, FulltextMode, FulltextSearch,
    KeyColumn, QuantifiedOp, Register, SortKey, SubqueryId, SubqueryKind, UnaryOp, WindowCall,
    WindowFrame, WindowFunction,
};
pub use logical::{
    ExplainFormat, IndexHint, IndexHintKind, IndexHintScope, InstanceId, JsonLevel, JsonRows,
    KeyWalk, Logical, LogicalCte, LogicalInsert, LogicalInsertSource, LogicalJoinKind, LogicalPlan,
    LogicalQuery, LogicalStatement, LogicalSubquery, LogicalTarget, LogicalWrite, PartitionRouting,
    TableInstance,
};
pub use physical::{
    Access, AggregateMode, CteId, EntryPart, EntryParts, Firsts, GroupSets, IndexKeySource,
    JoinKind, MergeArm, Physical, RangeBound, RangeSpec, RowLocking, SetOperation, TableAccess,
};
pub use statement::{
    Assignment, ColumnSource, DeletePlan, ExecutionMode, ForeignKeyAction, ForeignKeyCheck,
    FulltextWrite, HistoryWrite, InsertMode, InsertPlan, InsertSource, Making, OutputColumn,
    OverlapCheck, Plan, PlanFlags, PortionWrite, QueryPlan, Subquery, SystemPartitions, TableWrite,
    Triggers, UpdatePlan, ViewCheck, WrittenColumn, WrittenElements,
};
pub use verify::broken_promises;
pub use walk::RegisterSet;
