//! The interface of every operator to the run and to other operators: it is built from compiled data, and pulled row by row.
//! Operators know their inputs, and expressions their subqueries, through these traits alone.

use errors::Result;

use crate::run::Run;

/// A running operator.
pub(crate) trait Operator<'r> {
    /// Starts, or restarts with the current outer registers.
    fn open(&mut self, run: &mut Run<'r>) -> Result<()>;
    /// Puts the next row into the registers; false at the end.
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool>;
    /// Gives back cursors and memory.
    fn close(&mut self, run: &mut Run<'r>);
}

/// Compiled data from which running operators are built.
pub(crate) trait Source: Send + Sync {
    /// Makes a running operator.
    fn build<'r>(&'r self) -> Box<dyn Operator<'r> + 'r>;
}
