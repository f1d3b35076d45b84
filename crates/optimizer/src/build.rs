//! The operators of a join block.

use std::sync::Arc;

use catalog::Table;
use errors::Result;
use plan::{Expr, InstanceId, JoinKind, Logical, Physical, Register, RegisterSet, TableAccess};
use types::DataType;

use crate::Planner;
use crate::access::{Goal, TablePlan, sorted_register};
use crate::cost::{INFORMATION_ROWS, INFORMATION_ROWS_FOUND, ORDER_COST_EXTRA, ORDER_COST_FACTOR};
use crate::graph::{
    Graph, RELATIONS_MAX, Relation, RelationKind, Source, count_relations, definitions,
    is_full_join, mask_of,
};
use crate::join::{Candidate, Method, Step};
use crate::predicate::{conjunction, has_subquery, split};
use crate::sargable::Sarg;
use crate::upper::Node;

impl Planner<'_> {
    /// Plans a tree of joins, filters and projections.
    pub(crate) fn plan_block(&mut self, node: Logical, goal: &Goal) -> Result<Node> {
        if count_relations(&node) > RELATIONS_MAX {
            return Err(errors::err!(TOO_MANY_TABLES, RELATIONS_MAX));
        }
        let mut graph = self.graph(node);
        self.unnest(&mut graph);
        self.place_predicates(&mut graph);
        if graph.empty {
            return Ok(self.top(Node::nothing(), &mut graph));
        }
        let other = self.distinct_variant(&graph);
        let node = self.plan_graph(graph, goal)?;
        match other {
            Some(other) => {
                let second = self.plan_graph(other, goal)?;
                Ok(if second.cost < node.cost { second } else { node })
            }
            None => Ok(node),
        }
    }

    /// Plans a graph whose predicates are in their places.
    fn plan_graph(&mut self, mut graph: Graph, goal: &Goal) -> Result<Node> {
        if !graph.relations.iter().any(|relation| relation.kind == RelationKind::Inner) {
            self.add_one_row(&mut graph);
        }
        let alone = graph.relations.len() == 1;
        let mut candidates = Vec::with_capacity(graph.relations.len());
        let mut traced = Vec::new();
        for index in 0..graph.relations.len() {
            let inner_goal = if alone { goal.clone() } else { Goal::default() };
            let node = self.plan_source(&mut graph, index, &inner_goal)?;
            let candidate = self.candidate(&graph, index, node);
            traced.extend(self.trace_alone(&graph, index, &candidate));
            candidates.push(candidate);
        }
        let joined = if alone {
            let joined = self.single(&graph, candidates, goal);
            self.trace_block(&graph, traced, &[]);
            joined
        } else {
            let steps = self.join_order(&graph, &candidates);
            let short = self.short_order(&graph, &candidates, &steps, goal);
            let is_short = short.is_some();
            let steps = short.unwrap_or(steps);
            self.trace_block(&graph, traced, &steps);
            self.chain(&graph, candidates, steps, goal, is_short)
        };
        Ok(self.top(joined, &mut graph))
    }

    /// Predicates on the whole graph, computed columns, and predicates on those.
    fn top(&self, mut node: Node, graph: &mut Graph) -> Node {
        let constant: Vec<Expr> = graph
            .predicates
            .iter()
            .filter(|predicate| mask_of(&graph.relations, &self.reads(predicate)) == 0)
            .cloned()
            .collect();
        node = node.filtered(constant);
        if !graph.projected.is_empty() {
            let mut columns = std::mem::take(&mut graph.projected);
            // The last ones taken in are the deepest and are computed first.
            columns.reverse();
            node.physical = Physical::Project { input: Box::new(node.physical), columns };
        }
        node.filtered(std::mem::take(&mut graph.late))
    }

    fn add_one_row(&mut self, graph: &mut Graph) {
        graph.relations.push(Relation {
            source: Source::Logical(Logical::OneRow),
            kind: RelationKind::Inner,
            defines: RegisterSet::new(),
            on: Vec::new(),
            local: Vec::new(),
            after: 0,
            lateral: false,
        });
    }

    /// Plans a relation that is not a table, its own predicates included.
    fn plan_source(
        &mut self,
        graph: &mut Graph,
        index: usize,
        goal: &Goal,
    ) -> Result<Option<Node>> {
        let relation = &mut graph.relations[index];
        let source = std::mem::replace(&mut relation.source, Source::Logical(Logical::Nothing));
        match source {
            Source::Table(id) => {
                relation.source = Source::Table(id);
                Ok(None)
            }
            Source::Logical(mut node) => {
                for predicate in std::mem::take(&mut relation.local) {
                    node = self.push(node, predicate);
                }
                let mut rest = Vec::new();
                while !is_block(&node)
                    && let Logical::Filter { input, predicate } = node
                {
                    rest.push(predicate);
                    node = *input;
                }
                if let Logical::InformationGet { schema, name, columns, .. } = node {
                    return Ok(Some(information_scan(schema, name, columns, rest)));
                }
                let is_left = graph.relations[index].kind == RelationKind::Left;
                let mut planned = self.plan(node, goal)?;
                if is_left {
                    planned = planned.defining(&graph.relations[index].defines);
                }
                Ok(Some(planned.filtered(rest)))
            }
        }
    }

    /// A block of one relation.
    fn single(&mut self, graph: &Graph, mut candidates: Vec<Candidate>, goal: &Goal) -> Node {
        let Some(candidate) = candidates.pop() else { return Node::nothing() };
        match (&graph.relations[0].source, candidate.node) {
            (Source::Table(id), _) => {
                let live = vec![true; candidate.predicates.len()];
                let plan =
                    self.table_plan(*id, &candidate.predicates, &candidate.sargs, &live, goal);
                self.scan(*id, plan, candidate.predicates, &live)
            }
            (Source::Logical(_), Some(node)) => node,
            (Source::Logical(_), None) => Node::nothing(),
        }
    }

    /// Joins in the order of `steps`; `is_short`: the first table is read in the goal's order at any price.
    fn chain(
        &mut self,
        graph: &Graph,
        mut candidates: Vec<Candidate>,
        steps: Vec<Step>,
        goal: &Goal,
        is_short: bool,
    ) -> Node {
        let lookups = steps[1..].iter().all(|step| !matches!(step.method, Method::Hash));
        let first_goal = if lookups { goal.clone() } else { Goal::default() };
        let mut placed = 0u64;
        let mut node: Option<Node> = None;
        for step in steps {
            let index = step.relation;
            let candidate = std::mem::replace(&mut candidates[index], Candidate::empty());
            node = Some(match node {
                // No order was requested, so the resulting order is not guaranteed.
                None if !lookups => Node {
                    ordered: false,
                    grouped: false,
                    ..self.first(graph, index, candidate, &first_goal, is_short)
                },
                None => self.first(graph, index, candidate, &first_goal, is_short),
                Some(outer) => self.join_step(graph, outer, step, candidate, placed),
            });
            placed |= 1 << index;
            if graph.relations[index].kind != RelationKind::Inner {
                let after: Vec<Expr> = graph
                    .predicates
                    .iter()
                    .filter(|predicate| {
                        let mask = mask_of(&graph.relations, &self.reads(predicate));
                        mask & 1 << index != 0 && mask & !placed == 0
                    })
                    .cloned()
                    .collect();
                node = node.map(|node| node.filtered(after));
            }
        }
        node.unwrap_or_else(Node::nothing)
    }

    fn first(
        &mut self,
        graph: &Graph,
        index: usize,
        candidate: Candidate,
        goal: &Goal,
        is_short: bool,
    ) -> Node {
        let own = 1u64 << index;
        match (&graph.relations[index].source, candidate.node) {
            (Source::Table(id), _) => {
                let live: Vec<bool> = candidate.masks.iter().map(|m| m & !own == 0).collect();
                let Candidate { predicates, sargs, .. } = candidate;
                let plain = self.table_plan(*id, &predicates, &sargs, &live, &Goal::default());
                let plan = if goal.order.is_empty() && goal.group.is_empty() {
                    plain
                } else {
                    let limit = goal.limit.filter(|_| is_short);
                    let goal = Goal { limit, ..goal.clone() };
                    let wanted = self.first_in_order(*id, &predicates, &sargs, &live, &goal);
                    let most = plain.cost * ORDER_COST_FACTOR + ORDER_COST_EXTRA;
                    match wanted.filter(|wanted| is_short || wanted.cost <= most) {
                        Some(wanted) => wanted,
                        None => TablePlan { ordered: false, grouped: false, ..plain },
                    }
                };
                let plan = match &goal.firsts {
                    Some(_) => {
                        let wanted = self.table_plan(*id, &predicates, &sargs, &live, goal);
                        let skips = wanted.firsts.is_some() && wanted.cost < plan.cost;
                        if skips { wanted } else { plan }
                    }
                    None => plan,
                };
                self.scan(*id, plan, predicates, &live)
            }
            (Source::Logical(_), Some(node)) => Node { ordered: false, grouped: false, ..node },
            (Source::Logical(_), None) => Node::nothing(),
        }
    }

    /// A plan of the first table of a join that serves the goal's order or groups.
    pub(crate) fn first_in_order(
        &self,
        id: InstanceId,
        predicates: &[Expr],
        sargs: &[Sarg],
        live: &[bool],
        goal: &Goal,
    ) -> Option<TablePlan> {
        let mut wanted = self.table_plan(id, predicates, sargs, live, goal);
        // A key of this table may make the rest of an order redundant for its own rows, not for joined ones.
        let instance = self.instance(id);
        let is_own =
            |key| sorted_register(key).is_some_and(|key| instance.column_of(key).is_some());
        wanted.ordered &= !goal.order.is_empty() && goal.order.iter().all(is_own);
        (wanted.ordered || wanted.grouped).then_some(wanted)
    }

    fn join_step(
        &mut self,
        graph: &Graph,
        outer: Node,
        step: Step,
        candidate: Candidate,
        placed: u64,
    ) -> Node {
        let index = step.relation;
        let own = 1u64 << index;
        let relation = &graph.relations[index];
        let kind = match relation.kind {
            RelationKind::Inner => JoinKind::Inner,
            RelationKind::Left => JoinKind::Left,
            RelationKind::Semi => JoinKind::Semi,
            RelationKind::Anti => JoinKind::Anti,
        };
        let live = graph.live(&candidate.predicates, &candidate.masks, own, placed);
        let alone: Vec<bool> = candidate.masks.iter().map(|mask| mask & !own == 0).collect();
        let between: Vec<Expr> = candidate
            .predicates
            .iter()
            .enumerate()
            .filter(|(at, _)| live[*at] && !alone[*at])
            .map(|(_, predicate)| predicate.clone())
            .collect();
        let (ordered, grouped) = (outer.ordered, outer.grouped);
        let outer_physical = Box::new(outer.physical);
        let physical = match (step.method, &relation.source) {
            (Method::Lookup(plan), Source::Table(id)) => {
                let inner = self.scan(*id, plan, candidate.predicates, &live);
                nested(kind, outer_physical, inner.physical, None)
            }
            (Method::Hash, _) => {
                let inner = self.alone(relation, candidate, &alone);
                let mut keys = Vec::new();
                let mut rest = Vec::new();
                for predicate in between {
                    match self.hash_key(&predicate, &relation.defines) {
                        Some(key) => keys.push(key),
                        None => rest.push(predicate),
                    }
                }
                let condition = conjunction(rest);
                let inner = Box::new(inner.physical);
                let inner_columns = Vec::new();
                let outer = outer_physical;
                Physical::HashJoin { kind, outer, inner, keys, condition, inner_columns }
            }
            (Method::Lateral, _) => {
                let inner = self.alone(relation, candidate, &alone).filtered(between);
                nested(kind, outer_physical, inner.physical, None)
            }
            (Method::Reread | Method::Lookup(_), _) => {
                let inner = self.alone(relation, candidate, &alone);
                let kept = self.materialized(inner.physical);
                nested(kind, outer_physical, kept, conjunction(between))
            }
        };
        Node { physical, rows: step.rows, cost: step.cost, ordered, grouped }
    }

    /// A full join: of its own condition, equalities are keys, and nothing filters its sides.
    pub(crate) fn plan_full_join(
        &mut self,
        left: Logical,
        right: Logical,
        on: Option<Expr>,
    ) -> Result<Node> {
        let inner_defines = definitions(&right, &self.instances);
        let outer_defines = definitions(&left, &self.instances);
        let outer = self.plan(left, &Goal::default())?.defining(&outer_defines);
        let inner = self.plan(right, &Goal::default())?.defining(&inner_defines);
        let mut conditions = Vec::new();
        if let Some(on) = on {
            split(on, &mut conditions);
        }
        let (mut keys, mut rest) = (Vec::new(), Vec::new());
        for condition in conditions {
            match self.hash_key(&condition, &inner_defines).filter(|_| !condition.is_volatile()) {
                Some(key) => keys.push(key),
                None => rest.push(condition),
            }
        }
        let matches = if keys.is_empty() { outer.rows * inner.rows } else { 0.0 };
        let rows = matches.max(outer.rows).max(inner.rows);
        let cost = outer.cost + inner.cost + outer.rows + inner.rows + matches;
        let physical = Physical::HashJoin {
            kind: JoinKind::Full,
            outer: Box::new(outer.physical),
            inner: Box::new(inner.physical),
            keys,
            condition: conjunction(rest),
            inner_columns: Vec::new(),
        };
        Ok(Node::new(physical, rows, cost))
    }

    /// A relation, independently of the others.
    fn alone(&mut self, relation: &Relation, candidate: Candidate, live: &[bool]) -> Node {
        match (&relation.source, candidate.node) {
            (Source::Table(id), _) => {
                let goal = Goal::default();
                let plan =
                    self.table_plan(*id, &candidate.predicates, &candidate.sargs, live, &goal);
                self.scan(*id, plan, candidate.predicates, live)
            }
            (Source::Logical(_), Some(node)) => {
                // Its own conditions were pushed into it, except those of an outer join that mention no relation.
                let rest = candidate
                    .predicates
                    .into_iter()
                    .zip(live)
                    .filter(|(_, live)| **live)
                    .map(|(predicate, _)| predicate)
                    .collect();
                node.filtered(rest)
            }
            (Source::Logical(_), None) => Node::nothing(),
        }
    }

    /// Rows that are computed once and read repeatedly. Columns are filled in at the end.
    pub(crate) fn materialized(&mut self, input: Physical) -> Physical {
        if matches!(
            input,
            Physical::OneRow
                | Physical::Nothing
                | Physical::Materialize { .. }
                | Physical::CteScan { .. }
        ) {
            return input;
        }
        Physical::Materialize {
            id: self.new_cte(),
            input: Box::new(input),
            outputs: Vec::new(),
            columns: Vec::new(),
            correlated: false,
        }
    }

    /// The scan of a table: predicates that the access does not cover are filtered.
    fn scan(&self, id: InstanceId, plan: TablePlan, predicates: Vec<Expr>, live: &[bool]) -> Node {
        let instance = self.instance(id);
        let table = self.table(id);
        let virtuals: RegisterSet =
            instance.virtuals.iter().map(|(register, _)| *register).collect();
        let (mut simple, mut costly, mut above) = (Vec::new(), Vec::new(), Vec::new());
        for (position, predicate) in predicates.into_iter().enumerate() {
            if !live[position] || plan.consumed.contains(&position) {
                continue;
            }
            if !virtuals.is_empty() && self.reads(&predicate).intersects(&virtuals) {
                above.push(predicate);
            } else if has_subquery(&predicate) {
                costly.push(predicate);
            } else {
                simple.push(predicate);
            }
        }
        simple.append(&mut costly);
        let access = TableAccess {
            table: table.id.0,
            engine: table.engine.clone(),
            alias: instance.alias.clone(),
            layout: layout(table),
            names: names(table, &instance.alias),
            missing: missing(table),
            columns: Vec::new(),
            locator: instance.locator,
            locking: instance.locking,
            instance: id.0,
            estimated_rows: plan.rows.clamp(0.0, 1e18).round() as u64,
            entries: None,
            firsts: plan.firsts,
        };
        let filter = conjunction(simple);
        let mut physical = Physical::Scan { table: access, access: plan.access, filter };
        if !instance.virtuals.is_empty() {
            let columns: Vec<(Register, Expr)> = instance.virtuals.clone();
            physical = Physical::Project { input: Box::new(physical), columns };
        }
        let node = Node {
            physical,
            rows: plan.rows,
            cost: plan.cost,
            ordered: plan.ordered,
            grouped: plan.grouped,
        };
        node.filtered(above)
    }
}

/// Types of the stored columns in record order.
pub(crate) fn layout(table: &Table) -> Arc<[DataType]> {
    table.definition.columns.iter().map(|column| column.ty.clone()).collect()
}

/// The stored columns as error messages name them.
fn names(table: &Table, alias: &str) -> Arc<[Arc<str>]> {
    let columns = table.definition.columns.iter();
    columns.map(|c| Arc::from(format!("`{}`.`{alias}`.`{}`", table.schema, c.name))).collect()
}

/// The values of columns that old records do not have.
fn missing(table: &Table) -> Arc<[types::Value]> {
    let columns = &table.definition.columns;
    if columns.iter().all(|column| column.instant_default.is_none()) {
        return Arc::from([]);
    }
    columns.iter().map(|c| c.instant_default.clone().unwrap_or(types::Value::Null)).collect()
}

fn nested(
    kind: JoinKind,
    outer: Box<Physical>,
    inner: Physical,
    condition: Option<Expr>,
) -> Physical {
    Physical::NestedLoop {
        kind,
        outer,
        inner: Box::new(inner),
        condition,
        inner_columns: Vec::new(),
    }
}

/// Filters over a join or a table.
fn is_block(node: &Logical) -> bool {
    match node {
        Logical::Filter { input, .. } => is_block(input),
        Logical::Join { .. } => !is_full_join(node),
        Logical::Get(_) => true,
        _ => false,
    }
}

/// The scan of an information table: equalities with values known before the scan are look-ups, and are checked anyway.
fn information_scan(
    schema: Arc<str>,
    name: Arc<str>,
    columns: Vec<(usize, Arc<str>, Register, DataType)>,
    predicates: Vec<Expr>,
) -> Node {
    let own: RegisterSet = columns.iter().map(|column| column.2).collect();
    let mut equals = Vec::new();
    for predicate in &predicates {
        let Expr::Binary { op: plan::BinaryOp::Equal, left, right, .. } = predicate else {
            continue;
        };
        for (column, value) in [(left, right), (right, left)] {
            let Some(register) = column.as_column() else { continue };
            let known = columns.iter().find(|column| column.2 == register);
            let fixed = !value.any(&mut |node| {
                node.as_column().is_some_and(|register| own.contains(register))
                    || matches!(node, Expr::Subquery { .. })
            });
            if let (Some(column), true) = (known, fixed) {
                equals.push((column.1.clone(), (**value).clone()));
            }
        }
    }
    let rows = if equals.is_empty() { INFORMATION_ROWS } else { INFORMATION_ROWS_FOUND };
    let columns = columns.into_iter().map(|(index, _, register, _)| (index, register)).collect();
    let filter = conjunction(predicates);
    let physical = Physical::InformationScan { schema, name, columns, equals, filter };
    Node { physical, rows, cost: rows, ordered: false, grouped: false }
}
