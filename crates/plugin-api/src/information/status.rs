//! System variables, status counters and conditions, as information tables see them.

/// The scope of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusScope {
    /// The whole server's.
    Global,
    /// Those of the session, or of the server where sessions have none.
    Session,
}

/// Variables, counters and conditions.
pub trait StatusInformation {
    /// All system variables in name order.
    fn variables(&self) -> Vec<VariableView>;
    /// Status counters in name order: name and value.
    fn status(&self, scope: StatusScope) -> Vec<(String, String)>;
    /// Warnings of the last statement.
    fn conditions(&self) -> Vec<ConditionView>;
}

/// A system variable, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct VariableView {
    /// Name.
    pub name: String,
    /// Session value (global one when it has none), printed as SHOW VARIABLES does.
    pub session: String,
    /// Global value; `None` for session-only variables.
    pub global: Option<String>,
    /// Whether SET can change it while the server runs.
    pub dynamic: bool,
    /// The origin of the value: `COMPILED`, `COMMAND_LINE`, `PERSISTED`, `DYNAMIC`.
    pub source: &'static str,
    /// Who set the global value, and when; `None` when no statement did.
    pub changed: Option<VariableChange>,
    /// The value that later starts use, from SET PERSIST.
    pub persisted: Option<String>,
    /// The unit of a number.
    pub unit: Option<&'static str>,
    /// The least and the greatest value of a number.
    pub range: Option<(String, String)>,
    /// When a new global value takes effect, like `AT ONCE` or `NEXT START`.
    pub effect: &'static str,
    /// Whether a new value takes effect with another start only.
    pub needs_restart: bool,
    /// One sentence with the unit.
    pub description: &'static str,
    /// `GLOBAL`, `SESSION` for both, `SESSION_ONLY`.
    pub scope: &'static str,
    /// `Integer`, `Numeric`, `String`, `Enumeration`, `Boolean` or `Set`.
    pub data_type: &'static str,
}

/// A change of a system variable by a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableChange {
    /// Microseconds since 1970 UTC.
    pub micros: i64,
    /// Name of the user.
    pub user: String,
    /// The host that the user came from.
    pub host: String,
}

/// A warning, note or error of the last statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConditionView {
    /// `Note`, `Warning` or `Error`.
    pub level: &'static str,
    /// Number.
    pub code: u16,
    /// Text.
    pub message: String,
}
