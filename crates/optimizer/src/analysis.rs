//! Plans the statement of an EXPLAIN, and collects the data that its text needs.

use errors::Result;
use plan::{ExplainFormat, LogicalPlan, LogicalSubquery, Plan, PlanFlags, TableInstance};

use crate::{OptimizeInput, Planner, explain, optimize_with};

/// The data that EXPLAIN needs about a statement after planning.
pub struct Explainer {
    instances: Vec<TableInstance>,
    subqueries: Vec<LogicalSubquery>,
}

impl Explainer {
    /// The text of EXPLAIN: `query` is the statement as it was understood, `actual` gives the measurements of an operator of `plan`.
    pub fn analysis(
        &self,
        plan: &Plan,
        format: ExplainFormat,
        input: &OptimizeInput<'_>,
        query: Option<&str>,
        actual: Option<explain::Actuals<'_>>,
    ) -> String {
        explain::text(plan, format, &self.context(input, query, actual))
    }

    /// The operators of `plan`, which ran: the statement's own tree, then those of its subqueries and common table expressions.
    pub fn operators(
        &self,
        plan: &Plan,
        input: &OptimizeInput<'_>,
        actual: explain::Actuals<'_>,
    ) -> Vec<explain::Operator> {
        explain::operators(plan, &self.context(input, None, Some(actual)))
    }

    fn context<'a>(
        &'a self,
        input: &OptimizeInput<'a>,
        query: Option<&'a str>,
        actual: Option<explain::Actuals<'a>>,
    ) -> explain::Context<'a> {
        explain::Context {
            instances: &self.instances,
            tables: input.tables,
            subqueries: &self.subqueries,
            statistics: input.statistics,
            collation: input.collation,
            query,
            actual,
        }
    }
}

/// Plans the statement of an EXPLAIN, to be described afterwards.
///
/// # Errors
/// As `optimize`.
pub fn optimize_for_analysis(
    plan: LogicalPlan,
    input: &OptimizeInput<'_>,
) -> Result<(Plan, PlanFlags, Explainer)> {
    let (physical, flags, planner) = optimize_with(plan, input)?;
    let Planner { instances, subqueries, .. } = planner;
    Ok((physical, flags, Explainer { instances, subqueries }))
}

impl Planner<'_> {
    /// The rows of an EXPLAIN of `plan`.
    pub(crate) fn explain(&self, plan: &Plan, format: ExplainFormat) -> Plan {
        explain::explain(plan, format, &self.context())
    }

    /// What the printers need.
    pub(crate) fn context(&self) -> explain::Context<'_> {
        explain::Context {
            instances: &self.instances,
            tables: self.input.tables,
            subqueries: &self.subqueries,
            statistics: self.input.statistics,
            collation: self.input.collation,
            query: None,
            actual: None,
        }
    }
}
