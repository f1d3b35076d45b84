//! Queries: SELECT and its surrounding clauses.

use super::{DataType, DualityObject, Expr, ExprKind, Ident, JsonOn, ObjectName, Span, WindowSpec};

/// A query expression with everything that may follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// `WITH`.
    pub with: Option<With>,
    /// The select list.
    pub body: SetExpr,
    /// `ORDER BY` of the whole.
    pub order_by: Vec<OrderItem>,
    /// `LIMIT` of the whole.
    pub limit: Option<Limit>,
    /// `FOR UPDATE`, `FOR SHARE`, `LOCK IN SHARE MODE`.
    pub locking: Vec<Locking>,
    /// `INTO`.
    pub into: Option<Into>,
    /// Its source text, without enclosing parentheses.
    pub span: Span,
}

impl Query {
    /// The object of the documents, where the query is one of a JSON duality view.
    pub fn duality_root(&mut self) -> Option<&mut DualityObject> {
        match &mut self.body {
            SetExpr::Query(query) => query.duality_root(),
            SetExpr::Select(select) => {
                let item = &mut select.items.first_mut()?.kind;
                let SelectItemKind::Expr { expr, .. } = item else { return None };
                let ExprKind::DualityObject(object) = &mut expr.kind else { return None };
                Some(object)
            }
            SetExpr::Values(_) | SetExpr::Table(_) | SetExpr::SetOp(_) => None,
        }
    }
}

/// `WITH [RECURSIVE] cte, ...`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<Cte>,
}

/// `name [(columns)] AS (query)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Cte {
    pub name: Ident,
    pub columns: Vec<Ident>,
    pub query: Box<Query>,
}

/// The body of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum SetExpr {
    /// `SELECT`.
    Select(Box<Select>),
    /// `VALUES ROW(..), ...`.
    Values(Vec<Vec<Expr>>),
    /// `TABLE t`.
    Table(ObjectName),
    /// `a UNION b ...`.
    SetOp(Box<SetOp>),
    /// `(query)`.
    Query(Box<Query>),
}

/// A chain of set operations of one precedence, applied from left to right. `INTERSECT` binds
/// tighter and so makes a separate chain inside.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SetOp {
    pub first: SetExpr,
    /// At least one.
    pub rest: Vec<SetOpTerm>,
}

/// `UNION [ALL] right` and kin.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct SetOpTerm {
    pub op: SetOperator,
    pub all: bool,
    pub right: SetExpr,
}

/// The set operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

/// `SELECT ...` up to the WINDOW clause.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// `DISTINCT` and kin.
    pub options: SelectOptions,
    /// The text between `/*+` and `*/`, where there was one.
    pub hints: Option<Box<str>>,
    /// The select list.
    pub items: Vec<SelectItem>,
    /// Comma-separated table references; empty without FROM and for `FROM DUAL`.
    pub from: Vec<TableFactor>,
    /// `FROM DUAL`.
    pub from_dual: bool,
    /// `WHERE`.
    pub filter: Option<Expr>,
    /// `GROUP BY`.
    pub group_by: Option<GroupBy>,
    /// `HAVING`.
    pub having: Option<Expr>,
    /// `WINDOW name AS (..), ...`.
    pub windows: Vec<(Ident, WindowSpec)>,
    /// `QUALIFY`.
    pub qualify: Option<Expr>,
    /// Its source text.
    pub span: Span,
}

/// The words between SELECT and the select list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SelectOptions {
    pub distinct: bool,
    pub all: bool,
    pub straight_join: bool,
    pub high_priority: bool,
    pub small_result: bool,
    pub big_result: bool,
    pub buffer_result: bool,
    pub no_cache: bool,
    pub calc_found_rows: bool,
}

/// One item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectItem {
    /// Its kind.
    pub kind: SelectItemKind,
    /// The source text without the alias: the caption of an expression that has none
    /// (see `syntax::caption`).
    pub span: Span,
}

/// The kind of an item of a select list.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItemKind {
    /// An expression.
    Expr {
        /// It.
        expr: Expr,
        /// `[AS] alias`.
        alias: Option<Ident>,
    },
    /// `*`.
    Wildcard,
    /// `[schema.]table.*`.
    QualifiedWildcard(ObjectName),
}

/// `GROUP BY`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupBy {
    /// Its list. Of several elements, every set of one is combined with every set of the others.
    pub elements: Vec<GroupElement>,
    /// `WITH ROLLUP`; also `ROLLUP (a, ...)` alone, which means the same. All elements are expressions then.
    pub with_rollup: bool,
}

/// An element of GROUP BY: a list of sets of keys by which rows are grouped.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupElement {
    /// One expression: the set of it.
    Expr(Expr),
    /// `(a, ...)` within GROUPING SETS, or `()`: one set.
    Set(Vec<Expr>),
    /// `ROLLUP (...)`: all of its parts, all but the last, and so on to none.
    Rollup(Vec<Vec<Expr>>),
    /// `CUBE (...)`: every selection of its parts.
    Cube(Vec<Vec<Expr>>),
    /// `GROUPING SETS (...)`: the sets of its elements, one after the other.
    Sets(Vec<GroupElement>),
}

/// One expression of ORDER BY.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct OrderItem {
    pub expr: Expr,
    pub desc: bool,
}

/// `LIMIT`: row count and offset are integer literals, parameters or program variables.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
}

/// A table reference.
#[derive(Clone, Debug, PartialEq)]
pub enum TableFactor {
    /// A table, view or common table expression by name.
    Table(Box<NamedTable>),
    /// `[LATERAL] (query) alias`.
    Derived(Box<DerivedTable>),
    /// `JSON_TABLE(...) alias`.
    JsonTable(Box<JsonTable>),
    /// `name(...) [alias]`.
    Function(Box<TableFunction>),
    /// `a JOIN b`.
    Join(Box<Join>),
    /// `(a, b, ...)`: two or more.
    List(Vec<TableFactor>),
}

/// A table by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedTable {
    /// Its name.
    pub name: ObjectName,
    /// `PARTITION (p, ...)`.
    pub partitions: Vec<Ident>,
    /// `FOR SYSTEM_TIME`.
    pub system_time: Option<SystemTime>,
    /// `[AS] alias`.
    pub alias: Option<Ident>,
    /// `TABLESAMPLE`.
    pub sample: Option<TableSample>,
    /// Index hints in order.
    pub index_hints: Vec<IndexHint>,
}

/// `TABLESAMPLE {SYSTEM|BERNOULLI} (percent)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TableSample {
    pub bernoulli: bool,
    pub percent: Expr,
}

/// `FOR SYSTEM_TIME ...` of system-versioned tables.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum SystemTime {
    AsOf(SystemPoint),
    Between(SystemPoint, SystemPoint),
    FromTo(SystemPoint, SystemPoint),
    All,
}

/// A point of system time.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum SystemPoint {
    Timestamp(Box<Expr>),
    Transaction(Box<Expr>),
}

/// `USE|IGNORE|FORCE INDEX [FOR ..] (..)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub scope: IndexHintScope,
    /// Empty only for `USE INDEX ()`.
    pub indexes: Vec<Ident>,
}

/// The effect of an index hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintKind {
    Use,
    Ignore,
    Force,
}

/// The purpose that an index hint applies to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum IndexHintScope {
    #[default]
    All,
    Join,
    OrderBy,
    GroupBy,
}

/// `[LATERAL] (query) [AS] alias [(columns)]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DerivedTable {
    pub lateral: bool,
    pub query: Query,
    pub alias: Ident,
    pub columns: Vec<Ident>,
}

/// `name(args) [[AS] alias]`: a function whose rows are a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct TableFunction {
    pub name: Ident,
    pub args: Vec<Expr>,
    pub alias: Option<Ident>,
}

/// `JSON_TABLE(doc, path COLUMNS (...)) [AS] alias`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct JsonTable {
    pub doc: Expr,
    pub path: Box<str>,
    pub columns: Vec<JsonTableColumn>,
    pub alias: Ident,
}

/// A column of JSON_TABLE.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum JsonTableColumn {
    Ordinality(Ident),
    Path {
        name: Ident,
        data_type: Box<DataType>,
        path: Box<str>,
        on_empty: Option<JsonOn>,
        on_error: Option<JsonOn>,
    },
    Exists {
        name: Ident,
        data_type: Box<DataType>,
        path: Box<str>,
    },
    Nested {
        path: Box<str>,
        columns: Vec<JsonTableColumn>,
    },
}

/// A join.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Join {
    pub kind: JoinKind,
    pub left: TableFactor,
    pub right: TableFactor,
    pub condition: JoinCondition,
}

/// The kinds of join. `CROSS JOIN` and `JOIN` are `Inner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum JoinKind {
    Inner,
    /// `STRAIGHT_JOIN`: inner, left side first.
    Straight,
    Left,
    Right,
    /// `FULL [OUTER] JOIN`; the reference has none.
    Full,
}

/// The condition of a join.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum JoinCondition {
    None,
    On(Expr),
    Using(Vec<Ident>),
    Natural,
}

/// `FOR UPDATE|SHARE [OF t, ..] [NOWAIT|SKIP LOCKED]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Locking {
    pub strength: LockStrength,
    pub of: Vec<ObjectName>,
    pub wait: LockWait,
}

/// How rows are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockStrength {
    Update,
    Share,
    /// `LOCK IN SHARE MODE`.
    ShareMode,
}

/// The behaviour at a lock held by another transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum LockWait {
    #[default]
    Wait,
    NoWait,
    SkipLocked,
    /// MariaDB's `WAIT n`.
    Seconds(u64),
}

/// The destination of a query's rows instead of the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Into {
    /// `INTO OUTFILE`.
    Outfile {
        /// The file.
        file: Box<str>,
        /// `CHARACTER SET`.
        charset: Option<Ident>,
        /// Its format.
        format: Box<super::FileFormat>,
    },
    /// `INTO DUMPFILE`.
    Dumpfile(Box<str>),
    /// `INTO @a, b, ...`.
    Variables(Vec<IntoVariable>),
}

/// A target of `INTO` and of GET DIAGNOSTICS.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum IntoVariable {
    User(Ident),
    /// A parameter or local variable of a stored program.
    Local(super::LocalVariable),
}
