//! The promises of a plan to the executor. The executor checks it in debug builds when it compiles a plan, so every test of SQL is also
//! a test of the optimizer's promises.
//!
//! - **P1** Every register is below the size of the register file.
//! - **P2** An operator reads only registers that hold a value of the current row: those that its inputs set and keep, and those of
//!   outer rows. An operator that keeps rows (sort, hash, distinct, window, materialize) restores only the registers that it names.
//! - **P3** A subquery that an expression names exists, and its `outer` lists every register that it reads and does not set. Otherwise
//!   its result would be remembered for outer rows that differ.
//! - **P4** A subquery that is not `correlated` reads no outer row.
//! - **P5** Lists that belong together have equal lengths.

use std::cell::RefCell;

use crate::{
    DeletePlan, Expr, InsertMode, InsertPlan, InsertSource, JoinKind, OutputColumn, Physical, Plan,
    Register, RegisterSet, Subquery, SubqueryId, TableWrite, UpdatePlan,
};

/// The promises that a plan breaks; empty when it keeps the rules of this file.
pub fn broken_promises(plan: &Plan) -> Vec<String> {
    let nothing = RegisterSet::new();
    let (subqueries, ctes, registers): (&[Subquery], &[_], u32) = match plan {
        Plan::Query(query) => (&query.subqueries, &query.ctes, query.registers),
        Plan::Insert(insert) => (&insert.subqueries, &insert.ctes, insert.registers),
        Plan::Update(update) => (&update.subqueries, &update.ctes, update.registers),
        Plan::Delete(delete) => (&delete.subqueries, &delete.ctes, delete.registers),
        Plan::Do { subqueries, ctes, registers, .. } => (subqueries, ctes, *registers),
        Plan::Rows { .. } => return Vec::new(),
    };
    let check = Check { subqueries, registers, wrong: RefCell::default() };
    for (id, input, outputs) in ctes {
        let visible = check.operator(input, &nothing);
        check.reads("a common table expression", outputs, &visible, &nothing);
        check.require(!outputs.is_empty(), || format!("CTE {} has no column", id.0));
    }
    for subquery in subqueries {
        check.subquery(subquery);
    }
    match plan {
        Plan::Query(query) => check.query(&query.root, &query.outputs),
        Plan::Insert(insert) => check.insert(insert),
        Plan::Update(update) => check.update(update),
        Plan::Delete(delete) => check.delete(delete),
        Plan::Do { exprs, .. } => check.reads("DO", exprs, &nothing, &nothing),
        Plan::Rows { .. } => {}
    }
    check.wrong.into_inner()
}

struct Check<'p> {
    subqueries: &'p [Subquery],
    registers: u32,
    wrong: RefCell<Vec<String>>,
}

impl Check<'_> {
    fn require(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong.borrow_mut().push(what());
        }
    }

    /// P5.
    fn same(&self, what: &str, left: usize, right: usize) {
        self.require(left == right, || format!("{what}: {left} of {right}"));
    }

    /// Registers that an expression reads, those of its subqueries' outer rows included.
    fn read_by(&self, expr: &Expr, set: &mut RegisterSet) {
        let outer = |id: SubqueryId| match self.subqueries.get(id.0 as usize) {
            Some(subquery) => &subquery.outer[..],
            None => {
                self.require(false, || format!("there is no subquery {}", id.0));
                &[]
            }
        };
        expr.add_registers(&outer, set);
    }

    /// P2 of some expressions of an operator.
    fn reads<'e>(
        &self,
        what: &str,
        exprs: impl IntoIterator<Item = &'e Expr>,
        visible: &RegisterSet,
        outside: &RegisterSet,
    ) {
        let mut read = RegisterSet::new();
        exprs.into_iter().for_each(|expr| self.read_by(expr, &mut read));
        self.have(what, &read, visible, outside);
    }

    /// P1 and P2 of registers.
    fn have(&self, what: &str, read: &RegisterSet, visible: &RegisterSet, outside: &RegisterSet) {
        for register in read.iter() {
            self.require(register.0 < self.registers, || {
                format!("{what}: register {} of {}", register.0, self.registers)
            });
            self.require(visible.contains(register) || outside.contains(register), || {
                format!("{what} reads register {}, which holds nothing of the row", register.0)
            });
        }
    }

    fn subquery(&self, subquery: &Subquery) {
        let outside: RegisterSet = subquery.outer.iter().copied().collect();
        let visible = self.operator(&subquery.root, &outside);
        self.reads("a subquery's result", &subquery.outputs, &visible, &outside);
    }

    fn query(&self, root: &Physical, outputs: &[OutputColumn]) {
        let visible = self.operator(root, &RegisterSet::new());
        self.outputs("a result", outputs, &visible);
    }

    fn insert(&self, insert: &InsertPlan) {
        let nothing = RegisterSet::new();
        let mut row = RegisterSet::new();
        self.target(&insert.target, &mut row);
        match &insert.source {
            InsertSource::Values(rows) => {
                for values in rows {
                    self.same("values of a row", values.len(), insert.targets.len());
                    // A value may read the columns before it (`INSERT INTO t SET b = a`).
                    self.reads("VALUES", values.iter().flatten(), &row, &nothing);
                }
            }
            InsertSource::Query(query) => {
                self.same("columns of SELECT", query.outputs.len(), insert.targets.len());
                self.query(&query.root, &query.outputs);
                query.root.add_definitions(&mut row);
            }
        }
        if let InsertMode::Update { assignments, new_columns } = &insert.mode {
            row.extend(new_columns.iter().copied());
            let values = assignments.iter().filter_map(|assignment| assignment.value.as_ref());
            self.reads("ON DUPLICATE KEY UPDATE", values, &row, &nothing);
        }
        self.outputs("RETURNING", &insert.returning, &row);
    }

    fn update(&self, update: &UpdatePlan) {
        let nothing = RegisterSet::new();
        let mut row = self.operator(&update.root, &nothing);
        for (target, locator, assignments) in &update.targets {
            self.has_locator(target, *locator, &row);
            self.target(target, &mut row);
            let values = assignments.iter().filter_map(|assignment| assignment.value.as_ref());
            self.reads("SET", values, &row, &nothing);
        }
        update.old.iter().for_each(|(_, kept)| _ = row.insert(*kept));
        self.outputs("RETURNING", &update.returning, &row);
    }

    fn delete(&self, delete: &DeletePlan) {
        let row = self.operator(&delete.root, &RegisterSet::new());
        for (target, locator) in &delete.targets {
            self.has_locator(target, *locator, &row);
        }
        self.outputs("RETURNING", &delete.returning, &row);
    }

    fn has_locator(&self, target: &TableWrite, locator: Register, row: &RegisterSet) {
        let found = row.contains(locator);
        self.require(found, || format!("the locator of {} is not found", target.name));
    }

    fn outputs(&self, what: &str, outputs: &[OutputColumn], visible: &RegisterSet) {
        self.reads(what, outputs.iter().map(|output| &output.expr), visible, &RegisterSet::new());
    }

    /// Expressions computed for a written row; their registers are added to `row`.
    fn target(&self, target: &TableWrite, row: &mut RegisterSet) {
        row.extend(target.columns.iter().chain(&target.virtuals).map(|column| column.register));
        let nothing = RegisterSet::new();
        let columns = target.columns.iter().chain(&target.virtuals);
        let computed = columns.flat_map(|column| [&column.default, &column.generated]).flatten();
        self.reads("a column's expression", computed, row, &nothing);
        self.reads("CHECK", target.checks.iter().map(|(_, check)| check), row, &nothing);
    }

    /// Checks an operator and all below it, when the registers in `outside` hold outer rows. Returns the registers that hold values of the
    /// operator's rows.
    fn operator(&self, node: &Physical, outside: &RegisterSet) -> RegisterSet {
        match node {
            // No operator above it ever reads a row.
            Physical::Nothing => (0..self.registers).map(Register).collect(),
            Physical::OneRow
            | Physical::CteScan { .. }
            | Physical::Scan { .. }
            | Physical::InformationScan { .. }
            | Physical::Values { .. }
            | Physical::JsonRows(_) => self.leaf(node, outside),
            Physical::Filter { input, .. } => {
                let visible = self.operator(input, outside);
                self.own_reads("a filter", node, &visible, outside);
                visible
            }
            Physical::Project { input, columns } => {
                let mut visible = self.operator(input, outside);
                for (register, expr) in columns {
                    self.reads("a projection", [expr], &visible, outside);
                    visible.insert(*register);
                }
                visible
            }
            Physical::NestedLoop { kind, outer, inner, condition, inner_columns } => {
                let mut around = self.operator(outer, outside);
                let visible = around.clone();
                around.union(outside);
                self.require(*kind != JoinKind::Full, || "a nested loop is a full join".into());
                let found = self.operator(inner, &around);
                if **inner == Physical::Nothing {
                    // Nobody ever sets its registers: an outer row finds the NULLs that they begin with.
                    return found;
                }
                self.joined(*kind, [visible, found], condition.as_ref(), inner_columns, outside)
            }
            Physical::HashJoin { kind, outer, inner, keys, condition, inner_columns } => {
                let visible = self.operator(outer, outside);
                let found = self.operator(inner, outside);
                for (left, right, _) in keys {
                    self.reads("the left key of a hash join", [left], &visible, outside);
                    self.reads("the right key of a hash join", [right], &found, outside);
                }
                // The table holds the rows of all outer rows, and of each row only the named registers.
                let none = RegisterSet::new();
                let found = self.kept("a hash join", inner_columns, &found, outside, none);
                self.joined(*kind, [visible, found], condition.as_ref(), inner_columns, outside)
            }
            Physical::Aggregate { input, keys, carried, grouping, .. } => {
                let visible = self.operator(input, outside);
                self.own_reads("an aggregation", node, &visible, outside);
                let carried = carried.iter().copied().collect();
                self.have("an aggregation", &carried, &visible, outside);
                self.require(grouping.len() <= keys.len(), || "GROUPING of no key".into());
                own(node)
            }
            Physical::Window { input, columns, .. } | Physical::Sort { input, columns, .. } => {
                let visible = self.operator(input, outside);
                self.own_reads("a sort or window", node, &visible, outside);
                self.kept("a sort or window", columns, &visible, outside, own(node))
            }
            Physical::Distinct { input, columns, .. } => {
                let visible = self.operator(input, outside);
                let columns: Vec<Register> = columns.iter().map(|column| column.0).collect();
                self.kept("DISTINCT", &columns, &visible, outside, own(node))
            }
            Physical::Limit { input, .. } => {
                self.own_reads("LIMIT", node, &RegisterSet::new(), outside);
                self.operator(input, outside)
            }
            Physical::SetOperation { inputs, columns, .. } => {
                for (input, outputs) in inputs {
                    self.table("a set operation", input, outputs, columns.len(), outside);
                }
                own(node)
            }
            Physical::Materialize { input, outputs, columns, correlated, .. } => {
                // P4.
                let nothing = RegisterSet::new();
                let outside = if *correlated { outside } else { &nothing };
                self.table("a derived table", input, outputs, columns.len(), outside);
                own(node)
            }
            Physical::RecursiveCte { seed, seed_outputs, step, step_outputs, columns, .. } => {
                self.table("WITH RECURSIVE", seed, seed_outputs, columns.len(), outside);
                self.table("WITH RECURSIVE", step, step_outputs, columns.len(), outside);
                own(node)
            }
        }
    }

    /// An operator without an input.
    fn leaf(&self, node: &Physical, outside: &RegisterSet) -> RegisterSet {
        let nothing = RegisterSet::new();
        let found = own(node);
        if let Physical::Scan { table, access, filter } = node {
            let names = |column: &usize| *column < table.layout.len();
            self.require(table.columns.iter().map(|(column, _)| column).all(names), || {
                format!("{} has fewer columns than are read", table.alias)
            });
            let mut keys = Vec::new();
            access.for_each_expr(&mut |expr| keys.push(expr));
            // The conditions of a merge's arms see the row, keys only outer rows.
            let merges = matches!(access, crate::Access::Merge { .. });
            self.reads("an access path", keys, if merges { &found } else { &nothing }, outside);
            self.reads("a scan's filter", filter, &found, outside);
        } else if let Physical::InformationScan { equals, filter, .. } = node {
            let keys = equals.iter().map(|(_, expr)| expr);
            self.reads("a look-up of an information table", keys, &nothing, outside);
            self.reads("a scan's filter", filter, &found, outside);
        } else {
            self.own_reads("VALUES or JSON_TABLE", node, &nothing, outside);
        }
        if let Physical::Values { rows, columns } = node {
            rows.iter().for_each(|row| self.same("values of a row", row.len(), columns.len()));
        }
        found
    }

    /// P2 of all expressions of an operator itself.
    fn own_reads(&self, what: &str, node: &Physical, visible: &RegisterSet, outside: &RegisterSet) {
        let mut exprs = Vec::new();
        node.for_each_expr(&mut |expr| exprs.push(expr));
        self.reads(what, exprs, visible, outside);
    }

    /// An input whose `outputs` become `columns` columns.
    fn table(
        &self,
        what: &str,
        input: &Physical,
        outputs: &[Expr],
        columns: usize,
        outside: &RegisterSet,
    ) {
        self.same(what, outputs.len(), columns);
        let visible = self.operator(input, outside);
        self.reads(what, outputs, &visible, outside);
    }

    /// The registers after an operator that keeps rows: the kept ones must be set before it, and no others remain.
    fn kept(
        &self,
        what: &str,
        columns: &[Register],
        visible: &RegisterSet,
        outside: &RegisterSet,
        own: RegisterSet,
    ) -> RegisterSet {
        let mut kept: RegisterSet = columns.iter().copied().collect();
        self.have(what, &kept, visible, outside);
        kept.union(&own);
        kept
    }

    /// The rows of a join of two inputs.
    fn joined(
        &self,
        kind: JoinKind,
        [mut outer, inner]: [RegisterSet; 2],
        condition: Option<&Expr>,
        inner_columns: &[Register],
        outside: &RegisterSet,
    ) -> RegisterSet {
        let mut both = outer.clone();
        both.union(&inner);
        self.reads("a join's condition", condition, &both, outside);
        match kind {
            JoinKind::Inner => outer.union(&inner),
            // Only the registers that become NULL where nothing matches have a value in every row.
            JoinKind::Left | JoinKind::Full => outer.extend(inner_columns.iter().copied()),
            JoinKind::Semi | JoinKind::Anti => {}
        }
        outer
    }
}

/// The registers that an operator itself sets.
fn own(node: &Physical) -> RegisterSet {
    let mut set = RegisterSet::new();
    node.add_own_definitions(&mut set);
    set
}

#[cfg(test)]
mod tests;
