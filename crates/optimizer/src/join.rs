//! The order in which relations are joined: dynamic programming up to a dozen, greedy beyond.

use std::collections::HashMap;

use plan::{BinaryOp, Expr};

use crate::Planner;
use crate::access::{Goal, TablePlan, sort_cost};
use crate::cost::{
    ANTI_SHARE, BUILD_COST, JOIN_DISTINCT_MIN, JOINED_ROW_COST, JOINED_ROWS_MIN, PROBE_COST,
    REMEMBERED_ROWS_MIN, REREAD_COST, SHORT_ORDER_GAIN,
};
use crate::graph::{Graph, RelationKind, Source, mask_of};
use crate::predicate::selectivity;
use crate::sargable::Sarg;
use crate::upper::Node;

/// The maximum number of relations for which all orders are tried.
const EXHAUSTIVE_MAX: usize = 12;
/// How a relation is joined to the previous ones.
#[derive(Clone, Debug)]
pub(crate) enum Method {
    /// Opened for each row, by an index.
    Lookup(TablePlan),
    /// Read once into a hash table.
    Hash,
    /// Read once into memory, read again for each row.
    Reread,
    /// Computed again for each row.
    Lateral,
}

/// A relation with all data that the search needs.
pub(crate) struct Candidate {
    /// All conditions that may be checked at it: its own first.
    pub predicates: Vec<Expr>,
    /// Relations that each condition reads.
    pub masks: Vec<u64>,
    pub sargs: Vec<Sarg>,
    /// Alone.
    pub rows: f64,
    pub cost: f64,
    /// The plan of a relation that is not a table.
    pub node: Option<Node>,
    /// Relations that its conditions mention.
    neighbours: u64,
}

impl Candidate {
    /// The placeholder left behind when a candidate is taken.
    pub(crate) fn empty() -> Candidate {
        Candidate {
            predicates: Vec::new(),
            masks: Vec::new(),
            sargs: Vec::new(),
            rows: 0.0,
            cost: 0.0,
            node: None,
            neighbours: 0,
        }
    }
}

/// One step of an order.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub relation: usize,
    pub method: Method,
    /// Rows after it.
    pub rows: f64,
    pub cost: f64,
}

/// Search state: the best order of a set of relations.
#[derive(Clone)]
struct Partial {
    order: Vec<usize>,
    rows: f64,
    cost: f64,
}

/// The cost of joining a relation to a set, for each row of the set and once.
#[derive(Clone)]
struct Price {
    method: Method,
    fixed: f64,
    per_row: f64,
    factor: f64,
}

/// The inputs of a price.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PriceKey {
    relation: usize,
    /// Relations before it that its conditions mention.
    neighbours: u64,
    /// Outer rows: the choice between looking up and hashing changes with their number.
    rows_magnitude: u8,
}

/// The search over one graph.
pub(crate) struct Search<'s, 'p> {
    planner: &'s Planner<'p>,
    graph: &'s Graph,
    candidates: &'s [Candidate],
    prices: HashMap<PriceKey, Price>,
}

impl Planner<'_> {
    /// Collects the conditions that may be checked at relation `index`.
    pub(crate) fn candidate(&self, graph: &Graph, index: usize, node: Option<Node>) -> Candidate {
        let relation = &graph.relations[index];
        let mut predicates = relation.local.clone();
        match relation.kind {
            RelationKind::Inner => {
                for predicate in &graph.predicates {
                    let mask = mask_of(&graph.relations, &self.reads(predicate));
                    if mask & 1 << index != 0 {
                        predicates.push(predicate.clone());
                    }
                }
            }
            RelationKind::Left | RelationKind::Semi | RelationKind::Anti => {
                predicates.extend(relation.on.iter().cloned());
            }
        }
        let masks: Vec<u64> = predicates
            .iter()
            .map(|predicate| mask_of(&graph.relations, &self.reads(predicate)))
            .collect();
        let own = 1u64 << index;
        let neighbours = masks.iter().fold(0, |all, mask| all | mask) & !own;
        let mut candidate = Candidate {
            predicates,
            masks,
            sargs: Vec::new(),
            rows: 1.0,
            cost: 1.0,
            node,
            neighbours,
        };
        match &relation.source {
            Source::Table(id) => {
                candidate.sargs = self.sargs(*id, &candidate.predicates);
                let live: Vec<bool> = candidate.masks.iter().map(|m| m & !own == 0).collect();
                let plan = self.table_plan(
                    *id,
                    &candidate.predicates,
                    &candidate.sargs,
                    &live,
                    &Goal::default(),
                );
                (candidate.rows, candidate.cost) = (plan.rows, plan.cost);
            }
            Source::Logical(_) => {
                if let Some(node) = &candidate.node {
                    (candidate.rows, candidate.cost) = (node.rows, node.cost);
                }
            }
        }
        candidate
    }

    /// The order in which relations are joined.
    pub(crate) fn join_order(&self, graph: &Graph, candidates: &[Candidate]) -> Vec<Step> {
        let mut search = Search { planner: self, graph, candidates, prices: HashMap::new() };
        let count = graph.relations.len();
        let order =
            if count <= EXHAUSTIVE_MAX { search.exhaustive(count) } else { search.greedy(count) };
        search.steps(&order)
    }

    /// For a query that returns few rows: an order of joins by look-ups alone, which begins with a table in the goal's order and can stop
    /// early. `None` when it is not expected to be clearly cheaper than `steps`, which join all rows before the first is returned.
    pub(crate) fn short_order(
        &self,
        graph: &Graph,
        candidates: &[Candidate],
        steps: &[Step],
        goal: &Goal,
    ) -> Option<Vec<Step>> {
        let limit = goal.limit?;
        let has_order = !goal.order.is_empty() || !goal.group.is_empty();
        let streams = steps[1..].iter().all(|step| !matches!(step.method, Method::Hash));
        let all = steps.last().filter(|_| has_order || !streams)?;
        let mut best = (all.cost + sort_cost(all.rows, false, goal)) / SHORT_ORDER_GAIN;
        let search = Search { planner: self, graph, candidates, prices: HashMap::new() };
        let mut found = None;
        for (index, relation) in graph.relations.iter().enumerate() {
            let (Source::Table(id), Some(_)) = (&relation.source, search.start(index)) else {
                continue;
            };
            let Candidate { predicates, sargs, masks, .. } = &candidates[index];
            let live: Vec<bool> = masks.iter().map(|mask| mask & !(1 << index) == 0).collect();
            let first = match has_order {
                true => self.first_in_order(*id, predicates, sargs, &live, goal),
                false => Some(self.table_plan(*id, predicates, sargs, &live, goal)),
            };
            let Some(first) = first else { continue };
            let Some((order, each)) = search.lookups_from(index, first.rows) else { continue };
            debug_assert_eq!(order.len(), steps.len(), "both orders have all relations");
            // `first.cost` is that of as many rows as the limit has; conditions on the others may need more.
            let joined = order.last().map_or(0.0, |step| step.rows) / first.rows.max(1.0);
            let needed = (limit / joined.max(JOINED_ROWS_MIN)).min(first.rows);
            let cost = needed * (first.cost / limit.min(first.rows).max(1.0) + each);
            if cost < best {
                (best, found) = (cost, Some(order));
            }
        }
        found
    }
}

impl Search<'_, '_> {
    fn exhaustive(&mut self, count: usize) -> Vec<usize> {
        let mut best: HashMap<u64, Partial> = HashMap::new();
        let mut layer: Vec<u64> = Vec::new();
        for index in 0..count {
            if let Some(partial) = self.start(index) {
                best.insert(1 << index, partial);
                layer.push(1 << index);
            }
        }
        for _ in 1..count {
            let mut next: Vec<u64> = Vec::new();
            for set in &layer {
                let partial = best[set].clone();
                let connected = self.connected(*set, count);
                for index in 0..count {
                    if connected & 1 << index == 0 || !self.may_follow(index, *set) {
                        continue;
                    }
                    let grown = self.extend(&partial, index, *set);
                    let key = set | 1 << index;
                    self.note(&grown, *set, partial.rows, best.get(&key));
                    match best.get(&key) {
                        Some(before) if before.cost <= grown.cost => {}
                        Some(_) => _ = best.insert(key, grown),
                        None => {
                            next.push(key);
                            best.insert(key, grown);
                        }
                    }
                }
            }
            layer = next;
        }
        let all = if count == 64 { u64::MAX } else { (1 << count) - 1 };
        match best.remove(&all) {
            Some(partial) => partial.order,
            None => self.greedy(count),
        }
    }

    /// Relations worth trying next: those with a condition on the set, or all when none has one.
    fn connected(&self, set: u64, count: usize) -> u64 {
        let mut found = 0;
        for index in 0..count {
            if set & 1 << index == 0
                && self.candidates[index].neighbours & set != 0
                && self.may_follow(index, set)
            {
                found |= 1 << index;
            }
        }
        if found != 0 {
            return found;
        }
        (0..count).filter(|index| set & 1 << index == 0).fold(0, |all, index| all | 1 << index)
    }

    fn greedy(&mut self, count: usize) -> Vec<usize> {
        let mut best: Option<Partial> = None;
        for index in 0..count {
            if let Some(partial) = self.start(index)
                && best.as_ref().is_none_or(|b| partial.rows < b.rows)
            {
                best = Some(partial);
            }
        }
        let Some(mut partial) = best else { return (0..count).collect() };
        while partial.order.len() < count {
            let set = partial.order.iter().fold(0u64, |set, index| set | 1 << index);
            let connected = self.connected(set, count);
            let mut next: Option<Partial> = None;
            for index in 0..count {
                if set & 1 << index != 0
                    || connected & 1 << index == 0
                    || !self.may_follow(index, set)
                {
                    continue;
                }
                let grown = self.extend(&partial, index, set);
                self.note(&grown, set, partial.rows, next.as_ref());
                if next.as_ref().is_none_or(|before| grown.cost < before.cost) {
                    next = Some(grown);
                }
            }
            match next {
                Some(next) => partial = next,
                // Dependencies refer to earlier relations, so the order of the statement always works.
                None => return (0..count).collect(),
            }
        }
        partial.order
    }

    /// The order that begins with relation `first` and goes on with the cheapest look-ups, and what they cost for each of its rows; `None`
    /// when a relation has none.
    fn lookups_from(&self, first: usize, first_rows: f64) -> Option<(Vec<Step>, f64)> {
        let count = self.graph.relations.len();
        let mut set = 1u64 << first;
        let (mut rows, mut cost) = (1.0, 0.0);
        let mut steps =
            vec![Step { relation: first, method: Method::Reread, rows: first_rows, cost: 0.0 }];
        while steps.len() < count {
            let connected = self.connected(set, count);
            let lookups = (0..count)
                .filter(|index| connected & 1 << index != 0 && self.may_follow(*index, set))
                .map(|index| (index, self.find_price(index, set, 1.0)))
                .filter(|(_, price)| matches!(price.method, Method::Lookup(_)));
            let (index, price) =
                lookups.min_by(|(_, a), (_, b)| a.per_row.total_cmp(&b.per_row))?;
            cost += rows * price.per_row;
            rows = (rows * price.factor).max(JOINED_ROWS_MIN);
            cost += rows * JOINED_ROW_COST;
            let (all, spent) = (rows * first_rows, cost * first_rows);
            steps.push(Step { relation: index, method: price.method, rows: all, cost: spent });
            set |= 1 << index;
        }
        Some((steps, cost))
    }

    fn start(&self, index: usize) -> Option<Partial> {
        let relation = &self.graph.relations[index];
        if relation.kind != RelationKind::Inner || relation.after != 0 || relation.lateral {
            return None;
        }
        let candidate = &self.candidates[index];
        Some(Partial { order: vec![index], rows: candidate.rows, cost: candidate.cost })
    }

    fn may_follow(&self, index: usize, set: u64) -> bool {
        set & 1 << index == 0 && self.graph.relations[index].after & !set == 0
    }

    fn extend(&mut self, partial: &Partial, index: usize, set: u64) -> Partial {
        let price = self.price(index, set, partial.rows);
        let rows = (partial.rows * price.factor).max(JOINED_ROWS_MIN);
        let cost =
            partial.cost + price.fixed + partial.rows * price.per_row + rows * JOINED_ROW_COST;
        let mut order = partial.order.clone();
        order.push(index);
        Partial { order, rows, cost }
    }

    /// Tells the trace of an order that was tried: `grown` extends an order of `set` with `outer_rows`, `before` is the best that was
    /// known for the same relations.
    fn note(&mut self, grown: &Partial, set: u64, outer_rows: f64, before: Option<&Partial>) {
        let Some(trace) = self.planner.input.trace else { return };
        let Some((last, earlier)) = grown.order.split_last() else { return };
        let paths = trace.take_tables();
        let method = self.price(*last, set, outer_rows).method;
        // What was looked at again.
        drop(trace.take_tables());
        let step = Step { relation: *last, method, rows: grown.rows, cost: grown.cost };
        let is_best = before.is_none_or(|before| grown.cost < before.cost);
        self.planner.trace_order(self.graph, earlier, &step, paths, is_best);
    }

    /// The cheapest way to join `index` to `set`.
    fn price(&mut self, index: usize, set: u64, outer_rows: f64) -> Price {
        if outer_rows <= REMEMBERED_ROWS_MIN {
            return self.find_price(index, set, outer_rows);
        }
        let key = PriceKey {
            relation: index,
            neighbours: set & self.candidates[index].neighbours,
            rows_magnitude: magnitude(outer_rows),
        };
        if let Some(price) = self.prices.get(&key) {
            return price.clone();
        }
        let price = self.find_price(index, set, outer_rows);
        self.prices.insert(key, price.clone());
        price
    }

    fn find_price(&self, index: usize, set: u64, outer_rows: f64) -> Price {
        let candidate = &self.candidates[index];
        let relation = &self.graph.relations[index];
        let own = 1u64 << index;
        let live = self.graph.live(&candidate.predicates, &candidate.masks, own, set);
        let joined: f64 = candidate
            .predicates
            .iter()
            .zip(&candidate.masks)
            .zip(&live)
            .filter(|((_, mask), live)| *mask & !own != 0 && **live)
            .map(|((predicate, _), _)| self.join_selectivity(predicate, candidate.rows))
            .product();
        let mut factor = candidate.rows * joined;
        let mut choice = if relation.lateral {
            Price { method: Method::Lateral, fixed: 0.0, per_row: candidate.cost, factor }
        } else {
            let fixed = candidate.cost + candidate.rows * BUILD_COST;
            let reread = Price {
                method: Method::Reread,
                fixed,
                per_row: candidate.rows * REREAD_COST,
                factor,
            };
            if self.hashable(index, set) {
                Price { method: Method::Hash, fixed, per_row: PROBE_COST, factor }
            } else {
                reread
            }
        };
        if let Source::Table(id) = &relation.source {
            let wanted = |goal: &Goal| {
                let (predicates, sargs) = (&candidate.predicates, &candidate.sargs);
                self.planner.table_plan(*id, predicates, sargs, &live, goal)
            };
            let mut plan = wanted(&Goal::default());
            let is_one_enough = matches!(relation.kind, RelationKind::Semi | RelationKind::Anti);
            if is_one_enough && (0..live.len()).all(|at| !live[at] || plan.consumed.contains(&at)) {
                // The first row that is found is a match.
                plan = wanted(&Goal { limit: Some(1.0), ..Goal::default() });
            }
            let looks_up = !matches!(plan.access, plan::Access::Full { .. });
            let cost = |price: &Price| price.fixed + outer_rows * price.per_row;
            if looks_up {
                factor = factor.min(plan.rows);
                choice.factor = factor;
                let price =
                    Price { per_row: plan.cost, method: Method::Lookup(plan), fixed: 0.0, factor };
                if cost(&price) < cost(&choice) {
                    choice = price;
                }
            }
        }
        choice.factor = match relation.kind {
            RelationKind::Inner => choice.factor,
            RelationKind::Left => choice.factor.max(1.0),
            RelationKind::Semi => choice.factor.min(1.0),
            RelationKind::Anti => ANTI_SHARE,
        };
        choice
    }

    fn join_selectivity(&self, predicate: &Expr, rows: f64) -> f64 {
        match predicate {
            Expr::Binary { op: BinaryOp::Equal | BinaryOp::NullSafeEqual, left, right, .. } => {
                let sides = [left, right].map(|side| self.planner.distinct_values(side));
                let distinct = sides.into_iter().flatten().reduce(f64::max);
                1.0 / distinct.unwrap_or(rows).max(JOIN_DISTINCT_MIN)
            }
            _ => selectivity(predicate),
        }
    }

    fn hashable(&self, index: usize, set: u64) -> bool {
        let own = 1u64 << index;
        let candidate = &self.candidates[index];
        candidate.predicates.iter().zip(&candidate.masks).any(|(predicate, mask)| {
            mask & own != 0
                && mask & !own & !set == 0
                && mask & !own != 0
                && self.planner.hash_key(predicate, &self.graph.relations[index].defines).is_some()
        })
    }

    fn steps(&mut self, order: &[usize]) -> Vec<Step> {
        let mut steps = Vec::with_capacity(order.len());
        let mut set = 0u64;
        let mut rows = 1.0;
        let mut cost = 0.0;
        for (position, index) in order.iter().enumerate() {
            if position == 0 {
                let candidate = &self.candidates[*index];
                rows = candidate.rows;
                cost = candidate.cost;
                steps.push(Step { relation: *index, method: Method::Reread, rows, cost });
            } else {
                let price = self.price(*index, set, rows);
                cost += price.fixed + rows * price.per_row;
                rows = (rows * price.factor).max(JOINED_ROWS_MIN);
                steps.push(Step { relation: *index, method: price.method, rows, cost });
            }
            set |= 1 << index;
        }
        steps
    }
}

/// The number of binary digits of a number of rows, less one.
fn magnitude(rows: f64) -> u8 {
    rows.log2().clamp(0.0, 60.0) as u8
}

impl Planner<'_> {
    /// The number of distinct values of a column, when an index begins with it.
    fn distinct_values(&self, expr: &Expr) -> Option<f64> {
        let register = expr.as_column()?;
        let of =
            |instance: &plan::TableInstance| Some((instance.column_of(register)?, instance.table));
        let (column, table) = self.instances.iter().find_map(of)?;
        let table = &self.input.tables[table];
        let begins = |index: &&catalog::Index| {
            index.parts.first().is_some_and(|p| p.column == column && p.prefix_length.is_none())
        };
        let index = table.indexes.iter().find(begins)?;
        let distinct = self.input.statistics.distinct(table.id.0, index.id.0, 1)?;
        (distinct > 0).then_some(distinct as f64)
    }

    /// An equality whose two sides are in different relations and can be hashed: outer side, inner side, collation.
    pub(crate) fn hash_key(
        &self,
        predicate: &Expr,
        inner: &plan::RegisterSet,
    ) -> Option<(Expr, Expr, types::CollationId)> {
        let Expr::Binary { op: BinaryOp::Equal, left, right, collation, .. } = predicate else {
            return None;
        };
        if !same_class(&left.ty(), &right.ty()) {
            return None;
        }
        if crate::predicate::has_subquery(left) || crate::predicate::has_subquery(right) {
            return None;
        }
        let (a, b) = (self.reads(left), self.reads(right));
        if !a.is_empty() && a.is_subset(inner) && !b.intersects(inner) {
            return Some(((**right).clone(), (**left).clone(), *collation));
        }
        if !b.is_empty() && b.is_subset(inner) && !a.intersects(inner) {
            return Some(((**left).clone(), (**right).clone(), *collation));
        }
        None
    }
}

/// Whether equal values of both types become equal bytes after the same conversion.
fn same_class(a: &types::DataType, b: &types::DataType) -> bool {
    use types::TypeKind;
    let exact = |ty: &types::DataType| {
        ty.is_integer() || matches!(ty.kind, TypeKind::Decimal | TypeKind::Year | TypeKind::Bit)
    };
    let real = |ty: &types::DataType| matches!(ty.kind, TypeKind::Float | TypeKind::Double);
    let dated = |ty: &types::DataType| {
        matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp)
    };
    (exact(a) && exact(b))
        || (real(a) && real(b))
        || (a.is_string() && b.is_string())
        || (dated(a) && dated(b))
        || (a.kind == TypeKind::Time && b.kind == TypeKind::Time)
        || (a.as_fixed().is_some() && a.kind == b.kind)
        || (a.kind == TypeKind::Enum && b.kind == TypeKind::Enum && a.members == b.members)
}
