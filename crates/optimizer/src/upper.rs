//! Operators above joins: groups, windows, order, limits, set operations.

use std::borrow::Cow;

use errors::{Result, bail};
use plan::{
    AggregateMode, BinaryOp, Expr, GroupSets, Logical, LogicalJoinKind, Physical, Register,
    SortKey, UnaryOp,
};
use types::{AggregateRole, CollationId, DataType, Value};

use crate::access::{Goal, sorted_register};
use crate::cost::{
    DISTINCT_SHARE, GROUPS_SHARE, ORDERED_DISTINCT_ROWS_MAX, PARAMETER_LIMIT, RECURSIONS,
    SORT_COST, UNKNOWN_ROWS,
};
use crate::predicate::{conjunction, has_subquery};
use crate::{Planner, Recursion};

/// A planned operator tree with its estimates and properties.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub physical: Physical,
    pub rows: f64,
    pub cost: f64,
    /// Rows come in the goal's order.
    pub ordered: bool,
    /// Equal group columns of the goal are adjacent.
    pub grouped: bool,
}

impl Node {
    pub(crate) fn new(physical: Physical, rows: f64, cost: f64) -> Node {
        Node { physical, rows, cost, ordered: false, grouped: false }
    }

    pub(crate) fn nothing() -> Node {
        Node::new(Physical::Nothing, 0.0, 0.0)
    }

    /// The side of an outer join: if it has no rows, its registers are NULL in the rows of the other side, and operators above keep them.
    pub(crate) fn defining(mut self, registers: &plan::RegisterSet) -> Node {
        if has_no_row(&self.physical) {
            let null = |register| {
                let ty = DataType::null();
                (register, Expr::Literal { value: Value::Null, ty })
            };
            let columns = registers.iter().map(null).collect();
            self.physical = Physical::Project { input: Box::new(Physical::Nothing), columns };
        }
        self
    }

    /// Only the rows that satisfy all `predicates`.
    pub(crate) fn filtered(mut self, predicates: Vec<Expr>) -> Node {
        let Some(predicate) = conjunction(predicates) else { return self };
        self.rows *= crate::predicate::selectivity(&predicate);
        self.physical = Physical::Filter { input: Box::new(self.physical), predicate };
        self
    }
}

/// The goal below a projection: a MATCH that it computes gives an order itself.
fn ranked<'g>(goal: &'g Goal, columns: &[(Register, Expr)]) -> Cow<'g, Goal> {
    let rank = |key: &SortKey| {
        let register = key.expr.as_column()?;
        let (_, expr) = columns.iter().find(|(column, _)| *column == register)?;
        matches!(expr, Expr::Match { .. }).then(|| expr.clone())
    };
    let mut inner = Cow::Borrowed(goal);
    for (at, key) in goal.order.iter().enumerate() {
        if let Some(expr) = rank(key) {
            inner.to_mut().order[at].expr = expr;
        }
    }
    inner
}

impl Planner<'_> {
    /// Plans an operator tree.
    pub(crate) fn plan(&mut self, node: Logical, goal: &Goal) -> Result<Node> {
        match node {
            Logical::OneRow => Ok(Node::new(Physical::OneRow, 1.0, 0.0)),
            Logical::Nothing => Ok(Node::nothing()),
            Logical::Join { kind: LogicalJoinKind::Full, left, right, on } => {
                self.plan_full_join(*left, *right, on)
            }
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
                let node = self.plan(*input, &ranked(goal, &columns))?;
                let physical = Physical::Project { input: Box::new(node.physical), columns };
                Ok(Node { physical, ..node })
            }
            Logical::Aggregate { input, keys, aggregates, scalar, sets, grouping } => {
                let groups = Groups { keys, aggregates, sets, grouping };
                if scalar {
                    self.plan_scalar(*input, groups)
                } else if groups.sets == GroupSets::One {
                    self.plan_groups(*input, groups, goal)
                } else {
                    self.plan_group_sets(*input, groups)
                }
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
            recursive @ Logical::RecursiveCte { .. } => self.plan_recursive(recursive),
        }
    }

    fn plan_recursive(&mut self, node: Logical) -> Result<Node> {
        let Logical::RecursiveCte {
            id,
            name,
            seed,
            seed_outputs,
            step,
            step_outputs,
            distinct,
            columns,
            names,
        } = node
        else {
            return Ok(Node::new(Physical::Nothing, 0.0, 0.0));
        };
        let seed = self.plan(*seed, &Goal::default())?;
        let outside = self.recursions.len();
        self.recursions.push(Recursion { id, misplaced: false });
        let step = self.plan(*step, &Goal::default());
        let misplaced = self.recursions.drain(outside..).any(|own| own.misplaced);
        let step = step?;
        if misplaced {
            bail!(CTE_RECURSIVE_FORBIDDEN_JOIN_ORDER, name);
        }
        let rows = seed.rows * RECURSIONS;
        let physical = Physical::RecursiveCte {
            id,
            seed: Box::new(seed.physical),
            seed_outputs,
            step: Box::new(step.physical),
            step_outputs,
            distinct,
            columns,
            names,
        };
        Ok(Node::new(physical, rows, seed.cost + step.cost * RECURSIONS))
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
        let inner = Goal { order: keys.clone(), limit: goal.limit, ..Goal::default() };
        // Whether this order is the requested one.
        let ordered = keys.starts_with(&goal.order);
        let node = self.plan(input, &inner)?;
        // No row has any order.
        if node.ordered || has_no_row(&node.physical) {
            return Ok(Node { ordered, ..node });
        }
        let cost = node.cost + node.rows * SORT_COST * (node.rows + 2.0).log2();
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
        let firsts = self.firsts_of_distinct(&input, &columns);
        let inner = Goal { limit: None, firsts, ..goal.clone() };
        let node = self.plan(input, &inner)?;
        if has_no_row(&node.physical) {
            return Ok(node);
        }
        let is_short = goal.limit.is_some_and(|limit| limit <= ORDERED_DISTINCT_ROWS_MAX);
        let keeps_order = node.ordered && !goal.order.is_empty() && is_short;
        let ordered = keeps_order || goal.order.is_empty() && node.ordered;
        let physical = Physical::Distinct { input: Box::new(node.physical), columns, keeps_order };
        Ok(Node { physical, rows: node.rows * DISTINCT_SHARE, ordered, grouped: false, ..node })
    }

    // --- groups

    /// One group of all rows.
    fn plan_scalar(&mut self, input: Logical, groups: Groups) -> Result<Node> {
        let extremes: Option<Vec<_>> = groups.aggregates.iter().map(extreme).collect();
        let Some(extremes) = extremes.filter(|found| (1..=EXTREMES_MAX).contains(&found.len()))
        else {
            return self.plan_one_group(input, groups);
        };
        let mut joined: Option<Node> = None;
        for ((column, last), call) in extremes.into_iter().zip(&groups.aggregates) {
            let Some(node) = self.plan_extreme(&input, column, last)? else {
                return self.plan_one_group(input, groups);
            };
            let own = Groups { aggregates: vec![call.clone()], ..Groups::default() };
            let node = own.over(node, AggregateMode::Scalar);
            joined = Some(match joined {
                None => node,
                Some(before) => pair(before, node),
            });
        }
        joined.map_or_else(|| Ok(Node::nothing()), Ok)
    }

    fn plan_one_group(&mut self, input: Logical, mut groups: Groups) -> Result<Node> {
        let input = self.distinct_first(input, &mut groups);
        let node = self.plan(input, &Goal::default())?;
        Ok(groups.over(node, AggregateMode::Scalar))
    }

    /// Groups by several sets of keys: levels of sorted rows, or a hash table for listed sets.
    fn plan_group_sets(&mut self, input: Logical, groups: Groups) -> Result<Node> {
        if groups.sets != GroupSets::Rollup {
            let node = self.plan(input, &Goal::default())?;
            return Ok(groups.over(node, AggregateMode::Hash));
        }
        let ascending =
            |(_, expr): &(Register, Expr)| SortKey { expr: expr.clone(), descending: false };
        let sort: Vec<SortKey> = groups.keys.iter().map(ascending).collect();
        let node = self.plan_sort(input, sort, None, &Goal::default())?;
        Ok(groups.over(node, AggregateMode::Sorted))
    }

    /// Groups, in the goal's order when that is cheaper than forming them in any order and sorting them.
    fn plan_groups(&mut self, input: Logical, mut groups: Groups, goal: &Goal) -> Result<Node> {
        // Planned twice, so without query blocks in it: each level of them would double the work.
        let ordered = match groups.order_of_input(goal) {
            Some(order) if !has_block(&input) => {
                let node = self.plan(input.clone(), &order)?;
                node.ordered.then(|| (node, groups.clone()))
            }
            _ => None,
        };
        let input = self.distinct_first(input, &mut groups);
        let plain: Option<Vec<Register>> = groups
            .keys
            .iter()
            .map(|(_, expr)| sorted_register(&SortKey { expr: expr.clone(), descending: false }))
            .collect();
        let firsts = self.firsts_of_groups(&input, &groups.keys, &groups.aggregates);
        let inner = Goal { group: plain.unwrap_or_default(), firsts, ..Goal::default() };
        let node = self.plan(input, &inner)?;
        if let Some((ordered, groups)) = ordered
            && ordered.cost < node.cost + node.rows
        {
            let node = groups.over(ordered, AggregateMode::Sorted);
            return Ok(Node { ordered: true, ..node });
        }
        let mode = if node.grouped && !inner.group.is_empty() {
            AggregateMode::Sorted
        } else {
            AggregateMode::Hash
        };
        Ok(groups.over(node, mode))
    }

    /// When all calls take distinct values of one expression, its values are made distinct by a separate grouping, which knows more
    /// ways than a set in each group.
    fn distinct_first(&mut self, input: Logical, groups: &mut Groups) -> Logical {
        let Some(arg) = groups.common_distinct() else { return input };
        let value = Register(self.registers);
        self.registers += 1;
        let column = Expr::Column { register: value, ty: arg.ty().clone() };
        let mut keys = Vec::with_capacity(groups.keys.len() + 1);
        for (_, key) in &mut groups.keys {
            let register = Register(self.registers);
            self.registers += 1;
            let outer = Expr::Column { register, ty: key.ty().clone() };
            keys.push((register, std::mem::replace(key, outer)));
        }
        keys.push((value, arg));
        for call in &mut groups.aggregates {
            call.distinct = false;
            call.args = vec![column.clone()];
        }
        Logical::Aggregate {
            input: Box::new(input),
            grouping: vec![None; keys.len()],
            keys,
            aggregates: Vec::new(),
            scalar: false,
            sets: GroupSets::One,
        }
    }

    /// `SELECT MIN(a) FROM t`: the first row of an index on `a`, if any.
    fn plan_extreme(&mut self, input: &Logical, column: Expr, last: bool) -> Result<Option<Node>> {
        let single = {
            let mut node = input;
            while let Logical::Filter { input, .. } = node {
                node = input;
            }
            matches!(node, Logical::Get(_))
        };
        if !single {
            return Ok(None);
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
            limit: Some(1.0),
            ..Goal::default()
        };
        let node = self.plan(wanted, &goal)?;
        if !node.ordered {
            return Ok(None);
        }
        let one = Expr::literal(Value::UInt(1), DataType::bigint_unsigned().with_nullable(false));
        let physical = Physical::Limit {
            input: Box::new(node.physical),
            limit: Some(one),
            offset: None,
            count_all: false,
        };
        Ok(Some(Node::new(physical, 1.0, node.cost)))
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
        if has_no_row(&node.physical) {
            return Ok(node);
        }
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

/// Keys and calls of a grouping.
#[derive(Clone, Default)]
struct Groups {
    keys: Vec<(Register, Expr)>,
    aggregates: Vec<plan::AggregateCall>,
    sets: GroupSets,
    grouping: Vec<Option<Register>>,
}

impl Groups {
    fn over(self, node: Node, mode: AggregateMode) -> Node {
        let rows = match mode {
            AggregateMode::Scalar => 1.0,
            AggregateMode::Hash | AggregateMode::Sorted => (node.rows * GROUPS_SHARE).max(1.0),
        };
        let physical = Physical::Aggregate {
            input: Box::new(node.physical),
            mode,
            keys: self.keys,
            aggregates: self.aggregates,
            carried: Vec::new(),
            sets: self.sets,
            grouping: self.grouping,
        };
        Node::new(physical, rows, node.cost + node.rows)
    }

    /// The expression of which all calls take distinct values.
    fn common_distinct(&self) -> Option<Expr> {
        let mut common: Option<&Expr> = None;
        for call in &self.aggregates {
            let [arg] = call.args.as_slice() else { return None };
            let kind = arg.ty().kind;
            let role = call.function.role;
            let is_sum = matches!(role, AggregateRole::Sum | AggregateRole::Average);
            let fits = role == AggregateRole::Count && kind != types::TypeKind::Json
                || is_sum && (arg.ty().is_integer() || kind == types::TypeKind::Decimal);
            if !fits || !call.distinct || common.is_some_and(|common| common != arg) {
                return None;
            }
            common = Some(arg);
        }
        common.filter(|arg| !arg.is_volatile() && !has_subquery(arg)).cloned()
    }

    /// The input order that returns groups in the goal's order, where few of them are wanted.
    fn order_of_input(&self, goal: &Goal) -> Option<Goal> {
        let limit = goal.limit.filter(|_| !goal.order.is_empty())?;
        let mut rest: Vec<&(Register, Expr)> = self.keys.iter().collect();
        let mut order = Vec::with_capacity(rest.len());
        for key in &goal.order {
            let register = sorted_register(key)?;
            let at = rest.iter().position(|(output, _)| *output == register)?;
            let (_, expr) = rest.remove(at);
            order.push(SortKey { expr: expr.clone(), descending: key.descending });
        }
        order.extend(
            rest.into_iter().map(|(_, expr)| SortKey { expr: expr.clone(), descending: false }),
        );
        Some(Goal { order, limit: Some(limit / GROUPS_SHARE), ..Goal::default() })
    }
}

/// At most this many MIN and MAX are looked up one by one.
const EXTREMES_MAX: usize = 8;

/// The column of a MIN or MAX, and whether it is MAX.
pub(crate) fn extreme(call: &plan::AggregateCall) -> Option<(Expr, bool)> {
    let [arg] = call.args.as_slice() else { return None };
    let role = call.function.role;
    if !matches!(role, AggregateRole::Minimum | AggregateRole::Maximum) {
        return None;
    }
    let last = role == AggregateRole::Maximum;
    // ENUM and SET compare as text in MIN and MAX, by number in an index.
    let ty = arg.ty();
    if matches!(ty.kind, types::TypeKind::Enum | types::TypeKind::Set) {
        return None;
    }
    sorted_register(&SortKey { expr: arg.clone(), descending: false }).map(|_| (arg.clone(), last))
}

/// Whether the optimizer found out that there is no row.
fn has_no_row(node: &Physical) -> bool {
    if let Physical::Project { input, .. } | Physical::Filter { input, .. } = node {
        return has_no_row(input);
    }
    *node == Physical::Nothing
}

/// Whether a separate query block is read: a derived table, or a view that is computed.
fn has_block(node: &Logical) -> bool {
    let mut found = matches!(node, Logical::Derived { .. } | Logical::Aggregate { .. });
    node.for_each_input(&mut |input| found = found || has_block(input));
    found
}

/// Two nodes of one row each, side by side.
fn pair(one: Node, other: Node) -> Node {
    let physical = Physical::NestedLoop {
        kind: plan::JoinKind::Inner,
        outer: Box::new(one.physical),
        inner: Box::new(other.physical),
        condition: None,
        inner_columns: Vec::new(),
    };
    Node::new(physical, 1.0, one.cost + other.cost)
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
    let binary = |op, left: &Expr, right: &Expr, ty: &DataType| Expr::Binary {
        op,
        left: Box::new(left.clone()),
        right: Box::new(right.clone()),
        collation: CollationId::BINARY,
        ty: ty.clone(),
    };
    // `LIMIT 18446744073709551615 OFFSET n` means all rows after n: the sum must not overflow.
    let all = Expr::literal(Value::UInt(u64::MAX), ty.clone());
    let room = binary(BinaryOp::Subtract, &all, offset, &ty);
    let overflows = binary(BinaryOp::Greater, limit, &room, &DataType::boolean());
    Some(Expr::Case {
        operand: None,
        branches: vec![(overflows, all)],
        otherwise: Some(Box::new(binary(BinaryOp::Add, limit, offset, &ty))),
        collation: CollationId::BINARY,
        ty,
    })
}

/// A limit that is known while planning.
fn literal_count(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal { value: Value::UInt(count), .. } => Some(*count as f64),
        _ => Some(PARAMETER_LIMIT),
    }
}
