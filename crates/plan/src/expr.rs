//! Expressions after name and type resolution.

use std::sync::Arc;

use types::{AggregateRef, CollationId, DataType, FunctionRef, TypeKind, Value};

/// A place in the statement's register file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Register(pub u32);

/// A subquery of the statement, index into `QueryPlan::subqueries`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubqueryId(pub u32);

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    Negate,
    BitNot,
    /// Three-valued NOT.
    Not,
    IsNull,
    IsNotNull,
    IsTrue,
    IsNotTrue,
    IsFalse,
    IsNotFalse,
}

/// Two operands. Comparisons convert by the reference's rules for the operands' static types; text uses `collation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Equal,
    NullSafeEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// Three-valued, evaluates the right side only when needed.
    And,
    /// Likewise.
    Or,
    Xor,
}

/// The use of a subquery in an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum SubqueryKind {
    /// The value of this column of its single row, or NULL; error 1242 on a second row. The columns of a row subquery share one run.
    Scalar(u32),
    /// Whether it has a row.
    Exists,
    /// `left IN (subquery)`, three-valued; rows compare column by column.
    In(Vec<Expr>),
    /// `left op ANY|ALL (subquery)`.
    Quantified(Vec<Expr>, BinaryOp, QuantifiedOp),
}

/// ANY (SOME) or ALL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantifiedOp {
    Any,
    All,
}

/// The origin of a conversion, which decides the effect of a lossy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CastKind {
    /// CAST or CONVERT: warnings.
    Explicit,
    /// The binder added it (enum to text, literal to the type of the column compared with): warnings as the reference.
    Implicit,
    /// A constant text compared with a value of this temporal type: error 1525 when it is not a date.
    Compared(TypeKind),
    /// Text of rows, or a number, compared with a date: a value that is not a date compares as the zero date, with a warning.
    BesideDate,
    /// A whole number compared with a value of this temporal type: if it is not a date, its digits are compared.
    NumberBeside(TypeKind),
    /// A constant compared with a YEAR: 1 to 99 mean 1970 to 2069.
    BesideYear,
    /// A constant text or double compared with an exact number of this type: as an exact number, with which an index can be searched.
    Exact(TypeKind),
    /// A parameter beside texts of another character set: an error when that lacks one of its characters, 3988 for a
    /// client's parameter and 3854 for a literal.
    Fitting { placeholder: bool },
    /// `TIMESTAMP` column read: UTC to session time zone.
    TimestampToLocal,
    /// Value for a `TIMESTAMP` column: session time zone to UTC.
    TimestampToUtc,
}

/// An expression. Every node knows its type (`ty`).
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A constant.
    Literal { value: Value, ty: DataType },
    /// Parameter `index` of a prepared statement, or a literal lifted by the plan cache.
    Parameter { index: u32, ty: DataType },
    /// A register.
    Column { register: Register, ty: DataType },
    /// `@name`; evaluated each time.
    UserVariable { name: Arc<str>, ty: DataType },
    /// `@name := value`.
    AssignUserVariable { name: Arc<str>, value: Box<Expr> },
    /// `@@name`, read once when the statement starts.
    SystemVariable { name: Arc<str>, global: bool, ty: DataType },
    /// One operand.
    Unary { op: UnaryOp, operand: Box<Expr>, ty: DataType },
    /// Two operands.
    Binary { op: BinaryOp, left: Box<Expr>, right: Box<Expr>, collation: CollationId, ty: DataType },
    /// `operand BETWEEN low AND high`, negated or not.
    Between {
        operand: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
        collation: CollationId,
    },
    /// `operand IN (list)`; `exec` hashes long constant lists.
    InList { operand: Box<Expr>, list: Vec<Expr>, negated: bool, collation: CollationId },
    /// `operand LIKE pattern ESCAPE escape`.
    Like {
        operand: Box<Expr>,
        pattern: Box<Expr>,
        escape: Option<Box<Expr>>,
        negated: bool,
        collation: CollationId,
    },
    /// `CASE`: with an operand each WHEN is compared with it.
    Case {
        operand: Option<Box<Expr>>,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
        collation: CollationId,
        ty: DataType,
    },
    /// The first value that is not NULL; what follows it is not computed.
    FirstNotNull { parts: Vec<Expr>, ty: DataType },
    /// Values that `rest` uses more than once, as `HeldValue`s: they are computed once.
    Held { values: Vec<Expr>, rest: Box<Expr> },
    /// Value `index` of the innermost `Held` around it. The other operands in its `rest` read no value that is held outside them.
    HeldValue { index: usize, ty: DataType },
    /// Conversion to `ty`.
    Cast { operand: Box<Expr>, kind: CastKind, ty: DataType },
    /// `COLLATE`, or an introducer: the same bytes under another collation.
    Collate { operand: Box<Expr>, ty: DataType },
    /// A function of the registry; `exec` binds it again to get the kernel.
    Function { function: FunctionRef, args: Vec<Expr>, ty: DataType },
    /// A stored function, by its number among the statement's programs. Other calls with the same arguments give the same value when it
    /// is `deterministic`.
    Stored { program: u32, args: Vec<Expr>, deterministic: bool, ty: DataType },
    /// MATCH: how well a row of a table fits a search. `row` identifies the row: the columns of its primary key or, without one,
    /// its locator.
    Match { search: Arc<FulltextSearch>, row: Vec<Expr>, against: Box<Expr> },
    /// Row constructor; only as operand of comparisons, IN and BETWEEN.
    Row(Vec<Expr>),
    /// A subquery.
    Subquery { id: SubqueryId, kind: SubqueryKind, negated: bool, ty: DataType },
}

/// How a search is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FulltextMode {
    /// Words and phrases.
    Natural,
    /// Likewise, and then for all words of the rows that were found.
    Expanded,
    /// Words with operators.
    Boolean,
}

/// The target of a MATCH: a FULLTEXT index of a table.
#[derive(Debug, PartialEq)]
pub struct FulltextSearch {
    /// The engine's id of the table.
    pub table: u64,
    /// Engine that holds it.
    pub engine: Arc<str>,
    /// The engine's id of the table of the index's entries.
    pub entries: u64,
    /// Name of the index, for EXPLAIN.
    pub name: Arc<str>,
    /// The columns as EXPLAIN names them.
    pub shown: Arc<str>,
    /// How AGAINST is read.
    pub mode: FulltextMode,
    /// Collation of the texts.
    pub collation: CollationId,
    /// Where their words begin and end.
    pub parser: types::fulltext::WordParser,
    /// The table's records, in which phrases are searched.
    pub layout: Arc<[DataType]>,
    /// Values for records older than their columns.
    pub missing: Arc<[Value]>,
    /// Columns of the index in the record.
    pub columns: Vec<usize>,
    /// Parts of the primary key, if any.
    pub key: Vec<KeyColumn>,
}

/// A part of a primary key, as needed to build a row's locator.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyColumn {
    /// Index in the record's layout.
    pub column: usize,
    /// Type.
    pub ty: DataType,
    /// Prefix length.
    pub prefix_length: Option<u32>,
    /// DESC.
    pub descending: bool,
}

impl Expr {
    /// A reference to `register`.
    pub fn column(register: Register, ty: DataType) -> Expr {
        Expr::Column { register, ty }
    }

    /// A constant.
    pub fn literal(value: Value, ty: DataType) -> Expr {
        Expr::Literal { value, ty }
    }

    /// `a AND b AND ..` (or OR, XOR) in order, as a tree of logarithmic height; `None` without operands.
    pub fn balanced(op: BinaryOp, mut operands: Vec<Expr>) -> Option<Expr> {
        while operands.len() > 1 {
            let mut next = Vec::with_capacity(operands.len().div_ceil(2));
            let mut rest = operands.into_iter();
            while let Some(left) = rest.next() {
                next.push(match rest.next() {
                    Some(right) => Expr::connected(op, left, right),
                    None => left,
                });
            }
            operands = next;
        }
        operands.pop()
    }

    /// `left op right` for AND, OR and XOR.
    pub fn connected(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        let nullable = left.ty().nullable || right.ty().nullable;
        Expr::Binary {
            op,
            left: Box::new(left),
            right: Box::new(right),
            collation: CollationId::BINARY,
            ty: DataType::boolean().with_nullable(nullable),
        }
    }

    /// Whether the expression must be neither moved, repeated nor omitted: it gives another value each time, or has an effect.
    pub fn is_volatile(&self) -> bool {
        self.any(&mut |node| match node {
            Expr::AssignUserVariable { .. } => true,
            Expr::Stored { deterministic, .. } => !deterministic,
            Expr::Function { function, .. } => function.is_volatile(),
            _ => false,
        })
    }

    /// The static type. A row has the type of its first element.
    pub fn ty(&self) -> DataType {
        match self {
            Expr::Literal { ty, .. }
            | Expr::Parameter { ty, .. }
            | Expr::Column { ty, .. }
            | Expr::UserVariable { ty, .. }
            | Expr::SystemVariable { ty, .. }
            | Expr::Unary { ty, .. }
            | Expr::Binary { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::FirstNotNull { ty, .. }
            | Expr::HeldValue { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Collate { ty, .. }
            | Expr::Function { ty, .. }
            | Expr::Stored { ty, .. }
            | Expr::Subquery { ty, .. } => ty.clone(),
            Expr::AssignUserVariable { value, .. } => value.ty(),
            Expr::Held { rest, .. } => rest.ty(),
            Expr::Between { .. } | Expr::InList { .. } | Expr::Like { .. } => {
                DataType::boolean().with_nullable(self.is_nullable())
            }
            Expr::Match { .. } => DataType::double().with_nullable(true),
            Expr::Row(items) => items.first().map_or_else(DataType::null, Expr::ty),
        }
    }

    /// Whether its type has NULL; that of a row: whether one of its items has.
    pub fn is_nullable(&self) -> bool {
        match self {
            Expr::Literal { ty, .. }
            | Expr::Parameter { ty, .. }
            | Expr::Column { ty, .. }
            | Expr::UserVariable { ty, .. }
            | Expr::SystemVariable { ty, .. }
            | Expr::Unary { ty, .. }
            | Expr::Binary { ty, .. }
            | Expr::Case { ty, .. }
            | Expr::FirstNotNull { ty, .. }
            | Expr::HeldValue { ty, .. }
            | Expr::Cast { ty, .. }
            | Expr::Collate { ty, .. }
            | Expr::Function { ty, .. }
            | Expr::Stored { ty, .. }
            | Expr::Subquery { ty, .. } => ty.nullable,
            Expr::AssignUserVariable { value, .. } => value.is_nullable(),
            Expr::Held { rest, .. } => rest.is_nullable(),
            Expr::Between { operand, low, high, .. } => {
                operand.is_nullable() || low.is_nullable() || high.is_nullable()
            }
            Expr::InList { operand, list, .. } => {
                operand.is_nullable() || list.iter().any(Expr::is_nullable)
            }
            Expr::Like { operand, pattern, .. } => operand.is_nullable() || pattern.is_nullable(),
            Expr::Match { .. } => true,
            Expr::Row(items) => items.iter().any(Expr::is_nullable),
        }
    }
}

/// ORDER BY element.
#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    /// The sort value; text sorts by its type's collation, NULLs first when ascending.
    pub expr: Expr,
    /// DESC.
    pub descending: bool,
}

/// A call of an aggregate function.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// The function called.
    pub function: AggregateRef,
    /// Arguments; none for `COUNT(*)`.
    pub args: Vec<Expr>,
    /// DISTINCT.
    pub distinct: bool,
    /// Order in which rows reach the function (GROUP_CONCAT, JSON_ARRAYAGG).
    pub order_by: Vec<SortKey>,
    /// SEPARATOR.
    pub separator: Option<Box<[u8]>>,
    /// The register of the result.
    pub output: Register,
    /// Result type.
    pub ty: DataType,
}

/// ROWS or RANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameUnit {
    Rows,
    Range,
}

/// End of a window frame. For ROWS the expression is a number of rows. For RANGE it is the value of the order key at that end,
/// computed for the current row (`key - amount`, `key + INTERVAL ..`, the other way round for DESC): a row belongs to the frame
/// while its key is not beyond that value.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Expr),
    CurrentRow,
    Following(Expr),
    UnboundedFollowing,
}

/// A window frame.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    pub end: FrameBound,
}

/// The function called over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lead,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
    /// An aggregate over the rows of the frame.
    Aggregate(AggregateRef),
}

impl WindowFunction {
    /// Its name in SQL, upper case.
    pub fn name(self) -> &'static str {
        match self {
            WindowFunction::RowNumber => "ROW_NUMBER",
            WindowFunction::Rank => "RANK",
            WindowFunction::DenseRank => "DENSE_RANK",
            WindowFunction::PercentRank => "PERCENT_RANK",
            WindowFunction::CumeDist => "CUME_DIST",
            WindowFunction::Ntile => "NTILE",
            WindowFunction::Lead => "LEAD",
            WindowFunction::Lag => "LAG",
            WindowFunction::FirstValue => "FIRST_VALUE",
            WindowFunction::LastValue => "LAST_VALUE",
            WindowFunction::NthValue => "NTH_VALUE",
            WindowFunction::Aggregate(aggregate) => aggregate.name,
        }
    }
}

/// A call over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    pub function: WindowFunction,
    pub args: Vec<Expr>,
    pub frame: WindowFrame,
    pub output: Register,
    pub ty: DataType,
}
