//! Plans of INSERT, UPDATE and DELETE.

use errors::Result;
use plan::{
    Access, DeletePlan, Expr, InsertPlan, InsertSource, LogicalCte, LogicalInsert,
    LogicalInsertSource, LogicalTarget, LogicalWrite, Physical, Plan, QueryPlan, Register,
    RegisterSet, TableWrite, UpdatePlan,
};

use crate::access::Goal;
use crate::{Planner, Shared};

impl Planner<'_> {
    pub(crate) fn insert(
        &mut self,
        insert: LogicalInsert,
        ctes: Vec<LogicalCte>,
    ) -> Result<(Plan, f64)> {
        let ctes = self.plan_ctes(ctes)?;
        let planned = match insert.source {
            LogicalInsertSource::Values(rows) => {
                let count = rows.len() as f64;
                (InsertSource::Values(rows), None, count)
            }
            LogicalInsertSource::Query(query) => {
                let mut node = self.plan(query.root, &Goal::default())?;
                let cost = node.cost + node.rows;
                // Exec keeps the outputs of a source that reads the target; more is needed when ON DUPLICATE KEY UPDATE
                // reads other columns of the source.
                if self.mentions_table(insert.target.table)
                    && self.updates_from_source(&insert.mode, &node.physical)
                {
                    node.physical = self.materialized(node.physical);
                }
                (InsertSource::Values(Vec::new()), Some((node.physical, query.outputs)), cost)
            }
        };
        let (mut source, query, cost) = planned;
        let roots: Vec<&Physical> = query.iter().map(|(root, _)| root).collect();
        let shared = self.share(ctes, &roots)?;
        let registers = self.registers;
        let rows = cost + shared.rows;
        let Shared { subqueries, ctes, .. } = shared;
        if let Some((root, outputs)) = query {
            // ON DUPLICATE KEY UPDATE may read the selected tables' columns.
            let mut exprs: Vec<&Expr> = outputs.iter().map(|output| &output.expr).collect();
            if let plan::InsertMode::Update { assignments, .. } = &insert.mode {
                exprs.extend(assignments.iter().filter_map(|set| set.value.as_ref()));
            }
            let root = self.finish_exprs(root, &exprs, &subqueries);
            source = InsertSource::Query(Box::new(QueryPlan {
                root,
                outputs,
                subqueries: subqueries.clone(),
                ctes: ctes.clone(),
                registers,
            }));
        }
        let plan = InsertPlan {
            target: insert.target,
            targets: insert.targets,
            source,
            mode: insert.mode,
            ignore: insert.ignore,
            returning: insert.returning,
            subqueries,
            ctes,
            registers,
        };
        Ok((Plan::Insert(plan), rows))
    }

    pub(crate) fn update(
        &mut self,
        write: LogicalWrite,
        ctes: Vec<LogicalCte>,
    ) -> Result<(Plan, f64)> {
        let ctes = self.plan_ctes(ctes)?;
        let goal = Goal::default();
        let node = self.plan(write.root, &goal)?;
        let checks = write.targets.iter().flat_map(|target| &target.write.view_checks);
        for check in checks {
            self.keep_subqueries(&check.predicate);
        }
        let shared = self.share(ctes, &[&node.physical])?;
        let mut wanted = RegisterSet::new();
        let mut exprs: Vec<&Expr> = Vec::new();
        for target in &write.targets {
            self.add_target(target, &mut wanted);
            exprs.extend(target.write.view_checks.iter().map(|check| &check.predicate));
            exprs.extend(target.assignments.iter().filter_map(|set| set.value.as_ref()));
        }
        exprs.extend(write.returning.iter().map(|output| &output.expr));
        let root = self.finish_with(node.physical, &exprs, wanted, &shared.subqueries);
        let buffered = write.multi_table
            || write.targets.iter().any(|target| self.reads_twice(target))
            || write.ordered
            || write.limit.is_some()
            || write.targets.iter().any(|target| target.write.portion.is_some())
            || write.targets.iter().any(|target| self.scan_moves(target, &root));
        let rows = node.cost + shared.rows;
        let targets = write
            .targets
            .into_iter()
            .map(|target| {
                let locator = self.locator(&target);
                (target.write, locator, target.assignments)
            })
            .collect();
        let registers = self.registers;
        let Shared { subqueries, ctes, .. } = shared;
        let plan = UpdatePlan {
            root,
            targets,
            ignore: write.ignore,
            buffered,
            limit: write.limit,
            returning: write.returning,
            old: write.old,
            subqueries,
            ctes,
            registers,
        };
        Ok((Plan::Update(plan), rows))
    }

    /// Keeps a check's subqueries: the check is evaluated again when the rows of the joins that replaced them are gone.
    fn keep_subqueries(&mut self, predicate: &Expr) {
        predicate.visit(&mut |expr| {
            if let Expr::Subquery { id, .. } = expr {
                self.absorbed[id.0 as usize] = false;
            }
        });
    }

    pub(crate) fn delete(
        &mut self,
        write: LogicalWrite,
        ctes: Vec<LogicalCte>,
    ) -> Result<(Plan, f64)> {
        let ctes = self.plan_ctes(ctes)?;
        let node = self.plan(write.root, &Goal::default())?;
        let shared = self.share(ctes, &[&node.physical])?;
        let mut wanted = RegisterSet::new();
        for target in &write.targets {
            self.add_target(target, &mut wanted);
        }
        let exprs: Vec<&Expr> = write.returning.iter().map(|output| &output.expr).collect();
        let root = self.finish_with(node.physical, &exprs, wanted, &shared.subqueries);
        // Deleting a row may cascade to other rows of its table, which the scan must not be reading at that time.
        let cascades = write.targets.iter().any(|target| {
            target.write.children.iter().any(|child| child.other.table == target.write.table)
        });
        let inserts = write.targets.iter().any(|target| target.write.portion.is_some());
        let buffered =
            write.multi_table || write.ordered || write.limit.is_some() || cascades || inserts;
        let rows = node.cost + shared.rows;
        let targets = write
            .targets
            .into_iter()
            .map(|target| {
                let locator = self.locator(&target);
                (target.write, locator)
            })
            .collect();
        let registers = self.registers;
        let Shared { subqueries, ctes, .. } = shared;
        let plan = DeletePlan {
            root,
            targets,
            ignore: write.ignore,
            buffered,
            limit: write.limit,
            returning: write.returning,
            subqueries,
            ctes,
            registers,
        };
        Ok((Plan::Delete(plan), rows))
    }

    /// Whether ON DUPLICATE KEY UPDATE reads registers that the source sets.
    fn updates_from_source(&self, mode: &plan::InsertMode, source: &Physical) -> bool {
        let plan::InsertMode::Update { assignments, .. } = mode else { return false };
        let sets = self.sets(source);
        let values = assignments.iter().filter_map(|set| set.value.as_ref());
        values.into_iter().any(|value| self.reads(value).intersects(&sets))
    }

    /// Whether a table reference of the statement reads the table.
    fn mentions_table(&self, table: u64) -> bool {
        self.instances.iter().any(|instance| self.input.tables[instance.table].id.0 == table)
    }

    /// Whether another table reference reads the target, too.
    fn reads_twice(&self, target: &LogicalTarget) -> bool {
        let same = |instance: &plan::TableInstance| {
            self.input.tables[instance.table].id.0 == target.write.table
        };
        self.instances.iter().filter(|instance| same(instance)).count() > 1
    }

    fn locator(&self, target: &LogicalTarget) -> Register {
        self.instance(target.instance).locator.unwrap_or(Register(0))
    }

    /// A written table needs its locator and all stored columns.
    fn add_target(&self, target: &LogicalTarget, wanted: &mut RegisterSet) {
        wanted.insert(self.locator(target));
        for column in &target.write.columns {
            wanted.insert(column.register);
        }
    }

    /// Whether the update moves rows within the ranges that the scan reads, so that it could meet them again.
    fn scan_moves(&self, target: &LogicalTarget, root: &Physical) -> bool {
        let mut scans = Vec::new();
        find_scans(root, target.instance.0, &mut scans);
        let changed = changed_columns(target);
        scans.iter().any(|access| {
            let index = match access {
                Access::Unique { .. } => return false,
                // A changed row could be read again by another arm.
                Access::Merge { .. } => return true,
                // All rows are found before the first is changed.
                Access::Fulltext { .. } | Access::Walk(_) => return false,
                Access::Ranges { index, .. } | Access::Full { index, .. } => *index,
            };
            let clustered = self.table(target.instance).primary();
            let parts = |number: u32| {
                target
                    .write
                    .indexes
                    .iter()
                    .find(|(id, ..)| *id == number)
                    .map(|(_, _, parts)| parts)
            };
            let moved = |number: u32| {
                parts(number).is_some_and(|parts| parts.iter().any(|part| changed.contains(part)))
            };
            // Unique keys end with it, the clustered one too.
            let ends = self.table(target.instance).row_times().is_some_and(|times| {
                let end = self.table(target.instance).columns[times.end].stored;
                end.is_some_and(|end| changed.contains(&end))
            });
            ends || moved(index) || (clustered.is_some() && moved(0))
        })
    }
}

/// Stored positions of the columns that an update can change, generated and self-updating ones included.
fn changed_columns(target: &LogicalTarget) -> Vec<usize> {
    let write: &TableWrite = &target.write;
    let mut changed: Vec<usize> = target.assignments.iter().map(|set| set.column).collect();
    for (position, column) in write.columns.iter().enumerate() {
        if column.generated.is_some() || column.on_update_now.is_some() {
            changed.push(position);
        }
    }
    changed.extend(write.history.as_ref().map(|history| history.start));
    changed
}

fn find_scans<'p>(node: &'p Physical, instance: u32, into: &mut Vec<&'p Access>) {
    if let Physical::Scan { table, access, .. } = node
        && table.instance == instance
    {
        into.push(access);
    }
    node.for_each_input(&mut |input| find_scans(input, instance, into));
}
