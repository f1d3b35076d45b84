//! The compiled statement.

use std::sync::Arc;

use errors::{Error, Result};
use plan::Plan;
use plugin_api::{BindContext, ColumnMeta, Registry};

use crate::context::{ExecContext, Outcome, RowSink};

/// A compiled statement: immutable, shared by the plan cache.
pub struct Program {
    columns: Vec<ColumnMeta>,
}

/// Compiles a plan: resolves every function to its kernel.
///
/// # Errors
/// What the plan asks for is not built (1235), or a function refuses its arguments.
pub fn compile(plan: &Plan, registry: &Registry, bind: &BindContext) -> Result<Arc<Program>> {
    let _ = (plan, registry, bind);
    Err(Error::not_supported("execution"))
}

impl Program {
    /// Columns of the result set; empty when the statement has none.
    pub fn columns(&self) -> &[ColumnMeta] {
        &self.columns
    }

    /// Runs the statement. On an error every change of the statement is undone (after a deadlock, of the transaction).
    ///
    /// # Errors
    /// Whatever goes wrong in the statement.
    pub fn run(&self, ctx: &mut ExecContext<'_>, sink: &mut dyn RowSink) -> Result<Outcome> {
        let _ = (ctx, sink);
        Err(Error::not_supported("execution"))
    }
}
