//! Access paths of one table: the ranges, cost and order of each index.

use catalog::{Index, Table};
use plan::{
    Access, Expr, Firsts, IndexHintKind, IndexKeySource, InstanceId, MergeArm, RangeBound,
    RangeSpec, Register, SortKey,
};
use types::geometry::cells::has_one_cell;

use crate::Planner;
use crate::cost::{
    CELL_RANGES, DESCENT_COST, ENTRY_BYTES, ENTRY_COST, ENTRY_COST_MAX, FORCED, GROUP_COST,
    LOOK_ROWS_MIN, LOOK_SHARE_MIN, LOOKUP_COST, MATCH_SHARE, ROW_COST, SCATTERED_COST, SORT_COST,
};
use crate::firsts::WantedFirsts;
use crate::pin::Pinned;
use crate::sargable::{Sarg, SargKind};

/// The preferences of the operators above.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goal {
    /// Order of rows.
    pub order: Vec<SortKey>,
    /// Columns whose equal values should be adjacent, in any order.
    pub group: Vec<Register>,
    /// Only this many rows will be read.
    pub limit: Option<f64>,
    /// One row of each group is enough.
    pub firsts: Option<WantedFirsts>,
}

impl Goal {
    /// Whether an index may serve it even where no condition does.
    fn wants_index(&self) -> bool {
        !self.order.is_empty() || !self.group.is_empty() || self.firsts.is_some()
    }
}

/// A way to read a table.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    pub access: Access,
    /// Predicates (positions) that the access covers completely.
    pub consumed: Vec<usize>,
    /// Rows after all predicates.
    pub rows: f64,
    pub cost: f64,
    /// Rows come in the goal's order.
    pub ordered: bool,
    /// Equal group columns are adjacent.
    pub grouped: bool,
    /// It skips rows that begin as others do.
    pub firsts: Option<Firsts>,
}

impl Planner<'_> {
    /// The cheapest way to read a table. `live` marks the predicates that can be checked already.
    pub(crate) fn table_plan(
        &self,
        id: InstanceId,
        predicates: &[Expr],
        sargs: &[Sarg],
        live: &[bool],
        goal: &Goal,
    ) -> TablePlan {
        let table = self.table(id);
        if let Some(walk) = &self.instance(id).walk {
            return TablePlan {
                access: Access::Walk(walk.clone()),
                consumed: Vec::new(),
                rows: 1.0,
                cost: DESCENT_COST,
                ordered: goal.order.is_empty(),
                grouped: false,
                firsts: None,
            };
        }
        let total = (self.input.statistics.rows(table.id.0) as f64).max(1.0);
        let mut usable: Vec<&Sarg> = sargs.iter().filter(|sarg| live[sarg.predicate]).collect();
        let pruning = self.partition_sargs(id, &usable);
        usable.extend(&pruning);
        let mut wants_literals = false;
        let mut keeps: Vec<f64> = predicates
            .iter()
            .zip(live)
            .map(
                |(predicate, live)| {
                    if *live { self.selectivity(predicate, &mut wants_literals) } else { 1.0 }
                },
            )
            .collect();
        let (allowed, forced) = self.allowed(id, table);
        let pins = self.pins(table, &usable, total, &allowed);
        note_measured(&pins, total, &mut keeps);
        let mut best: Option<TablePlan> = None;
        let mut traced = Vec::new();
        let mut note = |plan: &TablePlan| {
            if self.input.trace.is_some() {
                traced.push(plan.clone());
            }
        };
        let mut consider = |plan: TablePlan| {
            note(&plan);
            if best.as_ref().is_none_or(|before| plan.cost < before.cost) {
                best = Some(plan);
            }
        };
        let matched = self.matched(id, predicates, live, &keeps, total, goal);
        let is_matched = matched.is_some();
        matched.into_iter().for_each(&mut consider);
        for (position, (index, pinned)) in table.indexes.iter().zip(pins).enumerate() {
            if !allowed(position) {
                continue;
            }
            if let Some(pinned) = pinned {
                let unique = pinned.unique;
                consider(self.ranged(id, index, pinned, predicates, &keeps, total, goal));
                if unique && index.id.0 == 0 {
                    break;
                }
            } else if !is_matched
                && !table.is_multi_valued(index)
                && (goal.wants_index() || self.covers(id, index))
            {
                consider(self.scanned(id, index.id.0, Some(index), &keeps, total, goal, 1.0));
            }
        }
        if best.as_ref().is_none_or(|plan| plan.cost > DESCENT_COST + ROW_COST) {
            for plan in self.merged(id, predicates, &usable, live, &keeps, total, goal, &allowed) {
                note(&plan);
                if best.as_ref().is_none_or(|before| plan.cost < before.cost) {
                    best = Some(plan);
                }
            }
            let clustered = table.primary().filter(|_| allowed(0));
            let weight = if forced { FORCED } else { 1.0 };
            let full = self.scanned(id, 0, clustered, &keeps, total, goal, weight);
            // Even with few rows: matches come best first.
            if !is_matched {
                note(&full);
            }
            if !is_matched && best.as_ref().is_none_or(|before| full.cost < before.cost) {
                best = Some(full);
            }
        }
        let best = best.expect("a full scan is always possible");
        self.trace_paths(id, &traced, &best);
        // A single row is found whatever the values are.
        if wants_literals && !matches!(best.access, Access::Unique { .. }) {
            self.wants_literals.set(true);
        }
        best
    }

    /// What predicates pin down of each index.
    fn pins(
        &self,
        table: &Table,
        usable: &[&Sarg],
        total: f64,
        allowed: &impl Fn(usize) -> bool,
    ) -> Vec<Option<Pinned>> {
        let pin = |sargs: &[&Sarg]| -> Vec<Option<Pinned>> {
            let indexes = table.indexes.iter().enumerate();
            indexes
                .map(|(at, index)| {
                    allowed(at).then(|| self.pin(table, index, sargs, total)).flatten()
                })
                .collect()
        };
        let is_outside = |sarg: &&Sarg| matches!(sarg.kind, SargKind::Outside(_));
        if !usable.iter().any(is_outside) {
            return pin(usable);
        }
        // All but one value is much, unless the engine says otherwise: it is asked where nothing else is good.
        let others: Vec<&Sarg> = usable.iter().copied().filter(|sarg| !is_outside(sarg)).collect();
        let pins = pin(&others);
        let is_good = |pinned: &Pinned| pinned.unique || pinned.rows <= total * LOOK_SHARE_MIN;
        if pins.iter().flatten().any(is_good) { pins } else { pin(usable) }
    }

    /// A MATCH that every row must satisfy returns the rows that do.
    fn matched(
        &self,
        id: InstanceId,
        predicates: &[Expr],
        live: &[bool],
        keeps: &[f64],
        total: f64,
        goal: &Goal,
    ) -> Option<TablePlan> {
        let instance = self.instance(id);
        let is_own = |register: Register| {
            instance.column_of(register).is_some() || instance.locator == Some(register)
        };
        let mut found = predicates.iter().enumerate().filter(|(at, _)| live[*at]);
        let (at, (search, against)) = found.find_map(|(at, predicate)| {
            let Expr::Match { search, row, against } = fitting(predicate)? else { return None };
            let is_own = row.iter().all(|part| part.as_column().is_some_and(is_own));
            is_own.then_some((at, (search, against)))
        })?;
        let fetched = (total * MATCH_SHARE).max(1.0);
        let rest = keeps.iter().enumerate().filter(|(other, _)| *other != at);
        let rows = fetched * rest.map(|(_, keeps)| keeps).product::<f64>();
        // Matches come best first.
        let ordered = match goal.order.as_slice() {
            [] => true,
            [SortKey { expr: Expr::Match { search: by, against: text, .. }, descending: true }] => {
                by == search && text == against
            }
            _ => false,
        };
        // The matching rows are those whose rank is not 0.
        let is_rank = matches!(predicates[at], Expr::Match { .. });
        let consumed = if is_rank { vec![at] } else { Vec::new() };
        let cost = DESCENT_COST
            + LOOKUP_COST * read_rows(fetched, rows, ordered, goal)
            + sort_cost(rows, ordered, goal)
            + group_cost(rows, false, goal);
        let access = Access::Fulltext { search: search.clone(), against: (**against).clone() };
        Some(TablePlan { access, consumed, rows, cost, ordered, grouped: false, firsts: None })
    }

    /// Which indexes the hints allow, and whether one must be used.
    fn allowed<'t>(&self, id: InstanceId, table: &'t Table) -> (impl Fn(usize) -> bool + 't, bool) {
        let mut allowed: Vec<bool> = table.indexes.iter().map(|index| index.visible).collect();
        let mut forced = false;
        for hint in &self.instance(id).hints {
            let named = |index: &Index| hint.indexes.contains(&index.id.0);
            match hint.kind {
                IndexHintKind::Ignore => {
                    for (slot, index) in allowed.iter_mut().zip(&table.indexes) {
                        *slot &= !named(index);
                    }
                }
                IndexHintKind::Use | IndexHintKind::Force => {
                    for (slot, index) in allowed.iter_mut().zip(&table.indexes) {
                        *slot &= named(index);
                    }
                    forced |= hint.kind == IndexHintKind::Force;
                }
            }
        }
        (move |position| allowed.get(position).copied().unwrap_or(false), forced)
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn ranged(
        &self,
        id: InstanceId,
        index: &Index,
        mut pinned: Pinned,
        predicates: &[Expr],
        keeps: &[f64],
        total: f64,
        goal: &Goal,
    ) -> TablePlan {
        let fetched = if pinned.unique { 1.0 } else { pinned.rows.min(total) };
        let rest: f64 = keeps
            .iter()
            .enumerate()
            .filter(|(position, _)| !pinned.used.contains(position))
            .map(|(_, keeps)| keeps)
            .product();
        let rows = fetched * rest;
        let single = pinned.ranges.len() == 1;
        let skip = if single { pinned.equal } else { 0 };
        let (ordered, grouped, backward) = self.order_of(id, Some(index), skip, goal);
        let one = pinned.unique;
        let covers = self.covers(id, index)
            || !predicates.is_empty() && self.covers_rest(id, index, predicates, &pinned.consumed);
        let per_row = self.row_cost_of(id, Some(index), covers);
        let cells = self.table(id).spatial_column(index);
        let descents = if cells.is_some() { CELL_RANGES } else { pinned.ranges.len() as f64 };
        let cost = DESCENT_COST * descents
            + per_row * read_rows(fetched, rows, ordered || one, goal)
            + sort_cost(rows, ordered || one, goal)
            + group_cost(rows, grouped || one, goal);
        let access = if pinned.unique {
            let key = pinned.ranges.pop().map(|range| range.equal).unwrap_or_default();
            Access::Unique { index: index.id.0, key }
        } else {
            let serves_order =
                ordered && !goal.order.is_empty() || grouped && !goal.group.is_empty();
            let or_all = !serves_order
                && (goal.limit.is_none() || !ordered)
                && !covers
                && self.may_read_all(id, index, &pinned, total);
            if or_all {
                pinned.consumed.clear();
            }
            let (ranges, keys) = (pinned.ranges, pinned.keys);
            let kind = cells.map(|column| self.table(id).columns[column].ty.spatial.kind);
            if kind.is_some_and(|kind| !has_one_cell(kind)) {
                // A row may be in several of its ranges.
                let condition = Expr::literal(types::Value::Int(1), types::DataType::boolean());
                let arms = vec![MergeArm { index: index.id.0, ranges, condition }];
                Access::Merge { arms, or_all }
            } else {
                Access::Ranges { index: index.id.0, ranges, backward, or_all, keys }
            }
        };
        let plan = TablePlan {
            access,
            consumed: pinned.consumed,
            rows,
            cost,
            ordered: ordered || one,
            grouped: grouped || one,
            firsts: None,
        };
        self.skipping(id, Some(index), skip, (fetched / total, total), plan, goal)
    }

    /// Whether the real number of rows in the ranges should be measured once the values are known. Measuring costs a plan that is
    /// surely good more than it helps.
    fn may_read_all(&self, id: InstanceId, index: &Index, pinned: &Pinned, total: f64) -> bool {
        let instance = self.instance(id);
        index.id.0 != 0
            && total >= LOOK_ROWS_MIN
            && pinned.rows > total * LOOK_SHARE_MIN
            && instance.hints.is_empty()
            && instance.locking == plan::RowLocking::None
            && instance.locator.is_none()
            && pinned.ranges.iter().all(is_known)
    }

    #[allow(clippy::too_many_arguments)]
    fn scanned(
        &self,
        id: InstanceId,
        number: u32,
        index: Option<&Index>,
        keeps: &[f64],
        total: f64,
        goal: &Goal,
        weight: f64,
    ) -> TablePlan {
        let rows = total * keeps.iter().product::<f64>();
        let (ordered, grouped, backward) = self.order_of(id, index, 0, goal);
        let per_row = match index.filter(|_| number != 0) {
            Some(index) if !self.covers(id, index) => SCATTERED_COST,
            index => self.row_cost(id, index),
        };
        let cost = DESCENT_COST
            + weight * per_row * read_rows(total, rows, ordered, goal)
            + sort_cost(rows, ordered, goal)
            + group_cost(rows, grouped, goal);
        let plan = TablePlan {
            access: Access::Full { index: number, backward },
            consumed: Vec::new(),
            rows,
            cost,
            ordered,
            grouped,
            firsts: None,
        };
        self.skipping(id, index, 0, (1.0, total), plan, goal)
    }

    /// Cost of a row found through an index; `None`: in the table itself. Of two covering indexes the one with shorter entries wins.
    pub(crate) fn row_cost(&self, id: InstanceId, index: Option<&Index>) -> f64 {
        self.row_cost_of(id, index, index.is_some_and(|index| self.covers(id, index)))
    }

    fn row_cost_of(&self, id: InstanceId, index: Option<&Index>, covers: bool) -> f64 {
        let Some(index) = index.filter(|index| index.id.0 != 0) else { return ROW_COST };
        if !covers {
            return LOOKUP_COST;
        }
        let columns = &self.table(id).columns;
        let bytes = |part: &catalog::IndexPart| {
            part.prefix_length.unwrap_or(columns[part.column].ty.length).min(1000)
        };
        let bytes: u32 = index.parts.iter().map(bytes).sum();
        (ENTRY_COST * (1.0 + f64::from(bytes) / ENTRY_BYTES)).min(ENTRY_COST_MAX)
    }

    /// Whether an index gives the goal's order or groups when its first `skip` parts are fixed; and whether backward.
    fn order_of(
        &self,
        id: InstanceId,
        index: Option<&Index>,
        skip: usize,
        goal: &Goal,
    ) -> (bool, bool, bool) {
        let Some(index) = index else { return (goal.order.is_empty(), false, false) };
        let instance = self.instance(id);
        let table = self.table(id);
        if table.is_multi_valued(index) {
            return (goal.order.is_empty(), false, false);
        }
        let mut parts: Vec<(Register, bool, bool)> = table
            .key_parts(index)
            .iter()
            .map(|part| {
                let whole = part.prefix_length.is_none();
                (instance.register(part.column), part.descending, whole)
            })
            .collect();
        // After the parts of another index come those of the primary key.
        if index.id.0 != 0
            && let Some(primary) = table.primary()
        {
            for part in table.key_parts(primary).iter() {
                let register = instance.register(part.column);
                if !parts.iter().any(|(known, ..)| *known == register) {
                    parts.push((register, part.descending, part.prefix_length.is_none()));
                }
            }
        }
        let unique_parts = if index.unique && !self.has_nullable(table, index) {
            table.key_parts(index).len()
        } else {
            usize::MAX
        };
        let (ordered, backward) = match_order(&parts, skip, unique_parts, &goal.order);
        let grouped = !goal.group.is_empty() && match_group(&parts, skip, &goal.group);
        (ordered, grouped, backward && !goal.order.is_empty())
    }

    fn has_nullable(&self, table: &Table, index: &Index) -> bool {
        index.parts.iter().any(|part| table.columns[part.column].ty.nullable)
    }
}

/// The MATCH that must find a row for it to satisfy the predicate: alone, or with a rank above a number that is not negative.
fn fitting(predicate: &Expr) -> Option<&Expr> {
    match predicate {
        Expr::Match { .. } => Some(predicate),
        Expr::Binary { op: plan::BinaryOp::Greater, left, right, .. } => {
            let is_low = match &**right {
                Expr::Literal { value: types::Value::Int(low), .. } => *low >= 0,
                Expr::Literal { value: types::Value::UInt(_), .. } => true,
                Expr::Literal { value: types::Value::Decimal(low), .. } => low.to_f64() >= 0.0,
                Expr::Literal { value: types::Value::Double(low), .. } => *low >= 0.0,
                _ => false,
            };
            (is_low && matches!(**left, Expr::Match { .. })).then_some(&**left)
        }
        _ => None,
    }
}

/// What was measured holds for every way to read the table: predicates that an index serves keep this share together.
fn note_measured(pins: &[Option<Pinned>], total: f64, keeps: &mut [f64]) {
    let mut noted = vec![false; keeps.len()];
    for pinned in pins.iter().flatten().filter(|pinned| pinned.measured) {
        if pinned.used.iter().any(|at| noted.get(*at).is_none_or(|noted| *noted)) {
            continue;
        }
        let mut share = pinned.rows.min(total) / total;
        debug_assert!((0.0..=1.0).contains(&share), "a share of the table");
        for at in &pinned.used {
            noted[*at] = true;
            keeps[*at] = std::mem::replace(&mut share, 1.0);
        }
    }
}

/// Whether a range's values are the same in the whole statement.
pub(crate) fn is_known(range: &RangeSpec) -> bool {
    let moves = |node: &Expr| matches!(node, Expr::Column { .. } | Expr::Subquery { .. });
    let is_known = |source: &IndexKeySource| {
        !source.value.any(&mut |node| moves(node)) && !source.value.is_volatile()
    };
    let knows_bound =
        |bound: &Option<RangeBound>| bound.as_ref().is_none_or(|bound| is_known(&bound.key));
    range.equal.iter().all(is_known) && knows_bound(&range.lower) && knows_bound(&range.upper)
}

/// Rows that are read when the rest may stop early.
pub(crate) fn read_rows(fetched: f64, rows: f64, ordered: bool, goal: &Goal) -> f64 {
    match goal.limit {
        Some(limit) if ordered && rows > limit => (fetched * limit / rows).max(limit),
        _ => fetched,
    }
}

pub(crate) fn sort_cost(rows: f64, ordered: bool, goal: &Goal) -> f64 {
    if ordered || goal.order.is_empty() {
        return 0.0;
    }
    let kept = goal.limit.map_or(rows, |limit| limit.min(rows));
    rows * SORT_COST * (kept + 2.0).log2()
}

pub(crate) fn group_cost(rows: f64, grouped: bool, goal: &Goal) -> f64 {
    if grouped || goal.group.is_empty() { 0.0 } else { rows * GROUP_COST }
}

/// The register that a sort key reads, unchanged or as local time.
pub(crate) fn sorted_register(key: &SortKey) -> Option<Register> {
    match &key.expr {
        Expr::Column { register, .. } => Some(*register),
        Expr::Cast { operand, kind: plan::CastKind::TimestampToLocal, .. } => operand.as_column(),
        _ => None,
    }
}

fn match_order(
    parts: &[(Register, bool, bool)],
    skip: usize,
    unique_parts: usize,
    order: &[SortKey],
) -> (bool, bool) {
    let fixed: Vec<Register> = parts[..skip.min(parts.len())].iter().map(|part| part.0).collect();
    let mut at = skip;
    let mut backward: Option<bool> = None;
    for key in order {
        let Some(register) = sorted_register(key) else { return (false, false) };
        if fixed.contains(&register) {
            continue;
        }
        if at >= unique_parts {
            // All rows differ in the keys before: the rest of the order has no effect.
            break;
        }
        let Some((part, descending, whole)) = parts.get(at) else { return (false, false) };
        let turned = key.descending != *descending;
        if *part != register || !whole || backward.is_some_and(|before| before != turned) {
            return (false, false);
        }
        backward = Some(turned);
        at += 1;
    }
    (true, backward.unwrap_or(false))
}

fn match_group(parts: &[(Register, bool, bool)], skip: usize, group: &[Register]) -> bool {
    let fixed = &parts[..skip.min(parts.len())];
    let mut wanted: Vec<Register> = group
        .iter()
        .copied()
        .filter(|register| !fixed.iter().any(|part| part.0 == *register))
        .collect();
    for (register, _, whole) in &parts[skip.min(parts.len())..] {
        if wanted.is_empty() {
            break;
        }
        let Some(position) = wanted.iter().position(|known| known == register) else {
            return false;
        };
        if !whole {
            return false;
        }
        wanted.remove(position);
    }
    wanted.is_empty()
}
