//! Index merge: an OR whose alternatives pin down different indexes is read through all of them.

use catalog::{Index, Table};
use plan::{Access, BinaryOp, Expr, InstanceId, MergeArm, RowLocking};
use types::JsonValue;

use crate::Planner;
use crate::access::{Goal, TablePlan, group_cost, is_known, read_rows, sort_cost};
use crate::cost::{DESCENT_COST, LOOK_ROWS_MIN, LOOK_SHARE_MIN, LOOKUP_COST, ROW_COST};
use crate::pin::Pinned;
use crate::predicate::{alternatives, conjunction};
use crate::sargable::{IN_LIST_MAX, Sarg};

/// The ranges that the alternatives read from one index.
struct Arm<'t> {
    index: &'t Index,
    pinned: Pinned,
    conditions: Vec<Expr>,
}

impl Arm<'_> {
    fn row_cost(&self) -> f64 {
        if self.index.id.0 == 0 { ROW_COST } else { LOOKUP_COST }
    }
}

impl Planner<'_> {
    /// Accesses to a table that an OR among its predicates allows.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn merged(
        &self,
        id: InstanceId,
        predicates: &[Expr],
        sargs: &[&Sarg],
        live: &[bool],
        keeps: &[f64],
        total: f64,
        goal: &Goal,
        allowed: &dyn Fn(usize) -> bool,
    ) -> Vec<TablePlan> {
        let mut plans = Vec::new();
        for (position, predicate) in predicates.iter().enumerate() {
            // A condition on a single column is a sarg by itself.
            if !live[position] || sargs.iter().any(|sarg| sarg.predicate == position) {
                continue;
            }
            let found = self.element_alternatives(id, predicate);
            let Some(mut alternatives) = found.or_else(|| alternatives(predicate)) else {
                continue;
            };
            let is_of_array = |conjunct: &Expr| self.wanted_elements(id, conjunct).is_some();
            if alternatives.iter().flatten().any(is_of_array) {
                // Conditions on the other parts of the index.
                let is_known =
                    |sarg: &&Sarg| sarg.reads.is_empty() && sarg.predicate < predicates.len();
                let others = sargs.iter().copied().filter(is_known);
                let mut others: Vec<usize> = others.map(|sarg| sarg.predicate).collect();
                others.dedup();
                for alternative in &mut alternatives {
                    alternative.extend(others.iter().map(|at| predicates[*at].clone()));
                }
            }
            let Some(mut arms) = self.arms(id, alternatives, total, allowed) else { continue };
            plans.push(match arms.len() {
                1 => {
                    let Some(Arm { index, mut pinned, .. }) = arms.pop() else { continue };
                    pinned.used.push(position);
                    self.ranged(id, index, pinned, &[], keeps, total, goal)
                }
                _ => self.union(id, arms, position, keeps, total, goal),
            });
        }
        plans
    }

    /// JSON_OVERLAPS with the array of a multi-valued index, as one for each value.
    fn element_alternatives(&self, id: InstanceId, predicate: &Expr) -> Option<Vec<Vec<Expr>>> {
        let (column, values) = self.wanted_elements(id, predicate)?;
        if values.len() < 2 {
            return None;
        }
        let array = Some(self.instance(id).register(column));
        let with_one = |value: Expr| {
            let Expr::Literal { value, ty } = value else { return None };
            let element = types::elements::shown(&value, &ty);
            let mut one = predicate.clone();
            let Expr::Function { args, .. } = &mut one else { return None };
            let other = args.iter_mut().find(|arg| arg.as_column() != array)?;
            *other = Expr::literal(JsonValue::Array(vec![element]).to_value(), other.ty());
            Some(vec![one])
        };
        values.into_iter().map(with_one).collect()
    }

    /// The cheapest index of each alternative; `None` when one of them pins down no index.
    fn arms(
        &self,
        id: InstanceId,
        alternatives: Vec<Vec<Expr>>,
        total: f64,
        allowed: &dyn Fn(usize) -> bool,
    ) -> Option<Vec<Arm<'_>>> {
        let table = self.table(id);
        let mut arms: Vec<Arm<'_>> = Vec::new();
        let mut ranges = 0;
        for conjuncts in alternatives {
            let sargs = self.sargs(id, &conjuncts);
            let mut sargs: Vec<&Sarg> = sargs.iter().collect();
            let pruning = self.partition_sargs(id, &sargs);
            sargs.extend(&pruning);
            let mut best: Option<(f64, Arm<'_>)> = None;
            for (position, index) in table.indexes.iter().enumerate() {
                // A row may be in several ranges of a spatial index.
                if !allowed(position) || table.spatial_column(index).is_some() {
                    continue;
                }
                let Some(pinned) = self.pin(table, index, &sargs, total) else { continue };
                let arm = Arm { index, pinned, conditions: Vec::new() };
                let cost = DESCENT_COST * arm.pinned.ranges.len() as f64
                    + arm.row_cost() * arm.pinned.rows;
                if best.as_ref().is_none_or(|(before, _)| cost < *before) {
                    best = Some((cost, arm));
                }
            }
            let (_, mut arm) = best?;
            // Ranges of several alternatives are not exact for any of them.
            arm.pinned.consumed.clear();
            arm.pinned.used.clear();
            arm.pinned.equal = 0;
            arm.pinned.unique = false;
            arm.conditions.push(conjunction(conjuncts)?);
            ranges += arm.pinned.ranges.len();
            if ranges > IN_LIST_MAX {
                return None;
            }
            let is_multi = table.is_multi_valued(arm.index);
            // A row may be in several ranges of a multi-valued index: each is an arm of its own.
            let same = |known: &&mut Arm<'_>| known.index.id == arm.index.id && !is_multi;
            match arms.iter_mut().find(same) {
                Some(known) => {
                    known.pinned.ranges.append(&mut arm.pinned.ranges);
                    known.pinned.keys &= arm.pinned.keys;
                    known.pinned.rows = (known.pinned.rows + arm.pinned.rows).min(total);
                    known.conditions.append(&mut arm.conditions);
                }
                None => arms.push(arm),
            }
        }
        Some(arms)
    }

    fn union(
        &self,
        id: InstanceId,
        arms: Vec<Arm<'_>>,
        position: usize,
        keeps: &[f64],
        total: f64,
        goal: &Goal,
    ) -> TablePlan {
        let instance = self.instance(id);
        let others = keeps.iter().enumerate().filter(|(other, _)| *other != position);
        let fetched = arms.iter().map(|arm| arm.pinned.rows).sum::<f64>().min(total);
        let rows = fetched * others.map(|(_, keeps)| keeps).product::<f64>();
        let (ordered, grouped) = (goal.order.is_empty(), false);
        let stops_at = read_rows(fetched, rows, ordered, goal) / fetched.max(1.0);
        let cost = arms.iter().map(|arm| {
            DESCENT_COST * arm.pinned.ranges.len() as f64
                + arm.row_cost() * arm.pinned.rows * stops_at.min(1.0)
        });
        let cost =
            cost.sum::<f64>() + sort_cost(rows, ordered, goal) + group_cost(rows, grouped, goal);
        let is_known = |arm: &Arm<'_>| arm.pinned.ranges.iter().all(is_known);
        let or_all = total >= LOOK_ROWS_MIN
            && fetched > total * LOOK_SHARE_MIN
            && (goal.limit.is_none() || !ordered)
            && instance.hints.is_empty()
            && instance.locking == RowLocking::None
            && instance.locator.is_none()
            && arms.iter().all(is_known);
        let mut arms: Vec<MergeArm> = arms
            .into_iter()
            .filter_map(|arm| {
                let condition = Expr::balanced(BinaryOp::Or, arm.conditions)?;
                Some(MergeArm { index: arm.index.id.0, ranges: arm.pinned.ranges, condition })
            })
            .collect();
        // The order in which the reference shows them.
        if !is_in_row_order(self.table(id), &arms) {
            arms.sort_by_key(|arm| arm.index == 0);
        }
        let access = Access::Merge { arms, or_all };
        TablePlan { access, consumed: Vec::new(), rows, cost, ordered, grouped, firsts: None }
    }
}

/// Whether each arm's rows come in the order of the clustered index: the reference calls this a union, otherwise a sorted one.
pub(crate) fn is_in_row_order(table: &Table, arms: &[MergeArm]) -> bool {
    arms.iter().all(|arm| {
        let parts = table.indexes.iter().find(|index| index.id.0 == arm.index);
        let whole = parts.map_or(0, |index| index.parts.len());
        let is_point = |range: &plan::RangeSpec| {
            range.equal.len() == whole && range.lower.is_none() && range.upper.is_none()
        };
        arm.index == 0 || matches!(arm.ranges.as_slice(), [range] if is_point(range))
    })
}
