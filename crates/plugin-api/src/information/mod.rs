//! The slot for tables whose rows are facts about the server: information_schema, performance_schema, data_dictionary, mysql.*; and
//! the questions that such tables may ask the server, a trait for each subject.

mod accounts;
mod definition;
mod engines;
mod programs;
mod schemas;
mod server;
mod session_table;
mod status;
mod table;
mod view;

pub use accounts::{
    AccountInformation, AccountView, ColumnPrivilegesView, DynamicPrivilegeView,
    EarlierPasswordView, ProxyView, RoleGrantView, RoleView, RoutinePrivilegesView,
    SchemaPrivilegesView, TablePrivilegesView,
};
pub use definition::{TableDefinition, table_definitions};
pub use engines::{EngineInformation, EngineStatView, EngineView};
pub use programs::{
    EventView, IntervalView, ParameterView, ProgramInformation, RoutineView, TriggerView,
};
pub use schemas::{SchemaInformation, SchemaView, ViewUsage};
pub use server::{
    CopyProgress, FileOperations, FileUseView, ForeignServerView, FunctionView, IoBucket,
    MetadataLockRow, PlanCacheView, PluginItemView, PluginView, ProcessView, ResourceGroupView,
    ServerInformation, TableWaitsRow, TablespaceView, TimedCounts, UserLockView,
};
pub use session_table::SessionTable;
pub use status::{ConditionView, StatusInformation, StatusScope, VariableChange, VariableView};
pub use table::{
    ColumnView, ConstraintKind, ConstraintView, DualityLinkView, DualityObjectView, GeneratedView,
    IndexPartView, IndexView, PartitionView, ReferencedView, TableDetail, TableView,
};
pub use view::{SystemProcedure, SystemView};

use errors::{Error, ErrorCode, Result};
use types::{DataType, Value};

use crate::function::SessionServices;

/// A column of an information table.
#[derive(Clone, Debug, PartialEq)]
pub struct InfoColumn {
    /// Name as shown.
    pub name: &'static str,
    /// Type.
    pub ty: DataType,
}

/// A statement's request to a table: equality conditions that the WHERE clause has on look-up columns, which a table may use to
/// produce fewer rows (the executor filters anyway), and the columns that it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InfoFilter {
    /// `column = 'literal'` pairs, column names in lower case.
    pub equals: Vec<(String, String)>,
    /// Positions of the columns that the statement reads: values of others may be anything.
    pub reads: Vec<usize>,
}

impl InfoFilter {
    /// The literal that `column` (lower case) must equal.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.equals.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_str())
    }

    /// Whether the statement reads one of these columns.
    pub fn reads_any(&self, columns: &[usize]) -> bool {
        self.reads.iter().any(|read| columns.contains(read))
    }
}

/// A table of facts.
pub trait InformationTable: Send + Sync {
    /// `information_schema`, `performance_schema`, `data_dictionary`, `mysql`, `ndbinfo` or `sys`.
    fn schema(&self) -> &'static str;
    /// Name as shown.
    fn name(&self) -> &'static str;
    /// Columns.
    fn columns(&self) -> &[InfoColumn];
    /// Produces the rows.
    ///
    /// # Errors
    /// Errors that `emit` returns, and cancelled statements.
    fn rows(
        &self,
        ctx: &dyn InformationContext,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()>;
    /// The rows of a table about the values of the session that reads it; `None` for other tables, whose rows come from `rows`.
    fn session_rows(&self, _session: &dyn SessionServices) -> Option<Vec<Vec<Value>>> {
        None
    }
    /// Changes the table; `None` when statements may not.
    fn editor(&self) -> Option<&dyn TableEditor> {
        None
    }
}

/// Changes an information table. The caller has checked the privileges.
pub trait TableEditor {
    /// Assigns values to columns of a row, which is given as `rows` produced it. Returns whether that changed anything. `number`: which of
    /// the statement's rows it is, from 1.
    ///
    /// # Errors
    /// 1683 for columns that cannot be assigned; 1265 for wrong values.
    fn update(&self, row: &[Value], assigned: &[(usize, Value)], number: u64) -> Result<bool> {
        let _ = (row, assigned, number);
        Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]))
    }

    /// Whether statements may add and remove rows.
    fn takes_rows(&self) -> bool {
        false
    }

    /// Adds a row of values for all columns; `None` stands for the column's default. `number`: which of the statement's rows it is, from 1.
    ///
    /// # Errors
    /// 1683 when rows cannot be added, 1022 for a row that is there, 1265 for wrong values.
    fn insert(&self, row: &[Option<Value>], number: u64) -> Result<()> {
        let _ = (row, number);
        Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]))
    }

    /// Removes a row, which is given as `rows` produced it. Returns whether it was there.
    ///
    /// # Errors
    /// 1683.
    fn delete(&self, row: &[Value]) -> Result<bool> {
        let _ = row;
        Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]))
    }

    /// Empties it.
    ///
    /// # Errors
    /// 1683.
    fn truncate(&self) -> Result<()> {
        Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[]))
    }
}

/// The questions that information tables may ask the server. Every answer is limited to objects that the session's account may see.
pub trait InformationContext:
    SchemaInformation
    + ProgramInformation
    + AccountInformation
    + StatusInformation
    + EngineInformation
    + ServerInformation
{
}

impl<T> InformationContext for T where
    T: SchemaInformation
        + ProgramInformation
        + AccountInformation
        + StatusInformation
        + EngineInformation
        + ServerInformation
{
}
