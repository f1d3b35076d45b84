//! Access paths of one table: what each index offers, what it costs, which order it gives.

use catalog::{Index, Table};
use plan::{
    Access, Expr, IndexHintKind, IndexKeySource, InstanceId, RangeBound, RangeSpec, Register,
    SortKey,
};

use crate::Planner;
use crate::pruning::is_number;
use crate::sargable::{Ends, IN_LIST_MAX, Sarg, SargKind};

/// Cost of finding the start of a range.
pub(crate) const DESCENT_COST: f64 = 2.0;
/// Cost of a row of the clustered index, the unit.
pub(crate) const ROW_COST: f64 = 1.0;
/// Cost of a row found through another index.
pub(crate) const LOOKUP_COST: f64 = 2.0;
/// The same for all rows of a table: they lie anywhere.
const SCATTERED_COST: f64 = 6.0;
/// Cost of a row of which an index's entry tells all: many fit a page.
const ENTRY_COST: f64 = 0.4;
/// Cost of finding a row's group when equal rows do not lie together.
const GROUP_COST: f64 = 0.8;
/// Cost of sorting a row, for each doubling of their number.
const SORT_COST: f64 = 0.2;
/// Share of the rows in one of several OR-ed ranges with two ends: who lists ranges means small ones.
const UNION_PIECE_SHARE: f64 = 0.02;
/// Share of the rows that fit a MATCH.
const MATCH_SHARE: f64 = 0.01;
/// Share of the rows in a range with one end.
const HALF_OPEN_SHARE: f64 = 0.3333;
/// Ranges that are expected to hold a smaller share of the rows are read without another look.
pub(crate) const LOOK_SHARE_MIN: f64 = 0.02;
/// The same in a table of fewer rows.
pub(crate) const LOOK_ROWS_MIN: f64 = 100.0;
/// Makes a full scan lose against a forced index.
const FORCED: f64 = 1e6;

/// What the operators above would like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Goal {
    /// Order of rows.
    pub order: Vec<SortKey>,
    /// Columns of which equal values should lie together, in any order.
    pub group: Vec<Register>,
    /// Only so many rows will be read.
    pub limit: Option<f64>,
}

/// A way to read a table.
#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    pub access: Access,
    /// Predicates (positions) that the access answers completely.
    pub consumed: Vec<usize>,
    /// Rows after all predicates.
    pub rows: f64,
    pub cost: f64,
    /// Rows come as the goal wants them.
    pub ordered: bool,
    /// Equal group columns lie together.
    pub grouped: bool,
}

/// The part of an index that predicates pin down.
pub(crate) struct Pinned {
    pub ranges: Vec<RangeSpec>,
    pub consumed: Vec<usize>,
    pub used: Vec<usize>,
    /// Parts with one equal value.
    pub equal: usize,
    /// Share of the table that the ranges hold.
    pub rows: f64,
    pub unique: bool,
}

impl Planner<'_> {
    /// The cheapest way to read a table. `live` tells which predicates can be checked already.
    pub(crate) fn table_plan(
        &self,
        id: InstanceId,
        predicates: &[Expr],
        sargs: &[Sarg],
        live: &[bool],
        goal: &Goal,
    ) -> TablePlan {
        let table = self.table(id);
        let total = (self.input.statistics.rows(table.id.0) as f64).max(1.0);
        let mut usable: Vec<&Sarg> = sargs.iter().filter(|sarg| live[sarg.predicate]).collect();
        let pruning = self.partition_sargs(id, &usable);
        usable.extend(&pruning);
        let mut wants_literals = false;
        let keeps: Vec<f64> = predicates
            .iter()
            .zip(live)
            .map(
                |(predicate, live)| {
                    if *live { self.selectivity(predicate, &mut wants_literals) } else { 1.0 }
                },
            )
            .collect();
        let (allowed, forced) = self.allowed(id, table);
        let mut best: Option<TablePlan> = None;
        let mut consider = |plan: TablePlan| {
            if best.as_ref().is_none_or(|before| plan.cost < before.cost) {
                best = Some(plan);
            }
        };
        let matched = self.matched(id, predicates, live, &keeps, total, goal);
        let is_matched = matched.is_some();
        matched.into_iter().for_each(&mut consider);
        for (position, index) in table.indexes.iter().enumerate() {
            if !allowed(position) {
                continue;
            }
            if let Some(pinned) = self.pin(table, index, &usable, total) {
                let unique = pinned.unique;
                consider(self.ranged(id, index, pinned, &keeps, total, goal));
                if unique && index.id.0 == 0 {
                    break;
                }
            } else if !is_matched
                && (!goal.order.is_empty() || !goal.group.is_empty() || self.covers(id, index))
            {
                consider(self.scanned(id, index.id.0, Some(index), &keeps, total, goal, 1.0));
            }
        }
        if best.as_ref().is_none_or(|plan| plan.cost > DESCENT_COST + ROW_COST) {
            for plan in self.merged(id, predicates, &usable, live, &keeps, total, goal, &allowed) {
                if best.as_ref().is_none_or(|before| plan.cost < before.cost) {
                    best = Some(plan);
                }
            }
            let clustered = table.primary().filter(|_| allowed(0));
            let weight = if forced { FORCED } else { 1.0 };
            let full = self.scanned(id, 0, clustered, &keeps, total, goal, weight);
            // However few rows there are: those that fit come best first.
            if !is_matched && best.as_ref().is_none_or(|before| full.cost < before.cost) {
                best = Some(full);
            }
        }
        let best = best.expect("a full scan is always possible");
        // A single row is found whatever the values are.
        if wants_literals && !matches!(best.access, Access::Unique { .. }) {
            self.wants_literals.set(true);
        }
        best
    }

    /// A MATCH that every row must fulfil gives the rows that do.
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
        // What was found comes best first.
        let ordered = match goal.order.as_slice() {
            [] => true,
            [SortKey { expr: Expr::Match { search: by, against: text, .. }, descending: true }] => {
                by == search && text == against
            }
            _ => false,
        };
        // Its rows are those whose rank is not 0.
        let is_rank = matches!(predicates[at], Expr::Match { .. });
        let consumed = if is_rank { vec![at] } else { Vec::new() };
        let cost = DESCENT_COST
            + LOOKUP_COST * read_rows(fetched, rows, ordered, goal)
            + sort_cost(rows, ordered, goal)
            + group_cost(rows, false, goal);
        let access = Access::Fulltext { search: search.clone(), against: (**against).clone() };
        Some(TablePlan { access, consumed, rows, cost, ordered, grouped: false })
    }

    /// Which indexes hints leave, and whether one must be used.
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

    /// What predicates pin down of an index; `None` when nothing.
    pub(crate) fn pin(
        &self,
        table: &Table,
        index: &Index,
        sargs: &[&Sarg],
        total: f64,
    ) -> Option<Pinned> {
        let mut pinned = Pinned {
            ranges: vec![RangeSpec::default()],
            consumed: Vec::new(),
            used: Vec::new(),
            equal: 0,
            rows: total,
            unique: false,
        };
        let mut single = true;
        let mut nulls = false;
        let mut matched = 0;
        let mut lists = 1.0;
        // The list that gave the numbers of partitions: its values go with them one by one.
        let mut zipped: Option<(usize, usize)> = None;
        let parts = table.key_parts(index);
        for part in parts.iter() {
            let of = |sarg: &&&Sarg| sarg.column == part.column;
            let source = |value: &Expr, null_safe: bool| IndexKeySource {
                value: value.clone(),
                ty: table.columns[part.column].ty.clone(),
                prefix_length: part.prefix_length,
                descending: part.descending,
                null_safe,
            };
            let whole = part.prefix_length.is_none();
            let equal = sargs.iter().filter(of).find_map(|sarg| match &sarg.kind {
                SargKind::Equal { value, null_safe } => Some((*sarg, value, *null_safe)),
                _ => None,
            });
            if let Some((sarg, value, null_safe)) = equal {
                for range in &mut pinned.ranges {
                    range.equal.push(source(value, null_safe));
                }
                nulls |= null_safe;
                pinned.note(sarg, whole);
                matched += 1;
                if single {
                    pinned.equal += 1;
                }
                single &= whole;
                continue;
            }
            let list = sargs.iter().filter(of).find_map(|sarg| match &sarg.kind {
                SargKind::In(values) if values.len() * pinned.ranges.len() <= IN_LIST_MAX => {
                    Some((*sarg, values))
                }
                _ => None,
            });
            if let Some((sarg, values)) = list
                && zipped == Some((sarg.predicate, values.len()))
            {
                // Lists of parts in between have made several ranges of each.
                let ranges_each = pinned.ranges.len() / values.len().max(1);
                let ranges = pinned.ranges.chunks_mut(ranges_each.max(1));
                for (ranges, value) in ranges.zip(values) {
                    ranges.iter_mut().for_each(|range| range.equal.push(source(value, false)));
                }
                pinned.note(sarg, whole);
                matched += 1;
                continue;
            }
            if let Some((sarg, values)) = list {
                if is_number(table, part.column) {
                    zipped = Some((sarg.predicate, values.len()));
                }
                let before = std::mem::take(&mut pinned.ranges);
                for range in before {
                    for value in values {
                        let mut next = range.clone();
                        next.equal.push(source(value, false));
                        pinned.ranges.push(next);
                    }
                }
                lists *= values.len() as f64;
                pinned.note(sarg, whole);
                matched += 1;
                single = false;
                continue;
            }
            let union = sargs.iter().filter(of).find_map(|sarg| match &sarg.kind {
                SargKind::Ranges(ends) if ends.len() * pinned.ranges.len() <= IN_LIST_MAX => {
                    Some((*sarg, ends))
                }
                _ => None,
            });
            if let Some((sarg, union)) = union {
                let end = |side: &Option<(Expr, bool)>| {
                    side.as_ref().map(|(value, inclusive)| RangeBound {
                        key: source(value, false),
                        inclusive: *inclusive || !whole,
                    })
                };
                let before = std::mem::take(&mut pinned.ranges);
                for range in before {
                    pinned.ranges.extend(union.iter().map(|(lower, upper)| RangeSpec {
                        lower: end(lower),
                        upper: end(upper),
                        ..range.clone()
                    }));
                }
                pinned.note(sarg, whole);
                let share = |(lower, upper): &Ends| {
                    if lower.is_some() && upper.is_some() {
                        UNION_PIECE_SHARE
                    } else {
                        HALF_OPEN_SHARE
                    }
                };
                let share = union.iter().map(share).sum::<f64>().min(1.0);
                let rows = self.prefix_rows(table, index, matched, lists, total);
                pinned.rows = (rows * share).max(1.0);
                return Some(pinned);
            }
            let mut bounded = false;
            for sarg in sargs.iter().filter(of) {
                let SargKind::Range { lower, upper } = &sarg.kind else { continue };
                let free = |bound: &Option<RangeBound>, wanted: &Option<(Expr, bool)>| {
                    wanted.is_none() || bound.is_none()
                };
                let first = pinned.ranges.first();
                if !first.is_none_or(|r| free(&r.lower, lower) && free(&r.upper, upper)) {
                    continue;
                }
                for range in &mut pinned.ranges {
                    let bound = |side: &(Expr, bool)| RangeBound {
                        key: source(&side.0, false),
                        inclusive: side.1 || !whole,
                    };
                    if let Some(side) = lower {
                        range.lower = Some(bound(side));
                    }
                    if let Some(side) = upper {
                        range.upper = Some(bound(side));
                    }
                }
                bounded = true;
                pinned.note(sarg, whole);
            }
            if bounded {
                pinned.rows = self.prefix_rows(table, index, matched, lists, total);
                let both =
                    pinned.ranges.first().is_some_and(|r| r.lower.is_some() && r.upper.is_some());
                pinned.rows = (pinned.rows * if both { 0.1111 } else { HALF_OPEN_SHARE }).max(1.0);
                return Some(pinned);
            }
            break;
        }
        if matched == 0 {
            return None;
        }
        let all = matched == parts.len() && parts.iter().all(|part| part.prefix_length.is_none());
        pinned.unique = all && index.unique && !nulls && lists == 1.0 && pinned.ranges.len() == 1;
        pinned.rows = if all && index.unique && !nulls {
            lists.min(total)
        } else {
            self.prefix_rows(table, index, matched, lists, total)
        };
        if pinned.ranges.is_empty() {
            pinned.rows = 0.0;
        }
        Some(pinned)
    }

    /// Rows with given values of the first `parts` parts.
    fn prefix_rows(
        &self,
        table: &Table,
        index: &Index,
        parts: usize,
        lists: f64,
        total: f64,
    ) -> f64 {
        if parts == 0 {
            return total;
        }
        let distinct = self.input.statistics.distinct(table.id.0, index.id.0, parts);
        let each = match distinct {
            Some(distinct) if distinct > 0 => total / distinct as f64,
            _ if index.unique && parts == table.key_parts(index).len() => 1.0,
            _ => (total * 0.1f64.powi(parts as i32)).max(1.0),
        };
        (each * lists).min(total).max(1.0)
    }

    pub(crate) fn ranged(
        &self,
        id: InstanceId,
        index: &Index,
        mut pinned: Pinned,
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
        let per_row = self.row_cost(id, Some(index));
        let cost = DESCENT_COST * pinned.ranges.len() as f64
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
                && self.may_read_all(id, index, &pinned, total);
            if or_all {
                pinned.consumed.clear();
            }
            Access::Ranges { index: index.id.0, ranges: pinned.ranges, backward, or_all }
        };
        TablePlan {
            access,
            consumed: pinned.consumed,
            rows,
            cost,
            ordered: ordered || one,
            grouped: grouped || one,
        }
    }

    /// Whether it is worth a look, when the values are known, how many rows the ranges really hold. A look costs a plan that is
    /// surely good more than it helps.
    fn may_read_all(&self, id: InstanceId, index: &Index, pinned: &Pinned, total: f64) -> bool {
        let instance = self.instance(id);
        index.id.0 != 0
            && total >= LOOK_ROWS_MIN
            && pinned.rows > total * LOOK_SHARE_MIN
            && instance.hints.is_empty()
            && instance.locking == plan::RowLocking::None
            && instance.locator.is_none()
            && !self.covers(id, index)
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
        TablePlan {
            access: Access::Full { index: number, backward },
            consumed: Vec::new(),
            rows,
            cost,
            ordered,
            grouped,
        }
    }

    /// Cost of a row found through an index; `None`: in the table itself. Of two indexes that tell all the one with shorter entries wins.
    fn row_cost(&self, id: InstanceId, index: Option<&Index>) -> f64 {
        /// Bytes of an entry that cost as much as the entry itself.
        const ENTRY_BYTES: f64 = 1000.0;
        let Some(index) = index.filter(|index| index.id.0 != 0) else { return ROW_COST };
        if !self.covers(id, index) {
            return LOOKUP_COST;
        }
        let columns = &self.table(id).columns;
        let bytes = |part: &catalog::IndexPart| {
            part.prefix_length.unwrap_or(columns[part.column].ty.length).min(1000)
        };
        let bytes: u32 = index.parts.iter().map(bytes).sum();
        (ENTRY_COST * (1.0 + f64::from(bytes) / ENTRY_BYTES)).min(ROW_COST * 0.9)
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
        let mut parts: Vec<(Register, bool, bool)> = table
            .key_parts(index)
            .iter()
            .map(|part| {
                let whole = part.prefix_length.is_none();
                (instance.register(part.column), part.descending, whole)
            })
            .collect();
        // Behind the parts of another index come those of the primary key.
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

/// The MATCH that must find a row for it to fulfil the predicate: alone, or with a rank above a number that is not negative.
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

impl Pinned {
    /// A predicate is used; an exact one is answered, unless only a prefix is indexed.
    fn note(&mut self, sarg: &Sarg, whole: bool) {
        self.used.push(sarg.predicate);
        if sarg.exact && whole {
            self.consumed.push(sarg.predicate);
        }
    }
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

/// The register that a sort key reads, as it is or as local time.
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
            // All rows differ before: the rest of the order says nothing.
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
