//! The interface between stored programs and the session that runs them.

use std::sync::Arc;

use accounts::PrivilegeChecks;
use catalog::{CatalogSnapshot, CatalogView, Edit, Event, MetadataGuard, Table};
use engine_api::TableId;
use errors::{Diagnostics, Error, Result};
use plugin_api::{
    CompiledProgram, OkInfo, ProgramLanguage, ProgramOutcome, ResultSink, SystemProcedure,
};
use syntax::ast::{Expr, ObjectName, Statement};
use types::{DataType, Value, ZoneRules};
use variables::Settings;

use crate::load::Loaded;
use crate::running::Running;
use crate::scheduler::EventScheduler;
use crate::state::ProgramState;

/// The conditions that statements raise.
pub struct Conditions<'a> {
    /// Of the last statement.
    pub last: &'a mut Diagnostics,
    /// Of the running statement.
    pub working: &'a mut Diagnostics,
    /// The running statement reads the conditions of the last one and keeps them.
    pub keeps: &'a mut bool,
}

/// Runs the statements of programs: in its transactions, with its values, as its account.
pub trait ProgramHost: PrivilegeChecks {
    /// A statement or expression that was planned and can be run again.
    type Plan: Clone;
    /// The context that a plan was made in.
    type Context: PartialEq;
    /// The state that `enter` saves.
    type Outside;

    /// The running programs, and the loaded ones.
    fn state(&self) -> &ProgramState<Self::Plan, Self::Context>;

    /// As `state`, mutable.
    fn state_mut(&mut self) -> &mut ProgramState<Self::Plan, Self::Context>;

    /// The procedure of this name that comes with a plugin.
    fn system_procedure(&self, schema: &str, name: &str) -> Option<Arc<SystemProcedure>>;

    /// The session's variables, decoded.
    fn settings(&self) -> &Settings;

    /// The catalog as it is now.
    fn snapshot(&self) -> Arc<CatalogSnapshot>;

    /// The conditions.
    fn conditions(&mut self) -> Conditions<'_>;

    /// Checks whether the statement may continue.
    ///
    /// # Errors
    /// 1317, 3024, 1053.
    fn check_running(&self) -> Result<()>;

    /// Whether the connection is to end.
    fn is_connection_killed(&self) -> bool;

    /// How many stored functions and triggers run within each other.
    fn function_depth(&self) -> u32;

    /// Call before a separate statement of the transaction.
    fn begin_scope(&mut self);

    /// Call after it succeeded: commits unless a transaction is open.
    ///
    /// # Errors
    /// The commit fails.
    fn finish_scope(&mut self) -> Result<()>;

    /// Call after it failed: rolls it back.
    fn abort_scope(&mut self, error: &Error);

    /// Sets the next statement's time to now; in a function it stays that of the calling statement.
    fn move_time(&mut self);

    /// Call before a statement of a program: it gets its own conditions, counts and time.
    fn begin_part(&mut self);
    /// The text of the statement that is about to run.
    fn note_text(&mut self, text: &[u8]);

    /// Call after a statement of a program that succeeded.
    fn end_part(&mut self);

    /// Runs a statement that exists outside programs too.
    ///
    /// # Errors
    /// The statement's.
    fn run_statement(
        &mut self,
        statement: &Statement,
        running: &Running<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()>;

    /// Plans a query with its tables locked.
    ///
    /// # Errors
    /// Errors of binding and planning.
    fn plan_query(&mut self, query: &Statement, running: &Running<'_>) -> Result<Self::Plan>;

    /// Plans an expression.
    ///
    /// # Errors
    /// Errors of binding and planning.
    fn plan_value(&mut self, expr: &Expr, running: &Running<'_>) -> Result<Self::Plan>;

    /// Computes the value of an expression's plan.
    ///
    /// # Errors
    /// Errors of the computation.
    fn value_of_plan(
        &mut self,
        plan: &Self::Plan,
        running: &Running<'_>,
    ) -> Result<(Value, DataType)>;

    /// Returns all rows of a query's plan, and the types of its columns.
    ///
    /// # Errors
    /// Errors of the execution.
    fn rows_of_plan(
        &mut self,
        plan: &Self::Plan,
        parameters: &[Value],
    ) -> Result<(Vec<Vec<Value>>, Vec<DataType>)>;

    /// The context of a plan that is made now.
    fn plan_context(&self) -> Self::Context;

    /// Whether a plan may be used again.
    fn may_keep(&self, plan: &Self::Plan) -> bool;

    /// Locks the tables of a cached plan; false when it is out of date, or may not be used now.
    ///
    /// # Errors
    /// Missing privileges, waiting too long.
    fn lock_kept(&mut self, plan: &Self::Plan) -> Result<bool>;

    /// Converts a value to the type of a variable.
    ///
    /// # Errors
    /// It does not fit, in strict mode.
    fn convert(
        &mut self,
        name: &str,
        value: &Value,
        from: &DataType,
        to: &DataType,
    ) -> Result<Value>;

    /// The language of stored programs called `name` (upper case), if a plugin has it.
    fn language(&self, name: &str) -> Option<Arc<dyn ProgramLanguage>>;

    /// Calls a program in a language other than SQL.
    ///
    /// # Errors
    /// The program's; the statement was cancelled or its transaction has ended.
    fn invoke(
        &mut self,
        program: &dyn CompiledProgram,
        arguments: &[Value],
    ) -> Result<ProgramOutcome>;

    /// Sets a user variable.
    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType);

    /// The result of ROW_COUNT().
    fn row_count(&self) -> i64;

    /// Sets the result of ROW_COUNT().
    fn set_row_count(&mut self, count: i64);

    /// Switches to a program's schema and SQL mode, and to the privileges of its definer.
    ///
    /// # Errors
    /// 1449.
    fn enter(&mut self, loaded: &Loaded) -> Result<Self::Outside>;

    /// Comes back.
    fn leave(&mut self, outside: Self::Outside);

    /// Whether a statement ends the open transaction before it begins.
    fn commits_implicitly(&self, statement: &Statement) -> bool;

    /// `max_sp_recursion_depth`.
    fn recursion_max(&self) -> u64;

    /// Whether a system variable of this name exists.
    fn has_variable(&self, name: &str) -> bool;

    /// Schema and name of an object, the current schema when none is written.
    ///
    /// # Errors
    /// 1046.
    fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)>;

    /// The state that an end of result carries now.
    fn state_info(&mut self) -> OkInfo;

    /// Sends an OK.
    ///
    /// # Errors
    /// The client has disconnected.
    fn send_ok(&mut self, sink: &mut dyn ResultSink, ok: OkInfo) -> Result<()>;

    /// Computes the value of an expression that is part of a statement.
    ///
    /// # Errors
    /// Errors of binding, planning and execution.
    fn evaluate(&mut self, expr: &Expr, running: &Running<'_>) -> Result<(Value, DataType)> {
        let plan = self.plan_value(expr, running)?;
        self.value_of_plan(&plan, running)
    }
}

/// The settings of the creating session that a new program keeps.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The statement's time, microseconds since 1970 UTC.
    pub now_micros: i64,
    /// `character_set_client`.
    pub charset_client: Arc<str>,
    /// `time_zone`.
    pub time_zone: Arc<str>,
}

/// Changes the definitions of programs.
pub trait DefinitionHost: ProgramHost {
    /// The settings of the creating session that a new program keeps.
    fn facts(&self) -> Facts;

    /// The catalog, temporary tables included.
    fn view(&self) -> CatalogView;

    /// Returns an error for writes on a server that is read-only for this account, and for changes of a schema that is read-only.
    ///
    /// # Errors
    /// 1290, 3989.
    fn check_writable(&self, schema: &str) -> Result<()>;

    /// A table.
    ///
    /// # Errors
    /// 1146, 1347 for a view.
    fn find_table(&self, schema: &str, name: &str) -> Result<Arc<Table>>;

    /// Waits until no other session uses the tables, and excludes others.
    ///
    /// # Errors
    /// 1205, 1213.
    fn lock_for_ddl(&mut self, tables: &[TableId]) -> Result<MetadataGuard>;

    /// Whether a function that is not a stored one has this name.
    fn has_native_function(&self, name: &str) -> bool;

    /// `automatic_sp_privileges` is on.
    fn grants_to_makers(&self) -> bool;

    /// The event scheduler.
    fn events(&self) -> Arc<EventScheduler>;

    /// The time zone of an event's times.
    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules>;

    /// Commits changes of definitions and sends OK.
    ///
    /// # Errors
    /// They are refused, or cannot be written.
    fn commit(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()>;
}
