//! From logical to physical plans: rewrites, access paths, join order, and EXPLAIN.
//!
//! Must not know names, sessions or functions' code. Every rewrite keeps the rows; estimates only choose between plans that give
//! the same rows.

mod access;
mod analysis;
mod build;
mod cost;
mod covering;
mod estimate;
pub mod explain;
mod finish;
mod firsts;
mod graph;
mod index_merge;
mod join;
mod json;
mod pin;
mod predicate;
mod pruning;
mod push;
mod sargable;
mod trace;
mod traced;
mod unnest;
mod upper;
mod write;

use std::sync::Arc;

use catalog::Table;
use errors::Result;
use plan::{
    CteId, LogicalCte, LogicalPlan, LogicalStatement, LogicalSubquery, Plan, PlanFlags, QueryPlan,
    RangeSpec, Register, RowLocking, Subquery, SubqueryId, TableInstance,
};

pub use analysis::{Explainer, optimize_for_analysis};
pub use trace::{Trace, TraceParts};

/// Statistics about the sizes of tables. All answers are estimates.
pub trait StatisticsSource {
    /// Rows of a table (engine's id).
    fn rows(&self, table: u64) -> u64;
    /// Distinct keys of the first `parts` parts of an index.
    fn distinct(&self, _table: u64, _index: u32, _parts: usize) -> Option<u64> {
        None
    }
    /// Rows in ranges of an index, measured; `None` when their ends are not known yet.
    fn measured(&self, _table: u64, _index: u32, _ranges: &[RangeSpec]) -> Option<f64> {
        None
    }
}

/// Nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStatistics;

impl StatisticsSource for NoStatistics {
    fn rows(&self, _table: u64) -> u64 {
        1000
    }
}

/// The input of planning.
#[derive(Clone, Copy)]
pub struct OptimizeInput<'a> {
    /// The tables that the plan's instances refer to.
    pub tables: &'a [Arc<Table>],
    /// Sizes.
    pub statistics: &'a dyn StatisticsSource,
    /// The collation of EXPLAIN's texts.
    pub collation: types::CollationId,
    /// Where to write what is considered.
    pub trace: Option<&'a Trace>,
}

/// A recursive expression whose step is being planned.
pub(crate) struct Recursion {
    pub(crate) id: CteId,
    /// It is read on the right of a LEFT JOIN or STRAIGHT_JOIN.
    pub(crate) misplaced: bool,
}

/// State while a statement is planned.
pub(crate) struct Planner<'a> {
    pub(crate) input: OptimizeInput<'a>,
    pub(crate) instances: Vec<TableInstance>,
    pub(crate) subqueries: Vec<LogicalSubquery>,
    /// Subqueries that became joins: they have no separate plan.
    pub(crate) absorbed: Vec<bool>,
    pub(crate) registers: u32,
    pub(crate) next_cte: u32,
    pub(crate) straight_join: bool,
    /// Registers that a query reads; `None` for other statements.
    pub(crate) read: Option<plan::RegisterSet>,
    /// Those that a query of one table reads other than in its conditions.
    pub(crate) kept: Option<plan::RegisterSet>,
    pub(crate) join_orders: Vec<(plan::InstanceId, plan::InstanceId)>,
    /// Expected rows of each CTE.
    pub(crate) cte_rows: Vec<(CteId, f64)>,
    /// The recursive expressions whose steps are being planned, outermost first.
    pub(crate) recursions: Vec<Recursion>,
    /// Some column of some table has a histogram.
    pub(crate) has_histograms: bool,
    /// A histogram would have improved the estimate if a parameter's value were known.
    pub(crate) wants_literals: std::cell::Cell<bool>,
    /// What was measured so far: the search for an order asks again and again.
    pub(crate) measured: std::cell::RefCell<Vec<Measured>>,
}

/// Ranges of an index of a table, and their rows.
pub(crate) type Measured = (u64, u32, Vec<RangeSpec>, Option<f64>);

/// Plans a bound statement.
///
/// # Errors
/// 1235 for a statement that cannot be planned yet.
pub fn optimize(plan: LogicalPlan, input: &OptimizeInput<'_>) -> Result<(Plan, PlanFlags)> {
    optimize_with(plan, input).map(|(physical, flags, _)| (physical, flags))
}

fn optimize_with<'a>(
    plan: LogicalPlan,
    input: &OptimizeInput<'a>,
) -> Result<(Plan, PlanFlags, Planner<'a>)> {
    let uncacheable = plan.uncacheable;
    let uses_tables = !plan.instances.is_empty();
    let locking = plan.instances.iter().any(|instance| instance.locking != RowLocking::None);
    let mut planner = Planner {
        input: *input,
        read: covering::registers_read(&plan),
        kept: covering::registers_kept(&plan),
        absorbed: vec![false; plan.subqueries.len()],
        instances: plan.instances,
        subqueries: plan.subqueries,
        registers: plan.registers,
        next_cte: plan.cte_ids,
        straight_join: plan.straight_join,
        join_orders: plan.join_orders,
        cte_rows: Vec::new(),
        recursions: Vec::new(),
        has_histograms: input
            .tables
            .iter()
            .any(|table| table.columns.iter().any(|column| column.histogram.is_some())),
        wants_literals: std::cell::Cell::new(false),
        measured: std::cell::RefCell::default(),
    };
    let (physical, rows) = planner.statement(plan.statement, plan.ctes)?;
    let writes = matches!(physical, Plan::Insert(_) | Plan::Update(_) | Plan::Delete(_));
    let flags = PlanFlags {
        uses_tables: uses_tables || writes,
        locking: locking || writes,
        estimated_rows: rows.min(1e18) as u64,
        uncacheable,
        wants_literals: planner.wants_literals.get(),
    };
    Ok((physical, flags, planner))
}

/// The parts that all plans share.
pub(crate) struct Shared {
    pub(crate) subqueries: Vec<Subquery>,
    pub(crate) ctes: Vec<(CteId, plan::Physical, Vec<plan::Expr>)>,
    pub(crate) rows: f64,
}

impl Planner<'_> {
    fn statement(
        &mut self,
        statement: LogicalStatement,
        ctes: Vec<LogicalCte>,
    ) -> Result<(Plan, f64)> {
        match statement {
            LogicalStatement::Query(query) => {
                let ctes = self.plan_ctes(ctes)?;
                let node = self.plan(query.root, &Default::default())?;
                let shared = self.share(ctes, &[&node.physical])?;
                let root = self.finish(node.physical, &query.outputs, &shared.subqueries);
                let rows = node.cost + shared.rows;
                let registers = self.registers;
                let Shared { subqueries, ctes, .. } = shared;
                let outputs = query.outputs;
                Ok((Plan::Query(QueryPlan { root, outputs, subqueries, ctes, registers }), rows))
            }
            LogicalStatement::Insert(insert) => self.insert(*insert, ctes),
            LogicalStatement::Update(write) => self.update(*write, ctes),
            LogicalStatement::Delete(write) => self.delete(*write, ctes),
            LogicalStatement::Do(exprs) => {
                let ctes = self.plan_ctes(ctes)?;
                let shared = self.share(ctes, &[])?;
                let registers = self.registers;
                let Shared { subqueries, ctes, rows } = shared;
                Ok((Plan::Do { exprs, subqueries, ctes, registers }, rows))
            }
            LogicalStatement::Explain { statement, format, analyze } => {
                if analyze {
                    return Err(errors::Error::internal("ANALYZE is planned separately"));
                }
                let (plan, rows) = self.statement(*statement, ctes)?;
                Ok((self.explain(&plan, format), rows))
            }
        }
    }

    /// Plans CTEs in order of definition.
    pub(crate) fn plan_ctes(
        &mut self,
        ctes: Vec<LogicalCte>,
    ) -> Result<Vec<(CteId, plan::Physical, Vec<plan::Expr>)>> {
        let mut planned = Vec::with_capacity(ctes.len());
        for cte in ctes {
            let node = self.plan(cte.root, &Default::default())?;
            self.cte_rows.push((cte.id, node.rows));
            planned.push((cte.id, node.physical, cte.outputs));
        }
        Ok(planned)
    }

    /// Plans the remaining subqueries, and gives all parts their final registers. `roots`: the statement's own trees.
    pub(crate) fn share(
        &mut self,
        ctes: Vec<(CteId, plan::Physical, Vec<plan::Expr>)>,
        roots: &[&plan::Physical],
    ) -> Result<Shared> {
        let mut rows = 0.0;
        let count = self.subqueries.len();
        let mut wanted: Vec<bool> = self.absorbed.iter().map(|absorbed| !absorbed).collect();
        if wanted.contains(&false) {
            roots.iter().for_each(|root| note_subqueries(root, &mut wanted));
            ctes.iter().for_each(|(_, root, _)| note_subqueries(root, &mut wanted));
        }
        let mut planned: Vec<Option<plan::Physical>> = vec![None; count];
        // A subquery's own plan may name others that were absorbed elsewhere.
        while let Some(index) = (0..count).find(|index| wanted[*index] && planned[*index].is_none())
        {
            let node = self.plan(self.subqueries[index].root.clone(), &Default::default())?;
            rows += node.cost;
            note_subqueries(&node.physical, &mut wanted);
            planned[index] = Some(node.physical);
        }
        let mut subqueries: Vec<Subquery> = Vec::with_capacity(count);
        for (subquery, physical) in self.subqueries.iter().zip(planned) {
            subqueries.push(match physical {
                Some(root) => Subquery {
                    root,
                    outputs: subquery.outputs.clone(),
                    outer: subquery.outer.clone(),
                },
                None => Subquery {
                    root: plan::Physical::Nothing,
                    outputs: Vec::new(),
                    outer: Vec::new(),
                },
            });
        }
        let lists = subqueries.clone();
        for subquery in &mut subqueries {
            let root = std::mem::replace(&mut subquery.root, plan::Physical::Nothing);
            let outputs: Vec<&plan::Expr> = subquery.outputs.iter().collect();
            subquery.root = self.finish_exprs(root, &outputs, &lists);
        }
        let mut finished = Vec::with_capacity(ctes.len());
        for (id, root, outputs) in ctes {
            let exprs: Vec<&plan::Expr> = outputs.iter().collect();
            let root = self.finish_exprs(root, &exprs, &lists);
            finished.push((id, root, outputs));
        }
        Ok(Shared { subqueries, ctes: finished, rows })
    }

    pub(crate) fn new_cte(&mut self) -> CteId {
        self.next_cte += 1;
        CteId(self.next_cte - 1)
    }

    /// The catalog's table of an instance.
    pub(crate) fn table(&self, id: plan::InstanceId) -> &Arc<Table> {
        &self.input.tables[self.instances[id.0 as usize].table]
    }

    pub(crate) fn instance(&self, id: plan::InstanceId) -> &TableInstance {
        &self.instances[id.0 as usize]
    }

    /// Registers that a subquery reads from outside.
    pub(crate) fn outer(&self, id: SubqueryId) -> &[Register] {
        &self.subqueries[id.0 as usize].outer
    }

    /// Registers that an expression reads, those of its subqueries' outer references included.
    pub(crate) fn reads(&self, expr: &plan::Expr) -> plan::RegisterSet {
        let mut set = plan::RegisterSet::new();
        expr.add_registers(&|id| self.outer(id), &mut set);
        set
    }
}

/// Marks the subqueries that a tree names.
fn note_subqueries(node: &plan::Physical, wanted: &mut [bool]) {
    node.for_each_expr(&mut |expr| {
        expr.visit(&mut |node| {
            if let plan::Expr::Subquery { id, .. } = node {
                wanted[id.0 as usize] = true;
            }
        });
    });
    node.for_each_input(&mut |input| note_subqueries(input, wanted));
}
