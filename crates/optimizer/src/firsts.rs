//! The first rows of groups. DISTINCT, and GROUP BY with MIN or MAX of the next column of an index, need one entry of all that begin with the
//! same values: a scan may skip the others. The operators above stay as they are, so a scan that skips nothing is right too.

use catalog::Index;
use plan::{Expr, Firsts, InstanceId, Logical, Register, RowLocking, SortKey};
use types::{AggregateRole, DataType};

use crate::Planner;
use crate::access::{Goal, TablePlan, sorted_register};
use crate::cost::{DESCENT_COST, FIRSTS_ROWS};
use crate::upper::extreme;

/// Of rows with equal keys, only the first in the order of an index is needed.
#[derive(Clone, Debug)]
pub(crate) struct WantedFirsts {
    keys: Vec<Register>,
    /// The column of which each group's smallest value is needed, or its largest.
    extreme: Option<(Register, bool)>,
}

/// The table of which a tree reads all rows that satisfy conditions, and the expressions that the tree computes of them.
fn bare_table(node: &Logical) -> Option<(InstanceId, &[(Register, Expr)])> {
    let (mut node, mut columns) = (node, &[][..]);
    if let Logical::Project { input, columns: computed } = node {
        (node, columns) = (input, computed);
    }
    while let Logical::Filter { input, predicate } = node {
        // Each row counts for what changes or draws something.
        if predicate.is_volatile() {
            return None;
        }
        node = input;
    }
    if let Logical::Get(id) = node { Some((*id, columns)) } else { None }
}

impl Planner<'_> {
    /// What DISTINCT needs of its input.
    pub(crate) fn firsts_of_distinct(
        &self,
        input: &Logical,
        columns: &[(Register, DataType)],
    ) -> Option<WantedFirsts> {
        let (id, computed) = bare_table(input)?;
        let own = |(register, _): &(Register, DataType)| {
            let made = computed.iter().find(|(made, _)| made == register);
            made.map_or(Some(*register), |(_, expr)| self.read_column(expr))
        };
        let keys: Option<Vec<Register>> = columns.iter().map(own).collect();
        self.wanted_firsts(id, keys?, None)
    }

    /// What GROUP BY needs of its input.
    pub(crate) fn firsts_of_groups(
        &self,
        input: &Logical,
        keys: &[(Register, Expr)],
        calls: &[plan::AggregateCall],
    ) -> Option<WantedFirsts> {
        let (id, computed) = bare_table(input)?;
        if !computed.is_empty() {
            return None;
        }
        let mut wanted: Option<(Register, bool)> = None;
        for call in calls {
            let (column, last) = extreme(call)?;
            let register = self.read_column(&column)?;
            // NULL comes first, and is no smallest value.
            let is_found = last || !column.ty().nullable;
            if !is_found || wanted.is_some_and(|wanted| wanted != (register, last)) {
                return None;
            }
            debug_assert!(matches!(
                call.function.role,
                AggregateRole::Minimum | AggregateRole::Maximum
            ));
            wanted = Some((register, last));
        }
        let keys: Option<Vec<Register>> =
            keys.iter().map(|(_, expr)| self.read_column(expr)).collect();
        self.wanted_firsts(id, keys?, wanted)
    }

    fn read_column(&self, expr: &Expr) -> Option<Register> {
        sorted_register(&SortKey { expr: expr.clone(), descending: false })
    }

    fn wanted_firsts(
        &self,
        id: InstanceId,
        keys: Vec<Register>,
        extreme: Option<(Register, bool)>,
    ) -> Option<WantedFirsts> {
        let instance = self.instance(id);
        let is_own = |register: &Register| instance.column_of(*register).is_some();
        // Conditions on virtual columns are checked above the scan.
        let is_plain = instance.virtuals.is_empty()
            && instance.locator.is_none()
            && instance.locking == RowLocking::None
            && instance.partition.is_none();
        let fits = is_plain && !keys.is_empty() && keys.iter().all(is_own);
        fits.then_some(WantedFirsts { keys, extreme })
    }

    /// The plan of an index that skips entries, where that is cheaper. `skip`: parts that are the same in all rows it reads; `share`: of the
    /// table's `total` rows it reads.
    pub(crate) fn skipping(
        &self,
        id: InstanceId,
        index: Option<&Index>,
        skip: usize,
        (share, total): (f64, f64),
        plan: TablePlan,
        goal: &Goal,
    ) -> TablePlan {
        let Some((firsts, groups, backward)) =
            index.and_then(|index| self.skipped(id, index, skip, share, goal))
        else {
            return plan;
        };
        // Rows until one passes the filter.
        let kept = (plan.rows / (share * total)).clamp(f64::EPSILON, 1.0);
        let entries = FIRSTS_ROWS + 1.0 / kept;
        let cost = groups * (DESCENT_COST + entries * self.row_cost(id, index));
        let mut plan = plan;
        let (plan::Access::Full { backward: is_backward, .. }
        | plan::Access::Ranges { backward: is_backward, or_all: false, .. }) = &mut plan.access
        else {
            return plan;
        };
        let is_turned = backward.is_some_and(|backward| *is_backward != backward);
        let needs_order = plan.ordered && !goal.order.is_empty();
        if cost >= plan.cost || is_turned && needs_order {
            return plan;
        }
        *is_backward = backward.unwrap_or(*is_backward);
        plan.rows = plan.rows.min(groups);
        plan.cost = cost;
        plan.firsts = Some(firsts);
        plan
    }

    fn skipped(
        &self,
        id: InstanceId,
        index: &Index,
        skip: usize,
        share: f64,
        goal: &Goal,
    ) -> Option<(Firsts, f64, Option<bool>)> {
        let wanted = goal.firsts.as_ref()?;
        let (instance, table) = (self.instance(id), self.table(id));
        if table.is_multi_valued(index) || table.spatial_column(index).is_some() {
            return None;
        }
        let parts = table.key_parts(index);
        let fixed = parts.get(..skip)?;
        let is_fixed =
            |key: &&Register| fixed.iter().any(|part| instance.register(part.column) == **key);
        let mut left: Vec<Register> =
            wanted.keys.iter().filter(|key| !is_fixed(key)).copied().collect();
        left.sort_unstable();
        left.dedup();
        let mut end = skip;
        while !left.is_empty() {
            let part = parts.get(end).filter(|part| part.prefix_length.is_none())?;
            let at = left.iter().position(|key| *key == instance.register(part.column))?;
            left.remove(at);
            end += 1;
        }
        let mut backward = None;
        if let Some((register, last)) = wanted.extreme {
            let part = parts.get(end).filter(|part| part.prefix_length.is_none())?;
            if instance.register(part.column) != register {
                return None;
            }
            backward = Some(last != part.descending);
        } else if end == parts.len() && index.unique {
            // Each group has one row.
            return None;
        }
        let groups = self.input.statistics.distinct(table.id.0, index.id.0, end)? as f64;
        let columns = parts[..end].iter().map(|part| {
            let stored = table.columns[part.column].stored?;
            Some((stored, part.descending))
        });
        let firsts =
            Firsts { parts: columns.collect::<Option<_>>()?, groups: wanted.extreme.is_some() };
        Some((firsts, (groups * share).max(1.0), backward))
    }
}
