//! Questions about plans that write: what they read, and what may be done a second time.

use types::DocumentUse;

use crate::{Access, Expr, InsertPlan, InsertSource, Physical, TableWrite};

/// Whether an expression may be computed a second time without visible effects.
pub fn may_repeat(expr: &Expr) -> bool {
    let is_more = &mut |part: &Expr| {
        matches!(part, Expr::Stored { .. } | Expr::Match { .. } | Expr::Subquery { .. })
    };
    !expr.is_volatile() && !expr.any(is_more)
}

/// Whether a change of some columns involves only the row's own columns and values computed from them.
pub fn is_alone(table: &TableWrite, writes: impl Fn(usize) -> bool) -> bool {
    let keys = table.parents.iter().chain(&table.children);
    let columns = table.columns.iter().chain(&table.virtuals);
    let mut exprs = columns
        .flat_map(|column| [&column.on_update_now, &column.generated])
        .flatten()
        .chain(table.checks.iter().map(|(_, check)| check))
        .chain(table.view_checks.iter().map(|check| &check.predicate))
        .chain(&table.selected);
    table.triggers.is_none()
        && table.fulltext.is_empty()
        && table.history.is_none()
        && table.overlaps.is_empty()
        && keys.flat_map(|key| &key.columns).all(|column| !writes(*column))
        && exprs.all(may_repeat)
}

/// Whether the scan's filter and key can be computed again.
pub fn filter_may_repeat(root: &Physical) -> bool {
    let Physical::Scan { filter, access, .. } = root else { return false };
    let Access::Unique { key, .. } = access else { return false };
    key.iter().map(|part| &part.value).chain(filter).all(may_repeat)
}

/// Whether generated columns, views, selected partitions or foreign keys read the AUTO_INCREMENT column; CHECK and DEFAULT cannot.
pub fn id_is_read(table: &TableWrite) -> bool {
    let Some(at) = table.columns.iter().position(|column| column.auto_increment) else {
        return false;
    };
    let id = table.columns[at].register;
    let reads = |expr: &Expr| {
        expr.any(&mut |expr| matches!(expr, Expr::Column { register, .. } if *register == id))
    };
    table.columns.iter().filter_map(|column| column.generated.as_ref()).any(reads)
        || table.view_checks.iter().any(|check| reads(&check.predicate))
        || table.selected.as_ref().is_some_and(reads)
        || table.parents.iter().any(|key| {
            let is_own = key.other.table == table.table;
            key.columns.contains(&at) || is_own && key.other_columns.contains(&at)
        })
}

/// Whether a value is made by functions that edit the document in a register.
pub fn edits(value: &Expr, register: usize) -> bool {
    if let Expr::Cast { operand, .. } = value {
        return edits(operand, register);
    }
    let Expr::Function { function, args, .. } = value else { return false };
    let mut document = args.first();
    while let Some(Expr::Cast { operand, .. }) = document {
        document = Some(operand);
    }
    function.traits.document == DocumentUse::Edited
        && document.is_some_and(|document| match document {
            Expr::Column { register: own, .. } => own.0 as usize == register,
            other => edits(other, register),
        })
}

/// Whether a value of VALUES reads another column of the new row.
pub fn values_read_row(plan: &InsertPlan) -> bool {
    let InsertSource::Values(rows) = &plan.source else { return false };
    let is_column = |expr: &Expr| matches!(expr, Expr::Column { .. });
    rows.iter().flatten().flatten().any(|value| value.any(&mut |expr| is_column(expr)))
}

/// Whether an operator or its inputs read a table.
pub fn reads_table(plan: &Physical, table: u64) -> bool {
    let mut found = matches!(plan, Physical::Scan { table: scanned, .. } if scanned.table == table);
    plan.for_each_input(&mut |input| found = found || reads_table(input, table));
    found
}

/// Whether an operator may deliver a row of a stored table more than once.
pub fn has_join(plan: &Physical) -> bool {
    let mut found = matches!(plan, Physical::NestedLoop { .. } | Physical::HashJoin { .. });
    plan.for_each_input(&mut |input| found = found || has_join(input));
    found
}
