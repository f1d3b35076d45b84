//! EXPLAIN: the physical plan as the classic table, as a tree and as JSON.

mod blocks;
mod cost;
mod partitions;
mod table;
mod tree;

use std::sync::Arc;
use std::time::Duration;

use catalog::{Column, Table};
use plan::{
    Access, ExplainFormat, Expr, InsertSource, LogicalSubquery, Making, OutputColumn, Physical,
    Plan, Register, TableAccess, TableInstance,
};
use types::{CollationId, DataType, Value};

use crate::StatisticsSource;

/// The data that the printers need in addition to the plan.
pub struct Context<'a> {
    /// Table references of the statement.
    pub instances: &'a [TableInstance],
    /// Tables of the references.
    pub tables: &'a [Arc<Table>],
    /// Block numbers of subqueries.
    pub subqueries: &'a [LogicalSubquery],
    /// Sizes of tables.
    pub statistics: &'a dyn StatisticsSource,
    /// Collation of the texts.
    pub collation: CollationId,
    /// The statement as it was understood, for JSON.
    pub query: Option<&'a str>,
    /// The measurements of each operator, after it ran.
    pub actual: Option<Actuals<'a>>,
}

/// Returns the measurements of an operator; `None` for one that was never run.
pub type Actuals<'a> = &'a dyn Fn(&Physical) -> Option<Actual>;

/// The measurements of one operator.
#[derive(Clone, Copy, Debug)]
pub struct Actual {
    /// Its number among those that were measured.
    pub place: usize,
    /// How often it was started.
    pub loops: u64,
    /// Rows of all loops.
    pub rows: u64,
    /// Rows of all loops before the filter that a scan applies.
    pub examined: u64,
    /// Time until the first row, of all loops.
    pub first: Duration,
    /// Time until the end, of all loops.
    pub last: Duration,
}

/// An operator that ran, as EXPLAIN FORMAT=TREE shows it.
#[derive(Clone, Debug)]
pub struct Operator {
    /// What it does.
    pub text: String,
    /// Whether this stands for the operators below it: a statement that writes, a subquery, a common table expression.
    pub is_heading: bool,
    /// Its measurements; `None` when it was never run.
    pub actual: Option<Actual>,
    /// Whether its rows are those that were read, before the filter above.
    pub before_filter: bool,
    /// Its inputs.
    pub inputs: Vec<Operator>,
}

/// The expression of the hidden column of a functional index part.
fn hidden_expression(column: &Column) -> Option<String> {
    let generated = column.generated.as_ref().filter(|generated| generated.hidden)?;
    Some(generated.shown().replace('`', ""))
}

/// A column as EXPLAIN names it.
fn shown(column: &Column) -> String {
    hidden_expression(column).unwrap_or_else(|| column.name.to_string())
}

impl Context<'_> {
    /// The catalog's table that a scan reads.
    fn table(&self, access: &TableAccess) -> &Table {
        &self.tables[self.instances[access.instance as usize].table]
    }

    /// `alias.column` of a register.
    fn name(&self, register: Register) -> Option<String> {
        let (instance, column) = self
            .instances
            .iter()
            .find_map(|instance| Some((instance, instance.column_of(register)?)))?;
        let column = &self.tables[instance.table].columns[column];
        match hidden_expression(column) {
            Some(expression) => Some(expression),
            None => Some(format!("{}.{}", instance.alias, column.name)),
        }
    }

    /// `schema.alias.column` of a register.
    fn full_name(&self, register: Register) -> Option<String> {
        let instance =
            self.instances.iter().find(|instance| instance.column_of(register).is_some())?;
        Some(format!("{}.{}", self.tables[instance.table].schema, self.name(register)?))
    }

    /// The schema of a table of the statement.
    fn schema_of(&self, name: &str) -> &str {
        self.tables.iter().find(|table| &*table.name == name).map_or("", |table| &*table.schema)
    }

    /// The columns that a scan reads, in the table's order.
    fn used_columns(&self, access: &TableAccess) -> Vec<String> {
        let table = self.table(access);
        let mut used: Vec<usize> = access.columns.iter().map(|(column, _)| *column).collect();
        used.sort_unstable();
        used.dedup();
        used.into_iter().filter_map(|column| table.columns.get(column)).map(shown).collect()
    }

    /// The index that a scan uses; `None` when it reads the whole table in its order.
    fn index_used(&self, access: &Access) -> Option<u32> {
        match access {
            Access::Unique { index, .. } | Access::Ranges { index, .. } => Some(*index),
            Access::Full { index: 0, backward: false } | Access::Fulltext { .. } => None,
            Access::Merge { arms, .. } => match &arms[..] {
                [arm] => Some(arm.index),
                _ => None,
            },
            Access::Full { index, .. } => Some(*index),
            Access::Walk(walk) => Some(walk.index),
        }
    }

    /// Whether all columns that a scan reads are in a secondary index (the primary key's columns always are).
    fn covers(&self, access: &TableAccess, index: u32) -> bool {
        let table = self.table(access);
        let covers = |known: &&catalog::Index| known.id.0 == index && !table.is_multi_valued(known);
        let Some(known) = table.indexes.iter().find(covers).filter(|_| index != 0) else {
            return false;
        };
        let primary = table.indexes.iter().find(|index| index.id.0 == 0);
        access.columns.iter().all(|(column, _)| {
            let whole =
                |part: &catalog::IndexPart| part.column == *column && part.prefix_length.is_none();
            known.parts.iter().any(whole)
                || primary.is_some_and(|primary| primary.parts.iter().any(whole))
        })
    }

    /// Columns of the key parts that a scan uses.
    fn key_columns(&self, access: &TableAccess, path: &Access) -> Vec<String> {
        let table = self.table(access);
        let parts = match path {
            Access::Unique { key, .. } => key.len(),
            Access::Ranges { ranges, .. } => ranges.first().map_or(0, |range| {
                let bounded = range.lower.is_some() || range.upper.is_some();
                range.equal.len() + usize::from(bounded)
            }),
            Access::Merge { .. }
            | Access::Fulltext { .. }
            | Access::Full { .. }
            | Access::Walk(_) => usize::MAX,
        };
        let index = self.index_used(path);
        let Some(known) = table.indexes.iter().find(|known| Some(known.id.0) == index) else {
            return Vec::new();
        };
        let columns = known.parts.iter().take(parts).map(|part| &table.columns[part.column]);
        columns.map(shown).collect()
    }

    /// An expression with the names of its columns.
    pub(crate) fn expr(&self, expr: &Expr) -> String {
        plan::print::expr_named(expr, &|register| self.name(register))
    }

    /// The name of an index of the table that a scan reads.
    fn index_name(&self, access: &TableAccess, index: u32) -> Option<Arc<str>> {
        let table = self.table(access);
        table.indexes.iter().find(|known| known.id.0 == index).map(|known| known.name.clone())
    }
}

/// The parts of a plan that are operator trees.
fn root(plan: &Plan) -> Option<&Physical> {
    match plan {
        Plan::Query(query) => Some(&query.root),
        Plan::Insert(insert) => match &insert.source {
            InsertSource::Values(_) => None,
            InsertSource::Query(query) => Some(&query.root),
        },
        Plan::Update(update) => Some(&update.root),
        Plan::Delete(delete) => Some(&delete.root),
        Plan::Do { .. } | Plan::Rows { .. } => None,
    }
}

fn subqueries(plan: &Plan) -> &[plan::Subquery] {
    match plan {
        Plan::Query(query) => &query.subqueries,
        Plan::Insert(insert) => &insert.subqueries,
        Plan::Update(update) => &update.subqueries,
        Plan::Delete(delete) => &delete.subqueries,
        Plan::Do { subqueries, .. } => subqueries,
        Plan::Rows { .. } => &[],
    }
}

fn ctes(plan: &Plan) -> &[(plan::CteId, Physical, Vec<Expr>)] {
    match plan {
        Plan::Query(query) => &query.ctes,
        Plan::Insert(insert) => &insert.ctes,
        Plan::Update(update) => &update.ctes,
        Plan::Delete(delete) => &delete.ctes,
        Plan::Do { ctes, .. } => ctes,
        Plan::Rows { .. } => &[],
    }
}

/// The answer of EXPLAIN.
pub fn explain(plan: &Plan, format: ExplainFormat, context: &Context<'_>) -> Plan {
    match format {
        ExplainFormat::Traditional => table::explain(plan, context),
        ExplainFormat::Tree | ExplainFormat::Json | ExplainFormat::JsonBlocks => {
            single(text(plan, format, context), context)
        }
    }
}

/// The text of EXPLAIN FORMAT=TREE and FORMAT=JSON.
pub fn text(plan: &Plan, format: ExplainFormat, context: &Context<'_>) -> String {
    match format {
        ExplainFormat::Json => tree::json(plan, context),
        ExplainFormat::JsonBlocks => blocks::json(plan, context),
        ExplainFormat::Tree | ExplainFormat::Traditional => tree::text(plan, context),
    }
}

/// The operators of a plan that ran.
pub fn operators(plan: &Plan, context: &Context<'_>) -> Vec<Operator> {
    tree::operators(plan, context)
}

fn query_type(plan: &Plan) -> &'static str {
    match plan {
        Plan::Query(_) | Plan::Do { .. } | Plan::Rows { .. } => "select",
        Plan::Insert(insert) if matches!(insert.mode, plan::InsertMode::Replace) => "replace",
        Plan::Insert(_) => "insert",
        Plan::Update(_) => "update",
        Plan::Delete(_) => "delete",
    }
}

/// One row with one text.
fn single(text: String, context: &Context<'_>) -> Plan {
    let mut ty = DataType::varchar(text.chars().count() as u32, context.collation);
    ty.nullable = false;
    let columns = vec![column("EXPLAIN", ty)];
    Plan::Rows { columns, rows: vec![vec![Value::text(&text)]] }
}

fn column(name: &str, ty: DataType) -> OutputColumn {
    OutputColumn {
        name: Arc::from(name),
        expr: Expr::literal(Value::Null, ty),
        source: None,
        making: Making::default(),
    }
}
