//! The last pass: which registers each operator must fill, keep or clear.

use std::collections::HashMap;

use plan::{Expr, OutputColumn, Physical, Register, RegisterSet, RowLocking, Subquery, SubqueryId};
use types::DataType;

use crate::Planner;

/// The state of the pass on its way down.
struct Pass<'a> {
    subqueries: &'a [Subquery],
    /// Types of registers as they are read.
    types: HashMap<Register, DataType>,
}

impl Planner<'_> {
    /// Completes a tree that produces `outputs`.
    pub(crate) fn finish(
        &self,
        root: Physical,
        outputs: &[OutputColumn],
        subqueries: &[Subquery],
    ) -> Physical {
        let exprs: Vec<&Expr> = outputs.iter().map(|output| &output.expr).collect();
        self.finish_exprs(root, &exprs, subqueries)
    }

    /// Likewise, for plain expressions.
    pub(crate) fn finish_exprs(
        &self,
        root: Physical,
        outputs: &[&Expr],
        subqueries: &[Subquery],
    ) -> Physical {
        self.finish_with(root, outputs, RegisterSet::new(), subqueries)
    }

    /// Likewise, with additional registers that are wanted.
    pub(crate) fn finish_with(
        &self,
        mut root: Physical,
        outputs: &[&Expr],
        wanted: RegisterSet,
        subqueries: &[Subquery],
    ) -> Physical {
        let mut pass = Pass { subqueries, types: HashMap::new() };
        if contains_materialize(&root) {
            pass.note_types(&root);
            for output in outputs {
                pass.note_expr(output);
            }
            self.note_instances(&mut pass);
        }
        let mut needed = wanted;
        for output in outputs {
            pass.add(output, &mut needed);
        }
        self.fill(&mut root, needed, &pass);
        root
    }

    /// Types of table columns and locators.
    fn note_instances(&self, pass: &mut Pass<'_>) {
        for instance in &self.instances {
            let table = &self.input.tables[instance.table];
            for (index, column) in table.columns.iter().enumerate() {
                let register = instance.register(index);
                pass.types.entry(register).or_insert_with(|| column.ty.clone());
            }
            if let Some(locator) = instance.locator {
                pass.types.insert(locator, DataType::varbinary(65_535));
            }
        }
        for subquery in pass.subqueries {
            let mut found: Vec<(Register, DataType)> = Vec::new();
            visit(&subquery.root, &mut |node| {
                node.for_each_expr(&mut |expr| collect_types(expr, &mut found));
            });
            subquery.outputs.iter().for_each(|expr| collect_types(expr, &mut found));
            for (register, ty) in found {
                pass.types.entry(register).or_insert(ty);
            }
        }
    }

    fn fill(&self, node: &mut Physical, mut needed: RegisterSet, pass: &Pass<'_>) {
        match node {
            Physical::OneRow
            | Physical::Nothing
            | Physical::Values { .. }
            | Physical::JsonRows(_)
            | Physical::CteScan { .. } => {}
            Physical::Scan { .. } => self.fill_scan(node, needed, pass),
            Physical::InformationScan { columns, filter, .. } => {
                filter.iter().for_each(|expr| pass.add(expr, &mut needed));
                columns.retain(|(_, register)| needed.contains(*register));
            }
            Physical::Filter { input, predicate } => {
                pass.add(predicate, &mut needed);
                self.fill(input, needed, pass);
            }
            Physical::Project { .. } => self.fill_project(node, needed, pass),
            Physical::NestedLoop { outer, inner, condition, inner_columns, .. } => {
                let above = needed.clone();
                condition.iter().for_each(|expr| pass.add(expr, &mut needed));
                *inner_columns = common(&above, &self.sets(inner));
                self.fill_joined(outer, inner, needed, pass);
            }
            Physical::HashJoin { outer, inner, keys, condition, inner_columns, .. } => {
                for (left, right, _) in keys.iter() {
                    pass.add(left, &mut needed);
                    pass.add(right, &mut needed);
                }
                condition.iter().for_each(|expr| pass.add(expr, &mut needed));
                *inner_columns = common(&needed, &self.sets(inner));
                self.fill_joined(outer, inner, needed, pass);
            }
            Physical::Aggregate { .. } => self.fill_aggregate(node, needed, pass),
            Physical::Window { calls, .. } => {
                for call in calls.iter() {
                    needed.remove(call.output);
                }
                // Frame ends and arguments are computed again for rows that are kept.
                node.for_each_expr(&mut |expr| pass.add(expr, &mut needed));
                if let Physical::Window { input, columns, .. } = node {
                    *columns = common(&needed, &self.sets(input));
                    self.fill(input, needed, pass);
                }
            }
            Physical::Sort { input, keys, columns, .. } => {
                *columns = common(&needed, &self.sets(input));
                keys.iter().for_each(|key| pass.add(&key.expr, &mut needed));
                self.fill(input, needed, pass);
            }
            Physical::Distinct { input, columns, .. } => {
                columns.iter().for_each(|(register, _)| _ = needed.insert(*register));
                self.fill(input, needed, pass);
            }
            Physical::Limit { input, .. } => self.fill(input, needed, pass),
            Physical::SetOperation { inputs, .. } => {
                inputs
                    .iter_mut()
                    .for_each(|(input, outputs)| self.fill_apart(input, outputs, pass));
            }
            Physical::Materialize { input, outputs, columns, correlated, .. } => {
                let kept = common(&needed, &self.sets(input));
                *outputs = kept
                    .iter()
                    .map(|register| Expr::column(*register, pass.ty(*register)))
                    .collect();
                *columns = kept.iter().map(|register| (*register, pass.ty(*register))).collect();
                let mut reads = RegisterSet::new();
                self.add_reads(input, pass, &mut reads);
                *correlated = !reads.is_empty();
                self.fill(input, needed, pass);
            }
            Physical::RecursiveCte { seed, seed_outputs, step, step_outputs, .. } => {
                self.fill_apart(seed, seed_outputs, pass);
                self.fill_apart(step, step_outputs, pass);
            }
        }
    }

    fn fill_project(&self, node: &mut Physical, mut needed: RegisterSet, pass: &Pass<'_>) {
        let Physical::Project { input, columns } = node else { return };
        // From the last to the first: a column may use earlier ones.
        let mut kept = Vec::with_capacity(columns.len());
        while let Some((register, expr)) = columns.pop() {
            if needed.contains(register) || expr.is_volatile() {
                needed.remove(register);
                pass.add(&expr, &mut needed);
                kept.push((register, expr));
            }
        }
        kept.reverse();
        *columns = kept;
        self.fill(input, needed, pass);
        if columns.is_empty() {
            let input = std::mem::replace(&mut **input, Physical::Nothing);
            *node = input;
        }
    }

    /// Both sides of a join, of which the conditions and the operators above read `needed`.
    fn fill_joined(
        &self,
        outer: &mut Physical,
        inner: &mut Physical,
        needed: RegisterSet,
        pass: &Pass<'_>,
    ) {
        let mut outer_needed = needed.clone();
        self.add_reads(inner, pass, &mut outer_needed);
        self.fill(inner, needed, pass);
        self.fill(outer, outer_needed, pass);
    }

    fn fill_aggregate(&self, node: &mut Physical, mut needed: RegisterSet, pass: &Pass<'_>) {
        let Physical::Aggregate { input, keys, aggregates, carried, grouping, .. } = node else {
            return;
        };
        let mut own = RegisterSet::new();
        keys.iter().for_each(|key| _ = own.insert(key.0));
        aggregates.iter().for_each(|call| _ = own.insert(call.output));
        grouping.iter().flatten().for_each(|register| _ = own.insert(*register));
        needed.subtract(&own);
        *carried = common(&needed, &self.sets(input));
        for (_, key) in keys.iter() {
            pass.add(key, &mut needed);
        }
        for call in aggregates.iter() {
            call.args.iter().for_each(|expr| pass.add(expr, &mut needed));
            call.order_by.iter().for_each(|key| pass.add(&key.expr, &mut needed));
        }
        self.fill(input, needed, pass);
    }

    /// An input of which only `outputs` are read.
    fn fill_apart(&self, input: &mut Physical, outputs: &[Expr], pass: &Pass<'_>) {
        let mut needed = RegisterSet::new();
        outputs.iter().for_each(|expr| pass.add(expr, &mut needed));
        self.fill(input, needed, pass);
    }

    /// Registers that a tree can set: all columns of its tables, whether or not they will be read.
    pub(crate) fn sets(&self, node: &Physical) -> RegisterSet {
        let mut set = RegisterSet::new();
        visit(node, &mut |node| {
            node.add_own_definitions(&mut set);
            if let Physical::Scan { table, .. } = node {
                let instance = &self.instances[table.instance as usize];
                for index in 0..instance.columns {
                    set.insert(Register(instance.base.0 + index));
                }
            }
        });
        set
    }

    /// Adds the registers that a tree reads and does not set.
    fn add_reads(&self, node: &Physical, pass: &Pass<'_>, into: &mut RegisterSet) {
        let mut reads = RegisterSet::new();
        visit(node, &mut |node| node.for_each_expr(&mut |expr| pass.add(expr, &mut reads)));
        reads.subtract(&self.sets(node));
        into.union(&reads);
    }

    fn fill_scan(&self, node: &mut Physical, mut needed: RegisterSet, pass: &Pass<'_>) {
        let Physical::Scan { table, access, filter } = node else { return };
        filter.iter().for_each(|expr| pass.add(expr, &mut needed));
        let instance = &self.instances[table.instance as usize];
        let definition = &self.input.tables[instance.table];
        for (index, column) in definition.columns.iter().enumerate() {
            let register = instance.register(index);
            let Some(stored) = column.stored else { continue };
            if instance.all_columns || needed.contains(register) {
                table.columns.push((stored, register));
            }
        }
        // Other tables that a writing statement reads may have to be locked, and only rows can be locked.
        let plain = table.locking == RowLocking::None && table.locator.is_none();
        if plain && self.read.is_some() {
            table.entries = crate::covering::entries(definition, access, &table.columns);
        }
    }
}

impl Pass<'_> {
    fn outer(&self, id: SubqueryId) -> &[Register] {
        self.subqueries.get(id.0 as usize).map_or(&[], |subquery| &subquery.outer)
    }

    fn add(&self, expr: &Expr, into: &mut RegisterSet) {
        expr.add_registers(&|id| self.outer(id), into);
    }

    fn note_expr(&mut self, expr: &Expr) {
        let mut found = Vec::new();
        collect_types(expr, &mut found);
        for (register, ty) in found {
            self.types.insert(register, ty);
        }
    }

    fn note_types(&mut self, root: &Physical) {
        let mut found = Vec::new();
        visit(root, &mut |node| {
            node.for_each_expr(&mut |expr| collect_types(expr, &mut found));
            match node {
                Physical::Aggregate { keys, aggregates, .. } => {
                    found.extend(keys.iter().map(|(register, key)| (*register, key.ty())));
                    found.extend(aggregates.iter().map(|call| (call.output, call.ty.clone())));
                }
                Physical::Window { calls, .. } => {
                    found.extend(calls.iter().map(|call| (call.output, call.ty.clone())));
                }
                Physical::Project { columns, .. } => {
                    found.extend(columns.iter().map(|(register, expr)| (*register, expr.ty())));
                }
                Physical::SetOperation { columns, .. }
                | Physical::CteScan { columns, .. }
                | Physical::RecursiveCte { columns, .. } => found.extend(columns.iter().cloned()),
                Physical::JsonRows(rows) => {
                    for level in &rows.levels {
                        found.push((level.item, DataType::new(types::TypeKind::Json, u32::MAX, 0)));
                        found.push((level.ordinal, DataType::bigint_unsigned()));
                    }
                }
                Physical::Values { rows, columns } => {
                    for (index, register) in columns.iter().enumerate() {
                        if let Some(row) = rows.first() {
                            found.push((*register, row[index].ty()));
                        }
                    }
                }
                _ => {}
            }
        });
        self.types.extend(found);
    }

    fn ty(&self, register: Register) -> DataType {
        self.types.get(&register).cloned().unwrap_or_else(|| DataType::varbinary(65_535))
    }
}

fn collect_types(expr: &Expr, into: &mut Vec<(Register, DataType)>) {
    expr.visit(&mut |node| {
        if let Expr::Column { register, ty } = node {
            into.push((*register, ty.clone()));
        }
    });
}

fn visit<'a>(node: &'a Physical, f: &mut dyn FnMut(&'a Physical)) {
    f(node);
    node.for_each_input(&mut |input| visit(input, f));
}

fn contains_materialize(node: &Physical) -> bool {
    let mut found = false;
    visit(node, &mut |node| found |= matches!(node, Physical::Materialize { .. }));
    found
}

/// Those of `needed` that are in `set`, ascending.
fn common(needed: &RegisterSet, set: &RegisterSet) -> Vec<Register> {
    needed.iter().filter(|register| set.contains(*register)).collect()
}
