//! Properties of a function that the query compiler may assume. The function's plugin declares them, each call in a plan carries them,
//! so that no part of the compiler refers to a function by its name.
//!
//! Independent of functions and plans.

/// Whether a function can return a different value for the same arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Never: its value may be computed at planning.
    Immutable,
    /// Only from statement to statement (`NOW()`, `DATABASE()`): evaluated once a statement when its arguments are constant.
    Stable,
    /// From call to call (`RAND()`, `UUID()`), or it has an effect (`SLEEP()`): a call is never moved, repeated or removed.
    Volatile,
}

/// A call that the binder turns into an operator or a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperatorCall {
    /// `IF(condition, then, otherwise)`.
    If,
    /// `NULLIF(a, b)`.
    NullIf,
    /// `IFNULL(a, b)`.
    IfNull,
    /// `COALESCE(a, ..)`.
    Coalesce,
    /// `ISNULL(a)`.
    IsNull,
    /// `MOD(a, b)`: the operator `%`.
    Modulo,
    /// `ADDDATE(date, days)`.
    AddDays,
    /// `SUBDATE(date, days)`.
    SubtractDays,
    /// `FIND_IN_SET(text, set)`: a bit test where the set is a column of type SET.
    FindInSet,
    /// `NAME_CONST(name, value)`.
    NameConst,
    /// `CHARSET(text)`.
    CharsetName,
    /// `COLLATION(text)`.
    CollationName,
    /// `COERCIBILITY(text)`.
    Coercibility,
}

/// A question to a router about some values of the columns by which a table is partitioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PartitionQuestion {
    /// The number of the partition that takes a row.
    Number,
    /// Likewise; 65535 for values that no partition takes.
    Probe,
    /// The first partition that can hold these values or larger ones.
    First,
    /// The last partition that can hold these values or smaller ones.
    Last,
    /// The last partition that can hold smaller values.
    Before,
}

/// The role of a function in the query compiler: the grammar or the compiler itself generates calls of it, or a rule is about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionRole {
    /// The binder rewrites its calls.
    Operator(OperatorCall),
    // Calls that the grammar has a syntax for.
    /// `a || b` under PIPES_AS_CONCAT.
    Concat,
    /// `a REGEXP b`.
    RegexpLike,
    /// `EXTRACT(unit FROM date)`; the unit is the first argument.
    Extract,
    /// `POSITION(a IN b)`.
    Locate,
    /// `SUBSTRING(text FROM start FOR length)`.
    Substring,
    /// `TRIM(BOTH a FROM b)`, arguments b, a.
    TrimBoth,
    /// `TRIM(LEADING a FROM b)`, likewise.
    TrimLeading,
    /// `TRIM(TRAILING a FROM b)`, likewise.
    TrimTrailing,
    /// `GET_FORMAT(DATE, place)`; the kind is a text.
    GetFormat,
    /// `TIMESTAMPADD(unit, amount, date)`.
    TimestampAdd,
    /// `TIMESTAMPDIFF(unit, from, to)`.
    TimestampDiff,
    /// `date + INTERVAL amount unit`, arguments unit, date, amount.
    DateAdd,
    /// `date - INTERVAL amount unit`, likewise.
    DateSubtract,
    /// `INTERVAL(number, bound, ..)`.
    Interval,
    /// `SOUNDEX(text)`, both sides of SOUNDS LIKE.
    Soundex,
    /// `CONVERT(text USING charset)`; the character set is a text.
    ConvertUsing,
    /// `CHAR(number, ..)`.
    Char,
    /// `CHAR(number, .. USING charset)`; the character set is the last argument.
    CharUsing,
    /// `WEIGHT_STRING(text AS CHAR(n))`.
    WeightString,
    /// `value MEMBER OF (array)`.
    JsonMemberOf,
    /// `column -> path`.
    JsonExtract,
    /// `column ->> path`, around the extraction.
    JsonUnquote,
    /// `JSON_VALUE(document, path RETURNING .. ON EMPTY .. ON ERROR)`.
    JsonValue,
    /// EXISTS PATH of JSON_TABLE.
    JsonContainsPath,
    /// A column of JSON_TABLE.
    JsonTableColumn,
    /// The start of the statement: CURRENT_TIMESTAMP as a default.
    Now,
    /// `JSON_OBJECT(key, value, ..)`: the members of JSON_DUALITY_OBJECT.
    JsonObject,
    /// The document of a JSON duality view, with its tag, from the object.
    JsonDualityDocument,
    /// `JSON_CONTAINS(document, candidate)`: a multi-valued index may answer it.
    JsonContains,
    /// `JSON_OVERLAPS(document, document)`: likewise.
    JsonOverlaps,
    /// `NEXT VALUE FOR sequence`; the arguments name the sequence.
    SequenceNext,
    /// `PREVIOUS VALUE FOR sequence`; likewise.
    SequenceLast,
    /// `SETVAL(sequence, value[, is_used[, round]])`; likewise, before the others.
    SequenceSet,
    // Calls that the compiler makes.
    /// A value of the row that an INSERT gives to a sequence, behind the sequence's name: what was drawn before does not count any more.
    SequenceRestored,
    /// The number of a datetime that a function gave as text.
    DatetimeNumber,
    /// Pads a text on its right: BINARY(n).
    PadRight,
    /// Computes the numbers of partitions.
    Partition(PartitionQuestion),
    /// `UnixTimestamp` of a datetime in UTC.
    PartitionSeconds,
    // Calls that a rule is about.
    /// `ANY_VALUE(a)`: its argument need not be determined by the keys of a grouping.
    AnyValue,
    /// `WEEK(date[, mode])`: without a mode it is that of `@@default_week_format`.
    Week,
    /// `UNIX_TIMESTAMP(a)`: of a TIMESTAMP column it does not depend on the time zone.
    UnixTimestamp,
}

/// Source of the text of a call without arguments, which decides the coercibility of its collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextSource {
    /// It is a value like any literal.
    Value,
    /// It is a name of the system, like that of a user or a schema.
    System,
}

/// Whether a call's text is a date or time, which keeps all its digits in a numeric context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatetimeText {
    /// No.
    Never,
    /// Yes, whenever the result is text.
    Always,
    /// When an argument has a date.
    FromDates,
}

/// Whether a function of one date is monotonic, so that a range of arguments is a range of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Nothing is known.
    Unknown,
    /// It never falls.
    Growing,
    /// Likewise, and it is NULL for an invalid date.
    GrowingOrNull,
}

/// Whether the expression of a partitioned table may call a function, and for which columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartitionUse {
    /// No.
    Refused,
    /// For any column.
    Any,
    /// For columns with a date.
    Date,
    /// For columns with a date, and no other argument.
    DateOnly,
    /// For columns with a time.
    Time,
    /// Depends on the unit in the first argument.
    ByUnit,
    /// For columns of type TIMESTAMP, which it reads without the time zone.
    Timestamp,
}

/// Whether the definition of a table may call a function: a generated column, a check, an index entry, a default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefinitionUse {
    /// One that is immutable may be called anywhere, others in defaults.
    ByVolatility,
    /// Anywhere, though its value depends on the session.
    Anywhere,
    /// Not even in a default.
    Nowhere,
}

/// The number of threads that may usefully call a function at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// On any number.
    Any,
    /// On one thread: it keeps its compiled state between calls, and several threads would wait for one another.
    One,
}

/// What a function does with the document that is its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentUse {
    /// It reads it, or has none.
    Read,
    /// Its result is the document with some parts changed.
    Edited,
}

/// What follows about two geometries, the arguments of a function, where it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoxesOfTruth {
    /// Nothing.
    Any,
    /// The smallest boxes around them have a point in common: a spatial index finds the rows.
    Meet,
}

/// Whether a function runs SQL statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunsStatements {
    /// It does not.
    No,
    /// It may: the statement that calls it lends it its session. Table definitions must not call it.
    Yes,
    /// It would, but this call is in a view: who made the view must not run statements as the one who reads it.
    Refused,
}

/// The part of a scalar function that each call carries in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionTraits {
    /// See the type, as for all fields.
    pub volatility: Volatility,
    /// Its role, where it has one.
    pub role: Option<FunctionRole>,
    pub text: TextSource,
    pub datetime_text: DatetimeText,
    pub growth: Growth,
    pub partition: PartitionUse,
    pub definition: DefinitionUse,
    pub threads: Threads,
    pub statements: RunsStatements,
    pub document: DocumentUse,
    pub boxes: BoxesOfTruth,
}

impl FunctionTraits {
    /// An immutable function without any property.
    pub const PLAIN: FunctionTraits = FunctionTraits {
        volatility: Volatility::Immutable,
        role: None,
        text: TextSource::Value,
        datetime_text: DatetimeText::Never,
        growth: Growth::Unknown,
        partition: PartitionUse::Refused,
        definition: DefinitionUse::ByVolatility,
        threads: Threads::Any,
        statements: RunsStatements::No,
        document: DocumentUse::Read,
        boxes: BoxesOfTruth::Any,
    };
}

/// A scalar function of the registry, as a plan names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionRef {
    /// The registry's name: the executor finds the code by it.
    pub name: &'static str,
    /// The properties that the compiler may assume.
    pub traits: FunctionTraits,
}

impl FunctionRef {
    /// Whether the function has this role.
    pub fn is(&self, role: FunctionRole) -> bool {
        self.traits.role == Some(role)
    }

    /// Whether a call must not be moved, repeated or removed.
    pub fn is_volatile(&self) -> bool {
        self.traits.volatility == Volatility::Volatile
    }
}

/// The aggregates of the grammar, and those of plugins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateRole {
    Count,
    Sum,
    Average,
    Minimum,
    Maximum,
    BitAnd,
    BitOr,
    BitXor,
    StddevPop,
    StddevSamp,
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
    StCollect,
    AnyValue,
    /// None of the grammar's: a call is recognised by its name.
    Named,
}

/// An aggregate function of the registry, as a plan names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AggregateRef {
    /// The registry's name: the executor finds the code by it.
    pub name: &'static str,
    /// The role in the grammar.
    pub role: AggregateRole,
}
