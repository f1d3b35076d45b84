//! Operators: compiled nodes, which programs share, and the running operators made of them.
//!
//! An operator is opened, pulled row by row (each row leaves its values in the registers), and closed; it can be opened again.

mod aggregate;
mod compile;
mod information;
mod join;
mod json_rows;
mod kept;
mod keys;
mod materialize;
mod merge;
mod rows;
mod scan;
mod set;
mod simple;
mod sort;
mod sorted_scan;
mod window;

use errors::Result;
use plan::CteId;
use types::DataType;

use crate::expr::{Code, Truth};
use crate::measure::Measured;
use crate::run::Run;

pub(crate) use aggregate::{AggregateNode, CallKind, build_row_aggregate};
pub(crate) use compile::{NodeCompiler, is_utc};
pub(crate) use information::InformationNode;
pub(crate) use join::{HashJoinNode, NestedLoopNode};
pub(crate) use kept::{KeptReader, KeptRows};
pub(crate) use keys::{KeySource, Ranges};
pub(crate) use rows::Rows;
pub(crate) use scan::{AccessNode, Scan, ScanBuffers, ScanNode, hold_much};
pub(crate) use set::SetNode;
pub(crate) use simple::{Seen, row_count};
pub(crate) use sort::{Sort, SortNode};
pub(crate) use sorted_scan::SortedRows;
pub(crate) use window::WindowNode;

/// A compiled operator.
pub(crate) enum Node {
    OneRow,
    Nothing,
    Scan(Box<ScanNode>),
    Information(Box<InformationNode>),
    Values {
        rows: Vec<Vec<Code>>,
        columns: Vec<usize>,
    },
    JsonRows(Box<json_rows::JsonRowsNode>),
    Filter {
        input: Box<Node>,
        predicate: Truth,
    },
    Project {
        input: Box<Node>,
        columns: Vec<(usize, Code)>,
    },
    NestedLoop(Box<NestedLoopNode>),
    HashJoin(Box<HashJoinNode>),
    Aggregate(Box<AggregateNode>),
    Window(Box<WindowNode>),
    Sort(Box<SortNode>),
    Distinct {
        input: Box<Node>,
        columns: Vec<(usize, DataType)>,
        keeps_order: bool,
    },
    Limit {
        input: Box<Node>,
        limit: Option<Code>,
        offset: Option<Code>,
        count_all: bool,
    },
    Set(Box<SetNode>),
    Materialize {
        id: CteId,
        input: Box<Node>,
        outputs: Vec<Code>,
        columns: Vec<usize>,
        correlated: bool,
    },
    CteScan {
        id: CteId,
        columns: Vec<usize>,
    },
    RecursiveCte(Box<materialize::RecursiveNode>),
    /// EXPLAIN ANALYZE only.
    Measured {
        place: usize,
        input: Box<Node>,
    },
}

/// A running operator.
pub(crate) trait Operator<'r> {
    /// Starts, or starts again with the outer registers as they are now.
    fn open(&mut self, run: &mut Run<'r>) -> Result<()>;
    /// Puts the next row into the registers; false at the end.
    fn next(&mut self, run: &mut Run<'r>) -> Result<bool>;
    /// Gives back cursors and memory.
    fn close(&mut self, run: &mut Run<'r>);
}

/// Makes the running operator of a node.
pub(crate) fn build<'r>(node: &'r Node) -> Box<dyn Operator<'r> + 'r> {
    match node {
        Node::OneRow => Box::new(simple::OneRow::default()),
        Node::Nothing => Box::new(simple::Nothing),
        Node::Scan(node) => Box::new(scan::Scan::new(node)),
        Node::Information(node) => Box::new(information::InformationScan::new(node)),
        Node::Values { rows, columns } => Box::new(simple::Values::new(rows, columns)),
        Node::JsonRows(node) => Box::new(json_rows::JsonRows::new(node)),
        Node::Filter { input, predicate } => {
            Box::new(simple::Filter { input: build(input), predicate })
        }
        Node::Project { input, columns } => {
            Box::new(simple::Project { input: build(input), columns })
        }
        Node::NestedLoop(node) => Box::new(join::NestedLoop::new(node)),
        Node::HashJoin(node) => Box::new(join::HashJoin::new(node)),
        Node::Aggregate(node) => aggregate::build(node),
        Node::Window(node) => Box::new(window::Window::new(node)),
        Node::Sort(node) => Box::new(sort::Sort::new(node)),
        Node::Distinct { input, columns, keeps_order } => {
            Box::new(simple::Distinct::new(build(input), columns, *keeps_order))
        }
        Node::Limit { input, limit, offset, count_all } => {
            Box::new(simple::Limit::new(build(input), limit.as_ref(), offset.as_ref(), *count_all))
        }
        Node::Set(node) => Box::new(set::SetOperator::new(node)),
        Node::Materialize { id, input, outputs, columns, correlated } => Box::new(
            materialize::Materialize::new(*id, build(input), outputs, columns, *correlated),
        ),
        Node::CteScan { id, columns } => Box::new(materialize::CteScan::new(*id, columns)),
        Node::RecursiveCte(node) => Box::new(materialize::RecursiveCte::new(node)),
        Node::Measured { place, input } => Box::new(Measured::new(*place, build(input))),
    }
}
