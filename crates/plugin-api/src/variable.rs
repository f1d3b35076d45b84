//! System variables and status variables: the definition of a system variable (name, scope, type, range), which the server's own and those
//! of plugins share, the global value as its plugin reads it, and status variables. Knows no session.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use errors::Result;
use types::Value;

/// Where a variable has values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One value for the server.
    Global,
    /// A value in each session only.
    Session,
    /// A value in each session, which starts from the global one.
    Both,
}

/// The values that a variable takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// ON or OFF.
    Bool,
    /// A signed integer within a range.
    Int { min: i64, max: i64 },
    /// An unsigned integer within a range, rounded down to a multiple.
    UInt { min: u64, max: u64, block: u64 },
    /// A floating-point number within a range.
    Double { min: f64, max: f64 },
    /// Any text.
    Text,
    /// Any text or NULL.
    NullableText,
    /// One of these words, or its position from 0.
    Enum(&'static [&'static str]),
    /// Some of these words, separated by commas, or a number with a bit for each.
    Set(&'static [&'static str]),
    /// `name=on,other=off`.
    Switches,
    /// SQL mode: a set with combination modes.
    SqlMode,
    /// A character set name.
    Charset,
    /// A character set name or NULL.
    NullableCharset,
    /// A collation name.
    Collation,
    /// `SYSTEM`, an offset or a zone name.
    TimeZone,
}

/// Where the value comes from when it is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Stored.
    Stored,
    /// Computed from the session or server when read; a SET has a special effect.
    Computed,
}

/// One system variable.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// Lower case.
    pub name: &'static str,
    /// Where it has values.
    pub scope: Scope,
    /// The values that it takes.
    pub kind: Kind,
    /// As SET would accept it.
    pub default: &'static str,
    /// SET can change it while the server runs.
    pub dynamic: bool,
    /// Whether its value is stored.
    pub source: Source,
    /// A listener takes a new value while it runs: `ALTER SYSTEM SET name = value APPLY`.
    pub rebinds: bool,
    /// A start reads it before the dictionary, so that only options set it.
    pub is_option: bool,
    /// One sentence, in which the unit of a number is the first word. It begins with `No effect` when nothing reads the value, and says why that is right: `No effect; bytes of ..`. `Only the default is built; ..` refuses other values; `Constant; ..` keeps the default and warns.
    pub description: &'static str,
}

const fn define(
    name: &'static str,
    scope: Scope,
    kind: Kind,
    default: &'static str,
    description: &'static str,
) -> Definition {
    let (dynamic, source) = (true, Source::Stored);
    let (rebinds, is_option) = (false, false);
    Definition { name, scope, kind, default, dynamic, source, rebinds, is_option, description }
}

impl Definition {
    /// A variable with a global and a session value.
    pub const fn both(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Both, kind, default, description)
    }

    /// A global variable that SET GLOBAL changes.
    pub const fn global(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Global, kind, default, description)
    }

    /// A global variable that only the command line sets.
    pub const fn fixed(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        let mut definition = define(name, Scope::Global, kind, default, description);
        definition.dynamic = false;
        definition
    }

    /// A session variable without a global value.
    pub const fn session(
        name: &'static str,
        kind: Kind,
        default: &'static str,
        description: &'static str,
    ) -> Definition {
        define(name, Scope::Session, kind, default, description)
    }

    /// The same, computed when read.
    pub const fn computed(mut self) -> Definition {
        self.source = Source::Computed;
        self
    }

    /// The same, which a listener takes while it runs.
    pub const fn rebound(mut self) -> Definition {
        self.rebinds = true;
        self
    }

    /// The same, which only options set.
    pub const fn option(mut self) -> Definition {
        self.is_option = true;
        self
    }

    /// The same, not to be changed by SET.
    pub const fn read_only(mut self) -> Definition {
        self.dynamic = false;
        self
    }
}

/// Kind of a byte or item count without a block.
pub const fn uint(min: u64, max: u64) -> Kind {
    Kind::UInt { min, max, block: 1 }
}

/// Kind of a count that is rounded down.
pub const fn blocks(min: u64, max: u64, block: u64) -> Kind {
    Kind::UInt { min, max, block }
}

/// A stored integer or truth value.
pub fn as_u64(value: &Value) -> u64 {
    match value {
        Value::UInt(number) => *number,
        Value::Int(number) => u64::try_from(*number).unwrap_or(0),
        Value::Double(number) => *number as u64,
        Value::Null
        | Value::Decimal(_)
        | Value::Bytes(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => 0,
    }
}

/// A stored text; empty for NULL.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Null
        | Value::Decimal(_)
        | Value::Date(_)
        | Value::Time(_)
        | Value::DateTime(_)
        | Value::Json(_) => String::new(),
    }
}

/// The global value of a plugin's variable. The plugin keeps a clone and reads it without a lock and without a look-up; the server
/// stores each new value. NULL until the variable is declared ([`crate::Registrar::variable`]).
#[derive(Clone)]
pub struct GlobalValue(Arc<ArcSwap<Value>>);

impl Default for GlobalValue {
    fn default() -> GlobalValue {
        GlobalValue(Arc::new(ArcSwap::from_pointee(Value::Null)))
    }
}

impl GlobalValue {
    /// The value of an integer or of ON (1) and OFF (0).
    pub fn number(&self) -> u64 {
        as_u64(&self.0.load())
    }

    /// Whether a variable of kind [`Kind::Bool`] is ON.
    pub fn is_on(&self) -> bool {
        self.number() != 0
    }

    /// The value of a text; empty for NULL.
    pub fn text(&self) -> String {
        as_text(&self.0.load())
    }

    /// The value as it is stored.
    pub fn value(&self) -> Arc<Value> {
        self.0.load_full()
    }

    /// For the server: the variable has this value now.
    pub fn store(&self, value: Value) {
        self.0.store(Arc::new(value));
    }
}

impl fmt::Debug for GlobalValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GlobalValue").field(&self.0.load()).finish()
    }
}

/// Refuses values of a variable.
#[derive(Clone)]
pub struct VariableCheck(Arc<dyn Fn(&Value) -> Result<()> + Send + Sync>);

impl VariableCheck {
    /// A check by a function, whose error the SET returns.
    pub fn new(check: impl Fn(&Value) -> Result<()> + Send + Sync + 'static) -> VariableCheck {
        VariableCheck(Arc::new(check))
    }

    /// Checks a value of the variable's type.
    ///
    /// # Errors
    /// The plugin refuses it.
    pub fn check(&self, value: &Value) -> Result<()> {
        (self.0)(value)
    }
}

impl fmt::Debug for VariableCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VariableCheck")
    }
}

/// A system variable that a plugin declares.
#[derive(Clone, Debug)]
pub struct PluginVariable {
    /// Name, scope, type and default.
    pub definition: &'static Definition,
    /// Where the server stores the global value for the plugin.
    pub global: GlobalValue,
    /// Refuses values of the right type.
    pub check: Option<VariableCheck>,
}

/// A row of SHOW STATUS that a plugin declares.
#[derive(Clone)]
pub struct StatusVariable {
    /// Name as shown, like `Js_calls`.
    pub name: &'static str,
    /// Computes the value as shown.
    pub read: Arc<dyn Fn() -> String + Send + Sync>,
}

impl fmt::Debug for StatusVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatusVariable({})", self.name)
    }
}
