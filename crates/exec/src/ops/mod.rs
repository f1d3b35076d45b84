//! Operators: compiled nodes, which programs share, and the running operators made of them. `node` names them all, `compile` makes nodes of
//! a plan; an operator knows its input as a `Source`.
//!
//! An operator is opened, pulled row by row (each row leaves its values in the registers), and closed; it can be opened again.

mod aggregate;
mod compile;
mod compile_access;
mod compile_calls;
mod information;
mod join;
mod json_rows;
mod keys;
mod lookup_join;
mod materialize;
mod measured;
mod merge;
mod node;
mod partitions;
mod registers;
mod scan;
mod set;
mod simple;
mod sort;
mod sorted_scan;
mod window;

pub(crate) use aggregate::{AggregateNode, CallKind, Live};
pub(crate) use compile::{NodeCompiler, is_utc};
pub(crate) use keys::Ranges;
pub(crate) use node::Node;
pub(crate) use scan::{AccessNode, Scan, ScanNode, hold_much};
pub(crate) use simple::{Seen, row_count};
pub(crate) use sort::{Sort, SortInput, SortNode};
