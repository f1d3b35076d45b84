//! Costs and rows in EXPLAIN: the reference's unit, a tenth for a row and a quarter for a page in memory.
//!
//! The optimizer chose the plan by its own estimates; these are worked out from the finished plan, for people and tools that
//! compare plans.

use plan::{Access, AggregateMode, JoinKind, Physical, SetOperation, TableAccess};

use super::Context;

/// Evaluating a row.
pub(super) const ROW: f64 = 0.1;
const PAGE: f64 = 0.25;
/// Rows of a page, without statistics.
const PAGE_ROWS: f64 = 100.0;
/// The cost of setting up an internal table.
const TABLE: f64 = 2.5;
/// Share of rows that a condition without an estimate keeps.
const KEPT: f64 = 1.0 / 3.0;
/// The largest share of pairs that an equality keeps, and the smallest of rows without a partner.
const EQUAL: f64 = 0.1;

/// The estimate for an operator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    pub(super) rows: f64,
    /// Until the last row.
    pub(super) cost: f64,
    /// Cost until the first row, where it is a large part of the total.
    pub(super) first: f64,
}

impl Estimate {
    fn of(rows: f64, cost: f64) -> Estimate {
        Estimate { rows, cost, first: 0.0 }
    }
}

/// Groups of these rows: a scan that skips the others gives one of each.
fn groups(input: &Physical, rows: f64) -> f64 {
    let mut scan = input;
    while let Physical::Filter { input, .. } | Physical::Project { input, .. } = scan {
        scan = input;
    }
    let skips = matches!(scan, Physical::Scan { table, .. } if table.firsts.is_some());
    if skips { rows } else { rows.sqrt() }
}

impl Context<'_> {
    /// Rows that a scan reads in one opening, and their cost.
    pub(super) fn fetch_estimate(&self, table: &TableAccess, access: &Access) -> Estimate {
        let total = self.statistics.rows(self.table(table).id.0).max(1) as f64;
        let expected = table.estimated_rows.max(1) as f64;
        if table.firsts.is_some() {
            return Estimate::of(expected, expected * (PAGE + ROW));
        }
        match access {
            Access::Unique { .. } => Estimate::of(1.0, PAGE + ROW),
            Access::Ranges { index, .. } => {
                let lookup = if *index == 0 { ROW } else { ROW + PAGE };
                Estimate::of(expected, PAGE.min(lookup * expected) + lookup * expected)
            }
            Access::Fulltext { .. } => Estimate::of(expected, (ROW + PAGE) * expected),
            Access::Merge { arms, .. } => {
                let starts = PAGE * arms.len() as f64;
                Estimate::of(expected, starts + (ROW + PAGE) * expected)
            }
            Access::Walk(_) => Estimate::of(1.0, PAGE + ROW),
            Access::Full { .. } => {
                Estimate::of(total, (total / PAGE_ROWS).ceil() * PAGE + total * ROW)
            }
        }
    }

    /// Rows and cost of an operator.
    pub(super) fn estimate(&self, node: &Physical) -> Estimate {
        match node {
            Physical::OneRow => Estimate::of(1.0, 0.0),
            Physical::Nothing => Estimate::default(),
            Physical::Values { rows, .. } => Estimate::of(rows.len() as f64, 0.0),
            Physical::Scan { table, access, filter } => {
                let fetched = self.fetch_estimate(table, access);
                let kept = (table.estimated_rows.max(1) as f64).min(fetched.rows);
                Estimate { rows: if filter.is_some() { kept } else { fetched.rows }, ..fetched }
            }
            Physical::InformationScan { .. } => Estimate::of(PAGE_ROWS, TABLE + PAGE_ROWS * ROW),
            Physical::JsonRows(_) => Estimate::of(PAGE_ROWS, TABLE + PAGE_ROWS * ROW),
            Physical::CteScan { .. } => Estimate::of(PAGE_ROWS, TABLE + PAGE_ROWS * ROW),
            Physical::Project { input, .. } => self.estimate(input),
            Physical::Filter { input, .. } => {
                let below = self.estimate(input);
                Estimate { rows: below.rows * KEPT, ..below }
            }
            Physical::NestedLoop { kind, outer, inner, condition, .. } => {
                let (outer, inner) = (self.estimate(outer), self.estimate(inner));
                let share = if condition.is_some() { KEPT } else { 1.0 };
                let rows = joined(*kind, outer.rows, inner.rows * share);
                Estimate::of(rows, outer.cost + outer.rows * inner.cost)
            }
            Physical::HashJoin { kind, outer, inner, keys, .. } => {
                let (outer, inner) = (self.estimate(outer), self.estimate(inner));
                // As of a foreign key: the smaller side has each value once.
                let distinct = outer.rows.min(inner.rows).max(1.0 / EQUAL);
                let matches = if keys.is_empty() { inner.rows } else { inner.rows / distinct };
                let rows = joined(*kind, outer.rows, matches);
                Estimate::of(rows, outer.cost + inner.cost + (outer.rows + inner.rows) * ROW)
            }
            Physical::Aggregate { input, mode, .. } => {
                let below = self.estimate(input);
                let rows = match mode {
                    AggregateMode::Scalar => 1.0,
                    AggregateMode::Hash | AggregateMode::Sorted => groups(input, below.rows),
                };
                blocking(rows, below.cost + below.rows * ROW, *mode != AggregateMode::Sorted)
            }
            Physical::Window { input, .. } => {
                let below = self.estimate(input);
                Estimate::of(below.rows, below.cost + below.rows * ROW)
            }
            Physical::Sort { input, .. } => {
                let below = self.estimate(input);
                let sorting = below.rows * below.rows.max(2.0).log2() * ROW;
                blocking(below.rows, below.cost + sorting, true)
            }
            Physical::Distinct { input, .. } => {
                let below = self.estimate(input);
                Estimate::of(groups(input, below.rows).max(1.0), below.cost + below.rows * ROW)
            }
            Physical::Limit { input, limit, .. } => {
                let below = self.estimate(input);
                let count = limit.as_ref().and_then(number);
                Estimate { rows: count.map_or(below.rows, |count| count.min(below.rows)), ..below }
            }
            Physical::SetOperation { operation, inputs, .. } => {
                let (mut rows, mut cost) = (0.0, 0.0);
                for (input, _) in inputs {
                    let input = self.estimate(input);
                    rows += input.rows;
                    cost += input.cost;
                }
                match operation {
                    SetOperation::UnionAll => Estimate::of(rows, cost),
                    _ => blocking(rows, cost + TABLE + rows * ROW, true),
                }
            }
            Physical::Materialize { input, .. } => {
                let below = self.estimate(input);
                blocking(below.rows, below.cost + TABLE + below.rows * ROW, true)
            }
            Physical::RecursiveCte { seed, step, .. } => {
                let (seed, step) = (self.estimate(seed), self.estimate(step));
                let rows = seed.rows + step.rows;
                blocking(rows, seed.cost + step.cost + TABLE + rows * ROW, true)
            }
        }
    }
}

fn blocking(rows: f64, cost: f64, blocks: bool) -> Estimate {
    Estimate { rows, cost, first: if blocks { cost } else { 0.0 } }
}

fn joined(kind: JoinKind, outer: f64, matches: f64) -> f64 {
    match kind {
        JoinKind::Inner => outer * matches,
        JoinKind::Left | JoinKind::Full => outer * matches.max(1.0),
        JoinKind::Semi => outer * matches.min(1.0),
        JoinKind::Anti => outer * (1.0 - matches.min(1.0)).max(EQUAL),
    }
}

fn number(expr: &plan::Expr) -> Option<f64> {
    match expr {
        plan::Expr::Literal { value: types::Value::Int(number), .. } => Some(*number as f64),
        plan::Expr::Literal { value: types::Value::UInt(number), .. } => Some(*number as f64),
        _ => None,
    }
}
