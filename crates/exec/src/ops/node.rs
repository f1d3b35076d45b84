//! All operators: the compiler's output for a plan.

use plan::CteId;
use types::DataType;

use super::aggregate::AggregateNode;
use super::information::{InformationNode, InformationScan};
use super::join::{HashJoin, HashJoinNode, NestedLoop, NestedLoopNode};
use super::json_rows::{JsonRows, JsonRowsNode};
use super::lookup_join::{LookupJoin, LookupJoinNode};
use super::materialize::{CteScan, Materialize, RecursiveCte, RecursiveNode};
use super::measured::Measured;
use super::scan::{Scan, ScanNode};
use super::set::{SetNode, SetOperator};
use super::simple::{Distinct, Filter, Limit, Nothing, OneRow, Project, Values};
use super::sort::{Sort, SortNode};
use super::window::{Window, WindowNode};
use crate::expr::{Code, Truth};
use crate::operator::{Operator, Source};
use crate::pipelines::BatchAggregateNode;

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
    JsonRows(Box<JsonRowsNode>),
    Filter {
        input: Box<Node>,
        predicate: Truth,
    },
    Project {
        input: Box<Node>,
        columns: Vec<(usize, Code)>,
    },
    NestedLoop(Box<NestedLoopNode>),
    LookupJoin(Box<LookupJoinNode>),
    HashJoin(Box<HashJoinNode>),
    Aggregate(Box<AggregateNode>),
    BatchAggregate(Box<BatchAggregateNode>),
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
    RecursiveCte(Box<RecursiveNode>),
    /// EXPLAIN ANALYZE only.
    Measured {
        place: usize,
        input: Box<Node>,
    },
}

impl Source for Node {
    fn build<'r>(&'r self) -> Box<dyn Operator<'r> + 'r> {
        match self {
            Node::OneRow => Box::new(OneRow::default()),
            Node::Nothing => Box::new(Nothing),
            Node::Scan(node) => Box::new(Scan::new(node)),
            Node::Information(node) => Box::new(InformationScan::new(node)),
            Node::Values { rows, columns } => Box::new(Values::new(rows, columns)),
            Node::JsonRows(node) => Box::new(JsonRows::new(node)),
            Node::Filter { input, predicate } => {
                Box::new(Filter { input: input.build(), predicate })
            }
            Node::Project { input, columns } => Box::new(Project { input: input.build(), columns }),
            Node::NestedLoop(node) => Box::new(NestedLoop::new(node)),
            Node::LookupJoin(node) => Box::new(LookupJoin::new(node)),
            Node::HashJoin(node) => Box::new(HashJoin::new(node)),
            Node::Aggregate(node) => node.build(),
            Node::BatchAggregate(node) => node.build(),
            Node::Window(node) => Box::new(Window::new(node)),
            Node::Sort(node) => Box::new(Sort::new(node)),
            Node::Distinct { input, columns, keeps_order } => {
                Box::new(Distinct::new(input.build(), columns, *keeps_order))
            }
            Node::Limit { input, limit, offset, count_all } => {
                Box::new(Limit::new(input.build(), limit.as_ref(), offset.as_ref(), *count_all))
            }
            Node::Set(node) => Box::new(SetOperator::new(node)),
            Node::Materialize { id, input, outputs, columns, correlated } => {
                Box::new(Materialize::new(*id, input.build(), outputs, columns, *correlated))
            }
            Node::CteScan { id, columns } => Box::new(CteScan::new(*id, columns)),
            Node::RecursiveCte(node) => Box::new(RecursiveCte::new(node)),
            Node::Measured { place, input } => Box::new(Measured::new(*place, input.build())),
        }
    }
}
