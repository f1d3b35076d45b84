//! Which indexes hold everything that a statement reads of a table, so that the rows need not be read.

use std::sync::Arc;

use catalog::{Index, IndexPart, Table};
use plan::{
    Access, EntryPart, EntryParts, Expr, InstanceId, LogicalPlan, LogicalStatement, Register,
    RegisterSet,
};
use types::key::is_reversible;

use crate::Planner;

/// The statement that EXPLAIN explains; any other one itself.
fn explained(mut statement: &LogicalStatement) -> &LogicalStatement {
    while let LogicalStatement::Explain { statement: inner, .. } = statement {
        statement = inner;
    }
    statement
}

/// Registers that a query reads anywhere; `None` for statements that write, which read whole rows.
pub(crate) fn registers_read(plan: &LogicalPlan) -> Option<RegisterSet> {
    let LogicalStatement::Query(query) = explained(&plan.statement) else { return None };
    let outer = |id: plan::SubqueryId| {
        let query = plan.subqueries.get(id.0 as usize);
        query.map_or(&[] as &[Register], |query| query.outer.as_slice())
    };
    let mut exprs: Vec<&Expr> = query.outputs.iter().map(|output| &output.expr).collect();
    query.root.visit_exprs(&mut |expr| exprs.push(expr));
    for subquery in &plan.subqueries {
        exprs.extend(&subquery.outputs);
        subquery.root.visit_exprs(&mut |expr| exprs.push(expr));
    }
    for cte in &plan.ctes {
        exprs.extend(&cte.outputs);
        cte.root.visit_exprs(&mut |expr| exprs.push(expr));
    }
    exprs.extend(plan.instances.iter().flat_map(|own| &own.virtuals).map(|(_, expr)| expr));
    let mut read = RegisterSet::new();
    let roots = [&query.root].into_iter().chain(plan.subqueries.iter().map(|own| &own.root));
    for root in roots.chain(plan.ctes.iter().map(|own| &own.root)) {
        add_distinct(root, &mut read);
    }
    exprs.into_iter().for_each(|expr| expr.add_registers(&outer, &mut read));
    Some(read)
}

/// Registers by which DISTINCT compares rows: no expression names them.
fn add_distinct(node: &plan::Logical, read: &mut RegisterSet) {
    if let plan::Logical::Distinct { columns, .. } = node {
        columns.iter().for_each(|(register, _)| _ = read.insert(*register));
    }
    node.for_each_input(&mut |input| add_distinct(input, read));
}

fn stored(table: &Table, part: &IndexPart) -> Option<EntryPart> {
    Some(EntryPart {
        column: table.columns.get(part.column)?.stored?,
        descending: part.descending,
        whole: part.prefix_length.is_none(),
    })
}

/// The parts of a secondary index's entries.
fn parts_of(table: &Table, index: &Index) -> Option<EntryParts> {
    if index.id.0 == 0 || table.is_multi_valued(index) {
        return None;
    }
    let all =
        |index: &Index| table.key_parts(index).iter().map(|part| stored(table, part)).collect();
    let primary = table.primary().map_or(Some(Vec::new()), all)?;
    Some(EntryParts { index: all(index)?, primary })
}

/// Columns that can be read from a key: nothing after a part that cannot be read back can be read.
fn readable<'p>(table: &'p Table, parts: &'p [EntryPart]) -> impl Iterator<Item = usize> + 'p {
    let types = &table.definition.columns;
    let back = |part: &&EntryPart| {
        part.whole && types.get(part.column).is_some_and(|column| is_reversible(&column.ty))
    };
    parts.iter().take_while(back).map(|part| part.column)
}

fn holds(table: &Table, parts: &EntryParts, column: usize) -> bool {
    readable(table, &parts.index).chain(readable(table, &parts.primary)).any(|own| own == column)
}

/// The entries that an access reads, when they hold these columns.
pub(crate) fn entries(
    table: &Table,
    access: &Access,
    columns: &[(usize, Register)],
) -> Option<Arc<EntryParts>> {
    let (Access::Ranges { index, .. } | Access::Full { index, .. }) = access else { return None };
    let index = table.indexes.iter().find(|own| own.id.0 == *index)?;
    let parts = parts_of(table, index)?;
    let covered = columns.iter().all(|(column, _)| holds(table, &parts, *column));
    covered.then(|| Arc::new(parts))
}

/// Registers that a query of one table reads other than in its conditions.
pub(crate) fn registers_kept(plan: &LogicalPlan) -> Option<RegisterSet> {
    if plan.instances.len() != 1 || !plan.subqueries.is_empty() || !plan.ctes.is_empty() {
        return None;
    }
    let LogicalStatement::Query(query) = explained(&plan.statement) else { return None };
    let mut read = RegisterSet::new();
    query.outputs.iter().for_each(|output| output.expr.add_registers(&|_| &[], &mut read));
    add_kept(&query.root, &mut read);
    add_distinct(&query.root, &mut read);
    for (_, expr) in &plan.instances[0].virtuals {
        expr.add_registers(&|_| &[], &mut read);
    }
    Some(read)
}

fn add_kept(node: &plan::Logical, read: &mut RegisterSet) {
    if !matches!(node, plan::Logical::Filter { .. }) {
        node.for_each_expr(&mut |expr| expr.add_registers(&|_| &[], read));
    }
    node.for_each_input(&mut |input| add_kept(input, read));
}

impl Planner<'_> {
    /// Whether an index holds everything that is read of the only table when these conditions need not be checked.
    pub(crate) fn covers_rest(
        &self,
        id: InstanceId,
        index: &Index,
        predicates: &[Expr],
        consumed: &[usize],
    ) -> bool {
        let Some(kept) = &self.kept else { return false };
        let mut read = kept.clone();
        let checked = predicates.iter().enumerate().filter(|(at, _)| !consumed.contains(at));
        checked.for_each(|(_, predicate)| predicate.add_registers(&|_| &[], &mut read));
        self.holds_read(id, index, &read)
    }

    /// Whether an index holds everything that the statement reads of an instance.
    pub(crate) fn covers(&self, id: InstanceId, index: &Index) -> bool {
        self.read.as_ref().is_some_and(|read| self.holds_read(id, index, read))
    }

    fn holds_read(&self, id: InstanceId, index: &Index, read: &RegisterSet) -> bool {
        let (instance, table) = (self.instance(id), self.table(id));
        if instance.locking != plan::RowLocking::None
            || instance.locator.is_some()
            || instance.all_columns
        {
            return false;
        }
        let Some(parts) = parts_of(table, index) else { return false };
        let columns = table.columns.iter().enumerate();
        let mut needed = columns.filter(|(at, _)| read.contains(instance.register(*at)));
        needed.all(|(_, column)| column.stored.is_none_or(|column| holds(table, &parts, column)))
    }
}
