//! The slots for scalar functions and aggregates. A function is defined once, in its family's plugin: types in, type out,
//! the effect of NULL, the query compiler's assumptions, and the kernel.

use std::fmt;

use errors::{Diagnostics, Result};
use types::geometry::KnownSystem;
use types::{
    AggregateRef, AggregateRole, DataType, DateTime, FunctionRef, FunctionRole, FunctionTraits,
    SqlMode, Value, ZoneRules,
};

use crate::optimizer_trace::OptimizerTraceView;
use crate::statements::Statements;

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity {
    /// Fewest.
    pub min: usize,
    /// Most; `usize::MAX` for no limit.
    pub max: usize,
}

impl Arity {
    /// Exactly `count`.
    pub const fn exactly(count: usize) -> Arity {
        Arity { min: count, max: count }
    }
    /// `min` to `max`.
    pub const fn between(min: usize, max: usize) -> Arity {
        Arity { min, max }
    }
    /// `min` or more.
    pub const fn at_least(min: usize) -> Arity {
        Arity { min, max: usize::MAX }
    }
}

/// Some of a call's arguments, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arguments {
    from: usize,
    until: usize,
}

impl Arguments {
    /// No argument.
    pub const NONE: Arguments = Arguments { from: 0, until: 0 };
    /// Every argument.
    pub const ALL: Arguments = Arguments { from: 0, until: usize::MAX };

    /// The argument at `at` alone.
    pub const fn only(at: usize) -> Arguments {
        Arguments { from: at, until: at + 1 }
    }
    /// The argument at `from` and all after it.
    pub const fn from(from: usize) -> Arguments {
        Arguments { from, until: usize::MAX }
    }
    /// The arguments from `from` on and before `until`.
    pub const fn between(from: usize, until: usize) -> Arguments {
        Arguments { from, until }
    }

    /// Whether the argument at `at` is one of them.
    pub fn contains(self, at: usize) -> bool {
        (self.from..self.until).contains(&at)
    }
    /// Those of `args`.
    pub fn of<T>(self, args: &[T]) -> &[T] {
        let until = self.until.min(args.len());
        &args[self.from.min(until)..until]
    }
}

/// The effect of a function on its text arguments, which decides their common collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollationRule {
    /// The function's own `bind` decides.
    Own,
    /// It compares these: error 1267 where their collations do not agree.
    Compares(Arguments),
    /// It joins these, or returns one of them: the binary collation where their collations do not agree.
    Joins(Arguments),
    /// It works on the text at this place, in its collation; the other texts become of its character set: error 3854 where they cannot.
    Follows(usize),
}

/// The form in which a function takes truth values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthArguments {
    /// A truth value.
    Truth,
    /// A number, unless the argument is a predicate itself: JSON distinguishes `true` from `1`.
    Number,
}

/// Whether the arguments of a function may have names: `f(value AS name)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentNames {
    /// Error 1583.
    Refused,
    /// They may. The function gets one more argument at the end, a constant text: the names as a JSON array, with null for an argument
    /// without one.
    Passed,
}

/// The facts known about an argument at bind time.
#[derive(Clone, Debug)]
pub struct ArgInfo {
    /// Its type.
    pub ty: DataType,
    /// Its value, when it is a literal or folded constant.
    pub constant: Option<Value>,
    /// It has one value in a run of the statement: a constant, a parameter or a user variable.
    pub fixed: bool,
}

/// Session facts that a function's type may depend on.
#[derive(Clone, Debug)]
pub struct BindContext {
    /// SQL mode.
    pub sql_mode: SqlMode,
    /// `collation_connection`, the collation of literals and of numbers turned to text.
    pub collation_connection: types::CollationId,
    /// `div_precision_increment`.
    pub div_precision_increment: u8,
    /// `group_concat_max_len`, bytes.
    pub group_concat_max_len: u64,
    /// `max_allowed_packet`, bytes.
    pub max_allowed_packet: u64,
    /// What the session sets of tables that keep history.
    pub history: HistorySettings,
    /// `enable_cascade_triggers`.
    pub cascades_fire_triggers: bool,
}

/// What a session sets of tables that keep history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistorySettings {
    /// `system_versioning_asof`, microseconds since 1970 UTC: the time of whose rows queries read.
    pub as_of_micros: Option<i64>,
    /// `system_versioning_insert_history`: INSERT may say from when to when a row was current.
    pub gives_row_times: bool,
    /// `system_versioning_stored_rows`: statements see and write the rows as they are stored, like those of any table.
    pub stored_rows: bool,
}

/// The type that the caller converts an argument to before the kernel sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum Coercion {
    /// Nothing: the kernel takes the value as it is, with the argument's own type.
    AsIs,
    /// To `Value::Int` or, when unsigned, `Value::UInt`, rounding.
    Integer,
    /// To `Value::Double`.
    Double,
    /// To `Value::Decimal`.
    Decimal,
    /// To `Value::Bytes`: numbers and temporal values print as the text protocol does, ENUM and SET by name.
    Text,
    /// To `Value::Bytes`, a text as the bytes that it has in its own character set.
    Bytes,
    /// To `Value::Date`; a value that is not a date becomes NULL with a warning.
    Date,
    /// To `Value::DateTime`, likewise.
    DateTime,
    /// To `Value::Time`, likewise.
    Time,
    /// To `Value::Json`: text is parsed (error 3141 when malformed), SQL values become scalars.
    Json,
    /// To this type, as CAST does.
    To(DataType),
}

/// The effect of a NULL argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullRule {
    /// Any NULL argument gives NULL without calling the kernel.
    Propagate,
    /// The kernel sees NULLs.
    Kernel,
}

/// A scalar function's code. Arguments are already coerced.
pub type Kernel =
    std::sync::Arc<dyn Fn(&mut FunctionContext<'_>, &[Value]) -> Result<Value> + Send + Sync>;

/// The code of a scalar function that runs statements.
pub type StatementKernel = std::sync::Arc<
    dyn Fn(&mut FunctionContext<'_>, &mut dyn Statements, &[Value]) -> Result<Value> + Send + Sync,
>;

/// Reads an amount that the calling thread has used so far.
pub type Reading = fn() -> Option<u64>;

/// Whether a function's last argument is evaluated as many times as the first one gives before the code runs.
#[derive(Clone, Copy, Debug)]
pub enum Repeats {
    /// Every argument once.
    No,
    /// As many times; the code gets NULL in place of it.
    Plain,
    /// As many times; the code gets what that used.
    Measured(Reading),
}

/// A function after its argument types are known.
#[derive(Clone)]
pub struct BoundFunction {
    /// Result type.
    pub ty: DataType,
    /// One for each argument; when shorter, the last one repeats.
    pub coercions: Vec<Coercion>,
    /// NULL rule.
    pub nulls: NullRule,
    /// Code.
    pub kernel: Kernel,
    /// Whether the last argument is evaluated several times before the code runs.
    pub repeats: Repeats,
    /// The code that runs in place of `kernel`, for a function that runs statements.
    pub statements: Option<StatementKernel>,
}

impl BoundFunction {
    /// A function with one coercion for all arguments and NULL propagation.
    pub fn new(
        ty: DataType,
        coercions: Vec<Coercion>,
        kernel: impl Fn(&mut FunctionContext<'_>, &[Value]) -> Result<Value> + Send + Sync + 'static,
    ) -> BoundFunction {
        BoundFunction {
            ty,
            coercions,
            nulls: NullRule::Propagate,
            kernel: std::sync::Arc::new(kernel),
            repeats: Repeats::No,
            statements: None,
        }
    }

    /// A function that runs statements; its declaration says so too (`ScalarFunction::runs_statements`).
    pub fn with_statements(
        ty: DataType,
        coercions: Vec<Coercion>,
        kernel: impl Fn(&mut FunctionContext<'_>, &mut dyn Statements, &[Value]) -> Result<Value>
        + Send
        + Sync
        + 'static,
    ) -> BoundFunction {
        let without = |_: &mut FunctionContext<'_>, _: &[Value]| {
            Err(errors::Error::internal("a function that runs statements without a session"))
        };
        let bound = BoundFunction::new(ty, coercions, without);
        BoundFunction { statements: Some(std::sync::Arc::new(kernel)), ..bound }
    }

    /// The last argument is evaluated as many times as the first one gives.
    pub fn repeating(mut self) -> BoundFunction {
        self.repeats = Repeats::Plain;
        self
    }

    /// The same; the code gets the amount that `reading` grew by in place of the last argument, NULL if it is not known.
    pub fn measuring(mut self, reading: Reading) -> BoundFunction {
        self.repeats = Repeats::Measured(reading);
        self
    }

    /// The kernel handles NULL itself.
    pub fn with_nulls(mut self) -> BoundFunction {
        self.nulls = NullRule::Kernel;
        self
    }

    /// The coercion of argument `index`.
    pub fn coercion(&self, index: usize) -> &Coercion {
        self.coercions.get(index).or(self.coercions.last()).unwrap_or(&Coercion::AsIs)
    }
}

impl fmt::Debug for BoundFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundFunction").field("ty", &self.ty).finish_non_exhaustive()
    }
}

/// How a scalar function resolves types and picks its kernel.
#[derive(Clone)]
pub enum Binding {
    /// Code of the plugin.
    Code(fn(&BindContext, &[ArgInfo]) -> Result<BoundFunction>),
    /// Code with data that was read at run time.
    Made(MadeBinding),
}

/// See [`Binding::Made`].
pub type MadeBinding =
    std::sync::Arc<dyn Fn(&BindContext, &[ArgInfo]) -> Result<BoundFunction> + Send + Sync>;

/// A scalar function as its plugin declares it.
#[derive(Clone)]
pub struct ScalarFunction {
    /// Upper case.
    pub name: &'static str,
    /// Other names, upper case.
    pub aliases: &'static [&'static str],
    /// Number of arguments; 1582 otherwise.
    pub arity: Arity,
    /// The query compiler's assumptions; every call in a plan carries them.
    pub traits: FunctionTraits,
    /// Arguments that are numbers, so that a hexadecimal literal is one.
    pub numbers: Arguments,
    /// See the type.
    pub truths: TruthArguments,
    /// See the type.
    pub collation: CollationRule,
    /// A deprecated name of it, and the warning (1287) that a call by that name raises.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// For the help tables: one line of syntax, then a sentence or two.
    pub help: &'static str,
    /// Whether its arguments may have names.
    pub names: ArgumentNames,
    /// Resolves types and picks the kernel.
    pub binding: Binding,
}

impl ScalarFunction {
    /// The function as a plan names it.
    pub fn reference(&self) -> FunctionRef {
        FunctionRef { name: self.name, traits: self.traits }
    }

    /// Resolves types and picks the kernel.
    ///
    /// # Errors
    /// Arguments that the function does not take.
    pub fn bind(&self, ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
        match &self.binding {
            Binding::Code(bind) => bind(ctx, args),
            Binding::Made(bind) => bind(ctx, args),
        }
    }

    /// Whether it has this role.
    pub fn is(&self, role: FunctionRole) -> bool {
        self.traits.role == Some(role)
    }

    /// Whether it belongs to a schema, which calls have to name: `SCHEMA.NAME`.
    pub fn needs_schema(&self) -> bool {
        self.name.contains('.')
    }
}

impl fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScalarFunction({})", self.name)
    }
}

/// A function whose rows are a table: `SELECT .. FROM name(arguments)`. The arguments may be columns of tables before it.
#[derive(Clone, Debug)]
pub struct TableFunction {
    /// Its name, arguments and code. The code returns JSON: an array with an array for each row, which has the cells in the order of
    /// `columns`; NULL for no row. It is a scalar function of that name as well.
    pub rows: ScalarFunction,
    /// Names and types of the columns.
    pub columns: fn() -> Vec<(&'static str, DataType)>,
}

/// State of one group of an aggregate.
pub trait Accumulator: Send {
    /// Adds a row's coerced arguments. The caller has already removed duplicates for DISTINCT.
    ///
    /// # Errors
    /// Overflow, memory limit.
    fn update(&mut self, ctx: &mut FunctionContext<'_>, args: &[Value]) -> Result<()>;
    /// Adds the sum of the arguments of `count` rows at once. Only called for SUM and AVG.
    ///
    /// # Errors
    /// Overflow; the function is not a sum.
    fn update_sum(&mut self, sum: &Value, count: u64) -> Result<()> {
        let _ = (sum, count);
        Err(errors::Error::internal("not a sum"))
    }
    /// The result so far; may be called again after more updates (window frames).
    ///
    /// # Errors
    /// Overflow.
    fn result(&mut self, ctx: &mut FunctionContext<'_>) -> Result<Value>;
    /// Back to the empty group.
    fn reset(&mut self);
    /// Heap bytes held.
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// An aggregate after its argument types are known.
pub struct BoundAggregate {
    /// Result type.
    pub ty: DataType,
    /// As in `BoundFunction`.
    pub coercions: Vec<Coercion>,
    /// Rows with a NULL argument do not reach `update`.
    pub skip_nulls: bool,
    /// A new empty group.
    pub accumulator: std::sync::Arc<dyn Fn() -> Box<dyn Accumulator> + Send + Sync>,
}

/// Whether an aggregate takes geometries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Geometries {
    /// It does.
    Taken,
    /// Error 1210.
    Refused,
}

/// An aggregate function as its plugin declares it.
#[derive(Clone)]
pub struct AggregateFunction {
    /// Upper case.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Number of arguments (0 for `COUNT(*)`).
    pub arity: Arity,
    /// Which of the grammar's it is.
    pub role: AggregateRole,
    /// Arguments that are numbers, so that a hexadecimal literal is one.
    pub numbers: Arguments,
    /// Whether a geometry may be an argument; error 1210 otherwise.
    pub geometries: Geometries,
    /// For the help tables.
    pub help: &'static str,
    /// Resolves types.
    pub binding: AggregateBinding,
}

/// How an aggregate resolves types.
#[derive(Clone)]
pub enum AggregateBinding {
    /// Code of the plugin. Only GROUP_CONCAT has a separator.
    Code(fn(&BindContext, &[ArgInfo], Option<&[u8]>) -> Result<BoundAggregate>),
    /// Code with data that was read at run time.
    Made(MadeAggregate),
}

/// See [`AggregateBinding::Made`].
pub type MadeAggregate =
    std::sync::Arc<dyn Fn(&BindContext, &[ArgInfo]) -> Result<BoundAggregate> + Send + Sync>;

impl AggregateFunction {
    /// Resolves types. Only GROUP_CONCAT has a `separator`.
    ///
    /// # Errors
    /// Arguments that the function does not take.
    pub fn bind(
        &self,
        ctx: &BindContext,
        args: &[ArgInfo],
        separator: Option<&[u8]>,
    ) -> Result<BoundAggregate> {
        match &self.binding {
            AggregateBinding::Code(bind) => bind(ctx, args, separator),
            AggregateBinding::Made(bind) => bind(ctx, args),
        }
    }

    /// The function as a plan names it.
    pub fn reference(&self) -> AggregateRef {
        AggregateRef { name: self.name, role: self.role }
    }
}

impl fmt::Debug for AggregateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AggregateFunction({})", self.name)
    }
}

/// A kernel's access to its statement.
pub struct FunctionContext<'a> {
    /// SQL mode.
    pub sql_mode: SqlMode,
    /// Session time zone.
    pub time_zone: &'a dyn ZoneRules,
    /// Start of the statement (or `SET timestamp`), microseconds since 1970 UTC.
    pub now_micros: i64,
    /// Start of the statement in the session time zone.
    pub now: DateTime,
    /// `div_precision_increment`.
    pub div_precision_increment: u8,
    /// `max_allowed_packet`, bytes.
    pub max_allowed_packet: u64,
    /// Warnings go here.
    pub diagnostics: &'a mut Diagnostics,
    /// The session, as far as functions may use it.
    pub session: &'a mut dyn SessionServices,
}

impl FunctionContext<'_> {
    /// The same for a while, to lend it on.
    pub fn reborrow(&mut self) -> FunctionContext<'_> {
        FunctionContext {
            sql_mode: self.sql_mode,
            time_zone: self.time_zone,
            now_micros: self.now_micros,
            now: self.now,
            div_precision_increment: self.div_precision_increment,
            max_allowed_packet: self.max_allowed_packet,
            diagnostics: &mut *self.diagnostics,
            session: &mut *self.session,
        }
    }
}

/// A sequence as a plan names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceName<'a> {
    /// The number of its table.
    pub table: u64,
    /// Its schema.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// A use of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceCall {
    /// Its next value.
    Next,
    /// The value that the session got last; NULL if it has none yet.
    Last,
    /// Moves it forward to a value; NULL when it is farther already.
    Set {
        /// The value.
        value: i64,
        /// The next value is the one after it.
        is_used: bool,
        /// How often it has begun anew.
        round: i64,
    },
    /// Its row is about to be written by somebody else.
    Forget,
}

/// A function's access to the session.
pub trait SessionServices {
    /// `CONNECTION_ID()`.
    fn connection_id(&self) -> u64;
    /// `USER()`: the name and host that the client gave.
    fn user(&self) -> String;
    /// `CURRENT_USER()`: the account that matched.
    fn current_user(&self) -> String;
    /// `CURRENT_ROLE()`.
    fn current_role(&self) -> String {
        "NONE".into()
    }
    /// Every grant of a role: the account, the role, and whether it may hand it on. Names are quoted.
    fn role_grants(&self) -> Vec<(String, String, bool)> {
        Vec::new()
    }
    /// The contents of a file that the account may read and that is in a directory that the server allows; `None` for any other.
    fn load_file(&self, _name: &str, _bytes_max: u64) -> Option<Vec<u8>> {
        None
    }
    /// Whether the account has a privilege on everything: a dynamic or another one, in upper case.
    fn has_privilege(&self, _name: &str) -> bool {
        false
    }
    /// `DATABASE()`.
    fn database(&self) -> Option<String>;
    /// `LAST_INSERT_ID()`.
    fn last_insert_id(&self) -> u64;
    /// `LAST_INSERT_ID(expr)`.
    fn set_last_insert_id(&mut self, value: u64);
    /// `ROW_COUNT()`.
    fn row_count(&self) -> i64;
    /// `FOUND_ROWS()`.
    fn found_rows(&self) -> u64;
    /// `@name`.
    fn user_variable(&self, name: &str) -> Option<(Value, DataType)>;
    /// A spatial reference system by its number.
    fn reference_system(&self, srid: u32) -> Option<KnownSystem> {
        KnownSystem::built_in(srid)
    }
    /// An attribute that the client sent with the statement.
    fn query_attribute(&self, _name: &str) -> Option<Value> {
        None
    }
    /// All user variables, by name.
    fn user_variables(&self) -> Vec<(String, Value, DataType)> {
        Vec::new()
    }
    /// What planning considered for earlier statements, where `optimizer_trace` asks for it.
    fn optimizer_traces(&self) -> Vec<OptimizerTraceView> {
        Vec::new()
    }
    /// `@name := value`.
    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType);
    /// `@@name`, as text; `None` when the variable does not exist.
    fn system_variable(&self, name: &str) -> Option<Value>;
    /// The session's random numbers: a uniform double in [0, 1).
    fn random(&mut self) -> f64;
    /// A named time zone's rules; `SYSTEM`, `+05:30`, `Europe/Prague`.
    fn time_zone(&self, name: &str) -> Option<std::sync::Arc<dyn ZoneRules>>;
    /// Waits; returns false when the statement was cancelled in the meantime.
    fn sleep(&mut self, duration: std::time::Duration) -> bool;
    /// Error when the statement was cancelled.
    ///
    /// # Errors
    /// 1317, 3024.
    fn check_cancelled(&self) -> Result<()>;
    /// `GET_LOCK(name, seconds)`: negative waits for ever. Returns whether it was granted
    ///
    /// # Errors
    /// Deadlock (3058), cancelled.
    fn get_user_lock(&mut self, name: &str, timeout_seconds: f64) -> Result<bool>;
    /// `RELEASE_LOCK`: `None` when no session holds it, `Some(false)` when another does.
    fn release_user_lock(&mut self, name: &str) -> Option<bool>;
    /// `RELEASE_ALL_LOCKS`: the number of released locks (counting repeats).
    fn release_all_user_locks(&mut self) -> u64;
    /// `IS_USED_LOCK`: connection that holds it.
    fn user_lock_holder(&self, name: &str) -> Option<u64>;
    /// Uses a sequence. `None` is NULL.
    ///
    /// # Errors
    /// 4084: it has run out; 4091: there is none; I/O.
    fn sequence(&mut self, _name: &SequenceName<'_>, _call: SequenceCall) -> Result<Option<i64>> {
        Err(errors::Error::internal("a sequence without a session"))
    }
    /// What the function's plugin keeps under this name.
    fn shared_state(&self, _name: &str) -> Option<crate::shared_state::SharedState> {
        None
    }
    /// Server version string.
    fn version(&self) -> &str;
}
