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
    /// One sentence with the unit.
    pub description: &'static str,
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
