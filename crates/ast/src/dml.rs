//! Statements that change rows.

use super::{
    Expr, Ident, Limit, ObjectName, OrderItem, Query, SelectItem, TableFactor, VarScope, With,
};

/// `INSERT` and `REPLACE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// `REPLACE`.
    pub replace: bool,
    /// `LOW_PRIORITY`, `DELAYED`, `HIGH_PRIORITY`.
    pub priority: Priority,
    /// `IGNORE`.
    pub ignore: bool,
    /// The text of `/*+ .. */`.
    pub hints: Option<Box<str>>,
    /// The table.
    pub table: ObjectName,
    /// `PARTITION (..)`.
    pub partitions: Vec<Ident>,
    /// The columns (`[table.]column`), where listed.
    pub columns: Option<Vec<super::ColumnName>>,
    /// The rows to insert.
    pub source: InsertSource,
    /// `AS row [(columns)]`.
    pub row_alias: Option<RowAlias>,
    /// `ON DUPLICATE KEY UPDATE`.
    pub on_duplicate: Vec<Assignment>,
    /// `RETURNING`.
    pub returning: Vec<SelectItem>,
}

/// Scheduling words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Priority {
    #[default]
    Normal,
    Low,
    Delayed,
    High,
}

/// The source of an INSERT's rows.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// `VALUES (..), (..)`, also `VALUES ROW(..)` and `DEFAULT VALUES` as one empty row.
    /// `DEFAULT` is [`super::ExprKind::Default`]`(None)`.
    Values(Vec<Vec<Expr>>),
    /// `SET a = b, ...`.
    Set(Vec<Assignment>),
    /// `SELECT`, `TABLE t`, `WITH ...`.
    Query(Box<Query>),
}

/// `AS row [(a, b)]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RowAlias {
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// `column = value`; the value may be `DEFAULT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Assignment {
    pub column: super::ColumnName,
    pub value: Expr,
}

/// `UPDATE`, of one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// `WITH`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// The text of `/*+ .. */`.
    pub hints: Option<Box<str>>,
    /// Table references; one plain table is the single-table form.
    pub tables: Vec<TableFactor>,
    /// MariaDB's `FOR PORTION OF` (single-table form).
    pub portion: Option<Box<Portion>>,
    /// `SET`.
    pub set: Vec<Assignment>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY` (single-table form).
    pub order_by: Vec<OrderItem>,
    /// `LIMIT n` (single-table form).
    pub limit: Option<Limit>,
    /// `RETURNING`.
    pub returning: Vec<SelectItem>,
}

/// MariaDB's `FOR PORTION OF name FROM from TO to`.
#[derive(Clone, Debug, PartialEq)]
pub struct Portion {
    /// The period.
    pub name: Ident,
    /// Where the portion begins.
    pub from: Expr,
    /// Where it ends.
    pub to: Expr,
}

impl Update {
    /// Does it name more than one plain table?
    pub fn is_multi_table(&self) -> bool {
        !matches!(self.tables.as_slice(), [TableFactor::Table(_)])
    }
}

/// `DELETE`, of one or more tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// `WITH`.
    pub with: Option<With>,
    /// `LOW_PRIORITY`.
    pub low_priority: bool,
    /// `QUICK`.
    pub quick: bool,
    /// `IGNORE`.
    pub ignore: bool,
    /// The text of `/*+ .. */`.
    pub hints: Option<Box<str>>,
    /// The rows to delete.
    pub target: DeleteTarget,
    /// MariaDB's `FOR PORTION OF` (single-table form).
    pub portion: Option<Box<Portion>>,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `ORDER BY` (single-table form).
    pub order_by: Vec<OrderItem>,
    /// `LIMIT n` (single-table form).
    pub limit: Option<Limit>,
    /// `RETURNING` (single-table form).
    pub returning: Vec<SelectItem>,
}

/// The two forms of DELETE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum DeleteTarget {
    /// `DELETE FROM t`.
    Single(Box<super::NamedTable>),
    /// `DELETE a, b FROM refs`, `DELETE FROM a, b USING refs`.
    Multi { tables: Vec<ObjectName>, using: bool, from: Vec<TableFactor> },
    /// MariaDB's `DELETE HISTORY FROM t [BEFORE SYSTEM_TIME x]`.
    History { table: Box<super::NamedTable>, before: Option<super::SystemPoint> },
}

/// `LOAD DATA` and `LOAD XML`.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadData {
    /// `LOAD XML`.
    pub xml: bool,
    /// `LOW_PRIORITY`/`CONCURRENT`.
    pub priority: LoadPriority,
    /// `LOCAL`: the client sends the file.
    pub local: bool,
    /// The location of the file.
    pub source: LoadSource,
    /// The file name.
    pub file: Box<str>,
    /// `COUNT n` (bulk load).
    pub file_count: Option<u64>,
    /// `IN PRIMARY KEY ORDER` (bulk load).
    pub in_primary_key_order: bool,
    /// `REPLACE`/`IGNORE`.
    pub duplicates: LoadDuplicates,
    /// The table.
    pub table: ObjectName,
    /// `PARTITION (..)`.
    pub partitions: Vec<Ident>,
    /// `CHARACTER SET`.
    pub charset: Option<Ident>,
    /// `COMPRESSION = '..'`.
    pub compression: Option<Box<str>>,
    /// `ROWS IDENTIFIED BY '<tag>'`.
    pub rows_identified_by: Option<Box<str>>,
    /// `FIELDS`, `LINES`.
    pub format: FileFormat,
    /// `IGNORE n LINES|ROWS`.
    pub ignore_lines: u64,
    /// Columns and user variables, where listed.
    pub columns: Vec<LoadColumn>,
    /// `SET`.
    pub set: Vec<Assignment>,
    /// `PARALLEL = n`.
    pub parallel: Option<u64>,
    /// `MEMORY = n`.
    pub memory: Option<u64>,
    /// `ALGORITHM = BULK`.
    pub bulk: bool,
}

/// Scheduling of LOAD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadPriority {
    #[default]
    Normal,
    Low,
    Concurrent,
}

/// Where LOAD reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadSource {
    #[default]
    File,
    Url,
    S3,
}

/// How LOAD handles duplicate keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LoadDuplicates {
    #[default]
    Error,
    Replace,
    Ignore,
}

/// A target of LOAD.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum LoadColumn {
    Column(super::ColumnName),
    UserVar(Ident),
}

/// `FIELDS ..` and `LINES ..` of LOAD DATA and INTO OUTFILE; absent parts have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct FileFormat {
    pub fields_terminated_by: Option<Box<[u8]>>,
    pub fields_enclosed_by: Option<Box<[u8]>>,
    pub fields_optionally_enclosed: bool,
    pub fields_escaped_by: Option<Box<[u8]>>,
    pub lines_starting_by: Option<Box<[u8]>>,
    pub lines_terminated_by: Option<Box<[u8]>>,
}

/// `HANDLER t ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Handler {
    pub table: ObjectName,
    pub action: HandlerAction,
}

/// Operations of HANDLER.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum HandlerAction {
    Open { alias: Option<Ident> },
    Close,
    Read { index: Option<Ident>, step: HandlerStep, filter: Option<Expr>, limit: Option<Limit> },
}

/// The direction of HANDLER READ.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum HandlerStep {
    First,
    Next,
    Prev,
    Last,
    Key { op: HandlerKeyOp, values: Vec<Expr> },
}

/// Comparison of HANDLER READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HandlerKeyOp {
    Eq,
    GtEq,
    LtEq,
    Gt,
    Lt,
}

/// `CALL p(..)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Call {
    pub name: ObjectName,
    pub args: Vec<Expr>,
}

/// One item of a SET statement.
#[derive(Clone, Debug, PartialEq)]
pub enum SetItem {
    /// `@a = expr`.
    UserVar {
        /// Name.
        name: Ident,
        /// Value.
        value: Box<Expr>,
    },
    /// `name = value` of a stored program's variable.
    Local {
        /// The variable.
        variable: super::LocalVariable,
        /// Value.
        value: Box<Expr>,
    },
    /// `[scope] name = value`, `@@scope.name = value` (`NEW.col` of a trigger has `component` NEW).
    Variable {
        /// Scope word.
        scope: Option<VarScope>,
        /// Written with `@@`.
        at_at: bool,
        /// `component.`.
        component: Option<Ident>,
        /// Name.
        name: Ident,
        /// Value: `DEFAULT` is `ExprKind::Default(None)`; `ON`, `ALL`, `BINARY`, `ROW`, `SYSTEM`
        /// and bare identifiers come as columns.
        value: Box<Expr>,
    },
    /// `NAMES cs [COLLATE c]`, `NAMES DEFAULT`.
    Names {
        /// None is `DEFAULT`.
        charset: Option<Ident>,
        /// `COLLATE`.
        collation: Option<Ident>,
    },
    /// `CHARACTER SET cs`, `CHARSET cs`.
    CharacterSet(Option<Ident>),
}
