//! The batch program: pipelines over columns of many rows, for statements that read much and keep little.
//!
//! A pipeline scans the clustered index of a table, decodes only the columns that it needs, filters, computes, looks rows up in hash
//! tables and gives what is left to a sink that keeps state; several threads run one pipeline over parts of the scan. Everything in it
//! is free of effects, so whatever it is not made for (an overflow, a division by zero, a value of an unexpected kind, too much
//! memory) ends it with `Unfit`, and the row program does the work from the start: errors and warnings have one implementation.
//!
//! Columns are vectors of our own, not Arrow's: see ARCHITECTURE.md.

mod aggregate;
mod call;
mod column;
mod decode;
mod env;
mod expr;
mod groups;
mod in_set;
mod keys;
mod pipeline;
mod rollup;
mod states;

pub(crate) use aggregate::{BatchAggregateNode, BatchGrouping};

/// This is a case for the row program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unfit;

/// What a step of a pipeline gives.
pub(crate) type Fit<T> = Result<T, Unfit>;

impl From<types::record::RecordError> for Unfit {
    fn from(_: types::record::RecordError) -> Unfit {
        Unfit
    }
}

/// Rows of a batch, about.
pub(crate) const BATCH_ROWS: usize = 1024;
