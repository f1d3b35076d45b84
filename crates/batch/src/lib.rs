//! The columns of the batch program: batches of rows as typed columns, expressions over them, and states of groupings.
//!
//! Everything here is free of side effects and runs on any thread, so an unsupported case (an overflow, a division by zero, a value
//! of an unexpected kind, too much memory) ends with `Unfit`, and the row program does the work from the start: errors and warnings
//! have one implementation. Knows no engine, no run and no operator; `exec::pipelines` reads scans into batches and makes an operator of it.
//!
//! Columns are vectors of our own, not Arrow's: see ARCHITECTURE.md.

mod call;
mod column;
mod decode;
mod env;
mod expr;
mod groups;
mod in_set;
mod keys;
mod rollup;
mod states;

pub use column::Column;
pub use decode::ColumnReader;
pub use env::{Env, Facts, NoSession};
pub use expr::{Batch, BatchExpr, ExprCompiler, Operand};
pub use groups::Grouped;
pub use rollup::{Line, Rollup};
pub use states::{StateKind, StateResult, States};

/// This is a case for the row program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unfit;

/// The result of a step of a pipeline.
pub type Fit<T> = Result<T, Unfit>;

impl From<types::record::RecordError> for Unfit {
    fn from(_: types::record::RecordError) -> Unfit {
        Unfit
    }
}

/// Rows of a batch, about.
pub const BATCH_ROWS: usize = 1024;
