//! The batch program: pipelines over columns of many rows, for statements that read much and keep little.
//!
//! A pipeline scans the clustered index of a table, decodes only the columns that it needs, filters, computes and gives the remaining rows
//! to a sink that keeps state; several threads run one pipeline over parts of the scan. Columns, expressions and states are the crate
//! `batch`; this module connects them with engines, the run and the row program that does the work where the batch program is unfit.

mod aggregate;
mod pipeline;

pub(crate) use aggregate::{BatchAggregateNode, BatchGrouping};
