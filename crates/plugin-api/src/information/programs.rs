//! Routines, triggers and events, as information tables see them.

use types::DataType;

/// Facts about stored programs.
pub trait ProgramInformation {
    /// The procedures and functions of a schema, procedures first, each in name order.
    fn routines(&self, _schema: &str) -> Vec<RoutineView> {
        Vec::new()
    }
    /// The libraries of a schema in name order.
    fn libraries(&self, _schema: &str) -> Vec<RoutineView> {
        Vec::new()
    }
    /// Triggers of a schema in order of table, event, time and place.
    fn triggers(&self, _schema: &str) -> Vec<TriggerView> {
        Vec::new()
    }
    /// The events of a schema in name order.
    fn events(&self, _schema: &str) -> Vec<EventView> {
        Vec::new()
    }
}

/// A stored routine or a library, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoutineView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `PROCEDURE`, `FUNCTION` or `LIBRARY`.
    pub kind: &'static str,
    /// Parameters in order.
    pub parameters: Vec<ParameterView>,
    /// The type that a function returns.
    pub returns: Option<ParameterView>,
    /// Text of the body, if the account may see it.
    pub body: Option<String>,
    /// `SQL` or the name of another language.
    pub language: String,
    /// Schema and name of each library that it uses.
    pub libraries: Vec<(String, String)>,
    /// `user@host`.
    pub definer: String,
    /// `DEFINER` or `INVOKER`.
    pub security: &'static str,
    /// DETERMINISTIC.
    pub deterministic: bool,
    /// `CONTAINS SQL` and so on.
    pub data_access: String,
    /// Comment.
    pub comment: String,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// A parameter of a routine, as information tables see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterView {
    /// Name.
    pub name: String,
    /// `IN`, `OUT` or `INOUT`.
    pub mode: String,
    /// Type.
    pub ty: DataType,
    /// Type as written.
    pub type_text: String,
}

/// A trigger, as information tables see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriggerView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// The table.
    pub table: String,
    /// `INSERT`, `UPDATE` or `DELETE`.
    pub event: &'static str,
    /// `BEFORE` or `AFTER`.
    pub timing: &'static str,
    /// Its place among those of the same table, event and time.
    pub order: u64,
    /// Text of the body.
    pub body: String,
    /// `user@host`.
    pub definer: String,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// An event, as information tables see it; local times are in its own time zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventView {
    /// Schema name.
    pub schema: String,
    /// Name.
    pub name: String,
    /// `user@host`.
    pub definer: String,
    /// Its time zone.
    pub time_zone: String,
    /// Text of the body.
    pub body: String,
    /// AT of an event that runs once.
    pub execute_at: Option<types::DateTime>,
    /// EVERY.
    pub interval: Option<IntervalView>,
    /// STARTS.
    pub starts: Option<types::DateTime>,
    /// ENDS.
    pub ends: Option<types::DateTime>,
    /// SQL mode of the session that made it.
    pub sql_mode: String,
    /// `ENABLED`, `DISABLED` or `REPLICA_SIDE_DISABLED`.
    pub status: &'static str,
    /// ON COMPLETION PRESERVE.
    pub preserve: bool,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// When it ran last.
    pub executed: Option<types::DateTime>,
    /// Comment.
    pub comment: String,
    /// `character_set_client` of the session that made it.
    pub session_charset: String,
    /// `collation_connection` of that session.
    pub session_collation: String,
    /// Collation of the schema then.
    pub database_collation: String,
}

/// How often an event runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalView {
    /// How many units, as EVERY writes it.
    pub value: String,
    /// `DAY`, `HOUR_SECOND` and so on.
    pub unit: String,
}
