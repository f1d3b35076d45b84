//! What stored programs need of whoever runs them.

use std::sync::Arc;

use accounts::PrivilegeChecks;
use catalog::{CatalogSnapshot, CatalogView, Edit, Event, MetadataGuard, Table};
use engine_api::TableId;
use errors::{Diagnostics, Error, Result};
use plugin_api::{OkInfo, ResultSink};
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
    /// The running statement reads the conditions of the last one and leaves them.
    pub keeps: &'a mut bool,
}

/// Runs the statements of programs: in its transactions, with its values, as its account.
pub trait ProgramHost: PrivilegeChecks {
    /// A statement or expression that was planned and can be run again.
    type Plan: Clone;
    /// What a plan was made under.
    type Context: PartialEq;
    /// What `enter` puts aside.
    type Outside;

    /// The programs that run, and those that were read.
    fn state(&self) -> &ProgramState<Self::Plan, Self::Context>;

    /// As `state`, to change it.
    fn state_mut(&mut self) -> &mut ProgramState<Self::Plan, Self::Context>;

    /// The session's variables, decoded.
    fn settings(&self) -> &Settings;

    /// The catalog as it is now.
    fn snapshot(&self) -> Arc<CatalogSnapshot>;

    /// The conditions.
    fn conditions(&mut self) -> Conditions<'_>;

    /// Whether the statement may go on.
    ///
    /// # Errors
    /// 1317, 3024, 1053.
    fn check_running(&self) -> Result<()>;

    /// Whether the connection is to end.
    fn is_connection_killed(&self) -> bool;

    /// How many stored functions and triggers run within each other.
    fn function_depth(&self) -> u32;

    /// Before what is a statement of its own in the transaction.
    fn begin_scope(&mut self);

    /// After it did its work: commits unless a transaction is open.
    ///
    /// # Errors
    /// The commit fails.
    fn finish_scope(&mut self) -> Result<()>;

    /// After it failed: it is undone.
    fn abort_scope(&mut self, error: &Error);

    /// The time that the next statement goes by is now; in a function it stays that of the calling statement.
    fn move_time(&mut self);

    /// Before a statement of a program: conditions, counts and the time are the statement's own.
    fn begin_part(&mut self);

    /// After a statement of a program that succeeded.
    fn end_part(&mut self);

    /// Runs a statement that is not only of programs.
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
    /// What binding and planning refuse.
    fn plan_query(&mut self, query: &Statement, running: &Running<'_>) -> Result<Self::Plan>;

    /// Plans an expression.
    ///
    /// # Errors
    /// What binding and planning refuse.
    fn plan_value(&mut self, expr: &Expr, running: &Running<'_>) -> Result<Self::Plan>;

    /// The value that the plan of an expression gives.
    ///
    /// # Errors
    /// What goes wrong while it is computed.
    fn value_of_plan(
        &mut self,
        plan: &Self::Plan,
        running: &Running<'_>,
    ) -> Result<(Value, DataType)>;

    /// All rows that the plan of a query gives, and the types of its columns.
    ///
    /// # Errors
    /// What goes wrong while it runs.
    fn rows_of_plan(
        &mut self,
        plan: &Self::Plan,
        parameters: &[Value],
    ) -> Result<(Vec<Vec<Value>>, Vec<DataType>)>;

    /// What a plan that is made now is made under.
    fn plan_context(&self) -> Self::Context;

    /// Whether a plan may be used again.
    fn may_keep(&self, plan: &Self::Plan) -> bool;

    /// Locks the tables of a kept plan; false when it is out of date, or may not be used now.
    ///
    /// # Errors
    /// Missing privileges, waiting too long.
    fn lock_kept(&mut self, plan: &Self::Plan) -> Result<bool>;

    /// Makes of a value what a variable of another type holds.
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

    /// Sets a user variable.
    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType);

    /// What ROW_COUNT() returns.
    fn row_count(&self) -> i64;

    /// Sets what ROW_COUNT() returns.
    fn set_row_count(&mut self, count: i64);

    /// Goes into a program's schema and SQL mode, and into the hands of its definer.
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

    /// Whether there is a system variable of this name.
    fn has_variable(&self, name: &str) -> bool;

    /// Schema and name of an object, the current schema when none is written.
    ///
    /// # Errors
    /// 1046.
    fn qualify(&self, name: &ObjectName) -> Result<(Arc<str>, Arc<str>)>;

    /// What goes with an end of result now.
    fn state_info(&mut self) -> OkInfo;

    /// Sends an OK.
    ///
    /// # Errors
    /// The client is gone.
    fn send_ok(&mut self, sink: &mut dyn ResultSink, ok: OkInfo) -> Result<()>;

    /// The value of an expression that stands in a statement.
    ///
    /// # Errors
    /// What binding, planning and running refuse.
    fn evaluate(&mut self, expr: &Expr, running: &Running<'_>) -> Result<(Value, DataType)> {
        let plan = self.plan_value(expr, running)?;
        self.value_of_plan(&plan, running)
    }
}

/// What a new program keeps of the session that makes it.
#[derive(Clone, Debug)]
pub struct Facts {
    /// The time that the statement goes by, microseconds since 1970 UTC.
    pub now_micros: i64,
    /// `character_set_client`.
    pub charset_client: Arc<str>,
    /// `time_zone`.
    pub time_zone: Arc<str>,
}

/// Changes the definitions of programs.
pub trait DefinitionHost: ProgramHost {
    /// What a new program keeps of the session that makes it.
    fn facts(&self) -> Facts;

    /// The catalog, temporary tables included.
    fn view(&self) -> CatalogView;

    /// Refuses writes on a server that is read-only for this account.
    ///
    /// # Errors
    /// 1290.
    fn check_writable(&self) -> Result<()>;

    /// A table.
    ///
    /// # Errors
    /// 1146, 1347 for a view.
    fn find_table(&self, schema: &str, name: &str) -> Result<Arc<Table>>;

    /// Waits until nobody else uses the tables, and keeps others out.
    ///
    /// # Errors
    /// 1205, 1213.
    fn lock_for_ddl(&self, tables: &[TableId]) -> Result<MetadataGuard>;

    /// Whether a function that is not stored has this name.
    fn has_native_function(&self, name: &str) -> bool;

    /// `automatic_sp_privileges` is on.
    fn grants_to_makers(&self) -> bool;

    /// Who runs events.
    fn events(&self) -> Arc<EventScheduler>;

    /// The zone in which an event's times are understood.
    fn event_zone(&self, event: &Event) -> Arc<dyn ZoneRules>;

    /// Commits changes of definitions and says so.
    ///
    /// # Errors
    /// They cannot be made, or not be written.
    fn commit(&mut self, edits: &[Edit], sink: &mut dyn ResultSink) -> Result<()>;
}
