//! Expressions. Nothing here knows how they are typed or computed.

use super::{DataType, Ident, OrderItem, Query, Span};

/// An expression and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its source text, without enclosing parentheses.
    pub span: Span,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant.
    Literal(Literal),
    /// `?`, or a literal lifted by the plan cache: counted from 0 over the statement.
    Param(u32),
    /// `[[schema.]table.]column`.
    Column(Box<ColumnName>),
    /// `@name`.
    UserVar(Ident),
    /// `@@[scope.][component.]name`.
    SystemVar(Box<SystemVar>),
    /// `-a`, `~a`, `+a`, `BINARY a`.
    Unary {
        /// Which.
        op: UnaryOp,
        /// The operand.
        expr: Box<Expr>,
    },
    /// Arithmetic, bit and comparison operators.
    Binary {
        /// Which.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `a AND b AND ...`: two or more, flattened.
    And(Vec<Expr>),
    /// `a OR b OR ...`: two or more, flattened.
    Or(Vec<Expr>),
    /// `a XOR b`.
    Xor(Box<Expr>, Box<Expr>),
    /// `NOT a`.
    Not(Box<Expr>),
    /// `!a`, which means the same and is deprecated.
    NotSign(Box<Expr>),
    /// `a || b || ...` under PIPES_AS_CONCAT: two or more, flattened.
    Concat(Vec<Expr>),
    /// `a [NOT] BETWEEN low AND high`.
    Between(Box<Between>),
    /// `a [NOT] IN (b, ...)`.
    InList {
        /// The left side.
        expr: Box<Expr>,
        /// The list; never empty.
        list: Vec<Expr>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `a [NOT] IN (SELECT ...)`.
    InSubquery {
        /// The left side.
        expr: Box<Expr>,
        /// The subquery.
        query: Box<Query>,
        /// `NOT IN`.
        negated: bool,
    },
    /// `a [NOT] LIKE b [ESCAPE c]`.
    Like(Box<Like>),
    /// `a [NOT] REGEXP b`.
    Regexp {
        /// The text.
        expr: Box<Expr>,
        /// The pattern.
        pattern: Box<Expr>,
        /// `NOT REGEXP`.
        negated: bool,
    },
    /// `a IS [NOT] NULL|TRUE|FALSE|UNKNOWN`.
    Is {
        /// The operand.
        expr: Box<Expr>,
        /// Compared with.
        test: IsTest,
        /// `IS NOT`.
        negated: bool,
    },
    /// `CASE`.
    Case(Box<Case>),
    /// `CAST(a AS type)`, `CONVERT(a, type)`.
    Cast(Box<Cast>),
    /// `CONVERT(a USING charset)`.
    ConvertUsing {
        /// The operand.
        expr: Box<Expr>,
        /// To which character set.
        charset: Ident,
    },
    /// `a COLLATE name`.
    Collate {
        /// The operand.
        expr: Box<Expr>,
        /// The collation.
        collation: Ident,
    },
    /// A function in plain call form, native, loadable or stored.
    Function(Box<FunctionCall>),
    /// An aggregate function.
    Aggregate(Box<AggregateCall>),
    /// A function that exists only over windows.
    Window(Box<WindowCall>),
    /// `a + INTERVAL b unit`, `DATE_ADD(a, INTERVAL b unit)` and similar.
    DateArith(Box<DateArith>),
    /// `EXTRACT(unit FROM a)`.
    Extract {
        /// Which part.
        unit: IntervalUnit,
        /// The operand.
        expr: Box<Expr>,
    },
    /// `POSITION(a IN b)`.
    Position {
        /// The text to find.
        needle: Box<Expr>,
        /// Where.
        haystack: Box<Expr>,
    },
    /// `SUBSTRING(a FROM b FOR c)`, `SUBSTRING(a, b, c)`, `SUBSTR`, `MID`.
    Substring(Box<Substring>),
    /// `TRIM(...)`.
    Trim(Box<Trim>),
    /// `CHAR(a, ... [USING charset])`.
    Char {
        /// Codes.
        args: Vec<Expr>,
        /// `USING`.
        charset: Option<Ident>,
    },
    /// `WEIGHT_STRING(a [AS CHAR(n)|BINARY(n)])`.
    WeightString(Box<WeightString>),
    /// `GET_FORMAT(DATE|TIME|DATETIME, a)`.
    GetFormat {
        /// The type whose format is requested.
        kind: GetFormatKind,
        /// Which.
        expr: Box<Expr>,
    },
    /// `TIMESTAMPADD(unit, a, b)`.
    TimestampAdd {
        /// The unit.
        unit: IntervalUnit,
        /// How many.
        amount: Box<Expr>,
        /// The value to add to.
        expr: Box<Expr>,
    },
    /// `TIMESTAMPDIFF(unit, a, b)`.
    TimestampDiff {
        /// The unit.
        unit: IntervalUnit,
        /// From.
        from: Box<Expr>,
        /// To.
        to: Box<Expr>,
    },
    /// `MATCH (a, ...) AGAINST (b mode)`.
    Match(Box<Match>),
    /// `(SELECT ...)`: scalar or row.
    Subquery(Box<Query>),
    /// `EXISTS (SELECT ...)`.
    Exists(Box<Query>),
    /// `a op ANY|ALL (SELECT ...)`; `SOME` is `ANY`.
    Quantified {
        /// Left side.
        left: Box<Expr>,
        /// The comparison.
        op: BinaryOp,
        /// `ALL`, otherwise `ANY`.
        all: bool,
        /// The subquery.
        query: Box<Query>,
    },
    /// `ROW(a, b, ...)`, `(a, b, ...)`: two or more.
    Row(Vec<Expr>),
    /// `a MEMBER OF (b)`.
    MemberOf {
        /// The value.
        value: Box<Expr>,
        /// The JSON array.
        array: Box<Expr>,
    },
    /// `column -> path`, `column ->> path`.
    JsonExtract {
        /// A column, or the column of a trigger's row.
        value: Box<Expr>,
        /// The path.
        path: Box<StringLiteral>,
        /// `->>`.
        unquote: bool,
    },
    /// `JSON_VALUE(...)`.
    JsonValue(Box<JsonValue>),
    /// `JSON_DUALITY_OBJECT(..)`.
    DualityObject(Box<DualityObject>),
    /// `DEFAULT(column)`, or bare `DEFAULT` as a value of INSERT, UPDATE and SET.
    Default(Option<Box<ColumnName>>),
    /// `VALUES(column)` in ON DUPLICATE KEY UPDATE; MariaDB's `VALUE(column)`.
    Values(Box<ColumnName>),
    /// `@name := value`.
    Assign {
        /// The user variable.
        variable: Ident,
        /// Its new value.
        value: Box<Expr>,
    },
    /// `INTERVAL(a, b, ...)`, the comparison function.
    IntervalFunction(Vec<Expr>),
    /// `a SOUNDS LIKE b`.
    SoundsLike(Box<Expr>, Box<Expr>),
    /// `NEXT VALUE FOR seq`, `NEXTVAL(seq)`.
    NextValue(Box<super::ObjectName>),
    /// `PREVIOUS VALUE FOR seq`, `LASTVAL(seq)`.
    PreviousValue(Box<super::ObjectName>),
    /// `GROUPING(a, ...)`.
    Grouping(Vec<Expr>),
    /// ODBC escape `{name a}`, where `name` is not d, t or ts: means `a`.
    OdbcEscape {
        /// The word after the brace.
        name: Ident,
        /// The value.
        expr: Box<Expr>,
    },
}

/// A constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `NULL`, `\N`.
    Null,
    /// `TRUE`, `FALSE`.
    Bool(bool),
    /// Digits that fit 64 bits unsigned.
    Integer(u64),
    /// Digits with a point, or too many digits; as written.
    Decimal(Box<str>),
    /// With an exponent; as written.
    Float(Box<str>),
    /// `'...'`.
    String(Box<StringLiteral>),
    /// `x'..'`, `0x..`.
    Hex(Box<BinaryLiteral>),
    /// `b'..'`, `0b..`.
    Bit(Box<BinaryLiteral>),
    /// `DATE '..'`, `{d '..'}` and kin.
    Temporal {
        /// Which type.
        kind: TemporalKind,
        /// The text inside.
        text: Box<[u8]>,
        /// In ODBC's braces, where an invalid text is not an error but remains a text.
        in_braces: bool,
    },
}

/// A character string constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StringLiteral {
    /// Escapes resolved, adjacent literals joined; bytes of the statement's character set.
    pub value: Box<[u8]>,
    /// `_utf8mb4'..'`: the introducer without its underscore.
    pub introducer: Option<Ident>,
    /// `N'..'`.
    pub national: bool,
}

/// A hexadecimal or bit constant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BinaryLiteral {
    /// Its bytes, first byte most significant.
    pub value: Box<[u8]>,
    /// An introducer without its underscore.
    pub introducer: Option<Ident>,
}

/// The types that have literals with a keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TemporalKind {
    Date,
    Time,
    Timestamp,
}

/// `[[schema.]table.]column`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnName {
    /// The schema, where written.
    pub schema: Option<Ident>,
    /// The table, where written.
    pub table: Option<Ident>,
    /// The column.
    pub name: Ident,
}

/// The scope word of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum VarScope {
    Session,
    Global,
    Persist,
    PersistOnly,
    /// Of `ALTER SYSTEM SET`: what listeners have, and the value that is kept.
    System,
}

/// `@@[scope.][component.]name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemVar {
    /// `GLOBAL.`, `SESSION.`/`LOCAL.`, ...
    pub scope: Option<VarScope>,
    /// `component.` (or key-cache name, or MariaDB connection name).
    pub component: Option<Ident>,
    /// The variable.
    pub name: Ident,
}

/// Operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-a`.
    Neg,
    /// `+a`.
    Plus,
    /// `~a`.
    BitNot,
    /// `BINARY a`.
    Binary,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// `/`.
    Div,
    /// `DIV`.
    IntDiv,
    /// `MOD`, `%`.
    Mod,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Eq,
    /// `<=>`.
    NullSafeEq,
    /// `<>`, `!=`.
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl BinaryOp {
    /// Is it a comparison?
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        match self {
            Eq | NullSafeEq | NotEq | Lt | LtEq | Gt | GtEq => true,
            Add | Sub | Mul | Div | IntDiv | Mod | BitAnd | BitOr | BitXor | ShiftLeft
            | ShiftRight => false,
        }
    }
}

/// The test of `IS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IsTest {
    Null,
    True,
    False,
    Unknown,
}

/// `a [NOT] BETWEEN low AND high`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Between {
    pub expr: Expr,
    pub low: Expr,
    pub high: Expr,
    pub negated: bool,
}

/// `a [NOT] LIKE b [ESCAPE c]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Like {
    pub expr: Expr,
    pub pattern: Expr,
    pub escape: Option<Expr>,
    pub negated: bool,
}

/// `CASE [operand] WHEN .. THEN .. [ELSE ..] END`.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The operand of the simple form.
    pub operand: Option<Expr>,
    /// `WHEN`, `THEN`; at least one.
    pub whens: Vec<(Expr, Expr)>,
    /// `ELSE`.
    pub otherwise: Option<Expr>,
}

/// `CAST(expr [AT TIME ZONE [INTERVAL] 'zone'] AS type [ARRAY])`.
#[derive(Clone, Debug, PartialEq)]
pub struct Cast {
    /// The operand.
    pub expr: Expr,
    /// To which type.
    pub target: DataType,
    /// `ARRAY` (multi-valued indexes).
    pub array: bool,
    /// `AT TIME ZONE`.
    pub time_zone: Option<Box<str>>,
    /// Written `CONVERT(expr, type)`.
    pub convert: bool,
}

/// A function in plain call form.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    /// `schema.name(...)`: stored functions only.
    pub schema: Option<Ident>,
    /// The name as written (`CURRENT_TIMESTAMP` and similar ones also without parentheses).
    pub name: Ident,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// `expr AS name` arguments of loadable functions; empty when no argument has a name.
    pub arg_names: Vec<Option<Ident>>,
    /// A blank before `(` hides the built-in function of this name (without IGNORE_SPACE).
    pub stored_only: bool,
    /// `OVER` of a loadable aggregate.
    pub over: Option<Over>,
}

/// The words that the grammar takes for the start of the statement in a column's DEFAULT or ON UPDATE.
const NOW: [&str; 4] = ["now", "current_timestamp", "localtime", "localtimestamp"];

impl FunctionCall {
    /// Whether it is `CURRENT_TIMESTAMP[(n)]` or a synonym.
    pub fn is_now(&self) -> bool {
        self.schema.is_none() && NOW.iter().any(|word| self.name.is(word))
    }
}

/// The aggregate functions of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum AggregateFunc {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    /// `STD`, `STDDEV`, `STDDEV_POP`.
    StddevPop,
    StddevSamp,
    /// `VARIANCE`, `VAR_POP`.
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
    StCollect,
}

impl AggregateFunc {
    /// The name that the reference returns, lower case.
    pub fn name(self) -> &'static str {
        match self {
            AggregateFunc::Count => "count",
            AggregateFunc::Sum => "sum",
            AggregateFunc::Avg => "avg",
            AggregateFunc::Min => "min",
            AggregateFunc::Max => "max",
            AggregateFunc::BitAnd => "bit_and",
            AggregateFunc::BitOr => "bit_or",
            AggregateFunc::BitXor => "bit_xor",
            AggregateFunc::StddevPop => "std",
            AggregateFunc::StddevSamp => "stddev_samp",
            AggregateFunc::VarPop => "variance",
            AggregateFunc::VarSamp => "var_samp",
            AggregateFunc::GroupConcat => "group_concat",
            AggregateFunc::JsonArrayAgg => "json_arrayagg",
            AggregateFunc::JsonObjectAgg => "json_objectagg",
            AggregateFunc::StCollect => "st_collect",
        }
    }
}

/// An aggregate call, windowed when `over` is present.
#[derive(Clone, Debug, PartialEq)]
pub struct AggregateCall {
    /// Which.
    pub func: AggregateFunc,
    /// `DISTINCT`.
    pub distinct: bool,
    /// `COUNT(*)`: then `args` is empty.
    pub star: bool,
    /// Arguments.
    pub args: Vec<Expr>,
    /// `ORDER BY` of GROUP_CONCAT (and MariaDB's JSON_ARRAYAGG).
    pub order_by: Vec<OrderItem>,
    /// `SEPARATOR` of GROUP_CONCAT.
    pub separator: Option<Box<[u8]>>,
    /// MariaDB's `LIMIT` of GROUP_CONCAT.
    pub limit: Option<super::Limit>,
    /// `OVER`.
    pub over: Option<Over>,
}

/// The functions that exist only over windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum WindowFunc {
    RowNumber,
    Rank,
    DenseRank,
    CumeDist,
    PercentRank,
    Ntile,
    Lead,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
}

/// A call of a window-only function.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// Which.
    pub func: WindowFunc,
    /// Arguments.
    pub args: Vec<Expr>,
    /// `FROM LAST`.
    pub from_last: bool,
    /// `IGNORE NULLS`.
    pub ignore_nulls: bool,
    /// The window.
    pub over: Over,
}

/// `OVER name` or `OVER (spec)`.
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    /// A window of the WINDOW clause.
    Name(Ident),
    /// In place.
    Spec(Box<WindowSpec>),
}

/// A window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSpec {
    /// The window it builds on.
    pub base: Option<Ident>,
    /// `PARTITION BY`.
    pub partition_by: Vec<Expr>,
    /// `ORDER BY`.
    pub order_by: Vec<OrderItem>,
    /// The frame clause.
    pub frame: Option<Frame>,
}

/// `ROWS|RANGE|GROUPS BETWEEN start AND end [EXCLUDE ..]`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Frame {
    pub unit: FrameUnit,
    pub start: FrameBound,
    /// `CURRENT ROW` when the short form was written.
    pub end: FrameBound,
    pub exclude: FrameExclude,
}

/// The unit of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameUnit {
    Rows,
    Range,
    Groups,
}

/// One end of a frame.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum FrameBound {
    UnboundedPreceding,
    Preceding(Box<Expr>, Option<IntervalUnit>),
    CurrentRow,
    Following(Box<Expr>, Option<IntervalUnit>),
    UnboundedFollowing,
}

/// `EXCLUDE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FrameExclude {
    #[default]
    NoOthers,
    CurrentRow,
    Group,
    Ties,
}

/// `date + INTERVAL amount unit` in any form.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DateArith {
    pub date: Expr,
    pub amount: Expr,
    pub unit: IntervalUnit,
    /// `-`, `DATE_SUB`, `SUBDATE`.
    pub subtract: bool,
}

/// Units of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum IntervalUnit {
    Microsecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    SecondMicrosecond,
    MinuteMicrosecond,
    MinuteSecond,
    HourMicrosecond,
    HourSecond,
    HourMinute,
    DayMicrosecond,
    DaySecond,
    DayMinute,
    DayHour,
    YearMonth,
}

/// `SUBSTRING(expr, from [, length])`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Substring {
    pub expr: Expr,
    pub from: Expr,
    pub length: Option<Expr>,
}

/// `TRIM([side] [pattern] FROM expr)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Trim {
    pub side: TrimSide,
    pub pattern: Option<Expr>,
    pub expr: Expr,
}

/// Which end TRIM works on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TrimSide {
    #[default]
    Both,
    Leading,
    Trailing,
}

/// `WEIGHT_STRING(expr [AS CHAR(n)|BINARY(n)] [LEVEL ...])`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct WeightString {
    pub expr: Expr,
    /// The length and whether it was `BINARY(n)`.
    pub cast: Option<(u64, bool)>,
    /// `WEIGHT_STRING(expr, bytes, characters, flags)`.
    pub widths: Option<(u64, u64, u64)>,
}

/// First argument of GET_FORMAT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum GetFormatKind {
    Date,
    Time,
    /// `DATETIME`, `TIMESTAMP`.
    Datetime,
}

/// `MATCH (columns) AGAINST (expr mode)`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Match {
    pub columns: Vec<ColumnName>,
    pub against: Expr,
    pub mode: MatchMode,
}

/// The search modifier of MATCH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum MatchMode {
    #[default]
    NaturalLanguage,
    NaturalLanguageWithExpansion,
    Boolean,
    /// `WITH QUERY EXPANSION` alone means the same as the natural language form with it.
    WithExpansion,
}

/// `JSON_VALUE(doc, path [RETURNING type] [..ON EMPTY] [..ON ERROR])`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct JsonValue {
    pub doc: Expr,
    pub path: Expr,
    pub returning: Option<DataType>,
    pub on_empty: Option<JsonOn>,
    pub on_error: Option<JsonOn>,
}

/// `JSON_DUALITY_OBJECT([WITH (tags)] 'key': value, ...)`.
#[derive(Clone, Debug, PartialEq)]
pub struct DualityObject {
    /// The object of a JSON duality view's documents, which such a view alone has.
    pub is_root: bool,
    /// What the view may change.
    pub tags: DualityTags,
    /// At least one.
    pub members: Vec<DualityMember>,
}

/// `WITH (INSERT, UPDATE, DELETE)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DualityTags {
    pub insert: bool,
    pub update: bool,
    pub delete: bool,
    /// A tag was written twice.
    pub is_repeated: bool,
}

/// `'key': value`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DualityMember {
    pub key: Box<str>,
    pub value: Expr,
}

/// The result of JSON_VALUE and JSON_TABLE when nothing is found or an error occurs.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum JsonOn {
    Error,
    Null,
    Default(Box<Expr>),
}
