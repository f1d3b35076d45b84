//! WITH CHECK OPTION: conditions of views on rows that are written through them.
//!
//! A merged view's condition is bound over the registers of its table, and a write makes the new row in those registers: the condition
//! itself is the check.

use catalog::{Table, View};
use errors::{Error, Result};
use plan::{Expr, InstanceId, Logical, Register, TableWrite, ViewCheck};
use syntax::ast;

use crate::binder::Binder;

/// The write that goes through a view.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ViewWrite {
    Insert,
    Update,
}

impl Binder<'_> {
    /// Notes the conditions of a view that was just bound. Those from `first` on are of views below it; errors name the view
    /// that the statement names.
    pub(crate) fn add_view_checks(
        &mut self,
        view: &View,
        query: &ast::Query,
        plan: &Logical,
        first: usize,
    ) {
        let mut predicates = Vec::new();
        match &*view.check_option {
            "CASCADED" => collect(plan, usize::MAX, &mut predicates),
            "LOCAL" if has_condition(query) => collect(plan, 1, &mut predicates),
            _ => {}
        }
        self.view_checks.extend(predicates.into_iter().map(|predicate| ViewCheck {
            schema: view.schema.clone(),
            view: view.name.clone(),
            predicate,
        }));
        for check in &mut self.view_checks[first..] {
            check.schema = view.schema.clone();
            check.view = view.name.clone();
        }
    }

    /// The checks that concern a table about to be written.
    ///
    /// # Errors
    /// 1235 when a condition needs more than the written row.
    pub(crate) fn checks_of(&self, id: InstanceId, write: ViewWrite) -> Result<Vec<ViewCheck>> {
        let instance = self.instance(id);
        let mut checks: Vec<ViewCheck> = Vec::new();
        for check in &self.view_checks {
            let (mut own, mut foreign) = (false, false);
            check.predicate.visit(&mut |expr| match expr {
                Expr::Column { register, .. } if instance.column_of(*register).is_some() => {
                    own = true;
                }
                Expr::Column { .. } => foreign = true,
                Expr::Subquery { id, .. } => {
                    foreign |= !self.subqueries[id.0 as usize].outer.is_empty();
                }
                _ => {}
            });
            // An UPDATE has read the other tables' rows already.
            if own && foreign && write == ViewWrite::Insert {
                return Err(Error::not_supported(
                    "WITH CHECK OPTION on a condition over several tables",
                ));
            }
            if own && !checks.contains(check) {
                checks.push(check.clone());
            }
        }
        Ok(checks)
    }
}

fn has_condition(query: &ast::Query) -> bool {
    matches!(&query.body, ast::SetExpr::Select(select) if select.filter.is_some())
}

/// Conditions of up to `limit` filters, outermost first.
fn collect(plan: &Logical, limit: usize, out: &mut Vec<Expr>) {
    if let Logical::Filter { predicate, .. } = plan {
        out.push(predicate.clone());
    }
    if out.len() < limit {
        plan.for_each_input(&mut |input| collect(input, limit, out));
    }
}

/// The register of column 0 of the catalog's table in a write.
pub(crate) fn first_register(write: &TableWrite, table: &Table) -> Result<Register> {
    let stored = table.columns.iter().enumerate().find_map(|(at, c)| Some((at, c.stored?)));
    let register = stored
        .and_then(|(at, stored)| write.columns.get(stored)?.register.0.checked_sub(at as u32));
    register.map(Register).ok_or_else(|| Error::internal("a table without stored columns"))
}

/// The checks over the registers of another instance of the same table.
pub(crate) fn moved(mut checks: Vec<ViewCheck>, from: Register, to: Register) -> Vec<ViewCheck> {
    for check in &mut checks {
        check.predicate.rewrite(&mut |expr| {
            if let Expr::Column { register, .. } = expr {
                register.0 = register.0 - from.0 + to.0;
            }
            false
        });
    }
    checks
}
