//! Operators above joins: groups, windows, order, limits, set operations.

use errors::Result;
use plan::{AggregateMode, BinaryOp, Expr, Logical, Physical, Register, SortKey, UnaryOp};
use types::{CollationId, DataType, Value};

use crate::Planner;
use crate::access::{Goal, sorted_register};
use crate::predicate::conjunction;

/// Rows assumed of what nothing is known of.
const UNKNOWN_ROWS: f64 = 100.0;

/// A planned operator tree with its estimates and properties.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub physical: Physical,
    pub rows: f64,
    pub cost: f64,
    /// Rows come in the goal's order.
    pub ordered: bool,
    /// Equal group columns of the goal lie together.
    pub grouped: bool,
}

impl Node {
    fn new(physical: Physical, rows: f64, cost: f64) -> Node {
        Node { physical, rows, cost, ordered: false, grouped: false }
    }

    pub(crate) fn nothing() -> Node {
        Node::new(Physical::Nothing, 0.0, 0.0)
    }

    /// Only the rows that satisfy all `predicates`.
    pub(crate) fn filtered(mut self, predicates: Vec<Expr>) -> Node {
        let Some(predicate) = conjunction(predicates) else { return self };
        self.rows *= crate::predicate::selectivity(&predicate);
        self.physical = Physical::Filter { input: Box::new(self.physical), predicate };
        self
    }
}

/// So many distinct rows can be told apart in memory, so that they come as an index gives them.
const ORDERED_DISTINCT_ROWS_MAX: f64 = 1000.0;

impl Planner<'_> {
    /// Plans an operator tree.
    pub(crate) fn plan(&mut self, node: Logical, goal: &Goal) -> Result<Node> {
        match node {
            Logical::OneRow => Ok(Node::new(Physical::OneRow, 1.0, 0.0)),
            Logical::Nothing => Ok(Node::nothing()),
            Logical::Get(_) | Logical::Filter { .. } | Logical::Join { .. } => {
                self.plan_block(node, goal)
            }
            Logical::InformationGet { schema, name, columns, .. } => {
                let columns = columns.into_iter().map(|(index, _, r, _)| (index, r)).collect();
                let (equals, filter) = (Vec::new(), None);
                let physical = Physical::InformationScan { schema, name, columns, equals, filter };
                Ok(Node::new(physical, UNKNOWN_ROWS, UNKNOWN_ROWS))
            }
            Logical::Values { rows, columns } => {
                let count = rows.len() as f64;
                let columns = columns.into_iter().map(|(register, _)| register).collect();
                Ok(Node::new(Physical::Values { rows, columns }, count, count))
            }
            Logical::JsonRows(rows) => {
                Ok(Node::new(Physical::JsonRows(rows), UNKNOWN_ROWS, UNKNOWN_ROWS))
            }
            Logical::Project { input, columns } => {
                let node = self.plan(*input, goal)?;
                let physical = Physical::Project { input: Box::new(node.physical), columns };
                Ok(Node { physical, ..node })
            }
            Logical::Aggregate { input, keys, aggregates, scalar, rollup, grouping } => {
                self.plan_aggregate(*input, keys, aggregates, scalar, rollup, grouping)
            }
            Logical::Window { input, partition_by, order_by, calls } => {
                self.plan_window(*input, partition_by, order_by, calls)
            }
            Logical::Sort { input, keys } => self.plan_sort(*input, keys, None, goal),
            Logical::Distinct { input, columns } => self.plan_distinct(*input, columns, goal),
            Logical::Limit { input, limit, offset, count_all } => {
                self.plan_limit(*input, limit, offset, count_all)
            }
            Logical::SetOperation { operation, inputs, columns } => {
                let (mut rows, mut cost) = (0.0, 0.0);
                let mut planned = Vec::with_capacity(inputs.len());
                for (input, outputs) in inputs {
                    let node = self.plan(input, &Goal::default())?;
                    rows += node.rows;
                    cost += node.cost;
                    planned.push((node.physical, outputs));
                }
                let physical = Physical::SetOperation { operation, inputs: planned, columns };
                Ok(Node::new(physical, rows, cost))
            }
            Logical::Derived { input, .. } => {
                let node = self.plan(*input, goal)?;
                Ok(Node { ordered: false, grouped: false, ..node })
            }
            Logical::CteScan { id, columns, .. } => {
                let known = self.cte_rows.iter().find(|(known, _)| *known == id);
                let rows = known.map_or(UNKNOWN_ROWS, |(_, rows)| *rows);
                Ok(Node::new(Physical::CteScan { id, columns }, rows, rows))
            }
            Logical::RecursiveCte {
                id,
                seed,
                seed_outputs,
                step,
                step_outputs,
                distinct,
                columns,
            } => {
                let seed = self.plan(*seed, &Goal::default())?;
                let step = self.plan(*step, &Goal::default())?;
                let rows = seed.rows * 10.0;
                let physical = Physical::RecursiveCte {
                    id,
                    seed: Box::new(seed.physical),
                    seed_outputs,
                    step: Box::new(step.physical),
                    step_outputs,
                    distinct,
                    columns,
                };
                Ok(Node::new(physical, rows, seed.cost + step.cost * 10.0))
            }
        }
    }

    // --- order and limits

    fn plan_limit(
        &mut self,
        input: Logical,
        limit: Option<Expr>,
        offset: Option<Expr>,
        count_all: bool,
    ) -> Result<Node> {
        let top = if count_all { None } else { top_count(limit.as_ref(), offset.as_ref()) };
        let goal = Goal { limit: top.as_ref().and_then(literal_count), ..Goal::default() };
        let node = match input {
            Logical::Sort { input, keys } => self.plan_sort(*input, keys, top, &goal)?,
            other => self.plan(other, &goal)?,
        };
        let rows = goal.limit.map_or(node.rows, |limit| limit.min(node.rows));
        let input = Box::new(node.physical);
        let physical = Physical::Limit { input, limit, offset, count_all };
        Ok(Node::new(physical, rows, node.cost))
    }

    fn plan_sort(
        &mut self,
        input: Logical,
        keys: Vec<SortKey>,
        top: Option<Expr>,
        goal: &Goal,
    ) -> Result<Node> {
        let inner = Goal { order: keys.clone(), group: Vec::new(), limit: goal.limit };
        // Whether this order is the one asked for outside.
        let ordered = keys.starts_with(&goal.order);
        let node = self.plan(input, &inner)?;
        if node.ordered {
            return Ok(Node { ordered, ..node });
        }
        let cost = node.cost + node.rows * 0.2 * (node.rows + 2.0).log2();
        let rows = match goal.limit {
            Some(limit) if top.is_some() => limit.min(node.rows),
            _ => node.rows,
        };
        let physical = Physical::Sort {
            input: Box::new(node.physical),
            keys,
            limit: top,
            columns: Vec::new(),
        };
        Ok(Node { physical, rows, cost, ordered, grouped: false })
    }

    fn plan_distinct(
        &mut self,
        input: Logical,
        columns: Vec<(Register, DataType)>,
        goal: &Goal,
    ) -> Result<Node> {
        let inner = Goal { limit: None, ..goal.clone() };
        let node = self.plan(input, &inner)?;
        let is_short = goal.limit.is_some_and(|limit| limit <= ORDERED_DISTINCT_ROWS_MAX);
        let keeps_order = node.ordered && !goal.order.is_empty() && is_short;
        let ordered = keeps_order || goal.order.is_empty() && node.ordered;
        let physical = Physical::Distinct { input: Box::new(node.physical), columns, keeps_order };
        Ok(Node { physical, rows: node.rows * 0.5, ordered, grouped: false, ..node })
    }

    // --- groups

    fn plan_aggregate(
        &mut self,
        input: Logical,
        keys: Vec<(Register, Expr)>,
        aggregates: Vec<plan::AggregateCall>,
        scalar: bool,
        rollup: bool,
        grouping: Vec<Option<Register>>,
    ) -> Result<Node> {
        let input = match extreme(&keys, &aggregates, scalar) {
            Some((column, last)) => match self.plan_extreme(input, column, last)? {
                Extreme::Planned(node) => {
                    return Ok(grouped(
                        node,
                        AggregateMode::Scalar,
                        keys,
                        aggregates,
                        false,
                        grouping,
                    ));
                }
                Extreme::Other(input) => *input,
            },
            None => input,
        };
        if scalar {
            let node = self.plan(input, &Goal::default())?;
            return Ok(grouped(node, AggregateMode::Scalar, keys, aggregates, false, grouping));
        }
        if rollup {
            let sort: Vec<SortKey> = keys
                .iter()
                .map(|(_, expr)| SortKey { expr: expr.clone(), descending: false })
                .collect();
            let node = self.plan_sort(input, sort, None, &Goal::default())?;
            return Ok(grouped(node, AggregateMode::Sorted, keys, aggregates, true, grouping));
        }
        let plain: Option<Vec<Register>> = keys
            .iter()
            .map(|(_, expr)| sorted_register(&SortKey { expr: expr.clone(), descending: false }))
            .collect();
        let goal = Goal { group: plain.unwrap_or_default(), ..Goal::default() };
        let node = self.plan(input, &goal)?;
        let mode = if node.grouped && !goal.group.is_empty() {
            AggregateMode::Sorted
        } else {
            AggregateMode::Hash
        };
        Ok(grouped(node, mode, keys, aggregates, false, grouping))
    }

    /// `SELECT MIN(a) FROM t`: the first row of an index on `a`, where there is one.
    fn plan_extreme(&mut self, input: Logical, column: Expr, last: bool) -> Result<Extreme> {
        let single = {
            let mut node = &input;
            while let Logical::Filter { input, .. } = node {
                node = input;
            }
            matches!(node, Logical::Get(_))
        };
        if !single {
            return Ok(Extreme::Other(Box::new(input)));
        }
        let mut wanted = input.clone();
        if column.ty().nullable {
            let predicate = Expr::Unary {
                op: UnaryOp::IsNotNull,
                operand: Box::new(column.clone()),
                ty: DataType::boolean().with_nullable(false),
            };
            wanted = Logical::Filter { input: Box::new(wanted), predicate };
        }
        let goal = Goal {
            order: vec![SortKey { expr: column, descending: last }],
            group: Vec::new(),
            limit: Some(1.0),
        };
        let node = self.plan(wanted, &goal)?;
        if !node.ordered {
            return Ok(Extreme::Other(Box::new(input)));
        }
        let one = Expr::literal(Value::UInt(1), DataType::bigint_unsigned().with_nullable(false));
        let physical = Physical::Limit {
            input: Box::new(node.physical),
            limit: Some(one),
            offset: None,
            count_all: false,
        };
        Ok(Extreme::Planned(Node::new(physical, 1.0, node.cost)))
    }

    fn plan_window(
        &mut self,
        input: Logical,
        partition_by: Vec<Expr>,
        order_by: Vec<SortKey>,
        calls: Vec<plan::WindowCall>,
    ) -> Result<Node> {
        let keys: Vec<SortKey> = partition_by
            .iter()
            .map(|expr| SortKey { expr: expr.clone(), descending: false })
            .chain(order_by.iter().cloned())
            .collect();
        let node = if keys.is_empty() {
            self.plan(input, &Goal::default())?
        } else {
            self.plan_sort(input, keys, None, &Goal::default())?
        };
        let physical = Physical::Window {
            input: Box::new(node.physical),
            partition_by,
            order_by,
            calls,
            columns: Vec::new(),
        };
        Ok(Node::new(physical, node.rows, node.cost + node.rows))
    }
}

/// Outcome of `plan_extreme`.
enum Extreme {
    Planned(Node),
    Other(Box<Logical>),
}

/// The column of a lone MIN or MAX, and whether it is MAX.
fn extreme(
    keys: &[(Register, Expr)],
    aggregates: &[plan::AggregateCall],
    scalar: bool,
) -> Option<(Expr, bool)> {
    let [call] = aggregates else { return None };
    let [arg] = call.args.as_slice() else { return None };
    if !scalar || !keys.is_empty() {
        return None;
    }
    let last = match &*call.function {
        "MIN" => false,
        "MAX" => true,
        _ => return None,
    };
    // ENUM and SET compare as text in MIN and MAX, by number in an index.
    let ty = arg.ty();
    if matches!(ty.kind, types::TypeKind::Enum | types::TypeKind::Set) {
        return None;
    }
    sorted_register(&SortKey { expr: arg.clone(), descending: false }).map(|_| (arg.clone(), last))
}

fn grouped(
    node: Node,
    mode: AggregateMode,
    keys: Vec<(Register, Expr)>,
    aggregates: Vec<plan::AggregateCall>,
    rollup: bool,
    grouping: Vec<Option<Register>>,
) -> Node {
    let rows = match mode {
        AggregateMode::Scalar => 1.0,
        AggregateMode::Hash | AggregateMode::Sorted => (node.rows * 0.1).max(1.0),
    };
    let physical = Physical::Aggregate {
        input: Box::new(node.physical),
        mode,
        keys,
        aggregates,
        carried: Vec::new(),
        rollup,
        grouping,
    };
    Node::new(physical, rows, node.cost + node.rows)
}

/// How many rows a sort below a limit must keep.
fn top_count(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<Expr> {
    let limit = limit?;
    let Some(offset) = offset else { return Some(limit.clone()) };
    let ty = DataType::bigint_unsigned().with_nullable(false);
    if let (
        Expr::Literal { value: Value::UInt(limit), .. },
        Expr::Literal { value: Value::UInt(offset), .. },
    ) = (limit, offset)
    {
        return limit.checked_add(*offset).map(|sum| Expr::literal(Value::UInt(sum), ty));
    }
    Some(Expr::Binary {
        op: BinaryOp::Add,
        left: Box::new(limit.clone()),
        right: Box::new(offset.clone()),
        collation: CollationId::BINARY,
        ty,
    })
}

/// A limit that is known while planning.
fn literal_count(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal { value: Value::UInt(count), .. } => Some(*count as f64),
        // A parameter: most are small.
        _ => Some(20.0),
    }
}
